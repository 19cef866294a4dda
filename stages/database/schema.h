/* stages/database/schema.h - what molsieve stores in results.db besides the engine's own tables.
 *
 * The tables are stages/database/schema.sql, the views stages/database/views.sql, put into the program as text at
 * build time. Every column of every table and view, the engine's included, has
 * a unit (NULL: none) and a sentence in `docs`; they land in column_doc, so the
 * database explains itself. The digest reads logical content only: rows are
 * named by input hash and ordinal, never by row id, path, time or run. */
#ifndef ST_SCHEMA_H
#define ST_SCHEMA_H

#include "pipeline/store/store.h"

extern const pl_schema st_schema;

/* SQL: the titles of molecule m in the order of its records. Without ORDER BY an index of another program may change the order. */
#define ST_TITLES "(SELECT group_concat(title,'; ') FROM (SELECT title FROM record r WHERE r.mol_id=m.mol_id ORDER BY r.record_id))"

#endif
