/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "pipeline/base/par.h"
#include "stages/commands/commands.h"
#include "stages/commands/export_found.h"
#include "stages/commands/search_find.h"
#include "stages/database/rows.h"
#include "stages/database/schema.h"
#include "stages/steps/rank/score_columns.h"

enum { TABLE_ROWS = 50 }; /* of a table without --limit */

static const pl_opt opts[] = { { "--smarts", 's', "PATTERN", "molecules that match this SMARTS" },
                               { "--similar", 0, "SMILES", "by similarity (Tanimoto, ECFP4) to this molecule" },
                               { "--at-least", 0, "X", "smallest similarity, 0 to 1; default 0.5" },
                               { "--scaffold", 0, "SMILES", "molecules with the Bemis-Murcko scaffold of this one" },
                               { "--where", 'w', "EXPR", "and this condition holds, e.g. \"mw < 300\"" },
                               { "--limit", 'n', "N", "the first N; default: 50 in a table, else all" },
                               { "--format", 'f', "FORMAT", "table, csv, json, jsonl, sdf or smi" },
                               { "--csv", 0, NULL, "the same as --format csv" },
                               { "--json", 0, NULL, "the same as --format json" },
                               { "--jobs", 'j', "N", "chemistry workers for --smarts (all processors)" },
                               { "--output", 'o', "FILE", "output file, complete or not written at all; .gz is compressed" },
                               { 0 } };

typedef struct asked {
    st_search search;
    const char *format, *file;
} asked;

static pl_code print_table(const st_ask *ask, bool similar, pl_error *err)
{
    static const char found[] = "(SELECT * FROM temp.found LEFT JOIN hit USING(mol_id))";
    sqlite3 *db = ask->store->db;
    pl_text sql = { 0 };
    sqlite3_stmt *st = NULL;
    pl_code code;

    pl_text_addf(&sql, "SELECT %sh.rank, " ST_TITLES " AS title", similar ? "x.similarity AS query_similarity, " : "");
    code = st_score_columns(db, found, false, &sql, err);
    pl_text_add(&sql,
                ", m.smiles, m.mw, m.inchikey FROM temp.found x CROSS JOIN molecule m ON m.mol_id=x.mol_id LEFT JOIN hit h ON "
                "h.mol_id=m.mol_id ORDER BY x.place");
    if (!pl_text_ok(&sql))
        code = pl_fail(err, PL_ENOMEM, "out of memory");
    if (code == PL_OK)
        code = pl_db_prepare(db, &st, pl_text_str(&sql), err);
    if (code == PL_OK)
        code = st_rows_show(st, 3, 32, err);
    (void)sqlite3_finalize(st);
    pl_text_free(&sql);
    return code;
}

static void say(const st_ask *ask, const st_search_said *said, int64_t limit, int64_t n_skipped)
{
    (void)fprintf(stderr, "%lld molecule%s of %s\n", (long long)said->n_found, said->n_found == 1 ? "" : "s",
                  ask->store->results_path);
    if (said->more)
        pl_cmd_say("these are the first %lld, and there may be more; --limit N shows more", (long long)limit);
    if (said->n_computed > 0)
        pl_cmd_say("%lld %s prepared by an earlier version; fingerprints were computed from SMILES, 1 ms each. "
                   "`molsieve run WORKFLOW --from prepare` stores them",
                   (long long)said->n_computed, pl_plural(said->n_computed, "molecule was", "molecules were"));
    if (n_skipped > 0)
        pl_cmd_say("%lld %s without a stored structure left out", (long long)n_skipped,
                   pl_plural(n_skipped, "molecule", "molecules"));
}

static pl_code answer(const st_ask *ask, pl_error *err)
{
    const asked *a = ask->ctx;
    st_search_said said;
    int64_t n_skipped = 0;
    pl_code code = st_search_find(&said, &a->search, ask->store, ask->mem, err);

    if (code == PL_OK && strcmp(a->format, "table") == 0)
        code = print_table(ask, a->search.similar != NULL, err);
    else if (code == PL_OK)
        code = st_export_found(ask, a->format, a->file, a->search.similar != NULL ? "query_similarity" : NULL, &n_skipped, err);
    if (code != PL_OK)
        return code;
    say(ask, &said, a->search.limit, n_skipped);
    if (said.n_failed > 0)
        return pl_fail(err, PL_ELIMIT, "%lld molecule%s could not be compared, and %s missing above; the first: %s",
                       (long long)said.n_failed, said.n_failed == 1 ? "" : "s", said.n_failed == 1 ? "is" : "are", said.first);
    return PL_OK;
}

/* All problems of the command line at once. 0, or the exit status. */
static int check(const asked *a)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    pl_problems problems = { .mem = mem };
    pl_error err = { 0 };
    int status = 0;

    if (mem == NULL)
        status = pl_cmd_no_memory();
    else if (st_search_check(&a->search, &problems, mem, &err) != PL_OK)
        status = pl_cmd_fail(&err);
    for (int i = 0; i < problems.n && status == 0; i++)
        pl_cmd_say("%s", problems.list[i].text);
    if (status == 0)
        status = pl_code_exit(pl_problems_code(&problems));
    pl_arena_free(mem);
    return status;
}

static const char *format_of(const pl_args *args)
{
    const char *format = pl_arg(args, "--format");

    if (pl_arg(args, "--csv") != NULL)
        format = "csv";
    if (pl_arg(args, "--json") != NULL)
        format = "json";
    return format != NULL ? format : "table";
}

/* The numbers of the command line. 0, or the exit status. */
static int read_numbers(asked *a, const pl_args *args)
{
    const char *limit = pl_arg(args, "--limit"), *at_least = pl_arg(args, "--at-least"), *jobs = pl_arg(args, "--jobs");
    int64_t n = pl_cpu_count();

    if (limit != NULL && (!pl_parse_int(limit, &a->search.limit) || a->search.limit < 1))
        return pl_cmd_usage(args, "--limit %s: a whole number from 1 is expected", limit);
    if (at_least != NULL && a->search.similar == NULL)
        return pl_cmd_usage(args, "--at-least: similar to what? give --similar SMILES");
    if (at_least != NULL &&
        (!pl_parse_real(at_least, &a->search.at_least) || !(a->search.at_least >= 0 && a->search.at_least <= 1)))
        return pl_cmd_usage(args, "--at-least %s: a number from 0 to 1 is expected", at_least);
    if (jobs != NULL && (!pl_parse_int(jobs, &n) || n < 1 || n > 1000))
        return pl_cmd_usage(args, "--jobs %s: a whole number from 1 to 1000 is expected", jobs);
    a->search.jobs = (int)n;
    return 0;
}

static int run(const pl_app *app, const pl_args *args)
{
    asked a = { .search = { .smarts = pl_arg(args, "--smarts"),
                            .similar = pl_arg(args, "--similar"),
                            .scaffold = pl_arg(args, "--scaffold"),
                            .where = pl_arg(args, "--where"),
                            .at_least = 0.5 },
                .format = format_of(args),
                .file = pl_arg(args, "--output") };
    const st_search *q = &a.search;
    const bool table = strcmp(a.format, "table") == 0;
    int status;

    if (q->smarts == NULL && q->similar == NULL && q->scaffold == NULL && q->where == NULL)
        return pl_cmd_usage(args, "what to search for: give --smarts, --similar, --scaffold or --where");
    if (!table && !st_export_knows(a.format))
        return pl_cmd_usage(args, "'%s' is not a format; allowed: table, csv, json, jsonl, sdf or smi", a.format);
    if (table && a.file != NULL)
        return pl_cmd_usage(args, "--output: a table goes to the terminal; choose --format csv, json, jsonl, sdf or smi");
    status = read_numbers(&a, args);
    if (status == 0 && table && q->limit == 0)
        a.search.limit = TABLE_ROWS;
    if (status == 0)
        status = check(&a);
    return status != 0 ? status : st_results_ask(app, args, args->n > 0 ? args->arg[0] : NULL, answer, &a);
}

const pl_cmd st_cmd_search = {
    .name = "search",
    .args = "[WORKDIR | WORKFLOW | DATABASE]",
    .help = "find molecules by substructure, similarity or scaffold",
    .about = "Looks at all molecules of a run, ranked or not. All conditions given must hold.\n"
             "Similar molecules come most similar first, others hits first. CSV, JSON and SDF\n"
             "have the columns of `molsieve export`.\n"
             "\n"
             "  molsieve search --similar \"CC(=O)Oc1ccccc1C(=O)O\" --at-least 0.6\n"
             "  molsieve search --smarts \"[NX3;H2]c1ccccc1\" --where \"mw < 300\" runs/screen\n"
             "  molsieve search --scaffold \"c1ccc2[nH]ccc2c1\" --format sdf -o indoles.sdf\n"
             "\n"
             "where in `rank` and keep in `prepare` know the same as smarts('...'),\n"
             "similarity('...') and scaffold. Status 3: some molecules could not be compared.\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
