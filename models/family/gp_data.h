/* models/family/gp_data.h - molecules as a Gaussian process compares them.
 *
 * Two molecules are alike by
 *
 *   k = w T + (1 - w) exp(-D / (2 length^2)),   0 to 1
 *
 * T: Tanimoto similarity of counts of environments, sum of the smaller counts / sum of the larger ones; a count above 255 is 255. D: mean
 * over descriptors and the user's columns of the squared difference, each in its standard deviations over the training molecules; a gap
 * has the mean. Numbers that are the same in all training molecules are left out. */
#ifndef NN_GP_DATA_H
#define NN_GP_DATA_H

#include "models/family/columns.h"
#include "models/family/tiles.h"

enum { NN_GP_MAX = 10000, NN_GP_COUNT = 255 };

/* One molecule that has an environment. */
typedef struct nn_gp_post {
    int32_t molecule, count;
} nn_gp_post;

/* What is stored of n molecules. */
typedef struct nn_gp_stored {
    int32_t n, n_ids;
    const uint32_t *id;   /* [n_ids] the environments that occur, ascending           */
    const int32_t *first; /* [n+1] environments of molecule i: first[i]..first[i+1]-1 */
    const int32_t *which; /* [first[n]] their places in id, ascending in a molecule   */
    const uint8_t *count; /* [first[n]] 1..255                                        */
    nn_columns numbers;   /* descriptors and the user's columns; no environments      */
    const float *number;  /* [n][nn_columns_count(&numbers)] NaN: a gap               */
} nn_gp_stored;

/* The same, and what follows from it. */
typedef struct nn_gp_data {
    nn_gp_stored s;
    int32_t d;                    /* numbers of a molecule                                */
    const int32_t *total;         /* [n] sum of counts                                    */
    const int32_t *post_first;    /* [n_ids+1] molecules with environment e: post_first[e].. */
    const nn_gp_post *post;       /* ascending molecules for each environment             */
    const double *mean, *inverse; /* [d] mean and 1 / (standard deviation * sqrt(d))      */
    const double *z;              /* [tiles of n][d][NN_TILE] (number - mean) * inverse; 0 for gaps */
} nn_gp_data;

/* Molecules of x. In mem. ENOMEM. */
pl_code nn_gp_store(nn_gp_stored *out, const nn_table *x, pl_arena *mem, pl_error *err);
/* What follows from s, whose promises hold. Borrows s's arrays; in mem. ENOMEM. */
pl_code nn_gp_derive(nn_gp_data *out, const nn_gp_stored *s, pl_arena *mem, pl_error *err);

/* A molecule that is compared with those of a data. */
typedef struct nn_gp_query {
    int32_t n, total; /* known environments; sum of the counts of all, known or not */
    int32_t *which;   /* [n] places in id                                           */
    int32_t *count;   /* [n] 1..255                                                 */
    float *number;    /* [d] as in the table                                        */
    double *z;        /* [d] scaled                                                 */
    int32_t *common;  /* [data n] scratch                                           */
} nn_gp_query;

pl_code nn_gp_query_make(nn_gp_query *out, const nn_gp_data *g, int32_t most_environments, pl_arena *mem, pl_error *err);
void nn_gp_query_set(nn_gp_query *q, const nn_gp_data *g, const nn_table *x, int32_t row); /* a row of a table   */
void nn_gp_query_own(nn_gp_query *q, const nn_gp_data *g, int32_t i);                      /* molecule i of data */

/* T [n] and D [n]: of q with the first n molecules of g. */
void nn_gp_tanimoto(double *t, const nn_gp_data *g, const nn_gp_query *q, int32_t n);
void nn_gp_distance(double *d, const nn_gp_data *g, const nn_gp_query *q, int32_t n);

#endif
