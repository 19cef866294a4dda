/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/expression/expression_parts.h"

#include <ctype.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- functions: the same arguments always give the same result ---- */

static const st_function functions[] = {
    { "abs", 1, 1, ST_REAL, ST_ANY, false },
    { "ceil", 1, 1, ST_REAL, ST_REAL, false },
    { "ceiling", 1, 1, ST_REAL, ST_REAL, false },
    { "coalesce", 2, ST_ARGUMENTS_MAX, ST_ANY, ST_ANY, false },
    { "exp", 1, 1, ST_REAL, ST_REAL, false },
    { "floor", 1, 1, ST_REAL, ST_REAL, false },
    { "ifnull", 2, 2, ST_ANY, ST_ANY, false },
    { "instr", 2, 2, ST_STRING, ST_WHOLE, false },
    { "length", 1, 1, ST_STRING, ST_WHOLE, false },
    { "ln", 1, 1, ST_REAL, ST_REAL, false },
    { "log", 1, 2, ST_REAL, ST_REAL, false },
    { "log10", 1, 1, ST_REAL, ST_REAL, false },
    { "log2", 1, 1, ST_REAL, ST_REAL, false },
    { "lower", 1, 1, ST_STRING, ST_STRING, false },
    { "ltrim", 1, 2, ST_STRING, ST_STRING, false },
    { "max", 2, ST_ARGUMENTS_MAX, ST_REAL, ST_ANY, false },
    { "min", 2, ST_ARGUMENTS_MAX, ST_REAL, ST_ANY, false },
    { "nullif", 2, 2, ST_ANY, ST_ANY, false },
    { "pow", 2, 2, ST_REAL, ST_REAL, false },
    { "power", 2, 2, ST_REAL, ST_REAL, false },
    { "replace", 3, 3, ST_STRING, ST_STRING, false },
    { "round", 1, 2, ST_REAL, ST_REAL, false },
    { "rtrim", 1, 2, ST_STRING, ST_STRING, false },
    { "sign", 1, 1, ST_REAL, ST_WHOLE, false },
    { "similarity", 1, 1, ST_STRING, ST_REAL, true },
    { "smarts", 1, 1, ST_STRING, ST_TRUTH, true },
    { "sqrt", 1, 1, ST_REAL, ST_REAL, false },
    { "substr", 2, 3, ST_ANY, ST_STRING, false },
    { "substring", 2, 3, ST_ANY, ST_STRING, false },
    { "trim", 1, 2, ST_STRING, ST_STRING, false },
    { "upper", 1, 1, ST_STRING, ST_STRING, false },
};

const char st_function_words[] = "abs, ceil, coalesce, exp, floor, ifnull, instr, length, ln, log, lower, max, min, nullif, pow, "
                                 "replace, round, sign, similarity, smarts, sqrt, substr, trim, upper";

const st_function *st_function_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strncasecmp(functions[i].name, name, n) == 0 && functions[i].name[n] == '\0')
            return &functions[i];
    return NULL;
}

/* ---- tokens ---- */

void st_refuse(parser *p, size_t at, const char *fmt, ...)
{
    char said[300];
    va_list ap;

    if (p->code != PL_OK)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(said, sizeof said, fmt, ap);
    va_end(ap);
    if (p->at != NULL)
        *p->at = at;
    p->code = pl_fail(p->err, PL_ECONFIG, "%s", said);
    p->now = (token){ .kind = END, .at = at };
}

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_' || c == '$' || ((unsigned char)c & 0x80); }

static size_t skip_blank(parser *p, size_t i)
{
    const char *s = p->text, *end;

    for (;;) {
        if (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r') {
            i++;
        } else if (s[i] == '-' && s[i + 1] == '-') {
            i += strcspn(s + i, "\n");
        } else if (s[i] == '/' && s[i + 1] == '*') {
            end = strstr(s + i + 2, "*/");
            if (end == NULL)
                st_refuse(p, i, "a comment (/*) without its end (*/)");
            i = end != NULL ? (size_t)(end - s) + 2 : i + strlen(s + i);
        } else {
            return i;
        }
    }
}

/* 12, 12.5, .5, 1e-3; a letter after it is not part of it. */
static size_t scan_number(parser *p, size_t i, st_type *type)
{
    const char *s = p->text;
    size_t start = i;

    i += strspn(s + i, "0123456789");
    *type = s[i] == '.' || s[i] == 'e' || s[i] == 'E' ? ST_REAL : ST_WHOLE;
    if (s[i] == '.')
        i += 1 + strspn(s + i + 1, "0123456789");
    if (s[i] == 'e' || s[i] == 'E') {
        size_t sign = s[i + 1] == '+' || s[i + 1] == '-', n = strspn(s + i + 1 + sign, "0123456789");
        i += n ? 1 + sign + n : 0;
    }
    if (is_word(s[i]) || s[i] == '.')
        st_refuse(p, start, "not a number: %.20s", s + start);
    return i;
}

/* Skips to after the closing quote; a doubled quote is one character of the text. */
static size_t scan_quoted(parser *p, size_t i)
{
    const char *s = p->text, quote = s[i];
    size_t start = i++;

    while (s[i] != '\0' && (s[i] != quote || s[i + 1] == quote))
        i += s[i] == quote ? 2 : 1;
    if (s[i] == '\0')
        st_refuse(p, start, "a quote (%c) that is not closed", quote);
    return s[i] ? i + 1 : i;
}

static void scan_sign(parser *p, size_t i)
{
    static const char *const signs[] = {
        "||", "==", "<>", "!=", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "%", "(", ")", ","
    };
    static const struct {
        char sign;
        const char *hint;
    } wrong[] = { { ';', "one expression only, no \";\"" },
                  { '?', "no parameters (?)" },
                  { ':', "no parameters (:)" },
                  { '@', "no parameters (@)" },
                  { '&', "'&' is not known here; write and" },
                  { '|', "'|' is not known here; write or" },
                  { '!', "'!' is not known here; write not" },
                  { '#', "no parameters (#)" },
                  { '.', "a column has no table in front (write mw)" },
                  { '[', "no [ ] here; a list is written (1, 2)" } };

    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
        if (strncmp(p->text + i, signs[k], strlen(signs[k])) == 0) {
            p->now = (token){ .kind = SIGN, .at = i, .n = strlen(signs[k]) };
            p->next = i + p->now.n;
            return;
        }
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        if (p->text[i] == wrong[k].sign)
            st_refuse(p, i, "%s", wrong[k].hint);
    st_refuse(p, i, "the character '%c' is not known here", isprint((unsigned char)p->text[i]) ? p->text[i] : '?');
}

void st_advance(parser *p)
{
    size_t i = skip_blank(p, p->next);
    const char *s = p->text;
    st_type type;

    if (p->code != PL_OK)
        return;
    p->now = (token){ .kind = END, .at = i };
    p->next = i;
    if (s[i] == '\0')
        return;
    if (isdigit((unsigned char)s[i]) || (s[i] == '.' && isdigit((unsigned char)s[i + 1]))) {
        p->next = scan_number(p, i, &type);
        p->now = (token){ NUMBER, i, p->next - i, type };
    } else if (is_word(s[i])) {
        while (is_word(s[p->next]))
            p->next++;
        p->now = (token){ WORD, i, p->next - i, ST_ANY };
    } else if (s[i] == '\'' || s[i] == '"' || s[i] == '`') {
        p->next = scan_quoted(p, i);
        p->now = s[i] == '\'' ? (token){ STRING, i, p->next - i, ST_STRING } : (token){ QUOTED, i + 1, p->next - i - 2, ST_ANY };
    } else {
        scan_sign(p, i);
    }
    if (p->code != PL_OK)
        p->now = (token){ .kind = END, .at = i };
}

bool st_is(const parser *p, kind k, const char *text)
{
    return p->code == PL_OK && p->now.kind == k && strlen(text) == p->now.n &&
           strncasecmp(p->text + p->now.at, text, p->now.n) == 0;
}

bool st_take(parser *p, kind k, const char *text)
{
    bool yes = st_is(p, k, text);

    if (yes)
        st_advance(p);
    return yes;
}

void st_need(parser *p, kind k, const char *text)
{
    if (st_take(p, k, text))
        return;
    if (p->now.kind == END)
        st_refuse(p, p->now.at, "'%s' is missing at the end", text);
    else
        st_refuse(p, p->now.at, "'%s' is expected, not '%.*s'", text, (int)p->now.n, p->text + p->now.at);
}

/* ---- where a problem is ---- */

void st_expression_problem(pl_problems *problems, const pl_node *node, const char *stage, size_t at, const pl_error *err)
{
    pl_node here = node != NULL ? *node : (pl_node){ 0 };
    int n = 0;

    if (err->code == PL_ENOMEM) {
        pl_problem_refused(problems, node, stage);
        return;
    }
    if (node != NULL && node->verbatim > 0 && node->line > 0) {
        for (size_t i = 0; i < at && node->text[i] != '\0'; i++)
            n += ((unsigned char)node->text[i] & 0xc0) != 0x80;
        here.column = node->verbatim + n;
    }
    pl_problem_add(problems, &here, "%s: %s", stage, err->text);
}

/* ---- what SQLite may do ---- */

/* The functions of the list, and those that take their place in SQL. */
static bool is_allowed(const char *function)
{
    static const char *const more[] = { "like", "glob", "scaffold", "fingerprint" };
    bool yes = st_function_find(function, strlen(function)) != NULL;

    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        yes = yes || strcmp(function, more[i]) == 0;
    return yes;
}

int st_expression_only(void *table, int action, const char *a, const char *b, const char *db, const char *source)
{
    (void)db, (void)source;
    switch (action) {
    case SQLITE_SELECT: return SQLITE_OK;
    case SQLITE_READ: return table == NULL || strcmp(a, table) == 0 || strcmp(a, "fingerprint") == 0 ? SQLITE_OK : SQLITE_DENY;
    case SQLITE_FUNCTION: return is_allowed(b) ? SQLITE_OK : SQLITE_DENY;
    default: return SQLITE_DENY;
    }
}
