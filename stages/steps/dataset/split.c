/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/dataset/split.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/rng.h"
#include "pipeline/run/progress.h"
#include "pipeline/workflow/workflow.h"
#include "stages/database/measured.h"
#include "stages/steps/dataset/split_parts.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/ingest/prepare.h"

#define AT(member) offsetof(split_conf, member)
static const pl_field fields[] = {
    { PL_CHOICE, "method", AT(method), .dflt = BY_RANDOM, .choices = "random|column|file|scaffold|time",
      .help =
          "random: by seed; column: by a numeric label (0 train, 1 valid, 2 test); file: by a file of lines `InChIKey-or-title part`; "
          "scaffold: whole Bemis-Murcko scaffolds, the large ones to train, the others at random; time: by a numeric label such as the "
          "year, the smallest values to train" },
    { PL_CHOICE, "variant", AT(variant), .choices = "random|deterministic|balanced", .flags = PL_LATER,
      .help =
          "scaffold: random: as said there, so that prediction intervals hold; deterministic: DeepChem's split, the largest scaffolds "
          "to train, the rarest to test; balanced: Chemprop's, by seed; both of these for comparison with published numbers" },
    { PL_REAL, "fractions.train", AT(fraction[ST_TRAIN]), .dflt = 0.8, .min = 0, .max = 1,
      .help = "random, scaffold, time: training share" },
    { PL_REAL, "fractions.valid", AT(fraction[ST_VALID]), .dflt = 0.1, .min = 0, .max = 1,
      .help = "random, scaffold, time: validation share, which chooses the best epoch" },
    { PL_REAL, "fractions.test", AT(fraction[ST_TEST]), .dflt = 0.1, .min = 0, .max = 1,
      .help = "random, scaffold, time: test share, on which no choice depends" },
    { PL_REAL, "fractions.calibration", AT(fraction[ST_CALIBRATION]), .min = 0, .max = 1,
      .help = "random, scaffold, time: calibration share, for prediction intervals" },
    { PL_INT, "limit.train", AT(limit[ST_TRAIN]), .min = 0, .max = 1e12, .unit = "molecules",
      .help = "maximum number, chosen by seed; 0: all" },
    { PL_INT, "limit.valid", AT(limit[ST_VALID]), .min = 0, .max = 1e12, .unit = "molecules",
      .help = "maximum number, chosen by seed; 0: all" },
    { PL_INT, "limit.test", AT(limit[ST_TEST]), .min = 0, .max = 1e12, .unit = "molecules",
      .help = "maximum number, chosen by seed; 0: all" },
    { PL_TEXT, "column", AT(column), .text = "split", .help = "column, time: name of the label" },
    { PL_PATH, "path", AT(path), .flags = PL_EXISTS, .help = "file: its name" },
    { PL_CHOICE, "leaks", AT(leaks), .dflt = LEAK_DROP, .choices = "drop|refuse|allow",
      .help =
          "training molecules whose InChIKey skeleton (first 14 letters) is also in a held-out part: drop them, refuse the split, or "
          "allow them" },
    { PL_INT, "repeat", AT(repeat), .min = 0, .max = 1e6, .flags = PL_LATER,
      .help = "added to the seed, for another split of the same kind; `molsieve repeat` counts it up" },
    { PL_INT, "folds", AT(folds), .min = 0, .max = FOLDS_MAX, .flags = PL_LATER,
      .help =
          "random, scaffold: cross-validation with this many parts, each of which is the test part once; the other fractions share the rest; "
          "0: none" },
    { PL_INT, "fold", AT(fold), .dflt = 1, .min = 1, .max = FOLDS_MAX, .flags = PL_LATER,
      .help = "the part that is the test part; `molsieve repeat --folds` counts it up" },
    { 0 },
};

static uint64_t hash_text(uint64_t seed, const char *text, size_t n)
{
    uint64_t h = pl_splitmix64(seed);

    for (size_t i = 0; i < n && text[i]; i++)
        h = pl_splitmix64(h ^ (unsigned char)text[i]);
    return h;
}

static bool has_shares(const split_conf *c) { return c->method == BY_RANDOM || c->method == BY_SCAFFOLD || c->method == BY_TIME; }

/* ---- before the run ------------------------------------------------------ */

static void folds_check(const split_conf *c, const pl_step *step, pl_problems *problems)
{
    if (c->folds == 0 && c->fold != 1)
        pl_problem_add(problems, step->node, "fold: %lld of no folds; set folds, too", (long long)c->fold);
    if (c->folds == 0)
        return;
    if (c->folds == 1 || c->fold > c->folds)
        pl_problem_add(problems, step->node, "fold %lld of %lld folds: folds are 2 or more, and fold is one of them",
                       (long long)c->fold, (long long)c->folds);
    if (c->method != BY_RANDOM && (c->method != BY_SCAFFOLD || c->variant != SCAFFOLD_RANDOM))
        pl_problem_add(problems, step->node, "folds: only for method random, and scaffold with variant random");
    if (c->limit[ST_TEST] > 0)
        pl_problem_add(problems, step->node, "limit.test: with folds each molecule is tested once; remove the limit");
}

static void check(const pl_workflow *wf, const pl_step *step, pl_problems *problems)
{
    const split_conf *c = step->conf;
    const bool shares = has_shares(c);
    double sum = 0;

    if (c->method == BY_COLUMN || c->method == BY_TIME)
        st_label_check(wf, step, c->column, problems);
    if (c->method == BY_TIME && strlen(c->column) >= PL_NAME_BYTES)
        pl_problem_add(problems, step->node, "column: the name of a time has at most %d bytes", PL_NAME_BYTES - 1);
    for (int p = 0; p < ST_SPLIT_PARTS; p++)
        sum += c->fraction[p];
    if (shares && !(fabs(sum - 1.0) <= 1e-6))
        pl_problem_add(problems, step->node, "fractions add up to %g, not to 1", sum);
    if (shares && !(c->fraction[ST_TRAIN] > 0))
        pl_problem_add(problems, step->node, "fractions.train is 0: nothing to train on");
    if (c->method == BY_SCAFFOLD && c->variant != SCAFFOLD_RANDOM && c->fraction[ST_CALIBRATION] > 0)
        pl_problem_add(problems, step->node, "fractions.calibration: only the variant random has such a part");
    folds_check(c, step, problems);
    if (c->method == BY_FILE && c->path == NULL)
        pl_problem_add(problems, step->node, "method: file needs `path`");
}

/* Of a molecule whose records are of several times prepare keeps the last. */
static void names(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out)
{
    const split_conf *c = step->conf;

    (void)wf;
    if (strcmp(what, ST_TIMES) == 0 && c->method == BY_TIME)
        pl_names_add(out, c->column);
}

static pl_code key(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **extra_json, pl_arena *mem,
                   pl_error *err)
{
    const split_conf *c = step->conf;
    char hash[65];
    pl_code code;

    (void)wf;
    if (c->method == BY_SCAFFOLD)
        *extra_json =
            "{\"large scaffolds\":\"little beyond train\",\"small scaffolds\":\"at random\"}"; /* before: to half of the rest */
    if (c->method == BY_COLUMN || c->method == BY_TIME)
        return st_measured_key(extra_json, store, &c->column, 1, mem, err);
    if (c->method != BY_FILE || c->path == NULL)
        return PL_OK;
    code = pl_file_hash(store, c->path, hash, err);
    if (code != PL_OK)
        return code;
    *extra_json = pl_sprintf(mem, "{\"file\":\"%s\"}", hash);
    return *extra_json ? PL_OK : pl_fail(err, PL_ENOMEM, "key of split");
}

/* Of folds the test part is one; the other parts share the rest. */
static void shares_fold(split_conf *c)
{
    const double test = 1 / (double)c->folds, rest = 1 - c->fraction[ST_TEST];

    for (int p = 0; p < ST_SPLIT_PARTS; p++)
        c->fraction[p] *= (1 - test) / rest;
    c->fraction[ST_TEST] = test;
}

double st_split_share(const pl_workflow *wf)
{
    const pl_step *step = pl_workflow_step(wf, "split");
    split_conf c;

    if (step == NULL || !has_shares(step->conf))
        return 1;
    c = *(const split_conf *)step->conf;
    if (c.folds > 0)
        shares_fold(&c);
    return c.fraction[ST_TRAIN];
}

/* ---- reading the molecules ----------------------------------------------- */

/* A molecule without an InChIKey (more atoms than InChI takes) is a group of its own, identified by its SMILES. */
static void member_fill(const split_state *s, member *m, const char *inchikey, const char *smiles)
{
    if (inchikey[0])
        snprintf(m->key, sizeof m->key, "%s", inchikey);
    else
        snprintf(m->key, sizeof m->key, "%016llx", (unsigned long long)hash_text(0, smiles, strlen(smiles)));
    m->order = hash_text(st_split_seed(s), m->key, SKELETON);
    m->own = hash_text(st_split_seed(s), m->key, sizeof m->key);
    m->part = NO_PART;
}

static pl_code members_read(split_state *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    int64_t total;
    pl_code code = pl_db_int(s->env->store->db, &total, err, "SELECT count(*) FROM molecule");

    if (code != PL_OK)
        return code;
    s->m = PL_NEW(s->env->mem, member, total + 1);
    if (s->m == NULL)
        return pl_fail(err, PL_ENOMEM, "a split of %lld molecules", (long long)total);
    code = pl_db_prepare(s->env->store->db, &st, "SELECT mol_id, inchikey, smiles FROM molecule ORDER BY mol_id", err);
    while (s->n < total && pl_db_next(st, &code, err)) {
        member *m = &s->m[s->n++];
        m->mol_id = sqlite3_column_int64(st, 0);
        member_fill(s, m, (const char *)sqlite3_column_text(st, 1), (const char *)sqlite3_column_text(st, 2));
    }
    sqlite3_finalize(st);
    return code;
}

static int compare_order(const void *a, const void *b)
{
    const member *x = a, *y = b;
    int by = (x->order > y->order) - (x->order < y->order);

    if (by == 0)
        by = strncmp(x->key, y->key, SKELETON);
    if (by == 0)
        by = (x->own > y->own) - (x->own < y->own);
    return by != 0 ? by : (x->mol_id > y->mol_id) - (x->mol_id < y->mol_id);
}

static bool same_group(const member *a, const member *b) { return a->order == b->order && !strncmp(a->key, b->key, SKELETON); }

/* A group goes to the part of its first member. */
static void split_random(split_state *s)
{
    double end[ST_SPLIT_PARTS], sum = 0;
    int part = 0;

    for (int p = 0; p < ST_SPLIT_PARTS; p++)
        end[p] = (sum += s->conf->fraction[p]) * (double)s->n;
    for (int64_t i = 0; i < s->n; i++) {
        if (!i || !same_group(&s->m[i], &s->m[i - 1]))
            while (part < ST_SPLIT_PARTS - 1 && (double)i >= end[part] - 1e-9)
                part++;
        s->m[i].part = part;
    }
}

/* A group is in the fold of its first member. The molecules after the test part, and then those before it, get the other parts. */
static void split_folds(split_state *s)
{
    static const int order[] = { ST_TRAIN, ST_VALID, ST_CALIBRATION };
    const double rest = 1 - s->conf->fraction[ST_TEST];
    int64_t n_test = 0, after = 0;
    double end = s->conf->fraction[ST_TRAIN] / rest;
    bool tests = false;
    int k = 0;

    for (int64_t i = 0; i < s->n; i++) {
        if (!i || !same_group(&s->m[i], &s->m[i - 1]))
            tests = i * s->conf->folds / s->n == s->conf->fold - 1;
        s->m[i].part = tests ? ST_TEST : NO_PART;
        n_test += tests;
        after = tests ? i + 1 : after;
    }
    for (int64_t j = 0; j < s->n - n_test; j++) {
        const int64_t i = (after + j) % s->n;
        if (!i || !same_group(&s->m[i], &s->m[i - 1]))
            while (k < 2 && (double)j >= end * (double)(s->n - n_test) - 1e-9)
                end += s->conf->fraction[order[++k]] / rest;
        s->m[i].part = order[k];
    }
}

/* ---- afterwards ---------------------------------------------------------- */

static bool group_held_out(const split_state *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i < to; i++)
        if (s->m[i].part > ST_TRAIN)
            return true;
    return false;
}

/* Sorted by group. Held-out parts among themselves leak nothing into training. */
static pl_code leaks_mend(split_state *s, int64_t *n_leaks, pl_error *err)
{
    *n_leaks = 0;
    for (int64_t i = 0, j; i < s->n; i = j) {
        for (j = i + 1; j < s->n && same_group(&s->m[j], &s->m[i]);)
            j++;
        if (!group_held_out(s, i, j))
            continue;
        for (int64_t k = i; k < j; k++) {
            if (s->m[k].part != ST_TRAIN)
                continue;
            ++*n_leaks;
            if (s->conf->leaks == LEAK_REFUSE)
                return pl_fail(err, PL_ECONFIG,
                               "skeleton %.14s is both in train and held out; leaks: drop leaves such "
                               "molecules out of train",
                               s->m[k].key);
            if (s->conf->leaks == LEAK_DROP)
                s->m[k].part = NO_PART;
        }
    }
    return PL_OK;
}

/* Sorted by hash, so what stays is a random sample. */
static void limits_apply(split_state *s, int64_t count[ST_SPLIT_PARTS])
{
    for (int p = 0; p < ST_SPLIT_PARTS; p++)
        count[p] = 0;
    for (int64_t i = 0; i < s->n; i++) {
        int p = s->m[i].part;
        if (p == NO_PART)
            continue;
        if (s->conf->limit[p] && count[p] >= s->conf->limit[p])
            s->m[i].part = NO_PART;
        else
            count[p]++;
    }
}

/* Whole groups rarely fit the shares. Differences of one molecule, or of 1/30, are not reported. */
static void shares_tell(const split_state *s)
{
    const split_conf *c = s->conf;
    int64_t count[ST_SPLIT_PARTS] = { 0 }, n = 0;
    pl_text asked = { 0 }, got = { 0 };
    double max = 0;

    for (int64_t i = 0; i < s->n; i++)
        if (s->m[i].part != NO_PART) {
            count[s->m[i].part]++;
            n++;
        }
    for (int p = 0; p < ST_SPLIT_PARTS && n > 0; p++) {
        max = fmax(max, fabs((double)count[p] - c->fraction[p] * (double)n));
        if (count[p] == 0 && !(c->fraction[p] > 0))
            continue;
        pl_text_addf(&asked, "%s%s %.3g %%", asked.len ? ", " : "", st_part_name[p], 100 * c->fraction[p]);
        pl_text_addf(&got, "%s%s %.3g %% (%lld)", got.len ? ", " : "", st_part_name[p], 100 * (double)count[p] / (double)n,
                     (long long)count[p]);
    }
    if (max > 1.5 && max > (double)n / 30)
        pl_event_add(s->env, PL_WARN, "asked for %s, but there are %s: %s", pl_text_str(&asked), pl_text_str(&got),
                     c->method == BY_TIME ? "molecules of one time stay together"
                                          : "molecules of one scaffold or skeleton stay together; a random split, or other "
                                            "fractions, may come nearer");
    pl_text_free(&asked);
    pl_text_free(&got);
}

static pl_code rows_write(split_state *s, pl_error *err)
{
    sqlite3_stmt *st = NULL;
    pl_code code = pl_db_begin(s->env->store->db, err);

    if (code == PL_OK)
        code = pl_db_exec(s->env->store->db, "DELETE FROM split", err);
    if (code == PL_OK)
        code = pl_db_prepare(s->env->store->db, &st, "INSERT INTO split(mol_id,part) VALUES(?,?)", err);
    for (int64_t i = 0; i < s->n && code == PL_OK; i++) {
        if (s->m[i].part == NO_PART)
            continue;
        (void)sqlite3_bind_int64(st, 1, s->m[i].mol_id);
        (void)sqlite3_bind_text(st, 2, st_part_name[s->m[i].part], -1, SQLITE_STATIC);
        code = pl_db_run(st, err);
    }
    sqlite3_finalize(st);
    return code;
}

static pl_code assign(split_state *s, pl_error *err)
{
    pl_code code = PL_OK;

    if (s->conf->method == BY_COLUMN)
        code = st_split_column(s, err);
    else if (s->conf->method == BY_FILE)
        code = st_split_file(s, err);
    else if (s->conf->method == BY_SCAFFOLD)
        code = st_split_scaffold(s, err);
    else if (s->conf->method == BY_TIME)
        code = st_split_time(s, err);
    qsort(s->m, (size_t)s->n, sizeof *s->m, compare_order);
    if (s->conf->method == BY_RANDOM && s->conf->folds > 0)
        split_folds(s);
    else if (s->conf->method == BY_RANDOM)
        split_random(s);
    return code;
}

static pl_code finish(void *state, pl_error *err)
{
    split_state *s = state;
    int64_t n_leaks = 0, count[ST_SPLIT_PARTS];
    char note[128];
    pl_code code = members_read(s, err);

    if (code == PL_OK)
        code = assign(s, err);
    if (code == PL_OK)
        code = leaks_mend(s, &n_leaks, err);
    if (code != PL_OK)
        return code;
    if (has_shares(s->conf))
        shares_tell(s);
    limits_apply(s, count);
    qsort(s->m, (size_t)s->n, sizeof *s->m, st_split_by_id);
    if (count[ST_TRAIN] == 0)
        return pl_fail(err, PL_ECONFIG, "no molecule to train on among %lld", (long long)s->n);
    if (s->conf->folds > 0 && count[ST_TEST] == 0)
        return pl_fail(err, PL_ECONFIG,
                       "fold %lld of %lld has no molecule: %lld molecules are in fewer groups that stay together; take fewer folds",
                       (long long)s->conf->fold, (long long)s->conf->folds, (long long)s->n);
    snprintf(note, sizeof note, "%lld train, %lld valid, %lld test", (long long)count[ST_TRAIN], (long long)count[ST_VALID],
             (long long)count[ST_TEST]);
    if (n_leaks)
        pl_event_add(s->env, s->conf->leaks == LEAK_ALLOW ? PL_WARN : PL_INFO,
                     "%lld training molecules share their skeleton with a held-out one%s", (long long)n_leaks,
                     s->conf->leaks == LEAK_ALLOW ? " and were kept" : " and were left out");
    pl_progress_set(s->env->progress, s->n, s->n, note);
    return rows_write(s, err);
}

static void folds_open(split_state *s)
{
    s->folded = *s->conf;
    shares_fold(&s->folded);
    s->conf = &s->folded;
}

static pl_code stage_open(void *state, pl_env *env, pl_error *err)
{
    split_state *s = state;

    (void)err;
    s->env = env;
    s->conf = env->step->conf;
    if (s->conf->folds > 0)
        folds_open(s);
    return PL_OK;
}

static void stage_close(void *state) { (void)state; /* everything lives in env->mem */ }

static bool reads_blocks(const pl_step *step)
{
    const split_conf *c = step->conf;

    return c->method == BY_SCAFFOLD;
}

static const char *const needs[] = { "prepare", NULL };
static const char *const reset_sql[] = { "DELETE FROM split", NULL };

const pl_stage st_split = {
    .name = "split",
    .help = "assign molecules to training, validation and test",
    .scope = PL_WHOLE,
    .version = 3,
    .fields = fields,
    .conf_size = sizeof(split_conf),
    .state_size = sizeof(split_state),
    .needs = needs,
    .reads_blocks = reads_blocks,
    .item = "molecules",
    .names = names,
    .check = check,
    .key = key,
    .open = stage_open,
    .finish = finish,
    .close = stage_close,
    .reset_sql = reset_sql,
    .uses_seed = true,
};
