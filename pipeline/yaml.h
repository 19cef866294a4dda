/* pipeline/yaml.h - YAML as a tree with places, strictly.
 *
 * The only file that knows libyaml. Refuses what surprises: duplicate keys,
 * tabs, more than one document, anchors that expand without end, tags, keys
 * that are not text. Every node knows its line and column (from 1). Memory: the
 * arena. */
#ifndef PL_YAML_H
#define PL_YAML_H

#include <stdbool.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

enum {
    PL_YAML_MAX_BYTES = 10 << 20,
    PL_YAML_MAX_NODES = 100000, /* after aliases are written out */
    PL_YAML_MAX_DEPTH = 64,
    PL_YAML_MAX_FILLED = 1 << 20, /* bytes of all texts in which ${...} was replaced */
    PL_PROBLEMS_MAX = 500       /* more are not kept             */
};

typedef enum pl_node_kind { PL_SCALAR, PL_SEQUENCE, PL_MAPPING } pl_node_kind;

typedef struct pl_node {
    pl_node_kind kind;
    const char *text;        /* scalar                                         */
    bool quoted;             /* scalar written in quotes: never a number       */
    int verbatim;            /* scalar: the column of its first character, 0: not in one line as it is written */
    bool faulty;             /* a problem of this value has been told: be silent */
    const char *origin;      /* file name as the user gave it, or "command line" */
    int line, column;
    int n;                   /* items or pairs                                 */
    struct pl_node **key;    /* mapping: scalars [n]                           */
    struct pl_node **item;   /* [n]                                            */
} pl_node;

/* Problems are collected and reported together, ordered by place. */
typedef struct pl_problems {
    pl_arena *mem;
    struct pl_problem *list;
    int n, cap; /* n is -1 when there was no memory to keep the first one */
} pl_problems;

typedef struct pl_problem {
    const char *origin;
    int line, column;  /* 0: no place in a file */
    const char *text;  /* "cutoff: 99 is outside 0.5..20 Angstrom" */
} pl_problem;

void pl_problem_add(pl_problems *p, const pl_node *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A problem with a whole file: no line. */
void pl_problem_add_file(pl_problems *p, const char *origin, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* By file, line and column; the same problem at the same place is kept once. */
void pl_problems_sort(pl_problems *p);

/* One line each: "screen.yaml:12:5: text". */
void pl_problems_write(const pl_problems *p, pl_text *out);

/* The bytes of a file that may be YAML; false and a problem if it is missing or too large. */
bool pl_yaml_bytes(pl_bytes *out, const char *path, pl_problems *problems, pl_arena *mem);

/* NULL and problems on bad YAML. */
pl_node *pl_yaml_parse(const char *text, size_t len, const char *origin, pl_problems *problems, pl_arena *mem);

/* The value of a key, or NULL. */
pl_node *pl_node_get(const pl_node *map, const char *key);

/* `key:` with nothing after it, ~ or null. */
bool pl_node_is_null(const pl_node *node);

/* Adds a pair to a mapping (key != NULL) or an item to a sequence. False: no memory. */
bool pl_node_add(pl_node *node, pl_node *key, pl_node *item, pl_arena *mem);

#endif
