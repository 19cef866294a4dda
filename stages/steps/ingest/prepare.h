/* stages/steps/ingest/prepare.h - the stage `prepare`: records into molecules.
 *
 * Each record goes through a chemistry worker (chem/worker/worker_client.h): fragment, hydrogens,
 * SMILES, InChIKey, descriptors, conformer. The first record of a structure makes
 * the molecule (mol_id = its record_id); later ones are duplicates of it. Numeric
 * data fields become labels, averaged over duplicates in the order of the
 * records. The conformers of a unit are one block of features.db, kind
 * "conformer" (chem/molecule/codec.h), key = this stage's key, unit = molecule.unit.
 *
 * The settings are in prepare_conf.h, the work in prepare.c, what it stores in prepare_store.c. */
#ifndef ST_PREPARE_H
#define ST_PREPARE_H

#include "chem/worker/worker_client.h"
#include "pipeline/store/store.h"
#include "pipeline/workflow/stage.h"
#include "stages/registry/registry.h"
#include "stages/steps/ingest/fingerprints.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/record_block.h"

/* record.reason of a duplicate whose canonical SMILES is not that of its molecule, before the SMILES. */
#define ST_DRAWN_REASON "drawn as "

/* A label of a molecule: mean, sample deviation and number of values; by on_conflict the first
 * value, or that of the latest time, and the root of the mean square distance of the others from it. Always finite. */
typedef struct st_label {
    double value, spread;
    int64_t n;
} st_label;

/* Does prepare.labels take this data field? */
bool st_label_wanted(const st_prepare_conf *c, const char *name);
/* Adds a problem of `step` if it needs a label that prepare will not take. */
void st_label_check(const pl_workflow *wf, const pl_step *step, const char *label, pl_problems *problems);
/* "gap, mu": the labels that molecules have, for messages; "none"; "" without memory. */
const char *st_labels_stored(pl_store *s, pl_arena *mem);

/* Which of several values of this label counts: ST_CONFLICT_... */
int st_label_conflict(const st_prepare_conf *c, const char *name);
/* Adds a value, in the order of the records; {0} is a label without values. */
void st_label_add(st_label *l, double x, int conflict);

/* The result of `work` for a unit, for its commit. */
typedef struct st_prepared_unit {
    pl_block block;
    const st_record *record; /* [n] */
    ch_prepared *result;     /* [n] */
    st_print *print;         /* [n] */
    int32_t n;
} st_prepared_unit;

/* ---- prepare_end.c; main thread, after the last unit ---- */

/* EINPUT with the most frequent reason: no record gave a molecule. */
pl_code st_prepare_fail_empty(const pl_env *env, pl_error *err);
/* Events about labels that were asked for by name and that molecules lack. */
pl_code st_prepare_warn_labels(pl_env *env, pl_error *err);
/* Both, where they hold, and what else is known when all molecules are there: labels that were added, drawings. Of shards `merge` does it. any:
 * there is a molecule. */
pl_code st_prepare_library_end(pl_env *env, bool any, pl_error *err);

/* ---- prepare_store.c; main thread ---- */

typedef struct st_molecules st_molecules; /* statements and known properties */

pl_code st_molecules_open(st_molecules **out, pl_env *env, pl_error *err);
void st_molecules_close(st_molecules *m); /* NULL is fine */
/* All rows of one unit and its block of conformers. */
pl_code st_molecules_put(st_molecules *m, pl_unit *unit, pl_error *err);
int64_t st_molecules_twists(const st_molecules *m); /* duplicates of this run that may be the other form of a hindered biaryl */
/* A warning with the number of molecules that were given in several drawings; "" for none. */
pl_code st_drawings_text(pl_store *s, char text[256], pl_error *err);
pl_code st_axes_text(pl_store *s, char text[256], pl_error *err); /* needs st_shells_open */
pl_code st_drawings_warn(pl_env *env, pl_error *err);             /* as an event of the stage */

#endif
