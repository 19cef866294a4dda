/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "pipeline/base/wrap.h"
#include "pipeline/workflow/workflow_parts.h"

enum { ORIGIN_COLUMN = 48, ALLOWED_COLUMN = 26 };

/* Whether every YAML reader reads s, without quotes, as the same text. */
static bool is_plain(const char *s)
{
    static const char *const words[] = { "true", "false", "yes", "no", "on", "off", "y", "n", "null", "~" };
    size_t n = strlen(s), safe = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-");

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(words[i], s) == 0)
            return false;
    return safe == n && strchr("+-.", s[0]) == NULL /* nor empty */ && strspn(s, "0123456789.eE+-_") != n;
}

void pl_yaml_add_scalar(pl_text *out, const char *s)
{
    pl_text safe = { 0 };

    if (is_plain(s)) {
        pl_text_add(out, s);
        return;
    }
    for (const char *d; (d = strstr(s, "${")) != NULL; s = d + 2) {
        pl_text_add_n(&safe, s, (size_t)(d - s));
        pl_text_add(&safe, "$${");
    }
    pl_text_add(&safe, s);
    pl_text_add_json(out, pl_text_str(&safe)); /* a JSON string is a YAML string */
    out->refused = out->refused || safe.refused;
    pl_text_free(&safe);
}

/* ---- one line ---- */

typedef struct writer {
    pl_text *out;
    const void *conf;
    const pl_node *map; /* what the file says, or NULL    */
    bool with_origin;   /* the effective file             */
    bool explain;       /* default.yaml: allowed and help */
    const char *skip;   /* a field that is not written    */
} writer;

static void indent(pl_text *out, int depth) { pl_text_addf(out, "%*s", depth * 2, ""); }

static void end_line(pl_text *out, size_t start, const char *comment, size_t column)
{
    size_t used = out->len - start;

    if (comment != NULL && comment[0] != '\0')
        pl_text_addf(out, "%*s # %s", used < column ? (int)(column - used) : 0, "", comment);
    pl_text_add(out, "\n");
}

/* Adds comment lines, each with `start` in front, of at most 80 columns. */
static void add_comment(pl_text *out, const char *start, const char *comment)
{
    pl_text lines = { 0 };

    pl_text_wrap(&lines, comment, PL_COLUMNS - (int)strlen(start));
    for (const char *s = pl_text_str(&lines); *s != '\0';) {
        size_t n = strcspn(s, "\n");
        pl_text_addf(out, "%s%.*s\n", start, (int)n, s);
        s += n + (s[n] == '\n');
    }
    out->refused = out->refused || lines.refused;
    pl_text_free(&lines);
}

static const char *origin_text(const pl_node *node, char *buf, size_t size)
{
    if (node == NULL)
        return "default";
    if (node->line == 0)
        return node->origin;
    (void)snprintf(buf, size, "%s:%d:%d", node->origin, node->line, node->column);
    return buf;
}

/* The node of a dotted key. */
static const pl_node *find(const pl_node *map, const char *key)
{
    char part[128];

    while (map != NULL && key != NULL) {
        const char *dot = strchr(key, '.');
        (void)snprintf(part, sizeof part, "%.*s", dot != NULL ? (int)(dot - key) : (int)strlen(key), key);
        map = pl_node_get(map, part);
        key = dot != NULL ? dot + 1 : NULL;
    }
    return map;
}

static const char *comment_of(const writer *w, const pl_field *f, char *buf, size_t size)
{
    char allowed[400];

    if (w->with_origin)
        return origin_text(find(w->map, f->key), buf, size);
    if (!w->explain)
        return NULL;
    (void)snprintf(buf, size, "%s%s", (f->flags & PL_REQUIRED) ? "required; " : "", pl_field_allowed(f, allowed, sizeof allowed));
    return buf;
}

/* ---- values ---- */

static void add_flow(pl_text *out, const pl_field *f, const pl_list *list)
{
    char buf[64];

    pl_text_add(out, "[");
    for (int i = 0; i < list->n; i++) {
        pl_text_add(out, i ? ", " : "");
        if (f->type == PL_REALS)
            pl_text_add(out, pl_number_text(((const double *)list->items)[i], buf));
        else
            pl_yaml_add_scalar(out, ((const char *const *)list->items)[i]);
    }
    pl_text_add(out, "]");
}

static void write_fields(const writer *w, const pl_field *table, int depth);

static void add_records(const writer *w, const pl_field *f, const pl_list *list, int depth)
{
    const pl_node *node = find(w->map, f->key);
    bool keyed = (f->flags & PL_KEYED) != 0;

    for (int i = 0; i < list->n; i++) {
        writer one = *w;
        size_t start = w->out->len;
        one.conf = (const char *)list->items + (size_t)i * f->sub_size;
        one.map = node != NULL && i < node->n ? node->item[i] : NULL;
        one.skip = keyed ? "name" : NULL;
        if (keyed) {
            indent(w->out, depth);
            pl_yaml_add_scalar(w->out, *(const char *const *)one.conf);
            pl_text_add(w->out, ":\n");
        }
        write_fields(&one, f->sub, depth + 1);
        if (!keyed && w->out->len > start)
            w->out->s[start + (size_t)depth * 2] = '-';
    }
}

static bool is_unset(const pl_field *f, const void *conf)
{
    const void *at = (const char *)conf + f->at;

    if (f->type == PL_TEXTS || f->type == PL_REALS) /* an empty list would not be read back */
        return (f->flags & PL_REQUIRED) && ((const pl_list *)at)->n == 0;
    return (f->type == PL_TEXT || f->type == PL_PATH) && *(const char *const *)at == NULL;
}

static void write_field(void *ctx, const pl_field *f, const char *name, int depth)
{
    const writer *w = ctx;
    const pl_list *list = (const pl_list *)((const char *)w->conf + f->at);
    char buf[64], comment[512], allowed[512];
    const char *said = comment_of(w, f, allowed, sizeof allowed);
    const bool wide = w->explain && said != NULL && strlen(said) + ALLOWED_COLUMN + 3 > PL_COLUMNS;
    size_t start;
    bool block = f->type == PL_LIST && list->n > 0;
    const int column = w->explain ? ALLOWED_COLUMN : ORIGIN_COLUMN;

    if (w->skip != NULL && strcmp(w->skip, name) == 0)
        return;
    (void)snprintf(comment, sizeof comment, "%*s# ", depth * 2, "");
    if (w->explain)
        add_comment(w->out, comment, f->help);
    if (wide) /* on lines of its own */
        add_comment(w->out, comment, said);
    start = w->out->len;
    indent(w->out, depth);
    if (w->explain && (is_unset(f, w->conf) || f->type == PL_LIST))
        pl_text_add(w->out, "# ");
    pl_text_addf(w->out, "%s:%s", name, block ? "" : " ");
    if (f->type == PL_TEXTS || f->type == PL_REALS)
        add_flow(w->out, f, list);
    else if (f->type == PL_LIST && !block && !w->explain)
        pl_text_add(w->out, (f->flags & PL_KEYED) ? "{}" : "[]");
    else if (is_unset(f, w->conf))
        pl_text_add(w->out, w->explain ? "" : "null");
    else if (f->type == PL_TEXT || f->type == PL_PATH)
        pl_yaml_add_scalar(w->out, pl_field_value(f, w->conf, buf));
    else if (f->type != PL_LIST)
        pl_text_add(w->out, pl_field_value(f, w->conf, buf));
    end_line(w->out, start, wide ? NULL : said, column);
    if (block)
        add_records(w, f, list, depth + 1);
}

static void write_group(void *ctx, const pl_field *f, const char *name, size_t n_name, int depth, bool opens)
{
    const writer *w = ctx;

    (void)f;
    if (!opens)
        return;
    indent(w->out, depth);
    pl_text_addf(w->out, "%.*s:\n", (int)n_name, name);
}

static void write_fields(const writer *w, const pl_field *table, int depth)
{
    static const pl_field_visit visit = { write_field, write_group };
    pl_fields_walk(table, depth, &visit, (void *)w);
}

/* ---- the effective file ---- */

static void write_needs(const pl_workflow *wf, const pl_step *step, bool with_origin, pl_text *out)
{
    const pl_node *node = pl_node_get(step->node, "needs");
    size_t start = out->len;
    char buf[512];

    if (step->n_needs == 0)
        return;
    pl_text_add(out, "    needs: [");
    for (int i = 0; i < step->n_needs; i++)
        pl_text_addf(out, "%s%s", i ? ", " : "", wf->step[step->needs[i]].stage->name);
    pl_text_add(out, "]");
    end_line(out, start, with_origin ? origin_text(node, buf, sizeof buf) : NULL, ORIGIN_COLUMN);
}

pl_code pl_workflow_dump(const pl_workflow *wf, bool with_origin, pl_text *out)
{
    pl_workflow as_written = *wf;
    writer w = { .out = out, .conf = &as_written, .map = wf->tree, .with_origin = with_origin };

    as_written.inputs = wf->patterns;
    write_fields(&w, pl_workflow_fields, 0);
    pl_text_add(out, "stages:\n");
    for (int i = 0; i < wf->n_steps; i++) {
        const pl_step *step = &wf->step[i];
        bool empty = pl_fields_count(step->stage->fields) == 0 && step->n_needs == 0;
        pl_text_addf(out, "  %s:%s\n", step->stage->name, empty ? " {}" : "");
        write_needs(wf, step, with_origin, out);
        w.conf = step->conf;
        w.map = step->node;
        write_fields(&w, step->stage->fields, 2);
    }
    return pl_text_ok(out) ? PL_OK : PL_ENOMEM;
}

/* ---- configs/default.yaml ---- */

/* The settings of one record of a list, as comments. */
typedef struct record_writer {
    pl_text *out;
    int base; /* depth of the list */
    const char *skip;
} record_writer;

static void start_comment(const record_writer *r, int depth)
{
    indent(r->out, r->base);
    pl_text_addf(r->out, "# %*s", (depth - r->base) * 2, "");
}

static void write_records(const pl_field *list, int depth, int base, pl_text *out);

static void write_record_field(void *ctx, const pl_field *f, const char *name, int depth)
{
    const record_writer *r = ctx;
    size_t start;
    char value[64], comment[512], allowed[400];
    int64_t room[4] = { 0 }; /* one value of any type */
    pl_field one = *f;

    if (r->skip != NULL && strcmp(r->skip, name) == 0)
        return;
    one.at = 0;
    pl_fields_default((pl_field[]){ one, { 0 } }, room);
    (void)snprintf(comment, sizeof comment, "%*s# %*s# ", r->base * 2, "", (depth - r->base) * 2, "");
    add_comment(r->out, comment, f->help);
    start = r->out->len;
    start_comment(r, depth);
    pl_text_addf(r->out, "%s: %s", name, f->type < PL_TEXTS ? pl_field_value(&one, room, value) : "");
    (void)snprintf(comment, sizeof comment, "%s%s", (f->flags & PL_REQUIRED) ? "required; " : "",
                   pl_field_allowed(f, allowed, sizeof allowed));
    end_line(r->out, start, comment, ALLOWED_COLUMN);
    if (f->type == PL_LIST)
        write_records(f, depth + 1, r->base, r->out);
}

static void write_record_group(void *ctx, const pl_field *f, const char *name, size_t n_name, int depth, bool opens)
{
    (void)f;
    if (!opens)
        return;
    start_comment(ctx, depth);
    pl_text_addf(((const record_writer *)ctx)->out, "%.*s:\n", (int)n_name, name);
}

static void write_records(const pl_field *list, int depth, int base, pl_text *out)
{
    static const pl_field_visit visit = { write_record_field, write_record_group };
    record_writer r = { out, base, (list->flags & PL_KEYED) ? "name" : NULL };

    if (r.skip != NULL) {
        start_comment(&r, depth);
        pl_text_add(out, "NAME:\n");
        depth++;
    }
    pl_fields_walk(list->sub, depth, &visit, &r);
}

static void explain_field(void *ctx, const pl_field *f, const char *name, int depth)
{
    const writer *w = ctx;

    write_field(ctx, f, name, depth);
    if (f->type == PL_LIST)
        write_records(f, depth + 1, depth, w->out);
}

static void explain_fields(const pl_field *table, size_t conf_size, int depth, pl_text *out)
{
    static const pl_field_visit visit = { explain_field, write_group };
    pl_arena *mem = pl_arena_new(0);
    void *conf = mem != NULL ? PL_NEW(mem, char, conf_size + 1) : NULL;
    writer w = { .out = out, .conf = conf, .explain = true };

    if (conf != NULL) {
        pl_fields_default(table, conf);
        pl_fields_walk(table, depth, &visit, &w);
    } else {
        out->refused = true;
    }
    pl_arena_free(mem);
}

void pl_workflow_defaults(const pl_stage *const *known, pl_text *out)
{
    pl_text_add(out, "# Every setting with its default, what is allowed, and what it does.\n"
                     "# Written by `molsieve help --defaults` from the tables of the program.\n\n");
    explain_fields(pl_workflow_fields, sizeof(pl_workflow), 0, out);
    pl_text_add(out, "# used as ${vars.name}\n# vars:                    # name: value\n\nstages:\n");
    for (; *known != NULL; known++) {
        const pl_stage *s = *known;
        pl_text_addf(out, "\n  # %s\n  %s:\n", s->help, s->name);
        for (const char *const *need = s->needs; need != NULL && *need != NULL; need++)
            pl_text_addf(out, "%s%s%s", need == s->needs ? "    # needs: [" : ", ", *need, need[1] != NULL ? "" : "]\n");
        explain_fields(s->fields, s->conf_size, 2, out);
    }
}

/* ---- help for people ---- */

/* Keys are written whole, as they are overridden: "conformers.source". */
static void help_field(const pl_field *f, int depth, pl_text *out)
{
    char value[64], allowed[512];
    int64_t room[4] = { 0 };
    pl_field one = *f;

    one.at = 0;
    pl_fields_default((pl_field[]){ one, { 0 } }, room);
    pl_text_addf(out, "  %*s%s%s\n", depth * 2, "", f->key, (f->flags & PL_REQUIRED) ? "  (required)" : "");
    pl_text_addf(out, "  %*s    %s\n", depth * 2, "", f->help);
    pl_text_addf(out, "  %*s    %s", depth * 2, "", pl_field_allowed(f, allowed, sizeof allowed));
    if (f->type < PL_TEXTS && !(f->flags & PL_REQUIRED) && pl_field_value(&one, room, value)[0] != '\0')
        pl_text_addf(out, "; default %s", pl_field_value(&one, room, value));
    pl_text_add(out, "\n");
    if (f->type == PL_LIST)
        pl_fields_help(f->sub, depth + 2, out);
}

void pl_fields_help(const pl_field *table, int depth, pl_text *out)
{
    for (const pl_field *f = table; f != NULL && f->type != PL_END; f++)
        help_field(f, depth, out);
}

/* What a setting's key begins with: "optimiser." of "optimiser.lr", "" of "epochs". */
static int group_length(const char *key)
{
    const char *dot = strchr(key, '.');
    return dot != NULL ? (int)(dot - key) + 1 : 0;
}

static bool is_of(const pl_field *f, const char *group, int n)
{
    return group_length(f->key) == n && strncmp(f->key, group, (size_t)n) == 0;
}

/* Those without a group, then group after group, in the order of the table. */
static void put_groups(const pl_field *table, pl_text *out)
{
    pl_text_add(out, "\n");
    for (const pl_field *f = table; f->type != PL_END; f++)
        if (group_length(f->key) == 0)
            help_field(f, 0, out);
    for (const pl_field *f = table; f->type != PL_END; f++) {
        const int n = group_length(f->key);
        bool shown = n == 0;
        for (const pl_field *e = table; e < f && !shown; e++)
            shown = is_of(e, f->key, n);
        if (shown)
            continue;
        pl_text_addf(out, "\n%.*s:\n", n - 1, f->key);
        for (const pl_field *e = f; e->type != PL_END; e++)
            if (is_of(e, f->key, n))
                help_field(e, 0, out);
    }
}

static void put_first(const pl_stage *stage, pl_text *out)
{
    if (stage->first != NULL)
        pl_text_add(out, "\nChange these first:\n\n");
    for (const char *const *f = stage->first; f != NULL && *f != NULL; f += 2)
        pl_text_addf(out, "  %-13s %s\n", f[0], f[1]);
}

void pl_stage_help(const pl_stage *stage, pl_text *out)
{
    pl_text_addf(out, "%s: %s\n", stage->name, stage->help);
    pl_text_add(out, stage->scope == PL_PER_UNIT ? "Works on units of molecules, each resumable.\n"
                                                 : "Works on the whole run at once.\n");
    for (const char *const *need = stage->needs; need != NULL && *need != NULL; need++)
        pl_text_addf(out, "%s%s%s", need == stage->needs ? "Needs: " : ", ", *need,
                     need[1] != NULL ? "" : "  (in parentheses: used if present)\n");
    if (pl_fields_count(stage->fields) == 0) {
        pl_text_addf(out, "\nNo settings: `stages: {%s: {}}`.\n", stage->name);
        return;
    }
    put_first(stage, out);
    pl_text_addf(out, "\nSettings, under `stages: %s:` in a workflow:\n", stage->name);
    put_groups(stage->fields, out);
}

void pl_workflow_help(pl_text *out) { pl_fields_help(pl_workflow_fields, 0, out); }
