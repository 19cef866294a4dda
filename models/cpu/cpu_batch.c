/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/cpu_batch.h"
#include "pipeline/base/refused.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOT, SCALAR, FRAME, IN_ROW, IN_EDGE, OUT_ROW, OUT_EDGE, KEY, KEY_SWAP, FIRST, ENVELOPE, LOGS, IN_SUM, N_BUFS };

enum { LARGE_PAGE = 2 << 20, FRAMES = 128 };

typedef struct sort_key {
    uint64_t key;
    int32_t pair;
} sort_key;

bool nn_buf_grow(nn_buf *b, size_t n, size_t size)
{
    size_t bytes, page;
    void *p;

    if (size && n > (SIZE_MAX - 4096) / size)
        return false;
    if (n * size <= b->bytes)
        return true;
    bytes = n * size + n * size / 8; /* an eighth more, so that slightly larger batches fit */
    page = bytes < LARGE_PAGE ? 64 : LARGE_PAGE;
    bytes = (bytes + page - 1) / page * page;
    p = aligned_alloc(page, bytes);
    if (p == NULL) {
        pl_refused(bytes);
        return false;
    }
    if (page == LARGE_PAGE)
        (void)madvise(p, bytes, MADV_HUGEPAGE); /* rows are read in random order */
    memset(p, 0, bytes);
    free(b->p);
    b->p = p;
    b->bytes = bytes;
    return true;
}

void nn_buf_free(nn_buf *b)
{
    free(b->p);
    *b = (nn_buf){ 0 };
}

static bool bufs_grow(nn_cpu_prep *p, const nn_batch *in, size_t n_pairs)
{
    size_t n = (size_t)in->n_nodes + 1, e = (size_t)in->n_edges;
    nn_buf *b = p->bufs;

    return nn_buf_grow(&b[SLOT], 2 * n_pairs, sizeof(int32_t)) &&
           nn_buf_grow(&b[SCALAR], n_pairs * (size_t)p->n_scalars, sizeof(float)) &&
           nn_buf_grow(&b[FRAME], 2 * n_pairs * (size_t)p->frame_size, sizeof(float)) &&
           nn_buf_grow(&b[IN_ROW], n, sizeof(int32_t)) && nn_buf_grow(&b[OUT_ROW], n, sizeof(int32_t)) &&
           nn_buf_grow(&b[IN_EDGE], e, sizeof(int32_t)) && nn_buf_grow(&b[OUT_EDGE], e, sizeof(int32_t)) &&
           nn_buf_grow(&b[KEY], n_pairs, sizeof(sort_key)) && nn_buf_grow(&b[KEY_SWAP], n_pairs, sizeof(sort_key)) &&
           nn_buf_grow(&b[FIRST], n_pairs, sizeof(int32_t));
}

/* ---- edges by node --------------------------------------------------------------- */

static int32_t edges_group(const int32_t *node, int32_t n_nodes, int32_t n_edges, int32_t *row, int32_t *edge)
{
    int32_t max = 0;

    memset(row, 0, ((size_t)n_nodes + 1) * sizeof *row);
    for (int32_t e = 0; e < n_edges; e++)
        row[node[e] + 1]++;
    for (int32_t i = 0; i < n_nodes; i++) {
        max = row[i + 1] > max ? row[i + 1] : max;
        row[i + 1] += row[i];
    }
    for (int32_t e = 0; e < n_edges; e++)
        edge[row[node[e]]++] = e;
    for (int32_t i = n_nodes; i > 0; i--)
        row[i] = row[i - 1];
    row[0] = 0;
    return max;
}

/* ---- pairs ------------------------------------------------------------------------ */

static uint32_t float_bits(float x)
{
    uint32_t u;

    memcpy(&u, &x, sizeof u);
    return u;
}

/* Sort key of an edge: by kind, then by length. */
static uint64_t edge_key(const nn_batch *in, int32_t e)
{
    const float *f = in->n_edge_features ? in->edge + (size_t)e * (size_t)in->n_edge_features : NULL;
    uint32_t kind = 0;

    for (int i = 0; i < in->n_edge_features; i++)
        kind = (kind ^ float_bits(f[i])) * 2654435761u;
    return (uint64_t)kind << 32 | float_bits(in->dist[e]);
}

/* Stable radix sort, byte by byte from the lowest; after eight passes the result is in a. */
static void keys_sort(sort_key *a, sort_key *swap, size_t n)
{
    for (int shift = 0; shift < 64; shift += 8) {
        size_t count[257] = { 0 };
        sort_key *t = a;
        for (size_t i = 0; i < n; i++)
            count[(a[i].key >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            count[i + 1] += count[i];
        for (size_t i = 0; i < n; i++)
            swap[count[a[i].key >> shift & 255]++] = a[i];
        a = swap;
        swap = t;
    }
}

/* The edge that defines the direction of the pair; without pairs, the edge itself. */
static int32_t pair_first(const nn_batch *in, int32_t pair)
{
    return in->pair_edge != NULL && in->pair != NULL ? in->pair_edge[pair] : pair;
}

static int32_t pair_second(const nn_batch *in, int32_t pair, int32_t first)
{
    int32_t back = in->pair != NULL && in->pair_edge != NULL && in->rev != NULL ? in->rev[first] : -1;

    return back >= 0 && back != first && in->pair[back] == pair ? back : -1;
}

/* Frames of blocks of pairs; each thread takes one block at a time. */
typedef struct frames_job {
    nn_cpu_prep *p;
    const nn_batch *in;
    const nn_frame_rule *rule;
    int l_max;
} frames_job;

static void frame_fill(const frames_job *j, int32_t pair, const float *sign, float *d)
{
    int n = j->p->frame_size;

    if (j->in->frame != NULL && j->in->pair != NULL) {
        int stored = n < NN_FRAME_FLOATS ? n : NN_FRAME_FLOATS;
        memcpy(d, j->in->frame + (size_t)pair * NN_FRAME_FLOATS, (size_t)stored * sizeof *d);
        if (n > stored)
            nn_frame_extend(j->rule, NN_MAX_DEGREE, j->l_max, d);
    } else {
        nn_frame_make(j->rule, j->in->vec[pair_first(j->in, pair)], j->l_max, d);
    }
    for (int k = 0; k < n; k++)
        d[n + k] = d[k] * sign[k];
}

static void frames_block(void *ctx, int worker, int i)
{
    const frames_job *j = ctx;
    const sort_key *key = j->p->bufs[KEY].p;
    int32_t end = (i + 1) * FRAMES < j->p->n_pairs ? (i + 1) * FRAMES : j->p->n_pairs;
    float sign[NN_FRAME_ALL];

    (void)worker;
    nn_frame_reverse(j->l_max, sign);
    for (int32_t k = i * FRAMES; k < end; k++)
        frame_fill(j, key[k].pair, sign, (float *)j->p->bufs[FRAME].p + 2 * (size_t)k * (size_t)j->p->frame_size);
}

static void frames_fill(nn_cpu_prep *p, const nn_batch *in, int l_max, const nn_frame_rule *rule, nn_pool *pool)
{
    frames_job j = { p, in, rule, l_max };

    if (p->frame_size)
        nn_pool_run(pool, (p->n_pairs + FRAMES - 1) / FRAMES, frames_block, &j);
}

static int32_t pairs_fill(nn_cpu_prep *p, const nn_batch *in)
{
    const sort_key *key = p->bufs[KEY].p;
    int32_t *slot = p->bufs[SLOT].p, covered = 0;
    float *scalar = p->bufs[SCALAR].p;
    size_t ne = (size_t)in->n_edge_features;

    for (int32_t i = 0; i < p->n_pairs; i++) {
        int32_t pair = key[i].pair, e = pair_first(in, pair), back = pair_second(in, pair, e);
        slot[2 * i] = e;
        slot[2 * i + 1] = back;
        covered += back >= 0 ? 2 : 1;
        if (ne)
            memcpy(scalar + (size_t)i * (ne + 1), in->edge + (size_t)e * ne, ne * sizeof *scalar);
        scalar[(size_t)i * (ne + 1) + ne] = in->dist[e];
    }
    return covered;
}

/* The envelope of pairs and edges, and its sums over the edges into each node. false: no memory. */
static bool envelopes_fill(nn_cpu_prep *p, const nn_batch *in, const nn_radial_conf *radial)
{
    nn_buf *b = p->bufs;
    float *pair, *log, *sum;

    if (radial->envelope == NN_ENVELOPE_NONE)
        return true;
    if (!nn_buf_grow(&b[ENVELOPE], (size_t)p->n_pairs, sizeof *pair) || !nn_buf_grow(&b[LOGS], (size_t)in->n_edges, sizeof *log) ||
        !nn_buf_grow(&b[IN_SUM], (size_t)in->n_nodes, sizeof *sum))
        return false;
    p->envelope = pair = b[ENVELOPE].p;
    p->log_envelope = log = b[LOGS].p;
    p->in_sum = sum = b[IN_SUM].p;
    for (int32_t i = 0; i < p->n_pairs; i++)
        pair[i] = (float)nn_radial_envelope(radial, (double)p->scalar[(size_t)(i + 1) * (size_t)p->n_scalars - 1], NULL);
    for (int32_t n = 0; n < in->n_nodes; n++) {
        sum[n] = 0;
        for (int32_t k = p->in_row[n]; k < p->in_row[n + 1]; k++) {
            const double u = nn_radial_envelope(radial, (double)in->dist[p->in_edge[k]], NULL);
            log[p->in_edge[k]] = (float)nn_radial_log_envelope(u);
            sum[n] += (float)u;
        }
    }
    return true;
}

pl_code nn_cpu_prep_make(nn_cpu_prep *p, const nn_batch *in, const nn_se3_conf *conf, const nn_frame_rule *rule, nn_pool *pool,
                         pl_error *err)
{
    const int l_max = conf->degrees - 1;
    int32_t n_pairs = in->pair != NULL && in->pair_edge != NULL ? in->n_pairs : in->n_edges;
    sort_key *key;

    p->n_pairs = n_pairs;
    p->n_scalars = in->n_edge_features + 1;
    p->frame_size = nn_frame_size(l_max);
    if (!bufs_grow(p, in, (size_t)n_pairs))
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d edges", (int)in->n_edges);
    key = p->bufs[KEY].p;
    for (int32_t i = 0; i < n_pairs; i++)
        key[i] = (sort_key){ edge_key(in, pair_first(in, i)), i };
    keys_sort(key, p->bufs[KEY_SWAP].p, (size_t)n_pairs);
    p->max_in = edges_group(in->dst, in->n_nodes, in->n_edges, p->bufs[IN_ROW].p, p->bufs[IN_EDGE].p);
    edges_group(in->src, in->n_nodes, in->n_edges, p->bufs[OUT_ROW].p, p->bufs[OUT_EDGE].p);
    if (pairs_fill(p, in) != in->n_edges)
        return pl_fail(err, PL_EBUG, "pairs do not cover the %d edges of a batch once each", (int)in->n_edges);
    frames_fill(p, in, l_max, rule, pool);
    p->slot = p->bufs[SLOT].p;
    p->scalar = p->bufs[SCALAR].p;
    p->frame = p->bufs[FRAME].p;
    p->in_row = p->bufs[IN_ROW].p;
    p->in_edge = p->bufs[IN_EDGE].p;
    p->out_row = p->bufs[OUT_ROW].p;
    p->out_edge = p->bufs[OUT_EDGE].p;
    if (!envelopes_fill(p, in, &conf->radial))
        return pl_fail(err, PL_ENOMEM, "no memory for a batch of %d edges", (int)in->n_edges);
    return PL_OK;
}

void nn_cpu_prep_free(nn_cpu_prep *p)
{
    for (int i = 0; i < N_BUFS; i++)
        nn_buf_free(&p->bufs[i]);
}

size_t nn_cpu_prep_bytes(const nn_cpu_prep *p)
{
    size_t sum = 0;

    for (int i = 0; i < N_BUFS; i++)
        sum += p->bufs[i].bytes;
    return sum;
}
