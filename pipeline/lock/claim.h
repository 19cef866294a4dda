/* pipeline/lock/claim.h - a lock that other hosts can see, for file systems whose own locks do not reach them.
 *
 * On Lustre mounted with localflock, on NFS with nolock and on sshfs, flock is granted to two hosts at once.
 * So besides flock, a run on a network file system creates a claim file with O_EXCL, which only one process
 * can do, and rewrites it every beat (PL_CLAIM_BEAT_MS milliseconds). A process that finds the claim of
 * another host watches it for PL_CLAIM_BEATS beats: if it changes, its owner is alive; if not, it is taken
 * over. The clocks of two hosts are never compared. A claim of this host since its last boot is taken over
 * at once if its process is dead (docs/design.md 5.7, 6.6).
 *
 *   host n17, pid 4711, slurm job 815, since 2026-11-22T03:04:37Z
 *   boot 5f0c..., beat 0000000012 */
#ifndef PL_CLAIM_H
#define PL_CLAIM_H

#include <stdbool.h>

#include "pipeline/base/error.h"

enum { PL_CLAIM_BEAT_MS = 5000, PL_CLAIM_BEATS = 6 };

typedef struct pl_claim pl_claim;

/* Call it while holding the flock. who: the first line of the file, beginning with "host NAME, pid N,". what: the name
 * for messages. PL_ELOCK: another host holds the claim. If this process is suspended for so long that another host
 * takes over, it ends with the exit status of PL_ELOCK as soon as it notices. */
pl_code pl_claim_take(pl_claim **out, const char *path, const char *what, const char *who, int beat_ms, pl_error *err);
void pl_claim_drop(pl_claim *c); /* removes the file unless another host has taken it over; NULL is fine */
/* False: the file is gone or belongs to another process. True if it cannot be read, and for NULL. */
bool pl_claim_held(pl_claim *c);

#endif
