/* SPDX-License-Identifier: Apache-2.0 */
/* A diverse ranking: similar candidates are left out. */
#include "stages/steps/rank/rank_parts.h"

#include <stdlib.h>
#include <string.h>

#include "chem/fingerprint/fingerprint.h"
#include "chem/fingerprint/scaffold.h"
#include "pipeline/base/rng.h"
#include "pipeline/run/progress.h"
#include "stages/steps/ingest/conformers.h"

enum { BATCH_MIN = 256, BATCH_MAX = 1 << 20, CHUNK_MIN = 64, CHUNK_MAX = 4096 };

/* The data that a candidate is compared by: scaffold or fingerprint. */
typedef struct feature {
    uint64_t scaffold;
    ch_fingerprint print;
} feature;

/* Where the structure of a candidate lies. */
typedef struct place {
    int64_t unit, mol_id;
    int32_t at; /* in the chunk */
} place;

typedef struct slot { /* of one scaffold; n 0: free */
    uint64_t scaffold;
    int64_t first, n; /* first hit, hits */
} slot;

typedef struct diverse {
    st_ranking *s;
    st_conformers structures;
    pl_arena *mem; /* of one molecule */
    sqlite3_stmt *unit;
    place *place;          /* [CHUNK_MAX] */
    feature *feature;      /* [CHUNK_MAX] */
    ch_fingerprint *print; /* [cap] of the hits, by similarity */
    ch_folds *folds;       /* of them                          */
    slot *slot;            /* [n_slots] by scaffold: a power of two, at most half of them taken */
    int64_t cap, n_slots, n_taken;
} diverse;

/* ---- structures ---- */

/* Asks if *code is PL_OK, and stores what came of it there. */
static place find_place(diverse *d, int64_t mol_id, int32_t at, pl_code *code, pl_error *err)
{
    place p = { .mol_id = mol_id, .at = at };

    (void)sqlite3_bind_int64(d->unit, 1, mol_id);
    p.unit = pl_db_next(d->unit, code, err) ? sqlite3_column_int64(d->unit, 0) : -1;
    (void)sqlite3_reset(d->unit);
    return p;
}

static int compare_places(const void *a, const void *b)
{
    const place *x = a, *y = b;

    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    return (x->mol_id > y->mol_id) - (x->mol_id < y->mol_id);
}

static pl_code make_feature(diverse *d, const place *p, pl_error *err)
{
    feature *f = &d->feature[p->at];
    const ch_mol *mol = NULL;
    pl_code code = st_conformer_find(&d->structures, p->unit, p->mol_id, &mol, err);

    if (code != PL_OK)
        return code;
    if (mol == NULL)
        return pl_fail(err, PL_EDATA, "%s lacks the structure of molecule %lld, of unit %lld: run with --from prepare",
                       d->s->env->store->features_path, (long long)p->mol_id, (long long)p->unit);
    pl_arena_reset(d->mem);
    if (d->s->conf->diverse_by == ST_DIVERSE_SCAFFOLD)
        return ch_scaffold(&f->scaffold, mol, false, d->mem, err);
    return ch_fingerprint_of(&f->print, mol, d->mem, err);
}

/* Unit after unit, so that each is unpacked once. */
static pl_code make_features(diverse *d, const st_candidate *c, int32_t n, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t i = 0; i < n; i++)
        d->place[i] = find_place(d, c[i].mol_id, i, &code, err);
    qsort(d->place, (size_t)n, sizeof *d->place, compare_places);
    for (int32_t i = 0; i < n && code == PL_OK; i++)
        code = *d->s->env->stop ? pl_fail(err, PL_ESTOP, "stopped while ranking") : make_feature(d, &d->place[i], err);
    return code;
}

/* ---- hits of one scaffold ---- */

static slot *find_slot(const diverse *d, uint64_t scaffold)
{
    uint64_t i = pl_splitmix64(scaffold) & (uint64_t)(d->n_slots - 1);

    while (d->slot[i].n > 0 && d->slot[i].scaffold != scaffold)
        i = (i + 1) & (uint64_t)(d->n_slots - 1);
    return &d->slot[i];
}

static pl_code more_slots(diverse *d, pl_error *err)
{
    const diverse old = *d;

    d->n_slots = old.n_slots ? 2 * old.n_slots : 1024;
    d->slot = calloc((size_t)d->n_slots, sizeof *d->slot);
    if (d->slot == NULL) {
        *d = old;
        return pl_fail(err, PL_ENOMEM, "the scaffolds of the hits");
    }
    for (int64_t i = 0; i < old.n_slots; i++)
        if (old.slot[i].n > 0)
            *find_slot(d, old.slot[i].scaffold) = old.slot[i];
    free(old.slot);
    return PL_OK;
}

/* *first: the first hit of the cluster that the candidate belongs to, -1: it begins one. *passed: the cluster is full, it is left out. */
static pl_code place_by_scaffold(diverse *d, const feature *f, int64_t *first, bool *passed, pl_error *err)
{
    slot *s;
    pl_code code = 2 * (d->n_taken + 1) > d->n_slots ? more_slots(d, err) : PL_OK;

    *first = -1;
    *passed = false;
    if (code != PL_OK || f->scaffold == 0) /* without rings: none, so none is shared */
        return code;
    s = find_slot(d, f->scaffold);
    d->n_taken += s->n == 0;
    *passed = s->n == d->s->conf->at_most;
    if (s->n > 0)
        *first = s->first;
    else
        *s = (slot){ f->scaffold, d->s->n_hits, 0 };
    s->n += !*passed;
    return PL_OK;
}

/* The most similar hit, if its similarity is above the threshold. */
static void place_by_similarity(const diverse *d, const feature *f, int64_t *first, bool *passed)
{
    ch_sought s;

    ch_sought_open(&s, &f->print);
    ch_sought_in(&s, &(ch_among){ d->print, d->folds, NULL }, 0, (int32_t)d->s->n_hits);
    *passed = s.at >= 0 && ch_sought_alike(&s) > d->s->conf->threshold;
    *first = *passed ? s.at : -1;
}

/* ---- the walk, best first ---- */

static pl_code more_hits(diverse *d, pl_error *err)
{
    const size_t cap = d->cap ? 2 * (size_t)d->cap : 256;
    const bool compared = d->s->conf->diverse_by == ST_DIVERSE_SIMILARITY;
    st_candidate *hit = realloc(d->s->hit, cap * sizeof *hit);
    st_cluster *cluster = realloc(d->s->cluster, cap * sizeof *cluster);
    ch_fingerprint *print = compared ? realloc(d->print, cap * sizeof *print) : NULL;
    ch_folds *folds = compared ? realloc(d->folds, cap / CH_FOLD * sizeof *folds) : NULL;

    d->s->hit = hit != NULL ? hit : d->s->hit;
    d->s->cluster = cluster != NULL ? cluster : d->s->cluster;
    d->print = print != NULL ? print : d->print;
    d->folds = folds != NULL ? folds : d->folds;
    if (hit == NULL || cluster == NULL || (compared && (print == NULL || folds == NULL)))
        return pl_fail(err, PL_ENOMEM, "no memory for a ranking of %zu molecules", cap);
    d->cap = (int64_t)cap;
    return PL_OK;
}

static pl_code take(diverse *d, const st_candidate *c, const feature *f, int64_t first, pl_error *err)
{
    st_ranking *s = d->s;
    pl_code code = s->n_hits == d->cap ? more_hits(d, err) : PL_OK;

    if (code != PL_OK)
        return code;
    s->hit[s->n_hits] = *c;
    s->cluster[s->n_hits] = (st_cluster){ .first = (first >= 0 ? first : s->n_hits) + 1 };
    if (d->print != NULL) {
        d->print[s->n_hits] = f->print;
        ch_folds_put(d->folds, (int32_t)s->n_hits, &f->print);
    }
    s->n_hits++;
    return PL_OK;
}

/* A hit, or one more of a cluster that is full. */
static pl_code place_one(diverse *d, const st_candidate *c, const feature *f, pl_error *err)
{
    int64_t first;
    bool passed;
    pl_code code = PL_OK;

    if (d->s->conf->diverse_by == ST_DIVERSE_SCAFFOLD)
        code = place_by_scaffold(d, f, &first, &passed, err);
    else
        place_by_similarity(d, f, &first, &passed);
    if (code != PL_OK)
        return code;
    if (!passed)
        return take(d, c, f, first, err);
    d->s->cluster[first].n_similar++;
    d->s->n_passed++;
    return PL_OK;
}

static pl_code walk(diverse *d, const st_candidate *c, int32_t n, pl_error *err)
{
    pl_code code = make_features(d, c, n, err);

    for (int32_t i = 0; code == PL_OK && i < n && d->s->n_hits < d->s->conf->top; i++)
        code = *d->s->env->stop ? pl_fail(err, PL_ESTOP, "stopped while ranking") : place_one(d, &c[i], &d->feature[i], err);
    return code;
}

/* Asks for a little more than is missing, so that most structures are never read. */
static pl_code walk_batch(diverse *d, pl_error *err)
{
    st_ranking *s = d->s;
    pl_code code = PL_OK;

    for (int64_t at = 0, n; at < s->n_best && s->n_hits < s->conf->top && code == PL_OK; at += n) {
        n = 2 * (s->conf->top - s->n_hits);
        n = n < CHUNK_MIN ? CHUNK_MIN : n;
        n = n < CHUNK_MAX ? n : CHUNK_MAX;
        n = n < s->n_best - at ? n : s->n_best - at;
        code = walk(d, s->best + at, (int32_t)n, err);
    }
    return code;
}

/* All hits of a cluster get the number of all that were left out for it. */
static void share_counts(st_ranking *s)
{
    for (int64_t i = 0; i < s->n_hits; i++)
        s->cluster[i].n_similar = s->cluster[s->cluster[i].first - 1].n_similar;
}

static pl_code open_diverse(diverse *d, pl_error *err)
{
    const pl_step *prepare = pl_workflow_step(d->s->env->wf, "prepare");
    pl_code code;

    d->mem = pl_arena_new(1 << 16);
    d->place = calloc(CHUNK_MAX, sizeof *d->place);
    d->feature = calloc(CHUNK_MAX, sizeof *d->feature);
    if (d->mem == NULL || d->place == NULL || d->feature == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a diverse ranking");
    code = prepare != NULL ? st_conformers_open(&d->structures, d->s->env->store, prepare->key, err)
                           : pl_fail(err, PL_EBUG, "no stage prepare");
    return code == PL_OK ? pl_db_prepare(d->s->env->store->db, &d->unit, "SELECT unit FROM molecule WHERE mol_id=?", err) : code;
}

pl_code st_rank_diverse(st_ranking *s, pl_error *err)
{
    diverse d = { .s = s };
    int64_t max = s->conf->top < BATCH_MAX / 4 ? 4 * s->conf->top : BATCH_MAX;
    bool more = true;
    pl_code code = open_diverse(&d, err);

    max = max < BATCH_MIN ? BATCH_MIN : max;
    while (code == PL_OK && more) {
        code = st_rank_next(s, max, err);
        more = s->n_best == max;
        if (code == PL_OK)
            code = walk_batch(&d, err);
        more = more && s->n_hits < s->conf->top;
        max = 2 * max < BATCH_MAX ? 2 * max : BATCH_MAX;
    }
    if (code == PL_OK)
        share_counts(s);
    st_conformers_close(&d.structures);
    (void)sqlite3_finalize(d.unit);
    pl_arena_free(d.mem);
    free(d.place);
    free(d.feature);
    free(d.print);
    free(d.folds);
    free(d.slot);
    return code;
}
