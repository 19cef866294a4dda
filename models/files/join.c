/* SPDX-License-Identifier: Apache-2.0 */
#include "models/files/join.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/files/model_file_parts.h"

/* ---- what must be the same ----------------------------------------------- */

/* How many networks there are, and how they are stored, may differ. */
static json_t *settings_of(const nn_model_file *m, pl_arena *mem)
{
    const char *text = nn_model_metadata(m, mem);
    json_t *all = text != NULL ? json_loads(text, 0, NULL) : NULL;

    (void)json_object_del(json_object_get(all, "model"), "networks");
    (void)json_object_del(json_object_get(all, "model"), "sparsity");
    return all;
}

/* The first section of the metadata in which two models differ; NULL: none. */
static const char *section_differs(const json_t *x, const json_t *y)
{
    static const char *const section[] = { "model", "inputs", "graph", nn_range_section };

    for (size_t k = 0; k < sizeof section / sizeof *section; k++) {
        json_t *one = json_object_get(x, section[k]), *other = json_object_get(y, section[k]);
        if (one != other && !json_equal(one, other))
            return section[k];
    }
    return NULL;
}

/* What the trainings told of `prepare`: settings, structures of a molecule, the form of acids and bases. What is not told is the default, or
 * the file is older. */
static bool same_prepared(const json_t *x, const json_t *y)
{
    static const char *const keys[] = { "prepare", "conformers", "molecules" };
    const json_t *one = json_object_get(x, "provenance"), *other = json_object_get(y, "provenance");
    bool same = true;

    for (size_t k = 0; k < sizeof keys / sizeof *keys && same; k++) {
        const json_t *a = json_object_get(one, keys[k]), *b = json_object_get(other, keys[k]);
        same = a == b || json_equal(a, b);
    }
    return same;
}

static bool same_scales(const nn_model_file *a, const nn_model_file *b)
{
    bool same = true;

    for (int32_t k = 0; k < a->conf.outputs && same; k++) {
        const nn_scale *x = &a->target[k].scale, *y = &b->target[k].scale;
        same = x->mean == y->mean && x->stdev == y->stdev && x->constant == y->constant;
        for (int32_t e = 0; e < a->inputs.n_elements && same; e++)
            same = x->offset[e] == y->offset[e];
    }
    return same;
}

static bool same_targets(const nn_model_file *a, const nn_model_file *b)
{
    bool same = a->conf.outputs == b->conf.outputs && a->classifies == b->classifies;

    for (int32_t k = 0; k < a->conf.outputs && same; k++)
        same = strcmp(a->target[k].name, b->target[k].name) == 0 && strcmp(a->target[k].unit, b->target[k].unit) == 0 &&
               strcmp(a->target[k].better, b->target[k].better) == 0;
    return same;
}

/* Target k of the metadata. Borrowed. */
static const json_t *target_of(const json_t *x, int32_t k)
{
    const json_t *target = json_object_get(x, "target"), *list = json_object_get(target, "targets");

    return list != NULL ? json_array_get(list, (size_t)k) : target;
}

/* What targets with gaps have of their own. */
static bool same_domains(const json_t *x, const json_t *y, int32_t n)
{
    static const char *const key[] = { nn_range_section, "columns" };
    bool same = true;

    for (int32_t k = 0; k < n && same; k++)
        for (size_t i = 0; i < sizeof key / sizeof *key && same; i++) {
            json_t *one = json_object_get(target_of(x, k), key[i]), *other = json_object_get(target_of(y, k), key[i]);
            same = one == other || json_equal(one, other);
        }
    return same;
}

/* The same training molecules, and of each target. */
static bool same_molecules(const nn_model_file *a, const nn_model_file *b)
{
    bool same = nn_domain_same(&a->domain, &b->domain);

    for (int32_t k = 0; k < a->conf.outputs && same; k++)
        same = nn_domain_same_of(&a->domain, k, &b->domain, k);
    return same;
}

/* What differs first; NULL: nothing. x and y: of settings_of. */
static const char *difference(const nn_model_file *a, const nn_model_file *b, const json_t *x, const json_t *y)
{
    const char *section = section_differs(x, y);

    if (!same_targets(a, b))
        return "targets";
    if (section != NULL)
        return strcmp(section, "model") == 0 ? "settings of the network" : section;
    if (!same_scales(a, b))
        return "scales";
    if (!same_domains(x, y, a->conf.outputs))
        return "ranges of the targets";
    if (!same_prepared(x, y))
        return "settings of prepare";
    return same_molecules(a, b) ? NULL : "training molecules";
}

static pl_code alike_check(const nn_model_file *first, const nn_model_file *m, pl_arena *mem, pl_error *err)
{
    json_t *x = settings_of(first, mem), *y = settings_of(m, mem);
    const bool known = x != NULL && y != NULL;
    const char *what = known ? difference(first, m, x, y) : NULL;

    json_decref(x);
    json_decref(y);
    if (!known)
        return pl_fail(err, PL_ENOMEM, "models");
    return what == NULL ? PL_OK
                        : pl_fail(err, PL_ECONFIG,
                                  "its %s differ from those of model %s; give both to `score` or `predict`, which take the mean",
                                  what, first->name);
}

static pl_code kind_check(const nn_model_file *m, pl_error *err)
{
    if (m->model == NULL)
        return pl_fail(err, PL_ECONFIG, "it has no network");
    if (m->members.n > 0)
        return pl_fail(err, PL_ECONFIG, "it has members besides its network; only networks can be joined");
    return m->denoises ? pl_fail(err, PL_ECONFIG, "it learned noise alone and predicts nothing") : PL_OK;
}

static pl_code all_check(nn_model_file *const *m, int32_t n, pl_arena *mem, pl_error *err)
{
    int32_t networks = 0;
    pl_code code = PL_OK;

    for (int32_t k = 0; k < n && code == PL_OK; k++) {
        networks += nn_model_networks(m[k]);
        code = kind_check(m[k], err);
        if (code == PL_OK && k > 0)
            code = alike_check(m[0], m[k], mem, err);
        for (int32_t j = 0; j < k && code == PL_OK; j++)
            if (strcmp(m[j]->sha256, m[k]->sha256) == 0)
                code = pl_fail(err, PL_ECONFIG, "it is the same file as that of model %s", m[j]->name);
        if (code != PL_OK)
            pl_at(err, "model %s", m[k]->name);
    }
    if (code == PL_OK && networks > NN_NETWORKS_MAX)
        code = pl_fail(err, PL_ECONFIG, "they have %d networks; at most %d can be joined", (int)networks, (int)NN_NETWORKS_MAX);
    return code;
}

/* ---- what is joined ------------------------------------------------------ */

static const char *part_of(const nn_conformal *i) { return i->part != NULL ? i->part : ""; }

static bool same_bands(const nn_conformal *a, const nn_conformal *b)
{
    bool same = a->n == b->n && strcmp(part_of(a), part_of(b)) == 0;

    for (int32_t k = 0; k < a->n && same; k++)
        same = a->band[k].from == b->band[k].from && a->band[k].n == b->band[k].n;
    return same;
}

static void target_join(nn_target *to, const nn_target *t)
{
    if (!same_bands(&to->interval, &t->interval))
        to->interval.n = 0;
    for (int32_t k = 0; k < to->interval.n; k++)
        to->interval.band[k].within = fmax(to->interval.band[k].within, t->interval.band[k].within);
    to->lowest = fmax(to->lowest, t->lowest);
}

static pl_code seen_join(nn_seen *out, nn_model_file *const *m, int32_t n, pl_arena *mem, pl_error *err)
{
    char(*key)[NN_SEEN_KEY + 1];
    int64_t n_keys = 0, at = 0;
    bool known = true, all = true;

    for (int32_t k = 0; k < n; k++) {
        n_keys += m[k]->seen.n;
        known = known && m[k]->seen.known;
        all = all && m[k]->seen.all;
    }
    *out = (nn_seen){ 0 };
    if (!known)
        return PL_OK;
    key = pl_arena_get(mem, (size_t)n_keys, sizeof *key);
    if (key == NULL)
        return pl_fail(err, PL_ENOMEM, "models");
    for (int32_t k = 0; k < n; at += m[k++]->seen.n)
        if (m[k]->seen.n > 0)
            memcpy(key[at], m[k]->seen.key, (size_t)m[k]->seen.n * sizeof *key);
    return nn_seen_make(out, key, n_keys, NN_SEEN_MAX, all, mem, err);
}

/* Leaves in `a` what b says alike. */
static void keep_common(json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    void *next;

    json_object_foreach_safe(a, next, key, value)
    {
        const json_t *other = json_object_get(b, key);
        if (json_is_object(value) && json_is_object(other))
            keep_common(value, other);
        else if (!json_equal(value, other))
            (void)json_object_del(a, key);
    }
}

/* Errors are those of single networks, and a calibration was that of one. */
static pl_code provenance_join(const char **out, nn_model_file *const *m, int32_t n, pl_arena *mem, pl_error *err)
{
    json_t *all = json_loads(m[0]->provenance, 0, NULL), *list = json_array();
    char *text;

    for (int32_t k = 0; k < n; k++) {
        json_t *one = json_loads(m[k]->provenance, 0, NULL);
        keep_common(all, one);
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", m[k]->name, "sha256", m[k]->sha256, "provenance",
                                                    one != NULL ? one : json_object()));
    }
    (void)json_object_del(all, "errors");
    (void)json_object_del(all, "calibration");
    (void)json_object_del(all, "joined");
    (void)json_object_set_new(all, "joined", list);
    text = json_dumps(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
    *out = text != NULL ? pl_strdup(mem, text) : NULL;
    free(text);
    json_decref(all);
    return *out != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "models");
}

static pl_code params_join(nn_model_file *out, nn_model_file *const *m, int32_t n, pl_arena *mem, pl_error *err)
{
    const size_t size = m[0]->model->n_floats;
    float *to;

    out->networks = 0;
    for (int32_t k = 0; k < n; k++)
        out->networks += nn_model_networks(m[k]);
    to = out->params = PL_NEW(mem, float, (size_t)out->networks *size);
    if (to == NULL)
        return pl_fail(err, PL_ENOMEM, "models");
    for (int32_t k = 0; k < n; k++) {
        const size_t count = (size_t)nn_model_networks(m[k]) * size;
        memcpy(to, m[k]->params, count * sizeof *to);
        to += count;
        out->bf16 = out->bf16 && m[k]->bf16;
        out->sparse = out->sparse && m[k]->sparse;
    }
    return PL_OK;
}

pl_code nn_model_join(nn_model_file *out, nn_model_file *const *m, int32_t n, pl_arena *mem, pl_error *err)
{
    const int32_t outputs = m[0]->conf.outputs;
    pl_code code = all_check(m, n, mem, err);

    *out = *m[0];
    out->target = code == PL_OK ? PL_NEW(mem, nn_target, outputs) : NULL;
    if (code == PL_OK && out->target == NULL)
        code = pl_fail(err, PL_ENOMEM, "models");
    if (code != PL_OK)
        return code;
    memcpy(out->target, m[0]->target, (size_t)outputs * sizeof *out->target);
    for (int32_t k = 1; k < n; k++)
        for (int32_t t = 0; t < outputs; t++)
            target_join(&out->target[t], &m[k]->target[t]);
    out->sha256[0] = '\0';
    out->verified = false;
    code = params_join(out, m, n, mem, err);
    if (code == PL_OK)
        code = seen_join(&out->seen, m, n, mem, err);
    return code == PL_OK ? provenance_join(&out->provenance, m, n, mem, err) : code;
}
