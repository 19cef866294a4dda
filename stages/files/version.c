/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/files/version.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#include "stages/version_made.h"

const char st_version[] = MOLSIEVE_VERSION;
const char st_commit[] = MOLSIEVE_COMMIT;
const char st_source_dir[] = MOLSIEVE_SOURCE_DIR;

/* The words of the kernel's list, so that what it hides (old kernels, no AMX state) is not claimed. */
const char *st_cpu_features(char *buf, size_t size)
{
    static const char *const wanted[] = { "avx2",     "fma",      "avx512f", "avx512bw", "avx512_bf16", "avx512_vnni",
                                          "amx_tile", "amx_bf16", "asimd",   "sve",      "bf16" };
    char line[8192] = "", padded[64];
    FILE *f = fopen("/proc/cpuinfo", "r");
    size_t used = 0;

    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "flags", 5) == 0 || strncmp(line, "Features", 8) == 0)
            break;
    if (f != NULL)
        (void)fclose(f);
    line[strcspn(line, "\n")] = ' ';
    buf[0] = '\0';
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted && used < size; i++) {
        (void)snprintf(padded, sizeof padded, " %s ", wanted[i]);
        if (strstr(line, padded) != NULL)
            used += (size_t)snprintf(buf + used, size - used, "%s%s", used ? " " : "", wanted[i]);
    }
    return buf[0] ? buf : "none known";
}

void st_version_details(pl_text *out)
{
    char cpu[256];

    pl_text_addf(out, "commit    %s\n", st_commit);
    pl_text_addf(out, "compiler  %s\n", MOLSIEVE_COMPILER);
    pl_text_addf(out, "build     %s\n", MOLSIEVE_BUILD_TYPE);
    pl_text_addf(out, "sqlite    %s\n", sqlite3_libversion());
    pl_text_addf(out, "libyaml   %s\n", yaml_get_version_string());
    pl_text_addf(out, "jansson   %s\n", JANSSON_VERSION);
    pl_text_addf(out, "zlib      %s\n", zlibVersion());
    pl_text_addf(out, "cpu       %s\n", st_cpu_features(cpu, sizeof cpu));
}
