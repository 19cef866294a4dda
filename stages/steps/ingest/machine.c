/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/machine.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "models/cpu/kernels/kernels.h"
#include "pipeline/base/hash.h"
#include "pipeline/base/text.h"

/* The C library has several versions of these functions and takes one by the processor. They differ in the last digit of one value
 * in hundreds, so many arguments are tried. */
enum { ARGUMENTS = 4096, FUNCTIONS = 14 };

/* x from -8 to 8, exact: the same on every machine. */
static double argument(int i)
{
    const uint64_t bits = (uint64_t)(i + 1) * 0x9E3779B97F4A7C15U >> 20;
    return ((double)bits - 0x1p43) * 0x1p-40;
}

static void values_at(double x, double out[FUNCTIONS])
{
    const double a = fabs(x), unit = x * 0.125; /* acos and asin take -1 to 1 */
    const double all[FUNCTIONS] = { exp(x),
                                    log(a),
                                    pow(a, 1.7),
                                    sin(x),
                                    cos(x),
                                    tan(x),
                                    asin(unit),
                                    acos(unit),
                                    atan(x),
                                    atan2(x, 0.3),
                                    cbrt(x),
                                    hypot(x, 0.7),
                                    (double)expf((float)x),
                                    (double)powf((float)a, 0.6F) };

    for (int k = 0; k < FUNCTIONS; k++)
        out[k] = all[k];
}

static uint64_t libm_hash(void)
{
    uint64_t h = 0;

    for (int i = 0; i < ARGUMENTS; i++) {
        double y[FUNCTIONS];
        values_at(argument(i), y);
        h = pl_hash64(y, sizeof y, h);
    }
    return h;
}

const char *st_machine_level(pl_arena *mem)
{
    char machine[64];
    return pl_sprintf(mem, "%s, libm %08" PRIx32, nn_cpu_machine(machine), (uint32_t)(libm_hash() >> 32));
}
