/* stages/steps/score/score.h - the stage `score`: predictions of one or several models.
 *
 * Over the units of the graph stage, all models in one pass. The models are
 * those named in `models`, else the one trained in this workflow, else all of
 * the workflow's `models:` section. A molecule with an element that a model has
 * not seen gets no prediction of it and a failure row, and counts as failed when no
 * model predicts it; one without a graph has its failure row from the graph stage. Models of the same property are combined:
 * score.mean, and the sample standard deviation if there are two or more. A
 * prediction does not depend on the batch, the order or the workers. */
#ifndef ST_SCORE_H
#define ST_SCORE_H

#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

/* A property that the score stage, or the stage external, will predict. */
typedef struct st_predicted {
    const char *name, *own; /* own: what it is called beside a label in another unit (stages/steps/train/model_row.h) */
    const char *unit;       /* "": unknown                                                                        */
    const char *better;     /* low, high or none; NULL: of a program, or trained here                             */
    bool domain, interval;  /* its model has training fingerprints; a prediction interval                */
    bool range;             /* its model has a range (models/domain/range.h)                                      */
    bool program;           /* of the stage external: a program of the user's, which has nothing of these         */
} st_predicted;

/* All of this workflow, at most ST_SCORES_MAX. -1 when a model cannot be read (the stage's own check says why). */
int st_score_properties(const pl_workflow *wf, st_predicted *out, pl_arena *mem);

#endif
