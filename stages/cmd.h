/* stages/cmd.h - the commands, one file each: stages/cmd_<name>.c. */
#ifndef ST_CMD_H
#define ST_CMD_H

#include "pipeline/cmd.h"

extern const pl_cmd st_cmd_bench;
extern const pl_cmd st_cmd_check;
extern const pl_cmd st_cmd_completion;
extern const pl_cmd st_cmd_db;
extern const pl_cmd st_cmd_doctor;
extern const pl_cmd st_cmd_explain;
extern const pl_cmd st_cmd_export;
extern const pl_cmd st_cmd_failures;
extern const pl_cmd st_cmd_help;
extern const pl_cmd st_cmd_init;
extern const pl_cmd st_cmd_merge;
extern const pl_cmd st_cmd_model;
extern const pl_cmd st_cmd_plan;
extern const pl_cmd st_cmd_query;
extern const pl_cmd st_cmd_report;
extern const pl_cmd st_cmd_retry;
extern const pl_cmd st_cmd_run;
extern const pl_cmd st_cmd_script;
extern const pl_cmd st_cmd_status;
extern const pl_cmd st_cmd_submit;
extern const pl_cmd st_cmd_top;

/* `db prune`, in its own file because it writes. */
int st_db_prune(const pl_app *app, const pl_args *args);

#endif
