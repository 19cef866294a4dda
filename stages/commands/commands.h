/* stages/commands/commands.h - the commands, one file each: stages/cmd_<name>.c. */
#ifndef ST_COMMANDS_H
#define ST_COMMANDS_H

#include "stages/registry/registry.h"

/* `db prune`, in its own file because it writes. */
int st_db_prune(const pl_app *app, const pl_args *args);
/* `db metadata`: prints JSON for Datasette. */
pl_code st_db_metadata(pl_store *s, pl_error *err);

#endif
