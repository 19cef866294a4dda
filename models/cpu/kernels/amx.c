/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/kernels/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM; the state component */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *missing;

/* Bits 17 and 18 of XCR0: the system saves tile configuration and data. */
static int system_saves_tiles(void)
{
    uint32_t low, high;

    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low >> 17 & 3) == 3;
}

static void look(void)
{
    unsigned a, b, c, d;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d >> 24 & 1) ||
        !(d >> 22 & 1))
        missing = "the processor has no AMX with bf16";
    else if (!system_saves_tiles())
        missing = "the system does not save AMX tiles (Linux 5.16 does)";
    else if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) != 0)
        missing = "the system refused the permission to use AMX tiles";
}

const char *nn_amx_missing(void)
{
    (void)pthread_once(&once, look);
    return missing;
}
#else
const char *nn_amx_missing(void) { return "AMX exists on x86-64 under Linux only"; }
#endif
