/* SPDX-License-Identifier: Apache-2.0 */
/* Which molecules the targets of a model were measured for: what a target has of its own, in the file and in use. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/files/model_file_parts.h"
#include "pipeline/base/text.h"

static const char COLUMNS[] = "columns";

/* ---- reading --------------------------------------------------------------- */

static pl_code range_take(nn_target *t, const json_t *j, pl_arena *mem, pl_error *err)
{
    char *text = json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY);
    pl_code code;

    t->range = PL_NEW(mem, nn_range, 1);
    code = text != NULL && t->range != NULL ? nn_range_take(t->range, text, err) : pl_fail(err, PL_ENOMEM, "metadata of a model");
    free(text);
    return code;
}

static pl_code columns_take(nn_target *t, const json_t *list, int32_t n, pl_arena *mem, pl_error *err)
{
    t->columns = PL_NEW(mem, nn_limits, n + 1);
    if (t->columns == NULL)
        return pl_fail(err, PL_ENOMEM, "metadata of a model");
    if (!json_is_array(list) || json_array_size(list) != (size_t)n)
        return pl_fail(err, PL_EDATA, "metadata target.columns is not a list of %d pairs of numbers", (int)n);
    for (int32_t k = 0; k < n; k++) {
        const json_t *pair = json_array_get(list, (size_t)k);
        const double low = json_number_value(json_array_get(pair, 0)), high = json_number_value(json_array_get(pair, 1));
        if (json_array_size(pair) != 2 || !json_is_number(json_array_get(pair, 0)) || !json_is_number(json_array_get(pair, 1)) ||
            !(low <= high))
            return pl_fail(err, PL_EDATA, "metadata target.columns: number %d is not the lowest and the highest value", (int)k + 1);
        t->columns[k] = (nn_limits){ low, high };
    }
    return PL_OK;
}

pl_code nn_own_domain_take(nn_target *t, const json_t *target, const nn_inputs *in, pl_arena *mem, pl_error *err)
{
    const json_t *range = json_object_get(target, nn_range_section), *columns = json_object_get(target, COLUMNS);
    pl_code code = range != NULL ? range_take(t, range, mem, err) : PL_OK;

    return code == PL_OK && columns != NULL ? columns_take(t, columns, in->n_columns, mem, err) : code;
}

/* ---- writing --------------------------------------------------------------- */

static json_t *columns_json(const nn_target *t, int32_t n)
{
    json_t *list = json_array();

    for (int32_t k = 0; k < n; k++)
        (void)json_array_append_new(list, json_pack("[f, f]", t->columns[k].low, t->columns[k].high));
    return list;
}

bool nn_own_domain_put(json_t *target, const nn_target *t, const nn_inputs *in, pl_arena *mem)
{
    const char *range = t->range != NULL ? nn_range_text(t->range, mem) : NULL;
    bool done =
        t->range == NULL || (range != NULL && json_object_set_new(target, nn_range_section, json_loads(range, 0, NULL)) == 0);

    if (t->columns != NULL)
        done = json_object_set_new(target, COLUMNS, columns_json(t, in->n_columns)) == 0 && done;
    return done;
}

/* ---- in use ---------------------------------------------------------------- */

void nn_model_ignore_sources(nn_model_file *m)
{
    nn_range_ignore_sources(&m->range);
    for (int32_t k = 0; m->target != NULL && k < m->conf.outputs; k++)
        if (m->target[k].range != NULL)
            nn_range_ignore_sources(m->target[k].range);
}

void nn_model_reasons(pl_text *out, const nn_model_file *m, int32_t target, const nn_case *c, const float *column)
{
    const nn_target *t = &m->target[target];

    nn_range_reasons(out, t->range != NULL ? t->range : &m->range, t->lowest, c);
    for (int32_t k = 0; k < m->inputs.n_columns && column != NULL; k++) {
        const nn_input_column *in = &m->inputs.column[k];
        const nn_limits of = t->columns != NULL ? t->columns[k] : (nn_limits){ in->low, in->high };
        const double value = (double)column[in->at];
        char number[32], limit[32];
        if (value >= of.low && value <= of.high)
            continue;
        nn_reason_add(out, "column %.200s %s %s %s", in->name, pl_float_str((float)value, number), value > of.high ? ">" : "<",
                      pl_float_str((float)(value > of.high ? of.high : of.low), limit));
    }
}

/* ---- files of earlier versions --------------------------------------------- */

/* For how many molecules of a part each target was measured: equal numbers, as far as the file tells them. errors: {target: {part: {"n"}}}. */
static bool same_counts(const json_t *errors, const nn_model_file *m, const char *part)
{
    const json_t *first = json_object_get(json_object_get(json_object_get(errors, m->target[0].name), part), "n");
    bool same = true;

    for (int32_t k = 1; k < m->conf.outputs && same; k++) {
        const json_t *n = json_object_get(json_object_get(json_object_get(errors, m->target[k].name), part), "n");
        same = json_integer_value(n) == json_integer_value(first);
    }
    return same;
}

/* calibrated: {target: molecules}. */
static bool same_calibration(const json_t *calibrated, const nn_model_file *m)
{
    bool same = true;

    for (int32_t k = 1; k < m->conf.outputs && same; k++)
        same = json_integer_value(json_object_get(calibrated, m->target[k].name)) ==
               json_integer_value(json_object_get(calibrated, m->target[0].name));
    return same;
}

/* Of several networks in one file, what the first of them tells. */
static const json_t *first_of(const json_t *provenance)
{
    const json_t *joined = json_array_get(json_object_get(provenance, "joined"), 0);

    while (joined != NULL) {
        provenance = json_object_get(joined, "provenance");
        joined = json_array_get(json_object_get(provenance, "joined"), 0);
    }
    return provenance;
}

/* Whether the model met molecules that lack targets. */
static bool learned_gaps(const json_t *first, const nn_model_file *m)
{
    const json_t *errors = json_object_get(first, "errors");

    return !same_counts(errors, m, "valid") || !same_counts(errors, m, "calibration") || !same_counts(errors, m, "test");
}

/* Whether the molecules that made its range lack targets. */
static bool range_gaps(const json_t *first, const nn_model_file *m)
{
    const json_t *calibrated = json_object_get(json_object_get(first, "calibration"), "molecules");

    return calibrated != NULL ? !same_calibration(calibrated, m) : learned_gaps(first, m);
}

static bool told(const nn_model_file *m, bool (*gaps)(const json_t *, const nn_model_file *))
{
    json_t *provenance = m->provenance != NULL ? json_loads(m->provenance, 0, NULL) : NULL;
    const bool any = gaps(first_of(provenance), m);

    json_decref(provenance);
    return any;
}

bool nn_model_has_gaps(const nn_model_file *m)
{
    bool gaps = false;

    for (int32_t k = 0; k < m->conf.outputs && !gaps; k++)
        gaps = m->target[k].range != NULL;
    return gaps;
}

/* Whether training molecules lack a target of those that have a range of their own. */
static bool some_lack(const nn_model_file *m)
{
    bool lack = false;

    for (int32_t k = 0; k < m->conf.outputs && !lack; k++)
        lack = m->target[k].range != NULL && m->target[k].range->molecules < m->range.molecules;
    return lack;
}

static bool has_several(const nn_model_file *m) { return !m->denoises && m->conf.outputs > 1; }

bool nn_model_shares_range(const nn_model_file *m)
{
    return has_several(m) && m->range.molecules > 0 && !nn_model_has_gaps(m) && told(m, range_gaps);
}

bool nn_model_shares_similarity(const nn_model_file *m)
{
    return has_several(m) && m->domain.n > 0 && m->domain.value == NULL && (some_lack(m) || told(m, learned_gaps));
}
