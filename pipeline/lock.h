/* pipeline/lock.h - two runs cannot share a work directory.
 *
 * flock on <workdir>/.lock: the kernel drops it when the holder dies, so there
 * is nothing to clean up, ever. The file says who holds it (host, pid, job,
 * since when) for the message of the second run (PL_ELOCK). On a network file
 * system flock may not reach other hosts: there <workdir>/.lock.host does (pipeline/claim.h).
 *
 * Who deletes the file lets a second run in. The first one has lost its lock then, and nothing that it does is stored any
 * more (pl_store_guard). A symbolic link, or a file that is no lock, is left as it is and refused (PL_EIO). */
#ifndef PL_LOCK_H
#define PL_LOCK_H

#include "pipeline/claim.h"
#include "pipeline/workflow.h"

typedef struct pl_lock {
    int fd;          /* -1: not held                 */
    char *path;      /* its own                      */
    pl_claim *claim; /* NULL: on a local file system */
} pl_lock;

#define PL_LOCK_NONE ((pl_lock){ .fd = -1 })

pl_code pl_lock_take(pl_lock *lock, const char *workdir, pl_error *err);
void    pl_lock_drop(pl_lock *lock);

/* The work directory, and the databases that lie elsewhere: FILE.lock beside them, and the .lock of their folder, which
 * may be another's work directory; that one is shared with others whose databases lie there. */
typedef struct pl_locks {
    pl_lock workdir, results, features, folder[2];
} pl_locks;

pl_code pl_locks_take(pl_locks *l, const pl_workflow *wf, pl_error *err);
void    pl_locks_drop(pl_locks *l);
/* ELOCK: the file of one of them is gone, or another; somebody else may hold the lock now. */
pl_code pl_locks_held(const pl_locks *l, pl_error *err);

#endif
