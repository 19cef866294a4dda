/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/positions.h"

#include "chem/worker/worker_client.h"
#include "stages/steps/ingest/prepare_conf.h"

/* Without models the structures are what the workflow is for. */
static bool has_models(const pl_workflow *wf)
{
    return pl_workflow_step(wf, "train") != NULL || pl_workflow_step(wf, "evaluate") != NULL ||
           pl_workflow_step(wf, "score") != NULL || pl_workflow_step(wf, "external") != NULL;
}

bool st_positions_wanted(const pl_workflow *wf)
{
    for (int i = 0; i < wf->n_steps; i++) {
        const pl_step *step = &wf->step[i];
        if (step->stage->wants != NULL && step->stage->wants(wf, step, ST_POSITIONS))
            return true;
    }
    return !has_models(wf);
}

/* Settings that mean nothing without structures. */
static bool asks_for_structures(const pl_step *prepare)
{
    static const char *const names[] = { "source", "builder", "force_field", "count", "window", NULL };
    const pl_node *conformers = pl_node_get(prepare->node, "conformers");

    for (int k = 0; names[k] != NULL; k++)
        if (pl_node_get(conformers, names[k]) != NULL)
            return true;
    return false;
}

bool st_structures_skipped(const pl_workflow *wf)
{
    const pl_step *prepare = pl_workflow_step(wf, "prepare");

    return prepare != NULL && ((const st_prepare_conf *)prepare->conf)->conformer == CH_3D_AUTO && !asks_for_structures(prepare) &&
           !st_positions_wanted(wf);
}
