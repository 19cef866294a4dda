/* pipeline/tree.h - what happens to a workflow's tree between reading and checking.
 *
 * Overrides: "stages.graph.cutoff=4.5"; a number in the path is the position in
 * a list ("inputs.0.path=x.smi", one past the end adds). The value is YAML. A
 * stage that the file does not have is added only with a `+` in front.
 * Substitution: ${vars.name}, ${env:NAME} and ${env:NAME:-default} in scalars,
 * never in keys; `$${` stands for `${`. A variable may use those above it.
 * Problems carry the place of the text they are about. */
#ifndef PL_TREE_H
#define PL_TREE_H

#include "pipeline/yaml.h"

extern const char pl_command_line[]; /* the origin of overrides: "command line" */

void pl_tree_override(pl_node *root, const char *text, pl_problems *problems, pl_arena *mem);
void pl_tree_substitute(pl_node *root, pl_problems *problems, pl_arena *mem);

#endif
