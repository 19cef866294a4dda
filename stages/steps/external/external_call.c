/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pipeline/base/folder.h"
#include "pipeline/base/program.h"
#include "stages/steps/external/external_parts.h"

enum { END_MAX = 300 /* bytes of the end of its output that a failure keeps */ };

typedef struct call {
    st_external_worker *w;
    const st_external_conf *conf;
    st_ext_item *item; /* [n] */
    int32_t n;
    const char *dir;
    pl_program_result result;
    st_ext_atoms given; /* of its pdbqt file, if poses are wanted */
} call;

/* ---- its folder ---- */

static pl_code link_files(const call *c, pl_error *err)
{
    const st_ext_stage *s = c->w->stage;
    pl_code code = PL_OK;

    for (int32_t i = 1; i < s->n_watched && code == PL_OK; i++) { /* the first is the program */
        const char *path = s->watched[i].path, *name = pl_sprintf(c->w->scratch, "%s/%s", c->dir, st_ext_base(path));
        if (name == NULL)
            code = pl_fail(err, PL_ENOMEM, "the files of a program");
        else if (symlink(path, name) != 0)
            code = pl_fail_errno(err, name);
    }
    return code;
}

/* No sync: the folder is gone after the call. */
static pl_code put_file(const char *path, const pl_text *text, pl_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    pl_code code = fd >= 0 ? PL_OK : pl_fail_errno(err, path);

    for (size_t at = 0; code == PL_OK && at < text->len;) {
        ssize_t n = write(fd, text->s + at, text->len - at);
        if (n >= 0)
            at += (size_t)n;
        else if (errno != EINTR)
            code = pl_fail_errno(err, path);
    }
    if (fd >= 0 && close(fd) != 0 && code == PL_OK)
        code = pl_fail_errno(err, path);
    return code;
}

/* The atoms that the program gets, by which its poses are understood. */
static void note_atoms(call *c, const char *text)
{
    const bool wanted = c->conf->poses && c->conf->input == ST_IN_PDBQT;

    for (const char *s = text; wanted && *s != '\0'; s += strcspn(s, "\n") + (s[strcspn(s, "\n")] == '\n'))
        if (st_ext_is_atom_pdbqt(s))
            (void)st_ext_atom_pdbqt(&c->given, s, c->w->scratch);
}

static pl_code put_input(call *c, pl_error *err)
{
    const st_ext_input format = (st_ext_input)c->conf->input;
    const char *path = pl_sprintf(c->w->scratch, "%s/%s", c->dir, st_ext_input_name(format));
    pl_text text = { 0 };
    pl_code code = path != NULL ? st_ext_write(&text, format, c->item, c->n, c->w->chem, c->w->scratch, err)
                                : pl_fail(err, PL_ENOMEM, "the input of a program");

    if (code == PL_OK)
        note_atoms(c, pl_text_str(&text));
    if (c->given.refused)
        code = pl_fail(err, PL_ENOMEM, "the atoms of a molecule");
    if (code == PL_OK)
        code = put_file(path, &text, err);
    pl_text_free(&text);
    return code;
}

static pl_code dir_make(call *c, pl_error *err)
{
    const st_ext_item *m = &c->item[0];
    char which[16] = "";

    if (m->structure > 0)
        (void)snprintf(which, sizeof which, "-%d", (int)m->structure);
    c->dir = pl_sprintf(c->w->scratch, "%s/%lld%s", c->w->stage->scratch, (long long)m->id, which);
    pl_code code = c->dir != NULL ? pl_folder_remove(c->dir, err) : pl_fail(err, PL_ENOMEM, "the folder of a program");

    if (code == PL_OK)
        code = pl_mkdirs(c->dir, err);
    if (code == PL_OK)
        code = link_files(c, err);
    return code == PL_OK ? put_input(c, err) : code;
}

/* What is left of a folder that cannot be removed does no harm: it is tried again when the stage ends. */
static void dir_end(const call *c)
{
    bool failed = false;

    for (int32_t i = 0; i < c->n; i++)
        failed = failed || c->item[i].code != NULL;
    if (c->conf->keep == ST_KEEP_NONE || (c->conf->keep == ST_KEEP_FAILED && !failed))
        (void)pl_folder_remove(c->dir, NULL);
}

/* ---- the call ---- */

static pl_code run(call *c, pl_error *err)
{
    const st_ext_stage *s = c->w->stage;
    const st_external_conf *conf = c->conf;
    char id[32];
    const st_ext_words words = { st_ext_input_name((st_ext_input)conf->input), st_ext_output_name((st_ext_output)conf->output),
                                 c->dir, id, conf->cores };
    pl_program p = { .path = s->program,
                     .dir = c->dir,
                     .timeout_s = conf->timeout * c->n,
                     .memory_bytes = (size_t)conf->memory,
                     .file_bytes = (size_t)conf->max_disk,
                     .dir_bytes = conf->max_disk };

    (void)snprintf(id, sizeof id, "%lld", (long long)c->item[0].id);
    p.argv = st_ext_argv(conf, &words, c->w->scratch);
    p.env = st_ext_environment(conf, c->dir, c->w->scratch);
    c->result = (pl_program_result){ .out = c->w->out, .size = (size_t)conf->max_output };
    if (p.argv == NULL || p.env == NULL)
        return pl_fail(err, PL_ENOMEM, "the command of a program");
    return pl_program_run(&p, s->env->stop, &c->result, err);
}

/* The end of its output on one line, with the place of its folder left out: that differs between runs of the same. */
static void add_end(pl_text *out, const call *c)
{
    const char *at = c->result.last, *end = at + c->result.n_last, *start;
    const size_t n_dir = strlen(c->dir);
    pl_text text = { 0 };

    while (at < end) {
        bool here = (size_t)(end - at) >= n_dir && memcmp(at, c->dir, n_dir) == 0;
        pl_text_add_n(&text, here ? "{dir}" : at, here ? 5 : 1);
        at += here ? n_dir : 1;
    }
    while (text.len > 0 && strchr(" \t\r\n", text.s[text.len - 1]) != NULL)
        text.len--;
    start = text.len > END_MAX ? text.s + text.len - END_MAX : text.s;
    if (text.len > 0) {
        pl_text_add(out, "; its output ends with: ");
        pl_text_add_clean(out, start, text.len - (size_t)(start - text.s), out->len + END_MAX);
    } else {
        pl_text_add(out, "; it printed nothing");
    }
    pl_text_free(&text);
}

static void set_all(call *c, const char *code, int signal_number, const char *what)
{
    pl_text text = { 0 };

    pl_text_add(&text, what);
    add_end(&text, c);
    for (int32_t i = 0; i < c->n; i++) {
        c->item[i].code = code;
        c->item[i].signal = signal_number;
        (void)snprintf(c->item[i].message, sizeof c->item[i].message, "%s", pl_text_str(&text));
    }
    pl_text_free(&text);
}

/* False: it did not end as it should, and all molecules have their failure. */
static bool ended_well(call *c)
{
    const pl_program_result *r = &c->result;
    char what[128], time[32], size[32];

    switch (r->end) {
    case PL_PROGRAM_TIMEOUT:
        (void)snprintf(what, sizeof what, "not done after %s", pl_duration_str(c->conf->timeout * c->n, time));
        set_all(c, "timeout", 0, what);
        return false;
    case PL_PROGRAM_FULL:
        (void)snprintf(what, sizeof what, "its folder has more than %s (limits.disk)", pl_size_str(c->conf->max_disk, size));
        set_all(c, "disk", 0, what);
        return false;
    case PL_PROGRAM_SIGNALLED:
        (void)snprintf(what, sizeof what, "ended by signal %d (%s)", r->status, strsignal(r->status));
        set_all(c, r->status == SIGXFSZ ? "disk" : "crash", r->status, what);
        return false;
    case PL_PROGRAM_EXITED: break;
    }
    if (r->status == 0)
        return true;
    (void)snprintf(what, sizeof what, "exit status %d", r->status);
    set_all(c, "exit", 0, what);
    return false;
}

/* Its output file, up to limits.output, into out; NULL, or what is wrong with it. */
static const char *take_file(call *c, const char *path)
{
    const size_t size = (size_t)c->conf->max_output;
    struct stat st;
    int fd = lstat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    ssize_t n = 1;

    if (fd < 0)
        return "it wrote no file {output}";
    for (c->result.n_out = 0; n > 0 && c->result.n_out<size; c->result.n_out += n> 0 ? (size_t)n : 0)
        n = read(fd, c->w->out + c->result.n_out, size - c->result.n_out);
    c->result.cut = n > 0 && read(fd, &(char){ 0 }, 1) == 1;
    (void)close(fd);
    return n < 0 ? "its file {output} cannot be read" : NULL;
}

static pl_code read_output(call *c, pl_error *err)
{
    const char *path = pl_sprintf(c->w->scratch, "%s/%s", c->dir, st_ext_output_name((st_ext_output)c->conf->output)), *why;
    char what[128], size[32];
    pl_code code;

    if (path == NULL)
        return pl_fail(err, PL_ENOMEM, "the output of a program");
    why = st_ext_has_word(c->conf, "output") ? take_file(c, path) : NULL;
    if (why == NULL && c->result.cut) {
        (void)snprintf(what, sizeof what, "more than %s of output (limits.output)", pl_size_str(c->conf->max_output, size));
        why = what;
    }
    if (why != NULL) {
        set_all(c, "output", 0, why);
        return PL_OK;
    }
    c->w->out[c->result.n_out] = '\0';
    code = st_ext_read(c->item, c->n, c->conf,
                       &(st_ext_given){ &c->w->re, c->conf->input == ST_IN_PDBQT ? &c->given : NULL, c->w->mem }, c->w->out,
                       c->result.n_out, err);
    for (int32_t i = 0; i < c->n; i++) {
        st_ext_item *m = &c->item[i];
        pl_text text = { 0 };
        if (m->code == NULL)
            continue;
        pl_text_add(&text, m->message);
        add_end(&text, c);
        (void)snprintf(m->message, sizeof m->message, "%s", pl_text_str(&text));
        pl_text_free(&text);
    }
    return code;
}

/* The chemistry worker cannot write the molecule. */
static void set_unwritten(call *c, const pl_error *why)
{
    for (int32_t i = 0; i < c->n; i++) {
        c->item[i].code = "structure";
        (void)snprintf(c->item[i].message, sizeof c->item[i].message, "it cannot be written for the program: %s", why->text);
    }
}

static pl_code call_once(st_external_worker *w, st_ext_item *item, int32_t n, pl_error *err)
{
    call c = { .w = w, .conf = w->stage->conf, .item = item, .n = n };
    pl_error why = { 0 };
    pl_code code;

    pl_arena_reset(w->scratch);
    for (int32_t i = 0; i < n; i++) {
        item[i].code = NULL;
        item[i].n_poses = item[i].n_left_out = 0;
    }
    code = dir_make(&c, &why);
    if (code == PL_EINPUT) {
        set_unwritten(&c, &why);
        dir_end(&c);
        return PL_OK;
    }
    if (code != PL_OK)
        return pl_fail(err, code, "%s", why.text);
    code = run(&c, err);
    if (code == PL_OK && ended_well(&c))
        code = read_output(&c, err);
    if (code == PL_OK)
        dir_end(&c);
    else if (c.dir != NULL)
        (void)pl_folder_remove(c.dir, NULL);
    return code;
}

static bool is_better(const st_external_conf *c, const st_ext_item *a, const st_ext_item *b)
{
    if (a->code != NULL || b->code != NULL)
        return a->code == NULL && b->code != NULL;
    if (c->better == ST_BETTER_NONE)
        return false;
    return c->better == ST_BETTER_LOW ? a->value < b->value : a->value > b->value;
}

/* Adds the outcome of one structure to that of those before it: the best value counts, of equal ones the first. */
static void outcome_add(const st_external_conf *c, st_ext_item *all, const st_ext_item *one)
{
    st_ext_item sum = all->structure == 0 || is_better(c, one, all) ? *one : *all;

    if (all->structure > 0) {
        const st_ext_item *why = all->n_left_out > 0 ? all : one;
        sum.n_left_out = all->n_left_out + one->n_left_out;
        memcpy(sum.left_out, why->left_out, sizeof sum.left_out);
    }
    *all = sum;
}

/* The calls that failed beside others: how many, and why the first did. */
typedef struct bad_calls {
    int32_t n;
    char why[sizeof((st_ext_item *)0)->message];
} bad_calls;

static void bad_call_add(bad_calls *bad, const st_ext_item *one)
{
    if (one->code != NULL && bad->n++ == 0)
        (void)snprintf(bad->why, sizeof bad->why, "structure %d, %s: %.400s", (int)one->structure, one->code, one->message);
}

/* A call for each structure of the molecule. */
static pl_code call_each(st_external_worker *w, st_ext_item *item, pl_error *err)
{
    st_ext_item all = *item;
    bad_calls bad = { .n = 0 };
    pl_code code = PL_OK;

    for (int32_t k = 0; k < item->n_mols && code == PL_OK; k++) {
        st_ext_item one = *item;
        one.mol = item->mol + k;
        one.n_mols = 1;
        one.structure = k + 1;
        one.pose = NULL;
        code = call_once(w, &one, 1, err);
        bad_call_add(&bad, &one);
        outcome_add(w->stage->conf, &all, &one);
    }
    all.mol = item->mol;
    all.n_mols = item->n_mols;
    all.structure = 0;
    all.n_bad_calls = all.code == NULL ? bad.n : 0;
    if (all.n_bad_calls > 0)
        memcpy(all.message, bad.why, sizeof all.message);
    *item = all;
    return code;
}

/* What a call of several molecules did not give is tried molecule by molecule: a bad one costs only itself. */
pl_code st_external_call(st_external_worker *w, st_ext_item *item, int32_t n, pl_error *err)
{
    const bool each = w->stage->conf->input == ST_IN_PDBQT && item->n_mols > 1;
    pl_code code = each ? call_each(w, item, err) : call_once(w, item, n, err);

    for (int32_t i = 0; i < n && n > 1 && code == PL_OK; i++)
        if (item[i].code != NULL)
            code = call_once(w, &item[i], 1, err);
    return code;
}
