/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/request_queue.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
    KILLED_MAX = 30, /* maximum SIGKILLs from outside (e.g. the OOM killer) per record, or at start */
    IN_FLIGHT = 4,   /* maximum requests sent to the child and not yet answered                     */
    /* Bytes of one that it has not begun: together they fit its socket, so sending never blocks while it waits for us to read an
     * answer. */
    AHEAD_MAX = (64 << 10) / (IN_FLIGHT - 1),
};

/* One request on its way. */
typedef struct flight {
    int32_t i;
    bool sent, refused; /* refused: too large, never sent */
    int killed;         /* attempts that did not count */
    ch_outcome o;
} flight;

typedef struct flights {
    flight at[IN_FLIGHT]; /* in the order in which they are answered */
    int n;
} flights;

void ch_request_begin(pl_text *request, enum ch_op op)
{
    pl_text_reset(request);
    ch_wire_put_u32(request, (uint32_t)op);
    ch_wire_put_f64(request, 0); /* the CPU seconds; set for each attempt */
}

void ch_link_close(ch_link *l)
{
    (void)ch_worker_process_end(&l->child, false);
    pl_text_free(&l->request);
    pl_text_free(&l->answer);
}

static double cpu_limit(const ch_link *l, const flight *f)
{
    return f->o.attempts == 1 ? l->opts.cpu_first_s : l->opts.cpu_retry_s;
}

static double wall_limit(const ch_link *l, const flight *f) { return 4 * cpu_limit(l, f) + l->opts.wall_slack_s; }

/* Requests that the child has not answered go to the next one. Returns its exit status. */
static int drop_child(ch_link *l, flights *q, bool dying)
{
    const ch_worker_end end = ch_worker_process_end(&l->child, dying);
    ch_outcome *o = &q->at[0].o;

    o->signal = end.signal;
    o->cpu_s += end.cpu_s > l->child_cpu_s ? end.cpu_s - l->child_cpu_s : 0;
    l->child_cpu_s = 0;
    l->lost++;
    for (int k = 0; k < q->n; k++)
        q->at[k].sent = false;
    return end.status;
}

static void set_status(ch_outcome *o, ch_status status, const char *message)
{
    o->status = status;
    (void)snprintf(o->message, sizeof o->message, "%s", message);
}

static void read_answer(ch_link *l, flights *q)
{
    ch_outcome *o = &q->at[0].o;
    ch_wire in = ch_wire_of(l->answer.s, l->answer.len);
    uint32_t status = ch_wire_u32(&in);
    int by_signal = ch_wire_i32(&in);
    double cpu_s = ch_wire_f64(&in);
    size_t n;
    const char *message = ch_wire_str(&in, &n);

    if (!in.ok || status >= CH_N_STATUS) {
        (void)drop_child(l, q, false);
        set_status(o, CH_INTERNAL, "the worker's answer is malformed");
        return;
    }
    o->cpu_s += cpu_s > l->child_cpu_s ? cpu_s - l->child_cpu_s : 0;
    l->child_cpu_s = cpu_s;
    o->status = (ch_status)status;
    (void)snprintf(o->message, sizeof o->message, "%.*s", (int)n, message);
    o->body = in;
    o->answered = true;
    if (status == CH_MEMORY || status == CH_INTERNAL)
        (void)drop_child(l, q, false); /* its state may be corrupt */
    o->signal = by_signal;
}

/* What this machine lacks, if a worker ended with this exit status; else NULL. */
static const char *lacking(int status)
{
    switch (status) {
    case CH_EXIT_NULL: return "the chemistry worker cannot open /dev/null, which it needs; make it there";
    case CH_EXIT_FILES: return "the chemistry worker has too few file descriptors; raise the limit of open files (ulimit -n)";
    case CH_EXIT_PROCESS:
        return "the chemistry worker can start no process; raise the limit of processes (ulimit -u), or free memory";
    case CH_EXIT_LOADER: return "the chemistry worker cannot be loaded (exit status 127); start it by hand to see why";
    default: return NULL;
    }
}

/* Not PL_OK: the machine is the cause, not the record. */
static pl_code read_death(ch_link *l, flights *q, ch_talk how, pl_error *err)
{
    const double limit = cpu_limit(l, &q->at[0]);
    ch_outcome *o = &q->at[0].o;
    const int status = drop_child(l, q, how == CH_TALK_DIED);
    char text[128];

    if (how == CH_TALK_DIED && lacking(status) != NULL)
        return pl_fail(err, PL_EIO, "%s: %s", l->program, lacking(status));
    if (how == CH_TALK_LATE) {
        (void)snprintf(text, sizeof text, "no answer and no sign of work for %g s", wall_limit(l, &q->at[0]));
        set_status(o, CH_TIMEOUT, text);
    } else if (o->signal == SIGPROF) {
        (void)snprintf(text, sizeof text, "more than %g CPU seconds", limit);
        set_status(o, CH_TIMEOUT, text);
    } else if (how == CH_TALK_GARBLED) {
        set_status(o, CH_INTERNAL, "the worker's answer is malformed");
    } else if (o->signal == 0) {
        (void)snprintf(text, sizeof text, "the chemistry worker ended by itself, with exit status %d", status);
        set_status(o, CH_CRASH, text);
    } else {
        (void)snprintf(text, sizeof text, "the chemistry worker was ended by signal %d (%s)", o->signal, strsignal(o->signal));
        set_status(o, CH_CRASH, text);
    }
    return PL_OK;
}

static ch_talk send_one(ch_link *l, flights *q, flight *f)
{
    const double limit = cpu_limit(l, f);

    memcpy(l->request.s + 4, &limit, sizeof limit);
    f->sent = true;
    l->requests++;
    return ch_worker_process_send(&l->child, &l->request, wall_limit(l, &q->at[0]), l->opts.stop);
}

/* Sends all requests that the child may have now. *how: on DIED still read its answers, it may have answered before. */
static pl_code send_due(ch_link *l, flights *q, const ch_work *work, ch_talk *how, pl_error *err)
{
    *how = CH_TALK_OK;
    for (int k = 0; k < q->n && *how == CH_TALK_OK; k++) {
        flight *f = &q->at[k];
        if (!f->sent) {
            if (work->ask != NULL)
                work->ask(work->ctx, f->i, &l->request);
            if (!pl_text_ok(&l->request))
                return pl_fail(err, PL_ENOMEM, "a request to the chemistry worker");
            if (k > 0 && l->request.len > AHEAD_MAX)
                return PL_OK;
            f->refused = l->request.len > CH_MESSAGE_MAX;
            if (!f->refused)
                *how = send_one(l, q, f);
        }
    }
    return PL_OK;
}

static pl_code start_child(ch_link *l, pl_error *err)
{
    struct stat now;
    pl_code code;

    if (l->child.pid != 0)
        return PL_OK;
    if (stat(l->program, &now) != 0 || now.st_dev != l->is.st_dev || now.st_ino != l->is.st_ino ||
        now.st_mtim.tv_sec != l->is.st_mtim.tv_sec || now.st_mtim.tv_nsec != l->is.st_mtim.tv_nsec)
        return pl_fail(err, PL_EIO, "%s was replaced while this run used it; run again", l->program);
    code = ch_worker_process_start(&l->child, l->program, l->opts.memory_bytes, err);
    l->started += code == PL_OK;
    return code;
}

/* One attempt of the first request. Not PL_OK: an error not caused by the record. */
static pl_code attempt(ch_link *l, flights *q, const ch_work *work, pl_error *err)
{
    flight *f = &q->at[0];
    ch_talk how;
    pl_code code = start_child(l, err);

    if (code == PL_OK)
        code = send_due(l, q, work, &how, err);
    if (code != PL_OK)
        return code;
    f->o.answered = false;
    if (f->refused) {
        set_status(&f->o, CH_TOO_LARGE, "more bytes than one request may have");
        return PL_OK;
    }
    if (how == CH_TALK_OK || how == CH_TALK_DIED)
        how = ch_worker_process_receive(&l->child, &l->answer, wall_limit(l, f), l->opts.stop);
    if (how == CH_TALK_OK)
        read_answer(l, q);
    else if (how == CH_TALK_STOP)
        return pl_fail(err, PL_ESTOP, "asked to stop");
    else if (how == CH_TALK_NOMEM)
        return pl_fail(err, PL_ENOMEM, "an answer of the chemistry worker");
    else
        return read_death(l, q, how, err);
    return PL_OK;
}

/* Tries a request twice if necessary. A SIGKILL is never caused by the record (memory is
 * limited, the watchdog reports LATE), so it does not count as an attempt. */
static bool again(flight *f)
{
    const ch_outcome *o = &f->o;

    if (o->status == CH_CRASH && o->signal == SIGKILL && ++f->killed < KILLED_MAX) /* child or its builder */
        return true;
    if (o->attempts == 2 ||
        (o->status != CH_TIMEOUT && o->status != CH_CRASH && o->status != CH_MEMORY && o->status != CH_INTERNAL))
        return false;
    f->o.attempts = 2;
    return true;
}

/* The first request leaves the queue, or goes to its end. */
static pl_code settle(flights *q, const ch_work *work, pl_error *err)
{
    flight f = q->at[0];

    q->n--;
    memmove(&q->at[0], &q->at[1], (size_t)q->n * sizeof q->at[0]);
    if (!again(&f))
        return work->take(work->ctx, f.i, &f.o, err);
    f.sent = false;
    q->at[q->n++] = f;
    return PL_OK;
}

pl_code ch_link_exchange(ch_link *l, const ch_work *work, pl_error *err)
{
    flights q = { .n = 0 };
    int32_t next = 0;
    pl_code code = PL_OK;

    while (code == PL_OK && (q.n > 0 || next < work->n)) {
        while (q.n < IN_FLIGHT && next < work->n)
            q.at[q.n++] = (flight){ .i = next++, .o.attempts = 1 };
        code = attempt(l, &q, work, err);
        if (code == PL_OK)
            code = settle(&q, work, err);
    }
    if (code != PL_OK && q.n > 0 && l->child.pid != 0) { /* it may have requests whose answers are no longer needed */
        (void)drop_child(l, &q, false);
        l->lost--; /* ended by this process, not lost */
    }
    return code;
}
