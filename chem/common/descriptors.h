/* chem/common/descriptors.h - the molecular descriptors, one line each.
 * SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only (both programs include it)
 *
 * To add one, add a line at the end and a function of that name to chem/worker_program/worker_descriptors.cpp, or compute it in
 * `describe` of chem/worker/worker_client.c from elements, charges and bonds. The rest follows: the worker's answer, the column of results.db and its description, the migration of older databases, the key of `prepare`,
 * `keep`, `where`, objectives, hits.csv, hits.sdf, `export`, `top`, v_hits and the report. The texts that list the
 * descriptors are made again as configs/README.md says.
 *
 *   name     of the column and of the function
 *   kind     REAL, or WHOLE (a count)
 *   unit     NULL: none
 *   heading  of the column in the report's table of hits
 *   title    of the report's histogram
 *   shown    TOP: everywhere; HITS: not by `molsieve top`; FILES: nor in v_hits and the report's table of hits
 *   since    version of results.db that has it first: for a new one st_schema.version + 1 (stages/database/schema.c). The model
 *            baseline "descriptors" is a fit to those of version 1
 *   meaning  for column_doc */
#ifndef CH_DESCRIPTORS_H
#define CH_DESCRIPTORS_H

#define CH_DESCRIPTORS(X)                                                                                                      \
    X(mw, REAL, "u", "MW", "molecular weight", TOP, 1, "molecular weight, average isotopic masses")                            \
    X(logp, REAL, NULL, "log P", "log P", TOP, 1, "octanol-water log P by atom contributions (Wildman and Crippen 1999)")      \
    X(tpsa, REAL, "Angstrom^2", "TPSA", "TPSA", TOP, 1, "topological polar surface area of N and O (Ertl 2000)")               \
    X(hbd, WHOLE, NULL, "HBD", "hydrogen bond donors", TOP, 1,                                                                 \
      "hydrogen bond donors: atoms other than carbon that carry hydrogen")                                                     \
    X(hba, WHOLE, NULL, "HBA", "hydrogen bond acceptors", TOP, 1, "hydrogen bond acceptors by Lipinski's rule: N and O atoms") \
    X(rotb, WHOLE, NULL, "rotatable bonds", "rotatable bonds", HITS, 1, "rotatable bonds")                                     \
    X(rings, WHOLE, NULL, "rings", "rings", FILES, 1, "rings, smallest set of smallest rings")

/* CH_D_mw, CH_D_logp, ...: indices of ch_prepared.descriptor. */
#define CH_DESCRIPTOR_PLACE(name, ...) CH_D_##name,
enum { CH_DESCRIPTORS(CH_DESCRIPTOR_PLACE) CH_N_DESCRIPTORS };

typedef enum ch_shown { CH_SHOWN_FILES, CH_SHOWN_HITS, CH_SHOWN_TOP } ch_shown;

/* The same table as an array (chem/common/descriptors.c; not in the worker). */
typedef struct ch_descriptor {
    const char *name, *unit, *heading, *title;
    ch_shown shown;
    int since;
    int whole; /* 0: REAL */
} ch_descriptor;
#ifndef __cplusplus
extern const ch_descriptor ch_descriptors[CH_N_DESCRIPTORS];
#endif

#endif
