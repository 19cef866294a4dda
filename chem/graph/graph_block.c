/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/graph/graph_block.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "chem/molecule/block_header.h"

enum { VERSION = 1 };

static const char magic[] = "MSGB";

typedef struct header {
    ch_block_header seal;
    uint32_t n;
    uint64_t bytes, nodes, edges, pairs;
} header;

static_assert(sizeof(header) == 48, "the header has no holes");

/* Offsets of the sections, in the order of the file. */
enum section {
    S_ID,
    S_NODE_AT,
    S_EDGE_AT,
    S_PAIR_AT,
    S_ROW,
    S_REV,
    S_PAIR,
    S_PAIR_EDGE,
    S_VEC,
    S_DIST,
    S_SRC,
    S_TYPE,
    S_Z,
    S_CHARGE,
    S_END
};

static void layout(uint64_t at[S_END + 1], uint64_t n, uint64_t nodes, uint64_t edges, uint64_t pairs)
{
    const uint64_t size[S_END] = {
        [S_ID] = 8 * n,
        [S_NODE_AT] = 4 * (n + 1),
        [S_EDGE_AT] = 4 * (n + 1),
        [S_PAIR_AT] = 4 * (n + 1),
        [S_ROW] = 4 * (nodes + n),
        [S_REV] = 4 * edges,
        [S_PAIR] = 4 * edges,
        [S_PAIR_EDGE] = 4 * pairs,
        [S_VEC] = 12 * pairs,
        [S_DIST] = 4 * pairs,
        [S_SRC] = 2 * edges,
        [S_TYPE] = pairs,
        [S_Z] = nodes,
        [S_CHARGE] = nodes,
    };

    at[0] = sizeof(header);
    for (int s = 0; s < S_END; s++)
        at[s + 1] = at[s] + (size[s] + 7) / 8 * 8;
}

double ch_graph_block_bytes(double n, double n_nodes, double n_edges, double n_pairs)
{
    return sizeof(header) + 24 * n + 6 * n_nodes + 10 * n_edges + 21 * n_pairs;
}

/* ---- packing ---- */

typedef struct packing {
    unsigned char *base;
    uint64_t at[S_END + 1];
} packing;

static void *part(const packing *p, enum section s) { return p->base + p->at[s]; }

/* Copies `count` numbers of `size` bytes to place `first` of a section. */
static void put(const packing *p, enum section s, uint64_t first, const void *from, int32_t count, size_t size)
{
    if (count > 0)
        memcpy((unsigned char *)part(p, s) + first * size, from, (size_t)count * size);
}

static void put_graph(const packing *p, int32_t g, const ch_graph *x, uint32_t node, uint32_t edge, uint32_t pair)
{
    put(p, S_ROW, (uint64_t)node + (uint64_t)g, x->row, x->n_nodes + 1, 4);
    put(p, S_Z, node, x->z, x->n_nodes, 1);
    put(p, S_CHARGE, node, x->charge, x->n_nodes, 1);
    put(p, S_REV, edge, x->rev, x->n_edges, 4);
    put(p, S_PAIR, edge, x->pair, x->n_edges, 4);
    put(p, S_SRC, edge, x->src, x->n_edges, 2);
    put(p, S_PAIR_EDGE, pair, x->pair_edge, x->n_pairs, 4);
    put(p, S_VEC, pair, x->vec, x->n_pairs, 12);
    put(p, S_DIST, pair, x->dist, x->n_pairs, 4);
    put(p, S_TYPE, pair, x->type, x->n_pairs, 1);
}

static void put_all(const packing *p, const int64_t *id, const ch_graph *graph, int32_t n)
{
    uint32_t *node_at = part(p, S_NODE_AT), *edge_at = part(p, S_EDGE_AT);
    uint32_t *pair_at = part(p, S_PAIR_AT);

    put(p, S_ID, 0, id, n, 8);
    for (int32_t g = 0; g < n; g++) {
        put_graph(p, g, &graph[g], node_at[g], edge_at[g], pair_at[g]);
        node_at[g + 1] = node_at[g] + (uint32_t)graph[g].n_nodes;
        edge_at[g + 1] = edge_at[g] + (uint32_t)graph[g].n_edges;
        pair_at[g + 1] = pair_at[g] + (uint32_t)graph[g].n_pairs;
    }
}

pl_code ch_graph_block_pack(pl_bytes *out, const int64_t *id, const ch_graph *graph, int32_t n, pl_arena *mem, pl_error *err)
{
    header h = { .n = (uint32_t)n };
    packing p;

    for (int32_t g = 0; g < n; g++) {
        h.nodes += (uint64_t)graph[g].n_nodes;
        h.edges += (uint64_t)graph[g].n_edges;
        h.pairs += (uint64_t)graph[g].n_pairs;
    }
    if (h.nodes > INT32_MAX || h.edges > INT32_MAX)
        return pl_fail(err, PL_EINPUT, "a block of %llu edges is too large: use smaller units", (unsigned long long)h.edges);
    layout(p.at, h.n, h.nodes, h.edges, h.pairs);
    h.bytes = p.at[S_END];
    p.base = PL_NEW(mem, unsigned char, h.bytes);
    if (p.base == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %d graphs", n);
    put_all(&p, id, graph, n);
    memcpy(p.base, &h, sizeof h);
    ch_block_header_put(p.base, (size_t)h.bytes, magic, VERSION);
    *out = (pl_bytes){ p.base, (size_t)h.bytes };
    return PL_OK;
}

/* ---- unpacking ---- */

static pl_code get_header(header *h, pl_bytes in, uint64_t at[S_END + 1], pl_error *err)
{
    pl_code code = ch_block_header_open(h, sizeof *h, in, magic, VERSION, "graphs", err);

    if (code != PL_OK)
        return code;
    /* Each count is below the length, so the sums below cannot overflow. */
    if (h->bytes != in.len || h->n > in.len || h->nodes > in.len || h->edges > in.len || h->pairs > in.len)
        return pl_fail(err, PL_EDATA, "block of graphs: sizes do not fit %zu bytes", in.len);
    layout(at, h->n, h->nodes, h->edges, h->pairs);
    if (at[S_END] != in.len || h->nodes > INT32_MAX || h->edges > INT32_MAX)
        return pl_fail(err, PL_EDATA, "block of graphs: sizes do not fit %zu bytes", in.len);
    return PL_OK;
}

static bool grows(const uint32_t *at, uint32_t n, uint64_t total)
{
    if (at[0] != 0 || at[n] != total)
        return false;
    for (uint32_t g = 0; g < n; g++)
        if (at[g + 1] < at[g])
            return false;
    return true;
}

static ch_graph view(const packing *p, int32_t g)
{
    const uint32_t *node_at = part(p, S_NODE_AT), *edge_at = part(p, S_EDGE_AT);
    const uint32_t *pair_at = part(p, S_PAIR_AT);
    uint32_t node = node_at[g], edge = edge_at[g], pair = pair_at[g];

    return (ch_graph){
        .n_nodes = (int32_t)(node_at[g + 1] - node),
        .n_edges = (int32_t)(edge_at[g + 1] - edge),
        .n_pairs = (int32_t)(pair_at[g + 1] - pair),
        .z = (const uint8_t *)part(p, S_Z) + node,
        .charge = (const int8_t *)part(p, S_CHARGE) + node,
        .row = (const int32_t *)part(p, S_ROW) + node + g,
        .src = (const uint16_t *)part(p, S_SRC) + edge,
        .rev = (const int32_t *)part(p, S_REV) + edge,
        .pair = (const int32_t *)part(p, S_PAIR) + edge,
        .pair_edge = (const int32_t *)part(p, S_PAIR_EDGE) + pair,
        .type = (const uint8_t *)part(p, S_TYPE) + pair,
        .vec = (const float(*)[3])part(p, S_VEC) + pair,
        .dist = (const float *)part(p, S_DIST) + pair,
    };
}

static pl_code view_all(ch_graph *graph, const packing *p, const header *h, pl_error *err)
{
    if (!grows(part(p, S_NODE_AT), h->n, h->nodes) || !grows(part(p, S_EDGE_AT), h->n, h->edges) ||
        !grows(part(p, S_PAIR_AT), h->n, h->pairs))
        return pl_fail(err, PL_EDATA, "block of graphs: the index is out of order");
    for (uint32_t g = 0; g < h->n; g++) {
        graph[g] = view(p, (int32_t)g);
        pl_code code = ch_graph_check(&graph[g], err);
        if (code != PL_OK)
            return code;
    }
    return PL_OK;
}

pl_code ch_graph_block_unpack(ch_graph_block *out, pl_bytes in, pl_arena *mem, pl_error *err)
{
    header h;
    packing p;
    ch_graph *graph;
    pl_code code;

    *out = (ch_graph_block){ 0 };
    code = get_header(&h, in, p.at, err);
    if (code != PL_OK)
        return code;
    p.base = (unsigned char *)ch_bytes_aligned(in, mem);
    graph = PL_NEW(mem, ch_graph, h.n + 1);
    if (p.base == NULL || graph == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %u graphs", h.n);
    code = view_all(graph, &p, &h, err);
    if (code != PL_OK)
        return code;
    *out = (ch_graph_block){ .n = (int32_t)h.n,
                             .n_nodes = (int64_t)h.nodes,
                             .n_edges = (int64_t)h.edges,
                             .n_pairs = (int64_t)h.pairs,
                             .crc = h.seal.crc,
                             .id = part(&p, S_ID),
                             .graph = graph };
    return PL_OK;
}
