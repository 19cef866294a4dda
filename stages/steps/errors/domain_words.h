/* stages/steps/errors/domain_words.h - a summary: how many scores are outside of the domain of their models, and why. */
#ifndef ST_DOMAIN_WORDS_H
#define ST_DOMAIN_WORDS_H

#include <sqlite3.h>

#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

/* One line for each property with scores that are outside or unknown, each with its end: "769 of 773 scores of gap are outside of
 * the domain of the model, without interval: similarity 700, heavy atoms 512\n". hits: of the first `most` of the ranking only. */
pl_code st_domain_words(pl_text *out, sqlite3 *db, bool hits, int64_t max, pl_error *err);

/* Why scores of one property are outside, of the molecules whose mol_id the table `among` lists: ": similarity 3, net charge 1". */
pl_code st_domain_reasons(pl_text *out, sqlite3 *db, int64_t property_id, const char *among, pl_error *err);

#endif
