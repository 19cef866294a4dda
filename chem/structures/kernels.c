/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/structures/kernels.h"

#include <stdlib.h>
#include <string.h>

static bool has_any(void) { return true; }

#if defined(__x86_64__)
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

/* Best first. */
static const struct {
    const ch_kernels *kernels;
    bool (*supported)(void);
} choices[] = {
#if defined(__x86_64__)
    { &ch_kernels_avx512, has_avx512 },
    { &ch_kernels_avx2, has_avx2 },
#endif
    { &ch_kernels_portable, has_any },
};

enum { N_CHOICES = sizeof choices / sizeof *choices };

const ch_kernels *ch_kernels_find(const char *name)
{
    for (int i = 0; i < N_CHOICES; i++)
        if ((name == NULL || strcmp(name, choices[i].kernels->name) == 0) && choices[i].supported())
            return choices[i].kernels;
    return NULL;
}

const ch_kernels *ch_kernels_at(int i)
{
    for (int k = 0; k < N_CHOICES; k++)
        if (choices[k].supported() && i-- == 0)
            return choices[k].kernels;
    return NULL;
}

const ch_kernels *ch_kernels_choose(void)
{
    const char *name = getenv("MOLSIEVE_CPU");

    if (name == NULL || *name == '\0')
        return ch_kernels_find(NULL);
    return ch_kernels_find(strcmp(name, "amx") == 0 ? "avx512" : name);
}

float *ch_floats(pl_arena *mem, int64_t n)
{
    char *p = pl_arena_get(mem, (size_t)n + CH_LANES, sizeof(float));

    return p != NULL ? (float *)(p + (64 - (uintptr_t)p % 64) % 64) : NULL;
}
