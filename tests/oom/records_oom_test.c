/* SPDX-License-Identifier: Apache-2.0 */
/* Every allocation of the readers is refused in turn: ENOMEM with a reason, or, where it was not needed, the same records as ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "chem/records/record.h"
#include "pipeline/base/sha256.h"
#include "tests/told.h"
#include "tests/heap.h"

enum { LONG = 300, LIMIT = 200, MOST = 500 }; /* bytes of a line that is too long, and of a record; requests of one reading */

#define BLANK "%300s\n" /* a line of LONG blanks */
#define ATOM "    0.0000    0.0000    0.0000 C   0  0  0  0  0  0  0  0  0  0  0  0\n"

static const struct {
    const char *ending, *text; /* %s: "" */
} cases[] = {
    { ".smi", BLANK "CCO ethanol\nCC a title of more than sixteen bytes\n" BLANK "C\n" },
    { ".inchi", BLANK "InChI=1S/CH4/h1H4 methane\nother\nInChI=1S/H2O/h1H2\n" },
    { ".csv", "name,smiles,x,\"a,b\",c,d,e,f,g\n" BLANK "\"a\"\"b\",CC,1,2,3,4,5,6,7\n,C,3\n" },
    { ".csv", "smiles,x\n\"C\n" BLANK "\",1\nCC,2\n" },
    { ".sdf",
      BLANK "a\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n" ATOM "M  END\n> <x>\n1\n\n> <y>\ntwo\n\n$$$$\nb\n\n\n$$$$\n" },
    { ".mol2", BLANK "@<TRIPOS>MOLECULE\na\n 1 0\n@<TRIPOS>ATOM\n1 C 0 0 0 C.3\n@<TRIPOS>MOLECULE\nb\n" BLANK },
    { ".xyz", BLANK "1\nx=1 name=\"a b\"\nC 0 0 0\n" BLANK "2\nhydrogen\nH 0 0 0\nH 0 0 1\n3\n" },
    { ".xyz", "1\ngdb 1\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15\nC 0 0 0 1*^-6\n1.0\nC\nInChI=1S/CH4/h1H4\n" BLANK },
    { ".pdb", BLANK "COMPND    x\nHETATM    1  C   UNL     1       0.000   0.000   0.000\nEND\n" },
    { ".cif", BLANK "data_a\n;\ntext\n;\ndata_b\n" },
};

/* ---- one reading ---- */

static pl_code record_add(pl_sha256 *h, const ch_reader *r, const ch_record *rec, pl_arena *mem, pl_error *err)
{
    ch_field *field = NULL;
    int n = 0;
    const pl_code code = ch_record_fields(&field, &n, r, rec, mem, err);

    pl_sha256_add(h, rec->raw, rec->raw_len);
    pl_sha256_add_str(h, rec->text);
    pl_sha256_add_str(h, rec->title);
    pl_sha256_add_str(h, rec->problem != NULL ? rec->problem : "");
    for (int i = 0; code == PL_OK && i < n; i++) {
        pl_sha256_add_str(h, field[i].name);
        pl_sha256_add_str(h, field[i].text);
    }
    return code;
}

/* The hash of all that the file's records say. */
static pl_code read_all(char out[65], const char *path, pl_arena *mem, pl_error *err)
{
    const ch_reader_opts opts = { .max_record_bytes = LIMIT, .max_file_bytes = 4096, .hash = true };
    ch_reader *r = NULL;
    ch_record rec;
    pl_sha256 h;
    bool more = true;
    int64_t n;
    pl_code code = ch_reader_open(&r, path, NULL, &opts, err);

    pl_sha256_start(&h);
    while (code == PL_OK && more) {
        code = ch_reader_next(r, &rec, &more, err);
        if (code == PL_OK && more)
            code = record_add(&h, r, &rec, mem, err);
    }
    if (code == PL_OK)
        code = ch_reader_hash(r, true, &n, out, err);
    pl_sha256_add_str(&h, out);
    ch_reader_close(r);
    pl_sha256_hex(&h, out);
    return code;
}

/* ---- refusals ---- */

static char path[64];

static void write_file(const char *ending, const char *text, bool gz)
{
    char data[2048];
    gzFile f;
    int n = snprintf(data, sizeof data, text, "", "");

    assert_true(n > LONG && n < (int)sizeof data);
    (void)snprintf(path, sizeof path, "/tmp/molsieve_records_oom_%ld%s", (long)getpid(), ending);
    f = gzopen(path, gz ? "wb" : "wbT"); /* T: not compressed */
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
}

/* How many requests were refused before there was nothing left to refuse. */
static long refuse_in_turn(bool in_arena, const char *want, pl_arena *turn)
{
    long nth = 1;

    for (;; nth++) {
        pl_error err = { 0 };
        char got[65] = "";
        pl_code code;
        bool over;

        atomic_store(&heap_countdown, in_arena ? 0 : nth);
        pl_arena_refuse(in_arena ? nth : 0);
        code = read_all(got, path, turn, &err);
        over = in_arena ? code == PL_OK : atomic_exchange(&heap_countdown, 0) > 0;
        pl_arena_refuse(0);
        pl_arena_reset(turn);
        assert_true(nth < MOST);
        if (code == PL_OK && err.text[0] == '\0' && strcmp(got, want) != 0)
            fail_msg("%s, request %ld: other records", path, nth);
        if (code == PL_ENOMEM ? err.text[0] == '\0' || !tells_for_what(err.text) : code != PL_OK || err.text[0] != '\0')
            fail_msg("%s, request %ld: code %d, \"%s\"", path, nth, (int)code, err.text);
        if (over)
            return nth - 1;
    }
}

static void a_refused_allocation_is_reported_by_every_reader(void **state)
{
    pl_arena *turn = pl_arena_new(1 << 16);

    (void)state;
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        char want[65];
        write_file(cases[k / 2].ending, cases[k / 2].text, k % 2);
        assert_int_equal(read_all(want, path, turn, NULL), PL_OK);
        assert_true(refuse_in_turn(false, want, turn) > 5);
        (void)refuse_in_turn(true, want, turn);
        assert_int_equal(unlink(path), 0);
    }
    pl_arena_free(turn);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_refused_allocation_is_reported_by_every_reader) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
