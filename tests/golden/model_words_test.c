/* SPDX-License-Identifier: Apache-2.0 */
/* The message for every wrong value in a model file, a safetensors header, the settings of a model and a checkpoint, against
 * golden/model_*.txt. Each member of each JSON object is left out, then set to values of every kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chem/graph/graph_block.h"
#include "family_toy.h"
#include "golden/golden_text.h"
#include "models/files/model_file.h"
#include "models/tensors/safetensors.h"
#include "models/training/checkpoint.h"
#include "pipeline/base/sha256.h"
#include "tests/unit/made_network.h"

/* Files are written a thousand times: linked with -Wl,--wrap=fsync, so that the test does not wait for a disk. */
int __wrap_fsync(int fd);

int __wrap_fsync(int fd) { return fd >= 0 ? 0 : -1; }

static const char *const values[] = { "null", "true", "-1",   "0",       "1",  "2",   "7",         "100000", "4000000000",
                                      "0.25", "-1.5", "\"\"", "\"odd\"", "[]", "[1]", "[1, 2, 3]", "{}" };
enum { VALUES = sizeof values / sizeof *values };

typedef struct bench {
    pl_arena *mem;
    nn_model_file m;
    nn_target target[2];
    nn_moments descriptor[CH_N_FEATURES];
    char path[64];
} bench;

#define DONE(call)                    \
    do {                              \
        pl_error why = { 0 };         \
        if (call)                     \
            fail_msg("%s", why.text); \
    } while (0)

/* With two columns of a table, and descriptors. */
static void add_extras(bench *b)
{
    nn_inputs *in = &b->m.inputs;

    for (int k = 0; k < CH_N_FEATURES; k++)
        b->descriptor[k] = (nn_moments){ 0.25 * k, k % 3 };
    in->n_columns = 2;
    in->column[0] = (nn_input_column){ .name = "temperature", .unit = "K", .over = { 300, 10 }, .low = 280, .high = 320 };
    in->column[1] = (nn_input_column){ .name = "odd", .unit = "", .over = { 7, 1 }, .low = 4, .high = 9, .at = 1 };
    in->descriptors = true;
    in->descriptor = b->descriptor;
}

static void bench_open(bench *b, int outputs, bool extras)
{
    int fd;

    *b = (bench){ .mem = pl_arena_new(1 << 16) };
    strcpy(b->path, "/tmp/molsieve-words-XXXXXX");
    fd = mkstemp(b->path);
    assert_true(fd >= 0 && close(fd) == 0);
    b->target[0] =
        (nn_target){ "gap", "eV", "low", { 1.25, 0.5, -3, { 0.1, 0.2 } }, { "test", 2, { { 0, 1.5, 40 }, { 0.3, 0.3, 30 } } },
                     0.3,   NULL, NULL };
    b->target[1] = (nn_target){ "mu", "D", "none", { -2, 4, 0, { 0 } }, { .n = 0 }, 0, NULL, NULL };
    b->m = (nn_model_file){ .name = "tiny", .target = b->target, .provenance = "{\"a\":1}" };
    b->m.inputs = (nn_inputs){ .n_elements = 2, .element = { 1, 6 }, .z = true, .bonds = true };
    if (extras)
        add_extras(b);
    b->m.graph = (ch_graph_opts){ .edges = CH_EDGES_RADIUS, .cutoff = 4.5f, .max_neighbours = 20 };
    b->m.range = (nn_range){ .molecules = 9,
                             .low = { 1, 0, 0, 0, 1, 0 },
                             .high = { 9, 1, 2, 3, 1, 0 },
                             .ring_sizes = 1u << 5 | 1u << 6,
                             .sources = 3,
                             .n_kinds = 2,
                             .kind = { { 6, 0, false }, { 7, 1, true } },
                             .form = "neutral" };
    b->m.conf = (nn_se3_conf){ 1, 2, 4, 2, 2, true, true, NN_POOL_MEAN, NN_FUSE_FULL, 0, 0, outputs, NN_PARITY_BOTH, { 0 }, false };
    assert_true(made_network(&b->m, 5, b->mem));
    DONE(nn_model_write(&b->m, b->path, &why));
}

static void bench_close(bench *b)
{
    (void)unlink(b->path);
    pl_arena_free(b->mem);
}

static const char *after(const char *text, const char *path)
{
    return strncmp(text, path, strlen(path)) == 0 ? text + strlen(path) : text;
}

/* ---- every member of a JSON object, with every value --------------------------------------- */

typedef struct edit {
    json_t *root;                                        /* the whole text                                    */
    void (*look)(void *ctx, json_t *root, pl_text *out); /* adds the outcome to the text */
    void *ctx;
    pl_text *out;
} edit;

/* Adds one line; a place or a text equal to that of the line before is left out. */
static void edit_say(const edit *e, const char *where, const char *value)
{
    static char place[300], text[4096];
    pl_text said = { 0 };

    e->look(e->ctx, e->root, &said);
    if (strcmp(where, place) != 0)
        pl_text_addf(e->out, "%s\n", where);
    pl_text_addf(e->out, " %s: %s\n", value, strcmp(pl_text_str(&said), text) == 0 ? "the same" : pl_text_str(&said));
    (void)snprintf(place, sizeof place, "%s", where);
    (void)snprintf(text, sizeof text, "%s", pl_text_str(&said));
    pl_text_free(&said);
}

static void edit_all(const edit *e, json_t *parent, const char *where)
{
    const size_t n = json_is_array(parent) ? json_array_size(parent) : 0;
    const char *key;
    json_t *child;
    void *next;

    for (size_t i = 0; i < n && i < 2; i++) {
        json_t *old = json_incref(json_array_get(parent, i));
        char at[300];
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        edit_all(e, old, at);
        for (int k = 0; k < VALUES; k++) {
            json_array_set_new(parent, i, json_loads(values[k], JSON_DECODE_ANY, NULL));
            edit_say(e, at, values[k]);
        }
        json_array_set_new(parent, i, old);
    }
    json_object_foreach_safe(parent, next, key, child)
    {
        char at[300], *name = strdup(key);
        (void)snprintf(at, sizeof at, "%s.%s", where, name);
        json_incref(child);
        edit_all(e, child, at);
        for (int k = 0; k < VALUES; k++) {
            json_object_set_new(parent, name, json_loads(values[k], JSON_DECODE_ANY, NULL));
            edit_say(e, at, values[k]);
        }
        json_object_set(parent, name, child);
        free(name);
        json_decref(child);
    }
}

/* Leaves out each member, in a copy, so that the order of the others stays. */
static void drop_all(const edit *e, const json_t *parent, const char *where)
{
    const char *key;
    json_t *child;

    json_object_foreach((json_t *)(uintptr_t)parent, key, child) {
        edit without = *e;
        char at[300];
        (void)snprintf(at, sizeof at, "%s.%s", where, key);
        without.root = json_copy(e->root);
        json_object_del(without.root, key);
        edit_say(&without, at, "nothing");
        json_decref(without.root);
    }
}

/* ---- a model's metadata ------------------------------------------------------------------------ */

typedef struct section {
    bench *b;
    nn_tensors *all;
    nn_meta *meta; /* the section */
} section;

static void digest_say(pl_text *out, const char *text)
{
    pl_sha256 sha;
    char hex[65];

    pl_sha256_start(&sha);
    pl_sha256_add(&sha, text, strlen(text));
    pl_sha256_hex(&sha, hex);
    pl_text_addf(out, "read, metadata %.8s", hex);
}

/* A digest of the metadata of the model, or the reason why it cannot be read. */
static void model_look(void *ctx, json_t *root, pl_text *out)
{
    section *s = ctx;
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
    pl_arena *mem = pl_arena_new(1 << 14);
    pl_error err = { 0 };
    nn_model_file *m;

    s->meta->value = text;
    DONE(nn_tensors_write(s->b->path, s->all, &why));
    if (nn_model_read(&m, s->b->path, mem, &err) != PL_OK)
        pl_text_add(out, after(err.text, s->b->path));
    else
        digest_say(out, nn_model_metadata(m, mem));
    pl_arena_free(mem);
    free(text);
}

/* Of all sections, or of `only`. */
static void sections_of(pl_text *out, bench *b, const char *only, void (*look)(void *, json_t *, pl_text *))
{
    nn_tensors *all, copy;
    nn_meta *meta;

    DONE(nn_tensors_read(&all, b->path, b->mem, &why));
    meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    copy = *all;
    copy.meta = meta;
    for (int i = 0; i < all->n_meta; i++) {
        section s = { b, &copy, &meta[i] };
        json_t *root = json_loads(meta[i].value, 0, NULL);
        edit e = { root, look, &s, out };
        if (only != NULL && strcmp(only, meta[i].key) != 0) {
            json_decref(root);
            continue;
        }
        pl_text_addf(out, "== %s\n", meta[i].key);
        if (root != NULL) {
            edit_all(&e, root, "");
            drop_all(&e, root, "");
            json_decref(root);
        }
        for (int k = 0; k < VALUES; k++) {
            e.root = json_loads(values[k], JSON_DECODE_ANY, NULL);
            edit_say(&e, meta[i].key, values[k]);
            json_decref(e.root);
        }
        meta[i] = all->meta[i];
    }
}

static void sections_say(pl_text *out, int outputs, bool extras)
{
    bench b;

    bench_open(&b, outputs, extras);
    sections_of(out, &b, extras ? "inputs" : NULL, model_look);
    bench_close(&b);
}

static void what_is_said_of_metadata_is_known(void **state)
{
    pl_text out = { 0 };
    (void)state;

    sections_say(&out, 1, false);
    sections_say(&out, 2, false);
    golden_check(MOLSIEVE_TESTS "/golden/model_metadata.txt", &out);
}

static void what_is_said_of_columns_is_known(void **state)
{
    pl_text out = { 0 };
    (void)state;

    sections_say(&out, 1, true);
    golden_check(MOLSIEVE_TESTS "/golden/model_columns.txt", &out);
}

/* Without a digest: what a member learned has other last digits on other machines. */
static void family_look(void *ctx, json_t *root, pl_text *out)
{
    pl_text said = { 0 };

    model_look(ctx, root, &said);
    pl_text_add(out, strncmp(pl_text_str(&said), "read", 4) == 0 ? "read" : pl_text_str(&said));
    pl_text_free(&said);
}

static void what_is_said_of_families_is_known(void **state)
{
    const nn_fit_conf conf = { .seed = 3 };
    pl_text out = { 0 };
    family_toy toy;
    nn_member *one;
    bench b;
    (void)state;

    bench_open(&b, 1, false);
    assert_true(family_toy_make(&toy, 12, 1, b.mem));
    DONE(nn_gp.fit(&one, &toy.x, toy.y, &conf, b.mem, &why));
    b.m.model = NULL;
    b.m.conf = (nn_se3_conf){ .outputs = 1 };
    b.m.graph = (ch_graph_opts){ .edges = CH_EDGES_BONDS };
    b.m.inputs = (nn_inputs){ .n_elements = 2, .element = { 1, 6 } };
    b.m.members = (nn_members){ .n = 1, .outputs = 1, .at = { { &nn_gp, &one } } };
    DONE(nn_model_write(&b.m, b.path, &why));
    sections_of(&out, &b, "family", family_look);
    golden_check(MOLSIEVE_TESTS "/golden/model_families.txt", &out);
    bench_close(&b);
}

/* ---- a safetensors header ------------------------------------------------------------------------ */

static void header_look(void *ctx, json_t *root, pl_text *out)
{
    char *text = json_dumps(root, JSON_COMPACT), file[2000] = "";
    pl_arena *mem = pl_arena_new(1 << 14);
    const size_t n = strlen(text);
    pl_error err = { 0 };
    nn_tensors *all;
    (void)ctx;

    file[0] = (char)(n & 255);
    file[1] = (char)(n >> 8);
    memcpy(file + 8, text, n);
    for (int i = 0; i < 40; i++)
        file[8 + n + (size_t)i] = (char)i;
    if (nn_tensors_parse(&all, (pl_bytes){ file, 8 + n + 40 }, mem, &err) != PL_OK)
        pl_text_add(out, err.text);
    else
        for (int k = 0; k < all->n; k++)
            pl_text_addf(out, "%s %s %d [%d] %zu; ", all->t[k].name, nn_dtype_name(all->t[k].dtype), all->t[k].n_dims,
                         (int)all->t[k].dims[0], all->t[k].count);
    pl_arena_free(mem);
    free(text);
}

static void what_is_said_of_headers_is_known(void **state)
{
    json_t *root = json_loads("{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                              "\"y\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[16,17]},"
                              "\"z\":{\"dtype\":\"I64\",\"shape\":[0],\"data_offsets\":[24,24]}}",
                              0, NULL);
    pl_text out = { 0 };
    edit e = { root, header_look, NULL, &out };
    (void)state;

    assert_non_null(root);
    edit_all(&e, root, "");
    drop_all(&e, root, "");
    json_decref(root);
    golden_check(MOLSIEVE_TESTS "/golden/model_headers.txt", &out);
}

static void lengths_of_headers_are_checked(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *said;
    } files[] = {
        { "", 0, "too short for a safetensors file" },
        { "\2\0\0\0\0\0\0", 7, "too short for a safetensors file" },
        { "\2\0\0\0\0\0\0\0", 8, "no safetensors file: its header would have 2 bytes" },
        { "\0\0\0\0\0\0\0\0", 8, "the safetensors header is no JSON object" },
        { "\2\0\0\0\0\0\0\0{", 9, "no safetensors file: its header would have 2 bytes" },
        { "\2\0\0\0\0\0\0\0{}", 10, "" },
        { "\2\0\0\0\0\0\0\0[]", 10, "the safetensors header is no JSON object" },
        { "\2\1\0\0\0\0\0\0{}", 10, "no safetensors file: its header would have 258 bytes" },
        { "\2\0\0\0\0\0\0\1{}", 10, "no safetensors file: its header would have 72057594037927938 bytes" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        pl_arena *mem = pl_arena_new(1 << 14);
        pl_error err = { 0 };
        nn_tensors *all;
        const pl_code code = nn_tensors_parse(&all, (pl_bytes){ files[i].bytes, files[i].n }, mem, &err);
        assert_string_equal(err.text, files[i].said);
        assert_int_equal(code, files[i].said[0] != '\0' ? PL_EDATA : PL_OK);
        pl_arena_free(mem);
    }
}

static void numbers_of_each_type_convert_or_say_why_not(void **state)
{
    static const double f64[] = { 1.5, -2, 1e300 };
    static const float f32[] = { 0.1f, -7, 3 };
    static const uint16_t bf16[] = { 0x3FC0, 0xC000, 0x4040 }; /* 1.5, -2, 3 */
    static const int64_t i64[] = { -5, 1LL << 40, 3 };
    static const int32_t i32[] = { -5, 1 << 30, 3 };
    static const unsigned char u8[] = { 0, 200, 255 };
    static const void *const data[NN_DTYPES] = { f64, i64, f32, i32, bf16, u8 };
    pl_text out = { 0 };
    (void)state;

    for (int type = 0; type < NN_DTYPES; type++) {
        const nn_tensor t = { .name = "t", .dtype = (nn_dtype)type, .n_dims = 1, .dims = { 3 }, .count = 3, .data = data[type] };
        pl_text_addf(&out, "== %s, %zu bytes\n", nn_dtype_name(t.dtype), nn_dtype_bytes(t.dtype));
        for (size_t n = 2; n < 4; n++) {
            pl_error err[3] = { { 0 } };
            float f[3];
            double d[3];
            int64_t i[3];
            const pl_code code[3] = { nn_tensor_floats(f, n, &t, &err[0]), nn_tensor_doubles(d, n, &t, &err[1]),
                                      nn_tensor_ints(i, n, &t, &err[2]) };
            for (int k = 0; k < 3; k++)
                if (code[k] != PL_OK)
                    pl_text_addf(&out, "%d %s\n", (int)code[k], err[k].text);
                else if (k == 0)
                    pl_text_addf(&out, "floats %.9g %.9g %.9g\n", (double)f[0], (double)f[1], (double)f[2]);
                else if (k == 1)
                    pl_text_addf(&out, "doubles %.17g %.17g %.17g\n", d[0], d[1], d[2]);
                else
                    pl_text_addf(&out, "ints %lld %lld %lld\n", (long long)i[0], (long long)i[1], (long long)i[2]);
        }
    }
    golden_check(MOLSIEVE_TESTS "/golden/model_numbers.txt", &out);
}

/* ---- settings -------------------------------------------------------------------------------------- */

static void what_is_said_of_settings_is_known(void **state)
{
    static const int32_t to[] = { -1, 0,  1,  2,  3,   4,   5,   6,   7,    8,    9,    16,    31,
                                  32, 33, 64, 65, 100, 128, 256, 257, 1000, 1024, 1025, 100000 };
    static const struct {
        const char *name;
        size_t at;
    } of[] = {
        { "layers", offsetof(nn_se3_conf, layers) },
        { "degrees", offsetof(nn_se3_conf, degrees) },
        { "channels", offsetof(nn_se3_conf, channels) },
        { "heads", offsetof(nn_se3_conf, heads) },
        { "channels_div", offsetof(nn_se3_conf, channels_div) },
        { "pooling", offsetof(nn_se3_conf, pooling) },
        { "fusion", offsetof(nn_se3_conf, fusion) },
        { "node_features", offsetof(nn_se3_conf, node_features) },
        { "edge_features", offsetof(nn_se3_conf, edge_features) },
        { "outputs", offsetof(nn_se3_conf, outputs) },
        { "parity", offsetof(nn_se3_conf, parity) },
    };
    pl_text out = { 0 };
    (void)state;

    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
            nn_se3_conf c = { 2, 3, 8, 2, 2, true, true, NN_POOL_MAX, NN_FUSE_FULL, 6, 4, 1, NN_PARITY_BOTH, { 0 }, false };
            pl_error err = { 0 };
            memcpy((char *)&c + of[k].at, &to[i], sizeof to[i]);
            pl_code code = nn_se3_check(&c, &err);
            pl_text_addf(&out, "%s %d: %d %s\n", of[k].name, (int)to[i], (int)code, err.text);
        }
    golden_check(MOLSIEVE_TESTS "/golden/model_settings.txt", &out);
}

static void what_is_said_of_elements_is_known(void **state)
{
    static const struct {
        nn_inputs in;
        const char *said;
        int nodes, edges;
    } cases[] = {
        { { .n_elements = 0 }, "elements: 0, allowed are 1..32", 0, 0 },
        { { .n_elements = 33 }, "elements: 33, allowed are 1..32", 33, 0 },
        { { .n_elements = -1 }, "elements: -1, allowed are 1..32", -1, 0 },
        { { .n_elements = 1, .element = { 0 } }, "elements: 0 is not an atomic number", 1, 0 },
        { { .n_elements = 1, .element = { 119 } }, "elements: 119 is not an atomic number", 1, 0 },
        { { .n_elements = 2, .element = { 118, 1 }, .bonds = true }, "", 2, 4 },
        { { .n_elements = 3, .element = { 6, 1, 6 }, .z = true, .charge = true }, "elements: C is named twice", 5, 0 },
    };
    (void)state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pl_error err = { 0 };
        assert_int_equal(nn_inputs_check(&cases[i].in, &err), cases[i].said[0] != '\0' ? PL_ECONFIG : PL_OK);
        assert_string_equal(err.text, cases[i].said);
        assert_int_equal(nn_inputs_node_features(&cases[i].in), cases[i].nodes);
        assert_int_equal(nn_inputs_edge_features(&cases[i].in), cases[i].edges);
    }
    for (int k = -1; k <= NN_BASIS_KINDS; k++) {
        static const char *const names[] = { "unknown", "frame_q15", "frame_f32", "sh_f32", "pairwise_f32", "none", "unknown" };
        assert_string_equal(nn_basis_name((nn_basis_kind)k), names[k + 1]);
    }
}

/* ---- checkpoints ------------------------------------------------------------------------------------- */

static void what_is_said_of_checkpoints_is_known(void **state)
{
    static const nn_se3_conf conf = {
        1, 1, 2, 1, 1, true, false, NN_POOL_MAX, NN_FUSE_FULL, 2, 1, 1, NN_PARITY_BOTH, { 0 }, false
    };
    pl_arena *mem = pl_arena_new(1 << 16);
    char dir[] = "/tmp/molsieve-words-XXXXXX", path[64];
    nn_train_state s, back;
    pl_text out = { 0 };
    unsigned char *bytes;
    nn_se3 *model;
    pl_bytes file;
    (void)state;

    assert_non_null(mkdtemp(dir));
    DONE(nn_se3_plan(&model, &conf, mem, &why));
    DONE(nn_train_state_alloc(&s, model, true, 1, mem, &why));
    DONE(nn_train_state_alloc(&back, model, true, 1, mem, &why));
    DONE(nn_checkpoint_save(dir, "me", &s, false, &why));
    (void)snprintf(path, sizeof path, "%s/latest.ckpt", dir);
    DONE(pl_file_read(&file, path, mem, &why));
    bytes = PL_NEW(mem, unsigned char, file.len);
    memcpy(bytes, file.data, file.len);
    for (size_t n = 0; n < file.len; n += n < 320 ? 4 : 257) {
        pl_error err[2] = { { 0 } };
        pl_code code[2] = { nn_checkpoint_read(&back, "me", (pl_bytes){ bytes, n }, &err[0]), 0 };
        bytes[n] ^= 0x10;
        code[1] = nn_checkpoint_read(&back, "me", (pl_bytes){ bytes, file.len }, &err[1]);
        bytes[n] ^= 0x10;
        pl_text_addf(&out, "%zu: cut %d %s; changed %d %s\n", n, (int)code[0], err[0].text, (int)code[1], err[1].text);
    }
    pl_error err = { 0 };
    assert_int_equal(nn_checkpoint_read(&back, "you", (pl_bytes){ bytes, file.len }, &err), PL_EDATA);
    pl_text_addf(&out, "%s\n", err.text);
    assert_int_equal(nn_checkpoint_read(&back, "me", (pl_bytes){ bytes, file.len }, NULL), PL_OK);
    (void)unlink(path);
    (void)rmdir(dir);
    pl_arena_free(mem);
    golden_check(MOLSIEVE_TESTS "/golden/model_checkpoints.txt", &out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_of_metadata_is_known),    cmocka_unit_test(what_is_said_of_headers_is_known),
        cmocka_unit_test(lengths_of_headers_are_checked),       cmocka_unit_test(numbers_of_each_type_convert_or_say_why_not),
        cmocka_unit_test(what_is_said_of_settings_is_known),    cmocka_unit_test(what_is_said_of_elements_is_known),
        cmocka_unit_test(what_is_said_of_checkpoints_is_known), cmocka_unit_test(what_is_said_of_columns_is_known),
        cmocka_unit_test(what_is_said_of_families_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
