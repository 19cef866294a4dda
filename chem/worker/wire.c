/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/worker/wire.h"

#include <string.h>

#include "chem/common/protocol.h"

ch_wire ch_wire_of(const char *data, size_t n)
{
    const char *from = data != NULL ? data : "";
    return (ch_wire){ from, from + (data != NULL ? n : 0), true };
}

static void take(ch_wire *in, void *to, size_t n)
{
    if (!in->ok || n > (size_t)(in->end - in->at)) {
        in->ok = false;
        memset(to, 0, n);
        return;
    }
    memcpy(to, in->at, n);
    in->at += n;
}

uint32_t ch_wire_u32(ch_wire *in)
{
    uint32_t x;
    take(in, &x, sizeof x);
    return x;
}

int32_t ch_wire_i32(ch_wire *in)
{
    int32_t x;
    take(in, &x, sizeof x);
    return x;
}

double ch_wire_f64(ch_wire *in)
{
    double x;
    take(in, &x, sizeof x);
    return x;
}

const char *ch_wire_str(ch_wire *in, size_t *n)
{
    const char *s;

    *n = ch_wire_u32(in);
    if (!in->ok || *n > (size_t)(in->end - in->at)) {
        in->ok = false;
        *n = 0;
        return "";
    }
    s = in->at;
    in->at += *n;
    return s;
}

static void take_array(ch_wire *in, void *to, size_t n)
{
    if (n > 0 && to != NULL)
        take(in, to, n);
}

pl_code ch_wire_mol(ch_mol *out, ch_wire *in, pl_arena *mem, pl_error *err)
{
    const int32_t n = ch_wire_i32(in), m = ch_wire_i32(in), has = ch_wire_i32(in);
    const size_t left = (size_t)(in->end - in->at);
    pl_code code;

    *out = (ch_mol){ 0 };
    if (!in->ok || n < 0 || m < 0 || (size_t)n > left || (size_t)m > left || (has & ~(CH_HAS_XYZ | CH_HAS_ISOTOPE)) != 0)
        return pl_fail(err, PL_EINPUT, "internal: a molecule is cut short");
    code = ch_mol_alloc(out, n, m, mem, err);
    if (code != PL_OK)
        return code;
    if ((has & CH_HAS_XYZ) == 0)
        out->xyz = NULL;
    if ((has & CH_HAS_ISOTOPE) != 0 && (out->isotope = PL_NEW(mem, uint16_t, n)) == NULL)
        return pl_fail(err, PL_ENOMEM, "a molecule of %d atoms", n);
    take_array(in, out->z, (size_t)n);
    take_array(in, out->charge, (size_t)n);
    take_array(in, out->xyz, (size_t)n * sizeof *out->xyz);
    take_array(in, out->bond, (size_t)m * sizeof *out->bond);
    take_array(in, out->order, (size_t)m);
    take_array(in, out->isotope, (size_t)n * sizeof *out->isotope);
    if (!in->ok)
        return pl_fail(err, PL_EINPUT, "internal: a molecule is cut short");
    return ch_mol_check(out, err);
}

pl_code ch_wire_mols(const ch_mol **out, int32_t *n, ch_wire *in, pl_arena *mem, pl_error *err)
{
    const int32_t many = ch_wire_i32(in);
    ch_mol *mol;
    pl_code code = PL_OK;

    *n = 0;
    if (!in->ok || many < 0 || (size_t)many > (size_t)(in->end - in->at) / 12)
        return pl_fail(err, PL_EINPUT, "internal: molecules are cut short");
    *out = mol = PL_NEW(mem, ch_mol, many + 1);
    if (mol == NULL)
        return pl_fail(err, PL_ENOMEM, "%d structures", many);
    for (int32_t i = 0; i < many && code == PL_OK; i++)
        code = ch_wire_mol(&mol[i], in, mem, err);
    *n = code == PL_OK ? many : 0;
    return code;
}

static int32_t atom_of(ch_wire *in, int32_t n_atoms)
{
    const int32_t atom = ch_wire_i32(in);

    in->ok = in->ok && atom >= 0 && atom < n_atoms;
    return in->ok ? atom : 0;
}

static void take_centre(ch_centre *c, int32_t n_atoms, ch_wire *in)
{
    c->atom = atom_of(in, n_atoms);
    for (int k = 0; k < 4; k++)
        c->neighbour[k] = atom_of(in, n_atoms);
    c->sign = ch_wire_i32(in) < 0 ? -1 : 1;
}

static void take_double_bond(ch_double_bond *d, int32_t n_atoms, ch_wire *in)
{
    d->a = atom_of(in, n_atoms);
    d->b = atom_of(in, n_atoms);
    d->c = atom_of(in, n_atoms);
    d->d = atom_of(in, n_atoms);
    d->cis = ch_wire_i32(in) != 0;
}

pl_code ch_wire_stereo(ch_stereo *out, int32_t n_atoms, ch_wire *in, pl_arena *mem, pl_error *err)
{
    const int32_t n = ch_wire_i32(in), m = ch_wire_i32(in), q = ch_wire_i32(in);
    const size_t left = (size_t)(in->end - in->at) / 16;
    ch_centre *centre;
    ch_double_bond *bond;
    ch_axis *axis;

    *out = (ch_stereo){ 0 };
    if (!in->ok || n < 0 || m < 0 || q < 0 || (size_t)n > left || (size_t)m > left || (size_t)q > left)
        return pl_fail(err, PL_EINPUT, "internal: stereo is cut short");
    centre = PL_NEW(mem, ch_centre, n + 1);
    bond = PL_NEW(mem, ch_double_bond, m + 1);
    axis = PL_NEW(mem, ch_axis, q + 1);
    if (centre == NULL || bond == NULL || axis == NULL)
        return pl_fail(err, PL_ENOMEM, "%d stereocentres", n);
    for (int32_t i = 0; i < n; i++)
        take_centre(&centre[i], n_atoms, in);
    for (int32_t i = 0; i < m; i++)
        take_double_bond(&bond[i], n_atoms, in);
    for (int32_t i = 0; i < q; i++)
        for (int k = 0; k < 4; k++)
            axis[i].atom[k] = atom_of(in, n_atoms);
    *out = (ch_stereo){ n, m, centre, bond, q, axis };
    return in->ok ? PL_OK : pl_fail(err, PL_EINPUT, "internal: stereo is cut short");
}

/* memcpy may not read from NULL, not even nothing. */
static void put_bytes(pl_text *t, const void *from, size_t n)
{
    if (from != NULL)
        pl_text_add_n(t, from, n);
}

void ch_wire_put_u32(pl_text *t, uint32_t x) { pl_text_add_n(t, (const char *)&x, sizeof x); }
void ch_wire_put_u64(pl_text *t, uint64_t x) { pl_text_add_n(t, (const char *)&x, sizeof x); }
void ch_wire_put_f64(pl_text *t, double x) { pl_text_add_n(t, (const char *)&x, sizeof x); }

void ch_wire_put_str(pl_text *t, const char *s, size_t n)
{
    ch_wire_put_u32(t, (uint32_t)n);
    put_bytes(t, s, n);
}

void ch_wire_put_mol(pl_text *t, const ch_mol *mol)
{
    const size_t n = (size_t)mol->n_atoms, m = (size_t)mol->n_bonds;

    ch_wire_put_u32(t, (uint32_t)n);
    ch_wire_put_u32(t, (uint32_t)m);
    ch_wire_put_u32(t, (mol->xyz != NULL ? CH_HAS_XYZ : 0u) | (mol->isotope != NULL ? CH_HAS_ISOTOPE : 0u));
    put_bytes(t, mol->z, n);
    put_bytes(t, mol->charge, n);
    put_bytes(t, mol->xyz, n * sizeof *mol->xyz);
    put_bytes(t, mol->bond, m * sizeof *mol->bond);
    put_bytes(t, mol->order, m);
    put_bytes(t, mol->isotope, n * sizeof *mol->isotope);
}

void ch_wire_put_mols(pl_text *t, const ch_mol *mol, int32_t n)
{
    ch_wire_put_u32(t, (uint32_t)n);
    for (int32_t i = 0; i < n; i++)
        ch_wire_put_mol(t, &mol[i]);
}
