/* stages/steps/score/score_part.h - the stage `score` of one run, computed by many jobs.
 *
 * Part k of n computes the units u with u mod n = k, from the databases of the work directory, which it only reads, into
 * WORKDIR/parts/KKKKK-of-NNNNN/scores.db: what the workers of the stage return, under the key of the stage. The stage takes a unit that
 * a part has instead of computing it, and stores it as its own, so the results are the same bytes. A part of another key, or of another
 * kind of machine, is not used. Nothing may write to the work directory meanwhile (decision 0075). */
#ifndef ST_SCORE_PART_H
#define ST_SCORE_PART_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/shard.h"

/* Whether the stage `score` could run now: it is not done, and all that it needs is. */
typedef struct st_score_wait {
    bool waits;
    const char *key;   /* of the stage                               */
    int32_t n_missing; /* 0 if it does not wait                      */
    int32_t *missing;  /* [n_missing] parts that are not complete    */
    bool sent;         /* st_score_parts_sent was called for the key */
} st_score_wait;

pl_code st_score_wait_look(st_score_wait *out, pl_workflow *wf, const pl_schema *schema, int32_t n, pl_arena *mem, pl_error *err);

/* Notes that an array of jobs was submitted for this key. */
pl_code st_score_parts_sent(const pl_workflow *wf, const char *key, pl_arena *mem, pl_error *err);

typedef struct st_score_part_opts {
    pl_shard part;
    int workers;
    double max_time, grace; /* seconds; 0: none */
} st_score_part_opts;

/* Computes what the part lacks. ESTOP: the same call goes on; ELOCK: another job computes it; ECONFIG: the stage does not wait. */
pl_code st_score_part_run(pl_workflow *wf, const pl_schema *schema, const st_score_part_opts *opts, pl_arena *mem, pl_error *err);

/* Deletes what the parts hold. */
void st_score_parts_drop(const pl_workflow *wf, int32_t n, pl_arena *mem);

#endif
