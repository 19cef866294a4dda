/* stages/steps/errors/errors.h - a model's errors on a part of the data, for each target, beside those of trivial predictions. */
#ifndef ST_ERRORS_H
#define ST_ERRORS_H

#include "models/features/mirror.h"
#include "models/files/model_file.h"
#include "stages/steps/dataset/baselines.h"

enum { ST_COMPONENTS_MAX = NN_MEMBERS_MAX + 1 };

typedef struct st_errors {
    int64_t n_unknown;                  /* molecules with elements the model does not know */
    const int64_t *at;                  /* [model.n] positions in the data set             */
    const double *measured, *predicted; /* [model.n] in the target's unit                 */
    const double *alike;                /* [model.n] set by st_domain_alike; NULL before          */
    const bool *outside;                /* [model.n] of the model's domain; NULL: not known */
    nn_fit model, baseline[ST_BASELINES];
    int32_t n_components;                /* of a model that is a mean of several, else 0    */
    nn_fit component[ST_COMPONENTS_MAX]; /* each by itself, in the order of st_component_name */
    const double *by[ST_COMPONENTS_MAX]; /* [model.n] what each predicts, in the target's unit */
    const double *near;                  /* [model.n] what the nearest neighbours predict; NULL: no baselines */
} st_errors;

/* The name of component k of a model, its members first: "trees", "gp", "se3" (the network). */
const char *st_component_name(const nn_model_file *m, int32_t k);

typedef struct st_judge {
    const nn_model_file *m;
    const nn_engine_kind *kind;
    nn_engine *engine; /* has the parameters of m, of its first network; NULL: m has none */
    const st_dataset *d;
    const st_baselines *base;     /* [d->n_targets]; NULL: compare with nothing      */
    const nn_train_host *host;    /* for stop; may be NULL                           */
    int64_t molecules, max_edges; /* of a batch                                      */
    nn_mirror_mode mirror;
} st_judge;

/* Before a model that was read from a file predicts the molecules of d: the places of its columns, and the descriptors that its network
 * reads. ECONFIG. */
pl_code st_dataset_ready(st_dataset *d, nn_model_file *m, pl_error *err);

/* The molecules of s, each once, as rows for the members of a model that has its inputs; in mem. */
pl_code st_samples_table(nn_table *out, const st_samples *s, pl_arena *mem, pl_error *err);

/* out [d->n_targets]: in the target's unit, of the molecules that have it; arrays in mem. An empty part has n = 0. */
pl_code st_errors_find(st_errors *out, const st_judge *j, st_part part, pl_arena *mem, pl_error *err);

/* Errors of the mean prediction of n models. e[n]: their errors by st_errors_find, on the same molecules; out [d->n_targets]. */
pl_code st_errors_mean(st_errors *out, const st_errors *const *e, int64_t n, const st_judge *j, pl_arena *mem, pl_error *err);

/* The mean over n targets of an error of e divided by that of `than`; targets that no molecule has do not count. NAN: none counts. */
double st_errors_ratio(const st_errors *e, const st_errors *than, int32_t n, int kind);

/* The numbers of a fit: a line for each member of nn_fit (models/metrics/metric.h), and whether it has the target's unit. The
 * table `evaluation`, model files and the metrics of a training follow; behind them come the enrichments of a class. */
#define ST_FIT_NUMBERS(X) \
    X(mae, true)          \
    X(rmse, true)         \
    X(interval90, true)   \
    X(r2, false)          \
    X(spearman, false)    \
    X(log_loss, false)    \
    X(brier, false)
#define ST_ERROR_KIND(name, ...) ST_ERROR_##name,
enum { ST_FIT_NUMBERS(ST_ERROR_KIND) ST_ERROR_ROC_AUC, ST_ERROR_KINDS = ST_ERROR_ROC_AUC + NN_ENRICHMENTS };

/* By kind: 0 to ST_ERROR_KINDS - 1; the value is NaN when there is none. */
const char *st_error_name(int kind);
double st_error_value(const nn_fit *f, int kind);
bool st_error_has_unit(int kind); /* in the target's unit, not a pure number         */

#endif
