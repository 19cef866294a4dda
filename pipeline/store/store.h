/* pipeline/store/store.h - results.db and features.db of a work directory.
 *
 * One process writes (see pipeline/lock/lock.h), with one connection per file, which only
 * one thread uses (exceptions: pl_block_get, pl_cache_get). By default (storage.journal: auto) results.db on a
 * local disk has journal_mode=WAL with synchronous=NORMAL, features.db WAL with FULL; on a
 * network disk (by statfs) both have TRUNCATE, FULL and locking_mode=EXCLUSIVE.
 * Transactions are BEGIN IMMEDIATE. Errors of SQLite become PL_EIO (disk full, read-only,
 * I/O) or PL_EDATA (corrupt, not a database, newer user_version); the text names the file
 * and what to do. */
#ifndef PL_STORE_H
#define PL_STORE_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/disk.h"
#include "pipeline/base/file.h"
#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "pipeline/store/db.h"
#include "pipeline/workflow/stage.h"

/* What the application stores besides the engine's own tables (meta, column_doc,
 * run, stage, unit, event, metric, input_file, record, failure). */
typedef struct pl_schema {
    const char *sql;                /* the CREATE statements of tables and indexes of version `version`, without `added` */
    const char *views;              /* DROP and CREATE of the views; also the last step of a migration; may be NULL */
    int version;                    /* PRAGMA user_version                              */
    const char *const *migrate;     /* [version]: migrate[i] is the SQL from version i to i+1; NULL: none; may be NULL itself */
    const struct pl_added *added;   /* columns that later versions added to tables of `sql`, {NULL}-terminated; may be NULL */
    const char *const (*docs)[4];   /* {table, column, unit, description}, {NULL}-terminated */
    const char *const (*digest)[2]; /* {name, SELECT of the content without row ids}, {NULL}-terminated */
    const char *const (*check)[2];  /* {what must hold, SELECT that counts the rows where it does not}, {NULL}; may be NULL */
} pl_schema;

typedef struct pl_added {
    const char *table, *column; /* "molecule", "tpsa REAL"                          */
    int version;                /* the first that has it; before 2: `sql` has it    */
} pl_added;

/* The tables and views of the application, in an empty database. */
pl_code pl_schema_create(sqlite3 *db, const pl_schema *schema, pl_error *err);
/* The columns that are new in versions from+1 to `to`. */
pl_code pl_schema_add(sqlite3 *db, const pl_schema *schema, int from, int to, pl_error *err);
/* For this connection: a database of an older version reads as one of this version. What it lacks is NULL, or empty. */
pl_code pl_schema_complete(sqlite3 *db, const pl_schema *schema, pl_error *err);

struct pl_store {
    sqlite3 *db;          /* results.db                                       */
    sqlite3 *features;    /* features.db; NULL until pl_store_features        */
    int features_version; /* user_version of features.db; below 2 a CRC covers the data only */
    const char *results_path, *features_path;
    bool network;                 /* results.db lies on a network file system         */
    const struct pl_locks *locks; /* NULL: pl_store_guard was not called              */
    bool patient;                 /* call pl_db_patient when features.db is opened    */
    int journal;                  /* pl_workflow.storage.journal                      */
    bool stage_out;               /* pl_workflow.storage.stage_out, of a writer       */
    const pl_schema *schema;
    int64_t n_puts;           /* blocks stored so far, counted for the runner     */
    struct pl_sums *sums;     /* of results.db, of a writer (pipeline/store/sums.h); or NULL */
    sqlite3_stmt *kept[4];    /* prepared statements of block.c and cache.c       */
    pthread_mutex_t get_lock; /* for the statements of pl_block_get and pl_cache_get */
};

/* Opens or creates results.db. Copies a file of an older version (VACUUM INTO), then migrates it. */
pl_code pl_store_open(pl_store **out, const pl_workflow *wf, const pl_schema *schema, pl_error *err);
/* For reading only; safe during a run. PL_EIO if the file does not exist. */
pl_code pl_store_open_read(pl_store **out, const char *results_path, const pl_schema *schema, pl_error *err);
pl_code pl_store_features(pl_store *s, pl_error *err); /* opens features.db; call it before blocks or the cache are used */
bool pl_store_has_features(const pl_store *s);         /* whether there is a file that pl_store_features would open */
void pl_store_close(pl_store *s);                      /* NULL is fine */
/* From now on a commit in either database fails with PL_ELOCK if one of the locks is lost. The locks must outlive the store. */
struct pl_locks;
void pl_store_guard(pl_store *s, const struct pl_locks *locks);
pl_code pl_store_held(const pl_store *s,
                      pl_error *err); /* PL_ELOCK if a lock is lost; call it before replacing a file of the run */

/* ---- features.db on a disk of the node (storage.stage_out), and a copy of it beside results.db, RESULTS.staged ----
 * pl_store_features fetches the copy if the file there is missing or of an earlier state; ECONFIG: it is of a run without
 * stage_out. A reader opens the file that belongs to results.db. */
#define PL_STAGED ".staged"
/* With features.db open, before a run stores blocks: from now on the copy is of an earlier state. */
pl_code pl_store_mark(pl_store *s, pl_error *err);
/* At the end of a run: copies features.db, if its state has no copy yet. Complete or not at all. Without stage_out nothing. */
pl_code pl_store_stage_out(pl_store *s, pl_error *err);

/* ---- blocks of features.db: (kind, key of the producing stage, unit) -> bytes ----
 * Written before the unit is marked done in results.db; writing again replaces. */
pl_code pl_block_put(pl_store *s, const char *kind, const char *key, int64_t unit, int64_t first, int64_t n_items, pl_bytes data,
                     pl_error *err);
typedef struct pl_block {
    bool found; /* false: data, first, n_items and crc32 are zero */
    pl_bytes data;
    int64_t first, n_items; /* as given to pl_block_put        */
    int64_t crc32, unit;
    const char *file, *kind; /* for messages; not owned         */
} pl_block;
/* Any thread. The bytes are in mem; their CRC has not been checked yet (pl_block_check). */
pl_code pl_block_get(pl_store *s, const char *kind, const char *key, int64_t unit, pl_block *out, pl_arena *mem, pl_error *err);
/* Compares the CRC; any thread. PL_EDATA: it differs, the text names kind and unit. A block not found passes. */
pl_code pl_block_check(const pl_block *b, pl_error *err);
/* The number of blocks of one kind, or of all kinds (kind NULL). */
pl_code pl_block_count(pl_store *s, const char *kind, const char *key, int64_t *n, pl_error *err);
/* The runner opens and commits the transactions of both databases around a unit's commit, features.db first. */

/* ---- a cache of work that need not be done twice: key -> bytes, in features.db ----
 * It is not part of the results: no digest counts it, no stage owns it, `db prune`
 * empties it. The key is the SHA-256 of everything that the bytes depend on. */
pl_code pl_cache_put(pl_store *s, const unsigned char key[32], pl_bytes data,
                     pl_error *err); /* replaces an entry; data not empty */
/* Any thread. data->data is NULL if there is no entry, or if its checksum differs (with a warning). */
pl_code pl_cache_get(pl_store *s, const unsigned char key[32], pl_bytes *data, pl_arena *mem, pl_error *err);
/* Counts all entries and the damaged ones; features.db must be open. */
pl_code pl_cache_check(pl_store *s, int64_t *n, int64_t *n_bad, pl_error *err);

/* ---- rows that every stage may write (inside the unit's transaction) ---- */
typedef struct pl_failure {
    int64_t record_id, mol_id;  /* 0 = none                        */
    const char *code, *message; /* "parse", "timeout", ...         */
    int signal, attempt;
    double cpu_s;
} pl_failure;
pl_code pl_failure_add(pl_env *env, const pl_failure *f, pl_error *err);
/* Writes a message to the log and, if it can, to the table `event`, with the level "error", "warn", "info" or "debug". */
void pl_event_add(pl_env *env, pl_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Records that the run made progress that survives a restart (a checkpoint), as an event of level PL_FURTHER. */
#define PL_FURTHER "further"
void pl_further_add(pl_env *env, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
pl_code pl_metric_add(pl_env *env, int64_t step, double epoch, const char *split, const char *name, double value, pl_error *err);

/* SHA-256 of a file. It is kept under (path, size, ctime, inode) if the file is older than 3 s. The store may be NULL. */
pl_code pl_file_hash(pl_store *s, const char *path, char out[65], pl_error *err);
void pl_file_forget(pl_store *s, const char *path); /* drops the kept hash: the next pl_file_hash reads the file */

/* ---- maintenance ---- */
pl_code pl_store_digest(pl_store *s, char out[65], pl_error *err); /* a hash of the content of results.db, in any order of rows */
/* The same for the blocks of the stages in results.db; features.db must be open. */
pl_code pl_store_digest_blocks(pl_store *s, char out[65], pl_error *err);
/* Deletes the cache, and the blocks that belong to no stage of this store or of the others that share its features.db.
 * *n: the number of deleted blocks. features.db must be open. */
pl_code pl_store_prune(pl_store *s, pl_store *const *others, int n_others, int64_t *n, pl_error *err);
/* Checks integrity, sums of rows, foreign keys, units of done stages, and CRCs of blocks if features.db is open. One line of
 * report for each check, "good ..." or "BAD  ...". */
pl_code pl_store_check(pl_store *s, bool *good, pl_text *report, pl_error *err);

/* ---- one file with everything: a copy of results.db with blocks in a table `block` ----
 * pl_store_open_read of such a file finds the blocks inside. */
#define PL_SHARD_META "shard" /* key in `meta`: "3/8", the shard that a packed file holds */
typedef struct pl_packed {
    const char *kind, *key;
    int64_t n; /* units 0..n-1 */
} pl_packed;
/* Written under another name beside it, synced, renamed. EDATA: features.db lacks a block. */
pl_code pl_store_pack(pl_store *s, const char *to, const char *shard, const pl_packed *blocks, int n_blocks, pl_arena *mem,
                      pl_error *err);
/* The value of PL_SHARD_META, in mem; "" if this is no packed file. */
pl_code pl_store_shard(pl_store *s, const char **out, pl_arena *mem, pl_error *err);

pl_code pl_store_copy(pl_store *s, const char *to, pl_error *err); /* VACUUM INTO a temporary file, fsync, rename */

#endif
