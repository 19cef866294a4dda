/* pipeline/run/explain_words.h - the settings of a stage key in words; used by plan_steps.c only. */
#ifndef PL_EXPLAIN_WORDS_H
#define PL_EXPLAIN_WORDS_H

#include "pipeline/base/text.h"

/* Adds a line "  WORDS: fragment largest, max_atoms 1000\n" for a JSON object; lists and objects as JSON, hashes with their first 12 digits;
 * nothing for an empty one. */
void pl_explain_words(pl_text *out, const char *words, const char *json);

#endif
