/* stages/fit/fit_table.h - what a table of measurements has: which columns, which of them is SMILES, and the values of the target.
 *
 * Read once, in bounded memory, before any work. */
#ifndef ST_FIT_TABLE_H
#define ST_FIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "chem/records/relation.h"
#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"
#include "pipeline/base/two.h"
#include "stages/fit/fit_columns.h"

typedef struct st_fit_ask {
    const char *path, *target;
    const char *format, *smiles, *title; /* NULL: found out */
    const char *unit;                    /* of the target; NULL: not said */
    const char *inputs;                  /* columns that the model reads, "temperature,pH"; NULL: none */
} st_fit_ask;

typedef struct st_fit_table {
    const char *path;   /* absolute                                          */
    const char *format; /* "csv", "sdf" ...                                  */
    const char *smiles; /* column, of a table; else NULL                     */
    bool guessed;       /* smiles: by what the columns hold, not by its name */
    const char *title;  /* as asked                                          */
    const char *target; /* as the table writes it                            */
    int64_t records, numbers, empty, texts;
    int64_t zeros, ones;      /* of the numbers */
    double low, high;         /* of the numbers */
    pl_two two;               /* the same       */
    int64_t commas, censored; /* of the texts: 1,5 and >10 */
    int64_t text_line;        /* of the first text */
    const char *text;         /* it; "" */
    int64_t readable;         /* of the records: those that the reader found no problem in      */
    int64_t problem_line;     /* of the first problem */
    const char *problem;      /* it; NULL: none       */
    const char *relation;     /* a number beside a relation such as ">" that may be meant for it: place and problem; NULL: none */
    ch_units units;           /* of the target, by a column of units */
    const char *unit;         /* by the table; NULL: it says none, or the target is a logarithm by its name (pIC50), or a class */
    st_fit_columns columns;   /* that the model reads */
    const char *beside;       /* a column such as y_similarity, which says that y has predictions; NULL: none */
    const char *names;        /* "id, smiles, pIC50": columns or data fields, for messages */
} st_fit_table;

/* All is in mem. EIO: it cannot be read. ECONFIG: no column has SMILES, there is no such target, or its values cannot be learned: the
 * text says what there is and what to do. */
pl_code st_fit_table_read(st_fit_table *out, const st_fit_ask *ask, pl_arena *mem, pl_error *err);

/* All numbers are 0 or 1. */
bool st_fit_is_class(const st_fit_table *t);

#endif
