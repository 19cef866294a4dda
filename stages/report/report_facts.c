/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is: from the metadata of its file. */
#include "stages/report/report_facts.h"

#include <stdlib.h>
#include <string.h>

enum { FACT_MAX = 600 }; /* characters */

static void add_fact(st_report *r, const char *what, const char *text)
{
    if (text == NULL && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "the report");
    if (text == NULL || text[0] == '\0')
        return;
    pl_text_addf(r->out, "<tr><th scope=\"row\">%s</th><td>", what);
    st_html_cut(r->out, text, FACT_MAX);
    pl_text_add(r->out, "</td></tr>\n");
}

const char *st_meta_word(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static long long number(const json_t *o, const char *key) { return json_integer_value(json_object_get(o, key)); }

/* The strings of a list, or one member of its objects, up to the number shown. */
static const char *join(st_report *r, const json_t *list, const char *member)
{
    const json_t *one;
    const char *copy;
    pl_text all = { 0 };
    size_t k;

    json_array_foreach(list, k, one) {
        const char *s = member != NULL ? st_meta_word(one, member) : json_string_value(one);
        if (all.len > 4 * FACT_MAX)
            break;
        pl_text_add(&all, k ? " " : "");
        pl_text_add(&all, s != NULL ? s : "?");
    }
    copy = pl_text_ok(&all) ? pl_strdup(r->mem, pl_text_str(&all)) : NULL;
    pl_text_free(&all);
    return copy;
}

bool st_meta_is_class(const json_t *metadata)
{
    return strcmp(st_meta_word(json_object_get(metadata, "target"), "task"), "classification") == 0;
}

static void add_target(st_report *r, const json_t *m, const json_t *target)
{
    const char *better = st_meta_word(target, "better"), *unit = st_meta_word(target, "unit");
    pl_text all = { 0 };

    pl_text_add(&all, st_meta_is_class(m) ? "the probability of " : "");
    pl_text_add(&all, st_meta_word(target, "name"));
    if (unit[0])
        pl_text_addf(&all, ", %s", unit);
    if (strcmp(better, "none") != 0)
        pl_text_addf(&all, ", %s is better", better);
    add_fact(r, "predicts", pl_text_ok(&all) ? pl_text_str(&all) : NULL);
    pl_text_free(&all);
}

/* "1.3 eV; 0.93 eV where the similarity is 0.3 or more; from the part test". */
static void add_interval(st_report *r, const json_t *interval, const char *unit)
{
    const char *space = unit[0] ? " " : "";
    pl_text all = { 0 };
    const json_t *band;
    size_t k;

    json_array_foreach(json_object_get(interval, "bands"), k, band) {
        pl_text_add(&all, k ? "; " : "");
        pl_text_addf(&all, "%.4g%s%s", json_number_value(json_object_get(band, "within")), space, unit);
        if (k)
            pl_text_addf(&all, " where the similarity is %g or more", json_number_value(json_object_get(band, "similarity")));
    }
    if (all.len > 0)
        pl_text_addf(&all, "; from the part %s", st_meta_word(interval, "part"));
    add_fact(r, "90 % within", pl_text_ok(&all) ? pl_text_str(&all) : NULL);
    pl_text_free(&all);
}

static const char *elements_of(st_report *r, const json_t *inputs)
{
    return json_is_true(json_object_get(inputs, "any_element")) ? "any; one that is rare in the training is outside of the domain"
                                                                : join(r, json_object_get(inputs, "elements"), NULL);
}

/* What it is the mean of: its members, and its network or networks. */
static void add_components(st_report *r, const json_t *m, long long parameters)
{
    const json_t *net = json_object_get(m, "model"), *members = json_object_get(json_object_get(m, "family"), "members");
    const long long networks = number(net, "networks");
    const char *what =
        pl_sprintf(r->mem, "SE(3)-Transformer, %lld layers, %lld degrees, %lld channels, %lld heads; %lld parameters",
                   number(net, "layers"), number(net, "degrees"), number(net, "channels"), number(net, "heads"), parameters);

    if (members != NULL)
        add_fact(r, "members", join(r, members, "kind"));
    if (net != NULL && networks > 1 && what != NULL)
        add_fact(r, "networks", pl_sprintf(r->mem, "%lld, each: %s", networks, what));
    else if (net != NULL)
        add_fact(r, "network", what);
}

/* t: of the provenance p. Epochs are those of one network. */
static void add_trained(st_report *r, const json_t *p, const json_t *t)
{
    const char *what = pl_sprintf(r->mem, "%s, %lld molecules", st_meta_word(p, "date"), number(t, "molecules"));

    if (what != NULL && json_object_get(t, "best_epoch") != NULL && json_object_get(t, "steps") != NULL)
        what = pl_sprintf(r->mem, "%s, %lld epochs, the best was %lld; %lld steps", what, number(t, "epochs"),
                          number(t, "best_epoch"), number(t, "steps"));
    if (what != NULL && json_object_get(p, "seed") != NULL)
        what = pl_sprintf(r->mem, "%s, seed %lld", what, number(p, "seed"));
    add_fact(r, "trained", what);
}

void st_report_facts(st_report *r, const json_t *m, const char *sha256)
{
    const json_t *target = json_object_get(m, "target"), *p = json_object_get(m, "provenance");
    const json_t *t = json_object_get(p, "training"), *interval = json_object_get(m, "interval"), *one;
    size_t k;

    if (json_object_get(target, "name") != NULL) {
        add_target(r, m, target);
        add_interval(r, interval, st_meta_word(target, "unit"));
    }
    json_array_foreach(json_object_get(target, "targets"), k, one) {
        add_target(r, m, one);
        add_interval(r, json_array_get(json_object_get(interval, "targets"), k), st_meta_word(one, "unit"));
    }
    add_components(r, m, number(t, "parameters"));
    add_fact(r, "graph", st_meta_word(json_object_get(m, "graph"), "edges"));
    add_fact(r, "elements", elements_of(r, json_object_get(m, "inputs")));
    if (t != NULL)
        add_trained(r, p, t);
    add_fact(r, "data", join(r, json_object_get(p, "data"), "file"));
    add_fact(r, "SHA-256 of the file", sha256);
}

void st_report_recipe(st_report *r, const json_t *metadata)
{
    char *text = json_dumps(json_object_get(metadata, "provenance"), JSON_INDENT(1) | JSON_REAL_PRECISION(9));

    if (text == NULL)
        return;
    pl_text_add(r->out, "<details><summary>Training recipe and provenance</summary><pre>");
    st_html_cut(r->out, text, 20000);
    pl_text_add(r->out, "</pre></details>\n");
    free(text);
}
