/* SPDX-License-Identifier: Apache-2.0 */
/* What a model reads: elements, and besides atoms and bonds columns of the user's table and descriptors. */
#include <string.h>

#include "stages/steps/dataset/classes.h"
#include "stages/steps/ingest/columns.h"
#include "stages/steps/train/train.h"

/* ---- settings ------------------------------------------------------------ */

void st_train_names(const pl_workflow *wf, const pl_step *step, const char *what, pl_names *out)
{
    const st_train_conf *c = step->conf;
    const char *const *column = c->inputs.columns.items;

    (void)wf;
    for (int32_t k = 0; strcmp(what, ST_COLUMNS) == 0 && k < c->inputs.columns.n; k++)
        pl_names_add(out, column[k]);
}

static void column_check(const st_train_conf *c, int32_t k, const pl_node *at, pl_problems *problems)
{
    const char *const *column = c->inputs.columns.items;

    if (column[k][0] == '\0' || !nn_model_name_fits(column[k]))
        pl_problem_add(problems, at, "inputs.columns: a name is a text of one line, at most 200 bytes");
    for (int32_t i = 0; i < k; i++)
        if (strcmp(column[i], column[k]) == 0)
            pl_problem_add(problems, at, "inputs.columns: %s is listed twice", column[k]);
    for (int32_t i = 0; i < c->targets.n; i++)
        if (strcmp(st_target_label(&st_train_target(c)[i]), column[k]) == 0)
            pl_problem_add(problems, at, "inputs.columns: %s is what the model learns; it cannot be an input, too", column[k]);
}

void st_train_inputs_check(const pl_step *step, pl_problems *problems)
{
    const st_train_conf *c = step->conf;
    const pl_node *at = pl_node_get(step->node, "inputs") != NULL ? pl_node_get(step->node, "inputs") : step->node;

    if (c->inputs.columns.n > NN_COLUMNS_MAX)
        pl_problem_add(problems, at, "inputs.columns: %d columns, at most %d", (int)c->inputs.columns.n, NN_COLUMNS_MAX);
    for (int32_t k = 0; k < c->inputs.columns.n; k++)
        column_check(c, k, at, problems);
    if (c->inputs.descriptors && !st_family_may_have_network(c))
        pl_problem_add(problems, at,
                       "inputs.descriptors: is for the network (family: se3); the other families always read descriptors");
}

/* ---- elements ------------------------------------------------------------ */

static bool elements_are_read(const st_train_conf *c, const st_family *f)
{
    bool read = f->network || !st_train_elements_auto(c);

    for (int32_t k = 0; k < c->targets.n; k++)
        read = read || st_train_target(c)[k].transform != 0;
    return read;
}

int32_t st_train_elements(nn_inputs *in, const st_dataset *d, const pl_workflow *wf, const st_train_conf *c)
{
    const int32_t n_rare = in->n_elements == 0 ? st_dataset_elements(in, d, ST_TRAIN) : 0;
    int64_t n = 0;
    st_family family;

    for (int64_t i = 0; i < d->n; i++)
        n += d->part[i] == ST_TRAIN;
    family = st_family_of(wf, c, n);
    in->any_element = !elements_are_read(c, &family);
    return in->any_element ? 0 : n_rare;
}

void st_train_elements_tell(pl_env *env, int64_t n_left, int32_t n_rare)
{
    pl_event_add(env, PL_WARN,
                 "left out: %lld training molecules with one of the %d rarest elements; a model has the %d that most training "
                 "molecules contain, or those in model.elements",
                 (long long)n_left, (int)n_rare, NN_MAX_ELEMENTS);
}

/* ---- fitting ------------------------------------------------------------- */

/* Limits do not widen the domain: of molecules with a measured value. */
static pl_code columns_fit(nn_inputs *in, const st_samples *train, const pl_workflow *wf, pl_error *err)
{
    float *value = PL_NEW(train->d->mem, float, train->n + 1);
    pl_code code = value != NULL ? st_dataset_place(in, train->d, err) : pl_fail(err, PL_ENOMEM, "columns");

    for (int32_t k = 0; k < in->n_columns && code == PL_OK; k++) {
        int64_t n = 0;
        for (int64_t i = 0; i < train->n; i++)
            if (st_dataset_is_labelled(train->d, train->at[i]))
                value[n++] = train->item[i]->column[in->column[k].at];
        in->column[k].unit = st_label_unit(wf, in->column[k].name);
        code = nn_input_column_fit(&in->column[k], value, n, err);
    }
    return code;
}

static pl_code descriptors_fit(nn_inputs *in, st_dataset *d, const st_samples *train, pl_error *err)
{
    nn_moments *all = PL_NEW(d->mem, nn_moments, CH_N_FEATURES);
    double *value = PL_NEW(d->mem, double, train->n + 1);
    pl_code code;

    if (all == NULL || value == NULL)
        return pl_fail(err, PL_ENOMEM, "descriptors of %lld molecules", (long long)train->n);
    code = st_dataset_describe(d, err);
    if (code != PL_OK)
        return code;
    for (int k = 0; k < CH_N_FEATURES; k++) {
        bool same = true; /* the deviation of equal values may be a little above 0 */
        for (int64_t i = 0; i < train->n; i++) {
            value[i] = (double)train->item[i]->feature[k];
            same = same && value[i] == value[0];
        }
        nn_metric_moments(value, train->n, &all[k].mean, &all[k].stdev);
        all[k].stdev = same ? 0 : all[k].stdev;
    }
    in->descriptor = all;
    return PL_OK;
}

pl_code st_train_inputs_fit(nn_inputs *in, st_dataset *d, const st_samples *train, const pl_workflow *wf, pl_error *err)
{
    pl_code code = in->n_columns > 0 ? columns_fit(in, train, wf, err) : PL_OK;

    return code == PL_OK && in->descriptors ? descriptors_fit(in, d, train, err) : code;
}
