/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/pose_block.h"

#include <math.h>
#include <string.h>

enum { LENGTH_AT = 16 /* of the bytes of the structures, in their header */ };

pl_code st_pose_block_pack(pl_bytes *out, const st_poses *poses, pl_arena *mem, pl_error *err)
{
    const size_t n_values = (size_t)poses->n * sizeof *poses->value;
    pl_bytes front;
    pl_code code = ch_block_pack(&front, poses->item, poses->n, mem, err);
    unsigned char *all = code == PL_OK ? pl_arena_get(mem, front.len + n_values, 1) : NULL;

    if (code != PL_OK)
        return code;
    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %d poses", (int)poses->n);
    memcpy(all, front.data, front.len);
    for (int32_t i = 0; i < poses->n; i++) {
        const double value = isfinite(poses->value[i]) ? poses->value[i] : (double)NAN; /* one NaN, so that equal is equal */
        memcpy(all + front.len + (size_t)i * sizeof value, &value, sizeof value);
    }
    *out = (pl_bytes){ .data = all, .len = front.len + n_values };
    return PL_OK;
}

/* How many bytes are structures; what is too short for that is for the codec to refuse. */
static size_t front_of(pl_bytes in)
{
    uint32_t length;

    if (in.len < LENGTH_AT + sizeof length)
        return in.len;
    memcpy(&length, (const unsigned char *)in.data + LENGTH_AT, sizeof length);
    return length < in.len ? length : in.len;
}

pl_code st_pose_block_unpack(st_poses *out, pl_bytes in, pl_arena *mem, pl_error *err)
{
    const size_t front = front_of(in), behind = in.len - front;
    pl_code code = ch_block_unpack(&out->item, &out->n, (pl_bytes){ .data = in.data, .len = front }, mem, err);

    if (code != PL_OK)
        return code;
    if (behind != 0 && behind != (size_t)out->n * sizeof *out->value)
        return pl_fail(err, PL_EDATA, "block of poses: %zu bytes of values of %d poses", behind, (int)out->n);
    out->value = PL_NEW(mem, double, out->n + 1);
    if (out->value == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %d poses", (int)out->n);
    for (int32_t i = 0; i < out->n && behind == 0; i++)
        out->value[i] = (double)NAN;
    memcpy(out->value, (const unsigned char *)in.data + front, behind);
    return PL_OK;
}
