/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "models/cuda/memory.h"
#include "stages/commands/cmd_bench_memory.h"

pl_code st_bench_memory_print(const st_bench_case *c, int ranks, json_t *rows, pl_error *err)
{
    static const char *const what[] = { "train_mib", "train_recompute_mib", "forward_mib" };
    nn_engine_conf conf = { .threads = 1, .radial = NN_RADIAL_NODES, .width = 0.01 };
    json_t *o = rows != NULL ? json_object() : NULL;
    double mib[3];
    pl_code code = PL_OK;

    for (int i = 0; i < 3 && code == PL_OK; i++) {
        nn_cuda_need need = { 0 };
        conf.recompute = i == 1;
        code = nn_cuda_memory(&need, c->model, &conf, &c->batch, i < 2 ? ranks : 0, err);
        mib[i] = (double)(need.model + need.batch + need.work) / (1 << 20);
        if (o != NULL)
            json_object_set_new(o, what[i], json_real(mib[i]));
    }
    if (o != NULL) {
        json_object_set_new(o, "variant", json_string("memory of engine cuda"));
        json_array_append_new(rows, o);
    } else if (code == PL_OK) {
        (void)printf(
            "\nEngine cuda, radial nodes, allocates %.0f MiB for training steps of this batch, with recompute %.0f MiB, for "
            "forward %.0f MiB (counted; no GPU is needed).\n",
            mib[0], mib[1], mib[2]);
    }
    return code;
}
