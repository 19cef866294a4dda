/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/progress.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "pipeline/engine.h"

struct pl_progress {
    FILE *to;
    bool tty, quiet, drawn;
    char stage[32], item[32], note[96];
    int64_t first, done, total; /* first: where this run began, for an honest rate */
    double began, last;
};

pl_progress *pl_progress_new(FILE *to, bool tty, bool quiet)
{
    pl_progress *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->to = to;
    p->tty = tty;
    p->quiet = quiet;
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
static void put_line(const pl_progress *p, pl_text *out)
{
    char a[32], b[32];
    double spent = pl_clock() - p->began;
    double rate = spent > 0.2 ? (double)(p->done - p->first) / spent : 0;

    pl_text_addf(out, "%-9s %s", p->stage, pl_count_str(p->done, a));
    if (p->total >= 0)
        pl_text_addf(out, " of %s", pl_count_str(p->total, b));
    pl_text_addf(out, " %s", p->item);
    if (p->total > 0)
        pl_text_addf(out, "  %d %%", (int)(100.0 * (double)p->done / (double)p->total));
    if (rate > 0)
        pl_text_addf(out, rate < 10 ? "  %.1f/s" : "  %.0f/s", rate);
    if (rate > 0 && p->total > p->done)
        pl_text_addf(out, "  %s left", pl_duration_str((double)(p->total - p->done) / rate, a));
    if (p->note[0])
        pl_text_addf(out, "  %s", p->note);
}

static void show(pl_progress *p)
{
    pl_text line = { 0 };

    put_line(p, &line);
    if (!p->tty) {
        pl_log(PL_INFO, "%s", pl_text_str(&line));
    } else {
        (void)fprintf(p->to, "\r\033[K%.*s", 110, pl_text_str(&line));
        (void)fflush(p->to);
        p->drawn = true;
    }
    pl_text_free(&line);
}

void pl_progress_start(pl_progress *p, const char *stage, const char *item, int64_t done, int64_t total)
{
    if (p == NULL)
        return;
    (void)snprintf(p->stage, sizeof p->stage, "%s", stage);
    (void)snprintf(p->item, sizeof p->item, "%s", item ? item : "items");
    p->note[0] = '\0';
    p->first = p->done = done;
    p->total = total;
    p->began = p->last = pl_clock();
    if (!p->quiet && p->tty)
        show(p);
}

void pl_progress_set(pl_progress *p, int64_t done, int64_t total, const char *note)
{
    double now = pl_clock();

    if (p == NULL)
        return;
    p->done = done;
    p->total = total;
    if (note != NULL)
        (void)snprintf(p->note, sizeof p->note, "%s", note);
    if (p->quiet || now - p->last < (p->tty ? 0.1 : 10.0))
        return;
    p->last = now;
    show(p);
}

void pl_progress_end(pl_progress *p, const char *summary)
{
    if (p == NULL)
        return;
    wipe(p);
    if (!p->quiet && p->tty)
        (void)fprintf(p->to, "%-9s %s\n", p->stage, summary);
    else if (!p->quiet)
        pl_log(PL_INFO, "%-9s %s", p->stage, summary);
}
