/* SPDX-License-Identifier: Apache-2.0 */
/* Results survive a power cut, only complete checkpoints are used, and engines are closed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "models/comm/collective.h"
#include "models/training/checkpoint.h"
#include "models/training/validation.h"
#include "stages/files/out_file.h"
#include "stages/steps/train/train_save.h"
#include "toy.h"
#include "unit/calls.h"

static char dir[256];

static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    calls_begin(NULL);
    return dir[0] == '\0';
}

static int drop(void **state)
{
    (void)state;
    toy_remove(dir);
    return 0;
}

static const char *in_dir(const char *name)
{
    static char path[4][300];
    static int n;

    (void)snprintf(path[n % 4], sizeof path[0], "%s/%s", dir, name);
    return path[n++ % 4];
}

/* ---- files of hits ---- */

static pl_code written(const char *name, pl_arena *mem, pl_error *err)
{
    pl_text row = { 0 };
    st_out out;
    pl_code code = st_out_open(&out, in_dir(name), mem, err);

    pl_text_add(&row, "a,b\n");
    if (code == PL_OK)
        code = st_out_add(&out, &row, err);
    calls[0] = '\0';
    if (code == PL_OK)
        code = st_out_keep(&out, err);
    st_out_close(&out);
    pl_text_free(&row);
    return code;
}

static void a_hits_file_is_synced_before_and_after_its_rename(void **state)
{
    static const char *const names[] = { "hits.csv", "hits.csv.gz" };
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        calls_begin(NULL);
        assert_int_equal(written(names[i], mem, &err), PL_OK);
        assert_string_equal(calls, calls_durable(dir, names[i]));
    }
    calls_begin("bad.csv.tmp");
    assert_int_equal(written("bad.csv", mem, &err), PL_EIO);
    assert_int_not_equal(access(in_dir("bad.csv"), F_OK), 0);
    assert_int_not_equal(access(in_dir("bad.csv.tmp"), F_OK), 0);
    calls_begin(strrchr(dir, '/') + 1);
    assert_int_equal(written("late.csv", mem, &err), PL_EIO);
    pl_arena_free(mem);
}

/* ---- checkpoints ---- */

static void state_make(nn_train_state *s, int64_t step, pl_arena *mem)
{
    static nn_se3 plan = { .n_floats = 8, .conf.outputs = 1, .head = { -1, -1, -1, -1 } };

    assert_int_equal(nn_train_state_alloc(s, &plan, true, 1, mem, NULL), PL_OK);
    s->step = step;
}

static void tear(const char *path) { assert_int_equal(truncate(path, 50), 0); }

/* The step of the checkpoint that a new start loads; -1: an error. */
static int64_t found(const st_saves *v, nn_checkpoint_from *from, pl_arena *mem)
{
    nn_train_state s;
    pl_error why = { 0 }, err = { 0 };

    state_make(&s, 0, mem);
    return nn_checkpoint_load(v->dir, v->identity, &s, from, &why, &err) == PL_OK ? s.step : -1;
}

static int64_t warnings(toy *t)
{
    return toy_int(t, "SELECT count(*) FROM event WHERE level='warn' AND message LIKE '%latest.ckpt%going on from previous.ckpt%'");
}

static void save(st_saves *v, nn_train_state *s, int64_t step)
{
    pl_error err = { 0 };

    s->step = step;
    assert_int_equal(st_saves_write(v, s, &err), PL_OK);
    assert_int_equal(st_saves_wait(v, &err), PL_OK);
}

static void a_torn_checkpoint_never_replaces_the_whole_one(void **state)
{
    pl_error err = { 0 };
    pl_store *store = NULL;
    nn_checkpoint_from from;
    nn_train_state s;
    toy t;

    (void)state;
    toy_make(&t, dir, 2);
    assert_int_equal(toy_run(&t, 1, &err), PL_OK);
    assert_int_equal(pl_store_open(&store, &t.wf, &toy_schema, &err), PL_OK);
    (void)snprintf(t.step[0].key, sizeof t.step[0].key, "key");
    pl_env env = { .wf = &t.wf, .step = &t.step[0], .store = store, .mem = t.mem, .run_id = 1, .stage_id = 1 };
    st_saves v = { .env = &env, .dir = in_dir("ckpt"), .identity = "key run" };
    char latest[300], previous[300];
    (void)snprintf(latest, sizeof latest, "%s/latest.ckpt", v.dir);
    (void)snprintf(previous, sizeof previous, "%s/previous.ckpt", v.dir);
    state_make(&s, 0, t.mem);
    assert_int_equal(st_saves_load(&v, &s, &err), PL_OK); /* nothing there */
    assert_int_equal(warnings(&t), 0);
    assert_int_equal(pl_fail(&err, PL_EDEVICE, "the GPU is gone"), PL_EDEVICE);
    assert_int_equal(st_saves_tell(&v, &err), PL_EDEVICE);
    assert_string_equal(err.text, "the GPU is gone");
    save(&v, &s, 1);
    save(&v, &s, 2);
    tear(latest);
    assert_int_equal(st_saves_load(&v, &s, &err), PL_OK);
    assert_int_equal(s.step, 1);
    assert_int_equal(warnings(&t), 1);
    save(&v, &s, 3); /* the torn one must not become previous.ckpt */
    tear(latest);
    assert_int_equal(found(&v, &from, t.mem), 1);
    assert_int_equal(from, NN_FROM_PREVIOUS);
    assert_int_equal(st_saves_load(&v, &s, &err), PL_OK);
    save(&v, &s, 4);
    save(&v, &s, 5);
    tear(latest);
    assert_int_equal(found(&v, &from, t.mem), 4); /* a complete checkpoint is rotated */
    assert_int_equal(st_saves_load(&v, &s, &err), PL_OK);
    save(&v, &s, 6);
    assert_int_equal(st_saves_load(&v, &s, &err), PL_OK); /* latest is complete: no further warning, and it is rotated at once */
    assert_int_equal(s.step, 6);
    assert_int_equal(warnings(&t), 3);
    save(&v, &s, 7);
    assert_int_equal(pl_fail(&err, PL_EDEVICE, "the GPU is gone"), PL_EDEVICE);
    assert_int_equal(st_saves_tell(&v, &err), PL_EDEVICE);
    assert_string_equal(err.text, "the GPU is gone; the same command continues from the checkpoint at step 7");
    tear(latest);
    assert_int_equal(found(&v, &from, t.mem), 6);
    tear(previous);
    assert_int_equal(st_saves_load(&v, &s, &err), PL_EDATA);
    st_saves_close(&v);
    pl_store_close(store);
    toy_free(&t);
}

/* ---- the second engine of a training ---- */

static int closed;

static void count_close(nn_engine *e)
{
    (void)e;
    closed++;
}

static void held_out_molecules_close_their_engine_on_every_way_out(void **state)
{
    static const nn_engine_kind kind = { .name = "counted", .close = count_close };
    static nn_ranks alone = { .kind = &nn_collective_none, .size = 1 };
    const nn_validation_of of = { .now.kind = &kind, .ranks = &alone };
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    char engine;

    (void)state;
    for (int early = 0; early < 2; early++) {
        nn_validation *h = NULL;
        closed = 0;
        assert_int_equal(nn_validation_new(&h, &of, mem, &err), PL_OK);
        assert_int_equal(nn_validation_second(h, (nn_engine *)(void *)&engine, &err), PL_OK);
        if (early)
            nn_validation_alone(h);
        nn_validation_free(h);
        assert_int_equal(closed, 1);
    }
    nn_validation_free(NULL);
    pl_arena_free(mem);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_hits_file_is_synced_before_and_after_its_rename),
        CASE(a_torn_checkpoint_never_replaces_the_whole_one),
        CASE(held_out_molecules_close_their_engine_on_every_way_out),
    };
    return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
