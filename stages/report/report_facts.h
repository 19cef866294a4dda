/* stages/report/report_facts.h - what a model is, for the report: from the metadata of its file (nn_model_metadata). */
#ifndef ST_REPORT_FACTS_H
#define ST_REPORT_FACTS_H

#include <jansson.h>

#include "stages/report/report_parts.h"

/* The text under a key; "" where there is none. */
const char *st_meta_word(const json_t *o, const char *key);
bool st_meta_is_class(const json_t *metadata); /* whether the model predicts classes */

/* Rows of a table: what it predicts, with which components, and what it learned from. */
void st_report_facts(st_report *r, const json_t *metadata, const char *sha256);
/* Its whole provenance, folded. */
void st_report_recipe(st_report *r, const json_t *metadata);

#endif
