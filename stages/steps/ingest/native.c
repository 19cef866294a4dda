/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/native.h"

#include <string.h>
#include <time.h>

#include "chem/structures/mmff.h"
#include "chem/structures/structure.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

/* Evaluations of energy or distance error, times atoms, that count as one second: what a slow core does with 500 atoms. */
enum { WORK_A_SECOND = 500000 };

pl_code st_native_tables(ch_mmff *out, const ch_kernels **kernels, const char *tables, pl_arena *mem, pl_error *err)
{
    *kernels = ch_kernels_choose();
    if (*kernels == NULL)
        return pl_fail(err, PL_ECONFIG, "MOLSIEVE_CPU names kernels that this processor cannot run");
    if (tables[0] == '\0')
        return pl_fail(
            err, PL_ECONFIG,
            "the tables of MMFF94 (mmffbond.par), which come with Open Babel, were not found; set BABEL_DATADIR to their "
            "folder, or prepare.conformers.builder to openbabel");
    return ch_mmff_read(out, tables, mem, err);
}

pl_code st_native_open(st_native *out, const char *tables, const ch_prepare_opts *opts, double seconds, pl_arena *mem,
                       pl_error *err)
{
    *out = (st_native){ .opts = opts, .max_work = (int64_t)(seconds * WORK_A_SECOND) };
    return st_native_tables(&out->parameters, &out->kernels, tables, mem, err);
}

static double thread_seconds(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0)
        return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A molecule with the atoms and bonds of `from`. The arrays are shared: they live as long. */
static ch_mol with_positions(const ch_mol *from, const ch_structure *s)
{
    ch_mol mol = *from;

    mol.xyz = s->xyz;
    return mol;
}

static pl_code take(ch_prepared *out, const ch_mol *mol, const ch_structures *built, bool mmff94s, pl_arena *mem, pl_error *err)
{
    ch_mol *other = PL_NEW(mem, ch_mol, built->n);
    double *energy = PL_NEW(mem, double, built->n);

    if (other == NULL || energy == NULL)
        return pl_fail(err, PL_ENOMEM, "%d structures", (int)built->n);
    for (int32_t k = 1; k < built->n; k++) {
        other[k - 1] = with_positions(mol, &built->all[k]);
        energy[k - 1] = built->all[k].energy;
    }
    out->mol = with_positions(mol, &built->all[0]);
    out->other = other;
    out->n_other = built->n - 1;
    out->other_energy = energy;
    out->energy = built->all[0].energy;
    out->steps = built->all[0].steps;
    out->converged = built->all[0].converged;
    out->geometry = mmff94s ? "mmff94s" : "mmff94";
    out->built_by = "native";
    return PL_OK;
}

pl_code st_native_build(const st_native *native, const ch_mol *mol, const ch_stereo *stereo, ch_prepared *out, pl_arena *mem,
                        pl_arena *scratch, pl_error *err)
{
    const ch_prepare_opts *o = native->opts;
    const ch_mmff_options field = { .mmff94s = o->force_field == CH_FF_MMFF94S };
    const ch_structure_options how = { .seed = o->seed,
                                       .name = pl_hash64(out->built_from, strlen(out->built_from), 0),
                                       .count = o->n_structures,
                                       .window = o->window,
                                       .max_work = native->max_work * o->n_structures,
                                       .kernels = native->kernels };
    const double began = thread_seconds();
    ch_structures built;
    ch_terms terms;
    pl_error why = { 0 };
    pl_code code;

    pl_arena_reset(scratch);
    code = ch_terms_make(&terms, mol, &native->parameters, &field, scratch, &why);
    if (code == PL_OK)
        code = ch_structure_build(&built, mol, stereo, &terms, &how, mem, scratch, &why);
    out->cpu_s += thread_seconds() - began;
    if (code == PL_OK)
        return take(out, mol, &built, field.mmff94s, mem, err);
    if (code != PL_EINPUT)
        return pl_fail(err, code, "%s", why.text);
    out->fallback = pl_strdup(mem, why.text);
    return out->fallback != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a reason");
}
