/* models/training/checkpoint.h - saves and loads a training state; a checkpoint on disk is always complete.
 *
 * There are two files, <dir>/latest.ckpt and <dir>/previous.ckpt. Saving first renames
 * latest to previous, then writes the new latest under a temporary name (fsync, rename,
 * fsync of the directory). Layout, little-endian:
 *
 *   char magic[8] "MSCKPT01", u32 n_sections, u32 crc32 of the n_sections table,
 *   table: n_sections times { char name[16], u64 at, u64 bytes, u32 crc32, u32 0 },
 *   then the sections: identity, numbers, params, m, v, ema, best, and bases if the optimiser has any
 *
 * `identity` says which training it belongs to (stage key and when it began): a
 * checkpoint of another training is EDATA, never loaded and never overwritten. */
#ifndef NN_CHECKPOINT_H
#define NN_CHECKPOINT_H

#include "models/training/train_state.h"
#include "pipeline/base/file.h"

typedef enum nn_checkpoint_from {
    NN_FROM_NOTHING, /* there is no checkpoint: training starts at step 0 */
    NN_FROM_LATEST,
    NN_FROM_PREVIOUS /* latest is missing or damaged, see `why`    */
} nn_checkpoint_from;

/* Writes s to latest.ckpt. rotate: latest.ckpt is intact, so it is first renamed to previous.ckpt. */
pl_code nn_checkpoint_save(const char *dir, const char *identity, const nn_train_state *s, bool rotate, pl_error *err);

/* Loads a checkpoint into s, which is allocated for the same model. EDATA: checkpoints exist but all are
 * damaged; the text says what is wrong with each. why: if previous.ckpt was loaded, what was wrong with latest.ckpt. */
pl_code nn_checkpoint_load(const char *dir, const char *identity, nn_train_state *s, nn_checkpoint_from *from, pl_error *why,
                           pl_error *err);

/* Reads a checkpoint from the bytes of a file; used by tests and fuzzing. Any bytes give a state or EDATA. */
pl_code nn_checkpoint_read(nn_train_state *s, const char *identity, pl_bytes in, pl_error *err);

/* The identity stored in <dir>/latest.ckpt, or else in previous.ckpt; "" if neither can be read. In mem. */
const char *nn_checkpoint_identity(const char *dir, pl_arena *mem);

#endif
