/* stages/steps/ingest/prefilter.h - prepare.keep: an SQL expression over properties of a molecule that are known before its structure is built.
 *
 * inchikey, smiles, formula, n_heavy, charge, the descriptors, removed, neutralised, undefined_stereo, as in the table
 * `molecule`. Evaluated in a database without tables, in memory; one st_prefilter per thread. */
#ifndef ST_PREFILTER_H
#define ST_PREFILTER_H

#include "chem/worker/worker_client.h"

typedef struct st_prefilter st_prefilter;

/* ECONFIG says what is wrong with the expression, and *at (or NULL) at which byte. */
pl_code st_prefilter_open(st_prefilter **out, const char *expression, size_t *at, pl_error *err);
void st_prefilter_close(st_prefilter *k); /* NULL is fine */

/* *yes: it is true; not when it is false or NULL. EINPUT where it cannot be computed, as with sums that overflow. */
pl_code st_prefilter_ask(st_prefilter *k, const ch_prepared *p, bool *yes, pl_error *err);

#endif
