/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/model_join.h"

#include <string.h>

#include "models/files/join.h"
#include "stages/files/out_file.h"

static const char ending[] = ".safetensors";

/* "homo" of "models/homo.safetensors", if that can be a name; else the name of the first model. */
static const char *name_of(const char *path, const char *first, pl_arena *mem)
{
    const char *slash = strrchr(path, '/'), *file = slash != NULL ? slash + 1 : path, *name;
    size_t n = strlen(file);

    if (pl_ends_with(file, ending) && n > strlen(ending))
        n -= strlen(ending);
    name = pl_strndup(mem, file, n);
    return name != NULL && nn_model_name_fits(name) ? name : first;
}

static pl_code output_check(const pl_args *args, pl_error *err)
{
    const char *output = pl_arg(args, "--output");
    pl_code code = output != NULL ? st_out_guard(output, err) : pl_fail(err, PL_ECONFIG, "--output FILE is missing");

    for (int k = 1; k < args->n && code == PL_OK; k++)
        code = st_out_check(output, args->arg[k], err);
    return code;
}

static pl_code join(nn_model_file *out, const pl_args *args, pl_arena *mem, pl_error *err)
{
    nn_model_file *m[NN_NETWORKS_MAX];
    const int n = args->n - 1;
    pl_code code = output_check(args, err);

    if (code == PL_OK && n > NN_NETWORKS_MAX)
        code = pl_fail(err, PL_ECONFIG, "at most %d networks can be joined", (int)NN_NETWORKS_MAX);
    for (int k = 0; k < n && code == PL_OK; k++)
        code = nn_model_read(&m[k], args->arg[k + 1], mem, err);
    if (code == PL_OK)
        code = nn_model_join(out, m, n, mem, err);
    if (code != PL_OK)
        return code;
    out->name = name_of(pl_arg(args, "--output"), out->name, mem);
    return nn_model_write(out, pl_arg(args, "--output"), err);
}

static bool has_interval(const nn_model_file *m)
{
    for (int32_t k = 0; k < m->conf.outputs; k++)
        if (m->target[k].interval.n > 0)
            return true;
    return false;
}

int st_model_join(const pl_args *args, pl_arena *mem)
{
    nn_model_file m;
    pl_error err = { 0 };

    if (join(&m, args, mem, &err) != PL_OK)
        return pl_cmd_fail(&err);
    pl_cmd_print("%s: the mean of %d networks of %zu parameters\n", pl_arg(args, "--output"), (int)nn_model_networks(&m),
                 m.model->n_floats);
    if (has_interval(&m))
        pl_cmd_print("Its intervals are the widest of theirs; the stage `evaluate` with calibrate: true makes its own\n");
    return 0;
}
