/* stages/explain/subject.h - a molecule as models read it, to say what moved a prediction of it.
 *
 * Everything lives in one arena. */
#ifndef ST_SUBJECT_H
#define ST_SUBJECT_H

#include <sqlite3.h>

#include "chem/worker/worker_client.h"
#include "models/family/table.h"
#include "models/files/model_file.h"
#include "stages/explain/occlude.h"
#include "stages/steps/ingest/conformers.h"

typedef struct st_subject {
    const char *smiles; /* as results.db has it: of the prepared molecule; borrowed */
    ch_mol mol;
    ch_graph graph; /* atoms in the order of the SMILES, hydrogens last, as in its drawing */
    ch_fingerprint print;
    nn_table x; /* one row */
    ch_circle *circle;
    int32_t n_circles;
    ch_mol *structure; /* [n_structures] as stored, their atoms in their own order; 0: none are known */
    int32_t n_structures;
    int32_t *place; /* [structures' atoms] the atom of `mol`; -1: a hydrogen */
} st_subject;

pl_code st_subject_make(st_subject *out, ch_worker *w, const char *smiles, pl_arena *mem, pl_error *err);

/* Gives s->x the columns of the user's table that the model reads, as results.db has them for the molecule. EDATA: one is not there. */
pl_code st_subject_columns(st_subject *s, const nn_model_file *m, sqlite3 *db, int64_t mol_id, pl_arena *mem, pl_error *err);

/* Where stored structures are found: opens the features.db of results. *c stays zeroed, and nothing is wrong, where there is none. */
pl_code st_subject_stored(st_conformers *c, pl_store *store, pl_arena *mem, pl_error *err);

/* Gives s the structures that the network was shown; n_structures stays 0 where they are not stored. c: of st_subject_stored. EINPUT: they
 * are of another molecule. */
pl_code st_subject_structures(st_subject *s, st_conformers *c, int64_t mol_id, pl_arena *mem, pl_error *err);

/* What moved the prediction of one component for one target, in the target's unit, of classes log odds or probability:
 * value = base + absent + sum of feature + sum of atom + sum of column. */
typedef struct st_moves {
    bool log_odds;
    bool
        one_by_one; /* of a network: `atom` is what the prediction loses without the atom (stages/explain/occlude.h); nothing adds up */
    double value, base, absent;
    const double *feature, *column; /* [CH_N_FEATURES], [x.n_columns] */
    const double *atom; /* [graph.n_nodes] each environment's part in equal shares on the heavy atoms that it consists of */
} st_moves;

/* Whether a property of results.db is what target `target` of the model predicts: it has its name, or, beside a label of another unit, its
 * name and unit. */
bool st_predicts(const nn_model_file *m, int32_t target, const char *property);

/* member: of m->members, whose kind can explain. The linear part of the target is in base. */
pl_code st_moves_of(st_moves *out, const st_subject *s, const nn_model_file *m, int32_t member, int32_t target, pl_arena *mem,
                    pl_error *err);

/* The same of the network, from what st_occlude says of all structures of s. */
pl_code st_moves_of_network(st_moves *out, const st_subject *s, const st_occlusion *by, int32_t target, pl_arena *mem,
                            pl_error *err);

#endif
