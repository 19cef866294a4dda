/* SPDX-License-Identifier: Apache-2.0 */
/* What can be wrong with the workflow of answers, before the library is prepared for it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/text.h"
#include "pipeline/workflow/settings.h"
#include "stages/campaign/campaign.h"
#include "stages/steps/external/external.h"
#include "stages/steps/score/score.h"
#include "stages/steps/train/train_conf.h"

typedef struct looking {
    const st_acquire_conf *c;
    const pl_workflow *answers;
    const pl_node *node; /* acquire: {answers: {workflow: ..}} */
    const char *label, *unit;
    pl_problems *problems;
    pl_arena *mem;
} looking;

/* A file of molecules in the place of those of a round: they are not known yet. */
static bool stand_in(char *path)
{
    static const char text[] = "C\tmethane\n";
    const int fd = mkstemp(path);
    const bool good = fd >= 0 && write(fd, text, sizeof text - 1) == (ssize_t)sizeof text - 1;

    if (fd >= 0)
        (void)close(fd);
    if (fd >= 0 && !good)
        (void)unlink(path);
    return good;
}

static void unit_look(const looking *x)
{
    const char *name = NULL, *unit = NULL;

    if (!st_external_property(x->answers, &name, &unit) ||
        (x->c->answers.property != NULL && strcmp(name, x->c->answers.property) != 0))
        return;
    if (unit[0] != '\0' && x->unit[0] != '\0' && strcmp(unit, x->unit) != 0)
        pl_problem_add(
            x->problems, x->node,
            "acquire: answers.workflow scores %s in %s, and %s is learned in %s; set answers.unit, or the unit of the target", name,
            unit, x->label, x->unit);
}

static void property_look(const looking *x)
{
    st_predicted predicted[ST_SCORES_MAX];
    const char *asked = x->c->answers.property, *name[ST_SCORES_MAX];
    const int n = st_score_properties(x->answers, predicted, x->mem);
    int n_names = 0;

    for (int k = 0; k < n; k++) {
        bool twice = false;
        for (int i = 0; i < n_names; i++)
            twice = twice || strcmp(name[i], predicted[k].name) == 0;
        if (asked != NULL && strcmp(predicted[k].name, asked) == 0)
            return;
        if (!twice)
            name[n_names++] = predicted[k].name;
    }
    if (n == 0)
        pl_problem_add(x->problems, x->node, "acquire: answers.workflow scores nothing; it needs the stage external or score");
    else if (n > 0 && asked != NULL)
        pl_unknown_name(x->problems, x->node, "acquire: answers.property: not scored by answers.workflow", asked, name, n_names);
    else if (n_names > 1)
        pl_problem_add(x->problems, x->node, "acquire: answers.workflow scores several properties; name one with answers.property");
}

void st_campaign_answers_check(const pl_workflow *wf, const pl_stage *const *known, pl_problems *problems, pl_arena *mem)
{
    const st_acquire_conf *c = st_acquire_conf_of(wf);
    const pl_step *step = pl_workflow_step(wf, "acquire");
    looking x = { .c = c, .problems = problems, .mem = mem };
    const char *tmp = st_tmp_dir();
    char *path, *inputs;

    if (c == NULL || c->answers.workflow == NULL)
        return;
    path = pl_sprintf(mem, "%s/molsieve-XXXXXX", tmp);
    if (path == NULL) {
        pl_problem_refused(problems, step->node, NULL);
        return;
    }
    if (!stand_in(path)) {
        pl_problem_add(problems, step->node,
                       "acquire: answers.workflow cannot be checked: no file can be made in %s; set TMPDIR to another folder", tmp);
        return;
    }
    x.node = pl_node_get(pl_node_get(step->node, "answers"), "workflow");
    x.node = x.node != NULL ? x.node : step->node;
    x.label = st_acquire_label(wf, c);
    x.unit = x.label != NULL ? st_acquire_unit(wf, c) : "";
    inputs = pl_sprintf(mem, "inputs=[{path: \"%s\", format: smi}]", path);
    x.answers = inputs != NULL ? pl_workflow_load(c->answers.workflow, &inputs, 1, known, problems, mem) : NULL;
    if (x.answers != NULL) {
        property_look(&x);
        unit_look(&x);
    }
    (void)unlink(path);
}
