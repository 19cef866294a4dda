/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "chem/molecule/block_header.h"
#include "models/features/feature.h"
#include "models/network/basis.h"
#include "models/network/frame.h"
#include "models/network/sh.h"

enum { VERSION = 1 };

static const char magic[] = "MSBB";

typedef struct header {
    ch_block_header seal;
    uint32_t kind, max_degree, n, width, graphs_crc;
    uint64_t bytes;
} header;

static_assert(sizeof(header) == 40, "the header has no holes");

static const char *const names[NN_BASIS_KINDS] = { "frame_q15", "frame_f32", "sh_f32", "pairwise_f32", "none" };

const char *nn_basis_name(nn_basis_kind kind) { return kind >= 0 && kind < NN_BASIS_KINDS ? names[kind] : "unknown"; }

int32_t nn_basis_width(nn_basis_kind kind, int32_t max_degree)
{
    int32_t width = 0;

    switch (kind) {
    case NN_BASIS_FRAME_Q15:
    case NN_BASIS_FRAME_F32: return NN_FRAME_FLOATS;
    case NN_BASIS_SH_F32: return (2 * max_degree + 1) * (2 * max_degree + 1);
    case NN_BASIS_PAIRWISE_F32:
        for (int i = 0; i <= max_degree; i++)
            for (int o = 0; o <= max_degree; o++)
                width += (2 * i + 1) * nn_freqs(i, o) * (2 * o + 1);
        return width;
    default: return 0;
    }
}

static size_t number_bytes(nn_basis_kind kind) { return kind == NN_BASIS_FRAME_Q15 ? sizeof(int16_t) : sizeof(float); }

static int64_t entries(nn_basis_kind kind, const ch_graph *g) { return kind == NN_BASIS_PAIRWISE_F32 ? g->n_edges : g->n_pairs; }

double nn_basis_bytes(nn_basis_kind kind, int32_t max_degree, double n_pairs, double n_edges)
{
    double n = kind == NN_BASIS_PAIRWISE_F32 ? n_edges : n_pairs;

    return n * nn_basis_width(kind, max_degree) * (double)number_bytes(kind);
}

/* ---- computing ---- */

/* Scratch data of the kinds of blocks, made once per block. */
typedef struct maker {
    nn_basis_kind kind;
    int32_t max_degree, width;
    nn_frame_rule rule;
    const nn_couplings *q;
} maker;

static pl_code maker_open(maker *m, nn_basis_kind kind, int32_t max_degree, pl_arena *mem, pl_error *err)
{
    nn_couplings *q;
    pl_code code;

    m->kind = kind;
    m->max_degree = max_degree;
    m->width = nn_basis_width(kind, max_degree);
    if (kind == NN_BASIS_FRAME_Q15 || kind == NN_BASIS_FRAME_F32)
        nn_frame_rule_make(&m->rule);
    if (kind != NN_BASIS_PAIRWISE_F32)
        return PL_OK;
    code = nn_couplings_new(&q, max_degree, NN_W3J_E3NN_033, mem, err);
    m->q = q;
    return code;
}

static void make_q15(const maker *m, int16_t *to, const ch_graph *g)
{
    float d[NN_FRAME_FLOATS];

    for (int32_t p = 0; p < g->n_pairs; p++, to += NN_FRAME_FLOATS) {
        nn_frame_make(&m->rule, g->vec[p], 3, d);
        for (int k = 0; k < NN_FRAME_FLOATS; k++) /* |d| <= 1, up to rounding */
            to[k] = (int16_t)lrintf(fminf(fmaxf(d[k], -1.0f), 1.0f) * 32767.0f);
    }
}

static void make_pair(const maker *m, float *to, const float vec[3])
{
    if (m->kind == NN_BASIS_FRAME_F32)
        nn_frame_make(&m->rule, vec, 3, to);
    else
        nn_shf(to, 2 * m->max_degree, vec);
}

static void make_edge(const maker *m, float *to, const ch_graph *g, int32_t e)
{
    int32_t p = g->pair[e];
    double sign = g->pair_edge[p] == e ? 1.0 : -1.0;
    double v[3], sh[NN_SH_COUNT], b[81 * (2 * NN_MAX_DEGREE + 1)];

    for (int a = 0; a < 3; a++)
        v[a] = sign * g->vec[p][a];
    nn_sh(sh, 2 * m->max_degree, v);
    for (int i = 0; i <= m->max_degree; i++)
        for (int o = 0; o <= m->max_degree; o++) {
            int n = (2 * i + 1) * nn_freqs(i, o) * (2 * o + 1);
            nn_basis_pair(b, m->q, i, o, sh);
            for (int k = 0; k < n; k++)
                *to++ = (float)b[k];
        }
}

static void make_graph(const maker *m, unsigned char *to, const ch_graph *g)
{
    if (m->kind == NN_BASIS_FRAME_Q15) {
        make_q15(m, (int16_t *)(void *)to, g);
        return;
    }
    for (int32_t k = 0; k < entries(m->kind, g); k++) {
        float *at = (float *)(void *)to + (size_t)k * (size_t)m->width;
        if (m->kind == NN_BASIS_PAIRWISE_F32)
            make_edge(m, at, g, k);
        else
            make_pair(m, at, g->vec[k]);
    }
}

/* ---- bytes ---- */

static size_t data_at(uint32_t n) { return sizeof(header) + 8 * ((size_t)n + 1); }

static void write_all(unsigned char *base, const maker *m, const ch_graph_block *graphs, const header *h)
{
    uint64_t *at = (uint64_t *)(void *)(base + sizeof *h);
    size_t stride = (size_t)m->width * number_bytes(m->kind);

    for (int32_t g = 0; g < graphs->n; g++) {
        make_graph(m, base + data_at(h->n) + at[g] * stride, &graphs->graph[g]);
        at[g + 1] = at[g] + (uint64_t)entries(m->kind, &graphs->graph[g]);
    }
    memcpy(base, h, sizeof *h);
    ch_block_header_put(base, (size_t)h->bytes, magic, VERSION);
}

pl_code nn_basis_pack(pl_bytes *out, nn_basis_kind kind, int32_t max_degree, const ch_graph_block *graphs, pl_arena *mem,
                      pl_error *err)
{
    maker m;
    header h = { .kind = (uint32_t)kind, .max_degree = (uint32_t)max_degree, .n = (uint32_t)graphs->n, .graphs_crc = graphs->crc };
    uint64_t total = (uint64_t)(kind == NN_BASIS_PAIRWISE_F32 ? graphs->n_edges : graphs->n_pairs);
    unsigned char *base;
    pl_code code;

    for (int32_t g = 0; g < graphs->n; g++)
        if (ch_graph_is_flat(&graphs->graph[g]))
            return pl_fail(err, PL_ECONFIG, "a graph without positions (edges: topology) has no bases");
    if (kind < 0 || kind >= NN_BASIS_NONE || max_degree < 0 || max_degree > NN_MAX_DEGREE)
        return pl_fail(err, PL_EBUG, "bases of kind %d, degree %d", (int)kind, max_degree);
    code = maker_open(&m, kind, max_degree, mem, err);
    if (code != PL_OK)
        return code;
    h.width = (uint32_t)m.width;
    h.bytes = (data_at(h.n) + total * h.width * number_bytes(kind) + 7) / 8 * 8;
    base = PL_NEW(mem, unsigned char, h.bytes);
    if (base == NULL)
        return pl_fail(err, PL_ENOMEM, "bases of %d graphs", graphs->n);
    write_all(base, &m, graphs, &h);
    *out = (pl_bytes){ base, (size_t)h.bytes };
    return PL_OK;
}

static pl_code get_header(header *h, pl_bytes in, const ch_graph_block *graphs, pl_error *err)
{
    pl_code code = ch_block_header_open(h, sizeof *h, in, magic, VERSION, "bases", err);

    if (code != PL_OK)
        return code;
    if (h->bytes != in.len || h->n > in.len / 8 || data_at(h->n) > in.len)
        return pl_fail(err, PL_EDATA, "block of bases: sizes do not fit %zu bytes", in.len);
    if (h->kind >= NN_BASIS_NONE || h->max_degree > NN_MAX_DEGREE ||
        h->width != (uint32_t)nn_basis_width((nn_basis_kind)h->kind, (int32_t)h->max_degree))
        return pl_fail(err, PL_EDATA, "block of bases: kind %u, degree %u, width %u", h->kind, h->max_degree, h->width);
    if (h->graphs_crc != graphs->crc || h->n != (uint32_t)graphs->n)
        return pl_fail(err, PL_EDATA, "block of bases belongs to other graphs");
    return PL_OK;
}

static pl_code check_index(const uint64_t *at, const header *h, size_t len, const ch_graph_block *graphs, pl_error *err)
{
    size_t stride = h->width * number_bytes((nn_basis_kind)h->kind);
    uint64_t sum = 0;

    for (int32_t g = 0; g < graphs->n; g++) {
        if (at[g] != sum)
            return pl_fail(err, PL_EDATA, "block of bases: graph %d is misplaced", g);
        sum += (uint64_t)entries((nn_basis_kind)h->kind, &graphs->graph[g]);
    }
    if (at[graphs->n] != sum || (data_at(h->n) + sum * stride + 7) / 8 * 8 != len)
        return pl_fail(err, PL_EDATA, "block of bases: sizes do not fit %zu bytes", len);
    return PL_OK;
}

pl_code nn_basis_unpack(nn_basis_block *out, pl_bytes in, const ch_graph_block *graphs, pl_arena *mem, pl_error *err)
{
    header h;
    const unsigned char *base;
    pl_code code;

    *out = (nn_basis_block){ 0 };
    code = get_header(&h, in, graphs, err);
    if (code != PL_OK)
        return code;
    base = ch_bytes_aligned(in, mem);
    if (base == NULL)
        return pl_fail(err, PL_ENOMEM, "bases of %u graphs", h.n);
    out->kind = (nn_basis_kind)h.kind;
    out->max_degree = (int32_t)h.max_degree;
    out->n = (int32_t)h.n;
    out->width = (int32_t)h.width;
    out->at = (const uint64_t *)(const void *)(base + sizeof h);
    if (out->kind == NN_BASIS_FRAME_Q15)
        out->q15 = (const int16_t *)(const void *)(base + data_at(h.n));
    else
        out->f32 = (const float *)(const void *)(base + data_at(h.n));
    return check_index(out->at, &h, in.len, graphs, err);
}
