/* pipeline/workflow/workflow.h - loads a workflow file: reads it, applies overrides and substitutions, and checks it.
 *
 * The command line overrides the workflow file, which overrides the built-in defaults
 * (`a.b.c=value`, the value is parsed as YAML; a `+` in front is accepted). `${vars.x}`
 * and `${env:NAME:-default}` are replaced in scalars; nothing in the file is executed.
 * All problems of a file are reported together as file:line:column. */
#ifndef PL_WORKFLOW_H
#define PL_WORKFLOW_H

#include <stdio.h>

#include "pipeline/base/field.h"
#include "pipeline/base/text.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/yaml.h"

typedef struct pl_input {
    const char *path;                         /* may be a glob; expanded in name order     */
    const char *format;                       /* "auto", "smi", "sdf", ...                 */
    const char *title_from;                   /* SDF field that holds the title, or NULL   */
    const char *smiles_column, *title_column; /* CSV: name or number from 1; NULL: guess */
} pl_input;

typedef struct pl_model_ref {
    const char *name, *path, *sha256; /* sha256: the only one accepted, as hexadecimal digits; NULL: any */
} pl_model_ref;

enum { PL_STEPS_MAX = 64 }; /* stages of a workflow: each at most once, so no stage needs more than that */

struct pl_step {
    const pl_stage *stage;
    void *conf;          /* the stage's settings struct               */
    const pl_node *node; /* the stage in the file                     */
    int n_needs;
    int needs[PL_STEPS_MAX]; /* positions in workflow.step                */
    char key[65];            /* filled by pl_plan_keys                    */
    const char *params_json; /* pl_params_json; filled by pl_plan_keys    */
    const char *extra_json;  /* what the stage's key callback added; filled by pl_plan_keys */
};

/* The job that `molsieve script` and `submit` request from the scheduler; a run ignores it. */
typedef struct pl_job_conf {
    int32_t type;                     /* auto|slurm|pbs|lsf|sge                    */
    double time, warn;                /* seconds; time -1: the limit of the site   */
    int64_t nodes, tasks, cpus, gpus; /* tasks and gpus per node; cpus per task */
    double memory;                    /* bytes per node; 0: the default of the site */
    const char *partition, *account;  /* or NULL                            */
    int64_t array, max_running;       /* shards, 0: one job; tasks at once, 0: all */
    int64_t restarts;
    const char *launcher;   /* or NULL                                   */
    pl_list setup, options; /* const char *                              */
} pl_job_conf;

struct pl_workflow {
    const char *path; /* of the workflow file, as given            */
    const char *text; /* the bytes of the file                     */
    int64_t format;
    const char *name;
    int64_t seed;
    const char *workdir; /* relative to the YAML file, made absolute  */
    pl_list inputs;      /* pl_input, globs expanded                  */
    pl_list patterns;    /* pl_input as written, paths absolute       */
    pl_list models;      /* pl_model_ref                              */
    /* limits: max_fraction 0..1 and max_count of failed records; disk_free_min in bytes; max_time in seconds, -1: auto */
    struct {
        double max_fraction;
        int64_t max_count;
        double disk_free_min;
        double max_time;
    } limits;
    struct {
        const char *results, *features;
        int32_t journal;
        bool stage_out;
    } storage;       /* paths absolute; journal auto|wal|truncate */
    int64_t workers; /* -1: auto                                  */
    pl_job_conf scheduler;
    int n_steps;
    pl_step *step; /* in an order that respects needs           */
    pl_node *tree; /* after substitution and overrides          */
};

/* overrides: such as "stages.graph.cutoff=4.5". NULL if there are problems. Everything is in mem. */
pl_workflow *pl_workflow_load(const char *path, char *const *overrides, int n_overrides, const pl_stage *const *known,
                              pl_problems *problems, pl_arena *mem);

/* The same from the text that a run stored (run.config_yaml); `origin` is for messages. The files that it names need not exist,
 * and nothing but the text is checked. */
pl_workflow *pl_workflow_stored(const char *text, const char *origin, const pl_stage *const *known, pl_problems *problems,
                                pl_arena *mem);

/* The whole effective file as YAML, every default shown; with_origin adds
 * `# default`, `# screen.yaml:12:5`, `# command line` to each value. */
pl_code pl_workflow_dump(const pl_workflow *wf, bool with_origin, pl_text *out);

/* JSON Schema (2020-12) of workflow files, from the tables. */
void pl_workflow_schema(const pl_stage *const *known, pl_text *out);
/* configs/default.yaml: every stage and setting with default, allowed values, help. */
void pl_workflow_defaults(const pl_stage *const *known, pl_text *out);
/* `molsieve help graph`: a settings table for people. */
void pl_stage_help(const pl_stage *stage, pl_text *out);
/* The same for the settings of the whole file. */
void pl_workflow_help(pl_text *out);

/* The step of a stage, or NULL if the workflow has none. */
const pl_step *pl_workflow_step(const pl_workflow *wf, const char *name);

/* The settings of a stage that are part of its key, as canonical JSON in mem: dotted keys, sorted; "auto" is -1.
 * Left out are PL_HOW, PL_LATER at its default, and paths: a stage whose result depends on a file adds
 * its hash (or the name it writes) in its key callback. NULL: out of memory. */
const char *pl_params_json(const pl_field *table, const void *conf, pl_arena *mem);

#endif
