/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "stages/commands/commands.h"
#include "stages/commands/about/doctor.h"
#include "stages/commands/output/cmd_json.h"

static const pl_opt opts[] = { { "--json", 0, NULL, "as JSON" }, { 0 } };

static const char *const health_name[] = { "ok", "note", "bad" };

static void print_people(const st_findings *f)
{
    static const char *const colors[] = { "\033[32m", "\033[33m", "\033[31m" };
    bool color = pl_cmd_color(stdout);

    for (int i = 0; i < f->n; i++) {
        const st_finding *x = &f->list[i];
        pl_cmd_print("%s%-4s%s  %-13s  %s\n", color ? colors[x->health] : "", health_name[x->health], color ? "\033[0m" : "",
                     x->name, x->text != NULL ? x->text : "");
    }
}

static pl_code print_json(const st_findings *f, int n_bad, pl_error *err)
{
    json_t *list = json_array(), *whole;
    pl_code code;

    for (int i = 0; i < f->n; i++)
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:s}", "name", f->list[i].name, "health", health_name[f->list[i].health],
                                              "text", f->list[i].text != NULL ? f->list[i].text : ""));
    whole = json_pack("{s:b, s:o}", "ok", n_bad == 0, "findings", list);
    code = st_json_print(whole, 0, err);
    json_decref(whole);
    return code;
}

static int run(const pl_app *app, const pl_args *args)
{
    st_findings f = { .mem = pl_arena_new(1 << 16) };
    char here[4096];
    const char *folder = ".";
    int n_bad = 0;
    pl_error err = { 0 };
    pl_code code = PL_OK;

    (void)app;
    if (f.mem == NULL)
        return pl_cmd_no_memory();
    st_doctor_machine(&f);
    if (args->n == 0 && getcwd(here, sizeof here) != NULL)
        folder = here;
    st_doctor_disk(&f, args->n > 0 ? args->arg[0] : folder);
    st_doctor_chemistry(&f);
    for (int i = 0; i < f.n; i++)
        n_bad += f.list[i].health == ST_BAD;
    if (pl_arg(args, "--json") != NULL)
        code = print_json(&f, n_bad, &err);
    else
        print_people(&f);
    pl_arena_free(f.mem);
    if (code != PL_OK)
        return pl_cmd_fail(&err);
    return n_bad > 0 ? 1 : 0;
}

const pl_cmd st_cmd_doctor = {
    .name = "doctor",
    .args = "[DIR]",
    .help = "look at this machine: chemistry, disk, locks, limits, processor",
    .about = "DIR is where runs will be written; the current folder by default. Exit status 1\n"
             "if something is bad. Run it once on a cluster node before the first job.\n",
    .opts = opts,
    .max_args = 1,
    .run = run,
};
