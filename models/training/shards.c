/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/shards.h"

#include <stdlib.h>
#include <string.h>

static int heavier_first(const void *a, const void *b)
{
    const nn_card *x = a, *y = b;

    if (x->edges != y->edges)
        return x->edges < y->edges ? 1 : -1;
    return x->at < y->at ? -1 : 1;
}

nn_span nn_shards_part(int64_t n, int shards, int shard)
{
    int64_t rows = n / shards, rest = n % shards, left_out = shards - rest, before;

    if (rows % 2 == 0) /* the last row is dealt starting from the left */
        return nn_share(n, shards, shard);
    before = shard > left_out ? shard - left_out : 0;
    return (nn_span){ shard * rows + before, rows + (shard >= left_out) };
}

void nn_shards_deal(int64_t *out, const int64_t *which, int32_t n, const int32_t *edges, int shards, nn_card *card)
{
    if (shards == 1) {
        memcpy(out, which, (size_t)n * sizeof *out);
        return;
    }
    for (int32_t i = 0; i < n; i++)
        card[i] = (nn_card){ edges[which[i]], i };
    qsort(card, (size_t)n, sizeof *card, heavier_first);
    for (int32_t i = 0; i < n; i++) {
        int32_t row = i / shards, column = i % shards;
        nn_span to = nn_shards_part(n, shards, row % 2 ? shards - 1 - column : column);
        out[to.first + row] = which[card[i].at];
    }
}
