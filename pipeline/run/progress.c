/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/log.h"
#include "pipeline/base/wrap.h"

enum { MAX_STAGES = 16 };

typedef struct running_stage {
    char stage[32], item[32], note[96];
    int64_t first, done, total; /* items; first: done by earlier runs, excluded from the rate */
    bool about;
    double began;
} running_stage;

struct pl_progress {
    FILE *to;
    bool tty, quiet, drawn;
    bool fed; /* the stage before the first of `stage` has ended */
    running_stage stage[MAX_STAGES];
    int n;
    double last;
    pl_heartbeat *beat;
};

pl_progress *pl_progress_new(FILE *to, bool tty, bool quiet, pl_heartbeat *beat)
{
    pl_progress *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->to = to;
    p->tty = tty;
    p->quiet = quiet;
    p->beat = beat;
    return p;
}

static void wipe(pl_progress *p)
{
    if (p->drawn)
        (void)fputs("\r\033[K", p->to);
    p->drawn = false;
}

void pl_progress_free(pl_progress *p)
{
    if (p == NULL)
        return;
    wipe(p);
    free(p);
}

/* "graph      45,000 of 100,000 molecules  45 %  1,204/s  46s left  note" */
static void put_stage(const running_stage *w, pl_text *out)
{
    char a[32], b[32];
    double spent = pl_clock() - w->began;
    double rate = spent > 0.2 ? (double)(w->done - w->first) / spent : 0;
    bool known = w->total >= 0 && !(w->about && w->done > w->total);

    pl_text_addf(out, "%-9s %s", w->stage, pl_count_str(w->done, a));
    if (known)
        pl_text_addf(out, " of %s%s", w->about ? "about " : "", pl_count_str(w->total, b));
    pl_text_addf(out, " %s", w->item);
    if (known && w->total > 0)
        pl_text_addf(out, "  %d %%", (int)(100.0 * (double)w->done / (double)w->total));
    if (rate > 0)
        pl_text_addf(out, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
    if (known && rate > 0 && w->total > w->done)
        pl_text_addf(out, "  %s left", pl_duration_str((double)(w->total - w->done) / rate, a));
    if (w->note[0])
        pl_text_addf(out, "  %s", w->note);
}

/* The columns to use: a line that wraps could not be overwritten. */
static int width(FILE *to)
{
    int columns = pl_columns(to);

    columns = columns > 0 ? columns : PL_COLUMNS;
    return columns - 1;
}

/* Items that wait before stage i: what the stage before it has done, or all if that has ended. */
static int64_t waiting(const pl_progress *p, int i)
{
    const int64_t before = p->fed ? p->stage[i].total : p->stage[i].done;
    const int64_t given = i > 0 ? p->stage[i - 1].done : before;

    return given > p->stage[i].done ? given - p->stage[i].done : 0;
}

/* The stage before which the most items wait; of equal ones, the last. */
static int slowest(const pl_progress *p)
{
    int at = p->n - 1;

    for (int i = p->n - 2; i >= 0; i--)
        if (waiting(p, i) > waiting(p, at))
            at = i;
    return at;
}

/* "prepare 45,000 of 100,000 records ...  (read 48,000, graph 44,000)": the slowest stage first, because its time is that of the run; on
 * a narrow terminal the end is cut off. */
static void show(pl_progress *p)
{
    pl_text line = { 0 };
    char a[32];
    int first, n = 0;

    if (p->n == 0)
        return;
    first = slowest(p);
    put_stage(&p->stage[first], &line);
    for (int i = 0; i < p->n; i++)
        if (i != first)
            pl_text_addf(&line, "%s%s %s", n++ == 0 ? "  (" : ", ", p->stage[i].stage, pl_count_str(p->stage[i].done, a));
    pl_text_add(&line, n > 0 ? ")" : "");
    if (!p->tty) {
        pl_log(PL_INFO, "%s", pl_text_str(&line));
    } else {
        (void)fprintf(p->to, "\r\033[K%.*s", width(p->to), pl_text_str(&line));
        (void)fflush(p->to);
        p->drawn = true;
    }
    pl_text_free(&line);
}

static void show_if_due(pl_progress *p)
{
    double now = pl_clock();

    if (p->quiet || now - p->last < (p->tty ? 0.1 : 10.0))
        return;
    p->last = now;
    show(p);
}

static void send_heartbeat(pl_progress *p, const running_stage *w)
{
    pl_heartbeat_stage(p->beat, w->stage, w->item, w->done, w->total, w->note);
}

static running_stage *find(pl_progress *p, const char *stage)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->stage[i].stage, stage) == 0)
            return &p->stage[i];
    return NULL;
}

void pl_progress_start(pl_progress *p, const char *stage, const char *item, int64_t done, int64_t total, bool about)
{
    running_stage *w;

    if (p == NULL || p->n == MAX_STAGES)
        return;
    w = &p->stage[p->n++];
    *w = (running_stage){ .first = done, .done = done, .total = total, .about = about, .began = pl_clock() };
    (void)snprintf(w->stage, sizeof w->stage, "%s", stage);
    (void)snprintf(w->item, sizeof w->item, "%s", item != NULL ? item : "items");
    p->last = w->began;
    send_heartbeat(p, w);
    if (!p->quiet && p->tty)
        show(p);
}

void pl_progress_units(pl_progress *p, const char *stage, int64_t done, int64_t total, bool about)
{
    running_stage *w = p != NULL ? find(p, stage) : NULL;

    if (w == NULL)
        return;
    w->done = done;
    w->total = total;
    w->about = about;
    send_heartbeat(p, w);
    show_if_due(p);
}

void pl_progress_from(pl_progress *p, int64_t done)
{
    running_stage *w = p != NULL && p->n > 0 ? &p->stage[p->n - 1] : NULL;

    if (w == NULL)
        return;
    w->first = w->done = done;
    w->began = pl_clock();
}

void pl_progress_set(pl_progress *p, int64_t done, int64_t total, const char *note)
{
    running_stage *w = p != NULL && p->n > 0 ? &p->stage[p->n - 1] : NULL;

    if (w == NULL)
        return;
    w->done = done;
    w->total = total;
    if (note != NULL)
        (void)snprintf(w->note, sizeof w->note, "%s", note);
    send_heartbeat(p, w);
    show_if_due(p);
}

/* "graph     done in 2.6s: 400 molecules" */
static void put_summary(const pl_progress *p, const char *stage, const char *summary)
{
    pl_text line = { 0 }, wrapped = { 0 };

    pl_text_addf(&line, "%-9s %s\n", stage, summary);
    pl_text_wrap(&wrapped, pl_text_str(&line), width(p->to) + 1);
    (void)fputs(pl_text_str(&wrapped), p->to);
    pl_text_free(&line);
    pl_text_free(&wrapped);
}

void pl_progress_end(pl_progress *p, const char *stage, const char *summary)
{
    running_stage *w = p != NULL ? find(p, stage) : NULL;

    if (p == NULL)
        return;
    wipe(p);
    if (!p->quiet && p->tty)
        put_summary(p, stage, summary);
    else if (!p->quiet)
        pl_log(PL_INFO, "%-9s %s", stage, summary);
    if (w != NULL)
        p->fed = p->n > 1 && (p->fed || w == p->stage);
    if (w != NULL)
        memmove(w, w + 1, (size_t)(&p->stage[p->n--] - (w + 1)) * sizeof *w);
    if (!p->quiet && p->tty)
        show(p);
}
