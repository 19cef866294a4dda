/* stages/steps/features/graph.h - the stage `graph`: conformers into graphs of radius, bonds, nearest or all, or bonds without positions.
 *
 * Unit i reads block "conformer" of prepare's unit i and leaves block "graph"
 * (chem/graph/graph_block.h), with the molecules that have a graph, in the order of
 * their ids. A molecule without one is a failure row. */
#ifndef ST_GRAPH_H
#define ST_GRAPH_H

#include <stdbool.h>

#include "chem/graph/graph.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

/* What the settings of that step ask ch_graph_build for. */
ch_graph_opts st_graph_opts(const pl_step *step);
/* Angstrom: the longest edge of graphs with a cutoff, its default for others. */
double st_graph_reach(const pl_step *step);
/* Whether edges end at this distance. */
bool st_graph_ends(const pl_step *step);

/* Sets the limits, which model files do not keep, to the stage's defaults. */
void st_graph_limits(ch_graph_opts *opts);

/* Whether the workflow's graphs have no positions (edges: topology), so that no network can read them. */
bool st_graph_is_flat(const pl_workflow *wf);

/* Directed edges and pairs that the graph stage of `step` will make or has made,
 * from the sizes of the molecules: exact for full, good to some 20 % otherwise. */
typedef struct st_graph_sizes {
    double n, structures; /* molecules; the others are sums over their structures */
    double atoms, edges, pairs;
    int64_t n_units; /* -1: not known yet */
} st_graph_sizes;
pl_code st_graph_expect(st_graph_sizes *out, const pl_workflow *wf, const pl_step *step, pl_store *store, pl_error *err);

#endif
