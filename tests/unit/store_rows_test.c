/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a database: blocks, rows, their sums and digest, packed files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "pipeline/base/log.h"
#include "pipeline/run/runner.h"
#include "pipeline/store/insert.h"
#include "pipeline/store/sums.h"
#include "tests/unit/stores.h"

static void blocks_come_back_as_they_were_put(void **state)
{
    char big[100000];
    pl_block got;
    int64_t n;

    (void)state;
    for (size_t i = 0; i < sizeof big; i++)
        big[i] = (char)(i * 31);
    assert_int_equal(pl_block_put(s, "a", "k", 5, 40, 2, (pl_bytes){ big, sizeof big }, NULL), PL_OK);
    assert_int_equal(pl_block_put(s, "a", "k", 6, 42, 0, (pl_bytes){ NULL, 0 }, NULL), PL_OK);
    assert_int_equal(pl_block_put(s, "a", "k", 6, 43, 0, (pl_bytes){ "", 0 }, NULL), PL_OK); /* replaces */
    assert_int_equal(pl_block_get(s, "a", "k", 5, &got, t.mem, NULL), PL_OK);
    assert_true(got.found);
    assert_int_equal(got.data.len, sizeof big);
    assert_memory_equal(got.data.data, big, sizeof big);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_int_equal(got.first, 40);
    assert_int_equal(got.n_items, 2);
    assert_int_equal(pl_block_get(s, "a", "k", 6, &got, t.mem, NULL), PL_OK);
    assert_true(got.found && got.data.len == 0 && got.first == 43);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "b", "k", 5, &got, t.mem, NULL), PL_OK);
    assert_false(got.found);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_int_equal(pl_block_count(s, "a", "k", &n, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(pl_block_count(s, NULL, "other", &n, NULL), PL_OK);
    assert_int_equal(n, 0);
}

static void a_flipped_bit_in_a_block_is_seen(void **state)
{
    char hex[65], want[600], large[2000] = "";
    pl_error err = { 0 };
    pl_block got;
    bool good;
    pl_text report = { 0 };

    (void)state;
    run_all();
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_true(good);
    assert_int_equal(pl_db_exec(s->features,
                                "UPDATE block SET data=CAST(x'01'||substr(data,2) AS BLOB) WHERE kind='number'"
                                " AND unit=1",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_block_get(s, "number", t.step[0].key, 1, &got, t.mem, &err), PL_OK);
    assert_int_equal(pl_block_check(&got, &err), PL_EDATA);
    assert_non_null(strstr(err.text,
                           "number, unit 1: checksum differs; delete the file and run again: its blocks are then computed "
                           "again"));
    assert_int_equal(pl_store_digest_blocks(s, hex, &err), PL_EDATA);
    (void)snprintf(
        want, sizeof want,
        "%s: damaged (block number, unit 1 of stage count: checksum differs); delete the file and run again, it is made anew",
        s->features_path);
    assert_string_equal(err.text, want);
    /* the same digits one after another, in other columns */
    assert_int_equal(pl_block_put(s, "digits", "key", 1, 12, 3, (pl_bytes){ "abc", 3 }, NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "digits", "key", 1, &got, t.mem, &err), PL_OK);
    assert_int_equal(pl_block_check(&got, &err), PL_OK);
    assert_int_equal(pl_db_exec(s->features, "UPDATE block SET first=1, n_items=23 WHERE kind='digits'", NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "digits", "key", 1, &got, t.mem, &err), PL_OK);
    assert_int_equal(pl_block_check(&got, &err), PL_EDATA);
    assert_int_equal(pl_db_exec(s->features, "UPDATE block SET data=17 WHERE kind='number' AND unit=1", NULL), PL_OK);
    assert_int_equal(pl_block_get(s, "number", t.step[0].key, 1, &got, t.mem, &err), PL_EDATA);
    assert_non_null(strstr(err.text, "number, unit 1: cannot open"));
    pl_text_reset(&report);
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_false(good);
    assert_non_null(strstr(pl_text_str(&report), "block number, unit 1 of stage count"));
    (void)sqlite3_limit(s->features, SQLITE_LIMIT_LENGTH, sizeof large - 1);
    assert_int_equal(pl_block_put(s, "large", "key", 3, 0, 1, (pl_bytes){ large, sizeof large }, &err), PL_EDATA);
    assert_string_equal(err.text, "block large, unit 3: 2000 bytes are too many for one row; use smaller units");
    pl_text_free(&report);
}

static char last_log[1024];

static void keep_log(void *ctx, pl_level level, const char *line)
{
    (void)ctx;
    (void)snprintf(last_log, sizeof last_log, "%d %s", (int)level, line);
}

static void cached(const unsigned char *key, const char *want)
{
    pl_arena *mem = pl_arena_new(0);
    pl_bytes got;

    assert_int_equal(pl_cache_get(s, key, &got, mem, NULL), PL_OK);
    assert_int_equal(got.data != NULL, want != NULL);
    if (want != NULL) {
        assert_int_equal(got.len, strlen(want));
        assert_memory_equal(got.data, want, got.len);
    }
    pl_arena_free(mem);
}

static void entries_of_the_cache_come_back_unless_they_are_damaged(void **state)
{
    unsigned char key[3][32] = { { 1 }, { 2 }, { 3 } };
    int64_t n, n_bad;

    (void)state;
    last_log[0] = '\0';
    pl_log_to(keep_log, NULL, PL_INFO);
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "one" : "two two";
        assert_int_equal(pl_cache_put(s, key[i], (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
    }
    cached(key[0], "one");
    cached(key[1], "two two");
    cached(key[2], NULL);
    assert_int_equal(pl_cache_put(s, key[0], (pl_bytes){ "other", 5 }, NULL), PL_OK);
    cached(key[0], "other");
    assert_int_equal(pl_cache_check(s, &n, &n_bad, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(n_bad, 0);
    assert_string_equal(last_log, "");
    assert_int_equal(pl_db_exec(s->features, "UPDATE cache SET crc32=crc32+1 WHERE length(data)=5", NULL), PL_OK);
    cached(key[0], NULL);
    assert_string_equal(last_log, "1 features.db: a damaged entry of the cache is ignored and computed again");
    cached(key[1], "two two");
    assert_int_equal(pl_cache_check(s, &n, &n_bad, NULL), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(n_bad, 1);
    /* a row under another key is damaged, too */
    assert_int_equal(pl_db_exec(s->features, "UPDATE cache SET key=zeroblob(32) WHERE length(data)=7", NULL), PL_OK);
    cached((const unsigned char[32]){ 0 }, NULL);
    assert_int_equal(pl_cache_check(s, &n, &n_bad, NULL), PL_OK);
    assert_int_equal(n_bad, 2);
    pl_log_to(NULL, NULL, PL_ERROR);
}

static void a_row_without_its_unit_is_seen(void **state)
{
    bool good;
    pl_text report = { 0 };

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO number VALUES(1,7,7)", NULL), PL_OK);
    assert_int_equal(pl_store_check(s, &good, &report, NULL), PL_OK);
    assert_false(good);
    assert_non_null(strstr(pl_text_str(&report), "BAD  every number belongs to a committed unit: 1 do not"));
    pl_text_free(&report);
}

static void the_digest_sees_content_and_not_order(void **state)
{
    char a[65], b[65], c[65], d[65];

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO walk VALUES(1,10),(2,20),(3,30)", NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, a, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM walk; INSERT INTO walk VALUES(3,30),(1,10),(2,20)", NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, b, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "UPDATE walk SET value=11 WHERE step=1", NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, c, NULL), PL_OK);
    assert_int_equal(pl_db_exec(s->db,
                                "UPDATE walk SET value=10 WHERE step=1; INSERT INTO square SELECT 1,10,0 WHERE 0;"
                                "DELETE FROM walk WHERE step=3",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_store_digest(s, d, NULL), PL_OK);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_string_not_equal(a, d);
    assert_int_equal(strlen(a), 64);
}

/* Computed from the definition in another language: users may compare digests for years. */
static void the_digest_of_known_rows_is_a_known_one(void **state)
{
    static const char *const digest[][2] = { { "all", "SELECT 1,2.5,NULL,'x',x'00ff',''" },
                                             { "two", "SELECT 7 UNION SELECT 9" },
                                             { NULL, NULL } };
    pl_schema known = toy_schema;
    char a[65];

    (void)state;
    known.digest = digest;
    assert_int_equal(reopen(&known, NULL), PL_OK);
    assert_int_equal(pl_store_digest(s, a, NULL), PL_OK);
    assert_string_equal(a, "bb34541221bdc1de01bc63481fab3bd5773342401eb9033b36cc6e00eb8b99e9");
}

static void rows_of_a_table_that_came_later_are_summed_too(void **state)
{
    pl_text report = { 0 };
    pl_error err = { 0 };
    int n = 0, before = 0;
    bool good = true;

    (void)state;
    assert_int_equal(pl_sums_check(s->db, &before, &report, &err), PL_OK);
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a,b)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK); /* the list of tables has changed */
    assert_int_equal(pl_db_exec(s->db,
                                "INSERT INTO later VALUES(1,'x'),(2,'y'),(3,'z'); UPDATE later SET b='w' WHERE a=2;"
                                "DELETE FROM later WHERE a=1",
                                &err),
                     PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    assert_int_equal(n, before + 1);
    assert_string_equal(pl_text_str(&report), "");
    assert_int_equal(pl_db_exec(s->db, "UPDATE row_sum SET n=n+1 WHERE tbl='later'", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_EDATA);
    assert_string_equal(pl_text_str(&report), "table later: the checksum of its rows differs\n");
    assert_string_equal(err.text, "the checksums of rows differ");
    pl_text_reset(&report);
    assert_int_equal(pl_store_check(s, &good, &report, &err), PL_OK);
    assert_false(good);
    assert_non_null(strstr(pl_text_str(&report), "results.db: table later: the checksum of its rows differs\n"));
    assert_non_null(strstr(pl_text_str(&report), "BAD  "));
    pl_text_reset(&report);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM row_sum WHERE tbl='later'", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_EDATA);
    assert_string_equal(pl_text_str(&report), "1 tables have no checksum in row_sum\n");
    pl_text_free(&report);
}

static void sums_are_gathered_for_a_whole_transaction(void **state)
{
    pl_text report = { 0 };
    pl_error err = { 0 };
    int64_t stored = 0;
    int n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    for (int turn = 0; turn < 2; turn++) { /* rolled back, committed */
        assert_int_equal(pl_db_begin(s->db, &err), PL_OK);
        pl_sums_gather(s->sums, true);
        assert_int_equal(pl_db_exec(s->db,
                                    "INSERT INTO later VALUES(1,'x'),(2,NULL),(3,2.5); UPDATE later SET b='w' WHERE a=2;"
                                    "INSERT OR REPLACE INTO later VALUES(3,'z'); DELETE FROM later WHERE a=1",
                                    &err),
                         PL_OK);
        assert_int_equal(pl_db_int(s->db, &stored, &err, "SELECT n FROM row_sum WHERE tbl='later'"), PL_OK);
        assert_int_equal(stored, 0);
        if (turn == 0) {
            pl_sums_gather(s->sums, false);
            pl_db_rollback(s->db);
            continue;
        }
        assert_int_equal(pl_sums_put(s->sums, &err), PL_OK);
        assert_int_equal(pl_db_commit(s->db, &err), PL_OK);
    }
    assert_int_equal(pl_db_int(s->db, &stored, &err, "SELECT n FROM row_sum WHERE tbl='later'"), PL_OK);
    assert_int_equal(stored, 2);
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO later VALUES(4,'one by one again')", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    pl_text_free(&report);
}

/* The first rows (1,b) here have the hashes 0 and 1: b was computed by the inverse of hash_row. Databases hold these sums; the others
 * are those of another program (Python's integers). */
static void rows_of_any_type_and_hash_are_counted(void **state)
{
    static const struct {
        const char *change;
        int64_t n, sum;
    } turns[] = { { "INSERT INTO later VALUES(1,-579671089440745019)", 1, 0 },
                  { "UPDATE later SET b=-4563293021222921112", 1, 1 },
                  { "UPDATE later SET b='abc'", 1, -6690671431852895301 },
                  { "UPDATE later SET b=x'616263'", 1, 959705123318206864 },
                  { "UPDATE later SET b=2.5", 1, 8861661094737716947 },
                  { "UPDATE later SET b=3", 1, 1180990659535327772 },
                  { "UPDATE later SET b=3.0", 1, 1180990659535327772 },
                  { "UPDATE later SET b='a text of more than 32 bytes, all of them'", 1, 3831538054295316106 },
                  { "UPDATE later SET b=NULL", 1, -2676544637371779896 },
                  { "DELETE FROM later", 0, 0 } };
    pl_text report = { 0 };
    pl_error err = { 0 };
    int n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    for (size_t k = 0; k < sizeof turns / sizeof *turns; k++) {
        assert_int_equal(pl_db_begin(s->db, &err), PL_OK);
        pl_sums_gather(s->sums, true);
        assert_int_equal(pl_db_exec(s->db, turns[k].change, &err), PL_OK);
        assert_int_equal(pl_sums_put(s->sums, &err), PL_OK);
        assert_int_equal(pl_db_commit(s->db, &err), PL_OK);
        assert_int_equal(count(s->db, "SELECT n FROM row_sum WHERE tbl='later'"), turns[k].n);
        assert_int_equal(count(s->db, "SELECT sum FROM row_sum WHERE tbl='later'"), turns[k].sum);
        assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    }
    pl_text_free(&report);
}

/* As a database has it that another program wrote to; the program itself keeps one row of a stage. */
static void of_rows_of_one_stage_the_last_counts(void **state)
{
    pl_stage_row row;

    (void)state;
    assert_int_equal(pl_db_exec(s->db,
                                "INSERT INTO stage(name,key,params_json,extra_json,needs_json,code_version,state,created_utc) "
                                "VALUES('twice','first','{}','{}','[]',1,'done',''),('twice','last','{}','{}','[]',1,'running','')",
                                NULL),
                     PL_OK);
    assert_int_equal(pl_stage_row_get(s, "twice", &row, t.mem, NULL), PL_OK);
    assert_string_equal(row.key, "last");
    assert_false(row.done);
}

static void put_rows(pl_insert *in, int n)
{
    pl_error err = { 0 };

    for (int i = 0; i < n; i++) {
        const int at = pl_insert_at(in);
        (void)sqlite3_bind_int64(in->st, at, 2 * i); /* "c,a,b" */
        (void)sqlite3_bind_int64(in->st, at + 1, i + 1);
        if (i == 0) /* not bound: NULL, also where an earlier group had a value */
            (void)sqlite3_bind_int64(in->st, at + 2, 5);
        assert_int_equal(pl_insert_row(in, &err), PL_OK);
    }
    assert_int_equal(pl_insert_end(in, &err), PL_OK);
}

static void rows_are_inserted_in_groups_and_none_is_lost(void **state)
{
    static const int counts[] = { 0, 1, 15, 16, 17, 33 };
    pl_insert in = { 0 };
    pl_error err = { 0 };
    int64_t n = 0, sum = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b,c REAL)", &err), PL_OK);
    assert_int_equal(pl_insert_open(&in, s->db, NULL, "later", "c,a,b", &err), PL_OK);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        assert_int_equal(pl_db_exec(s->db, "DELETE FROM later", &err), PL_OK);
        put_rows(&in, counts[k]);
        assert_int_equal(pl_db_int(s->db, &n, &err, "SELECT count(*) FROM later WHERE a BETWEEN 1 AND %d AND c=2*a-2", counts[k]),
                         PL_OK);
        assert_int_equal(n, counts[k]);
        assert_int_equal(pl_db_int(s->db, &sum, &err, "SELECT coalesce(sum(b),0) FROM later"), PL_OK);
        assert_int_equal(sum, counts[k] > 0 ? 5 : 0);
    }
    (void)sqlite3_bind_int64(in.st, pl_insert_at(&in), 1);
    (void)sqlite3_bind_int64(in.st, pl_insert_at(&in) + 1, 1); /* is there already */
    assert_int_equal(pl_insert_row(&in, &err), PL_OK);
    assert_int_equal(pl_insert_end(&in, &err), PL_EBUG);
    pl_insert_close(&in);
}

/* Two at once, as of two stages; then a trigger counts again. */
static void rows_in_groups_are_counted_by_their_statement(void **state)
{
    pl_insert in[2] = { 0 };
    pl_error err = { 0 };
    pl_text report = { 0 };
    int n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a INTEGER PRIMARY KEY,b,c REAL,d)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    for (int k = 0; k < 2; k++)
        assert_int_equal(pl_insert_open(&in[k], s->db, s->sums, "later", "c,a,b", &err), PL_OK);
    for (int k = 1; k >= 0; k--) {
        assert_int_equal(pl_db_exec(s->db, "DELETE FROM later", &err), PL_OK);
        pl_sums_gather(s->sums, true);
        put_rows(&in[k], 17);
        assert_int_equal(pl_sums_put(s->sums, &err), PL_OK);
        pl_insert_close(&in[k]);
    }
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO later VALUES(99,'x',1.5,NULL)", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    assert_int_equal(pl_insert_open(&in[0], s->db, s->sums, "later", "a,b,c", &err), PL_OK);
    (void)sqlite3_bind_int64(in[0].st, 1, 100);
    assert_int_equal(pl_insert_row(&in[0], &err), PL_OK);
    assert_int_not_equal(pl_insert_end(&in[0], &err), PL_OK);
    assert_non_null(strstr(err.text, "outside of a unit"));
    pl_insert_close(&in[0]);
    pl_text_free(&report);
}

static void sums_that_were_given_up_are_made_again_for_good(void **state)
{
    int64_t n = 0, had = 0;
    sqlite3 *db = NULL;

    (void)state;
    assert_int_equal(pl_db_int(s->db, &had, NULL, "SELECT count(*) FROM row_sum"), PL_OK);
    assert_true(had > 3);
    assert_int_equal(pl_db_exec(s->db, "DELETE FROM row_sum", NULL), PL_OK);
    assert_int_equal(reopen(&toy_schema, NULL), PL_OK);
    pl_store_close(s);
    s = NULL;
    assert_int_equal(sqlite3_open(t.wf.storage.results, &db), SQLITE_OK);
    assert_int_equal(pl_db_int(db, &n, NULL, "SELECT count(*) FROM row_sum"), PL_OK);
    assert_int_equal(n, had);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* What a killed program leaves beside a database: SQLite would roll the next file of that name back to what was there. */
static void leave_journal(const char *of)
{
    const char *from = pl_sprintf(t.mem, "%s/old.db", dir);
    pl_bytes journal;
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(from, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "PRAGMA synchronous=OFF; CREATE TABLE IF NOT EXISTS old(x); INSERT INTO old VALUES(1);"
                                  "BEGIN; UPDATE old SET x=2",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(pl_file_read(&journal, pl_sprintf(t.mem, "%s-journal", from), t.mem, NULL), PL_OK);
    assert_true(journal.len > 512);
    assert_int_equal(pl_file_write(pl_sprintf(t.mem, "%s-journal", of), journal, NULL), PL_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* One that lacks a block is removed: later stages would miss that. */
static void a_packed_file_has_all_blocks_or_is_not_made(void **state)
{
    char to[300], part[320], want[400];
    pl_error err = { 0 };
    const char *shard = NULL;
    pl_store *packed = NULL;

    (void)state;
    pl_store_close(s);
    s = NULL;
    assert_int_equal(toy_run(&t, 1, NULL), PL_OK);
    assert_int_equal(pl_store_open(&s, &t.wf, &toy_schema, NULL), PL_OK);
    (void)snprintf(to, sizeof to, "%s/packed.db", dir);
    (void)snprintf(part, sizeof part, "%s.part", to);
    for (int more = 1; more >= 0; more--) {
        write_file("packed.db.part", "what a killed run left");
        leave_journal(part);
        const pl_packed numbers = { .kind = "number", .key = t.step[0].key, .n = 3 + more };
        assert_int_equal(pl_store_pack(s, to, "1/2", &numbers, 1, t.mem, &err), more ? PL_EDATA : PL_OK);
        assert_int_equal(access(to, F_OK), more ? -1 : 0);
        assert_int_equal(access(part, F_OK), -1);
        assert_int_equal(access(pl_sprintf(t.mem, "%s-journal", part), F_OK), -1);
    }
    (void)snprintf(want, sizeof want, "%s lacks number of unit 3, which later stages read; run again with --force and their stage",
                   s->features_path);
    assert_string_equal(err.text, want);
    assert_int_equal(pl_store_open_read(&packed, to, &toy_schema, &err), PL_OK);
    assert_int_equal(pl_store_shard(packed, &shard, t.mem, &err), PL_OK);
    assert_string_equal(shard, "1/2");
    assert_int_equal(pl_store_shard(s, &shard, t.mem, &err), PL_OK);
    assert_string_equal(shard, "");
    assert_int_equal(count(packed->db, "SELECT count(*) FROM block WHERE kind='number'"), 3);
    assert_int_equal(count(packed->db, "SELECT count(*) FROM block"), 3);
    pl_store_close(packed);
}

/* ---- sums that are not there ---- */

/* A database of before the sums, opened for reading, and one whose sums were given up: both are good, and nothing is said. */
static void a_database_without_sums_is_checked_without_them(void **state)
{
    static const char *const without[] = { "DELETE FROM row_sum", "DROP TABLE row_sum" };

    (void)state;
    for (int i = 0; i < 2; i++) {
        pl_text report = { 0 };
        pl_error err = { 0 };
        bool good = false;
        assert_int_equal(reopen(&toy_schema, &err), PL_OK);
        assert_int_equal(pl_db_exec(s->db, without[i], &err), PL_OK);
        pl_store_close(s);
        assert_int_equal(pl_store_open_read(&s, t.wf.storage.results, &toy_schema, &err), PL_OK);
        if (pl_store_check(s, &good, &report, &err) != PL_OK)
            fail_msg("%s", err.text);
        assert_true(good);
        assert_null(strstr(pl_text_str(&report), "checksums"));
        assert_non_null(strstr(pl_text_str(&report), "good rows refer only to rows that exist\n"));
        pl_text_free(&report);
    }
}

/* It would have another row in its sum than in the table. The trigger that counts its rows stays. */
static void no_statement_counts_rows_whose_columns_have_defaults(void **state)
{
    pl_text call = { 0 }, report = { 0 };
    pl_error err = { 0 };
    int at = 7, n = 0;

    (void)state;
    assert_int_equal(pl_db_exec(s->db, "CREATE TABLE later(a,b DEFAULT 3,c)", &err), PL_OK);
    assert_int_equal(pl_sums_add(s->sums, "later", &err), PL_OK);
    assert_int_equal(pl_sums_fill(s->db, &err), PL_OK);
    assert_int_equal(pl_sums_claim(s->sums, "later", "c,a", &call, &at, &err), PL_EBUG);
    assert_string_equal(err.text, "table later: a column that is left out has a default");
    assert_int_equal(at, -1);
    assert_int_equal(pl_db_exec(s->db, "INSERT INTO later(a) VALUES(1)", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_OK);
    pl_text_reset(&call);
    assert_int_equal(pl_sums_claim(s->sums, "later", "c,b", &call, &at, &err), PL_OK);
    assert_true(at >= 0);
    assert_non_null(strstr(pl_text_str(&call), ",NULL,column2,column1)"));
    pl_sums_release(s->sums, at);
    pl_text_reset(&call);
    assert_int_equal(pl_sums_claim(s->sums, "nowhere", "a", &call, &at, &err), PL_OK);
    assert_int_equal(at, -1);
    assert_string_equal(pl_text_str(&call), "");
    assert_int_equal(pl_db_exec(s->db, "DROP TABLE later; PRAGMA reverse_unordered_selects=ON", &err), PL_OK);
    assert_int_equal(pl_sums_check(s->db, &n, &report, &err), PL_EDATA);
    assert_string_equal(pl_text_str(&report), "the list of tables: the checksum of its rows differs\n"
                                              "table later: the checksum of its rows differs\n");
    pl_text_free(&call);
    pl_text_free(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(blocks_come_back_as_they_were_put),
        CASE(a_flipped_bit_in_a_block_is_seen),
        CASE(entries_of_the_cache_come_back_unless_they_are_damaged),
        CASE(a_row_without_its_unit_is_seen),
        CASE(the_digest_sees_content_and_not_order),
        CASE(the_digest_of_known_rows_is_a_known_one),
        CASE(sums_are_gathered_for_a_whole_transaction),
        CASE(rows_of_any_type_and_hash_are_counted),
        CASE(of_rows_of_one_stage_the_last_counts),
        CASE(rows_are_inserted_in_groups_and_none_is_lost),
        CASE(rows_in_groups_are_counted_by_their_statement),
        CASE(sums_that_were_given_up_are_made_again_for_good),
        CASE(rows_of_a_table_that_came_later_are_summed_too),
        CASE(a_database_without_sums_is_checked_without_them),
        CASE(no_statement_counts_rows_whose_columns_have_defaults),
        CASE(a_packed_file_has_all_blocks_or_is_not_made),
    };
    return cmocka_run_group_tests_name("store_rows", tests, NULL, NULL);
}
