/* stages/predict/predictor.h - from texts of molecules to scores, without a workflow and a database.
 *
 * The same code as the stages prepare, graph and score, with the settings that the models were trained with: the form of acids and
 * bases, the source of structures, the edges of graphs. So a score is that of a workflow with these settings, bit for bit. Without a
 * network among the models no structures are built. Read-only once open; each thread has a st_predict_worker of its own. */
#ifndef ST_PREDICTOR_H
#define ST_PREDICTOR_H

#include "chem/graph/graph.h"
#include "chem/worker/worker_client.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/native.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/score/scorer.h"

/* Where structures come from; by default as in the training of the models. */
enum { ST_STRUCTURES_MODEL = -1 };

typedef struct st_predict_conf {
    int32_t structures; /* ST_STRUCTURES_MODEL, or a ch_conformer  */
    int64_t count;      /* structures of a molecule, at most; 0: as in the training */
    uint64_t seed;
    st_compute compute;
} st_predict_conf;

/* One number that is predicted, by one or several models. */
typedef struct st_predict_property {
    const char *name, *unit;           /* of the first model                              */
    bool interval, similarity, domain; /* a score may have these                    */
    bool several;                      /* models: it has a standard deviation             */
} st_predict_property;

typedef struct st_predictor {
    st_scorer scorer;
    st_compute compute;
    st_prepare_conf prepare;
    ch_prepare_opts opts;
    ch_worker_opts budget;
    ch_graph_opts graph;
    st_native native;
    char form[NN_FORM_BYTES];
    bool has_network;
    pl_names columns; /* of the user's table, that the models read */
    int n_properties;
    st_predict_property property[ST_SCORES_MAX];
} st_predictor;

/* Settings of the stage `score` by default: engine cpu. */
st_predict_conf st_predict_defaults(void);

/* Reads the models at path[n]; all is in mem, and p must not move. EIO and EDATA: one cannot be read. ECONFIG: two models were trained
 * on molecules of another form, or on other graphs; too many of them. */
pl_code st_predictor_open(st_predictor *p, const char *const *path, int n, const st_predict_conf *conf, pl_arena *mem,
                          pl_error *err);

typedef struct st_predict_worker {
    st_predictor *p;
    ch_worker *chem;
    st_scorer_worker scorer;
    pl_arena *scratch, *mem;
    pl_text reasons;
    double radial_error; /* largest of the engines (stages/steps/train/compute.h) */
} st_predict_worker;

/* Nothing is started before the first molecule. */
pl_code st_predict_worker_open(st_predict_worker *w, st_predictor *p, pl_error *err);
void st_predict_worker_close(st_predict_worker *w); /* zeroed is fine */

/* What is known of one record. */
typedef struct st_prediction {
    const ch_prepared *molecule;
    const char *problem; /* why a value is missing, or NULL */
    st_value *value;     /* [n_properties]; n_models 0: there is none */
} st_prediction;

/* Predicts in[n]; column[n][columns.n], not read where there are none: finite. out[n] and all that it names are in the worker's memory until the next call. */
pl_code st_predict(st_predict_worker *w, const ch_input *in, const float *const *column, int32_t n, st_prediction **out,
                   pl_error *err);

#endif
