/* pipeline/workflow/tree.h - overrides and substitutions: the changes to a workflow's tree between reading and checking.
 *
 * Overrides: "stages.graph.cutoff=4.5". A number in the path is a position in a list, from 0
 * ("inputs.0.path=x.smi"; the position after the last item adds one). The value is YAML. A
 * stage that is not in the file is added only with a `+` in front.
 * Substitution: ${vars.name}, ${env:NAME} and ${env:NAME:-default} in scalars,
 * never in keys; write `$${` for a literal `${`. A variable may use those above it.
 * Each problem has the place of the text that it is about. */
#ifndef PL_TREE_H
#define PL_TREE_H

#include "pipeline/workflow/yaml.h"

extern const char pl_command_line[]; /* the origin of overrides: "command line" */

void pl_tree_override(pl_node *root, const char *text, pl_problems *problems, pl_arena *mem);
void pl_tree_substitute(pl_node *root, pl_problems *problems, pl_arena *mem);

#endif
