/* models/cpu/amx.h - whether this process may use the processor's matrix tiles (AMX).
 *
 * Linux gives the 8 KiB of tile registers only to a process that asks
 * (arch_prctl ARCH_REQ_XCOMP_PERM, kernel 5.16); threads and children inherit it. */
#ifndef NN_CPU_AMX_H
#define NN_CPU_AMX_H

/* NULL: bf16 tile products work in this process (the permission is asked for once).
 * Else what is missing, for a person to read; the text is constant. */
const char *nn_amx_missing(void);

#endif
