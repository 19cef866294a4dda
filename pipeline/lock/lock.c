/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/lock/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/disk.h"
#include "pipeline/base/file.h"
#include "pipeline/base/ids.h"

enum { HOLDER = 512 }; /* bytes of the line that names the holder, at most */

/* The holder writes its line just after it got the lock: wait up to 0.2 s for it. */
static void read_holder(int fd, char *buf, size_t size)
{
    static const struct timespec moment = { 0, 10000000 };

    for (int tries = 0; tries < 20; tries++) {
        ssize_t n = pread(fd, buf, size - 1, 0);
        buf[n > 0 ? n : 0] = '\0';
        if (strchr(buf, '\n') != NULL)
            break;
        (void)nanosleep(&moment, NULL);
    }
    buf[strcspn(buf, "\n")] = '\0';
    if (buf[0] == '\0')
        (void)snprintf(buf, size, "another process");
}

static pl_code write_holder(int fd, const char *path, char line[HOLDER], pl_error *err)
{
    char host[128] = "?", now[32];
    const char *job, *task, *scheduler = pl_scheduler(&job, &task);
    int n;

    (void)gethostname(host, sizeof host - 1);
    n = snprintf(line, HOLDER, "host %s, pid %ld%s%s%s%.64s, since %s\n", host, (long)getpid(), scheduler != NULL ? ", " : "",
                 scheduler != NULL ? scheduler : "", scheduler != NULL ? " job " : "", scheduler != NULL ? job : "",
                 pl_utc_now(now));
    if (ftruncate(fd, 0) != 0 || pwrite(fd, line, (size_t)n, 0) != n)
        return pl_fail_errno(err, path);
    line[n - 1] = '\0';
    return PL_OK;
}

static pl_code refuse(int fd, const char *what, const char *path, pl_error *err)
{
    char holder[HOLDER];
    int why = errno;

    if (why == EWOULDBLOCK) {
        read_holder(fd, holder, sizeof holder);
        return pl_fail(err, PL_ELOCK, "%s is in use, held by %s; wait for it or stop it", what, holder);
    }
    return pl_fail(err, PL_EIO, "%s: %s; this file system cannot lock files: choose another workdir", path, strerror(why));
}

bool pl_lock_lives(const char *database)
{
    const char *slash = strrchr(database, '/');
    char path[PATH_MAX];
    bool lives;
    int fd;

    if (snprintf(path, sizeof path, "%.*s.lock", slash != NULL ? (int)(slash - database) + 1 : 0, database) >= (int)sizeof path)
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return false;
    lives = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    (void)close(fd);
    return lives;
}

/* Whether the process named in the file is alive; a process on another host counts as alive. */
static bool holder_lives(int fd)
{
    char line[512], host[128] = "", own[128] = "";
    long pid = 0;
    ssize_t n = pread(fd, line, sizeof line - 1, 0);

    line[n > 0 ? n : 0] = '\0';
    (void)gethostname(own, sizeof own - 1);
    if (sscanf(line, "host %127[^,], pid %ld", host, &pid) != 2 || pid <= 0)
        return false;
    return strcmp(host, own) != 0 || kill((pid_t)pid, 0) == 0 || errno == EPERM;
}

/* Tries to get the lock. If the holder named in the file is dead, it tries again for up to 1 s: a child
 * process that was being started when its parent was killed holds the parent's lock until its exec. */
static bool take(int fd, int how)
{
    static const struct timespec moment = { 0, 20000000 };

    for (int tries = 0; tries < 50; tries++) {
        if (flock(fd, how | LOCK_NB) == 0)
            return true;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return false;
        if (holder_lives(fd))
            break;
        (void)nanosleep(&moment, NULL);
    }
    errno = EWOULDBLOCK;
    return false;
}

/* Whether path still leads to the open file. */
static bool is_at(int fd, const char *path)
{
    struct stat held, there;

    return fstat(fd, &held) == 0 && lstat(path, &there) == 0 && pl_stat_is_same(&held, &there);
}

/* Whether the file is empty or has the line of a holder. Any other file under this name is not ours and is not changed. */
static bool is_lock_file(int fd)
{
    static const char begins[] = "host ";
    char line[sizeof begins] = "";
    struct stat at;
    ssize_t n;

    if (fstat(fd, &at) != 0 || !S_ISREG(at.st_mode)) /* a pipe, or a device that was mounted on it */
        return false;
    n = pread(fd, line, sizeof begins - 1, 0);
    return n == 0 || (n == sizeof begins - 1 && strcmp(line, begins) == 0);
}

static pl_code open_lock(int *fd, const char *path, pl_error *err)
{
    *fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (*fd < 0 && errno == ELOOP)
        return pl_fail(err, PL_EIO, "%s: a symbolic link, but a lock must be a regular file; remove the link", path);
    if (*fd < 0) {
        (void)pl_fail_errno(err, path);
        return pl_fail(err, PL_EIO, "%s; a run needs a workdir that it can write to", err->text);
    }
    if (is_lock_file(*fd))
        return PL_OK;
    (void)close(*fd);
    *fd = -1;
    return pl_fail(err, PL_EIO, "%s: not a lock file of molsieve, left as it is; move it away or choose another workdir", path);
}

/* Opens and locks the file; tries again if it was deleted between opening and locking. */
static pl_code lock_file(pl_lock *lock, const char *path, const char *what, int how, pl_error *err)
{
    for (int tries = 0; tries < 8; tries++) {
        pl_code code = open_lock(&lock->fd, path, err);
        if (code != PL_OK)
            return code;
        if (!take(lock->fd, how))
            return refuse(lock->fd, what, path, err);
        if (is_at(lock->fd, path))
            return PL_OK;
        (void)close(lock->fd);
        lock->fd = -1;
    }
    return pl_fail(err, PL_ELOCK, "%s: another program keeps deleting this lock file; stop it and try again", path);
}

/* how: LOCK_EX or LOCK_SH; a shared lock has no claim for other hosts. */
static pl_code take_file(pl_lock *lock, const char *path, const char *what, int how, pl_error *err)
{
    char who[HOLDER], claim[PATH_MAX + 8];
    pl_code code = lock_file(lock, path, what, how, err);

    if (code == PL_OK)
        code = write_holder(lock->fd, path, who, err);
    lock->path = strdup(path);
    if (lock->path == NULL)
        code = pl_fail(err, PL_ENOMEM, "%s", path);
    (void)snprintf(claim, sizeof claim, "%s.host", path);
    if (code == PL_OK && how == LOCK_EX && pl_is_network_fs(path))
        code = pl_claim_take(&lock->claim, claim, what, who, PL_CLAIM_BEAT_MS, err);
    if (code != PL_OK)
        pl_lock_drop(lock);
    return code;
}

static pl_code check_held(const pl_lock *lock, pl_error *err)
{
    if (lock->fd < 0 || (is_at(lock->fd, lock->path) && pl_claim_held(lock->claim)))
        return PL_OK;
    return pl_fail(err, PL_ELOCK,
                   "%s%s was deleted or replaced during this run, so another run may have started; this run stores "
                   "nothing more. Lock files need not be deleted: a run that ends releases its locks",
                   lock->path, is_at(lock->fd, lock->path) ? ".host" : "");
}

pl_code pl_locks_held(const pl_locks *l, pl_error *err)
{
    const pl_lock *const all[] = { &l->workdir, &l->results, &l->features, &l->folder[0], &l->folder[1] };
    pl_code code = PL_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && code == PL_OK; i++)
        code = check_held(all[i], err);
    return code;
}

pl_code pl_lock_take(pl_lock *lock, const char *workdir, pl_error *err)
{
    char path[PATH_MAX];
    pl_code code = pl_mkdirs(workdir, err);

    *lock = PL_LOCK_NONE;
    if (code != PL_OK) {
        pl_at(err, "work directory (workdir=DIR chooses another)");
        return code;
    }
    if (snprintf(path, sizeof path, "%s/.lock", workdir) >= (int)sizeof path)
        return pl_fail(err, PL_EIO, "%s: path too long", workdir);
    return take_file(lock, path, workdir, LOCK_EX, err);
}

/* Whether path is the lock file that we hold already: our own work directory under another name. */
static bool is_held(const char *path, const pl_lock *own)
{
    struct stat x, y;

    return stat(path, &x) == 0 && fstat(own->fd, &y) == 0 && pl_stat_is_same(&x, &y);
}

static pl_code share_folder(pl_lock *lock, const char *folder, const pl_lock *own, pl_error *err)
{
    char path[PATH_MAX + 8];

    (void)snprintf(path, sizeof path, "%s/.lock", folder); /* that of a file in it is longer, and fits */
    return is_held(path, own) ? PL_OK : take_file(lock, path, folder, LOCK_SH, err);
}

/* A database directly in the work directory needs no lock of its own. */
static pl_code take_outside(pl_lock *lock, pl_lock *folder, const char *file, const pl_workflow *wf, const pl_lock *own,
                            pl_error *err)
{
    const char *slash = strrchr(file, '/');
    char path[PATH_MAX];
    pl_code code;

    if (slash == NULL || slash == file)
        return PL_OK;
    if (snprintf(path, sizeof path, "%s.lock", file) >= (int)sizeof path)
        return pl_fail(err, PL_EIO, "%s: path too long", file);
    path[slash - file] = '\0';
    if (strcmp(path, wf->workdir) == 0)
        return PL_OK;
    code = pl_mkdirs(path, err);
    if (code == PL_OK)
        code = share_folder(folder, path, own, err);
    path[slash - file] = '/';
    return code == PL_OK ? take_file(lock, path, file, LOCK_EX, err) : code;
}

pl_code pl_locks_take(pl_locks *l, const pl_workflow *wf, pl_error *err)
{
    pl_code code;

    l->workdir = l->results = l->features = l->folder[0] = l->folder[1] = PL_LOCK_NONE;
    code = pl_lock_take(&l->workdir, wf->workdir, err);
    if (code == PL_OK)
        code = take_outside(&l->results, &l->folder[0], wf->storage.results, wf, &l->workdir, err);
    if (code == PL_OK)
        code = take_outside(&l->features, &l->folder[1], wf->storage.features, wf, &l->workdir, err);
    if (code != PL_OK)
        pl_locks_drop(l);
    return code;
}

pl_code pl_locks_take_results(pl_locks *l, const pl_workflow *wf, pl_error *err)
{
    pl_code code;

    l->workdir = l->results = l->features = l->folder[0] = l->folder[1] = PL_LOCK_NONE;
    code = take_outside(&l->results, &l->folder[0], wf->storage.results, wf, &l->workdir, err);
    if (code != PL_OK)
        pl_locks_drop(l);
    return code;
}

void pl_locks_drop(pl_locks *l)
{
    pl_lock_drop(&l->features);
    pl_lock_drop(&l->results);
    pl_lock_drop(&l->folder[1]);
    pl_lock_drop(&l->folder[0]);
    pl_lock_drop(&l->workdir);
}

void pl_lock_drop(pl_lock *lock)
{
    pl_claim_drop(lock->claim);
    if (lock->fd >= 0)
        (void)close(lock->fd);
    free(lock->path);
    *lock = PL_LOCK_NONE;
}
