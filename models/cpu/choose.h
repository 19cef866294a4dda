/* models/cpu/choose.h - chooses the set of CPU kernels (portable, avx2, avx512, amx).
 *
 * Sets differ in the order of sums and in fused multiply-adds, so results differ
 * from about the seventh digit on; one set always gives the same bytes. */
#ifndef NN_CPU_CHOOSE_H
#define NN_CPU_CHOOSE_H

#include "models/cpu/kernels.h"
#include "pipeline/base/error.h"

/* The set named `pinned`; NULL: the set named by MOLSIEVE_CPU, else the best one for this processor. ECONFIG: the
 * processor lacks what the set needs, or MOLSIEVE_CPU names another set than `pinned`. */
pl_code nn_cpu_kernels_pick(const nn_cpu_kernels **out, const char *pinned, pl_error *err);

/* "x86_64 with fma, glibc 2.36": what else results depend on, because functions of the C library differ. */
const char *nn_cpu_machine(char buf[64]);

#endif
