/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/cost.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chem/worker/worker_client.h"
#include "pipeline/base/file.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"
#include "stages/steps/ingest/machine.h"
#include "stages/steps/ingest/native.h"

enum { N = 3, N_MORE = 4 };
#define COST_VERSION "1"

/* Paracetamol, caffeine, ibuprofen; diltiazem, sildenafil, imatinib. */
static const char *const molecules[2][N] = {
    { "CC(=O)Nc1ccc(O)cc1", "Cn1c(=O)c2c(ncn2C)n(C)c1=O", "CC(C)Cc1ccc(cc1)C(C)C(=O)O" },
    { "CC(=O)O[C@@H]1[C@@H](Sc2ccccc2N(CCN(C)C)C1=O)c1ccc(OC)cc1", "CCCc1nn(C)c2c1nc([nH]c2=O)-c1cc(ccc1OCC)S(=O)(=O)N1CCN(C)CC1",
      "Cc1ccc(cc1Nc1nccc(n1)-c1cccnc1)NC(=O)c1ccc(CN2CCN(C)CC2)cc1" },
};

/* One core of an AMD EPYC (Zen 4). */
static const st_cost usual[2] = {
    [CH_OPENBABEL] = { { 26, 62 }, { 0.0008, 0.002 }, { 0.02, 0.08 }, 1, false },
    [CH_NATIVE] = { { 26, 62 }, { 0.0008, 0.002 }, { 0.0007, 0.0035 }, 1, false },
};

typedef struct builder {
    st_native native;
    pl_arena *scratch;
} builder;

static pl_code build(void *ctx, const ch_to_build *all, int32_t n, pl_arena *mem, pl_error *err)
{
    const builder *b = ctx;
    return st_native_build(&b->native, NULL, all, n, mem, b->scratch, err);
}

static pl_code find_none(void *ctx, const char *smiles, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    (void)ctx, (void)smiles, (void)out, (void)mem, (void)err;
    *found = false;
    return PL_OK;
}

/* Mean CPU seconds and atoms of a set of molecules. False: one of them failed. */
static bool time_set(ch_worker *w, builder *b, int set, const ch_prepare_opts *opts, double *seconds, double *atoms, pl_arena *mem)
{
    const ch_known known = { b, find_none, NULL, opts->builder == CH_NATIVE ? build : NULL };
    ch_input in[N];
    ch_prepared out[N];

    memset(out, 0, sizeof out);
    for (int k = 0; k < N; k++)
        in[k] = (ch_input){ .text = molecules[set][k], .format = "smi", .len = strlen(molecules[set][k]) };
    if (ch_worker_prepare_all(w, in, N, opts, &known, out, mem, NULL) != PL_OK)
        return false;
    *seconds = *atoms = 0;
    for (int k = 0; k < N; k++) {
        if (out[k].code != CH_OK)
            return false;
        *seconds += out[k].cpu_s / N;
        *atoms += (double)out[k].mol.n_atoms / N;
    }
    return true;
}

static bool time_all(st_cost *out, ch_worker *w, builder *b, ch_prepare_opts *opts, pl_arena *mem)
{
    double none = 0, several = 0, all[2] = { 0 };
    bool good;

    out->more = 1;
    opts->conformer = CH_3D_NONE;
    good = time_set(w, b, 0, opts, &none, &none, mem); /* the library loads its tables */
    for (int set = 0; good && set < 2; set++)
        good = time_set(w, b, set, opts, &out->read[set], &none, mem);
    opts->conformer = CH_3D_GENERATE;
    for (int set = 0; good && set < 2; set++)
        good = time_set(w, b, set, opts, &all[set], &out->atoms[set], mem);
    for (int set = 0; set < 2; set++)
        out->build[set] = fmax(all[set] - out->read[set], 1e-6);
    if (!good || opts->builder != CH_NATIVE)
        return good;
    opts->n_structures = N_MORE;
    good = time_set(w, b, 1, opts, &several, &none, mem);
    out->more = fmax((several - all[1]) / (N_MORE - 1) / out->build[1], 0.01);
    return good;
}

static ch_prepare_opts options_of(const st_prepare_conf *c)
{
    ch_prepare_opts o = ch_prepare_defaults();

    o.builder = (ch_builder)c->builder;
    o.force_field = (ch_force_field)c->force_field;
    o.window = c->window;
    o.dielectric = st_prepare_dielectric(c);
    o.seed = 1;
    return o;
}

static bool measure(st_cost *out, const st_prepare_conf *c, ch_worker *w, const ch_worker_info *info, pl_arena *mem)
{
    ch_prepare_opts opts = options_of(c);
    builder b = { .scratch = pl_arena_new(1 << 16) };
    bool good = b.scratch != NULL;

    if (good && opts.builder == CH_NATIVE)
        good = st_native_open(&b.native, info->tables, &opts, c->retry_cpu_limit, mem, NULL) == PL_OK;
    good = good && time_all(out, w, &b, &opts, mem);
    out->measured = good;
    pl_arena_free(b.scratch);
    return good;
}

/* ---- the cache ---- */

const char *st_cost_text(const st_cost *c, const char *machine, pl_arena *mem)
{
    json_t *all = json_pack("{s:s,s:[f,f],s:[f,f],s:[f,f],s:f}", "machine", machine, "atoms", c->atoms[0], c->atoms[1], "read",
                            c->read[0], c->read[1], "build", c->build[0], c->build[1], "more", c->more);
    char *text = all != NULL ? json_dumps(all, JSON_INDENT(1)) : NULL;
    const char *out = text != NULL ? pl_sprintf(mem, "%s\n", text) : NULL;

    json_decref(all);
    free(text);
    return out;
}

static bool is_positive(double x) { return x > 0 && isfinite(x); }

bool st_cost_read(st_cost *out, const char *text, const char *machine)
{
    json_t *all = json_loads(text, 0, NULL);
    const char *name = NULL;
    st_cost c = { .measured = true };
    bool good = json_unpack(all, "{s:s,s:[F,F],s:[F,F],s:[F,F],s:F}", "machine", &name, "atoms", &c.atoms[0], &c.atoms[1], "read",
                            &c.read[0], &c.read[1], "build", &c.build[0], &c.build[1], "more", &c.more) == 0;

    good = good && strcmp(name, machine) == 0 && is_positive(c.atoms[0]) && c.atoms[1] > c.atoms[0] && is_positive(c.atoms[1]) &&
           is_positive(c.read[0]) && is_positive(c.read[1]) && is_positive(c.build[0]) && is_positive(c.build[1]) &&
           is_positive(c.more);
    json_decref(all);
    if (good)
        *out = c;
    return good;
}

/* What the times depend on. NULL: no memory. */
static const char *machine_of(const st_prepare_conf *c, const ch_worker_info *info, pl_arena *mem)
{
    char host[128] = "";
    const char *level = st_machine_level(mem);
    const ch_kernels *kernels = ch_kernels_choose();

    (void)gethostname(host, sizeof host - 1);
    return level == NULL ? NULL
                         : pl_sprintf(mem, "%s, %s, %s, library %s, structures %s, cost %s, builder %d, force field %d", host,
                                      level, kernels != NULL ? kernels->name : "no kernels", info->openbabel, ST_NATIVE_VERSION,
                                      COST_VERSION, (int)c->builder, (int)c->force_field);
}

/* NULL: no folder for a cache, or no memory. */
static const char *path_of(const char *machine, pl_arena *mem)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *folder = NULL;

    if (cache != NULL && cache[0] == '/')
        folder = pl_sprintf(mem, "%s/molsieve", cache);
    else if (home != NULL && home[0] == '/')
        folder = pl_sprintf(mem, "%s/.cache/molsieve", home);
    if (folder == NULL || machine == NULL || pl_mkdirs(folder, NULL) != PL_OK)
        return NULL;
    return pl_sprintf(mem, "%s/cost-%016llx.json", folder, (unsigned long long)pl_hash64(machine, strlen(machine), 0));
}

static bool is_kept(st_cost *out, const char *path, const char *machine, pl_arena *mem)
{
    pl_bytes text = { 0 };

    return path != NULL && !pl_path_is_gone(path) && pl_file_read(&text, path, mem, NULL) == PL_OK &&
           st_cost_read(out, text.data, machine);
}

static void keep(const st_cost *c, const char *path, const char *machine, pl_arena *mem)
{
    const char *text = path != NULL ? st_cost_text(c, machine, mem) : NULL;

    if (text != NULL)
        (void)pl_file_write(path, (pl_bytes){ text, strlen(text) }, NULL); /* a cache: measured again where it fails */
}

st_cost st_cost_get(const st_prepare_conf *c, pl_arena *mem)
{
    st_cost out = usual[c->builder == CH_NATIVE ? CH_NATIVE : CH_OPENBABEL], found = { 0 };
    ch_worker *w = NULL;
    ch_worker_info info = { 0 };

    if (ch_worker_open(&w, NULL, NULL) == PL_OK && ch_worker_version(w, &info, NULL) == PL_OK) {
        const char *machine = machine_of(c, &info, mem), *path = path_of(machine, mem);
        if (is_kept(&found, path, machine, mem))
            out = found;
        else if (measure(&found, c, w, &info, mem)) {
            out = found;
            keep(&found, path, machine, mem);
        }
    }
    ch_worker_close(w);
    return out;
}

/* ---- the formula ---- */

static double at(const double atoms[2], const double seconds[2], double n)
{
    const double power = log(seconds[1] / seconds[0]) / log(atoms[1] / atoms[0]);
    return seconds[0] * pow(fmax(n, 1) / atoms[0], fmin(fmax(power, 0), 3));
}

double st_cost_seconds(const st_cost *c, double atoms, double structures)
{
    const double first = structures > 0 ? at(c->atoms, c->build, atoms) : 0;
    return at(c->atoms, c->read, atoms) + first * (1 + c->more * fmax(structures - 1, 0));
}
