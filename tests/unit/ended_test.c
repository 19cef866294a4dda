/* SPDX-License-Identifier: Apache-2.0 */
/* A program of tests passes only if all of them were run: this one begins itself under watch, and ends in several ways. */
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

static const char *how = ""; /* this program's argument */

static void first_test(void **unused)
{
    (void)unused;
    if (strcmp(how, "exit") == 0)
        exit(0);
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "fork") == 0 && fork() > 0)
        assert_true(wait(NULL) > 0);
    assert_string_not_equal(how, "fail");
}

static void second_test(void **unused) { (void)unused; }

static int group(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(first_test), cmocka_unit_test(second_test) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The exit status of this program under watch, and all it printed. */
static int ended(const char *in, char *said, size_t size)
{
    char self[400], command[1000];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    size_t len;
    int status;
    FILE *f;

    assert_true(n > 0);
    self[n] = '\0';
    (void)snprintf(command, sizeof command, "'%s' '%s' %s 2>&1", WATCH, self, in);
    f = popen(command, "r");
    assert_non_null(f);
    len = fread(said, 1, size - 1, f);
    said[len] = '\0';
    status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_program_passes_only_after_its_last_test(void **unused)
{
    static const struct {
        const char *how, *why;
        int status;
    } cases[] = { { "all", "", 0 },
                  { "fail", "", 1 },
                  { "skip", "", 77 },
                  { "exit", "cut: the program ended with status 0 before", 123 },
                  { "_exit", "cut: the program ended with status 0 before", 123 },
                  { "none", "cut: the program ended with status 0 before", 123 },
                  { "again", "cut: the program ended with status 0 before", 123 },
                  { "fork", "cut: a forked child of a test came back", 123 } };
    char said[8000];

    (void)unused;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const int status = ended(cases[k].how, said, sizeof said);
        if (status != cases[k].status || strstr(said, cases[k].why) == NULL ||
            (strstr(said, "cut:") != NULL) != (cases[k].why[0] != '\0'))
            fail_msg("%s: status %d: %s", cases[k].how, status, said);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_program_passes_only_after_its_last_test) };

    if (argc == 1)
        return cmocka_run_group_tests(tests, NULL, NULL);
    how = argv[1];
    if (strcmp(how, "skip") == 0 || strcmp(how, "none") == 0)
        return how[0] == 's' ? 77 : 0;
    if (strcmp(how, "again") == 0 && group() == 0) /* a second group is cut */
        how = "exit";
    return group();
}
