/* models/network/frame.h - the edge frame: a rotation that takes the polar axis onto an edge;
 * in this frame every equivariant kernel is nearly diagonal (docs/performance.md 2.1).
 *
 * For an edge along r the frame is Q with Q y = r (components in x, y, z order,
 * polar axis y) and D_l = D_l(Q) acts on features of degree l, index l+m. With
 * k the index of the smallest |r_k|: x' = r x e_k normalised, z' = x' x r,
 * Q = [x' r z']. |r x e_k| >= sqrt(2/3), so there are no poles, angles or
 * trigonometry. The roll about r is arbitrary; results do not depend on it.
 *
 * In the frame the basis of degrees (i, o) and frequency J has
 *   i+o+J even: M[i+m, o+m] = M[i-m, o-m] =  a_{J,m},  m = 0..min(i,o)
 *   i+o+J odd:  M[i+m, o-m] = b_{J,m} = -M[i-m, o+m],  m = 1..min(i,o)
 * (Passaro and Zitnick, ICML 2023; checked against the plain bases). The 2 min+1
 * numbers per frequency form a square matrix: nothing is lost.
 *
 * The reverse edge has the same D with column m multiplied by (-1)^l for m >= 0
 * and by -(-1)^l for m < 0 (a half turn about x'). */
#ifndef NN_FRAME_H
#define NN_FRAME_H

#include <stdint.h>

#include "models/network/se3.h"

/* Floats: D_1, D_2, D_3, each row-major [m][m'], end to end; the same with D_4. */
enum { NN_FRAME_FLOATS = 9 + 25 + 49, NN_FRAME_ALL = NN_FRAME_FLOATS + 81 };

/* Coefficients of the recursion D_l = (2l+1) sum w w D_{l-1} D_1, l = 2..4: w couples component i of degree l
 * with component j of degree l-1 and component k of degree 1. Filled once, then constant. */
typedef struct nn_frame_term {
    uint8_t i, j, k;
    double w;
} nn_frame_term;

typedef struct nn_frame_rule {
    int32_t n[NN_DEGREES];
    nn_frame_term term[NN_DEGREES][40];
} nn_frame_rule;

void nn_frame_rule_make(nn_frame_rule *rule);

int nn_frame_at(int l);       /* offset of D_l in a frame, l = 1..4: 0, 9, 34, 83     */
int nn_frame_size(int l_max); /* floats of D_1..D_{l_max}, l_max = 0..4: 0, 9, 34, 83, 164 */

/* d [nn_frame_size(l_max)] from an edge vector of any length > 0. A zero vector
 * (coinciding atoms, which the graph stage refuses) gives the identity. */
void nn_frame_make(const nn_frame_rule *rule, const float vec[3], int l_max, float *d);

/* Computes D_{l_from}..D_{l_max} behind the given D_1..D_{l_from-1} in d. */
void nn_frame_extend(const nn_frame_rule *rule, int l_from, int l_max, float *d);

/* sign[nn_frame_size(l_max)]: factor of each entry for the reverse edge. */
void nn_frame_reverse(int l_max, float *sign);

/* coef[q][f]: numbers q = 0..min are a_{J,q}, q = min+1..2 min are b_{J,q-min};
 * J = |d_in-d_out| + j_step f. sqrt((2J+1)/4 pi) times the 3j symbol. With j_step 2
 * (natural parity) i+o+J is even for all: f = 0..min, and only the first min+1 numbers are not zero. */
void nn_frame_coef(int d_in, int d_out, int j_step, double coef[2 * NN_MAX_DEGREE + 1][2 * NN_MAX_DEGREE + 1]);

#endif
