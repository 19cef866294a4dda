/* stages/commands/output/run_words.h - what `run` and `retry` share: options, log lines, the last words. */
#ifndef ST_RUN_WORDS_H
#define ST_RUN_WORDS_H

#include "pipeline/base/log.h"
#include "pipeline/cli/cmd.h"
#include "pipeline/workflow/shard.h"

/* The whole `run` command; `force` overrides --force. Returns the exit status. */
int st_run_command(const pl_app *app, const pl_args *args, const char *command, const char *force);

/* The log: to stderr, and to a file if one is named; lines of text or JSON objects. */
typedef struct st_log {
    FILE *file;
    bool json, tty;
    pl_level max;
} st_log;

/* path: NULL for none. ECONFIG: it is a database, or a file that the run reads; EIO. The log is the program's one sink until
 * closed. */
pl_code st_log_open(st_log *log, const pl_workflow *wf, const char *path, pl_error *err);
void st_log_close(st_log *log);

/* Seconds that may be used: a fixed limit as it is; -1 (auto): what the scheduler leaves, less `warn` (scheduler.warn),
 * for which no more than a quarter is kept; 0: no limit. */
double st_time_left(double limit, double warn);

/* Prints the funnel, where the results are, the top of the ranking, and what to do next.
 * After a run in which no stage ran, nothing is counted, as counting reads whole tables. */
void st_summary_print(const pl_app *app, const pl_workflow *wf, int stages_ran);

/* Prints each model's error on new, test or validation molecules, with that of the best simple prediction. */
void st_model_errors_print(pl_store *s);

/* Prints which component of a model that is a mean to trust, by its evaluation or by the one in its file. */
void st_trust_print(pl_store *s);

/* "left out: rank, write": the stages that no shard does; "no stage was left out". */
const char *st_left_out(const pl_workflow *wf, pl_arena *mem);

#endif
