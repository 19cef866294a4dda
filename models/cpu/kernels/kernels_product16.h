/* models/cpu/kernels/kernels_product16.h - product.h with bf16 factors; part of kernels_body.h.
 *
 * A is rounded here (after its scale), a few rows at a time; B was packed before.
 * Complex: C real is [A real | -A imaginary] B and C imaginary [A imaginary | A real]
 * B, with B as a real matrix of 2k rows; both are windows of rows that hold
 * imaginary, real, -imaginary. The gradient of B is made likewise, with windows of
 * the packed C. */

enum {
    HALF_MAX = 1024 * 5,                  /* k: channels of all degrees                */
    HALF_NUMBERS = 16 * 3 * 2 * HALF_MAX, /* 16 rows of it, three times, two parts     */
    HALF_ROWS = 64,                       /* rows at most                              */
    OUTER_BLOCK = 128,
    OUTER_DEPTH = 64 /* of inputs and outputs; rows               */
};

static inline nn_bf16_source half_source(const nn_cpu_product *p, const float *at, size_t ld, int32_t row, int32_t n)
{
    return (nn_bf16_source){ at + (size_t)row * ld, ld, NULL, p->scale != NULL ? p->scale + row : NULL, 1, p->n_rows - row, n };
}

static void half_pack(const float *panels, int32_t k, int32_t n, nn_bf16 *to, int parts)
{
    size_t panel = nn_bf16_packed(k, 16, parts);

    for (int32_t j = 0; j < n / 16; j++) {
        nn_bf16_source from = { panels + (size_t)j * (size_t)k * 16, 16, NULL, NULL, 1, k, 16 };
        bf16_pack(&from, &(nn_bf16_panels){ to + (size_t)j * panel, panel, parts });
    }
}

/* Rows row .. row+n-1 of C. */
static void half_rows(const nn_cpu_product *p, int32_t row, int32_t n, nn_bf16 *scratch, int parts)
{
    int32_t pieces = p->a[1] != NULL ? 2 : 1, in = (int32_t)nn_bf16_in(pieces * p->k);
    size_t ld = (size_t)(p->a[1] != NULL ? 3 * p->k : in), panel = nn_bf16_packed(pieces * p->k, 16, parts);
    nn_bf16_mat a = { scratch, ld, nn_bf16_rows(n) * ld, p->a[1] != NULL ? p->k : in, parts };
    nn_bf16_source from = half_source(p, p->a[0], p->a_ld, row, p->k);
    nn_bf16_mat minus = a;
    nn_bf16_product g = { a, { (nn_bf16 *)(uintptr_t)p->b, panel, parts }, n, p->n, NULL, p->c_ld, 16, p->add };

    from.n_rows = n;
    a.at += p->a[1] != NULL ? p->k : 0;
    bf16_rows(&from, &a);
    g.a.n = in;
    g.a.at = a.at;
    g.c = p->c[0] + (size_t)row * p->c_ld;
    if (p->a[1] != NULL) {
        from.at = p->a[1] + (size_t)row * p->a_ld;
        a.at = scratch;
        bf16_rows(&from, &a);
        minus.at = scratch + 2 * p->k;
        bf16_minus(&a, &minus, n);
    }
    bf16_product(&g);
    if (p->a[1] == NULL)
        return;
    g.a.at = scratch;
    g.c = p->c[1] + (size_t)row * p->c_ld;
    bf16_product(&g);
}

static void half_run(const nn_cpu_product *p, int parts)
{
    _Alignas(64) nn_bf16 scratch[HALF_NUMBERS];
    int32_t max = HALF_NUMBERS / (3 * 2 * p->k) / 16 * 16;

    max = max < HALF_ROWS ? max : HALF_ROWS;
    for (int32_t row = 0; row < p->n_rows; row += max)
        half_rows(p, row, p->n_rows - row < max ? p->n_rows - row : max, scratch, parts);
}

/* One piece of the gradient of B: rows row .. row+n-1, inputs from k, outputs from o. */
typedef struct half_outer {
    const nn_cpu_product *p;
    int32_t row, n, pad; /* pad: n filled up to a multiple of 32 */
    int parts;
    nn_bf16 *a, *c; /* scratch: [OUTER_BLOCK][2 pad], panels of 3 pad rows */
} half_outer;

static void half_turn(const half_outer *h, int32_t k, int32_t n)
{
    size_t ld = 2 * OUTER_DEPTH;
    nn_bf16_mat to = { h->a, ld, OUTER_BLOCK * ld, h->n, h->parts };

    for (int i = 0; i < 2 && h->p->a[i] != NULL; i++, to.at += h->pad) {
        nn_bf16_source from = half_source(h->p, h->p->a[i] + k, h->p->a_ld, h->row, n);
        from.n_rows = h->n;
        bf16_turn(&from, &to);
    }
}

/* C real, imaginary and -real behind each other, or C alone. */
static void half_columns(const half_outer *h, int32_t o, int32_t n)
{
    size_t piece = (size_t)h->pad * 16 * (size_t)h->parts;
    nn_bf16_panels to = { h->c, 3 * piece, h->parts };

    for (int i = 0; i < (h->p->a[1] != NULL ? 3 : 1); i++, to.at += piece) {
        nn_bf16_source from = { h->p->c[i % 2] + (size_t)h->row * h->p->c_ld + o, h->p->c_ld, NULL, NULL, i < 2 ? 1 : -1, h->n, n };
        bf16_pack(&from, &to);
    }
}

static void half_add(const half_outer *h, int32_t k, int32_t k_n, int32_t o, int32_t o_n)
{
    const nn_cpu_product *p = h->p;
    int32_t pieces = p->a[1] != NULL ? 2 : 1;
    size_t piece = (size_t)h->pad * 16 * (size_t)h->parts, ld = 2 * OUTER_DEPTH;
    nn_bf16_product g = { { h->a, ld, OUTER_BLOCK * ld, pieces * h->pad, h->parts },
                          { h->c, 3 * piece, h->parts },
                          k_n,
                          o_n,
                          p->db + panel_at(pieces * p->k, o) + (size_t)k * 16,
                          16,
                          (size_t)(pieces * p->k) * 16,
                          h->row || p->add };

    bf16_product(&g);
    if (p->a[1] == NULL)
        return;
    g.b.at += piece;
    g.c += (size_t)p->k * 16;
    bf16_product(&g);
}

static void half_outer_run(const nn_cpu_product *p, int parts)
{
    _Alignas(64) nn_bf16 a[OUTER_BLOCK * 2 * OUTER_DEPTH * 2], c[OUTER_BLOCK * 3 * OUTER_DEPTH * 2];
    half_outer h = { .p = p, .parts = parts, .a = a, .c = c };

    for (h.row = 0; h.row < p->n_rows; h.row += OUTER_DEPTH) {
        h.n = p->n_rows - h.row < OUTER_DEPTH ? p->n_rows - h.row : OUTER_DEPTH;
        h.pad = (int32_t)nn_bf16_in(h.n);
        for (int32_t k = 0; k < p->k; k += OUTER_BLOCK) {
            int32_t k_n = p->k - k < OUTER_BLOCK ? p->k - k : OUTER_BLOCK;
            half_turn(&h, k, k_n);
            for (int32_t o = 0; o < p->n; o += OUTER_BLOCK) {
                int32_t o_n = p->n - o < OUTER_BLOCK ? p->n - o : OUTER_BLOCK;
                half_columns(&h, o, o_n);
                half_add(&h, k, k_n, o, o_n);
            }
        }
    }
}

/* ---- the two tables ----------------------------------------------------------------- */

static size_t bf16_floats(int32_t k, int32_t n) { return nn_bf16_packed(k, n, 1) / 2; }

static size_t bf16x3_floats(int32_t k, int32_t n) { return nn_bf16_packed(k, n, 2) / 2; }

static void bf16_panels(const float *panels, int32_t k, int32_t n, float *to) { half_pack(panels, k, n, (nn_bf16 *)to, 1); }

static void bf16x3_panels(const float *panels, int32_t k, int32_t n, float *to) { half_pack(panels, k, n, (nn_bf16 *)to, 2); }

static void bf16_run(const nn_cpu_product *p) { half_run(p, 1); }

static void bf16x3_run(const nn_cpu_product *p) { half_run(p, 2); }

static void bf16_outer(const nn_cpu_product *p) { half_outer_run(p, 1); }

static void bf16x3_outer(const nn_cpu_product *p) { half_outer_run(p, 2); }
