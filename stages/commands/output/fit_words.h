/* stages/commands/output/fit_words.h - what `fit` says of the table before the training, and of the errors after it. */
#ifndef ST_FIT_WORDS_H
#define ST_FIT_WORDS_H

#include "pipeline/cli/cmd.h"
#include "stages/fit/fit_table.h"

void st_fit_table_print(const st_fit_table *t, bool classes, bool network, const char *workflow);

/* A table of the errors on held-out molecules: the model, its components, simple predictions; and which is better. */
void st_fit_errors_print(const pl_app *app, const char *results, bool classes);

#endif
