/* SPDX-License-Identifier: Apache-2.0 */
/* tests/unit/stored_runs.h - a folder for runs of the toy workflow, and the rows that they store. Include it once, after cmocka.h, in a
 * program that is linked as unit/statements.h says. */
#ifndef TESTS_STORED_RUNS_H
#define TESTS_STORED_RUNS_H

#include <stdio.h>
#include <stdlib.h>

#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "toy.h"
#include "unit/statements.h"

static char dir[256];
static pl_text answer, heard;

static inline int make(void **state)
{
    static const char *const schedulers[] = { "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID" };

    (void)state;
    for (size_t i = 0; i < sizeof schedulers / sizeof *schedulers; i++)
        (void)unsetenv(schedulers[i]);
    toy_directory(dir);
    pl_text_reset(&heard);
    return dir[0] == '\0';
}

static inline int drop(void **state)
{
    (void)state;
    pl_log_to(NULL, NULL, PL_ERROR);
    toy_remove(dir);
    pl_text_free(&answer);
    pl_text_free(&heard);
    return statements_left + atomic_load(&databases_open);
}

static inline const char *in_dir(const char *name)
{
    static char path[300];

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

/* The rows of a query: columns with | between them, a line each. */
static inline const char *rows(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;

    pl_text_reset(&answer);
    assert_int_equal(sqlite3_open_v2(in_dir("results.db"), &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s", sqlite3_errmsg(db));
    while (sqlite3_step(st) == SQLITE_ROW)
        for (int i = 0, n = sqlite3_column_count(st); i < n; i++) {
            const char *text = (const char *)sqlite3_column_text(st, i);
            pl_text_addf(&answer, "%s%s", text != NULL ? text : "NULL", i + 1 < n ? "|" : "\n");
        }
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    return pl_text_str(&answer);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

#endif
