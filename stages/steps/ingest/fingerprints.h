/* stages/steps/ingest/fingerprints.h - what searches need of a molecule: its fingerprint and its scaffold (table `fingerprint`). */
#ifndef ST_FINGERPRINTS_H
#define ST_FINGERPRINTS_H

#include "chem/fingerprint/fingerprint.h"
#include "chem/worker/worker_client.h"

typedef struct st_print {
    unsigned char bits[CH_FINGERPRINT_BYTES]; /* as models/domain/domain.h stores them */
    const char *scaffold;                     /* canonical SMILES; "": no rings        */
} st_print;

/* out[n] in mem: those of the prepared molecules; zeros for records without one. scratch is reset for each; NULL: mem is used. Any
 * thread. ENOMEM. */
pl_code st_prints_make(st_print **out, const ch_prepared *all, int32_t n, pl_arena *mem, pl_arena *scratch, pl_error *err);

#endif
