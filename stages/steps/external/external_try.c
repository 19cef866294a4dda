/* SPDX-License-Identifier: Apache-2.0 */
/* `molsieve check --try`: the program on the first molecule of the library, outside of any run. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/clock.h"
#include "pipeline/base/folder.h"
#include "stages/steps/external/external.h"
#include "stages/steps/external/external_parts.h"
#include "stages/steps/ingest/prepare_conf.h"
#include "stages/steps/ingest/read_input.h"

enum { RECORDS_MAX = 20 /* looked at until one is a molecule */ };

typedef struct trial {
    const pl_workflow *wf;
    pl_arena *mem;
    ch_prepared molecule;
    const char *title;
    const ch_mol *mol[1];
    char *folder;
} trial;

/* Built by Open Babel, which is slower: it is one molecule. */
static pl_code prepare_one(trial *t, ch_worker *w, const ch_record *r, bool *found, pl_error *err)
{
    const st_prepare_conf *c = pl_workflow_step(t->wf, "prepare")->conf;
    ch_prepare_opts opts = st_prepare_opts(c, (uint64_t)t->wf->seed);
    pl_code code;

    opts.builder = CH_OPENBABEL;
    opts.n_structures = 1;
    if (!st_ext_needs_3d(pl_workflow_step(t->wf, "external")->conf))
        opts.conformer = CH_3D_NONE;
    code = ch_worker_prepare(w, r->text, r->len, r->format, &opts, &t->molecule, t->mem, err);
    if (code == PL_EINPUT)
        return PL_OK;
    if (code == PL_OK)
        t->title = pl_strdup(t->mem, r->title);
    *found = code == PL_OK;
    return t->title != NULL ? code : pl_fail(err, PL_ENOMEM, "the title of a molecule");
}

static pl_code find_molecule(trial *t, bool *found, pl_error *err)
{
    const pl_step *read = pl_workflow_step(t->wf, "read");
    ch_reader *reader = NULL;
    ch_worker *w = NULL;
    bool more = true;
    pl_code code = ch_worker_open(&w, NULL, err);

    *found = false;
    if (code == PL_OK)
        code = st_input_open(&reader, st_input_at(t->wf, 0), read->conf, w, err);
    for (int k = 0; code == PL_OK && k < RECORDS_MAX && more && !*found; k++) {
        ch_record r;
        code = ch_reader_next(reader, &r, &more, err);
        if (code == PL_OK && more && r.problem == NULL)
            code = prepare_one(t, w, &r, found, err);
    }
    ch_reader_close(reader);
    ch_worker_close(w);
    return code;
}

/* As files_open of the stage, without the hashes. */
static pl_code stage_make(trial *t, st_ext_stage *s, pl_error *err)
{
    const st_external_conf *c = s->conf;
    const char *const *file = c->files.items;
    pl_code code;

    t->folder = pl_sprintf(t->mem, "%s/molsieve-try-XXXXXX", st_tmp_dir());
    if (t->folder == NULL)
        return pl_fail(err, PL_ENOMEM, "a temporary folder");
    s->scratch = mkdtemp(t->folder);
    if (s->scratch == NULL)
        return pl_fail_errno(err, t->folder);
    s->watched = PL_NEW(t->mem, st_ext_watched, c->files.n + 1);
    if (s->watched == NULL)
        return pl_fail(err, PL_ENOMEM, "a program");
    code = st_ext_program(&s->program, t->wf, c, t->mem, err);
    s->watched[s->n_watched++].path = s->program;
    for (int32_t i = 0; i < c->files.n && code == PL_OK; i++)
        code = st_ext_path(&s->watched[s->n_watched++].path, t->wf, file[i], t->mem, err);
    return code;
}

static void say(const trial *t, const st_external_conf *c, const st_ext_item *m, double seconds, pl_text *out)
{
    char value[32], time[32];

    pl_text_addf(out, "%s on %s%s%s: ", c->name, m->smiles, t->title[0] != '\0' ? " " : "", t->title);
    if (m->code == NULL)
        pl_text_addf(out, "%s %s%s%s", c->property, pl_real_str(m->value, value), c->unit[0] != '\0' ? " " : "", c->unit);
    else
        pl_text_addf(out, "%s: %s", m->code, m->message);
    pl_text_addf(out, ", %s%s%s\n", pl_duration_str(seconds, time), m->code != NULL ? "; its folder is kept: " : "",
                 m->code != NULL ? t->folder : "");
}

static pl_code call(trial *t, st_ext_stage *s, pl_text *out, bool *good, pl_error *err)
{
    st_external_worker w = { 0 };
    st_ext_item m = { .id = 1, .smiles = t->molecule.smiles, .inchikey = t->molecule.inchikey, .title = t->title, .mol = t->mol };
    double began = pl_clock();
    pl_code code;

    t->mol[0] = &t->molecule.mol;
    m.n_mols = t->molecule.mol.n_atoms > 0 && t->molecule.mol.xyz != NULL;
    code = st_external_worker_open(&w, s, err);
    w.mem = t->mem;
    if (code == PL_OK && st_ext_has_input(s->conf, &m))
        code = st_external_call(&w, &m, 1, err);
    st_external_worker_close(&w);
    *good = m.code == NULL;
    if (code == PL_OK)
        say(t, s->conf, &m, pl_clock() - began, out);
    return code;
}

static pl_code run(trial *t, pl_text *out, bool *good, pl_error *err)
{
    static const atomic_int never = 0;
    const pl_step *step = pl_workflow_step(t->wf, "external");
    st_external_conf conf = *(const st_external_conf *)step->conf;
    pl_env env = { .wf = t->wf, .step = step, .mem = t->mem, .stop = &never };
    st_ext_stage s = { .env = &env, .conf = &conf };
    bool found = false;
    pl_code code = find_molecule(t, &found, err);

    conf.keep = ST_KEEP_FAILED;
    if (code == PL_OK && !found)
        code = pl_fail(err, PL_EINPUT, "none of the first %d records is a molecule: nothing to try external on", (int)RECORDS_MAX);
    if (code == PL_OK)
        code = stage_make(t, &s, err);
    if (code == PL_OK)
        code = call(t, &s, out, good, err);
    if (s.scratch != NULL && (code != PL_OK || *good))
        (void)pl_folder_remove(s.scratch, NULL);
    return code;
}

pl_code st_external_try(const pl_workflow *wf, pl_text *out, bool *good, pl_error *err)
{
    trial t = { .wf = wf, .mem = pl_arena_new(1 << 16), .title = "" };
    pl_code code;

    *good = true;
    if (t.mem == NULL)
        return pl_fail(err, PL_ENOMEM, "a trial");
    code = pl_workflow_step(wf, "external") == NULL
               ? pl_fail(err, PL_ECONFIG, "--try: the workflow has no stage external, so there is no program to try")
               : run(&t, out, good, err);
    pl_arena_free(t.mem);
    return code;
}
