/* stages/explain/subject.h - a molecule as models read it, to say what moved a prediction of it.
 *
 * Everything lives in one arena. */
#ifndef ST_SUBJECT_H
#define ST_SUBJECT_H

#include <sqlite3.h>

#include "chem/worker/worker_client.h"
#include "models/family/table.h"
#include "models/files/model_file.h"

typedef struct st_subject {
    const char *smiles; /* as results.db has it: of the prepared molecule; borrowed */
    ch_mol mol;
    ch_graph graph; /* atoms in the order of the SMILES, hydrogens last, as in its drawing */
    ch_fingerprint print;
    nn_table x; /* one row */
    ch_circle *circle;
    int32_t n_circles;
} st_subject;

pl_code st_subject_make(st_subject *out, ch_worker *w, const char *smiles, pl_arena *mem, pl_error *err);

/* Gives s->x the columns of the user's table that the model reads, as results.db has them for the molecule. EDATA: one is not there. */
pl_code st_subject_columns(st_subject *s, const nn_model_file *m, sqlite3 *db, int64_t mol_id, pl_arena *mem, pl_error *err);

/* What moved the prediction of one component for one target, in the target's unit, of classes log odds or probability:
 * value = base + absent + sum of feature + sum of atom + sum of column. */
typedef struct st_moves {
    bool log_odds;
    double value, base, absent;
    const double *feature, *column; /* [CH_N_FEATURES], [x.n_columns] */
    const double *atom; /* [graph.n_nodes] each environment's part in equal shares on the heavy atoms that it consists of */
} st_moves;

/* member: of m->members, whose kind can explain. The linear part of the target is in base. */
pl_code st_moves_of(st_moves *out, const st_subject *s, const nn_model_file *m, int32_t member, int32_t target, pl_arena *mem,
                    pl_error *err);

#endif
