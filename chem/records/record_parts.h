/* chem/records/record_parts.h - internals of a record reader, shared by the files record*.c. */
#ifndef CH_RECORD_PARTS_H
#define CH_RECORD_PARTS_H

#include "chem/records/record.h"
#include "chem/records/source.h"
#include "pipeline/base/text.h"

typedef struct ch_format ch_format;

struct ch_reader {
    const ch_format *format;
    char name[32]; /* of the format, as given or recognised */
    char *path, *title_from;
    ch_source *src;
    size_t limit, file_limit;
    struct ch_worker *lister;

    /* The record that is being read. */
    pl_text text, raw, title, problem;
    size_t dropped;       /* bytes beyond the limit */
    int64_t offset, line; /* of the first line      */
    bool begun, has_raw, is_short, damage_told, whole_lines;
    int64_t ordinal;

    /* xyz, mol2, pdb: what is known about the file from the lines read so far. */
    bool has_models, is_qm9;

    /* csv: columns count from 0; -1 = none. */
    char delimiter;
    char **columns;
    int n_columns, smiles_column, title_column;
    bool smiles_guessed;

    /* Formats that the worker lists. */
    pl_arena *listed_mem;
    const char **listed, **listed_problem;
    const char *listed_short; /* why the list may be incomplete, or "" */
    size_t *listed_len;
    int64_t n_listed, next_listed; /* n_listed < 0: not listed yet */

    struct ch_qm9 *qm9; /* qm9bin: the whole file, loaded at the first record */
};

/* Reader of one format. `next` fills text, title, problem, offset and line of
 * the reader; it sets *more to false if no record is left. */
struct ch_format {
    const char *name, *parse_as;
    pl_code (*next)(ch_reader *r, bool *more, pl_error *err);
    pl_code (*begin)(ch_reader *r, const ch_reader_opts *opts, pl_error *err); /* may be NULL */
    const char *header; /* for ch_next_headed: how the first line of a record begins */
};

pl_code ch_next_line_record(ch_reader *r, bool *more, pl_error *err); /* smi, inchi */
pl_code ch_next_sdf(ch_reader *r, bool *more, pl_error *err);
pl_code ch_next_headed(ch_reader *r, bool *more, pl_error *err); /* mol2, cif */
pl_code ch_next_pdb(ch_reader *r, bool *more, pl_error *err);
pl_code ch_next_xyz(ch_reader *r, bool *more, pl_error *err);
pl_code ch_begin_csv(ch_reader *r, const ch_reader_opts *opts, pl_error *err);
pl_code ch_next_csv(ch_reader *r, bool *more, pl_error *err);
pl_code ch_next_listed(ch_reader *r, bool *more, pl_error *err);
pl_code ch_next_qm9(ch_reader *r, bool *more, pl_error *err);

/* Begins a record: stores the position of its first line. */
void ch_reader_begin(ch_reader *r, const ch_line *line);
/* Appends the line and a newline, up to the size limit. */
void ch_reader_add(ch_reader *r, const ch_line *line);
void ch_reader_set_title(ch_reader *r, const char *s, size_t n); /* cleaned */
#define CH_NO_SMILES "csv: no SMILES in this row"

void ch_reader_set_problem(ch_reader *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3))); /* the first problem is kept */

/* Reads one field of a csv row from *at on; false at the end of the row. Quotes are
 * removed. OPEN: a quote was not closed. LOOSE: text follows the closing quote. */
typedef enum ch_quote { CH_QUOTE_GOOD, CH_QUOTE_OPEN, CH_QUOTE_LOOSE } ch_quote;
bool ch_csv_field(const char **at, const char *end, char delimiter, pl_text *out, ch_quote *quote);

/* Helpers for lines and words. */
bool ch_line_blank(const char *s, size_t n);
bool ch_line_starts(const ch_line *line, const char *prefix);
bool ch_line_is_count(const char *s, size_t n, long *count); /* one whole number, nothing else */
/* The next run of non-blank bytes; NULL at the end. */
const char *ch_word(const char **at, const char *end, size_t *n);
/* Parses a whole word as a number; "*^" is read as e. */
bool ch_word_real(const char *s, size_t n, double *out);

#endif
