/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "stages/acquire/choose.h"
#include "stages/commands/commands.h"
#include "stages/commands/export_found.h"
#include "stages/database/rows.h"
#include "stages/database/schema.h"
#include "stages/expression/row_filter.h"
#include "stages/steps/errors/domain_words.h"
#include "stages/steps/train/model_row.h"

enum { KEY = 27, MOST = 1000000 }; /* characters of an InChIKey */

static const pl_opt opts[] = {
    { "--number", 'n', "N", "how many molecules to choose; default 96" },
    { "--by", 'b', "STRATEGY", "greedy (default), ucb, expected_improvement, thompson, uncertainty or random" },
    { "--property", 'p', "NAME", "the score to go by; needed if several are scored" },
    { "--goal", 0, "GOAL", "maximize or minimize; default: what is better for the property" },
    { "--beta", 0, "X", "ucb: how many standard deviations are added; default 2" },
    { "--best", 0, "X", "expected_improvement: the value to beat; default: the best that was measured, else the best prediction" },
    { "--sigma", 0, "FROM", "standard deviation from gp, stdev or interval; default: the first there is" },
    { "--max-similarity", 0, "X", "no two with a higher similarity (Tanimoto, ECFP4), 0 to 1" },
    { "--per-scaffold", 0, "K", "at most K of one Bemis-Murcko scaffold; a molecule without rings has none" },
    { "--inside", 0, NULL, "only molecules inside of the model's domain" },
    { "--measured", 0, NULL, "also molecules that were measured or asked for, or that the model learned from" },
    { "--exclude", 'x', "FILE", "not those whose InChIKey is in this file, such as an earlier plate.csv" },
    { "--where", 'w', "EXPR", "only molecules for which this holds, e.g. \"mw < 300\"" },
    { "--seed", 0, "N", "of thompson and random; default 1" },
    { "--format", 'f', "FORMAT", "table, csv, json, jsonl, sdf or smi; default: by the name of the file" },
    { "--output", 'o', "FILE", "output file, complete or not written at all; .gz is compressed" },
    { 0 }
};

typedef struct asked {
    st_choice choice;
    const char *format, *file, *exclude;
} asked;

/* ---- molecules that are excluded ---- */

static bool is_key(const char *s)
{
    for (int i = 0; i < KEY; i++) {
        const bool dash = i == 14 || i == 25;
        if (dash ? s[i] != '-' : s[i] < 'A' || s[i] > 'Z')
            return false;
    }
    return true;
}

/* What is read of the file: the names in it, and its rows without one. */
typedef struct listing {
    pl_store *store;
    int64_t line, n, before; /* n: names; before: of them, those before this row */
    int64_t n_without, without;
    int64_t n_records, n_nameless; /* of an SDF, where a row is a record of many lines */
    bool json, began;              /* json: a row is a line with the word "inchikey"; began: a line is not empty or a remark */
} listing;

static pl_code names_add(listing *x, const char *line, pl_error *err)
{
    pl_code code = PL_OK;

    for (const char *p = line; code == PL_OK && strlen(p) >= KEY; p++) {
        char key[KEY + 1] = { 0 };
        if (!is_key(p))
            continue;
        memcpy(key, p, KEY);
        code = st_choose_list(x->store, key, err);
        p += KEY - 1;
        x->n++;
    }
    return code;
}

static bool is_row(listing *x, const char *line)
{
    const bool begins = !x->began;
    const char *first = line + strspn(line, " \t\r\n");

    if (*first == '\0' || *first == '#')
        return false;
    x->began = true;
    if (x->json)
        return strcasestr(line, "\"inchikey\"") != NULL;
    return !begins || strcasestr(line, "inchi") == NULL; /* else the names of the columns */
}

static pl_code line_read(listing *x, const char *line, pl_error *err)
{
    const int64_t n = x->n;
    const pl_code code = names_add(x, line, err);

    if (++x->line == 1)
        x->json = line[0] == '[' || line[0] == '{';
    if (is_row(x, line) && x->n == n && x->n_without++ == 0)
        x->without = x->line;
    if (strncmp(line, "$$$$", 4) == 0) {
        x->n_records++;
        x->n_nameless += x->n == x->before;
        x->before = x->n;
    }
    return code;
}

/* A row without a name excludes nothing, which nobody would see. */
static void say_nameless(const listing *x, const char *path)
{
    const int64_t n = x->n_records > 0 ? x->n_nameless : x->n_without;
    char where[40] = "";

    if (x->n_records == 0)
        (void)snprintf(where, sizeof where, " (line %lld%s)", (long long)x->without, n > 1 ? ", .." : "");
    if (n > 0)
        pl_cmd_say("--exclude %s: %lld row%s no InChIKey%s and exclude%s nothing", path, (long long)n, n == 1 ? " has" : "s have",
                   where, n == 1 ? "s" : "");
}

static pl_code list_file(pl_store *store, const char *path, pl_error *err)
{
    listing x = { .store = store };
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    pl_code code = f != NULL ? PL_OK : pl_fail_errno(err, path);

    while (code == PL_OK && getline(&line, &cap, f) >= 0)
        code = line_read(&x, line, err);
    if (code == PL_OK && ferror(f))
        code = pl_fail_errno(err, path);
    if (f != NULL)
        (void)fclose(f);
    free(line);
    if (code == PL_OK && x.n == 0)
        code = pl_fail(err, PL_EINPUT, "--exclude %s: there is no InChIKey in this file", path);
    if (code == PL_OK)
        say_nameless(&x, path);
    return code;
}

/* ---- what is said ---- */

static void say_left_out(int64_t n, const char *why)
{
    if (n > 0)
        (void)fprintf(stderr, "  %lld left out: %s\n", (long long)n, why);
}

static void say(const st_ask *ask, const st_chosen *said)
{
    const asked *a = ask->ctx;
    const st_strategy by = a->choice.a.by;
    const bool unit = said->unit[0] != '\0' && !st_property_names_unit(said->property, said->unit);

    (void)fprintf(stderr, "%lld of %lld scored molecules of %s\n", (long long)said->n_chosen, (long long)said->n_scored,
                  ask->store->results_path);
    (void)fprintf(stderr, "by %s: %s%s%s%s", st_strategy_names[by], said->property, unit ? " (" : "", unit ? said->unit : "",
                  unit ? ")" : "");
    if (by != ST_UNCERTAINTY && by != ST_RANDOM)
        (void)fprintf(stderr, ", %s is better", said->low ? "low" : "high");
    if (by == ST_UCB)
        (void)fprintf(stderr, ", beta %g", a->choice.a.beta);
    if (said->sigma != ST_SIGMA_AUTO)
        (void)fprintf(stderr, ", standard deviation: %s", st_sigma_names[said->sigma]);
    if (by == ST_EXPECTED_IMPROVEMENT)
        (void)fprintf(stderr, ", %s %g (%s)", said->low ? "below" : "above", said->best, said->best_of);
    (void)fprintf(stderr, "\n");
    say_left_out(said->n_measured, "measured, or the model learned from them (--measured takes them)");
    say_left_out(said->n_vain, "asked for by the campaign, which got no value (--measured takes them)");
    say_left_out(said->n_listed, "named in the file of --exclude");
    say_left_out(said->n_outside, "outside of the model's domain, or it is unknown");
    say_left_out(said->n_unsure, said->sigma == ST_SIGMA_INTERVAL
                                     ? "no prediction interval, as outside of the domain; --by greedy takes them"
                                     : "no standard deviation");
    say_left_out(said->n_where, "--where");
    say_left_out(said->n_twice, "another drawing of a molecule that was chosen");
    say_left_out(said->n_similar, "too similar to one that is better");
    say_left_out(said->n_scaffold, "enough better ones have their scaffold");
    if (said->n_chosen < a->choice.n)
        pl_cmd_say("%lld were asked for, and no more are left", (long long)a->choice.n);
}

static pl_code print_table(const st_ask *ask, const st_chosen *said, pl_error *err)
{
    char *sql = sqlite3_mprintf(
        "SELECT x.place, " ST_TITLES " AS title, s.mean AS \"%w\", s.interval90 "
        "AS \"+- 90 %%\", x.similarity AS acquisition, s.similarity, s.domain, m.smiles, m.inchikey FROM temp.found x CROSS JOIN "
        "molecule m ON m.mol_id=x.mol_id JOIN score s ON s.mol_id=x.mol_id AND s.property_id=(SELECT property_id FROM property "
        "WHERE name=%Q) ORDER BY x.place",
        said->property, said->property);
    sqlite3_stmt *st = NULL;
    pl_code code = sql != NULL ? pl_db_prepare(ask->store->db, &st, sql, err) : pl_fail(err, PL_ENOMEM, "out of memory");

    if (code == PL_OK)
        code = st_rows_show(st, 3, 32, err);
    (void)sqlite3_finalize(st);
    sqlite3_free(sql);
    return code;
}

/* How many of the chosen a model does not claim to know. */
static pl_code count_outside(int64_t *out, const st_ask *ask, const st_chosen *said, pl_error *err)
{
    return pl_db_int(ask->store->db, out, err,
                     "SELECT count(*) FROM temp.found x JOIN score s ON s.mol_id=x.mol_id AND s.property_id=%lld "
                     "WHERE s.domain IS NOT 'inside'",
                     (long long)said->property_id);
}

static pl_code say_outside(int64_t n, const st_ask *ask, const st_chosen *said, pl_error *err)
{
    pl_text why = { 0 };
    pl_code code = st_domain_reasons(&why, ask->store->db, said->property_id, "temp.found", err);

    if (code == PL_OK)
        pl_cmd_say("%lld of the chosen %s outside of the model's domain, or it is unknown%s; --inside leaves such molecules out",
                   (long long)n, n == 1 ? "is" : "are", pl_text_str(&why));
    pl_text_free(&why);
    return code;
}

static pl_code answer(const st_ask *ask, pl_error *err)
{
    asked *a = ask->ctx;
    st_chosen said;
    int64_t n_skipped = 0, n_outside = 0;
    pl_code code = a->exclude != NULL ? list_file(ask->store, a->exclude, err) : PL_OK;

    if (code == PL_OK)
        code = st_choose(&said, &a->choice, ask->store, ask->mem, err);
    if (code == PL_OK && strcmp(a->format, "table") == 0)
        code = print_table(ask, &said, err);
    else if (code == PL_OK)
        code = st_export_found(ask, a->format, a->file, "acquisition", &n_skipped, err);
    if (code == PL_OK)
        code = count_outside(&n_outside, ask, &said, err);
    if (code != PL_OK)
        return code;
    say(ask, &said);
    if (n_outside > 0)
        code = say_outside(n_outside, ask, &said, err);
    if (n_skipped > 0)
        pl_cmd_say("%lld of them have no stored structure and are not in the SDF", (long long)n_skipped);
    return code;
}

/* ---- the command line ---- */

/* By --format, else by the end of the file's name; "" for a name that says nothing. */
static const char *format_of(const pl_args *args)
{
    static const char *const known[] = { "csv", "json", "jsonl", "sdf", "smi" };
    const char *format = pl_arg(args, "--format"), *file = pl_arg(args, "--output");
    size_t len;

    if (format != NULL || file == NULL)
        return format != NULL ? format : "table";
    len = strlen(file);
    if (len > 3 && strcmp(file + len - 3, ".gz") == 0)
        len -= 3;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const size_t n = strlen(known[i]);
        if (len > n && file[len - n - 1] == '.' && strncmp(file + len - n, known[i], n) == 0)
            return known[i];
    }
    return strcmp(file, "-") == 0 ? "csv" : "";
}

static int read_real(const pl_args *args, const char *name, double low, double high, double *out)
{
    const char *text = pl_arg(args, name);

    if (text == NULL || (pl_parse_real(text, out) && *out >= low && *out <= high))
        return 0;
    return high < 1e9 ? pl_cmd_usage(args, "%s %s: a number from %g to %g is expected", name, text, low, high)
                      : pl_cmd_usage(args, "%s %s: a number is expected", name, text);
}

static int read_int(const pl_args *args, const char *name, int64_t low, int64_t *out)
{
    const char *text = pl_arg(args, name);

    if (text == NULL || (pl_parse_int(text, out) && *out >= low && *out <= MOST))
        return 0;
    return pl_cmd_usage(args, "%s %s: a whole number from %lld to %d is expected", name, text, (long long)low, MOST);
}

/* The word's place in names (NULL-terminated); n if it is none of them. */
static int word_of(const char *word, const char *const *names)
{
    int i = 0;

    while (names[i] != NULL && strcmp(names[i], word) != 0)
        i++;
    return i;
}

/* 0, or the exit status. */
static int read_words(asked *a, const pl_args *args)
{
    const char *by = pl_arg(args, "--by"), *goal = pl_arg(args, "--goal"), *sigma = pl_arg(args, "--sigma");

    if (by != NULL)
        a->choice.a.by = (st_strategy)word_of(by, st_strategy_names);
    if (by != NULL && a->choice.a.by == ST_STRATEGIES)
        return pl_cmd_usage(args, "--by %s: allowed are greedy, ucb, expected_improvement, thompson, uncertainty and random", by);
    if (goal != NULL && strncmp(goal, "maximi", 6) == 0)
        a->choice.goal = "maximize";
    else if (goal != NULL && strncmp(goal, "minimi", 6) == 0)
        a->choice.goal = "minimize";
    else if (goal != NULL)
        return pl_cmd_usage(args, "--goal %s: maximize or minimize is expected", goal);
    if (sigma != NULL)
        a->choice.sigma = (st_sigma)word_of(sigma, st_sigma_names);
    if (a->choice.sigma == ST_SIGMAS)
        return pl_cmd_usage(args, "--sigma %s: gp, stdev or interval is expected", sigma);
    if (pl_arg(args, "--best") != NULL && a->choice.a.by != ST_EXPECTED_IMPROVEMENT)
        return pl_cmd_usage(args, "--best: only --by expected_improvement asks for a value to beat");
    if (pl_arg(args, "--beta") != NULL && a->choice.a.by != ST_UCB)
        return pl_cmd_usage(args, "--beta: only --by ucb has one");
    return 0;
}

/* 0, or the exit status. */
static int read_numbers(asked *a, const pl_args *args)
{
    int64_t seed = 1;
    int status = read_int(args, "--number", 1, &a->choice.n);

    if (status == 0)
        status = read_int(args, "--per-scaffold", 1, &a->choice.per_scaffold);
    if (status == 0)
        status = read_int(args, "--seed", 0, &seed);
    if (status == 0)
        status = read_real(args, "--beta", 0, 1000, &a->choice.a.beta);
    if (status == 0)
        status = read_real(args, "--best", -1e300, 1e300, &a->choice.a.best);
    if (status == 0)
        status = read_real(args, "--max-similarity", 0, 1, &a->choice.max_similarity);
    a->choice.a.seed = (uint64_t)seed;
    return status;
}

static int run(const pl_app *app, const pl_args *args)
{
    asked a = { .choice = { .a = { .beta = 2 },
                            .n = 96,
                            .max_similarity = 1,
                            .property = pl_arg(args, "--property"),
                            .where = pl_arg(args, "--where"),
                            .inside = pl_arg(args, "--inside") != NULL,
                            .measured = pl_arg(args, "--measured") != NULL,
                            .untried = pl_arg(args, "--measured") == NULL,
                            .has_best = pl_arg(args, "--best") != NULL },
                .format = format_of(args),
                .file = pl_arg(args, "--output"),
                .exclude = pl_arg(args, "--exclude") };
    pl_error err = { 0 };
    int status = read_words(&a, args);

    if (status == 0)
        status = read_numbers(&a, args);
    if (status != 0)
        return status;
    if (a.format[0] == '\0')
        return pl_cmd_usage(args, "--output %s: the name does not end in .csv, .json, .jsonl, .sdf or .smi; give --format", a.file);
    if (strcmp(a.format, "table") != 0 && !st_export_knows(a.format))
        return pl_cmd_usage(args, "'%s' is not a format; allowed: table, csv, json, jsonl, sdf or smi", a.format);
    if (strcmp(a.format, "table") == 0 && a.file != NULL)
        return pl_cmd_usage(args, "--output: a table goes to the terminal; choose --format csv, json, jsonl, sdf or smi");
    if (a.choice.where != NULL && st_row_filter_check(a.choice.where, NULL, NULL, &err) != PL_OK)
        return pl_cmd_usage(args, "--%s", err.text);
    return st_results_ask(app, args, args->n > 0 ? args->arg[0] : NULL, answer, &a);
}

const pl_cmd st_cmd_next = {
    .name = "next",
    .args = "[WORKDIR | WORKFLOW | DATABASE]",
    .help = "choose which molecules of a screen to try next",
    .about = "Chooses molecules to buy, dock or measure from a finished screen, by an\n"
             "acquisition function. With m the prediction (turned so that high is better) and\n"
             "s its standard deviation, it takes those with the highest\n"
             "\n"
             "  greedy                m\n"
             "  ucb                   m + beta s\n"
             "  expected_improvement  expected gain over the best so far\n"
             "  thompson              a random draw of the prediction\n"
             "  uncertainty           s: what teaches the model most\n"
             "  random                a random number: the baseline\n"
             "\n"
             "s (--sigma) is that of the model's Gaussian process (gp), or that of the\n"
             "predictions of several models (stdev), or the half-width of the 90 % interval /\n"
             "1.645 (interval), which molecules outside of the domain lack. Molecules that\n"
             "were measured, that a campaign asked for, or that the model learned from are\n"
             "left out. The choice is the same for any order of the molecules. With molecules\n"
             "outside of the model's domain among the chosen, the last line counts them by\n"
             "reason; CSV has the reasons of each. --inside leaves these molecules out.\n"
             "\n"
             "  molsieve next runs/screen -n 96 -o plate.csv\n"
             "  molsieve next --by ucb --max-similarity 0.6 -x plate.csv -o plate2.csv\n"
             "\n"
             "CSV, JSON and SDF have the columns of `molsieve export`, and `acquisition`.\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
