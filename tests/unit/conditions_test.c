/* SPDX-License-Identifier: Apache-2.0 */
/* Conditions and objectives of a ranking: what they may ask, and what is refused, with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stages/expression/row_filter.h"
#include "stages/steps/rank/rank_parts.h"

static void a_condition_may_use_the_columns_of_molecule(void **state)
{
    static const char *const good[] = { "mw < 500",
                                        "mw between 200 and 450 and logp <= 4",
                                        "formula like '%Cl%'",
                                        "abs(charge) = 0 -- neutral",
                                        "energy is null or energy < 100",
                                        "MW<5E2 AND\"logp\"<=.5",
                                        "not (mw > 500 or logp > 5)",
                                        "removed is not null and removed <> 'Cl'",
                                        "(mw <= 500) + (logp <= 5) + (hbd <= 5) + (hba <= 10) >= 3",
                                        "1.0 * hba / n_heavy < 0.3",
                                        "charge in (-1, 0, 1)",
                                        "charge not between -1 and 1",
                                        "smiles not like '%it''s%' escape '!'",
                                        "smiles glob '*[N+]*' /* charged */",
                                        "case when mw < 300 then 'a' else 'b' end = 'a'",
                                        "case charge when 0 then 1 else 0 end = 1",
                                        "cast(mw as integer) % 2 = 0",
                                        "coalesce(alerts, '') = ''",
                                        "instr(smiles, 'Br') = 0 and length(smiles) < 80",
                                        "max(mw, 10 * tpsa) > 3",
                                        "true",
                                        "round(logp) = 2",
                                        "- charge < + 1",
                                        "formula collate nocase = 'c6h6'",
                                        "(mw < 500) is not true",
                                        "undefined_stereo notnull" };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(st_row_filter_check(good[i], NULL, NULL, NULL), PL_OK);
}

static const char *const elsewhere[] = {
    "weight < 500",
    "mw <",
    "mw < 500; DELETE FROM molecule",
    "mol_id IN (SELECT mol_id FROM score)",
    "1) UNION SELECT sha256 FROM (input_file",
    "load_extension('x')",
    "mw < (SELECT max(value) FROM label)",
    "",
    "1) LIMIT (1",
    "1) UNION SELECT * FROM molecule WHERE (1",
    "mw > 1) ORDER BY (mw",
    "\"mv\" > 1",
    "\"mv\" = \"mv\"",
    "`mv` > 1",
    "[mw] > 1",
    "mw > ?1",
    "mw > ?",
    "mw > :a",
    "mw > @a",
    "mw > $a",
    "random() > 0",
    "abs(random()) % 2 = 0",
    "mw > 5 and random",
    "length(randomblob(3)) = 3",
    "mw > strftime('%s')",
    "current_time > '12'",
    "mw > 1 -- )\n) or (1",
    "mw > 1 /* never ended",
    "exists (select 1)",
    "mw in (select 1)",
    "mw in molecule",
    "(mw, logp) > (1, 2)",
    "mw > 1; ",
    "molecule.mw > 1",
    "rowid > 5",
    "mw > x'41'",
    "mw > 0x10",
    "mw > 1e",
    "mw > 12abc",
    "mw > 'unended",
    "fts3_tokenizer('simple') is not null",
    "sqlite_version() > '1'",
    "count(*) > 1",
    "max(mw) > 3",
    "mw > 1 group",
    "sum(mw) over () > 1",
    "raise(ignore)",
    "printf('%d', 1) = '1'",
    "mw > \u2264 1",
    "mw > 1 limit 1",
    "()",
    "(mw > 1",
    "mw > 1)",
    "not",
    "mw between 1",
    "mw not 5",
    "case end",
    "like('a', smiles)",
};

static void a_condition_may_not_read_or_change_anything_else(void **state)
{
    pl_error err;

    (void)state;
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (st_row_filter_check(elsewhere[i], NULL, NULL, &err) != PL_ECONFIG)
            fail_msg("accepted: %s", elsewhere[i]);
}

static void a_condition_that_means_something_else_to_sql_is_refused(void **state)
{
    static const char *const bad[] = {
        "200 < mw < 500",
        "mw < 200 = true",
        "mw = 200 or 300",
        "mw",
        "not rings",
        "1",
        "mw > 'heavy'",
        "mw > '500'",
        "formula > 5",
        "removed = null",
        "removed <> null",
        "hba / n_heavy > 0.3",
        "mw & 1",
        "mw > 1 & logp < 2",
        "mw > 1 && logp < 2",
        "smiles + 1 > 2",
        "'a' and 'b'",
        "mw like '3%'",
        "mw in (1, 'a')",
        "charge || 'a' = 'b'",
        "abs(smiles) > 1",
        "length(mw) > 1",
        "case when mw then 1 end = 1",
        "coalesce(alerts, 0) = 0",
        "mw between 'a' and 'b'",
        "mw in (1, null)",
        "mw is 'a'",
    };
    pl_error err;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (st_row_filter_check(bad[i], NULL, NULL, &err) != PL_ECONFIG)
            fail_msg("accepted: %s", bad[i]);
}

static void a_condition_says_at_which_character_it_is_wrong(void **state)
{
    static const struct {
        const char *text;
        size_t at;
        const char *says;
    } bad[] = { { "mw < 5 and mv > 1", 11, "did you mean mw" },
                { "\"mv\" > 1", 1, "single quotes" },
                { "1) union select 1", 1, "goes on with" },
                { "mw > 1 and\n random() > 2", 12, "no such function here: random" },
                { "200 < mw < 500", 9, "write a < b and b < c" },
                { "mw = 200 or 300", 12, "a condition is expected" },
                { "mw > ?1", 5, "no parameters" },
                { "mw >", 4, "missing at the end" } };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t at = 99;
        pl_error err = { 0 };
        assert_int_equal(st_row_filter_check(bad[i].text, NULL, &at, &err), PL_ECONFIG);
        assert_int_equal(at, bad[i].at);
        if (strstr(err.text, bad[i].says) == NULL)
            fail_msg("%s: %s", bad[i].text, err.text);
    }
}

/* What only SQLite knows is told in its words. */
static void a_condition_that_sqlite_refuses_is_told_as_one(void **state)
{
    enum { TERMS = 1500 };
    char *chain = malloc(TERMS * sizeof "mw > 0 or ");
    pl_error err = { 0 };

    (void)state;
    *chain = '\0';
    for (int i = 0; i < TERMS; i++)
        strcat(chain, i + 1 < TERMS ? "mw > 0 or " : "mw > 0");
    assert_int_equal(st_row_filter_check(chain, NULL, NULL, &err), PL_ECONFIG);
    free(chain);
    assert_ptr_equal(strstr(err.text, "where: Expression tree is too large"), err.text);
}

/* Any depth or length gives an answer and no crash. */
static void a_condition_of_any_depth_is_answered(void **state)
{
    static const char *const parts[] = { "(", "not ", "-", "abs(", "case when ", "1+(", "(1,", "/*", "'", "\"" };
    char *deep = malloc(400001);

    (void)state;
    for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++) {
        size_t n = 0, len = strlen(parts[k]);
        while (n + len <= 400000) {
            memcpy(deep + n, parts[k], len);
            n += len;
        }
        deep[n] = '\0';
        assert_int_equal(st_row_filter_check(deep, NULL, NULL, NULL), PL_ECONFIG);
    }
    free(deep);
}

static void an_objective_adds_a_multiple_of_spread_or_interval(void **state)
{
    static const struct {
        const char *use, *column;
        double k;
    } good[] = { { "mean", "stdev", 0 },
                 { "mean - 1.5*stdev", "stdev", -1.5 },
                 { "mean+stdev", "stdev", 1 },
                 { "mean-stdev", "stdev", -1 },
                 { " mean + 2 * stdev ", "stdev", 2 },
                 { NULL, "stdev", 0 },
                 { "mean - interval90", "interval90", -1 },
                 { "mean + 0.5*interval90", "interval90", 0.5 } };
    static const char *const bad[] = { "",
                                       "median",
                                       "mean -",
                                       "mean * 2",
                                       "mean - -1*stdev",
                                       "mean - x*stdev",
                                       "stdev",
                                       "mean - 1stdev",
                                       "mean + 1e999*stdev",
                                       "interval90",
                                       "mean - interval9",
                                       "mean - 1*interval95",
                                       "mean - stdev*interval90" };
    st_use use;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(st_rank_use(&use, good[i].use, NULL), PL_OK);
        assert_true(use.factor == good[i].k);
        assert_string_equal(use.column, good[i].column);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (st_rank_use(&use, bad[i], NULL) != PL_ECONFIG)
            fail_msg("accepted: \"%s\"", bad[i]);
}

/* ---- fronts ---- */

/* The code of ranking n candidates, of which those from `plain` on are dominated by the first. */
static pl_code ranked(int64_t n, int64_t plain, int64_t *n_best, pl_error *err)
{
    static const st_objective objective = { .goal = ST_MAXIMISE, .weight = 1 };
    static atomic_int stop;
    const st_rank_conf conf = { .objectives = { .n = 2 }, .method = ST_PARETO };
    pl_store store = { .db = NULL };
    const pl_env env = { .store = &store, .stop = &stop };
    st_ranking s = { .env = (pl_env *)(uintptr_t)&env, .conf = &conf, .n_terms = 2, .term = { &objective, &objective } };
    pl_code code;

    assert_int_equal(sqlite3_open(":memory:", &store.db), SQLITE_OK);
    assert_int_equal(pl_db_prepare(store.db, &s.query,
                                   "WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i+1 FROM c LIMIT ?1) SELECT i,'K',0,0,0,0,"
                                   "iif(i<?2,-i,-2*i),iif(i<?2,i,-1) FROM c",
                                   err),
                     PL_OK);
    (void)sqlite3_bind_int64(s.query, 1, n);
    (void)sqlite3_bind_int64(s.query, 2, plain);
    code = st_rank_fronts(&s, 2, err);
    *n_best = s.n_best;
    free(s.best);
    (void)sqlite3_finalize(s.query);
    assert_int_equal(sqlite3_close(store.db), SQLITE_OK);
    return code;
}

static void a_front_has_a_million_molecules_at_most(void **state)
{
    const int64_t most = 1 << 20;
    int64_t n = 0;
    pl_error err = { 0 };

    (void)state;
    assert_int_equal(ranked(most + 1, most, &n, &err), PL_OK);
    assert_int_equal(n, 2);
    assert_int_equal(ranked(most + 1, most + 1, &n, &err), PL_ELIMIT);
    assert_string_equal(err.text, "front 1 has more than 1048576 molecules: if almost no candidate dominates another, fronts order "
                                  "little; use fewer objectives, add constraints, or set method: weighted");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_condition_may_use_the_columns_of_molecule),
        cmocka_unit_test(a_condition_may_not_read_or_change_anything_else),
        cmocka_unit_test(a_condition_that_means_something_else_to_sql_is_refused),
        cmocka_unit_test(a_condition_says_at_which_character_it_is_wrong),
        cmocka_unit_test(a_condition_that_sqlite_refuses_is_told_as_one),
        cmocka_unit_test(a_condition_of_any_depth_is_answered),
        cmocka_unit_test(an_objective_adds_a_multiple_of_spread_or_interval),
        cmocka_unit_test(a_front_has_a_million_molecules_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
