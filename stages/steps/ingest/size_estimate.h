/* stages/steps/ingest/size_estimate.h - estimates of numbers of records, molecules and atoms, for `plan`, before anything has run.
 *
 * From the database where it has them; otherwise from the first records of
 * the inputs. Good enough for sizes and durations, not for results. */
#ifndef ST_SIZE_ESTIMATE_H
#define ST_SIZE_ESTIMATE_H

#include "pipeline/store/store.h"
#include "pipeline/workflow/workflow.h"

typedef struct st_sizes {
    double n_records;
    double n, atoms, bonds; /* molecules with a geometry, hydrogens included; sums over them */
    double structures;      /* n or more: some molecules have several                        */
    double flat;            /* share of the records without 3D positions; of the sample only      */
    int64_t n_units;        /* of prepare                                                    */
} st_sizes;

pl_code st_sizes_get(st_sizes *out, const pl_workflow *wf, pl_store *store, pl_error *err); /* store may be NULL */

/* Records per unit, by the work that each takes. Where the native builder works, a sixteenth of the records within limits: enough
 * units for many workers, and structures enough for a GPU. Depends on the inputs and settings alone. */
int64_t st_unit_records(const pl_workflow *wf);

/* The mean number of structures that prepare will make per molecule. */
double st_structures_a_molecule(const pl_workflow *wf);

#endif
