/* stages/steps/ingest/read_seen.h - which bytes the records of the stage `read` came from.
 *
 * The stage's key holds the SHA-256 of every input as it was when the run was planned. The reader hashes what it reads:
 * at the end of a file that must be the hash in the key. With every unit the hash of what was read so far goes into
 * results.db (meta, "read_seen"), in the unit's transaction, so that units of an unfinished stage are kept only
 * if the file still begins with the bytes that they were made from. */
#ifndef ST_READ_SEEN_H
#define ST_READ_SEEN_H

#include "chem/records/record.h"
#include "pipeline/workflow/stage.h"

/* Up to where a unit was read: the files before `file` were read to their end and had the hashes in the key. */
typedef struct st_seen {
    int32_t file;    /* position in workflow.inputs; their number: all are read */
    int64_t bytes;   /* of it, from its first                                   */
    char sha256[65]; /* of those                                                */
} st_seen;

/* What the splitter found in one input. */
typedef struct st_found {
    int64_t records, bytes; /* so far */
    bool whole;             /* read to its end in this run; else bytes is not known, and records may be 0 */
} st_found;

/* In the transaction of unit `unit`. */
pl_code st_seen_put(pl_env *env, int64_t unit, const st_seen *seen, pl_error *err);

/* At the end of file `file`: EINPUT unless its bytes have the hash in the key. *bytes: its size. */
pl_code st_seen_whole(const pl_env *env, int32_t file, ch_reader *reader, int64_t *bytes, pl_error *err);

/* Of an input that is open for reading: EINPUT unless its format is that in the key. */
pl_code st_seen_format(const pl_env *env, int32_t file, const ch_reader *reader, pl_error *err);

/* The SHA-256 of an input in the stage's key; false without memory. */
bool st_seen_key(const pl_step *step, int32_t file, char out[65]);

/* The stage's doubt (pipeline/workflow/stage.h). */
pl_code st_read_doubt(const pl_workflow *wf, const pl_step *step, pl_store *store, const char **why, pl_arena *mem, pl_error *err);

/* At the end of the stage: EINPUT unless every input is still what the key says. */
pl_code st_seen_unchanged(const pl_env *env, pl_error *err);

/* At the end of the stage: the records in the database must be those that the splitter found, numbered without a gap (a shard: without
 * one twice), and units count them all; else EDATA. Writes n_records and size_bytes of the inputs. found [inputs.n]. */
pl_code st_seen_count(const pl_env *env, const st_found *found, pl_error *err);

/* EINPUT: it was changed while it was read. Its remembered hash is forgotten. */
pl_code st_seen_changed(const pl_env *env, int32_t file, pl_error *err);

#endif
