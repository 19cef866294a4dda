/* stages/steps/ingest/record_block.h - the raw records of one unit as a block of features.db.
 *
 * `read` writes them so that later stages never open the inputs again: text,
 * format and numeric data fields of every record that may be parsed. Bytes:
 * char magic[4] "MSRB", u32 version, u32 records, u32 uncompressed bytes, then
 * zlib of, for each record, i64 id, str format, str text, u32 fields, then
 * fields times (str name, f64 value); str = u32 length, bytes; little-endian.
 *
 * Unpacking accepts any bytes: records, or EDATA; never a read out of bounds. */
#ifndef ST_RECORD_BLOCK_H
#define ST_RECORD_BLOCK_H

#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"
#include "pipeline/base/file.h"

typedef struct st_field {
    const char *name;
    double value; /* finite */
} st_field;

typedef struct st_record {
    int64_t id;         /* record_id */
    const char *format; /* "smi", "sdf", ... */
    const char *text;   /* len bytes and a NUL; NULs may be inside */
    size_t len;
    const st_field *field; /* [n_fields] */
    int32_t n_fields;
} st_record;

/* The block, in mem. ELIMIT when the records are larger than 1 GiB together. */
pl_code st_records_pack(pl_bytes *out, const st_record *r, int32_t n, pl_arena *mem, pl_error *err);
/* Texts live in mem; `in` may go. */
pl_code st_records_unpack(st_record **out, int32_t *n, pl_bytes in, pl_arena *mem, pl_error *err);

#endif
