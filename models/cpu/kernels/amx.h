/* models/cpu/kernels/amx.h - asks the system for permission to use the processor's matrix tiles (AMX).
 *
 * Linux lets a process use the 8 KiB of tile registers only after a request
 * (arch_prctl ARCH_REQ_XCOMP_PERM, since kernel 5.16); threads and children inherit it. */
#ifndef NN_CPU_AMX_H
#define NN_CPU_AMX_H

/* NULL: bf16 tile products work in this process; the first call asks for the permission.
 * Otherwise a constant text that says what is missing, for messages. */
const char *nn_amx_missing(void);

#endif
