/* SPDX-License-Identifier: Apache-2.0 */
/* The two files of checkpoints: which of them is read, and what is said if one or both are bad. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/saved_state.h"

static void save_two(bench *b, nn_train_state *second)
{
    state_make(second, b->mem, true, 2);
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &b->s, true, NULL), PL_OK);
    assert_int_equal(nn_checkpoint_save(b->dir, "this", second, true, NULL), PL_OK);
}

static void write_file(const char *path, const void *data, size_t len)
{
    assert_int_equal(pl_file_write(path, (pl_bytes){ data, len }, NULL), PL_OK);
}

/* The state in one of the two files. */
static void in_file(bench *b, const char *path, nn_train_state *s)
{
    pl_bytes whole;

    state_make(s, b->mem, true, 999);
    assert_int_equal(pl_file_read(&whole, path, b->mem, NULL), PL_OK);
    assert_int_equal(nn_checkpoint_read(s, "this", whole, NULL), PL_OK);
}

/* Cut after every byte; then flip a bit of every byte. */
static void a_torn_or_flipped_latest_gives_previous(void **state)
{
    bench *b = *state;
    nn_train_state second, s;
    pl_bytes whole;

    save_two(b, &second);
    assert_int_equal(pl_file_read(&whole, b->latest, b->mem, NULL), PL_OK);
    for (size_t at = 0; at < 2 * whole.len; at++) {
        unsigned char *copy = malloc(whole.len);
        nn_checkpoint_from from;
        pl_error why = { 0 }, err = { 0 };
        bool cut = at < whole.len;

        assert_non_null(copy);
        memcpy(copy, whole.data, whole.len);
        if (!cut)
            copy[at - whole.len] ^= (unsigned char)(1u << at % 8);
        if (at % 7 == 0) { /* sometimes through a file on disk, always through the parser */
            write_file(b->latest, copy, cut ? at : whole.len);
            assert_int_equal(load(b, &s, &from, &why, &err), PL_OK);
            assert_int_equal(from, NN_FROM_PREVIOUS);
            assert_true(why.text[0] != '\0');
            same(&s, &b->s);
        }
        state_make(&s, b->mem, true, 5);
        pl_bytes in = { copy, cut ? at : whole.len };
        if (nn_checkpoint_read(&s, "this", in, &err) != PL_EDATA)
            fail_msg("byte %zu", at);
        free(copy);
    }
}

static void a_missing_latest_gives_previous(void **state)
{
    bench *b = *state;
    nn_train_state second, s;
    nn_checkpoint_from from;
    pl_error why, err;

    save_two(b, &second);
    assert_int_equal(unlink(b->latest), 0);
    assert_int_equal(load(b, &s, &from, &why, &err), PL_OK);
    assert_int_equal(from, NN_FROM_PREVIOUS);
    assert_string_equal(why.text, "latest.ckpt is missing");
    same(&s, &b->s);
}

static void two_bad_ones_are_an_error_that_names_both(void **state)
{
    bench *b = *state;
    nn_train_state second, s, before;
    nn_checkpoint_from from;
    pl_error why, err = { 0 };

    save_two(b, &second);
    write_file(b->latest, "junk", 4);
    write_file(b->previous, "", 0);
    assert_int_equal(load(b, &s, &from, &why, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "latest.ckpt: torn"));
    assert_non_null(strstr(err.text, "previous.ckpt: torn"));
    state_make(&before, b->mem, true, 999);
    same(&s, &before); /* untouched */
}

static void a_good_previous_is_not_overwritten_by_a_bad_latest(void **state)
{
    bench *b = *state;
    nn_train_state second, s;
    nn_checkpoint_from from;
    pl_error why, err;

    save_two(b, &second);
    write_file(b->latest, "junk", 4);
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &second, false, &err), PL_OK);
    write_file(b->latest, "junk", 4);
    assert_int_equal(load(b, &s, &from, &why, &err), PL_OK);
    same(&s, &b->s);
}

static void another_training_is_refused(void **state)
{
    bench *b = *state;
    nn_train_state s;
    nn_checkpoint_from from;
    pl_error why, err = { 0 };

    assert_int_equal(nn_checkpoint_save(b->dir, "that", &b->s, true, NULL), PL_OK);
    assert_int_equal(load(b, &s, &from, &why, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "another training (that)"));
    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "that");
}

static void another_model_is_refused(void **state)
{
    bench *b = *state;
    nn_checkpoint_from from;
    pl_error why, err = { 0 };
    char want[600], differs[4][100];

    (void)snprintf(differs[0], sizeof *differs, "is of a model with %d parameters, this one has %d", N, N + 1);
    (void)snprintf(differs[1], sizeof *differs, "is of a model with 1 outputs, this one has 2");
    (void)snprintf(differs[2], sizeof *differs, "is of a training with a moving average, this one has none");
    (void)snprintf(differs[3], sizeof *differs, "is of a training without a moving average, this one has one");
    for (int i = 0; i < 4; i++) {
        nn_train_state saved, s;
        state_make(&saved, b->mem, i != 3, 1);
        assert_int_equal(nn_checkpoint_save(b->dir, "this", &saved, false, NULL), PL_OK);
        state_make(&s, b->mem, i != 2, 1);
        s.n += i == 0;
        s.outputs += i == 1;
        (void)unlink(b->previous);
        assert_int_equal(nn_checkpoint_load(b->dir, "this", &s, &from, &why, &err), PL_EDATA);
        (void)snprintf(want, sizeof want, "%s: latest.ckpt: %s; previous.ckpt: is missing", b->dir, differs[i]);
        assert_string_equal(err.text, want);
    }
}

/* A previous.ckpt.tmp that a killed run left, and the two names of one file that are left by a kill between them. */
static void what_a_killed_rotation_left_is_in_no_ones_way(void **state)
{
    bench *b = *state;
    nn_train_state second, third, s;
    char tmp[120];

    (void)snprintf(tmp, sizeof tmp, "%s.tmp", b->previous);
    write_file(tmp, "left", 4);
    save_two(b, &second);
    assert_true(pl_path_is_gone(tmp));
    in_file(b, b->previous, &s);
    same(&s, &b->s);
    assert_int_equal(unlink(b->previous), 0);
    assert_int_equal(link(b->latest, b->previous), 0);
    state_make(&third, b->mem, true, 3);
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &third, true, NULL), PL_OK);
    assert_true(pl_path_is_gone(tmp));
    in_file(b, b->previous, &s);
    same(&s, &second);
    in_file(b, b->latest, &s);
    same(&s, &third);
}

/* What cannot be read is not what is damaged: the training does not go on from an older state. */
static void a_latest_that_cannot_be_read_is_an_error(void **state)
{
    bench *b = *state;
    nn_train_state second, s, before;
    nn_checkpoint_from from;
    pl_error why = { 0 }, err = { 0 };

    save_two(b, &second);
    assert_int_equal(unlink(b->latest), 0);
    assert_int_equal(mkdir(b->latest, 0700), 0);
    assert_int_equal(load(b, &s, &from, &why, &err), PL_EIO);
    assert_non_null(strstr(err.text, b->latest));
    assert_string_equal(why.text, "");
    state_make(&before, b->mem, true, 999);
    same(&s, &before);
    assert_int_equal(nn_checkpoint_save(b->dir, "this", &second, true, &err), PL_EIO); /* nor is it written over */
    in_file(b, b->previous, &s);
    same(&s, &b->s);
    assert_int_equal(rmdir(b->latest), 0);
}

static void a_folder_that_cannot_be_made_is_named(void **state)
{
    bench *b = *state;
    char folder[120], want[160];
    pl_error err = { 0 };

    write_file(b->latest, "", 0);
    (void)snprintf(folder, sizeof folder, "%s/more", b->latest);
    (void)snprintf(want, sizeof want, "%s: Not a directory", folder);
    assert_int_equal(nn_checkpoint_save(folder, "this", &b->s, true, &err), PL_EIO);
    assert_string_equal(err.text, want);
}

static void the_name_of_a_training_is_in_either_file(void **state)
{
    bench *b = *state;
    nn_train_state second;

    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "");
    save_two(b, &second);
    assert_int_equal(nn_checkpoint_save(b->dir, "another", &second, true, NULL), PL_OK);
    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "another");
    write_file(b->latest, "junk", 4);
    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "this");
    write_file(b->previous, "junk", 4);
    assert_string_equal(nn_checkpoint_identity(b->dir, b->mem), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BENCH(a_torn_or_flipped_latest_gives_previous),
        WITH_BENCH(a_missing_latest_gives_previous),
        WITH_BENCH(two_bad_ones_are_an_error_that_names_both),
        WITH_BENCH(a_good_previous_is_not_overwritten_by_a_bad_latest),
        WITH_BENCH(another_training_is_refused),
        WITH_BENCH(another_model_is_refused),
        WITH_BENCH(what_a_killed_rotation_left_is_in_no_ones_way),
        WITH_BENCH(a_latest_that_cannot_be_read_is_an_error),
        WITH_BENCH(a_folder_that_cannot_be_made_is_named),
        WITH_BENCH(the_name_of_a_training_is_in_either_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
