/* models/cpu/choose.h - which set of CPU kernels computes.
 *
 * Sets differ in the order of sums and in fused operations, so results differ
 * from the seventh digit on; one set always gives the same bytes. */
#ifndef NN_CPU_CHOOSE_H
#define NN_CPU_CHOOSE_H

#include "models/cpu/kernels.h"
#include "pipeline/base/error.h"

/* The set called `pinned`; NULL: the one that MOLSIEVE_CPU names, else the best of this processor. ECONFIG: the processor
 * lacks what the set needs, or MOLSIEVE_CPU names another one than `pinned`. */
pl_code nn_cpu_kernels_pick(const nn_cpu_kernels **out, const char *pinned, pl_error *err);

/* "x86_64 with fma, glibc 2.36": what results depend on besides, through the functions of the C library. */
const char *nn_cpu_machine(char buf[64]);

#endif
