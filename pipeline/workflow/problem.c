/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/workflow/yaml.h"

static bool known(const pl_problems *p, const pl_problem *x)
{
    for (int i = 0; i < p->n; i++) {
        const pl_problem *y = &p->list[i];
        if (y->line == x->line && y->column == x->column && strcmp(y->text, x->text) == 0 && strcmp(y->origin, x->origin) == 0)
            return true;
    }
    return false;
}

static bool room_for_one(pl_problems *p)
{
    int cap = p->cap ? p->cap * 2 : 16;
    pl_problem *list;

    if (p->n < 0 || p->n >= PL_PROBLEMS_MAX)
        return false;
    if (p->n < p->cap)
        return true;
    list = PL_NEW(p->mem, pl_problem, cap);
    if (list == NULL)
        return false;
    if (p->n > 0)
        memcpy(list, p->list, (size_t)p->n * sizeof *list);
    p->list = list;
    p->cap = cap;
    return true;
}

static void add(pl_problems *p, const char *origin, int line, int column, const char *fmt, va_list ap)
{
    char text[1024];
    pl_problem x = { origin != NULL ? origin : "", line, column, text };

    (void)vsnprintf(text, sizeof text, fmt, ap);
    pl_clean_line(text);
    if (known(p, &x))
        return;
    x.text = pl_strdup(p->mem, text);
    p->refused = p->refused || x.text == NULL;
    if (x.text == NULL)
        x.text = "a problem that could not be described: out of memory";
    if (room_for_one(p))
        p->list[p->n++] = x;
    else if (p->n == 0)
        p->n = -1; /* a problem must never look like none */
}

void pl_problem_add(pl_problems *p, const pl_node *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(p, at != NULL ? at->origin : "", at != NULL ? at->line : 0, at != NULL ? at->column : 0, fmt, ap);
    va_end(ap);
}

void pl_problem_add_file(pl_problems *p, const char *origin, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add(p, origin, 0, 0, fmt, ap);
    va_end(ap);
}

void pl_problem_refused(pl_problems *p, const pl_node *at, const char *origin)
{
    p->refused = true;
    if (at != NULL)
        pl_problem_add(p, at, "out of memory");
    else
        pl_problem_add_file(p, origin, "out of memory");
}

pl_code pl_problems_code(const pl_problems *p)
{
    if (p->n == 0)
        return PL_OK;
    return p->refused || p->n < 0 ? PL_ENOMEM : PL_ECONFIG;
}

static bool after(const pl_problem *a, const pl_problem *b)
{
    int by_name = strcmp(a->origin, b->origin);

    if (by_name != 0 && (a->line == 0) != (b->line == 0))
        return a->line == 0; /* the file first, then the command line */
    if (by_name != 0)
        return by_name > 0;
    return a->line > b->line || (a->line == b->line && a->column > b->column);
}

void pl_problems_sort(pl_problems *p)
{
    for (int i = 1; i < p->n; i++) {
        pl_problem x = p->list[i];
        int j = i;
        for (; j > 0 && after(&p->list[j - 1], &x); j--)
            p->list[j] = p->list[j - 1];
        p->list[j] = x;
    }
}

void pl_problems_write(const pl_problems *p, pl_text *out)
{
    for (int i = 0; i < p->n; i++) {
        const pl_problem *x = &p->list[i];
        if (x->line > 0)
            pl_text_addf(out, "%s:%d:%d: %s\n", x->origin, x->line, x->column, x->text);
        else
            pl_text_addf(out, "%s%s%s\n", x->origin, x->origin[0] ? ": " : "", x->text);
    }
    if (p->n < 0)
        pl_text_add(out, "out of memory\n");
}
