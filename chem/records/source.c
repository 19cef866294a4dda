/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/records/gunzip.h"

enum { PEEK = 64 << 10, CHUNK = 64 << 10, MOMENT_MS = 200 };

struct ch_source {
    ch_gunzip *file;
    char *path, *buf, *cut; /* cut: NULL until a line is too long */
    size_t cap, pos, end, limit;
    int64_t offset, number; /* of buf[pos] in the file, and of its line */
    size_t last_pos;        /* start of the last line, for ch_source_unread */
    int64_t last_offset;
    /* at_end: no more bytes to read; met_end: the last call for a line met the end; open_line: the last line has no line end */
    bool started, at_end, met_end, open_line, can_unread;
    char stop;          /* the byte that ends a line */
    const char *damage; /* NULL: none, except that of the gzip file */
};

pl_code ch_source_open(ch_source **out, const char *path, size_t line_limit, pl_error *err)
{
    ch_source *s = calloc(1, sizeof *s);
    pl_code code;

    *out = NULL;
    if (s == NULL)
        return pl_fail(err, PL_ENOMEM, "%s", path);
    s->limit = line_limit;
    s->cap = 2 * (size_t)CHUNK;
    s->buf = malloc(s->cap);
    s->path = strdup(path);
    s->stop = '\n';
    s->number = 1;
    code = s->buf == NULL || s->path == NULL ? pl_fail(err, PL_ENOMEM, "%s", path) : ch_gunzip_open(&s->file, path, err);
    if (code != PL_OK)
        ch_source_close(s);
    else
        *out = s;
    return code;
}

void ch_source_set_limit(ch_source *s, size_t line_limit) { s->limit = line_limit; }
void ch_source_set_stop(ch_source *s, const atomic_int *stop) { ch_gunzip_set_stop(s->file, stop); }

void ch_source_close(ch_source *s)
{
    if (s == NULL)
        return;
    ch_gunzip_close(s->file);
    free(s->buf);
    free(s->cut);
    free(s->path);
    free(s);
}

/* Reads more bytes after buf[end]; those before buf[pos] may be discarded. */
static pl_code fill(ch_source *s, pl_error *err)
{
    size_t got;
    pl_code code;

    if (s->pos > 0) {
        memmove(s->buf, s->buf + s->pos, s->end - s->pos);
        s->end -= s->pos;
        s->pos = 0;
        s->can_unread = false;
    }
    if (s->cap - s->end < CHUNK) {
        char *more = realloc(s->buf, 2 * s->cap);
        if (more == NULL)
            return pl_fail(err, PL_ENOMEM, "%s: a line of more than %zu bytes", s->path, s->end);
        s->buf = more;
        s->cap *= 2;
    }
    code = ch_gunzip_read(s->file, s->buf + s->end, CHUNK, &got, err);
    s->end += got;
    s->at_end = got == 0;
    return code;
}

/* Whether the first word could be a SMILES; a name such as ethanol, the title of an SDF record, is not. */
static bool looks_like_smiles(const char *s, size_t n)
{
    static const char outside[] = "BCNOPSFIclnopsbr0123456789@+-=#$:/\\%().*[";
    size_t brackets = 0, i = 0;

    for (; i < n && s[i] != ' ' && s[i] != '\t' && s[i] != '\r'; i++) {
        if (brackets == 0 && strchr(outside, s[i]) == NULL)
            return false;
        brackets += s[i] == '[';
        brackets -= brackets > 0 && s[i] == ']';
    }
    return i > 0;
}

/* Of a stream, what has come is enough to begin with: a line, and a moment to see whether more follows where that line does not say
 * what it is. The writer may wait for an answer before it goes on. */
static bool is_enough(const ch_source *s)
{
    const char *eol = memchr(s->buf, '\n', s->end);

    if (eol == NULL || !ch_gunzip_live(s->file))
        return false;
    return ch_gunzip_waits(s->file, looks_like_smiles(s->buf, (size_t)(eol - s->buf)) ? 0 : MOMENT_MS);
}

static pl_code start(ch_source *s, pl_error *err)
{
    pl_code code = PL_OK;

    if (s->started)
        return PL_OK;
    while (code == PL_OK && !s->at_end && s->end < PEEK && !is_enough(s))
        code = fill(s, err);
    if (code != PL_OK)
        return code;
    s->started = true;
    if (s->end >= 2 && (memcmp(s->buf, "\xFF\xFE", 2) == 0 || memcmp(s->buf, "\xFE\xFF", 2) == 0)) {
        s->damage = "UTF-16 text; save the file as UTF-8";
        s->end = 0;
        s->at_end = true;
    }
    if (s->end >= 3 && memcmp(s->buf, "\xEF\xBB\xBF", 3) == 0) {
        s->pos = 3;
        s->offset = 3;
    }
    if (memchr(s->buf, '\n', s->end) == NULL && memchr(s->buf, '\r', s->end) != NULL)
        s->stop = '\r';
    return PL_OK;
}

pl_code ch_source_peek(ch_source *s, const char **data, size_t *n, pl_error *err)
{
    pl_code code = start(s, err);

    *data = s->buf + s->pos;
    *n = s->end - s->pos < PEEK ? s->end - s->pos : PEEK;
    return code;
}

/* The line end at or after buf[from], or NULL after having read up to the limit. */
static pl_code find_end(ch_source *s, const char **found, pl_error *err)
{
    size_t seen = 0;

    for (;;) {
        pl_code code;
        *found = memchr(s->buf + s->pos + seen, s->stop, s->end - s->pos - seen);
        seen = s->end - s->pos;
        if (*found != NULL || s->at_end || seen > s->limit)
            return PL_OK;
        code = fill(s, err);
        if (code != PL_OK)
            return code;
    }
}

/* Skips the rest of a line that was cut; adds its bytes to *whole. */
static pl_code skip_rest(ch_source *s, size_t kept, size_t *whole, pl_error *err)
{
    s->pos += kept;
    s->offset += (int64_t)kept;
    for (;;) {
        const char *at = memchr(s->buf + s->pos, s->stop, s->end - s->pos);
        size_t n = at != NULL ? (size_t)(at - s->buf) - s->pos : s->end - s->pos;
        *whole += n;
        s->offset += (int64_t)n + (at != NULL);
        s->pos += n + (at != NULL);
        s->met_end = s->open_line = at == NULL && s->at_end;
        if (at != NULL || s->at_end)
            return PL_OK;
        pl_code code = fill(s, err);
        if (code != PL_OK)
            return code;
    }
}

/* A line longer than the limit: the part that is kept is copied, so that the buffer is free for the rest. */
static pl_code cut_line(ch_source *s, ch_line *out, pl_error *err)
{
    if (s->cut == NULL && (s->cut = malloc(s->limit)) == NULL)
        return pl_fail(err, PL_ENOMEM, "%s: a line of more than %zu bytes", s->path, s->limit);
    memcpy(s->cut, s->buf + s->pos, s->limit);
    out->s = s->cut;
    out->len = out->whole = s->limit;
    s->can_unread = false;
    return skip_rest(s, s->limit, &out->whole, err);
}

pl_code ch_source_line(ch_source *s, ch_line *out, bool *more, pl_error *err)
{
    const char *end;
    size_t n;
    pl_code code = start(s, err);

    *more = false;
    if (code == PL_OK)
        code = find_end(s, &end, err);
    s->met_end = code == PL_OK && end == NULL && s->at_end;
    if (code != PL_OK || s->pos == s->end)
        return code;
    *more = true;
    s->open_line = s->met_end;
    n = (end != NULL ? (size_t)(end - s->buf) : s->end) - s->pos;
    *out = (ch_line){ s->buf + s->pos, n, n, s->offset, s->number++ };
    if (n > s->limit)
        return cut_line(s, out, err);
    s->last_pos = s->pos;
    s->last_offset = s->offset;
    s->can_unread = true;
    s->pos += n + (end != NULL);
    s->offset += (int64_t)n + (end != NULL);
    if (n > 0 && out->s[n - 1] == '\r')
        out->len = out->whole = n - 1;
    return PL_OK;
}

void ch_source_unread(ch_source *s)
{
    if (!s->can_unread)
        return;
    s->pos = s->last_pos;
    s->offset = s->last_offset;
    s->number--;
    s->met_end = s->open_line = s->can_unread = false;
}

pl_code ch_source_seek(ch_source *s, int64_t offset, int64_t number, pl_error *err)
{
    pl_code code = start(s, err);

    if (code != PL_OK)
        return code;
    if (offset >= s->offset - (int64_t)s->pos && offset <= s->offset + (int64_t)(s->end - s->pos)) {
        s->pos = (size_t)(offset - (s->offset - (int64_t)s->pos)); /* still in memory */
    } else {
        code = ch_gunzip_seek(s->file, offset, err);
        if (code != PL_OK)
            return code;
        s->pos = s->end = 0;
        s->at_end = false;
    }
    s->offset = offset;
    s->number = number;
    s->met_end = s->open_line = s->can_unread = false;
    return PL_OK;
}

const char *ch_source_damage(const ch_source *s) { return s->damage != NULL ? s->damage : ch_gunzip_damage(s->file); }

ch_gunzip *ch_source_file(ch_source *s) { return s->file; }

bool ch_source_is_open(const ch_source *s) { return s->open_line && ch_gunzip_live(s->file); }

bool ch_source_met_end(const ch_source *s) { return s->met_end; }

bool ch_source_may_be_cut(const ch_source *s) { return s->open_line || !ch_gunzip_whole(s->file); }

void ch_source_where(const ch_source *s, int64_t *offset, int64_t *number)
{
    *offset = s->offset;
    *number = s->number;
}
