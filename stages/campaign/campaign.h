/* stages/campaign/campaign.h - rounds of choosing, asking and learning over one library and one results.db.
 *
 * A round: molecules are chosen (by the stage `acquire`, in the first round without a model), their values are asked for, and one
 * transaction stores all answers as labels (stages/database/measured.h) and ends the round. Everything else is the workflow, whose
 * stages run again because their labels changed. So what is stored says where a campaign is, after any kill, and the same command goes
 * on. */
#ifndef ST_CAMPAIGN_H
#define ST_CAMPAIGN_H

#include "pipeline/store/store.h"
#include "stages/labels/stated.h"
#include "stages/steps/acquire/acquire_conf.h"

typedef struct st_campaign {
    const pl_workflow *wf;
    const pl_schema *schema;
    const st_acquire_conf *c;
    const char *label, *unit; /* what is learned                */
    const char *better;       /* as its target says: "low", "high" or "none"; NULL: the same as "none" */
    bool low, is_class;       /* low: lower values are better   */
    const st_stated *stated;  /* of the values that are there, while answers are taken; NULL: not looked at */
    pl_arena *mem;
} st_campaign;

/* Adds what is wrong with the workflow of answers, if there is one: its own problems, and that it scores something else. advice (NULL:
 * none) gets what may be meant. */
void st_campaign_answers_check(const pl_workflow *wf, const pl_stage *const *known, pl_problems *problems, pl_problems *advice,
                               pl_arena *mem);

/* Which values of the label are better, as its target says: "low", "high" or "none". */
const char *st_campaign_better(const pl_workflow *wf, const char *label);

void st_campaign_make(st_campaign *out, const pl_workflow *wf, const pl_schema *schema, pl_arena *mem);

/* Where it is. */
typedef struct st_campaign_state {
    bool prepared;       /* the library is                                             */
    int64_t n_molecules; /* of the library, if prepared                                */
    bool can_learn;      /* there are labels enough for a model: 10, of two values     */
    int64_t ended;       /* the last round of which nothing is left to ask, nor of those before; -1: none */
    int64_t n_rounds;    /* that were asked for until then: labels by hand are none    */
    int64_t idle;        /* of them after that of the best value, and after round 0    */
    int64_t pending;     /* chosen and not asked for, in the round after that          */
    int64_t part;        /* were asked for in the round of the pending ones            */
    bool begun;          /* some of that round were asked for, or labels ended it      */
    int64_t tried;       /* molecules with an outcome                                  */
    int64_t n_values;    /* of them measured                                           */
    double best;         /* of all labels; NaN: none; of a class: how many are 1       */
    int64_t best_round;  /* the first that had it; -1: the library                     */
    double seconds;      /* that it has worked, the runs of answers included           */
} st_campaign_state;

pl_code st_campaign_look(st_campaign_state *out, const st_campaign *x, pl_error *err);
/* Adds to them, in WORKDIR/campaign.seconds; what a kill interrupts is not counted. */
pl_code st_campaign_spend(const st_campaign *x, double seconds, pl_error *err);
/* Why it is over, in mem; NULL: it goes on. */
pl_code st_campaign_end(const char **why, const st_campaign *x, const st_campaign_state *s, pl_error *err);

/* Chooses a round without a model, from a prepared library: the first, and others until there are labels enough. */
pl_code st_campaign_first(const st_campaign *x, pl_error *err);

/* Of rounds of which a part was asked for: takes back what is not in the library any more, or not what acquire.where wants by now.
 * *n: how many. */
pl_code st_campaign_take_back(int64_t *n, const st_campaign *x, pl_error *err);

/* The molecules of the pending round that are asked for: no more than the budget has left. */
int64_t st_campaign_asked(const st_campaign *x, const st_campaign_state *s);

/* Writes them to batch.smi in WORKDIR/rounds/NNNN, or NNNN-P for the rest of a round from place P on, their InChIKeys as titles.
 * *folder in mem. */
pl_code st_campaign_batch(const char **folder, const st_campaign *x, int64_t round, int64_t n, pl_error *err);
/* The command line by which the workflow of answers runs on them. false: no memory. */
bool st_campaign_words(char *word[3], const st_campaign *x, const char *folder);
/* EINPUT: that workflow, its programs or its values are not those of earlier rounds, as far as their folders are there. */
pl_code st_campaign_same(const st_campaign *x, const pl_stage *const *known, const char *folder, pl_error *err);
/* Takes the answers of the first n that the pending round has left, from the table or from the results in the folder. */
pl_code st_campaign_answer(const st_campaign *x, int64_t round, int64_t n, const char *folder, pl_error *err);

/* A round that has ended. */
typedef struct st_round {
    int64_t round, tried, n_values, n_best; /* n_best: of a class, of 1 */
    double best;                            /* of this round: its best value; NaN: none */
    double mae, within90;                   /* of its predictions, when it was chosen: mean absolute error, share of values within
                                               1.645 deviations; NaN: none, as of a class, which has no interval */
    const char *strategy;
} st_round;
pl_code st_campaign_rounds(st_round **out, int64_t *n, const st_campaign *x, pl_error *err);

/* ---- between the files ---- */

/* Under the lock of the work directory: opens results.db, calls `work`, closes it. */
pl_code st_campaign_locked(const st_campaign *x, pl_code (*work)(const st_campaign *x, pl_store *s, void *ctx, pl_error *err),
                           void *ctx, pl_error *err);

/* What came of one molecule. */
typedef struct st_outcome_row {
    const char *inchikey, *smiles, *source;
    int64_t place; /* in its round */
    double sum;    /* of n values */
    int64_t n;
    const char *why; /* no value: the reason; NULL: not seen */
    /* Of a molecule of an earlier round: what is stored of it. */
    double stored;
    const char *stored_by;
} st_outcome_row;

/* The first n of the round that have no outcome yet, in their order. */
pl_code st_campaign_chosen(st_outcome_row **out, int64_t *n, pl_store *s, int64_t round, int64_t most, pl_arena *mem,
                           pl_error *err);
/* *said: what the table states. */
pl_code st_answers_of_table(ch_units *said, const st_campaign *x, pl_store *s, st_outcome_row *row, int64_t n, pl_error *err);
pl_code st_answers_of_results(const st_campaign *x, const char *folder, st_outcome_row *row, int64_t n, pl_error *err);

/* Values that are stored, of molecules that are not asked for now; from `source` (NULL: any). */
pl_code st_before_read(st_outcome_row **out, int64_t *n, const st_campaign *x, pl_store *s, const char *source, pl_error *err);
/* EINPUT: the values of today are others than those that are stored. */
pl_code st_before_compare(const st_campaign *x, const st_outcome_row *row, int64_t n, pl_error *err);

#endif
