/* stages/registry.h - what this program consists of: its stages and its commands.
 *
 * A new stage or command is one file and one line in registry.c. Order of the
 * stages: the order in which stages that are ready run. */
#ifndef ST_REGISTRY_H
#define ST_REGISTRY_H

#include "pipeline/cmd.h"

extern const pl_stage *const st_stages[]; /* NULL-terminated */
extern const pl_cmd *const st_commands[]; /* NULL-terminated */

#endif
