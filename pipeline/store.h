/* pipeline/store.h - results.db and features.db of a work directory.
 *
 * One process writes (see pipeline/lock.h), one connection per file, used by
 * one thread (but for pl_cache_get). WAL + NORMAL on a local disk, TRUNCATE + FULL + EXCLUSIVE on a
 * network one (statfs). Never synchronous=OFF. Transactions are BEGIN IMMEDIATE.
 * SQLite's answers become: full disk, read-only, I/O -> PL_EIO; corrupt, not a
 * database, newer user_version -> PL_EDATA; the text names the file and the remedy. */
#ifndef PL_STORE_H
#define PL_STORE_H

#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "pipeline/base/file.h"
#include "pipeline/base/log.h"
#include "pipeline/base/text.h"
#include "pipeline/stage.h"

/* What the application stores besides the engine's own tables (meta, column_doc,
 * run, stage, unit, event, metric, input_file, record, failure). */
typedef struct pl_schema {
    const char *sql;                 /* CREATE ... of tables and indexes, without `added` */
    const char *views;               /* DROP and CREATE of the views; also the last step of a migration; may be NULL */
    int version;                     /* PRAGMA user_version                              */
    const char *const *migrate;      /* [version]: SQL from version i to i+1, NULL: none known; all may be NULL */
    const struct pl_added *added;    /* columns that tables of `sql` got later, {NULL}-terminated; may be NULL */
    const char *const (*docs)[4];    /* {table, column, unit, description} of every column, {NULL}-terminated */
    const char *const (*digest)[2];  /* {name, SELECT of logical content without row ids}, {NULL} */
    const char *const (*check)[2];   /* {what must hold, SELECT of the number of rows where it does not}, {NULL}; may be NULL */
} pl_schema;

typedef struct pl_added {
    const char *table, *column;      /* "molecule", "tpsa REAL"                          */
    int version;                     /* the first that has it; before 2: `sql` has it    */
} pl_added;

/* The tables and views of the application, in an empty database. */
pl_code pl_schema_create(sqlite3 *db, const pl_schema *schema, pl_error *err);
/* The columns that are new in versions from+1 to `to`. */
pl_code pl_schema_add(sqlite3 *db, const pl_schema *schema, int from, int to, pl_error *err);
/* For this connection: a database of an older version reads as one of this version. What it lacks is NULL, or empty. */
pl_code pl_schema_complete(sqlite3 *db, const pl_schema *schema, pl_error *err);

struct pl_store {
    sqlite3 *db;                     /* results.db                                       */
    sqlite3 *features;               /* features.db; NULL until pl_store_features        */
    int features_version;            /* of the file: before 2, CRCs of the data alone    */
    const char *results_path, *features_path;
    bool network;                    /* results.db lies on a network file system         */
    const struct pl_locks *locks;    /* NULL: not guarded                                */
    bool patient;                    /* features.db too is waited for, see pl_db_patient */
    int journal;                     /* as workflow.storage.journal                      */
    const pl_schema *schema;
    int64_t n_puts;                  /* blocks put so far; the runner's                  */
    sqlite3_stmt *kept[4];           /* the store's own prepared statements              */
    pthread_mutex_t cache_lock;      /* of the one that finds cached bytes               */
};

/* Opens or creates; migrates forward after a VACUUM INTO copy. */
pl_code pl_store_open(pl_store **out, const pl_workflow *wf, const pl_schema *schema, pl_error *err);
/* Reading only, safe during a run; EIO if the file is not there. */
pl_code pl_store_open_read(pl_store **out, const char *results_path, const pl_schema *schema, pl_error *err);
pl_code pl_store_features(pl_store *s, pl_error *err); /* opens features.db; call before blocks */
void    pl_store_close(pl_store *s);                   /* NULL is fine */
/* From here on no transaction of either database is committed once one of these locks is lost: ELOCK. They outlive the store. */
struct pl_locks;
void    pl_store_guard(pl_store *s, const struct pl_locks *locks);
pl_code pl_store_held(const pl_store *s, pl_error *err); /* ELOCK as above; before a file is replaced that belongs to the run */

/* ---- SQL, with our errors ---- */
pl_code pl_db_exec(sqlite3 *db, const char *sql, pl_error *err);
pl_code pl_db_execf(sqlite3 *db, pl_error *err, const char *fmt, ...); /* fmt by sqlite3_mprintf */
pl_code pl_db_prepare(sqlite3 *db, sqlite3_stmt **out, const char *sql, pl_error *err);
/* *row = true: a row is there. Resets the statement itself when done or failed. */
pl_code pl_db_step(sqlite3_stmt *st, bool *row, pl_error *err);
/* step of a statement that returns no rows, then reset and clear bindings */
pl_code pl_db_run(sqlite3_stmt *st, pl_error *err);
pl_code pl_db_int(sqlite3 *db, int64_t *out, pl_error *err, const char *fmt, ...); /* first column of the first row, 0 if none; fmt by sqlite3_mprintf */
pl_code pl_db_fail(sqlite3 *db, pl_error *err);        /* what SQLite just said, as pl_code */
pl_code pl_db_begin(sqlite3 *db, pl_error *err);
pl_code pl_db_commit(sqlite3 *db, pl_error *err);      /* rolls back when it fails */
void    pl_db_rollback(sqlite3 *db);
/* Another program that reads or writes is waited for until it lets go or the run is asked to stop (ESTOP), and named
 * in the log; without this call a minute. */
void    pl_db_patient(sqlite3 *db);

/* ---- blocks of features.db: (kind, key of the producing stage, unit) -> bytes ----
 * Written before the unit is marked done in results.db; writing again replaces. */
pl_code pl_block_put(pl_store *s, const char *kind, const char *key, int64_t unit,
                     int64_t first, int64_t n_items, pl_bytes data, pl_error *err);
typedef struct pl_block {
    bool found;                      /* all else is zero if not         */
    pl_bytes data;
    int64_t first, n_items;          /* as put                          */
    int64_t crc32, unit;
    const char *file, *kind;         /* borrowed, for messages          */
} pl_block;
/* The bytes live in mem; nobody has looked at them. */
pl_code pl_block_get(pl_store *s, const char *kind, const char *key, int64_t unit, pl_block *out,
                     pl_arena *mem, pl_error *err);
/* Their CRC, on any thread: EDATA names kind and unit. One that is not found passes. */
pl_code pl_block_check(const pl_block *b, pl_error *err);
/* Of one kind, or of all kinds (kind NULL). */
pl_code pl_block_count(pl_store *s, const char *kind, const char *key, int64_t *n, pl_error *err);
/* Features transactions: pl_run wraps a unit's commit in both databases, features first. */

/* ---- work that need not be done twice: key -> bytes, in features.db ----
 * No result: no digest counts it, no stage owns it, `db prune` empties it. The
 * key is a SHA-256 of all that the bytes depend on. */
pl_code pl_cache_put(pl_store *s, const unsigned char key[32], pl_bytes data, pl_error *err); /* replaces; not empty */
/* Any thread. data->data is NULL when there is nothing, or its checksum differs (a warning says so). */
pl_code pl_cache_get(pl_store *s, const unsigned char key[32], pl_bytes *data, pl_arena *mem, pl_error *err);
/* How many entries there are, and are damaged. features.db open. */
pl_code pl_cache_check(pl_store *s, int64_t *n, int64_t *n_bad, pl_error *err);

/* ---- rows every stage may write (inside the unit's transaction) ---- */
typedef struct pl_failure {
    int64_t record_id, mol_id;       /* 0 = none                        */
    const char *code, *message;      /* "parse", "timeout", ...         */
    int signal, attempt;
    double cpu_s;
} pl_failure;
pl_code pl_failure_add(pl_env *env, const pl_failure *f, pl_error *err);
/* Into the log and, as "warn" or "info", into the table. */
pl_code pl_event_add(pl_env *env, pl_level level, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The run got further, and a restart will not fall behind it: a checkpoint. An event of level PL_FURTHER. */
#define PL_FURTHER "further"
void    pl_further_add(pl_env *env, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
pl_code pl_metric_add(pl_env *env, int64_t step, double epoch, const char *split, const char *name, double value, pl_error *err);

/* SHA-256 of a file, remembered by (path, size, ctime, inode) when it has not changed for seconds. store may be NULL. */
pl_code pl_file_hash(pl_store *s, const char *path, char out[65], pl_error *err);
void    pl_file_forget(pl_store *s, const char *path); /* it was found to be another: the next pl_file_hash reads it */

/* ---- maintenance ---- */
pl_code pl_store_digest(pl_store *s, char out[65], pl_error *err); /* order-independent, logical content of results.db */
pl_code pl_store_digest_blocks(pl_store *s, char out[65], pl_error *err); /* the blocks that stages of results.db own; features.db open */
/* Removes blocks that no stage of results.db, nor of the other stores that use this features.db, owns, and the cache.
 * *n: how many blocks; features.db open. */
pl_code pl_store_prune(pl_store *s, pl_store *const *others, int n_others, int64_t *n, pl_error *err);
pl_code pl_store_check(pl_store *s, bool *good, pl_text *report, pl_error *err); /* integrity, foreign keys, done <=> rows, block CRCs */
pl_code pl_store_copy(pl_store *s, const char *to, pl_error *err);  /* VACUUM INTO tmp, fsync, rename */
bool    pl_is_network_fs(const char *path);  /* of the nearest directory that exists; unknown types count as network */
double  pl_disk_free(const char *path);      /* bytes, -1 if unknown */

#endif
