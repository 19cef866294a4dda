/* pipeline/settings.h - from YAML to a settings struct, by its table.
 *
 * Every problem is added with its place, the dotted path of the setting, what
 * is allowed and the nearest name. Texts and lists live in ctx->mem. */
#ifndef PL_SETTINGS_H
#define PL_SETTINGS_H

#include "pipeline/base/field.h"
#include "pipeline/stage.h"
#include "pipeline/yaml.h"

typedef struct pl_settings {
    pl_problems *problems;
    pl_arena *mem;
    const char *folder;      /* absolute; paths in the file are relative to it              */
    const char *made;        /* absolute; files inside may be made by the run; NULL: none   */
    bool find_files;         /* look whether PL_EXISTS paths exist                          */
    const pl_stage *const *known; /* stages, to tell when one stands at the top; or NULL    */
} pl_settings;

/* Fills conf: defaults, then what `map` says. `path` ("stages.graph") stands before
 * each setting in messages; `also` are keys of the map that somebody else reads
 * (NULL-terminated, or NULL). A null scalar counts as an empty map. */
void pl_settings_read(const pl_settings *ctx, const pl_field *table, void *conf, const pl_node *map,
                      const char *path, const char *const *also);

/* "a, b, c": what stands directly under `prefix` ("" or "conformers.") of a table. */
void pl_settings_names(const pl_field *table, const char *prefix, pl_text *out);

/* Says that `word` is not one of `names`, and which is nearest. */
void pl_unknown_name(pl_problems *problems, const pl_node *at, const char *what, const char *word,
                     const char *const *names, int n);

/* A path of the file as an absolute one. NULL: no memory. */
char *pl_settings_path(const pl_settings *ctx, const char *path);

/* Does the file exist, or may the run still make it? Adds the problem if not. */
bool pl_settings_find(const pl_settings *ctx, const char *absolute, const pl_node *at, const char *path);

#endif
