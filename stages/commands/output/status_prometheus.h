/* stages/commands/output/status_prometheus.h - what `status --json` says, in the text format of Prometheus (0.0.4). */
#ifndef ST_STATUS_PROMETHEUS_H
#define ST_STATUS_PROMETHEUS_H

#include <jansson.h>

#include "pipeline/base/text.h"

/* How `status` prints. */
typedef enum st_status_form { ST_STATUS_TEXT, ST_STATUS_JSON, ST_STATUS_PROMETHEUS } st_status_form;

/* Appends the metrics of a run by its database, by its heartbeat, or of shards; results: the path, label of each. */
void st_prometheus_add(pl_text *out, const json_t *status, const char *results);

#endif
