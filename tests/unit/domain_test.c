/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "models/domain/domain.h"
#include "models/domain/seen.h"
#include "pipeline/base/rng.h"
#include "tests/unit/guarded.h"

static bool guards; /* arrays of arenas have nothing behind them; linked with -Wl,--wrap=pl_arena_get */
void *__real_pl_arena_get(pl_arena *from, size_t n, size_t size);
void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size);

void *__wrap_pl_arena_get(pl_arena *from, size_t n, size_t size)
{
    return guards ? guarded(n, size) : __real_pl_arena_get(from, n, size);
}

enum { MANY = 40 };

typedef struct bench {
    pl_arena *mem;
    nn_domain_molecule all[MANY];
    nn_domain d;
} bench;

/* Key i of a few sorted keys; the first two molecules have none. */
static void key_of(char key[NN_DOMAIN_KEY + 1], int i)
{
    memset(key, 0, NN_DOMAIN_KEY + 1);
    if (i >= 2)
        (void)snprintf(key, NN_DOMAIN_KEY + 1, "AAAAAAAAAA%c%c%c%c-UHFFFAOYSA-N", 'A', 'B', 'A' + i / 26, 'A' + i % 26);
}

static void fill(bench *b)
{
    pl_rng rng = pl_rng_at(11, 0, 0);

    for (int i = 0; i < MANY; i++) {
        b->all[i] = (nn_domain_molecule){ .key = "" };
        key_of(b->all[i].key, i);
        for (int k = 0; k < 40; k++) {
            const uint64_t bit = pl_rng_below(&rng, 200);
            b->all[i].print.word[bit / 64] |= UINT64_C(1) << bit % 64;
        }
    }
    b->all[30].print = b->all[7].print;
}

static int setup(void **state)
{
    static bench b;

    b.mem = pl_arena_new(0);
    fill(&b);
    *state = &b;
    return b.mem != NULL && nn_domain_make(&b.d, b.all, MANY, b.mem, NULL) == PL_OK ? 0 : -1;
}

static int teardown(void **state)
{
    pl_arena_free(((bench *)*state)->mem);
    return 0;
}

static void any_order_makes_the_same_domain(void **state)
{
    bench *b = *state;
    nn_domain other;

    fill(b);
    for (int i = 0; i < MANY / 2; i++) {
        const nn_domain_molecule t = b->all[i];
        b->all[i] = b->all[MANY - 1 - i];
        b->all[MANY - 1 - i] = t;
    }
    assert_int_equal(nn_domain_make(&other, b->all, MANY, b->mem, NULL), PL_OK);
    assert_true(nn_domain_same(&b->d, &other));
    for (int i = 0; i < MANY; i++) {
        char key[NN_DOMAIN_KEY + 1];
        key_of(key, i);
        assert_string_equal(other.key[i], key);
        assert_int_equal(other.folds[i / CH_FOLD].ones[i % CH_FOLD], ch_fingerprint_ones(&other.print[i]));
    }
    ((char *)(uintptr_t)&other.print[MANY - 1])[CH_FINGERPRINT_BYTES - 1] ^= 1; /* other's own memory */
    assert_false(nn_domain_same(&b->d, &other));
    ((char *)(uintptr_t)&other.print[MANY - 1])[CH_FINGERPRINT_BYTES - 1] ^= 1;
    assert_true(nn_domain_same(&b->d, &other));
    ((char *)(uintptr_t)other.key[MANY - 1])[NN_DOMAIN_KEY - 1] ^= 1;
    assert_false(nn_domain_same(&b->d, &other));
    assert_int_equal(nn_domain_make(&other, b->all, MANY - 1, b->mem, NULL), PL_OK);
    assert_false(nn_domain_same(&b->d, &other));
    assert_true(nn_domain_same(&(nn_domain){ 0 }, &(nn_domain){ 0 }));
    assert_false(nn_domain_same(&(nn_domain){ 0 }, &other));
}

static void ties_of_the_nearest_go_to_the_smallest_key(void **state)
{
    bench *b = *state;
    const nn_domain none = { 0 };
    char seven[NN_DOMAIN_KEY + 1];
    ch_fingerprint to[3] = { b->d.print[30], b->d.print[7], { { 0 } } };
    const double ones = ch_fingerprint_ones(&b->d.print[7]);
    nn_near near[3];

    key_of(seven, 7);
    to[1].word[31] = 1;
    nn_domain_nearest(near, &b->d, 0, to, 3);
    assert_true(near[0].alike == 1 && near[1].alike == ones / (ones + 1) && near[2].alike == 0);
    assert_string_equal(near[0].key, seven);
    assert_string_equal(near[1].key, seven);
    assert_string_equal(near[2].key, b->d.key[0]); /* all are equally dissimilar */
    nn_domain_nearest(near, &none, 0, to, 3);
    for (int i = 0; i < 3; i++)
        assert_true(isnan(near[i].alike) && near[i].key == NULL);
}

/* Bytes of the heap and of what it maps by itself; 0 where the C library does not tell. */
static size_t heap_bytes(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
#else
    return 0;
#endif
}

/* A domain is searched in parts. It takes less than 1 kB a molecule. */
static void a_large_domain_is_searched_to_its_end(void **state)
{
    enum { LARGE = 3000 };
    bench *b = *state;
    nn_domain_molecule *all = PL_NEW(b->mem, nn_domain_molecule, LARGE);
    ch_fingerprint to[LARGE / 100];
    nn_near near[LARGE / 100];
    nn_domain d;
    size_t before;

    for (int i = 0; i < LARGE; i++) {
        all[i].print.word[i % 32] = (uint64_t)(1 + i / 32);
        key_of(all[i].key, 2 + i % 600);
    }
    before = heap_bytes();
    assert_int_equal(nn_domain_make(&d, all, LARGE, b->mem, NULL), PL_OK);
    assert_in_range(heap_bytes() - before, 0, LARGE * 1000);
    guards = true;
    assert_int_equal(nn_domain_make(&d, all, LARGE, b->mem, NULL), PL_OK);
    guards = false;
    for (int i = 0; i < LARGE / 100; i++)
        to[i] = d.print[100 * i + 99];
    nn_domain_nearest(near, &d, 0, to, LARGE / 100);
    for (int i = 0; i < LARGE / 100; i++) {
        int32_t first = 0;
        while (memcmp(&d.print[first], &to[i], sizeof to[i]) != 0)
            first++;
        assert_true(near[i].alike == 1 && near[i].key == d.key[first]);
    }
}

/* As many at once as are compared together, one more and one less: each is as if it were asked alone, and nothing is written behind. */
static void many_candidates_are_asked_at_once(void **state)
{
    enum { MOST = 385 };
    static ch_fingerprint to[MOST];
    static nn_near near[MOST + 1];
    bench *b = *state;

    for (int i = 0; i < MOST; i++) {
        to[i] = b->d.print[i % MANY];
        to[i].word[20] = (uint64_t)i * 0x9E3779B97F4A7C15u;
    }
    for (int n = 127; n <= MOST; n += n % 128 == 1 ? 126 : 1) {
        memset(near, 0, sizeof near);
        nn_domain_nearest(near, &b->d, 0, to, n);
        for (int i = 0; i < n; i++) {
            nn_near one;
            nn_domain_nearest(&one, &b->d, 0, &to[i], 1);
            assert_true(near[i].alike == one.alike && near[i].key == one.key);
        }
        assert_true(near[n].alike == 0 && near[n].key == NULL);
    }
}

/* The two tensors of files of earlier versions; data in b->mem. */
static void plain_tensors(nn_tensor t[2], bench *b)
{
    char *keys = PL_NEW(b->mem, char, MANY *NN_DOMAIN_KEY);

    for (int i = 0; i < MANY; i++)
        memcpy(keys + i * NN_DOMAIN_KEY, b->d.key[i], NN_DOMAIN_KEY);
    t[0] = (nn_tensor){
        .name = "domain.fingerprint", .dtype = NN_U8, .n_dims = 2, .dims = { MANY, 256 }, .count = MANY * 256, .data = b->d.print
    };
    t[1] = (nn_tensor){ .name = "domain.inchikey",
                        .dtype = NN_U8,
                        .n_dims = 2,
                        .dims = { MANY, NN_DOMAIN_KEY },
                        .count = MANY * NN_DOMAIN_KEY,
                        .data = keys };
}

static void tensors_of_earlier_versions_are_read(void **state)
{
    bench *b = *state;
    nn_tensor t[2];
    nn_tensors all = { .n = 2, .t = t };
    nn_domain back;

    plain_tensors(t, b);
    assert_true(nn_domain_has(t[0].name) && nn_domain_has(t[1].name));
    assert_int_equal(nn_domain_take(&back, &all, 1, b->mem, NULL), PL_OK);
    assert_true(nn_domain_same(&b->d, &back));
}

static void tensors_hold_all_of_it(void **state)
{
    bench *b = *state;
    nn_tensor t[NN_DOMAIN_TENSORS];
    nn_tensors all = { .n = 1, .t = t };
    nn_domain back;
    int n;

    guards = true;
    assert_int_equal(nn_domain_tensors(t, &n, &b->d, b->mem, NULL), PL_OK);
    assert_true(nn_domain_has(t[0].name) && !nn_domain_has("domain"));
    assert_int_equal(nn_domain_take(&back, &all, 1, b->mem, NULL), PL_OK);
    guards = false;
    assert_true(nn_domain_same(&b->d, &back) && memcmp(b->d.folds, back.folds, MANY / CH_FOLD * sizeof *back.folds) == 0);
    all.n = 0;
    assert_int_equal(nn_domain_take(&back, &all, 1, b->mem, NULL), PL_OK);
    assert_int_equal(back.n, 0);
}

static void values_are_kept_beside_the_molecules(void **state)
{
    bench *b = *state;
    nn_tensor t[NN_DOMAIN_TENSORS];
    nn_tensors all = { .n = NN_DOMAIN_TENSORS, .t = t };
    float *value = PL_NEW(b->mem, float, 2 * b->d.n);
    nn_domain back, d = b->d;
    pl_error err = { 0 };
    int n;

    for (int32_t i = 0; i < 2 * d.n; i++)
        value[i] = i == 2 * d.n - 1 ? NAN : (float)i / 3;
    d.value = value;
    d.n_values = 2;
    assert_int_equal(nn_domain_tensors(t, &n, &d, b->mem, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_true(nn_domain_has(t[1].name));
    assert_int_equal(nn_domain_take(&back, &all, 2, b->mem, NULL), PL_OK);
    assert_int_equal(back.n_values, 2);
    assert_memory_equal(back.value, value, 2 * (size_t)d.n * sizeof *value);
    assert_null(back.only[0]);
    for (int32_t i = 0; i < d.n; i++)
        assert_true((back.only[1][i / CH_FOLD] >> i % CH_FOLD & 1) == (i < d.n - 1));
    assert_int_equal(nn_domain_take(&back, &all, 3, b->mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "domain.value is not F32 of molecules x targets"));
    t[1].dims[0]--;
    assert_int_equal(nn_domain_take(&back, &all, 2, b->mem, NULL), PL_EDATA);
    t[1] = t[0]; /* values without molecules */
    all.t = t + 1;
    all.n = 1;
    t[1].name = "domain.value";
    assert_int_equal(nn_domain_take(&back, &all, 2, b->mem, NULL), PL_EDATA);
}

/* Target 0 is known of all, 1 of every third molecule but the first ones, 2 of none, 3 of the same as 1. */
static void the_nearest_has_the_target(void **state)
{
    enum { TARGETS = 4 };
    bench *b = *state;
    nn_domain d = b->d;
    float *value = PL_NEW(b->mem, float, TARGETS *MANY);
    nn_near near[MANY];

    for (int i = 0; i < TARGETS * MANY; i++)
        value[i] = i % TARGETS == 2 || (i % TARGETS > 0 && i / TARGETS % 3 != 2) ? NAN : 1;
    assert_int_equal(nn_domain_measured(&d, value, TARGETS, b->mem, NULL), PL_OK);
    for (int k = 0; k < TARGETS; k++) {
        nn_domain_nearest(near, &d, k, d.print, MANY);
        for (int32_t i = 0; i < MANY; i++) {
            int32_t want = k == 0 ? 0 : 2;
            for (int32_t j = want; j < MANY; j += k == 0 ? 1 : 3)
                if (ch_fingerprint_alike(&d.print[i], &d.print[j]) > ch_fingerprint_alike(&d.print[i], &d.print[want]))
                    want = j;
            assert_true(k == 2 ? isnan(near[i].alike) : near[i].alike == ch_fingerprint_alike(&d.print[i], &d.print[want]));
            assert_ptr_equal(near[i].key, k == 2 ? NULL : d.key[want]);
        }
    }
    nn_domain_nearest(near, &d, 1, &(ch_fingerprint){ { 0 } }, 1);
    assert_true(near[0].alike == 0 && near[0].key == d.key[2]); /* all are equally dissimilar */
    assert_true(nn_domain_same_of(&d, 1, &d, 3) && nn_domain_same_of(&d, 0, &b->d, 0));
    assert_false(nn_domain_same_of(&d, 0, &d, 1) || nn_domain_same_of(&d, 1, &d, 0) || nn_domain_same_of(&d, 1, &d, 2));
}

/* t[from .. 2); t is whole again afterwards. */
static void refused(bench *b, nn_tensor t[2], int from, int n, const char *why)
{
    const nn_tensors all = { .n = n, .t = t + from };
    nn_domain d;
    pl_error err = { 0 };

    assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, &err), PL_EDATA);
    if (strstr(err.text, why) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, why);
    plain_tensors(t, b);
}

static void tensors_that_are_wrong_are_refused(void **state)
{
    bench *b = *state;
    nn_tensor t[2];

    plain_tensors(t, b);
    refused(b, t, 0, 1, "tensor domain.inchikey is missing beside domain.fingerprint");
    refused(b, t, 1, 1, "tensor domain.fingerprint is missing beside domain.inchikey");
    t[0].dtype = NN_BF16;
    refused(b, t, 0, 2, "tensor domain.fingerprint is not U8 of molecules x 256");
    t[0].dims[1] = 128;
    refused(b, t, 0, 2, "tensor domain.fingerprint is not U8 of molecules x 256");
    t[1].dims[0]--;
    refused(b, t, 0, 2, "tensor domain.inchikey is not U8 of molecules x 27");
    t[1].n_dims = 1;
    refused(b, t, 0, 2, "tensor domain.inchikey is not U8 of molecules x 27");
    t[0].dims[0] = t[1].dims[0] = NN_DOMAIN_MAX + 1;
    refused(b, t, 0, 2, "tensor domain.fingerprint has more than 1000000 molecules");
    ((char *)(uintptr_t)t[1].data)[5 * NN_DOMAIN_KEY + 3] = '\n';
    refused(b, t, 0, 2, "tensor domain.inchikey: row 5 is no InChIKey, or not in order");
    ((char *)(uintptr_t)t[1].data)[5 * NN_DOMAIN_KEY] = 'Z';
    refused(b, t, 0, 2, "row 6 is no InChIKey, or not in order");
    ((char *)(uintptr_t)t[1].data)[1 * NN_DOMAIN_KEY + 26] = 'Z';
    refused(b, t, 0, 2, "row 1 is no InChIKey");
    memcpy((char *)(uintptr_t)t[1].data, (const char *)t[1].data + 9 * NN_DOMAIN_KEY, NN_DOMAIN_KEY); /* before one that is empty */
    refused(b, t, 0, 2, "row 1 is no InChIKey, or not in order");
}

/* Changes byte `at` of the packed tensor, or removes its last `cut` bytes. */
static pl_error packed_error; /* of the last one that was refused */

static pl_code packed_with(bench *b, int64_t at, int64_t cut)
{
    nn_tensor t[NN_DOMAIN_TENSORS];
    const nn_tensors all = { .n = 1, .t = t };
    nn_domain d;
    int n;

    assert_int_equal(nn_domain_tensors(t, &n, &b->d, b->mem, NULL), PL_OK);
    if (at >= 0)
        ((unsigned char *)(uintptr_t)t[0].data)[at % t[0].dims[0]] ^= 0x41;
    t[0].dims[0] -= cut;
    packed_error = (pl_error){ 0 };
    return nn_domain_take(&d, &all, 1, b->mem, &packed_error);
}

/* zlib's own checksum is corrected, too. */
static void a_damaged_packed_tensor_is_refused(void **state)
{
    bench *b = *state;
    nn_tensor t[2 + NN_DOMAIN_TENSORS];
    nn_tensors all = { .n = 3, .t = t };
    nn_domain d;
    pl_error err = { 0 };
    int n;

    assert_int_equal(packed_with(b, -1, 0), PL_OK);
    for (int64_t at = 0; at < 300; at++)
        if (at != 5) /* a flag of zlib that changes nothing */
            assert_int_equal(packed_with(b, at, 0), PL_EDATA);
    for (int64_t cut = 1; cut < 40; cut++)
        assert_int_equal(packed_with(b, -1, cut), PL_EDATA);
    assert_string_equal(packed_error.text, "tensor domain.zlib is damaged: it does not hold 40 molecules");
    assert_int_equal(packed_with(b, 3, 0), PL_EDATA); /* the highest byte of the number */
    assert_string_equal(packed_error.text, "tensor domain.zlib is not U8 with a number of molecules");
    plain_tensors(t, b);
    assert_int_equal(nn_domain_tensors(t + 2, &n, &b->d, b->mem, NULL), PL_OK);
    assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, &err), PL_EDATA);
    assert_string_equal(err.text, "tensors domain.zlib and domain.fingerprint are both there");
    all = (nn_tensors){ .n = 2, .t = t + 1 };
    assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, &err), PL_EDATA);
    assert_string_equal(err.text, "tensors domain.zlib and domain.inchikey are both there");
}

/* Its bytes are right. */
static void a_packed_tensor_of_another_form_is_refused(void **state)
{
    bench *b = *state;
    nn_tensor t[NN_DOMAIN_TENSORS];

    for (int k = 0; k < 3; k++) {
        const nn_tensors all = { .n = 1, .t = t };
        nn_domain d;
        pl_error err = { 0 };
        int n;
        assert_int_equal(nn_domain_tensors(t, &n, &b->d, b->mem, NULL), PL_OK);
        assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, NULL), PL_OK);
        if (k == 0)
            t[0].dtype = NN_I32;
        else if (k == 1)
            t[0].n_dims = 2;
        else
            t[0].dims[0] = 3; /* and no room for the number */
        assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, &err), PL_EDATA);
        assert_string_equal(err.text, "tensor domain.zlib is not U8 with a number of molecules");
    }
}

static void a_refused_allocation_is_an_error(void **state)
{
    bench *b = *state;
    nn_tensor t[NN_DOMAIN_TENSORS];
    nn_tensors all = { .n = 1, .t = t };
    nn_domain d, with_values = b->d;
    int n;

    assert_int_equal(nn_domain_tensors(t, &n, &b->d, b->mem, NULL), PL_OK);
    for (int nth = 1; nth <= 3; nth++) {
        pl_arena_refuse(nth);
        assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, NULL), PL_ENOMEM);
        pl_arena_refuse(nth);
        assert_int_equal(nn_domain_make(&d, b->all, MANY, b->mem, NULL), PL_ENOMEM);
    }
    pl_arena_refuse(1);
    assert_int_equal(nn_domain_tensors(t, &n, &b->d, b->mem, NULL), PL_ENOMEM);
    pl_arena_refuse(0);
    with_values.value = PL_NEW(b->mem, float, MANY);
    with_values.n_values = 1;
    ((float *)(uintptr_t)with_values.value)[3] = NAN;
    assert_int_equal(nn_domain_tensors(t, &n, &with_values, b->mem, NULL), PL_OK);
    all.n = 2;
    for (int nth = 4; nth <= 6; nth++) { /* behind those of the molecules */
        pl_arena_refuse(nth);
        assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, NULL), PL_ENOMEM);
    }
    pl_arena_refuse(0);
    assert_int_equal(nn_domain_take(&d, &all, 1, b->mem, NULL), PL_OK);
}

static void refused_memory_of_validation_molecules_is_said(void **state)
{
    char key[2][NN_SEEN_KEY + 1] = { "AAAAAAAAAAAAAA", "BBBBBBBBBBBBBB" };
    pl_arena *mem = pl_arena_new(0);
    nn_seen s, back;
    nn_tensor t;
    pl_error err[3] = { { 0 } };

    (void)state;
    assert_int_equal(nn_seen_make(&s, key, 2, 2, true, mem, NULL), PL_OK);
    assert_int_equal(nn_seen_tensor(&t, &s, mem, NULL), PL_OK);
    pl_arena_refuse(1);
    assert_int_equal(nn_seen_make(&back, key, 2, 2, true, mem, &err[0]), PL_ENOMEM);
    pl_arena_refuse(1);
    assert_int_equal(nn_seen_take(&back, &(nn_tensors){ .n = 1, .t = &t }, mem, &err[1]), PL_ENOMEM);
    assert_false(back.known);
    pl_arena_refuse(1);
    assert_int_equal(nn_seen_tensor(&t, &s, mem, &err[2]), PL_ENOMEM);
    pl_arena_refuse(2);
    assert_int_equal(nn_seen_tensor(&t, &s, mem, NULL), PL_ENOMEM);
    pl_arena_refuse(0);
    for (int k = 0; k < 3; k++)
        assert_string_equal(err[k].text, "the validation molecules of a model, 2: out of memory");
    pl_arena_free(mem);
}

/* Keys of a few molecules, out of order, one twice, and one that has none. */
static void validation_molecules_are_found_by_their_first_block(void **state)
{
    static const char *const keys[] = { "CCCCCCCCCCCCCC", "AAAAAAAAAAAAAA", "BBBBBBBBBBBBBB", "AAAAAAAAAAAAAA", "" };
    static const struct {
        int n;
        int64_t max;
        bool all, has_b, has_c;
        int kept;
    } cases[] = { { 4, 100, true, true, true, 3 },
                  { 4, 2, false, true, false, 2 },
                  { 5, 100, false, true, true, 3 },
                  { 4, 0, false, false, false, 0 },
                  { 0, 0, true, false, false, 0 } };
    pl_arena *mem = pl_arena_new(0);

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char key[5][NN_SEEN_KEY + 1] = { "" };
        nn_seen s, back, none;
        nn_tensor t;
        for (int i = 0; i < cases[k].n; i++)
            strcpy(key[i], keys[i]);
        assert_int_equal(nn_seen_make(&s, key, cases[k].n, cases[k].max, true, mem, NULL), PL_OK);
        assert_true(s.known && s.all == cases[k].all && s.n == cases[k].kept);
        assert_int_equal(nn_seen_has(&s, "BBBBBBBBBBBBBB-UHFFFAOYSA-N"), cases[k].has_b);
        assert_int_equal(nn_seen_has(&s, "CCCCCCCCCCCCCC-ZZZZZZZZZZ-N"), cases[k].has_c);
        assert_false(nn_seen_has(&s, "DDDDDDDDDDDDDD-UHFFFAOYSA-N") || nn_seen_has(&s, "BBBB") || nn_seen_has(&s, ""));
        assert_int_equal(nn_seen_tensor(&t, &s, mem, NULL), PL_OK);
        assert_true(nn_seen_is(t.name));
        assert_int_equal(nn_seen_take(&back, &(nn_tensors){ .n = 1, .t = &t }, mem, NULL), PL_OK);
        assert_true(nn_seen_same(&s, &back));
        assert_int_equal(nn_seen_take(&none, &(nn_tensors){ 0 }, mem, NULL), PL_OK);
        assert_true(!none.known && !nn_seen_same(&s, &none));
    }
    pl_arena_free(mem);
}

/* Each byte of the tensor is changed in turn: the file is refused, or read as valid content. */
static void damaged_validation_molecules_are_refused(void **state)
{
    char key[2][NN_SEEN_KEY + 1] = { "AAAAAAAAAAAAAA", "BBBBBBBBBBBBBB" };
    pl_arena *mem = pl_arena_new(0);
    nn_seen s, back;
    nn_tensor t;
    unsigned char bytes[256];
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(nn_seen_make(&s, key, 2, 2, true, mem, NULL), PL_OK);
    assert_int_equal(nn_seen_tensor(&t, &s, mem, NULL), PL_OK);
    assert_true(t.count < sizeof bytes);
    for (size_t at = 0; at < t.count; at++) {
        nn_tensor wrong = t;
        memcpy(bytes, t.data, t.count);
        bytes[at] ^= 0x15;
        wrong.data = bytes;
        assert_int_equal(nn_seen_take(&back, &(nn_tensors){ .n = 1, .t = &wrong }, mem, &err), PL_EDATA);
        if (at == 4) /* neither 0 nor 1 */
            assert_string_equal(err.text, "tensor seen.zlib has something else than blocks of InChIKeys in order");
        wrong.dims[0] = (int64_t)at;
        assert_int_equal(nn_seen_take(&back, &(nn_tensors){ .n = 1, .t = &wrong }, mem, NULL), PL_EDATA);
    }
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_order_makes_the_same_domain),
        cmocka_unit_test(ties_of_the_nearest_go_to_the_smallest_key),
        cmocka_unit_test(a_large_domain_is_searched_to_its_end),
        cmocka_unit_test(many_candidates_are_asked_at_once),
        cmocka_unit_test(tensors_hold_all_of_it),
        cmocka_unit_test(values_are_kept_beside_the_molecules),
        cmocka_unit_test(the_nearest_has_the_target),
        cmocka_unit_test(tensors_of_earlier_versions_are_read),
        cmocka_unit_test(tensors_that_are_wrong_are_refused),
        cmocka_unit_test(a_damaged_packed_tensor_is_refused),
        cmocka_unit_test(a_packed_tensor_of_another_form_is_refused),
        cmocka_unit_test(a_refused_allocation_is_an_error),
        cmocka_unit_test(refused_memory_of_validation_molecules_is_said),
        cmocka_unit_test(validation_molecules_are_found_by_their_first_block),
        cmocka_unit_test(damaged_validation_molecules_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
