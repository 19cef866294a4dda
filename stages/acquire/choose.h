/* stages/acquire/choose.h - which molecules of a finished screen to try next, and which were left out and why. */
#ifndef ST_CHOOSE_H
#define ST_CHOOSE_H

#include "pipeline/store/store.h"
#include "stages/acquire/acquire.h"

/* Where the standard deviation of a prediction comes from: of the Gaussian process of a model (the largest over the models); over the
 * models; half-width of the 90 % interval / 1.645. AUTO: the first of them that some molecule has. */
typedef enum st_sigma { ST_SIGMA_AUTO, ST_SIGMA_GP, ST_SIGMA_STDEV, ST_SIGMA_INTERVAL, ST_SIGMAS } st_sigma;
extern const char *const st_sigma_names[ST_SIGMAS + 1]; /* "auto", "gp", "stdev", "interval", NULL */

typedef struct st_choice {
    st_acquisition a;     /* low: only read if goal is given; best: only if has_best          */
    const char *property; /* NULL: the only one that is scored                                */
    const char *goal;     /* "maximize", "minimize"; NULL: as the property says               */
    const char *where;    /* a condition on molecules (stages/expression/row_filter.h) or NULL */
    st_sigma sigma;
    bool has_best, inside, measured; /* inside: only inside of the domain; measured: those that were measured or learned, too */
    bool untried;                    /* not those that a campaign asked for and got no value of, either */
    bool blind;            /* no model: all molecules, by greedy in the order of their InChIKeys or at random; property is given */
    double max_similarity; /* to any that is chosen before it; 1: any               */
    int64_t n, per_scaffold; /* how many; at most so many of one scaffold, 0: any; a molecule without rings has none */
} st_choice;

/* What came of it. Texts live in mem. */
typedef struct st_chosen {
    const char *property, *unit, *best_of; /* best_of: where `best` comes from, for expected_improvement */
    bool low, is_class;
    st_sigma sigma;
    double best;
    int64_t property_id;   /* 0: blind                                                                       */
    const char *deviation; /* SQL of the standard deviation of a score `s`, also where the strategy uses none */
    int64_t n_scored, n_measured, n_listed, n_outside, n_unsure, n_where,
        n_vain;                                       /* those after the first: left out, by the first reason that holds */
    int64_t n_twice, n_similar, n_scaffold, n_chosen; /* passed over while choosing; twice: their InChIKey is chosen already */
} st_chosen;

/* Adds InChIKeys to the table temp.listed; call it before st_choose, any number of times. */
pl_code st_choose_list(pl_store *s, const char *inchikey, pl_error *err);

/* Fills temp.found(place, mol_id, similarity), the last being the acquisition. The same for any order of the molecules. c is completed:
 * a.low, a.best, sigma. ECONFIG: a property that is not scored, or a strategy that it cannot serve; EINPUT: fingerprints are
 * missing; EIO, ENOMEM, ESTOP. */
pl_code st_choose(st_chosen *out, st_choice *c, pl_store *s, pl_arena *mem, pl_error *err);

#endif
