/* stages/commands/output/cmd_json.h - JSON for standard output, which may be a terminal. */
#ifndef ST_CMD_JSON_H
#define ST_CMD_JSON_H

#include <jansson.h>

#include "pipeline/base/error.h"

/* Prints json indented, ending its line, with terminal control characters escaped. flags: more flags of json_dumps. ENOMEM, and nothing
 * is printed, also where json is NULL. */
pl_code st_json_print(const json_t *json, size_t flags, pl_error *err);

#endif
