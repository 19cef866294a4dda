/* stages/steps/acquire/acquire_conf.h - the settings of the stage `acquire`, and those of the campaign around it. */
#ifndef ST_ACQUIRE_CONF_H
#define ST_ACQUIRE_CONF_H

#include "stages/acquire/choose.h"
#include "stages/registry/registry.h"

enum { ST_GOAL_AUTO, ST_GOAL_MAXIMISE, ST_GOAL_MINIMISE };
enum { ST_EXCLUDE_TRIED, ST_EXCLUDE_MEASURED, ST_EXCLUDE_NONE };
enum { ST_FIRST_RANDOM, ST_FIRST_DIVERSE };

typedef struct st_acquire_conf {
    const char *property; /* NULL: the only one that is scored */
    int32_t strategy, goal, sigma, exclude;
    double beta, max_similarity;
    int64_t count, per_scaffold, seed; /* seed -1: the workflow's */
    bool inside;
    const char *where;
    /* The campaign. It changes nothing in a single run. */
    struct {
        const char *table, *column, *workflow, *property, *unit;
    } answers;
    int64_t rounds, calls, patience, first_count; /* 0: no limit; first_count 0: count */
    double hours;                                 /* seconds                           */
    int32_t first;
} st_acquire_conf;

/* The settings of the workflow's stage; NULL: it has none. */
const st_acquire_conf *st_acquire_conf_of(const pl_workflow *wf);

/* Whether a campaign gets labels, and what they are labels of: the label that `train` learns for the property. */
bool st_acquire_has_answers(const st_acquire_conf *c);
const char *st_acquire_label(const pl_workflow *wf, const st_acquire_conf *c);
/* The unit of these labels; "": not known. */
const char *st_acquire_unit(const pl_workflow *wf, const st_acquire_conf *c);

/* How many are chosen in the first round. */
int64_t st_acquire_first_count(const st_acquire_conf *c);

void st_acquire_check(const pl_workflow *wf, const pl_step *step, pl_problems *problems); /* as in a pl_stage */

/* What st_choose is asked for by these settings; seed as settled. */
st_choice st_acquire_choice(const st_acquire_conf *c);

/* Writes the rows of table `acquired` for what st_choose chose, in the open transaction. c NULL: the first round, without a model. */
pl_code st_acquire_store(pl_store *s, const st_chosen *said, const st_choice *choice, int64_t round, pl_error *err);

/* Names the molecules for st_choose that earlier rounds chose, whatever came of them, if these are to be left out. */
pl_code st_acquire_list(const st_acquire_conf *c, pl_store *s, int64_t round, pl_error *err);

/* The round that is chosen now: the one after the last that has ended. */
pl_code st_acquire_round(int64_t *round, pl_store *s, pl_error *err);

#endif
