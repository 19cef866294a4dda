/* SPDX-License-Identifier: Apache-2.0 */
/* Damage within a gzip file or bytes after it: all records before it are read, one more reports what was found, and
 * a reader that begins in the middle gives the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "chem/records/gunzip.h"
#include "chem/records/record.h"

enum { SMALL = 40, LARGE = 30000, ROOM = 1 << 20, FILL = 1024 }; /* LARGE: more bytes than one read takes */

static char path[64];
static unsigned char file[ROOM];
static size_t n_file;

static void add(const void *data, size_t n)
{
    assert_true(n_file + n <= ROOM);
    memcpy(file + n_file, data, n);
    n_file += n;
}

/* A gzip member with records first .. first+n-1, 9 bytes each. */
static void add_member(int first, int n)
{
    char *text = malloc(9 * (size_t)n + 8);
    z_stream z = { 0 };

    assert_non_null(text);
    for (int i = 0; i < n; i++)
        (void)snprintf(text + 9 * (size_t)i, 17, "C m%05d\n", (first + i) % 100000);
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)text;
    z.avail_in = 9 * (unsigned)n;
    z.next_out = file + n_file;
    z.avail_out = (unsigned)(ROOM - n_file);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n_file = ROOM - z.avail_out;
    (void)deflateEnd(&z);
    free(text);
}

static ch_reader *open_file(void)
{
    ch_reader *r;
    FILE *f;

    (void)snprintf(path, sizeof path, "/tmp/molsieve_gunzip_%ld.smi.gz", (long)getpid());
    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(file, 1, n_file, f), n_file);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(ch_reader_open(&r, path, NULL, NULL, NULL), PL_OK);
    return r;
}

/* Expects n good records and then, if why is not NULL, one with that reason; and each again after a seek. */
static void holds(int n, const char *why)
{
    ch_reader *r = open_file(), *again;
    const int all = n + (why != NULL);
    ch_record rec, same;
    char title[16];
    bool more;

    for (int i = 0; i < all; i++) {
        assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && more);
        (void)snprintf(title, sizeof title, "m%05d", i);
        if (i < n)
            assert_true(rec.problem == NULL && strcmp(rec.title, title) == 0 && rec.offset == 9 * i);
        else
            assert_non_null(rec.problem ? strstr(rec.problem, why) : NULL);
        if (i > 2 && i < all - 2 && i % 9999 != 0)
            continue;
        assert_int_equal(ch_reader_open(&again, path, NULL, NULL, NULL), PL_OK);
        assert_int_equal(ch_reader_seek(again, rec.offset, rec.ordinal, rec.line, NULL), PL_OK);
        assert_true(ch_reader_next(again, &same, &more, NULL) == PL_OK && more && same.ordinal == rec.ordinal);
        assert_string_equal(same.title, rec.title);
        assert_string_equal(same.problem ? same.problem : "", rec.problem ? rec.problem : "");
        assert_true(ch_reader_next(again, &same, &more, NULL) == PL_OK && more == (i + 1 < all));
        ch_reader_close(again);
    }
    assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && !more);
    ch_reader_close(r);
    (void)unlink(path);
}

static void members_and_zeros_behind_them_are_one_file(void **state)
{
    static const char zeros[FILL];
    (void)state;

    for (int n = SMALL; n <= LARGE; n += LARGE - SMALL) {
        n_file = 0;
        add_member(0, n);
        add_member(n, 0);
        add_member(n, n);
        holds(2 * n, NULL);
        add(zeros, sizeof zeros);
        holds(2 * n, NULL);
    }
}

static void what_follows_and_is_no_gzip_is_said(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } tail[] = {
        { "C lost\n", 7, "is not gzip, from byte " },
        { "\x1f", 1, "unexpected end of file" },
        { "\x1fxxxxxxxxxxxx", 13, "incorrect header check" },
        { "\x1f\x8b\x09xxxxxxxxxxxx", 15, "unknown compression method" },
        { "\0\0\0x", 4, "is not gzip" },
        { "\0\0\x1f\x8b\x08\0\0\0\0\0\0\3\3\0\0\0\0\0\0\0\0\0", 22, "is not gzip" },
    };
    (void)state;

    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++)
        for (int n = SMALL; n <= LARGE; n += LARGE - SMALL) {
            n_file = 0;
            add_member(0, n);
            add(tail[i].bytes, tail[i].n);
            holds(n, tail[i].why);
        }
}

static void the_byte_it_begins_with_is_named(void **state)
{
    char why[64];
    (void)state;

    n_file = 0;
    add_member(0, SMALL);
    (void)snprintf(why, sizeof why, "is not gzip, from byte %zu on", n_file + 1);
    add("C lost\n", 7);
    holds(SMALL, why);
}

static void damage_in_a_member_leaves_those_before_it(void **state)
{
    (void)state;

    for (int n = SMALL; n <= LARGE; n += LARGE - SMALL) {
        n_file = 0;
        add_member(0, n);
        add_member(n, SMALL);
        file[n_file - 6] ^= 1; /* of the checksum */
        holds(n, "incorrect data check");
    }
}

/* A record that may be cut by the damage is not read as a molecule: "C m0003" instead of "C m00039". */
static void half_a_line_before_damage_fails(void **state)
{
    ch_reader *r;
    ch_record rec;
    bool more = true;
    const uint32_t crc = (uint32_t)crc32(0, (const unsigned char *)"C m00", 5), len = 5;
    int n = 0;
    (void)state;

    n_file = 0;
    add("\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
    add("\1\5\0\xfa\xff"
        "C m00",
        10); /* a stored block, the last one */
    add(&crc, 4);
    add(&len, 4);
    add("no gzip", 7);
    r = open_file();
    for (; ch_reader_next(r, &rec, &more, NULL) == PL_OK && more; n++)
        assert_non_null(rec.problem);
    assert_int_equal(n, 1);
    ch_reader_close(r);
    (void)unlink(path);
}

/* A mol2 record has no last line; the end of the gzip member ends it. */
static void the_last_record_of_a_whole_member_stays(void **state)
{
    static const char text[] = "@<TRIPOS>MOLECULE\na\n@<TRIPOS>MOLECULE\nb\n";
    const uint32_t len = sizeof text - 1, crc = (uint32_t)crc32(0, (const unsigned char *)text, len);
    const unsigned char stored[] = { 1, (unsigned char)len, 0, (unsigned char)~len, 0xff };
    ch_record rec;
    bool more;
    ch_reader *r;
    (void)state;

    n_file = 0;
    add("\x1f\x8b\x08\0\0\0\0\0\0\3", 10);
    add(stored, sizeof stored);
    add(text, len);
    add(&crc, 4);
    add(&len, 4);
    add("no gzip", 7);
    ch_reader_close(open_file());
    assert_int_equal(ch_reader_open(&r, path, "mol2", NULL, NULL), PL_OK);
    for (int i = 0; i < 3; i++)
        assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && more && (rec.problem != NULL) == (i == 2));
    assert_true(rec.len == 0 && rec.offset == len);
    assert_true(ch_reader_next(r, &rec, &more, NULL) == PL_OK && !more);
    ch_reader_close(r);
    (void)unlink(path);
}

static void seeking_outside_of_the_data_is_an_error(void **state)
{
    ch_gunzip *g;
    pl_error err = { 0 };
    char c;
    size_t got;
    (void)state;

    n_file = 0;
    add_member(0, SMALL);
    ch_reader_close(open_file());
    assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_OK);
    assert_int_equal(ch_gunzip_seek(g, -1, &err), PL_EIO);
    assert_true(strncmp(err.text, path, strlen(path)) == 0 && strcmp(err.text + strlen(path), ": no byte -1") == 0);
    err = (pl_error){ 0 };
    assert_int_equal(ch_gunzip_seek(g, 9 * SMALL + 1, &err), PL_EIO);
    assert_true(strncmp(err.text, path, strlen(path)) == 0 && strcmp(err.text + strlen(path), ": cannot go to byte 361") == 0);
    assert_int_equal(ch_gunzip_seek(g, 9 * SMALL, NULL), PL_OK);
    assert_true(ch_gunzip_read(g, &c, 1, &got, NULL) == PL_OK && got == 0);
    assert_int_equal(ch_gunzip_seek(g, 9 * SMALL - 2, NULL), PL_OK);
    assert_true(ch_gunzip_read(g, &c, 1, &got, NULL) == PL_OK && got == 1 && c == '9');
    assert_int_equal(ch_gunzip_seek(g, 9 * 5 + 7, NULL), PL_OK); /* back, and on from within a block */
    assert_true(ch_gunzip_read(g, &c, 1, &got, NULL) == PL_OK && got == 1 && c == '5');
    assert_int_equal(ch_gunzip_seek(g, 9 * 23 + 7, NULL), PL_OK);
    assert_true(ch_gunzip_read(g, &c, 1, &got, NULL) == PL_OK && got == 1 && c == '3');
    ch_gunzip_close(g);
    (void)unlink(path);
    assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_EIO);
    assert_null(g);
    ch_gunzip_close(g);
}

/* Nothing is left to read, and that is no damage. */
static void a_drained_file_is_at_its_end(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        ch_gunzip *g;
        char c;
        size_t got = 9;
        n_file = 0;
        if (packed)
            add_member(0, SMALL);
        else
            add("CCO ethanol\n", 12);
        ch_reader_close(open_file());
        assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_OK);
        assert_true(ch_gunzip_read(g, &c, 1, &got, NULL) == PL_OK && got == 1);
        assert_int_equal(ch_gunzip_drain(g, NULL), PL_OK);
        while (got > 0) /* what was unpacked before */
            assert_int_equal(ch_gunzip_read(g, &c, 1, &got, NULL), PL_OK);
        assert_null(ch_gunzip_damage(g));
        ch_gunzip_close(g);
        (void)unlink(path);
    }
}

static void what_is_stopped_before_it_begins_reads_nothing(void **state)
{
    static const atomic_int stop = 1;
    pl_error err = { 0 };

    (void)state;
    for (int packed = 0; packed < 2; packed++) {
        ch_gunzip *g;
        char c;
        size_t got = 9;
        n_file = 0;
        if (packed)
            add_member(0, SMALL);
        else
            add("CCO ethanol\n", 12);
        ch_reader_close(open_file());
        assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_OK);
        ch_gunzip_set_stop(g, &stop);
        assert_int_equal(ch_gunzip_read(g, &c, 1, &got, &err), PL_ESTOP);
        assert_int_equal(got, 0);
        assert_true(strncmp(err.text, "stopped while reading ", 22) == 0 && strcmp(err.text + 22, path) == 0);
        ch_gunzip_close(g);
        (void)unlink(path);
    }
}

static atomic_int stop_now;

static void *stop_soon(void *unused)
{
    (void)unused;
    (void)usleep(50000);
    stop_now = 1;
    return NULL;
}

static void a_silent_pipe_is_left_when_the_run_stops(void **state)
{
    pl_error err = { 0 };
    pthread_t other;
    ch_gunzip *g;
    size_t got;
    char c;

    (void)state;
    (void)snprintf(path, sizeof path, "/tmp/molsieve_gunzip_%ld.smi", (long)getpid());
    assert_int_equal(mkfifo(path, 0600), 0);
    const int writer = open(path, O_RDWR | O_CLOEXEC); /* it says nothing */
    assert_true(writer >= 0);
    assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_OK);
    ch_gunzip_set_stop(g, &stop_now);
    assert_int_equal(pthread_create(&other, NULL, stop_soon, NULL), 0);
    assert_int_equal(ch_gunzip_read(g, &c, 1, &got, &err), PL_ESTOP);
    assert_int_equal(pthread_join(other, NULL), 0);
    ch_gunzip_close(g);
    (void)close(writer);
    (void)unlink(path);
}

/* ---- a disk that fails ---- */

static int reads_left = -1; /* those that succeed before one fails; -1: all */
static bool fails_once;

ssize_t __real_read(int fd, void *to, size_t n);
ssize_t __wrap_read(int fd, void *to, size_t n);

ssize_t __wrap_read(int fd, void *to, size_t n)
{
    if (reads_left == 0) {
        reads_left -= fails_once;
        errno = EIO;
        return -1;
    }
    reads_left -= reads_left > 0;
    return __real_read(fd, to, n);
}

/* A file of several reads, packed or not. */
static void add_long(bool packed)
{
    static unsigned char text[ROOM / 2];
    z_stream z = { 0 };

    memset(text, 'C', sizeof text);
    if (!packed) {
        add(text, sizeof text);
        return;
    }
    assert_int_equal(deflateInit2(&z, 0, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = text;
    z.avail_in = sizeof text;
    z.next_out = file;
    z.avail_out = ROOM;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    n_file = ROOM - z.avail_out;
    (void)deflateEnd(&z);
}

/* What was read before is given, and then the error, each time that one asks. */
static void a_disk_that_fails_is_an_error(void **state)
{
    (void)state;
    for (int packed = 0; packed < 2; packed++)
        for (int good = 0; good < 3; good++) {
            static char to[ROOM];
            pl_error err = { 0 };
            ch_gunzip *g;
            size_t got = 9;
            n_file = 0;
            add_long(packed != 0);
            ch_reader_close(open_file());
            assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_OK);
            reads_left = good;
            pl_code code = PL_OK;
            while (code == PL_OK && got > 0)
                code = ch_gunzip_read(g, to, sizeof to, &got, &err);
            assert_int_equal(code, PL_EIO);
            assert_int_equal(ch_gunzip_read(g, to, sizeof to, &got, &err), PL_EIO);
            assert_null(ch_gunzip_damage(g));
            reads_left = -1;
            ch_gunzip_close(g);
            (void)unlink(path);
        }
}

/* Going forward in a packed file reads: what fails then is not that the place is not there. */
static void a_stop_on_the_way_to_a_place_is_no_end_of_the_file(void **state)
{
    static char to[ROOM];
    atomic_int stop = 0;
    pl_error err = { 0 };
    ch_gunzip *g;
    size_t got;

    (void)state;
    n_file = 0;
    add_long(true);
    ch_reader_close(open_file());
    assert_int_equal(ch_gunzip_open(&g, path, NULL), PL_OK);
    ch_gunzip_set_stop(g, &stop);
    assert_int_equal(ch_gunzip_read(g, to, sizeof to, &got, NULL), PL_OK);
    assert_in_range(got, 1, ROOM / 2 - 2);
    stop = 1;
    assert_int_equal(ch_gunzip_seek(g, ROOM / 2 - 1, &err), PL_ESTOP);
    assert_non_null(strstr(err.text, "stopped while reading "));
    ch_gunzip_close(g);
    (void)unlink(path);
}

/* One record of many reads: head, the line again and again, tail. */
static const struct {
    const char *format, *head, *line, *tail;
} long_records[] = {
    { "xyz", "50000\na\n", "C 0 0 0 0 0\n", "" },
    { "sdf", "a\n\n\n", "some data\n", "$$$$\n" },
    { "mol2", "@<TRIPOS>MOLECULE\na\n", "1 C 0 0 0\n", "" },
    { "pdb", "", "REMARK   1 SOME TEXT\n", "END\n" },
    { "cif", "data_a\n", "_a_b value\n", "" },
    { "smi", "C a", " and more", "\n" },
    { "csv", "smiles,name\nC,a", " and more", "\n" },
    { "csv", "smiles,name\n\"C\n", " and more", "\",a\n" },
    { "csv", "smiles,name\n", "\n", "C,a\n" },
    { "xyz", "1\na", " and more", "\nC 0 0 0\n" },
    { "xyz", "", "\n", "1\na\nC 0 0 0\n" },
};

/* What ends a record is its end, not a disk that fails once within it. */
static void check_once(size_t k, int good)
{
    pl_code code = PL_OK;
    bool more = true;
    ch_record rec;
    ch_reader *r;

    ch_reader_close(open_file());
    reads_left = good;
    code = ch_reader_open(&r, path, long_records[k].format, NULL, NULL);
    while (code == PL_OK && more)
        code = ch_reader_next(r, &rec, &more, NULL);
    if (code != PL_EIO || reads_left >= 0)
        fail_msg("%s, read %d: status %d", long_records[k].format, good + 1, (int)code);
    reads_left = -1;
    ch_reader_close(r);
    (void)unlink(path);
}

static void a_disk_that_fails_once_is_an_error_in_each_format(void **state)
{
    (void)state;
    fails_once = true;
    for (size_t k = 0; k < sizeof long_records / sizeof *long_records; k++)
        for (int good = 1; good < 4; good++) {
            n_file = 0;
            add(long_records[k].head, strlen(long_records[k].head));
            while (n_file < ROOM * 5 / 8)
                add(long_records[k].line, strlen(long_records[k].line));
            add(long_records[k].tail, strlen(long_records[k].tail));
            check_once(k, good);
        }
    fails_once = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_and_zeros_behind_them_are_one_file),
        cmocka_unit_test(what_follows_and_is_no_gzip_is_said),
        cmocka_unit_test(the_byte_it_begins_with_is_named),
        cmocka_unit_test(damage_in_a_member_leaves_those_before_it),
        cmocka_unit_test(half_a_line_before_damage_fails),
        cmocka_unit_test(the_last_record_of_a_whole_member_stays),
        cmocka_unit_test(seeking_outside_of_the_data_is_an_error),
        cmocka_unit_test(a_drained_file_is_at_its_end),
        cmocka_unit_test(what_is_stopped_before_it_begins_reads_nothing),
        cmocka_unit_test(a_silent_pipe_is_left_when_the_run_stops),
        cmocka_unit_test(a_disk_that_fails_is_an_error),
        cmocka_unit_test(a_disk_that_fails_once_is_an_error_in_each_format),
        cmocka_unit_test(a_stop_on_the_way_to_a_place_is_no_end_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
