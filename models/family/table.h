/* models/family/table.h - the rows that members of a family learn from and predict, made from graphs. */
#ifndef NN_TABLE_H
#define NN_TABLE_H

#include "models/family/family.h"

/* One row for each of graph[n], without columns of the user's table; everything in mem. ENOMEM. EINPUT: a graph without atoms. */
pl_code nn_table_make(nn_table *out, const ch_graph *const *graph, int32_t n, pl_arena *mem, pl_error *err);

/* The rows at[n] of all, in that order; borrows the rows, its own arrays in mem. ENOMEM. */
pl_code nn_table_take(nn_table *out, const nn_table *all, const int32_t *at, int32_t n, pl_arena *mem, pl_error *err);

#endif
