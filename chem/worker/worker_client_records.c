/* SPDX-License-Identifier: Apache-2.0 */
/* Records: first all are read, then structures are built. */
#include <math.h>
#include <string.h>

#include "chem/common/bonding.h"
#include "chem/features/features.h"
#include "chem/worker/worker_client_parts.h"

static void put_opts(pl_text *t, const ch_prepare_opts *o)
{
    const int32_t values[] = { o->largest_fragment,     o->max_heavy_atoms, o->max_atoms,  (int32_t)o->conformer,
                               (int32_t)o->force_field, o->steps,           o->neutralise, o->n_structures,
                               o->one_drawing,          (int32_t)o->builder };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ch_wire_put_u32(t, (uint32_t)values[i]);
    ch_wire_put_u64(t, o->seed);
    ch_wire_put_f64(t, o->ph);
    ch_wire_put_f64(t, o->window);
    ch_wire_put_f64(t, o->structure_s);
}

/* The descriptors that this program computes from elements, charges and bonds. */
static pl_code describe(ch_prepared *out, pl_arena *scratch, pl_error *err)
{
    const ch_graph_opts bonds = { .edges = CH_EDGES_TOPOLOGY };
    pl_error why = { 0 };
    ch_graph g;
    pl_code code;

    if (out->mol.n_atoms == 0)
        return PL_OK;
    pl_arena_reset(scratch);
    code = ch_graph_build(&g, &out->mol, &bonds, scratch, &why);
    if (code == PL_EINPUT)
        return PL_OK; /* too large for a graph: these stay unknown */
    if (code == PL_OK)
        code = ch_polarity_of(&out->descriptor[CH_D_logp], &out->descriptor[CH_D_tpsa], &g, scratch, &why);
    return code == PL_OK ? PL_OK : pl_fail(err, code, "%s", why.text);
}

static pl_code get_prepared(ch_prepared *out, ch_stereo *stereo, ch_wire *in, pl_arena *mem, pl_error *err)
{
    pl_code code;
    const char **strings[] = { &out->smiles, &out->inchikey, &out->formula,   &out->removed,
                               &out->alerts, &out->geometry, &out->built_from };
    int32_t *ints[] = { &out->n_heavy,          &out->charge,      &out->charge_read, &out->n_neutralised,
                        &out->undefined_stereo, &out->lost_stereo, &out->lacking,     &out->present };

    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        size_t n;
        const char *s = ch_wire_str(in, &n);
        *strings[i] = pl_strndup(mem, s, n);
        if (*strings[i] == NULL)
            return pl_fail(err, PL_ENOMEM, "a prepared molecule");
    }
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        *ints[i] = ch_wire_i32(in);
    for (int i = 0; i < CH_N_DESCRIPTORS; i++)
        out->descriptor[i] = ch_wire_f64(in);
    out->energy = ch_wire_f64(in);
    code = ch_wire_mol(&out->mol, in, mem, err);
    return code == PL_OK ? ch_wire_stereo(stereo, out->mol.n_atoms, in, mem, err) : code;
}

static void prepared_clear(ch_prepared *out)
{
    *out = (ch_prepared){ .message = "",
                          .smiles = "",
                          .inchikey = "",
                          .formula = "",
                          .removed = "",
                          .alerts = "",
                          .geometry = "",
                          .built_from = "",
                          .energy = NAN,
                          .steps = -1,
                          .code = CH_INTERNAL };
}

/* ---- records: first all are read, then structures are built ------------- */

typedef struct batch {
    const ch_input *in;
    const ch_prepare_opts *opts;
    ch_prepared *out;
    int32_t *build;    /* the records whose structure the worker builds */
    ch_stereo *stereo; /* [n] of the records */
    ch_mol *plan;      /* [n] what the native builder is asked to build; no atoms: nothing */
    ch_to_build *ask;  /* [n] */
    pl_arena *mem, *scratch;
} batch;

/* Fills `out` from an outcome; `code` is the result of reading its body. */
static pl_code fill_outcome(ch_prepared *out, const ch_outcome *o, pl_code code, pl_arena *mem, pl_error *err)
{
    if (code != PL_OK && code != PL_EINPUT)
        return code;
    out->code = code == PL_OK ? o->status : CH_INTERNAL;
    out->signal = o->signal;
    out->attempts = o->attempts;
    out->cpu_s += o->cpu_s;
    out->message = pl_strdup(mem, code == PL_OK ? o->message : "the worker's answer is not a valid molecule");
    if (out->message == NULL)
        return pl_fail(err, PL_ENOMEM, "a prepared molecule");
    if (out->code != CH_OK) {
        out->mol = (ch_mol){ 0 };
        out->n_other = 0;
    }
    return PL_OK;
}

static void ask_prepare(void *ctx, int32_t i, pl_text *request)
{
    const batch *b = ctx;
    const char *rules = b->opts->rules != NULL ? b->opts->rules : "";

    ch_request_begin(request, CH_OP_PREPARE);
    put_opts(request, b->opts);
    ch_wire_put_str(request, rules, strlen(rules));
    ch_wire_put_str(request, b->in[i].format, strlen(b->in[i].format));
    ch_wire_put_str(request, b->in[i].text, b->in[i].len);
}

static pl_code take_prepared(void *ctx, int32_t i, ch_outcome *o, pl_error *err)
{
    const batch *b = ctx;
    pl_code code = o->answered && o->body.at < o->body.end ? get_prepared(&b->out[i], &b->stereo[i], &o->body, b->mem, err) : PL_OK;

    if (code == PL_OK)
        code = describe(&b->out[i], b->scratch, err);
    return fill_outcome(&b->out[i], o, code, b->mem, err);
}

static void ask_build(void *ctx, int32_t i, pl_text *request)
{
    const batch *b = ctx;
    const char *smiles = b->out[b->build[i]].built_from;

    ch_request_begin(request, CH_OP_BUILD);
    put_opts(request, b->opts);
    ch_wire_put_str(request, smiles, strlen(smiles));
}

/* Open Babel's builder checks no lengths: between crowded atoms it leaves bonds that no molecule has. In its structures of 691 molecules of
 * tests/data/library.smi no bond is more than 0.13 beyond a single one. */
static const double BOND_MARGIN = 0.3; /* Angstrom */

static double bond_excess(const ch_mol *mol, int32_t b, double *length)
{
    const int32_t i = mol->bond[b][0], j = mol->bond[b][1];
    double d[3];

    for (int k = 0; k < 3; k++)
        d[k] = (double)mol->xyz[i][k] - (double)mol->xyz[j][k];
    *length = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
    return ch_bonding_excess(mol->z[i], mol->z[j], *length);
}

/* Why the structure is none: a bond that is too long. "" if there is no such bond. */
static const char *too_long(const ch_mol *mol, pl_arena *mem)
{
    for (int32_t b = 0; b < mol->n_bonds && mol->xyz != NULL; b++) {
        double length;
        if (bond_excess(mol, b, &length) > BOND_MARGIN)
            return pl_sprintf(mem, "built with a bond of %.2f Angstrom between atoms %d and %d", length, mol->bond[b][0] + 1,
                              mol->bond[b][1] + 1);
    }
    return "";
}

/* Also of a stored structure, which an earlier version may have built. */
static pl_code check_lengths(ch_prepared *p, pl_arena *mem, pl_error *err)
{
    const char *why =
        p->code == CH_OK && p->built_by != NULL && strcmp(p->built_by, "openbabel") == 0 ? too_long(&p->mol, mem) : "";

    for (int32_t k = 0; k < p->n_other && why != NULL && why[0] == '\0'; k++)
        why = too_long(&p->other[k], mem);
    if (why == NULL)
        return pl_fail(err, PL_ENOMEM, "a reason");
    if (why[0] == '\0')
        return PL_OK;
    p->code = CH_GEOMETRY;
    p->message = why;
    p->mol = (ch_mol){ 0 };
    p->n_other = 0;
    return PL_OK;
}

static pl_code take_built(void *ctx, int32_t i, ch_outcome *o, pl_error *err)
{
    const batch *b = ctx;
    ch_prepared *out = &b->out[b->build[i]];
    pl_code code = PL_OK;
    const char *geometry;
    size_t n;

    out->built = true;
    out->built_by = "openbabel";
    if (o->status == CH_OK) {
        geometry = ch_wire_str(&o->body, &n);
        out->geometry = pl_strndup(b->mem, geometry, n);
        if (out->geometry == NULL)
            return pl_fail(err, PL_ENOMEM, "a structure");
        out->energy = ch_wire_f64(&o->body);
        code = ch_wire_mol(&out->mol, &o->body, b->mem, err);
        if (code == PL_OK)
            code = ch_wire_mols(&out->other, &out->n_other, &o->body, b->mem, err);
    }
    code = fill_outcome(out, o, code, b->mem, err);
    return code == PL_OK ? check_lengths(out, b->mem, err) : code;
}

/* Looks among the known structures. *build: it has to be built. */
static pl_code find_one(const batch *b, const ch_known *known, int32_t i, bool *build, pl_error *err)
{
    ch_prepared *p = &b->out[i];
    pl_code code = PL_OK;

    *build = strcmp(p->geometry, "build") == 0;
    if (p->code == CH_OK && known != NULL && known->judge != NULL)
        code = known->judge(known->ctx, p, b->mem, err);
    if (*build) {
        b->plan[i] = p->mol;
        p->geometry = "";
        p->mol = (ch_mol){ 0 };
    }
    *build = *build && p->code == CH_OK && p->set_aside == NULL;
    if (code == PL_OK && *build && known != NULL && known->find != NULL)
        code = known->find(known->ctx, p->built_from, &p->known, p, b->mem, err);
    if (code == PL_OK && p->known)
        code = check_lengths(p, b->mem, err);
    *build = *build && !p->known;
    return code;
}

/* Asks the native builder for those of b->build[n] that it may build; keeps those that the worker has to build. */
static pl_code build_native(batch *b, const ch_known *known, int32_t *n, pl_error *err)
{
    int32_t n_ask = 0, left = 0;
    pl_code code = PL_OK;

    for (int32_t k = 0; k < *n && known != NULL && known->build != NULL; k++) {
        const int32_t i = b->build[k];
        if (b->opts->builder == CH_NATIVE && b->plan[i].n_atoms > 0)
            b->ask[n_ask++] = (ch_to_build){ &b->plan[i], &b->stereo[i], &b->out[i] };
    }
    if (n_ask > 0)
        code = known->build(known->ctx, b->ask, n_ask, b->mem, err);
    for (int32_t k = 0; k < n_ask; k++)
        b->ask[k].out->built = b->ask[k].out->fallback == NULL;
    for (int32_t k = 0; k < *n; k++)
        if (!b->out[b->build[k]].built)
            b->build[left++] = b->build[k];
    *n = left;
    return code;
}

/* Selects the records that were read, need a structure, and have none in ch_known. */
static pl_code find_known(batch *b, int32_t n, const ch_known *known, int32_t *n_build, pl_error *err)
{
    pl_code code = PL_OK;

    *n_build = 0;
    for (int32_t i = 0; i < n && code == PL_OK; i++) {
        bool build;
        code = find_one(b, known, i, &build, err);
        if (build)
            b->build[(*n_build)++] = i;
    }
    return code == PL_OK ? build_native(b, known, n_build, err) : code;
}

pl_code ch_worker_prepare_all(ch_worker *w, const ch_input *in, int32_t n, const ch_prepare_opts *opts, const ch_known *known,
                              ch_prepared *out, pl_arena *mem, pl_error *err)
{
    const ch_prepare_opts defaults = ch_prepare_defaults();
    batch b = { .in = in, .opts = opts != NULL ? opts : &defaults, .out = out, .mem = mem, .scratch = w->scratch };
    ch_work read = { .ctx = &b, .n = n, .ask = ask_prepare, .take = take_prepared };
    ch_work build = { .ctx = &b, .ask = ask_build, .take = take_built };
    pl_code code = ch_worker_test(w, false, err);

    for (int32_t i = 0; i < n; i++)
        prepared_clear(&out[i]);
    if (code != PL_OK)
        return code;
    b.build = PL_NEW(mem, int32_t, n);
    b.stereo = PL_NEW(mem, ch_stereo, n);
    b.plan = PL_NEW(mem, ch_mol, n);
    b.ask = PL_NEW(mem, ch_to_build, n);
    if (b.build == NULL || b.stereo == NULL || b.plan == NULL || b.ask == NULL)
        return pl_fail(err, PL_ENOMEM, "%d records", n);
    code = ch_link_exchange(&w->link, &read, err);
    if (code == PL_OK)
        code = find_known(&b, n, known, &build.n, err);
    if (code == PL_OK && build.n > 0)
        code = ch_worker_test(w, true, err);
    return code == PL_OK ? ch_link_exchange(&w->link, &build, err) : code;
}

pl_code ch_worker_prepare(ch_worker *w, const char *text, size_t len, const char *format, const ch_prepare_opts *opts,
                          ch_prepared *out, pl_arena *mem, pl_error *err)
{
    const ch_input in = { .text = text, .format = format, .len = len };
    pl_code code = ch_worker_prepare_all(w, &in, 1, opts, NULL, out, mem, err);

    if (code != PL_OK || out->code == CH_OK)
        return code;
    return pl_fail(err, PL_EINPUT, "%s: %s", ch_status_name(out->code), out->message);
}
