/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/train/compute.h"

#include <string.h>

#include "models/cpu/kernels/kernels.h"
#include "models/cuda/plugin.h"
#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"

/* Largest error of interpolated hidden units without a warning: outputs are then off by about 0.3 % of their spread (decision 0013). */
static const double RADIAL_MOST = 2e-2;

/* Angstrom between radial nodes where nothing else is asked for. */
static const double COARSE = 0.01, FINE = 0.005;

static nn_precision precision_of(const st_compute *c, int32_t own) { return (nn_precision)(own ? own - 1 : c->precision); }

/* A settings struct with these fields alone. */
typedef struct compute_alone {
    st_compute compute;
} compute_alone;

static const pl_field alone_fields[] = { ST_COMPUTE_FIELDS(compute_alone), { 0 } };

st_compute st_compute_defaults(void)
{
    compute_alone alone;

    pl_fields_default(alone_fields, &alone);
    return alone.compute;
}

void st_compute_settle(st_compute *c, bool functions)
{
    if (c->width < 0 && !functions)
        c->width = COARSE;
}

double st_compute_width(const st_compute *c, const nn_se3_conf *model)
{
    if (c->width >= 0)
        return c->width;
    return model->radial.basis != NN_BASIS_DISTANCE ? FINE : COARSE;
}

/* The pinned set, or NULL. */
static const char *kernels_of(const st_compute *c)
{
    static const char *const names[] = { NULL, "portable", "avx2", "avx512", "amx" };

    return names[c->kernels];
}

nn_engine_conf st_compute_conf(const st_compute *c, int threads)
{
    nn_radial radial = c->engine == ST_ENGINE_REF ? NN_RADIAL_EXACT : (nn_radial)c->radial;

    return (nn_engine_conf){ .threads = threads < 1 ? 1 : threads,
                             .kernels = kernels_of(c),
                             .radial = radial,
                             .width = c->width < 0 ? COARSE : c->width,
                             .products = (nn_products)c->products,
                             .of_radial = precision_of(c, c->of_radial),
                             .of_contract = precision_of(c, c->of_contract),
                             .of_linear = precision_of(c, c->of_linear) };
}

bool st_compute_is_coarse(double off) { return off > RADIAL_MOST; }

void st_compute_radial(pl_env *env, const st_compute *c, double off, double *worst)
{
    const double width = c->width < 0 ? FINE : c->width; /* auto: a model with a radial basis has the larger error */

    if (!st_compute_is_coarse(off) || off <= *worst)
        return;
    *worst = off;
    pl_event_add(env, PL_WARN,
                 "radial nodes %g Angstrom apart are too coarse: the interpolated hidden units have an error of %.2g (root "
                 "mean square), more than %g; set radial.width to %g",
                 width, off, RADIAL_MOST, width / 2);
}

const nn_engine_kind *st_compute_engine(const st_compute *c)
{
    static const nn_engine_kind *const kinds[] = { &nn_engine_cpu, &nn_engine_ref, &nn_engine_cuda };
    nn_engine_conf conf = st_compute_conf(c, 1);
    pl_error err = { 0 };

    if (c->engine != ST_ENGINE_AUTO)
        return kinds[c->engine];
    return nn_engine_cuda.check(&conf, &err) != PL_OK ? &nn_engine_cpu : &nn_engine_cuda;
}

/* ---- GPUs ---------------------------------------------------------------- */

static bool devices_all(const pl_list *list)
{
    const char *const *word = list->items;

    return list->n == 0 || (list->n == 1 && !strcmp(word[0], "all"));
}

static pl_code device_read(const char *word, int32_t count, int32_t *device, pl_error *err)
{
    int64_t i;

    if (!pl_parse_int(word, &i) || i < 0)
        return pl_fail(err, PL_ECONFIG, "devices: %s is neither all nor the number of a GPU", word);
    if (i >= count)
        return pl_fail(err, PL_ECONFIG, "devices: there is no GPU %s; this machine shows %d", word, (int)count);
    *device = (int32_t)i;
    return PL_OK;
}

/* Ranks and engines that share a GPU would only wait for each other. */
static pl_code device_once(const int32_t *device, int i, pl_error *err)
{
    for (int k = 0; k < i; k++)
        if (device[k] == device[i])
            return pl_fail(err, PL_ECONFIG, "devices: GPU %d is named twice", (int)device[i]);
    return PL_OK;
}

pl_code st_compute_devices(const st_compute *c, int32_t *device, int *n, pl_error *err)
{
    const char *const *word = c->devices.items;
    bool all = devices_all(&c->devices);
    const nn_gpu_ops *ops;
    int32_t count;
    pl_code code = PL_OK;

    *n = 1;
    device[0] = 0;
    if (st_compute_engine(c) != &nn_engine_cuda)
        return PL_OK;
    code = nn_cuda_plugin(&ops, err);
    if (code != PL_OK)
        return code;
    count = ops->count();
    *n = all ? (int)count : (int)c->devices.n;
    if (*n < 1 || *n > ST_DEVICES)
        return pl_fail(err, PL_ECONFIG, "devices: %d GPUs; 1 to %d can be used", *n, (int)ST_DEVICES);
    for (int i = 0; i < *n && code == PL_OK; i++) {
        device[i] = i;
        if (!all)
            code = device_read(word[i], count, &device[i], err);
        if (code == PL_OK)
            code = device_once(device, i, err);
    }
    return code;
}

pl_code st_compute_device(const st_compute *c, const nn_launcher *launch, int32_t *device, pl_error *err)
{
    int32_t list[ST_DEVICES];
    int n, own = launch->local_rank > 0 ? launch->local_rank : 0;
    pl_code code = st_compute_devices(c, list, &n, err);

    if (code != PL_OK)
        return code;
    if (own >= n && n > 1)
        return pl_fail(err, PL_ECONFIG,
                       "rank %d is number %d on this machine, but there are only %d GPUs for ranks: start fewer ranks, or use "
                       "more machines",
                       launch->rank, own, n);
    *device = list[n == 1 ? 0 : own];
    return PL_OK;
}

/* ---- what the last digits depend on ---------------------------------------- */

static bool is_float32(const nn_engine_conf *conf)
{
    return conf->of_radial == NN_PREC_FP32 && conf->of_contract == NN_PREC_FP32 && conf->of_linear == NN_PREC_FP32;
}

/* The set amx is avx512 but for its products of bf16. NULL: there is none, which the engine tells when it is opened. */
static const char *set_name(const st_compute *c)
{
    const nn_engine_conf conf = st_compute_conf(c, 1);
    const nn_cpu_kernels *k = NULL;

    if (nn_cpu_kernels_pick(&k, conf.kernels, NULL) != PL_OK)
        return NULL;
    return !strcmp(k->name, "amx") && is_float32(&conf) ? "avx512" : k->name;
}

const nn_cpu_kernels *st_compute_kernels(const st_compute *c)
{
    const nn_engine_conf conf = st_compute_conf(c, 1);
    const nn_cpu_kernels *k = NULL;

    return st_compute_engine(c) == &nn_engine_cpu && nn_cpu_kernels_pick(&k, conf.kernels, NULL) == PL_OK ? k : NULL;
}

/* "A100, compute capability 8.0, 80 GB, driver ..." without the memory, which changes no digit. */
static void drop_memory(char *text)
{
    char *end = strstr(text, " GB, "), *from = end;

    while (from != NULL && from > text && *from != ',')
        from--;
    if (from != NULL)
        memmove(from, end + 3, strlen(end + 3) + 1);
}

/* ", cuBLASLt 13.1.0" where it computes products. */
static const char *library_word(const st_compute *c, char word[272])
{
    const nn_gpu_ops *ops;
    char text[256];

    word[0] = '\0';
    if (c->products == NN_PRODUCTS_CUBLASLT && nn_cuda_plugin(&ops, NULL) == PL_OK && ops->cublaslt(NULL, text, sizeof text))
        (void)snprintf(word, 272, ", %s", text);
    return word;
}

/* Of exact radial networks; an earlier version had tables of pairs and said nothing. */
static const char *exact_word(const st_compute *c)
{
    const nn_engine_conf conf = st_compute_conf(c, 1);

    if (conf.radial != NN_RADIAL_EXACT)
        return "";
    return nn_cuda_units_asked(&conf) ? ", exact by hidden units" : ", exact by tables of pairs";
}

const char *st_compute_level(const st_compute *c, pl_arena *mem)
{
    const nn_engine_kind *kind = st_compute_engine(c);
    const nn_gpu_ops *ops;
    const char *set = kind == &nn_engine_cpu ? set_name(c) : "";
    char text[256] = "no GPU", machine[64], library[272];

    if (kind == &nn_engine_cuda) {
        if (nn_cuda_plugin(&ops, NULL) == PL_OK)
            (void)ops->find(0, text, sizeof text);
        drop_memory(text);
        return pl_sprintf(mem, "cuda (%s%s%s)", text, library_word(c, library), exact_word(c));
    }
    if (set == NULL)
        return "";
    return pl_sprintf(mem, "%s%s%s (%s)", kind->name, kind == &nn_engine_cpu ? " " : "", set, nn_cpu_machine(machine));
}

static bool is_of_bf16(nn_precision p) { return p == NN_PREC_BF16 || p == NN_PREC_BF16X3; }

/* bf16 on a processor without tiles for it: the same numbers, at up to twice the time of fp32. */
static bool is_slow(const st_compute *c, const nn_engine_conf *conf)
{
    const nn_cpu_kernels *k = NULL;

    if (nn_cpu_kernels_pick(&k, conf->kernels, NULL) != PL_OK)
        return false;
    return st_compute_engine(c) == &nn_engine_cpu && k != NULL && strcmp(k->name, "amx") != 0 &&
           (is_of_bf16(conf->of_radial) || is_of_bf16(conf->of_contract) || is_of_bf16(conf->of_linear));
}

int32_t st_compute_channels(const st_compute *c)
{
    const nn_engine_kind *kind = st_compute_engine(c);

    if (kind == &nn_engine_cuda)
        return NN_GPU_PAD;
    return kind == &nn_engine_cpu ? NN_LANE : 1;
}

nn_binding st_compute_bind(const st_compute *c, int32_t device)
{
    nn_binding near = { .node = -1 };
    const nn_gpu_ops *ops;
    char pci[32];

    if (st_compute_engine(c) != &nn_engine_cuda || nn_cuda_plugin(&ops, NULL) != PL_OK)
        return near;
    ops->pci(device, pci, sizeof pci);
    near = nn_numa_bind("/sys", pci);
    if (near.bound)
        pl_log(PL_INFO, "train     near GPU %d: the processors of NUMA node %d", (int)device, near.node);
    return near;
}

void st_compute_say(const st_compute *c, const char *stage)
{
    nn_engine_conf conf = st_compute_conf(c, 1);
    pl_error err = { 0 };

    if (c->engine == ST_ENGINE_AUTO && nn_engine_cuda.check(&conf, &err) != PL_OK)
        pl_log(PL_INFO, "%-9s engine auto: the cpu; %s", stage, err.text);
    else if (c->engine == ST_ENGINE_AUTO)
        pl_log(PL_INFO, "%-9s engine auto: the GPU", stage);
    if (is_slow(c, &conf))
        pl_log(PL_WARN, "%-9s precision: bf16 takes longer than fp32 on a processor without AMX", stage);
}

void st_compute_check(const st_compute *c, const pl_step *step, pl_problems *problems)
{
    nn_engine_conf conf = st_compute_conf(c, 1);
    int32_t device[ST_DEVICES];
    pl_error err = { 0 };
    int n;

    const pl_node *pin = pl_node_get(step->node, "kernels");
    const nn_cpu_kernels *k;

    if (conf.kernels != NULL && c->engine != ST_ENGINE_CPU)
        pl_problem_add(problems, pin,
                       "%s: kernels: %s is for engine cpu, but engine is set to another; remove one of the "
                       "two",
                       step->stage->name, conf.kernels);
    else if (c->engine == ST_ENGINE_CPU && nn_cpu_kernels_pick(&k, conf.kernels, &err) != PL_OK)
        pl_problem_add(problems, pin != NULL ? pin : step->node, "%s: %s", step->stage->name, err.text);
    if (conf.products != NN_PRODUCTS_AUTO && st_compute_engine(c) != &nn_engine_cuda)
        pl_problem_add(problems, pl_node_get(step->node, "products"),
                       "%s: products is for engine cuda, but the engine is another; remove it, or set engine: cuda",
                       step->stage->name);
    if (st_compute_engine(c)->check(&conf, &err) != PL_OK || st_compute_devices(c, device, &n, &err) != PL_OK)
        pl_problem_add(problems, step->node, "%s", err.text);
}
