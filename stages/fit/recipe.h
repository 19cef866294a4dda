/* stages/fit/recipe.h - the workflow of `molsieve fit`: written for a table, kept beside the model, open to edits. */
#ifndef ST_RECIPE_H
#define ST_RECIPE_H

#include "stages/fit/fit_table.h"

typedef struct st_recipe_ask {
    const char *model;                  /* name of the model and its file, without ending */
    const char *unit, *better, *family; /* NULL: none, none, auto                         */
    const char *engine;                 /* NULL: cpu                                      */
    const char *inputs;                 /* columns that the model reads, with commas between; NULL: none */
    const char *split;                  /* random, scaffold, deterministic or balanced    */
    bool classes;
    int64_t seed;
} st_recipe_ask;

/* Whether the training takes a network, and so 3D structures: by the family, for `auto` by the number of molecules. */
bool st_recipe_has_network(const st_fit_table *t, const st_recipe_ask *ask);

/* Of the network, if there is one. */
int st_recipe_epochs(const st_fit_table *t);

/* The text of the workflow, whose first line has a checksum of the rest. */
void st_recipe_write(pl_text *out, const st_fit_table *t, const st_recipe_ask *ask);

/* Whether the text is as st_recipe_write made one, for any table; false: someone has edited it, or it is something else. */
bool st_recipe_is_own(const char *text, size_t n);

/* Whether a text that is its own learns this target, and whether it reads this table (st_fit_table.path). ENOMEM. */
pl_code st_recipe_learns(bool *yes, const char *text, size_t n, const char *target, pl_error *err);
pl_code st_recipe_reads(bool *yes, const char *text, size_t n, const char *table, pl_error *err);

#endif
