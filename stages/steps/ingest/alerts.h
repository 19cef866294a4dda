/* stages/steps/ingest/alerts.h - the rules of prepare.alerts.
 *
 * A line of a rule file, and an inline rule, is a SMARTS, white space and a name:
 * printable ASCII, no comma, quote or backslash in the name. Lines that begin with #
 * and text after " #" are comments. Several rules may have the same name. The chemistry
 * worker decides which of them a molecule matches (chem/worker_program/worker_alerts.cpp). */
#ifndef ST_ALERTS_H
#define ST_ALERTS_H

#include <sqlite3.h>

#include "pipeline/workflow/yaml.h"
#include "stages/steps/ingest/prepare_conf.h"

enum { ST_RULES_MAX = 2000, ST_SMARTS_MAX = 1000, ST_ALERT_MAX = 100 /* bytes of a name */, ST_RULES_BYTES = 256 << 10 };

#define ST_ALERTS_REASON "alerts: " /* record.reason begins with it, then the names */

typedef struct st_alerts {
    const char *text; /* for ch_prepare_opts.rules: without comments; NULL: no rules */
    pl_node *at;      /* [n] where each SMARTS stands: origin, line and column */
    int32_t n;
} st_alerts;

/* Whether there is a file or an inline rule. */
bool st_alerts_wanted(const st_prepare_conf *c);

/* Reads the rules of the file, then the inline ones. Every fault in them is added as a problem with its place.
 * step is `prepare`; memory: mem. */
void st_alerts_read(st_alerts *out, const pl_step *step, pl_problems *problems, pl_arena *mem);

/* Checks the rules with Open Babel: each one that is no valid SMARTS is added as a problem. Starts a chemistry worker. */
void st_alerts_check(const st_alerts *a, const pl_step *step, pl_problems *problems, pl_arena *mem);

/* Whether the molecules of a database have been searched for alerts. */
pl_code st_alerts_there(sqlite3 *db, bool *yes, pl_error *err);

#endif
