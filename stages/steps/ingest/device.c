/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/device.h"

#include <string.h>

#include "chem/structures/device.h"
#include "pipeline/base/text.h"

static const pl_field *field_of(const pl_step *step, const char *key)
{
    for (const pl_field *f = step->stage->fields; f != NULL && f->type != PL_END; f++)
        if (strcmp(f->key, key) == 0)
            return f;
    return NULL;
}

/* Whether a step has `engine: word`. Known by its settings, since the stages that compute come later. */
static bool has_engine(const pl_step *step, const char *word)
{
    const pl_field *f = field_of(step, "engine");
    char text[64];

    return f != NULL && strcmp(pl_field_value(f, step->conf, text), word) == 0;
}

/* The first number of `devices: [..]`; 0 where it names none. */
static int32_t first_device(const pl_step *step)
{
    const pl_field *f = field_of(step, "devices");
    const pl_list *list = f != NULL ? (const pl_list *)(const void *)((const char *)step->conf + f->at) : NULL;
    int64_t number = 0;

    if (list == NULL || list->n == 0 || !pl_parse_int(((const char *const *)list->items)[0], &number) || number < 0)
        return 0;
    return (int32_t)number;
}

int32_t st_device_number(const pl_workflow *wf)
{
    for (int k = 0; k < wf->n_steps; k++)
        if (has_engine(&wf->step[k], "cuda") || has_engine(&wf->step[k], "auto"))
            return first_device(&wf->step[k]);
    return 0;
}

void st_device_check(const pl_step *step, pl_problems *problems)
{
    char text[256];
    pl_error err = { 0 };

    if (ch_device_find(0, text, sizeof text, &err) != PL_OK)
        pl_problem_add(problems, pl_node_get(pl_node_get(step->node, "conformers"), "device"),
                       "prepare.conformers.device: %s; set it to cpu to build without", err.text);
}

const char *st_device_level(const char *kernels, pl_arena *mem)
{
    char text[256] = "no GPU";

    (void)ch_device_find(0, text, sizeof text, NULL);
    return pl_sprintf(mem, "%s and cuda (%s)", kernels, text);
}
