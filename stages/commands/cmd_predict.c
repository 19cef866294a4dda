/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chem/records/record.h"
#include "chem/records/record_notes.h"
#include "chem/records/relation.h"
#include "pipeline/base/par.h"
#include "pipeline/base/stop.h"
#include "stages/commands/commands.h"
#include "stages/files/out_file.h"
#include "stages/files/shipped.h"
#include "stages/fit/smiles_column.h"
#include "stages/predict/answer.h"
#include "stages/predict/flow.h"
#include "stages/predict/given.h"
#include "stages/predict/unused.h"
#include "stages/steps/train/score_models.h"

enum { MAX_WORKERS = 1024, MAX_COUNT = 100, RECORD_BYTES = 1 << 10 };

static const pl_opt opts[] = {
    { "--output", 'o', "FILE", "complete or not written at all; .gz is compressed; default: standard output" },
    { "--format", 'f', "NAME", "csv, jsonl or sdf (by the name of FILE; csv if it has none of them)" },
    { "--columns", 'c', "LIST", "columns of the answer, such as title,smiles,logS; also those of the input" },
    { "--set", 0, "NAME=X,..", "a column that the model reads: one value for all records" },
    { "--smiles-column", 0, "NAME", "of a table: name or number of the column with SMILES" },
    { "--id-column", 0, "NAME", "of a table, or data field of SDF: becomes the title" },
    { "--input-format", 0, "NAME", "smi, csv, tsv, sdf ... (by the name of IN, else its first bytes)" },
    { "--structures", 0, "KIND", "3D: as in the training of the model; or auto, keep, generate (help prepare)" },
    { "--count", 0, "K", "structures built of a molecule, at most; the score is their mean (as in training)" },
    { "--seed", 0, "N", "of the structures, as `seed` of a workflow (1)" },
    { "--engine", 0, "NAME", "cpu, cuda, auto or ref (exact, slow): how the network computes (cpu)" },
    { "--jobs", 'j', "N", "threads (all processors); the answer is the same for any" },
    { "--quiet", 'q', NULL, "no summary at the end" },
    { 0 }
};

typedef struct predict {
    const char *model, *file, *output, *columns, *input_format, *set;
    st_predict_conf conf;
    st_answer_format format;
    ch_reader_opts reading;
    st_predictor *p;
    st_answers answers;
    st_given given;
    st_predict_worker *worker; /* [workers] */
    int workers;
    ch_reader *reader;
    st_out out; /* closed: standard output */
    int64_t n_records, n_noted[CH_NOTES];
    bool has_titles, quiet, by_name, asks_engine, asks_seed; /* by_name: the format is that of the output's name */
    _Atomic int64_t n_failed, n_outside;
    ch_worker *lister;
    pl_arena *mem;
} predict;

/* ---- answers, on the threads of the workers ---- */

static pl_code worker_start(predict *c, int worker, pl_error *err)
{
    return c->worker[worker].p != NULL ? PL_OK : st_predict_worker_open(&c->worker[worker], c->p, err);
}

static pl_code work(void *ctx, int worker, void *const *item, int32_t n, pl_text *out, pl_error *err)
{
    predict *c = ctx;
    ch_input in[ST_FLOW_MOST];
    const float *column[ST_FLOW_MOST];
    st_prediction *got = NULL;
    int32_t n_in = 0;
    pl_code code = worker_start(c, worker, err);

    for (int32_t k = 0; k < n; k++)
        if (((const st_asked *)item[k])->problem == NULL) {
            column[n_in] = ((const st_asked *)item[k])->column;
            in[n_in++] = ((const st_asked *)item[k])->in;
        }
    if (code == PL_OK && n_in > 0)
        code = st_predict(&c->worker[worker], in, column, n_in, &got, err);
    for (int32_t k = 0, i = 0; k < n && code == PL_OK; k++) {
        const st_asked *asked = item[k];
        const st_prediction *one = asked->problem == NULL ? &got[i++] : NULL;
        code = st_answer_add(&c->answers, out, asked, one, &c->worker[worker].chem, err);
        c->n_outside += st_answer_is_outside(&c->answers, one);
        c->n_failed += st_answer_lacks(&c->answers, one);
    }
    return code;
}

static pl_code write_stdout(const pl_text *out, pl_error *err)
{
    if (fwrite(pl_text_str(out), 1, out->len, stdout) == out->len && fflush(stdout) == 0)
        return PL_OK;
    if (errno == EPIPE)
        return pl_fail(err, PL_EIO, "standard output was closed by its reader before the last answer; -o FILE keeps all answers");
    return pl_fail_errno(err, "standard output");
}

static pl_code answers_write(void *ctx, const pl_text *out, pl_error *err)
{
    predict *c = ctx;
    return c->out.file != NULL ? st_out_add(&c->out, out, err) : write_stdout(out, err);
}

static void drop(void *item) { pl_arena_free(((st_asked *)item)->mem); }

/* ---- records, on the main thread ---- */

/* The columns that the models read. */
static pl_code given_fill(st_asked *a, predict *c, const ch_record *r, pl_error *err)
{
    ch_field *field = NULL;
    int n = 0;
    pl_code code = st_given_reads(&c->given) ? ch_record_measured(&field, &n, c->reader, r, a->mem, err) : PL_OK;

    return code == PL_OK ? st_given_fill(&c->given, a, field, n, err) : code;
}

/* The fields of the input that the answer shows. */
static pl_code fields_copy(st_asked *a, const predict *c, const ch_record *r, pl_error *err)
{
    ch_field *field = NULL;
    pl_code code = ch_record_fields(&field, &a->n_fields, c->reader, r, a->mem, err);

    a->field = PL_NEW(a->mem, ch_field, a->n_fields + 1);
    if (code == PL_OK && a->field == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a record");
    for (int k = 0; k < a->n_fields && code == PL_OK; k++) {
        a->field[k] = field[k];
        a->field[k].name = pl_strdup(a->mem, field[k].name);
        a->field[k].text = pl_strdup(a->mem, field[k].text);
        if (a->field[k].name == NULL || a->field[k].text == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a record");
    }
    return code;
}

static pl_code asked_fill(st_asked *a, predict *c, const ch_record *r, pl_error *err)
{
    pl_code code = PL_OK;

    a->number = r->ordinal;
    a->line = r->line;
    a->title = pl_strdup(a->mem, r->title);
    a->problem = r->problem != NULL ? pl_strdup(a->mem, r->problem) : NULL;
    a->in = (ch_input){ .text = pl_strndup(a->mem, r->text, r->len), .format = pl_strdup(a->mem, r->format), .len = r->len };
    if (a->title == NULL || a->in.text == NULL || a->in.format == NULL || (r->problem != NULL && a->problem == NULL))
        return pl_fail(err, PL_ENOMEM, "no memory for a record");
    if (a->problem == NULL)
        code = given_fill(a, c, r, err);
    return code == PL_OK && c->answers.fields ? fields_copy(a, c, r, err) : code;
}

static pl_code asked_new(st_asked **out, predict *c, const ch_record *r, pl_error *err)
{
    pl_arena *mem = pl_arena_new(RECORD_BYTES);
    st_asked *a = mem != NULL ? PL_NEW(mem, st_asked, 1) : NULL;
    pl_code code;

    *out = a;
    if (a == NULL) {
        pl_arena_free(mem);
        return pl_fail(err, PL_ENOMEM, "no memory for a record");
    }
    a->mem = mem;
    code = asked_fill(a, c, r, err);
    if (code != PL_OK)
        pl_arena_free(mem);
    return code;
}

static void notes_count(predict *c, const ch_record *r)
{
    const unsigned notes = r->problem == NULL ? ch_record_notes(r) : 0;

    for (int k = 0; k < CH_NOTES; k++)
        c->n_noted[k] += (notes >> k & 1) != 0;
}

static pl_code records_read(predict *c, st_flow *flow, pl_error *err)
{
    ch_record record;
    st_asked *asked;
    bool more = true, going = true;
    pl_code code = PL_OK;

    while (code == PL_OK && going) {
        code = ch_reader_next(c->reader, &record, &more, err);
        if (code != PL_OK || !more)
            break;
        code = asked_new(&asked, c, &record, err);
        c->has_titles |= record.title[0] != '\0';
        notes_count(c, &record);
        if (code == PL_OK)
            going = st_flow_put(flow, asked);
        c->n_records++;
    }
    return code;
}

/* A failure of a worker ends the reading, and is the one that is told. */
static pl_code records_run(predict *c, pl_error *err)
{
    const st_flow_calls calls = { c, work, answers_write, drop };
    st_flow *flow = NULL;
    pl_error why = { 0 };
    pl_code code = st_flow_open(&flow, c->workers, &calls, err), other;

    if (code != PL_OK)
        return code;
    code = records_read(c, flow, err);
    other = st_flow_close(flow, &why);
    if (other != PL_OK && err != NULL)
        *err = why;
    return other != PL_OK ? other : code;
}

/* ---- opening ---- */

static pl_code models_open(predict *c, pl_error *err)
{
    const char *path[ST_MODELS_MAX];
    char *words = pl_strdup(c->mem, c->model), *next = words;
    int n = 0;
    pl_code code = words != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a model");

    while (next != NULL && code == PL_OK) {
        const char *name = access(c->model, F_OK) == 0 ? c->model : strsep(&next, ",");
        next = name == c->model ? NULL : next;
        if (n == ST_MODELS_MAX)
            return pl_fail(err, PL_ECONFIG, "models: at most %d", ST_MODELS_MAX);
        code = st_model_find(&path[n++], name, c->mem, err);
    }
    if (code != PL_OK)
        return code;
    c->p = PL_NEW(c->mem, st_predictor, 1);
    c->worker = PL_NEW(c->mem, st_predict_worker, c->workers);
    if (c->p == NULL || c->worker == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d threads", c->workers);
    code = st_predictor_open(c->p, path, n, &c->conf, c->mem, err);
    return code == PL_OK ? st_unused_structures(c->p, &c->conf, err) : code;
}

/* Records of the format are a molecule and a title. */
static bool has_no_fields(const char *format) { return strcmp(format, "smi") == 0 || strcmp(format, "inchi") == 0; }

static bool names_columns(const predict *c) { return c->reading.smiles_column != NULL || c->reading.title_column != NULL; }

static const char *input_name(const predict *c) { return strcmp(c->file, "/dev/stdin") == 0 ? "standard input" : c->file; }

/* "id, exp, drug". In mem; NULL: no memory. */
static const char *columns_list(const ch_reader *r, pl_arena *mem)
{
    const char *list = "";
    int n;
    const char *const *columns = ch_reader_columns(r, &n);

    for (int k = 0; k < n && list != NULL; k++)
        list = pl_sprintf(mem, "%s%s%.60s", list, k > 0 ? ", " : "", columns[k]);
    return list;
}

/* A table of which no column has a name for SMILES: by what they hold. A pipe is answered at once, so there the first one stays. */
static pl_code smiles_find(predict *c, pl_error *err)
{
    struct stat is;
    const char *name = NULL, *list = columns_list(c->reader, c->mem);
    int n;
    pl_code code = list != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a table");

    (void)ch_reader_columns(c->reader, &n);
    if (code != PL_OK || ch_reader_guessed(c->reader) == NULL)
        return code;
    if (n < 2 || stat(c->file, &is) != 0 || !S_ISREG(is.st_mode))
        return ch_reader_headed(c->reader, ch_reader_guessed(c->reader), err);
    code = st_smiles_column(&name, c->reader, c->lister, err);
    if (code == PL_OK && name == NULL)
        return pl_fail(err, PL_ECONFIG, ST_NO_SMILES, c->file, list);
    if (code == PL_OK && (c->reading.smiles_column = pl_strdup(c->mem, name)) == NULL)
        return pl_fail(err, PL_ENOMEM, "a table");
    if (code != PL_OK)
        return code;
    if (!c->quiet)
        pl_cmd_say("%s: SMILES are in column %s, by what it holds", c->file, name);
    ch_reader_close(c->reader);
    c->reader = NULL;
    return ch_reader_open(&c->reader, c->file, c->input_format, &c->reading, err);
}

/* Formats that only the chemistry worker can list need one here. */
static pl_code reader_open(predict *c, pl_error *err)
{
    const char *const *columns;
    int n;
    pl_code code = ch_worker_open(&c->lister, NULL, err);

    c->reading.lister = c->lister;
    c->reading.stop = pl_stop_flag();
    c->reading.whole_lines = true;
    c->reading.smiles_later = true;
    if (code == PL_OK)
        code = ch_reader_open(&c->reader, c->file, c->input_format, &c->reading, err);
    if (code == PL_OK)
        code = st_unused_columns(&c->reading, ch_reader_format(c->reader), input_name(c), err);
    if (code == PL_OK)
        code = smiles_find(c, err);
    if (code != PL_OK)
        return code;
    columns = ch_reader_columns(c->reader, &n);
    if (n == 0 && !has_no_fields(ch_reader_format(c->reader)))
        return PL_OK;
    code = st_given_check(&c->given, input_name(c), columns, n, err);
    return code == PL_OK ? st_answers_check(&c->answers, c->file, columns, n, err) : code;
}

/* Someone may have written a molecule in place of a file. */
static pl_code file_check(const predict *c, pl_error *err)
{
    if (access(c->file, R_OK) == 0)
        return st_out_check(c->output, c->file, err);
    if (errno == ENOENT)
        return pl_fail(err, PL_EIO, "%s: there is no such file; for a single SMILES: echo 'SMILES' | molsieve predict %s -",
                       c->file, c->model);
    return pl_fail_errno(err, c->file);
}

/* The head of a table is there before the first molecule is. */
static pl_code head_write(predict *c, pl_error *err)
{
    pl_text head = { 0 };
    pl_code code;

    st_answers_head(&c->answers, &head);
    code = pl_text_ok(&head) ? answers_write(c, &head, err) : pl_fail(err, PL_ENOMEM, "no memory for a row");
    pl_text_free(&head);
    return code;
}

/* A table was asked for its column when it was opened, and the cells may be empty. */
static pl_code titles_check(const predict *c, pl_error *err)
{
    int n_columns;

    (void)ch_reader_columns(c->reader, &n_columns);
    if (c->reading.title_from == NULL || c->has_titles || n_columns > 0)
        return PL_OK;
    return pl_fail(err, PL_ECONFIG, "--id-column %s: no record of %s has a value for it", c->reading.title_from, input_name(c));
}

static pl_code predict_run(predict *c, pl_error *err)
{
    const bool checked = strcmp(c->file, "/dev/stdin") != 0;
    pl_code code = checked ? file_check(c, err) : PL_OK;

    if (code == PL_OK && c->output == NULL)
        code = st_out_check_stdout(c->file, err);
    if (code == PL_OK && c->by_name)
        code = st_unused_ending(c->output, err);
    if (code == PL_OK)
        code = models_open(c, err);
    if (code == PL_OK)
        code = st_answers_open(&c->answers, c->p, c->format, c->columns, c->mem, err);
    if (code == PL_OK)
        code = st_given_open(&c->given, &c->p->columns, &c->p->scorer, c->set, err);
    if (code == PL_OK && !checked && !c->quiet && isatty(STDIN_FILENO))
        pl_cmd_say("%s; Ctrl-D ends", c->input_format == NULL || strcmp(c->input_format, "smi") == 0
                                          ? "type a SMILES, then Enter for its answer"
                                          : "records are read from the terminal");
    if (code == PL_OK && (checked || c->answers.fields || names_columns(c) || st_given_reads(&c->given)))
        code = reader_open(c, err);
    if (code == PL_OK)
        code = st_given_check_shown(&c->given, &c->answers, err);
    if (code == PL_OK && c->output != NULL)
        code = st_out_open(&c->out, c->output, c->mem, err);
    if (code == PL_OK)
        code = head_write(c, err);
    if (code == PL_OK && c->reader == NULL)
        code = reader_open(c, err);
    if (code == PL_OK)
        code = records_run(c, err);
    if (code == PL_OK && c->n_records == 0)
        return pl_fail(err, PL_ECONFIG, "%s: there are no records", input_name(c));
    if (code == PL_OK)
        code = st_answers_check_seen(&c->answers, input_name(c), err);
    if (code == PL_OK)
        code = titles_check(c, err);
    return code == PL_OK && c->output != NULL ? st_out_keep(&c->out, err) : code;
}

static void predict_close(predict *c)
{
    for (int k = 0; c->worker != NULL && k < c->workers; k++)
        st_predict_worker_close(&c->worker[k]);
    ch_reader_close(c->reader);
    ch_worker_close(c->lister);
    st_out_close(&c->out);
    pl_arena_free(c->mem);
}

/* ---- the command ---- */

static bool number_of(const pl_args *args, const char *name, int64_t min, int64_t max, int64_t *out)
{
    const char *text = pl_arg(args, name);
    return text == NULL || (pl_parse_int(text, out) && *out >= min && *out <= max);
}

/* A word among choices; -1: it is none. */
static int word_of(const char *word, const char *const *choices, int n)
{
    for (int k = 0; k < n; k++)
        if (strcmp(word, choices[k]) == 0)
            return k;
    return -1;
}

static pl_code choices_read(predict *c, const pl_args *args, pl_error *err)
{
    static const char *const structures[] = { "auto", "keep", "generate" }; /* as ch_conformer */
    static const char *const engines[] = { "cpu", "cuda", "auto", "ref" };
    static const int32_t engine[] = { ST_ENGINE_CPU, ST_ENGINE_CUDA, ST_ENGINE_AUTO, ST_ENGINE_REF };
    const char *kind = pl_arg(args, "--structures"), *name = pl_arg(args, "--engine");
    const int k = kind != NULL ? word_of(kind, structures, 3) : ST_STRUCTURES_MODEL,
              e = word_of(name != NULL ? name : "cpu", engines, 4);

    if (kind != NULL && k < 0)
        return pl_fail(err, PL_ECONFIG, "--structures %s: allowed are auto, keep and generate", kind);
    if (e < 0)
        return pl_fail(err, PL_ECONFIG, "--engine %s: allowed are cpu, cuda, auto and ref", name);
    c->conf.structures = k;
    c->conf.compute.engine = engine[e];
    c->asks_engine = name != NULL;
    c->asks_seed = pl_arg(args, "--seed") != NULL;
    return PL_OK;
}

static pl_code options_read(predict *c, const pl_args *args, pl_error *err)
{
    const char *format = pl_arg(args, "--format");
    int64_t jobs = pl_cpu_count(), seed = 1;
    pl_code code;

    if (args->n > 2)
        return pl_fail(err, PL_ECONFIG, "only one input can be given; '%s' is a second one", args->arg[2]);
    code = choices_read(c, args, err);
    if (code != PL_OK)
        return code;
    if (!number_of(args, "--jobs", 1, MAX_WORKERS, &jobs) || !number_of(args, "--count", 1, MAX_COUNT, &c->conf.count) ||
        !number_of(args, "--seed", 0, INT64_MAX, &seed))
        return pl_fail(err, PL_ECONFIG, "--jobs takes 1 to %d, --count 1 to %d, --seed 0 or more", MAX_WORKERS, MAX_COUNT);
    c->workers = (int)jobs;
    c->conf.seed = (uint64_t)seed;
    c->model = args->arg[0];
    c->file = strcmp(args->arg[1], "-") == 0 ? "/dev/stdin" : args->arg[1];
    c->output = pl_arg(args, "--output");
    c->output = c->output != NULL && strcmp(c->output, "-") == 0 ? NULL : c->output;
    c->columns = pl_arg(args, "--columns");
    c->input_format = pl_arg(args, "--input-format");
    c->set = pl_arg(args, "--set");
    c->quiet = pl_arg(args, "--quiet") != NULL;
    c->reading.smiles_column = pl_arg(args, "--smiles-column");
    c->reading.title_column = c->reading.title_from = pl_arg(args, "--id-column");
    c->by_name = c->output != NULL && format == NULL;
    c->format = c->by_name ? st_answer_format_of(c->output) : ST_ANSWER_CSV;
    return format != NULL ? st_answer_format_parse(&c->format, format, err) : PL_OK;
}

/* What a run says as events of the stage `score`. */
static void warnings_print(const predict *c)
{
    const char *unused = st_unused_options(c->p, c->asks_seed, c->asks_engine);
    double off = 0;

    if (unused != NULL)
        pl_cmd_say("%s", unused);
    if (strcmp(ch_reader_format(c->reader), "inchi") == 0)
        pl_cmd_say("%s", st_inchi_tautomers);
    for (int k = 0; k < CH_NOTES; k++)
        if (c->n_noted[k] > 0)
            pl_cmd_say("%lld %s: %s", (long long)c->n_noted[k], pl_plural(c->n_noted[k], "record", "records"), ch_note_text[k]);
    for (int k = 0; k < c->p->scorer.n_models; k++)
        if (c->p->scorer.model[k].m->range.molecules == 0)
            pl_cmd_say(
                "model %s has no applicability domain, so the domain of its predictions is unknown and their intervals may not hold; train it "
                "again",
                c->p->scorer.model[k].m->name);
    for (int k = 0; k < c->p->scorer.n_models; k++)
        if (st_shares_domain(c->p->scorer.model[k].m))
            pl_cmd_say("model %s%s", c->p->scorer.model[k].m->name, st_shared_domain);
    for (int k = 0; k < c->p->scorer.n_models; k++)
        if (c->p->opts.n_structures == 1 && st_prepare_builds(&c->p->prepare) && st_may_have_several(c->p->scorer.model[k].m))
            pl_cmd_say("model %s%s (--count)", c->p->scorer.model[k].m->name, st_untold_several);
    for (int k = 0; k < c->workers; k++)
        off = c->worker[k].radial_error > off ? c->worker[k].radial_error : off;
    if (st_compute_is_coarse(off))
        pl_cmd_say(
            "the interpolated hidden units of the network have an error of %.2g (root mean square), so predictions are not exact; `--engine ref` is, "
            "but slow",
            off);
}

/* A table has names of molecules in a column that no one could know. */
static void titles_print(const predict *c)
{
    const char *list = columns_list(c->reader, c->mem);
    int n;

    (void)ch_reader_columns(c->reader, &n);
    if (n > 1 && !c->has_titles && c->reading.title_column == NULL && c->columns == NULL && list != NULL)
        pl_cmd_say("column `title` is empty; --id-column NAME fills it from a column of the input: %.300s", list);
}

static void summary_print(const predict *c)
{
    char n[32], outside[32];

    warnings_print(c);
    titles_print(c);
    if (c->output != NULL)
        pl_cmd_say("%s: %s answers, %s of them outside of the domain of the model", c->output, pl_count_str(c->n_records, n),
                   pl_count_str(c->n_outside, outside));
}

static int run(const pl_app *app, const pl_args *args)
{
    predict c = { .mem = pl_arena_new(1 << 18), .conf = st_predict_defaults() };
    pl_error err = { 0 };
    pl_stop stop;
    pl_code code = c.mem != NULL ? PL_OK : pl_fail(&err, PL_ENOMEM, "memory for molecules");

    (void)app;
    if (code == PL_OK)
        code = options_read(&c, args, &err);
    pl_stop_begin(&stop, 0, 0);
    if (code == PL_OK)
        code = predict_run(&c, &err);
    pl_stop_end(&stop);
    if (code == PL_OK && !c.quiet)
        summary_print(&c);
    if (code == PL_OK && c.n_failed > 0)
        code = pl_fail(&err, PL_ELIMIT, "%lld of %lld records have no prediction; column `problem` says why", (long long)c.n_failed,
                       (long long)c.n_records);
    predict_close(&c);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

const pl_cmd st_cmd_predict = {
    .name = "predict",
    .args = "MODEL IN [options]",
    .help = "predict with a model: a file or a stream in, a table out",
    .about = "MODEL is a model file, or a model that comes with molsieve:\n"
             "\n"
             "  esol      aqueous solubility logS, log10(mol/L), of drug-like molecules\n"
             "  qm9-gap   HOMO-LUMO gap, eV, of molecules of up to 9 heavy atoms with 3D\n"
             "  qm9-homo  HOMO energy, eV, of the same, from structures of DFT\n"
             "\n"
             "Several models with commas between are an ensemble: their mean and its standard\n"
             "deviation. IN is SMILES, CSV with a column of SMILES, SDF or any format that\n"
             "`read` takes, plain or gzip; - is standard input. Each record gives one row, in\n"
             "the order of the input:\n"
             "\n"
             "  title, smiles      the record; its SMILES as it was prepared\n"
             "  logS, logS_unit    the prediction\n"
             "  logS_interval90    half-width of its 90 % prediction interval\n"
             "  logS_similarity    to the nearest training molecule, 0 to 1\n"
             "  logS_domain        inside or outside of what the model was trained on;\n"
             "                     outside there is no interval, and logS_reasons says why\n"
             "  problem            why there is no prediction; the status is then 3\n"
             "\n"
             "Molecules are prepared as in the training of the model, and the numbers are\n"
             "those of a workflow with the same settings. More columns, by --columns: record,\n"
             "line, inchikey, formula, charge, n_heavy, removed, geometry, undefined_stereo,\n"
             "the descriptors (mw, logp, tpsa, ...), and any column of the input.\n"
             "\n"
             "In a pipe every record is answered at once, before the next one is read. Name\n"
             "the format (--input-format) if the first line does not show it.\n"
             "\n"
             "Examples:\n"
             "  echo 'CCO ethanol' | molsieve predict esol -\n"
             "  molsieve predict esol library.smi -o solubility.csv\n"
             "  molsieve predict pIC50.safetensors new.csv --columns id,pIC50,pIC50_interval90\n"
             "  molsieve predict esol ligands.sdf -o ligands-logS.sdf\n"
             "  molsieve predict a.safetensors,b.safetensors library.smi.gz --format jsonl\n",
    .opts = opts,
    .min_args = 2,
    .run = run,
};
