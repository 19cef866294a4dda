/* tests/bench/bench_sparse_body.h - the products of bench_sparse.c that skip zeros, for one instruction set. W: lanes; ROWS: rows
 * of select at a time; NAME(x): the set's own names; BROADCAST, CHOOSE, FMA, LOAD, ALL, STORE: its intrinsics. */

TARGET static void NAME(select_block)(const product *x, int row, int panel)
{
    const int groups = x->k / 4;
    const float *w = x->kept + (size_t)panel * (size_t)groups * 2 * W;
    const int32_t *at = x->which + (size_t)panel * (size_t)groups * 2 * W;
    VECTOR s[ROWS];

    for (int i = 0; i < ROWS; i++)
        s[i] = ALL(0);
    for (int g = 0; g < groups; g++, w += 2 * W, at += 2 * W) {
        const VECTOR w0 = LOAD(w), w1 = LOAD(w + W);
        const INDICES i0 = LOAD_INDICES(at), i1 = LOAD_INDICES(at + W);
#pragma GCC unroll 8
        for (int i = 0; i < ROWS; i++) {
            const VECTOR four = BROADCAST(x->a + (size_t)(row + i) * (size_t)x->k + 4 * g);
            s[i] = FMA(w0, CHOOSE(four, i0), s[i]);
            s[i] = FMA(w1, CHOOSE(four, i1), s[i]);
        }
    }
    for (int i = 0; i < ROWS; i++)
        STORE(x->c + (size_t)(row + i) * (size_t)x->n + (size_t)panel * W, s[i]);
}

static void NAME(select)(const product *x)
{
    for (int panel = 0; panel < x->n / W; panel++)
        for (int row = 0; row < x->rows; row += ROWS)
            NAME(select_block)(x, row, panel);
}

TARGET static void NAME(turned_block)(const product *x, int row, int col)
{
    const float *value = x->value + (size_t)col * (size_t)x->k / 2, *a = x->at + row;
    const int32_t *from = x->from + (size_t)col * (size_t)x->k / 2;
    VECTOR s[WIDE];

    for (int v = 0; v < WIDE; v++)
        s[v] = ALL(0);
    for (int q = 0; q < x->k / 2; q++) {
        const VECTOR w = ALL(value[q]);
        const float *at = a + (size_t)from[q] * (size_t)x->ld;
#pragma GCC unroll 8
        for (int v = 0; v < WIDE; v++)
            s[v] = FMA(w, LOAD(at + v * W), s[v]);
    }
    for (int v = 0; v < WIDE; v++)
        STORE(x->ct + (size_t)col * (size_t)x->ld + (size_t)(row + v * W), s[v]);
}

static void NAME(turned)(const product *x)
{
    for (int row = 0; row < x->rows; row += WIDE * W)
        for (int col = 0; col < x->n; col++)
            NAME(turned_block)(x, row, col);
}

static void NAME(turned_whole)(const product *x)
{
    turn(x->at, x->ld, x->a, x->rows, x->k);
    NAME(turned)(x);
    turn_back(x->c, x->ct, x->ld, x->rows, x->n);
}
