/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "stages/commands/commands.h"
#include "stages/database/results.h"

static const pl_opt opts[] = { { "--to", 'o', "FILE", "backup: the copy to write (default: beside the database, with the date)" },
                               { "--alone", 0, NULL, "prune: no other workflow uses the features.db outside the work directory" },
                               { "--results-only", 0, NULL, "check and digest: leave features.db out" },
                               { 0 } };

static pl_code open_features(const pl_args *args, pl_store *s, pl_error *err)
{
    if (pl_arg(args, "--results-only") != NULL || access(s->features_path, F_OK) != 0)
        return PL_OK;
    return pl_store_features(s, err);
}

static pl_code do_check(const pl_args *args, pl_store *s, pl_error *err)
{
    pl_text report = { 0 };
    bool good = false;
    pl_code code = open_features(args, s, err);

    if (code == PL_OK)
        code = pl_store_check(s, &good, &report, err);
    pl_cmd_print("%s", pl_text_str(&report));
    pl_text_free(&report);
    if (code == PL_OK && !good)
        code = pl_fail(err, PL_EDATA, "%s: damaged; restore a backup, or run the workflow with --fresh", s->results_path);
    return code;
}

static pl_code do_digest(const pl_args *args, pl_store *s, pl_error *err)
{
    char results[65], blocks[65];
    pl_code code = open_features(args, s, err);

    if (code == PL_OK)
        code = pl_store_digest(s, results, err);
    if (code != PL_OK)
        return code;
    pl_cmd_print("%s  results\n", results);
    if (s->features == NULL)
        return PL_OK;
    code = pl_store_digest_blocks(s, blocks, err);
    if (code == PL_OK)
        pl_cmd_print("%s  features\n", blocks);
    return code;
}

static pl_code do_schema(const pl_args *args, pl_store *s, pl_error *err)
{
    static const char sql[] =
        "SELECT m.type,m.name,p.name,p.type,coalesce(d.unit,''),coalesce(d.description,'') FROM sqlite_master m,"
        " pragma_table_info(m.name) p LEFT JOIN column_doc d ON d.tbl=m.name AND d.col=p.name"
        " WHERE m.type IN('table','view') AND m.name NOT LIKE 'sqlite_%' ORDER BY m.type,m.name,p.cid";
    sqlite3_stmt *st = NULL;
    char last[128] = "";
    pl_code code = pl_db_prepare(s->db, &st, sql, err);

    (void)args;
    while (pl_db_next(st, &code, err)) {
        const char *text[6];
        for (int i = 0; i < 6; i++)
            text[i] = (const char *)sqlite3_column_text(st, i);
        if (strcmp(last, text[1]) != 0)
            pl_cmd_print("%s%s %s\n", last[0] ? "\n" : "", text[0], text[1]);
        (void)snprintf(last, sizeof last, "%s", text[1]);
        pl_cmd_print("  %-18s %-8s %-10s %s\n", text[2], text[3], text[4], text[5]);
    }
    (void)sqlite3_finalize(st);
    return code;
}

static pl_code do_backup(const pl_args *args, pl_store *s, pl_error *err)
{
    char to[4200];
    pl_error local = { 0 };
    pl_error *e = err != NULL ? err : &local;
    const char *given = pl_arg(args, "--to");
    int64_t stamp = 0;
    pl_code code = pl_db_int(s->db, &stamp, e, "SELECT strftime('%%Y%%m%%d%%H%%M%%S','now')");

    if (code != PL_OK)
        return code;
    (void)snprintf(to, sizeof to, "%s", given != NULL ? given : "");
    if (given == NULL)
        (void)snprintf(to, sizeof to, "%s.backup-%lld", s->results_path, (long long)stamp);
    if (access(to, F_OK) == 0)
        return pl_fail(e, PL_EIO, "%s: exists already, nothing is overwritten", to);
    code = pl_store_copy(s, to, e);
    if (code == PL_OK)
        pl_cmd_print("%s\n", to);
    return code;
}

static pl_code do_metadata(const pl_args *args, pl_store *s, pl_error *err)
{
    (void)args;
    return st_db_metadata(s, err);
}

static const struct action {
    const char *name;
    pl_code (*act)(const pl_args *args, pl_store *s, pl_error *err);
} actions[] = {
    { "check", do_check }, { "digest", do_digest }, { "schema", do_schema }, { "backup", do_backup }, { "metadata", do_metadata }
};

static pl_code answer(const st_ask *ask, pl_error *err)
{
    const struct action *action = ask->ctx;

    return action->act(ask->args, ask->store, err);
}

static int run(const pl_app *app, const pl_args *args)
{
    const char *names[8];
    int n = 0;

    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++) {
        if (strcmp(args->arg[0], actions[i].name) == 0 && args->n > 2)
            return pl_cmd_usage(args, "db %s: '%s' is one word too many", args->arg[0], args->arg[2]);
        if (strcmp(args->arg[0], actions[i].name) == 0)
            return st_results_ask(app, args, args->n > 1 ? args->arg[1] : NULL, answer, (void *)&actions[i]);
        names[n++] = actions[i].name;
    }
    if (strcmp(args->arg[0], "prune") == 0) /* writes, so it needs the workflow and its lock */
        return st_db_prune(app, args);
    names[n++] = "prune";
    const char *near = pl_nearest(args->arg[0], names, n);
    return pl_cmd_usage(args, "db %s: no such action%s%s", args->arg[0], near != NULL ? ", did you mean " : "",
                        near != NULL ? near : "");
}

const pl_cmd st_cmd_db = {
    .name = "db",
    .args = "check|digest|schema|backup|metadata|prune [WHERE]",
    .help = "check, describe, back up and prune the databases of a run",
    .about = "check   integrity, references, units against stages, checksums of blocks;\n"
             "        status 5 if damaged\n"
             "digest  a hash of the logical content that does not depend on order, paths,\n"
             "        times or workers\n"
             "schema  every table and column with unit and meaning\n"
             "backup  a consistent copy, also while a run is writing\n"
             "metadata  JSON for Datasette: every column with unit and meaning, and queries\n"
             "prune   WORKFLOW [WHERE ...]: remove the blocks of features.db that no stage of\n"
             "        the results.db of WORKFLOW and of the other WHEREs uses any more, and\n"
             "        the cache of structures (it saves building them again when settings or\n"
             "        inputs change). Name every workflow that shares the features.db\n"
             "\n"
             "  molsieve db digest runs/screen\n"
             "  molsieve db backup runs/screen --to screen-copy.db\n"
             "  molsieve db metadata runs/screen > metadata.json\n"
             "  datasette runs/screen/results.db -m metadata.json\n"
             "\nQueries by SMILES and SMARTS need --load-extension molsieve_sqlite.so, too\n"
             "(docs/FORMATS.md).\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
