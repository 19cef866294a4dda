/* stages/commands/about/completion.h - completion scripts, from the tables of commands and stages. */
#ifndef ST_COMPLETION_H
#define ST_COMPLETION_H

#include "pipeline/cli/cmd.h"

/* shell: "bash", "zsh" or "fish"; false for another. */
bool st_completion_write(const pl_app *app, const char *shell, pl_text *out);

#endif
