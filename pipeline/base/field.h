/* pipeline/base/field.h - settings as a table.
 *
 * A stage, a model or a section of a workflow defines a settings struct and one
 * table of its fields. The table gives the defaults, the parsing, the range
 * checks and their messages, `molsieve help`, the JSON Schema,
 * configs/default.yaml and the effective configuration saved with each run.
 *
 * A row begins with type, key and place; the other members are named:
 *   { PL_INT, "top", AT(top), .dflt = 1000, .min = 1, .max = 1000000, .unit = "molecules", .help = "length of the ranking" },
 * Keys may be dotted: "conformers.source" is `conformers: {source: ...}`.
 * Texts belong to the arena into which the configuration was read. */
#ifndef PL_BASE_FIELD_H
#define PL_BASE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*                        in the struct      in YAML                                   */
typedef enum pl_field_type {
    PL_END = 0,
    PL_INT,      /* int64_t      whole number                                          */
    PL_REAL,     /* double       number                                                */
    PL_BOOL,     /* bool         true or false                                         */
    PL_TEXT,     /* const char * text                                                  */
    PL_PATH,     /* const char * file name, relative to the YAML file; absolute once read */
    PL_CHOICE,   /* int32_t      one of `choices`, stored as its position              */
    PL_DURATION, /* double       "2s", "3h50m"; seconds                                */
    PL_SIZE,     /* double       "20GiB"; bytes                                        */
    PL_TEXTS,    /* pl_list of const char *   list of texts, or one text               */
    PL_REALS,    /* pl_list of double         list of numbers                          */
    PL_LIST      /* pl_list of sub_size       list of records described by `sub`       */
} pl_field_type;

typedef struct pl_list {
    void *items;
    int32_t n;
} pl_list;

enum {
    PL_REQUIRED = 1, /* no default: must be given                                    */
    PL_EXISTS = 2,   /* PL_PATH: the file must exist before any work; may be a glob in `inputs` */
    PL_HOW = 4,      /* changes how the result is computed, not the result: not part of the stage's key */
    PL_KEYED = 8,    /* PL_LIST: in YAML a map; its keys fill the sub field "name"   */
    PL_LATER = 16    /* added after the stage's version was set. Its default (of a choice: the first word)
                          changes no result and is then not part of the key            */
};

typedef struct pl_field {
    pl_field_type type;
    const char *key;
    size_t at;             /* offsetof in the settings struct                     */
    double dflt, min, max; /* numbers, durations (s), sizes (bytes), bools; CHOICE: position, from 0 */
    const char *text;      /* default of PL_TEXT and PL_PATH; NULL = not set      */
    const char *choices;   /* "radius|bonds|knn|full"; for INT, REAL, DURATION: a
                                   word allowed instead of a number ("auto"), stored -1 */
    const char *unit;      /* "Angstrom", "eV"; NULL for none                     */
    const char *help;      /* one line, no full stop                              */
    unsigned flags;
    const struct pl_field *sub; /* PL_LIST                                             */
    size_t sub_size;
} pl_field;

/* Fills conf with the defaults (no allocation: lists are empty). */
void pl_fields_default(const pl_field *table, void *conf);

/* The number of fields before PL_END. */
int pl_fields_count(const pl_field *table);

/* The field's value as text ("5", "radius", "2s"), in buf or owned by conf or the table; "" for lists. */
const char *pl_field_value(const pl_field *f, const void *conf, char buf[64]);

/* What is allowed, for messages and help: "0.5..20 Angstrom", "radius, bonds, knn or full". */
const char *pl_field_allowed(const pl_field *f, char *buf, size_t size);

/* Whether min..max limits the value; min = max = 0 means no limit. */
bool pl_field_limited(const pl_field *f);

/* The position of a word in `choices`, from 0 (-1: not there), and the word at a position ("?": none). */
int pl_field_choice(const pl_field *f, const char *word);
const char *pl_field_choice_name(const pl_field *f, int position, char *buf, size_t size);

/* "20", "0.5", "1.0e+300"; reads back as the same number, also from YAML. */
const char *pl_number_text(double x, char buf[64]);

/* A number as the field writes it: "5", "2s", "20GiB"; reads back as the same number. */
const char *pl_field_number(const pl_field *f, double x, char buf[64]);

/* Visits a table as a tree: dotted keys become groups, each visited once, at the
 * position of its first field. `name` is the last part of the key; for a group it
 * is n_name bytes long, f is its first field, and opens is true before and false
 * after its members. depth counts from the depth given to pl_fields_walk. */
typedef struct pl_field_visit {
    void (*field)(void *ctx, const pl_field *f, const char *name, int depth);
    void (*group)(void *ctx, const pl_field *f, const char *name, size_t n_name, int depth, bool opens);
} pl_field_visit;

void pl_fields_walk(const pl_field *table, int depth, const pl_field_visit *visit, void *ctx);

#endif
