/* stages/files/shipped.h - the models that come with the program, by name (stages/files/data_dir.h). */
#ifndef ST_SHIPPED_H
#define ST_SHIPPED_H

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

/* The path of a model file, or of the shipped model of that name. ECONFIG: neither; the text lists the names. In mem. */
pl_code st_model_find(const char **path, const char *name, pl_arena *mem, pl_error *err);

/* "esol, qm9-gap, qm9-homo": the names of the shipped models; "" if there are none. In mem; NULL: no memory. */
const char *st_shipped_names(pl_arena *mem);

#endif
