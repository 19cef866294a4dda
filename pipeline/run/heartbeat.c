/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/run/heartbeat.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/ids.h"
#include "pipeline/base/par.h"
#include "pipeline/base/text.h"

enum { MAX_STAGES = 32, SUM_LEN = 21 }; /* SUM_LEN: bytes that put_sum writes */

typedef struct beat_stage {
    char stage[32], item[32], note[96];
    int64_t done, total;
    bool ended;
} beat_stage;

struct pl_heartbeat {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    char path[PATH_MAX], command[32], started[32], host[128], job[128], reason[384];
    const char *state;
    int64_t run_id;
    beat_stage stage[MAX_STAGES];
    int n;
};

static void put_text(pl_text *out, const char *name, const char *value)
{
    pl_text_addf(out, "\"%s\":", name);
    pl_text_add_json(out, value);
    pl_text_add(out, ",");
}

static void put_sum(const char *text, size_t n, pl_text *out)
{
    pl_text_addf(out, ",\"crc32\":\"%08lx\"}\n", crc32_z(0, (const Bytef *)text, n));
}

static void put_all(const pl_heartbeat *h, pl_text *out)
{
    char now[32];

    pl_text_add(out, "{");
    put_text(out, "host", h->host);
    pl_text_addf(out, "\"pid\":%ld,", (long)getpid());
    put_text(out, "job", h->job);
    pl_text_addf(out, "\"run_id\":%lld,", (long long)h->run_id);
    put_text(out, "command", h->command);
    put_text(out, "state", h->state);
    put_text(out, "reason", h->reason);
    put_text(out, "started_utc", h->started);
    put_text(out, "at_utc", pl_utc_now(now));
    pl_text_addf(out, "\"every_s\":%d,\"stages\":[", PL_HEARTBEAT_S);
    for (int i = 0; i < h->n; i++) {
        pl_text_add(out, i ? ",{" : "{");
        put_text(out, "stage", h->stage[i].stage);
        put_text(out, "state", h->stage[i].ended ? "done" : "running");
        put_text(out, "item", h->stage[i].item);
        put_text(out, "note", h->stage[i].note);
        pl_text_addf(out, "\"done\":%lld,\"total\":%lld}", (long long)h->stage[i].done, (long long)h->stage[i].total);
    }
    pl_text_add(out, "]");
    if (pl_text_ok(out))
        put_sum(pl_text_str(out), out->len, out);
}

bool pl_heartbeat_holds(pl_bytes file)
{
    const char *text = file.data;
    pl_text sum = { 0 };
    bool holds;

    if (file.len >= 2 && memcmp(text + file.len - 2, "]}", 2) == 0)
        return true;
    if (file.len >= 3 && memcmp(text + file.len - 3, "]}\n", 3) == 0)
        return true;
    if (file.len <= SUM_LEN)
        return false;
    put_sum(text, file.len - SUM_LEN, &sum);
    holds = pl_text_ok(&sum) && sum.len == SUM_LEN && memcmp(sum.s, text + file.len - SUM_LEN, SUM_LEN) == 0;
    pl_text_free(&sum);
    return holds;
}

/* A reader sees the old or the new file. The file need not survive a power cut, so there is no fsync. */
static void replace(const char *path, const pl_text *text)
{
    char tmp[PATH_MAX + 8];
    int fd;
    bool whole;

    (void)snprintf(tmp, sizeof tmp, "%s.tmp", path);
    fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0)
        return;
    whole = write(fd, text->s, text->len) == (ssize_t)text->len;
    if (close(fd) != 0 || !whole || rename(tmp, path) != 0)
        (void)unlink(tmp);
}

/* h->lock is held on entry and on return, but not during the write, so other threads do not wait for a slow file system. */
static void beat(pl_heartbeat *h)
{
    pl_text text = { 0 };

    put_all(h, &text);
    (void)pthread_mutex_unlock(&h->lock);
    if (pl_text_ok(&text))
        replace(h->path, &text);
    pl_text_free(&text);
    (void)pthread_mutex_lock(&h->lock);
}

static void *work(void *ctx)
{
    pl_heartbeat *h = ctx;
    struct timespec next;

    (void)pthread_mutex_lock(&h->lock);
    (void)clock_gettime(CLOCK_MONOTONIC, &next);
    while (strcmp(h->state, "running") == 0) {
        beat(h);
        next.tv_sec += PL_HEARTBEAT_S;
        while (strcmp(h->state, "running") == 0 && pthread_cond_timedwait(&h->wake, &h->lock, &next) == 0)
            ;
    }
    if (h->state[0] != '\0')
        beat(h);
    (void)pthread_mutex_unlock(&h->lock);
    return NULL;
}

static void describe(pl_heartbeat *h, const char *command)
{
    const char *job, *task, *scheduler = pl_scheduler(&job, &task);

    (void)gethostname(h->host, sizeof h->host - 1);
    (void)snprintf(h->command, sizeof h->command, "%s", command != NULL ? command : "run");
    if (scheduler != NULL)
        (void)snprintf(h->job, sizeof h->job, "%s %.48s%s%.32s", scheduler, job != NULL ? job : "?", task != NULL ? " task " : "",
                       task != NULL ? task : "");
    (void)pl_utc_now(h->started);
}

pl_heartbeat *pl_heartbeat_start(const char *workdir, int64_t run_id, const char *command)
{
    pl_heartbeat *h = calloc(1, sizeof *h);

    if (h == NULL)
        return NULL;
    (void)snprintf(h->path, sizeof h->path, "%s/heartbeat.json", workdir);
    h->run_id = run_id;
    h->state = "running";
    describe(h, command);
    (void)pthread_mutex_init(&h->lock, NULL);
    if (pl_thread_start(&h->thread, &h->wake, work, h))
        return h;
    free(h);
    return NULL;
}

static beat_stage *find(pl_heartbeat *h, const char *stage)
{
    for (int i = 0; i < h->n; i++)
        if (strcmp(h->stage[i].stage, stage) == 0)
            return &h->stage[i];
    if (h->n == MAX_STAGES)
        return NULL;
    (void)snprintf(h->stage[h->n].stage, sizeof h->stage[0].stage, "%s", stage);
    return &h->stage[h->n++];
}

void pl_heartbeat_stage(pl_heartbeat *h, const char *stage, const char *item, int64_t done, int64_t total, const char *note)
{
    beat_stage *s;

    if (h == NULL)
        return;
    (void)pthread_mutex_lock(&h->lock);
    s = find(h, stage);
    if (s != NULL) {
        s->ended = false;
        s->done = done;
        s->total = total;
        (void)snprintf(s->item, sizeof s->item, "%s", item);
        (void)snprintf(s->note, sizeof s->note, "%s", note != NULL ? note : "");
    }
    (void)pthread_mutex_unlock(&h->lock);
}

void pl_heartbeat_stage_done(pl_heartbeat *h, const char *stage)
{
    beat_stage *s;

    if (h == NULL)
        return;
    (void)pthread_mutex_lock(&h->lock);
    s = find(h, stage);
    if (s != NULL)
        s->ended = true;
    (void)pthread_mutex_unlock(&h->lock);
}

void pl_heartbeat_end(pl_heartbeat *h, pl_code code, const char *reason)
{
    if (h == NULL)
        return;
    (void)pthread_mutex_lock(&h->lock);
    h->state = code == PL_ESTOP ? "stopped" : "failed";
    if (code == PL_OK)
        h->state = "done";
    if (code == PL_ELOCK)
        h->state = ""; /* the file may belong to another run now: do not write it again */
    (void)snprintf(h->reason, sizeof h->reason, "%s", code != PL_OK && reason != NULL ? reason : "");
    (void)pthread_cond_signal(&h->wake);
    (void)pthread_mutex_unlock(&h->lock);
    (void)pthread_join(h->thread, NULL);
    (void)pthread_cond_destroy(&h->wake);
    (void)pthread_mutex_destroy(&h->lock);
    free(h);
}
