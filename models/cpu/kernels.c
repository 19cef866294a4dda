/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/kernels.h"

#include "models/cpu/amx.h"

#include <stdlib.h>
#include <string.h>

static bool has_any(void)
{
    return true;
}

#if defined(__x86_64__)
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")
        && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}

static bool has_amx(void)
{
    return has_avx512() && __builtin_cpu_supports("avx512bf16") && !nn_amx_missing();
}
#endif

typedef struct choice {
    const nn_cpu_kernels *kernels;
    bool (*supported)(void);
    const char *needs;
} choice;

/* Best first. */
static const choice choices[] = {
#if defined(__x86_64__)
    { &nn_cpu_amx, has_amx, "what avx512 needs, amx_tile, amx_bf16 and the system's permission" },
    { &nn_cpu_avx512, has_avx512, "avx512f, avx512dq, avx512bw, avx512vl" },
    { &nn_cpu_avx2, has_avx2, "avx2, fma" },
#endif
    { &nn_cpu_portable, has_any, "nothing" },
};

const nn_cpu_kernels *nn_cpu_kernels_find(const char *name)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if ((!name || !strcmp(name, choices[i].kernels->name)) && choices[i].supported())
            return choices[i].kernels;
    return NULL;
}

bool nn_cpu_kernels_list(int i, nn_cpu_choice *out)
{
    if (i < 0 || i >= (int)(sizeof choices / sizeof *choices))
        return false;
    *out = (nn_cpu_choice){ choices[i].kernels, choices[i].needs, choices[i].supported() };
    return true;
}

const nn_cpu_kernels *nn_cpu_kernels_choose(void)
{
    const char *name = getenv("MOLSIEVE_CPU");

    return nn_cpu_kernels_find(name && *name ? name : NULL);
}

const char *nn_cpu_kernels_name(void)
{
    const nn_cpu_kernels *k = nn_cpu_kernels_choose();

    return k ? k->name : "none";
}
