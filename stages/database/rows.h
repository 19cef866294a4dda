/* stages/database/rows.h - the rows of a statement as text: for people, or for programs.
 *
 * table  columns padded, numbers to the right with 6 digits, long texts cut;
 *        the widths are those of the first 500 rows, later ones may be wider
 * csv    RFC 4180, numbers in full
 * json   an array of objects; jsonl: one object a line; numbers in full
 * NULL is empty in table and csv. Rows are not kept, whatever their number. */
#ifndef ST_ROWS_H
#define ST_ROWS_H

#include <sqlite3.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/text.h"

typedef enum st_format { ST_TABLE, ST_CSV, ST_JSON, ST_JSONL } st_format;

/* "table", "csv", "json", "jsonl"; ECONFIG. */
pl_code st_format_parse(st_format *out, const char *word, pl_error *err);

/* Takes text as it comes; what it gets is gone when it returns. */
typedef pl_code st_sink(void *ctx, const pl_text *text, pl_error *err);

/* All rows of the statement, stepped to the end. max_cell: longest text of a table cell, 0 = any. */
pl_code st_rows_write(sqlite3_stmt *st, st_format format, int max_cell, int64_t *n_rows, st_sink *sink, void *ctx, pl_error *err);

/* The same to standard output. On a terminal a table has only the columns that fit, and names the others below. */
pl_code st_rows_print(sqlite3_stmt *st, st_format format, int max_cell, int64_t *n_rows, pl_error *err);

/* A table to standard output, its numbers with that many significant digits (but all digits before the point). */
pl_code st_rows_show(sqlite3_stmt *st, int digits, int max_cell, pl_error *err);

/* A column's value: numbers in the shortest form that reads back as the same number; NULL is "".
 * NULL when refused. */
const char *st_cell_str(sqlite3_stmt *st, int column, pl_arena *mem);

/* A cell for CSV, quoted only where it must be. */
void st_csv_add(pl_text *out, const char *s);
/* Ends the row that began at byte `start` of out. A single empty cell becomes "", because readers skip blank lines. */
void st_csv_end(pl_text *out, size_t start);

#endif
