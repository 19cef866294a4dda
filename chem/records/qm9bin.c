/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/qm9bin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "chem/records/gunzip.h"

enum { HEAD = 64, N_FLOAT = 11, N_DOUBLE = 4, MAX_MOLECULES = 1 << 22, MAX_ATOMS = 999, FIRST_ROOM = 1 << 20 };
enum { GDB, ATOM, BOND, FLAGS, Z, CHARGE, XYZ, ORDER, FLOATS, DOUBLES, N_ARRAYS };

static const char magic[] = "QM9BIN01";

struct ch_qm9 {
    unsigned char *bytes;
    size_t len;
    uint32_t n_mol, n_atom, n_bond;
    size_t at[N_ARRAYS + 1]; /* where each array begins */
};

bool ch_qm9_starts(const char *data, size_t n) { return n >= 8 && memcmp(data, magic, 8) == 0; }
int32_t ch_qm9_count(const ch_qm9 *q) { return (int32_t)q->n_mol; }
int64_t ch_qm9_atoms(const ch_qm9 *q) { return q->n_atom; }

static uint32_t u32_at(const ch_qm9 *q, int array, size_t i)
{
    const unsigned char *p = q->bytes + q->at[array] + 4 * i;
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float float_at(const ch_qm9 *q, int array, size_t i)
{
    uint32_t bits = u32_at(q, array, i);
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static double double_at(const ch_qm9 *q, int array, size_t i)
{
    uint64_t bits = u32_at(q, array, 2 * i) | (uint64_t)u32_at(q, array, 2 * i + 1) << 32;
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

int32_t ch_qm9_index(const ch_qm9 *q, int32_t i) { return (int32_t)u32_at(q, GDB, (size_t)i); }
int64_t ch_qm9_offset(const ch_qm9 *q, int32_t i) { return (int64_t)(q->at[XYZ] + (size_t)12 * u32_at(q, ATOM, (size_t)i)); }

/* The header determines where each array begins and the length of the file. */
static pl_code take_header(ch_qm9 *q, const char *path, pl_error *err)
{
    uint32_t head[6];

    if (q->len < HEAD || !ch_qm9_starts((const char *)q->bytes, q->len))
        return pl_fail(err, PL_EINPUT, "%s: not a QM9BIN01 file", path);
    for (size_t i = 0; i < 6; i++)
        head[i] = u32_at(q, 0, 2 + i); /* at[0] is still 0: the header */
    q->n_mol = head[0], q->n_atom = head[1], q->n_bond = head[2];
    if (head[3] != N_FLOAT || head[4] != N_DOUBLE || head[5] != HEAD || q->n_mol > MAX_MOLECULES ||
        q->n_atom > (uint32_t)MAX_MOLECULES * 100 || q->n_bond > (uint32_t)MAX_MOLECULES * 100)
        return pl_fail(err, PL_EINPUT, "%s: the header of QM9BIN01 is not valid", path);
    const size_t n = q->n_mol, a = q->n_atom, b = q->n_bond;
    const size_t size[N_ARRAYS] = {
        4 * n, 4 * (n + 1), 4 * (n + 1), n, a, a, 12 * a, 3 * b, (size_t)N_FLOAT * 4 * n, (size_t)N_DOUBLE * 8 * n
    };
    q->at[0] = HEAD;
    for (int i = 0; i < N_ARRAYS; i++)
        q->at[i + 1] = q->at[i] + (size[i] + 7) / 8 * 8;
    return PL_OK;
}

static pl_code truncated(const char *path, const char *at_most, int64_t bytes, const ch_qm9 *q, pl_error *err)
{
    return pl_fail(err, PL_EINPUT, "%s: %s%lld bytes, %zu expected; the file is truncated", path, at_most, (long long)bytes,
                   q->at[N_ARRAYS]);
}

/* Offsets must increase up to the totals. */
static pl_code check_offsets(const ch_qm9 *q, const char *path, pl_error *err)
{
    const size_t n = q->n_mol;
    bool good = true;

    for (size_t i = 0; i < n && good; i++)
        good = u32_at(q, ATOM, i) <= u32_at(q, ATOM, i + 1) && u32_at(q, BOND, i) <= u32_at(q, BOND, i + 1);
    if (!good || u32_at(q, ATOM, n) != q->n_atom || u32_at(q, BOND, n) != q->n_bond)
        return pl_fail(err, PL_EINPUT, "%s: the offsets of QM9BIN01 are damaged", path);
    return PL_OK;
}

/* Makes room for more bytes, at most `upto` in all. The room doubles, so that a header alone cannot make the program ask for much. */
static pl_code grow(ch_qm9 *q, size_t *cap, size_t upto, const char *path, pl_error *err)
{
    const size_t wanted = 2 * *cap < FIRST_ROOM ? FIRST_ROOM : 2 * *cap;
    unsigned char *grown;

    *cap = wanted < upto ? wanted : upto;
    grown = realloc(q->bytes, *cap);
    if (grown == NULL)
        return pl_fail(err, PL_ENOMEM, "%s: no memory for it", path);
    q->bytes = grown;
    return PL_OK;
}

/* Reads on until `upto` bytes are there, or the file ends. */
static pl_code read_to(ch_qm9 *q, ch_gunzip *in, size_t upto, const char *path, pl_error *err)
{
    size_t cap = q->len, got = 1;
    pl_code code = PL_OK;

    while (code == PL_OK && got > 0 && q->len < upto) {
        if (q->len == cap)
            code = grow(q, &cap, upto, path, err);
        if (code == PL_OK)
            code = ch_gunzip_read(in, q->bytes + q->len, cap - q->len, &got, err);
        q->len += code == PL_OK ? got : 0;
    }
    if (ch_gunzip_damage(in) != NULL)
        code = pl_fail(err, PL_EINPUT, "%s: %s", path, ch_gunzip_damage(in));
    return code;
}

/* The arrays, and nothing after them: one byte more is asked for. A file that cannot hold them is refused before they are read. */
static pl_code read_arrays(ch_qm9 *q, ch_gunzip *in, const char *path, pl_error *err)
{
    const int64_t max = ch_gunzip_max(in);
    const size_t all = q->at[N_ARRAYS];
    pl_code code = max < (int64_t)all ? truncated(path, ch_gunzip_packed(in) ? "at most " : "", max, q, err)
                                      : read_to(q, in, all + 1, path, err);

    if (code == PL_OK && q->len < all)
        code = truncated(path, "", (int64_t)q->len, q, err);
    if (code == PL_OK && q->len > all)
        code = pl_fail(err, PL_EINPUT, "%s: more than the %zu bytes that the header of QM9BIN01 tells", path, all);
    return code;
}

pl_code ch_qm9_read(ch_qm9 **out, struct ch_gunzip *in, const char *path, pl_error *err)
{
    ch_qm9 *q = calloc(1, sizeof *q);
    pl_code code = q != NULL ? ch_gunzip_seek(in, 0, err) : pl_fail(err, PL_ENOMEM, "%s: no memory for it", path);

    if (code == PL_OK)
        code = read_to(q, in, HEAD, path, err);
    if (code == PL_OK)
        code = take_header(q, path, err);
    if (code == PL_OK)
        code = read_arrays(q, in, path, err);
    if (code == PL_OK)
        code = check_offsets(q, path, err);
    if (code != PL_OK) {
        ch_qm9_close(q);
        q = NULL;
    }
    *out = q;
    return code;
}

pl_code ch_qm9_open(ch_qm9 **out, const char *path, pl_error *err)
{
    ch_gunzip *in;
    pl_code code = ch_gunzip_open(&in, path, err);

    *out = NULL;
    if (code != PL_OK)
        return code;
    code = ch_qm9_read(out, in, path, err);
    ch_gunzip_close(in);
    return code;
}

void ch_qm9_close(ch_qm9 *q)
{
    if (q != NULL)
        free(q->bytes);
    free(q);
}

/* ---- one record: V3000, because the columns of V2000 have four decimals ---- */

static void add_atoms(pl_text *out, const ch_qm9 *q, size_t a0, size_t a1)
{
    for (size_t a = a0; a < a1; a++) {
        const int8_t charge = (int8_t)q->bytes[q->at[CHARGE] + a];
        pl_text_addf(out, "M  V30 %zu %s %.9g %.9g %.9g 0", a - a0 + 1, ch_element_symbol(q->bytes[q->at[Z] + a]),
                     (double)float_at(q, XYZ, 3 * a), (double)float_at(q, XYZ, 3 * a + 1), (double)float_at(q, XYZ, 3 * a + 2));
        if (charge != 0)
            pl_text_addf(out, " CHG=%d", charge);
        pl_text_add(out, "\n");
    }
}

static bool add_bonds(pl_text *out, const ch_qm9 *q, size_t b0, size_t b1, size_t n_atoms)
{
    for (size_t b = b0; b < b1; b++) {
        const unsigned char *bond = q->bytes + q->at[ORDER] + 3 * b;
        if (bond[0] >= n_atoms || bond[1] >= n_atoms || bond[2] < 1 || bond[2] > 3)
            return false;
        pl_text_addf(out, "M  V30 %zu %d %d %d\n", b - b0 + 1, bond[2], bond[0] + 1, bond[1] + 1);
    }
    return true;
}

/* The bonds that an atom has at least, if all of its hydrogens are there. */
static int least_bonds(int z, int charge)
{
    switch (z) {
    case 1:
    case 9: return charge == 0 ? 1 : 0;
    case 6: return 4 - abs(charge);
    case 7: return 3 + charge;
    case 8: return 2 + charge;
    default: return 0;
    }
}

/* All atoms are in the file: where bonds are missing, their orders are wrong, and hydrogens that are not there would be added. */
static pl_code bonds_check(const ch_qm9 *q, size_t a0, size_t a1, size_t b0, size_t b1, unsigned gdb, pl_error *err)
{
    int bonds[MAX_ATOMS] = { 0 };

    for (size_t b = b0; b < b1; b++) {
        const unsigned char *bond = q->bytes + q->at[ORDER] + 3 * b;
        bonds[bond[0]] += bond[2];
        bonds[bond[1]] += bond[2];
    }
    for (size_t a = a0; a < a1; a++) {
        const int z = q->bytes[q->at[Z] + a], least = least_bonds(z, (int8_t)q->bytes[q->at[CHARGE] + a]);
        if (bonds[a - a0] < least)
            return pl_fail(err, PL_EINPUT,
                           "gdb_%u: atom %zu (%s) has bonds of order %d, but %d or more are needed: its bond orders are wrong", gdb,
                           a - a0 + 1, ch_element_symbol(z), bonds[a - a0], least);
    }
    return PL_OK;
}

static void add_fields(pl_text *out, const ch_qm9 *q, size_t i)
{
    static const char *const floats[N_FLOAT] = { "A", "B", "C", "mu", "alpha", "homo", "lumo", "gap", "r2", "zpve", "Cv" };
    static const char *const doubles[N_DOUBLE] = { "U0", "U", "H", "G" };
    char buf[32];

    pl_text_addf(out, "> <gdb_index>\n%u\n\n> <split>\n%d\n\n", (unsigned)u32_at(q, GDB, i), q->bytes[q->at[FLAGS] + i] & 3);
    for (size_t k = 0; k < N_FLOAT; k++)
        pl_text_addf(out, "> <%s>\n%s\n\n", floats[k], pl_float_str(float_at(q, FLOATS, i * N_FLOAT + k), buf));
    for (size_t k = 0; k < N_DOUBLE; k++)
        pl_text_addf(out, "> <%s>\n%s\n\n", doubles[k], pl_real_str(double_at(q, DOUBLES, i * N_DOUBLE + k), buf));
}

pl_code ch_qm9_record(pl_text *out, const ch_qm9 *q, int32_t which, pl_error *err)
{
    const size_t i = (size_t)which;
    const size_t a0 = u32_at(q, ATOM, i), a1 = u32_at(q, ATOM, i + 1);
    const size_t b0 = u32_at(q, BOND, i), b1 = u32_at(q, BOND, i + 1);
    unsigned gdb = (unsigned)u32_at(q, GDB, i);

    if (a1 - a0 > MAX_ATOMS || b1 - b0 > MAX_ATOMS)
        return pl_fail(err, PL_EINPUT, "gdb_%u has %zu atoms and %zu bonds", gdb, a1 - a0, b1 - b0);
    for (size_t k = 3 * a0; k < 3 * a1; k++)
        if (!(fabsf(float_at(q, XYZ, k)) < 9999.0f))
            return pl_fail(err, PL_EINPUT, "gdb_%u has a position that is not finite or too large", gdb);
    pl_text_addf(out,
                 "gdb_%u\n  QM9BIN01          3D\n\n  0  0  0     0  0            999 V3000\nM  V30 BEGIN CTAB\n"
                 "M  V30 COUNTS %zu %zu 0 0 0\nM  V30 BEGIN ATOM\n",
                 gdb, a1 - a0, b1 - b0);
    add_atoms(out, q, a0, a1);
    pl_text_add(out, "M  V30 END ATOM\nM  V30 BEGIN BOND\n");
    if (!add_bonds(out, q, b0, b1, a1 - a0))
        return pl_fail(err, PL_EINPUT, "gdb_%u has a bond to an atom that is not there, or of no order", gdb);
    if (bonds_check(q, a0, a1, b0, b1, gdb, err) != PL_OK)
        return PL_EINPUT;
    pl_text_add(out, "M  V30 END BOND\nM  V30 END CTAB\nM  END\n");
    add_fields(out, q, i);
    pl_text_add(out, "$$$$\n");
    return pl_text_ok(out) ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for gdb_%u", gdb);
}
