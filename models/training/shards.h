/* models/training/shards.h - distributes the molecules of a batch over shards, in the same way on every rank.
 *
 * Shards should take equally long, so molecules are sorted by their number of edges and dealt
 * in snake order (0 1 2 2 1 0 0 1 ...). The number of molecules of a shard depends on the
 * size of the batch only. With one shard the order of the batch is not changed. */
#ifndef NN_SHARDS_H
#define NN_SHARDS_H

#include "models/comm/collective.h"

typedef struct nn_card {
    int32_t edges, at;
} nn_card;

/* out [n]: the molecule numbers which[n], sorted by shard. edges: indexed by molecule number; scratch [n]. */
void nn_shards_deal(int64_t *out, const int64_t *which, int32_t n, const int32_t *edges, int shards, nn_card *scratch);

/* The part of out that belongs to a shard, for a batch of n molecules; it may be empty. */
nn_span nn_shards_part(int64_t n, int shards, int shard);

#endif
