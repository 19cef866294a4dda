/* models/shards.h - a batch dealt to shards, the same way on every rank.
 *
 * So that all shards take about as long: molecules sorted by edges, dealt in snake
 * order (0 1 2 2 1 0 0 1 ...). How many a shard gets follows from the size of the
 * batch alone. One shard keeps the batch as it is. */
#ifndef NN_SHARDS_H
#define NN_SHARDS_H

#include "models/collective.h"
#include "models/train.h"

typedef struct nn_card {
    int32_t edges, at;
} nn_card;

/* out [n]: the numbers of which [n], shard after shard. edges: by number; scratch [n]. */
void nn_shards_deal(int64_t *out, const int64_t *which, int32_t n, const int32_t *edges, int shards, nn_card *scratch);

/* Where a shard of a dealt batch of n lies; it may be empty. */
nn_span nn_shards_part(int64_t n, int shards, int shard);

/* The state of rank 0 for all; s is allocated for the same model everywhere. */
pl_code nn_train_state_tell(nn_ranks *r, nn_train_state *s, pl_error *err);

#endif
