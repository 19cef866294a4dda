/* stages/commands/cmd_bench_roof.h - reads and shows the roofs of `molsieve bench --roofline`. */
#ifndef ST_CMD_BENCH_ROOF_H
#define ST_CMD_BENCH_ROOF_H

#include <jansson.h>

#include "pipeline/base/text.h"
#include "stages/bench/bench.h"
#include "stages/files/out_file.h"

/* "F,T,B" of --gpu-roof, in 1e9, as numbers a second; NULL: unchanged. False: not three numbers above 0. */
bool st_bench_gpu_roof_read(double roof[3], const char *text);
void st_bench_roof_print(const st_bench_roof *r);
json_t *st_bench_roof_json(const st_bench_roof *r);
/* Adds number i of the figures of a page (stages/report/plot.h). title: of the batch. False: no peak or bandwidth, so nothing. */
bool st_bench_roof_plot(pl_text *out, const char *title, const st_bench_roof *r, int i);
/* Writes the page of n figures to a file that is open, and keeps it. */
pl_code st_bench_roof_keep(st_out *file, const pl_text *figures, int n, pl_error *err);
void st_bench_roof_foot_print(void); /* below all tables */

#endif
