/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "stages/commands/commands.h"
#include "stages/database/results.h"
#include "stages/files/out_file.h"
#include "stages/report/report.h"

static const pl_opt opts[] = {
    { "--output", 'o', "FILE", "write there (default: report.html beside the database); - is standard output" },
    { "--training", 't', "WHERE", "results of the training of the model: nearest training molecules are drawn from there" },
    { "--top", 'n', "N", "ranked molecules to show, with structures (default 50, at most 1000)" },
    { 0 }
};

static const char *beside(const char *results, pl_arena *mem)
{
    const char *slash = strrchr(results, '/');
    return pl_sprintf(mem, "%.*sreport.html", slash != NULL ? (int)(slash - results) + 1 : 0, results);
}

static pl_code put(const char *path, const pl_text *page, pl_arena *mem, pl_error *err)
{
    st_out out = { 0 };
    pl_code code;

    if (strcmp(path, "-") == 0)
        return fwrite(pl_text_str(page), 1, page->len, stdout) == page->len ? PL_OK : pl_fail_errno(err, "standard output");
    code = st_out_open(&out, path, mem, err);
    if (code == PL_OK)
        code = st_out_add(&out, page, err);
    if (code == PL_OK)
        code = st_out_keep(&out, err);
    st_out_close(&out);
    return code;
}

typedef struct asked {
    const pl_app *app;
    int64_t top;
} asked;

/* *out is NULL without --training. */
static pl_code open_training(pl_store **out, const st_ask *ask, pl_error *err)
{
    const asked *a = ask->ctx;
    const char *where = pl_arg(ask->args, "--training"), *path = NULL;
    pl_code code;

    *out = NULL;
    if (where == NULL)
        return PL_OK;
    code = st_results_find(a->app, where, &path, ask->mem, err);
    return code == PL_OK ? pl_store_open_read(out, path, a->app->schema, err) : code;
}

static void drawings_tell(const st_drawn *d)
{
    if (d->n_plain > 0)
        pl_cmd_say("%lld structures are shown as SMILES only, %lld are drawn: %s", (long long)d->n_plain, (long long)d->n_drawn,
                   d->why);
    if (d->unmoved[0] != '\0')
        pl_cmd_say("what moved the scores of a model is left out: %s", d->unmoved);
    if (d->n_overlapping > 0)
        pl_cmd_say("%lld of %lld drawings have atoms that touch or bonds that cross", (long long)d->n_overlapping,
                   (long long)d->n_drawn);
    if (d->n_no_stereo > 0)
        pl_cmd_say("%lld of %lld drawings do not show the stereo of their molecule, and say so", (long long)d->n_no_stereo,
                   (long long)d->n_drawn);
}

static pl_code report(const st_ask *ask, pl_error *err)
{
    const char *path = pl_arg(ask->args, "--output");
    st_drawn drawn = { 0 };
    pl_text page = { 0 };
    pl_store *training = NULL;
    char size[32];
    size_t bytes;
    pl_code code = open_training(&training, ask, err);

    path = path != NULL ? path : beside(ask->store->results_path, ask->mem);
    if (code == PL_OK)
        code = path != NULL ? st_report_make(&page, ask->store, training, ((const asked *)ask->ctx)->top, &drawn, ask->mem, err)
                            : pl_fail(err, PL_ENOMEM, "out of memory");
    pl_store_close(training);
    bytes = page.len;
    if (code == PL_OK)
        code = put(path, &page, ask->mem, err);
    pl_text_free(&page);
    if (code != PL_OK)
        return code;
    drawings_tell(&drawn);
    if (strcmp(path, "-") != 0)
        (void)fprintf(stderr, "%s (%s)\n", path, pl_size_str((double)bytes, size));
    return PL_OK;
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *top_text = pl_arg(args, "--top");
    asked a = { app, ST_REPORT_TOP };

    if (top_text != NULL && (!pl_parse_int(top_text, &a.top) || a.top < 0 || a.top > ST_REPORT_TOP_MAX))
        return pl_cmd_usage(args, "--top %s: a whole number from 0 to %d is expected", top_text, ST_REPORT_TOP_MAX);
    return st_results_ask(app, args, args->n ? args->arg[0] : NULL, report, &a);
}

const pl_cmd st_cmd_report = {
    .name = "report",
    .args = "[WORKDIR | WORKFLOW | DATABASE]",
    .help = "write one HTML page: funnel, ranking, plots, failures, timings",
    .about = "The page is one file without network access and depends only on the database:\n"
             "the same database gives the same bytes. Safe during a run. Without an argument:\n"
             "./results.db, or the newest runs/*/results.db. The chemistry worker draws the\n"
             "structures; one that cannot be drawn is shown as SMILES. One script sorts,\n"
             "filters and downloads the ranking; everything can be read without it.\n"
             "\n"
             "  molsieve report\n"
             "  molsieve report runs/screen --top 200 -o screen.html\n"
             "  molsieve report runs/screen --training runs/train\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
