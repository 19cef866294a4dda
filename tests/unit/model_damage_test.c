/* SPDX-License-Identifier: Apache-2.0 */
/* Model files that are damaged or wrong: whatever is wrong is named. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "models/files/model_file_parts.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/file.h"
#include "pipeline/base/rng.h"
#include "tests/unit/written_model.h"

/* The n bytes of a model file, in memory of n + 1 bytes. */
static char *bytes_of(bench *b, size_t *n)
{
    pl_bytes all;
    char *copy;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(pl_file_read(&all, b->path, b->mem, NULL), PL_OK);
    copy = malloc(all.len + 1);
    assert_non_null(copy);
    memcpy(copy, all.data, all.len);
    *n = all.len;
    return copy;
}

static void put_bytes(bench *b, const char *bytes, size_t n)
{
    FILE *f = fopen(b->path, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static size_t header_of(const char *file) { return (size_t)(unsigned char)file[0] | (size_t)(unsigned char)file[1] << 8; }

/* Whether the bytes are a model file that is read; a refusal names the file. */
static bool is_taken(bench *b, const char *bytes, size_t n)
{
    nn_model_file *back = NULL;
    pl_error err = { 0 };
    pl_arena *mem = pl_arena_new(0);
    bool taken;

    put_bytes(b, bytes, n);
    taken = nn_model_read(&back, b->path, mem, &err) == PL_OK;
    if (!taken)
        assert_true(err.code == PL_EDATA && strstr(err.text, b->path));
    pl_arena_free(mem);
    return taken;
}

/* MOLSIEVE_FLIPS flipped bits, every second one in the header. */
static void every_flipped_bit_is_noticed(void **state)
{
    bench *b = *state;
    const char *asked = getenv("MOLSIEVE_FLIPS");
    int64_t flips = asked != NULL ? atoll(asked) : 100, taken = 0;
    size_t n;
    char *file = bytes_of(b, &n);
    pl_rng r = pl_rng_at(21, 0, 1);

    assert_true(is_taken(b, file, n));
    for (int64_t k = 0; k < flips; k++) {
        size_t at = (size_t)pl_rng_below(&r, k % 2 ? 8 + header_of(file) : n);
        char bit = (char)(1u << pl_rng_below(&r, 8));
        file[at] = (char)(file[at] ^ bit);
        taken += is_taken(b, file, n);
        file[at] = (char)(file[at] ^ bit);
    }
    assert_int_equal(taken, 0);
    print_message("%lld flipped bits, each refused\n", (long long)flips);
    free(file);
}

/* Its checksum is looked for under its name, and by its digits: a damaged one is not taken for none. */
static void a_damaged_checksum_is_not_taken_for_none(void **state)
{
    const char name[] = "sha256\":\"";
    bench *b = *state;
    size_t n;
    char *file = bytes_of(b, &n), *at = memmem(file, n, name, sizeof name - 1);

    assert_non_null(at);
    for (size_t k = 0; k < sizeof name - 1 + 64; k++) {
        if (at[k] == '"' || at[k] == ':')
            continue;
        const char was = at[k];
        at[k] = '~'; /* neither of its name nor a digit */
        assert_false(is_taken(b, file, n));
        at[k] = was;
    }
    assert_true(is_taken(b, file, n));
    free(file);
}

/* Files of earlier versions and of other programs. */
static void a_file_without_a_checksum_is_read_and_known(void **state)
{
    bench *b = *state;
    size_t n, gone, left;
    char *file = bytes_of(b, &n);
    char *at = memmem(file, n, "\"sha256\":\"", 10), *end = at != NULL ? strchr(at + 10, ',') : NULL;
    nn_model_file *back = NULL;

    assert_true(written_and_read(b)->verified);
    assert_non_null(end);
    gone = (size_t)(end + 1 - at);
    left = header_of(file) - gone;
    memmove(at, end + 1, (size_t)(file + n - end - 1));
    file[0] = (char)(left & 0xff);
    file[1] = (char)(left >> 8);
    put_bytes(b, file, n - gone);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, NULL), PL_OK);
    assert_false(back->verified);
    free(file);
}

static void half_a_domain(nn_tensor *t, int *n, nn_meta *meta)
{
    static const char key[NN_DOMAIN_KEY];

    (void)meta;
    t[(*n)++] = (nn_tensor){
        .name = "domain.inchikey", .dtype = NN_U8, .n_dims = 2, .dims = { 1, NN_DOMAIN_KEY }, .count = NN_DOMAIN_KEY, .data = key
    };
}

/* Reads the file as tensors, changes them by `how`, writes and reads it back as a model. */
typedef void change(nn_tensor *t, int *n, nn_meta *meta);

static void refused_with(bench *b, change *how, const char *text)
{
    nn_tensors *all, out;
    nn_tensor *t;
    nn_meta *meta;
    nn_model_file *back;
    pl_error err = { 0 };

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    t = PL_NEW(b->mem, nn_tensor, all->n + 1);
    meta = PL_NEW(b->mem, nn_meta, all->n_meta + 1);
    memcpy(t, all->t, (size_t)all->n * sizeof *t);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    out = *all;
    out.t = t;
    out.meta = meta;
    how(t, &out.n, meta);
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    if (strstr(err.text, text) == NULL || strstr(err.text, b->path) == NULL)
        fail_msg("'%s' does not say '%s' and the file", err.text, text);
}

static void drop_first(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)meta;
    t[0] = t[--*n];
}

static void add_one(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)meta;
    t[*n] = t[0];
    t[(*n)++].name = "stowaway";
}

static void other_type(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)n;
    (void)meta;
    t[0].dtype = NN_I32; /* as many bytes */
}

static void turn_one(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)meta;
    for (int k = 0; k < *n; k++)
        if (t[k].n_dims == 2 && t[k].dims[0] != t[k].dims[1]) {
            int64_t d = t[k].dims[0];
            t[k].dims[0] = t[k].dims[1];
            t[k].dims[1] = d;
            return;
        }
}

static void one_more_dimension(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)meta;
    for (int k = 0; k < *n; k++)
        if (t[k].n_dims == 1) {
            t[k].dims[t[k].n_dims++] = 1;
            return;
        }
}

static void poison_one(nn_tensor *t, int *n, nn_meta *meta)
{
    static float poison[100000];

    (void)n;
    (void)meta;
    memcpy(poison, t[1].data, t[1].count * sizeof(float));
    poison[t[1].count - 1] = NAN;
    t[1].data = poison;
}

static void no_positions(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "graph")->value = "{\"edges\":\"topology\"}";
}

static void break_json(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "scale")->value = "{\"mean\": 1";
}

static void zero_scale(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "scale")->value = "{\"mean\":1,\"std\":0,\"constant\":0,\"offsets\":[0,0,0]}";
}

static void odd_element(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "inputs")->value = "{\"elements\":[\"H\",\"Qq\",\"Br\"],\"z\":true,\"charge\":false,\"bonds\":true}";
}

static void any_element(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "inputs")->value =
        "{\"elements\":[\"H\",\"C\",\"Br\"],\"z\":true,\"charge\":false,\"bonds\":true,\"any_element\":true}";
}

static void more_elements(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "inputs")->value = "{\"elements\":[\"H\",\"C\",\"N\",\"Br\"],\"z\":true,\"charge\":false,\"bonds\":true}";
    meta_named(meta, "scale")->value = "{\"mean\":1,\"std\":1,\"constant\":0,\"offsets\":[0,0,0,0]}";
}

static void rude_name(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "name")->value = "tiny\n\033[2J";
}

static void rude_target(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "target")->value = "{\"name\":\"\\u001b[2J\",\"unit\":\"eV\",\"better\":\"low\"}";
}

static void rude_unit(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "target")->value = "{\"name\":\"gap\",\"unit\":\"\\u001b[2J\",\"better\":\"low\"}";
}

static void bands_apart_from_0(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "interval")->value = "{\"part\":\"test\",\"bands\":[{\"similarity\":0.3,\"within\":1,\"molecules\":9}]}";
}

static void more_than_all_molecules(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "interval")->value = "{\"part\":\"test\",\"bands\":[{\"similarity\":0,\"within\":1,\"molecules\":1e300}]}";
}

static void a_band_below_0(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "interval")->value = "{\"part\":\"test\",\"bands\":[{\"similarity\":0,\"within\":-1,\"molecules\":9}]}";
}

static void no_target(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "target")->value = "{\"name\":\"\",\"unit\":\"eV\",\"better\":\"low\"}";
}

/* The message is one line. */
static void rude_tensor(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)meta;
    t[*n] = t[0];
    t[(*n)++].name = "stow\n\033away";
}

static void classifier_without_output(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "format_version")->value = "2";
}

static void future_format(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "format_version")->value = "10";
}

static void as_format_six(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "format_version")->value = "6";
}

/* Format 7, which programs that would score with it refuse. */
static void a_model_of_noise_alone_is_only_a_start(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    pl_error err = { 0 };
    const char *text;

    b->m.denoises = true;
    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_ECONFIG);
    assert_non_null(strstr(err.text, "learned noise alone (task: denoise) and predicts nothing"));
    assert_int_equal(nn_model_read_any(&back, b->path, b->mem, &err), PL_OK);
    assert_true(back->denoises && !back->classifies);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    text = nn_model_metadata(back, b->mem);
    assert_true(strstr(text, "\"format_version\":\"7\"") && strstr(text, "\"task\":\"denoise\""));
    refused_with(b, as_format_six, "metadata target.task: denoise in a model file of format 6");
    b->m.denoises = false;
    assert_false(written_and_read(b)->denoises);
}

static void whatever_is_wrong_is_named(void **state)
{
    bench *b = *state;

    refused_with(b, drop_first, "is missing");
    refused_with(b, add_one, "tensor stowaway does not belong");
    refused_with(b, other_type, " has type I32, F32 or BF16 is needed");
    refused_with(b, no_positions, "metadata graph.edges: topology has no positions, which a network needs");
    refused_with(b, turn_one, "the model needs");
    refused_with(b, one_more_dimension, " x 1, the model needs ");
    refused_with(b, poison_one, "is not finite");
    refused_with(b, break_json, "metadata scale is not JSON");
    refused_with(b, zero_scale, "scale.std");
    refused_with(b, odd_element, "inputs.elements");
    refused_with(b, any_element, "metadata inputs.any_element is true, but the model reads elements");
    refused_with(b, more_elements, "the model needs");
    refused_with(b, future_format, "model file format 10");
    refused_with(b, classifier_without_output, "metadata target has no task");
    refused_with(b, rude_name, "metadata name is not a name");
    refused_with(b, rude_target, "metadata target.name is not a name");
    refused_with(b, rude_unit, "metadata target.unit is not a unit");
    refused_with(b, no_target, "metadata target.name is not a name");
    refused_with(b, bands_apart_from_0, "metadata interval.bands is not from 0 on");
    refused_with(b, a_band_below_0, "metadata interval.within is not a number from 0");
    refused_with(b, more_than_all_molecules, "metadata interval.molecules is not a number from 0");
    refused_with(b, half_a_domain, "tensor domain.fingerprint is missing beside domain.inchikey");
    refused_with(b, rude_tensor, "tensor stow  away does not belong");
}

static void one_is_missing(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "scale")->value = "{\"targets\":[{\"mean\":1,\"std\":1,\"constant\":0,\"offsets\":[0,0,0]}]}";
}

static void one_is_no_object(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "target")->value = "{\"targets\":[1,2,3]}";
}

static void two_of_a_name(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "target")->value =
        "{\"targets\":[{\"name\":\"a\",\"unit\":\"\",\"better\":\"low\"},{\"name\":\"b\",\"unit\":\"\","
        "\"better\":\"low\"},{\"name\":\"a\",\"unit\":\"\",\"better\":\"low\"}]}";
}

static void an_older_format(nn_tensor *t, int *n, nn_meta *meta)
{
    (void)t;
    (void)n;
    meta_named(meta, "format_version")->value = "1";
}

/* Format 3, which programs with a single target refuse. */
static void several_targets_are_written_and_read(void **state)
{
    bench *b = *state;
    const uint8_t z[] = { 1, 35 };
    nn_model_file *back;
    int n_lowest = 0;

    b->m.conf.outputs = 3;
    assert_true(made_network(&b->m, 6, b->mem));
    for (int classes = 0; classes < 2; classes++) {
        b->m.classifies = classes;
        back = written_and_read(b);
        assert_true(back->conf.outputs == 3 && back->classifies == (classes == 1));
        for (int k = 0; k < 3; k++)
            same_target(&back->target[k], &b->target[k]);
        assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
        assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format\":\"molsieve-model\",\"format_version\":\"3\""));
        for (const char *at = nn_model_metadata(back, b->mem); (at = strstr(at, nn_lowest_key)) != NULL; at++)
            n_lowest++;
        assert_int_equal(n_lowest, 2 * (classes + 1)); /* two of the three have one */
    }
    assert_true(nn_model_value(back, 1, z, 2, 0.5) == 0.5); /* 0.5 x 4 - 2, and its logistic function */
    b->m.classifies = false;
    assert_true(nn_model_value(&b->m, 2, z, 2, 1.5) == 9); /* 1.5 + 0.5 + the 7 of bromine */
    refused_with(b, one_is_missing, "metadata scale.targets is not a list with an object for each output");
    refused_with(b, one_is_no_object, "metadata target has no name");
    refused_with(b, two_of_a_name, "metadata target: two are called a");
    refused_with(b, an_older_format, "3 outputs in a model file of format 1");
}

static void truncated_and_foreign_files_are_refused(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    pl_bytes whole;
    pl_error err = { 0 };

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->path, b->mem, NULL), PL_OK);
    for (size_t len = 0; len < whole.len; len += whole.len / 50 + 1) {
        assert_int_equal(pl_file_write(b->path, (pl_bytes){ whole.data, len }, NULL), PL_OK);
        assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    }
    assert_int_equal(nn_model_read(&back, "/nowhere/model", b->mem, &err), PL_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(every_flipped_bit_is_noticed),
        WITH_BENCH(a_damaged_checksum_is_not_taken_for_none),
        WITH_BENCH(a_file_without_a_checksum_is_read_and_known),
        WITH_BENCH(several_targets_are_written_and_read),
        WITH_BENCH(a_model_of_noise_alone_is_only_a_start),
        WITH_BENCH(whatever_is_wrong_is_named),
        WITH_BENCH(truncated_and_foreign_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
