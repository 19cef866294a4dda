/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/gunzip.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "pipeline/base/file.h"
#include "pipeline/base/sha256.h"

/* Every block is full, except at the end of the file: so the start of a block, and what is lost by damage, does not depend on
 * the sizes of the reads. */
enum { BLOCK = 128 << 10, GZIP_ONLY = 16 + MAX_WBITS, EXPANDS_MAX = 1032, STOP_MS = 200 };

struct ch_gunzip {
    int fd;
    char *path;
    unsigned char *in, *out; /* BLOCK bytes each */
    z_stream z;
    const unsigned char *at; /* bytes decompressed and not yet returned */
    size_t left;
    int64_t base;         /* where the file begins: standard input may be read on */
    int64_t given, taken; /* bytes returned of the decompressed file; bytes read of the file itself */
    bool started, gzip, inside /* a member */, ended, padded, hashing;
    bool live;     /* a pipe, a terminal: bytes come when their writer sends them */
    bool over;     /* of a live file: its end was read. A terminal would wait for a second Ctrl-D */
    pl_sha256 sha; /* hash of the first sha.n_bytes of the file */
    char damage[128];
    const atomic_int *stop;
};

/* Standard input goes on where it is, also if it is a socket. */
static int open_path(const char *path)
{
    if (strcmp(path, CH_STDIN) == 0)
        return fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static bool is_live(int fd)
{
    struct stat st;
    return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || S_ISCHR(st.st_mode));
}

pl_code ch_gunzip_open(ch_gunzip **out, const char *path, pl_error *err)
{
    ch_gunzip *g = calloc(1, sizeof *g);
    int fd = open_path(path);

    *out = NULL;
    if (g == NULL || fd < 0) {
        free(g);
        if (fd < 0)
            return pl_fail_errno(err, path);
        (void)close(fd);
        return pl_fail(err, PL_ENOMEM, "%s", path);
    }
    g->fd = fd;
    g->live = is_live(fd);
    g->base = strcmp(path, CH_STDIN) == 0 ? (int64_t)lseek(fd, 0, SEEK_CUR) : 0;
    g->base = g->base > 0 ? g->base : 0;
    g->path = strdup(path);
    g->in = malloc(BLOCK);
    g->out = malloc(BLOCK);
    if (g->path == NULL || g->in == NULL || g->out == NULL || inflateInit2(&g->z, GZIP_ONLY) != Z_OK) {
        ch_gunzip_close(g);
        return pl_fail(err, PL_ENOMEM, "%s", path);
    }
    *out = g;
    return PL_OK;
}

void ch_gunzip_close(ch_gunzip *g)
{
    if (g == NULL)
        return;
    (void)inflateEnd(&g->z);
    (void)close(g->fd);
    free(g->path);
    free(g->in);
    free(g->out);
    free(g);
}

void ch_gunzip_set_stop(ch_gunzip *g, const atomic_int *stop) { g->stop = stop; }

bool ch_gunzip_live(const ch_gunzip *g) { return g->live && !g->gzip; }

bool ch_gunzip_waits(const ch_gunzip *g, int ms)
{
    struct pollfd in = { .fd = g->fd, .events = POLLIN };
    return g->live && g->left == 0 && g->z.avail_in == 0 && poll(&in, 1, ms) == 0;
}

static pl_code check_stop(const ch_gunzip *g, pl_error *err)
{
    return g->stop != NULL && *g->stop ? pl_fail(err, PL_ESTOP, "stopped while reading %s", g->path) : PL_OK;
}

const char *ch_gunzip_damage(const ch_gunzip *g) { return g->damage[0] != '\0' ? g->damage : NULL; }

int64_t ch_gunzip_max(const ch_gunzip *g)
{
    struct stat st;

    if (fstat(g->fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > INT64_MAX / EXPANDS_MAX)
        return INT64_MAX;
    return g->gzip ? (int64_t)st.st_size * EXPANDS_MAX : (int64_t)st.st_size;
}

bool ch_gunzip_packed(const ch_gunzip *g) { return g->gzip; }

bool ch_gunzip_whole(const ch_gunzip *g) { return !g->inside; }

static void set_damage(ch_gunzip *g, const char *why)
{
    (void)snprintf(g->damage, sizeof g->damage, "damaged gzip: %s", why);
    g->ended = true;
}

/* Bytes read again after a backward seek are already in the hash. */
static void hash_new(ch_gunzip *g, const unsigned char *read, int64_t n)
{
    int64_t known = (int64_t)g->sha.n_bytes - g->taken;

    if (g->hashing && n > known)
        pl_sha256_add(&g->sha, read + known, (size_t)(n - known));
}

/* A stream may be silent for hours: a signal, or a failure on another thread, ends the wait. */
static pl_code wait_for_bytes(const ch_gunzip *g, pl_error *err)
{
    struct pollfd in = { .fd = g->fd, .events = POLLIN };
    pl_code code = check_stop(g, err);

    while (code == PL_OK && g->live && poll(&in, 1, STOP_MS) <= 0)
        code = check_stop(g, err);
    return code;
}

/* Appends the next bytes of the file to the input that is left; none at its end. */
static pl_code take(ch_gunzip *g, pl_error *err)
{
    ssize_t got;
    pl_code code = g->over ? PL_OK : wait_for_bytes(g, err);

    if (code != PL_OK || g->over)
        return code;
    if (g->z.avail_in > 0)
        memmove(g->in, g->z.next_in, g->z.avail_in);
    g->z.next_in = g->in;
    do
        got = read(g->fd, g->in + g->z.avail_in, BLOCK - g->z.avail_in);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return pl_fail_errno(err, g->path);
    g->over = g->live && got == 0;
    hash_new(g, g->in + g->z.avail_in, got);
    g->z.avail_in += (unsigned)got;
    g->taken += got;
    return PL_OK;
}

static pl_code start(ch_gunzip *g, pl_error *err)
{
    unsigned before;

    do {
        before = g->z.avail_in;
        pl_code code = take(g, err);
        if (code != PL_OK)
            return code;
    } while (g->z.avail_in < 2 && g->z.avail_in > before); /* a pipe may give one byte */
    g->gzip = g->inside = g->z.avail_in >= 2 && g->in[0] == 0x1f && g->in[1] == 0x8b;
    g->started = true;
    return PL_OK;
}

/* Between members: skips zeros up to the next member or the end. At least one byte is left. */
static void find_member(ch_gunzip *g)
{
    char why[80];

    while (g->z.avail_in > 0 && *g->z.next_in == 0) {
        g->padded = true;
        g->z.next_in++;
        g->z.avail_in--;
    }
    if (g->z.avail_in == 0)
        return;
    g->inside = !g->padded && *g->z.next_in == 0x1f; /* zlib checks the second byte */
    if (g->inside)
        return;
    (void)snprintf(why, sizeof why, "what follows the compressed data is not gzip, from byte %lld on",
                   (long long)g->taken - (long long)g->z.avail_in + 1);
    set_damage(g, why);
}

/* One step within a member. `from`: where the member begins in g->out; if it is damaged, its bytes from there are dropped. */
static pl_code inflate_some(ch_gunzip *g, size_t *from, pl_error *err)
{
    int got = inflate(&g->z, Z_NO_FLUSH);

    if (got == Z_MEM_ERROR)
        return pl_fail(err, PL_ENOMEM, "%s", g->path);
    if (got == Z_STREAM_END) {
        g->inside = false;
        *from = BLOCK - g->z.avail_out;
        (void)inflateReset(&g->z);
    } else if (got != Z_OK && got != Z_BUF_ERROR) {
        set_damage(g, g->z.msg != NULL ? g->z.msg : "the compressed data are not valid");
        g->z.avail_out = (unsigned)(BLOCK - *from);
    }
    return PL_OK;
}

/* One step: `from` as for inflate_some. */
static pl_code unpack_some(ch_gunzip *g, size_t *from, pl_error *err)
{
    if (g->z.avail_in == 0 && g->inside)
        set_damage(g, "unexpected end of file");
    else if (g->z.avail_in == 0)
        g->ended = true;
    else if (!g->inside)
        find_member(g);
    else
        return inflate_some(g, from, err);
    return PL_OK;
}

static pl_code unpack_block(ch_gunzip *g, pl_error *err)
{
    size_t from = 0;
    pl_code code = PL_OK;

    g->z.next_out = g->out;
    g->z.avail_out = BLOCK;
    while (code == PL_OK && !g->ended && g->z.avail_out > 0) {
        if (g->z.avail_in == 0)
            code = take(g, err);
        if (code == PL_OK)
            code = unpack_some(g, &from, err);
    }
    g->at = g->out;
    g->left = BLOCK - g->z.avail_out;
    return code;
}

static pl_code plain_block(ch_gunzip *g, pl_error *err)
{
    pl_code code = g->z.avail_in == 0 ? take(g, err) : PL_OK;

    g->at = g->in;
    g->left = g->z.avail_in;
    g->z.avail_in = 0;
    return code;
}

static pl_code next_block(ch_gunzip *g, pl_error *err)
{
    pl_code code = g->started ? check_stop(g, err) : start(g, err);

    if (code != PL_OK || g->ended)
        return code;
    return g->gzip ? unpack_block(g, err) : plain_block(g, err);
}

pl_code ch_gunzip_read(ch_gunzip *g, void *to, size_t n, size_t *got, pl_error *err)
{
    pl_code code = g->left == 0 ? next_block(g, err) : PL_OK;

    *got = g->left < n ? g->left : n;
    if (*got > 0)
        memcpy(to, g->at, *got);
    g->at += *got;
    g->left -= *got;
    g->given += (int64_t)*got;
    return code;
}

/* Resets the reader to the state after opening. */
static pl_code rewind_to(ch_gunzip *g, int64_t offset, pl_error *err)
{
    const off_t to = (off_t)(g->base + offset);

    if (lseek(g->fd, to, SEEK_SET) != to)
        return pl_fail_errno(err, g->path);
    (void)inflateReset(&g->z);
    g->z.avail_in = 0;
    g->left = 0;
    g->given = g->taken = offset;
    g->inside = g->gzip;
    g->ended = g->padded = g->over = false;
    g->damage[0] = '\0';
    if (offset == 0) /* start the hash again with what is read now */
        pl_sha256_start(&g->sha);
    return PL_OK;
}

pl_code ch_gunzip_seek(ch_gunzip *g, int64_t offset, pl_error *err)
{
    pl_code code;

    if (offset < 0)
        return pl_fail(err, PL_EIO, "%s: no byte %lld", g->path, (long long)offset);
    code = g->started ? PL_OK : start(g, err);
    if (code == PL_OK && (offset < g->given || (!g->gzip && !g->hashing)))
        code = rewind_to(g, g->gzip ? 0 : offset, err);
    while (code == PL_OK && g->given < offset) {
        const int64_t ahead = offset - g->given;
        size_t step;
        if (g->left == 0)
            code = next_block(g, err);
        if (code == PL_OK && g->left == 0)
            return pl_fail(err, PL_EIO, "%s: cannot go to byte %lld", g->path, (long long)offset);
        step = (int64_t)g->left < ahead ? g->left : (size_t)ahead;
        g->at += step;
        g->left -= step;
        g->given += (int64_t)step;
    }
    return code;
}

/* ---- the hash ---- */

void ch_gunzip_hash(ch_gunzip *g)
{
    g->hashing = true;
    pl_sha256_start(&g->sha);
}

int64_t ch_gunzip_hashed(const ch_gunzip *g, char out[65])
{
    pl_sha256 copy = g->sha;

    pl_sha256_hex(&copy, out);
    return (int64_t)g->sha.n_bytes;
}

pl_code ch_gunzip_drain(ch_gunzip *g, pl_error *err)
{
    pl_code code = PL_OK;

    do {
        g->z.avail_in = 0;
        code = take(g, err);
    } while (code == PL_OK && g->z.avail_in > 0);
    g->ended = true;
    return code;
}
