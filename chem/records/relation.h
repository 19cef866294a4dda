/* chem/records/relation.h - values whose relation, unit or kind stands in a field of its own, as in exports of ChEMBL: Standard Relation
 * ">" beside Standard Value "10000" is the limit ">10000", Standard Units says of what, and Standard Type what was measured (IC50, Ki).
 *
 * A relation field has a name that ends with "relation" or "qualifier", or with "operator", "modifier" or "comparator" and a sign for its
 * text. It belongs to the field whose name has in its place "value" or nothing: "Standard Relation" to "Standard Value", "ic50_relation"
 * to "IC50 (nM)", "relation" to "value". Letter case, blanks and signs do not count. A unit in brackets may be in both names or in that of
 * the value alone: "IC50 (nM) relation" and "IC50 relation" belong to "IC50 (nM)", and the first not to "IC50 (uM)". Relations may be
 * quoted, as ChEMBL does ('>'). Not thread-safe with one arena.
 *
 * A field of units has a name that ends with "unit" or "units", and belongs to a value in the same way; of several the one that has more
 * of the value's name counts. One that is called "units" or "Standard Units" and belongs to no field of the record may be meant for any. If
 * there is none, the name of the label, or the first field of any name whose text is a concentration, says it. The same holds of a field of
 * kinds, whose name ends with "type": letter case, blanks and signs do not count in its text, and one that is called "type" or "Assay Type"
 * is not meant for any. If there is none, the first field whose text is a kind ("IC50", "Ki", "LD50", "logD") is meant, whatever its name
 * is. */
#ifndef CH_RELATION_H
#define CH_RELATION_H

#include "chem/records/record.h"
#include "chem/records/unit_names.h"

/* ch_record_fields, with the relations put before their values: such a field is the text ">10000" and no number. The relation "=" and an
 * empty one leave the number. */
pl_code ch_record_measured(ch_field **out, int *n_out, const ch_reader *r, const ch_record *rec, pl_arena *mem, pl_error *err);

/* The first field that holds a relation such as ">", where none belongs to `label`: it may be meant for it. A field of any name may be one
 * whose text is a sign alone. NULL: there is none, or label is NULL. */
const ch_field *ch_relation_unclear(const ch_field *fields, int n, const ch_field *label);

enum { CH_RELATION_BYTES = 400 };
/* Why such a field is a problem, and what to do: for messages that name the place. */
void ch_relation_say(char out[CH_RELATION_BYTES], const ch_field *relation, const char *label);

/* Whether a field of that name says that `label` beside it has predictions: "pIC50_similarity" of pIC50, as `predict`, `next`, `top` and
 * `export` write it. */
bool ch_is_of_prediction(const char *name, const char *label);

/* The field that says, or may say, in which unit `label` is, with the unit as it is compared: without quotes and blanks, "um" for the
 * Greek letter before M. NULL: there is none, or it is empty, a number or longer; or label is NULL. */
const ch_field *ch_unit_of(char unit[CH_UNIT_BYTES], const ch_field *fields, int n, const ch_field *label);
/* The same of a column that a model reads beside a label, such as a temperature: only of a field of units that belongs to it by its name,
 * or of its own name, since any other says the unit of the label. */
const ch_field *ch_unit_own(char unit[CH_UNIT_BYTES], const ch_field *fields, int n, const ch_field *column);
/* A unit in brackets in a name, such as a concentration, an energy, a temperature or %, or a concentration behind its last _ or blank: "uM"
 * of "IC50 (uM)" and "IC50_uM", "kJ/mol" of "dG (kJ/mol)". false: "". */
bool ch_unit_in_name(char unit[CH_UNIT_BYTES], const char *name);
/* Whether a unit that ch_unit_of gave by the field `by` contradicts `wanted`. Two known units contradict
 * each other if they are not one ("uM" and "umol/L" are); of others every text does, if the field is one of units by its name. ""
 * contradicts nothing. */
bool ch_unit_differs(const char *unit, const char *wanted, const char *by, const char *label);

/* Whether two texts, each of which says a unit, contradict each other: "uM" and "umol/L" do not. "" contradicts nothing. */
bool ch_units_contradict(const char *a, const char *b);

/* Whether two texts are two kinds of measurement: letter case, blanks and signs do not count. "" contradicts nothing. */
bool ch_type_differs(const char *a, const char *b);
/* "pIC50", "logS": the unit beside such a label is that of what the logarithm was taken of. */
bool ch_is_logarithm(const char *label);

/* What the fields of one column say, from record to record. Zeroed before the first. */
typedef struct ch_said {
    char first[CH_UNIT_BYTES], other[CH_UNIT_BYTES]; /* other: one that differs from the first; "": none */
    char name[CH_UNIT_BYTES];                        /* of the field                                     */
    int64_t line, other_line;                        /* where they are                                   */
} ch_said;

/* The units and the kinds of a column. Zeroed before the first record. */
typedef struct ch_units {
    ch_said unit, type;
} ch_units;

/* Adds those of `label` in a record that begins at `line`; returns whether one differs from the first. */
bool ch_units_add(ch_units *u, const ch_field *fields, int n, const ch_field *label, int64_t line);

/* The units of such a column, as ch_unit_own finds them, and its kinds, in the same way. */
void ch_units_add_own(ch_units *u, const ch_field *fields, int n, const ch_field *column, int64_t line);

/* Whether two rows differ. */
bool ch_units_differ(const ch_units *u);

/* What is wrong with them: several, or another unit than `wanted` ("": any), and which of the two it is; NULL: nothing. For messages that
 * name the file. */
const ch_said *ch_units_say(char out[CH_RELATION_BYTES], const ch_units *u, const char *label, const char *wanted);

#endif
