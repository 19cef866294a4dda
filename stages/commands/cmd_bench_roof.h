/* stages/commands/cmd_bench_roof.h - shows what `molsieve bench --roofline` measured. */
#ifndef ST_CMD_BENCH_ROOF_H
#define ST_CMD_BENCH_ROOF_H

#include <jansson.h>

#include "stages/bench/bench.h"

/* What a roof is made of, measured: operations and bytes per second. */
typedef struct st_bench_roof {
    const char *variant;
    int threads;
    double flops, bytes;
} st_bench_roof;
void st_bench_roof_print(const st_bench_roof *r, const st_bench_roof_op op[NN_OPS]);
json_t *st_bench_roof_json(const st_bench_roof *r, const st_bench_roof_op op[NN_OPS]);

#endif
