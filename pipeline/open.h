/* pipeline/open.h - opening the database files of a work directory, before anything is known of their contents. */
#ifndef PL_OPEN_H
#define PL_OPEN_H

#include "pipeline/store.h"

/* What a file claims to be. */
typedef struct pl_identity {
    int64_t application_id, version, n_tables;
} pl_identity;

pl_code pl_open_identity(sqlite3 *db, pl_identity *out, pl_error *err);
/* EDATA: of another program, or of a newer version. */
pl_code pl_open_ours(const pl_identity *is, const char *path, int want_id, int newest, pl_error *err);

/* flags of sqlite3_open_v2. Pages are verified (pipeline/pages.h). When it fails, *db is NULL. */
pl_code pl_open_file(sqlite3 **db, const char *path, int flags, int wait_ms, pl_error *err);
/* Reading only, also where nothing can be written. When it fails, *db may be there to be closed. */
pl_code pl_open_reader(sqlite3 **db, const char *path, pl_identity *is, pl_error *err);

typedef struct pl_kind {
    int page_size, cache_kib;
    const char *wal;
} pl_kind;

extern const pl_kind pl_results_kind, pl_features_kind;

/* How the file is written: page size of a fresh one, cache, journal (workflow.storage.journal). */
pl_code pl_open_writer(sqlite3 *db, bool fresh, const pl_kind *kind, bool network, int journal, pl_error *err);
pl_code pl_open_version(sqlite3 *db, int application_id, int version, pl_error *err);

#endif
