/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/search_find.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/fingerprint/common.h"
#include "chem/fingerprint/scaffold_smiles.h"
#include "stages/commands/search_match.h"
#include "stages/expression/chemistry.h"
#include "stages/expression/needs.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/ingest/prepared_as.h"

enum { CHUNK = 1024, KEEP_MORE = 2048 };

/* A molecule whose similarity is high enough. */
typedef struct near {
    double similarity;
    int64_t mol_id;
} near;

typedef struct search {
    const st_search *q;
    st_search_said *said;
    sqlite3 *db;
    ch_worker *chem;
    pl_arena *mem, *scratch; /* of the search; of one molecule or batch */
    ch_fingerprint query;
    int32_t query_ones;
    int64_t gaps;          /* 0: every molecule has a stored fingerprint */
    const char *scaffold;  /* that is asked for */
    ch_fingerprint *print; /* [CHUNK] */
    int64_t id[CHUNK];     /* of each fingerprint */
    int32_t both[CHUNK], ones[CHUNK], n_chunk;
    near *near; /* [n_near] */
    size_t n_near, cap_near;
    st_matcher *matcher; /* NULL: no pattern is asked for */
    st_needs needs;      /* of the pattern */
    sqlite3_stmt *put, *get_smiles;
} search;

static bool is_full(const search *s) { return s->q->limit > 0 && s->said->n_found >= s->q->limit; }

/* ---- what is asked ---- */

/* As it is written: nothing is removed, no charge is changed. */
static ch_prepare_opts as_written(void)
{
    ch_prepare_opts opts = ch_prepare_defaults();

    opts.conformer = CH_3D_NONE;
    opts.largest_fragment = false;
    return opts;
}

static pl_code read_smiles(ch_worker *w, const char *smiles, const ch_prepare_opts *opts, ch_mol *out, pl_arena *mem, pl_error *err)
{
    ch_prepared p;
    pl_code code = ch_worker_prepare(w, smiles, strlen(smiles), "smi", opts, &p, mem, err);

    *out = p.mol;
    return code;
}

static pl_code check_smarts(ch_worker *w, const char *smarts, pl_problems *problems, pl_error *err)
{
    const pl_node nowhere = { 0 };
    pl_error said = { 0 };
    int32_t column = 0;
    pl_code code = ch_worker_match(w, smarts, NULL, 0, NULL, &column, &said);

    if (code != PL_OK && code != PL_EINPUT)
        return pl_fail(err, code, "%s", said.text);
    if (code == PL_EINPUT)
        pl_problem_add(problems, &nowhere, "--smarts '%.60s': %s", smarts, said.text);
    else if (column > 0)
        pl_problem_add(problems, &nowhere, "--smarts '%.60s': not a valid SMARTS, see column %d", smarts, (int)column);
    return PL_OK;
}

static pl_code check_smiles(ch_worker *w, const char *option, const char *smiles, bool ring, pl_problems *problems, pl_arena *mem,
                            pl_error *err)
{
    const pl_node nowhere = { 0 };
    pl_error said = { 0 };
    ch_mol mol;
    const char *scaffold = "";
    const ch_prepare_opts opts = as_written();
    pl_code code = read_smiles(w, smiles, &opts, &mol, mem, &said);

    if (code == PL_OK && ring)
        code = ch_scaffold_smiles(&scaffold, &mol, mem, &said);
    if (code == PL_EINPUT)
        pl_problem_add(problems, &nowhere, "%s '%.60s': not a SMILES: %s", option, smiles, said.text);
    else if (code != PL_OK)
        return pl_fail(err, code, "%s", said.text);
    else if (ring && scaffold[0] == '\0')
        pl_problem_add(problems, &nowhere,
                       "%s '%.60s': has no rings, so no scaffold; for molecules without rings use --where \"scaffold = ''\"",
                       option, smiles);
    return PL_OK;
}

pl_code st_search_check(const st_search *q, pl_problems *problems, pl_arena *mem, pl_error *err)
{
    const ch_worker_opts limits = st_chemistry_limits();
    const pl_node nowhere = { 0 };
    ch_worker *w = NULL;
    pl_error said = { 0 };
    pl_code code = ch_worker_open(&w, &limits, err);

    if (code == PL_OK && q->smarts != NULL)
        code = check_smarts(w, q->smarts, problems, err);
    if (code == PL_OK && q->similar != NULL)
        code = check_smiles(w, "--similar", q->similar, false, problems, mem, err);
    if (code == PL_OK && q->scaffold != NULL && q->scaffold[0] != '\0')
        code = check_smiles(w, "--scaffold", q->scaffold, true, problems, mem, err);
    ch_worker_close(w);
    if (q->where != NULL && st_row_filter_check(q->where, NULL, NULL, &said) != PL_OK)
        pl_problem_add(problems, &nowhere, "--%s", said.text);
    return code;
}

/* ---- molecules that were found ---- */

static pl_code store(search *s, const near *one, pl_error *err)
{
    s->said->n_found++;
    (void)sqlite3_bind_int64(s->put, 1, one->mol_id);
    if (s->q->similar != NULL)
        (void)sqlite3_bind_double(s->put, 2, one->similarity);
    return pl_db_run(s->put, err);
}

static pl_code smiles_of(search *s, int64_t mol_id, const char **out, pl_error *err)
{
    pl_code code = PL_OK;

    (void)sqlite3_bind_int64(s->get_smiles, 1, mol_id);
    *out =
        pl_db_next(s->get_smiles, &code, err) ? pl_strdup(s->scratch, (const char *)sqlite3_column_text(s->get_smiles, 0)) : NULL;
    (void)sqlite3_reset(s->get_smiles);
    return code == PL_OK && *out == NULL ? pl_fail(err, PL_ENOMEM, "a SMILES") : code;
}

static void note_failed(search *s, const char *smiles, const char *why)
{
    if (s->said->n_failed++ == 0)
        (void)snprintf(s->said->first, sizeof s->said->first, "%.120s: %.150s", smiles, why);
}

/* A result of the matcher. */
static pl_code take_match(void *ctx, int64_t mol_id, double similarity, int yes, const char *smiles, const char *why, pl_error *err)
{
    search *s = ctx;
    const near one = { similarity, mol_id };

    if (why != NULL)
        note_failed(s, smiles, why);
    if (!yes)
        return PL_OK;
    if (!is_full(s))
        return store(s, &one, err);
    s->said->more = true;
    return PL_OK;
}

/* The molecule meets all conditions but the pattern. smiles: NULL if it has not been read. */
static pl_code take(search *s, double similarity, int64_t mol_id, const char *smiles, pl_error *err)
{
    const near one = { similarity, mol_id };
    pl_code code = PL_OK;

    if (is_full(s)) {
        s->said->more = true;
        return PL_OK;
    }
    if (s->matcher == NULL)
        return store(s, &one, err);
    if (smiles == NULL) {
        pl_arena_reset(s->scratch);
        code = smiles_of(s, mol_id, &smiles, err);
    }
    if (code != PL_OK || !st_needs_met(&s->needs, smiles))
        return code;
    return st_matcher_add(s->matcher, mol_id, similarity, smiles, err);
}

/* ---- similar molecules ---- */

static int by_similarity(const void *a, const void *b)
{
    const near *x = a, *y = b;

    if (x->similarity != y->similarity)
        return x->similarity > y->similarity ? -1 : 1;
    return x->mol_id < y->mol_id ? -1 : x->mol_id > y->mol_id;
}

/* Without a pattern no more than the limit are needed, and one that tells that there are more. */
static void drop_far(search *s)
{
    const size_t limit = (size_t)s->q->limit;

    if (s->q->smarts != NULL || limit == 0 || s->n_near / 2 < limit + KEEP_MORE)
        return;
    qsort(s->near, s->n_near, sizeof *s->near, by_similarity);
    s->n_near = limit + 1;
}

static pl_code keep(search *s, double similarity, int64_t mol_id, pl_error *err)
{
    if (s->n_near == s->cap_near) {
        const size_t cap = s->cap_near ? 2 * s->cap_near : 4096;
        near *grown = realloc(s->near, cap * sizeof *grown);
        if (grown == NULL)
            return pl_fail(err, PL_ENOMEM, "%zu similar molecules; ask for fewer with --at-least", s->n_near);
        s->near = grown;
        s->cap_near = cap;
    }
    s->near[s->n_near++] = (near){ similarity, mol_id };
    return PL_OK;
}

static pl_code compare_chunk(search *s, pl_error *err)
{
    pl_code code = PL_OK;

    ch_common(s->both, &s->query, s->print, s->n_chunk);
    ch_common_ones(s->ones, s->print, s->n_chunk);
    for (int32_t i = 0; i < s->n_chunk && code == PL_OK; i++) {
        const int32_t either = s->query_ones + s->ones[i] - s->both[i];
        const double similarity = either > 0 ? (double)s->both[i] / (double)either : 0;
        if (similarity >= s->q->at_least)
            code = keep(s, similarity, s->id[i], err);
    }
    s->n_chunk = 0;
    drop_far(s);
    return code;
}

/* What is not stored is computed from the SMILES; *mol has no atoms if that cannot be read, and the molecule counts as failed. */
static pl_code compute(search *s, const char *smiles, ch_mol *mol, pl_error *err)
{
    const ch_prepare_opts opts = as_written();
    pl_error said = { 0 };
    pl_code code;

    pl_arena_reset(s->scratch);
    s->said->n_computed++;
    code = read_smiles(s->chem, smiles, &opts, mol, s->scratch, &said);
    if (code == PL_EINPUT) {
        note_failed(s, smiles, said.text);
        *mol = (ch_mol){ 0 };
        return PL_OK;
    }
    return code == PL_OK ? code : pl_fail(err, code, "%s", said.text);
}

/* A row: mol_id, bits, scaffold, smiles. */
static pl_code look_at(search *s, sqlite3_stmt *st, pl_error *err)
{
    const int64_t mol_id = sqlite3_column_int64(st, 0);
    const unsigned char *bits = sqlite3_column_bytes(st, 1) == CH_FINGERPRINT_BYTES ? sqlite3_column_blob(st, 1) : NULL;
    const char *scaffold = (const char *)sqlite3_column_text(st, 2);
    ch_mol mol = { 0 };
    pl_code code = PL_OK;

    if ((s->q->similar != NULL && bits == NULL) || (s->scaffold != NULL && scaffold == NULL)) {
        code = compute(s, (const char *)sqlite3_column_text(st, 3), &mol, err);
        if (code != PL_OK || mol.n_atoms == 0)
            return code;
    }
    if (s->scaffold != NULL && scaffold == NULL)
        code = ch_scaffold_smiles(&scaffold, &mol, s->scratch, err);
    if (code != PL_OK || (s->scaffold != NULL && strcmp(scaffold, s->scaffold) != 0))
        return code;
    if (s->q->similar == NULL)
        return take(s, 0, mol_id, (const char *)sqlite3_column_text(st, 3), err);
    if (bits != NULL)
        ch_fingerprint_unpack(&s->print[s->n_chunk], bits);
    else if ((code = ch_fingerprint_of(&s->print[s->n_chunk], &mol, s->scratch, err)) != PL_OK)
        return code;
    s->id[s->n_chunk++] = mol_id;
    return s->n_chunk == CHUNK ? compare_chunk(s, err) : PL_OK;
}

/* ---- all molecules ---- */

/* Whether molecules lack a stored fingerprint. row_sum knows how many rows there are, unless its sums were given up. */
static pl_code look_for_gaps(search *s, pl_error *err)
{
    int64_t known = 0;
    pl_code code = pl_db_int(s->db, &known, err, "SELECT count(*) FROM row_sum WHERE tbl IN ('molecule','fingerprint')");

    if (known == 2)
        return pl_db_int(s->db, &s->gaps, err, "SELECT count(DISTINCT n)-1 FROM row_sum WHERE tbl IN ('molecule','fingerprint')");
    return code == PL_OK
               ? pl_db_int(s->db, &s->gaps, err, "SELECT (SELECT count(*) FROM molecule)-(SELECT count(*) FROM fingerprint)")
               : code;
}

/* mol_id, bits, scaffold, smiles of the molecules that may meet the conditions, from as few pages as possible. */
static const char *scan_sql(search *s, const char *condition, const char *hits)
{
    const char *molecules = condition != NULL ? pl_sprintf(s->mem, "(SELECT * FROM molecule WHERE (%s\n))", condition) : "molecule";

    if (molecules == NULL)
        return NULL;
    if (s->q->similar == NULL && s->scaffold == NULL)
        return pl_sprintf(s->mem, "SELECT m.mol_id, NULL, NULL, m.smiles FROM %s m %s", molecules, hits);
    if (condition == NULL && s->gaps == 0)
        return pl_sprintf(s->mem, "SELECT m.mol_id, m.bits, m.scaffold, NULL FROM fingerprint m %s", hits);
    return pl_sprintf(s->mem,
                      "SELECT m.mol_id, f.bits, f.scaffold, m.smiles FROM %s m LEFT JOIN fingerprint f ON f.mol_id=m.mol_id %s",
                      molecules, hits);
}

static pl_code scan(search *s, const char *hits, pl_error *err)
{
    const char *condition = NULL;
    bool functions = false;
    sqlite3_stmt *st = NULL;
    const char *sql;
    pl_code code = s->q->where != NULL ? st_row_filter_sql(&condition, s->q->where, s->db, &functions, s->mem, err) : PL_OK;

    if (code != PL_OK)
        return code;
    sql = scan_sql(s, condition, hits);
    code = sql != NULL ? pl_db_prepare(s->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "a query");
    while (!s->said->more && pl_db_next(st, &code, err))
        code = look_at(s, st, err);
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code find_similar(search *s, pl_error *err)
{
    pl_code code = scan(s, "", err);

    if (code == PL_OK && s->n_chunk > 0)
        code = compare_chunk(s, err);
    if (s->n_near > 0)
        qsort(s->near, s->n_near, sizeof *s->near, by_similarity);
    for (size_t i = 0; i < s->n_near && code == PL_OK && !s->said->more; i++)
        code = take(s, s->near[i].similarity, s->near[i].mol_id, NULL, err);
    return code;
}

static pl_code find_others(search *s, pl_error *err)
{
    pl_code code = scan(s, "JOIN hit h ON h.mol_id=m.mol_id ORDER BY h.rank", err);

    return code == PL_OK ? scan(s, "WHERE m.mol_id NOT IN (SELECT mol_id FROM hit) ORDER BY m.mol_id", err) : code;
}

/* A question gets the charges that the molecules of the library got. */
static pl_code read_similar(search *s, pl_store *store, pl_error *err)
{
    st_prepared_as as;
    ch_mol mol;
    pl_code code = st_prepared_as_read(&as, store, err);
    ch_prepare_opts opts = st_prepare_opts(&as.conf, 0);

    opts.max_heavy_atoms = ch_prepare_defaults().max_heavy_atoms; /* a question may be larger than the library's molecules */
    opts.max_atoms = ch_prepare_defaults().max_atoms;
    if (code == PL_OK)
        code = read_smiles(s->chem, s->q->similar, &opts, &mol, s->mem, err);
    if (code == PL_OK)
        code = ch_fingerprint_of(&s->query, &mol, s->mem, err);
    s->query_ones = ch_fingerprint_ones(&s->query);
    return code;
}

/* "" is the scaffold of molecules without rings. */
static pl_code read_scaffold(search *s, pl_error *err)
{
    ch_mol mol;
    const ch_prepare_opts opts = as_written();
    pl_code code = read_smiles(s->chem, s->scaffold, &opts, &mol, s->mem, err);

    return code == PL_OK ? ch_scaffold_smiles(&s->scaffold, &mol, s->mem, err) : code;
}

static pl_code open_search(search *s, pl_store *store, pl_error *err)
{
    const ch_worker_opts limits = st_chemistry_limits();
    pl_code code;

    s->scratch = pl_arena_new(1 << 16);
    s->print = calloc(CHUNK, sizeof *s->print);
    if (s->scratch == NULL || s->print == NULL)
        return pl_fail(err, PL_ENOMEM, "a search");
    code = ch_worker_open(&s->chem, &limits, err);
    s->scaffold = s->q->scaffold;
    if (code == PL_OK && s->q->similar != NULL)
        code = read_similar(s, store, err);
    if (code == PL_OK && s->scaffold != NULL && s->scaffold[0] != '\0')
        code = read_scaffold(s, err);
    if (code == PL_OK && s->q->where != NULL)
        code = st_chemistry_add(s->db, &limits, err);
    if (code == PL_OK && s->q->smarts != NULL) {
        s->needs = st_needs_of(s->q->smarts);
        code = st_matcher_open(&s->matcher, s->q->smarts, s->q->jobs, take_match, s, err);
    }
    if (code == PL_OK)
        code = look_for_gaps(s, err);
    if (code == PL_OK)
        code = pl_db_exec(s->db, "CREATE TEMP TABLE found(place INTEGER PRIMARY KEY, mol_id INTEGER, similarity REAL)", err);
    if (code == PL_OK)
        code = pl_db_prepare(s->db, &s->put, "INSERT INTO temp.found(mol_id,similarity) VALUES(?,?)", err);
    return code == PL_OK ? pl_db_prepare(s->db, &s->get_smiles, "SELECT smiles FROM molecule WHERE mol_id=?", err) : code;
}

pl_code st_search_find(st_search_said *said, const st_search *q, pl_store *store, pl_arena *mem, pl_error *err)
{
    search *s = PL_NEW(mem, search, 1);
    pl_code code;

    *said = (st_search_said){ 0 };
    if (s == NULL)
        return pl_fail(err, PL_ENOMEM, "a search");
    s->q = q;
    s->said = said;
    s->db = store->db;
    s->mem = mem;
    code = open_search(s, store, err);
    if (code == PL_OK)
        code = q->similar != NULL ? find_similar(s, err) : find_others(s, err);
    if (code == PL_OK && s->matcher != NULL)
        code = st_matcher_finish(s->matcher, err);
    st_matcher_close(s->matcher);
    (void)sqlite3_finalize(s->put);
    (void)sqlite3_finalize(s->get_smiles);
    ch_worker_close(s->chem);
    pl_arena_free(s->scratch);
    free(s->print);
    free(s->near);
    return code;
}
