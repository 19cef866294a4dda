/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/workflow/workflow.h"

static void add_fields(pl_text *out, const pl_field *table, const void *conf);

static void add_number(pl_text *out, double x)
{
    char buf[64];
    pl_text_add(out, isfinite(x) ? pl_number_text(x, buf) : "null");
}

static void add_list(pl_text *out, const pl_field *f, const pl_list *list)
{
    pl_text_add(out, "[");
    for (int i = 0; i < list->n; i++) {
        pl_text_add(out, i ? "," : "");
        if (f->type == PL_TEXTS)
            pl_text_add_json(out, ((const char *const *)list->items)[i]);
        else if (f->type == PL_REALS)
            add_number(out, ((const double *)list->items)[i]);
        else
            add_fields(out, f->sub, (const char *)list->items + (size_t)i * f->sub_size);
    }
    pl_text_add(out, "]");
}

/* `true` and `false` of a choice are as those of a PL_BOOL: a setting that was one keeps its keys when it gets more words. */
static void add_word(pl_text *out, const char *word)
{
    if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0)
        pl_text_add(out, word);
    else
        pl_text_add_json(out, word);
}

static void add_value(pl_text *out, const pl_field *f, const void *conf)
{
    const void *at = (const char *)conf + f->at;
    char buf[64];

    switch (f->type) {
    case PL_INT: pl_text_addf(out, "%lld", (long long)*(const int64_t *)at); break;
    case PL_REAL:
    case PL_DURATION:
    case PL_SIZE: add_number(out, *(const double *)at); break;
    case PL_BOOL: pl_text_add(out, *(const bool *)at ? "true" : "false"); break;
    case PL_TEXT:
        if (*(const char *const *)at == NULL)
            pl_text_add(out, "null");
        else
            pl_text_add_json(out, *(const char *const *)at);
        break;
    case PL_CHOICE: add_word(out, pl_field_value(f, conf, buf)); break;
    case PL_TEXTS:
    case PL_REALS:
    case PL_LIST: add_list(out, f, at); break;
    default: pl_text_add(out, "null"); break;
    }
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const pl_field *const *)a)->key, (*(const pl_field *const *)b)->key);
}

/* Whether a PL_LATER setting has the value with which the result is as it was before the setting existed: its default or,
 * for a choice, its first word, so that the default of a choice may be another word. */
static bool is_as_before(const pl_field *f, const void *conf)
{
    const void *at = (const char *)conf + f->at;

    switch (f->type) {
    case PL_INT: return (double)*(const int64_t *)at == f->dflt;
    case PL_REAL:
    case PL_DURATION:
    case PL_SIZE: return *(const double *)at == f->dflt;
    case PL_BOOL: return *(const bool *)at == (f->dflt != 0);
    case PL_CHOICE: return *(const int32_t *)at == 0;
    case PL_TEXT: {
        const char *text = *(const char *const *)at;
        return text == NULL || f->text == NULL ? text == f->text : strcmp(text, f->text) == 0;
    }
    case PL_TEXTS:
    case PL_REALS:
    case PL_LIST: return ((const pl_list *)at)->n == 0;
    default: return false;
    }
}

static bool is_in_key(const pl_field *f, const void *conf)
{
    return !(f->flags & PL_HOW) && f->type != PL_PATH && !((f->flags & PL_LATER) && is_as_before(f, conf));
}

/* Dotted keys are not nested, so that two objects can be compared key by key. */
static void add_fields(pl_text *out, const pl_field *table, const void *conf)
{
    int n = pl_fields_count(table), n_used = 0;
    const pl_field **sorted = calloc((size_t)n + 1, sizeof(const pl_field *));

    if (sorted == NULL) {
        out->refused = true;
        return;
    }
    for (int i = 0; i < n; i++)
        if (is_in_key(&table[i], conf))
            sorted[n_used++] = &table[i];
    qsort(sorted, (size_t)n_used, sizeof(const pl_field *), by_key);
    pl_text_add(out, "{");
    for (int i = 0; i < n_used; i++) {
        pl_text_add(out, i ? "," : "");
        pl_text_add_json(out, sorted[i]->key);
        pl_text_add(out, ":");
        add_value(out, sorted[i], conf);
    }
    pl_text_add(out, "}");
    free(sorted);
}

const char *pl_params_json(const pl_field *table, const void *conf, pl_arena *mem)
{
    pl_text out = { 0 };
    const char *json;

    add_fields(&out, table, conf);
    json = pl_text_ok(&out) ? pl_strdup(mem, pl_text_str(&out)) : NULL;
    pl_text_free(&out);
    return json;
}
