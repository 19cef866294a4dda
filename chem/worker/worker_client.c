/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/worker_client.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/features/features.h"
#include "chem/worker/request_queue.h"
#include "pipeline/base/text.h"

enum { HELLO_S = 30 }; /* CPU seconds for the worker's self-test */

struct ch_worker {
    char program[PATH_MAX];
    ch_link link;
    bool tested;
    ch_worker_info info;
    pl_arena *scratch;
};

static const char *const status_names[CH_N_STATUS] = {
    "ok",      "parse",  "empty", "too_large", "valence", "conformer", "geometry",
    "timeout", "memory", "crash", "format",    "record",  "internal",
};

const char *ch_status_name(ch_status s) { return (unsigned)s < CH_N_STATUS ? status_names[s] : "internal"; }

ch_prepare_opts ch_prepare_defaults(void)
{
    return (ch_prepare_opts){ .largest_fragment = true,
                              .max_heavy_atoms = 250,
                              .max_atoms = 1000,
                              .conformer = CH_3D_AUTO,
                              .builder = CH_OPENBABEL,
                              .force_field = CH_FF_MMFF94,
                              .steps = 250,
                              .one_drawing = true,
                              .n_structures = 1,
                              .window = 10,
                              .dielectric = 1,
                              .seed = 0,
                              .ph = -1 };
}

pl_code ch_worker_open(ch_worker **out, const ch_worker_opts *opts, pl_error *err)
{
    ch_worker *w = calloc(1, sizeof *w);
    pl_code code;

    *out = NULL;
    if (w == NULL)
        return pl_fail(err, PL_ENOMEM, "chemistry worker");
    w->link.opts = ch_worker_opts_complete(opts);
    w->link.program = w->program;
    w->scratch = pl_arena_new(1 << 16);
    code = w->scratch != NULL ? ch_worker_find(w->program, w->link.opts.program, err) : pl_fail(err, PL_ENOMEM, "chemistry worker");
    if (code == PL_OK && stat(w->program, &w->link.is) != 0)
        code = pl_fail(err, PL_ECONFIG, "the chemistry worker %s no longer exists", w->program);
    if (code != PL_OK)
        ch_worker_close(w);
    else
        *out = w;
    return code;
}

void ch_worker_close(ch_worker *w)
{
    if (w == NULL)
        return;
    ch_link_close(&w->link);
    pl_arena_free(w->scratch);
    free(w);
}

/* ---- one request, assembled in w->link.request ----------------------- */

static void request_begin(ch_worker *w, enum ch_op op) { ch_request_begin(&w->link.request, op); }

static pl_code keep(void *out, int32_t i, ch_outcome *o, pl_error *err)
{
    (void)i;
    (void)err;
    *(ch_outcome *)out = *o;
    return PL_OK;
}

static pl_code exchange(ch_worker *w, ch_outcome *o, pl_error *err)
{
    const ch_work work = { .ctx = o, .n = 1, .take = keep };
    return ch_link_exchange(&w->link, &work, err);
}

/* The same with its own budget: the caller's is for molecules. */
static pl_code exchange_start(ch_worker *w, ch_outcome *o, enum ch_op op, pl_error *err)
{
    const ch_worker_opts asked = w->link.opts;
    pl_code code;

    w->link.opts.cpu_first_s = w->link.opts.cpu_retry_s = HELLO_S;
    request_begin(w, op);
    code = exchange(w, o, err);
    w->link.opts = asked;
    if (code == PL_OK && o->status != CH_OK)
        code = pl_fail(err, PL_ECONFIG, "%s does not work: %s", w->program, o->message);
    return code;
}

static pl_code other_protocol(const ch_worker *w, pl_error *err)
{
    return pl_fail(err, PL_ECONFIG, "%s is of another version than this program; install both from one build", w->program);
}

/* Runs the child's self-test before the first real request. Without it, a missing
 * data table of Open Babel would look like bad molecules. */
static pl_code ensure_tested(ch_worker *w, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code;
    size_t n;
    const char *version;

    if (w->tested)
        return PL_OK;
    code = exchange_start(w, &o, CH_OP_HELLO, err);
    if (code != PL_OK)
        return code;
    version = ch_wire_str(&o.body, &n);
    (void)snprintf(w->info.openbabel, sizeof w->info.openbabel, "%.*s", (int)n, version);
    w->info.n_formats = ch_wire_i32(&o.body);
    w->info.confined = ch_wire_i32(&o.body);
    w->tested = o.body.ok;
    return o.body.ok ? PL_OK : other_protocol(w, err);
}

pl_code ch_worker_version(ch_worker *w, ch_worker_info *out, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = exchange_start(w, &o, CH_OP_VERSION, err);
    const char *library, *protocol, *tables;
    size_t n, m, k;

    if (code != PL_OK)
        return code;
    library = ch_wire_str(&o.body, &n);
    protocol = ch_wire_str(&o.body, &m);
    tables = ch_wire_str(&o.body, &k);
    *out = (ch_worker_info){ .n_formats = 0 };
    (void)snprintf(out->openbabel, sizeof out->openbabel, "%.*s", (int)n, library);
    (void)snprintf(out->tables, sizeof out->tables, "%.*s", k < sizeof out->tables ? (int)k : 0, tables);
    return o.body.ok && m == sizeof CH_PROTOCOL_VERSION - 1 && memcmp(protocol, CH_PROTOCOL_VERSION, m) == 0
               ? PL_OK
               : other_protocol(w, err);
}

/* ---- the requests ------------------------------------------------------- */

static pl_code outcome_error(const ch_outcome *o, pl_error *err)
{
    return pl_fail(err, PL_EINPUT, "%s: %s", ch_status_name(o->status), o->message);
}

static pl_code broken_answer(pl_error *err) { return pl_fail(err, PL_EINPUT, "internal: the worker's answer is cut short"); }

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
    int32_t *ints[] = { &out->n_heavy,       &out->charge,           &out->charge_read,
                        &out->n_neutralised, &out->undefined_stereo, &out->lost_stereo };

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

    ch_request_begin(request, CH_OP_PREPARE);
    put_opts(request, b->opts);
    ch_wire_put_str(request, b->opts->rules != NULL ? b->opts->rules : "", b->opts->rules != NULL ? strlen(b->opts->rules) : 0);
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
    return fill_outcome(out, o, code, b->mem, err);
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
    for (int32_t k = 0; k < n_ask && code == PL_OK; k++)
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
    pl_code code = ensure_tested(w, err);

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

/* ---- the other requests ------------------------------------------------- */

static pl_code get_listing(ch_listing *out, ch_outcome *o, pl_arena *mem, pl_error *err)
{
    int32_t n = ch_wire_i32(&o->body);

    if (n < 0 || (size_t)n > (size_t)(o->body.end - o->body.at) / 8)
        return broken_answer(err);
    out->message = pl_strdup(mem, o->message);
    out->text = PL_NEW(mem, const char *, n);
    out->problem = PL_NEW(mem, const char *, n);
    out->len = PL_NEW(mem, size_t, n);
    for (int32_t i = 0; i < n && out->text != NULL && out->problem != NULL && out->len != NULL; i++) {
        size_t len;
        const char *s = ch_wire_str(&o->body, &out->len[i]), *problem = ch_wire_str(&o->body, &len);
        out->text[i] = pl_strndup(mem, s, out->len[i]);
        out->problem[i] = pl_strndup(mem, problem, len);
        if (out->text[i] == NULL || out->problem[i] == NULL)
            break;
        out->n++;
    }
    if (out->n < n || out->message == NULL || out->text == NULL || out->problem == NULL || out->len == NULL)
        return pl_fail(err, PL_ENOMEM, "a list of %d molecules", n);
    return o->body.ok ? PL_OK : broken_answer(err);
}

pl_code ch_worker_list(ch_worker *w, const char *text, size_t len, const char *format, ch_listing *out, pl_arena *mem,
                       pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = ensure_tested(w, err);

    *out = (ch_listing){ .message = "" };
    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_LIST);
    ch_wire_put_str(&w->link.request, format, strlen(format));
    ch_wire_put_str(&w->link.request, text, len);
    code = exchange(w, &o, err);
    if (code != PL_OK)
        return code;
    return o.status == CH_OK ? get_listing(out, &o, mem, err) : outcome_error(&o, err);
}

/* For requests whose answer is one text. */
static pl_code exchange_text(ch_worker *w, const char **out, pl_arena *mem, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = exchange(w, &o, err);
    const char *s;
    size_t n;

    if (code != PL_OK)
        return code;
    if (o.status != CH_OK)
        return outcome_error(&o, err);
    s = ch_wire_str(&o.body, &n);
    if (!o.body.ok)
        return broken_answer(err);
    *out = pl_strndup(mem, s, n);
    return *out ? PL_OK : pl_fail(err, PL_ENOMEM, "a molecule as text");
}

pl_code ch_worker_write(ch_worker *w, const ch_mol *mol, const char *title, const char *to, const char **out, pl_arena *mem,
                        pl_error *err)
{
    pl_code code = ensure_tested(w, err);

    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_WRITE);
    ch_wire_put_str(&w->link.request, to, strlen(to));
    ch_wire_put_str(&w->link.request, title != NULL ? title : "", title != NULL ? strlen(title) : 0);
    ch_wire_put_mol(&w->link.request, mol);
    return exchange_text(w, out, mem, err);
}

static pl_code exchange_drawing(ch_worker *w, ch_drawn *out, pl_arena *mem, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = exchange(w, &o, err);
    const char *svg, *molfile;
    size_t n_svg, n_molfile;

    if (code != PL_OK)
        return code;
    if (o.status != CH_OK)
        return outcome_error(&o, err);
    svg = ch_wire_str(&o.body, &n_svg);
    molfile = ch_wire_str(&o.body, &n_molfile);
    out->overlaps = ch_wire_i32(&o.body);
    if (!o.body.ok)
        return broken_answer(err);
    out->svg = pl_strndup(mem, svg, n_svg);
    out->molfile = pl_strndup(mem, molfile, n_molfile);
    return out->svg != NULL && out->molfile != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "a drawing");
}

pl_code ch_worker_draw(ch_worker *w, const char *smiles, ch_drawn *out, pl_arena *mem, pl_error *err)
{
    pl_code code = ensure_tested(w, err);

    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_SVG);
    ch_wire_put_str(&w->link.request, smiles, strlen(smiles));
    return exchange_drawing(w, out, mem, err);
}

pl_code ch_worker_svg(ch_worker *w, const char *smiles, const char **out, pl_arena *mem, pl_error *err)
{
    ch_drawn drawn = { 0 };
    pl_code code = ch_worker_draw(w, smiles, &drawn, mem, err);

    *out = drawn.svg;
    return code;
}

pl_code ch_worker_hello(ch_worker *w, ch_worker_info *out, pl_error *err)
{
    pl_code code = ensure_tested(w, err);

    if (code == PL_OK)
        *out = w->info;
    return code;
}

static pl_code get_bad_rules(ch_wire *in, ch_bad_rule **bad, int32_t *n_bad, pl_arena *mem, pl_error *err)
{
    int32_t n = ch_wire_i32(in);

    if (n < 0 || (size_t)n > (size_t)(in->end - in->at) / 8)
        return broken_answer(err);
    *bad = PL_NEW(mem, ch_bad_rule, n + 1);
    if (*bad == NULL)
        return pl_fail(err, PL_ENOMEM, "a list of rules");
    for (*n_bad = 0; *n_bad < n; (*n_bad)++) {
        (*bad)[*n_bad].rule = ch_wire_i32(in);
        (*bad)[*n_bad].column = ch_wire_i32(in);
    }
    return in->ok ? PL_OK : broken_answer(err);
}

pl_code ch_worker_rules(ch_worker *w, const char *rules, ch_bad_rule **bad, int32_t *n_bad, pl_arena *mem, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = ensure_tested(w, err);

    *n_bad = 0;
    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_RULES);
    ch_wire_put_str(&w->link.request, rules, strlen(rules));
    code = exchange(w, &o, err);
    if (code != PL_OK)
        return code;
    return o.status == CH_OK ? get_bad_rules(&o.body, bad, n_bad, mem, err) : outcome_error(&o, err);
}

static pl_code get_matches(ch_wire *in, int32_t n, int8_t *yes, int32_t *column, pl_error *err)
{
    *column = ch_wire_i32(in);
    if (ch_wire_i32(in) != (*column == 0 ? n : 0))
        return broken_answer(err);
    for (int32_t i = 0; i < n && *column == 0; i++)
        yes[i] = (int8_t)ch_wire_i32(in);
    return in->ok ? PL_OK : broken_answer(err);
}

pl_code ch_worker_match(ch_worker *w, const char *smarts, const char *const *smiles, int32_t n, int8_t *yes, int32_t *column,
                        pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = ensure_tested(w, err);

    *column = 0;
    if (code == PL_OK && strlen(smarts) > CH_SMARTS_MAX)
        code = pl_fail(err, PL_EINPUT, "%s: a pattern of %zu characters; at most %d are allowed", ch_status_name(CH_TOO_LARGE),
                       strlen(smarts), (int)CH_SMARTS_MAX);
    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_MATCH);
    ch_wire_put_str(&w->link.request, smarts, strlen(smarts));
    ch_wire_put_u32(&w->link.request, (uint32_t)n);
    for (int32_t i = 0; i < n; i++)
        ch_wire_put_str(&w->link.request, smiles[i], strlen(smiles[i]));
    code = exchange(w, &o, err);
    if (code != PL_OK)
        return code;
    return o.status == CH_OK ? get_matches(&o.body, n, yes, column, err) : outcome_error(&o, err);
}

pl_code ch_worker_reads(ch_worker *w, const char *format, bool *yes, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code = ensure_tested(w, err);

    *yes = strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
    if (code != PL_OK || *yes)
        return code;
    request_begin(w, CH_OP_READS);
    ch_wire_put_str(&w->link.request, format, strlen(format));
    code = exchange(w, &o, err);
    if (code == PL_OK && o.status == CH_OK)
        *yes = ch_wire_i32(&o.body) != 0;
    return code;
}

void ch_worker_counts(const ch_worker *w, int64_t *started, int64_t *requests, int64_t *lost)
{
    if (started != NULL)
        *started = w->link.started;
    if (requests != NULL)
        *requests = w->link.requests;
    if (lost != NULL)
        *lost = w->link.lost;
}
