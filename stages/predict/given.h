/* stages/predict/given.h - columns of the user's table that models read (stages/steps/ingest/columns.h), for `molsieve predict`: from the
 * records, or one value for all of them. */
#ifndef ST_GIVEN_H
#define ST_GIVEN_H

#include "chem/records/relation.h"
#include "stages/predict/answer.h"

typedef struct st_given {
    const pl_names *columns;
    float fixed[PL_NAMES_MAX];                    /* NaN: of each record */
    const char *unit[PL_NAMES_MAX];               /* that the models read; NULL: not known */
    char first_unit[PL_NAMES_MAX][CH_UNIT_BYTES]; /* where it is not known: of the first record with one; "": none yet */
} st_given;

/* set: "temperature=25,pH=7.4", or NULL. s: the models, with their columns. ECONFIG: it is not that, or no model reads such a column. */
pl_code st_given_open(st_given *g, const pl_names *columns, const st_scorer *s, const char *set, pl_error *err);

/* ECONFIG: an answer would show a column of the input beside a prediction for another value of it, which --set gives. */
pl_code st_given_check_shown(const st_given *g, const st_answers *a, pl_error *err);

bool st_given_reads(const st_given *g); /* whether records must have columns */

/* ECONFIG: a column is none of name[n], the fields of the input. */
pl_code st_given_check(const st_given *g, const char *path, const char *const *name, int n, pl_error *err);

/* Sets asked->column from the fields of the record (ch_record_measured, so a limit is no number), or the problem that it has no number in a
 * column, or one of another unit than the models or the first record. ENOMEM. */
pl_code st_given_fill(st_given *g, st_asked *asked, const ch_field *field, int n, pl_error *err);

#endif
