/* models/network/w3j.h - real Wigner 3j tensors and the generators of rotations.
 *
 * w3j(l1,l2,l3) is the one tensor (up to sign) of shape (2l1+1, 2l2+1, 2l3+1)
 * that does not change when its three indices are rotated together; Frobenius
 * norm 1. Index l+m, m = -l..l; degree 1 is (x, y, z), the polar axis is y.
 *
 * Signs: e3nn up to 0.4.4 (the reference pins 0.3.3; ours everywhere) and from
 * 0.5.0 on differ in a few triples. Weights trained with the other convention
 * are converted by negating rows, see nn_w3j_sign_differs.
 *
 * Racah's formula for Clebsch-Gordan coefficients, in double; docs/model.md 2.3. */
#ifndef NN_W3J_H
#define NN_W3J_H

#include <stdbool.h>

enum { NN_W3J_MAX = 8 }; /* largest degree of an argument */

typedef enum nn_w3j_sign { NN_W3J_E3NN_033, NN_W3J_E3NN_050 } nn_w3j_sign;

/* out [2l1+1][2l2+1][2l3+1]; all zero unless |l1-l2| <= l3 <= l1+l2. */
void nn_w3j(double *out, int l1, int l2, int l3, nn_w3j_sign sign);

/* Whether the two conventions give the 3j tensor of (J, d_in, d_out) different signs. */
bool nn_w3j_sign_differs(int j, int d_in, int d_out);

/* The generator of rotations about axis a (0 x, 1 y, 2 z) for degree l: Y(R u) =
 * exp(angle G) Y(u). out [2l+1][2l+1]; l <= 4; docs/model.md 2.5. */
void nn_generator(double *out, int l, int a);

#endif
