/* chem/records/relation.h - values whose relation stands in a field of its own, as in exports of ChEMBL: Standard Relation ">" beside
 * Standard Value "10000" is the limit ">10000".
 *
 * A relation field has a name that ends with "relation" or "qualifier". It belongs to the field whose name has in its place "value" or
 * nothing: "Standard Relation" to "Standard Value", "ic50_relation" to "IC50 (nM)", "relation" to "value". Letter case, blanks, signs and
 * a unit in brackets do not count. Relations may be quoted, as ChEMBL does ('>'). Not thread-safe with one arena. */
#ifndef CH_RELATION_H
#define CH_RELATION_H

#include "chem/records/record.h"

/* ch_record_fields, with the relations put before their values: such a field is the text ">10000" and no number. The relation "=" and an
 * empty one leave the number. */
pl_code ch_record_measured(ch_field **out, int *n_out, const ch_reader *r, const ch_record *rec, pl_arena *mem, pl_error *err);

/* The first field that holds a relation such as ">", where none belongs to `label`: it may be meant for it. NULL: there is none, or
 * label is NULL. */
const ch_field *ch_relation_unclear(const ch_field *fields, int n, const ch_field *label);

enum { CH_RELATION_BYTES = 400 };
/* Why such a field is a problem, and what to do: for messages that name the place. */
void ch_relation_say(char out[CH_RELATION_BYTES], const ch_field *relation, const char *label);

#endif
