/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/native.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chem/structures/batch.h"
#include "chem/structures/mmff.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

/* Evaluations of energy or distance error, times atoms, that count as one second: what a slow core does with 500 atoms. */
enum { WORK_A_SECOND = 500000 };

/* Molecules that a worker gives to the GPU at once; their arrays take about 40 MB. */
enum { BATCH = 256 };

pl_code st_native_tables(ch_mmff *out, const ch_kernels **kernels, const char *tables, pl_arena *mem, pl_error *err)
{
    *kernels = ch_kernels_choose();
    if (*kernels == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "MOLSIEVE_CPU=%s is not a set of kernels that this processor supports; `molsieve doctor` lists them",
                       getenv("MOLSIEVE_CPU"));
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

pl_code st_native_find(st_native *out, const ch_prepare_opts *opts, double seconds, pl_arena *mem, pl_error *err)
{
    ch_worker *w = NULL;
    ch_worker_info info = { 0 };
    pl_code code = ch_worker_open(&w, NULL, err);

    if (code == PL_OK)
        code = ch_worker_version(w, &info, err);
    ch_worker_close(w);
    return code == PL_OK ? st_native_open(out, info.tables, opts, seconds, mem, err) : code;
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

static ch_structure_options options_of(const st_native *native, const char *built_from)
{
    const ch_prepare_opts *o = native->opts;

    ch_structure_options how = { .seed = o->seed,
                                 .name = pl_hash64(built_from, strlen(built_from), 0),
                                 .count = o->n_structures,
                                 .window = o->window,
                                 .kernels = native->kernels };

    how.max_work = native->max_work * ch_structure_pool(&how);
    return how;
}

static pl_code terms_of(const st_native *native, const ch_mol *mol, ch_terms *out, pl_arena *scratch, pl_error *why)
{
    const ch_mmff_options field = { .mmff94s = native->opts->force_field == CH_FF_MMFF94S,
                                    .dielectric = native->opts->dielectric,
                                    .cumulenes = true };

    return ch_terms_make(out, mol, &native->parameters, &field, scratch, why);
}

/* What became of a molecule: its structures, or why it is left to Open Babel. */
static pl_code settle(const st_native *native, const ch_to_build *b, const ch_structures *built, pl_code code, const char *why,
                      pl_arena *mem, pl_error *err)
{
    if (code == PL_OK)
        return take(b->out, b->mol, built, native->opts->force_field == CH_FF_MMFF94S, mem, err);
    if (code != PL_EINPUT)
        return pl_fail(err, code, "%s", why);
    b->out->fallback = pl_strdup(mem, why);
    return b->out->fallback != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a reason");
}

static pl_code build_one(const st_native *native, const ch_to_build *b, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    const ch_structure_options how = options_of(native, b->out->built_from);
    const double began = thread_seconds();
    ch_structures built = { 0 };
    ch_terms terms;
    pl_error why = { 0 };
    pl_code code;

    pl_arena_reset(scratch);
    code = terms_of(native, b->mol, &terms, scratch, &why);
    if (code == PL_OK)
        code = ch_structure_build(&built, b->mol, b->stereo, &terms, &how, mem, scratch, &why);
    b->out->cpu_s += thread_seconds() - began;
    return settle(native, b, &built, code, why.text, mem, err);
}

/* A batch for the GPU; all of it lives in scratch. */
typedef struct load {
    ch_request request[BATCH];
    ch_terms terms[BATCH];
    ch_structure_options how[BATCH];
    ch_structures built[BATCH];
    pl_code typed[BATCH];
    pl_error why[BATCH];
    int32_t n; /* that have types; the others are not requested */
} load;

static pl_code build_batch(const st_native *native, ch_device *device, const ch_to_build *all, int32_t n, pl_arena *mem,
                           pl_arena *scratch, pl_error *err)
{
    const double began = thread_seconds();
    load *l = NULL;
    pl_code code = PL_OK;

    pl_arena_reset(scratch);
    l = PL_NEW(scratch, load, 1);
    if (l == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of structures");
    for (int32_t k = 0; k < n; k++) {
        l->typed[k] = terms_of(native, all[k].mol, &l->terms[k], scratch, &l->why[k]);
        l->how[k] = options_of(native, all[k].out->built_from);
        if (l->typed[k] == PL_OK)
            l->request[l->n++] = (ch_request){ all[k].mol, all[k].stereo, &l->terms[k], &l->how[k], &l->built[k], PL_OK, { 0 } };
    }
    code = ch_structures_build(l->request, l->n, device, mem, scratch, err);
    for (int32_t k = 0, r = 0; k < n && code == PL_OK; k++) {
        const ch_request *q = &l->request[r];
        const bool typed = l->typed[k] == PL_OK;
        all[k].out->cpu_s += (thread_seconds() - began) / n;
        code = settle(native, &all[k], &l->built[k], typed ? q->code : l->typed[k], typed ? q->err.text : l->why[k].text, mem, err);
        r += typed;
    }
    return code;
}

pl_code st_native_build(const st_native *native, ch_device *device, const ch_to_build *all, int32_t n, pl_arena *mem,
                        pl_arena *scratch, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0, some; k < n && code == PL_OK; k += some) {
        some = n - k < BATCH ? n - k : BATCH;
        some = device != NULL ? some : 1;
        code = device != NULL ? build_batch(native, device, &all[k], some, mem, scratch, err)
                              : build_one(native, &all[k], mem, scratch, err);
    }
    return code;
}
