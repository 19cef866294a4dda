/* stages/steps/ingest/machine.h - on what kind of machine structures are built. */
#ifndef ST_MACHINE_H
#define ST_MACHINE_H

#include "pipeline/base/arena.h"

/* "x86_64 with fma, glibc 2.36, libm 1a2b3c4d", in mem; NULL: no memory. The last is a hash of what the mathematical functions
 * of the C library return: two machines with the same one build the same structures with the same Open Babel. */
const char *st_machine_level(pl_arena *mem);

#endif
