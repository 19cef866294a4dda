/* SPDX-License-Identifier: Apache-2.0 */

#include "stages/commands/about/completion.h"
#include "stages/commands/commands.h"

static int run(const pl_app *app, const pl_args *args)
{
    pl_text out = { 0 };

    if (!st_completion_write(app, args->arg[0], &out)) {
        pl_text_free(&out);
        return pl_cmd_usage(args, "'%s' is not a shell; allowed: bash, zsh or fish", args->arg[0]);
    }
    const bool whole = pl_text_ok(&out);
    if (whole)
        (void)fputs(pl_text_str(&out), stdout);
    pl_text_free(&out);
    return whole ? 0 : pl_cmd_no_memory();
}

const pl_cmd st_cmd_completion = {
    .name = "completion",
    .args = "bash|zsh|fish",
    .help = "a script that completes commands, options and stages in a shell",
    .about = "  bash:  source <(molsieve completion bash)          # in ~/.bashrc\n"
             "  zsh:   molsieve completion zsh > ~/.zfunc/_molsieve   # a folder of $fpath\n"
             "  fish:  molsieve completion fish > ~/.config/fish/completions/molsieve.fish\n",
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
