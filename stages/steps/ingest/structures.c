/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/steps/ingest/structures.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "chem/worker/wire.h"
#include "pipeline/base/sha256.h"

enum { VERSION = 5 }; /* of an entry's bytes and of how structures are made */

pl_code st_structures_open(st_structures *s, pl_store *store, const char *library, const ch_prepare_opts *opts,
                           const ch_worker_opts *budget, pl_error *err)
{
    pl_text steps = { 0 };
    pl_sha256 sha;
    bool good;

    *s = (st_structures){ .store = store, .first_s = budget->cpu_first_s, .retry_s = budget->cpu_retry_s };
    pl_text_addf(&steps, "%d %d %d", (int)VERSION, (int)opts->force_field, opts->builder == CH_NATIVE ? -1 : (int)opts->steps);
    if (opts->builder == CH_NATIVE) /* its limit of work: with another one, a structure may be another builder's */
        pl_text_addf(&steps, " %.17g", s->retry_s);
    if (opts->n_structures > 1)
        pl_text_addf(&steps, " %d%s %.17g", (int)opts->n_structures, opts->builder == CH_NATIVE ? " of twice" : "",
                     opts->window); /* earlier ensembles were chosen by energy alone */
    if (opts->dielectric > 1)
        pl_text_addf(&steps, " dielectric %.17g", opts->dielectric);
    pl_sha256_start(&sha);
    pl_sha256_add_str(&sha, pl_text_str(&steps));
    pl_sha256_add_str(&sha, library);
    pl_sha256_hex(&sha, s->settings);
    good = pl_text_ok(&steps);
    pl_text_free(&steps);
    return good ? pl_store_features(store, err) : pl_fail(err, PL_ENOMEM, "no memory for structures");
}

static void key_of(const st_structures *s, const char *built_from, unsigned char key[32])
{
    pl_sha256 sha;

    pl_sha256_start(&sha);
    pl_sha256_add_str(&sha, s->settings);
    pl_sha256_add_str(&sha, built_from);
    pl_sha256_end(&sha, key);
}

/* Whether this run would have the same outcome: not if it allows less time than the structure
 * took, nor if it allows more time than the attempt that ran out of it. */
static bool holds(const st_structures *s, ch_status code, double cpu_s, double budget)
{
    return code == CH_TIMEOUT ? budget >= s->retry_s : cpu_s <= s->first_s + s->retry_s;
}

static pl_code unpack(const st_structures *s, pl_bytes data, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    ch_wire in = ch_wire_of(data.data, data.len);
    const uint32_t version = ch_wire_u32(&in), code = ch_wire_u32(&in);
    ch_prepared p = *out;
    const char *message, *geometry, *fallback;
    size_t n, m, k;
    double budget;
    pl_code unpacked;

    p.code = (ch_status)code;
    p.signal = ch_wire_i32(&in);
    p.attempts = ch_wire_i32(&in);
    p.cpu_s = ch_wire_f64(&in);
    budget = ch_wire_f64(&in);
    p.energy = ch_wire_f64(&in);
    message = ch_wire_str(&in, &n);
    geometry = ch_wire_str(&in, &m);
    p.built_by = ch_wire_u32(&in) != 0 ? "native" : "openbabel";
    p.steps = ch_wire_i32(&in);
    p.converged = ch_wire_u32(&in) != 0;
    fallback = ch_wire_str(&in, &k);
    if (!in.ok || version != VERSION || code >= CH_N_STATUS || !holds(s, p.code, p.cpu_s, budget))
        return PL_OK;
    p.message = pl_strndup(mem, message, n);
    p.geometry = pl_strndup(mem, geometry, m);
    p.fallback = k > 0 ? pl_strndup(mem, fallback, k) : NULL;
    if (p.message == NULL || p.geometry == NULL || (k > 0 && p.fallback == NULL))
        return pl_fail(err, PL_ENOMEM, "a structure");
    unpacked = ch_wire_mol(&p.mol, &in, mem, err);
    if (unpacked == PL_OK)
        unpacked = ch_wire_mols(&p.other, &p.n_other, &in, mem, err);
    if (unpacked == PL_OK) {
        *out = p;
        *found = true;
    }
    return unpacked == PL_EINPUT ? PL_OK : unpacked;
}

pl_code st_structure_find(void *ctx, const char *built_from, bool *found, ch_prepared *out, pl_arena *mem, pl_error *err)
{
    const st_structures *s = ctx;
    unsigned char key[32];
    pl_bytes data = { 0 };
    pl_code code;

    *found = false;
    key_of(s, built_from, key);
    code = pl_cache_get(s->store, key, &data, mem, err);
    return data.data != NULL ? unpack(s, data, found, out, mem, err) : code;
}

static bool is_kept(const ch_prepared *p)
{
    return p->code == CH_OK || p->code == CH_CONFORMER || p->code == CH_GEOMETRY ||
           (p->code == CH_TIMEOUT && p->signal == SIGPROF); /* not of a wall clock */
}

static void count_lacking(st_structures *s, const ch_prepared *p)
{
    if (p->code != CH_OK || p->set_aside != NULL || p->lacking == 0)
        return;
    s->n_lacking++;
    s->n_partly += p->present > 0;
    s->n_added += p->lacking;
}

pl_code st_structure_keep(st_structures *s, const ch_prepared *p, pl_error *err)
{
    unsigned char key[32];
    pl_text t = { 0 };
    pl_code code;

    s->n_known += p->known;
    s->n_built += p->built;
    s->n_lost += p->code == CH_OK && p->lost_stereo > 0 && p->set_aside == NULL;
    count_lacking(s, p);
    if (!p->built || !is_kept(p))
        return PL_OK;
    key_of(s, p->built_from, key);
    ch_wire_put_u32(&t, VERSION);
    ch_wire_put_u32(&t, (uint32_t)p->code);
    ch_wire_put_u32(&t, (uint32_t)p->signal);
    ch_wire_put_u32(&t, (uint32_t)p->attempts);
    ch_wire_put_f64(&t, p->cpu_s);
    ch_wire_put_f64(&t, s->retry_s);
    ch_wire_put_f64(&t, p->energy);
    ch_wire_put_str(&t, p->message, strlen(p->message));
    ch_wire_put_str(&t, p->geometry, strlen(p->geometry));
    ch_wire_put_u32(&t, p->built_by != NULL && strcmp(p->built_by, "native") == 0);
    ch_wire_put_u32(&t, (uint32_t)p->steps);
    ch_wire_put_u32(&t, p->converged);
    ch_wire_put_str(&t, p->fallback != NULL ? p->fallback : "", p->fallback != NULL ? strlen(p->fallback) : 0);
    ch_wire_put_mol(&t, &p->mol);
    ch_wire_put_mols(&t, p->other, p->n_other);
    code = pl_text_ok(&t) ? pl_cache_put(s->store, key, (pl_bytes){ t.s, t.len }, err) : pl_fail(err, PL_ENOMEM, "a structure");
    pl_text_free(&t);
    return code;
}
