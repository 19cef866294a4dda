/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/errors/trust.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const st_trust_side unknown = { 0, NAN, NAN, NAN };

st_trust st_trust_new(bool classes)
{
    st_trust t = { .classes = classes, .coverage = NAN };

    for (int side = 0; side < 2; side++)
        t.model[side] = t.neighbours[side] = unknown;
    return t;
}

/* ---- taking numbers ---- */

static st_trust_side *component_side(st_trust *t, const char *name, size_t length, int side)
{
    int k = 0;

    if (length >= ST_TRUST_NAME)
        return NULL;
    while (k < t->n && (strncmp(t->component[k].name, name, length) != 0 || t->component[k].name[length] != '\0'))
        k++;
    if (k == ST_TRUST_COMPONENTS)
        return NULL;
    if (k == t->n) {
        (void)snprintf(t->component[k].name, ST_TRUST_NAME, "%.*s", (int)length, name);
        t->component[k].side[0] = t->component[k].side[1] = unknown;
        t->n++;
    }
    return &t->component[k].side[side];
}

static void side_take(st_trust_side *s, bool classes, const char *what, size_t length, double value, int64_t n)
{
    const char *error = classes ? "brier" : "mae";

    if (length == strlen(error) && strncmp(what, error, length) == 0) {
        s->error = value;
        s->n = n;
    } else if (length == strlen("difference") && strncmp(what, "difference", length) == 0) {
        s->difference = value;
    } else if (length == strlen("difference_error") && strncmp(what, "difference_error", length) == 0) {
        s->difference_error = value;
    }
}

void st_trust_add(st_trust *t, const char *metric, double value, int64_t n)
{
    static const char word[] = ".domain ", near[] = "neighbours.";
    const char *at = strstr(metric, word), *dot = strchr(metric, '.');
    const int side = at != NULL && strcmp(at + sizeof word - 1, "outside") == 0;
    st_trust_side *s = NULL;

    if (strcmp(metric, "coverage90") == 0)
        t->coverage = value;
    if (at == NULL)
        return;
    if (dot == at) {
        side_take(&t->model[side], t->classes, metric, (size_t)(at - metric), value, n);
        return;
    }
    s = strncmp(metric, near, sizeof near - 1) == 0 ? &t->neighbours[side]
                                                    : component_side(t, metric, (size_t)(dot - metric), side);
    if (s != NULL)
        side_take(s, t->classes, dot + 1, (size_t)(at - dot - 1), value, n);
}

void st_trust_take(st_trust *t, const json_t *domain)
{
    const char *metric;
    json_t *pair;

    json_object_foreach((json_t *)domain, metric, pair)
        st_trust_add(t, metric, json_number_value(json_array_get(pair, 0)), (int64_t)json_integer_value(json_array_get(pair, 1)));
}

/* ---- judging ---- */

bool st_trust_known(const st_trust *t) { return t->n > 1; }

/* The number of standard errors that a difference over n molecules must have: Student's distribution by its expansion
 * about the normal one (Abramowitz and Stegun 26.7.5). */
static double critical(int n_components, int64_t n)
{
    static const double normal[] = { 0, 2.2414, 2.4977, 2.6383, 2.7344, 2.8070, 2.8653, 2.9137, 2.9552, 2.9913 };
    const double z = normal[n_components < 9 ? n_components : 9], f = (double)(n - 1), z3 = z * z * z, z5 = z3 * z * z;

    return z + (z3 + z) / (4 * f) + (5 * z5 + 16 * z3 + 3 * z) / (96 * f * f);
}

/* The component with the smallest error of those that are shown to be better than the mean; -1: none. */
static int best_of(const st_trust *t, int side)
{
    int best = -1;

    for (int k = 0; k < t->n; k++) {
        const st_trust_side *s = &t->component[k].side[side];
        if (s->n < ST_TRUST_MIN || !(s->difference < 0) || !(-s->difference > critical(t->n, s->n) * s->difference_error))
            continue;
        if (best < 0 || s->error < t->component[best].side[side].error)
            best = k;
    }
    return best;
}

static const char *const side_words[] = { "inside of the domain", "outside of it" };

static void component_say(pl_text *out, const st_trust *t, int best, int side, const char *unit)
{
    const char *space = unit[0] && !t->classes ? " " : "", *of = t->classes ? "" : unit;

    pl_text_addf(out, "%s trust %s: %s %.3g%s%s, the mean %.3g%s%s (%lld molecules)", side_words[side], t->component[best].name,
                 t->classes ? "Brier score" : "MAE", t->component[best].side[side].error, space, of, t->model[side].error, space,
                 of, (long long)t->model[side].n);
}

/* " inside of the domain (102 molecules)"; too few molecules say so. */
static void side_say(pl_text *out, const st_trust *t, int side)
{
    pl_text_addf(out, " %s (%lld molecules%s)", side_words[side], (long long)t->model[side].n,
                 t->model[side].n < ST_TRUST_MIN ? ", too few to compare" : "");
}

static void mean_say(pl_text *out, const st_trust *t, const int best[2])
{
    pl_text_add(out, "take the mean of the components: none is shown to be better");
    for (int side = 0; side < 2; side++) {
        if (best[side] >= 0)
            continue;
        side_say(out, t, side);
        if (side == 0 && best[1] < 0)
            pl_text_add(out, " or");
    }
}

/* ---- words ---- */

static void real_text(char out[32], double x, double factor, const char *unit)
{
    if (isfinite(x))
        (void)snprintf(out, 32, "%.4g%s", factor * x, unit);
    else
        (void)snprintf(out, 32, "-");
}

static void line_say(pl_text *out, const char *indent, const char *name, const double value[2], double factor, const char *unit)
{
    char inside[32], outside[32];

    if (!isfinite(value[0]) && !isfinite(value[1]))
        return;
    real_text(inside, value[0], factor, unit);
    real_text(outside, value[1], factor, unit);
    pl_text_addf(out, "%s%-13s  %-11s %s\n", indent, name, inside, outside);
}

static void errors_say(pl_text *out, const char *indent, const char *name, const st_trust_side *side)
{
    const double value[2] = { side[0].error, side[1].error };

    line_say(out, indent, name, value, 1, "");
}

void st_trust_lines(pl_text *out, const st_trust *t, const char *indent, const char *unit)
{
    const char *space = unit[0] && !t->classes ? " in " : "";
    const double coverage[2] = { t->coverage, NAN }; /* a score outside has no interval */

    if (!st_trust_known(t))
        return;
    pl_text_addf(out, "%s%s%s%s inside of the domain (%lld molecules) and outside (%lld)\n", indent,
                 t->classes ? "Brier score" : "MAE", space, t->classes ? "" : unit, (long long)t->model[0].n,
                 (long long)t->model[1].n);
    errors_say(out, indent, "  together", t->model);
    for (int k = 0; k < t->n; k++) {
        char name[ST_TRUST_NAME + 2];
        (void)snprintf(name, sizeof name, "  %s", t->component[k].name);
        errors_say(out, indent, name, t->component[k].side);
    }
    errors_say(out, indent, "  neighbours", t->neighbours);
    line_say(out, indent, "  interval90", coverage, 100, " % held");
}

void st_trust_sentence(pl_text *out, const st_trust *t, const char *part, const char *unit)
{
    const int best[2] = { best_of(t, 0), best_of(t, 1) };
    bool first = true;

    if (!st_trust_known(t))
        return;
    pl_text_addf(out, "By the part %s: ", part);
    for (int side = 0; side < 2; side++)
        if (best[side] >= 0) {
            pl_text_add(out, first ? "" : "; ");
            component_say(out, t, best[side], side, unit);
            first = false;
        }
    if (best[0] < 0 || best[1] < 0) {
        pl_text_add(out, first ? "" : "; ");
        mean_say(out, t, best);
    }
}
