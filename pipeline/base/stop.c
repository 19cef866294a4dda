/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/stop.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { CANCELLED = -1, AGAIN = 75 };

/* asked: 0, the number of the first signal, or CANCELLED. A signal handler can only use
 * variables of file scope; it may run on any thread, so they are atomic. */
static atomic_int asked, grace_s, again = AGAIN, stuck;

static const int caught[] = { SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM };
enum { N_CAUGHT = sizeof caught / sizeof caught[0] };

/* Exit status when the grace period is over. */
static int grace_code(void) { return stuck ? 1 : again; }

static void on_signal(int sig)
{
    int before = errno;

    if (asked > 0)
        _exit(sig != SIGALRM ? 128 + sig : grace_code());
    asked = sig;
    if (grace_s > 0)
        (void)alarm((unsigned)grace_s);
    errno = before;
}

void pl_stop_begin(pl_stop *s, double max_time, double grace)
{
    struct sigaction act = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct itimerval timer = { .it_value = { 0, 0 } };

    asked = 0;
    again = AGAIN;
    stuck = 0;
    grace_s = (int)(grace > 0 && grace < 1 ? 1 : grace);
    (void)sigemptyset(&act.sa_mask);
    for (int i = 0; i < N_CAUGHT; i++)
        (void)sigaction(caught[i], &act, &s->old[i]);
    (void)sigaction(SIGPIPE, &ignore, &s->old_pipe);
    if (max_time > 0) {
        timer.it_value.tv_sec = (time_t)max_time;
        timer.it_value.tv_usec = (suseconds_t)((max_time - (double)(time_t)max_time) * 1e6) + 1;
        (void)setitimer(ITIMER_REAL, &timer, NULL);
    }
}

void pl_stop_patient(void)
{
    static const int warnings[] = { SIGUSR1, SIGUSR2, SIGXCPU };
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    const struct itimerval none = { .it_value = { 0, 0 } };

    grace_s = 0;
    (void)setitimer(ITIMER_REAL, &none, NULL);
    for (size_t i = 0; i < sizeof warnings / sizeof *warnings; i++)
        (void)sigaction(warnings[i], &ignore, NULL);
}

void pl_stop_end(pl_stop *s)
{
    struct itimerval none = { .it_value = { 0, 0 } };

    (void)setitimer(ITIMER_REAL, &none, NULL);
    for (int i = 0; i < N_CAUGHT; i++)
        (void)sigaction(caught[i], &s->old[i], NULL);
    (void)sigaction(SIGPIPE, &s->old_pipe, NULL);
}

const atomic_int *pl_stop_flag(void) { return &asked; }

void pl_stop_again(int status) { again = status; }

void pl_stop_stuck(bool yes) { stuck = yes; }

bool pl_stop_is_stuck(void) { return stuck; }

void pl_stop_cancel(bool yes)
{
    int was = yes ? 0 : CANCELLED;

    /* One atomic step, so that a signal that arrives now is not overwritten. */
    (void)atomic_compare_exchange_strong(&asked, &was, yes ? CANCELLED : 0);
}

const char *pl_stop_reason(void)
{
    switch (atomic_load(&asked)) {
    case 0:
    case CANCELLED: return NULL;
    case SIGTERM: return "signal TERM";
    case SIGINT: return "signal INT";
    case SIGUSR1: return "signal USR1";
    case SIGUSR2: return "signal USR2";
    case SIGXCPU: return "signal XCPU";
    default: return "the time limit";
    }
}
