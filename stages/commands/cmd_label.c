/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/file.h"
#include "pipeline/base/stop.h"
#include "pipeline/lock/lock.h"
#include "stages/commands/commands.h"
#include "stages/database/results.h"
#include "stages/labels/label_file.h"

static const pl_opt opts[] = { { "--property", 'p', "NAME",
                                 "what was measured; needed unless one property of the database is a column" },
                               { "--column", 'c', "NAME", "column with the values (as the property)" },
                               { "--unit", 0, "UNIT", "of the values; it must be that of the property, or --factor converts it" },
                               { "--factor", 0, "X", "a value times this is one in the property's unit" },
                               { "--new", 0, NULL, "a property that the database does not have" },
                               { "--class", 0, NULL, "with --new: its values are the classes 0 and 1" },
                               { "--replace", 0, NULL, "take new values for molecules that have another" },
                               { "--input-format", 0, "NAME", "csv, tsv, sdf ... (by the name of the file, else its first bytes)" },
                               { "--dry-run", 'n', NULL, "check everything, store nothing" },
                               { 0 } };

typedef struct labelling {
    const pl_app *app;
    const pl_args *args;
    st_label_ask ask;
    st_label_file file;
    const char *results;
    pl_arena *mem;
} labelling;

/* ---- what is said ---- */

static void say_count(int64_t n, const char *what)
{
    if (n > 0)
        pl_cmd_print("  %lld %s\n", (long long)n, what);
}

static void say(const labelling *l)
{
    const st_label_file *f = &l->file;
    const bool dry = pl_arg(l->args, "--dry-run") != NULL;
    const int64_t fresh = f->n - f->n_known - f->n_replaced, stored = fresh + f->n_replaced;
    const char *unit = f->unit[0] != '\0' ? f->unit : f->stated;
    const char *in = unit[0] != '\0' ? ", in " : "";
    const char *comma = stored > 0 ? "," : "";

    pl_cmd_print("%s: %lld %s of %s%s%s%s from %lld %s of %s%s\n", f->property, (long long)stored,
                 pl_plural(stored, "label", "labels"), l->results, in, unit, comma, (long long)f->n_rows,
                 pl_plural(f->n_rows, "row", "rows"), f->path, dry ? " (--dry-run: nothing was stored)" : "");
    say_count(f->n_replaced, pl_plural(f->n_replaced, "of them replaces another value", "of them replace another value"));
    say_count(f->n_known, "known already");
    say_count(f->n_twice,
              pl_plural(f->n_twice, "row repeats the value of an earlier row", "rows repeat the value of an earlier row"));
    say_count(f->n_limits, pl_plural(f->n_limits, "limit such as >10 gives no label (read: {censored: bound} learns from it)",
                                     "limits such as >10 give no label (read: {censored: bound} learns from them)"));
    say_count(f->n_empty, pl_plural(f->n_empty, "row without a value", "rows without a value"));
    if (f->unread != NULL)
        pl_cmd_print("  %s was moved or changed since it was read: the unit and the kind of its %s were not compared\n", f->unread,
                     f->property);
    if (!dry && stored > 0)
        pl_cmd_print("round %lld; `molsieve run` trains on them, `molsieve next` leaves these molecules out\n",
                     (long long)f->round);
}

static int say_problems(const labelling *l)
{
    const st_label_file *f = &l->file;
    pl_error err = { 0 };

    pl_cmd_say_lines(pl_text_str(&f->problems));
    (void)pl_fail(&err, PL_ECONFIG, "%s: %lld problem%s%s; nothing was stored", f->path, (long long)f->n_problems,
                  f->n_problems == 1 ? "" : "s", f->n_problems > 100 ? ", of which the first 100 are shown" : "");
    return pl_cmd_fail(&err);
}

/* ---- the database ---- */

/* Under the lock of the work directory, so that no run is writing. */
static pl_code store_labels(labelling *l, pl_error *err)
{
    const char *slash = strrchr(l->results, '/');
    const char *dir = slash != NULL ? pl_strndup(l->mem, l->results, (size_t)(slash - l->results)) : ".";
    pl_workflow wf = { .workdir = dir != NULL && dir[0] == '\0' ? "/" : dir, .storage = { .results = l->results } };
    pl_locks locks;
    pl_store *s = NULL;
    pl_code code;

    wf.storage.features = dir != NULL ? pl_sprintf(l->mem, "%s/features.db", dir) : NULL;
    code = wf.storage.features != NULL ? pl_locks_take(&locks, &wf, err) : pl_fail(err, PL_ENOMEM, "a path");
    if (code != PL_OK)
        return code;
    code = pl_store_open(&s, &wf, l->app->schema, err);
    if (code == PL_OK)
        pl_store_guard(s, &locks);
    if (code == PL_OK)
        code = st_label_file_read(&l->file, &l->ask, s, l->mem, err);
    if (code == PL_OK && l->file.n_problems == 0)
        code = st_label_file_store(&l->file, s, err);
    pl_store_close(s);
    pl_locks_drop(&locks);
    return code;
}

static pl_code look(labelling *l, pl_error *err)
{
    pl_store *s = NULL;
    pl_code code = pl_store_open_read(&s, l->results, l->app->schema, err);

    if (code == PL_OK)
        code = st_label_file_read(&l->file, &l->ask, s, l->mem, err);
    pl_store_close(s);
    return code;
}

static pl_code find(labelling *l, pl_error *err)
{
    const char *path = NULL;
    char *whole;
    pl_code code = st_results_find(l->app, l->args->arg[0], &path, l->mem, err);

    if (code != PL_OK)
        return code;
    whole = realpath(path, NULL);
    if (whole == NULL)
        return pl_fail(err, PL_EIO, "%s does not exist; run the workflow first", path);
    l->results = pl_strdup(l->mem, whole);
    free(whole);
    return l->results != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a path");
}

/* ---- the command ---- */

static int run_with(labelling *l)
{
    pl_error err = { 0 };
    pl_code code = find(l, &err);

    if (code == PL_OK)
        code = pl_arg(l->args, "--dry-run") != NULL ? look(l, &err) : store_labels(l, &err);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    if (l->file.n_problems > 0)
        return say_problems(l);
    say(l);
    return 0;
}

static int run(const pl_app *app, const pl_args *args)
{
    labelling l = { .app = app,
                    .args = args,
                    .ask = { .path = args->arg[1],
                             .format = pl_arg(args, "--input-format"),
                             .property = pl_arg(args, "--property"),
                             .column = pl_arg(args, "--column"),
                             .unit = pl_arg(args, "--unit"),
                             .is_class = pl_arg(args, "--class") != NULL,
                             .make = pl_arg(args, "--new") != NULL,
                             .replace = pl_arg(args, "--replace") != NULL } };
    const char *factor = pl_arg(args, "--factor");
    pl_stop stop;
    int status;

    if (args->n > 2)
        return pl_cmd_usage(args, "one database and one table; '%s' is a third", args->arg[2]);
    if (factor != NULL && (!pl_parse_real(factor, &l.ask.factor) || l.ask.factor == 0))
        return pl_cmd_usage(args, "--factor %s: a number other than 0 is expected", factor);
    if (l.ask.make && l.ask.property == NULL)
        return pl_cmd_usage(args, "--new: name the property with --property");
    if (l.ask.is_class && !l.ask.make)
        return pl_cmd_usage(args, "--class: only of a property that --new makes");
    l.mem = pl_arena_new(1 << 18);
    pl_stop_begin(&stop, 0, 0);
    status = l.mem != NULL ? run_with(&l) : pl_cmd_no_memory();
    pl_stop_end(&stop);
    st_label_file_free(&l.file);
    pl_arena_free(l.mem);
    return status;
}

const pl_cmd st_cmd_label = {
    .name = "label",
    .args = "WORKDIR | WORKFLOW | DATABASE TABLE [options]",
    .help = "add measured values to the molecules of a screen",
    .about = "TABLE is CSV, TSV or SDF. A row names its molecule by a column InChIKey, a title\n"
             "(id, name ...) or SMILES; if it has several, they must mean the same molecule.\n"
             "Every problem is told with its line: an unknown molecule, one molecule with two\n"
             "values, a value that is no number, another unit. With a problem nothing is\n"
             "stored. Limits such as >10 are labels only if the workflow has read: {censored:\n"
             "bound}.\n"
             "\n"
             "The labels are kept beside the library: the next `molsieve run` of a workflow\n"
             "that trains on this property trains again, and does not prepare the library\n"
             "again. The same table a second time changes nothing.\n"
             "\n"
             "  molsieve next runs/screen -n 96 -o plate.csv\n"
             "  molsieve label runs/screen measured.csv --property pIC50\n"
             "  molsieve label runs/screen ic50.csv -p IC50 --unit uM --factor 1000 -n\n",
    .opts = opts,
    .min_args = 2,
    .run = run,
};
