/* SPDX-License-Identifier: Apache-2.0 */
/* The user's columns and the descriptors among the inputs of a model, in its file. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "models/files/model_file_parts.h"
#include "pipeline/base/text.h"

/* ---- reading --------------------------------------------------------------- */

static bool is_finite(const json_t *number) { return json_is_number(number) && isfinite(json_number_value(number)); }

static pl_code column_take(nn_input_column *c, const json_t *j, int32_t at, pl_arena *mem, pl_error *err)
{
    const char *name = json_string_value(json_object_get(j, "name")), *unit = json_string_value(json_object_get(j, "unit"));
    const json_t *mean = json_object_get(j, "mean"), *stdev = json_object_get(j, "std"), *low = json_object_get(j, "low"),
                 *high = json_object_get(j, "high");

    if (name == NULL || name[0] == '\0' || unit == NULL || !nn_model_name_fits(name) || !nn_model_name_fits(unit))
        return pl_fail(err, PL_EDATA, "metadata inputs.columns: name and unit of column %d are not texts", (int)at + 1);
    if (!is_finite(mean) || !is_finite(stdev) || !is_finite(low) || !is_finite(high) || !(json_number_value(stdev) > 0) ||
        !(json_number_value(low) <= json_number_value(high)))
        return pl_fail(err, PL_EDATA, "metadata inputs.columns: mean, std, low and high of %.50s are not those of a column", name);
    *c = (nn_input_column){ .name = pl_strdup(mem, name),
                            .unit = pl_strdup(mem, unit),
                            .over = { json_number_value(mean), json_number_value(stdev) },
                            .low = json_number_value(low),
                            .high = json_number_value(high),
                            .at = at };
    return c->name != NULL && c->unit != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "metadata of a model");
}

static pl_code columns_take(nn_inputs *in, const json_t *list, pl_arena *mem, pl_error *err)
{
    const size_t n = json_array_size(list);
    pl_code code = PL_OK;

    if (!json_is_array(list) || n < 1 || n > NN_COLUMNS_MAX)
        return pl_fail(err, PL_EDATA, "metadata inputs.columns is not a list of 1 to %d columns", NN_COLUMNS_MAX);
    for (size_t k = 0; k < n && code == PL_OK; k++) {
        code = column_take(&in->column[k], json_array_get(list, k), (int32_t)k, mem, err);
        for (size_t j = 0; j < k && code == PL_OK; j++)
            if (strcmp(in->column[j].name, in->column[k].name) == 0)
                code = pl_fail(err, PL_EDATA, "metadata inputs.columns: two are called %.50s", in->column[k].name);
    }
    in->n_columns = (int32_t)n;
    return code;
}

static pl_code descriptors_take(nn_inputs *in, const json_t *j, pl_arena *mem, pl_error *err)
{
    const json_t *mean = json_object_get(j, "mean"), *stdev = json_object_get(j, "std");
    nn_moments *all = PL_NEW(mem, nn_moments, CH_N_FEATURES);

    if (json_integer_value(json_object_get(j, "version")) != CH_FEATURES_VERSION)
        return pl_fail(err, PL_EDATA,
                       "the model was trained with descriptors of version %lld, this program computes those of version %d",
                       (long long)json_integer_value(json_object_get(j, "version")), (int)CH_FEATURES_VERSION);
    if (json_array_size(mean) != CH_N_FEATURES || json_array_size(stdev) != CH_N_FEATURES)
        return pl_fail(err, PL_EDATA, "metadata inputs.descriptors is not a list of %d means and deviations", (int)CH_N_FEATURES);
    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "metadata of a model");
    for (size_t k = 0; k < CH_N_FEATURES; k++) {
        const json_t *m = json_array_get(mean, k), *s = json_array_get(stdev, k);
        if (!is_finite(m) || !is_finite(s) || json_number_value(s) < 0)
            return pl_fail(err, PL_EDATA, "metadata inputs.descriptors: number %zu is not a mean and a deviation", k);
        all[k] = (nn_moments){ json_number_value(m), json_number_value(s) };
    }
    in->descriptors = true;
    in->descriptor = all;
    return PL_OK;
}

pl_code nn_extras_take(nn_inputs *in, const json_t *inputs, pl_arena *mem, pl_error *err)
{
    const json_t *columns = json_object_get(inputs, "columns"), *descriptors = json_object_get(inputs, "descriptors");
    pl_code code = columns != NULL ? columns_take(in, columns, mem, err) : PL_OK;

    return code == PL_OK && descriptors != NULL ? descriptors_take(in, descriptors, mem, err) : code;
}

/* ---- writing --------------------------------------------------------------- */

static json_t *columns_json(const nn_inputs *in)
{
    json_t *list = json_array();

    for (int32_t k = 0; k < in->n_columns; k++) {
        const nn_input_column *c = &in->column[k];
        json_array_append_new(list, json_pack("{s:s, s:s, s:f, s:f, s:f, s:f}", "name", c->name, "unit", c->unit, "mean",
                                              c->over.mean, "std", c->over.stdev, "low", c->low, "high", c->high));
    }
    return list;
}

static json_t *descriptors_json(const nn_inputs *in)
{
    json_t *mean = json_array(), *stdev = json_array();

    for (int k = 0; k < CH_N_FEATURES; k++) {
        json_array_append_new(mean, json_real(in->descriptor[k].mean));
        json_array_append_new(stdev, json_real(in->descriptor[k].stdev));
    }
    return json_pack("{s:i, s:o, s:o}", "version", (int)CH_FEATURES_VERSION, "mean", mean, "std", stdev);
}

void nn_extras_put(json_t *inputs, const nn_inputs *in)
{
    if (in->n_columns > 0)
        json_object_set_new(inputs, "columns", columns_json(in));
    if (in->descriptors)
        json_object_set_new(inputs, "descriptors", descriptors_json(in));
}
