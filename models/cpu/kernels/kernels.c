/* SPDX-License-Identifier: Apache-2.0 */
#include "models/cpu/kernels/kernels.h"

#include "models/cpu/kernels/amx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

static bool has_any(void) { return true; }

#if defined(__x86_64__)
static bool has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl");
}

static bool has_dot16(void) { return has_avx512() && __builtin_cpu_supports("avx512bf16"); }

static bool has_amx(void) { return has_dot16() && nn_amx_missing() == NULL; }
#else
static bool has_dot16(void) { return false; }
#endif

typedef struct choice {
    const nn_cpu_kernels *kernels;
    bool (*supported)(void);
    const char *needs;
} choice;

/* Fastest first. */
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
        if ((name == NULL || !strcmp(name, choices[i].kernels->name)) && choices[i].supported())
            return choices[i].kernels;
    return NULL;
}

const nn_cpu_kernels *nn_cpu_kernels_dot16(void)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices && has_dot16(); i++)
        if (choices[i].kernels->peak16 != NULL)
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

    return nn_cpu_kernels_find(name != NULL && *name ? name : NULL);
}

const char *nn_cpu_kernels_name(void)
{
    const nn_cpu_kernels *k = nn_cpu_kernels_choose();

    return k != NULL ? k->name : "none";
}

static const char *needs_of(const char *name)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (!strcmp(name, choices[i].kernels->name))
            return choices[i].needs;
    return "another kind of processor";
}

pl_code nn_cpu_kernels_pick(const nn_cpu_kernels **out, const char *pinned, pl_error *err)
{
    const char *forced = getenv("MOLSIEVE_CPU");

    *out = pinned != NULL ? nn_cpu_kernels_find(pinned) : nn_cpu_kernels_choose();
    if (pinned == NULL && *out == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "MOLSIEVE_CPU=%s is not a set of kernels that this processor supports; "
                       "`molsieve doctor` lists them",
                       forced != NULL ? forced : "");
    if (*out == NULL)
        return pl_fail(err, PL_ECONFIG,
                       "kernels: %s needs %s, which this processor lacks; `molsieve doctor` lists the sets that run here", pinned,
                       needs_of(pinned));
    if (pinned != NULL && forced != NULL && *forced && strcmp(forced, pinned) != 0)
        return pl_fail(err, PL_ECONFIG, "kernels: %s, but MOLSIEVE_CPU=%s forces another set; unset MOLSIEVE_CPU", pinned, forced);
    return PL_OK;
}

static const char *machine_name(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma") ? "x86_64 with fma" : "x86_64";
#elif defined(__aarch64__)
    return "aarch64";
#else
    return "other processor";
#endif
}

const char *nn_cpu_machine(char buf[64])
{
#if defined(__GLIBC__)
    (void)snprintf(buf, 64, "%s, glibc %s", machine_name(), gnu_get_libc_version());
#else
    (void)snprintf(buf, 64, "%s", machine_name());
#endif
    return buf;
}
