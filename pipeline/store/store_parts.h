/* pipeline/store/store_parts.h - what the store shares with the runner, and nobody else needs. */
#ifndef PL_STORE_PARTS_H
#define PL_STORE_PARTS_H

#include <limits.h>

#include "pipeline/store/store.h"

/* The embedded pipeline/store/store.sql. */
extern const char pl_engine_sql[];

/* A row of the event table; never fails the caller. */
void pl_event_row(pl_store *s, int64_t run_id, const char *level, const char *stage, const char *message);

enum { PL_FEATURES_VERSION = 2 }; /* PRAGMA user_version of features.db */

/* The table of blocks; also in a packed file (pl_store_pack). */
extern const char pl_block_sql[];

/* fsync, then rename to the final name, which is synced too. */
pl_code pl_store_rename(const char *tmp, const char *to, pl_error *err);

/* staging.c: before features.db is opened for writing. */
pl_code pl_staged_in(pl_store *s, pl_error *err);
/* For a reader: `path` becomes that of the copy, if only this belongs to results.db. What cannot be read does not; most readers
 * need no features. */
void pl_staged_find(const pl_store *s, char path[PATH_MAX]);

/* What the queries of blocks need of a features.db that was just opened (block.c). */
pl_code pl_block_ready(pl_store *s, pl_error *err);

#endif
