/* pipeline/workflow/yaml.h - reads a strict subset of YAML into a tree that keeps line and column of every value.
 *
 * Only yaml.c uses libyaml. It refuses what surprises: duplicate keys, tabs in the
 * indentation, more than one document, aliases that expand without end, merge keys, tags,
 * keys that are not text. Lines and columns count from 1. All memory is in the arena. */
#ifndef PL_YAML_H
#define PL_YAML_H

#include <stdbool.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"
#include "pipeline/base/text.h"

enum {
    PL_YAML_MAX_BYTES = 10 << 20,
    PL_YAML_MAX_NODES = 100000, /* after aliases are expanded    */
    PL_YAML_MAX_DEPTH = 64,
    PL_YAML_MAX_FILLED = 1 << 20, /* total bytes of the texts in which ${...} was replaced */
    PL_PROBLEMS_MAX = 500         /* further problems are dropped  */
};

typedef enum pl_node_kind { PL_SCALAR, PL_SEQUENCE, PL_MAPPING } pl_node_kind;

typedef struct pl_node {
    pl_node_kind kind;
    const char *text;      /* scalar                                         */
    bool quoted;           /* scalar written in quotes: never a number       */
    int verbatim;          /* scalar: the column of its first character; 0: the file does not have it character by
                                character on one line (escapes, several lines, substitution) */
    bool faulty;           /* a problem of this value has been reported: report no other */
    const char *origin;    /* file name as the user gave it, or "command line" */
    int line, column;      /* from 1; 0: no place in a file                  */
    int n;                 /* number of items or pairs                       */
    struct pl_node **key;  /* mapping: scalars [n]                           */
    struct pl_node **item; /* [n]                                            */
} pl_node;

/* Problems are collected and reported together, ordered by place. */
typedef struct pl_problems {
    pl_arena *mem;
    struct pl_problem *list;
    int n, cap;   /* n is -1 if there was a problem but no memory to keep it */
    bool refused; /* memory was: what else is said may not be so */
} pl_problems;

typedef struct pl_problem {
    const char *origin;
    int line, column; /* 0: no place in a file */
    const char *text; /* "cutoff: 99 is outside 0.5..20 Angstrom" */
} pl_problem;

/* Adds a problem at the place of a node (NULL: no place), unless the same problem at the same place is there already. */
void pl_problem_add(pl_problems *p, const pl_node *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Adds a problem of a whole file, without a line. */
void pl_problem_add_file(pl_problems *p, const char *origin, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Memory was refused, at a node or, without one, for a file. */
void pl_problem_refused(pl_problems *p, const pl_node *at, const char *origin);

/* PL_OK without a problem, PL_ENOMEM if memory was refused, else PL_ECONFIG. */
pl_code pl_problems_code(const pl_problems *p);

/* Sorts by file, line and column; problems of the command line come last. */
void pl_problems_sort(pl_problems *p);

/* Writes one line each: "screen.yaml:12:5: text". */
void pl_problems_write(const pl_problems *p, pl_text *out);

/* Reads a file of at most PL_YAML_MAX_BYTES; false and a problem if it is missing, unreadable or larger. */
bool pl_yaml_bytes(pl_bytes *out, const char *path, pl_problems *problems, pl_arena *mem);

/* Parses len bytes of YAML. NULL and problems if it is not valid. origin: the file name for messages. */
pl_node *pl_yaml_parse(const char *text, size_t len, const char *origin, pl_problems *problems, pl_arena *mem);

/* The value of a key of a mapping, or NULL. */
pl_node *pl_node_get(const pl_node *map, const char *key);

/* `key:` with nothing after it, ~ or null. */
bool pl_node_is_null(const pl_node *node);

/* Adds a pair to a mapping (key != NULL) or an item to a sequence. False: no memory. */
bool pl_node_add(pl_node *node, pl_node *key, pl_node *item, pl_arena *mem);

#endif
