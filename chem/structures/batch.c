/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/batch.h"

#include <math.h>
#include <string.h>

#include "chem/structures/check.h"

/* Nine in ten succeed at once; each further round waits for its slowest structure. */
enum { ROUNDS = 4, USUAL_STEPS = 2000 };

/* A molecule on the GPU. */
typedef struct guest {
    ch_request *r;
    ch_cycles cycles;
    ch_bounds bounds;
    ch_packed packed;
    ch_structure *given; /* [ch_structure_pool]; xyz is NULL where it is not built */
    float (*room)[3];    /* [ch_structure_pool][n_atoms] for their positions */
} guest;

/* One structure of a guest that is not built yet. */
typedef struct open_job {
    int32_t guest, which;
} open_job;

typedef struct batch {
    ch_device *device;
    guest *guests;
    open_job *jobs;
    int32_t n_guests, n_jobs;
    int64_t n_floats; /* of all positions */
    ch_gpu_job *asked;
    ch_gpu_result *got;
    float *xyz;
    pl_arena *mem, *scratch;
} batch;

static int32_t count_of(const ch_request *r) { return ch_structure_pool(r->options); }

/* Whether the GPU takes the molecule; if not, ch_structure_build says why or builds it. */
static bool invite(guest *g, ch_request *r, pl_arena *mem, pl_arena *scratch)
{
    const ch_kernels *k = r->options->kernels != NULL ? r->options->kernels : ch_kernels_choose();

    *g = (guest){ .r = r };
    if (k == NULL || r->mol->n_atoms < 1 || r->mol->n_atoms > CH_GPU_MOST_ATOMS ||
        ch_cycles_make(&g->cycles, r->mol, scratch, NULL) != PL_OK || !g->cycles.connected ||
        ch_bounds_make(&g->bounds, &g->cycles, r->terms, r->stereo, k, scratch, NULL) != PL_OK ||
        ch_pack(&g->packed, r->terms, &g->bounds, k, scratch, NULL) != PL_OK)
        return false;
    g->given = PL_NEW(scratch, ch_structure, count_of(r));
    g->room = pl_arena_get(mem, (size_t)count_of(r) * (size_t)r->mol->n_atoms, sizeof *g->room);
    return g->given != NULL && g->room != NULL;
}

static pl_code invite_all(batch *b, ch_request *all, int32_t n, pl_error *err)
{
    int64_t jobs = 0;

    b->guests = PL_NEW(b->scratch, guest, n);
    for (int32_t k = 0; k < n && b->guests != NULL; k++)
        if (invite(&b->guests[b->n_guests], &all[k], b->mem, b->scratch)) {
            const guest *g = &b->guests[b->n_guests++];
            jobs += count_of(g->r);
            b->n_floats += 3 * (int64_t)g->r->mol->n_atoms * count_of(g->r);
        }
    b->jobs = PL_NEW(b->scratch, open_job, jobs);
    b->asked = PL_NEW(b->scratch, ch_gpu_job, jobs);
    b->got = PL_NEW(b->scratch, ch_gpu_result, jobs);
    b->xyz = PL_NEW(b->scratch, float, b->n_floats);
    if (b->guests == NULL || b->jobs == NULL || b->asked == NULL || b->got == NULL || b->xyz == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", (int)n);
    for (int32_t g = 0; g < b->n_guests; g++)
        for (int32_t which = 0; which < count_of(b->guests[g].r); which++)
            b->jobs[b->n_jobs++] = (open_job){ g, which };
    return PL_OK;
}

static pl_code load(batch *b, pl_error *err)
{
    const ch_packed **all = PL_NEW(b->scratch, const ch_packed *, b->n_guests);

    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d molecules", (int)b->n_guests);
    for (int32_t g = 0; g < b->n_guests; g++)
        all[g] = &b->guests[g].packed;
    return ch_device_load(b->device, all, b->n_guests, err);
}

static ch_gpu_job job_of(const batch *b, const open_job *j, int32_t attempt)
{
    const ch_structure_options *o = b->guests[j->guest].r->options;
    const uint32_t purpose = ch_structure_purpose(j->which, attempt);

    return (ch_gpu_job){ .molecule = j->guest,
                         .mode = CH_GPU_BUILD,
                         .starts = ch_structure_starts(o, j->which),
                         .first_steps = CH_FIRST_STEPS,
                         .max_steps = o->max_steps > 0 ? o->max_steps : USUAL_STEPS,
                         .key = pl_rng_at(o->seed, o->name, purpose).key,
                         .gradient = o->gradient > 0 ? o->gradient : 0.01 };
}

/* Whether it passed all checks; then it is kept. */
static bool keep(const batch *b, const open_job *j, const ch_gpu_result *r, const float *xyz, int32_t attempt)
{
    guest *g = &b->guests[j->guest];
    const ch_request *q = g->r;
    float(*out)[3] = g->room + (int64_t)j->which * q->mol->n_atoms;

    if (r->what != CH_GPU_DONE || !isfinite(r->energy))
        return false;
    ch_unpack_positions(out, &g->packed, xyz);
    if (ch_check((const float(*)[3])out, &g->cycles, q->terms, q->stereo).fault != CH_NO_FAULT)
        return false;
    g->given[j->which] = (ch_structure){ .xyz = out,
                                         .energy = r->energy + q->terms->offset,
                                         .gradient = r->gradient,
                                         .steps = r->steps,
                                         .attempts = attempt + 1,
                                         .converged = r->converged != 0 };
    return true;
}

/* One attempt of every job that is left. */
static pl_code run_round(batch *b, int32_t attempt, pl_error *err)
{
    int64_t at = 0;
    int32_t left = 0;
    pl_code code = PL_OK;

    for (int32_t k = 0; k < b->n_jobs; k++) {
        b->asked[k] = job_of(b, &b->jobs[k], attempt);
        b->asked[k].xyz = at;
        at += 3 * (int64_t)b->guests[b->jobs[k].guest].r->mol->n_atoms;
    }
    code = ch_device_run(b->device, b->asked, b->n_jobs, b->got, b->xyz, at, err);
    for (int32_t k = 0; k < b->n_jobs && code == PL_OK; k++)
        if (!keep(b, &b->jobs[k], &b->got[k], b->xyz + b->asked[k].xyz, attempt))
            b->jobs[left++] = b->jobs[k];
    b->n_jobs = left;
    return code;
}

/* Joins what the GPU built and builds the rest. */
static pl_code finish(const batch *b, ch_request *r, const ch_structure *given, pl_error *err)
{
    ch_structure_options o = *r->options;

    o.given = given;
    r->err = (pl_error){ 0 };
    r->code = ch_structure_build(r->out, r->mol, r->stereo, r->terms, &o, b->mem, b->scratch, &r->err);
    return r->code == PL_OK || r->code == PL_EINPUT ? PL_OK : pl_fail(err, r->code, "%s", r->err.text);
}

pl_code ch_structures_build(ch_request *all, int32_t n, ch_device *device, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    batch b = { .device = device, .mem = mem, .scratch = scratch };
    pl_code code = invite_all(&b, all, n, err);
    int32_t g = 0;

    if (code == PL_OK && b.n_guests > 0)
        code = load(&b, err);
    for (int32_t a = 0; a < ROUNDS && code == PL_OK && b.n_jobs > 0; a++)
        code = run_round(&b, a, err);
    for (int32_t k = 0; k < n && code == PL_OK; k++) {
        const bool is_guest = g < b.n_guests && b.guests[g].r == &all[k];
        code = finish(&b, &all[k], is_guest ? b.guests[g].given : NULL, err);
        g += is_guest;
    }
    return code;
}
