/* chem/records/record.h - molecule files as a stream of records.
 *
 * molsieve splits files into records itself: a broken record then costs only itself,
 * and the number of records does not depend on a chemistry library.
 * Input is plain or gzip (recognised by the first bytes, concatenated members
 * included); memory is bounded by max_record_bytes for any input.
 *
 * What a record is, by format
 *   smi            a line; blank lines and lines that begin with '#' are not records
 *   inchi          a line that begins with "InChI="; all others are comments
 *   sdf mol mdl    up to and including the line $$$$; what follows the last
 *                  $$$$ is a record unless it is all blank. One with several M  END
 *                  before its data, or with more lines than its V2000 counts
 *                  announce, has a problem: readers would silently return a part of it
 *   mol2           from @<TRIPOS>MOLECULE to the next; comments before the first are skipped.
 *                  One with more atoms or bonds than it announces has a problem
 *   cif mmcif      from data_NAME to the next; comments before the first are skipped
 *   xyz            a count line, a comment line, count atom lines. After a
 *                  damaged record the reader continues at the next line that is
 *                  a single whole number. Columns after the position are dropped.
 *                  Of QM9's original files (comment "gdb N ...") only the atoms are
 *                  parsed; the lines after them belong to the same record
 *   pdb            MODEL ... ENDMDL if the file has MODEL lines, else up to END or to a
 *                  HEADER, TITLE or COMPND after atoms, else the whole file
 *   csv tsv        a row (quotes may span lines); the first row names the columns.
 *                  A row with values beyond the last column, or with text behind a closing
 *                  quote, has a problem. A line such as sep=; may be before the names
 *   anything else  the whole file is given to the chemistry worker, which lists
 *                  its molecules (opts.lister); each comes back as a record of
 *                  format sdf. A file that it cannot list is one record with a problem. If it
 *                  stops at something that it cannot read, the rest of the file is one such record
 *
 * A record that is recognised as bad here (too long, empty, truncated gzip) has
 * `problem` set and must not be parsed; other records may still fail in parsing.
 * "*^" exponents (Mathematica's) in xyz records are rewritten to "e".
 *
 * Numbers: ordinal is 1-based and counts every record, also bad ones. offset is
 * in the uncompressed bytes. Not thread-safe; one reader per thread. */
#ifndef CH_RECORD_H
#define CH_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

struct ch_worker;

typedef struct ch_reader ch_reader;

typedef struct ch_reader_opts {
    const char *title_from; /* SDF data field with the title; NULL: the first line         */
    const char
        *smiles_column; /* csv: name, or number from 1; NULL: "smiles" in any case, else the only one with it in its name, else 1 */
    const char *title_column; /* csv: name, or number from 1; NULL: id, name, title..., else none */
    size_t max_record_bytes;  /* 0: 1 MiB                                                     */
    size_t max_file_bytes;    /* 0: 64 MiB; for formats that only the worker can list         */
    bool hash;                /* compute the hash for ch_reader_hash                          */
    struct ch_worker *lister; /* borrowed; NULL: files of such formats are one failed record  */
    const atomic_int *stop;   /* borrowed; NULL, or: non-zero ends reading with ESTOP         */
    bool smiles_later;        /* csv: the caller needs no SMILES, or finds their column itself and asks ch_reader_headed */
    bool whole_lines;         /* the last record has a problem if a pipe or a terminal ended within its last line */
} ch_reader_opts;

typedef struct ch_record {
    const char *text; /* what to parse; ends with NUL, may contain NULs       */
    size_t len;
    const char *format; /* format to parse it as: "smi", "sdf", "mol2", "xyz", "pdb", "cif" */
    const char *raw;    /* the bytes in the file; equal to text for most formats */
    size_t raw_len;
    int64_t ordinal;     /* 1, 2, ...                                             */
    int64_t offset;      /* of the first byte, uncompressed                      */
    int64_t line;        /* of the first line, from 1                            */
    const char *title;   /* valid UTF-8, no control characters (pl_text_add_clean); may be empty */
    const char *problem; /* NULL, or why it is unusable: "record too long: ..."  */
    bool no_smiles;      /* the problem is this alone: the other columns of the row are good */
    bool is_short;       /* a row of a table with fewer values than names               */
} ch_record;             /* borrowed from the reader until its next call */

typedef struct ch_field {
    const char *name; /* "gap", "IC50 (nM)"; cleaned like a title        */
    const char *text; /* trimmed                                         */
    double value;     /* valid if is_number                              */
    bool is_number;   /* "*^" exponents are accepted, inf and nan are not */
} ch_field;

/* format: one of the names above or any format that Open Babel reads; NULL: recognised by the
 * file name's ending (without .gz), else by the first bytes.
 * EIO: cannot be opened. ECONFIG: a column does not exist, two may be meant, or the row of names has bad quotes. */
pl_code ch_reader_open(ch_reader **out, const char *path, const char *format, const ch_reader_opts *opts, pl_error *err);
void ch_reader_close(ch_reader *r); /* NULL is fine */

/* Whether molsieve itself splits this format. Accepts every name of it, in any letter case. */
bool ch_format_is_ours(const char *name);

const char *ch_reader_format(const ch_reader *r); /* "smi" ... or the worker's name for it */
/* csv: the names of the columns; *n 0 for other formats. Borrowed. */
const char *const *ch_reader_columns(const ch_reader *r, int *n);
int ch_reader_smiles(const ch_reader *r); /* csv: the column with SMILES, from 0; -1 for other formats */
/* csv: the name of the first column, if it is used as SMILES because no column is called "smiles"; else NULL. */
const char *ch_reader_guessed(const ch_reader *r);
/* csv: ECONFIG if the column with SMILES has a molecule for a name: then the first row is a molecule, which would be lost. Opening a table
 * without a column called "smiles" asks this of the first column. ENOMEM. */
pl_code ch_reader_headed(const ch_reader *r, const char *column, pl_error *err);
int64_t ch_reader_count(const ch_reader *r); /* records in the file if its header says so (qm9bin), else -1 */
int64_t ch_reader_atoms(const ch_reader *r); /* the same of atoms, over all records */

/* *more = false at the end of the file: then out is not filled. A gzip file that is truncated, damaged
 * or followed by other data ends with one record that has a problem: the record that may be cut short,
 * or an extra one. ECONFIG: a table has another row of names. */
pl_code ch_reader_next(ch_reader *r, ch_record *out, bool *more, pl_error *err);
/* What is wrong with the gzip file, once its last record was returned: "damaged gzip: ...", valid until r is closed; else NULL. */
const char *ch_reader_damage(const ch_reader *r);

/* With opts.hash: SHA-256 of the file's own bytes, as this reader received them, up to where it has read. With at_end, after the
 * last record, the rest of the file is read too, so that the hash is that of the whole file from which the records came.
 * *n: number of bytes hashed. */
pl_code ch_reader_hash(ch_reader *r, bool at_end, int64_t *n, char out[65], pl_error *err);

/* Goes to a record, given the three numbers that an earlier pass over the same file gave for it. The next record has
 * this ordinal. The file is decompressed, and with opts.hash read, up to there. */
pl_code ch_reader_seek(ch_reader *r, int64_t offset, int64_t ordinal, int64_t line, pl_error *err);

/* Data fields of the record that this reader returned last: SDF "> <NAME>" items, extended
 * XYZ key=value, the second line of an original QM9 file (gdb, A, B, C, mu,
 * alpha, homo, lumo, gap, r2, zpve, U0, U, H, G, Cv; units as in the file: GHz,
 * Debye, bohr^3, Hartree, bohr^2, cal/(mol K)), csv columns. In file order. */
pl_code ch_record_fields(ch_field **out, int *n_out, const ch_reader *r, const ch_record *rec, pl_arena *mem, pl_error *err);

/* The field of that name (letter case ignored when nothing matches exactly), or NULL. */
const ch_field *ch_field_find(const ch_field *fields, int n, const char *name);
/* The first one of exactly that name, or NULL. */
const ch_field *ch_field_named(const ch_field *fields, int n, const char *name);
/* Another one with the name of f, and another text, or NULL: a record of SDF may have a field twice. */
const ch_field *ch_field_again(const ch_field *fields, int n, const ch_field *f);

#endif
