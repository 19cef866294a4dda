/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of pages: kept, renewed where another program wrote, and compared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/hash.h"
#include "pipeline/store/pages.h"
#include "toy.h"

enum { PAGE = 4096, RESERVED = 20 }; /* of results.db: bytes of a page; offset of the number of reserved bytes */

static toy t;
static char dir[256];

static int make(void **unused)
{
    (void)unused;
    toy_directory(dir);
    toy_make(&t, dir, 3);
    return toy_run(&t, 1, NULL) != PL_OK;
}

static int drop(void **unused)
{
    (void)unused;
    toy_free(&t);
    toy_remove(dir);
    return 0;
}

/* ---- the file, past SQLite ---- */

static FILE *open_raw(void)
{
    FILE *f = fopen(t.wf.storage.results, "r+");

    assert_non_null(f);
    return f;
}

/* Writes n bytes at an offset. */
static void put(long at, const void *bytes, size_t n)
{
    FILE *f = open_raw();

    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static int get(long at)
{
    FILE *f = open_raw();
    int c;

    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    c = fgetc(f);
    assert_int_equal(fclose(f), 0);
    return c;
}

/* Pages of the file, and those of them whose checksum is wrong. */
static int pages(int *wrong)
{
    unsigned char page[PAGE];
    FILE *f = open_raw();
    int n = 0;

    *wrong = 0;
    for (; fread(page, 1, PAGE, f) == PAGE; n++) {
        uint64_t sum = pl_hash64(page, PAGE - PL_PAGE_SUM, (uint64_t)n + 1);
        *wrong += memcmp(page + PAGE - PL_PAGE_SUM, &sum, PL_PAGE_SUM) != 0;
    }
    assert_int_equal(fclose(f), 0);
    return n;
}

/* Another program that writes does not know of checksums. */
static int forget_sums(int from)
{
    static const char none[PL_PAGE_SUM];
    int wrong, n = pages(&wrong);

    for (int i = from; i < n; i++)
        put((long)(i + 1) * PAGE - PL_PAGE_SUM, none, sizeof none);
    return n - from;
}

static pl_code open_and_close(pl_error *err)
{
    pl_store *s = NULL;
    pl_code code = pl_store_open(&s, &t.wf, &toy_schema, err);

    pl_store_close(s);
    return code;
}

/* ---- the tests ---- */

static void every_page_of_a_run_has_its_checksum(void **unused)
{
    int wrong, n = pages(&wrong);

    (void)unused;
    assert_true(n > 5);
    assert_int_equal(wrong, 0);
}

/* Whether the first page is one of them, which is read before it is known that the database is ours, or not. */
static void a_writer_renews_what_another_program_left(void **unused)
{
    (void)unused;
    for (int from = 0; from < 3; from++) {
        int wrong, changed = forget_sums(from);
        assert_true(pages(&wrong) > 5 && wrong == changed);
        assert_int_equal(toy_int(&t, "SELECT count(*) FROM number"), 24);
        (void)pages(&wrong);
        assert_int_equal(wrong, changed); /* one who only reads does not write */
        assert_true(toy_sound(&t));
        (void)pages(&wrong);
        assert_int_equal(wrong, 0);
    }
}

/* Another program may write while the database is open. */
static void what_is_left_beside_a_writer_is_renewed_when_read(void **unused)
{
    pl_store *s = NULL;
    pl_error err = { 0 };
    int64_t n = 0;
    int wrong;

    (void)unused;
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA shrink_memory", &err), PL_OK);
    (void)pages(&wrong);
    assert_int_equal(wrong, 0);
    assert_true(forget_sums(2) > 0);
    (void)pages(&wrong);
    assert_true(wrong > 0);
    assert_int_equal(pl_db_int(s->db, &n, &err, "SELECT count(*) FROM number WHERE value IS NOT NULL"), PL_OK);
    assert_int_equal(n, 24);
    (void)pages(&wrong);
    assert_int_equal(wrong, 0);
    pl_store_close(s);
}

/* A checksum that is right for another page, or for the page as it was. */
static void a_page_in_the_place_of_another_is_damage(void **unused)
{
    pl_error err = { 0 };
    unsigned char page[PAGE];
    FILE *f = open_raw();

    (void)unused;
    assert_int_equal(fseek(f, 2 * PAGE, SEEK_SET), 0);
    assert_int_equal(fread(page, 1, PAGE, f), PAGE);
    assert_int_equal(fclose(f), 0);
    put(3 * PAGE, page, PAGE);
    assert_int_equal(toy_run(&t, 1, &err), PL_EDATA);
    assert_non_null(strstr(err.text, t.wf.storage.results));
    assert_non_null(strstr(err.text, "damaged, or changed by another program"));
}

/* The byte that says whether there are checksums. */
static void a_file_that_hides_its_checksums_is_damaged(void **unused)
{
    static const unsigned char said[] = { 0, 1, 9, 255 };

    (void)unused;
    assert_int_equal(get(RESERVED), PL_PAGE_SUM);
    for (size_t i = 0; i < sizeof said; i++) {
        pl_error err = { 0 };
        put(RESERVED, &said[i], 1);
        assert_int_equal(open_and_close(&err), PL_EDATA);
        assert_non_null(strstr(err.text, t.wf.storage.results));
        assert_non_null(strstr(err.text, "put back a copy"));
        assert_int_equal(get(RESERVED), said[i]);
    }
    put(RESERVED, (const char[]){ PL_PAGE_SUM }, 1);
    assert_int_equal(open_and_close(NULL), PL_OK);
}

static void a_flipped_bit_is_found_after_sums_were_renewed(void **unused)
{
    pl_error err = { 0 };
    long at = 0;
    int wrong;

    (void)unused;
    assert_true(forget_sums(0) > 5);
    assert_int_equal(open_and_close(NULL), PL_OK);
    assert_true(pages(&wrong) > 5 && wrong == 0);
    for (int c = 0; c == 0; at += c == 0) /* in the schema of the first page */
        c = get(PAGE - PL_PAGE_SUM - 40 + at);
    put(PAGE - PL_PAGE_SUM - 40 + at, (const char[]){ (char)(get(PAGE - PL_PAGE_SUM - 40 + at) ^ 4) }, 1);
    assert_int_equal(open_and_close(&err), PL_EDATA);
    assert_non_null(strstr(err.text, t.wf.storage.results));
}

/* What was said of another database, earlier in this process, is not said of this one. */
static void damage_of_one_database_is_not_told_of_another(void **unused)
{
    pl_text report = { 0 };
    pl_store *s = NULL;
    char other[256], junk[PAGE];
    bool good = false;
    toy sound;

    (void)unused;
    memset(junk, 'Z', sizeof junk);
    for (int i = 1; i < 6; i++)
        put((long)i * PAGE, junk, sizeof junk);
    assert_int_equal(toy_run(&t, 1, NULL), PL_EDATA);
    toy_directory(other);
    toy_make(&sound, other, 1);
    assert_int_equal(toy_run(&sound, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &sound.wf, &toy_schema, NULL), PL_OK);
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_true(good);
    if (strstr(pl_text_str(&report), "BAD") != NULL || strstr(pl_text_str(&report), dir) != NULL)
        fail_msg("%s", pl_text_str(&report));
    pl_text_free(&report);
    pl_store_close(s);
    toy_free(&sound);
    toy_remove(other);
}

/* Another program wrote, and removed the table by which that is judged. */
static void rows_without_the_table_of_their_sums_are_damaged(void **unused)
{
    sqlite3 *db = NULL;
    pl_error err = { 0 };

    (void)unused;
    assert_int_equal(sqlite3_open(t.wf.storage.results, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE square SET value=1 WHERE id=1; DROP TABLE row_sum", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_int_equal(toy_run(&t, 1, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "damaged, or changed by another program (table row_sum is gone); put back a copy"));
}

static bool says_nothing(const char *file, char why[PL_PAGES_WHY])
{
    (void)file, (void)why;
    return true;
}

/* Before any run of this process has begun. */
static void a_sqlite_without_files_is_told(void **unused)
{
    sqlite3_vfs *all[16];
    int n = 0;
    pl_error err = { 0 };

    (void)unused;
    for (sqlite3_vfs *v; n < 16 && (v = sqlite3_vfs_find(NULL)) != NULL; n++) {
        all[n] = v;
        assert_int_equal(sqlite3_vfs_unregister(v), SQLITE_OK);
    }
    assert_int_equal(pl_pages_start(says_nothing, &err), PL_EBUG);
    assert_string_equal(err.text, "SQLite could not register the VFS of the page checksums");
    for (int k = 0; k < n; k++)
        assert_int_equal(sqlite3_vfs_register(all[k], k == 0), SQLITE_OK);
}

#define OF_RUN(f) cmocka_unit_test_setup_teardown(f, make, drop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sqlite_without_files_is_told), /* first */
        OF_RUN(every_page_of_a_run_has_its_checksum),
        OF_RUN(a_writer_renews_what_another_program_left),
        OF_RUN(what_is_left_beside_a_writer_is_renewed_when_read),
        OF_RUN(a_page_in_the_place_of_another_is_damage),
        OF_RUN(a_file_that_hides_its_checksums_is_damaged),
        OF_RUN(rows_without_the_table_of_their_sums_are_damaged),
        OF_RUN(a_flipped_bit_is_found_after_sums_were_renewed),
        OF_RUN(damage_of_one_database_is_not_told_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
