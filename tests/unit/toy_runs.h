/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/toy_runs.h - two folders for runs of the toy workflow. Include it once, after cmocka.h. */
#ifndef TESTS_TOY_RUNS_H
#define TESTS_TOY_RUNS_H

#include <stdint.h>

#include "toy.h"

static char dir[256], other[256];

static inline int fresh_dirs(void **state)
{
    (void)state;
    toy_directory(dir);
    toy_directory(other);
    return dir[0] == '\0' || other[0] == '\0';
}

static inline int drop_dirs(void **state)
{
    (void)state;
    toy_remove(dir);
    toy_remove(other);
    return 0;
}

static inline void must_run(toy *t, int workers)
{
    pl_error err = { 0 };
    pl_code code = toy_run(t, workers, &err);

    if (code != PL_OK)
        fail_msg("%s: %s", err.where, err.text);
}

static inline void digest_of(const char *where, int64_t units, int workers, void (*change)(toy *), char out[130])
{
    toy t;

    toy_make(&t, where, units);
    if (change != NULL)
        change(&t);
    must_run(&t, workers);
    toy_digest(&t, out);
    toy_free(&t);
}

static inline void plan_of(toy *t, pl_step_plan plan[3])
{
    pl_store *s = NULL;
    pl_error err = { 0 };

    if (pl_store_open_read(&s, t->wf.storage.results, &toy_schema, &err) != PL_OK ||
        pl_plan_keys(&t->wf, s, t->mem, &err) != PL_OK || pl_plan_steps(&t->wf, s, plan, t->mem, &err) != PL_OK)
        fail_msg("%s", err.text);
    pl_store_close(s);
}

static inline void change_offset(toy *t) { t->conf[1].offset = 5; }
static inline void change_seed(toy *t) { t->wf.seed = 8; }

#define CASE(f) cmocka_unit_test_setup_teardown(f, fresh_dirs, drop_dirs)

#endif
