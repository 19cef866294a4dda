/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/sha256.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/file.h"
#include "pipeline/base/sha256_blocks.h"

const uint32_t pl_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rot(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

static void expand(uint32_t w[64], const unsigned char *p)
{
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rot(w[i - 15], 7) ^ rot(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rot(w[i - 2], 17) ^ rot(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
}

static void compress(uint32_t h[8], const unsigned char *block)
{
    uint32_t w[64], v[8];

    expand(w, block);
    memcpy(v, h, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rot(v[4], 6) ^ rot(v[4], 11) ^ rot(v[4], 25);
        uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + pl_sha256_k[i] + w[i];
        uint32_t s0 = rot(v[0], 2) ^ rot(v[0], 13) ^ rot(v[0], 22);
        uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void pl_sha256_blocks_plain(uint32_t h[8], const unsigned char *p, size_t n)
{
    for (; n > 0; n--, p += 64)
        compress(h, p);
}

static void blocks_add(pl_sha256 *s, const unsigned char *p, size_t n)
{
    pl_sha256_blocks *fast = pl_sha256_blocks_x86();

    (fast != NULL ? fast : pl_sha256_blocks_plain)(s->h, p, n);
}

void pl_sha256_start(pl_sha256 *s)
{
    static const uint32_t h0[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
    };
    memcpy(s->h, h0, sizeof h0);
    s->n_bytes = 0;
}

void pl_sha256_add(pl_sha256 *s, const void *data, size_t n)
{
    const unsigned char *p = data;

    while (n > 0) {
        size_t at = s->n_bytes % 64, take = 64 - at < n ? 64 - at : n;
        if (take == 64) {
            take = n - n % 64;
            blocks_add(s, p, take / 64);
        } else {
            memcpy(s->block + at, p, take);
            if (at + take == 64)
                blocks_add(s, s->block, 1);
        }
        s->n_bytes += take;
        p += take;
        n -= take;
    }
}

void pl_sha256_add_str(pl_sha256 *s, const char *text)
{
    uint64_t n = strlen(text);
    unsigned char le[8];

    for (int i = 0; i < 8; i++)
        le[i] = (unsigned char)(n >> (8 * i));
    pl_sha256_add(s, le, 8);
    pl_sha256_add(s, text, n);
}

void pl_sha256_end(pl_sha256 *s, unsigned char out[32])
{
    static const unsigned char pad[64] = { 0x80 };
    uint64_t bits = s->n_bytes * 8;
    unsigned char be[8];

    for (int i = 0; i < 8; i++)
        be[i] = (unsigned char)(bits >> (56 - 8 * i));
    pl_sha256_add(s, pad, 1 + (119 - s->n_bytes % 64) % 64);
    pl_sha256_add(s, be, 8);
    for (int i = 0; i < 32; i++)
        out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void pl_sha256_hex(pl_sha256 *s, char out[65])
{
    unsigned char raw[32];

    pl_sha256_end(s, raw);
    for (int i = 0; i < 32; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", raw[i]);
}

pl_code pl_sha256_file(const char *path, char out[65], pl_error *err)
{
    char buf[1 << 16];
    pl_sha256 s;
    pl_code code = PL_OK;
    ssize_t n;
    int fd = pl_open_regular(path, err);

    if (fd < 0)
        return PL_EIO;
    pl_sha256_start(&s);
    while ((n = read(fd, buf, sizeof buf)) > 0 || (n < 0 && errno == EINTR))
        pl_sha256_add(&s, buf, n > 0 ? (size_t)n : 0);
    if (n < 0)
        code = pl_fail_errno(err, path);
    (void)close(fd);
    pl_sha256_hex(&s, out);
    return code;
}
