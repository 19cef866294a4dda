/* pipeline/workflow/settings.h - reads a settings struct from YAML, by the table of its fields.
 *
 * Every problem is added with its place, the dotted path of the setting, what
 * is allowed and the nearest name. Texts and lists are in ctx->mem. */
#ifndef PL_SETTINGS_H
#define PL_SETTINGS_H

#include "pipeline/base/field.h"
#include "pipeline/workflow/stage.h"
#include "pipeline/workflow/yaml.h"

typedef struct pl_settings {
    pl_problems *problems;
    pl_arena *mem;
    const char *folder;           /* absolute path; paths in the file are relative to it         */
    const char *made;             /* absolute path; files below it may be missing, since the run may make them; NULL: none */
    bool stored;                  /* the settings of a run that is over: no file that they name need exist */
    bool find_files;              /* check whether PL_EXISTS paths exist                         */
    const pl_stage *const *known; /* to suggest stages.NAME for a stage at the top level; or NULL */
} pl_settings;

/* Fills conf with the defaults and then with the values in `map`. `path` ("stages.graph")
 * precedes each setting in messages; `also` are further keys of the map, which the caller
 * reads (NULL-terminated, or NULL). A null scalar counts as an empty map. */
void pl_settings_read(const pl_settings *ctx, const pl_field *table, void *conf, const pl_node *map, const char *path,
                      const char *const *also);

/* "a, b, c": the names directly under `prefix` ("" or "conformers.") in a table. */
void pl_settings_names(const pl_field *table, const char *prefix, pl_text *out);

/* Adds a problem: the text `what`, the one of names[0..n-1] nearest to `word`, and all names as allowed. */
void pl_unknown_name(pl_problems *problems, const pl_node *at, const char *what, const char *word, const char *const *names, int n);

/* Makes a path of the file absolute, in ctx->mem. NULL: out of memory. */
char *pl_settings_path(const pl_settings *ctx, const char *path);

/* True: the file exists and is readable, or the run may still make it. Otherwise adds a problem; `path` is the setting. */
bool pl_settings_find(const pl_settings *ctx, const char *absolute, const pl_node *at, const char *path);

#endif
