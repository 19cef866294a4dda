/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/record_block.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

#include "pipeline/base/text.h"

enum { VERSION = 1, HEAD = 16, MAX_BYTES = 1 << 30 };

typedef struct cursor {
    const unsigned char *p, *end;
    bool bad; /* a read was out of bounds; all later reads give zero */
} cursor;

static void put_u32(pl_text *t, uint32_t x)
{
    const char b[4] = { (char)x, (char)(x >> 8), (char)(x >> 16), (char)(x >> 24) };
    pl_text_add_n(t, b, 4);
}

static void put_u64(pl_text *t, uint64_t x)
{
    put_u32(t, (uint32_t)x);
    put_u32(t, (uint32_t)(x >> 32));
}

static void put_str(pl_text *t, const char *s, size_t n)
{
    put_u32(t, (uint32_t)n);
    pl_text_add_n(t, s, n);
}

static uint64_t get_uint(cursor *c, int bytes)
{
    uint64_t x = 0;

    if (c->bad || c->end - c->p < bytes) {
        c->bad = true;
        return 0;
    }
    for (int i = 0; i < bytes; i++)
        x |= (uint64_t)c->p[i] << 8 * i;
    c->p += bytes;
    return x;
}

static double get_real(cursor *c)
{
    uint64_t bits = get_uint(c, 8);
    double x;

    memcpy(&x, &bits, sizeof x);
    c->bad = c->bad || !isfinite(x);
    return x;
}

static char *get_str(cursor *c, size_t *len, pl_arena *mem)
{
    size_t n = (size_t)get_uint(c, 4);
    char *s;

    if (c->bad || (size_t)(c->end - c->p) < n) {
        c->bad = true;
        return NULL;
    }
    s = pl_strndup(mem, (const char *)c->p, n);
    c->p += n;
    if (len != NULL)
        *len = n;
    return s;
}

static void put_record(pl_text *t, const st_record *r)
{
    put_u64(t, (uint64_t)r->id);
    put_str(t, r->format, strlen(r->format));
    put_str(t, r->text, r->len);
    put_u32(t, (uint32_t)r->n_fields);
    for (int32_t i = 0; i < r->n_fields; i++) {
        uint64_t bits;
        memcpy(&bits, &r->field[i].value, sizeof bits);
        put_str(t, r->field[i].name, strlen(r->field[i].name));
        put_u64(t, bits);
    }
}

/* Level 1: the blocks are read once, and time matters more than a few per cent. */
static pl_code deflate_text(pl_bytes *out, const pl_text *raw, int32_t n, pl_arena *mem, pl_error *err)
{
    uLong bound = compressBound((uLong)raw->len);
    char *block = PL_NEW(mem, char, HEAD + bound);
    pl_text head = { 0 };
    uLongf used = bound;

    pl_text_add_n(&head, "MSRB", 4);
    put_u32(&head, VERSION);
    put_u32(&head, (uint32_t)n);
    put_u32(&head, (uint32_t)raw->len);
    if (block == NULL || !pl_text_ok(&head) ||
        compress2((Bytef *)block + HEAD, &used, (const Bytef *)pl_text_str(raw), (uLong)raw->len, 1) != Z_OK) {
        pl_text_free(&head);
        return pl_fail(err, PL_ENOMEM, "no memory to pack %d records", (int)n);
    }
    memcpy(block, head.s, HEAD);
    pl_text_free(&head);
    *out = (pl_bytes){ block, HEAD + used };
    return PL_OK;
}

pl_code st_records_pack(pl_bytes *out, const st_record *r, int32_t n, pl_arena *mem, pl_error *err)
{
    pl_text raw = { 0 };
    pl_code code;

    for (int32_t i = 0; i < n && raw.len <= MAX_BYTES; i++)
        put_record(&raw, &r[i]);
    if (raw.len > MAX_BYTES)
        code = pl_fail(err, PL_ELIMIT, "%d records take more than 1 GiB; lower stages.read.unit", (int)n);
    else if (!pl_text_ok(&raw))
        code = pl_fail(err, PL_ENOMEM, "no memory to pack %d records", (int)n);
    else
        code = deflate_text(out, &raw, n, mem, err);
    pl_text_free(&raw);
    return code;
}

static pl_code get_record(st_record *r, cursor *c, pl_arena *mem, pl_error *err)
{
    st_field *field;

    r->id = (int64_t)get_uint(c, 8);
    r->format = get_str(c, NULL, mem);
    r->text = get_str(c, &r->len, mem);
    r->n_fields = (int32_t)get_uint(c, 4);
    if (c->bad || r->n_fields < 0 || r->n_fields > (c->end - c->p) / 12)
        return pl_fail(err, PL_EDATA, "the block of records is damaged");
    field = PL_NEW(mem, st_field, r->n_fields + 1);
    if (field == NULL || r->format == NULL || r->text == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to unpack records");
    for (int32_t i = 0; i < r->n_fields; i++) {
        field[i].name = get_str(c, NULL, mem);
        field[i].value = get_real(c);
        if (c->bad)
            return pl_fail(err, PL_EDATA, "the block of records is damaged");
        if (field[i].name == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory to unpack records");
    }
    r->field = field;
    return PL_OK;
}

static pl_code inflate_block(cursor *c, const unsigned char *in, size_t len, size_t raw, pl_arena *mem, pl_error *err)
{
    unsigned char *bytes = PL_NEW(mem, unsigned char, raw + 1);
    uLongf got = (uLongf)raw;

    if (bytes == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to unpack records");
    if (uncompress(bytes, &got, in, (uLong)len) != Z_OK || got != raw)
        return pl_fail(err, PL_EDATA, "the block of records is damaged");
    *c = (cursor){ .p = bytes, .end = bytes + raw };
    return PL_OK;
}

pl_code st_records_unpack(st_record **out, int32_t *n_out, pl_bytes in, pl_arena *mem, pl_error *err)
{
    cursor c = { .p = in.data, .end = (const unsigned char *)in.data + in.len };
    uint64_t version, n, raw;
    st_record *r;
    pl_code code;

    if (in.len < HEAD || memcmp(in.data, "MSRB", 4) != 0)
        return pl_fail(err, PL_EDATA, "not a block of records");
    c.p += 4;
    version = get_uint(&c, 4);
    n = get_uint(&c, 4);
    raw = get_uint(&c, 4);
    if (version != VERSION || raw > MAX_BYTES || n > raw / 20 + 1)
        return pl_fail(err, PL_EDATA, "a block of records of version %u, %u is readable", (unsigned)version, (unsigned)VERSION);
    code = inflate_block(&c, c.p, in.len - HEAD, raw, mem, err);
    if (code != PL_OK)
        return code;
    r = PL_NEW(mem, st_record, n + 1);
    if (r == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory to unpack records");
    for (uint64_t i = 0; i < n; i++) {
        code = get_record(&r[i], &c, mem, err);
        if (code != PL_OK)
            return code;
    }
    *out = r;
    *n_out = (int32_t)n;
    return PL_OK;
}
