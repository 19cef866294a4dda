/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint stores, section by section, and which states are refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "tests/unit/saved_state.h"

static void what_is_saved_comes_back(void **state)
{
    bench *b = *state;
    nn_train_state s;
    nn_checkpoint_from from;
    pl_error why, err;

    assert_int_equal(load(b, &s, &from, &why, &err), PL_OK);
    assert_int_equal(from, NN_FROM_NOTHING);
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, &err), PL_OK);
    assert_int_equal(load(b, &s, &from, &why, &err), PL_OK);
    assert_int_equal(from, NN_FROM_LATEST);
    same(&s, &b->s);
    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "this");
}

/* ---- files of this program and of an older one, and damaged files with correct checksums ---- */

enum { HEADER = 16, ENTRY = 40, NUMBERS = HEADER + ENTRY, SCALE = 15 * 8, SECTIONS = 7 };

static uint32_t crc_of(const unsigned char *p, size_t n) { return (uint32_t)crc32(crc32(0, NULL, 0), p, (uInt)n); }

static void checksums_make(unsigned char *file, uint64_t at, uint64_t bytes)
{
    uint32_t crc = crc_of(file + at, bytes);

    memcpy(file + NUMBERS + 24, &bytes, 8);
    memcpy(file + NUMBERS + 32, &crc, 4);
    crc = crc_of(file + HEADER, (size_t)SECTIONS * ENTRY);
    memcpy(file + 12, &crc, 4);
}

static void the_scale_of_the_loss_is_new_in_the_numbers(void **state)
{
    static const double bad[] = { -1, (double)INFINITY, (double)NAN, 2.0 * NN_LOSS_SCALE_MAX };
    bench *b = *state;
    nn_train_state s, want = b->s;
    unsigned char *file;
    pl_error err = { 0 };
    pl_bytes whole;
    uint64_t at;

    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    file = malloc(whole.len);
    assert_non_null(file);
    memcpy(file, whole.data, whole.len);
    memcpy(&at, file + NUMBERS + 16, 8);
    checksums_make(file, at, SCALE); /* the file of an older program */
    state_make(&s, b->mem, true, 999);
    assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err), PL_OK);
    want.scale = (nn_loss_scale){ 0, 0 };
    want.seconds = 0;
    want.planned = 0;
    want.noise = (nn_noise_sum){ 0 };
    same(&s, &want);
    checksums_make(file, at, SCALE + 16); /* of one that knew no budget */
    want.scale = b->s.scale;
    assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err), PL_OK);
    same(&s, &want);
    checksums_make(file, at, SCALE + 32); /* of one that knew no noise */
    want.seconds = b->s.seconds;
    want.planned = b->s.planned;
    assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err), PL_OK);
    same(&s, &want);
    checksums_make(file, at, SCALE + 8);
    assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err), PL_EDATA);
    for (int i = 0; i < 4; i++) {
        memcpy(file + at + SCALE, &bad[i], sizeof bad[i]);
        checksums_make(file, at, SCALE + 16);
        assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err), PL_EDATA);
        assert_non_null(strstr(err.text, "damaged: the scale of the loss is "));
    }
    free(file);
}

/* One byte of the table of sections, with the table's own checksum corrected. */
static void table_says(bench *b, pl_bytes whole, size_t at, unsigned char value, const char *want)
{
    unsigned char *file = malloc(whole.len);
    nn_train_state s;
    pl_error err = { 0 };
    uint32_t crc;

    assert_non_null(file);
    memcpy(file, whole.data, whole.len);
    file[HEADER + at] = value;
    crc = crc_of(file + HEADER, (size_t)SECTIONS * ENTRY);
    memcpy(file + 12, &crc, 4);
    state_make(&s, b->mem, true, 999);
    assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err), PL_EDATA);
    assert_string_equal(err.text, want);
    free(file);
}

static void a_damaged_section_is_named(void **state)
{
    static const char *const names[SECTIONS] = { "identity", "numbers", "params", "m", "v", "ema", "best" };
    bench *b = *state;
    pl_bytes whole;
    char want[100];

    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    for (int k = 0; k < SECTIONS; k++) {
        const size_t entry = (size_t)k * ENTRY;
        uint64_t bytes;
        uint32_t crc;
        memcpy(&bytes, (const char *)whole.data + HEADER + entry + 24, 8);
        memcpy(&crc, (const char *)whole.data + HEADER + entry + 32, 4);
        (void)snprintf(want, sizeof want, "damaged: section %d is not %s", k, names[k]);
        table_says(b, whole, entry, '?', want);
        (void)snprintf(want, sizeof want, "torn: section %s ends after the file", names[k]);
        table_says(b, whole, entry + 16 + 5, 1, want);
        table_says(b, whole, entry + 24 + 5, 1, want);
        (void)snprintf(want, sizeof want, "damaged: the checksum of section %s is wrong", names[k]);
        table_says(b, whole, entry + 32, (unsigned char)~crc, want);
    }
}

/* A matrix of SOAP has bases, which are a section of their own; a state and a file agree on whether there are any. */
static void bases_come_back_and_states_without_refuse(void **state)
{
    static const nn_param matrix = { .n_dims = 2, .dims = { 37, 1 }, .size = N };
    bench *b = *state;
    nn_train_state s, none;
    pl_error err = { 0 };
    pl_bytes whole;

    b->s.tensor = &matrix;
    b->s.n_tensors = 1;
    assert_int_equal(nn_train_state_bases(&b->s, NN_SOAP, b->mem, NULL), PL_OK);
    assert_int_equal(b->s.n_bases, 2 * 37 * 48);
    for (size_t k = 0; k < b->s.n_bases; k++)
        b->s.bases[k] = (float)k;
    s = b->s;
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    assert_int_equal(nn_train_state_bases(&s, NN_SOAP, b->mem, NULL), PL_OK);
    assert_true(s.bases[5] == 0);
    assert_int_equal(nn_checkpoint_read(&s, "this", whole, &err), PL_OK);
    assert_memory_equal(s.bases, b->s.bases, s.n_bases * sizeof *s.bases);
    same(&s, &b->s);
    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "this");
    state_make(&none, b->mem, true, 999);
    assert_int_equal(nn_checkpoint_read(&none, "this", whole, &err), PL_EDATA);
    assert_string_equal(err.text, "is of a training with bases of the optimiser, this one has none");
    for (size_t at = whole.len - 1; at > whole.len - 3; at--) {
        ((unsigned char *)(uintptr_t)whole.data)[at] ^= 1;
        assert_int_equal(nn_checkpoint_read(&s, "this", whole, &err), PL_EDATA);
        assert_string_equal(err.text, "damaged: the checksum of section bases is wrong");
        ((unsigned char *)(uintptr_t)whole.data)[at] ^= 1;
    }
    none.done = false;
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &none, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    assert_int_equal(nn_checkpoint_read(&s, "this", whole, &err), PL_EDATA);
    assert_string_equal(err.text, "is of a training without bases of the optimiser, this one has them");
}

/* Another training of the same shape begins without what the last one learned of its gradients. */
static void a_new_training_begins_without_bases(void **state)
{
    static const nn_param matrix = { .n_dims = 2, .dims = { 37, 1 }, .size = N };
    static const nn_se3 plan = { .n_floats = N, .conf.outputs = 1, .head = { -1, -1, -1, -1 }, .param = &matrix, .n_params = 1 };
    bench *b = *state;
    nn_train_state s;

    assert_int_equal(nn_train_state_alloc(&s, &plan, true, 1, b->mem, NULL), PL_OK);
    assert_int_equal(nn_train_state_bases(&s, NN_SOAP, b->mem, NULL), PL_OK);
    s.bases[0] = s.bases[s.n_bases - 1] = 3;
    assert_int_equal(nn_train_state_again(&s, &plan, 2, b->mem, NULL), PL_OK);
    assert_int_equal(s.n_bases, 2 * 37 * 48);
    assert_true(s.bases[0] == 0 && s.bases[s.n_bases - 1] == 0);
    assert_int_equal(nn_train_state_bases(&s, NN_ADAMW, b->mem, NULL), PL_OK);
    assert_true(s.n_bases == 0 && s.bases == NULL);
}

/* Sections of another model's size, with correct checksums. */
static void sections_of_another_size_are_named(void **state)
{
    bench *b = *state;
    nn_train_state larger;
    pl_bytes whole;
    unsigned char *file;
    char want[100];

    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    file = malloc(whole.len);
    assert_non_null(file);
    for (int k = 2; k < SECTIONS; k++) {
        static const char *const names[SECTIONS] = { "", "", "params", "m", "v", "ema", "best" };
        unsigned char *entry = file + HEADER + (size_t)k * ENTRY;
        uint64_t at, bytes;
        uint32_t crc;
        pl_error err = { 0 };
        memcpy(file, whole.data, whole.len);
        memcpy(&at, entry + 16, 8);
        memcpy(&bytes, entry + 24, 8);
        bytes -= 4;
        crc = crc_of(file + at, bytes);
        memcpy(entry + 24, &bytes, 8);
        memcpy(entry + 32, &crc, 4);
        crc = crc_of(file + HEADER, (size_t)SECTIONS * ENTRY);
        memcpy(file + 12, &crc, 4);
        state_make(&larger, b->mem, true, 999);
        assert_int_equal(nn_checkpoint_read(&larger, "this", (pl_bytes){ file, whole.len }, &err), PL_EDATA);
        (void)snprintf(want, sizeof want, "section %s has %d bytes, this model needs %d", names[k], 4 * N - 4, 4 * N);
        assert_string_equal(err.text, want);
    }
    free(file);
}

static void each_single_bit_of_a_file_is_noticed(void **state)
{
    bench *b = *state;
    nn_train_state s;
    pl_bytes whole;
    unsigned char *file;

    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    file = malloc(whole.len);
    assert_non_null(file);
    memcpy(file, whole.data, whole.len);
    state_make(&s, b->mem, true, 999);
    assert_int_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, NULL), PL_OK);
    for (size_t bit = 0; bit < 8 * whole.len; bit++) {
        file[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_not_equal(nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, NULL), PL_OK);
        file[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    print_message("%zu bits of %zu bytes, each refused\n", 8 * whole.len, whole.len);
    free(file);
}

static void numbers_that_no_training_has_are_refused(void **state)
{
    static const struct {
        int at; /* in the numbers, of 8 bytes */
        int64_t value;
        const char *why;
    } wrong[] = { { 2, -1, "damaged: a counter is negative" },
                  { 3, -1, "damaged: a counter is negative" },
                  { 4, -1, "damaged: a counter is negative" },
                  { 5, -2, "damaged: a counter is negative" },
                  { 8, -1, "damaged: a counter is negative" },
                  { 16, -1, "damaged: a counter is negative" },
                  { 18, -1, "damaged: a counter is negative" },
                  { 20, -1, "damaged: a counter is negative" },
                  { 0, N + 1, "this one has" },
                  { 1, 2, "this one has" },
                  { 10, 0, "this one has" } };
    static const double seconds[] = { -1, (double)INFINITY, (double)NAN };
    bench *b = *state;
    unsigned char *file;
    pl_bytes whole;
    uint64_t at;
    nn_train_state s;

    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    file = malloc(whole.len);
    assert_non_null(file);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong + 3; i++) {
        const size_t k = sizeof wrong / sizeof *wrong;
        pl_error err = { 0 };
        memcpy(file, whole.data, whole.len);
        memcpy(&at, file + NUMBERS + 16, 8);
        memcpy(file + at + 8 * (size_t)(i < k ? wrong[i].at : 17), i < k ? (const void *)&wrong[i].value : &seconds[i - k], 8);
        checksums_make(file, at, SCALE + 48);
        state_make(&s, b->mem, true, 999);
        if (nn_checkpoint_read(&s, "this", (pl_bytes){ file, whole.len }, &err) != PL_EDATA ||
            strstr(err.text, i < k ? wrong[i].why : "seconds were used") == NULL)
            fail_msg("%zu: \"%s\"", i, err.text);
    }
    free(file);
}

/* The least that each number can be. */
static void a_state_before_its_first_step_is_kept(void **state)
{
    bench *b = *state;
    nn_train_state s, back;
    pl_bytes whole;

    state_make(&s, b->mem, true, 2);
    s.step = s.epoch = s.cursor = s.bad_run = s.bad_total = s.planned = 0;
    s.best_epoch = -1;
    s.best_error = s.seconds = 0;
    s.seen = (nn_loss_sum){ 0 };
    s.scale = (nn_loss_scale){ 0, 0 };
    s.noise = (nn_noise_sum){ 0 };
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &s, true, NULL), PL_OK);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    state_make(&back, b->mem, true, 999);
    assert_int_equal(nn_checkpoint_read(&back, "this", whole, NULL), PL_OK);
    same(&back, &s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(what_is_saved_comes_back),
        WITH_BENCH(a_state_before_its_first_step_is_kept),
        WITH_BENCH(a_damaged_section_is_named),
        WITH_BENCH(bases_come_back_and_states_without_refuse),
        WITH_BENCH(a_new_training_begins_without_bases),
        WITH_BENCH(sections_of_another_size_are_named),
        WITH_BENCH(each_single_bit_of_a_file_is_noticed),
        WITH_BENCH(the_scale_of_the_loss_is_new_in_the_numbers),
        WITH_BENCH(numbers_that_no_training_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
