/* chem/structures/energy_plan.h - the terms of a molecule, laid out for one set of kernels (kernels.h).
 *
 * The plan does not change with the positions: it is made once for a molecule and used by any number of conformers and threads.
 * All of it lives in the arena. */
#ifndef CH_ENERGY_PLAN_H
#define CH_ENERGY_PLAN_H

#include "chem/structures/kernels.h"
#include "chem/structures/terms.h"
#include "pipeline/base/error.h"

/* EINPUT for a term whose atoms or numbers make no sense; ENOMEM. */
pl_code ch_energy_plan_make(ch_energy_plan *out, const ch_terms *terms, const ch_kernels *kernels, pl_arena *mem, pl_error *err);

/* The energy of the plan at xyz[n_atoms][3] and, unless gradient is NULL, gradient[n_atoms][3]. For tests and single energies:
 * what minimises calls the kernel itself. work: 14 * stride floats from ch_floats. */
double ch_energy_gradient(const ch_energy_plan *plan, const ch_kernels *kernels, const float (*xyz)[3], float (*gradient)[3],
                          float *work);

/* Between xyz[n][3] and x[3][stride]. */
void ch_to_columns(float *x, int32_t stride, const float (*xyz)[3], int32_t n);
void ch_from_columns(float (*xyz)[3], const float *x, int32_t stride, int32_t n);

#endif
