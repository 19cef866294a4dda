/* stages/commands/cmd_bench_memory.h - the memory that engine cuda would allocate for a batch. */
#ifndef ST_CMD_BENCH_MEMORY_H
#define ST_CMD_BENCH_MEMORY_H

#include <jansson.h>

#include "stages/bench/bench.h"

/* For training on one of `ranks`, and for forward; needs no GPU. rows NULL: prints a sentence. */
pl_code st_bench_memory_print(const st_bench_case *c, int ranks, json_t *rows, pl_error *err);

#endif
