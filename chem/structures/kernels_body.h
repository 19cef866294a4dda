/* chem/structures/kernels_body.h - the text that every instruction set compiles.
 *
 * Before including it a source file defines SK_W (floats of a vector), SK_SET (the table's name), SK_LABEL and SK_LANES (the
 * file of the few operations that the compiler's own vectors lack). Division and square root are exact, not the processor's
 * estimates, so one set gives the same bits on processors of every maker. No guard: it is included once in each of them. */
#include <math.h>
#include <string.h>

#include "chem/structures/kernels.h"

typedef float vf __attribute__((vector_size(SK_W * 4)));
typedef int32_t vi __attribute__((vector_size(SK_W * 4)));
typedef double vd __attribute__((vector_size(SK_W * 4))); /* half as many lanes */
typedef float vf_any __attribute__((vector_size(SK_W * 4), aligned(4), may_alias));

typedef struct vec3 {
    vf x, y, z;
} vec3;

typedef struct sums { /* of the lanes, in double */
    vd low, high;
} sums;

static inline vf load(const float *p) { return *(const vf_any *)p; }

static inline void store(float *p, vf v) { *(vf_any *)p = v; }

static inline vf all(float x) { return (vf){ 0 } + x; }

#include SK_LANES

static inline vec3 minus(vec3 a, vec3 b) { return (vec3){ a.x - b.x, a.y - b.y, a.z - b.z }; }

static inline vec3 plus(vec3 a, vec3 b) { return (vec3){ a.x + b.x, a.y + b.y, a.z + b.z }; }

static inline vec3 scaled(vec3 a, vf s) { return (vec3){ a.x * s, a.y * s, a.z * s }; }

static inline vec3 opposite(vec3 a) { return (vec3){ -a.x, -a.y, -a.z }; }

static inline vf inner(vec3 a, vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

static inline vec3 cross(vec3 a, vec3 b) { return (vec3){ a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x }; }

static inline void add_to(sums *s, vf x)
{
    const sums wide = widen(x);

    s->low += wide.low;
    s->high += wide.high;
}

static inline double total(const sums *s)
{
    const vd both = s->low + s->high;
    double t = 0;

    for (int l = 0; l < SK_W / 2; l++)
        t += both[l];
    return t;
}

#include "chem/structures/kernels_bonded.h"
#include "chem/structures/kernels_pairs.h"
#include "chem/structures/kernels_linear.h"

const ch_kernels SK_SET = {
    .name = SK_LABEL,
    .width = SK_W,
    .energy = energy,
    .distance = distance,
    .smooth = smooth,
    .dot = dot,
    .add = add,
    .step = step,
    .times = times,
    .factor = factor,
    .solve = solve,
};
