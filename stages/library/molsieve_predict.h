/* SPDX-License-Identifier: Apache-2.0 */
/* molsieve_predict.h - predict properties of molecules with a model of molsieve, from C, C++ or anything that calls C.
 *
 *   molsieve_model *model;
 *   molsieve_answers *answers;
 *   molsieve_prediction p;
 *   const char *smiles[] = { "CCO" };
 *   if (molsieve_open(&model, "esol", NULL) == MOLSIEVE_OK &&
 *       molsieve_predict_smiles(model, smiles, 1, &answers, NULL) == MOLSIEVE_OK &&
 *       molsieve_answer(answers, 0, 0, &p, sizeof p) == MOLSIEVE_OK)
 *       use(p.value);
 *
 * The numbers are those of `molsieve predict MODEL FILE`, bit for bit. Everything computes on the CPU.
 *
 * Errors: a function returns MOLSIEVE_OK or another code, and then fills `error`, which may be NULL. A molecule that cannot be
 * predicted is no error: its answer has a `problem`. Nothing is printed, no handler of signals is set, the process is never ended.
 *
 * Memory: what a function gives belongs to the caller until he hands it to molsieve_close or molsieve_answers_free (NULL is fine). Texts
 * live as long as the model or the answers that they were asked of.
 *
 * Threads: all functions may be called by any thread. Calls with the same model wait for each other: open one model for each thread that
 * shall predict at the same time. Answers are read-only. After fork() the child may not use the models of its parent.
 *
 * Processes: each model starts a program, molsieve-chem, which ends with the model. Do not reap it: wait for your own children by their
 * number. If SIGCHLD is ignored, everything works all the same. */
#ifndef MOLSIEVE_PREDICT_H
#define MOLSIEVE_PREDICT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Numbers never change their meaning; later versions may have more. */
enum {
    MOLSIEVE_OK = 0,
    MOLSIEVE_BAD_ARGUMENT = 1, /* NULL, an index or size that cannot be, or a column without a number */
    MOLSIEVE_NO_MODEL = 2,     /* neither a file nor a shipped model of that name                  */
    MOLSIEVE_BAD_MODEL = 3,    /* the file is damaged, of a newer version, or no model             */
    MOLSIEVE_NO_WORKER = 4,    /* molsieve-chem or the tables of Open Babel are missing or do not fit */
    MOLSIEVE_IO = 5,           /* a file or the worker could not be read, written or started       */
    MOLSIEVE_NO_MEMORY = 6,
    MOLSIEVE_FAILED = 7 /* anything else; the text says what                                */
};

typedef struct molsieve_error {
    int code;       /* as returned            */
    char text[504]; /* one line, without a full stop */
} molsieve_error;

typedef struct molsieve_model molsieve_model;
typedef struct molsieve_answers molsieve_answers;

/* "0.1.0" */
const char *molsieve_version(void);

/* Opens the model file at a path, or a model that comes with molsieve ("esol", "qm9-gap"), and finds the worker: beside this library,
 * in ../bin or ../../bin of its folder, else $MOLSIEVE_CHEM, else in PATH. *out is NULL unless the result is MOLSIEVE_OK. */
int molsieve_open(molsieve_model **out, const char *model, molsieve_error *error);
void molsieve_close(molsieve_model *model);

/* What is predicted: properties 0 to n-1, name "logS" and unit "log10(mol/L)"; "" and 0 for what is not there. */
size_t molsieve_n_properties(const molsieve_model *model);
const char *molsieve_property_name(const molsieve_model *model, size_t property);
const char *molsieve_property_unit(const molsieve_model *model, size_t property);

/* Columns of a table that the model reads besides the molecule ("temperature"), 0 to n-1; most models read none. Symbols of the
 * version MOLSIEVE_PREDICT_0_1, which a library of before has not. */
size_t molsieve_n_columns(const molsieve_model *model);
const char *molsieve_column_name(const molsieve_model *model, size_t column);

/* The number of a column for all molecules that are predicted from now on, as `molsieve predict --set NAME=VALUE`; each column must be set
 * before the first prediction. MOLSIEVE_BAD_ARGUMENT: the model reads no such column, or the value is not finite as a float. */
int molsieve_set_column(molsieve_model *model, const char *name, double value, molsieve_error *error);

/* Predicts n molecules. Each text is one SMILES, without a title. */
int molsieve_predict_smiles(molsieve_model *model, const char *const *smiles, size_t n, molsieve_answers **out,
                            molsieve_error *error);

/* A molecule as atoms with positions, hydrogens included; bonds follow from the distances, as for a file in XYZ. */
typedef struct molsieve_atoms {
    const int32_t *element; /* [n] atomic numbers, 1 to 118                */
    const double *xyz;      /* [n][3] Angstrom                             */
    size_t n;
    int32_t charge; /* of the molecule, in elementary charges      */
} molsieve_atoms;

int molsieve_predict_atoms(molsieve_model *model, const molsieve_atoms *molecule, size_t n, molsieve_answers **out,
                           molsieve_error *error);

enum { MOLSIEVE_DOMAIN_UNKNOWN = -1, MOLSIEVE_OUTSIDE = 0, MOLSIEVE_INSIDE = 1 };

/* NaN stands for a number that there is not. */
typedef struct molsieve_prediction {
    double value;        /* in the unit of the property                                            */
    double half_width;   /* of the 90 % prediction interval, in the same unit; NaN outside of the domain */
    double similarity;   /* to the nearest training molecule, 0 to 1                                */
    int32_t domain;      /* MOLSIEVE_INSIDE, ...: the applicability domain of the model            */
    int32_t reserved;    /* 0                                                                      */
    const char *reason;  /* why the molecule is outside; "" if it is not                           */
    const char *problem; /* why there is no value; "" if there is one                              */
    const char *smiles;  /* of the molecule as it was prepared; "" if it could not be read          */
} molsieve_prediction;

/* How many molecules were answered: the n of the call. */
size_t molsieve_n_answers(const molsieve_answers *answers);

/* Fills the first `size` bytes of *out: write sizeof *out, so that a program works with later versions, whose struct may be longer. */
int molsieve_answer(const molsieve_answers *answers, size_t molecule, size_t property, molsieve_prediction *out, size_t size);
void molsieve_answers_free(molsieve_answers *answers);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
