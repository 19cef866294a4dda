/* stages/predict/answer.h - the answers of `molsieve predict`: which columns there are, and a record as CSV, JSON lines or SDF.
 *
 * Columns by default: title, smiles; of each property P what its model can tell of P, P_unit, P_stdev, P_interval90, P_similarity,
 * P_domain, P_reasons; problem. Others can be asked for by name, also those of the input. A cell without a value is empty, null in
 * JSON, left out in SDF. Numbers are in the shortest form that reads back as the same number. */
#ifndef ST_ANSWER_H
#define ST_ANSWER_H

#include <stdatomic.h>

#include "chem/records/record.h"
#include "stages/predict/predictor.h"

typedef enum st_answer_format { ST_ANSWER_CSV, ST_ANSWER_JSONL, ST_ANSWER_SDF, ST_ANSWER_FORMATS } st_answer_format;

/* A record of the input, in memory of its own. */
typedef struct st_asked {
    pl_arena *mem;
    ch_input in;
    const char *title, *problem; /* problem: of the file, or NULL */
    int64_t number, line;        /* from 1 */
    const float *column;         /* [columns of the predictor], or NULL */
    ch_field *field;             /* [n_fields] */
    int n_fields;
} st_asked;

typedef struct st_answer_column {
    int kind, place; /* of answer.c */
    const char *name;
} st_answer_column;

typedef struct st_answers {
    const st_predictor *p;
    st_answer_format format;
    const st_answer_column *part; /* [n_parts] of the properties */
    int n_parts;
    st_answer_column *column; /* [n] */
    int n;
    bool fields;       /* some column is of the input */
    atomic_bool *seen; /* [n] of a column of the input: some record has it */
} st_answers;

/* "csv", "jsonl" or "sdf"; ECONFIG. */
pl_code st_answer_format_parse(st_answer_format *out, const char *word, pl_error *err);
/* By the ending of a file name, without .gz: CSV if it says nothing. */
st_answer_format st_answer_format_of(const char *path);

/* columns: names with commas between, those that have commas in double quotes; NULL: those by default. A name that is no column of the answer is a field of the input; so is
 * NAME in `input_NAME`. ECONFIG: a name is empty or there twice. */
pl_code st_answers_open(st_answers *a, const st_predictor *p, st_answer_format format, const char *columns, pl_arena *mem,
                        pl_error *err);

/* ECONFIG: a column is to be a field of the input, whose fields are name[n], and it is none of them. */
pl_code st_answers_check(const st_answers *a, const char *path, const char *const *name, int n, pl_error *err);

/* After the last record. ECONFIG: a column is of the input, and no record has it. */
pl_code st_answers_check_seen(const st_answers *a, const char *path, pl_error *err);

/* The first line of a table; nothing of the other formats. */
void st_answers_head(const st_answers *a, pl_text *out);

/* Appends the answer to a record. got NULL: the record could not be read (asked->problem). Of chem, errors and drawings: chem/worker/sdf_drawn.h. */
pl_code st_answer_add(const st_answers *a, pl_text *out, const st_asked *asked, const st_prediction *got, ch_worker **chem,
                      pl_error *err);

/* Whether some value is outside of the domain of its models. */
bool st_answer_is_outside(const st_answers *a, const st_prediction *got);

/* Whether some property has no value. */
bool st_answer_lacks(const st_answers *a, const st_prediction *got);

#endif
