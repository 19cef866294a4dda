/* models/network/sh.h - real spherical harmonics, e3nn's order and axes (docs/model.md 2.2).
 *
 * Orthonormal on the sphere: |Y_l(u)|^2 = (2l+1)/(4 pi). Component l+m,
 * m = -l..l; the polar axis is y, so degree 1 is proportional to (x, y, z). */
#ifndef NN_SH_H
#define NN_SH_H

enum { NN_SH_MAX = 8, NN_SH_COUNT = (NN_SH_MAX + 1) * (NN_SH_MAX + 1) };

/* u = v / max(|v|, 1e-12): a zero vector stays zero. */
void nn_unit(double u[3], const double v[3]);

/* Y_0 .. Y_lmax of v / |v|, one after the other: out [(lmax+1)^2], Y_l at l*l.
 * lmax <= NN_SH_MAX. A zero vector gives Y_0 and zeros. */
void nn_sh(double *out, int lmax, const double v[3]);
void nn_shf(float *out, int lmax, const float v[3]); /* computed in double, rounded once */

#endif
