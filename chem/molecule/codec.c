/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/molecule/codec.h"

#include <assert.h>
#include <string.h>

#include "chem/molecule/block_header.h"

enum { VERSION = 1 };

static const char magic[] = "MSCB";

typedef struct header {
    ch_block_header seal;
    uint32_t n, bytes, zero;
} header;

typedef struct mol_header {
    int32_t n_atoms, n_bonds;
    uint8_t has_xyz, has_isotope, zero[2];
} mol_header;

static_assert(sizeof(header) == 24 && sizeof(mol_header) == 12, "no holes");

static uint64_t mol_bytes(const mol_header *h)
{
    uint64_t atoms = (uint64_t)h->n_atoms * ((h->has_xyz ? 14 : 2) + (h->has_isotope ? 2 : 0)), bonds = (uint64_t)h->n_bonds * 9;

    return (sizeof *h + atoms + bonds + 3) / 4 * 4;
}

static size_t ids_end(uint32_t n) { return sizeof(header) + 8 * (size_t)n; }
static size_t index_end(uint32_t n) { return ids_end(n) + 4 * ((size_t)n + 1); }

/* ---- packing ---- */

static mol_header head_of(const ch_mol *m)
{
    return (
        mol_header){ .n_atoms = m->n_atoms, .n_bonds = m->n_bonds, .has_xyz = m->xyz != NULL, .has_isotope = m->isotope != NULL };
}

static unsigned char *put(unsigned char *to, const void *from, size_t n)
{
    if (n > 0)
        memcpy(to, from, n);
    return to + n;
}

static void put_mol(unsigned char *to, const ch_mol *m)
{
    mol_header h = head_of(m);
    size_t atoms = (size_t)m->n_atoms, bonds = (size_t)m->n_bonds;

    to = put(to, &h, sizeof h);
    to = put(to, m->xyz, h.has_xyz ? 12 * atoms : 0);
    to = put(to, m->bond, 8 * bonds);
    to = put(to, m->z, atoms);
    to = put(to, m->charge, atoms);
    to = put(to, m->order, bonds);
    (void)put(to, m->isotope, h.has_isotope ? 2 * atoms : 0);
}

pl_code ch_block_pack(pl_bytes *out, const ch_block_item *items, int32_t n, pl_arena *mem, pl_error *err)
{
    header h = { .n = (uint32_t)n };
    uint64_t total = index_end(h.n), at = total;
    unsigned char *base;

    for (int32_t i = 0; i < n; i++) {
        mol_header m = head_of(&items[i].mol);
        total += mol_bytes(&m);
    }
    if (total > UINT32_MAX)
        return pl_fail(err, PL_EINPUT, "%d molecules take more than 4 GiB: use smaller units", n);
    base = PL_NEW(mem, unsigned char, total);
    if (base == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %d molecules", n);
    for (int32_t i = 0; i <= n; i++) {
        uint32_t offset = (uint32_t)at;
        memcpy(base + ids_end(h.n) + 4 * (size_t)i, &offset, 4);
        if (i == n)
            break;
        mol_header m = head_of(&items[i].mol);
        memcpy(base + sizeof h + 8 * (size_t)i, &items[i].id, 8);
        put_mol(base + at, &items[i].mol);
        at += mol_bytes(&m);
    }
    h.bytes = (uint32_t)total;
    memcpy(base, &h, sizeof h);
    ch_block_header_put(base, (size_t)total, magic, VERSION);
    *out = (pl_bytes){ base, (size_t)total };
    return PL_OK;
}

/* ---- unpacking ---- */

static pl_code get_header(header *h, pl_bytes in, pl_error *err)
{
    pl_code code = ch_block_header_open(h, sizeof *h, in, magic, VERSION, "molecules", err);

    if (code != PL_OK)
        return code;
    if (h->bytes != in.len || h->n > in.len / 12 || index_end(h->n) > in.len)
        return pl_fail(err, PL_EDATA, "block of molecules: sizes do not fit %zu bytes", in.len);
    return PL_OK;
}

static const unsigned char *take(void *to, const unsigned char *from, size_t n)
{
    if (n > 0)
        memcpy(to, from, n);
    return from + n;
}

/* Unpacks the molecule in these bytes; `len` is its length according to the index. */
static pl_code get_mol(ch_mol *m, const unsigned char *from, size_t len, pl_arena *mem, pl_error *err)
{
    mol_header h;
    size_t atoms, bonds;
    pl_code code;

    if (len < sizeof h)
        return pl_fail(err, PL_EDATA, "a molecule of %zu bytes", len);
    from = take(&h, from, sizeof h);
    if (h.n_atoms < 0 || h.n_atoms > CH_MOL_MAX_ATOMS || h.n_bonds < 0 || h.n_bonds > CH_MOL_MAX_BONDS || h.has_xyz > 1 ||
        h.has_isotope > 1 || mol_bytes(&h) != len)
        return pl_fail(err, PL_EDATA, "a molecule of %d atoms and %d bonds in %zu bytes", h.n_atoms, h.n_bonds, len);
    code = ch_mol_alloc(m, h.n_atoms, h.n_bonds, mem, err);
    if (code != PL_OK)
        return code;
    atoms = (size_t)h.n_atoms;
    bonds = (size_t)h.n_bonds;
    from = take(m->xyz, from, h.has_xyz ? 12 * atoms : 0);
    from = take(m->bond, from, 8 * bonds);
    from = take(m->z, from, atoms);
    from = take(m->charge, from, atoms);
    from = take(m->order, from, bonds);
    if (h.has_isotope && (m->isotope = PL_NEW(mem, uint16_t, h.n_atoms)) == NULL)
        return pl_fail(err, PL_ENOMEM, "a molecule of %d atoms", h.n_atoms);
    (void)take(m->isotope, from, h.has_isotope ? 2 * atoms : 0);
    if (!h.has_xyz)
        m->xyz = NULL;
    code = ch_mol_check(m, err);
    return code == PL_EINPUT ? pl_fail(err, PL_EDATA, "block of molecules: a molecule in it is not valid") : code;
}

static pl_code get_all(ch_block_item *items, const unsigned char *base, const header *h, pl_arena *mem, pl_error *err)
{
    uint32_t at, next;
    pl_code code = PL_OK;

    (void)take(&at, base + ids_end(h->n), 4);
    if (at != index_end(h->n))
        return pl_fail(err, PL_EDATA, "block of molecules: the index is out of order");
    for (uint32_t i = 0; code == PL_OK && i < h->n; i++, at = next) {
        (void)take(&next, base + ids_end(h->n) + 4 * ((size_t)i + 1), 4);
        if (next < at || next > h->bytes)
            return pl_fail(err, PL_EDATA, "block of molecules: the index is out of order");
        (void)take(&items[i].id, base + sizeof *h + 8 * (size_t)i, 8);
        code = get_mol(&items[i].mol, base + at, next - at, mem, err);
    }
    if (code == PL_OK && at != h->bytes)
        return pl_fail(err, PL_EDATA, "block of molecules: the index is out of order");
    return code;
}

pl_code ch_block_unpack(ch_block_item **out, int32_t *n, pl_bytes in, pl_arena *mem, pl_error *err)
{
    header h;
    pl_code code;

    *n = 0;
    code = get_header(&h, in, err);
    if (code != PL_OK)
        return code;
    *out = PL_NEW(mem, ch_block_item, h.n + 1);
    if (*out == NULL)
        return pl_fail(err, PL_ENOMEM, "a block of %u molecules", h.n);
    code = get_all(*out, in.data, &h, mem, err);
    if (code == PL_OK)
        *n = (int32_t)h.n;
    return code;
}
