/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/worker_client.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/features/features.h"
#include "chem/worker/worker_client_parts.h"
#include "pipeline/base/text.h"

enum { HELLO_S = 30 }; /* CPU seconds for the worker's self-test */

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

pl_code ch_worker_test(ch_worker *w, bool builds, pl_error *err)
{
    ch_outcome o = { 0 };
    pl_code code;
    size_t n;
    const char *version;

    if (builds ? w->tested_builder : w->tested)
        return PL_OK;
    code = exchange_start(w, &o, builds ? CH_OP_HELLO : CH_OP_READY, err);
    if (code != PL_OK)
        return code;
    version = ch_wire_str(&o.body, &n);
    (void)snprintf(w->info.openbabel, sizeof w->info.openbabel, "%.*s", (int)n, version);
    w->info.n_formats = ch_wire_i32(&o.body);
    w->info.confined = ch_wire_i32(&o.body);
    w->tested = o.body.ok;
    w->tested_builder = builds && o.body.ok;
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
    pl_code code = ch_worker_test(w, false, err);

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
    pl_code code = ch_worker_test(w, false, err);

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
    pl_code code = ch_worker_test(w, false, err);

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
    pl_code code = ch_worker_test(w, true, err);

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
    pl_code code = ch_worker_test(w, false, err);

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
    const size_t length = strlen(smarts);
    const char *fault = ch_smarts_fault(smarts, length);
    ch_outcome o = { 0 };
    pl_code code = ch_worker_test(w, false, err);

    *column = 0;
    if (code == PL_OK && length > CH_SMARTS_MAX)
        code = pl_fail(err, PL_EINPUT, "%s: a pattern of %zu characters; at most %d are allowed", ch_status_name(CH_TOO_LARGE),
                       length, (int)CH_SMARTS_MAX);
    else if (code == PL_OK && fault != NULL)
        code = pl_fail(err, PL_EINPUT, "%s", fault);
    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_MATCH);
    ch_wire_put_str(&w->link.request, smarts, length);
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
    pl_code code = ch_worker_test(w, false, err);

    *yes = strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
    if (code != PL_OK || *yes)
        return code;
    request_begin(w, CH_OP_READS);
    ch_wire_put_str(&w->link.request, format, strlen(format));
    code = exchange(w, &o, err);
    if (code != PL_OK)
        return code;
    if (o.status != CH_OK)
        return outcome_error(&o, err);
    *yes = ch_wire_i32(&o.body) != 0;
    return o.body.ok ? PL_OK : broken_answer(err);
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
