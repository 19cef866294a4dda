/* stages/labels/whose.h - which molecule of a database a row of a table means. */
#ifndef ST_WHOSE_H
#define ST_WHOSE_H

#include "chem/records/record.h"
#include "pipeline/store/store.h"

typedef struct st_whose st_whose;

/* A molecule of the database. */
typedef struct st_found {
    int64_t mol_id;       /* 0: none                                                  */
    const char *inchikey; /* its SMILES if it has none                                */
    bool two;             /* another name of the row is of another molecule           */
} st_found;

pl_code st_whose_open(st_whose **out, pl_store *s, pl_arena *mem, pl_error *err);
void st_whose_close(st_whose *w); /* NULL is fine */

/* Finds the molecule by the fields of a row, by its title and, with has_smiles, by its SMILES. None, or a contradiction: *problem (in mem)
 * says it. */
pl_code st_whose_find(st_found *out, const char **problem, st_whose *w, const ch_record *r, const ch_field *field, int n,
                      bool has_smiles, pl_error *err);

#endif
