/* stages/database/descriptor_columns.h - the descriptors (chem/common/descriptors.h) as columns of the table `molecule`. */
#ifndef ST_DESCRIPTOR_COLUMNS_H
#define ST_DESCRIPTOR_COLUMNS_H

#include <sqlite3.h>
#include <stdbool.h>

#include "chem/common/descriptors.h"
#include "pipeline/base/text.h"

/* Parts of SQL and of texts, each descriptor with ", " in front: ", mw, logp"; ", m.mw, m.logp"; ", ?, ?". */
#define ST_DESCRIPTOR_NAME(name, ...) ", " #name
#define ST_DESCRIPTOR_COLUMN(name, ...) ", m." #name
#define ST_DESCRIPTOR_MARK(name, ...) ", ?"
#define ST_DESCRIPTOR_NAMES CH_DESCRIPTORS(ST_DESCRIPTOR_NAME)
#define ST_DESCRIPTOR_COLUMNS CH_DESCRIPTORS(ST_DESCRIPTOR_COLUMN)
#define ST_DESCRIPTOR_MARKS CH_DESCRIPTORS(ST_DESCRIPTOR_MARK)

/* "mw, logp". */
#define ST_DESCRIPTOR_LIST (&(ST_DESCRIPTOR_NAMES)[2])

/* The types of SQL, and of conditions. */
#define ST_SQL_REAL "REAL"
#define ST_SQL_WHOLE "INTEGER"
#define ST_SQL(kind) ST_SQL_##kind
#define ST_TYPE(kind) ST_##kind

/* Whether it is the name of one. */
bool st_descriptor_is(const char *name);

/* Adds `, m.mw AS "mw (u)"` for each that `molsieve top` shows. */
void st_descriptors_in_top(pl_text *sql);
/* The unit as pages print it: Angstrom^2 is Å². "" for none. */
const char *st_descriptor_unit(const ch_descriptor *d);
/* Adds `, m.mw AS "MW (u)"` for each that the report's table of hits shows. */
void st_descriptors_in_report(pl_text *sql);

/* Binds all to the parameters from `first` on; those that are not known stay NULL. */
void st_descriptors_bind(sqlite3_stmt *st, int first, const double descriptor[CH_N_DESCRIPTORS]);

#endif
