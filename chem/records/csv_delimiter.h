/* SPDX-License-Identifier: Apache-2.0 */
/* chem/records/csv_delimiter.h - which sign is between the values of a table. */
#ifndef CH_CSV_DELIMITER_H
#define CH_CSV_DELIMITER_H

#include <stdbool.h>
#include <stddef.h>

/* The sign that a first line such as sep=; names, as Excel writes and reads it; '\0': the table does not begin with one. `s` may begin with
 * a byte-order mark. */
char ch_delimiter_said(const char *s, size_t n);

/* Of comma, semicolon and tab the first one that is in the row of names, outside of quotes, and with which a column is called "smiles";
 * else the first one that is there; '\0': none is. */
char ch_delimiter_find(const char *s, size_t n);

#endif
