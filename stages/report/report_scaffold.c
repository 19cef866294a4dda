/* SPDX-License-Identifier: Apache-2.0 */
/* The hits by scaffold, each beside the training molecule that is nearest to it. */
#include "stages/report/report_parts.h"

#include <stdio.h>
#include <string.h>

/* A training molecule on the page; it is drawn once. */
typedef struct near_one {
    const char *key; /* InChIKey */
    st_structure structure;
} near_one;

typedef struct near_list {
    near_one *one; /* [n] */
    int64_t n;
} near_list;

/* ---- one hit ---- */

/* "logS -0.29 +- 1.3 log10(mol/L)", a line for each property. */
static void add_scores(st_report *r, const st_hit *h)
{
    for (sqlite3_stmt *st = st_report_query(r,
                                            "SELECT p.name, s.mean, s.interval90, p.unit, s.domain FROM score s JOIN property p "
                                            "USING(property_id) WHERE s.mol_id=%lld ORDER BY p.name LIMIT 20",
                                            (long long)h->mol_id);
         st_report_row(r, &st);) {
        pl_text_add(r->out, "<br>");
        st_html_cut(r->out, st_column(st, 0), 40);
        pl_text_add(r->out, " ");
        st_html_real(r->out, sqlite3_column_double(st, 1), 3);
        if (sqlite3_column_type(st, 2) != SQLITE_NULL) {
            pl_text_add(r->out, " &plusmn; ");
            st_html_real(r->out, sqlite3_column_double(st, 2), 2);
        }
        pl_text_add(r->out, " ");
        st_html_cut(r->out, strcmp(st_column(st, 3), "1") == 0 ? "" : st_column(st, 3), 40);
        pl_text_add(r->out, strcmp(st_column(st, 4), "outside") == 0 ? ", outside of the domain" : "");
    }
}

static void add_hit(st_report *r, const st_hit *h)
{
    pl_text_add(r->out, "<figure>");
    if (h->structure.picture.id[0] != '\0')
        st_drawing_again(r->out, &h->structure.picture, h->smiles);
    else {
        pl_text_add(r->out, "<code>");
        st_html_cut(r->out, h->smiles, 200);
        pl_text_add(r->out, "</code>");
    }
    pl_text_addf(r->out, "<figcaption>rank %lld <b>", (long long)h->rank);
    st_html_cut(r->out, h->title, 60);
    pl_text_add(r->out, "</b>");
    add_scores(r, h);
    pl_text_add(r->out, "</figcaption></figure>");
}

/* ---- the training molecule ---- */

static near_one *find(near_list *near, const char *key)
{
    for (int64_t i = 0; i < near->n; i++)
        if (strcmp(near->one[i].key, key) == 0)
            return &near->one[i];
    return NULL;
}

/* Draws it, or shows the drawing again. */
static void add_near_structure(st_report *r, near_list *near, const char *key, const char *smiles)
{
    near_one *one = find(near, key);
    char id[24];

    if (one != NULL && one->structure.picture.id[0] != '\0') {
        st_drawing_again(r->out, &one->structure.picture, smiles);
        return;
    }
    if (one == NULL)
        one = &near->one[near->n++];
    one->key = key;
    (void)snprintf(id, sizeof id, "near%lld", (long long)(one - near->one));
    st_report_draw(r, smiles, id, &one->structure);
}

typedef struct known {
    const char *smiles, *title, *measured; /* smiles NULL: it is not there */
} known;

/* What a database tells of the molecule with that InChIKey. */
static void look_up(st_report *r, sqlite3 *db, const char *key, known *out)
{
    static const char sql[] =
        "SELECT smiles, coalesce((SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id LIMIT 1),''), "
        "coalesce((SELECT group_concat(one,', ') FROM (SELECT trim(p.name||' '||round(l.value,3)||' '||p.unit) AS one FROM label l "
        "JOIN property p USING(property_id) WHERE l.mol_id=m.mol_id ORDER BY p.name)),'') FROM molecule m WHERE inchikey=?1 "
        "ORDER BY mol_id LIMIT 1";
    sqlite3_stmt *st = NULL;

    if (r->code == PL_OK)
        r->code = pl_db_prepare(db, &st, sql, r->err);
    if (r->code == PL_OK)
        (void)sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    while (st_report_row(r, &st))
        *out = (known){ st_report_copy(r, st_column(st, 0)), st_report_copy(r, st_column(st, 1)),
                        st_report_copy(r, st_column(st, 2)) };
}

static void add_near_words(st_report *r, const known *k, const char *key, double similarity)
{
    pl_text_add(r->out, "<figcaption>nearest training molecule ");
    if (k->title != NULL && k->title[0] != '\0') {
        pl_text_add(r->out, "<b>");
        st_html_cut(r->out, k->title, 60);
        pl_text_add(r->out, "</b>");
    } else {
        pl_text_add(r->out, "<code>");
        st_html_cut(r->out, key, 40);
        pl_text_add(r->out, "</code>");
    }
    pl_text_add(r->out, "<br>similarity ");
    st_html_real(r->out, similarity, 2);
    if (k->measured != NULL && k->measured[0] != '\0') {
        pl_text_add(r->out, ", measured ");
        st_html_cut(r->out, k->measured, 80);
    }
    pl_text_add(r->out, "</figcaption>");
}

static void add_near(st_report *r, near_list *near, const st_hit *h)
{
    const char *key = NULL;
    known k = { 0 };
    double similarity = 0;

    for (sqlite3_stmt *st =
             st_report_query(r,
                             "SELECT nearest, similarity FROM prediction WHERE mol_id=%lld AND nearest IS NOT NULL ORDER BY "
                             "similarity DESC, nearest LIMIT 1",
                             (long long)h->mol_id);
         st_report_row(r, &st);) {
        key = st_report_copy(r, st_column(st, 0));
        similarity = sqlite3_column_double(st, 1);
    }
    if (key == NULL)
        return;
    if (r->training != NULL)
        look_up(r, r->training, key, &k);
    if (k.smiles == NULL)
        look_up(r, r->db, key, &k);
    pl_text_add(r->out, "<figure>");
    if (k.smiles != NULL)
        add_near_structure(r, near, key, k.smiles);
    add_near_words(r, &k, key, similarity);
    pl_text_add(r->out, "</figure>");
}

/* ---- the groups ---- */

static int64_t count(const st_report *r, int32_t group)
{
    int64_t n = 0;

    for (int64_t i = 0; i < r->n_hits; i++)
        n += r->hit[i].group == group;
    return n;
}

static void add_card(st_report *r, near_list *near, const st_hit *h, bool alone)
{
    if (alone)
        pl_text_addf(r->out, "<div id=\"scaffold%d\">", h->group);
    else
        pl_text_add(r->out, "<div>");
    add_hit(r, h);
    add_near(r, near, h);
    pl_text_add(r->out, "</div>\n");
}

static void add_group(st_report *r, near_list *near, int32_t group, int64_t n)
{
    if (group > 0)
        pl_text_addf(r->out, "<h4 id=\"scaffold%d\">Scaffold %d: ", group, group);
    else
        pl_text_add(r->out, group == 0 ? "<h4>Without rings: " : "<h4>Scaffold not known: ");
    pl_text_addf(r->out, "%lld hit%s</h4>\n<div class=\"cards\">\n", (long long)n, n == 1 ? "" : "s");
    for (int64_t i = 0; i < r->n_hits; i++)
        if (r->hit[i].group == group)
            add_card(r, near, &r->hit[i], false);
    pl_text_add(r->out, "</div>\n");
}

/* The scaffolds that only one hit has, together. */
static void add_single(st_report *r, near_list *near)
{
    int64_t n = 0;

    for (int64_t i = 0; i < r->n_hits; i++)
        n += r->hit[i].group > 0 && count(r, r->hit[i].group) == 1;
    if (n == 0)
        return;
    pl_text_addf(r->out, "<h4>Scaffolds of one hit: %lld</h4>\n<div class=\"cards\">\n", (long long)n);
    for (int64_t i = 0; i < r->n_hits; i++)
        if (r->hit[i].group > 0 && count(r, r->hit[i].group) == 1)
            add_card(r, near, &r->hit[i], true);
    pl_text_add(r->out, "</div>\n");
}

void st_report_scaffolds(st_report *r)
{
    near_list near = { .one = PL_NEW(r->mem, near_one, r->n_hits + 1) };
    int32_t group = 1;

    if (near.one == NULL && r->code == PL_OK)
        r->code = pl_fail(r->err, PL_ENOMEM, "the scaffolds");
    if (r->code != PL_OK || r->n_hits == 0)
        return;
    pl_text_add(
        r->out,
        "<h3 id=\"scaffolds\">The same hits by scaffold</h3>\n<p class=\"note\">Bemis-Murcko scaffolds: rings and the chains "
        "between them, in the order of their best hit. Beside each hit is the training molecule nearest to it (Tanimoto "
        "similarity, ECFP4), drawn if it is in this database, or in that of <code>molsieve report --training</code>.</p>\n");
    for (int64_t n; (n = count(r, group)) > 0; group++)
        if (n > 1)
            add_group(r, &near, group, n);
    add_single(r, &near);
    for (group = 0; group >= -1; group--)
        if (count(r, group) > 0)
            add_group(r, &near, group, count(r, group));
}
