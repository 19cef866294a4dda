/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/bench_blas.h"

pl_code bench_blas_run(bench_blas *out, const bench_case *c, int repeats, pl_arena *mem, pl_error *err)
{
    (void)out;
    (void)c;
    (void)repeats;
    (void)mem;
    return pl_fail(err, PL_EDEVICE, "built without OpenBLAS");
}
