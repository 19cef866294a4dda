/* models/checkpoint.h - a training state on disk, never half.
 *
 * <dir>/latest.ckpt and <dir>/previous.ckpt; a new one is written beside them
 * (temporary name, fsync, rename, fsync of the directory) after the old latest
 * has become previous. Layout, little-endian:
 *
 *   char magic[8] "MSCKPT01", u32 n_sections, u32 crc32 of the n_sections table,
 *   table: n_sections times { char name[16], u64 at, u64 bytes, u32 crc32, u32 0 },
 *   then the sections: identity, numbers, params, m, v, ema, best
 *
 * `identity` says which training it belongs to (stage key and when it began): a
 * checkpoint of another training is EDATA, never loaded and never overwritten. */
#ifndef NN_CHECKPOINT_H
#define NN_CHECKPOINT_H

#include "models/train.h"
#include "pipeline/base/file.h"

typedef enum nn_checkpoint_from {
    NN_FROM_NOTHING,  /* no checkpoint there: start at zero         */
    NN_FROM_LATEST,
    NN_FROM_PREVIOUS  /* latest is missing or damaged, see `why`    */
} nn_checkpoint_from;

/* rotate: the file latest.ckpt is good and becomes previous.ckpt first. */
pl_code nn_checkpoint_save(const char *dir, const char *identity, const nn_train_state *s, bool rotate,
                           pl_error *err);

/* s is allocated for its model and is overwritten. EDATA when checkpoints are
 * there and none is good: the text says what is wrong with each. why: what was
 * wrong with latest, when previous was taken. */
pl_code nn_checkpoint_load(const char *dir, const char *identity, nn_train_state *s, nn_checkpoint_from *from,
                           pl_error *why, pl_error *err);

/* One file's bytes, for tests and fuzzing: any bytes give a state or EDATA. */
pl_code nn_checkpoint_read(nn_train_state *s, const char *identity, pl_bytes in, pl_error *err);

/* The identity in the file <dir>/latest.ckpt or else previous.ckpt, "" if none
 * can be read. */
const char *nn_checkpoint_identity(const char *dir, pl_arena *mem);

#endif
