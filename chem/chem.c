/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/chem.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chem/child.h"
#include "chem/wire.h"
#include "pipeline/base/text.h"

enum {
    KILLED_MAX = 30, /* strangers may kill a worker this often under one record, or while it starts */
    HELLO_S = 30     /* CPU seconds of its own test */
};

struct ch_worker {
    ch_worker_opts opts;
    char program[PATH_MAX];
    ch_child child;
    double child_cpu_s; /* of the living child, as of its last answer */
    bool tested;
    ch_worker_info info;
    pl_text request, answer;
    int64_t started, requests, lost;
};

/* What became of one request. */
typedef struct outcome {
    ch_status status;
    char message[256];
    int signal, attempts;
    double cpu_s;
    ch_wire body; /* rest of the answer; valid when `answered` */
    bool answered;
} outcome;

static const char *const status_names[CH_N_STATUS] = {
    "ok",       "parse",   "empty",  "too_large", "valence", "conformer", "geometry",
    "timeout",  "memory",  "crash",  "format",    "record",  "internal",
};

const char *ch_status_name(ch_status s)
{
    return (unsigned)s < CH_N_STATUS ? status_names[s] : "internal";
}

ch_prepare_opts ch_prepare_defaults(void)
{
    return (ch_prepare_opts){ .largest_fragment = true, .max_heavy_atoms = 250, .max_atoms = 1000,
                              .conformer = CH_3D_AUTO, .force_field = CH_FF_MMFF94,
                              .sd_steps = 50, .cg_steps = 200, .seed = 0 };
}

/* ---- finding the program ------------------------------------------------ */

static bool is_program(const char *path) { return path[0] != '\0' && access(path, X_OK) == 0; }

static bool beside_us(char *out, size_t n)
{
    char self[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (len <= 0)
        return false;
    self[len] = '\0';
    slash = strrchr(self, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return snprintf(out, n, "%s/molsieve-chem", self) < (int)n && is_program(out);
}

static bool on_path(char *out, size_t n)
{
    const char *at = getenv("PATH");

    while (at != NULL && *at != '\0') {
        size_t len = strcspn(at, ":");
        if (snprintf(out, n, "%.*s/molsieve-chem", (int)len, at) < (int)n && is_program(out))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

static pl_code find_program(ch_worker *w, pl_error *err)
{
    const char *named = w->opts.program ? w->opts.program : getenv("MOLSIEVE_CHEM");

    if (w->opts.program == NULL && beside_us(w->program, sizeof w->program))
        return PL_OK;
    if (named != NULL && named[0] != '\0') {
        if (snprintf(w->program, sizeof w->program, "%s", named) < (int)sizeof w->program &&
            is_program(w->program))
            return PL_OK;
        return pl_fail(err, PL_ECONFIG, "the chemistry worker %s is not a program", named);
    }
    if (on_path(w->program, sizeof w->program))
        return PL_OK;
    return pl_fail(err, PL_ECONFIG, "molsieve-chem is neither beside this program nor in PATH; "
                                    "set MOLSIEVE_CHEM to where it is");
}

pl_code ch_worker_open(ch_worker **out, const ch_worker_opts *opts, pl_error *err)
{
    ch_worker *w = calloc(1, sizeof *w);
    pl_code code;

    *out = NULL;
    if (w == NULL)
        return pl_fail(err, PL_ENOMEM, "chemistry worker");
    if (opts != NULL)
        w->opts = *opts;
    w->opts.cpu_first_s = w->opts.cpu_first_s > 0 ? w->opts.cpu_first_s : 2;
    w->opts.cpu_retry_s = w->opts.cpu_retry_s > 0 ? w->opts.cpu_retry_s : 30;
    w->opts.wall_slack_s = w->opts.wall_slack_s > 0 ? w->opts.wall_slack_s : 20;
    w->opts.memory_bytes = w->opts.memory_bytes > 0 ? w->opts.memory_bytes : (size_t)2 << 30;
    code = find_program(w, err);
    if (code != PL_OK)
        ch_worker_close(w);
    else
        *out = w;
    return code;
}

void ch_worker_close(ch_worker *w)
{
    int by_signal;
    double cpu_s;

    if (w == NULL)
        return;
    ch_child_end(&w->child, false, &by_signal, &cpu_s);
    pl_text_free(&w->request);
    pl_text_free(&w->answer);
    free(w);
}

/* ---- one request, with restarts ----------------------------------------- */

static void request_begin(ch_worker *w, enum ch_op op)
{
    pl_text_reset(&w->request);
    ch_wire_put_u32(&w->request, (uint32_t)op);
    ch_wire_put_f64(&w->request, 0); /* the CPU seconds; set for each attempt */
}

static void drop_child(ch_worker *w, bool dying, outcome *o)
{
    double cpu_s;

    ch_child_end(&w->child, dying, &o->signal, &cpu_s);
    o->cpu_s += cpu_s > w->child_cpu_s ? cpu_s - w->child_cpu_s : 0;
    w->child_cpu_s = 0;
    w->lost++;
}

static void set_status(outcome *o, ch_status status, const char *message)
{
    o->status = status;
    (void)snprintf(o->message, sizeof o->message, "%s", message);
}

static void read_answer(ch_worker *w, outcome *o)
{
    ch_wire in = ch_wire_of(w->answer.s, w->answer.len);
    uint32_t status = ch_wire_u32(&in);
    int by_signal = ch_wire_i32(&in);
    double cpu_s = ch_wire_f64(&in);
    size_t n;
    const char *message = ch_wire_str(&in, &n);

    if (!in.ok || status >= CH_N_STATUS) {
        drop_child(w, false, o);
        set_status(o, CH_INTERNAL, "the worker's answer makes no sense");
        return;
    }
    o->cpu_s += cpu_s > w->child_cpu_s ? cpu_s - w->child_cpu_s : 0;
    w->child_cpu_s = cpu_s;
    o->status = (ch_status)status;
    (void)snprintf(o->message, sizeof o->message, "%.*s", (int)n, message);
    o->body = in;
    o->answered = true;
    if (status == CH_MEMORY || status == CH_INTERNAL)
        drop_child(w, false, o); /* its state is not to be trusted */
    o->signal = by_signal;
}

static void read_death(ch_worker *w, outcome *o, ch_talk how, double cpu_limit)
{
    char text[128];

    drop_child(w, how == CH_TALK_DIED, o);
    if (how == CH_TALK_LATE) {
        (void)snprintf(text, sizeof text, "no answer in time on the wall clock; CPU budget %g s", cpu_limit);
        set_status(o, CH_TIMEOUT, text);
    } else if (o->signal == SIGPROF) {
        (void)snprintf(text, sizeof text, "more than %g CPU seconds", cpu_limit);
        set_status(o, CH_TIMEOUT, text);
    } else if (how == CH_TALK_GARBLED) {
        set_status(o, CH_INTERNAL, "the worker's answer makes no sense");
    } else {
        (void)snprintf(text, sizeof text, "the chemistry worker was ended by signal %d (%s)", o->signal,
                       o->signal ? strsignal(o->signal) : "it left by itself");
        set_status(o, CH_CRASH, text);
    }
}

/* One try. Not PL_OK: nothing to do with the record. */
static pl_code attempt(ch_worker *w, outcome *o, double cpu_limit, pl_error *err)
{
    ch_talk how;

    if (w->child.pid == 0) {
        pl_code code = ch_child_start(&w->child, w->program, w->opts.memory_bytes, err);
        if (code != PL_OK)
            return code;
        w->started++;
    }
    memcpy(w->request.s + 4, &cpu_limit, sizeof cpu_limit);
    w->requests++;
    o->answered = false;
    how = ch_child_talk(&w->child, &w->request, &w->answer, 4 * cpu_limit + w->opts.wall_slack_s, w->opts.stop);
    if (how == CH_TALK_OK) {
        read_answer(w, o);
        return PL_OK;
    }
    if (how == CH_TALK_STOP || how == CH_TALK_NOMEM) {
        drop_child(w, false, o);
        w->lost--; /* our own doing */
        return how == CH_TALK_STOP ? pl_fail(err, PL_ESTOP, "asked to stop")
                                   : pl_fail(err, PL_ENOMEM, "an answer of the chemistry worker");
    }
    read_death(w, o, how, cpu_limit);
    return PL_OK;
}

static bool deserves_retry(const outcome *o)
{
    return o->status == CH_TIMEOUT || o->status == CH_CRASH || o->status == CH_MEMORY || o->status == CH_INTERNAL;
}

/* The request that was put together, answered; twice tried if need be. A
 * SIGKILL is never the record's doing (memory is limited, the watchdog says
 * LATE), so it does not count as a try. */
static pl_code exchange(ch_worker *w, outcome *o, pl_error *err)
{
    int killed = 0;

    if (!pl_text_ok(&w->request))
        return pl_fail(err, PL_ENOMEM, "a request to the chemistry worker");
    if (w->request.len > CH_MESSAGE_MAX)
        return pl_fail(err, PL_EINPUT, "too_large: %zu bytes for one request", w->request.len);
    for (o->attempts = 1;; o->attempts++) {
        const double limit = o->attempts == 1 ? w->opts.cpu_first_s : w->opts.cpu_retry_s;
        pl_code code = attempt(w, o, limit, err);

        if (code != PL_OK)
            return code;
        if (o->status == CH_CRASH && o->signal == SIGKILL && ++killed < KILLED_MAX) /* child or its builder */
            o->attempts--;
        else if (o->attempts == 2 || !deserves_retry(o))
            return PL_OK;
    }
}

/* Before the first real request: the child's own test. Without it a missing
 * table of the library would look like bad molecules. */
static pl_code ensure_tested(ch_worker *w, pl_error *err)
{
    const ch_worker_opts asked = w->opts;
    outcome o = { 0 };
    pl_code code;
    size_t n;
    const char *version;

    if (w->tested)
        return PL_OK;
    w->opts.cpu_first_s = w->opts.cpu_retry_s = HELLO_S; /* the caller's budget is for molecules */
    request_begin(w, CH_OP_HELLO);
    code = exchange(w, &o, err);
    w->opts = asked;
    if (code != PL_OK)
        return code;
    if (o.status != CH_OK)
        return pl_fail(err, PL_ECONFIG, "%s does not work: %s", w->program, o.message);
    version = ch_wire_str(&o.body, &n);
    (void)snprintf(w->info.library, sizeof w->info.library, "%.*s", (int)n, version);
    (void)snprintf(w->info.protocol, sizeof w->info.protocol, "%s", CH_PROTOCOL_VERSION);
    w->info.n_formats = ch_wire_i32(&o.body);
    w->tested = o.body.ok;
    return o.body.ok ? PL_OK : pl_fail(err, PL_ECONFIG, "%s speaks another protocol", w->program);
}

/* ---- the requests ------------------------------------------------------- */

static pl_code outcome_error(const outcome *o, pl_error *err)
{
    return pl_fail(err, PL_EINPUT, "%s: %s", ch_status_name(o->status), o->message);
}

static pl_code broken_answer(pl_error *err) { return pl_fail(err, PL_EINPUT, "internal: the worker's answer is cut short"); }

static void put_prepare(pl_text *t, const ch_prepare_opts *o)
{
    const int32_t values[] = { o->largest_fragment, o->max_heavy_atoms, o->max_atoms, (int32_t)o->conformer,
                               (int32_t)o->force_field, o->sd_steps, o->cg_steps };

    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ch_wire_put_u32(t, (uint32_t)values[i]);
    ch_wire_put_u64(t, o->seed);
}

static pl_code get_prepared(ch_prepared *out, ch_wire *in, pl_arena *mem, pl_error *err)
{
    const char **strings[] = { &out->smiles, &out->inchikey, &out->formula, &out->removed, &out->geometry };
    int32_t *ints[] = { &out->n_heavy, &out->charge, &out->hbd, &out->hba, &out->rotors, &out->rings };
    double *reals[] = { &out->mw, &out->logp, &out->tpsa, &out->energy };

    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        size_t n;
        const char *s = ch_wire_str(in, &n);
        *strings[i] = pl_strndup(mem, s, n);
        if (*strings[i] == NULL)
            return pl_fail(err, PL_ENOMEM, "a prepared molecule");
    }
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        *ints[i] = ch_wire_i32(in);
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        *reals[i] = ch_wire_f64(in);
    return ch_wire_mol(&out->mol, in, mem, err);
}

static void prepared_clear(ch_prepared *out)
{
    *out = (ch_prepared){ .message = "", .smiles = "", .inchikey = "", .formula = "", .removed = "",
                          .geometry = "", .energy = NAN };
}

/* What the outcome says, as far as there is an answer. */
static pl_code fill_prepared(ch_prepared *out, outcome *o, pl_arena *mem, pl_error *err)
{
    pl_code code = PL_OK;

    if (o->answered && o->body.at < o->body.end)
        code = get_prepared(out, &o->body, mem, err);
    if (code == PL_EINPUT)
        o->status = CH_INTERNAL;
    if (code != PL_OK && code != PL_EINPUT)
        return code;
    out->code = o->status;
    out->signal = o->signal;
    out->attempts = o->attempts;
    out->cpu_s = o->cpu_s;
    out->message = pl_strdup(mem, code == PL_OK ? o->message : "the worker's answer is no molecule");
    if (out->message == NULL)
        return pl_fail(err, PL_ENOMEM, "a prepared molecule");
    if (out->code == CH_OK)
        return PL_OK;
    out->mol = (ch_mol){ 0 };
    return pl_fail(err, PL_EINPUT, "%s: %s", ch_status_name(out->code), out->message);
}

pl_code ch_worker_prepare(ch_worker *w, const char *text, size_t len, const char *format,
                          const ch_prepare_opts *opts, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    const ch_prepare_opts defaults = ch_prepare_defaults();
    outcome o = { 0 };
    pl_code code;

    prepared_clear(out);
    out->code = CH_INTERNAL;
    code = ensure_tested(w, err);
    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_PREPARE);
    put_prepare(&w->request, opts ? opts : &defaults);
    ch_wire_put_str(&w->request, format, strlen(format));
    ch_wire_put_str(&w->request, text, len);
    code = exchange(w, &o, err);
    return code == PL_OK ? fill_prepared(out, &o, mem, err) : code;
}

static pl_code get_listing(ch_listing *out, outcome *o, pl_arena *mem, pl_error *err)
{
    int32_t n = ch_wire_i32(&o->body);

    if (n < 0 || (size_t)n > (size_t)(o->body.end - o->body.at) / 4)
        return broken_answer(err);
    out->message = pl_strdup(mem, o->message);
    out->text = PL_NEW(mem, const char *, n);
    out->len = PL_NEW(mem, size_t, n);
    for (int32_t i = 0; i < n && out->text != NULL && out->len != NULL; i++) {
        const char *s = ch_wire_str(&o->body, &out->len[i]);
        out->text[i] = pl_strndup(mem, s, out->len[i]);
        if (out->text[i] == NULL)
            break;
        out->n++;
    }
    if (out->n < n || out->message == NULL || out->text == NULL || out->len == NULL)
        return pl_fail(err, PL_ENOMEM, "a list of %d molecules", n);
    return o->body.ok ? PL_OK : broken_answer(err);
}

pl_code ch_worker_list(ch_worker *w, const char *text, size_t len, const char *format,
                       ch_listing *out, pl_arena *mem, pl_error *err)
{
    outcome o = { 0 };
    pl_code code = ensure_tested(w, err);

    *out = (ch_listing){ .message = "" };
    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_LIST);
    ch_wire_put_str(&w->request, format, strlen(format));
    ch_wire_put_str(&w->request, text, len);
    code = exchange(w, &o, err);
    if (code != PL_OK)
        return code;
    return o.status == CH_OK ? get_listing(out, &o, mem, err) : outcome_error(&o, err);
}

/* For requests whose answer is one text. */
static pl_code exchange_text(ch_worker *w, const char **out, pl_arena *mem, pl_error *err)
{
    outcome o = { 0 };
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

pl_code ch_worker_write(ch_worker *w, const ch_mol *mol, const char *title, const char *to,
                        const char **out, pl_arena *mem, pl_error *err)
{
    pl_code code = ensure_tested(w, err);

    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_WRITE);
    ch_wire_put_str(&w->request, to, strlen(to));
    ch_wire_put_str(&w->request, title ? title : "", title ? strlen(title) : 0);
    ch_wire_put_mol(&w->request, mol);
    return exchange_text(w, out, mem, err);
}

pl_code ch_worker_svg(ch_worker *w, const char *smiles, const char **out, pl_arena *mem, pl_error *err)
{
    pl_code code = ensure_tested(w, err);

    if (code != PL_OK)
        return code;
    request_begin(w, CH_OP_SVG);
    ch_wire_put_str(&w->request, smiles, strlen(smiles));
    return exchange_text(w, out, mem, err);
}

pl_code ch_worker_hello(ch_worker *w, ch_worker_info *out, pl_error *err)
{
    pl_code code = ensure_tested(w, err);

    if (code == PL_OK)
        *out = w->info;
    return code;
}

pl_code ch_worker_reads(ch_worker *w, const char *format, bool *yes, pl_error *err)
{
    outcome o = { 0 };
    pl_code code = ensure_tested(w, err);

    *yes = strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
    if (code != PL_OK || *yes)
        return code;
    request_begin(w, CH_OP_READS);
    ch_wire_put_str(&w->request, format, strlen(format));
    code = exchange(w, &o, err);
    if (code == PL_OK && o.status == CH_OK)
        *yes = ch_wire_i32(&o.body) != 0;
    return code;
}

void ch_worker_counts(const ch_worker *w, int64_t *started, int64_t *requests, int64_t *lost)
{
    if (started != NULL)
        *started = w->started;
    if (requests != NULL)
        *requests = w->requests;
    if (lost != NULL)
        *lost = w->lost;
}
