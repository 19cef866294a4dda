/* SPDX-License-Identifier: Apache-2.0 */
#include "models/training/checkpoint.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "pipeline/base/text.h"

enum { SECTIONS = 8, NAME_BYTES = 16, HEADER_BYTES = 16, ENTRY_BYTES = 40 };

static const char magic[8] = "MSCKPT01";

/* One section and where it is in memory. Numbers are stored as they are: every supported machine is little-endian. */
typedef struct section {
    const char *name;
    void *data;
    size_t bytes;
} section;

/* The scalars of a state, in the order of the file format. Files from before loss scaling end before `scale`, those from before
 * budgets before `seconds`, those from before noise before `noise_square`; what is missing is 0. */
typedef struct numbers {
    int64_t n, outputs, step, epoch, cursor, best_epoch, bad_run, bad_total, seen_n, done, has_ema;
    double best_error, seen_loss, seen_abs, seen_square;
    double scale;
    int64_t scale_good;
    double seconds;
    int64_t planned;
    double noise_square;
    int64_t noise_n;
} numbers;

/* Bytes of the numbers in files of older programs. */
static const size_t older[] = { offsetof(numbers, scale), offsetof(numbers, seconds), offsetof(numbers, noise_square) };

static numbers numbers_of(const nn_train_state *s)
{
    return (numbers){ .n = (int64_t)s->n,
                      .outputs = s->outputs,
                      .step = s->step,
                      .epoch = s->epoch,
                      .cursor = s->cursor,
                      .best_epoch = s->best_epoch,
                      .bad_run = s->bad_run,
                      .bad_total = s->bad_total,
                      .seen_n = s->seen.n,
                      .done = s->done,
                      .has_ema = s->ema != NULL,
                      .best_error = s->best_error,
                      .seen_loss = s->seen.loss,
                      .seen_abs = s->seen.abs,
                      .seen_square = s->seen.square,
                      .scale = s->scale.by,
                      .scale_good = s->scale.good,
                      .seconds = s->seconds,
                      .planned = s->planned,
                      .noise_square = s->noise.square,
                      .noise_n = s->noise.n };
}

static void numbers_take(nn_train_state *s, const numbers *k)
{
    s->step = k->step;
    s->epoch = k->epoch;
    s->cursor = k->cursor;
    s->best_epoch = k->best_epoch;
    s->best_error = k->best_error;
    s->bad_run = k->bad_run;
    s->bad_total = k->bad_total;
    s->seen = (nn_loss_sum){ k->seen_loss, k->seen_abs, k->seen_square, k->seen_n };
    s->done = k->done != 0;
    s->scale = (nn_loss_scale){ k->scale, k->scale_good };
    s->seconds = k->seconds;
    s->planned = k->planned;
    s->noise = (nn_noise_sum){ k->noise_square, k->noise_n };
}

static void sections_of(section *list, const char *identity, numbers *k, const nn_train_state *s)
{
    size_t bytes = s->n * sizeof(float);

    list[0] = (section){ "identity", (void *)identity, strlen(identity) };
    list[1] = (section){ "numbers", k, sizeof *k };
    list[2] = (section){ "params", s->params, bytes };
    list[3] = (section){ "m", s->m, bytes };
    list[4] = (section){ "v", s->v, bytes };
    list[5] = (section){ "ema", s->ema, s->ema != NULL ? bytes : 0 };
    list[6] = (section){ "best", s->best, bytes };
    list[7] = (section){ "bases", s->bases, s->n_bases * sizeof(float) };
}

/* The last section is in files of optimisers with bases only. */
static int sections_count(const nn_train_state *s) { return s->n_bases > 0 ? SECTIONS : SECTIONS - 1; }

static size_t table_end(int n) { return HEADER_BYTES + (size_t)n * ENTRY_BYTES; }

static uint32_t crc_of(const void *data, size_t n) { return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, n); }

/* ---- writing ------------------------------------------------------------- */

static void put(unsigned char *to, size_t at, const void *from, size_t n)
{
    if (n)
        memcpy(to + at, from, n);
}

static void sections_put(unsigned char *out, const section *list, int count)
{
    uint64_t at = table_end(count);
    uint32_t n = (uint32_t)count, crc;

    for (int i = 0; i < count; i++) {
        size_t entry = HEADER_BYTES + (size_t)i * ENTRY_BYTES;
        uint64_t bytes = list[i].bytes;
        put(out, entry, list[i].name, strlen(list[i].name));
        put(out, entry + 16, &at, 8);
        put(out, entry + 24, &bytes, 8);
        put(out, at, list[i].data, bytes);
        crc = crc_of(out + at, bytes);
        put(out, entry + 32, &crc, 4);
        at += bytes;
    }
    put(out, 0, magic, sizeof magic);
    put(out, 8, &n, 4);
    crc = crc_of(out + HEADER_BYTES, table_end(count) - HEADER_BYTES);
    put(out, 12, &crc, 4);
}

/* At every moment the previous checkpoint exists under at least one of the two names. */
static pl_code rotate_files(const char *latest, const char *previous, pl_arena *mem, pl_error *err)
{
    const char *tmp = pl_sprintf(mem, "%s.tmp", previous);
    pl_code code;

    if (tmp == NULL)
        return pl_fail(err, PL_ENOMEM, "checkpoint");
    (void)unlink(tmp);
    if (link(latest, tmp) == 0) {
        code = rename(tmp, previous) == 0 ? PL_OK : pl_fail_errno(err, previous);
        (void)unlink(tmp); /* rename keeps it if both names already are the same file */
        return code;
    }
    if (errno == ENOENT)
        return PL_OK;
    return rename(latest, previous) == 0 ? PL_OK : pl_fail_errno(err, previous); /* the file system has no hard links */
}

static pl_code save_in(const char *dir, const char *identity, const nn_train_state *s, bool rotate, pl_arena *mem, pl_error *err)
{
    const char *latest = pl_sprintf(mem, "%s/latest.ckpt", dir), *previous = pl_sprintf(mem, "%s/previous.ckpt", dir);
    numbers k = numbers_of(s);
    section list[SECTIONS];
    const int n = sections_count(s);
    size_t total = table_end(n);
    unsigned char *out;
    pl_code code;

    sections_of(list, identity, &k, s);
    for (int i = 0; i < n; i++)
        total += list[i].bytes;
    out = PL_NEW(mem, unsigned char, total);
    if (latest == NULL || previous == NULL || out == NULL)
        return pl_fail(err, PL_ENOMEM, "a checkpoint of %zu bytes", total);
    sections_put(out, list, n);
    code = pl_mkdirs(dir, err);
    if (code == PL_OK && rotate)
        code = rotate_files(latest, previous, mem, err);
    return code != PL_OK ? code : pl_file_write(latest, (pl_bytes){ out, total }, err);
}

pl_code nn_checkpoint_save(const char *dir, const char *identity, const nn_train_state *s, bool rotate, pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    pl_code code = mem != NULL ? save_in(dir, identity, s, rotate, mem, err) : pl_fail(err, PL_ENOMEM, "checkpoint");

    pl_arena_free(mem);
    return code;
}

/* ---- reading ------------------------------------------------------------- */

/* sections: how many there must be; 0: as many as there can be. */
static pl_code header_check(pl_bytes in, int sections, pl_error *err)
{
    const unsigned char *p = in.data;
    uint32_t n, crc;

    if (in.len < table_end(SECTIONS - 1))
        return pl_fail(err, PL_EDATA, "torn: %zu bytes, the header alone has %zu", in.len, table_end(SECTIONS - 1));
    memcpy(&n, p + 8, 4);
    memcpy(&crc, p + 12, 4);
    if (memcmp(p, magic, sizeof magic) != 0)
        return pl_fail(err, PL_EDATA, "not a checkpoint of this program");
    if (n < SECTIONS - 1 || n > SECTIONS || in.len < table_end((int)n) ||
        crc != crc_of(p + HEADER_BYTES, table_end((int)n) - HEADER_BYTES))
        return pl_fail(err, PL_EDATA, "damaged: the checksum of the table of sections is wrong");
    if (sections && (int)n != sections)
        return pl_fail(err, PL_EDATA, "is of a training with%s bases of the optimiser, this one has %s", n < SECTIONS ? "out" : "",
                       n < SECTIONS ? "them" : "none");
    return PL_OK;
}

/* Returns the bytes of a section after checking their checksum. The table itself was checked before. */
static pl_code section_get(pl_bytes *out, pl_bytes in, int i, const char *name, pl_error *err)
{
    const unsigned char *entry = (const unsigned char *)in.data + HEADER_BYTES + (size_t)i * ENTRY_BYTES;
    char stored[NAME_BYTES + 1] = { 0 };
    uint64_t at, bytes;
    uint32_t crc;

    memcpy(stored, entry, NAME_BYTES);
    memcpy(&at, entry + 16, 8);
    memcpy(&bytes, entry + 24, 8);
    memcpy(&crc, entry + 32, 4);
    if (strcmp(stored, name) != 0)
        return pl_fail(err, PL_EDATA, "damaged: section %d is not %s", i, name);
    if (at > in.len || bytes > in.len - at)
        return pl_fail(err, PL_EDATA, "torn: section %s ends after the file", name);
    *out = (pl_bytes){ (const unsigned char *)in.data + at, (size_t)bytes };
    if (crc != crc_of(out->data, out->len))
        return pl_fail(err, PL_EDATA, "damaged: the checksum of section %s is wrong", name);
    return PL_OK;
}

/* Whether a section has the required number of bytes, or that of an older file. */
static bool is_long_enough(pl_bytes part, const section *of, int i)
{
    bool is = part.len == of->bytes;

    for (size_t k = 0; i == 1 && k < sizeof older / sizeof *older; k++)
        is = is || part.len == older[k];
    return is;
}

static pl_code identity_check(pl_bytes is, const char *want, pl_error *err)
{
    if (is.len == strlen(want) && !memcmp(is.data, want, is.len))
        return PL_OK;
    return pl_fail(err, PL_EDATA, "belongs to another training (%.*s)", (int)(is.len < 80 ? is.len : 80), (const char *)is.data);
}

static pl_code numbers_check(const numbers *k, const nn_train_state *s, pl_error *err)
{
    if (k->n != (int64_t)s->n)
        return pl_fail(err, PL_EDATA, "is of a model with %lld parameters, this one has %zu", (long long)k->n, s->n);
    if (k->outputs != s->outputs)
        return pl_fail(err, PL_EDATA, "is of a model with %lld outputs, this one has %lld", (long long)k->outputs,
                       (long long)s->outputs);
    if ((k->has_ema != 0) != (s->ema != NULL))
        return pl_fail(err, PL_EDATA, "is of a training with%s a moving average, this one has %s", k->has_ema != 0 ? "" : "out",
                       s->ema != NULL ? "one" : "none");
    if (k->step < 0 || k->epoch < 0 || k->cursor < 0 || k->best_epoch < -1 || k->seen_n < 0 || k->scale_good < 0 ||
        k->planned < 0 || k->noise_n < 0)
        return pl_fail(err, PL_EDATA, "damaged: a counter is negative");
    if (!(k->scale >= 0 && k->scale <= NN_LOSS_SCALE_MAX))
        return pl_fail(err, PL_EDATA, "damaged: the scale of the loss is %g", k->scale);
    if (!(k->seconds >= 0 && isfinite(k->seconds)))
        return pl_fail(err, PL_EDATA, "damaged: %g seconds were used", k->seconds);
    return PL_OK;
}

pl_code nn_checkpoint_read(nn_train_state *s, const char *identity, pl_bytes in, pl_error *err)
{
    numbers k = { 0 };
    section list[SECTIONS];
    pl_bytes part[SECTIONS];
    const int n = sections_count(s);
    pl_code code = header_check(in, n, err);

    sections_of(list, identity, &k, s);
    for (int i = 0; i < n && code == PL_OK; i++)
        code = section_get(&part[i], in, i, list[i].name, err);
    if (code == PL_OK)
        code = identity_check(part[0], identity, err);
    for (int i = 1; i < n && code == PL_OK; i++) {
        if (!is_long_enough(part[i], &list[i], i))
            code =
                pl_fail(err, PL_EDATA, "section %s has %zu bytes, this model needs %zu", list[i].name, part[i].len, list[i].bytes);
        if (code == PL_OK && i == 1) {
            memcpy(&k, part[1].data, part[1].len);
            code = numbers_check(&k, s, err);
        }
    }
    if (code != PL_OK)
        return code;
    for (int i = 2; i < n; i++)
        if (list[i].bytes)
            memcpy(list[i].data, part[i].data, list[i].bytes);
    numbers_take(s, &k);
    return PL_OK;
}

static pl_code load_file(nn_train_state *s, const char *path, const char *identity, pl_arena *mem, pl_error *err)
{
    pl_bytes in;
    pl_code code = pl_file_read(&in, path, mem, err);

    return code != PL_OK ? code : nn_checkpoint_read(s, identity, in, err);
}

static bool is_there(const char *path) { return access(path, F_OK) == 0; }

static pl_code load_in(const char *dir, const char *identity, nn_train_state *s, nn_checkpoint_from *from, pl_error *why,
                       pl_arena *mem, pl_error *err)
{
    const char *latest = pl_sprintf(mem, "%s/latest.ckpt", dir), *previous = pl_sprintf(mem, "%s/previous.ckpt", dir);
    pl_error first = { 0 }, second = { 0 };
    pl_code code;

    if (latest == NULL || previous == NULL)
        return pl_fail(err, PL_ENOMEM, "checkpoint");
    *from = NN_FROM_NOTHING;
    if (!is_there(latest) && !is_there(previous))
        return PL_OK;
    *from = NN_FROM_LATEST;
    code = is_there(latest) ? load_file(s, latest, identity, mem, &first) : pl_fail(&first, PL_EDATA, "latest.ckpt is missing");
    if (code != PL_EDATA) {
        if (code != PL_OK && err != NULL)
            *err = first;
        return code;
    }
    *from = NN_FROM_PREVIOUS;
    *why = first;
    code = is_there(previous) ? load_file(s, previous, identity, mem, &second) : pl_fail(&second, PL_EDATA, "is missing");
    if (code != PL_OK)
        return pl_fail(err, code, "%s: latest.ckpt: %.150s; previous.ckpt: %.150s", dir, first.text, second.text);
    return PL_OK;
}

pl_code nn_checkpoint_load(const char *dir, const char *identity, nn_train_state *s, nn_checkpoint_from *from, pl_error *why,
                           pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    pl_code code = mem != NULL ? load_in(dir, identity, s, from, why, mem, err) : pl_fail(err, PL_ENOMEM, "checkpoint");

    pl_arena_free(mem);
    return code;
}

static const char *identity_in(const char *path, pl_arena *mem)
{
    pl_bytes in, part;

    if (pl_file_read(&in, path, mem, NULL) != PL_OK || header_check(in, 0, NULL) != PL_OK ||
        section_get(&part, in, 0, "identity", NULL) != PL_OK)
        return NULL;
    return pl_strndup(mem, part.data, part.len);
}

const char *nn_checkpoint_identity(const char *dir, pl_arena *mem)
{
    const char *latest = pl_sprintf(mem, "%s/latest.ckpt", dir), *previous = pl_sprintf(mem, "%s/previous.ckpt", dir);
    const char *found = latest != NULL ? identity_in(latest, mem) : NULL;

    if (found == NULL && previous != NULL)
        found = identity_in(previous, mem);
    return found != NULL ? found : "";
}
