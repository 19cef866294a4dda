/* SPDX-License-Identifier: Apache-2.0 */
#include "models/tensors/safetensors.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/sha256.h"
#include "pipeline/base/text.h"

enum { PREFIX = 8, DIGITS = 64 };
static const uint64_t HEADER_MAX = 100u << 20; /* the limit of the safetensors library */

static const struct {
    const char *name;
    size_t bytes;
} dtypes[NN_DTYPES] = {
    [NN_F64] = { "F64", 8 }, [NN_I64] = { "I64", 8 },   [NN_F32] = { "F32", 4 },
    [NN_I32] = { "I32", 4 }, [NN_BF16] = { "BF16", 2 }, [NN_U8] = { "U8", 1 },
};

size_t nn_dtype_bytes(nn_dtype type) { return dtypes[type].bytes; }
const char *nn_dtype_name(nn_dtype type) { return dtypes[type].name; }

/* ---- checksum ------------------------------------------------------------ */

static const char no_digits[DIGITS + 1] = "0000000000000000000000000000000000000000000000000000000000000000";

/* Hash of a file without the hash digits in it, which begin at `at`. */
static void hash_around(pl_bytes file, size_t at, char out[DIGITS + 1])
{
    pl_sha256 sha;

    pl_sha256_start(&sha);
    pl_sha256_add(&sha, file.data, at);
    pl_sha256_add(&sha, no_digits, DIGITS);
    pl_sha256_add(&sha, (const char *)file.data + at + DIGITS, file.len - at - DIGITS);
    pl_sha256_hex(&sha, out);
}

static bool is_digits(const char *s) { return strlen(s) == DIGITS && strspn(s, "0123456789abcdef") == DIGITS; }

/* A string of 64 digits is the checksum whatever its name, because the name can be damaged too. */
static const nn_meta *find_checksum(const nn_tensors *all)
{
    for (int k = 0; k < all->n_meta; k++)
        if (!strcmp(all->meta[k].key, "sha256") || is_digits(all->meta[k].value))
            return &all->meta[k];
    return NULL;
}

static pl_code checksum_verify(nn_tensors *all, pl_bytes file, size_t header, pl_error *err)
{
    const nn_meta *sum = find_checksum(all);
    const char *text = (const char *)file.data + PREFIX, *at;
    char is[DIGITS + 1] = "";

    if (sum == NULL)
        return PL_OK;
    at = memmem(text, header, sum->value, strlen(sum->value));
    if (at != NULL && is_digits(sum->value))
        hash_around(file, (size_t)(at - text) + PREFIX, is);
    all->verified = !strcmp(sum->key, "sha256") && !strcmp(sum->value, is);
    return all->verified ? PL_OK
                         : pl_fail(err, PL_EDATA,
                                   "damaged, or changed by another program: its checksum (metadata sha256) "
                                   "does not match; restore a copy, or train again");
}

/* ---- reading ------------------------------------------------------------- */

static pl_code dtype_parse(nn_dtype *out, const json_t *j, const char *name, pl_error *err)
{
    const char *s = json_string_value(j);

    if (s == NULL)
        return pl_fail(err, PL_EDATA, "tensor %s has no dtype", name);
    for (int k = 0; k < NN_DTYPES; k++)
        if (!strcmp(s, dtypes[k].name)) {
            *out = (nn_dtype)k;
            return PL_OK;
        }
    return pl_fail(err, PL_EDATA, "tensor %s has the unsupported dtype %s", name, s);
}

/* limit: maximum number of entries of a tensor in this file. */
static pl_code shape_parse(nn_tensor *t, const json_t *j, size_t limit, pl_error *err)
{
    size_t n = json_array_size(j);

    if (!json_is_array(j) || n > NN_TENSOR_DIMS)
        return pl_fail(err, PL_EDATA, "the shape of tensor %s is no list of up to %d sizes", t->name, (int)NN_TENSOR_DIMS);
    t->n_dims = (int)n;
    t->count = 1;
    for (size_t k = 0; k < n; k++) {
        const json_t *size = json_array_get(j, k);
        json_int_t d = json_integer_value(size);
        if (!json_is_integer(size) || d < 0 || (d > 0 && t->count > limit / (uint64_t)d))
            return pl_fail(err, PL_EDATA, "the shape of tensor %s does not fit the file", t->name);
        t->dims[k] = d;
        t->count *= (size_t)d;
    }
    return PL_OK;
}

static pl_code offsets_parse(nn_tensor *t, const json_t *j, pl_bytes data, pl_error *err)
{
    const json_t *from = json_array_get(j, 0), *to = json_array_get(j, 1);
    json_int_t a = json_integer_value(from), b = json_integer_value(to);

    if (json_array_size(j) != 2 || !json_is_integer(from) || !json_is_integer(to))
        return pl_fail(err, PL_EDATA, "tensor %s has no pair of data_offsets", t->name);
    if (a < 0 || b < a || (uint64_t)b > data.len)
        return pl_fail(err, PL_EDATA, "tensor %s lies outside the file", t->name);
    if ((size_t)(b - a) != t->count * nn_dtype_bytes(t->dtype))
        return pl_fail(err, PL_EDATA, "tensor %s has %lld bytes, its shape needs %zu", t->name, (long long)(b - a),
                       t->count * nn_dtype_bytes(t->dtype));
    t->data = (const char *)data.data + a;
    return PL_OK;
}

static pl_code tensor_parse(nn_tensor *t, const json_t *j, pl_bytes data, pl_error *err)
{
    pl_code code;

    if (!json_is_object(j))
        return pl_fail(err, PL_EDATA, "the entry of tensor %s is no object", t->name);
    code = dtype_parse(&t->dtype, json_object_get(j, "dtype"), t->name, err);
    if (code == PL_OK)
        code = shape_parse(t, json_object_get(j, "shape"), data.len, err);
    if (code == PL_OK)
        code = offsets_parse(t, json_object_get(j, "data_offsets"), data, err);
    return code;
}

static pl_code meta_parse(nn_tensors *all, json_t *j, pl_arena *mem, pl_error *err)
{
    nn_meta *m = PL_NEW(mem, nn_meta, json_object_size(j));
    const char *key;
    json_t *value;

    if (!json_is_object(j))
        return pl_fail(err, PL_EDATA, "__metadata__ is no object");
    if (m == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the metadata");
    all->meta = m;
    json_object_foreach(j, key, value) {
        if (!json_is_string(value))
            return pl_fail(err, PL_EDATA, "metadata %s is no string", key);
        m[all->n_meta].key = pl_strdup(mem, key);
        m[all->n_meta].value = pl_strdup(mem, json_string_value(value));
        if (m[all->n_meta].key == NULL || m[all->n_meta].value == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for the metadata");
        all->n_meta++;
    }
    return PL_OK;
}

static pl_code header_parse(nn_tensors *all, json_t *root, pl_bytes data, pl_arena *mem, pl_error *err)
{
    nn_tensor *t = PL_NEW(mem, nn_tensor, json_object_size(root));
    const char *key;
    json_t *value;
    pl_code code = PL_OK;

    if (t == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the list of tensors");
    all->t = t;
    json_object_foreach(root, key, value) {
        if (!strcmp(key, "__metadata__")) {
            code = meta_parse(all, value, mem, err);
        } else {
            t[all->n].name = pl_strdup(mem, key);
            if (t[all->n].name == NULL)
                return pl_fail(err, PL_ENOMEM, "no memory for the list of tensors");
            code = tensor_parse(&t[all->n++], value, data, err);
        }
        if (code != PL_OK)
            return code;
    }
    return PL_OK;
}

static pl_code header_length(size_t *out, pl_bytes file, pl_error *err)
{
    const unsigned char *b = file.data;
    uint64_t n = 0;

    if (file.len < PREFIX)
        return pl_fail(err, PL_EDATA, "too short for a safetensors file");
    for (int k = PREFIX - 1; k >= 0; k--)
        n = n << 8 | b[k];
    if (n > HEADER_MAX || n > file.len - PREFIX)
        return pl_fail(err, PL_EDATA, "no safetensors file: its header would have %llu bytes", (unsigned long long)n);
    *out = (size_t)n;
    return PL_OK;
}

pl_code nn_tensors_parse(nn_tensors **out, pl_bytes file, pl_arena *mem, pl_error *err)
{
    nn_tensors *all = PL_NEW(mem, nn_tensors, 1);
    size_t n = 0;
    json_error_t why;
    json_t *root;
    pl_code code = header_length(&n, file, err);

    if (code != PL_OK)
        return code;
    if (all == NULL)
        return pl_fail(err, PL_ENOMEM, "no memory for the list of tensors");
    root = json_loadb((const char *)file.data + PREFIX, n, JSON_REJECT_DUPLICATES, &why);
    if (!json_is_object(root)) {
        json_decref(root);
        return pl_fail(err, PL_EDATA, "the safetensors header is no JSON object");
    }
    code = header_parse(all, root, (pl_bytes){ (const char *)file.data + PREFIX + n, file.len - PREFIX - n }, mem, err);
    json_decref(root);
    *out = all;
    return code != PL_OK ? code : checksum_verify(all, file, n, err);
}

pl_code nn_tensors_read(nn_tensors **out, const char *path, pl_arena *mem, pl_error *err)
{
    pl_bytes file;
    pl_code code = pl_file_read(&file, path, mem, err);

    if (code == PL_OK)
        code = nn_tensors_parse(out, file, mem, err);
    if (code != PL_OK)
        pl_at(err, "%s", path);
    return code;
}

const nn_tensor *nn_tensors_find(const nn_tensors *all, const char *name)
{
    for (int k = 0; k < all->n; k++)
        if (!strcmp(all->t[k].name, name))
            return &all->t[k];
    return NULL;
}

const char *nn_tensors_meta(const nn_tensors *all, const char *key)
{
    for (int k = 0; k < all->n_meta; k++)
        if (!strcmp(all->meta[k].key, key))
            return all->meta[k].value;
    return NULL;
}

/* ---- numbers ------------------------------------------------------------- */

static pl_code convert_check(const nn_tensor *t, size_t n, bool fits, const char *to, pl_error *err)
{
    if (t->count != n)
        return pl_fail(err, PL_EDATA, "tensor %s has %zu numbers, expected %zu", t->name, t->count, n);
    if (!fits)
        return pl_fail(err, PL_EDATA, "tensor %s is %s, which does not convert to %s", t->name, nn_dtype_name(t->dtype), to);
    return PL_OK;
}

static double real_at(const nn_tensor *t, size_t k)
{
    const char *at = (const char *)t->data + k * nn_dtype_bytes(t->dtype);
    uint16_t half;
    uint32_t bits;
    double d;
    float f;

    if (t->dtype == NN_F64) {
        memcpy(&d, at, sizeof d);
        return d;
    }
    if (t->dtype == NN_BF16) {
        memcpy(&half, at, sizeof half);
        bits = (uint32_t)half << 16;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
    memcpy(&f, at, sizeof f);
    return f;
}

static bool is_real(const nn_tensor *t) { return t->dtype == NN_F64 || t->dtype == NN_F32 || t->dtype == NN_BF16; }

pl_code nn_tensor_floats(float *out, size_t n, const nn_tensor *t, pl_error *err)
{
    pl_code code = convert_check(t, n, is_real(t), "real numbers", err);

    for (size_t k = 0; code == PL_OK && k < n; k++)
        out[k] = (float)real_at(t, k);
    return code;
}

pl_code nn_tensor_doubles(double *out, size_t n, const nn_tensor *t, pl_error *err)
{
    pl_code code = convert_check(t, n, is_real(t), "real numbers", err);

    for (size_t k = 0; code == PL_OK && k < n; k++)
        out[k] = real_at(t, k);
    return code;
}

pl_code nn_tensor_ints(int64_t *out, size_t n, const nn_tensor *t, pl_error *err)
{
    pl_code code = convert_check(t, n, !is_real(t), "whole numbers", err);
    const char *at = t->data;
    int32_t narrow;

    for (size_t k = 0; code == PL_OK && k < n; k++, at += nn_dtype_bytes(t->dtype)) {
        if (t->dtype == NN_I64) {
            memcpy(&out[k], at, sizeof *out);
        } else if (t->dtype == NN_I32) {
            memcpy(&narrow, at, sizeof narrow);
            out[k] = narrow;
        } else {
            out[k] = (unsigned char)*at;
        }
    }
    return code;
}

/* ---- writing ------------------------------------------------------------- */

static size_t tensor_count(const nn_tensor *t)
{
    size_t n = 1;

    for (int k = 0; k < t->n_dims; k++)
        n *= (size_t)t->dims[k];
    return n;
}

static json_t *tensor_json(const nn_tensor *t, size_t from)
{
    size_t to = from + tensor_count(t) * nn_dtype_bytes(t->dtype);
    json_t *shape = json_array();

    for (int k = 0; k < t->n_dims; k++)
        json_array_append_new(shape, json_integer(t->dims[k]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", nn_dtype_name(t->dtype), "shape", shape, "data_offsets", (json_int_t)from,
                     (json_int_t)to);
}

/* The checksum is the first member, so its digits are the first 64 in the file. */
static json_t *meta_json(const nn_tensors *what)
{
    json_t *j = json_pack("{s:s}", "sha256", no_digits);

    for (int k = 0; k < what->n_meta; k++)
        if (json_object_set_new(j, what->meta[k].key, json_string(what->meta[k].value))) {
            json_decref(j);
            return NULL;
        }
    json_object_set_new(j, "sha256", json_string(no_digits)); /* the checksum of a file that was read is not valid for this one */
    return j;
}

/* The header with tensors in order of decreasing width; *bytes = the data's size. */
static char *header_text(const nn_tensors *what, size_t *bytes)
{
    json_t *root = json_object();
    bool bad = json_object_set_new(root, "__metadata__", meta_json(what));
    char *text;

    *bytes = 0;
    for (int type = 0; type < NN_DTYPES; type++)
        for (int k = 0; k < what->n; k++) {
            const nn_tensor *t = &what->t[k];
            if ((int)t->dtype != type)
                continue;
            bad |= json_object_set_new(root, t->name, tensor_json(t, *bytes)) != 0;
            *bytes += tensor_count(t) * nn_dtype_bytes(t->dtype);
        }
    text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static void file_fill(char *file, const char *header, size_t padded, const nn_tensors *what)
{
    size_t len = strlen(header);

    for (int k = 0; k < PREFIX; k++)
        file[k] = (char)(padded >> (8 * k) & 0xff);
    memset(file + PREFIX, ' ', padded);
    memcpy(file + PREFIX, header, len);
    file += PREFIX + padded;
    for (int type = 0; type < NN_DTYPES; type++)
        for (int k = 0; k < what->n; k++) {
            size_t n = tensor_count(&what->t[k]) * nn_dtype_bytes(what->t[k].dtype);
            if ((int)what->t[k].dtype != type || !n)
                continue;
            memcpy(file, what->t[k].data, n);
            file += n;
        }
}

static void checksum_put(char *file, size_t n)
{
    char *at = memmem(file, n, no_digits, DIGITS), sum[DIGITS + 1];

    hash_around((pl_bytes){ file, n }, (size_t)(at - file), sum);
    memcpy(at, sum, DIGITS);
}

pl_code nn_tensors_write(const char *path, const nn_tensors *what, pl_error *err)
{
    size_t bytes, padded;
    char *header = header_text(what, &bytes), *file;
    pl_code code;

    if (header == NULL)
        return pl_fail(err, PL_EDATA, "%s: a tensor name or metadata is not UTF-8, or no memory", path);
    padded = (strlen(header) + 7) / 8 * 8;
    file = malloc(PREFIX + padded + bytes);
    if (file == NULL) {
        free(header);
        return pl_fail(err, PL_ENOMEM, "no memory to write %s", path);
    }
    file_fill(file, header, padded, what);
    checksum_put(file, PREFIX + padded + bytes);
    code = pl_file_write(path, (pl_bytes){ file, PREFIX + padded + bytes }, err);
    free(file);
    free(header);
    return code;
}
