/* SPDX-License-Identifier: Apache-2.0 */
/* The stages graph and basis in a real run, after a stage `prepare` of random molecules. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/molecule/codec.h"
#include "made_mol.h"
#include "models/features/feature.h"
#include "pipeline/run/run.h"
#include "stages/database/schema.h"
#include "stages/steps/features/basis.h"
#include "stages/steps/features/graph.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "toy.h"

enum { UNITS = 5, PER_UNIT = 6 };

/* ---- prepare, made up ---- */

typedef struct fake_state {
    pl_env *env;
    int64_t next;
} fake_state;

static pl_code fake_open(void *state, pl_env *env, pl_error *err)
{
    fake_state *s = state;

    *s = (fake_state){ env, env->units_done };
    return pl_store_features(env->store, err);
}

static pl_code fake_next(void *state, pl_unit *unit, bool *more, pl_error *err)
{
    fake_state *s = state;

    (void)unit, (void)err;
    *more = s->next++ < UNITS;
    return PL_OK;
}

/* Molecule 1 of each unit has two atoms in one place; unit 2 is empty. */
static pl_code fake_commit(void *state, pl_unit *unit, pl_error *err)
{
    fake_state *s = state;
    ch_block_item item[PER_UNIT];
    int32_t n = unit->index == 2 ? 0 : PER_UNIT;
    pl_bytes bytes;
    pl_code code;

    for (int32_t i = 0; i < n; i++) {
        item[i].id = 100 * unit->index + i + 1;
        item[i].mol = made_mol(8 + i, 9, (uint64_t)item[i].id, unit->mem);
        if (i == 1)
            memcpy(item[i].mol.xyz[5], item[i].mol.xyz[2], sizeof item[i].mol.xyz[2]);
        char *sql = sqlite3_mprintf("INSERT INTO molecule(mol_id,inchikey,smiles,formula,n_atoms,n_heavy,charge,rings,"
                                    "geometry,unit) VALUES(%lld,'','','',%d,%d,0,0,'input',%lld)",
                                    (long long)item[i].id, 8 + i, 8 + i, (long long)unit->index);
        code = pl_db_exec(s->env->store->db, sql, err);
        sqlite3_free(sql);
        if (code != PL_OK)
            return code;
    }
    code = ch_block_pack(&bytes, item, n, unit->mem, err);
    unit->n_ok = n;
    if (code != PL_OK)
        return code;
    return pl_block_put(s->env->store, "conformer", s->env->step->key, unit->index, unit->index, n, bytes, err);
}

static const char *const fake_reset[] = { "DELETE FROM molecule", NULL };

static const pl_stage fake_prepare = { .name = "prepare",
                                       .help = "random molecules",
                                       .scope = PL_PER_UNIT,
                                       .version = 1,
                                       .conf_size = sizeof(st_prepare_conf), /* zeros: structures of the input, else built */
                                       .state_size = sizeof(fake_state),
                                       .item = "molecules",
                                       .open = fake_open,
                                       .next = fake_next,
                                       .commit = fake_commit,
                                       .reset_sql = fake_reset };

static const pl_stage *const known[] = { &fake_prepare, &st_graph, &st_basis, NULL };

/* ---- a run ---- */

static char dir[256];
static pl_arena *mem;

static int fresh(void **state)
{
    (void)state;
    toy_directory(dir);
    mem = pl_arena_new(1 << 20);
    return dir[0] == '\0' || mem == NULL;
}

static int done(void **state)
{
    (void)state;
    pl_arena_free(mem);
    toy_remove(dir);
    return 0;
}

static pl_workflow *loaded(const char *sub, const char *graph, const char *basis)
{
    char *path = pl_sprintf(mem, "%s/flow.yaml", dir);
    char *text = pl_sprintf(mem,
                            "format: 1\nname: features\nworkdir: %s\ninputs: []\n"
                            "limits: {failures: {max_fraction: 1}, disk_free_min: 0}\n"
                            "stages:\n  prepare: {}\n  graph: {%s}\n  basis: {%s}\n",
                            sub, graph, basis);
    pl_problems problems = { .mem = mem };
    pl_workflow *wf;
    pl_error err;

    if (pl_file_write(path, (pl_bytes){ text, strlen(text) }, &err) != PL_OK)
        fail_msg("%s", err.text);
    wf = pl_workflow_load(path, NULL, 0, known, &problems, mem);
    for (int i = 0; i < problems.n; i++)
        print_error("%d:%d: %s\n", problems.list[i].line, problems.list[i].column, problems.list[i].text);
    assert_non_null(wf);
    return wf;
}

static pl_workflow *ran(const char *sub, const char *graph, const char *basis, int workers)
{
    pl_workflow *wf = loaded(sub, graph, basis);
    pl_error err = { 0 };
    pl_code code =
        pl_run(wf, &st_schema, &(pl_run_opts){ .workers = workers, .quiet = true, .command = "run", .known = known }, mem, &err);

    if (code != PL_OK)
        fail_msg("%s: %s", err.where, err.text);
    return wf;
}

static pl_store *stored(pl_workflow *wf)
{
    pl_store *s = NULL;
    pl_error err = { 0 };

    if (pl_store_open(&s, wf, &st_schema, &err) != PL_OK || pl_store_features(s, &err) != PL_OK)
        fail_msg("%s", err.text);
    return s;
}

static int64_t number(pl_store *s, const char *sql)
{
    int64_t n = -1;

    assert_int_equal(pl_db_int(s->db, &n, NULL, "%s", sql), PL_OK);
    return n;
}

static pl_bytes block(pl_store *s, const pl_workflow *wf, const char *stage, int64_t unit)
{
    pl_block got;

    assert_int_equal(pl_block_get(s, stage, pl_workflow_step(wf, stage)->key, unit, &got, mem, NULL), PL_OK);
    assert_int_equal(pl_block_check(&got, NULL), PL_OK);
    assert_true(got.found);
    return got.data;
}

static void every_unit_leaves_a_block_of_graphs_and_one_of_bases(void **state)
{
    pl_workflow *wf = ran("one", "cutoff: 4", "kind: frame_f32", 1);
    pl_store *s = stored(wf);
    (void)state;
    for (int64_t unit = 0; unit < UNITS; unit++) {
        ch_graph_block g;
        nn_basis_block b;
        assert_int_equal(ch_graph_block_unpack(&g, block(s, wf, "graph", unit), mem, NULL), PL_OK);
        assert_int_equal(nn_basis_unpack(&b, block(s, wf, "basis", unit), &g, mem, NULL), PL_OK);
        assert_int_equal(g.n, unit == 2 ? 0 : PER_UNIT - 1);
        for (int32_t i = 0; i < g.n; i++)
            assert_int_equal(g.id[i], 100 * unit + (i > 0) + i + 1);
    }
    assert_int_equal(number(s, "SELECT sum(n_ok) FROM unit JOIN stage USING(stage_id) WHERE name='graph'"), 20);
    assert_int_equal(number(s, "SELECT count(*) FROM v_failures WHERE code='coincide'"), 4);
    assert_int_equal(number(s, "SELECT count(*) FROM failure WHERE stage='graph' AND mol_id IN(2,102,302,402) AND"
                               " message LIKE 'atoms 3 and 6 are closer%'"),
                     4);
    pl_store_close(s);
}

static void workers_do_not_change_a_byte(void **state)
{
    pl_workflow *a = ran("a", "edges: knn, k: 4", "kind: frame_q15", 1);
    pl_workflow *b = ran("b", "edges: knn, k: 4", "kind: frame_q15", 3);
    pl_store *x = stored(a), *y = stored(b);
    (void)state;
    for (int64_t unit = 0; unit < UNITS; unit++) {
        static const char *const stage[] = { "graph", "basis" };
        for (int k = 0; k < 2; k++) {
            pl_bytes p = block(x, a, stage[k], unit), q = block(y, b, stage[k], unit);
            assert_int_equal(p.len, q.len);
            assert_memory_equal(p.data, q.data, p.len);
        }
    }
    pl_store_close(x);
    pl_store_close(y);
}

static void no_bases_make_no_units(void **state)
{
    pl_workflow *wf = ran("none", "edges: bonds", "kind: none", 2);
    pl_store *s = stored(wf);
    int64_t n = -1;
    (void)state;
    assert_int_equal(number(s, "SELECT n_units FROM stage WHERE name='basis'"), 0);
    assert_int_equal(number(s, "SELECT count(*) FROM stage WHERE state='done'"), 3);
    assert_int_equal(pl_block_count(s, "basis", pl_workflow_step(wf, "basis")->key, &n, NULL), PL_OK);
    assert_int_equal(n, 0);
    pl_store_close(s);
}

/* Stored sizes against the estimated ones: exact, except for the heads of blocks, if the
 * number of edges is known beforehand. */
static void plan_knows_the_sizes_of_every_kind(void **state)
{
    pl_workflow *wf = ran("plan", "edges: full", "kind: sh_f32", 2);
    pl_store *s = stored(wf);
    int64_t written = 0;
    pl_estimate e;
    (void)state;
    assert_int_equal(st_graph.estimate(wf, pl_workflow_step(wf, "graph"), s, &e, mem, NULL), PL_OK);
    assert_int_equal(e.n_units, UNITS);
    assert_int_equal(e.n_items, 4 * PER_UNIT);
    assert_int_equal(st_basis.estimate(wf, pl_workflow_step(wf, "basis"), s, &e, mem, NULL), PL_OK);
    for (int k = 0; k < NN_BASIS_NONE; k++)
        assert_non_null(strstr(e.note, nn_basis_name((nn_basis_kind)k)));
    for (int64_t unit = 0; unit < UNITS; unit++)
        written += (int64_t)block(s, wf, "basis", unit).len;
    /* Four of the 24 molecules coincide and have no bases. */
    assert_true(e.bytes_features > 0.8 * (double)written && e.bytes_features < 1.5 * (double)written);
    assert_int_equal(st_basis.estimate(wf, pl_workflow_step(wf, "basis"), NULL, &e, mem, NULL), PL_OK);
    assert_int_equal(e.n_units, -1); /* no inputs to guess from */
    pl_store_close(s);
}

static void limits_of_settings_are_failures_of_molecules(void **state)
{
    pl_workflow *wf = ran("limits", "edges: full, max_atoms: 11, max_edges: 80", "kind: none", 1);
    pl_store *s = stored(wf);
    (void)state;
    /* The molecules of a unit have 8 to 13 atoms: 12 and 13 are too many, 10 and 11 have 90 and 110 edges, and in that of 9 two coincide. */
    assert_int_equal(number(s, "SELECT count(*) FROM failure WHERE code='atoms'"), 8);
    assert_int_equal(number(s, "SELECT count(*) FROM failure WHERE code='edges'"), 8);
    assert_int_equal(number(s, "SELECT count(*) FROM failure WHERE code='coincide'"), 4);
    pl_store_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_unit_leaves_a_block_of_graphs_and_one_of_bases, fresh, done),
        cmocka_unit_test_setup_teardown(workers_do_not_change_a_byte, fresh, done),
        cmocka_unit_test_setup_teardown(no_bases_make_no_units, fresh, done),
        cmocka_unit_test_setup_teardown(plan_knows_the_sizes_of_every_kind, fresh, done),
        cmocka_unit_test_setup_teardown(limits_of_settings_are_failures_of_molecules, fresh, done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
