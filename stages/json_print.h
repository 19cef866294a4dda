/* stages/json_print.h - JSON for standard output, which may be a terminal. */
#ifndef ST_JSON_PRINT_H
#define ST_JSON_PRINT_H

#include <jansson.h>

/* Indented, on lines of its own, with escapes for what a terminal obeys; NULL is null. flags: more of json_dumps. */
void st_json_print(const json_t *json, size_t flags);

#endif
