/* stages/commands/cmd_bench_roof.h - shows what `molsieve bench --roofline` measured. */
#ifndef ST_CMD_BENCH_ROOF_H
#define ST_CMD_BENCH_ROOF_H

#include <jansson.h>

#include "stages/bench/bench.h"

void st_bench_roof_print(const st_bench_roof *r);
json_t *st_bench_roof_json(const st_bench_roof *r);
void st_bench_roof_foot_print(void); /* below all tables */

#endif
