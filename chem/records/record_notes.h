/* SPDX-License-Identifier: Apache-2.0 */
/* chem/records/record_notes.h - what a user should be told of a record that is read. */
#ifndef CH_RECORD_NOTES_H
#define CH_RECORD_NOTES_H

#include "chem/records/record.h"

/* CH_NOTE_GROUPS: groups of enhanced stereo (STERACn or STERELn of a V3000 molfile, &n: or on: in the bars behind a SMILES) are not read.
 * What is drawn stands for a racemate, or for one of two forms. CH_NOTE_SHORT: a row of a table with fewer values than there are names. */
enum { CH_NOTE_GROUPS, CH_NOTE_SHORT, CH_NOTES };

/* The notes of a record, as bits: 1u << CH_NOTE_SHORT. */
unsigned ch_record_notes(const ch_record *r);

/* Of each note: what the user is told behind "FILE:LINE: " or "7 records: ". */
extern const char *const ch_note_text[CH_NOTES];

#endif
