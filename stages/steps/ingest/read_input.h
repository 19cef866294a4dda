/* stages/steps/ingest/read_input.h - the input files of the stage `read`, before a record is read.
 *
 * Opening one as the workflow says, checking them, and what of
 * them the stage's key depends on: contents and format, not names. */
#ifndef ST_READ_INPUT_H
#define ST_READ_INPUT_H

#include "chem/records/record.h"
#include "chem/worker/worker_client.h"
#include "pipeline/workflow/workflow.h"

/* The setting `censored`. */
enum { ST_CENSORED_LEAVE_OUT, ST_CENSORED_BOUND };

typedef struct st_read_conf {
    int64_t unit;                /* records            */
    double max_record, max_file; /* bytes              */
    int32_t censored;            /* ST_CENSORED_..     */
} st_read_conf;

/* The format that the workflow names; NULL: it is to be recognised. */
const char *st_input_format(const pl_input *in);

const pl_input *st_input_at(const pl_workflow *wf, int32_t i);

/* lister: reads formats that we do not split; NULL if only the format's name is wanted. With a lister the reader hashes
 * what it reads (ch_reader_hash). */
pl_code st_input_open(ch_reader **out, const pl_input *in, const st_read_conf *conf, ch_worker *lister, pl_error *err);

/* The first name that several columns of a table have; NULL: none. Names as in ch_reader_columns. */
const char *st_input_repeats(const ch_reader *reader);

/* Whether an existing file is one that the run reads, under any name: inputs, models, the workflow, files of
 * settings. Writing to it would destroy it. */
bool st_is_read(const pl_workflow *wf, const char *path);

/* The stage's check and key. */
void st_read_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems);
pl_code st_read_key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                    pl_error *err);

#endif
