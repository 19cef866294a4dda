/* SPDX-License-Identifier: Apache-2.0 */
#include "models/domain/seen.h"

#include <stdlib.h>
#include <string.h>

#include "models/domain/packed.h"

static const nn_packed packed = { .name = "seen.zlib", .row = NN_SEEN_KEY, .max = NN_SEEN_MAX, .extra = 1 };

static int compare_keys(const void *a, const void *b) { return strcmp(a, b); }

pl_code nn_seen_make(nn_seen *out, char (*key)[NN_SEEN_KEY + 1], int64_t n, int64_t max, bool all, pl_arena *mem, pl_error *err)
{
    char(*to)[NN_SEEN_KEY + 1] = pl_arena_get(mem, (size_t)n, sizeof *to);

    if (to == NULL)
        return pl_fail(err, PL_ENOMEM, "the validation molecules of a model, %lld", (long long)n);
    *out = (nn_seen){ .known = true, .all = all, .key = (const char(*)[NN_SEEN_KEY + 1]) to };
    qsort(key, (size_t)n, sizeof *key, compare_keys);
    for (int64_t i = 0; i < n; i++) {
        const bool again = i > 0 && strcmp(key[i], key[i - 1]) == 0, fits = strlen(key[i]) == NN_SEEN_KEY;
        if (fits && !again && out->n < max && out->n < NN_SEEN_MAX)
            memcpy(to[out->n++], key[i], sizeof *to);
        else if (!again)
            out->all = false;
    }
    return PL_OK;
}

bool nn_seen_has(const nn_seen *s, const char *inchikey)
{
    char block[NN_SEEN_KEY + 1] = "";

    if (s->n == 0 || strlen(inchikey) < NN_SEEN_KEY)
        return false;
    memcpy(block, inchikey, NN_SEEN_KEY);
    return bsearch(block, s->key, (size_t)s->n, sizeof *s->key, compare_keys) != NULL;
}

bool nn_seen_same(const nn_seen *a, const nn_seen *b)
{
    return a->known == b->known && a->all == b->all && a->n == b->n &&
           (a->n == 0 || memcmp(a->key, b->key, (size_t)a->n * sizeof *a->key) == 0);
}

/* ---- in a file ------------------------------------------------------------ */

bool nn_seen_is(const char *tensor) { return strcmp(tensor, packed.name) == 0; }

/* Capital letters, in ascending order. */
static bool keys_fill(char (*to)[NN_SEEN_KEY + 1], const char *rows, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        memcpy(to[i], rows + (size_t)i * NN_SEEN_KEY, NN_SEEN_KEY);
        if (strspn(to[i], "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != NN_SEEN_KEY || (i > 0 && strcmp(to[i - 1], to[i]) >= 0))
            return false;
    }
    return true;
}

pl_code nn_seen_take(nn_seen *out, const nn_tensors *all, pl_arena *mem, pl_error *err)
{
    const nn_tensor *t = nn_tensors_find(all, packed.name);
    const void *extra = NULL;
    char(*to)[NN_SEEN_KEY + 1];
    void *rows = NULL;
    int32_t n = 0;
    pl_code code = t != NULL ? nn_packed_take(&rows, &extra, &n, &packed, t, err) : PL_OK;

    *out = (nn_seen){ 0 };
    if (code != PL_OK || t == NULL)
        return code;
    to = pl_arena_get(mem, (size_t)n, sizeof *to);
    if (to == NULL)
        code = pl_fail(err, PL_ENOMEM, "the validation molecules of a model, %d", (int)n);
    else if (*(const unsigned char *)extra > 1 || !keys_fill(to, rows, n))
        code = pl_fail(err, PL_EDATA, "tensor %s has something else than blocks of InChIKeys in order", packed.name);
    else
        *out = (nn_seen){ true, *(const unsigned char *)extra == 1, n, (const char(*)[NN_SEEN_KEY + 1]) to };
    free(rows);
    return code;
}

pl_code nn_seen_tensor(nn_tensor *out, const nn_seen *s, pl_arena *mem, pl_error *err)
{
    const unsigned char all = s->all;
    char *rows = PL_NEW(mem, char, (size_t)s->n *NN_SEEN_KEY);

    if (rows == NULL)
        return pl_fail(err, PL_ENOMEM, "the validation molecules of a model, %d", (int)s->n);
    for (int32_t i = 0; i < s->n; i++)
        memcpy(rows + (size_t)i * NN_SEEN_KEY, s->key[i], NN_SEEN_KEY);
    return nn_packed_tensor(out, &packed, &all, rows, s->n, mem, err);
}
