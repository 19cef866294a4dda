/* SPDX-License-Identifier: Apache-2.0 */
#include "models/domain/domain.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/domain/packed.h"

enum {
    PART = 512,
    ASKED = 128
}; /* molecules in one part of a domain (folded: 40 kB); candidates that are compared with a part at once */

enum { BLOCK = 14 }; /* letters of an InChIKey that know no stereo, isotopes and charges */
enum { PLAIN = 2, ROW_BYTES = CH_FINGERPRINT_BYTES + NN_DOMAIN_KEY };
static const nn_packed packed = { .name = "domain.zlib", .row = ROW_BYTES, .max = NN_DOMAIN_MAX };
static const char values[] = "domain.value";
static const char *const names[PLAIN] = { "domain.fingerprint", "domain.inchikey" };
static const int64_t widths[PLAIN] = { CH_FINGERPRINT_BYTES, NN_DOMAIN_KEY };

bool nn_domain_has(const char *tensor)
{
    return strcmp(tensor, packed.name) == 0 || strcmp(tensor, values) == 0 || strcmp(tensor, names[0]) == 0 ||
           strcmp(tensor, names[1]) == 0;
}

static pl_code rooms(nn_domain *d, ch_fingerprint **print, ch_folds **folds, char (**key)[NN_DOMAIN_KEY + 1], pl_arena *mem,
                     pl_error *err)
{
    *print = PL_NEW(mem, ch_fingerprint, d->n);
    *folds = PL_NEW(mem, ch_folds, d->n / CH_FOLD + 1);
    *key = pl_arena_get(mem, (size_t)d->n, sizeof **key);
    d->print = *print;
    d->folds = *folds;
    d->key = (const char(*)[NN_DOMAIN_KEY + 1]) * key;
    return *print && *folds && *key ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model, %d molecules", (int)d->n);
}

/* ---- making -------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const nn_domain_molecule *x = a, *y = b;
    const int c = strcmp(x->key, y->key);

    return c ? c : memcmp(&x->print, &y->print, sizeof x->print);
}

pl_code nn_domain_make(nn_domain *out, nn_domain_molecule *molecule, int32_t n, pl_arena *mem, pl_error *err)
{
    ch_fingerprint *print;
    ch_folds *folds;
    char(*key)[NN_DOMAIN_KEY + 1];
    pl_code code;

    *out = (nn_domain){ .n = n };
    code = rooms(out, &print, &folds, &key, mem, err);
    if (code != PL_OK)
        return code;
    qsort(molecule, (size_t)n, sizeof *molecule, by_key);
    for (int32_t i = 0; i < n; i++) {
        print[i] = molecule[i].print;
        ch_folds_put(folds, i, &print[i]);
        memcpy(key[i], molecule[i].key, sizeof key[i]);
    }
    return PL_OK;
}

static bool has_value(const nn_domain *d, int32_t i, int32_t k)
{
    return !isnan(d->value[(size_t)i * (size_t)d->n_values + (size_t)k]);
}

/* NULL in *out: all molecules have target k. */
static pl_code only_make(const uint8_t **out, const nn_domain *d, int32_t k, pl_arena *mem, pl_error *err)
{
    uint8_t *only = NULL;
    int32_t i = 0;

    *out = NULL;
    while (i < d->n && has_value(d, i, k))
        i++;
    if (i == d->n)
        return PL_OK;
    only = PL_NEW(mem, uint8_t, d->n / CH_FOLD + 1);
    for (i = 0; i < d->n && only != NULL; i++)
        only[i / CH_FOLD] |= (uint8_t)(has_value(d, i, k) << i % CH_FOLD);
    *out = only;
    return only != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model, %d molecules", (int)d->n);
}

pl_code nn_domain_measured(nn_domain *d, const float *value, int32_t n_values, pl_arena *mem, pl_error *err)
{
    const uint8_t **only = PL_NEW(mem, const uint8_t *, n_values + 1);
    pl_code code = only != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the domain of a model, %d molecules", (int)d->n);

    d->value = value;
    d->n_values = n_values;
    d->only = only;
    for (int32_t k = 0; k < n_values && code == PL_OK; k++)
        code = only_make(&only[k], d, k, mem, err);
    return code;
}

/* ---- reading ------------------------------------------------------------- */

static pl_code check_shapes(const nn_tensor *const t[PLAIN], pl_error *err)
{
    for (int k = 0; k < PLAIN; k++) {
        if (t[k] == NULL)
            return pl_fail(err, PL_EDATA, "tensor %s is missing beside %s", names[k], names[!k]);
        if (t[k]->dtype != NN_U8 || t[k]->n_dims != 2 || t[k]->dims[1] != widths[k] || t[k]->dims[0] != t[0]->dims[0])
            return pl_fail(err, PL_EDATA, "tensor %s is not U8 of molecules x %d", names[k], (int)widths[k]);
    }
    if (t[0]->dims[0] > NN_DOMAIN_MAX)
        return pl_fail(err, PL_EDATA, "tensor %s has more than %d molecules", names[0], (int)NN_DOMAIN_MAX);
    return PL_OK;
}

/* Whether the key is made of capital letters and dashes only; an empty one is valid. */
static bool is_key(const char *key)
{
    static const char none[NN_DOMAIN_KEY + 1];
    size_t n = 0;

    while ((key[n] >= 'A' && key[n] <= 'Z') || key[n] == '-')
        n++;
    return n == NN_DOMAIN_KEY || memcmp(key, none, sizeof none) == 0;
}

static pl_code check_keys(const nn_domain *d, const char *tensor, pl_error *err)
{
    for (int32_t i = 0; i < d->n; i++)
        if (!is_key(d->key[i]) || (i > 0 && strcmp(d->key[i - 1], d->key[i]) > 0))
            return pl_fail(err, PL_EDATA, "tensor %s: row %d is no InChIKey, or not in order", tensor, (int)i);
    return PL_OK;
}

/* Copies n rows of fingerprints and keys. */
static pl_code rows_take(nn_domain *out, int32_t n, const char *prints, const char *keys, const char *tensor, pl_arena *mem,
                         pl_error *err)
{
    ch_fingerprint *print;
    ch_folds *folds;
    char(*key)[NN_DOMAIN_KEY + 1];
    pl_code code;

    out->n = n;
    code = rooms(out, &print, &folds, &key, mem, err);
    for (int32_t i = 0; i < n && code == PL_OK; i++) {
        memcpy(&print[i], prints + (size_t)i * CH_FINGERPRINT_BYTES, CH_FINGERPRINT_BYTES);
        ch_folds_put(folds, i, &print[i]);
        memcpy(key[i], keys + (size_t)i * NN_DOMAIN_KEY, NN_DOMAIN_KEY);
    }
    return code == PL_OK ? check_keys(out, tensor, err) : code;
}

static pl_code plain_take(nn_domain *out, const nn_tensor *const t[PLAIN], pl_arena *mem, pl_error *err)
{
    pl_code code = check_shapes(t, err);

    return code != PL_OK ? code : rows_take(out, (int32_t)t[0]->dims[0], t[0]->data, t[1]->data, names[1], mem, err);
}

static pl_code packed_take(nn_domain *out, const nn_tensor *t, pl_arena *mem, pl_error *err)
{
    const void *extra;
    void *rows;
    int32_t n;
    pl_code code = nn_packed_take(&rows, &extra, &n, &packed, t, err);

    if (code != PL_OK)
        return code;
    code = rows_take(out, n, rows, (const char *)rows + (size_t)n * CH_FINGERPRINT_BYTES, packed.name, mem, err);
    free(rows);
    return code;
}

static pl_code values_take(nn_domain *out, const nn_tensor *t, int32_t targets, pl_arena *mem, pl_error *err)
{
    float *value = PL_NEW(mem, float, (size_t)out->n *(size_t)targets);
    pl_code code;

    if (value == NULL)
        return pl_fail(err, PL_ENOMEM, "the domain of a model, %d molecules", (int)out->n);
    if (t->dtype != NN_F32 || t->n_dims != 2 || t->dims[0] != out->n || t->dims[1] != targets)
        return pl_fail(err, PL_EDATA, "tensor %s is not F32 of molecules x targets", values);
    code = nn_tensor_floats(value, (size_t)out->n * (size_t)targets, t, err);
    return code == PL_OK ? nn_domain_measured(out, value, targets, mem, err) : code;
}

static pl_code molecules_take(nn_domain *out, const nn_tensors *all, pl_arena *mem, pl_error *err)
{
    const nn_tensor *const t[PLAIN] = { nn_tensors_find(all, names[0]), nn_tensors_find(all, names[1]) };
    const nn_tensor *one = nn_tensors_find(all, packed.name);

    *out = (nn_domain){ 0 };
    if (one != NULL && (t[0] != NULL || t[1] != NULL))
        return pl_fail(err, PL_EDATA, "tensors %s and %s are both there", packed.name, t[0] != NULL ? names[0] : names[1]);
    if (one != NULL)
        return packed_take(out, one, mem, err);
    return t[0] == NULL && t[1] == NULL ? PL_OK : plain_take(out, t, mem, err);
}

pl_code nn_domain_take(nn_domain *out, const nn_tensors *all, int32_t targets, pl_arena *mem, pl_error *err)
{
    const nn_tensor *value = nn_tensors_find(all, values);
    pl_code code = molecules_take(out, all, mem, err);

    return code != PL_OK || value == NULL ? code : values_take(out, value, targets, mem, err);
}

/* ---- writing ------------------------------------------------------------- */

pl_code nn_domain_tensors(nn_tensor out[NN_DOMAIN_TENSORS], int *n, const nn_domain *d, pl_arena *mem, pl_error *err)
{
    const size_t prints = (size_t)d->n * CH_FINGERPRINT_BYTES;
    char *rows = PL_NEW(mem, char, (size_t)d->n *ROW_BYTES);

    if (rows == NULL)
        return pl_fail(err, PL_ENOMEM, "the domain of a model, %d molecules", (int)d->n);
    memcpy(rows, d->print, prints);
    for (int32_t i = 0; i < d->n; i++)
        memcpy(rows + prints + (size_t)i * NN_DOMAIN_KEY, d->key[i], NN_DOMAIN_KEY);
    *n = 1;
    if (d->value != NULL)
        out[(*n)++] = (nn_tensor){ .name = values,
                                   .dtype = NN_F32,
                                   .n_dims = 2,
                                   .dims = { d->n, d->n_values },
                                   .count = (size_t)d->n * (size_t)d->n_values,
                                   .data = d->value };
    return nn_packed_tensor(out, &packed, NULL, rows, d->n, mem, err);
}

/* ---- using --------------------------------------------------------------- */

ch_among nn_domain_of(const nn_domain *d, int32_t k)
{
    return (ch_among){ .all = d->print, .folds = d->folds, .only = d->value != NULL ? d->only[k] : NULL };
}

/* The first molecule of a domain of n, which has the smallest key; n: there is none. */
static int32_t first_of(const ch_among *a, int32_t n)
{
    int32_t i = 0;

    while (i < n && !ch_among_has(a, i))
        i++;
    return i;
}

static void nearest_of(nn_near *out, const nn_domain *d, const ch_among *a, int32_t first, const ch_fingerprint *to, int32_t n)
{
    ch_sought sought[ASKED];

    for (int32_t i = 0; i < n; i++)
        ch_sought_open(&sought[i], &to[i]);
    for (int32_t from = 0; from < d->n; from += PART)
        for (int32_t i = 0; i < n; i++)
            ch_sought_in(&sought[i], a, from, d->n - from < PART ? d->n : from + PART);
    for (int32_t i = 0; i < n; i++)
        out[i] = (nn_near){ ch_sought_alike(&sought[i]), d->key[sought[i].at < 0 ? first : sought[i].at] };
}

void nn_domain_nearest(nn_near *out, const nn_domain *d, int32_t target, const ch_fingerprint *to, int32_t n)
{
    const ch_among a = nn_domain_of(d, target);
    const int32_t first = first_of(&a, d->n);

    for (int32_t i = 0; i < n && first < d->n; i += ASKED)
        nearest_of(out + i, d, &a, first, to + i, n - i < ASKED ? n - i : ASKED);
    for (int32_t i = 0; i < n && first == d->n; i++)
        out[i] = (nn_near){ NAN, NULL };
}

/* The first whose n letters are not before these of the key. */
static int32_t first_from(const nn_domain *d, const char *inchikey, size_t n)
{
    int32_t low = 0, high = d->n;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (strncmp(d->key[middle], inchikey, n) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool nn_domain_knows(const nn_domain *d, const char *inchikey)
{
    const int32_t at = first_from(d, inchikey, BLOCK);

    return at < d->n && strlen(inchikey) >= BLOCK && strncmp(d->key[at], inchikey, BLOCK) == 0;
}

const char *nn_domain_own(const nn_domain *d, int32_t target, const char *inchikey)
{
    const ch_among among = nn_domain_of(d, target);

    for (int32_t i = inchikey[0] != '\0' ? first_from(d, inchikey, NN_DOMAIN_KEY) : d->n;
         i < d->n && strcmp(d->key[i], inchikey) == 0; i++)
        if (ch_among_has(&among, i))
            return d->key[i];
    return NULL;
}

bool nn_domain_same(const nn_domain *a, const nn_domain *b)
{
    return a->n == b->n && (a->n == 0 || (memcmp(a->print, b->print, (size_t)a->n * sizeof *a->print) == 0 &&
                                          memcmp(a->key, b->key, (size_t)a->n * sizeof *a->key) == 0));
}

bool nn_domain_same_of(const nn_domain *a, int32_t k, const nn_domain *b, int32_t j)
{
    const uint8_t *one = nn_domain_of(a, k).only, *other = nn_domain_of(b, j).only;
    bool same = one != NULL && other != NULL;

    for (int32_t i = 0; i < a->n / CH_FOLD + 1 && same; i++)
        same = one[i] == other[i];
    return same || (one == NULL && other == NULL);
}
