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
    const pl_workflow *wf;
    const char *label, *unit; /* label NULL: nothing is learned */
    pl_problems *problems, *advice;
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

/* The property that is meant, with its unit. A table without a unit is taken as one in that of the target, too; here somebody could say. */
static void unit_look(const looking *x, const char *name, const char *unit)
{
    if (unit[0] != '\0' && x->unit[0] != '\0' && strcmp(unit, x->unit) != 0)
        pl_problem_add(
            x->problems, x->node,
            "acquire: answers.workflow scores %s in %s, and %s is learned in %s; set answers.unit, or the unit of the target", name,
            unit, x->label, x->unit);
    if (unit[0] == '\0' && x->unit[0] != '\0' && x->c->answers.unit == NULL && x->advice != NULL)
        pl_problem_add(
            x->advice, x->node,
            "acquire: answers.workflow does not say in which unit it scores %s: its values are learned as %s in %s; say it "
            "there, or with answers.unit",
            name, x->label, x->unit);
}

/* A goal that is written down for this campaign is meant. */
static void better_look(const looking *x, const char *name)
{
    const char *own = st_external_better(x->answers, name), *wanted = st_campaign_better(x->wf, x->label);

    if (x->c->goal == ST_GOAL_AUTO && own != NULL && strcmp(own, "none") != 0 && strcmp(wanted, "none") != 0 &&
        strcmp(own, wanted) != 0)
        pl_problem_add(
            x->problems, x->node,
            "acquire: answers.workflow says that %s values of %s are better, and the target %s that %s ones are; set better "
            "in one of them, or acquire.goal",
            own, name, x->label, wanted);
}

static void answer_look(const looking *x, const st_predicted *p)
{
    if (x->label == NULL)
        return;
    unit_look(x, p->name, p->unit);
    better_look(x, p->name);
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
        if (asked != NULL && strcmp(predicted[k].name, asked) == 0) {
            answer_look(x, &predicted[k]);
            return;
        }
        if (!twice)
            name[n_names++] = predicted[k].name;
    }
    if (n == 0)
        pl_problem_add(x->problems, x->node, "acquire: answers.workflow scores nothing; it needs the stage external or score");
    else if (n > 0 && asked != NULL)
        pl_unknown_name(x->problems, x->node, "acquire: answers.property: not scored by answers.workflow", asked, name, n_names);
    else if (n_names > 1)
        pl_problem_add(x->problems, x->node, "acquire: answers.workflow scores several properties; name one with answers.property");
    else if (n_names == 1)
        answer_look(x, &predicted[0]);
}

void st_campaign_answers_check(const pl_workflow *wf, const pl_stage *const *known, pl_problems *problems, pl_problems *advice,
                               pl_arena *mem)
{
    const st_acquire_conf *c = st_acquire_conf_of(wf);
    const pl_step *step = pl_workflow_step(wf, "acquire");
    looking x = { .wf = wf, .c = c, .problems = problems, .advice = advice, .mem = mem };
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
    if (x.answers != NULL)
        property_look(&x);
    (void)unlink(path);
}
