/* stages/files/version.h - the build of this program. */
#ifndef ST_VERSION_H
#define ST_VERSION_H

#include "pipeline/base/text.h"

extern const char st_version[];    /* "0.1.0"                                        */
extern const char st_commit[];     /* "0123abc", "0123abc+changes"; "unknown" outside git */
extern const char st_source_dir[]; /* where it was built from                        */

/* Libraries, compiler and processor, one "name value" a line. */
void st_version_details(pl_text *out);

/* Features of this processor that matter here: "avx2 fma avx512f amx_bf16". */
const char *st_cpu_features(char *buf, size_t size);

#endif
