/* SPDX-License-Identifier: Apache-2.0 */
/* libmolsieve_predict.so: the predictor of `molsieve predict` (stages/predict/predictor.h) behind a C interface that stays. */
#include "stages/library/molsieve_predict.h"

#include <ctype.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "pipeline/base/text.h"
#include "stages/files/shipped.h"
#include "stages/files/version.h"
#include "stages/predict/predictor.h"

enum { AT_ONCE = 32, SMILES_MAX = 1 << 20, ATOMS_MAX = 1 << 14 };

struct molsieve_model {
    pthread_mutex_t lock; /* of what is below: one call at a time */
    pl_arena *mem, *texts;
    st_predictor predictor;
    st_predict_worker worker;
    float column[PL_NAMES_MAX]; /* of all molecules, until set again; NaN: not given yet */
    bool lost;                  /* the worker failed: the next call begins with another one */
};

struct molsieve_answers {
    pl_arena *mem;
    size_t n, n_properties;
    molsieve_prediction *of; /* [n][n_properties] */
};

/* ---- errors and the locale of the host ---- */

static int code_of(pl_code code)
{
    switch (code) {
    case PL_OK: return MOLSIEVE_OK;
    case PL_EDATA: return MOLSIEVE_BAD_MODEL;
    case PL_EIO: return MOLSIEVE_IO;
    case PL_ENOMEM: return MOLSIEVE_NO_MEMORY;
    default: return MOLSIEVE_FAILED;
    }
}

static int tell(molsieve_error *error, int code, const pl_error *why)
{
    if (error == NULL)
        return code;
    *error = (molsieve_error){ .code = code };
    if (code != MOLSIEVE_OK)
        (void)snprintf(error->text, sizeof error->text, "%.110s%s%.380s", why->where, why->where[0] != '\0' ? ": " : "", why->text);
    return code;
}

static int refuse(molsieve_error *error, const char *text)
{
    pl_error why = { 0 };

    (void)snprintf(why.text, sizeof why.text, "%s", text);
    return tell(error, MOLSIEVE_BAD_ARGUMENT, &why);
}

/* A host may write numbers with a comma; models and molecules are read with a point. Of this thread only. */
typedef struct plain_locale {
    locale_t plain, old;
} plain_locale;

static plain_locale locale_begin(void)
{
    plain_locale l = { .plain = newlocale(LC_ALL_MASK, "C", (locale_t)0) };

    if (l.plain != (locale_t)0)
        l.old = uselocale(l.plain);
    return l;
}

static void locale_end(plain_locale l)
{
    if (l.plain == (locale_t)0)
        return;
    (void)uselocale(l.old);
    freelocale(l.plain);
}

/* ---- a model ---- */

static int model_read(molsieve_model *m, const char *name, pl_error *why)
{
    const st_predict_conf conf = st_predict_defaults();
    const char *path;
    char worker[PATH_MAX];
    pl_code code = st_model_find(&path, name, m->mem, why);

    if (code != PL_OK)
        return code == PL_ECONFIG ? MOLSIEVE_NO_MODEL : code_of(code);
    if (ch_worker_find(worker, NULL, why) != PL_OK)
        return MOLSIEVE_NO_WORKER;
    code = st_predictor_open(&m->predictor, &path, 1, &conf, m->mem, why);
    for (int k = 0; k < PL_NAMES_MAX; k++)
        m->column[k] = NAN;
    if (code == PL_OK)
        code = st_predict_worker_open(&m->worker, &m->predictor, why);
    return code == PL_ECONFIG ? MOLSIEVE_NO_WORKER : code_of(code);
}

int molsieve_open(molsieve_model **out, const char *model, molsieve_error *error)
{
    const plain_locale l = locale_begin();
    pl_error why = { 0 };
    molsieve_model *m;
    int code = MOLSIEVE_NO_MEMORY;

    if (out != NULL)
        *out = NULL;
    m = out != NULL && model != NULL ? calloc(1, sizeof *m) : NULL;
    if (m != NULL) {
        (void)pthread_mutex_init(&m->lock, NULL);
        m->mem = pl_arena_new(1 << 18);
        m->texts = pl_arena_new(1 << 12);
    }
    if (m != NULL && m->mem != NULL && m->texts != NULL)
        code = model_read(m, model, &why);
    else
        (void)pl_fail(&why, PL_ENOMEM, "no memory for a model");
    locale_end(l);
    if (out == NULL || model == NULL)
        return refuse(error, "molsieve_open: out and model may not be NULL");
    if (code == MOLSIEVE_OK)
        *out = m;
    else
        molsieve_close(m);
    return tell(error, code, &why);
}

void molsieve_close(molsieve_model *model)
{
    if (model == NULL)
        return;
    st_predict_worker_close(&model->worker);
    pl_arena_free(model->mem);
    pl_arena_free(model->texts);
    (void)pthread_mutex_destroy(&model->lock);
    free(model);
}

const char *molsieve_version(void) { return st_version; }

size_t molsieve_n_properties(const molsieve_model *model) { return model != NULL ? (size_t)model->predictor.n_properties : 0; }

const char *molsieve_property_name(const molsieve_model *model, size_t property)
{
    return property < molsieve_n_properties(model) ? model->predictor.property[property].name : "";
}

const char *molsieve_property_unit(const molsieve_model *model, size_t property)
{
    return property < molsieve_n_properties(model) ? model->predictor.property[property].unit : "";
}

/* ---- columns of a table ---- */

size_t molsieve_n_columns(const molsieve_model *model) { return model != NULL ? (size_t)model->predictor.columns.n : 0; }

const char *molsieve_column_name(const molsieve_model *model, size_t column)
{
    return column < molsieve_n_columns(model) ? model->predictor.columns.name[column] : "";
}

int molsieve_set_column(molsieve_model *model, const char *name, double value, molsieve_error *error)
{
    char text[300];
    int k;

    if (model == NULL || name == NULL)
        return refuse(error, "molsieve_set_column: model and name may not be NULL");
    k = pl_names_find(&model->predictor.columns, name);
    if (k < 0)
        (void)snprintf(text, sizeof text, "the model reads no column %.200s; molsieve_column_name has its columns", name);
    else if (!isfinite((float)value))
        (void)snprintf(text, sizeof text, "the value of column %.200s is not a finite number", name);
    if (k < 0 || !isfinite((float)value))
        return refuse(error, text);
    (void)pthread_mutex_lock(&model->lock);
    model->column[k] = (float)value;
    (void)pthread_mutex_unlock(&model->lock);
    return tell(error, MOLSIEVE_OK, NULL);
}

static int columns_check(molsieve_model *m, molsieve_error *error)
{
    const char *missing = NULL;
    char text[300];

    (void)pthread_mutex_lock(&m->lock);
    for (int k = m->predictor.columns.n - 1; k >= 0; k--)
        missing = isnan(m->column[k]) ? m->predictor.columns.name[k] : missing;
    (void)pthread_mutex_unlock(&m->lock);
    if (missing == NULL)
        return tell(error, MOLSIEVE_OK, NULL);
    (void)snprintf(text, sizeof text, "the model reads the column %.200s: give its number with molsieve_set_column", missing);
    return refuse(error, text);
}

/* ---- molecules as records ---- */

/* What is asked for: one of both. */
typedef struct question {
    const char *const *smiles;
    const molsieve_atoms *atoms;
} question;

static const char *smiles_problem(const char *s)
{
    if (s == NULL || s[0] == '\0')
        return "parse: an empty SMILES";
    if (strnlen(s, SMILES_MAX + 1) > SMILES_MAX)
        return "record too long: a SMILES of more than 1 MiB";
    for (const char *c = s; *c != '\0'; c++)
        if (isspace((unsigned char)*c))
            return "parse: a SMILES has no blanks and no line ends";
    return NULL;
}

static const char *atoms_problem(const molsieve_atoms *a)
{
    if (a->n == 0 || a->element == NULL || a->xyz == NULL)
        return "parse: no atoms";
    if (a->n > ATOMS_MAX)
        return "too_large: more than 16384 atoms";
    for (size_t i = 0; i < a->n; i++)
        if (a->element[i] < 1 || a->element[i] > 118)
            return "parse: an atomic number is not between 1 and 118";
    for (size_t i = 0; i < 3 * a->n; i++)
        if (!isfinite(a->xyz[i]))
            return "parse: a coordinate is not a finite number";
    return NULL;
}

/* An XYZ record; the worker looks for the charge in the comment. */
static const char *atoms_text(const molsieve_atoms *a, pl_arena *mem)
{
    pl_text t = { 0 };
    char number[32];
    const char *text;

    pl_text_addf(&t, "%zu\n", a->n);
    if (a->charge != 0)
        pl_text_addf(&t, "charge=%d", (int)a->charge);
    for (size_t i = 0; i < a->n; i++) {
        pl_text_addf(&t, "\n%s", ch_element_symbol(a->element[i]));
        for (int k = 0; k < 3; k++)
            pl_text_addf(&t, " %s", pl_real_str(a->xyz[3 * i + (size_t)k], number));
    }
    pl_text_add(&t, "\n");
    text = pl_text_ok(&t) ? pl_strdup(mem, pl_text_str(&t)) : NULL;
    pl_text_free(&t);
    return text;
}

/* in: the record of molecule i, unless *problem is set. */
static pl_code record_make(ch_input *in, const char **problem, const question *q, size_t i, pl_arena *mem, pl_error *why)
{
    const char *text = q->smiles != NULL ? q->smiles[i] : NULL;

    *problem = q->smiles != NULL ? smiles_problem(text) : atoms_problem(&q->atoms[i]);
    if (*problem == NULL && text == NULL)
        text = atoms_text(&q->atoms[i], mem);
    if (*problem == NULL && text == NULL)
        return pl_fail(why, PL_ENOMEM, "no memory for a molecule");
    if (*problem == NULL)
        *in = (ch_input){ .text = text, .format = q->smiles != NULL ? "smi" : "xyz", .len = strlen(text) };
    return PL_OK;
}

/* ---- answers ---- */

static const char *kept(pl_arena *mem, const char *text) { return text != NULL && text[0] != '\0' ? pl_strdup(mem, text) : ""; }

static molsieve_prediction no_prediction(void)
{
    return (molsieve_prediction){ NAN, NAN, NAN, MOLSIEVE_DOMAIN_UNKNOWN, 0, "", "", "" };
}

static void value_keep(molsieve_prediction *p, const st_value *v, pl_arena *mem)
{
    p->value = v->mean;
    p->half_width = v->interval90;
    p->similarity = v->similarity;
    p->reason = kept(mem, v->reasons);
    if (v->domain != NULL)
        p->domain = strcmp(v->domain, "inside") == 0 ? MOLSIEVE_INSIDE : MOLSIEVE_OUTSIDE;
}

/* The answer to one molecule, in the memory of the answers. got NULL: problem says why. */
static pl_code answer_keep(molsieve_answers *a, size_t i, const char *problem, const st_prediction *got, pl_error *why)
{
    for (size_t k = 0; k < a->n_properties; k++) {
        molsieve_prediction *p = &a->of[i * a->n_properties + k];
        *p = no_prediction();
        if (got != NULL && got->molecule != NULL)
            p->smiles = kept(a->mem, got->molecule->smiles);
        if (got != NULL && got->value[k].n_models > 0)
            value_keep(p, &got->value[k], a->mem);
        else
            p->problem = kept(a->mem, got != NULL ? got->problem : problem);
        if (p->smiles == NULL || p->problem == NULL || p->reason == NULL)
            return pl_fail(why, PL_ENOMEM, "no memory for an answer");
    }
    return PL_OK;
}

/* Molecules from..from+n, at most AT_ONCE. */
static pl_code part_predict(molsieve_model *m, molsieve_answers *a, const question *q, size_t from, size_t n, pl_error *why)
{
    ch_input in[AT_ONCE];
    const float *column[AT_ONCE];
    const char *problem[AT_ONCE];
    st_prediction *got = NULL;
    int32_t n_in = 0;
    pl_code code = PL_OK;

    pl_arena_reset(m->texts);
    for (size_t i = 0; i < n; i++) {
        code = record_make(&in[n_in], &problem[i], q, from + i, m->texts, why);
        if (code != PL_OK)
            return code;
        n_in += problem[i] == NULL;
        column[i] = m->column;
    }
    if (n_in > 0)
        code = st_predict(&m->worker, in, column, n_in, &got, why);
    for (size_t i = 0; i < n && code == PL_OK; i++)
        code = answer_keep(a, from + i, problem[i], problem[i] == NULL ? got++ : NULL, why);
    return code;
}

static pl_code worker_again(molsieve_model *m, pl_error *why)
{
    if (!m->lost)
        return PL_OK;
    st_predict_worker_close(&m->worker);
    m->worker = (st_predict_worker){ 0 };
    return st_predict_worker_open(&m->worker, &m->predictor, why);
}

static molsieve_answers *answers_new(size_t n, size_t n_properties)
{
    molsieve_answers *a = n < SIZE_MAX / sizeof(molsieve_prediction) / (n_properties + 1) ? calloc(1, sizeof *a) : NULL;

    if (a == NULL)
        return NULL;
    *a = (molsieve_answers){ .mem = pl_arena_new(1 << 12), .n = n, .n_properties = n_properties };
    a->of = calloc(n * n_properties + 1, sizeof *a->of);
    if (a->mem != NULL && a->of != NULL)
        return a;
    molsieve_answers_free(a);
    return NULL;
}

static int predict(molsieve_model *m, const question *q, size_t n, molsieve_answers **out, molsieve_error *error)
{
    const plain_locale l = locale_begin();
    pl_error why = { 0 };
    molsieve_answers *a = answers_new(n, molsieve_n_properties(m));
    pl_code code = a != NULL ? PL_OK : pl_fail(&why, PL_ENOMEM, "no memory for %zu answers", n);

    (void)pthread_mutex_lock(&m->lock);
    if (code == PL_OK)
        code = worker_again(m, &why);
    for (size_t i = 0; i < n && code == PL_OK; i += AT_ONCE)
        code = part_predict(m, a, q, i, n - i < AT_ONCE ? n - i : AT_ONCE, &why);
    m->lost = code != PL_OK;
    (void)pthread_mutex_unlock(&m->lock);
    locale_end(l);
    if (code == PL_OK) {
        *out = a;
        return tell(error, MOLSIEVE_OK, &why);
    }
    molsieve_answers_free(a);
    return tell(error, code == PL_ECONFIG ? MOLSIEVE_NO_WORKER : code_of(code), &why);
}

int molsieve_predict_smiles(molsieve_model *model, const char *const *smiles, size_t n, molsieve_answers **out,
                            molsieve_error *error)
{
    const question q = { .smiles = smiles };

    if (out != NULL)
        *out = NULL;
    if (model == NULL || smiles == NULL || out == NULL)
        return refuse(error, "molsieve_predict_smiles: model, smiles and out may not be NULL");
    return columns_check(model, error) == MOLSIEVE_OK ? predict(model, &q, n, out, error) : MOLSIEVE_BAD_ARGUMENT;
}

int molsieve_predict_atoms(molsieve_model *model, const molsieve_atoms *molecule, size_t n, molsieve_answers **out,
                           molsieve_error *error)
{
    const question q = { .atoms = molecule };

    if (out != NULL)
        *out = NULL;
    if (model == NULL || molecule == NULL || out == NULL)
        return refuse(error, "molsieve_predict_atoms: model, molecule and out may not be NULL");
    return columns_check(model, error) == MOLSIEVE_OK ? predict(model, &q, n, out, error) : MOLSIEVE_BAD_ARGUMENT;
}

size_t molsieve_n_answers(const molsieve_answers *answers) { return answers != NULL ? answers->n : 0; }

int molsieve_answer(const molsieve_answers *answers, size_t molecule, size_t property, molsieve_prediction *out, size_t size)
{
    if (answers == NULL || out == NULL || molecule >= answers->n || property >= answers->n_properties)
        return MOLSIEVE_BAD_ARGUMENT;
    if (size > sizeof *out) /* a program of a later version than this library */
        memset((char *)out + sizeof *out, 0, size - sizeof *out);
    memcpy(out, &answers->of[molecule * answers->n_properties + property], size < sizeof *out ? size : sizeof *out);
    return MOLSIEVE_OK;
}

void molsieve_answers_free(molsieve_answers *answers)
{
    if (answers == NULL)
        return;
    pl_arena_free(answers->mem);
    free(answers->of);
    free(answers);
}
