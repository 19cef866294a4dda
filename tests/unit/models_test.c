/* SPDX-License-Identifier: Apache-2.0 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "models/network/se3.h"
#include "models/optim/adam.h"
#include "models/tensors/safetensors.h"

/* ---- plans --------------------------------------------------------------- */

static const nn_se3_conf published = { .layers = 7,
                                       .degrees = 4,
                                       .channels = 32,
                                       .heads = 8,
                                       .channels_div = 2,
                                       .norm = true,
                                       .layer_norm = true,
                                       .pooling = NN_POOL_MAX,
                                       .fusion = NN_FUSE_FULL,
                                       .node_features = 6,
                                       .edge_features = 4,
                                       .outputs = 1 };

static nn_se3 *plan(const nn_se3_conf *conf, pl_arena *mem)
{
    nn_se3 *m = NULL;
    pl_error err = { 0 };

    if (nn_se3_plan(&m, conf, mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    return m;
}

/* Totals of docs/model.md 7. */
static void plans_have_the_published_sizes(void **state)
{
    static const struct {
        int degrees, fusion, norm, layer_norm, channels, div;
        int tensors; /* 0: not published */
        size_t floats;
    } all[] = {
        { 4, NN_FUSE_FULL, 1, 1, 32, 2, 171, 9279553 },  { 4, NN_FUSE_PARTIAL, 1, 1, 32, 2, 333, 9304321 },
        { 4, NN_FUSE_NONE, 1, 1, 32, 2, 1008, 9407521 }, { 4, NN_FUSE_FULL, 1, 0, 32, 2, 0, 9278145 },
        { 4, NN_FUSE_FULL, 0, 0, 32, 2, 0, 9276353 },    { 1, NN_FUSE_FULL, 1, 1, 32, 2, 0, 262177 },
        { 2, NN_FUSE_FULL, 1, 1, 32, 2, 0, 1365377 },    { 3, NN_FUSE_FULL, 1, 1, 32, 2, 0, 4109025 },
        { 4, NN_FUSE_FULL, 1, 1, 16, 2, 0, 2335665 },    { 4, NN_FUSE_FULL, 1, 1, 64, 2, 0, 37037409 },
        { 4, NN_FUSE_FULL, 1, 1, 32, 4, 0, 4933137 },    { 4, NN_FUSE_FULL, 1, 1, 32, 1, 0, 17972385 },
    };
    (void)state;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        pl_arena *mem = pl_arena_new(1 << 16);
        nn_se3_conf c = published;
        c.degrees = all[k].degrees, c.fusion = all[k].fusion, c.norm = all[k].norm;
        c.layer_norm = all[k].layer_norm, c.channels = all[k].channels, c.channels_div = all[k].div;
        nn_se3 *m = plan(&c, mem);
        assert_int_equal(m->n_floats, all[k].floats);
        if (all[k].tensors)
            assert_int_equal(m->n_params, all[k].tensors);
        pl_arena_free(mem);
    }
}

static void parameters_have_the_published_names_and_shapes(void **state)
{
    static const struct {
        const char *name;
        int rows, cols;
    } all[] = {
        { "transformer.graph_modules.0.to_key_value.conv.0,0.radial_func.net.6.weight", 192, 32 },
        { "transformer.graph_modules.0.to_key_value.conv.0,3.radial_func.net.6.weight", 96, 32 },
        { "transformer.graph_modules.0.to_query.weights.0", 16, 6 },
        { "transformer.graph_modules.0.project.weights.0", 32, 22 },
        { "transformer.graph_modules.0.project.weights.3", 32, 16 },
        { "transformer.graph_modules.2.to_key_value.conv.radial_func.net.6.weight", 45056, 32 },
        { "transformer.graph_modules.2.project.weights.0", 32, 48 },
        { "transformer.graph_modules.14.conv_out.0.radial_func.net.6.weight", 16384, 32 },
        { "transformer.graph_modules.14.to_kernel_self.0", 128, 32 },
        { "mlp.2.weight", 1, 128 },
    };
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_se3 *m = plan(&published, mem);
    (void)state;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        int32_t at = nn_se3_find(m, all[k].name);
        if (at < 0)
            fail_msg("no parameter %s", all[k].name);
        assert_int_equal(m->param[at].dims[0], all[k].rows);
        assert_int_equal(m->param[at].dims[1], all[k].cols);
    }
    assert_int_equal(nn_se3_find(m, "mlp.1.weight"), -1);
    pl_arena_free(mem);
}

/* Parameters lie one after the other and the last ends where the array ends. */
static void parameters_cover_the_array_once(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_se3 *m = plan(&published, mem);
    size_t at = 0;
    (void)state;

    for (int32_t k = 0; k < m->n_params; k++) {
        assert_int_equal(m->param[k].at, at);
        at += m->param[k].size;
    }
    assert_int_equal(at, m->n_floats);
    pl_arena_free(mem);
}

static void bad_settings_are_named(void **state)
{
    static const struct {
        const char *name;
        int degrees, channels, heads, div, outputs;
    } all[] = {
        { "degrees", 6, 32, 8, 2, 1 }, { "degrees", 0, 32, 8, 2, 1 }, { "channels", 4, 0, 8, 2, 1 },
        { "heads", 4, 32, 0, 2, 1 },   { "heads", 4, 32, 5, 2, 1 },   { "channels_div", 4, 32, 8, 3, 1 },
        { "outputs", 4, 32, 8, 2, 0 },
    };
    (void)state;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        nn_se3_conf c = published;
        pl_error err = { 0 };
        c.degrees = all[k].degrees, c.channels = all[k].channels, c.heads = all[k].heads;
        c.channels_div = all[k].div, c.outputs = all[k].outputs;
        assert_int_equal(nn_se3_check(&c, &err), PL_ECONFIG);
        if (strncmp(err.text, all[k].name, strlen(all[k].name)))
            fail_msg("%s is at fault, the text says: %s", all[k].name, err.text);
    }
}

static void bad_layers_are_named(void **state)
{
    static const struct {
        nn_fiber in, to, edge;
        int32_t max_degree, heads, div;
        const char *conv, *attention; /* NULL: fine */
    } all[] = {
        { { { 4, 4 } }, { { 4, 4 } }, { { 1 } }, 1, 2, 2, NULL, NULL },
        { { { 4, -1 } }, { { 4 } }, { { 0 } }, 2, 1, 1, "degree 1 has a negative number of channels", "=" },
        { { { 4 } }, { { 4, 0, -2 } }, { { 0 } }, 2, 1, 1, "degree 2 has a negative number of channels", "=" },
        { { { 4 } }, { { 4 } }, { { 0, 0, 0, -1 } }, 2, 1, 1, "degree 3 has a negative number of channels", "=" },
        { { { 4, 4, 4 } }, { { 4 } }, { { 0 } }, 1, 1, 1, "degree 2 is above max_degree, which is 1", "=" },
        { { { 4 } }, { { 4, 4 } }, { { 0 } }, 0, 1, 1, "degree 1 is above max_degree, which is 0", "=" },
        { { { 4 } }, { { 4 } }, { { 1, 1 } }, 1, 1, 1, "edges have features of degree 1, but nodes have none of that degree", "=" },
        { { { 4 } }, { { 4 } }, { { 0 } }, 1, 0, 1, NULL, "heads and channels_div must be at least 1" },
        { { { 4 } }, { { 4 } }, { { 0 } }, 1, 1, 0, NULL, "heads and channels_div must be at least 1" },
        { { { 4 } }, { { 4, 6 } }, { { 0 } }, 1, 2, 2, NULL, "6 channels of degree 1 do not divide into 2 times 2 heads" },
        { { { 4 } }, { { 5 } }, { { 0 } }, 1, 1, 2, NULL, "5 channels of degree 0 do not divide into 2 times 1 heads" },
    };
    (void)state;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        const nn_layer_opts o = {
            .max_degree = all[k].max_degree, .edge = all[k].edge, .heads = all[k].heads, .channels_div = all[k].div
        };
        const char *attention = all[k].attention != NULL && all[k].attention[0] == '=' ? all[k].conv : all[k].attention;
        pl_arena *mem = pl_arena_new(1 << 16);
        pl_error err[2] = { { 0 } };
        nn_se3 *m;
        assert_int_equal(nn_se3_plan_conv(&m, all[k].in, all[k].to, &o, mem, &err[0]), all[k].conv != NULL ? PL_ECONFIG : PL_OK);
        assert_string_equal(err[0].text, all[k].conv != NULL ? all[k].conv : "");
        assert_int_equal(nn_se3_plan_attention(&m, all[k].in, all[k].to, &o, mem, &err[1]), attention != NULL ? PL_ECONFIG : PL_OK);
        assert_string_equal(err[1].text, attention != NULL ? attention : "");
        pl_arena_free(mem);
    }
}

/* Bounds and spread of every kind of tensor, and the same numbers for the same seed. */
static void initial_parameters_follow_their_distributions(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 20);
    nn_se3 *m = plan(&published, mem);
    float *a = PL_NEW(mem, float, m->n_floats), *b = PL_NEW(mem, float, m->n_floats);
    (void)state;

    nn_se3_init(m, a, 42);
    nn_se3_init(m, b, 42);
    assert_memory_equal(a, b, m->n_floats * sizeof *a);
    nn_se3_init(m, b, 43);
    assert_memory_not_equal(a, b, 4096);
    for (int32_t k = 0; k < m->n_params; k++) {
        const nn_param *p = &m->param[k];
        bool normal =
            strstr(p->name, "to_query") != NULL || strstr(p->name, "project") != NULL || strstr(p->name, "kernel_self") != NULL;
        double sum = 0.0, max = 0.0;
        for (size_t e = 0; e < p->size; e++) {
            sum += (double)a[p->at + e] * (double)a[p->at + e];
            max = fmax(max, fabs((double)a[p->at + e]));
        }
        if (normal && p->size >= 500)
            assert_true(fabs(sqrt(sum / (double)p->size * p->dims[1]) - 1.0) < 0.12);
        else if (!normal && p->n_dims == 2)
            assert_true(max <= 1.0 / sqrt(p->dims[1]) + 1e-7 && (p->size < 100 || max > 0.8 / sqrt(p->dims[1])));
    }
    assert_true(a[m->param[nn_se3_find(m, "transformer.graph_modules.1.group_norm.weight")].at] == 1.0f);
    assert_true(a[m->param[nn_se3_find(m, "transformer.graph_modules.1.group_norm.bias")].at] == 0.0f);
    pl_arena_free(mem);
}

/* A refused allocation anywhere in a plan is an error, not a crash. */
static void plan_reports_refused_memory(void **state)
{
    bool refused = true;
    (void)state;

    for (long nth = 1; refused; nth++) {
        pl_arena *mem = pl_arena_new(0);
        nn_se3_conf c = published;
        nn_se3 *m = NULL;
        c.layers = 1;
        pl_arena_refuse(nth);
        pl_code code = nn_se3_plan(&m, &c, mem, NULL);
        if (code == PL_OK)
            assert_null(pl_arena_get(mem, 1, 1)); /* none was refused so far */
        pl_arena_refuse(0);
        refused = code == PL_ENOMEM;
        assert_true(refused || (code == PL_OK && m && nth > 10));
        pl_arena_free(mem);
    }
}

/* ---- tensor files -------------------------------------------------------- */

static const char *scratch(char path[64])
{
    snprintf(path, 64, "models_test.%d.safetensors", (int)getpid());
    return path;
}

static void tensors_read_back_as_written(void **state)
{
    static const double wide[2] = { 1.0 / 3.0, -0.0 };
    static const float narrow[6] = { 1, 2, 3, -4, 5.5f, FLT_MIN };
    static const int32_t whole[3] = { -1, 0, INT32_MAX };
    static const int64_t large[1] = { INT64_MIN };
    static const uint8_t small[5] = { 0, 1, 2, 254, 255 };
    static const uint16_t half[2] = { 0x3f80, 0xc040 }; /* 1, -3 */
    const nn_tensor t[] = {
        { .name = "u8", .dtype = NN_U8, .n_dims = 1, .dims = { 5 }, .data = small },
        { .name = "f32", .dtype = NN_F32, .n_dims = 2, .dims = { 2, 3 }, .data = narrow },
        { .name = "bf16", .dtype = NN_BF16, .n_dims = 1, .dims = { 2 }, .data = half },
        { .name = "i32", .dtype = NN_I32, .n_dims = 1, .dims = { 3 }, .data = whole },
        { .name = "f64", .dtype = NN_F64, .n_dims = 1, .dims = { 2 }, .data = wide },
        { .name = "scalar \xc3\xa9 \"x\"", .dtype = NN_I64, .n_dims = 0, .data = large },
        { .name = "none", .dtype = NN_F32, .n_dims = 2, .dims = { 0, 7 }, .data = NULL },
    };
    const nn_meta meta[] = { { "what", "a \"test\"\n" }, { "empty", "" } };
    const nn_tensors what = { .n = 7, .n_meta = 2, .t = t, .meta = meta };
    pl_arena *mem = pl_arena_new(1 << 12);
    char path[64];
    nn_tensors *got;
    double d[6];
    int64_t i[5];
    (void)state;

    assert_int_equal(nn_tensors_write(scratch(path), &what, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&got, path, mem, NULL), PL_OK);
    unlink(path);
    assert_int_equal(got->n, 7);
    assert_string_equal(nn_tensors_meta(got, "what"), "a \"test\"\n");
    assert_string_equal(nn_tensors_meta(got, "empty"), "");
    assert_null(nn_tensors_meta(got, "none"));
    for (int k = 0; k < 7; k++) {
        const nn_tensor *g = nn_tensors_find(got, t[k].name);
        assert_non_null(g);
        assert_int_equal(g->dtype, t[k].dtype);
        assert_int_equal(g->n_dims, t[k].n_dims);
        assert_memory_equal(g->dims, t[k].dims, sizeof g->dims);
        assert_int_equal((uintptr_t)g->data % nn_dtype_bytes(g->dtype), 0);
        if (g->count)
            assert_memory_equal(g->data, t[k].data, g->count * nn_dtype_bytes(g->dtype));
    }
    assert_int_equal(nn_tensor_doubles(d, 2, nn_tensors_find(got, "bf16"), NULL), PL_OK);
    assert_true(d[0] == 1.0 && d[1] == -3.0);
    assert_int_equal(nn_tensor_ints(i, 5, nn_tensors_find(got, "u8"), NULL), PL_OK);
    assert_true(i[0] == 0 && i[1] == 1 && i[4] == 255);
    assert_int_equal(nn_tensor_ints(i, 3, nn_tensors_find(got, "i32"), NULL), PL_OK);
    assert_true(i[0] == -1 && i[1] == 0 && i[2] == INT32_MAX);
    assert_int_equal(nn_tensor_ints(i, 1, nn_tensors_find(got, t[5].name), NULL), PL_OK);
    assert_true(i[0] == INT64_MIN);
    assert_int_equal(nn_tensor_doubles(d, 2, nn_tensors_find(got, "f64"), NULL), PL_OK);
    assert_true(d[0] == wide[0] && d[1] == 0 && signbit(d[1]));
    assert_int_equal(nn_tensor_doubles(d, 5, nn_tensors_find(got, "f32"), NULL), PL_EDATA);
    assert_int_equal(nn_tensor_doubles(d, 3, nn_tensors_find(got, "i32"), NULL), PL_EDATA);
    assert_int_equal(nn_tensor_ints(i, 2, nn_tensors_find(got, "f64"), NULL), PL_EDATA);
    pl_arena_free(mem);
}

/* A wrong size may be that of a damaged file: nothing is read behind the tensor, nothing is written. */
static void numbers_that_do_not_convert_are_not_touched(void **state)
{
    const int64_t whole[2] = { 3, 4 };
    const double real[2] = { 3, 4 };
    const nn_tensor t[] = { { .name = "w", .dtype = NN_I64, .n_dims = 1, .dims = { 2 }, .count = 2, .data = whole },
                            { .name = "r", .dtype = NN_F64, .n_dims = 1, .dims = { 2 }, .count = 2, .data = real } };
    int64_t i[3] = { 7, 7, 7 };
    double d[3] = { 7, 7, 7 };
    float f[3] = { 7, 7, 7 };
    (void)state;

    for (size_t n = 2; n <= 3; n++) { /* another type, another size */
        assert_int_equal(nn_tensor_ints(i, n, &t[n == 2 ? 1 : 0], NULL), PL_EDATA);
        assert_int_equal(nn_tensor_doubles(d, n, &t[n == 2 ? 0 : 1], NULL), PL_EDATA);
        assert_int_equal(nn_tensor_floats(f, n, &t[n == 2 ? 0 : 1], NULL), PL_EDATA);
    }
    for (int k = 0; k < 3; k++)
        assert_true(i[k] == 7 && d[k] == 7 && f[k] == 7);
}

static pl_code parse(const char *header, uint64_t length, size_t data)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    size_t n = strlen(header);
    char *file = calloc(1, 8 + n + data); /* exact size, so that a sanitizer sees a read one byte too far */
    nn_tensors *got = NULL;
    pl_error err = { 0 };
    pl_code code;

    assert_non_null(file);
    for (int k = 0; k < 8; k++)
        file[k] = (char)((length ? length : n) >> (8 * k));
    memcpy(file + 8, header, n);
    code = nn_tensors_parse(&got, (pl_bytes){ file, 8 + n + data }, mem, &err);
    assert_true(code == PL_OK || err.text[0]);
    free(file);
    pl_arena_free(mem);
    return code;
}

static void hostile_headers_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{",
        "{\"a\":1}",
        "{\"a\":{}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[4,20]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1e1],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":4,\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,4],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[16,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[-16,0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":\"0,16\"}}",
        "{\"a\":{\"dtype\":\"Q4\",\"shape\":[4],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"shape\":[4],\"data_offsets\":[0,16]}}",
        "{\"__metadata__\":{\"x\":1}}",
        "{\"__metadata__\":[]}",
        ("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
         "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"),
    };
    const char *good = "{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}}";
    (void)state;

    assert_int_equal(parse(good, 0, 16), PL_OK);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        if (parse(bad[k], 0, 16) != PL_EDATA)
            fail_msg("accepted: %s", bad[k]);
    assert_int_equal(parse(good, UINT64_MAX, 16), PL_EDATA);
    assert_int_equal(parse(good, 1u << 30, 16), PL_EDATA);
    assert_int_equal(parse(good, 20, 16), PL_EDATA);
    assert_int_equal(parse(good, 0, 15), PL_EDATA);
}

static void short_files_are_refused(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    nn_tensors *got;
    (void)state;

    for (size_t n = 0; n <= 8; n++) {
        pl_error err = { 0 };
        assert_int_equal(nn_tensors_parse(&got, (pl_bytes){ "\0\0\0\0\0\0\0\0", n }, mem, &err), PL_EDATA);
        assert_int_equal(strcmp(err.text, "too short for a safetensors file") == 0, n < 8);
    }
    assert_int_equal(nn_tensors_read(&got, "no such file", mem, NULL), PL_EIO);
    pl_arena_free(mem);
}

/* ---- AdamW --------------------------------------------------------------- */

/* The textbook form, with m^ and v^ written out. */
static void adamw_takes_the_textbook_step(void **state)
{
    const nn_adamw_conf c = { 0.9, 0.999, 1e-8, 0.1 };
    double p = 0.7, m = 0.0, v = 0.0, tp = 0.7, tm = 0.0, tv = 0.0;
    float fp = 0.7f, fm = 0.0f, fv = 0.0f;
    (void)state;

    for (int step = 1; step <= 20; step++) {
        double g = sin(3.0 * step), lr = 0.01 / step;
        float fg = (float)g;
        nn_adamw_step_double(&p, &m, &v, &g, 1, &c, step, lr);
        nn_adamw_step(&fp, &fm, &fv, &fg, 1, &c, step, (float)lr);
        tm = 0.9 * tm + 0.1 * g;
        tv = 0.999 * tv + 0.001 * g * g;
        tp -= lr * (tm / (1 - pow(0.9, step)) / (sqrt(tv / (1 - pow(0.999, step))) + 1e-8) + 0.1 * tp);
        assert_true(fabs(p - tp) <= 1e-14);
        assert_true(fabs((double)fp - tp) <= 1e-6);
    }
}

static void adamw_with_no_gradient_only_decays(void **state)
{
    const nn_adamw_conf c = { 0.9, 0.999, 1e-8, 0.1 };
    float p[2] = { 1, -2 }, m[2] = { 0 }, v[2] = { 0 };
    const float g[2] = { 0 };
    (void)state;

    nn_adamw_step(p, m, v, g, 2, &c, 1, 0.5f);
    assert_true(fabsf(p[0] - 0.95f) <= 1e-7f && fabsf(p[1] + 1.9f) <= 1e-6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_have_the_published_sizes),
        cmocka_unit_test(parameters_have_the_published_names_and_shapes),
        cmocka_unit_test(parameters_cover_the_array_once),
        cmocka_unit_test(bad_settings_are_named),
        cmocka_unit_test(bad_layers_are_named),
        cmocka_unit_test(initial_parameters_follow_their_distributions),
        cmocka_unit_test(plan_reports_refused_memory),
        cmocka_unit_test(tensors_read_back_as_written),
        cmocka_unit_test(numbers_that_do_not_convert_are_not_touched),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(short_files_are_refused),
        cmocka_unit_test(adamw_takes_the_textbook_step),
        cmocka_unit_test(adamw_with_no_gradient_only_decays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
