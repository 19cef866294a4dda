/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/loaded_workflow.h - loads workflows with made-up stages, and what is said of them. Include it once, after cmocka.h. */
#ifndef TESTS_LOADED_WORKFLOW_H
#define TESTS_LOADED_WORKFLOW_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_stages.h"
#include "pipeline/workflow/workflow_parts.h"

typedef struct fixture {
    char folder[64], file[96];
    pl_arena *mem;
    pl_problems problems;
    pl_text report;
} fixture;

static inline int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    strcpy(f->folder, "/tmp/molsieve_wf_XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    (void)snprintf(f->file, sizeof f->file, "%s/w.yaml", f->folder);
    f->mem = pl_arena_new(0);
    assert_non_null(f->mem);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    fixture *f = *state;
    char command[160];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", f->folder);
    assert_int_equal(system(command), 0);
    pl_text_free(&f->report);
    pl_arena_free(f->mem);
    free(f);
    return 0;
}

static inline void put(fixture *f, const char *name, const char *text)
{
    char path[256];
    FILE *to;

    (void)snprintf(path, sizeof path, "%s/%s", f->folder, name);
    to = fopen(path, "w");
    assert_non_null(to);
    (void)fputs(text, to);
    assert_int_equal(fclose(to), 0);
}

static inline pl_workflow *load(fixture *f, const char *text, char *const *overrides, int n)
{
    pl_workflow *wf;

    put(f, "w.yaml", text);
    f->problems = (pl_problems){ .mem = f->mem };
    wf = pl_workflow_load(f->file, overrides, n, fake_stages, &f->problems, f->mem);
    pl_text_reset(&f->report);
    pl_problems_write(&f->problems, &f->report);
    assert_int_equal(wf == NULL, f->problems.n != 0);
    return wf;
}

static inline pl_workflow *good(fixture *f, const char *text)
{
    pl_workflow *wf = load(f, text, NULL, 0);

    if (wf == NULL)
        fail_msg("%s", pl_text_str(&f->report));
    return wf;
}

static inline const fake_conf *conf_of(const pl_workflow *wf) { return pl_workflow_step(wf, "graph")->conf; }

static inline void says(fixture *f, const char *text)
{
    if (strstr(pl_text_str(&f->report), text) == NULL)
        fail_msg("not said: %s\nsaid:\n%s", text, pl_text_str(&f->report));
}

#define HEAD "format: 1\nstages:\n  read:\n  graph:\n"

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
