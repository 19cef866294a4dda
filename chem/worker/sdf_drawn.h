/* SPDX-License-Identifier: Apache-2.0 */
/* chem/worker/sdf_drawn.h - an SDF record of any molecule: its structure or, if it has none, its drawing. */
#ifndef CH_SDF_DRAWN_H
#define CH_SDF_DRAWN_H

#include "chem/molecule/sdf_write.h"
#include "chem/worker/worker_client.h"

/* Appends ch_sdf_write of a molecule with positions, or without atoms. Any other is drawn from `smiles`: in the plane, with wedges, without
 * the hydrogens that are not written in a SMILES. If it cannot be drawn, all its positions are 0. Where the stereo is not shown, the last
 * field is `drawing`, with the text CH_NO_STEREO. A worker is opened in *chem if that is NULL and something is to be drawn. ESTOP, ENOMEM;
 * ECONFIG, EIO: the worker cannot work. */
pl_code ch_sdf_write_drawn(pl_text *out, ch_worker **chem, const ch_mol *mol, const char *smiles, const char *title,
                           const ch_sdf_field *fields, int n_fields, pl_error *err);

#endif
