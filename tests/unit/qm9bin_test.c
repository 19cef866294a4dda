/* SPDX-License-Identifier: Apache-2.0 */
/* QM9's compact file against the same molecules as SDF, and against damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "chem/records/qm9bin.h"
#include "chem/records/record.h"

static const char sdf[] = MOLSIEVE_TESTS "/data/qm9/qm9_dev_2500.sdf.gz";
static char binary[512], made[64];

/* One molecule, two atoms, one bond; everything 8-aligned. */
static size_t small_file(unsigned char out[256])
{
    static const uint32_t head[6] = { 1, 2, 1, 11, 4, 64 };
    static const uint32_t offsets[] = { 42, 0, 0, 2, 0, 1 }; /* gdb + pad, atoms, bonds */
    static const float xyz[6] = { 0, 0, 0, 0, 0, 1.12345672f };

    memset(out, 0, 256);
    memcpy(out, "QM9BIN01", 8);
    memcpy(out + 8, head, sizeof head);
    memcpy(out + 64, &offsets[0], 4);
    memcpy(out + 72, &offsets[2], 8);
    memcpy(out + 80, &offsets[4], 8);
    out[88] = 1;                   /* valid */
    out[96] = 6, out[97] = 8;      /* C O   */
    out[104] = 0xFF, out[105] = 1; /* charges */
    memcpy(out + 112, xyz, sizeof xyz);
    out[136] = 0, out[137] = 1, out[138] = 3;
    return 136 + 8 + 48 + 32;
}

static const char *write_bytes(const unsigned char *bytes, size_t n)
{
    FILE *f = fopen(made, "wb");

    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return made;
}

static void a_small_file_becomes_the_record_it_describes(void **state)
{
    static const char *const want = "gdb_42\n  QM9BIN01          3D\n\n  0  0  0     0  0            999 V3000\n"
                                    "M  V30 BEGIN CTAB\nM  V30 COUNTS 2 1 0 0 0\nM  V30 BEGIN ATOM\n"
                                    "M  V30 1 C 0 0 0 0 CHG=-1\nM  V30 2 O 0 0 1.12345672 0 CHG=1\nM  V30 END ATOM\n"
                                    "M  V30 BEGIN BOND\nM  V30 1 3 1 2\nM  V30 END BOND\nM  V30 END CTAB\nM  END\n"
                                    "> <gdb_index>\n42\n\n> <split>\n1\n\n> <A>\n0\n\n";
    unsigned char bytes[256];
    size_t n = small_file(bytes);
    pl_text text = { 0 };
    ch_qm9 *q;

    (void)state;
    assert_int_equal(ch_qm9_open(&q, write_bytes(bytes, n), NULL), PL_OK);
    assert_int_equal(ch_qm9_count(q), 1);
    assert_int_equal(ch_qm9_record(&text, q, 0, NULL), PL_OK);
    assert_memory_equal(text.s, want, strlen(want));
    pl_text_free(&text);
    ch_qm9_close(q);
}

/* Hydrogens that are not in the file would be added to fill its bonds. */
static void atoms_with_too_few_bonds_are_bad_input(void **state)
{
    static const struct {
        unsigned char z, charge, order;
        const char *text; /* NULL: good */
    } cases[] = { { 6, 0xFF, 3, NULL },
                  { 6, 0xFF, 2, "gdb_42: atom 1 (C) has bonds of order 2, but 3 or more are needed: its bond orders are wrong" },
                  { 6, 0, 3, "gdb_42: atom 1 (C) has bonds of order 3, but 4 or more are needed: its bond orders are wrong" },
                  { 7, 0, 3, NULL },
                  { 7, 1, 3, "gdb_42: atom 1 (N) has bonds of order 3, but 4 or more are needed: its bond orders are wrong" },
                  { 7, 0xFF, 3, NULL },
                  { 1, 0, 3, NULL },
                  { 9, 0, 3, NULL },
                  { 16, 0, 3, NULL } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        unsigned char bytes[256];
        size_t n = small_file(bytes);
        pl_text text = { 0 };
        pl_error err = { 0 };
        ch_qm9 *q;

        bytes[96] = cases[k].z;
        bytes[104] = cases[k].charge;
        bytes[138] = cases[k].order;
        bytes[105] = cases[k].order == 3; /* O+ has three bonds, O two */
        assert_int_equal(ch_qm9_open(&q, write_bytes(bytes, n), NULL), PL_OK);
        assert_int_equal(ch_qm9_record(&text, q, 0, &err), cases[k].text == NULL ? PL_OK : PL_EINPUT);
        assert_string_equal(err.text, cases[k].text != NULL ? cases[k].text : "");
        pl_text_free(&text);
        ch_qm9_close(q);
    }
}

static void a_short_or_damaged_file_is_bad_input_and_never_read_beyond(void **state)
{
    unsigned char bytes[256];
    size_t n = small_file(bytes);
    ch_qm9 *q;

    (void)state;
    for (size_t len = 0; len < n; len++)
        assert_int_equal(ch_qm9_open(&q, write_bytes(bytes, len), NULL), PL_EINPUT);
    for (size_t at = 0; at < n; at++) {
        unsigned char copy[256];
        pl_text text = { 0 };
        memcpy(copy, bytes, sizeof copy);
        copy[at] ^= 0x84;
        if (ch_qm9_open(&q, write_bytes(copy, n), NULL) == PL_OK)
            for (int32_t i = 0; i < ch_qm9_count(q); i++)
                (void)ch_qm9_record(&text, q, i, NULL);
        pl_text_free(&text);
        ch_qm9_close(q);
    }
}

static void each_damage_of_a_file_is_named(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *text;
    } cases[] = {
        { 0, 0x394d5158, "not a QM9BIN01 file" },
        { 20, 12, "the header of QM9BIN01 is not valid" },
        { 24, 5, "the header of QM9BIN01 is not valid" },
        { 28, 63, "the header of QM9BIN01 is not valid" },
        { 8, 0x7fffffff, "the header of QM9BIN01 is not valid" },
        { 12, 0x7fffffff, "the header of QM9BIN01 is not valid" },
        { 16, 0x7fffffff, "the header of QM9BIN01 is not valid" },
        { 8, 4194304, "224 bytes, 373293184 expected; the file is truncated" }, /* the most that are read, and one more */
        { 8, 4194305, "the header of QM9BIN01 is not valid" },
        { 12, 419430400, "224 bytes, 5872025784 expected; the file is truncated" },
        { 12, 419430401, "the header of QM9BIN01 is not valid" },
        { 16, 419430400, "224 bytes, 1258291416 expected; the file is truncated" },
        { 16, 419430401, "the header of QM9BIN01 is not valid" },
        { 12, 9, "224 bytes, 328 expected; the file is truncated" },
        { 72, 3, "the offsets of QM9BIN01 are damaged" },
        { 76, 1, "the offsets of QM9BIN01 are damaged" },
        { 80, 2, "the offsets of QM9BIN01 are damaged" },
        { 84, 0, "the offsets of QM9BIN01 are damaged" },
    };
    unsigned char bytes[256];
    size_t n = small_file(bytes);
    char want[200];
    ch_qm9 *q;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned char copy[256];
        pl_error err = { 0 };
        memcpy(copy, bytes, sizeof copy);
        memcpy(copy + cases[i].at, &cases[i].value, 4);
        assert_int_equal(ch_qm9_open(&q, write_bytes(copy, n), &err), PL_EINPUT);
        assert_null(q);
        (void)snprintf(want, sizeof want, "%s: %s", made, cases[i].text);
        assert_string_equal(err.text, want);
    }
}

static long peak_kib(void)
{
    struct rusage r;

    assert_int_equal(getrusage(RUSAGE_SELF, &r), 0);
    return r.ru_maxrss;
}

/* A gibibyte of zeros follows the header; by the header the file should be longer, or shorter. */
static void a_wrong_length_is_refused_before_the_file_is_read(void **state)
{
    static const struct {
        uint32_t atoms;
        const char *text;
    } cases[] = { { 1u << 28, "1073741824 bytes, 3758096568 expected; the file is truncated" },
                  { 2, "more than the 224 bytes that the header of QM9BIN01 tells" } };
    unsigned char bytes[256];
    const size_t n = small_file(bytes);
    char want[200];
    ch_qm9 *q;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const long before = peak_kib();
        pl_error err = { 0 };
        memcpy(bytes + 12, &cases[i].atoms, 4);
        (void)write_bytes(bytes, n);
        assert_int_equal(truncate(made, (off_t)1 << 30), 0);
        assert_int_equal(ch_qm9_open(&q, made, &err), PL_EINPUT);
        (void)snprintf(want, sizeof want, "%s: %s", made, cases[i].text);
        assert_string_equal(err.text, want);
        assert_true(peak_kib() - before < 100 * 1024);
    }
}

/* A few bytes of gzip cannot hold as much as this header says. */
static void a_gzip_file_that_cannot_hold_its_molecules_is_refused(void **state)
{
    unsigned char bytes[256];
    const size_t n = small_file(bytes);
    const uint32_t atoms = 1u << 28;
    pl_error err = { 0 };
    gzFile f = gzopen(made, "wb");
    ch_qm9 *q;

    (void)state;
    memcpy(bytes + 12, &atoms, 4);
    assert_int_equal(gzwrite(f, bytes, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
    assert_int_equal(ch_qm9_open(&q, made, &err), PL_EINPUT);
    assert_non_null(strstr(err.text, " at most "));
}

/* It ends as gzip files end, so nothing but its length is wrong. */
static void a_gzip_file_that_was_cut_before_it_was_packed_is_refused(void **state)
{
    unsigned char bytes[256];
    const size_t n = small_file(bytes);
    char want[200];
    ch_qm9 *q;

    (void)state;
    for (size_t len = 64; len < n; len += 8) {
        pl_error err = { 0 };
        gzFile f = gzopen(made, "wb");
        assert_int_equal(gzwrite(f, bytes, (unsigned)len), len);
        assert_int_equal(gzclose(f), Z_OK);
        assert_int_equal(ch_qm9_open(&q, made, &err), PL_EINPUT);
        (void)snprintf(want, sizeof want, "%s: %zu bytes, 224 expected; the file is truncated", made, len);
        assert_string_equal(err.text, want);
    }
}

static void a_bond_of_an_atom_or_an_order_that_is_not_there_is_bad_input(void **state)
{
    static const struct {
        unsigned char bond[3];
        bool good;
    } cases[] = { { { 0, 1, 3 }, true },  { { 1, 0, 3 }, true },  { { 0, 2, 3 }, false },
                  { { 2, 0, 3 }, false }, { { 0, 1, 0 }, false }, { { 0, 1, 4 }, false } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        unsigned char bytes[256];
        const size_t n = small_file(bytes);
        pl_text text = { 0 };
        pl_error err = { 0 };
        ch_qm9 *q;

        memcpy(bytes + 136, cases[k].bond, 3);
        assert_int_equal(ch_qm9_open(&q, write_bytes(bytes, n), NULL), PL_OK);
        assert_int_equal(ch_qm9_record(&text, q, 0, &err), cases[k].good ? PL_OK : PL_EINPUT);
        assert_string_equal(err.text, cases[k].good ? "" : "gdb_42 has a bond to an atom that is not there, or of no order");
        pl_text_free(&text);
        ch_qm9_close(q);
    }
}

static double field_value(const ch_field *f, int n, const char *name)
{
    const ch_field *found = ch_field_find(f, n, name);

    assert_non_null(found);
    return found->value;
}

/* Behind the first `line` of the record. */
static const char *after_line(const char *record, const char *line)
{
    const char *p = strstr(record, line);
    assert_non_null(p);
    return p + strlen(line);
}

static void same_molecule(const ch_reader *ra, const ch_record *a, const ch_reader *rb, const ch_record *b, pl_arena *mem)
{
    static const char *const names[] = { "gdb_index", "A",  "B",    "C",  "mu", "alpha", "homo", "lumo",
                                         "gap",       "r2", "zpve", "Cv", "U0", "U",     "H",    "G" };
    ch_field *fa, *fb;
    int na, nb, atoms = atoi(strstr(strstr(strchr(a->text, '\n') + 1, "\n") + 1, "\n") + 1) % 1000;

    assert_int_equal(ch_record_fields(&fa, &na, ra, a, mem, NULL), PL_OK);
    assert_int_equal(ch_record_fields(&fb, &nb, rb, b, mem, NULL), PL_OK);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double x = field_value(fa, na, names[i]), y = field_value(fb, nb, names[i]);
        if (x != y) /* the binary holds 11 of them as float32 */
            assert_true((float)x == (float)y);
    }
    assert_true(atoms > 0);
    const char *pa = after_line(a->text, "V2000\n"), *pb = after_line(b->text, "BEGIN ATOM\n");
    int sdf_bond[3], binary_bond[3];
    for (int i = 0; i < atoms && i < 29; i++, pa = strchr(pa, '\n') + 1, pb = strchr(pb, '\n') + 1) {
        double at[3];
        assert_int_equal(sscanf(pb, "M  V30 %*d %*s %lf %lf %lf", &at[0], &at[1], &at[2]), 3);
        for (int k = 0; k < 3; k++) {
            double d = strtod(pa + 10 * k, NULL) - at[k]; /* the SDF has four decimals */
            if (!(d <= 0.51e-4 && d >= -0.51e-4))
                fail_msg("%s atom %d differs by %g", a->title, i, d);
        }
    }
    assert_int_equal(sscanf(pa, "%3d%3d%3d", &sdf_bond[0], &sdf_bond[1], &sdf_bond[2]), 3);
    assert_int_equal(
        sscanf(after_line(b->text, "BEGIN BOND\n"), "M  V30 1 %d %d %d", &binary_bond[2], &binary_bond[0], &binary_bond[1]), 3);
    assert_memory_equal(sdf_bond, binary_bond, sizeof sdf_bond);
}

static void the_binary_holds_the_molecules_of_the_sdf(void **state)
{
    ch_reader *a, *b;
    ch_record ra, rb;
    bool more = true, more_b = true;
    int n = 0;
    pl_arena *mem = pl_arena_new(1 << 16);

    (void)state;
    assert_int_equal(ch_reader_open(&a, sdf, NULL, NULL, NULL), PL_OK);
    assert_int_equal(ch_reader_open(&b, binary, NULL, NULL, NULL), PL_OK);
    assert_string_equal(ch_reader_format(b), "qm9bin");
    /* Both are in ascending order of the index; every molecule of the SDF is in the binary. */
    while (ch_reader_next(a, &ra, &more, NULL) == PL_OK && more && n < 2500) {
        do {
            assert_true(ch_reader_next(b, &rb, &more_b, NULL) == PL_OK && more_b && rb.problem == NULL);
            assert_int_equal(rb.line, 1); /* it has no lines */
        } while (strcmp(ra.title, rb.title) != 0);
        same_molecule(a, &ra, b, &rb, mem);
        pl_arena_reset(mem);
        n++;
    }
    assert_int_equal(n, 2500);
    ch_reader_close(a);
    ch_reader_close(b);
    pl_arena_free(mem);
}

static void a_reader_goes_on_where_it_was_told_to(void **state)
{
    ch_reader *r, *again;
    ch_record x, y;
    bool more;

    (void)state;
    assert_int_equal(ch_reader_open(&r, binary, NULL, NULL, NULL), PL_OK);
    for (int i = 0; i <= 1234; i++)
        assert_int_equal(ch_reader_next(r, &x, &more, NULL), PL_OK);
    assert_int_equal(ch_reader_open(&again, binary, "qm9bin", NULL, NULL), PL_OK);
    assert_int_equal(ch_reader_seek(again, x.offset, x.ordinal, x.line, NULL), PL_OK);
    assert_int_equal(ch_reader_next(again, &y, &more, NULL), PL_OK);
    assert_true(x.ordinal == y.ordinal && x.offset == y.offset && x.len == y.len);
    assert_memory_equal(x.text, y.text, x.len);
    ch_reader_close(r);
    ch_reader_close(again);
}

/* The whole file is loaded before the first record. */
static void a_stop_request_ends_loading_of_a_qm9bin_file(void **state)
{
    static const char some[] = "QM9BIN01, and the rest does not matter";
    atomic_int stop = 1;
    const ch_reader_opts opts = { .stop = &stop };
    ch_record rec;
    ch_reader *r;
    bool more;
    FILE *f = fopen(made, "wb");

    (void)state;
    assert_true(f != NULL && fputs(some, f) >= 0 && fclose(f) == 0);
    assert_int_equal(ch_reader_open(&r, made, "qm9bin", &opts, NULL), PL_OK);
    assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_ESTOP);
    ch_reader_close(r);
}

/* Its other records are read; this one is a row with a title and a reason. */
static void a_damaged_molecule_keeps_its_title(void **state)
{
    static const float far = 1e6f;
    unsigned char bytes[256];
    const size_t n = small_file(bytes);
    ch_reader *r;
    ch_record rec;
    bool more;

    (void)state;
    for (int k = 0; k < 6; k++) {
        unsigned char damaged[256];
        memcpy(damaged, bytes, n);
        memcpy(damaged + 112 + 4 * k, &far, sizeof far);
        assert_int_equal(ch_reader_open(&r, write_bytes(damaged, n), "qm9bin", NULL, NULL), PL_OK);
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_true(more && rec.line == 1);
        assert_string_equal(rec.problem, "gdb_42 has a position that is not finite or too large");
        assert_string_equal(rec.title, "gdb_42");
        assert_int_equal(ch_reader_next(r, &rec, &more, NULL), PL_OK);
        assert_false(more);
        ch_reader_close(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_file_becomes_the_record_it_describes),
        cmocka_unit_test(atoms_with_too_few_bonds_are_bad_input),
        cmocka_unit_test(a_short_or_damaged_file_is_bad_input_and_never_read_beyond),
        cmocka_unit_test(each_damage_of_a_file_is_named),
        cmocka_unit_test(a_wrong_length_is_refused_before_the_file_is_read),
        cmocka_unit_test(a_gzip_file_that_cannot_hold_its_molecules_is_refused),
        cmocka_unit_test(a_gzip_file_that_was_cut_before_it_was_packed_is_refused),
        cmocka_unit_test(a_bond_of_an_atom_or_an_order_that_is_not_there_is_bad_input),
        cmocka_unit_test(the_binary_holds_the_molecules_of_the_sdf),
        cmocka_unit_test(a_reader_goes_on_where_it_was_told_to),
        cmocka_unit_test(a_stop_request_ends_loading_of_a_qm9bin_file),
        cmocka_unit_test(a_damaged_molecule_keeps_its_title),
    };
    const char *shared = getenv("MOLSIEVE_SHARED");
    int failed;

    (void)snprintf(binary, sizeof binary, "%s", MOLSIEVE_TESTS "/data/qm9/qm9_part.bin.gz");
    if (shared != NULL && shared[0] != '\0') /* all of the training and validation parts */
        (void)snprintf(binary, sizeof binary, "%s/data/qm9/qm9_trainvalid.bin.gz", shared);
    (void)snprintf(made, sizeof made, "/tmp/qm9bin_test.%ld", (long)getpid());
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    (void)unlink(made);
    return failed;
}
