/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_stages.h"
#include "pipeline/cli/cmd.h"

/* A command that prints its arguments. */
static int echo(const pl_app *app, const pl_args *args)
{
    (void)app;
    for (const pl_opt *o = args->cmd->opts; o != NULL && o->name != NULL; o++)
        if (pl_arg(args, o->name) != NULL)
            (void)printf("%s=%s ", o->name, pl_arg(args, o->name));
    for (int i = 0; i < args->n; i++)
        (void)printf("<%s>", args->arg[i]);
    assert_null(pl_arg(args, "--no-such-option"));
    return 0;
}

static const pl_opt opts[] = { { "--workers", 'j', "N", "how many" },
                               { "--dry-run", 'n', NULL, "do nothing" },
                               { "--keep-going", 'k', NULL, "go on" },
                               { "--log", 0, "FILE", "where to" },
                               { 0 } };

static int failing(const pl_app *app, const pl_args *args)
{
    pl_error err = { 0 };
    (void)app, (void)args;
    (void)pl_fail(&err, PL_ELOCK, "held by somebody");
    pl_at(&err, "runs/x");
    return pl_cmd_fail(&err);
}

static int loading(const pl_app *app, const pl_args *args)
{
    pl_arena *mem = pl_arena_new(0);
    int status;
    const pl_workflow *wf = pl_cmd_load(app, args, mem, &status);
    if (wf != NULL)
        (void)printf("%s", wf->name);
    pl_arena_free(mem);
    return status;
}

static const pl_cmd cmd_echo = {
    .name = "echo", .args = "[WORD ...]", .help = "say it again", .about = "About it.\n", .opts = opts, .run = echo
};
static const pl_cmd cmd_fail = { .name = "fail", .args = "X", .help = "fails", .min_args = 1, .run = failing };
static const pl_cmd cmd_load = { .name = "load", .args = "FILE", .help = "loads", .min_args = 1, .run = loading };
static const pl_cmd cmd_two = { .name = "two", .args = "", .help = "wants two", .min_args = 2, .run = echo };
static const pl_cmd *const commands[] = { &cmd_echo, &cmd_fail, &cmd_load, &cmd_two, NULL };

static void details(pl_text *out) { pl_text_add(out, "commit abc\n"); }

static const pl_app app = { .commands = commands, .stages = fake_stages, .version = "1.2.3", .details = details };

static char out[8192], err[8192];

static void slurp(FILE *from, char *to, size_t size)
{
    rewind(from);
    to[fread(to, 1, size - 1, from)] = '\0';
    (void)fclose(from);
}

/* Runs a command line in a child; words end with NULL. */
static int run(const char *first, ...)
{
    char *argv[32] = { (char *)"molsieve" };
    FILE *o = tmpfile(), *e = tmpfile();
    int argc = 1, status = 0;
    pid_t child;
    va_list ap;

    va_start(ap, first);
    for (const char *w = first; w != NULL && argc < 31; w = va_arg(ap, const char *))
        argv[argc++] = (char *)w;
    va_end(ap);
    assert_non_null(o);
    assert_non_null(e);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(fileno(o), STDOUT_FILENO);
        (void)dup2(fileno(e), STDERR_FILENO);
        status = pl_main(&app, argc, argv);
        (void)fflush(NULL);
        _exit(status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    slurp(o, out, sizeof out);
    slurp(e, err, sizeof err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void options_are_read_in_every_gnu_way(void **unused)
{
    (void)unused;
    assert_int_equal(run("echo", "a", "--workers=3", "b", NULL), 0);
    assert_string_equal(out, "--workers=3 <a><b>");
    assert_int_equal(run("echo", "--workers", "4", "-n", NULL), 0);
    assert_string_equal(out, "--workers=4 --dry-run= ");
    assert_int_equal(run("echo", "-nkj5", "x", NULL), 0);
    assert_string_equal(out, "--workers=5 --dry-run= --keep-going= <x>");
    assert_int_equal(run("echo", "-j", "6", "-j7", NULL), 0);
    assert_string_equal(out, "--workers=7 ");
    assert_int_equal(run("echo", "--workers=", "-", "--", "-n", "--workers", NULL), 0);
    assert_string_equal(out, "--workers= <-><-n><--workers>");
}

static void wrong_use_is_status_2_on_stderr_with_the_nearest_name(void **unused)
{
    (void)unused;
    assert_int_equal(run("echo", "--wrokers=3", NULL), 2);
    assert_string_equal(out, "");
    assert_non_null(strstr(err, "unknown option '--wrokers', did you mean '--workers'?"));
    assert_int_equal(run("ecko", NULL), 2);
    assert_non_null(strstr(err, "no command 'ecko', did you mean 'echo'?"));
    assert_int_equal(run("echo", "-nz", NULL), 2);
    assert_int_equal(run("echo", "--workers", NULL), 2);
    assert_non_null(strstr(err, "--workers needs a value: N"));
    assert_int_equal(run("echo", "-j", NULL), 2);
    assert_int_equal(run("echo", "--dry-run=1", NULL), 2);
    assert_non_null(strstr(err, "--dry-run takes no value"));
    assert_int_equal(run("fail", NULL), 2);
    assert_non_null(strstr(err, "usage: molsieve fail X"));
    assert_int_equal(run(NULL, NULL), 2);
    assert_non_null(strstr(err, "usage: molsieve COMMAND"));
}

static void help_and_version_are_results_on_stdout(void **unused)
{
    static const char *const verbose[][2] = { { "--version", "-v" }, { "-V", "--verbose" }, { "-v", "-V" }, { "-v", "--version" } };
    (void)unused;
    assert_int_equal(run("--help", NULL), 0);
    assert_non_null(strstr(out, "echo        say it again"));
    assert_string_equal(err, "");
    assert_int_equal(run("echo", "x", "--help", NULL), 0);
    assert_non_null(strstr(out, "-j, --workers N"));
    assert_non_null(strstr(out, "About it."));
    assert_int_equal(run("fail", "-h", NULL), 0);
    assert_int_equal(run("--version", NULL), 0);
    assert_string_equal(out, "molsieve 1.2.3\n");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(run(verbose[i][0], verbose[i][1], NULL), 0);
        assert_string_equal(out, "molsieve 1.2.3\ncommit abc\n");
    }
    assert_int_equal(run("-v", "--about", NULL), 2);
}

static void help_of_the_program_and_of_a_command_is_whole(void **unused)
{
    static const char app_help[] =
        "molsieve ranks libraries of small molecules by predicted properties. Stop a run\n"
        "at any time; run it again to continue.\n\n"
        "usage: molsieve COMMAND [arguments]\n\n"
        "  echo        say it again\n  fail        fails\n  load        loads\n  two         wants two\n\n"
        "Start with:  molsieve init demo && cd demo && molsieve run workflows/screen.yaml\n"
        "More:        molsieve help COMMAND | STAGE | stages | yaml | exit-codes\n             molsieve --version [-v]\n";
    static const char echo_help[] =
        "usage: molsieve echo [WORD ...]\n\nsay it again\n\nAbout it.\n\nOptions:\n"
        "  -j, --workers N             how many\n  -n, --dry-run               do nothing\n  -k, --keep-going            go on\n"
        "      --log FILE              where to\n";

    (void)unused;
    assert_int_equal(run("-h", NULL), 0);
    assert_string_equal(out, app_help);
    assert_string_equal(err, "");
    assert_int_equal(run(NULL, NULL), 2);
    assert_string_equal(out, "");
    assert_string_equal(err, app_help);
    assert_int_equal(run("echo", "-h", NULL), 0);
    assert_string_equal(out, echo_help);
    assert_int_equal(run("fail", "--help", NULL), 0);
    assert_string_equal(out, "usage: molsieve fail X\n\nfails\n");
    assert_int_equal(run("echo", "--", "-h", NULL), 0);
    assert_string_equal(out, "<-h>");
}

static void each_mistake_of_options_has_its_answer(void **unused)
{
    static const char usage[] = "usage: molsieve echo [WORD ...]\nmore: molsieve help echo\n";
    static const char *const cases[][2] = {
        { "-j", "-j needs a value: N" },
        { "-nj", "-j needs a value: N" },
        { "--workers", "--workers needs a value: N" },
        { "--log", "--log needs a value: FILE" },
        { "-nz", "unknown option '-nz'" },
        { "--wrokers=3", "unknown option '--wrokers', did you mean '--workers'?" },
        { "--hlep", "unknown option '--hlep', did you mean '--help'?" },
        { "--keep-going=1", "--keep-going takes no value" },
        { "--", NULL },
        { "-n", NULL },
        { "-", NULL },
    };
    char want[300];

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(run("echo", cases[i][0], NULL), cases[i][1] ? 2 : 0);
        (void)snprintf(want, sizeof want, "molsieve: echo: %s\n%s", cases[i][1] != NULL ? cases[i][1] : "", usage);
        assert_string_equal(err, cases[i][1] ? want : "");
    }
    assert_int_equal(run("fail", NULL), 2);
    assert_string_equal(err, "molsieve: fail: an argument is missing\nusage: molsieve fail X\nmore: molsieve help fail\n");
    assert_int_equal(run("two", "1", NULL), 2);
    assert_string_equal(err, "molsieve: two: more arguments are needed\nusage: molsieve two\nmore: molsieve help two\n");
    assert_int_equal(run("two", "1", "2", NULL), 0);
    assert_int_equal(run("nothing", NULL), 2);
    assert_string_equal(err, "molsieve: no command 'nothing'; see molsieve --help\n");
}

static void an_error_is_printed_once_with_its_place_and_its_status(void **unused)
{
    (void)unused;
    assert_int_equal(run("fail", "x", NULL), 4);
    assert_string_equal(err, "molsieve: runs/x: held by somebody\n");
    assert_string_equal(out, "");
}

static void workflows_are_loaded_with_overrides_or_all_problems_printed(void **unused)
{
    char path[] = "/tmp/molsieve_cmd_XXXXXX";
    int fd = mkstemp(path);
    static const char text[] = "format: 1\nname: a\nstages:\n  read:\n  graph: {cutoff: 99, x: 1}\n";

    (void)unused;
    assert_int_equal(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    assert_int_equal(run("load", path, NULL), 2);
    assert_non_null(strstr(err, ":5:19: stages.graph.cutoff: 99 is outside"));
    assert_non_null(strstr(err, ":5:23: stages.graph.x: unknown setting"));
    assert_non_null(strstr(err, "molsieve: 2 problems"));
    assert_int_equal(run("load", path, "stages.graph={}", "name=b", NULL), 0);
    assert_string_equal(out, "b");
    assert_int_equal(run("load", path, "stages.graph={}", "word", NULL), 2);
    assert_non_null(strstr(err, "'word' is not of the form"));
    assert_int_equal(run("load", "/nonexistent.yaml", NULL), 2);
    assert_non_null(strstr(err, "/nonexistent.yaml: No such file"));
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read_in_every_gnu_way),
        cmocka_unit_test(wrong_use_is_status_2_on_stderr_with_the_nearest_name),
        cmocka_unit_test(help_and_version_are_results_on_stdout),
        cmocka_unit_test(help_of_the_program_and_of_a_command_is_whole),
        cmocka_unit_test(each_mistake_of_options_has_its_answer),
        cmocka_unit_test(an_error_is_printed_once_with_its_place_and_its_status),
        cmocka_unit_test(workflows_are_loaded_with_overrides_or_all_problems_printed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
