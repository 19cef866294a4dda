/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/tree.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/spelling.h"

const char pl_command_line[] = "command line";

/* ---- overrides ---- */

static pl_node *node_new(pl_arena *mem, pl_node_kind kind, const char *text)
{
    pl_node *node = PL_NEW(mem, pl_node, 1);

    if (node != NULL)
        *node = (pl_node){ .kind = kind, .text = text, .origin = pl_command_line };
    return node;
}

/* `optimizer` is `optimiser`. */
static bool is_same(const char *a, const char *b)
{
    char of_a[PL_SPELLED], of_b[PL_SPELLED];

    return strcmp(pl_british(a, of_a) ? of_a : a, pl_british(b, of_b) ? of_b : b) == 0;
}

/* The place of the child with that name, or NULL; for a list, *n_wanted is the position that was asked for. */
static pl_node **child_at(pl_node *node, const char *name, int64_t *n_wanted)
{
    if (node->kind == PL_SEQUENCE)
        return pl_parse_int(name, n_wanted) && *n_wanted >= 0 && *n_wanted < node->n ? &node->item[*n_wanted] : NULL;
    for (int i = 0; i < node->n; i++)
        if (node->key[i]->kind == PL_SCALAR && is_same(node->key[i]->text, name))
            return &node->item[i];
    return NULL;
}

static pl_node *add_child(pl_node *node, const char *name, pl_node *item, pl_arena *mem)
{
    pl_node *key = node->kind == PL_MAPPING ? node_new(mem, PL_SCALAR, name) : NULL;

    if (item == NULL || (node->kind == PL_MAPPING && key == NULL) || !pl_node_add(node, key, item, mem))
        return NULL;
    return item;
}

/* Reports that the workflow has no such stage, with the nearest name and how to add one. */
static void say_no_stage(const pl_node *stages, const char *text, const char *name, pl_problems *problems, pl_arena *mem)
{
    const char **names = PL_NEW(mem, const char *, stages->n + 1), *near;
    pl_node here = { .origin = pl_command_line };

    for (int i = 0; names != NULL && i < stages->n; i++)
        names[i] = stages->key[i]->kind == PL_SCALAR ? stages->key[i]->text : "";
    near = names != NULL ? pl_nearest(name, names, stages->n) : NULL;
    pl_problem_add(problems, &here, "%s: this workflow has no stage '%s'%s%s%s; to add it write +%s", text, name,
                   near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "", text);
}

/* Goes one step down the path and creates missing maps. NULL: the path leads nowhere. */
static pl_node *descend(pl_node *node, const char *name, bool last, pl_node *value, pl_arena *mem)
{
    int64_t position = -1;
    pl_node **child;

    if (node->kind == PL_SCALAR && pl_node_is_null(node)) {
        node->kind = PL_MAPPING; /* `graph:` with nothing after it is an empty map */
        node->n = 0;
    }
    if (node->kind == PL_SCALAR)
        return NULL;
    child = child_at(node, name, &position);
    if (child != NULL && last)
        *child = value;
    if (child != NULL)
        return *child;
    if (node->kind == PL_SEQUENCE && position != node->n)
        return NULL;
    return add_child(node, name, last ? value : node_new(mem, PL_MAPPING, NULL), mem);
}

static void apply(pl_node *root, const char *text, char *path, bool add, pl_node *value, pl_problems *problems, pl_arena *mem)
{
    pl_node here = { .origin = pl_command_line }, *node = root;
    char *save = NULL, *name = strtok_r(path, ".", &save);
    bool in_stages = name != NULL && strcmp(name, "stages") == 0;

    for (int depth = 0; name != NULL && node != NULL; depth++) {
        char *more = strtok_r(NULL, ".", &save);
        if (depth == 1 && in_stages && !add && pl_node_get(node, name) == NULL && node->kind == PL_MAPPING) {
            say_no_stage(node, text, name, problems, mem);
            return;
        }
        node = descend(node, name, more == NULL, value, mem);
        if (node == NULL)
            pl_problem_add(problems, &here, "%s: there is nothing called '%s' to set", text, name);
        name = more;
    }
}

/* Removes lines and columns: they mean nothing for values from the command line. */
static void forget_place(pl_node *node)
{
    node->line = node->column = node->verbatim = 0;
    for (int i = 0; i < node->n; i++) {
        if (node->key != NULL)
            forget_place(node->key[i]);
        forget_place(node->item[i]);
    }
}

void pl_tree_override(pl_node *root, const char *text, pl_problems *problems, pl_arena *mem)
{
    pl_node here = { .origin = pl_command_line };
    bool add = text[0] == '+';
    const char *equals = strchr(text, '='), *start = text + add;
    pl_problems own = { .mem = mem };
    pl_node *value;
    char *path;

    if (equals == NULL || equals == start) {
        pl_problem_add(problems, &here, "'%s' is not of the form stage.setting=value", text);
        return;
    }
    if (equals[1] == '\0')
        value = node_new(mem, PL_SCALAR, "");
    else
        value = pl_yaml_parse(equals + 1, strlen(equals + 1), pl_command_line, &own, mem);
    for (int i = 0; i < own.n; i++)
        pl_problem_add(problems, &here, "%s: %s", text, own.list[i].text);
    problems->refused = problems->refused || own.refused;
    path = pl_strndup(mem, start, (size_t)(equals - start));
    if (own.n == 0 && (value == NULL || path == NULL))
        pl_problem_refused(problems, &here, NULL);
    if (value == NULL || path == NULL || own.n != 0)
        return;
    forget_place(value);
    apply(root, text, path, add, value, problems, mem);
}

/* ---- substitution ---- */

typedef struct context {
    const pl_node *vars; /* NULL: there are none     */
    int n_vars;          /* the first n_vars variables may be used */
    pl_problems *problems;
    pl_arena *mem;
    size_t *filled; /* bytes of all replaced texts so far */
} context;

static void add_var(const context *c, const pl_node *at, const char *name, pl_text *out)
{
    const char **names = PL_NEW(c->mem, const char *, c->n_vars + 1), *near;

    for (int i = 0; names != NULL && i < c->n_vars; i++) {
        names[i] = c->vars->key[i]->kind == PL_SCALAR ? c->vars->key[i]->text : "";
        if (strcmp(names[i], name) == 0) {
            if (c->vars->item[i]->kind == PL_SCALAR)
                pl_text_add(out, c->vars->item[i]->text);
            return;
        }
    }
    near = names != NULL ? pl_nearest(name, names, c->n_vars) : NULL;
    if (pl_node_get(c->vars, name) != NULL)
        pl_problem_add(c->problems, at, "${vars.%s}: vars.%s is set further down; move it up", name, name);
    else
        pl_problem_add(c->problems, at, "${vars.%s}: no such variable under vars%s%s%s", name,
                       near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
}

static void add_env(const context *c, const pl_node *at, char *name, pl_text *out)
{
    char *dflt = strstr(name, ":-");
    const char *value;

    if (dflt != NULL)
        *dflt = '\0';
    value = getenv(name);
    if (value != NULL && (value[0] != '\0' || dflt == NULL))
        pl_text_add(out, value);
    else if (dflt != NULL)
        pl_text_add(out, dflt + 2);
    else
        pl_problem_add(c->problems, at, "${env:%s}: the environment variable %s is not set; set it, or write ${env:%s:-default}",
                       name, name, name);
}

/* Limits the total size: a few variables, each with ten copies of the one above, would become gigabytes. */
static bool is_too_long(const context *c, const pl_node *node, const pl_text *out)
{
    if (*c->filled + out->len <= PL_YAML_MAX_FILLED)
        return false;
    if (*c->filled <= PL_YAML_MAX_FILLED) /* once */
        pl_problem_add(c->problems, node, "texts with ${...} come to more than 1 MiB once the variables are replaced");
    *c->filled = PL_YAML_MAX_FILLED + 1;
    return true;
}

/* Adds what ${name} stands for. */
static void add_value(const context *c, const pl_node *at, char *name, pl_text *out)
{
    if (strncmp(name, "vars.", 5) == 0)
        add_var(c, at, name + 5, out);
    else if (strncmp(name, "env:", 4) == 0)
        add_env(c, at, name + 4, out);
    else
        pl_problem_add(c->problems, at, "${%s}: not known; allowed: ${vars.name}, ${env:NAME}, ${env:NAME:-default}", name);
}

/* The value of the ${...} at s, or the text of a $${; returns what follows it, NULL: there is no }. d: where the ${ is. */
static const char *replace_one(const context *c, pl_node *node, const char *s, const char *d, pl_text *out)
{
    const char *end = strchr(d, '}');
    char *name;

    if (d > s && d[-1] == '$') {
        pl_text_add_n(out, s, (size_t)(d - 1 - s));
        pl_text_add(out, "${");
        return d + 2;
    }
    if (end == NULL) {
        pl_problem_add(c->problems, node, "'%s': ${ without a }", node->text);
        return NULL;
    }
    pl_text_add_n(out, s, (size_t)(d - s));
    name = pl_strndup(c->mem, d + 2, (size_t)(end - d - 2));
    if (name != NULL)
        add_value(c, node, name, out);
    else
        out->refused = true;
    if (!is_too_long(c, node, out))
        return end + 1;
    pl_text_reset(out);
    return "";
}

static void replace(const context *c, pl_node *node)
{
    pl_text out = { 0 };
    const char *s = node->text;
    int before = c->problems->n;

    for (const char *d, *next; (d = strstr(s, "${")) != NULL; s = next) {
        next = replace_one(c, node, s, d, &out);
        if (next == NULL)
            break;
    }
    pl_text_add(&out, s);
    *c->filled += out.len;
    node->text = pl_text_ok(&out) ? pl_strdup(c->mem, pl_text_str(&out)) : NULL;
    pl_text_free(&out);
    node->faulty = c->problems->n != before;
    node->verbatim = 0;
    node->quoted = false; /* inside { } YAML needs the quotes around ${...}: they do not mean text */
    if (node->text == NULL) {
        pl_problem_refused(c->problems, node, NULL);
        node->text = "";
    }
}

static void substitute(const context *c, pl_node *node)
{
    const bool named = node->kind == PL_SCALAR && strstr(node->text, "${") != NULL;

    if (named && *c->filled > PL_YAML_MAX_FILLED)
        node->faulty = true; /* refused already: nothing more is said of its text */
    else if (named)
        replace(c, node);
    for (int i = 0; i < node->n; i++)
        substitute(c, node->item[i]);
}

static bool is_var_name(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '_')
        return false;
    for (; *s != '\0'; s++)
        if (!isalnum((unsigned char)*s) && *s != '_' && *s != '-')
            return false;
    return true;
}

static void substitute_vars(context *c, pl_node *vars)
{
    for (int i = 0; i < vars->n; i++) {
        const pl_node *key = vars->key[i];
        if (vars->item[i]->kind != PL_SCALAR)
            pl_problem_add(c->problems, vars->item[i], "vars.%s: a variable is one plain value, not a list or map",
                           key->text != NULL ? key->text : "");
        else if (key->kind == PL_SCALAR && !is_var_name(key->text))
            pl_problem_add(c->problems, key, "vars.%s: a name has letters, digits, _ and - only", key->text);
        c->n_vars = i;
        substitute(c, vars->item[i]);
    }
    c->n_vars = vars->n;
}

void pl_tree_substitute(pl_node *root, pl_problems *problems, pl_arena *mem)
{
    size_t filled = 0;
    context c = { .problems = problems, .mem = mem, .filled = &filled };
    pl_node *vars = pl_node_get(root, "vars");

    if (vars != NULL && vars->kind == PL_MAPPING) {
        c.vars = vars;
        substitute_vars(&c, vars);
    } else if (vars != NULL && !pl_node_is_null(vars)) {
        pl_problem_add(problems, vars, "vars: names and values (name: value) are expected here");
    }
    for (int i = 0; i < root->n; i++)
        if (root->item[i] != vars)
            substitute(&c, root->item[i]);
}
