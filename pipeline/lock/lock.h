/* pipeline/lock/lock.h - prevents two runs from using the same work directory.
 *
 * The lock is a flock on <workdir>/.lock. The kernel releases it when the holder dies, so nobody ever
 * has to clean up. The file names its holder (host, pid, job, since when) for the message of a second
 * run (PL_ELOCK). On a network file system flock may not reach other hosts; there <workdir>/.lock.host
 * is used as well (pipeline/lock/claim.h).
 *
 * If somebody deletes the lock file, a second run can start. The first run has then lost its lock, and it can no longer
 * commit anything (pl_store_guard). A symbolic link, or a file that is no lock file, is left as it is and refused (PL_EIO). */
#ifndef PL_LOCK_H
#define PL_LOCK_H

#include "pipeline/lock/claim.h"
#include "pipeline/workflow/workflow.h"

typedef struct pl_lock {
    int fd;          /* -1: not held                 */
    char *path;      /* owned by the lock            */
    pl_claim *claim; /* NULL on a local file system  */
} pl_lock;

#define PL_LOCK_NONE ((pl_lock){ .fd = -1 })

/* Makes the work directory if it does not exist, and locks it. PL_ELOCK: another run holds it. */
pl_code pl_lock_take(pl_lock *lock, const char *workdir, pl_error *err);
void pl_lock_drop(pl_lock *lock);
/* Whether a run of this host holds the .lock beside a database. For a moment it takes a shared lock. */
bool pl_lock_lives(const char *database);

/* The locks of a run: its work directory; and for each database outside of it FILE.lock, and the .lock of the directory of
 * FILE, in case that is the work directory of another run. Runs whose databases lie in one directory share its .lock. */
typedef struct pl_locks {
    pl_lock workdir, results, features, folder[2];
} pl_locks;

pl_code pl_locks_take(pl_locks *l, const pl_workflow *wf, pl_error *err);
/* The same without a work directory, for a program that only writes the results. */
pl_code pl_locks_take_results(pl_locks *l, const pl_workflow *wf, pl_error *err);
void pl_locks_drop(pl_locks *l);
/* PL_ELOCK: one of the lock files was deleted or replaced, so another run may have started. */
pl_code pl_locks_held(const pl_locks *l, pl_error *err);

#endif
