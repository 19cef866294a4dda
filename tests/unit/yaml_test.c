/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/workflow/yaml.h"

static pl_arena *mem;
static pl_problems problems;
static pl_text report;

static int setup(void **unused)
{
    (void)unused;
    mem = pl_arena_new(1 << 16);
    problems = (pl_problems){ .mem = mem };
    return mem == NULL;
}

static int teardown(void **unused)
{
    (void)unused;
    pl_arena_free(mem);
    pl_text_free(&report);
    return 0;
}

static pl_node *parse_n(const char *text, size_t n)
{
    pl_node *root;
    /* No NUL after it, so that ASan sees every read beyond the end. */
    char *copy = malloc(n ? n : 1);

    assert_non_null(copy);
    memcpy(copy, text, n);
    problems = (pl_problems){ .mem = mem };
    root = pl_yaml_parse(copy, n, "f.yaml", &problems, mem);
    free(copy);
    pl_text_reset(&report);
    pl_problems_sort(&problems);
    pl_problems_write(&problems, &report);
    return root;
}

static pl_node *parse(const char *text) { return parse_n(text, strlen(text)); }

static void says(const char *text)
{
    if (strstr(pl_text_str(&report), text) == NULL)
        fail_msg("not said: %s\nsaid: %s", text, pl_text_str(&report));
}

static void every_node_knows_its_place(void **unused)
{
    const pl_node *root = parse("a: 1\nb:\n  - x\n  - {c: 'q'}\n"), *c;

    (void)unused;
    assert_int_equal(problems.n, 0);
    assert_int_equal(root->kind, PL_MAPPING);
    assert_int_equal(root->n, 2);
    c = pl_node_get(pl_node_get(root, "b")->item[1], "c");
    assert_string_equal(c->text, "q");
    assert_true(c->quoted);
    assert_int_equal(c->line, 4);
    assert_int_equal(c->column, 9);
    assert_string_equal(c->origin, "f.yaml");
    assert_null(pl_node_get(root, "nope"));
    assert_false(pl_node_get(root, "a")->quoted);
}

static void what_surprises_is_refused_with_its_place(void **unused)
{
    static const char *const cases[][2] = {
        { "a: 1\nb: 2\na: 3\n", "f.yaml:3:1: a: given twice, first in line 1" },
        { "a:\n\tb: 1\n", "f.yaml:2:1: a tab in the indentation" },
        { "a: 1\n---\nb: 1\n", "f.yaml:2:1: a second document" },
        { "a: !!int 5\n", "f.yaml:1:4: tags" },
        { "a: !evil x\n", "f.yaml:1:4: tags" },
        { "? [x]\n: 1\n", "a key must be plain text" },
        { "a: &x 1\nb:\n  <<: *x\n", "merge keys (<<) are not supported" },
        { "a: *nope\n", "f.yaml:1:4: " },
        { "a: &x [*x]\n", "an alias (*name) without an anchor" },
        { "a: [1, 2\n", "not YAML" },
        { "a: b: c\n", "f.yaml:1:5: not YAML" },
        { "a: {x: ${v}}\n", "in quotes" },
        { "a: \"x\n", "not YAML" },
        { "", "the file is empty" },
        { "# only a comment\n", "the file is empty" },
        { "a: \"x\\0y\"\n", "a NUL character" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)parse(cases[i][0]);
        assert_true(problems.n > 0);
        says(cases[i][1]);
    }
}

static void a_file_with_tabs_is_told_of_the_tabs_alone(void **unused)
{
    (void)unused;
    assert_null(parse("a:\n\tb: 1\n \tc: 2\nd: e\tf\n"));
    assert_string_equal(pl_text_str(&report), "f.yaml:2:1: a tab in the indentation: use spaces\n"
                                              "f.yaml:3:2: a tab in the indentation: use spaces\n");
    (void)parse("a: !!int 5\n");
    assert_string_equal(pl_text_str(&report), "f.yaml:1:4: tags (tag:yaml.org,2002:int) are not used here: remove it\n");
}

static void bytes_that_are_not_utf8_are_refused_where_they_are(void **unused)
{
    (void)unused;
    assert_null(parse("a: 1\nb: x\xff\n"));
    says("f.yaml:2:5: not UTF-8");
    assert_null(parse("a: \x01\n"));
    says("f.yaml:1:4: not UTF-8");
    assert_null(parse_n("a\0\x31\0\n\0", 6));
    assert_true(problems.n > 0);
}

static void a_byte_order_mark_and_windows_line_ends_are_fine(void **unused)
{
    const pl_node *root = parse("\xEF\xBB\xBF"
                                "a: 1\r\nb: \xC3\xA9\r\n");

    (void)unused;
    assert_non_null(root);
    assert_string_equal(pl_node_get(root, "b")->text, "\xC3\xA9");
    assert_string_equal(pl_node_get(root, "a")->text, "1");
    assert_int_equal(pl_node_get(root, "a")->column, 4);
}

static void anchors_give_copies(void **unused)
{
    pl_node *root = parse("a: &x {b: [1, 2]}\nc: *x\n");

    (void)unused;
    assert_int_equal(problems.n, 0);
    assert_string_equal(pl_node_get(pl_node_get(root, "c"), "b")->item[1]->text, "2");
    assert_ptr_not_equal(pl_node_get(root, "c"), pl_node_get(root, "a"));
}

static void an_alias_bomb_is_refused(void **unused)
{
    pl_text bomb = { 0 };

    (void)unused;
    pl_text_add(&bomb, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 30; i++)
        pl_text_addf(&bomb, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1, i - 1, i - 1,
                     i - 1, i - 1, i - 1, i - 1, i - 1);
    assert_null(parse(pl_text_str(&bomb)));
    says("more than 100,000 values");
    pl_text_free(&bomb);
}

/* Lists, mappings, and both in turn, around a 1, which is a level, too. */
static void depth_is_limited(void **unused)
{
    static const char *const opens[][2] = { { "[", "[" }, { "{a: ", "{a: " }, { "[", "{a: " } };

    (void)unused;
    for (int how = 0; how < 3; how++)
        for (int n = 63; n <= 2000; n += n == 63 ? 1 : 1936) {
            pl_text deep = { 0 };
            for (int i = 0; i < n; i++)
                pl_text_add(&deep, opens[how][i % 2]);
            pl_text_add(&deep, "1");
            for (int i = n - 1; i >= 0; i--)
                pl_text_add(&deep, opens[how][i % 2][0] == '[' ? "]" : "}");
            assert_int_equal(parse(pl_text_str(&deep)) != NULL, n == 63);
            if (n > 63)
                says("nested more than 64 levels");
            pl_text_free(&deep);
        }
}

static void files_that_cannot_be_are_problems(void **unused)
{
    char name[] = "/tmp/molsieve_yaml_XXXXXX";
    int fd = mkstemp(name);
    pl_bytes bytes;

    (void)unused;
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, PL_YAML_MAX_BYTES + 1), 0);
    problems = (pl_problems){ .mem = mem };
    assert_false(pl_yaml_bytes(&bytes, name, &problems, mem));
    assert_non_null(strstr(problems.list[0].text, "larger than 10 MiB"));
    assert_false(pl_yaml_bytes(&bytes, "/nonexistent/x.yaml", &problems, mem));
    assert_false(pl_yaml_bytes(&bytes, "/tmp", &problems, mem));
    assert_int_equal(problems.n, 3);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(pl_yaml_bytes(&bytes, name, &problems, mem)); /* empty, which the parser says */
    assert_int_equal(problems.n, 3);
    assert_int_equal(pwrite(fd, "SQLite format 3\0\t\n\t", 19, 0), 19);
    assert_false(pl_yaml_bytes(&bytes, name, &problems, mem)); /* once, not a line for each tab */
    assert_int_equal(problems.n, 4);
    assert_non_null(strstr(problems.list[3].text, "not UTF-8 text, but a database, another binary file or UTF-16"));
    (void)close(fd);
    (void)unlink(name);
}

static void problems_are_sorted_and_kept_once(void **unused)
{
    pl_node at = { .origin = "f", .line = 2, .column = 1 }, before = { .origin = "f", .line = 1, .column = 9 },
            included = { .origin = "e", .line = 9, .column = 9 }, cli = { .origin = "command line" };

    (void)unused;
    pl_problem_add(&problems, &cli, "c");
    pl_problem_add(&problems, &cli, "c");
    pl_problem_add(&problems, &at, "b");
    pl_problem_add(&problems, &at, "b");
    pl_problem_add(&problems, &before, "a\nnext");
    pl_problem_add(&problems, &included, "d");
    pl_problems_sort(&problems);
    assert_int_equal(problems.n, 4);
    pl_text_reset(&report);
    pl_problems_write(&problems, &report);
    assert_string_equal(pl_text_str(&report), "e:9:9: d\nf:1:9: a next\nf:2:1: b\ncommand line: c\n");
    for (int i = 0; i < 2 * PL_PROBLEMS_MAX; i++)
        pl_problem_add(&problems, &at, "%d", i);
    assert_true(problems.n <= PL_PROBLEMS_MAX + 16);
}

static void refused_memory_never_looks_like_a_good_file(void **unused)
{
    static const char text[] = "a: &x {b: [1, 2]}\nc: *x\nd: e\n";

    (void)unused;
    for (long nth = 1; nth < 200; nth++) {
        pl_arena *own = pl_arena_new(0);
        pl_problems p = { .mem = own };
        pl_node *root;
        assert_non_null(own);
        pl_arena_refuse(nth);
        root = pl_yaml_parse(text, sizeof text - 1, "f", &p, own);
        pl_arena_refuse(0);
        assert_true(p.refused || (root != NULL && p.n == 0));
        if (!p.refused) {
            assert_string_equal(pl_node_get(pl_node_get(root, "c"), "b")->item[1]->text, "2");
            assert_string_equal(pl_node_get(root, "d")->text, "e");
        }
        pl_arena_free(own);
    }
}

/* ---- linked with -Wl,--wrap=read ---- */

static bool read_fails;

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);

ssize_t __wrap_read(int fd, void *to, size_t n)
{
    if (!read_fails)
        return __real_read(fd, to, n);
    errno = EIO;
    return -1;
}

static void a_file_that_cannot_be_read_is_a_problem(void **unused)
{
    char name[] = "/tmp/molsieve_yaml_XXXXXX", want[80];
    const int fd = mkstemp(name);
    pl_bytes bytes = { 0 };
    bool was_read;

    (void)unused;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: 1\n", 5), 5);
    read_fails = true;
    was_read = pl_yaml_bytes(&bytes, name, &problems, mem);
    read_fails = false;
    assert_false(was_read);
    assert_int_equal(problems.n, 1);
    assert_int_equal(pl_problems_code(&problems), PL_ECONFIG);
    pl_problems_write(&problems, &report);
    (void)snprintf(want, sizeof want, "%s: Input/output error", name);
    says(want);
    problems = (pl_problems){ .mem = mem };
    assert_true(pl_yaml_bytes(&bytes, name, &problems, mem));
    assert_int_equal(bytes.len, 5);
    assert_int_equal(pl_problems_code(&problems), PL_OK);
    pl_text_reset(&report);
    pl_problems_write(&problems, &report);
    assert_string_equal(pl_text_str(&report), "");
    (void)close(fd);
    (void)unlink(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(every_node_knows_its_place),
        TEST(what_surprises_is_refused_with_its_place),
        TEST(a_file_with_tabs_is_told_of_the_tabs_alone),
        TEST(bytes_that_are_not_utf8_are_refused_where_they_are),
        TEST(a_byte_order_mark_and_windows_line_ends_are_fine),
        TEST(anchors_give_copies),
        TEST(an_alias_bomb_is_refused),
        TEST(depth_is_limited),
        TEST(files_that_cannot_be_are_problems),
        TEST(a_file_that_cannot_be_read_is_a_problem),
        TEST(problems_are_sorted_and_kept_once),
        TEST(refused_memory_never_looks_like_a_good_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
