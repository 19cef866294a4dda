/* stages/steps/train/compute.h - how a model is computed: settings shared by train, evaluate and score.
 *
 * The engine changes only the speed; the rest also changes the last digits of the results, so
 * it belongs to the stage's key. */
#ifndef ST_COMPUTE_H
#define ST_COMPUTE_H

#include "models/comm/launcher_env.h"
#include "models/comm/numa.h"
#include "models/cpu/kernels/kernels.h"
#include "models/engine/engine.h"
#include "pipeline/base/field.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/workflow.h"

enum { ST_ENGINE_CPU, ST_ENGINE_REF, ST_ENGINE_CUDA, ST_ENGINE_AUTO };

typedef struct st_compute {
    int32_t engine;                            /* of st_compute_engine                        */
    int32_t radial;                            /* nn_radial                                   */
    int32_t products;                          /* nn_products                                 */
    int32_t kernels;                           /* 0: the best; else of st_compute_kernels     */
    double width;                              /* Angstrom, of the grid of radial nodes; -1: that of each model, st_compute_width */
    int32_t precision;                         /* nn_precision of all operations ..           */
    int32_t of_radial, of_contract, of_linear; /* .. but these: 0 same, else 1 + nn_precision */
    pl_list devices;                           /* texts: numbers of GPUs, or all              */
} st_compute;

enum { ST_DEVICES = 64 };

#define ST_PRECISIONS "fp32|bf16x3|bf16|tf32|fp16"
#define ST_COMPUTE_AT(type, member) offsetof(type, compute.member)

/* Fields of a settings struct `type` that has a member `st_compute compute`. */
#define ST_COMPUTE_FIELDS(type)                                                                                                              \
    { PL_CHOICE,                                                                                                                             \
      "engine",                                                                                                                              \
      ST_COMPUTE_AT(type, engine),                                                                                                           \
      .choices = "cpu|ref|cuda|auto",                                                                                                        \
      .flags = PL_HOW,                                                                                                                       \
      .help =                                                                                                                                \
          "cpu: fast kernels; ref: plain loops in double precision, always exact, for checks; cuda: a GPU; auto: a GPU if there is one, "    \
          "else cpu" },                                                                                                                      \
        { PL_CHOICE, "radial.mode", ST_COMPUTE_AT(type, radial), .choices = NN_RADIAL_WORDS,                                                 \
          .help =                                                                                                                            \
              "nodes: radial networks are evaluated at the nodes of a grid and interpolated between them; exact: at every distance" },       \
        { PL_CHOICE,                                                                                                                         \
          "kernels",                                                                                                                         \
          ST_COMPUTE_AT(type, kernels),                                                                                                      \
          .choices = "auto|portable|avx2|avx512|amx",                                                                                        \
          .flags = PL_LATER,                                                                                                                 \
          .help =                                                                                                                            \
              "engine cpu: the set of kernels; auto: the fastest that the processor has; results of different sets differ from the seventh " \
              "digit on" },                                                                                                                  \
        { PL_CHOICE,                                                                                                                         \
          "products",                                                                                                                        \
          ST_COMPUTE_AT(type, products),                                                                                                     \
          .choices = NN_PRODUCTS_WORDS,                                                                                                      \
          .flags = PL_LATER,                                                                                                                 \
          .help =                                                                                                                            \
              "engine cuda, matrix products of fp32: own kernels, NVIDIA's cublaslt, or auto: what is best for each kind of product, which " \
              "is own as yet" },                                                                                                             \
        { PL_TEXTS, "devices", ST_COMPUTE_AT(type, devices), .flags = PL_HOW,                                                                \
          .help =                                                                                                                            \
              "all, or numbers of visible GPUs ([0, 1]); score uses all of them, each rank of train one, evaluate the first" },              \
        { PL_REAL,                                                                                                                           \
          "radial.width",                                                                                                                    \
          ST_COMPUTE_AT(type, width),                                                                                                        \
          .dflt = -1,                                                                                                                        \
          .min = 0.001,                                                                                                                      \
          .max = 0.1,                                                                                                                        \
          .choices = "auto",                                                                                                                 \
          .unit = "Angstrom",                                                                                                                \
          .help =                                                                                                                            \
              "distance between two nodes of the radial grid; auto: 0.01, but 0.005 for scores and errors of a model with a radial "         \
              "basis" },                                                                                                                     \
        { PL_CHOICE, "precision", ST_COMPUTE_AT(type, precision), .choices = ST_PRECISIONS,                                                  \
          .help = "of the factors in matrix products; sums are fp32; tf32 and fp16 need a GPU" },                                            \
        { PL_CHOICE, "precision_of.radial", ST_COMPUTE_AT(type, of_radial), .choices = "same|" ST_PRECISIONS,                                \
          .help = "of the radial networks' last layer" },                                                                                    \
        { PL_CHOICE, "precision_of.contract", ST_COMPUTE_AT(type, of_contract), .choices = "same|" ST_PRECISIONS,                            \
          .help = "of the convolution along edges" },                                                                                        \
    {                                                                                                                                        \
        PL_CHOICE, "precision_of.linear", ST_COMPUTE_AT(type, of_linear), .choices = "same|" ST_PRECISIONS,                                  \
                                                                          .help = "of the linear layers of nodes"                            \
    }

st_compute st_compute_defaults(void); /* engine cpu; to be settled */
/* Replaces `auto` by the usual width, so that keys are those of before `auto`, unless `functions`: a model reads functions of distances. */
void st_compute_settle(st_compute *c, bool functions);
/* Angstrom between the radial nodes of a model: less for functions of distances, which bend more between two nodes than those of the
 * distance itself. So a score does not depend on the models beside it. For .width of a conf. */
double st_compute_width(const st_compute *c, const nn_se3_conf *model);
const nn_engine_kind *st_compute_engine(const st_compute *c);
/* The GPUs to compute with; one, 0, where the engine is not cuda. device [ST_DEVICES]. ECONFIG
 * names a word that is no visible GPU. */
pl_code st_compute_devices(const st_compute *c, int32_t *device, int *n, pl_error *err);
/* The GPU of a process that a launcher may have started: chosen by the rank's number on this machine. One visible GPU
 * for several ranks is fine, as each may see another one. ECONFIG: too few GPUs for its number. */
pl_code st_compute_device(const st_compute *c, const nn_launcher *launch, int32_t *device, pl_error *err);
nn_engine_conf st_compute_conf(const st_compute *c, int threads);
/* Channels that the engine computes together: a layer takes about as long as one of the next multiple; 1: any number. */
int32_t st_compute_channels(const st_compute *c);
/* Binds a training process near its GPU, before threads are started; nn_numa_restore undoes it. Nothing with other engines. */
nn_binding st_compute_bind(const st_compute *c, int32_t device);
/* Adds a warning event if the error of interpolation between radial nodes, `off` (radial_error
 * of an engine), is above 1e-3 (the rounding of bf16) and above *worst, the largest so far. */
void st_compute_radial(pl_env *env, const st_compute *c, double off, double *worst);
bool st_compute_is_coarse(double off); /* whether it is above that */
/* Logs one line: what engine `auto` is on this machine, and why; also a warning if the precision is slower than fp32 here. */
void st_compute_say(const st_compute *c, const char *stage);
/* Products of an optimiser that runs on the processor. NULL: plain C, so that what another engine trains does not depend on the
 * kind of the processor, which st_compute_level does not tell then. */
const nn_cpu_kernels *st_compute_kernels(const st_compute *c);
/* What the last digits depend on besides the settings, in mem: "cpu avx2 (x86_64 with fma, glibc 2.36)". NULL: no memory. */
const char *st_compute_level(const st_compute *c, pl_arena *mem);
void st_compute_check(const st_compute *c, const pl_step *step, pl_problems *problems);

#endif
