/* SPDX-License-Identifier: Apache-2.0 */
/* What `show` finds by its argument: titles, numbers, InChIKeys and SMILES that are there once, several times, in part or not at all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stages/commands/show_find.h"
#include "stages/database/schema.h"

/* Molecules 2 and 3 are stereoisomers, whose keys are in the other order; 4 and 5 have no key. */
static const char rows[] =
    "CREATE TEMP TABLE m(id,k,s);"
    "INSERT INTO m VALUES (1,'LFQSCWFLJHTTHZ-UHFFFAOYSA-N','CCO'),(2,'QNAYBMKLOCPYGJ-UWTATZPHSA-N','C[C@H](C(=O)O)N'),"
    "(3,'QNAYBMKLOCPYGJ-REOHCLBHSA-N','C[C@@H](C(=O)O)N'),(4,'','C[Fl]'),(5,'','[Og]'),(14,'OTMSDBZUPAUEDD-UHFFFAOYSA-N','CC');"
    "INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,geometry,unit) SELECT id,k,s,'',1,1,0,'none',0 FROM m;"
    "CREATE TEMP TABLE r(id,t,m);"
    "INSERT INTO r VALUES (1,'ethanol',1),(2,'D',2),(3,'L',3),(4,'odd',4),(5,'other',5),(6,'ethanol',1),(7,'ethanol',NULL),(8,'mixed',3),"
    "(9,'mixed',2),(10,NULL,NULL),(11,'bad',NULL),(12,'bad',NULL),(13,'7',3),(14,'CCO',14);"
    "WITH RECURSIVE k(n) AS (SELECT 21 UNION ALL SELECT n+1 FROM k WHERE n<32) INSERT INTO r SELECT n,'many',n FROM k;"
    "WITH RECURSIVE k(n) AS (SELECT 41 UNION ALL SELECT n+1 FROM k WHERE n<51) INSERT INTO r SELECT n,'failed',NULL FROM k;"
    "WITH RECURSIVE k(n) AS (SELECT 101 UNION ALL SELECT n+1 FROM k WHERE n<20100) INSERT INTO r SELECT n,'zeb',NULL FROM k;"
    "INSERT INTO r VALUES (30000,'zeta-one',NULL);"
    "INSERT INTO record(record_id,file_id,ordinal,byte_offset,line,title,mol_id,status) SELECT id,1,id,0,id,t,m,'ok' FROM r";

static const struct {
    const char *word, *found;
} asked[] = {
    { "ethanol", "title: 1; records 7" },
    { "mixed", "title: 2 3" },
    { "odd", "title: 4" },
    { "CCO", "title: 14" },
    { "7", "title: 3" },
    { "bad", "title:; records 11 12" },
    { "many", "title: 21 22 23 24 25 26 27 28 29 30; 2 more" },
    { "failed", "title:; records 41 42 43 44 45 46 47 48 49 50; 1 more" },
    { "1", "number: 1" },
    { "6", "number: 1" },
    { "009", "number: 2" },
    { "10", "number:; records 10" },
    { "LFQSCWFLJHTTHZ-UHFFFAOYSA-N", "InChIKey: 1" },
    { "QNAYBMKLOCPYGJ-REOHCLBHSA-N", "InChIKey: 3" },
    { "QNAYBMKLOCPYGJ", "InChIKey: 2 3" },
    { "OCC", "SMILES: 1" },
    { "N[C@H](C)C(O)=O", "SMILES: 2" },
    { "[Fl]C", "SMILES: 4" },
    { "N#N",
      "'N#N', IJGRMHOSHXDMSA-UHFFFAOYSA-N is not a molecule of the.db; `molsieve search --similar SMILES` finds similar ones" },
    { "LFQSCWFLJHTTHA-UHFFFAOYSA-N", "'LFQSCWFLJHTTHA-UHFFFAOYSA-N' is not a molecule of the.db" },
    { "QNAYBMKLOCPYGI", "'QNAYBMKLOCPYGI' is not a molecule of the.db" },
    { "Ethanol", "'Ethanol' is not in the.db; did you mean ethanol?" },
    { "ethan", "'ethan' is not in the.db; did you mean ethanol?" },
    { "zeta-on", "'zeta-on' is not in the.db; did you mean zeta-one?" },
#define NOTHING(word)                                                                                                             \
    {                                                                                                                             \
        word,                                                                                                                     \
            "'" word                                                                                                              \
            "' is not in the.db: no title, number or InChIKey there, and not a SMILES; `molsieve query record` lists the records" \
    }
    NOTHING("*"),
    NOTHING(""),
    NOTHING("1x"),
    NOTHING("athanol"), /* a title is proposed only where it begins alike */
    NOTHING("18446744073709551617"),
    NOTHING("QNAYBMKLOCPYG"),
    NOTHING("QNAYBMKLOCPYGj"),
    NOTHING("QNAYBMKLOCPYGJ-"),
    NOTHING("LFQSCWFLJHTTHZ-UHFFFAOYSA-n"),
    NOTHING("LFQSCWFLJHTTHZXUHFFFAOYSA-N"),
    NOTHING("LFQSCWFLJHTTHZ-UHFFFAOYSAXN"),
};

static void add_numbers(pl_text *to, const int64_t *number, int n)
{
    for (int i = 0; i < n; i++)
        pl_text_addf(to, " %lld", (long long)number[i]);
}

static void told(pl_text *to, pl_store *s, const char *word)
{
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    st_shown shown;
    pl_code code = st_show_find(&shown, s, word, mem, &err);

    pl_text_reset(to);
    if (code != PL_OK) {
        assert_int_equal(code, PL_ECONFIG);
        assert_int_equal(shown.n + shown.n_records, 0);
        pl_text_add(to, err.text);
    } else {
        pl_text_addf(to, "%s:", shown.as);
        add_numbers(to, shown.mol_id, shown.n);
        pl_text_add(to, shown.n_records > 0 ? "; records" : "");
        add_numbers(to, shown.record, shown.n_records);
        if (shown.n_more > 0)
            pl_text_addf(to, "; %lld more", (long long)shown.n_more);
    }
    pl_arena_free(mem);
}

static void a_word_means_a_title_then_a_number_a_key_or_a_smiles(void **state)
{
    pl_store s = { .results_path = "the.db" };
    pl_text is = { 0 };
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &s.db), SQLITE_OK);
    assert_int_equal(pl_schema_create(s.db, &st_schema, &err), PL_OK);
    assert_int_equal(pl_db_exec(s.db, "CREATE TABLE stage(name,state,params_json,extra_json)", &err),
                     PL_OK); /* nothing is prepared */
    if (pl_db_exec(s.db, rows, &err) != PL_OK)
        fail_msg("%s", err.text);
    for (size_t k = 0; k < sizeof asked / sizeof *asked; k++) {
        told(&is, &s, asked[k].word);
        if (strcmp(pl_text_str(&is), asked[k].found) != 0)
            fail_msg("'%s': %s\ninstead of %s", asked[k].word, pl_text_str(&is), asked[k].found);
    }
    /* SQLite finds rows in another order by an index of another program. */
    assert_int_equal(pl_db_exec(s.db, "CREATE INDEX theirs ON record(title); PRAGMA reverse_unordered_selects=ON", &err), PL_OK);
    for (size_t k = 0; strncmp(asked[k].found, "title:", 6) == 0; k++) {
        told(&is, &s, asked[k].word);
        assert_string_equal(pl_text_str(&is), asked[k].found);
    }
    pl_text_free(&is);
    assert_int_equal(sqlite3_close(s.db), SQLITE_OK);
}

/* Without the table of records nobody knows what is a title: a number or a key of that form may be one. */
static void a_word_is_not_guessed_in_damaged_results(void **state)
{
    static const char *const words[] = { "1", "LFQSCWFLJHTTHZ-UHFFFAOYSA-N", "OCC" };
    pl_store s = { .results_path = "the.db" };
    pl_arena *mem = pl_arena_new(0);
    pl_error err = { 0 };
    st_shown shown;

    (void)state;
    assert_int_equal(sqlite3_open(":memory:", &s.db), SQLITE_OK);
    assert_int_equal(pl_schema_create(s.db, &st_schema, &err), PL_OK);
    assert_int_equal(pl_db_exec(s.db, rows, &err), PL_OK);
    assert_int_equal(pl_db_exec(s.db, "DROP TABLE record", &err), PL_OK);
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
        assert_int_not_equal(st_show_find(&shown, &s, words[k], mem, &err), PL_OK);
        assert_non_null(strstr(err.text, "no such table: record"));
    }
    pl_arena_free(mem);
    assert_int_equal(sqlite3_close(s.db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_word_means_a_title_then_a_number_a_key_or_a_smiles),
                                        cmocka_unit_test(a_word_is_not_guessed_in_damaged_results) };

    return cmocka_run_group_tests_name("show_find", tests, NULL, NULL);
}
