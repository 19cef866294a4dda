/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for molsieve-chem that answers at once, so that the time measured is that of the rest of the program.
 * A record is the molecule of its text; records of the same text are the same molecule. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chem/common/protocol.h"
#include "chem/worker/wire.h"

enum { ATOMS = 40, HEAVY = 22 };

static bool read_all(void *to, size_t n)
{
    for (char *p = to; n > 0;) {
        ssize_t got = read(0, p, n);
        if (got <= 0)
            return false;
        p += got;
        n -= (size_t)got;
    }
    return true;
}

static bool write_all(const char *p, size_t n)
{
    while (n > 0) {
        ssize_t put = write(1, p, n);
        if (put <= 0)
            return false;
        p += put;
        n -= (size_t)put;
    }
    return true;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t hash_of(const char *s, size_t n)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return mix(h);
}

/* 14 letters, "-UHFFFAOYSA-N". */
static void key_of(uint64_t h, char key[32])
{
    for (int i = 0; i < 14; i++, h = i == 10 ? mix(h + 1) + h : h / 26)
        key[i] = (char)('A' + h % 26);
    (void)snprintf(key + 14, 18, "-UHFFFAOYSA-N");
}

static void put_prepared(pl_text *t, const char *text, size_t n)
{
    static uint8_t z[ATOMS], order[ATOMS];
    static int8_t charge[ATOMS];
    static int32_t bond[ATOMS][2];
    char key[32];
    uint64_t h = hash_of(text, n);

    for (int32_t i = 0; i < ATOMS; i++) {
        z[i] = i < HEAVY ? 6 : 1;
        order[i] = 1;
        bond[i][0] = i;
        bond[i][1] = i + 1;
    }
    key_of(h, key);
    ch_wire_put_str(t, text, n);
    ch_wire_put_str(t, key, 27);
    ch_wire_put_str(t, "C22H18", 6);
    ch_wire_put_str(t, "", 0);
    ch_wire_put_str(t, "", 0);
    ch_wire_put_str(t, "none", 4);
    ch_wire_put_str(t, text, n); /* the SMILES as drawn */
    ch_wire_put_u32(t, HEAVY);
    ch_wire_put_u32(t, (uint32_t)(h >> 8) % 7);
    for (int i = 0; i < 4; i++) /* charge as read, made neutral, undefined stereo, lost stereo */
        ch_wire_put_u32(t, 0);
    for (int i = 0; i < CH_N_DESCRIPTORS; i++)
        ch_wire_put_f64(t, ch_descriptors[i].whole ? (double)((h >> (8 * i % 56)) % 7)
                                                   : 100 + (double)(mix(h + (uint64_t)i) % 500000) / 1000);
    ch_wire_put_f64(t, (double)NAN);
    ch_wire_put_mol(t, &(ch_mol){ .n_atoms = ATOMS, .n_bonds = ATOMS - 1, .z = z, .charge = charge, .bond = bond, .order = order });
    for (int i = 0; i < 3; i++) /* no stereo: centres, double bonds, axes */
        ch_wire_put_u32(t, 0);
}

static void answer(const char *request, size_t len, pl_text *t)
{
    ch_wire in = ch_wire_of(request, len);
    uint32_t op = ch_wire_u32(&in);
    const char *text;
    size_t n;

    (void)ch_wire_f64(&in);
    ch_wire_put_u32(t, CH_OK);
    ch_wire_put_u32(t, 0);
    ch_wire_put_f64(t, 0);
    ch_wire_put_str(t, "", 0);
    if (op == CH_OP_HELLO || op == CH_OP_READY || op == CH_OP_VERSION) {
        ch_wire_put_str(t, "instant", 7);
        if (op == CH_OP_VERSION)
            ch_wire_put_str(t, CH_PROTOCOL_VERSION, sizeof CH_PROTOCOL_VERSION - 1);
        for (int i = 0; i < 2 && op != CH_OP_VERSION; i++)
            ch_wire_put_u32(t, 1);
        return;
    }
    for (int i = 0; i < 18; i++) /* the options */
        (void)ch_wire_u32(&in);
    for (int i = 0; i < 2; i++) /* rules and format */
        (void)ch_wire_str(&in, &n);
    text = ch_wire_str(&in, &n);
    for (size_t i = 0; i < n; i++)
        n = text[i] == ' ' || text[i] == '\t' || text[i] == '\n' ? i : n;
    put_prepared(t, text, n);
}

int main(void)
{
    pl_text t = { 0 };
    uint32_t n;

    while (read_all(&n, sizeof n)) {
        char *request = malloc(n + 1);
        if (request == NULL || !read_all(request, n))
            return 0;
        pl_text_reset(&t);
        answer(request, n, &t);
        free(request);
        n = (uint32_t)t.len;
        if (!write_all((const char *)&n, sizeof n) || !write_all(t.s, t.len))
            return 0;
    }
    return 0;
}
