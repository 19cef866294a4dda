/* stages/cmd_json.h - JSON for standard output, which may be a terminal. */
#ifndef ST_CMD_JSON_H
#define ST_CMD_JSON_H

#include <jansson.h>

/* Indented, on lines of its own, with escapes for what a terminal obeys; NULL is null. flags: more of json_dumps. */
void st_json_print(const json_t *json, size_t flags);

#endif
