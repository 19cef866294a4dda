/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/structure.h"

#include "chem/structures/bounds.h"
#include "chem/structures/embed.h"
#include "chem/structures/relax.h"
#include "chem/structures/shape.h"

#include <math.h>
#include <string.h>

static const double alike = 0.5;      /* Angstrom */
static const double torsion_heat = 1; /* kcal/mol; lower prefers good torsions more, and makes ensembles less diverse */
enum { USUAL_ATTEMPTS = 20, FIRST_STARTS = 2, POOL = 2 };

/* All that is made once for a molecule. */
typedef struct site {
    const ch_mol *mol;
    const ch_stereo *stereo;
    const ch_terms *terms;
    const ch_structure_options *o;
    const ch_kernels *kernels;
    ch_cycles cycles;
    ch_equal equal; /* of an ensemble */
    ch_bounds bounds;
    ch_embedder embedder;
    ch_relaxer relaxer;
    float (*xyz)[3], (*best)[3];
    int64_t work;
    int32_t began; /* steps that the chosen start has had */
    bool ready;
    pl_arena *scratch;
} site;

uint32_t ch_structure_purpose(int32_t which, int32_t attempt) { return (uint32_t)which * 4096u + (uint32_t)attempt; }

int32_t ch_structure_starts(const ch_structure_options *o, int32_t which)
{
    const int32_t usual = which > 0 ? 1 : FIRST_STARTS;
    return o->starts > 0 ? o->starts : usual;
}

int32_t ch_structure_pool(const ch_structure_options *o) { return o->count > 1 ? POOL * o->count : 1; }

/* What structures that are given need, too. */
static pl_code look_at_bonds(site *s, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    if (s->mol->n_atoms == 0)
        return pl_fail(err, PL_EINPUT, "the molecule has no atoms");
    code = ch_cycles_make(&s->cycles, s->mol, mem, err);
    if (code == PL_OK && !s->cycles.connected)
        return pl_fail(err, PL_EINPUT, "the molecule has several parts; structures are built of one");
    if (code == PL_OK && s->o->count > 1)
        code = ch_equal_make(&s->equal, &s->cycles, mem, err);
    return code;
}

static pl_code prepare(site *s, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    s->kernels = s->o->kernels != NULL ? s->o->kernels : ch_kernels_choose();
    if (s->kernels == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "MOLSIEVE_CPU names a set of kernels that this processor lacks; `molsieve doctor` lists them");
    code = ch_bounds_make(&s->bounds, &s->cycles, s->terms, s->stereo, s->kernels, mem, err);
    if (code == PL_OK)
        code = ch_embedder_make(&s->embedder, &s->bounds, s->kernels, mem, err);
    if (code == PL_OK)
        code = ch_relaxer_make(&s->relaxer, s->terms, s->kernels, mem, err);
    if (code != PL_OK)
        return code;
    s->xyz = pl_arena_get(mem, (size_t)s->mol->n_atoms, sizeof *s->xyz);
    s->best = pl_arena_get(mem, (size_t)s->mol->n_atoms, sizeof *s->best);
    return s->xyz != NULL && s->best != NULL
               ? PL_OK
               : pl_fail(err, PL_ENOMEM, "no memory for the positions of %d atoms", (int)s->mol->n_atoms);
}

static bool is_spent(const site *s) { return s->o->max_work > 0 && s->work >= s->o->max_work; }

/* Embeds into s->xyz. */
static bool embed(site *s, pl_rng *random, ch_structure_tries *tries)
{
    const ch_embedded e = ch_embed(s->xyz, &s->embedder, torsion_heat, random);

    s->work += (int64_t)e.n_values * s->mol->n_atoms;
    tries->far_from_bounds += e.what == CH_FAR_FROM_BOUNDS;
    tries->wrong_chirality += e.what == CH_WRONG_CHIRALITY;
    return e.what == CH_EMBEDDED;
}

static bool relax(site *s, int32_t max_steps, ch_relaxed *r)
{
    const ch_relax_options o = { s->o->gradient, max_steps };
    const pl_code code = ch_relax(r, s->xyz, &s->relaxer, &o, NULL);

    s->work += (int64_t)r->n_energies * s->mol->n_atoms;
    return code == PL_OK && isfinite(r->energy);
}

/* Of several starts the one with the lowest energy after a few steps, in s->xyz. */
static bool begin(site *s, int32_t which, pl_rng *random, ch_structure_tries *tries)
{
    const int32_t starts = ch_structure_starts(s->o, which);
    double min = INFINITY;

    s->began = 0;
    for (int32_t k = 0; k < starts; k++) {
        ch_relaxed r = { 0 };
        if (!embed(s, random, tries))
            continue;
        if (starts == 1)
            return true;
        if (relax(s, CH_FIRST_STEPS, &r) && r.energy < min) {
            min = r.energy;
            s->began = r.steps;
            memcpy(s->best, s->xyz, (size_t)s->mol->n_atoms * sizeof *s->best);
        }
    }
    if (min < INFINITY)
        memcpy(s->xyz, s->best, (size_t)s->mol->n_atoms * sizeof *s->best);
    return min < INFINITY;
}

/* True: s->xyz is a structure that passed all checks. */
static bool attempt(site *s, int32_t which, int32_t a, ch_structure *out, ch_structure_tries *tries)
{
    pl_rng random = pl_rng_at(s->o->seed, s->o->name, ch_structure_purpose(which, a));
    ch_relaxed r = { 0 };

    tries->attempts++;
    if (!begin(s, which, &random, tries) || !relax(s, s->o->max_steps, &r))
        return false;
    const ch_checked c = ch_check((const float(*)[3])s->xyz, &s->cycles, s->terms, s->stereo);
    if (c.fault != CH_NO_FAULT) {
        tries->fault[c.fault]++;
        tries->last = c;
        return false;
    }
    *out = (ch_structure){
        .energy = r.energy + s->terms->offset, .gradient = r.gradient, .steps = s->began + r.steps, .converged = r.converged
    };
    return true;
}

/* One structure of the ensemble. False: no attempt led to one. */
static bool build_one(site *s, int32_t which, ch_structure *out, ch_structure_tries *tries)
{
    const int32_t n = s->o->attempts > 0 ? s->o->attempts : USUAL_ATTEMPTS;

    for (int32_t a = 0; a < n && !is_spent(s); a++)
        if (attempt(s, which, a, out, tries)) {
            out->attempts = a + 1;
            return true;
        }
    return false;
}

static bool is_alike(const site *s, const ch_structure *a, const float (*b)[3])
{
    const float(*x)[3] = (const float(*)[3])a->xyz;
    return ch_shape_least(&s->equal, x, b) < alike && ch_shape_rmsd(&s->equal, x, b) < alike;
}

/* Whether a structure of this shape has no more energy. */
static bool is_extra(const site *s, const ch_structures *all, const ch_structure *x)
{
    for (int32_t k = 0; k < all->n; k++)
        if (all->all[k].energy <= x->energy && is_alike(s, &all->all[k], (const float(*)[3])x->xyz))
            return true;
    return false;
}

/* Puts x in its place by energy; those of its shape that follow, and those above the window, go. */
static void insert(const site *s, ch_structures *all, ch_structure x)
{
    int32_t n = 0, at = 0;

    while (at < all->n && all->all[at].energy <= x.energy)
        at++;
    n = at;
    for (int32_t k = at; k < all->n; k++)
        if (!is_alike(s, &all->all[k], (const float(*)[3])x.xyz))
            all->all[n++] = all->all[k];
    memmove(&all->all[at + 1], &all->all[at], (size_t)(n - at) * sizeof x);
    all->all[at] = x;
    for (all->n = n + 1; s->o->window > 0 && all->all[all->n - 1].energy > all->all[0].energy + s->o->window;)
        all->n--;
}

static pl_code refuse(const site *s, const ch_structure_tries *t, pl_error *err)
{
    if (is_spent(s))
        return pl_fail(err, PL_EINPUT, "no structure within the limit of work; %d attempts were made", (int)t->attempts);
    if (t->last.fault != CH_NO_FAULT)
        return pl_fail(err, PL_EINPUT, "no structure in %d attempts: at last %s (atom %d)", (int)t->attempts,
                       ch_fault_text(t->last.fault), (int)t->last.a + 1);
    return pl_fail(err, PL_EINPUT, "no structure in %d attempts: %s", (int)t->attempts,
                   t->wrong_chirality > t->far_from_bounds ? "the defined stereo could not be reached"
                                                           : "distances contradict each other");
}

/* Structure `which` of the ensemble, given or built; *got: there is one. A built one has its positions in s->xyz. */
static pl_code get_one(site *s, int32_t which, ch_structure *to, bool *got, ch_structure_tries *tries, pl_error *err)
{
    pl_code code = PL_OK;

    *got = s->o->given != NULL && s->o->given[which].xyz != NULL;
    if (*got) {
        *to = s->o->given[which];
        return PL_OK;
    }
    if (!s->ready)
        code = prepare(s, s->scratch, err);
    s->ready = true;
    *got = code == PL_OK && build_one(s, which, to, tries);
    to->xyz = s->xyz;
    return code;
}

/* Adds a structure if it is of use. */
static pl_code add(const site *s, ch_structures *out, ch_structure *built, pl_arena *mem, pl_error *err)
{
    if (is_extra(s, out, built))
        return PL_OK;
    if (built->xyz != s->xyz) {
        insert(s, out, *built);
        return PL_OK;
    }
    built->xyz = pl_arena_get(mem, (size_t)s->mol->n_atoms, sizeof *built->xyz);
    if (built->xyz == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the positions of %d atoms", (int)s->mol->n_atoms);
    memcpy(built->xyz, s->xyz, (size_t)s->mol->n_atoms * sizeof *s->xyz);
    insert(s, out, *built);
    return PL_OK;
}

/* Twice as many as asked for, or until `count` were built in vain. */
static pl_code build_all(site *s, ch_structures *out, int32_t count, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    for (int32_t k = 0; code == PL_OK && k < ch_structure_pool(s->o) && k - out->n < count; k++) {
        ch_structure built = { 0 };
        bool got = false;
        code = get_one(s, k, &built, &got, &out->tries, err);
        if (got)
            code = add(s, out, &built, mem, err);
        else if (code == PL_OK && k == 0)
            return refuse(s, &out->tries, err);
    }
    return code;
}

/* The structure whose nearest chosen one is farthest away; `last` was chosen last. `near` is -1 for chosen ones. */
static int32_t choose_next(const site *s, const ch_structures *all, int32_t last, double *near)
{
    const float(*chosen)[3] = (const float(*)[3])all->all[last].xyz;
    int32_t next = 0;

    for (int32_t k = 0; k < all->n; k++) {
        const float(*x)[3] = (const float(*)[3])all->all[k].xyz;
        if (near[k] >= 0 && ch_shape_least(&s->equal, chosen, x) < near[k])
            near[k] = fmin(near[k], ch_shape_rmsd(&s->equal, chosen, x));
        next = near[k] > near[next] ? k : next;
    }
    return next;
}

/* Of structures by increasing energy the first one, then always the one that differs most from those chosen. The order stays. near: [n]. */
static void choose(const site *s, ch_structures *all, int32_t count, double *near)
{
    int32_t last = 0, n = 0;

    for (int32_t k = 0; k < all->n; k++)
        near[k] = INFINITY;
    near[0] = -1;
    for (int32_t chosen = 1; chosen < count; chosen++) {
        last = choose_next(s, all, last, near);
        near[last] = -1;
    }
    for (int32_t k = 0; k < all->n; k++)
        if (near[k] < 0)
            all->all[n++] = all->all[k];
    all->n = n;
}

pl_code ch_structure_build(ch_structures *out, const ch_mol *mol, const ch_stereo *stereo, const ch_terms *terms,
                           const ch_structure_options *options, pl_arena *mem, pl_arena *scratch, pl_error *err)
{
    const int32_t count = options->count > 0 ? options->count : 1;
    site s = { .mol = mol, .stereo = stereo, .terms = terms, .o = options, .scratch = scratch };

    const int32_t pool = ch_structure_pool(options);
    double *near = PL_NEW(scratch, double, (size_t)pool + 1);

    *out = (ch_structures){ .all = PL_NEW(mem, ch_structure, (size_t)pool + 1) };
    if (out->all == NULL || near == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for %d structures", (int)pool);
    pl_code code = look_at_bonds(&s, scratch, err);
    if (code == PL_OK)
        code = build_all(&s, out, count, mem, err);
    if (out->n > count)
        choose(&s, out, count, near);
    return code;
}
