/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/registry.h"

#include <stddef.h>

#include "stages/basis.h"
#include "stages/cmd.h"
#include "stages/evaluate.h"
#include "stages/graph.h"
#include "stages/prepare.h"
#include "stages/rank.h"
#include "stages/read.h"
#include "stages/score.h"
#include "stages/split.h"
#include "stages/train.h"
#include "stages/write.h"

const pl_stage *const st_stages[] = {
    &st_read,
    &st_prepare,
    &st_graph,
    &st_basis,
    &st_split,
    &st_train,
    &st_evaluate,
    &st_score,
    &st_rank,
    &st_write,
    NULL
};

const pl_cmd *const st_commands[] = {
    &st_cmd_init,
    &st_cmd_check,
    &st_cmd_plan,
    &st_cmd_run,
    &st_cmd_merge,
    &st_cmd_explain,
    &st_cmd_status,
    &st_cmd_failures,
    &st_cmd_retry,
    &st_cmd_script,
    &st_cmd_submit,
    &st_cmd_top,
    &st_cmd_query,
    &st_cmd_report,
    &st_cmd_export,
    &st_cmd_db,
    &st_cmd_model,
    &st_cmd_bench,
    &st_cmd_doctor,
    &st_cmd_help,
    &st_cmd_completion,
    NULL
};
