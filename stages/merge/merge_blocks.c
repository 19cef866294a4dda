/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "chem/graph/graph_block.h"
#include "chem/molecule/codec.h"
#include "pipeline/run/runner.h"
#include "stages/steps/ingest/pose_block.h"
#include "stages/merge/merge.h"
#include "stages/steps/external/external.h"
#include "stages/steps/features/basis.h"

enum { COMMIT_EVERY = 64 }; /* blocks in a transaction */

/* From a shard to features.db. */
typedef struct copying {
    st_merging *m;
    const pl_step *step;
    const char *kind;
    pl_store *from;
    sqlite3_stmt *same; /* molecules of a unit that are another one */
    int64_t *gone;      /* [n_gone] ascending                       */
    int32_t n_gone;
    pl_arena *mem; /* of one block                             */
} copying;

/* ---- a block without some of its molecules, as its stage would have made it ---- */

static bool is_gone(const copying *c, int64_t id)
{
    for (int32_t i = 0; i < c->n_gone; i++)
        if (c->gone[i] == id)
            return true;
    return false;
}

static pl_code fewer_conformers(const copying *c, pl_block *block, pl_error *err)
{
    ch_block_item *item;
    int32_t n, left = 0;
    pl_code code = ch_block_unpack(&item, &n, block->data, c->mem, err);

    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < n; i++)
        if (!is_gone(c, item[i].id))
            item[left++] = item[i];
    block->first = left > 0 ? item[0].id : 0;
    block->n_items = left;
    return ch_block_pack(&block->data, item, left, c->mem, err);
}

static pl_code fewer_poses(const copying *c, pl_block *block, pl_error *err)
{
    st_poses all;
    int32_t left = 0;
    pl_code code = st_pose_block_unpack(&all, block->data, c->mem, err);

    if (code != PL_OK)
        return code;
    for (int32_t i = 0; i < all.n; i++)
        if (!is_gone(c, all.item[i].id)) {
            all.item[left] = all.item[i];
            all.value[left++] = all.value[i];
        }
    all.n = left;
    block->first = left > 0 ? all.item[0].id : 0;
    block->n_items = left;
    return st_pose_block_pack(&block->data, &all, c->mem, err);
}

/* For graphs, `first` is the first input molecule, even if it was refused. */
static pl_code fewer_graphs(const copying *c, pl_block *block, ch_graph_block *out, pl_error *err)
{
    ch_graph_block all;
    ch_graph *graph;
    int64_t *id;
    int32_t left = 0;
    pl_code code = ch_graph_block_unpack(&all, block->data, c->mem, err);

    if (code != PL_OK)
        return code;
    graph = PL_NEW(c->mem, ch_graph, all.n + 1);
    id = PL_NEW(c->mem, int64_t, all.n + 1);
    if (graph == NULL || id == NULL)
        return pl_fail(err, PL_ENOMEM, "%d graphs", all.n);
    for (int32_t i = 0; i < all.n; i++)
        if (!is_gone(c, all.id[i])) {
            id[left] = all.id[i];
            graph[left++] = all.graph[i];
        }
    block->n_items = left;
    code = ch_graph_block_pack(&block->data, id, graph, left, c->mem, err);
    return code == PL_OK ? ch_graph_block_unpack(out, block->data, c->mem, err) : code;
}

static pl_code fewer_bases(const copying *c, int64_t unit, pl_block *block, pl_error *err)
{
    const pl_step *graph = pl_workflow_step(c->m->wf, "graph");
    ch_graph_block graphs;
    pl_block from;
    pl_code code = pl_block_get(c->from, "graph", graph->key, unit, &from, c->mem, err);

    if (code == PL_OK)
        code = pl_block_check(&from, err);
    if (code == PL_OK)
        code = fewer_graphs(c, &from, &graphs, err);
    if (code != PL_OK)
        return code;
    block->n_items = graphs.n;
    block->first = graphs.n > 0 ? graphs.id[0] : 0;
    return st_basis_pack(&block->data, c->step, &graphs, c->mem, err);
}

/* The first molecule of a unit that is kept. */
static pl_code first_left(const copying *c, int64_t unit_of_all, int64_t *first, pl_error *err)
{
    return pl_db_int(c->m->store->db, first, err,
                     "SELECT min(mol_id) FROM unit p CROSS JOIN molecule m ON m.mol_id BETWEEN p.first AND p.last WHERE "
                     "p.stage_id=(SELECT stage_id FROM stage WHERE name='prepare') AND p.unit=%lld AND m.mol_id NOT IN "
                     "(SELECT mol_id FROM merge_same WHERE unit=%lld)",
                     (long long)unit_of_all, (long long)unit_of_all);
}

static pl_code without_gone(const copying *c, int64_t unit, int64_t unit_of_all, pl_block *block, pl_error *err)
{
    ch_graph_block graphs;
    pl_code code;

    if (strcmp(c->kind, "conformer") == 0)
        return fewer_conformers(c, block, err);
    if (strcmp(c->kind, ST_POSE_BLOCK) == 0)
        return fewer_poses(c, block, err);
    if (strcmp(c->kind, "basis") == 0)
        return fewer_bases(c, unit, block, err);
    code = first_left(c, unit_of_all, &block->first, err);
    return code == PL_OK ? fewer_graphs(c, block, &graphs, err) : code;
}

static pl_code find_gone(copying *c, int64_t unit_of_all, pl_error *err)
{
    int64_t n = 0;
    pl_code code = pl_db_int(c->m->store->db, &n, err, "SELECT count(*) FROM merge_same WHERE unit=%lld", (long long)unit_of_all);

    c->n_gone = 0;
    c->gone = code == PL_OK ? PL_NEW(c->mem, int64_t, n + 1) : NULL;
    if (c->gone == NULL)
        return code == PL_OK ? pl_fail(err, PL_ENOMEM, "a block") : code;
    (void)sqlite3_bind_int64(c->same, 1, unit_of_all);
    while (pl_db_next(c->same, &code, err) && c->n_gone < n)
        c->gone[c->n_gone++] = sqlite3_column_int64(c->same, 0);
    (void)sqlite3_reset(c->same);
    return code;
}

/* ---- blocks of one stage ---- */

static pl_code copy_block(copying *c, int32_t shard, int64_t unit, pl_error *err)
{
    int64_t unit_of_all = unit * c->m->n + shard;
    pl_block block;
    pl_code code;

    pl_arena_reset(c->mem);
    code = pl_block_get(c->from, c->kind, c->step->key, unit, &block, c->mem, err);
    if (code == PL_OK)
        code = pl_block_check(&block, err);
    if (code == PL_OK && !block.found)
        code = pl_fail(err, PL_EDATA, "%s lacks unit %lld of stage %s: remove it and run shard %d again", c->from->features_path,
                       (long long)unit, c->step->stage->name, (int)shard);
    if (code == PL_OK)
        code = find_gone(c, unit_of_all, err);
    if (code == PL_OK && c->n_gone > 0)
        code = without_gone(c, unit, unit_of_all, &block, err);
    return code == PL_OK
               ? pl_block_put(c->m->store, c->kind, c->step->key, unit_of_all, block.first, block.n_items, block.data, err)
               : code;
}

static pl_code copy_shard(copying *c, int32_t shard, pl_error *err)
{
    sqlite3 *to = c->m->store->features;
    int64_t n = 0;
    pl_code code = pl_db_int(c->from->db, &n, err, "SELECT n_units FROM stage WHERE key=%Q", c->step->key);

    for (int64_t i = 0; i < n && code == PL_OK; i++) {
        if (sqlite3_get_autocommit(to))
            code = pl_db_begin(to, err);
        if (code == PL_OK)
            code = copy_block(c, shard, i, err);
        if (code == PL_OK && (i + 1 == n || i % COMMIT_EVERY == COMMIT_EVERY - 1))
            code = pl_db_commit(to, err);
    }
    pl_db_rollback(to);
    return code;
}

static pl_code from_shard(copying *c, int32_t shard, pl_error *err)
{
    pl_code code = pl_store_open_read(&c->from, c->m->path[shard], c->m->schema, err);

    if (code == PL_OK)
        code = pl_store_features(c->from, err);
    if (code == PL_OK)
        code = copy_shard(c, shard, err);
    pl_store_close(c->from);
    c->from = NULL;
    return code;
}

static pl_code copy_stage(st_merging *m, const pl_step *step, const char *kind, pl_error *err)
{
    copying c = { .m = m, .step = step, .kind = kind, .mem = pl_arena_new(1 << 20) };
    pl_code code = c.mem != NULL ? pl_store_features(m->store, err) : pl_fail(err, PL_ENOMEM, "a block");

    if (code == PL_OK)
        code = pl_store_mark(m->store, err);
    if (code == PL_OK)
        code = pl_db_prepare(m->store->db, &c.same, "SELECT mol_id FROM merge_same WHERE unit=? ORDER BY 1", err);
    for (int32_t k = 0; k < m->n && code == PL_OK; k++)
        code = from_shard(&c, k, err);
    (void)sqlite3_finalize(c.same);
    pl_arena_free(c.mem);
    return code;
}

/* ---- who reads them ---- */

/* A stage that no shard does. */
static bool is_read(const pl_workflow *wf, int step)
{
    bool read = false;

    for (int i = 0; i < wf->n_steps && !read; i++)
        read = !pl_step_in_shard(wf, i) && pl_step_reads(wf, i, step);
    return read;
}

static const char *const made[ST_MERGE_KINDS][2] = {
    { "prepare", "conformer" }, { "graph", "graph" }, { "basis", "basis" }, { "external", ST_POSE_BLOCK }
};

/* Poses are a result: no stage reads them, but `export` does. */
static bool is_wanted(const pl_workflow *wf, int kind, int step)
{
    if (strcmp(made[kind][1], ST_POSE_BLOCK) == 0)
        return st_external_has_poses(wf);
    return is_read(wf, step);
}

int st_merge_read_blocks(pl_packed *out, const pl_workflow *wf, pl_store *s, pl_arena *mem)
{
    int n = 0;

    for (int i = 0; i < ST_MERGE_KINDS; i++) {
        int at = pl_step_find(wf, made[i][0]);
        pl_stage_row row = { .n_units = -1 };
        if (at < 0 || !is_wanted(wf, i, at))
            continue;
        if (s != NULL && pl_stage_row_get(s, made[i][0], &row, mem, NULL) != PL_OK)
            row.n_units = -1;
        out[n++] = (pl_packed){ .kind = made[i][1], .key = wf->step[at].key, .n = row.n_units };
    }
    return n;
}

pl_code st_merge_blocks(st_merging *m, pl_error *err)
{
    pl_code code = PL_OK;

    for (int i = 0; i < ST_MERGE_KINDS && code == PL_OK; i++) {
        int at = pl_step_find(m->wf, made[i][0]);
        if (at >= 0 && is_wanted(m->wf, i, at))
            code = copy_stage(m, &m->wf->step[at], made[i][1], err);
    }
    return code;
}
