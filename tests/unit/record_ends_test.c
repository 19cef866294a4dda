/* SPDX-License-Identifier: Apache-2.0 */
/* What the end of an input says of the record at hand, what the first row of a table may be, and how long its units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "chem/records/source.h"
#include "chem/records/unit_names.h"
#include "tests/unit/held.h"
#include "tests/unit/seen_records.h"

/* Looking for the end of a quote meets the end of the file. What is read again from the second line has not met it yet. */
static void a_quote_without_an_end_does_not_hide_the_damage_behind_it(void **state)
{
    static const char text[] = "smiles,name\n\"CC,a\nCCO,b\nCCN,c\nCCCCCC,hex";
    seen s;
    struct stat st;

    (void)state;
    write_file(".csv.gz", text, sizeof text - 1, true);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(truncate(path, st.st_size - 4), 0); /* the length is gone */
    read_path(&s, NULL);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.problem[0], "csv: a quote that is not closed");
    assert_true(s.problem[1] == NULL && strcmp(s.title[1], "b") == 0);
    assert_true(s.problem[2] == NULL && strcmp(s.title[2], "c") == 0);
    assert_non_null(s.problem[3]);
    assert_non_null(strstr(s.problem[3], "gzip"));
    forget(&s);
    (void)unlink(path);
}

static void *write_pipe(void *text)
{
    FILE *f = fopen(path, "wb");

    assert_non_null(f);
    (void)fputs(text, f);
    (void)fclose(f);
    return NULL;
}

/* The first line, and the rest when somebody has taken it. */
static void *write_in_two(void *text)
{
    const char *rest = strchr(text, '\n') + 1;
    FILE *f = fopen(path, "wb");
    int left = 1;

    assert_non_null(f);
    (void)fwrite(text, 1, (size_t)(rest - (char *)text), f);
    (void)fflush(f);
    while (ioctl(fileno(f), FIONREAD, &left) == 0 && left > 0)
        (void)usleep(1000);
    (void)usleep(5000);
    (void)fputs(rest, f);
    (void)fclose(f);
    return NULL;
}

static void read_written(seen *s, const char *ending, void *write(void *text), const char *text, const ch_reader_opts *opts)
{
    pthread_t other;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_record_%ld%s", (long)getpid(), ending);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pthread_create(&other, NULL, write, (void *)(uintptr_t)text), 0);
    read_path(s, opts);
    assert_int_equal(pthread_join(other, NULL), 0);
    (void)unlink(path);
}

static void read_pipe(seen *s, const char *text, bool whole_lines)
{
    read_written(s, ".smi", write_pipe, text, &(ch_reader_opts){ .whole_lines = whole_lines });
}

/* The title of an SDF record may be all that has come. On a busy machine the rest may come too late, but not every time. */
static void the_format_of_a_pipe_is_seen_behind_its_first_line(void **state)
{
    bool is_sdf = false;

    (void)state;
    for (int i = 0; i < 8 && !is_sdf; i++) {
        seen s;
        read_written(&s, "", write_in_two, "ethanol\n\n\nM  END\n$$$$\n", NULL);
        is_sdf = s.n == 1 && strcmp(s.text[0], "ethanol\n\n\nM  END\n$$$$\n") == 0;
        forget(&s);
    }
    assert_true(is_sdf);
}

static void a_pipe_that_ends_within_a_line_has_an_incomplete_record(void **state)
{
    seen s;

    (void)state;
    read_pipe(&s, "CCO a\nCCN", true);
    assert_int_equal(s.n, 2);
    assert_null(s.problem[0]);
    assert_string_equal(s.problem[1], "the input ended within this line, so it may be incomplete; end each line with a line feed");
    forget(&s);
    read_pipe(&s, "CCO a\nCCN\n", true);
    assert_true(s.n == 2 && s.problem[1] == NULL);
    forget(&s);
    read_pipe(&s, "CCO a\nCCN", false);
    assert_true(s.n == 2 && s.problem[1] == NULL);
    forget(&s);
    write_file(".smi", "CCO a\nCCN", 9, false); /* a file does not end by chance */
    read_path(&s, &(ch_reader_opts){ .whole_lines = true });
    assert_true(s.n == 2 && s.problem[1] == NULL);
    forget(&s);
    (void)unlink(path);
}

/* Opens a table whose first row is this name alone. */
static bool is_a_name(const char *name, char said[600])
{
    char text[200];
    const int n = snprintf(text, sizeof text, "%s\nCCO\n", name);
    pl_error err = { 0 };
    ch_reader *r;

    write_file(".csv", text, (size_t)n, false);
    const pl_code code = ch_reader_open(&r, path, NULL, NULL, &err);
    if (code == PL_OK)
        ch_reader_close(r);
    else
        assert_int_equal(code, PL_ECONFIG);
    (void)snprintf(said, 600, "%s", err.text);
    (void)unlink(path);
    return code == PL_OK;
}

static void a_first_row_that_is_a_molecule_is_no_row_of_names(void **state)
{
    static const char *const names[] = { "no", "pos", "on", "cn", "S1", "C2", "P1", "smiles", "molecule", "id1" };
    static const char *const molecules[] = { "CCO", "c1ccccc1", "C1CC1", "[Na+]", "[13CH4]", "[2H]O", "Cl" };
    char said[600], must[300];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!is_a_name(names[i], said))
            fail_msg("%s: %s", names[i], said);
    for (size_t i = 0; i < sizeof molecules / sizeof *molecules; i++) {
        if (is_a_name(molecules[i], said))
            fail_msg("%s was taken for a name", molecules[i]);
        (void)snprintf(must, sizeof must,
                       "%s: the first row has to name the columns, but it has a molecule: the column with SMILES is called "
                       "\"%s\"; put a row such as smiles,name before it",
                       path, molecules[i]);
        assert_string_equal(said, must);
    }
}

static void the_longest_unit_is_whole_and_a_longer_one_cut(void **state)
{
    char given[CH_UNIT_BYTES + 2], unit[CH_UNIT_BYTES];

    (void)state;
    for (size_t n = CH_UNIT_BYTES - 2; n <= CH_UNIT_BYTES; n++) {
        memset(given, 'm', n);
        given[n] = '\0';
        ch_unit_plain(unit, given);
        assert_int_equal(strlen(unit), n < CH_UNIT_BYTES ? n : CH_UNIT_BYTES - 1);
        assert_memory_equal(unit, given, strlen(unit));
    }
}

static void a_quoted_value_may_go_on_for_a_hundred_lines(void **state)
{
    (void)state;
    for (int n = 100; n <= 101; n++) {
        char text[200] = "smiles,note\nC,\"";
        seen s;
        memset(text + strlen(text), '\n', (size_t)n);
        (void)strcat(text, "\"\nCC,b\n");
        read_text(&s, ".csv", text);
        assert_true(s.n >= 2 && s.line[0] == 2);
        if (n == 100)
            assert_true(s.n == 2 && s.problem[0] == NULL && s.problem[1] == NULL && s.line[1] == 103);
        else
            assert_string_equal(s.problem[0], "csv: a quote that is not closed");
        forget(&s);
    }
}

static void a_file_that_cannot_be_opened_is_no_source(void **state)
{
    static char there;
    ch_source *s = (ch_source *)&there;

    (void)state;
    assert_int_equal(ch_source_open(&s, "/nowhere/at all", 100, NULL), PL_EIO);
    assert_null(s);
}

static void read_once(void *data)
{
    static const char *const endings[] = { ".smi", ".sdf", ".mol2", ".xyz", ".pdb", ".cif", ".csv", ".inchi", ".qm9bin", "" };

    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const ch_reader_opts opts = { .max_record_bytes = 20, .title_from = "note" }; /* some lines are too long */
        seen s;
        read_data(&s, endings[i], data, strlen(data), &opts);
        forget(&s);
    }
}

static void a_reader_gives_its_memory_back(void **state)
{
    (void)state;
    assert_holds_nothing(read_once,
                         (void *)(uintptr_t) "smiles,note\nC,\"a\nb\"\n1\nC 0 0 0\ndata_a\n@<TRIPOS>MOLECULE of a long name\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quote_without_an_end_does_not_hide_the_damage_behind_it),
        cmocka_unit_test(the_format_of_a_pipe_is_seen_behind_its_first_line),
        cmocka_unit_test(a_pipe_that_ends_within_a_line_has_an_incomplete_record),
        cmocka_unit_test(a_first_row_that_is_a_molecule_is_no_row_of_names),
        cmocka_unit_test(the_longest_unit_is_whole_and_a_longer_one_cut),
        cmocka_unit_test(a_quoted_value_may_go_on_for_a_hundred_lines),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_no_source),
        cmocka_unit_test(a_reader_gives_its_memory_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
