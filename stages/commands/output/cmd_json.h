/* stages/commands/output/cmd_json.h - JSON for standard output, which may be a terminal. */
#ifndef ST_CMD_JSON_H
#define ST_CMD_JSON_H

#include <jansson.h>

/* Prints json indented, ending its line, with terminal control characters escaped; NULL prints null. flags: more flags of json_dumps. */
void st_json_print(const json_t *json, size_t flags);

#endif
