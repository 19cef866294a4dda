/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files: their canonical form, which belong to a run, and what is a database. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stages/files/data_dir.h"
#include "stages/files/out_file.h"
#include "stages/files/own_files.h"
#include "stages/files/version.h"
#include "stages/steps/external/external.h"
#include "stages/steps/train/distributed.h"
#include "toy.h"

static char dir[PATH_MAX], there[PATH_MAX];

/* PLACE/real/run with results.db, PLACE/link -> real; the current folder is PLACE. */
static int make(void **state)
{
    (void)state;
    toy_directory(dir);
    return dir[0] == '\0' || realpath(dir, there) == NULL || chdir(there) != 0 || mkdir("real", 0755) != 0 ||
           mkdir("real/run", 0755) != 0 || symlink("real", "link") != 0;
}

static int drop(void **state)
{
    (void)state;
    (void)chdir("/");
    toy_remove(dir);
    return 0;
}

static void put(const char *name, const char *bytes, size_t n)
{
    FILE *f = fopen(name, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* Without PLACE in front; "-": it is refused. */
static const char *canonical(const char *path)
{
    static char out[2][PATH_MAX];
    static int k;
    const size_t n = strlen(there);

    k = 1 - k;
    if (!st_path_canonical(out[k], path))
        return "-";
    return strncmp(out[k], there, n) == 0 ? out[k] + n : out[k];
}

static void a_path_has_one_canonical_name(void **state)
{
    static const char *const cases[][2] = { { "real", "/real" },
                                            { "./real/", "/real" },
                                            { "link", "/real" },
                                            { "link/run/x.db", "/real/run/x.db" },
                                            { "none", "/none" },
                                            { "none/a/b", "/none/a/b" },
                                            { "none//a///b/", "/none/a/b" },
                                            { "none/./a", "/none/a" },
                                            { "none/../x", "/x" },
                                            { "none/a/../../x", "/x" },
                                            { "link/../x", "/x" },
                                            { "real/run/../run/y", "/real/run/y" },
                                            { "none/a/..", "/none" },
                                            { "n", "/n" },
                                            { "...", "/..." },
                                            { "none/..b", "/none/..b" },
                                            { "none/.b", "/none/.b" },
                                            { "none/a.", "/none/a." },
                                            { "/", "" },
                                            { "/no such folder/x", "/no such folder/x" },
                                            { "/no such/../y", "/y" },
                                            { "/no such/../../y", "/y" },
                                            { ".", "" },
                                            { "/proc/../proc/none", "/proc/none" } };
    char full[PATH_MAX + 10], out[PATH_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(canonical(cases[i][0]), cases[i][1]) != 0)
            fail_msg("%s is %s, not %s", cases[i][0], canonical(cases[i][0]), cases[i][1]);
    snprintf(full, sizeof full, "%s/link/z", there);
    assert_string_equal(canonical(full), "/real/z");
    memset(full, 'a', sizeof full);
    full[PATH_MAX + 5] = '\0';
    assert_false(st_path_canonical(out, full));
    for (size_t i = 0; i < sizeof full; i += 100)
        full[i] = '/';
    full[PATH_MAX - 2] = '\0';
    assert_true(st_path_canonical(out, full));
    assert_int_equal(strlen(out), PATH_MAX - 2);
}

static void a_run_knows_its_own_files(void **state)
{
    static const char *const own[] = { "real/run/results.db",
                                       "link/run/results.db",
                                       "real/run/RESULTS.DB",
                                       "real/run/results.db-wal",
                                       "real/run/results.db.lock",
                                       "real/run/results.db.format5",
                                       "real/run/results.previous.db",
                                       "real/run/results.merging.db-wal",
                                       "real/run/features.db",
                                       "real/run/features.db-shm",
                                       "real/run/features.previous.db",
                                       "real/run/.lock",
                                       "real/run/.reserve",
                                       "real/run/Heartbeat.json",
                                       "real/run/heartbeat.json.tmp",
                                       "real/run/ranks-0",
                                       "real/run/models/x",
                                       "real/run/checkpoints/a/b",
                                       "real/run/shards/00000-of-00002/results.db",
                                       "real/run/../run/.lock" };
    static const char *const others[] = {
        "real/run/hits.csv", "real/run/result.db",   "real/run/results",    "real/run/previous.db",
        "real/run/x/.lock",  "real/run/lock",        "real/run/model/x",    "real/run/models",
        "real/results.db",   "real/run2/results.db", "real/.lock",          "real/run/results.x.db",
        "real/runmodels/x",  "real/run/x/ranks-0",   "real/run/merging.db", "real/run/results.previous",
        "real/run",          "results.db",           "real/run/xmodels/y",  "real/run/a.heartbeat.json"
    };
    char run[PATH_MAX], results[PATH_MAX + 20], features[PATH_MAX + 20];
    pl_workflow wf = { .workdir = run };

    (void)state;
    snprintf(run, sizeof run, "%.4000s/link/run", there);
    snprintf(results, sizeof results, "%s/results.db", run);
    snprintf(features, sizeof features, "%s/features.db", run);
    wf.storage.results = results;
    wf.storage.features = features;
    put("real/run/results.db", "x", 1);
    for (int beside = 0; beside < 2; beside++) {
        for (size_t i = 0; i < sizeof own / sizeof *own && (beside == 0 || i < 16); i++)
            if (!(beside ? st_is_beside_results(own[i]) : st_is_own(&wf, own[i])))
                fail_msg("%s is a file of the run (%d)", own[i], beside);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            if (beside ? st_is_beside_results(others[i]) : st_is_own(&wf, others[i]))
                fail_msg("%s is no file of the run (%d)", others[i], beside);
        put("real/run/results.db", "SQLite format 3", 16);
    }
    put("real/run/results.db", "SQLite format 4", 16);
    assert_false(st_is_beside_results("real/run/.lock"));
    wf.storage.results = "elsewhere"; /* without .db at the end */
    assert_true(st_is_own(&wf, "elsewhere") && st_is_own(&wf, "elsewhere.previous.db") && !st_is_own(&wf, "elsewher.previous.db"));
    wf.storage.results = ".db";
    assert_true(st_is_own(&wf, ".db.previous.db"));
}

static void a_database_is_known_by_its_first_bytes(void **state)
{
    (void)state;
    put("a", "SQLite format 3", 16);
    put("b", "SQLite format 3", 15);
    put("c", "SQLite format 3 ", 16);
    put("d", "SQLite format 3\0more", 20);
    put("e", "", 0);
    assert_int_equal(mkfifo("fifo", 0600), 0); /* is not waited for */
    assert_true(st_is_database("a") && st_is_database("d"));
    assert_false(st_is_database("b") || st_is_database("c") || st_is_database("e") || st_is_database("none") ||
                 st_is_database("real") || st_is_database("fifo"));
}

static void a_model_is_known_by_its_first_bytes(void **state)
{
    (void)state;
    put("a", "\x10\x27\0\0\0\0\0\0{\"__met", 15);
    put("b", "\x10\x27\0\0\0\0\0\0{\"__meta", 16);
    put("c", "\x10\x27\0\0\0\0\0\1{\"__meta", 16);
    put("d", "\x10\x27\0\0\0\0\0\0[\"__meta", 16);
    put("e", "id,smiles,{value\n", 17);
    assert_true(st_is_model("b"));
    assert_false(st_is_model("a") || st_is_model("c") || st_is_model("d") || st_is_model("e") || st_is_model("none"));
}

static void an_output_is_not_the_file_that_is_read(void **state)
{
    pl_error err = { 0 };

    (void)state;
    put("in", "x", 1);
    put("other", "x", 1);
    assert_int_equal(symlink("in", "same"), 0);
    assert_int_equal(st_out_check("other", "in", &err), PL_OK);
    assert_int_equal(st_out_check("new", "in", &err), PL_OK);
    assert_int_equal(st_out_check("in", "gone", &err), PL_OK);
    assert_int_equal(st_out_check(NULL, "in", &err), PL_OK);
    assert_int_equal(st_out_check("/dev/null", "/dev/null", &err), PL_OK);
    assert_int_equal(st_out_check("same", "in", &err), PL_ECONFIG);
    assert_string_equal(err.text, "--output same is the file that is read; choose another name");
    assert_int_equal(st_out_check("./in", "in", &err), PL_ECONFIG);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make, drop)

/* ---- the files of the demonstration ---- */

static bool no_workflows; /* nowhere but in the current folder */
static int n_plugins;     /* how often one was looked for */
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);

int __wrap_access(const char *path, int mode)
{
    const char *end = strrchr(path, '/');

    n_plugins += end != NULL && strcmp(end, "/own_plugin") == 0;
    return no_workflows && end != NULL && strcmp(end, "/workflows") == 0 && path[0] == '/' ? -1 : __real_access(path, mode);
}

static void the_demonstration_is_found_or_its_places_are_told(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    char end[PATH_MAX];
    const char *place = "none";
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(mkdir("share", 0755), 0);
    assert_int_equal(setenv("MOLSIEVE_SHARE", "share", 1), 0);
    no_workflows = true;
    assert_int_equal(st_data_dir_find(&place, mem, &err), PL_EIO);
    (void)snprintf(end, sizeof end, "/../share/molsieve nor in %s; MOLSIEVE_SHARE can name their folder", st_source_dir);
    assert_memory_equal(err.text, "the demonstration's files are not in /", 38);
    assert_non_null(strstr(err.text, end));
    assert_string_equal(place, "none");
    assert_int_equal(mkdir("share/workflows", 0755), 0);
    assert_int_equal(st_data_dir_find(&place, mem, NULL), PL_OK);
    assert_string_equal(place, "share");
    no_workflows = false;
    assert_int_equal(unsetenv("MOLSIEVE_SHARE"), 0);
    assert_int_equal(st_data_dir_find(&place, mem, NULL), PL_OK);
    assert_string_equal(place, st_source_dir);
    pl_arena_free(mem);
}

/* ---- variables of the environment ---- */

static void set_or_not(const char *name, const char *value)
{
    assert_int_equal(value != NULL ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void a_variable_that_is_not_set_or_empty_names_no_folder(void **state)
{
    static const char *const values[] = { NULL, "", "given" };
    const char *tmp = getenv("TMPDIR"), *plugins = getenv("MOLSIEVE_PLUGINS");
    pl_arena *mem = pl_arena_new(1 << 12);

    (void)state;
    assert_int_equal(mkdir("given", 0755), 0);
    put("given/own_plugin", "x", 1);
    for (int i = 0; i < 3; i++) {
        set_or_not("TMPDIR", values[i]);
        assert_string_equal(st_tmp_dir(), i < 2 ? "/tmp" : "given");
        set_or_not("MOLSIEVE_PLUGINS", values[i]);
        n_plugins = 0;
        if (i < 2)
            assert_null(st_plugin_path("own_plugin", mem));
        else
            assert_string_equal(st_plugin_path("own_plugin", mem), "given/own_plugin");
        assert_int_equal(n_plugins, i < 2 ? 2 : 1); /* places where it was looked for */
    }
    set_or_not("TMPDIR", tmp);
    set_or_not("MOLSIEVE_PLUGINS", plugins);
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_path_has_one_canonical_name),
        CASE(a_run_knows_its_own_files),
        CASE(a_database_is_known_by_its_first_bytes),
        CASE(a_model_is_known_by_its_first_bytes),
        CASE(an_output_is_not_the_file_that_is_read),
        CASE(the_demonstration_is_found_or_its_places_are_told),
        CASE(a_variable_that_is_not_set_or_empty_names_no_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
