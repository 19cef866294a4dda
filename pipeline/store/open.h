/* pipeline/store/open.h - opens the database files of a work directory and checks what they are. */
#ifndef PL_OPEN_H
#define PL_OPEN_H

#include "pipeline/store/db.h"

/* PRAGMA application_id, PRAGMA user_version, and the number of tables, views and indexes. */
typedef struct pl_identity {
    int64_t application_id, version, n_tables;
} pl_identity;

pl_code pl_open_identity(sqlite3 *db, pl_identity *out, pl_error *err);
/* PL_EDATA: a database of another program (its id is not want_id), or of a newer version. */
pl_code pl_open_ours(const pl_identity *is, const char *path, int want_id, int newest, pl_error *err);

/* flags: those of sqlite3_open_v2; wait_ms: how long to wait for another program. The checksums of pages are verified
 * (pipeline/store/pages.h). When it fails, *db is NULL. */
pl_code pl_open_file(sqlite3 **db, const char *path, int flags, int wait_ms, pl_error *err);
/* For reading only, also in a directory that cannot be written. When it fails, *db may be open: close it. */
pl_code pl_open_reader(sqlite3 **db, const char *path, pl_identity *is, pl_error *err);

/* How results.db and features.db differ: bytes of a page, KiB of cache, and the PRAGMAs of WAL mode. */
typedef struct pl_kind {
    int page_size, cache_kib;
    const char *wal;
} pl_kind;

extern const pl_kind pl_results_kind, pl_features_kind;

/* Sets the page size of a fresh file, the cache and the journal mode (journal: pl_workflow.storage.journal). */
pl_code pl_open_writer(sqlite3 *db, bool fresh, const pl_kind *kind, bool network, int journal, pl_error *err);
/* Writes application_id and user_version into the file. */
pl_code pl_open_version(sqlite3 *db, int application_id, int version, pl_error *err);

#endif
