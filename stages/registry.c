/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/registry/registry.h"

#include <stddef.h>

#define STAGE(name) &st_##name,
const pl_stage *const st_stages[] = { ST_STAGES(STAGE) NULL };

#define COMMAND(name) &st_cmd_##name,
const pl_cmd *const st_commands[] = { ST_COMMANDS(COMMAND) NULL };
