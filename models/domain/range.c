/* SPDX-License-Identifier: Apache-2.0 */
#include "models/domain/range.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"

static bool is_kind(nn_kind a, nn_kind b) { return a.z == b.z && a.charge == b.charge && a.paired == b.paired; }

static bool has_kind(const nn_range *r, nn_kind k)
{
    int32_t j = 0;

    while (j < r->n_kinds && !is_kind(r->kind[j], k))
        j++;
    return j < r->n_kinds;
}

/* ---- making ---------------------------------------------------------------- */

static void kind_count(nn_census *c, nn_kind k)
{
    int32_t j = 0;

    while (j < c->n_kinds && !is_kind(c->kind[j].kind, k))
        j++;
    if (j == c->n_kinds && j < (int32_t)(sizeof c->kind / sizeof *c->kind))
        c->kind[c->n_kinds++] = (struct nn_kind_count){ .kind = k };
    if (j < c->n_kinds)
        c->kind[j].n++;
}

/* Inserts x into the list of the n smallest numbers so far, of which the first `have` are set; sign -1: of the n largest. */
static void extreme_add(int32_t *list, int64_t have, int32_t x, int sign)
{
    int64_t k = have < NN_RANGE_MIN ? have : NN_RANGE_MIN;

    for (; k > 0 && sign * x < sign * list[k - 1]; k--)
        if (k < NN_RANGE_MIN)
            list[k] = list[k - 1];
    if (k < NN_RANGE_MIN)
        list[k] = x;
}

void nn_census_add(nn_census *c, const nn_traits *t, nn_source source)
{
    for (int k = 0; k < NN_NUMBERS; k++) {
        extreme_add(c->min[k], c->n, t->number[k], 1);
        extreme_add(c->max[k], c->n, t->number[k], -1);
    }
    for (int k = 0; k <= NN_RING_MAX; k++)
        c->ring[k] += t->ring_sizes >> k & 1;
    for (int k = 0; k < NN_EXPANDED; k++)
        for (int bonds = 0; bonds <= NN_EXPANDED_MAX; bonds++)
            c->expanded[k][bonds] += t->expanded[k] >> bonds & 1;
    for (int32_t k = 0; k < t->n_kinds; k++)
        kind_count(c, t->kind[k]);
    c->source[source]++;
    c->n++;
}

/* Most frequent first; ties by element and charge. */
static int compare_kinds(const void *a, const void *b)
{
    const struct nn_kind_count *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    if (x->kind.z != y->kind.z)
        return x->kind.z - y->kind.z;
    return x->kind.charge != y->kind.charge ? x->kind.charge - y->kind.charge : x->kind.paired - y->kind.paired;
}

static int64_t min_of(int64_t n)
{
    const int64_t one_in_100 = n / 100;

    if (one_in_100 > NN_RANGE_MIN)
        return NN_RANGE_MIN;
    return one_in_100 > 1 ? one_in_100 : 1;
}

void nn_range_of(nn_range *out, const nn_census *c, const char *form)
{
    const int64_t min = min_of(c->n);
    nn_census sorted = *c;

    *out = (nn_range){ .molecules = c->n };
    (void)strncpy(out->form, form, sizeof out->form - 1);
    for (int k = 0; k < NN_NUMBERS && c->n > 0; k++) {
        out->low[k] = c->min[k][min - 1];
        out->high[k] = c->max[k][min - 1];
    }
    for (int k = 0; k <= NN_RING_MAX; k++)
        out->ring_sizes |= c->ring[k] >= min ? 1u << k : 0;
    for (int k = 0; k < NN_EXPANDED; k++)
        for (int bonds = 0; bonds <= NN_EXPANDED_MAX; bonds++)
            out->expanded[k] |= (uint16_t)(c->expanded[k][bonds] >= min ? 1u << bonds : 0);
    for (int k = 0; k < NN_SOURCES; k++)
        out->sources |= c->source[k] >= min ? 1u << k : 0;
    qsort(sorted.kind, (size_t)sorted.n_kinds, sizeof *sorted.kind, compare_kinds);
    while (out->n_kinds < sorted.n_kinds && out->n_kinds < NN_KINDS_MAX && sorted.kind[out->n_kinds].n >= min) {
        out->kind[out->n_kinds] = sorted.kind[out->n_kinds].kind;
        out->n_kinds++;
    }
}

void nn_range_meet(nn_range *r, const nn_range *all)
{
    int32_t n = 0;

    for (int k = 0; k < NN_NUMBERS; k++) {
        const int32_t low = r->low[k] > all->low[k] ? r->low[k] : all->low[k];
        const int32_t high = r->high[k] < all->high[k] ? r->high[k] : all->high[k];
        if (low > high) /* the few are among the extremes of all */
            continue;
        r->low[k] = low;
        r->high[k] = high;
    }
    r->ring_sizes &= all->ring_sizes;
    if ((r->sources & all->sources) != 0)
        r->sources &= all->sources;
    for (int k = 0; k < NN_EXPANDED; k++)
        r->expanded[k] &= all->expanded[k];
    for (int32_t k = 0; k < r->n_kinds; k++)
        if (has_kind(all, r->kind[k]))
            r->kind[n++] = r->kind[k];
    r->n_kinds = n;
}

void nn_ranges_of(nn_range *out, nn_census *const *of, int32_t n, const char *form)
{
    for (int32_t k = 0; k < n; k++) {
        out[k] = (nn_range){ 0 };
        if (of[k] != NULL)
            nn_range_of(&out[k], of[k], form);
        if (k > 0 && out[k].molecules > 0)
            nn_range_meet(&out[k], &out[0]);
    }
}

void nn_range_ignore_sources(nn_range *r) { r->sources = (1u << NN_SOURCES) - 1; }

/* ---- using ------------------------------------------------------------------ */

const char *const nn_range_words[] = { "heavy atoms",      "net charge",      "rings",         "conjugated atoms", "fragments",
                                       "unusual valences", "ring of",         "atomic charge", "element",          "high valence",
                                       "structure",        "acids and bases", "similarity",    "column",           NULL };

/* Whether `one` is among the reasons, which are separated by "; ". */
static bool has_reason(const char *reasons, const char *one)
{
    const size_t n = strlen(one);
    bool has = false;

    for (const char *s = reasons; !has && s != NULL && *s != '\0';) {
        const char *end = strstr(s, "; ");
        const size_t len = end != NULL ? (size_t)(end - s) : strlen(s);
        has = len == n && strncmp(s, one, n) == 0;
        s = end != NULL ? end + 2 : NULL;
    }
    return has;
}

void nn_reason_add(pl_text *out, const char *fmt, ...)
{
    char one[320];
    va_list list;

    va_start(list, fmt);
    (void)vsnprintf(one, sizeof one, fmt, list);
    va_end(list);
    if (!has_reason(pl_text_str(out), one))
        pl_text_addf(out, "%s%s", out->len ? "; " : "", one);
}

static void numbers_judge(pl_text *out, const nn_range *r, const nn_traits *t)
{
    for (int k = 0; k < NN_NUMBERS; k++) {
        if (t->number[k] > r->high[k])
            nn_reason_add(out, "%s %d > %d", nn_range_words[k], (int)t->number[k], (int)r->high[k]);
        if (t->number[k] < r->low[k])
            nn_reason_add(out, "%s %d < %d", nn_range_words[k], (int)t->number[k], (int)r->low[k]);
    }
    for (int k = 0; k <= NN_RING_MAX; k++)
        if ((t->ring_sizes & ~r->ring_sizes) >> k & 1)
            nn_reason_add(out, "ring of %d%s not in the training", k, k == NN_RING_MAX ? " or more" : "");
}

static int by_element(const void *a, const void *b)
{
    const nn_kind *x = a, *y = b;

    if (x->z != y->z)
        return x->z - y->z;
    return x->charge != y->charge ? x->charge - y->charge : x->paired - y->paired;
}

/* By element and charge: the order of atoms is not the same with and without structures. */
static void kinds_judge(pl_text *out, const nn_range *r, const nn_traits *t)
{
    nn_kind other[NN_KINDS_MAX + 1];
    int32_t n = 0;

    for (int32_t i = 0; i < t->n_kinds; i++)
        if (!has_kind(r, t->kind[i]))
            other[n++] = t->kind[i];
    if (n > 1)
        qsort(other, (size_t)n, sizeof *other, by_element);
    for (int32_t i = 0; i < n; i++)
        if (other[i].charge == 0)
            nn_reason_add(out, "element %s rare in the training", ch_element_symbol(other[i].z));
        else
            nn_reason_add(out, "atomic charge %s%+d%s not in the training", ch_element_symbol(other[i].z), (int)other[i].charge,
                          other[i].paired ? " next to an opposite one" : "");
}

static void expanded_judge(pl_text *out, const nn_range *r, const nn_traits *t)
{
    for (int k = 0; k < NN_EXPANDED; k++)
        for (int bonds = 0; bonds <= NN_EXPANDED_MAX; bonds++)
            if ((t->expanded[k] & ~r->expanded[k]) >> bonds & 1)
                nn_reason_add(out, "high valence %s with %d%s bonds not in the training", ch_element_symbol(nn_expanded_z[k]),
                              bonds, bonds == NN_EXPANDED_MAX ? " or more" : "");
}

static void structures_judge(pl_text *out, const nn_range *r, nn_source source)
{
    static const char *const now[NN_SOURCES] = { "from file", "built (MMFF94)", "built (UFF)", "built (MMFF94s)", "missing" };
    int then = 0;

    while (then < NN_SOURCE_NONE && !(r->sources & 1u << then))
        then++;
    if (!(r->sources & 1u << source))
        nn_reason_add(out, "structure %s, model trained on structures %s", now[source], now[then]);
}

/* A molecule whose preparation changed nothing differs from the model's form only if the model was trained at a pH. */
static void form_judge(pl_text *out, const nn_range *r, const nn_case *c)
{
    const bool was_ph = strncmp(r->form, "at pH", 5) == 0;
    const bool no_ions = r->low[NN_CHARGE] == 0 && r->high[NN_CHARGE] == 0 && strcmp(c->form, "neutral") == 0;

    if (r->form[0] == '\0' || strcmp(r->form, c->form) == 0)
        return;
    if (was_ph || (c->changed && !no_ions))
        nn_reason_add(out, "acids and bases %s, model trained on them %s", c->form, r->form);
}

/* 0.07 times 100 is more than 7. */
double nn_similarity_limit(double lowest) { return ceil(100 * lowest - 1e-9) / 100; }

void nn_range_reasons(pl_text *out, const nn_range *r, double lowest, const nn_case *c)
{
    numbers_judge(out, r, c->traits);
    kinds_judge(out, r, c->traits);
    expanded_judge(out, r, c->traits);
    structures_judge(out, r, c->source);
    form_judge(out, r, c);
    if (c->alike < lowest)
        nn_reason_add(out, "similarity %.2f < %.2f", floor(100 * c->alike) / 100, nn_similarity_limit(lowest));
}
