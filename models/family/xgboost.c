/* SPDX-License-Identifier: Apache-2.0 */
#include "models/family/xgboost.h"

#include <dlfcn.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/family/xgboost_calls.h"
#include "pipeline/base/refused.h"

/* ---- the library ------------------------------------------------------------- */

static nn_xgboost_calls xgb;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool opened, has_cuda;
static char version[32], absent[400];

static void *library(void)
{
    static const char *const names[] = { "libxgboost.so.0", "libxgboost.so" };
    const char *named = getenv("MOLSIEVE_XGBOOST");
    const bool is_named = named != NULL && *named != '\0';
    void *found = is_named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : NULL;

    (void)snprintf(absent, sizeof absent, "libxgboost.so.0 (Debian: libxgboost0)");
    if (is_named) {
        (void)snprintf(absent, sizeof absent,
                       "libxgboost.so.0 (Debian: libxgboost0); MOLSIEVE_XGBOOST names %.300s, which is not XGBoost's library",
                       named);
        return found;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && found == NULL; i++)
        found = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return found;
}

const nn_xgboost_name nn_xgboost_names[NN_XGBOOST_CALLS] = {
    { offsetof(nn_xgboost_calls, last_error), "XGBGetLastError" },
    { offsetof(nn_xgboost_calls, version), "XGBoostVersion" },
    { offsetof(nn_xgboost_calls, build), "XGBuildInfo" },
    { offsetof(nn_xgboost_calls, set_global), "XGBSetGlobalConfig" },
    { offsetof(nn_xgboost_calls, rows_open), "XGDMatrixCreateFromCSR" },
    { offsetof(nn_xgboost_calls, rows_floats), "XGDMatrixSetFloatInfo" },
    { offsetof(nn_xgboost_calls, rows_free), "XGDMatrixFree" },
    { offsetof(nn_xgboost_calls, open), "XGBoosterCreate" },
    { offsetof(nn_xgboost_calls, option), "XGBoosterSetParam" },
    { offsetof(nn_xgboost_calls, config), "XGBoosterSaveJsonConfig" },
    { offsetof(nn_xgboost_calls, round), "XGBoosterUpdateOneIter" },
    { offsetof(nn_xgboost_calls, round_by), "XGBoosterBoostOneIter" },
    { offsetof(nn_xgboost_calls, dump), "XGBoosterDumpModelEx" },
    { offsetof(nn_xgboost_calls, predict), "XGBoosterPredictFromDMatrix" },
    { offsetof(nn_xgboost_calls, free), "XGBoosterFree" },
};

static bool bind_all(void *from)
{
    for (int i = 0; i < NN_XGBOOST_CALLS; i++) {
        void *symbol = dlsym(from, nn_xgboost_names[i].name);
        if (symbol == NULL)
            return false;
        memcpy((char *)&xgb + nn_xgboost_names[i].at, &symbol, sizeof symbol);
    }
    return true;
}

/* Before 2.0 the option had another name. */
static bool is_with_cuda(int major)
{
    const char *text = NULL;
    json_error_t why;
    json_t *j = xgb.build(&text) == 0 ? json_loads(text, JSON_REJECT_DUPLICATES, &why) : NULL;
    const bool with = json_is_true(json_object_get(j, "USE_CUDA"));

    json_decref(j);
    return major >= 2 && with;
}

static void open_once(void)
{
    void *from = library();
    int major = 0, minor = 0, patch = 0;

    if (from == NULL || !bind_all(from))
        return;
    xgb.version(&major, &minor, &patch);
    (void)snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    has_cuda = is_with_cuda(major);
    opened = true;
}

const char *nn_xgboost_missing(void)
{
    (void)pthread_once(&once, open_once);
    return opened ? NULL : absent;
}

const char *nn_xgboost_version(void) { return nn_xgboost_missing() == NULL ? version : ""; }

bool nn_xgboost_has_cuda(void) { return nn_xgboost_missing() == NULL && has_cuda; }

/* The first line of the library's error; a stack follows it. */
static pl_code failed(const char *doing, pl_error *err)
{
    const char *why = xgb.last_error();
    int n = (int)strcspn(why, "\n");

    if (strstr(why, "bad_alloc") != NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for XGBoost %s", doing);
    return pl_fail(err, PL_EBUG, "XGBoost %s, %s: %.*s", version, doing, n, why);
}

/* ---- boosting -------------------------------------------------------------------- */

struct nn_booster {
    void *rows, *booster;
    uint64_t n; /* rows */
};

enum { ARRAY = 128 };

/* An array as the library reads it: NumPy's array interface. type: "<f4". */
static const char *array(char out[ARRAY], const void *data, size_t n, const char *type)
{
    (void)snprintf(out, ARRAY, "{\"data\":[%llu,true],\"shape\":[%zu],\"typestr\":\"%s\",\"version\":3}",
                   (unsigned long long)(uintptr_t)data, n, type);
    return out;
}

static pl_code table_read(void **out, const nn_sparse *x, pl_error *err)
{
    const size_t n = (size_t)x->n, n_values = x->first[n];
    char first[ARRAY], column[ARRAY], value[ARRAY];
    const int failure =
        xgb.rows_open(array(first, x->first, n + 1, "<u8"), array(column, x->column, n_values, "<u4"),
                      array(value, x->value, n_values, "<f4"), (uint64_t)x->n_columns, "{\"missing\":NaN,\"nthread\":1}", out);

    return failure == 0 ? PL_OK : failed("reading the table", err);
}

/* All rows start from one margin, so the library's own base score has no part in anything. */
static pl_code rows_make(void **out, const nn_sparse *x, const float *y, float margin, pl_error *err)
{
    const uint64_t n = (uint64_t)x->n;
    float *start = malloc(n * sizeof *start + 1);
    pl_code code = PL_OK;

    if (start == NULL) {
        pl_refused(n * sizeof *start);
        return pl_fail(err, PL_ENOMEM, "no memory for the margins of %d molecules", (int)x->n);
    }
    for (uint64_t i = 0; i < n; i++)
        start[i] = margin;
    code = table_read(out, x, err);
    if (code == PL_OK &&
        ((y != NULL && xgb.rows_floats(*out, "label", y, n) != 0) || xgb.rows_floats(*out, "base_margin", start, n) != 0))
        code = failed("reading the values", err);
    free(start);
    return code;
}

pl_code nn_booster_open(nn_booster **out, const nn_sparse *x, const float *y, float margin, const nn_option *options, int n,
                        pl_error *err)
{
    const char *missing = nn_xgboost_missing();
    nn_booster *b = NULL;
    pl_code code;

    *out = NULL;
    if (missing != NULL)
        return pl_fail(err, PL_ECONFIG, "trees are learned with XGBoost, which is not installed: %s", missing);
    b = calloc(1, sizeof *b);
    if (b == NULL) {
        pl_refused(sizeof *b);
        return pl_fail(err, PL_ENOMEM, "no memory for XGBoost");
    }
    *out = b;
    b->n = (uint64_t)x->n;
    (void)xgb.set_global("{\"verbosity\":0}");
    code = rows_make(&b->rows, x, y, margin, err);
    if (code == PL_OK && xgb.open(&b->rows, 1, &b->booster) != 0)
        code = failed("beginning", err);
    for (int i = 0; code == PL_OK && i < n; i++)
        if (xgb.option(b->booster, options[i].name, options[i].value) != 0)
            code = failed(options[i].name, err);
    return code;
}

pl_code nn_booster_device(nn_booster *b, bool *on_gpu, pl_error *err)
{
    const char *text = NULL, *device;
    uint64_t n = 0;
    json_error_t why;
    json_t *j;

    if (xgb.config(b->booster, &n, &text) != 0)
        return failed("telling its device", err);
    j = json_loads(text, JSON_REJECT_DUPLICATES, &why);
    device = json_string_value(json_object_get(json_object_get(json_object_get(j, "learner"), "generic_param"), "device"));
    *on_gpu = device != NULL && strncmp(device, "cuda", 4) == 0;
    json_decref(j);
    return PL_OK;
}

pl_code nn_booster_round(nn_booster *b, int round, pl_error *err)
{
    return xgb.round(b->booster, round, b->rows) == 0 ? PL_OK : failed("learning", err);
}

pl_code nn_booster_weights(nn_booster *b, const float *weight, pl_error *err)
{
    return xgb.rows_floats(b->rows, "weight", weight, b->n) == 0 ? PL_OK : failed("reading the weights", err);
}

pl_code nn_booster_labels(nn_booster *b, const float *y, pl_error *err)
{
    return xgb.rows_floats(b->rows, "label", y, b->n) == 0 ? PL_OK : failed("reading the values", err);
}

pl_code nn_booster_round_by(nn_booster *b, float *first, float *second, pl_error *err)
{
    return xgb.round_by(b->booster, b->rows, first, second, b->n) == 0 ? PL_OK : failed("learning", err);
}

pl_code nn_booster_trees(nn_booster *b, const char *const **tree, int *n_trees, pl_error *err)
{
    const char **text = NULL;
    uint64_t n = 0;

    if (xgb.dump(b->booster, "", 1, "json", &n, &text) != 0)
        return failed("writing its trees", err);
    *tree = text;
    *n_trees = (int)n;
    return PL_OK;
}

/* Prediction `type` of the library for rows, n numbers in all. */
static pl_code rows_predict(nn_booster *b, void *rows, int type, float *out, size_t n, pl_error *err)
{
    const float *from = NULL;
    const uint64_t *shape = NULL;
    uint64_t n_dims = 0, is = 1;
    char settings[ARRAY];
    pl_code code = PL_OK;

    (void)snprintf(settings, sizeof settings,
                   "{\"type\":%d,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":false}", type);
    if (xgb.predict(b->booster, rows, settings, &shape, &n_dims, &from) != 0)
        code = failed("predicting", err);
    for (uint64_t k = 0; code == PL_OK && k < n_dims; k++)
        is *= shape[k];
    if (code == PL_OK && is != n)
        code = pl_fail(err, PL_EBUG, "XGBoost %s predicts %llu numbers, not %zu", version, (unsigned long long)is, n);
    if (code == PL_OK)
        memcpy(out, from, n * sizeof *out);
    return code;
}

static pl_code predict(nn_booster *b, const nn_sparse *x, float margin, int type, float *out, size_t n, pl_error *err)
{
    void *rows = NULL;
    pl_code code = rows_make(&rows, x, NULL, margin, err);

    if (code == PL_OK)
        code = rows_predict(b, rows, type, out, n, err);
    if (rows != NULL)
        (void)xgb.rows_free(rows);
    return code;
}

pl_code nn_booster_learned(nn_booster *b, float *out, pl_error *err) { return rows_predict(b, b->rows, 1, out, (size_t)b->n, err); }

pl_code nn_booster_margins(nn_booster *b, const nn_sparse *x, float margin, float *out, pl_error *err)
{
    return predict(b, x, margin, 1, out, (size_t)x->n, err);
}

pl_code nn_booster_parts(nn_booster *b, const nn_sparse *x, float margin, float *out, pl_error *err)
{
    return predict(b, x, margin, 2, out, (size_t)x->n * ((size_t)x->n_columns + 1), err);
}

void nn_booster_close(nn_booster *b)
{
    if (b == NULL)
        return;
    if (b->booster != NULL)
        (void)xgb.free(b->booster);
    if (b->rows != NULL)
        (void)xgb.rows_free(b->rows);
    free(b);
}
