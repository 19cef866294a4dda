/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chem/records/record.h"
#include "chem/structures/energy.h"
#include "chem/structures/mmff.h"
#include "chem/structures/relax.h"
#include "chem/worker/worker_client.h"
#include "pipeline/base/stop.h"
#include "stages/commands/commands.h"
#include "stages/database/rows.h"
#include "stages/files/out_file.h"
#include "stages/steps/ingest/native.h"

enum { MAX_STEPS = 20000, TITLE_WIDTH = 16, TOTAL_WIDTH = 8 };

static const pl_opt opts[] = { { "--csv", 0, NULL, "one row a record, energies to 5 decimals" },
                               { "--json", 0, NULL, "an array of one object a record" },
                               { "--force-field", 0, "NAME", "mmff94 or mmff94s (mmff94)" },
                               { "--minimise", 0, NULL, "move the atoms to the nearest minimum first" },
                               { 0 } };

/* All that a record needs; mem is emptied for each. */
typedef struct {
    const char *file;
    st_format format;
    ch_mmff_options force_field;
    bool minimise;
    ch_mmff mmff;
    const ch_kernels *kernels;
    ch_worker *worker;
    pl_arena *mem;
    int64_t n_done, n_failed;
} energy_work;

/* ---- one record ---- */

/* Only hydrogens and positions that are in the file count: nothing is built. */
static pl_code no_building(void *ctx, ch_prepared *p, pl_arena *mem, pl_error *err)
{
    (void)ctx, (void)mem, (void)err;
    if (strcmp(p->geometry, "build") == 0)
        p->set_aside = "no";
    return PL_OK;
}

static pl_code read_molecule(ch_mol *out, energy_work *w, const ch_record *record, pl_error *err)
{
    const ch_known known = { .judge = no_building };
    const ch_input input = { .text = record->text, .format = record->format, .len = record->len };
    ch_prepare_opts opts_of_worker = ch_prepare_defaults();
    ch_prepared prepared = { 0 };

    if (record->problem != NULL)
        return pl_fail(err, PL_EINPUT, "%s", record->problem);
    opts_of_worker.largest_fragment = opts_of_worker.one_drawing = false; /* MMFF94 reads charges and orders as drawn */
    opts_of_worker.max_heavy_atoms = opts_of_worker.max_atoms = CH_TERMS_MAX_ATOMS;
    opts_of_worker.conformer = CH_3D_AUTO;
    const pl_code code = ch_worker_prepare_all(w->worker, &input, 1, &opts_of_worker, &known, &prepared, w->mem, err);
    if (code != PL_OK)
        return code;
    if (prepared.code != CH_OK)
        return pl_fail(err, PL_EINPUT, "%s: %s", ch_status_name(prepared.code), prepared.message);
    if (prepared.mol.n_atoms == 0 || prepared.mol.xyz == NULL)
        return pl_fail(err, PL_EINPUT,
                       "the record lacks hydrogens or 3D positions, and an energy needs all of them; `molsieve run` builds "
                       "structures");
    *out = prepared.mol;
    return PL_OK;
}

/* The decimal that was in the file: the shortest one that is this float. */
static double decimal_of(float x)
{
    char buf[32];
    double out;

    return pl_parse_real(pl_float_str(x, buf), &out) ? out : (double)x;
}

/* Single precision while it moves, as in every run; the energies are computed in double. */
static pl_code go_down(double (*xyz)[3], const ch_terms *terms, const energy_work *w, const ch_record *record, pl_error *err)
{
    const ch_relax_options options = { .max_steps = MAX_STEPS };
    const size_t n = (size_t)terms->n_atoms;
    float(*at)[3] = pl_arena_get(w->mem, n, sizeof *at);
    ch_relaxer relaxer;
    ch_relaxed result;
    pl_code code;

    if (at == NULL)
        return pl_fail(err, PL_ENOMEM, "positions of %zu atoms", n);
    for (size_t i = 0; i < 3 * n; i++)
        at[i / 3][i % 3] = (float)xyz[i / 3][i % 3];
    code = ch_relaxer_make(&relaxer, terms, w->kernels, w->mem, err);
    if (code == PL_OK)
        code = ch_relax(&result, at, &relaxer, &options, err);
    if (code != PL_OK)
        return code;
    for (size_t i = 0; i < 3 * n; i++)
        xyz[i / 3][i % 3] = (double)at[i / 3][i % 3];
    if (!result.converged)
        pl_cmd_say("%s:%lld: not at its minimum after %d steps: the gradient is %.3g kcal/mol/A", w->file, (long long)record->line,
                   result.steps, result.gradient);
    return PL_OK;
}

static pl_code energy_of(double sums[CH_N_TERM_CLASSES], energy_work *w, const ch_record *record, pl_error *err)
{
    ch_mol mol = { 0 };
    ch_terms terms;
    pl_code code = read_molecule(&mol, w, record, err);

    if (code == PL_OK)
        code = ch_terms_make(&terms, &mol, &w->mmff, &w->force_field, w->mem, err);
    if (code != PL_OK)
        return code;
    double(*xyz)[3] = pl_arena_get(w->mem, (size_t)mol.n_atoms, sizeof *xyz);
    if (xyz == NULL)
        return pl_fail(err, PL_ENOMEM, "positions of %d atoms", mol.n_atoms);
    for (int32_t i = 0; i < mol.n_atoms; i++)
        for (int x = 0; x < 3; x++)
            xyz[i][x] = decimal_of(mol.xyz[i][x]);
    if (w->minimise)
        code = go_down(xyz, &terms, w, record, err);
    if (code != PL_OK)
        return code;
    ch_energy(sums, NULL, &terms, (const double(*)[3])xyz);
    return isfinite(ch_energy_total(sums)) ? PL_OK
                                           : pl_fail(err, PL_EINPUT, "the energy is not finite: two atoms are in one place");
}

/* ---- output ---- */

/* The table is 80 columns wide, with 2 decimals. */
static const struct {
    const char *head;
    int width;
} term_column[CH_N_TERM_CLASSES] = { { "bond", 7 },    { "angle", 7 }, { "str-bnd", 7 }, { "oop", 5 },
                                     { "torsion", 7 }, { "vdw", 7 },   { "elec", 8 } };

static void print_head(const energy_work *w)
{
    if (w->format == ST_JSON) {
        (void)printf("[");
        return;
    }
    if (w->format == ST_CSV)
        (void)printf("title,total");
    else
        (void)printf("%-*s %*s", TITLE_WIDTH, "title", TOTAL_WIDTH, "total");
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        if (w->format == ST_CSV)
            (void)printf(",%s", ch_term_class_name((enum ch_term_class)c));
        else
            (void)printf(" %*s", term_column[c].width, term_column[c].head);
    (void)printf("\n");
}

static void add_json(pl_text *out, const energy_work *w, const char *title, const double sums[CH_N_TERM_CLASSES])
{
    pl_text_addf(out, "%s\n{\"title\": ", w->n_done > 0 ? "," : "");
    pl_text_add_json(out, title);
    pl_text_addf(out, ", \"total\": %.5f", ch_energy_total(sums));
    for (int c = 0; c < CH_N_TERM_CLASSES; c++)
        pl_text_addf(out, ", \"%s\": %.5f", ch_term_class_name((enum ch_term_class)c), sums[c]);
    pl_text_add(out, "}");
}

static void print_record(const energy_work *w, const char *title, const double sums[CH_N_TERM_CLASSES])
{
    const bool csv = w->format == ST_CSV;
    pl_text out = { 0 };

    if (w->format == ST_JSON) {
        add_json(&out, w, title, sums);
    } else {
        if (csv)
            st_csv_add(&out, title);
        else
            pl_text_addf(&out, "%-*.*s", TITLE_WIDTH, TITLE_WIDTH, title);
        pl_text_addf(&out, csv ? ",%.*f" : " %*.2f", csv ? 5 : TOTAL_WIDTH, ch_energy_total(sums));
        for (int c = 0; c < CH_N_TERM_CLASSES; c++)
            pl_text_addf(&out, csv ? ",%.*f" : " %*.2f", csv ? 5 : term_column[c].width, sums[c]);
        pl_text_add(&out, "\n");
    }
    (void)fputs(pl_text_str(&out), stdout);
    pl_text_free(&out);
}

/* ---- all records ---- */

static pl_code next_record(bool *more, energy_work *w, ch_reader *reader, pl_error *err)
{
    double sums[CH_N_TERM_CLASSES] = { 0 };
    ch_record record;
    pl_code code = ch_reader_next(reader, &record, more, err);

    if (code != PL_OK || !*more)
        return code;
    pl_arena_reset(w->mem);
    code = energy_of(sums, w, &record, err);
    if (code == PL_EINPUT) {
        pl_cmd_say("%s:%lld: %s%s%s", w->file, (long long)record.line, record.title, record.title[0] != '\0' ? ": " : "",
                   err->text);
        w->n_failed++;
        *err = (pl_error){ 0 };
        return PL_OK;
    }
    if (code != PL_OK)
        return code;
    print_record(w, record.title, sums);
    w->n_done++;
    return PL_OK;
}

static pl_code all_records(energy_work *w, pl_error *err)
{
    const ch_reader_opts reading = { .lister = w->worker, .max_record_bytes = 16 << 20 };
    ch_reader *reader = NULL;
    bool more = true;
    pl_code code = ch_reader_open(&reader, w->file, NULL, &reading, err);

    if (code == PL_OK)
        print_head(w);
    const bool begun = code == PL_OK;
    while (code == PL_OK && more)
        code = next_record(&more, w, reader, err);
    if (begun && w->format == ST_JSON)
        (void)printf("%s]\n", w->n_done > 0 ? "\n" : "");
    ch_reader_close(reader);
    const int64_t n = w->n_failed + w->n_done;
    if (code != PL_OK)
        return code;
    if (w->n_failed > 0)
        return pl_fail(err, PL_ELIMIT, "%lld of %lld records have no energy", (long long)w->n_failed, (long long)n);
    return w->n_done > 0 ? PL_OK : pl_fail(err, PL_ECONFIG, "%s: the file has no records", w->file);
}

static pl_code options_read(energy_work *w, const pl_args *args, pl_error *err)
{
    const char *name = pl_arg(args, "--force-field");

    if (args->n > 1)
        return pl_fail(err, PL_ECONFIG, "only one file can be given; '%s' is a second one", args->arg[1]);
    w->file = args->arg[0];
    w->minimise = pl_arg(args, "--minimise") != NULL;
    if (pl_arg(args, "--csv") != NULL)
        w->format = ST_CSV;
    if (pl_arg(args, "--json") != NULL)
        w->format = ST_JSON;
    if (name != NULL && strcmp(name, "mmff94") != 0 && strcmp(name, "mmff94s") != 0)
        return pl_fail(err, PL_ECONFIG, "--force-field %s: allowed are mmff94 and mmff94s", name);
    w->force_field.mmff94s = name != NULL && strcmp(name, "mmff94s") == 0;
    return PL_OK;
}

static int run(const pl_app *app, const pl_args *args)
{
    energy_work w = { .mem = pl_arena_new(1 << 20) };
    pl_arena *tables = pl_arena_new(1 << 18);
    ch_worker_info info;
    pl_error err = { 0 };
    pl_code code = PL_OK;

    (void)app;
    if (w.mem == NULL || tables == NULL)
        code = pl_fail(&err, PL_ENOMEM, "memory for molecules");
    if (code == PL_OK)
        code = options_read(&w, args, &err);
    if (code == PL_OK)
        code = st_out_check_stdout(w.file, &err);
    if (code == PL_OK)
        code = ch_worker_open(&w.worker, NULL, &err);
    if (code == PL_OK)
        code = ch_worker_version(w.worker, &info, &err);
    if (code == PL_OK)
        code = st_native_tables(&w.mmff, &w.kernels, info.tables, tables, &err);
    if (code == PL_OK)
        code = all_records(&w, &err);
    ch_worker_close(w.worker);
    pl_arena_free(w.mem);
    pl_arena_free(tables);
    return code == PL_OK ? 0 : pl_cmd_fail(&err);
}

const pl_cmd st_cmd_energy = {
    .name = "energy",
    .args = "FILE [options]",
    .help = "MMFF94 energies of structures, term by term",
    .about = "Prints the energy of each record of a file of 3D structures, in kcal/mol: the\n"
             "total and its seven terms, which are bond stretching, angle bending,\n"
             "stretch-bend, out-of-plane bending, torsion, van der Waals and electrostatic.\n"
             "Reads any format that Open Babel reads, plain or gzip. The file must have all\n"
             "hydrogens; atoms stay where they are.\n"
             "\n"
             "Energies of different molecules cannot be compared. Those of conformers of one\n"
             "molecule can: the lowest is the most stable one in vacuum. A large term says\n"
             "where a structure is strained: bond and angle for wrong geometry, van der Waals\n"
             "for atoms that clash, electrostatic for like charges that are close. Crystal\n"
             "structures are high in bond and angle until they are minimised.\n"
             "\n"
             "mmff94s is MMFF94 with flatter nitrogens, as they are on average in crystals:\n"
             "use it to compare with crystal structures. --minimise moves to the nearest\n"
             "minimum, where the root mean square gradient is below 0.01 kcal/mol/A.\n"
             "\n"
             "The parameters are read from Open Babel's data folder (mmff*.par; BABEL_DATADIR\n"
             "names another). A record for which MMFF94 has no parameters (boron, metals,\n"
             "radicals) is reported on standard error with its line and the atom; the others\n"
             "are printed, and the status is 3.\n"
             "\n"
             "  molsieve energy ligands.sdf.gz\n"
             "  molsieve energy --minimise --csv poses.sdf > energies.csv\n"
             "  molsieve energy --force-field mmff94s --json conformers.sdf\n",
    .opts = opts,
    .min_args = 1,
    .run = run,
};
