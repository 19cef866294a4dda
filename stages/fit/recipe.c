/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/fit/recipe.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/base/sha256.h"

enum { NETWORK_FROM = 500, SUM_DIGITS = 16 };

static const char head[] = "# Made by `molsieve fit` (checksum ";

static const double TRAIN = 0.8; /* of the molecules */

/* ---- sizes --------------------------------------------------------------- */

bool st_recipe_has_network(const st_fit_table *t, const st_recipe_ask *ask)
{
    if (ask->family != NULL && strcmp(ask->family, "auto") != 0)
        return strstr(ask->family, "se3") != NULL;
    return TRAIN * (double)t->numbers >= NETWORK_FROM;
}

/* As many passes as small sets need and large ones have time for. */
static int epochs_of(int64_t n)
{
    static const struct {
        int64_t to;
        int epochs;
    } steps[] = { { 1000, 100 }, { 3000, 60 }, { 10000, 40 }, { 50000, 30 }, { INT64_MAX, 20 } };
    int k = 0;

    while (n > steps[k].to)
        k++;
    return steps[k].epochs;
}

static int batch_of(int64_t n)
{
    if (n <= 10000)
        return 32;
    return n <= 50000 ? 64 : 128;
}

int st_recipe_epochs(const st_fit_table *t) { return epochs_of((int64_t)(TRAIN * (double)t->numbers)); }

/* ---- text ---------------------------------------------------------------- */

/* In quotes; ${ stands for itself. */
static void add_quoted(pl_text *out, const char *s)
{
    pl_text json = { 0 };

    pl_text_add_json(&json, s);
    for (const char *c = pl_text_str(&json); *c != '\0'; c++) {
        if (c[0] == '$' && c[1] == '{')
            pl_text_add(out, "$");
        pl_text_add_n(out, c, 1);
    }
    pl_text_depend(out, &json);
    pl_text_free(&json);
}

static void add_path(pl_text *out, const char *table)
{
    pl_text_add(out, "inputs:\n  - {path: ");
    add_quoted(out, table);
}

static void add_input(pl_text *out, const st_fit_table *t)
{
    add_path(out, t->path);
    pl_text_addf(out, ", format: %s", t->format);
    if (t->smiles != NULL) {
        pl_text_add(out, ", columns: {smiles: ");
        add_quoted(out, t->smiles);
        if (t->title != NULL) {
            pl_text_add(out, ", title: ");
            add_quoted(out, t->title);
        }
        pl_text_add(out, "}");
    } else if (t->title != NULL) {
        pl_text_add(out, ", title_from: ");
        add_quoted(out, t->title);
    }
    pl_text_add(out, "}\n\n");
}

static void add_column_units(pl_text *out, const st_fit_columns *c)
{
    for (int k = 0; k < c->n; k++) {
        if (st_fit_columns_unit(c, k) == NULL)
            continue;
        pl_text_add(out, "      ");
        add_quoted(out, c->name[k]);
        pl_text_add(out, ": {unit: ");
        add_quoted(out, st_fit_columns_unit(c, k));
        pl_text_add(out, "}\n");
    }
}

static void add_label(pl_text *out, const char *target)
{
    pl_text_add(out, "    labels: [");
    add_quoted(out, target);
    pl_text_add(out, "]\n");
}

static void add_prepare(pl_text *out, const st_fit_table *t, const st_recipe_ask *ask, bool network)
{
    pl_text_add(
        out, "stages:\n  read: {}\n  prepare:\n    neutralise: true             # acids and bases may be drawn in either form\n");
    pl_text_addf(out, "    conformers: {source: %s} # %s\n", network ? "generate" : "none",
                 network ? "the network reads 3D structures" : "trees and gp read bonds only");
    add_label(out, t->target);
    pl_text_add(out, "    properties:\n      ");
    add_quoted(out, t->target);
    pl_text_addf(out, ": {task: %s, better: %s", ask->classes ? "classification" : "regression",
                 ask->better != NULL ? ask->better : "none");
    if (ask->unit != NULL) {
        pl_text_add(out, ", unit: ");
        add_quoted(out, ask->unit);
    }
    pl_text_add(out, "}\n");
    add_column_units(out, &t->columns);
    pl_text_addf(out, "  graph: {edges: %s}\n", network ? "bonds" : "topology");
}

static void add_split(pl_text *out, const st_fit_table *t, const st_recipe_ask *ask)
{
    const bool few = t->numbers < 100; /* an interval needs 9 molecules */
    const bool scaffold = strcmp(ask->split, "random") != 0;

    pl_text_addf(out, "  split:\n    method: %s", scaffold ? "scaffold" : "random");
    pl_text_add(out, scaffold ? "              # whole ring systems are held out: the errors are those of new chemistry\n"
                              : "                # easier than new chemistry, and flatters the model\n");
    if (scaffold && strcmp(ask->split, "scaffold") != 0)
        pl_text_addf(out, "    variant: %s\n", ask->split);
    pl_text_addf(out, "    fractions: {train: %s, valid: %s, test: %s}\n", few ? "0.6" : "0.8", few ? "0.2" : "0.1",
                 few ? "0.2" : "0.1");
}

static void add_network(pl_text *out, const st_fit_table *t)
{
    const int64_t n = (int64_t)(TRAIN * (double)t->numbers);

    pl_text_add(out, "    # the network, one sixteenth of the published one\n"
                     "    model: {layers: 4, degrees: 3, channels: 16, heads: 4, channels_div: 2, pooling: sum, charge: true}\n");
    pl_text_addf(out, "    batch: {molecules: %d}\n    epochs: %d\n", batch_of(n), st_recipe_epochs(t));
    pl_text_add(out, "    optimiser: {lr: 0.002, min_lr: 0.00002, weight_decay: 0.1, grad_clip: 5}\n"
                     "    schedule: {type: cosine_step, warmup: 2}\n    ema: 0.99\n    dtype: bf16\n");
}

/* "temperature,pH" as a list. */
static void add_inputs(pl_text *out, const char *names)
{
    char name[256];

    pl_text_add(out, "    inputs: {columns: [");
    for (const char *at = names; at != NULL; at = strchr(at, ',') != NULL ? strchr(at, ',') + 1 : NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        pl_text_add(out, at == names ? "" : ", ");
        add_quoted(out, name);
    }
    pl_text_add(out, "]}\n");
}

static void add_train(pl_text *out, const st_fit_table *t, const st_recipe_ask *ask, bool network)
{
    const bool one = ask->family == NULL || strchr(ask->family, ',') == NULL;

    pl_text_addf(out, "  train:\n    name: %s\n    family: %s%s%s", ask->model, one ? "" : "[",
                 ask->family != NULL ? ask->family : "auto", one ? "" : "]");
    pl_text_add(out, ask->family == NULL
                         ? "                # trees, a Gaussian process; a forest for classes; the network if it helps\n"
                         : "\n");
    pl_text_add(out, "    targets:\n      - {name: ");
    add_quoted(out, t->target);
    if (ask->unit != NULL && !ask->classes) {
        pl_text_add(out, ", unit: ");
        add_quoted(out, ask->unit);
    }
    pl_text_addf(out, ", better: %s%s}\n", ask->better != NULL ? ask->better : "none",
                 network && !ask->classes ? ", transform: composition" : "");
    if (ask->inputs != NULL)
        add_inputs(out, ask->inputs);
    if (network)
        add_network(out, t);
    if (ask->engine != NULL)
        pl_text_addf(out, "    engine: %s\n", ask->engine);
    pl_text_add(out, "  evaluate: {on: [valid, test]}\n");
}

static void add_body(pl_text *out, const st_fit_table *t, const st_recipe_ask *ask)
{
    const bool network = st_recipe_has_network(t, ask);

    pl_text_addf(out,
                 "# Edit it and run it with `molsieve run`; `fit` does not replace an edited file. `molsieve help train`\n"
                 "# has the settings.\n#\n# %lld records, %lld with a number in the target.\nformat: 1\nname: ",
                 (long long)t->records, (long long)t->numbers);
    add_quoted(out, ask->model);
    pl_text_addf(out, "\nseed: %lld\nworkdir: run\n\n", (long long)ask->seed);
    add_input(out, t);
    add_prepare(out, t, ask, network);
    add_split(out, t, ask);
    add_train(out, t, ask, network);
}

static void sum_of(const char *text, size_t n, char out[65])
{
    pl_sha256 sha;

    pl_sha256_start(&sha);
    pl_sha256_add(&sha, text, n);
    pl_sha256_hex(&sha, out);
}

void st_recipe_write(pl_text *out, const st_fit_table *t, const st_recipe_ask *ask)
{
    pl_text body = { 0 };
    char sum[65];

    add_body(&body, t, ask);
    sum_of(pl_text_str(&body), body.len, sum);
    pl_text_addf(out, "%s%.*s).\n", head, (int)SUM_DIGITS, sum);
    pl_text_add_n(out, pl_text_str(&body), body.len);
    pl_text_depend(out, &body);
    pl_text_free(&body);
}

bool st_recipe_is_own(const char *text, size_t n)
{
    const size_t first = sizeof head - 1 + SUM_DIGITS + 3; /* ")." and the line end */
    char sum[65];

    if (n < first || memcmp(text, head, sizeof head - 1) != 0)
        return false;
    sum_of(text + first, n - first, sum);
    return memcmp(text + sizeof head - 1, sum, SUM_DIGITS) == 0;
}

/* Whether the text has what `add` writes of a name, at the beginning of a line. */
static pl_code has_line(bool *yes, const char *text, size_t n, void (*add)(pl_text *out, const char *name), const char *name,
                        pl_error *err)
{
    pl_text line = { 0 };
    pl_code code;

    pl_text_add(&line, "\n");
    add(&line, name);
    code = pl_text_ok(&line) ? PL_OK : pl_fail(err, PL_ENOMEM, "a workflow");
    *yes = code == PL_OK && memmem(text, n, pl_text_str(&line), line.len) != NULL;
    pl_text_free(&line);
    return code;
}

pl_code st_recipe_learns(bool *yes, const char *text, size_t n, const char *target, pl_error *err)
{
    return has_line(yes, text, n, add_label, target, err);
}

pl_code st_recipe_reads(bool *yes, const char *text, size_t n, const char *table, pl_error *err)
{
    return has_line(yes, text, n, add_path, table, err);
}
