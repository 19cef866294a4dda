/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <yaml.h>

typedef struct anchor {
    const char *name;
    const pl_node *node;
    struct anchor *next;
} anchor;

typedef struct reader {
    yaml_parser_t parser;
    const char *text, *origin;
    size_t len;
    pl_problems *problems;
    pl_arena *mem;
    anchor *anchors;
    int n_nodes;
    size_t n_copied; /* bytes of the texts that aliases copied */
    bool failed;     /* a problem after which the reader stops */
} reader;

/* Also used as a place for messages: libyaml counts from 0, people from 1. */
static pl_node place(const reader *r, yaml_mark_t at)
{
    return (pl_node){ .origin = r->origin, .line = (int)at.line + 1, .column = (int)at.column + 1 };
}

static void *give_up(reader *r, yaml_mark_t at, const char *text)
{
    pl_node here = place(r, at);
    if (!r->failed)
        pl_problem_add(r->problems, &here, "%s", text);
    r->failed = true;
    return NULL;
}

static void *refuse(reader *r, yaml_mark_t at)
{
    r->problems->refused = true;
    return give_up(r, at, "out of memory");
}

static pl_node *node_new(reader *r, pl_node_kind kind, yaml_mark_t at)
{
    pl_node *node;

    if (++r->n_nodes > PL_YAML_MAX_NODES)
        return give_up(r, at, "the file has more than 100,000 values once its aliases are written out");
    node = PL_NEW(r->mem, pl_node, 1);
    if (node == NULL)
        return refuse(r, at);
    *node = place(r, at);
    node->kind = kind;
    return node;
}

bool pl_node_add(pl_node *node, pl_node *key, pl_node *item, pl_arena *mem)
{
    /* Doubles when n is a power of two, so no capacity need be kept. */
    if ((node->n & (node->n - 1)) == 0) {
        int cap = node->n ? node->n * 2 : 1;
        pl_node **items = PL_NEW(mem, pl_node *, cap), **keys = key != NULL ? PL_NEW(mem, pl_node *, cap) : NULL;
        if (items == NULL || (key != NULL && keys == NULL))
            return false;
        for (int i = 0; i < node->n; i++) {
            items[i] = node->item[i];
            if (key != NULL)
                keys[i] = node->key[i];
        }
        node->item = items;
        node->key = keys;
    }
    node->item[node->n] = item;
    if (key != NULL)
        node->key[node->n] = key;
    node->n++;
    return true;
}

static yaml_mark_t mark_of(const char *text, size_t offset)
{
    yaml_mark_t at = { .index = offset };

    for (size_t i = 0; i < offset; i++) {
        at.line += text[i] == '\n';
        at.column = text[i] == '\n' ? 0 : at.column + 1;
    }
    return at;
}

/* Does that line of the text hold `${`? */
static bool line_substitutes(const reader *r, size_t line)
{
    for (size_t i = 0; i + 1 < r->len && line != (size_t)-1; i++) {
        if (line == 0 && r->text[i] == '$' && r->text[i + 1] == '{')
            return true;
        line -= r->text[i] == '\n';
    }
    return false;
}

/* What to write instead, for two common slips; "" for others. */
static const char *advice(const reader *r, size_t line)
{
    const char *context = r->parser.context;

    if (line_substitutes(r, line))
        return "; inside { } or [ ] write \"${...}\" in quotes";
    return context != NULL && strstr(context, "alias") != NULL ? "; put a value that begins with * in quotes" : "";
}

static bool next(reader *r, yaml_event_t *e)
{
    const yaml_parser_t *p = &r->parser;
    yaml_mark_t at = p->problem_mark;
    char text[256];

    if (r->failed)
        return false;
    if (yaml_parser_parse(&r->parser, e))
        return true;
    if (p->error == YAML_MEMORY_ERROR)
        return refuse(r, at) != NULL;
    if (p->error == YAML_READER_ERROR) {
        at = mark_of(r->text, p->problem_offset);
        (void)snprintf(text, sizeof text, "not UTF-8 text: %s", p->problem != NULL ? p->problem : "");
    } else {
        at = p->problem_mark;
        (void)snprintf(text, sizeof text, "not YAML: %s%s%s%s", p->problem != NULL ? p->problem : "syntax error",
                       p->context != NULL ? ", " : "", p->context != NULL ? p->context : "", advice(r, at.line));
    }
    return give_up(r, at, text) != NULL;
}

static pl_node *copy(reader *r, const pl_node *from, yaml_mark_t at)
{
    pl_node *to = node_new(r, from->kind, at);

    if (to == NULL)
        return NULL;
    r->n_copied += from->kind == PL_SCALAR ? strlen(from->text) : 0;
    if (r->n_copied > PL_YAML_MAX_BYTES)
        return give_up(r, at, "the file has more than 10 MiB of text once its aliases are written out");
    *to = *from;
    to->n = 0;
    to->key = to->item = NULL;
    for (int i = 0; i < from->n; i++) {
        pl_node *item = copy(r, from->item[i], at);
        if (item == NULL)
            return NULL;
        if (!pl_node_add(to, from->key != NULL ? from->key[i] : NULL, item, r->mem))
            return refuse(r, at);
    }
    return to;
}

static pl_node *take_alias(reader *r, const yaml_event_t *e)
{
    for (const anchor *a = r->anchors; a != NULL; a = a->next)
        if (strcmp(a->name, (const char *)e->data.alias.anchor) == 0)
            return copy(r, a->node, e->start_mark);
    return give_up(r, e->start_mark, "an alias (*name) without an anchor (&name) before it");
}

static void keep_anchor(reader *r, const char *name, const pl_node *node, yaml_mark_t at)
{
    anchor *a = name != NULL ? PL_NEW(r->mem, anchor, 1) : NULL;

    if (a == NULL) {
        (void)refuse(r, at);
        return;
    }
    *a = (anchor){ name, node, r->anchors };
    r->anchors = a;
}

static pl_node *take(reader *r, const yaml_event_t *e, int depth);

/* The column of a text that is in the file character by character, on one line and without escapes; else 0. */
static int verbatim_column(const yaml_event_t *e, const char *text)
{
    size_t quotes = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? 0 : 2, n = 0;

    for (const char *s = text; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    if (e->start_mark.line != e->end_mark.line || e->end_mark.index - e->start_mark.index != n + quotes)
        return 0;
    return (int)(e->start_mark.column + quotes / 2 + 1);
}

static pl_node *take_scalar(reader *r, const yaml_event_t *e)
{
    pl_node *node = node_new(r, PL_SCALAR, e->start_mark);

    if (node == NULL)
        return NULL;
    node->text = pl_strndup(r->mem, (const char *)e->data.scalar.value, e->data.scalar.length);
    node->quoted = e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (node->text == NULL)
        return refuse(r, e->start_mark);
    node->verbatim = verbatim_column(e, node->text);
    if (strlen(node->text) != e->data.scalar.length)
        pl_problem_add(r->problems, node, "a NUL character inside a text");
    return node;
}

static pl_node *take_sequence(reader *r, const yaml_event_t *start, int depth)
{
    pl_node *list = node_new(r, PL_SEQUENCE, start->start_mark);
    yaml_event_t e;

    while (list != NULL && next(r, &e)) {
        bool end = e.type == YAML_SEQUENCE_END_EVENT;
        pl_node *item = end ? NULL : take(r, &e, depth + 1);
        yaml_event_delete(&e);
        if (end)
            return list;
        if (item == NULL)
            return NULL;
        if (!pl_node_add(list, NULL, item, r->mem))
            return refuse(r, start->start_mark);
    }
    return NULL;
}

static void check_key(reader *r, const pl_node *map, const pl_node *key)
{
    if (key->kind != PL_SCALAR) {
        pl_problem_add(r->problems, key, "a key must be plain text");
        return;
    }
    if (strcmp(key->text, "<<") == 0 && !key->quoted)
        pl_problem_add(r->problems, key, "merge keys (<<) are not supported: write the settings out");
    for (int i = 0; i < map->n; i++)
        if (map->key[i]->kind == PL_SCALAR && strcmp(map->key[i]->text, key->text) == 0)
            pl_problem_add(r->problems, key, "%s: given twice, first in line %d; keep one", key->text, map->key[i]->line);
}

static pl_node *take_mapping(reader *r, const yaml_event_t *start, int depth)
{
    pl_node *map = node_new(r, PL_MAPPING, start->start_mark), *key = NULL;
    yaml_event_t e;

    while (map != NULL && next(r, &e)) {
        bool end = e.type == YAML_MAPPING_END_EVENT;
        pl_node *node = end ? NULL : take(r, &e, depth + 1);
        yaml_event_delete(&e);
        if (end)
            return map;
        if (node == NULL)
            return NULL;
        if (key == NULL) {
            check_key(r, map, node);
            key = node;
        } else {
            if (!pl_node_add(map, key, node, r->mem))
                return refuse(r, start->start_mark);
            key = NULL;
        }
    }
    return NULL;
}

static pl_node *take(reader *r, const yaml_event_t *e, int depth)
{
    const yaml_char_t *tag = NULL, *name = NULL;
    pl_node *node = NULL;

    if (depth > PL_YAML_MAX_DEPTH)
        return give_up(r, e->start_mark, "nested more than 64 levels deep");
    switch (e->type) {
    case YAML_ALIAS_EVENT: return take_alias(r, e);
    case YAML_SCALAR_EVENT:
        tag = e->data.scalar.tag;
        name = e->data.scalar.anchor;
        node = take_scalar(r, e);
        break;
    case YAML_SEQUENCE_START_EVENT:
        tag = e->data.sequence_start.tag;
        name = e->data.sequence_start.anchor;
        node = take_sequence(r, e, depth);
        break;
    case YAML_MAPPING_START_EVENT:
        tag = e->data.mapping_start.tag;
        name = e->data.mapping_start.anchor;
        node = take_mapping(r, e, depth);
        break;
    default: return give_up(r, e->start_mark, "a value was expected here");
    }
    if (node != NULL && tag != NULL)
        pl_problem_add(r->problems, node, "tags (%s) are not used here: remove it", (const char *)tag);
    if (node != NULL && name != NULL)
        keep_anchor(r, pl_strdup(r->mem, (const char *)name), node, e->start_mark);
    return node;
}

/* Reads the only document of the stream; a second one is an error. */
static pl_node *take_document(reader *r)
{
    pl_node *root = NULL;
    yaml_event_t e;
    int n_documents = 0;

    while (next(r, &e)) {
        yaml_event_type_t type = e.type;
        if (type == YAML_DOCUMENT_START_EVENT && ++n_documents > 1)
            (void)give_up(r, e.start_mark, "a second document (---) starts here; a workflow file has one");
        else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT &&
                 type != YAML_STREAM_END_EVENT)
            root = take(r, &e, 1);
        yaml_event_delete(&e);
        if (type == YAML_STREAM_END_EVENT)
            break;
    }
    if (n_documents == 0 && !r->failed)
        pl_problem_add_file(r->problems, r->origin, "the file is empty");
    return r->failed ? NULL : root;
}

/* Reports tabs in the indentation; libyaml's own message about them does not help. */
static bool find_tabs(const char *s, size_t len, const char *origin, pl_problems *problems)
{
    bool found = false, front = true;
    pl_node at = { .origin = origin, .line = 1 };

    for (size_t i = 0; i < len; i++) {
        at.column++;
        if (front && s[i] == '\t') {
            pl_problem_add(problems, &at, "a tab in the indentation: use spaces");
            found = true;
        }
        front = s[i] == '\n' || (front && s[i] == ' ');
        if (s[i] == '\n') {
            at.line++;
            at.column = 0;
        }
    }
    return found;
}

pl_node *pl_yaml_parse(const char *text, size_t len, const char *origin, pl_problems *problems, pl_arena *mem)
{
    reader r = { .text = text, .len = len, .origin = origin, .problems = problems, .mem = mem };
    int before = problems->n;
    pl_node *root;

    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        r.text = text += 3;
        r.len = len -= 3;
    }
    if (find_tabs(text, len, origin, problems))
        return NULL;
    if (!yaml_parser_initialize(&r.parser)) {
        pl_problem_refused(problems, NULL, origin);
        return NULL;
    }
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, len);
    root = take_document(&r);
    yaml_parser_delete(&r.parser);
    if (root == NULL && problems->n == before)
        pl_problem_refused(problems, NULL, origin);
    return root;
}

bool pl_yaml_bytes(pl_bytes *out, const char *path, pl_problems *problems, pl_arena *mem)
{
    struct stat st;
    pl_error err = { 0 };
    pl_code code;

    if (stat(path, &st) != 0)
        pl_problem_add_file(problems, path, "%s", strerror(errno));
    else if (!S_ISREG(st.st_mode)) /* opening a pipe could block for ever */
        pl_problem_add_file(problems, path, "not a regular file");
    else if (st.st_size > PL_YAML_MAX_BYTES)
        pl_problem_add_file(problems, path, "larger than 10 MiB: this is not a workflow file");
    else if ((code = pl_file_read(out, path, mem, &err)) == PL_ENOMEM)
        pl_problem_refused(problems, NULL, path);
    else if (code != PL_OK)
        pl_problem_add_file(problems, "", "%s", err.text);
    else if (out->len > 0 && memchr(out->data, '\0', out->len) != NULL) /* results.db in place of its workflow */
        pl_problem_add_file(problems, path,
                            "this is not UTF-8 text, but a database, another binary file or UTF-16: give the workflow");
    else
        return true;
    return false;
}

pl_node *pl_node_get(const pl_node *map, const char *key)
{
    for (int i = 0; map != NULL && map->kind == PL_MAPPING && i < map->n; i++)
        if (map->key[i]->kind == PL_SCALAR && strcmp(map->key[i]->text, key) == 0)
            return map->item[i];
    return NULL;
}

bool pl_node_is_null(const pl_node *node)
{
    return node->kind == PL_SCALAR && !node->quoted &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}
