/* stages/commands/model_diff.h - how two model files differ, in words. */
#ifndef ST_MODEL_DIFF_H
#define ST_MODEL_DIFF_H

#include "models/files/model_file.h"
#include "pipeline/base/arena.h"

/* Text of a file on a terminal: one line, no control characters. It lives in mem. */
const char *st_model_plain(const char *s, pl_arena *mem);

/* Prints settings, provenance, domains, members and tensors that differ; of the tensors the ten that differ most, or all. Returns 0 if
 * the files are the same, 1 if they differ, as diff does. */
int st_model_diff(const nn_model_file *a, const nn_model_file *b, bool all, pl_arena *mem);

#endif
