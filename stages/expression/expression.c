/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "pipeline/base/text.h"
#include "stages/expression/expression_parts.h"

enum { MAX_DEPTH = 60, MAX_COLUMNS = 64 };

/* ---- types ---- */

static bool is_number(st_type t) { return t == ST_WHOLE || t == ST_REAL || t == ST_TRUTH || t == ST_NULL; }

static const char *type_word(st_type t)
{
    static const char *const words[] = { "null", "a condition", "a whole number", "a number", "a text", "a value" };
    return words[t];
}

/* The type of a result that may be either of two values. */
static st_type join(parser *p, size_t at, st_type a, st_type b)
{
    if (a == ST_NULL || a == b)
        return b;
    if (b == ST_NULL)
        return a;
    if ((a == ST_STRING) != (b == ST_STRING))
        st_refuse(p, at, "%s and %s cannot be compared or combined", type_word(a), type_word(b));
    return a == ST_REAL || b == ST_REAL ? ST_REAL : ST_WHOLE;
}

static void need_number(parser *p, size_t at, st_type t)
{
    if (!is_number(t))
        st_refuse(p, at, "a number is expected here, this is %s", type_word(t));
}

static void need_truth(parser *p, size_t at, st_type t)
{
    if (t != ST_TRUTH && t != ST_NULL)
        st_refuse(p, at, "a condition is expected here, this is %s; compare it with something", type_word(t));
}

static void need_text(parser *p, size_t at, st_type t)
{
    if (t != ST_STRING && t != ST_NULL)
        st_refuse(p, at, "a text is expected here, this is %s", type_word(t));
}

/* Both sides of a comparison. */
static void need_alike(parser *p, size_t at, st_type a, st_type b)
{
    if (a == ST_NULL || b == ST_NULL)
        st_refuse(p, at, "nothing is equal to null; write is null or is not null");
    else if ((a == ST_STRING) != (b == ST_STRING))
        st_refuse(p, at, "%s is compared with %s", type_word(a), type_word(b));
}

/* ---- texts that structures are compared with ---- */

static void add_text(parser *p, const token *t, st_text_is is)
{
    st_structural *s = p->structural;

    if (s->n_texts == ST_TEXTS_MAX) {
        st_refuse(p, t->at, "more than %d SMARTS and SMILES in one condition", (int)ST_TEXTS_MAX);
        return;
    }
    s->text[s->n_texts].at = t->at + 1;
    s->text[s->n_texts].n = t->n - 2;
    s->text[s->n_texts++].is = is;
}

static const bare nothing = { .column = -1 };

/* Two values are asked to be equal: a text beside `smiles` or `scaffold` has to be canonical. '' is that of a molecule without rings. */
static void note_equal(parser *p, bare a, bare b)
{
    const int column = a.column >= 0 ? a.column : b.column;
    const char *name = column >= 0 ? p->columns[column].name : "";
    const token *text = a.column >= 0 ? &b.text : &a.text;

    if (p->structural == NULL || p->code != PL_OK || text->n <= 2)
        return;
    if (strcmp(name, "smiles") == 0)
        add_text(p, text, ST_IS_SMILES);
    else if (strcmp(name, "scaffold") == 0)
        add_text(p, text, ST_IS_SCAFFOLD);
}

/* ---- the grammar, from the tightest on ---- */

static st_type parse_or(parser *p);

static bool deeper(parser *p)
{
    if (++p->depth > MAX_DEPTH)
        st_refuse(p, p->now.at, "nested more than %d levels deep", (int)MAX_DEPTH);
    return p->code == PL_OK;
}

static void fail_column(parser *p, const token *t)
{
    const char *names[MAX_COLUMNS], *near;
    char word[64];
    int n = 0;

    (void)snprintf(word, sizeof word, "%.*s", (int)t->n, p->text + t->at);
    for (; p->columns[n].name != NULL && n < MAX_COLUMNS; n++)
        names[n] = p->columns[n].name;
    near = pl_nearest(word, names, n);
    st_refuse(p, t->at, "no such column: %s%s%s%s%s", word, near != NULL ? ", did you mean " : "", near != NULL ? near : "",
              near != NULL ? "?" : "", t->kind == QUOTED ? "; a text is written in 'single quotes'" : "");
}

/* SQLite is given `sql` in the place of n bytes. */
static void add_edit(parser *p, size_t at, size_t n, const char *sql)
{
    st_structural *s = p->structural;

    if (s == NULL || s->n_edits == ST_EDITS_MAX) {
        st_refuse(p, at, "more than %d of smarts, similarity and scaffold in one condition", (int)ST_EDITS_MAX);
        return;
    }
    s->edit[s->n_edits].at = at;
    s->edit[s->n_edits].n = n;
    s->edit[s->n_edits++].sql = sql;
}

static st_type parse_column(parser *p)
{
    const token t = p->now;
    const size_t quote = t.kind == QUOTED;

    for (int i = 0; p->columns[i].name != NULL; i++)
        if (strlen(p->columns[i].name) == t.n && strncasecmp(p->columns[i].name, p->text + t.at, t.n) == 0) {
            p->used |= (uint64_t)1 << i;
            p->value = (bare){ .column = i, .at = t.at };
            if (p->columns[i].sql != NULL)
                add_edit(p, t.at - quote, t.n + 2 * quote, p->columns[i].sql);
            st_advance(p);
            return p->columns[i].type;
        }
    fail_column(p, &t);
    return ST_ANY;
}

/* substr(text, from, count): the first is a text, the others are numbers. */
static void check_argument(parser *p, const st_function *f, int i, size_t at, st_type t)
{
    if (strncmp(f->name, "substr", 6) == 0)
        (i == 0 ? need_text : need_number)(p, at, t);
    else if (f->takes == ST_REAL)
        need_number(p, at, t);
    else if (f->takes == ST_STRING)
        need_text(p, at, t);
}

/* smarts('c1ccccc1'): the pattern must stand there, so that it can be checked before the run. */
static st_type parse_structural(parser *p, const st_function *f)
{
    const token name = p->now;
    st_structural *s = p->structural;
    const bool smarts = f->result == ST_TRUTH;
    token text;

    if (s == NULL || s->bits == NULL)
        st_refuse(p, name.at, "%s is not known here", f->name);
    st_advance(p);
    st_need(p, SIGN, "(");
    text = p->now;
    if (p->code == PL_OK && text.kind != STRING)
        st_refuse(p, text.at, "%s takes one text in 'single quotes', a %s", f->name, smarts ? "SMARTS" : "SMILES");
    if (p->code == PL_OK)
        add_edit(p, text.at, 0, smarts ? s->smiles : s->bits);
    if (p->code != PL_OK)
        return ST_ANY;
    add_text(p, &text, smarts ? ST_IS_SMARTS : ST_IS_MOLECULE);
    st_advance(p);
    st_need(p, SIGN, ")");
    return f->result;
}

static st_type parse_call(parser *p)
{
    const token name = p->now;
    const st_function *f = st_function_find(p->text + name.at, name.n);
    st_type all = ST_NULL;
    int n = 0;

    if (f != NULL && f->structural)
        return parse_structural(p, f);
    if (f == NULL)
        st_refuse(p, name.at, "no such function here: %.*s; there are %s", (int)(name.n < 40 ? name.n : 40), p->text + name.at,
                  st_function_words);
    st_advance(p);
    st_need(p, SIGN, "(");
    do {
        size_t at = p->now.at;
        st_type t = parse_or(p);
        if (p->code != PL_OK)
            return ST_ANY;
        check_argument(p, f, n++, at, t);
        all = f->result == ST_ANY ? join(p, at, all, t) : all;
    } while (st_take(p, SIGN, ","));
    st_need(p, SIGN, ")");
    if (p->code == PL_OK && (n < f->min || n > f->max))
        st_refuse(p, name.at, "%s takes %d%s values, not %d", f->name, f->min, f->max > f->min ? " or more" : "", n);
    return f->result == ST_ANY ? all : f->result;
}

/* The condition after `when`, or the value that the base is compared with. */
static void parse_when(parser *p, bool searched, st_type base, bare value)
{
    size_t at = p->now.at;
    st_type t = parse_or(p);

    if (searched) {
        need_truth(p, at, t);
        return;
    }
    need_alike(p, at, base, t);
    note_equal(p, value, p->value);
}

/* case when mw < 300 then 1 else 2 end, case charge when 0 then .. end */
static st_type parse_case(parser *p)
{
    st_type base = ST_ANY, all = ST_NULL;
    bare value = nothing;
    bool searched, more;

    st_advance(p);
    searched = st_is(p, WORD, "when");
    if (!searched) {
        base = parse_or(p);
        value = p->value;
    }
    st_need(p, WORD, "when");
    do {
        size_t at;
        parse_when(p, searched, base, value);
        st_need(p, WORD, "then");
        at = p->now.at;
        all = join(p, at, all, parse_or(p));
        more = st_take(p, WORD, "when");
    } while (more);
    if (st_take(p, WORD, "else")) {
        size_t at = p->now.at;
        all = join(p, at, all, parse_or(p));
    }
    st_need(p, WORD, "end");
    return all;
}

static st_type parse_cast(parser *p)
{
    st_type t = ST_ANY;

    st_advance(p);
    st_need(p, SIGN, "(");
    (void)parse_or(p);
    st_need(p, WORD, "as");
    if (st_is(p, WORD, "integer") || st_is(p, WORD, "int"))
        t = ST_WHOLE;
    else if (st_is(p, WORD, "real"))
        t = ST_REAL;
    else if (st_is(p, WORD, "text"))
        t = ST_STRING;
    else
        st_refuse(p, p->now.at, "cast: to integer, real or text");
    st_advance(p);
    st_need(p, SIGN, ")");
    return t;
}

static bool call_follows(const parser *p)
{
    size_t i = p->next;

    while (p->text[i] == ' ' || p->text[i] == '\t' || p->text[i] == '\n')
        i++;
    return p->text[i] == '(';
}

static st_type parse_word(parser *p)
{
    if (st_take(p, WORD, "null"))
        return ST_NULL;
    if (st_take(p, WORD, "true") || st_take(p, WORD, "false"))
        return ST_TRUTH;
    if (st_is(p, WORD, "case"))
        return parse_case(p);
    if (st_is(p, WORD, "cast"))
        return parse_cast(p);
    if (st_is(p, WORD, "select") || st_is(p, WORD, "exists") || st_is(p, WORD, "values") || st_is(p, WORD, "with"))
        st_refuse(p, p->now.at, "no query here, only an expression");
    return call_follows(p) ? parse_call(p) : parse_column(p);
}

static st_type parse_value(parser *p)
{
    const token t = p->now;
    st_type type = t.type;

    if (t.kind == NUMBER || t.kind == STRING) {
        p->value = nothing;
        p->value.text = t.kind == STRING ? t : p->value.text;
        st_advance(p);
    } else if (t.kind == QUOTED) {
        type = parse_column(p);
    } else if (t.kind == WORD) {
        type = parse_word(p);
        p->value = p->value.at == t.at && p->value.column >= 0 ? p->value : nothing; /* not a column inside of a call */
    } else if (st_take(p, SIGN, "(")) {
        type = parse_or(p);
        st_need(p, SIGN, ")");
    } else if (t.kind == END) {
        st_refuse(p, t.at, "a value is missing at the end");
    } else {
        st_refuse(p, t.at, "a value is expected, not '%.*s'", (int)t.n, p->text + t.at);
    }
    return type;
}

static st_type parse_unary(parser *p)
{
    size_t at;
    st_type t;

    if (!deeper(p))
        return ST_ANY;
    if (st_take(p, SIGN, "-") || st_take(p, SIGN, "+")) {
        at = p->now.at;
        t = parse_unary(p);
        need_number(p, at, t);
        t = t == ST_TRUTH ? ST_WHOLE : t;
    } else {
        t = parse_value(p);
    }
    if (st_take(p, WORD, "collate")) {
        need_text(p, p->now.at, t);
        if (!st_take(p, WORD, "nocase") && !st_take(p, WORD, "binary") && !st_take(p, WORD, "rtrim"))
            st_refuse(p, p->now.at, "collate: nocase, binary or rtrim");
    }
    p->depth--;
    return t;
}

static st_type parse_concat(parser *p)
{
    size_t at = p->now.at;
    st_type t = parse_unary(p);

    while (st_is(p, SIGN, "||")) {
        need_text(p, at, t);
        st_advance(p);
        at = p->now.at;
        t = parse_unary(p);
        need_text(p, at, t);
        p->value = nothing;
    }
    return t;
}

static st_type arithmetic(parser *p, size_t at, char sign, st_type a, st_type b)
{
    bool whole = a != ST_REAL && b != ST_REAL;

    need_number(p, at, a);
    need_number(p, at, b);
    if (sign == '/' && whole)
        st_refuse(p, at, "a whole number divided by a whole number loses its remainder; write 1.0 * a / b");
    return whole ? ST_WHOLE : ST_REAL;
}

static st_type parse_product(parser *p)
{
    size_t at = p->now.at;
    st_type t = parse_concat(p);

    while (st_is(p, SIGN, "*") || st_is(p, SIGN, "/") || st_is(p, SIGN, "%")) {
        char sign = p->text[p->now.at];
        st_advance(p);
        t = arithmetic(p, at, sign, t, parse_concat(p));
    }
    return t;
}

static st_type parse_sum(parser *p)
{
    size_t at = p->now.at;
    st_type t = parse_product(p);

    while (st_is(p, SIGN, "+") || st_is(p, SIGN, "-")) {
        char sign = p->text[p->now.at];
        st_advance(p);
        t = arithmetic(p, at, sign, t, parse_product(p));
    }
    return t;
}

static void parse_list(parser *p, st_type left, bare value)
{
    st_need(p, SIGN, "(");
    do {
        size_t at = p->now.at;
        need_alike(p, at, left, parse_sum(p));
        note_equal(p, value, p->value);
    } while (st_take(p, SIGN, ","));
    st_need(p, SIGN, ")");
}

static void parse_between(parser *p, st_type left)
{
    size_t at = p->now.at;

    need_alike(p, at, left, parse_sum(p));
    st_need(p, WORD, "and");
    at = p->now.at;
    need_alike(p, at, left, parse_sum(p));
}

static void parse_like(parser *p, size_t at, st_type left)
{
    size_t right = p->now.at;

    need_text(p, at, left);
    need_text(p, right, parse_sum(p));
    if (st_take(p, WORD, "escape")) {
        right = p->now.at;
        need_text(p, right, parse_sum(p));
    }
}

/* is null, is not null, is not true, is 3 */
static void parse_is(parser *p, st_type left, bare value)
{
    size_t at;
    st_type right;

    (void)st_take(p, WORD, "not");
    at = p->now.at;
    right = parse_sum(p);
    if (right != ST_NULL)
        need_alike(p, at, left, right);
    note_equal(p, value, p->value);
}

/* Parses what follows the left side; false: there is no comparison. */
static bool parse_word_test(parser *p, size_t at, st_type left)
{
    const bool negated = st_is(p, WORD, "not");
    const bare value = p->value;

    if (st_take(p, WORD, "isnull") || st_take(p, WORD, "notnull"))
        return true;
    if (st_take(p, WORD, "is")) {
        parse_is(p, left, value);
        return true;
    }
    if (negated)
        st_advance(p);
    if (st_take(p, WORD, "between"))
        parse_between(p, left);
    else if (st_take(p, WORD, "in"))
        parse_list(p, left, value);
    else if (st_take(p, WORD, "like") || st_take(p, WORD, "glob"))
        parse_like(p, at, left);
    else if (negated && st_take(p, WORD, "null"))
        return true;
    else if (negated)
        st_refuse(p, p->now.at, "between, in, like, glob or null is expected after not");
    else
        return false;
    return true;
}

static bool take_relation(parser *p)
{
    static const char *const signs[] = { "<", "<=", ">", ">=", "=", "==", "<>", "!=" };
    bool yes = false;

    for (size_t i = 0; i < sizeof signs / sizeof *signs && !yes; i++)
        yes = st_take(p, SIGN, signs[i]);
    return yes;
}

static st_type parse_comparison(parser *p)
{
    size_t at = p->now.at;
    st_type t = parse_sum(p);
    const bare value = p->value;
    const bool ordered = st_is(p, SIGN, "<") || st_is(p, SIGN, "<=") || st_is(p, SIGN, ">") || st_is(p, SIGN, ">=");
    bool compares;

    if (take_relation(p)) {
        compares = true;
        need_alike(p, at, t, parse_sum(p));
        if (!ordered)
            note_equal(p, value, p->value);
    } else {
        compares = parse_word_test(p, at, t);
    }
    if (!compares)
        return t;
    at = p->now.at;
    if (take_relation(p) || parse_word_test(p, at, ST_ANY))
        st_refuse(p, at, "two comparisons in a row; write a < b and b < c, or between");
    return ST_TRUTH;
}

static st_type parse_not(parser *p)
{
    size_t at;
    st_type t;

    if (!deeper(p))
        return ST_ANY;
    if (st_take(p, WORD, "not")) {
        at = p->now.at;
        t = parse_not(p);
        need_truth(p, at, t);
        t = ST_TRUTH;
    } else {
        t = parse_comparison(p);
    }
    p->depth--;
    return t;
}

static st_type parse_and(parser *p)
{
    size_t at = p->now.at;
    st_type t = parse_not(p);

    while (st_is(p, WORD, "and")) {
        need_truth(p, at, t);
        st_advance(p);
        at = p->now.at;
        t = parse_not(p);
        need_truth(p, at, t);
    }
    return t;
}

static st_type parse_or(parser *p)
{
    size_t at = p->now.at;
    st_type t = parse_and(p);

    while (st_is(p, WORD, "or")) {
        need_truth(p, at, t);
        st_advance(p);
        at = p->now.at;
        t = parse_and(p);
        need_truth(p, at, t);
    }
    return t;
}

pl_code st_expression_check(const char *text, const st_column *columns, uint64_t *used, size_t *at, pl_error *err)
{
    return st_expression_parse(text, columns, NULL, used, at, err);
}

pl_code st_expression_parse(const char *text, const st_column *columns, st_structural *s, uint64_t *used, size_t *at, pl_error *err)
{
    parser p = { .text = text, .columns = columns, .structural = s, .at = at, .err = err };
    size_t start;
    st_type t;

    if (at != NULL)
        *at = 0;
    if (s != NULL)
        s->n_edits = s->n_texts = 0;
    st_advance(&p);
    start = p.now.at;
    t = parse_or(&p);
    if (p.code == PL_OK && p.now.kind != END)
        st_refuse(&p, p.now.at, "one expression only; this goes on with '%.20s'", text + p.now.at);
    need_truth(&p, start, t);
    if (used != NULL)
        *used = p.used;
    return p.code;
}
