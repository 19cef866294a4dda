/* stages/steps/score/evaluate.h - the stage `evaluate`: how good the trained model is, and
 * how good simple predictions would be.
 *
 * For each part MAE, RMSE, R2 and Spearman's rho of the model file as stored (of a class ROC-AUC and what
 * else models/metrics/enrichment.h has, log loss and Brier score), and of four simple predictions from the training
 * molecules: their mean, least squares on element counts ("composition") and on the first seven
 * descriptors ("descriptors"), and the mean of the five nearest molecules ("neighbours",
 * stages/steps/dataset/neighbours.h). Table `evaluation`; metrics of the simple ones are called "mean.mae" and so on.
 * Each molecule's measured and predicted value: table `evaluated`. */
#ifndef ST_EVALUATE_H
#define ST_EVALUATE_H

#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"

#endif
