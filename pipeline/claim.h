/* pipeline/claim.h - a lock that other hosts see, on file systems whose own locks may not reach them.
 *
 * Lustre mounted with localflock, NFS with nolock, sshfs: there flock is granted to two hosts at once.
 * So besides flock a run on a network file system makes a file, which only one can make (O_EXCL), and
 * rewrites it every beat. Whoever finds the file of another host waits for PL_CLAIM_BEATS beats: if it
 * changes, its owner is alive; if not, it is taken over. No clock of another host is read
 * (docs/design.md 5.7, 6.6). The file of a dead process of this host, since its boot, holds nothing.
 *
 *   host n17, pid 4711, slurm job 815, since 2026-11-22T03:04:37Z
 *   boot 5f0c..., beat 0000000012 */
#ifndef PL_CLAIM_H
#define PL_CLAIM_H

#include <stdbool.h>

#include "pipeline/base/error.h"

enum { PL_CLAIM_BEAT_MS = 5000, PL_CLAIM_BEATS = 6 };

typedef struct pl_claim pl_claim;

/* Call with the flock held. who: the first line, beginning with "host NAME, pid N,". what: the name in messages.
 * PL_ELOCK: another host is at work. A process that stood still for so long that another host took over
 * ends with the status of PL_ELOCK, at once, as soon as it sees that. */
pl_code pl_claim_take(pl_claim **out, const char *path, const char *what, const char *who, int beat_ms, pl_error *err);
void pl_claim_drop(pl_claim *c); /* NULL is fine; a file that is another's by now stays */
/* The file is there and is ours, or nobody can tell. NULL: true. */
bool pl_claim_held(pl_claim *c);

#endif
