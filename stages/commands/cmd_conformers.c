/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/sdf_write.h"
#include "chem/records/record.h"
#include "chem/structures/device.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/par.h"
#include "pipeline/base/stop.h"
#include "stages/commands/commands.h"
#include "stages/files/out_file.h"
#include "stages/steps/ingest/native.h"

/* Records of a group, which one worker builds, at most and without a GPU; groups in the works for each worker. */
enum { GROUP = 256, CPU_GROUP = 32, AHEAD = 3, MAX_WORKERS = 1024, MAX_COUNT = 1000 };

static const double CPU_SECONDS = 30; /* of one molecule, as conformers.retry_cpu_limit */

static const pl_opt opts[] = {
    { "--output", 'o', "FILE", "SDF file, complete or not written at all; .gz is compressed; default: standard output" },
    { "--count", 'c', "K", "structures of a molecule, at most (1)" },
    { "--window", 0, "E", "leave out those that are E kcal/mol above the lowest (10; 0: none)" },
    { "--dielectric", 0, "D", "divide electrostatics by D; 1: vacuum (1; with --count 4)" },
    { "--device", 0, "NAME", "where structures are built: cpu or cuda, the first GPU (cpu)" },
    { "--force-field", 0, "NAME", "mmff94 or mmff94s (mmff94)" },
    { "--seed", 0, "N", "other random numbers (1)" },
    { "--format", 'f', "NAME", "format of the input: smi, csv, sdf ... (by its name or first bytes)" },
    { "--jobs", 'j', "N", "threads (all processors)" },
    { 0 },
};

typedef struct {
    pl_arena *mem;
    int32_t n;
    ch_input in[GROUP];
    const char *title[GROUP], *problem[GROUP];
    int64_t line[GROUP], n_structures, n_failed;
    pl_text sdf, said;
} group;

typedef struct {
    ch_worker *chem;
    ch_device *device; /* NULL: the processor */
    pl_arena *scratch;
    const st_native *native;
} builder;

typedef struct {
    const char *file, *format, *output;
    ch_prepare_opts opts;
    char gpu[256]; /* that builds; "" none */
    int workers, n_groups;
    st_native native;
    builder *builders; /* [workers] */
    group *groups;     /* [n_groups] */
    ch_reader *reader;
    st_out out;
    int64_t n_records, n_failed, n_structures;
    pl_arena *mem;
} conformers;

/* ---- one group, in a thread ---- */

static pl_code build(void *ctx, const ch_to_build *all, int32_t n, pl_arena *mem, pl_error *err)
{
    const builder *b = ctx;
    return st_native_build(b->native, b->device, all, n, mem, b->scratch, err);
}

/* kcal: its energy; NaN where it is not known. */
static void add_structure(group *g, const char *title, const ch_prepared *p, const ch_mol *mol, int rank, double kcal)
{
    char energy[32], place[16], open[16];
    const ch_sdf_field field[] = {
        { "smiles", p->smiles },
        { "rank", place },
        { "energy", isfinite(kcal) ? energy : NULL },
        { "built_by", p->built_by },
        { "force_field", p->geometry },
        { "removed", p->removed[0] != '\0' ? p->removed : NULL },
        { "undefined_stereo", p->undefined_stereo > 0 ? open : NULL },
        { "fallback", p->fallback },
    };

    (void)snprintf(place, sizeof place, "%d", rank);
    (void)snprintf(open, sizeof open, "%d", (int)p->undefined_stereo);
    (void)snprintf(energy, sizeof energy, "%.4f", kcal);
    ch_sdf_write(&g->sdf, mol, title, field, sizeof field / sizeof *field);
    g->n_structures++;
}

static void add_record(const conformers *c, group *g, int32_t i, const ch_prepared *p)
{
    const char *why = g->problem[i] != NULL ? g->problem[i] : p->message;

    if (g->problem[i] != NULL || p->code != CH_OK) {
        pl_text_addf(&g->said, "%s:%lld: %s%s%s\n", c->file, (long long)g->line[i], g->title[i], g->title[i][0] != '\0' ? ": " : "",
                     why);
        g->n_failed++;
        return;
    }
    if (p->lost_stereo > 0)
        pl_text_addf(&g->said, "%s:%lld: %s%swarning: the structure has either form of %d stereo elements\n", c->file,
                     (long long)g->line[i], g->title[i], g->title[i][0] != '\0' ? ": " : "", (int)p->lost_stereo);
    add_structure(g, g->title[i], p, &p->mol, 1, p->energy);
    for (int32_t k = 0; k < p->n_other; k++)
        add_structure(g, g->title[i], p, &p->other[k], k + 2, p->other_energy != NULL ? p->other_energy[k] : NAN);
}

static pl_code group_build(void *ctx, int worker, int slot, pl_error *err)
{
    conformers *c = ctx;
    group *g = &c->groups[slot];
    const ch_known known = { .ctx = &c->builders[worker], .build = build };
    ch_prepared *result = PL_NEW(g->mem, ch_prepared, g->n + 1);
    pl_code code;

    if (result == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d molecules", g->n);
    code = ch_worker_prepare_all(c->builders[worker].chem, g->in, g->n, &c->opts, &known, result, g->mem, err);
    for (int32_t i = 0; i < g->n && code == PL_OK; i++)
        add_record(c, g, i, &result[i]);
    return pl_text_ok(&g->sdf) ? code : pl_fail(err, PL_ENOMEM, "memory for structures");
}

/* ---- the file ---- */

static pl_code record_add(group *g, const ch_record *record, pl_error *err)
{
    const int32_t i = g->n++;
    const char *text = record->problem != NULL ? "" : pl_strndup(g->mem, record->text, record->len);

    g->title[i] = pl_strdup(g->mem, record->title);
    g->problem[i] = record->problem != NULL ? pl_strdup(g->mem, record->problem) : NULL;
    g->line[i] = record->line;
    g->in[i] = (ch_input){ .text = text,
                           .format = record->problem != NULL ? "smi" : pl_strdup(g->mem, record->format),
                           .len = record->problem != NULL ? 0 : record->len };
    if (text == NULL || g->title[i] == NULL || g->in[i].format == NULL || (record->problem != NULL && g->problem[i] == NULL))
        return pl_fail(err, PL_ENOMEM, "no memory for a record");
    return PL_OK;
}

static pl_code group_fill(conformers *c, group *g, bool *more, pl_error *err)
{
    const int32_t most = c->gpu[0] != '\0' ? GROUP : CPU_GROUP;
    ch_record record;
    pl_code code = PL_OK;

    pl_arena_reset(g->mem);
    pl_text_reset(&g->sdf);
    pl_text_reset(&g->said);
    g->n = 0;
    g->n_structures = g->n_failed = 0;
    while (code == PL_OK && *more && g->n < most) {
        code = ch_reader_next(c->reader, &record, more, err);
        if (code == PL_OK && *more)
            code = record_add(g, &record, err);
    }
    c->n_records += g->n;
    return code;
}

static pl_code group_write(conformers *c, const group *g, pl_error *err)
{
    pl_code code = PL_OK;

    if (g->said.len > 0)
        pl_cmd_say_lines(pl_text_str(&g->said));
    if (c->output != NULL)
        code = st_out_add(&c->out, &g->sdf, err);
    else if (fwrite(pl_text_str(&g->sdf), 1, g->sdf.len, stdout) != g->sdf.len || fflush(stdout) != 0)
        code = pl_fail_errno(err, "standard output");
    c->n_structures += g->n_structures;
    c->n_failed += g->n_failed;
    return code;
}

static pl_code group_take(pl_pool *pool, int slot, pl_error *err)
{
    pl_code code = PL_OK;

    while (!pl_pool_take(pool, slot, &code, err))
        pl_pool_wait(pool);
    return code;
}

/* Groups are written in the order of the file, whichever is done first. */
static pl_code groups_run(conformers *c, pl_error *err)
{
    pl_pool *pool = NULL;
    int64_t first = 0, next = 0;
    bool more = true;
    pl_code code = pl_pool_open(&pool, c->workers, c->n_groups, group_build, c, err);

    while (code == PL_OK && (more || first < next)) {
        const int slot = (int)((more && next - first < c->n_groups ? next : first) % c->n_groups);
        if (more && next - first < c->n_groups) {
            code = group_fill(c, &c->groups[slot], &more, err);
            if (code == PL_OK)
                pl_pool_put(pool, slot, next++);
            continue;
        }
        code = group_take(pool, slot, err);
        if (code == PL_OK)
            code = group_write(c, &c->groups[slot], err);
        first++;
    }
    pl_pool_close(pool);
    return code;
}

/* ---- the command ---- */

static bool number_of(const pl_args *args, const char *name, int64_t max, int64_t *out)
{
    const char *text = pl_arg(args, name);
    return text == NULL || (pl_parse_int(text, out) && *out >= (strcmp(name, "--seed") == 0 ? 0 : 1) && *out <= max);
}

static pl_code device_read(conformers *c, const char *name, pl_error *err)
{
    pl_error why = { 0 };

    if (name == NULL || strcmp(name, "cpu") == 0)
        return PL_OK;
    if (strcmp(name, "cuda") != 0)
        return pl_fail(err, PL_ECONFIG, "--device %s: allowed are cpu and cuda", name);
    if (ch_device_find(0, c->gpu, sizeof c->gpu, &why) == PL_OK)
        return PL_OK;
    return pl_fail(err, PL_ECONFIG, "--device cuda: %s; --device cpu builds without", why.text);
}

static pl_code options_read(conformers *c, const pl_args *args, pl_error *err)
{
    const char *field = pl_arg(args, "--force-field"), *window = pl_arg(args, "--window"), *constant = pl_arg(args, "--dielectric");
    int64_t count = 1, seed = 1, jobs = pl_cpu_count();

    if (args->n > 1)
        return pl_fail(err, PL_ECONFIG, "only one file can be given; '%s' is a second one", args->arg[1]);
    if (!number_of(args, "--count", MAX_COUNT, &count) || !number_of(args, "--jobs", MAX_WORKERS, &jobs) ||
        !number_of(args, "--seed", INT64_MAX, &seed))
        return pl_fail(err, PL_ECONFIG, "--count takes 1 to %d, --jobs 1 to %d, --seed 0 or more", MAX_COUNT, MAX_WORKERS);
    if (field != NULL && strcmp(field, "mmff94") != 0 && strcmp(field, "mmff94s") != 0)
        return pl_fail(err, PL_ECONFIG, "--force-field %s: allowed are mmff94 and mmff94s", field);
    c->opts = ch_prepare_defaults();
    if (window != NULL && (!pl_parse_real(window, &c->opts.window) || !(c->opts.window >= 0)))
        return pl_fail(err, PL_ECONFIG, "--window %s: not an energy in kcal/mol", window);
    c->opts.dielectric = count > 1 ? CH_DIELECTRIC_SEVERAL : 1;
    if (constant != NULL &&
        (!pl_parse_real(constant, &c->opts.dielectric) || !(c->opts.dielectric >= 1 && c->opts.dielectric <= 1000)))
        return pl_fail(err, PL_ECONFIG, "--dielectric %s: not a number from 1 to 1000", constant);
    c->opts.conformer = CH_3D_GENERATE;
    c->opts.builder = CH_NATIVE;
    c->opts.force_field = field != NULL && strcmp(field, "mmff94s") == 0 ? CH_FF_MMFF94S : CH_FF_MMFF94;
    c->opts.n_structures = (int32_t)count;
    c->opts.seed = (uint64_t)seed;
    c->workers = (int)jobs;
    c->file = strcmp(args->arg[0], "-") == 0 ? "/dev/stdin" : args->arg[0];
    c->format = pl_arg(args, "--format");
    c->output = pl_arg(args, "--output");
    return device_read(c, pl_arg(args, "--device"), err);
}

static pl_code builders_open(conformers *c, pl_error *err)
{
    const ch_worker_opts budget = { .cpu_first_s = CPU_SECONDS, .cpu_retry_s = 2 * CPU_SECONDS, .stop = pl_stop_flag() };
    ch_worker_info info = { 0 };
    pl_code code = PL_OK;

    c->builders = PL_NEW(c->mem, builder, c->workers);
    if (c->builders == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d threads", c->workers);
    for (int k = 0; k < c->workers && code == PL_OK; k++) {
        c->builders[k] = (builder){ .scratch = pl_arena_new(1 << 16), .native = &c->native };
        code = c->builders[k].scratch != NULL ? ch_worker_open(&c->builders[k].chem, &budget, err)
                                              : pl_fail(err, PL_ENOMEM, "no memory for %d threads", c->workers);
        if (code == PL_OK && c->gpu[0] != '\0')
            code = ch_device_open(&c->builders[k].device, 0, err);
    }
    if (code == PL_OK)
        code = ch_worker_version(c->builders[0].chem, &info, err);
    return code == PL_OK ? st_native_open(&c->native, info.tables, &c->opts, CPU_SECONDS, c->mem, err) : code;
}

static pl_code groups_open(conformers *c, pl_error *err)
{
    c->n_groups = AHEAD * c->workers;
    c->groups = PL_NEW(c->mem, group, c->n_groups);
    for (int k = 0; c->groups != NULL && k < c->n_groups; k++)
        if ((c->groups[k].mem = pl_arena_new(1 << 16)) == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for %d groups of molecules", c->n_groups);
    return c->groups != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for %d groups of molecules", c->n_groups);
}

static void conformers_close(conformers *c)
{
    for (int k = 0; c->groups != NULL && k < c->n_groups; k++) {
        pl_arena_free(c->groups[k].mem);
        pl_text_free(&c->groups[k].sdf);
        pl_text_free(&c->groups[k].said);
    }
    for (int k = 0; c->builders != NULL && k < c->workers; k++) {
        ch_worker_close(c->builders[k].chem);
        ch_device_close(c->builders[k].device);
        pl_arena_free(c->builders[k].scratch);
    }
    ch_reader_close(c->reader);
    st_out_close(&c->out);
}

static pl_code conformers_make(conformers *c, pl_error *err)
{
    ch_reader_opts reading = { .stop = pl_stop_flag() };
    pl_code code = builders_open(c, err);

    if (code == PL_OK)
        code = groups_open(c, err);
    reading.lister = code == PL_OK ? c->builders[0].chem : NULL;
    if (code == PL_OK)
        code = ch_reader_open(&c->reader, c->file, c->format, &reading, err);
    if (code == PL_OK && c->output != NULL)
        code = st_out_open(&c->out, c->output, c->mem, err);
    if (code == PL_OK && c->gpu[0] != '\0')
        pl_cmd_say("structures are built on a GPU: %s", c->gpu);
    if (code == PL_OK)
        code = groups_run(c, err);
    if (code == PL_OK && c->n_records == 0)
        return pl_fail(err, PL_ECONFIG, "%s: the file has no records", c->file);
    return code == PL_OK && c->output != NULL ? st_out_keep(&c->out, err) : code;
}

static int run(const pl_app *app, const pl_args *args)
{
    conformers c = { .mem = pl_arena_new(1 << 18) };
    pl_error err = { 0 };
    pl_stop stop;
    pl_code code = c.mem != NULL ? PL_OK : pl_fail(&err, PL_ENOMEM, "memory for molecules");

    (void)app;
    if (code == PL_OK)
        code = options_read(&c, args, &err);
    if (code == PL_OK)
        code = c.output != NULL ? st_out_check(c.output, c.file, &err) : st_out_check_stdout(c.file, &err);
    pl_stop_begin(&stop, 0, 0);
    if (code == PL_OK)
        code = conformers_make(&c, &err);
    pl_stop_end(&stop);
    conformers_close(&c);
    pl_arena_free(c.mem);
    if (code == PL_OK && c.n_failed > 0)
        code = pl_fail(&err, PL_ELIMIT, "%lld of %lld records have no structure", (long long)c.n_failed, (long long)c.n_records);
    if (code == PL_OK && c.output != NULL)
        pl_cmd_say("%lld structures of %lld records in %s", (long long)c.n_structures, (long long)c.n_records, c.output);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

const pl_cmd st_cmd_conformers = {
    .name = "conformers",
    .args = "FILE [options]",
    .help = "3D structures of the molecules of a file, without a workflow",
    .about = "Builds 3D structures by distance geometry and MMFF94, minimised until the\n"
             "gradient is below 0.01 kcal/mol/A, and writes them as SDF in the order of the\n"
             "file. FILE is SMILES, CSV with a column `smiles`, SDF or any format that Open\n"
             "Babel reads, plain or gzip; - is standard input. Counter-ions and solvents are\n"
             "removed. Defined stereo is kept; undefined stereo is arbitrary. The same input\n"
             "gives the same bytes for any number of threads. A GPU gives other last digits\n"
             "than the processor, and one in five molecules another conformer of similar\n"
             "energy; a line says that it is used.\n"
             "\n"
             "Each structure has data fields: smiles, rank (1 is the lowest energy), energy\n"
             "(kcal/mol), built_by (native; or openbabel, with the reason in fallback),\n"
             "force_field. A record without a structure is reported with its line, and the\n"
             "status is then 3.\n"
             "\n"
             "Examples:\n"
             "  molsieve conformers library.smi -o library.sdf.gz\n"
             "  molsieve conformers ligands.csv --count 20 --window 6 > ensembles.sdf\n"
             "  echo 'CCO ethanol' | molsieve conformers -\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
