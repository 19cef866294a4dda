/* stages/steps/ingest/pose_block.h - blocks of kind "pose": structures that a program of the user's wrote, and its value of each.
 *
 * A block of structures (chem/molecule/codec.h), then f64 value[n] in their order; NaN: the program wrote none. The poses of a molecule
 * have its id and are adjacent, the best first. Blocks of earlier versions end before the values and have the order of the output. */
#ifndef ST_POSE_BLOCK_H
#define ST_POSE_BLOCK_H

#include "chem/molecule/codec.h"

#define ST_POSE_BLOCK "pose"

typedef struct st_poses {
    ch_block_item *item; /* [n]                            */
    double *value;       /* [n] of the property of the stage */
    int32_t n;
} st_poses;

pl_code st_pose_block_pack(pl_bytes *out, const st_poses *poses, pl_arena *mem, pl_error *err);
/* Copies in mem. Accepts any bytes; EDATA for those that are no such block. */
pl_code st_pose_block_unpack(st_poses *out, pl_bytes in, pl_arena *mem, pl_error *err);

#endif
