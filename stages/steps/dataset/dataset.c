/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/graph/graph_block.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/blocks.h"
#include "stages/database/descriptor_columns.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/limits.h"
#include "stages/steps/ingest/prepare.h"

const char *const st_part_name[ST_PARTS] = { "train", "valid", "test", "calibration", "new" };

/* ---- rows ---------------------------------------------------------------- */

static int part_number(const char *name)
{
    for (int p = 0; p < ST_PARTS; p++)
        if (name != NULL && !strcmp(name, st_part_name[p]))
            return p;
    return ST_TRAIN;
}

/* Numbers of which none is known. NULL: no memory. */
static double *unknown_make(pl_arena *mem, int64_t n)
{
    double *x = PL_NEW(mem, double, n + 1);

    for (int64_t i = 0; i < n && x != NULL; i++)
        x[i] = NAN;
    return x;
}

static pl_code rows_alloc(st_dataset *d, int64_t n, pl_error *err)
{
    d->mol_id = PL_NEW(d->mem, int64_t, n + 1);
    d->value = unknown_make(d->mem, n * d->n_targets);
    d->low = d->limits ? unknown_make(d->mem, n * d->n_targets) : NULL;
    d->high = d->limits ? unknown_make(d->mem, n * d->n_targets) : NULL;
    d->descriptor = pl_arena_get(d->mem, (size_t)n + 1, sizeof *d->descriptor);
    d->part = PL_NEW(d->mem, uint8_t, n + 1);
    d->item = PL_NEW(d->mem, nn_item, n + 1);
    d->other = PL_NEW(d->mem, struct st_others, n + 1);
    d->column = PL_NEW(d->mem, float, n * d->columns->n + 1);
    if ((d->limits && (d->low == NULL || d->high == NULL)) || d->mol_id == NULL || d->column == NULL || d->value == NULL ||
        d->descriptor == NULL || d->part == NULL || d->item == NULL || d->other == NULL)
        return pl_fail(err, PL_ENOMEM, "a data set of %lld molecules", (long long)n);
    return PL_OK;
}

static void row_take(st_dataset *d, sqlite3_stmt *st)
{
    int64_t i = d->n++;

    d->mol_id[i] = sqlite3_column_int64(st, 0);
    d->part[i] = (uint8_t)part_number((const char *)sqlite3_column_text(st, 1));
    for (int k = 0, n = 0; k < CH_N_DESCRIPTORS; k++)
        if (ch_descriptors[k].since == 1)
            d->descriptor[i][n++] = sqlite3_column_double(st, 2 + k);
}

/* If *code is PL_OK, adds the property id of a label to "3,5", -1 for one that no molecule has, and stores there what came of it. */
static void id_add(const char **ids, pl_env *env, const char *name, pl_code *code, pl_error *err)
{
    int64_t id = -1;

    if (*code != PL_OK)
        return;
    if (name != NULL)
        *code = pl_db_int(env->store->db, &id, err, "SELECT coalesce((SELECT property_id FROM property WHERE name=%Q),-1)", name);
    if (*code != PL_OK)
        return;
    *ids = pl_sprintf(env->mem, "%s%s%lld", *ids, (*ids)[0] ? "," : "", (long long)id);
    if (*ids == NULL)
        *code = pl_fail(err, PL_ENOMEM, "labels");
}

/* The same of the limits of a label. */
static void limit_add(const char **ids, pl_env *env, const char *label, st_side side, pl_code *code, pl_error *err)
{
    const char *name = st_limit_name(label, side, env->mem);

    if (*code == PL_OK && name == NULL)
        *code = pl_fail(err, PL_ENOMEM, "labels");
    id_add(ids, env, name, code, err);
}

/* The property ids of the labels, and of their limits where these are wanted. */
static pl_code ids_of(const char **out, pl_env *env, const st_wanted_label *label, int32_t n, pl_error *err)
{
    pl_code code = PL_OK;

    *out = "";
    for (int32_t k = 0; k < n; k++) {
        id_add(out, env, label[k].name, &code, err);
        for (int side = 0; side < ST_SIDES && label[k].limits; side++)
            limit_add(out, env, label[k].name, (st_side)side, &code, err);
    }
    return code;
}

/* The condition on molecules s to have one of the labels. */
static pl_code labelled_sql(const char **out, pl_env *env, const st_wanted_label *label, int32_t n, pl_error *err)
{
    const char *ids;
    pl_code code = ids_of(&ids, env, label, n, err);

    if (code != PL_OK)
        return code;
    *out = "1";
    if (!label->none)
        *out = pl_sprintf(env->mem, "EXISTS(SELECT 1 FROM label l WHERE l.mol_id=s.mol_id AND l.property_id IN (%s))", ids);
    return *out != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "labels");
}

/* The molecules of the split that are wanted; the values are read later. */
static pl_code rows_query(st_dataset *d, pl_env *env, const st_wanted_label *label, pl_error *err)
{
    const char *labelled = NULL, *sql;
    sqlite3_stmt *st = NULL;
    int64_t n = 0;
    pl_code code = labelled_sql(&labelled, env, label, d->n_targets, err);

    if (code == PL_OK)
        code = pl_db_int(env->store->db, &n, err, "SELECT count(*) FROM %s s WHERE %s", d->from, labelled);
    if (code == PL_OK)
        code = rows_alloc(d, n, err);
    sql = code != PL_OK
              ? NULL
              : pl_sprintf(env->mem,
                           "SELECT s.mol_id, s.part" ST_DESCRIPTOR_COLUMNS " FROM %s s CROSS JOIN molecule m USING(mol_id) "
                           "WHERE %s ORDER BY s.mol_id",
                           d->from, labelled);
    if (code == PL_OK)
        code = sql != NULL ? pl_db_prepare(env->store->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "labels");
    while (d->n < n && pl_db_next(st, &code, err))
        row_take(d, st);
    sqlite3_finalize(st);
    return code;
}

/* Molecules and labels both grow by id. */
static pl_code values_query(st_dataset *d, pl_env *env, const char *name, double factor, double *to, int64_t *found, pl_error *err)
{
    const char *sql = pl_sprintf(env->mem,
                                 "SELECT s.mol_id, l.value FROM %s s JOIN label l USING(mol_id) "
                                 "WHERE l.property_id=(SELECT property_id FROM property WHERE name=?) ORDER BY s.mol_id",
                                 d->from);
    sqlite3_stmt *st = NULL;
    int64_t at = 0;
    pl_code code = sql != NULL && name != NULL ? pl_db_prepare(env->store->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "labels");

    *found = 0;
    if (code == PL_OK)
        (void)sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    while (pl_db_next(st, &code, err)) {
        while (at < d->n && d->mol_id[at] < sqlite3_column_int64(st, 0))
            at++;
        if (at == d->n || d->mol_id[at] != sqlite3_column_int64(st, 0))
            continue;
        to[at * d->n_targets] = sqlite3_column_double(st, 1) * factor;
        ++*found;
    }
    sqlite3_finalize(st);
    return code;
}

static pl_code label_query(st_dataset *d, pl_env *env, const st_wanted_label *label, int32_t k, pl_error *err)
{
    int64_t found = 0, limits;
    pl_code code = values_query(d, env, label->name, label->factor, d->value + k, &found, err);

    for (int side = 0; side < ST_SIDES && label->limits && code == PL_OK; side++) {
        double *to = (side == ST_AT_LEAST) == (label->factor > 0) ? d->low : d->high;
        code = values_query(d, env, st_limit_name(label->name, (st_side)side, env->mem), label->factor, to + k, &limits, err);
    }
    if (code == PL_OK && found == 0)
        code = pl_fail(err, PL_ECONFIG, "no molecule of the split has a label called %s; there are: %s", label->name,
                       st_labels_stored(env->store, env->mem));
    return code;
}

static pl_code columns_query(st_dataset *d, pl_env *env, pl_error *err)
{
    const int n = d->columns->n;
    st_column_rows rows = { 0 };
    const float *row = NULL;
    pl_code code = n > 0 && d->n > 0
                       ? st_columns_read(&rows, env->store->db, d->columns, d->mol_id[0], d->mol_id[d->n - 1], env->mem, err)
                       : PL_OK;

    for (int64_t i = 0; i < d->n && n > 0 && code == PL_OK; i++) {
        code = st_columns_row(&row, &rows, d->mol_id[i], err);
        if (code == PL_OK)
            memcpy(d->column + i * n, row, (size_t)n * sizeof *row);
    }
    return code;
}

bool st_dataset_is_labelled(const st_dataset *d, int64_t i)
{
    bool any = false;

    for (int32_t k = 0; k < d->n_targets && !any; k++)
        any = !isnan(st_dataset_value(d, i, k));
    return any;
}

/* Broadcasts if *code is PL_OK, and stores what came of it there. */
static void tell(nn_ranks *r, void *what, size_t bytes, pl_code *code, pl_error *err)
{
    if (*code == PL_OK)
        *code = r->kind->broadcast(r, what, bytes, err);
}

static pl_code rows_tell(st_dataset *d, nn_ranks *r, pl_error *err)
{
    int64_t n = d->n;
    pl_code code = r->kind->broadcast(r, &n, sizeof n, err);

    if (code != PL_OK)
        return code;
    if (r->rank > 0)
        code = rows_alloc(d, n, err);
    d->n = n;
    tell(r, d->mol_id, (size_t)n * sizeof *d->mol_id, &code, err);
    tell(r, d->value, (size_t)(n * d->n_targets) * sizeof *d->value, &code, err);
    if (d->limits) {
        tell(r, d->low, (size_t)(n * d->n_targets) * sizeof *d->low, &code, err);
        tell(r, d->high, (size_t)(n * d->n_targets) * sizeof *d->high, &code, err);
    }
    tell(r, d->descriptor, (size_t)n * sizeof *d->descriptor, &code, err);
    if (d->columns->n > 0)
        tell(r, d->column, (size_t)(n * d->columns->n) * sizeof *d->column, &code, err);
    tell(r, d->part, (size_t)n * sizeof *d->part, &code, err);
    return code;
}

/* Rank 0 reads the database. */
static pl_code rows_read(st_dataset *d, pl_env *env, const st_wanted_label *label, pl_error *err)
{
    pl_code code = rows_query(d, env, label, err);

    for (int32_t k = 0; k < d->n_targets && code == PL_OK; k++)
        code = label[k].name == NULL ? PL_OK : label_query(d, env, &label[k], k, err);
    return code == PL_OK ? columns_query(d, env, err) : code;
}

/* ---- graphs -------------------------------------------------------------- */

/* A block of features.db, which rank 0 reads. */
static pl_code block_get(const st_blocks *b, int64_t unit, pl_bytes *out, nn_ranks *r, pl_arena *mem, pl_error *err)
{
    pl_block block = { 0 };
    pl_code code = r->rank == 0 ? st_blocks_get(b, unit, &block, mem, err) : PL_OK;
    uint64_t n = block.data.len;
    void *copy = NULL;

    *out = block.data;
    if (code == PL_OK)
        code = pl_block_check(&block, err);
    if (code == PL_OK)
        code = r->kind->broadcast(r, &n, sizeof n, err);
    if (code != PL_OK || r->size == 1)
        return code;
    copy = r->rank == 0 ? (void *)(uintptr_t)out->data : pl_arena_get(mem, (size_t)n + 1, 1);
    if (copy == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of graphs");
    *out = (pl_bytes){ copy, (size_t)n };
    return r->kind->broadcast(r, copy, (size_t)n, err);
}

/* Whether there is a unit u: of graphs, of bases. Rank 0 looks. */
static pl_code unit_ahead(bool there[2], const st_blocks *graphs, const st_blocks *bases, int64_t u, nn_ranks *r, pl_error *err)
{
    pl_code code = PL_OK;

    there[0] = there[1] = false;
    if (r->rank == 0)
        code = st_blocks_has(graphs, u, &there[0], err);
    if (there[0] && bases->store != NULL)
        code = st_blocks_has(bases, u, &there[1], err);
    return code != PL_OK ? code : r->kind->broadcast(r, there, 2 * sizeof *there, err);
}

static bool holds_any(const st_dataset *d, const ch_graph_block *b, int64_t *cursor)
{
    int64_t first = b->n ? b->id[0] : 0, last = b->n ? b->id[b->n - 1] : -1;

    while (*cursor < d->n && d->mol_id[*cursor] < first)
        ++*cursor;
    return *cursor < d->n && d->mol_id[*cursor] <= last;
}

/* Graphs k .. end-1 are of molecule i. */
static pl_code structures_take(st_dataset *d, int64_t i, const ch_graph_block *b, const nn_basis_block *basis, int32_t k,
                               int32_t end, pl_error *err)
{
    struct st_others *other = &d->other[i];

    d->item[i] = nn_item_of(b, basis, k);
    if (end == k + 1)
        return PL_OK;
    other->item = PL_NEW(d->mem, nn_item, end - k);
    if (other->item == NULL)
        return pl_fail(err, PL_ENOMEM, "%d structures of a molecule", (int)(end - k));
    while (++k < end)
        other->item[other->n++] = nn_item_of(b, basis, k);
    return PL_OK;
}

/* Molecules and blocks both grow by id, so one pass over both joins them. */
static pl_code block_join(st_dataset *d, const ch_graph_block *b, const nn_basis_block *basis, int64_t cursor, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0, end; k < b->n && cursor < d->n && code == PL_OK; k = end) {
        for (end = k; end < b->n && b->id[end] == b->id[k];)
            end++;
        while (cursor < d->n && d->mol_id[cursor] < b->id[k])
            cursor++;
        if (cursor < d->n && d->mol_id[cursor] == b->id[k])
            code = structures_take(d, cursor, b, basis, k, end, err);
    }
    return code;
}

static pl_code unit_load(st_dataset *d, const st_blocks *graphs, const st_blocks *bases, int64_t unit, int64_t *cursor,
                         nn_ranks *ranks, pl_error *err)
{
    ch_graph_block *b = PL_NEW(d->mem, ch_graph_block, 1);
    nn_basis_block *basis = NULL;
    pl_bytes bytes;
    pl_code code = b != NULL ? block_get(graphs, unit, &bytes, ranks, d->mem, err) : pl_fail(err, PL_ENOMEM, "a block of graphs");

    if (code == PL_OK)
        code = ch_graph_block_unpack(b, bytes, d->mem, err);
    if (code != PL_OK || !holds_any(d, b, cursor))
        return code;
    if (bases != NULL) {
        basis = PL_NEW(d->mem, nn_basis_block, 1);
        code = basis != NULL ? block_get(bases, unit, &bytes, ranks, d->mem, err) : pl_fail(err, PL_ENOMEM, "a block of bases");
        if (code == PL_OK)
            code = nn_basis_unpack(basis, bytes, b, d->mem, err);
    }
    if (code == PL_OK)
        code = block_join(d, b, basis, *cursor, err);
    return code;
}

static pl_code graphs_load(st_dataset *d, pl_env *env, nn_ranks *ranks, pl_error *err)
{
    st_blocks graphs = { 0 }, bases = { 0 };
    int64_t cursor = 0;
    bool there[2] = { true, false };
    pl_code code = ranks->rank == 0 ? st_blocks_open(&graphs, env, "graph", "graph", err) : PL_OK;

    if (code == PL_OK && ranks->rank == 0 && pl_workflow_step(env->wf, "basis") != NULL)
        code = st_blocks_open(&bases, env, "basis", "basis", err);
    for (int64_t u = 0; code == PL_OK && there[0]; u++) {
        uint32_t stop = *env->stop != 0;
        code = nn_ranks_any(ranks, &stop, err);
        if (code == PL_OK)
            code =
                stop ? pl_fail(err, PL_ESTOP, "stopped while loading graphs") : unit_ahead(there, &graphs, &bases, u, ranks, err);
        if (code == PL_OK && there[0])
            code = unit_load(d, &graphs, there[1] ? &bases : NULL, u, &cursor, ranks, err);
    }
    return code;
}

void st_dataset_keep(st_dataset *d, bool (*wanted)(const st_dataset *d, int64_t i))
{
    int64_t kept = 0;

    for (int64_t i = 0; i < d->n; i++) {
        if (!wanted(d, i))
            continue;
        d->mol_id[kept] = d->mol_id[i];
        memmove(d->value + kept * d->n_targets, d->value + i * d->n_targets, (size_t)d->n_targets * sizeof *d->value);
        if (d->limits) {
            memmove(d->low + kept * d->n_targets, d->low + i * d->n_targets, (size_t)d->n_targets * sizeof *d->low);
            memmove(d->high + kept * d->n_targets, d->high + i * d->n_targets, (size_t)d->n_targets * sizeof *d->high);
        }
        memcpy(d->descriptor[kept], d->descriptor[i], sizeof d->descriptor[i]);
        d->part[kept] = d->part[i];
        d->other[kept] = d->other[i];
        d->item[kept++] = d->item[i];
    }
    d->n = kept;
}

static bool has_graph(const st_dataset *d, int64_t i) { return d->item[i].graph != NULL; }

/* Of one number: limits of training molecules that were not measured. A missing one is infinite; two that contradict each other are none. */
static void limit_settle(st_dataset *d, int64_t i, int32_t k)
{
    double *low = &d->low[i * d->n_targets + k], *high = &d->high[i * d->n_targets + k];
    const bool any = (!isnan(*low) || !isnan(*high)) && isnan(st_dataset_value(d, i, k)), trains = d->part[i] == ST_TRAIN;

    if (isnan(*low))
        *low = -INFINITY;
    if (isnan(*high))
        *high = INFINITY;
    d->n_contrary += any && trains && *low > *high;
    d->n_untested += any && !trains;
    if (!any || !trains || *low > *high)
        *low = *high = NAN;
}

static bool has_value_or_limit(const st_dataset *d, int64_t i)
{
    bool any = st_dataset_is_labelled(d, i);

    for (int32_t k = 0; k < d->n_targets && !any; k++)
        any = st_dataset_is_limit(d, i, k);
    return any;
}

static void limits_settle(st_dataset *d)
{
    for (int64_t i = 0; i < d->n && d->limits; i++)
        for (int32_t k = 0; k < d->n_targets; k++)
            limit_settle(d, i, k);
    if (d->limits)
        st_dataset_keep(d, has_value_or_limit);
}

/* The graph stage has stored the reason. */
static void without_graph_drop(st_dataset *d)
{
    const int64_t n = d->n;

    st_dataset_keep(d, has_graph);
    d->n_no_graph = n - d->n;
}

/* Before molecules are left out: afterwards a row of columns has another number than its molecule. */
static void columns_give(st_dataset *d)
{
    for (int64_t i = 0; i < d->n && d->columns->n > 0; i++) {
        d->item[i].column = d->column + i * d->columns->n;
        for (int32_t k = 0; k < d->other[i].n; k++)
            d->other[i].item[k].column = d->item[i].column;
    }
}

static pl_code open_from(st_dataset *d, pl_env *env, const char *from, const st_wanted_label *label, int32_t n, nn_ranks *ranks,
                         pl_error *err)
{
    nn_ranks alone = { .kind = &nn_collective_none, .size = 1 }, *r = ranks != NULL ? ranks : &alone;
    pl_code code;

    *d = (st_dataset){ .n_targets = n,
                       .from = from,
                       .limits = n > 0 && label[0].limits,
                       .mem = pl_arena_new(1 << 20),
                       .columns = st_columns(env->wf) };
    if (d->mem == NULL)
        return pl_fail(err, PL_ENOMEM, "a data set");
    code = r->rank == 0 ? rows_read(d, env, label, err) : PL_OK;
    if (code == PL_OK)
        code = rows_tell(d, r, err);
    if (code == PL_OK)
        limits_settle(d);
    if (code == PL_OK)
        code = graphs_load(d, env, r, err);
    if (code == PL_OK) {
        columns_give(d);
        without_graph_drop(d);
    }
    return code;
}

pl_code st_dataset_open(st_dataset *d, pl_env *env, const st_wanted_label *label, int32_t n, nn_ranks *ranks, pl_error *err)
{
    return open_from(d, env, "split", label, n, ranks, err);
}

pl_code st_dataset_open_all(st_dataset *d, pl_env *env, const st_wanted_label *label, int32_t n, pl_error *err)
{
    return open_from(d, env,
                     "(SELECT mol_id, iif(part='calibration',part,'new') AS part FROM molecule LEFT JOIN split USING(mol_id))",
                     label, n, NULL, err);
}

void st_dataset_close(st_dataset *d)
{
    pl_arena_free(d->mem);
    *d = (st_dataset){ 0 };
}

/* The place of the element with the most molecules that is not taken yet, the lightest of several; 0: none is left. */
static int commonest(const int64_t n_molecules[256], const bool taken[256])
{
    int best = 0;

    for (int z = 1; z < 256; z++)
        if (!taken[z] && n_molecules[z] > (best > 0 ? n_molecules[best] : 0))
            best = z;
    return best;
}

int32_t st_dataset_elements(nn_inputs *in, const st_dataset *d, st_part part)
{
    int64_t n_molecules[256] = { 0 }, last[256] = { 0 }; /* last: the molecule counted last, from 1 */
    bool taken[256] = { false };
    int32_t n_left = 0;

    for (int64_t i = 0; i < d->n; i++)
        for (int32_t k = 0; d->part[i] == part && k < d->item[i].graph->n_nodes; k++) {
            const uint8_t z = d->item[i].graph->z[k];
            n_molecules[z] += last[z] != i + 1;
            last[z] = i + 1;
        }
    for (int n = 0, z; n < NN_MAX_ELEMENTS && (z = commonest(n_molecules, taken)) > 0; n++)
        taken[z] = true;
    in->n_elements = 0;
    for (int z = 1; z < 256; z++) {
        n_left += n_molecules[z] > 0 && !taken[z];
        if (taken[z])
            in->element[in->n_elements++] = (uint8_t)z;
    }
    return n_left;
}
