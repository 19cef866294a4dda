/* SPDX-License-Identifier: Apache-2.0 */
/* The base: digests, numbers and words in texts, random numbers, files, memory. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/file.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/place.h"
#include "pipeline/base/rng.h"
#include "pipeline/base/sha256.h"
#include "pipeline/base/sha256_blocks.h"
#include "pipeline/base/text.h"
#include "pipeline/base/wrap.h"

static void sha256_gives_the_published_digests(void **unused)
{
    static const struct {
        const char *text;
        int times;
        const char *hex;
    } known[] = {
        { "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "aaaaaaaaaa", 100000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        pl_sha256 s;
        char hex[65];
        pl_sha256_start(&s);
        for (int k = 0; k < known[i].times; k++)
            pl_sha256_add(&s, known[i].text, strlen(known[i].text));
        pl_sha256_hex(&s, hex);
        assert_string_equal(hex, known[i].hex);
    }
}

static void sha256_instructions_give_what_plain_c_gives(void **unused)
{
    pl_sha256_blocks *fast = pl_sha256_blocks_x86();
    pl_rng r = pl_rng_at(4, 5, 6);
    unsigned char text[7 * 64];
    uint32_t h[8], as[8];

    (void)unused;
    if (fast == NULL)
        skip();
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (unsigned char)pl_rng_below(&r, 256);
        for (int i = 0; i < 8; i++)
            as[i] = h[i] = (uint32_t)pl_rng_below(&r, 1ull << 32);
        fast(h, text, (size_t)(round % 8));
        pl_sha256_blocks_plain(as, text, (size_t)(round % 8));
        assert_memory_equal(h, as, sizeof h);
    }
}

/* The digest does not depend on how a text is cut. */
static void sha256_does_not_see_how_a_text_is_cut(void **unused)
{
    unsigned char text[300];
    char whole[65], parts[65];
    pl_sha256 s;

    (void)unused;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (unsigned char)(i * 7);
    pl_sha256_start(&s);
    pl_sha256_add(&s, text, sizeof text);
    pl_sha256_hex(&s, whole);
    for (size_t step = 1; step <= sizeof text; step++) {
        pl_sha256_start(&s);
        for (size_t at = 0; at < sizeof text; at += step)
            pl_sha256_add(&s, text + at, sizeof text - at < step ? sizeof text - at : step);
        pl_sha256_hex(&s, parts);
        assert_string_equal(parts, whole);
    }
}

/* Databases hold these numbers. Worked out by another program (Python's integers) from hash.c. */
static void hashes_are_those_of_stored_files(void **unused)
{
    static const struct {
        size_t n;
        uint64_t seed, want;
    } cases[] = { { 0, 0, 0xec19e3764a901a8eu },  { 1, 0, 0xf96657771583729du },  { 7, 1, 0x0d3c3412c78307afu },
                  { 8, 1, 0x9cb9e53836840db5u },  { 31, 2, 0xd66073108ff8f736u }, { 32, 2, 0x062710e8258d3f65u },
                  { 33, 2, 0x0ce424eecfdd2ff2u }, { 64, 3, 0x2bc7e5662257e005u }, { 100, UINT64_MAX, 0x68ea76704c817a33u } };
    unsigned char bytes[100];

    (void)unused;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(7 * i + 3);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        assert_true(pl_hash64(bytes, cases[k].n, cases[k].seed) == cases[k].want);
}

static void numbers_read_back_as_written(void **unused)
{
    pl_rng r = pl_rng_at(1, 2, 3);
    char buf[32];

    (void)unused;
    for (int i = 0; i < 1000; i++) {
        double x = ldexp(pl_rng_normal(&r), (int)pl_rng_below(&r, 400) - 200), back = 0;
        assert_true(pl_parse_real(pl_real_str(x, buf), &back));
        assert_true(back == x);
    }
}

static void numbers_are_written_as_people_write_them(void **unused)
{
    char buf[32];

    (void)unused;
    assert_string_equal(pl_real_str(400, buf), "400");
    assert_string_equal(pl_real_str(-120000, buf), "-120000");
    assert_string_equal(pl_real_str(999999999999999, buf), "999999999999999");
    assert_string_equal(pl_real_str(1e15, buf), "1e+15");
    assert_string_equal(pl_real_str(-0.0, buf), "-0");
    assert_string_equal(pl_real_str(0, buf), "0");
    assert_string_equal(pl_real_str(0.1, buf), "0.1");
    assert_string_equal(pl_real_str(1e20, buf), "1e+20");
    assert_string_equal(pl_float_str(0.1f, buf), "0.1");
    assert_string_equal(pl_float_str(300, buf), "300");
}

static void what_is_not_a_number_is_refused(void **unused)
{
    static const char *const bad[] = { "", " 1", "1 ", "nan", "inf", "-inf", "0x10", "1e999", "1,5", "--1" };
    double x = 7;
    int64_t n = 7;

    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(pl_parse_real(bad[i], &x));
        assert_false(pl_parse_int(bad[i], &n));
    }
    assert_false(pl_parse_int("1.5", &n));
    assert_false(pl_parse_int("99999999999999999999", &n));
    assert_true(x == 7 && n == 7);
}

static void durations_and_sizes_have_units(void **unused)
{
    double x;

    (void)unused;
    assert_true(pl_parse_duration("3h50m", &x) && x == 13800);
    assert_true(pl_parse_duration("2s", &x) && x == 2);
    assert_true(pl_parse_duration("0", &x) && x == 0 && !pl_parse_duration("90", &x) && !pl_parse_duration("1h30", &x));
    assert_true(pl_parse_duration("1.5h", &x) && x == 5400);
    assert_false(pl_parse_duration("2 s", &x) || pl_parse_duration("2x", &x) || pl_parse_duration("-1s", &x));
    assert_false(pl_parse_duration("1d-12h", &x) || pl_parse_duration("1h+5m", &x) || pl_parse_duration("1h 5m", &x));
    assert_false(pl_parse_duration("0x10s", &x) || pl_parse_duration("1h0X1m", &x) || pl_parse_size("0x10MiB", &x));
    assert_true(pl_parse_duration(".5s", &x) && x == 0.5 && pl_parse_duration("1h.5m", &x) && x == 3630);
    assert_true(pl_parse_size("20GiB", &x) && x == 20.0 * 1024 * 1024 * 1024);
    assert_true(pl_parse_size("64MB", &x) && x == 64e6);
    assert_true(pl_parse_size("0", &x) && x == 0);
    assert_false(pl_parse_size("4096", &x) || pl_parse_size("1GiB2", &x) || pl_parse_size("GiB", &x));
}

static void text_for_people_is_short(void **unused)
{
    char buf[32];

    (void)unused;
    assert_string_equal(pl_size_str(1234, buf), "1.2 kB");
    assert_string_equal(pl_size_str(999, buf), "999 B");
    assert_string_equal(pl_duration_str(3723, buf), "1h02m");
    static const struct {
        double value;
        const char *size, *duration;
    } cases[] = {
        { 0, "0 B", "0.0s" },
        { 9.4, "9 B", "9.4s" },
        { 9.94, "10 B", "9.9s" },
        { 10, "10 B", "10s" },
        { 59.4, "59 B", "59s" },
        { 59.6, "60 B", "1m00s" },
        { 999.4, "999 B", "16m39s" },
        { 999.5, "1.0 kB", "16m40s" },
        { 3599.4, "3.6 kB", "59m59s" },
        { 3600, "3.6 kB", "1h00m" },
        { 9949, "9.9 kB", "2h45m" },
        { 9951, "10 kB", "2h45m" },
        { 86399, "86 kB", "23h59m" },
        { 86400, "86 kB", "1d00h" },
        { 180000, "180 kB", "2d02h" },
        { 5.5e6, "5.5 MB", "63d15h" },
        { 7e9, "7.0 GB", "81018d12h" },
        { 8e12, "8.0 TB", "92592592d14h" },
        { 2e15, "2.0 PB", "23148148148d03h" },
        { 5e18, "5000 PB", "57870370370370d08h" },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_string_equal(pl_size_str(cases[i].value, buf), cases[i].size);
        assert_string_equal(pl_duration_str(cases[i].value, buf), cases[i].duration);
    }
    assert_string_equal(pl_count_str(1234567, buf), "1,234,567");
    assert_string_equal(pl_count_str(-1234, buf), "-1,234");
}

static void json_text_is_valid_for_any_bytes(void **unused)
{
    pl_text t = { 0 };

    (void)unused;
    pl_text_add_json(&t, "a\"b\\c\n\xff\xc3\xa9\xed\xa0\x80");
    assert_true(pl_text_ok(&t));
    assert_string_equal(pl_text_str(&t), "\"a\\\"b\\\\c\\u000a\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffd\"");
    pl_text_reset(&t);
    pl_text_add_clean(&t, "a\n\0\xff\xc3\xa9\xc3", 7, SIZE_MAX); /* the last one is cut in two */
    assert_string_equal(pl_text_str(&t), "a  \xef\xbf\xbd\xc3\xa9\xef\xbf\xbd");
    pl_text_reset(&t);
    /* U+009B and U+0085, U+061C, U+200E, U+202E, U+2028, U+2066; then U+00A0 and U+2010, which are no control characters */
    pl_text_add_clean(&t,
                      "1\xc2\x9b\xc2\x85"
                      "2\xd8\x9c\xe2\x80\x8e\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6"
                      "3\xc2\xa0\xe2\x80\x90",
                      26, SIZE_MAX);
    assert_string_equal(pl_text_str(&t), "1  2     3\xc2\xa0\xe2\x80\x90");
    pl_text_reset(&t);
    pl_text_add_clean(&t, "\xc3\xa9\xc3\xa9\xc3\xa9", 6, 3);
    assert_string_equal(pl_text_str(&t), "\xc3\xa9\xc3\xa9");
    pl_text_reset(&t);
    pl_text_add_json(&t, "1\xc2\x9b"
                         "2\xd8\x9c"
                         "3\xe2\x80\xae"
                         "4\x7f"
                         "5\xc2\xa0\xe2\x80\x90");
    assert_string_equal(pl_text_str(&t), "\"1\\u009b2\\u061c3\\u202e4\\u007f5\xc2\xa0\xe2\x80\x90\"");
    pl_text_reset(&t);
    pl_text_add_json_text(&t, "{\n \"a\\n\xc2\x9b\": \"\xe2\x80\xae\x7f\xc3\xa9\xc2\xa0\"}");
    assert_string_equal(pl_text_str(&t), "{\n \"a\\n\\u009b\": \"\\u202e\\u007f\xc3\xa9\xc2\xa0\"}");
    pl_text_free(&t);
}

static void terminal_controls_are_removed_from_messages(void **unused)
{
    char text[] = "a\x1b[31m\n\xc2\x9b"
                  "b\xe2\x80\xae"
                  "c\xff\xc3\xa9\xc3";
    pl_error err;

    (void)unused;
    (void)pl_fail(&err, PL_EDATA, "%s", text);
    assert_string_equal(err.text, "a [31m   b   c?\xc3\xa9?");
    pl_clean_line(text);
    assert_string_equal(text, err.text);
}

static void long_lines_are_wrapped_between_words(void **unused)
{
    static const struct {
        const char *text, *wrapped; /* at 20 columns */
    } cases[] = {
        { "twenty columns fit x\n\n", "twenty columns fit x\n\n" },
        { "the rest goes on the next line", "the rest goes on the\n  next line" },
        { "  an indented line goes on\n", "  an indented line\n  goes on\n" },
        { "-j N  worker threads of it", "-j N  worker threads\n      of it" },
        { "-j N  worker abcdefghijklmn", "-j N  worker\n      abcdefghijklmn" },
        { "-j N  worker abcdefghijklmno", "-j N  worker\n  abcdefghijklmno" },
        { "-j N  c1ccccc1OCCCCCCCCCCC", "-j N\n  c1ccccc1OCCCCCCCCCCC" },
        { "a b  c  d c1ccccc1CCCCC x", "a b  c  d\n     c1ccccc1CCCCC x" },
        { "call it by `molsieve x` now", "call it by\n  `molsieve x` now" },
        { "`molsieve run a file` is too long", "`molsieve run a\n  file` is too long" },
        { "onewordthatislongerthantwentycolumns", "onewordthatislongerthantwentycolumns" },
        { "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 a line of twenty", "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9 a line of\n  twenty" },
        { "\x1b[32mok\x1b[0m  \xc3\xa9 coloured line", "\x1b[32mok\x1b[0m  \xc3\xa9 coloured line" },
        { "no blank ends a line    \nx", "no blank ends a line\nx" },
        { "nor is a sign lost: 90 %", "nor is a sign lost:\n  90 %" },
        { "twenty-one columns: no", "twenty-one columns:\n  no" }, /* 22, 21, 20 */
        { "twenty-one columns: n", "twenty-one columns:\n  n" },
        { "twenty columns: this", "twenty columns: this" },
        { "\xc3\xa9 with an accent; n", "\xc3\xa9 with an accent; n" },
        { "\xc3\xa9 with an accent; no!", "\xc3\xa9 with an accent;\n  no!" },
        { "\x1b[32mok\x1b[0m twenty columns: n", "\x1b[32mok\x1b[0m twenty columns: n" },
        { "\x1b[32mok\x1b[0m twenty columns: no", "\x1b[32mok\x1b[0m twenty columns:\n  no" },
    };
    pl_text t = { 0 };

    (void)unused;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pl_text_reset(&t);
        pl_text_wrap(&t, cases[i].text, 20);
        assert_string_equal(pl_text_str(&t), cases[i].wrapped);
    }
    pl_text_free(&t);
}

static void the_nearest_name_is_found_or_none(void **unused)
{
    static const char *const names[] = { "cutoff", "edges", "max_neighbours" };

    (void)unused;
    assert_string_equal(pl_nearest("cutof", names, 3), "cutoff");
    assert_string_equal(pl_nearest("max_neighbors", names, 3), "max_neighbours");
    assert_null(pl_nearest("temperature", names, 3));
    assert_string_equal(pl_nearest("rnu", (const char *const[]){ "rank", "run" }, 2), "run"); /* swapped letters are one slip */
    assert_null(pl_nearest("rxx", (const char *const[]){ "rank", "run" }, 2));
}

static void random_streams_have_the_right_moments_and_bounds(void **unused)
{
    pl_rng r = pl_rng_at(42, 7, 1), other = pl_rng_at(42, 8, 1);
    double sum = 0, sum2 = 0;
    int count[5] = { 0 };

    (void)unused;
    assert_true(pl_rng_u64(&r) != pl_rng_u64(&other));
    for (int i = 0; i < 100000; i++) {
        double x = pl_rng_normal(&r);
        sum += x;
        sum2 += x * x;
        count[pl_rng_below(&r, 5)]++;
    }
    assert_true(fabs(sum / 1e5) < 0.02 && fabs(sum2 / 1e5 - 1) < 0.02);
    for (int i = 0; i < 5; i++)
        assert_in_range(count[i], 19400, 20600);
}

/* What is called next finds no zeros in its arrays. */
__attribute__((noinline)) static void fill_stack(void)
{
    volatile char a[4 * PATH_MAX];

    for (size_t i = 0; i < sizeof a; i++)
        a[i] = 'x';
}

static void a_file_is_written_whole_and_read_back(void **unused)
{
    char dir[] = "/tmp/molsieve-base-XXXXXX", path[128];
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    pl_bytes got;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/a/b/c", dir);
    fill_stack();
    assert_int_equal(pl_mkdirs(path, &err), PL_OK);
    (void)snprintf(path, sizeof path, "%s/a/b/c/f", dir);
    assert_int_equal(pl_file_write(path, (pl_bytes){ "one\0two", 7 }, &err), PL_OK);
    assert_int_equal(pl_file_read(&got, path, mem, &err), PL_OK);
    assert_int_equal(got.len, 7);
    assert_memory_equal(got.data, "one\0two", 8);
    assert_int_equal(pl_file_read(&got, dir, mem, &err), PL_EIO);
    assert_non_null(strstr(err.text, "not a regular file"));
    pl_arena_free(mem);
    assert_int_equal(unlink(path), 0);
    while (strlen(path) > strlen(dir)) {
        *strrchr(path, '/') = '\0';
        assert_int_equal(rmdir(path), 0);
    }
}

/* Opening it would wait for ever. */
static void a_pipe_is_refused_and_not_waited_for(void **unused)
{
    char dir[] = "/tmp/molsieve-base-XXXXXX", path[128], hex[65];
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    pl_bytes got;

    (void)unused;
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/f", dir);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(pl_file_read(&got, path, mem, &err), PL_EIO);
    assert_non_null(strstr(err.text, "not a regular file"));
    err.text[0] = '\0';
    assert_int_equal(pl_sha256_file(path, hex, &err), PL_EIO);
    assert_non_null(strstr(err.text, "not a regular file"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
    pl_arena_free(mem);
}

/* ---- linked with -Wl,--wrap=realloc ---- */

static bool no_memory;

void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_realloc(void *p, size_t n) { return no_memory ? NULL : __real_realloc(p, n); }

/* It keeps what it has and takes nothing more, until it is begun again. */
static void a_text_without_memory_says_so(void **unused)
{
    char many[200];
    pl_text t = { 0 };

    (void)unused;
    memset(many, 'm', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    pl_text_add(&t, "kept");
    no_memory = true;
    pl_text_add(&t, many);
    no_memory = false;
    for (int k = 0; k < 3; k++) {
        assert_false(pl_text_ok(&t));
        assert_string_equal(pl_text_str(&t), "kept");
        if (k == 0)
            pl_text_add(&t, "x"); /* there would be room */
        else
            pl_text_addf(&t, "%d", k);
    }
    pl_text_reset(&t);
    assert_true(pl_text_ok(&t));
    assert_string_equal(pl_text_str(&t), "");
    pl_text_addf(&t, "%s%s", many, "!");
    assert_true(pl_text_ok(&t));
    assert_int_equal(strlen(pl_text_str(&t)), sizeof many);
    no_memory = true;
    pl_text_addf(&t, "%s%s", many, many);
    no_memory = false;
    assert_false(pl_text_ok(&t));
    assert_int_equal(strlen(pl_text_str(&t)), sizeof many);
    pl_text_free(&t);
    assert_true(pl_text_ok(&t));
}

/* Reads the byte at `away` of an object of 5 bytes, with another one behind it. True: the child ended well. */
static bool may_be_read(long away, bool after_reset)
{
    pid_t pid = fork();
    int status = 0;

    assert_true(pid >= 0);
    if (pid == 0) {
        pl_arena *mem = pl_arena_new(256);
        char *a = mem != NULL ? PL_NEW(mem, char, 5) : NULL, *b = mem != NULL ? PL_NEW(mem, char, 5) : NULL;
        if (after_reset)
            pl_arena_reset(mem);
        _exit(a != NULL && b != NULL && close(2) == 0 && *(volatile char *)(a + away) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void the_sanitizer_sees_a_byte_behind_an_object(void **unused)
{
    (void)unused;
    assert_true(may_be_read(0, false) && may_be_read(4, false));
#ifdef __SANITIZE_ADDRESS__
    assert_false(may_be_read(5, false));
    assert_false(may_be_read(16, false)); /* between the two */
    assert_false(may_be_read(0, true));
#endif
}

static void a_refused_request_is_null_and_nothing_else_changes(void **unused)
{
    pl_arena *mem = pl_arena_new(64);

    (void)unused;
    pl_arena_refuse(2);
    assert_non_null(PL_NEW(mem, int, 4));
    assert_null(PL_NEW(mem, int, 4));
    assert_non_null(PL_NEW(mem, int, 1000));
    assert_null(pl_arena_get(mem, SIZE_MAX / 2, 4));
    assert_null(PL_NEW(mem, char, -17)); /* with the head of a block the size would overflow to a few bytes */
    pl_arena_free(mem);
    pl_arena_free(NULL);
}

/* Blocks of the usual size stay and are used again; one that was made for a large request is freed. */
static void an_arena_that_is_reset_uses_its_blocks_again(void **unused)
{
    enum { BLOCK = 1 << 12, N = 9 };
    char *first[N];
    pl_arena *mem = pl_arena_new(BLOCK);

    (void)unused;
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < N; i++) {
            char *p = PL_NEW(mem, char, BLOCK / 2 + 1), *large = i == 4 ? PL_NEW(mem, char, 3 * BLOCK) : p;
            assert_true(p != NULL && large != NULL);
            if (turn == 0)
                first[i] = p;
            assert_ptr_equal(p, first[i]);
            memset(p, 1, BLOCK / 2 + 1);
        }
        pl_arena_reset(mem);
    }
    pl_arena_free(mem);
}

static void the_own_folder_is_known_where_it_fits(void **unused)
{
    char dir[PATH_MAX], same[PATH_MAX], self[PATH_MAX];
    const ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);

    (void)unused;
    assert_true(len > 0 && pl_own_dir(dir, sizeof dir));
    self[len] = '\0';
    *strrchr(self, '/') = '\0';
    assert_string_equal(dir, self);
    assert_true(pl_own_dir(same, strlen(dir) + 1));
    assert_string_equal(same, dir);
    assert_false(pl_own_dir(same, strlen(dir)));
    assert_string_equal(same, "");
    assert_false(pl_is_guest());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_gives_the_published_digests),
        cmocka_unit_test(sha256_instructions_give_what_plain_c_gives),
        cmocka_unit_test(sha256_does_not_see_how_a_text_is_cut),
        cmocka_unit_test(hashes_are_those_of_stored_files),
        cmocka_unit_test(numbers_read_back_as_written),
        cmocka_unit_test(numbers_are_written_as_people_write_them),
        cmocka_unit_test(what_is_not_a_number_is_refused),
        cmocka_unit_test(durations_and_sizes_have_units),
        cmocka_unit_test(text_for_people_is_short),
        cmocka_unit_test(json_text_is_valid_for_any_bytes),
        cmocka_unit_test(terminal_controls_are_removed_from_messages),
        cmocka_unit_test(long_lines_are_wrapped_between_words),
        cmocka_unit_test(a_refused_request_is_null_and_nothing_else_changes),
        cmocka_unit_test(an_arena_that_is_reset_uses_its_blocks_again),
        cmocka_unit_test(the_nearest_name_is_found_or_none),
        cmocka_unit_test(random_streams_have_the_right_moments_and_bounds),
        cmocka_unit_test(a_file_is_written_whole_and_read_back),
        cmocka_unit_test(a_pipe_is_refused_and_not_waited_for),
        cmocka_unit_test(a_text_without_memory_says_so),
        cmocka_unit_test(the_sanitizer_sees_a_byte_behind_an_object),
        cmocka_unit_test(the_own_folder_is_known_where_it_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
