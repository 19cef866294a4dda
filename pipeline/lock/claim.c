/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/lock/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/log.h"
#include "pipeline/base/par.h"

enum { CLAIM_BYTES = 640, READS_PER_BEAT = 5 }; /* of a claim file, at most; while another process waits */

struct pl_claim {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool ended;
    int beat_ms;
    unsigned beat;
    char path[PATH_MAX], what[PATH_MAX], who[512], boot[64];
};

static void say(const pl_claim *c, char text[CLAIM_BYTES])
{
    (void)snprintf(text, CLAIM_BYTES, "%s\nboot %s, beat %010u\n", c->who, c->boot, c->beat);
}

static void sleep_ms(int ms)
{
    struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* The boot id of this kernel: it differs after a reboot, and on another machine of the same name. */
static void read_boot(char boot[64])
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, boot, 63) : 0;

    boot[n > 0 ? n : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0)
        (void)close(fd);
}

/* Reads the claim file into text; returns 0 or an errno. */
static int read_claim(const char *path, char text[CLAIM_BYTES])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), why = errno;
    struct stat at;
    ssize_t n;

    text[0] = '\0';
    if (fd < 0)
        return why;
    if (fstat(fd, &at) == 0 && !S_ISREG(at.st_mode)) {
        (void)close(fd);
        return S_ISDIR(at.st_mode) ? EISDIR : EEXIST;
    }
    n = read(fd, text, CLAIM_BYTES - 1);
    why = errno;
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n < 0 ? why : 0;
}

/* Every version of the text has the same length and is written by one write(2), so a reader sees the old or the new one. */
static bool write_claim(const pl_claim *c, int flags)
{
    char text[CLAIM_BYTES];
    int fd = open(c->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | flags, 0666);
    bool whole;

    if (fd < 0)
        return false;
    say(c, text);
    whole = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    return close(fd) == 0 && whole;
}

/* Whether the claim belongs to a dead process of this machine. If its pid is in use again, this is false, and we only wait. */
static bool died_here(const pl_claim *c, const char *text)
{
    char host[128], boot[64], own[160];
    long pid;

    if (c->boot[0] == '\0' || sscanf(text, "host %127[^,], pid %ld%*[^\n]\nboot %63[^,]", host, &pid, boot) != 3)
        return false;
    (void)snprintf(own, sizeof own, "host %s, ", host);
    return strncmp(c->who, own, strlen(own)) == 0 && strcmp(c->boot, boot) == 0 && pid > 0 && kill((pid_t)pid, 0) != 0 &&
           errno == ESRCH;
}

/* True also for the beginning of a claim, as a killed process may leave it. */
static bool is_claim(const char *text)
{
    static const char begins[] = "host ";

    return strncmp(text, begins, strlen(text) < strlen(begins) ? strlen(text) : strlen(begins)) == 0;
}

static pl_code fail_in_use(const pl_claim *c, char *text, pl_error *err)
{
    text[strcspn(text, "\n")] = '\0';
    return pl_fail(err, PL_ELOCK, "%s is in use by another host, held by %s; wait for that run or stop it", c->what,
                   text[0] ? text : "another process");
}

/* Watches the claim for PL_CLAIM_BEATS beats. PL_OK: it is gone, or it did not change and its owner counts as *dead. */
static pl_code watch_claim(const pl_claim *c, const char *seen, bool *dead, pl_error *err)
{
    char now[CLAIM_BYTES];

    pl_log(PL_WARN, "%s: another host may still run here (%.*s); waiting up to %.0f s to see whether that run is alive", c->what,
           (int)strcspn(seen, "\n"), seen, PL_CLAIM_BEATS * c->beat_ms / 1e3);
    for (int i = 0; i < PL_CLAIM_BEATS * READS_PER_BEAT; i++) {
        int why;
        sleep_ms(c->beat_ms / READS_PER_BEAT);
        why = read_claim(c->path, now);
        if (why == ENOENT)
            return PL_OK;
        if (why == 0 && strcmp(now, seen) != 0)
            return fail_in_use(c, now, err);
    }
    *dead = true;
    return PL_OK;
}

/* Removes a dead claim. Of several processes that saw it, only one succeeds in renaming it. If the renamed file turns out to
 * be a newer, living claim, it is put back. */
static pl_code remove_dead(const pl_claim *c, const char *seen, pl_error *err)
{
    char renamed[PATH_MAX + 32], text[CLAIM_BYTES];
    bool same;

    (void)snprintf(renamed, sizeof renamed, "%s.%.8s%ld", c->path, c->boot, (long)getpid());
    if (rename(c->path, renamed) != 0)
        return errno == ENOENT ? PL_OK : pl_fail_errno(err, c->path);
    same = read_claim(renamed, text) == 0 && strcmp(text, seen) == 0;
    if (!same)
        (void)!link(renamed, c->path);
    (void)unlink(renamed);
    return same ? PL_OK : fail_in_use(c, text, err);
}

/* why: errno of creating the file; not every file system returns EEXIST if the file exists. */
static pl_code clear_way(const pl_claim *c, int why, pl_error *err)
{
    char seen[CLAIM_BYTES];
    bool dead = false;
    int now = read_claim(c->path, seen);
    pl_code code = PL_OK;

    if (now == ENOENT && why == EEXIST)
        return PL_OK;
    if (now != 0) {
        errno = now == ENOENT ? why : now;
        return pl_fail_errno(err, c->path);
    }
    if (!is_claim(seen))
        return pl_fail(err, PL_EIO, "%s: not a lock file of molsieve, left as it is; move it away", c->path);
    if (died_here(c, seen))
        dead = true;
    else
        code = watch_claim(c, seen, &dead, err);
    return dead ? remove_dead(c, seen, err) : code;
}

static pl_code create_claim(const pl_claim *c, pl_error *err)
{
    for (int tries = 0; tries < 8; tries++) {
        pl_code code;
        if (write_claim(c, O_CREAT | O_EXCL))
            return PL_OK;
        code = clear_way(c, errno, err);
        if (code != PL_OK)
            return code;
    }
    return pl_fail(err, PL_ELOCK, "%s: other runs keep taking and releasing the lock; try again", c->what);
}

/* If the file cannot be read, the claim does not count as lost: the file server may be down for everybody. */
static bool is_lost(const pl_claim *c, char now[CLAIM_BYTES], int *why)
{
    char mine[CLAIM_BYTES];

    *why = read_claim(c->path, now);
    say(c, mine);
    return *why == ENOENT || (*why == 0 && strcmp(now, mine) != 0);
}

bool pl_claim_held(pl_claim *c)
{
    char now[CLAIM_BYTES];
    int why;
    bool lost;

    if (c == NULL)
        return true;
    (void)pthread_mutex_lock(&c->lock); /* so that no beat is being written */
    lost = is_lost(c, now, &why);
    (void)pthread_mutex_unlock(&c->lock);
    return !lost;
}

static void beat(pl_claim *c)
{
    char now[CLAIM_BYTES];
    int why;

    if (is_lost(c, now, &why)) {
        const char *nobody = why == ENOENT ? "the lock file is gone" : "the lock file is empty";
        now[strcspn(now, "\n")] = '\0';
        pl_log(PL_ERROR, "%s was taken over by another run while this process was suspended (%s); this process ends now", c->what,
               now[0] ? now : nobody);
        _exit(pl_code_exit(PL_ELOCK));
    }
    c->beat++;
    if (why != 0 || !write_claim(c, 0))
        c->beat--;
}

static void *work(void *ctx)
{
    pl_claim *c = ctx;
    struct timespec next;

    (void)pthread_mutex_lock(&c->lock);
    while (!c->ended) {
        (void)clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_nsec += (long)(c->beat_ms % 1000) * 1000000;
        next.tv_sec += c->beat_ms / 1000 + next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        while (!c->ended && pthread_cond_timedwait(&c->wake, &c->lock, &next) == 0)
            ;
        if (!c->ended)
            beat(c);
    }
    (void)pthread_mutex_unlock(&c->lock);
    return NULL;
}

pl_code pl_claim_take(pl_claim **out, const char *path, const char *what, const char *who, int beat_ms, pl_error *err)
{
    pl_claim *c = calloc(1, sizeof *c);
    pl_code code;

    *out = NULL;
    if (c == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the claim of %s", what);
    c->beat_ms = beat_ms;
    (void)snprintf(c->path, sizeof c->path, "%s", path);
    (void)snprintf(c->what, sizeof c->what, "%s", what);
    (void)snprintf(c->who, sizeof c->who, "%s", who);
    read_boot(c->boot);
    (void)pthread_mutex_init(&c->lock, NULL);
    code = create_claim(c, err);
    if (code == PL_OK && !pl_thread_start(&c->thread, &c->wake, work, c)) {
        (void)unlink(c->path);
        code = pl_fail(err, PL_ENOMEM, "no thread for the claim of %s", what);
    }
    if (code != PL_OK)
        free(c);
    else
        *out = c;
    return code;
}

void pl_claim_drop(pl_claim *c)
{
    if (c == NULL)
        return;
    (void)pthread_mutex_lock(&c->lock);
    c->ended = true;
    (void)pthread_cond_signal(&c->wake);
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_join(c->thread, NULL);
    if (pl_claim_held(c))
        (void)unlink(c->path);
    (void)pthread_cond_destroy(&c->wake);
    (void)pthread_mutex_destroy(&c->lock);
    free(c);
}
