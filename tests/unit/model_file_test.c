/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#include "models/files/model_file_parts.h"
#include "models/network/w3j.h"
#include "models/tensors/safetensors.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/text.h"
#include "tests/unit/model_bench.h"

static int bench_open(void **state)
{
    bench *b = *state = calloc(1, sizeof *b);

    if (b == NULL || !bench_make(b))
        return 1;
    b->target[0] = (nn_target){ "gap",
                                "eV",
                                "low",
                                { 1.25, 0.5, -3.0, { 0.1, 0.2, 1.0 / 3 } },
                                { "test", 2, { { 0, 1.5, 40 }, { 0.3, 0.1 + 0.2, 30 } } },
                                0.1 + 0.2 };
    b->target[1] = (nn_target){ "mu", "D", "none", { -2, 4, 0, { 0 } }, { .n = 0 }, 0 };
    b->target[2] = (nn_target){ "alpha", "", "high", { 0, 1, 0.5, { 0, 0, 7 } }, { "valid", 1, { { 0, 0, 9 } } }, 1 };
    bench_describe(b, 2, 3, 1);
    return !bench_network(b);
}

static void same_target(const nn_target *a, const nn_target *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->unit, b->unit);
    assert_string_equal(a->better, b->better);
    assert_memory_equal(&a->scale, &b->scale, sizeof b->scale);
    assert_true(a->lowest == b->lowest);
    assert_int_equal(a->interval.n, b->interval.n);
    assert_memory_equal(a->interval.band, b->interval.band, sizeof b->interval.band);
    assert_string_equal(a->interval.part ? a->interval.part : "", b->interval.part ? b->interval.part : "");
}

static void what_is_written_is_read(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);

    assert_string_equal(back->name, "tiny");
    same_target(back->target, b->target);
    assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"1\""));
    assert_string_equal(back->provenance, "{\"a\":1}");
    assert_string_equal(nn_model_metadata(back, b->mem),
                        nn_model_metadata(&b->m, b->mem)); /* bytes of structures differ in padding */
    assert_int_equal(back->inputs.n_elements, 3);
    assert_memory_equal(back->inputs.element, b->m.inputs.element, 3);
    assert_true(back->inputs.z && back->inputs.bonds && !back->inputs.charge && !back->bf16);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    assert_int_equal(strlen(back->sha256), 64);
    assert_int_equal(nn_model_graph_check(back, &b->m.graph, NULL), PL_OK);
}

static void bfloat16_holds_exactly_the_rounded_numbers(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    float before[4] = { 1.0f, 1.00390625f, 1.01171875f, -3.14159274f };

    b->m.bf16 = true;
    memcpy(b->m.params, before, sizeof before);
    nn_model_round(&b->m);
    assert_true(b->m.params[0] == 1.0f);
    assert_true(b->m.params[1] == 1.0f);      /* tie to even, down */
    assert_true(b->m.params[2] == 1.015625f); /* tie to even, up   */
    assert_true(b->m.params[3] == -3.140625f);
    back = written_and_read(b);
    assert_true(back->bf16);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
}

static void the_same_model_gives_the_same_bytes(void **state)
{
    bench *b = *state;
    char first[65];

    memcpy(first, written_and_read(b)->sha256, sizeof first);
    assert_string_equal(written_and_read(b)->sha256, first);
}

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

/* The file keeps the training molecules, whatever the type of its numbers. */
static void the_domain_is_written_and_read(void **state)
{
    bench *b = *state;
    nn_domain_molecule two[2] = { { .print = { { 5, 6 } }, .key = "ZZZZZZZZZZZZZZ-UHFFFAOYSA-N" },
                                  { .print = { { 7 } }, .key = "AAAAAAAAAAAAAA-UHFFFAOYSA-N" } };
    char met[1][NN_SEEN_KEY + 1] = { "MMMMMMMMMMMMMM" };

    assert_int_equal(written_and_read(b)->domain.n, 0);
    assert_int_equal(nn_domain_make(&b->m.domain, two, 2, b->mem, NULL), PL_OK);
    for (int k = 0; k < 2; k++) {
        nn_model_file *back;
        b->m.bf16 = k;
        if (k == 1)
            assert_int_equal(nn_seen_make(&b->m.seen, met, 1, 1, true, b->mem, NULL), PL_OK);
        nn_model_round(&b->m);
        back = written_and_read(b);
        assert_true(nn_seen_same(&back->seen, &b->m.seen) && back->seen.known == k);
        assert_true(nn_domain_same(&back->domain, &b->m.domain) && back->domain.n == 2 && back->bf16 == b->m.bf16);
        assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    }
}

static void the_range_is_written_and_read(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);

    assert_int_equal(back->range.molecules, 0); /* a file of an earlier version */
    assert_null(strstr(nn_model_metadata(back, b->mem), "range"));
    b->m.range = (nn_range){ .molecules = 70,
                             .low = { 1, -1 },
                             .high = { 9, 1, 2, 3, 1 },
                             .sources = 1u << NN_SOURCE_INPUT,
                             .n_kinds = 1,
                             .kind = { { 7, 1, true } },
                             .form = "neutral" };
    back = written_and_read(b);
    assert_string_equal(nn_range_text(&back->range, b->mem), nn_range_text(&b->m.range, b->mem));
    assert_int_equal(back->range.molecules, 70);
}

static void half_a_domain(nn_tensor *t, int *n, nn_meta *meta)
{
    static const char key[NN_DOMAIN_KEY];

    (void)meta;
    t[(*n)++] = (nn_tensor){
        .name = "domain.inchikey", .dtype = NN_U8, .n_dims = 2, .dims = { 1, NN_DOMAIN_KEY }, .count = NN_DOMAIN_KEY, .data = key
    };
}

/* y stdev + mean + constant + offsets, for HBr with y = 2. */
static void values_have_their_linear_part(void **state)
{
    bench *b = *state;
    const uint8_t z[] = { 1, 35 }, strange[] = { 1, 9 };

    assert_true(fabs(nn_model_value(&b->m, 0, z, 2, 2.0) - (2 * 0.5 + 1.25 - 3.0 + 0.1 + 1.0 / 3)) <= 1e-12);
    assert_true(fabs(nn_model_offset(&b->target->scale, &b->m.inputs, strange, 2) - (-3.0 + 0.1)) <= 1e-12);
}

/* A model without training molecules has the same metadata as before. */
static void an_interval_that_is_not_known_is_not_written(void **state)
{
    bench *b = *state;

    assert_non_null(strstr(nn_model_metadata(&b->m, b->mem), "interval"));
    b->target->interval.n = 0;
    assert_null(strstr(nn_model_metadata(&b->m, b->mem), "interval"));
    assert_int_equal(written_and_read(b)->target->interval.n, 0);
}

/* Format 2, which programs without classes refuse; without `output` it is not accepted. */
static void a_classifier_says_so_and_gives_probabilities(void **state)
{
    bench *b = *state;
    const uint8_t z[] = { 1, 35 };
    nn_model_file *back;
    const char *text;

    b->target->scale = (nn_scale){ .stdev = 1 };
    b->m.classifies = true;
    back = written_and_read(b);
    assert_true(back->classifies);
    text = nn_model_metadata(back, b->mem);
    assert_non_null(strstr(text, "\"format_version\":\"2\""));
    assert_non_null(strstr(text, "\"task\":\"classification\",\"output\":\"logistic\""));
    assert_true(nn_model_value(back, 0, z, 2, 0.0) == 0.5 && nn_model_value(back, 0, z, 2, 1e4) == 1);
    assert_true(fabs(nn_model_value(back, 0, z, 2, -1.0) - 1 / (1 + exp(1))) <= 1e-15);
    b->m.classifies = false;
    text = nn_model_metadata(written_and_read(b), b->mem);
    assert_true(strstr(text, "\"format_version\":\"1\"") && !strstr(text, "task"));
}

static void graph_says(const nn_model_file *m, const ch_graph_opts *o, const char *want)
{
    pl_error err = { 0 };

    assert_int_equal(nn_model_graph_check(m, o, &err), want[0] != '\0' ? PL_ECONFIG : PL_OK);
    assert_string_equal(err.text, want);
}

static void other_graphs_are_refused_by_name(void **state)
{
    bench *b = *state;
    nn_model_file m = b->m;
    ch_graph_opts o = m.graph;

    o.k = 5; /* has no meaning here */
    graph_says(&m, &o, "");
    o.cutoff = 5.0f;
    graph_says(&m, &o, "cutoff: 5 Angstrom, but model tiny was trained with 4.5");
    o = m.graph;
    o.max_neighbours = 21;
    graph_says(&m, &o, "max_neighbours: 21, but model tiny was trained with 20");
    o.edges = CH_EDGES_BONDS;
    graph_says(&m, &o, "edges: bonds, but model tiny was trained with edges: radius");
    o.edges = CH_EDGES_TOPOLOGY;
    graph_says(&m, &o, "edges: topology has no positions, but model tiny is a network that was trained with edges: radius");
    m.graph = (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 4 };
    o = (ch_graph_opts){ .edges = CH_EDGES_KNN, .k = 6, .cutoff = 7, .max_neighbours = 8 };
    graph_says(&m, &o, "k: 6, but model tiny was trained with 4");
    o.k = 4;
    graph_says(&m, &o, "");
    m.model = NULL; /* members read bonds */
    o.k = 6;
    graph_says(&m, &o, "k: 6, but model tiny was trained with 4");
    o.edges = CH_EDGES_TOPOLOGY;
    graph_says(&m, &o, "");
    o.edges = CH_EDGES_RADIUS;
    graph_says(&m, &o, "");
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

static void poison_one(nn_tensor *t, int *n, nn_meta *meta)
{
    static float poison[100000];

    (void)n;
    (void)meta;
    memcpy(poison, t[1].data, t[1].count * sizeof(float));
    poison[t[1].count - 1] = NAN;
    t[1].data = poison;
}

static nn_meta *meta_named(nn_meta *meta, const char *key)
{
    while (strcmp(meta->key, key) != 0)
        meta++;
    return meta;
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
    meta_named(meta, "format_version")->value = "9";
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
    refused_with(b, poison_one, "is not finite");
    refused_with(b, break_json, "metadata scale is not JSON");
    refused_with(b, zero_scale, "scale.std");
    refused_with(b, odd_element, "inputs.elements");
    refused_with(b, any_element, "metadata inputs.any_element is true, but the model reads elements");
    refused_with(b, more_elements, "the model needs");
    refused_with(b, future_format, "model file format 9");
    refused_with(b, classifier_without_output, "metadata target has no task");
    refused_with(b, rude_name, "metadata name is not a name");
    refused_with(b, rude_target, "metadata target.name is not a name");
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

/* Weights under the other sign convention come back negated exactly where (J, in,
 * out) is in the list of docs/model.md 2.3; twice is nothing. */
static void weights_of_the_other_convention_are_moved(void **state)
{
    bench *b = *state;
    const nn_group *g = &b->m.model->module[2].u.attention.conv.group[0];
    const nn_param *w2 = &b->m.model->param[g->w2];
    nn_tensors *all, out;
    nn_meta *meta;
    nn_model_file *back;
    int flipped = 0;

    assert_int_equal(nn_model_write(&b->m, b->path, NULL), PL_OK);
    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    out = *all;
    meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    meta_named(meta, "w3j")->value = "e3nn-0.5";
    out.meta = meta;
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
    assert_int_equal(nn_model_read(&back, b->path, b->mem, NULL), PL_OK);
    for (int32_t p = 0; p < g->n_paths; p++)
        for (int32_t k = 0; k < g->path[p].n_freq; k++) {
            size_t row = (size_t)(g->path[p].f0 + k); /* o = c = 0 */
            int j = abs(g->path[p].d_in - g->path[p].d_out) + k;
            float want = b->m.params[w2->at + row * 32 + 7], got = back->params[w2->at + row * 32 + 7];
            bool flips = nn_w3j_sign_differs(j, g->path[p].d_in, g->path[p].d_out);
            assert_true(got == (flips ? -want : want));
            flipped += flips;
        }
    assert_int_equal(flipped, 3); /* (1,2,2) (2,1,2) (2,2,1) at degrees to 2 */
}

/* The metadata section `model` of the file, with one text replaced. */
static void model_section_change(bench *b, const char *from, const char *to)
{
    nn_tensors *all, out;
    nn_meta *meta;
    const char *at;

    assert_int_equal(nn_tensors_read(&all, b->path, b->mem, NULL), PL_OK);
    out = *all;
    meta = PL_NEW(b->mem, nn_meta, all->n_meta);
    memcpy(meta, all->meta, (size_t)all->n_meta * sizeof *meta);
    at = strstr(meta_named(meta, "model")->value, from);
    assert_non_null(at);
    meta_named(meta, "model")->value = pl_sprintf(b->mem, "%.*s%s%s", (int)(at - meta_named(meta, "model")->value),
                                                  meta_named(meta, "model")->value, to, at + strlen(from));
    out.meta = meta;
    assert_int_equal(nn_tensors_write(b->path, &out, NULL), PL_OK);
}

static void files_without_parity_are_of_the_published_network(void **state)
{
    bench *b = *state;
    nn_model_file *back = written_and_read(b);

    assert_int_equal(back->conf.parity, NN_PARITY_BOTH);
    model_section_change(b, ",\"parity\":\"both\"", "");
    back = NULL;
    assert_int_equal(nn_model_read(&back, b->path, b->mem, NULL), PL_OK);
    assert_int_equal(back->conf.parity, NN_PARITY_BOTH);
    assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
}

/* Fewer rows: parameters of one parity are not accepted for the other. */
static void parity_is_kept_and_must_fit_the_tensors(void **state)
{
    bench *b = *state;
    nn_model_file *back;
    nn_se3 *model;
    pl_error err = { 0 };

    b->m.conf.parity = NN_PARITY_NATURAL;
    assert_int_equal(nn_se3_plan(&model, &b->m.conf, b->mem, NULL), PL_OK);
    assert_true(model->n_floats < b->m.model->n_floats);
    b->m.model = model;
    back = written_and_read(b);
    assert_int_equal(back->conf.parity, NN_PARITY_NATURAL);
    assert_memory_equal(back->params, b->m.params, model->n_floats * sizeof(float));
    model_section_change(b, "natural", "both");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "the model needs"));
    nn_model_write(&b->m, b->path, NULL);
    model_section_change(b, "natural", "left");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "left is not known"));
}

/* Format 6: an older program would compute without the envelope. */
static void a_radial_basis_and_an_envelope_are_kept(void **state)
{
    static const nn_radial_conf kinds[] = { { NN_BASIS_BESSEL, 6, NN_ENVELOPE_POLYNOMIAL, 4.5 },
                                            { NN_BASIS_GAUSSIAN, 9, NN_ENVELOPE_NONE, 3 },
                                            { NN_BASIS_DISTANCE, 0, NN_ENVELOPE_POLYNOMIAL, 2.25 } };
    bench *b = *state;
    nn_model_file *back = NULL;
    pl_error err = { 0 };

    for (int k = 0; k < 3; k++) {
        b->m.conf.radial = kinds[k];
        assert_true(made_network(&b->m, 1, b->mem));
        back = written_and_read(b);
        assert_true(nn_radial_same(&back->conf.radial, &kinds[k]));
        assert_int_equal(back->conf.radial.number, kinds[k].number);
        assert_non_null(strstr(nn_model_metadata(back, b->mem), "\"format_version\":\"6\""));
        assert_memory_equal(back->params, b->m.params, b->m.model->n_floats * sizeof(float));
    }
    b->m.conf.norm = NN_NORMS_GATE;
    assert_true(made_network(&b->m, 1, b->mem));
    assert_int_equal(written_and_read(b)->conf.norm, NN_NORMS_GATE);
    model_section_change(b, "polynomial", "cosine");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "cosine is not known"));
    nn_model_write(&b->m, b->path, NULL);
    model_section_change(b, "2.25", "-1.0");
    assert_int_equal(nn_model_read(&back, b->path, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "radial.cutoff"));
}

#define WITH_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_open, bench_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(what_is_written_is_read),
        WITH_BENCH(bfloat16_holds_exactly_the_rounded_numbers),
        WITH_BENCH(the_same_model_gives_the_same_bytes),
        WITH_BENCH(every_flipped_bit_is_noticed),
        WITH_BENCH(a_damaged_checksum_is_not_taken_for_none),
        WITH_BENCH(a_file_without_a_checksum_is_read_and_known),
        WITH_BENCH(an_interval_that_is_not_known_is_not_written),
        WITH_BENCH(the_range_is_written_and_read),
        WITH_BENCH(several_targets_are_written_and_read),
        WITH_BENCH(the_domain_is_written_and_read),
        WITH_BENCH(values_have_their_linear_part),
        WITH_BENCH(a_classifier_says_so_and_gives_probabilities),
        WITH_BENCH(a_model_of_noise_alone_is_only_a_start),
        WITH_BENCH(other_graphs_are_refused_by_name),
        WITH_BENCH(whatever_is_wrong_is_named),
        WITH_BENCH(truncated_and_foreign_files_are_refused),
        WITH_BENCH(weights_of_the_other_convention_are_moved),
        WITH_BENCH(files_without_parity_are_of_the_published_network),
        WITH_BENCH(parity_is_kept_and_must_fit_the_tensors),
        WITH_BENCH(a_radial_basis_and_an_envelope_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
