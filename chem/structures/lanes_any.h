/* chem/structures/lanes_any.h - operations on vectors for any processor, one lane after the other. */

static inline vf root(vf a)
{
    for (int l = 0; l < SK_W; l++)
        a[l] = sqrtf(a[l]);
    return a;
}

static inline sums widen(vf a)
{
    sums s;

    for (int l = 0; l < SK_W / 2; l++) {
        s.low[l] = (double)a[l];
        s.high[l] = (double)a[l + SK_W / 2];
    }
    return s;
}

static inline vf choose(vi mask, vf a, vf b) /* a where the mask is set */ { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

static inline vf min(vf a, vf b) { return choose(a < b, a, b); }

static inline vf max(vf a, vf b) { return choose(a > b, a, b); }

static inline vf magnitude(vf a) { return (vf)((vi)a & 0x7fffffff); }

static inline vf with_sign(vf a, vf sign) /* a >= 0 */ { return (vf)((vi)a | ((vi)sign & (int32_t)0x80000000)); }

/* Positions of SK_W atoms from p[][4]. */
static inline vec3 gather(const float *p, const int32_t *at)
{
    vec3 v;

    for (int l = 0; l < SK_W; l++) {
        v.x[l] = p[at[l]];
        v.y[l] = p[at[l] + 1];
        v.z[l] = p[at[l] + 2];
    }
    return v;
}

/* Adds to p[][4], one lane after the other: an atom may stand in several lanes. */
static inline void scatter(float *p, const int32_t *at, vec3 v)
{
    for (int l = 0; l < SK_W; l++) {
        p[at[l]] += v.x[l];
        p[at[l] + 1] += v.y[l];
        p[at[l] + 2] += v.z[l];
    }
}

static inline float lane_sum(vf a) { return (a[0] + a[1]) + (a[2] + a[3]); }

/* Adds the sums over the lanes to p[4]. */
static inline void add_sums(float *p, vf x, vf y, vf z, vf w)
{
    p[0] += lane_sum(x);
    p[1] += lane_sum(y);
    p[2] += lane_sum(z);
    p[3] += lane_sum(w);
}
