/* SPDX-License-Identifier: Apache-2.0 */
/* stages/main.c - the program: the only file that sees all parts. */
#include <sqlite3.h>

#include "pipeline/cli/cmd.h"
#include "stages/database/schema.h"
#include "stages/files/version.h"
#include "stages/registry/registry.h"

int main(int argc, char **argv)
{
    const pl_app app = {
        .commands = st_commands,
        .stages = st_stages,
        .schema = &st_schema,
        .version = st_version,
        .details = st_version_details,
    };

    /* Nobody asks SQLite how much memory it has; counting it takes a lock for each allocation. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    return pl_main(&app, argc, argv);
}
