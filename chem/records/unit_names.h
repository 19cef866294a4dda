/* chem/records/unit_names.h - units as tables write them, and one name for each: "umol/L" and "µM" are "uM". */
#ifndef CH_UNIT_NAMES_H
#define CH_UNIT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum { CH_UNIT_BYTES = 64 };

/* Without the quotes and blanks around it; *n bytes. */
const char *ch_unquoted(size_t *n, const char *text);

/* Whether a text begins with the sign or the Greek letter of micro, which have 2 bytes. */
bool ch_is_micro(const char *text);

/* Unquoted, at most CH_UNIT_BYTES - 1 bytes, with u for the Greek letter and the sign of micro. */
void ch_unit_plain(char unit[CH_UNIT_BYTES], const char *given);

/* The name of a concentration; NULL: it is none. */
const char *ch_unit_concentration(const char *text);

/* That, or of an energy, a temperature, a time, a share or a dose. Some of these texts mean other things elsewhere ("C", "h"), so they are
 * units only in a column of units, or in brackets behind a name. NULL: it is none of them. */
const char *ch_unit_known(const char *text);

#endif
