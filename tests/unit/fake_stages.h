/* tests/unit/fake_stages.h - four stages that only have settings, for tests of configuration. */
#ifndef TESTS_FAKE_STAGES_H
#define TESTS_FAKE_STAGES_H

#include "pipeline/workflow/workflow.h"

typedef struct fake_target {
    const char *name;
    const char *unit;
    int32_t better;
    double weight;
} fake_target;

typedef struct fake_conf {
    int64_t unit, neighbours;
    double cutoff, cpu_limit, memory;
    bool strict;
    const char *label, *file;
    int32_t edges;
    pl_list elements, fractions, targets, by_name;
} fake_conf;

#define AT(member) offsetof(fake_target, member)
static const pl_field fake_target_fields[] = {
    { PL_TEXT, "name", AT(name), .flags = PL_REQUIRED, .help = "name of the property" },
    { PL_TEXT, "unit", AT(unit), .text = "1", .help = "unit of the property" },
    { PL_CHOICE, "better", AT(better), .dflt = 2, .choices = "low|high|none", .help = "which end is wanted" },
    { PL_REAL, "weight", AT(weight), .dflt = 1, .min = 0, .max = 100, .help = "weight" },
    { 0 },
};
static const pl_field fake_named_fields[] = {
    { PL_TEXT, "name", AT(name), .help = "the key" },
    { PL_REAL, "weight", AT(weight), .dflt = 1, .min = 0, .max = 100, .help = "weight" },
    { 0 },
};
#undef AT

#define AT(member) offsetof(fake_conf, member)
static const pl_field fake_fields[] = {
    { PL_INT, "unit", AT(unit), .dflt = 1000, .min = 1, .max = 1e6, .unit = "records", .flags = PL_HOW,
      .help = "records in a unit" },
    { PL_REAL, "cutoff", AT(cutoff), .dflt = 5, .min = 0.5, .max = 20, .unit = "Angstrom", .help = "radius of the neighbourhood" },
    { PL_INT, "neighbours.max", AT(neighbours), .dflt = -1, .min = 1, .max = 1000, .choices = "auto", .help = "most neighbours" },
    { PL_CHOICE, "neighbours.edges", AT(edges), .choices = "radius|bonds|knn|full", .help = "which pairs" },
    { PL_DURATION, "cpu_limit", AT(cpu_limit), .dflt = 2, .min = 0.1, .max = 3600, .help = "CPU time of a molecule" },
    { PL_SIZE, "memory", AT(memory), .dflt = 2147483648.0, .min = 1048576, .max = 1e15, .help = "memory of a worker" },
    { PL_BOOL, "strict", AT(strict), .dflt = 1, .help = "stop at the first bad record" },
    { PL_TEXT, "label", AT(label), .help = "any text" },
    { PL_PATH, "file", AT(file), .flags = PL_EXISTS, .help = "a file" },
    { PL_TEXTS, "elements", AT(elements), .help = "element symbols" },
    { PL_REALS, "fractions", AT(fractions), .min = 0, .max = 1, .help = "parts" },
    { PL_LIST, "targets", AT(targets), .sub = fake_target_fields, .sub_size = sizeof(fake_target), .help = "properties" },
    { PL_LIST, "by_name", AT(by_name), .flags = PL_KEYED, .sub = fake_named_fields, .sub_size = sizeof(fake_target),
      .help = "weights" },
    { 0 },
};
#undef AT

static const pl_stage fake_read = { .name = "read", .help = "reads", .conf_size = 1 };
static const pl_stage fake_graph = { .name = "graph",
                                     .help = "makes graphs",
                                     .fields = fake_fields,
                                     .conf_size = sizeof(fake_conf),
                                     .needs = (const char *const[]){ "read", NULL } };
static const pl_stage fake_split = {
    .name = "split", .help = "splits", .conf_size = 1, .needs = (const char *const[]){ "read", NULL }
};
static const pl_stage fake_train = {
    .name = "train", .help = "trains", .conf_size = 1, .needs = (const char *const[]){ "graph", "(split)", NULL }
};
static const pl_stage *const fake_stages[] = { &fake_read, &fake_graph, &fake_split, &fake_train, NULL };

#endif
