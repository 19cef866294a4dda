/* SPDX-License-Identifier: Apache-2.0 */
/* The C library's functions, linked as a part of this program: what they refuse, and which answer belongs to which molecule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/arena.h"
#include "stages/library/molsieve_predict.h"

#define ESOL MOLSIEVE_TESTS "/../workflows/models/esol.safetensors"
#define GAP MOLSIEVE_TESTS "/../workflows/models/qm9-gap.safetensors"

static molsieve_model *esol, *gap;

static int models_open(void **state)
{
    molsieve_error e;

    (void)state;
    if (molsieve_open(&esol, ESOL, &e) == MOLSIEVE_OK && molsieve_open(&gap, GAP, &e) == MOLSIEVE_OK)
        return e.code != MOLSIEVE_OK || e.text[0] != '\0';
    (void)printf("%d: %s\n", e.code, e.text);
    return 1;
}

static int models_close(void **state)
{
    (void)state;
    molsieve_close(esol);
    molsieve_close(gap);
    return 0;
}

static void told(const molsieve_error *e, int got, int code, const char *text)
{
    assert_int_equal(got, code);
    assert_int_equal(e->code, code);
    if (strstr(e->text, text) == NULL)
        fail_msg("'%s' is not in '%s'", text, e->text);
}

static void what_cannot_be_opened_is_told(void **state)
{
    molsieve_error e;
    molsieve_model *m = esol;

    (void)state;
    told(&e, molsieve_open(NULL, ESOL, &e), MOLSIEVE_BAD_ARGUMENT, "molsieve_open: out and model may not be NULL");
    told(&e, molsieve_open(&m, NULL, &e), MOLSIEVE_BAD_ARGUMENT, "molsieve_open: out and model may not be NULL");
    assert_null(m);
    m = esol;
    told(&e, molsieve_open(&m, "no such model", &e), MOLSIEVE_NO_MODEL,
         "no such model is neither a model file nor a shipped model");
    assert_null(m);
    m = esol;
    told(&e, molsieve_open(&m, MOLSIEVE_TESTS "/README.md", &e), MOLSIEVE_BAD_MODEL, "README.md");
    assert_null(m);
    assert_int_equal(molsieve_open(&m, "no such model", NULL), MOLSIEVE_NO_MODEL);
    molsieve_close(NULL);
    molsieve_answers_free(NULL);
    assert_true(molsieve_version()[0] >= '0' && molsieve_version()[0] <= '9');
}

static void properties_have_names_and_units(void **state)
{
    (void)state;
    assert_int_equal(molsieve_n_properties(esol), 1);
    assert_string_equal(molsieve_property_name(esol, 0), "logS");
    assert_string_equal(molsieve_property_unit(esol, 0), "log10(mol/L)");
    assert_string_equal(molsieve_property_name(esol, 1), "");
    assert_string_equal(molsieve_property_unit(esol, 1), "");
    assert_string_equal(molsieve_property_name(gap, 0), "gap");
    assert_string_equal(molsieve_property_unit(gap, 0), "eV");
    assert_int_equal(molsieve_n_properties(NULL), 0);
    assert_string_equal(molsieve_property_name(NULL, 0), "");
    assert_string_equal(molsieve_property_unit(NULL, 0), "");
}

static void a_model_without_columns_takes_none(void **state)
{
    molsieve_error e;

    (void)state;
    assert_int_equal(molsieve_n_columns(esol), 0);
    assert_int_equal(molsieve_n_columns(NULL), 0);
    assert_string_equal(molsieve_column_name(esol, 0), "");
    told(&e, molsieve_set_column(esol, "T", 1, &e), MOLSIEVE_BAD_ARGUMENT,
         "the model reads no column T; molsieve_column_name has its columns");
    told(&e, molsieve_set_column(NULL, "T", 1, &e), MOLSIEVE_BAD_ARGUMENT, "model and name may not be NULL");
    told(&e, molsieve_set_column(esol, NULL, 1, &e), MOLSIEVE_BAD_ARGUMENT, "model and name may not be NULL");
}

static molsieve_prediction answer_of(const molsieve_answers *a, size_t i)
{
    molsieve_prediction p;

    assert_int_equal(molsieve_answer(a, i, 0, &p, sizeof p), MOLSIEVE_OK);
    return p;
}

static void no_value(const molsieve_answers *a, size_t i, const char *problem)
{
    molsieve_prediction p = answer_of(a, i);

    assert_true(isnan(p.value) && isnan(p.half_width) && isnan(p.similarity));
    assert_int_equal(p.domain, MOLSIEVE_DOMAIN_UNKNOWN);
    assert_int_equal(p.reserved, 0);
    assert_string_equal(p.reason, "");
    if (problem != NULL)
        assert_string_equal(p.problem, problem);
    assert_true(p.problem[0] != '\0');
}

/* Problems are spread over parts of 32 molecules, the first, the last and two in a row. */
static void each_smiles_has_its_own_answer(void **state)
{
    enum { N = 70 };
    static const char *const good[] = { "CCO", "c1ccccc1C", "CC(=O)Oc1ccccc1C(=O)O" };
    static const char *const made[] = { "CCO", "Cc1ccccc1", "CC(=O)Oc1ccccc1C(=O)O" };
    const char *smiles[N];
    molsieve_answers *a = NULL, *one = NULL;
    molsieve_error e;
    double want[3];

    (void)state;
    for (int k = 0; k < 3; k++) {
        molsieve_prediction p;
        assert_int_equal(molsieve_predict_smiles(esol, &good[k], 1, &one, NULL), MOLSIEVE_OK);
        assert_int_equal(molsieve_n_answers(one), 1);
        p = answer_of(one, 0);
        want[k] = p.value;
        assert_true(isfinite(p.value) && p.similarity > 0 && p.similarity <= 1 && p.problem[0] == '\0');
        assert_int_equal(p.domain, MOLSIEVE_INSIDE);
        assert_true(p.half_width > 0.1 && p.half_width < 5 && p.reason[0] == '\0');
        molsieve_answers_free(one);
    }
    assert_true(want[0] > 0 && want[1] < -1.5 && want[1] > -4 && want[2] < -1 && want[2] > -4);
    for (int i = 0; i < N; i++)
        smiles[i] = good[i % 3];
    smiles[0] = "";
    smiles[31] = NULL;
    smiles[32] = "C C";
    smiles[33] = "C\n";
    smiles[50] = "C(x";
    smiles[69] = "CC(";
    told(&e, molsieve_predict_smiles(esol, smiles, N, &a, &e), MOLSIEVE_OK, "");
    assert_int_equal(molsieve_n_answers(a), N);
    for (size_t i = 0; i < N; i++) {
        molsieve_prediction p = answer_of(a, i);
        if (smiles[i] != good[i % 3])
            continue;
        assert_true(p.value == want[i % 3]);
        assert_string_equal(p.smiles, made[i % 3]);
        assert_string_equal(p.problem, "");
    }
    no_value(a, 0, "parse: an empty SMILES");
    no_value(a, 31, "parse: an empty SMILES");
    no_value(a, 32, "parse: a SMILES has no blanks and no line ends");
    no_value(a, 33, "parse: a SMILES has no blanks and no line ends");
    no_value(a, 50, NULL);
    no_value(a, 69, NULL);
    assert_string_equal(answer_of(a, 0).smiles, "");
    molsieve_answers_free(a);
    assert_int_equal(molsieve_predict_smiles(esol, smiles, 0, &a, &e), MOLSIEVE_OK);
    assert_int_equal(molsieve_n_answers(a), 0);
    molsieve_answers_free(a);
}

static void a_smiles_of_more_than_1_mib_is_too_long(void **state)
{
    enum { MOST = 1 << 20 };
    char *text = malloc(MOST + 2);
    const char *const smiles[] = { text, text + 1 };
    molsieve_answers *a = NULL;

    (void)state;
    assert_non_null(text);
    memset(text, ')', MOST + 1); /* which ends no branch */
    text[MOST + 1] = '\0';
    assert_int_equal(molsieve_predict_smiles(esol, smiles, 2, &a, NULL), MOLSIEVE_OK);
    no_value(a, 0, "record too long: a SMILES of more than 1 MiB");
    no_value(a, 1, NULL);
    assert_null(strstr(answer_of(a, 1).problem, "too long"));
    molsieve_answers_free(a);
    free(text);
}

static void outside_of_the_domain_there_is_a_reason(void **state)
{
    static const char *const smiles[] = { "[Na+].[Cl-]", "CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC" };
    molsieve_answers *a = NULL;
    molsieve_prediction p;

    (void)state;
    assert_int_equal(molsieve_predict_smiles(esol, smiles, 2, &a, NULL), MOLSIEVE_OK);
    p = answer_of(a, 1);
    assert_int_equal(p.domain, MOLSIEVE_OUTSIDE);
    assert_true(isfinite(p.value) && isnan(p.half_width));
    assert_non_null(strstr(p.reason, "heavy atoms 46 > 35"));
    molsieve_answers_free(a);
}

/* ---- atoms with positions ---- */

static const int32_t methane[] = { 6, 1, 1, 1, 1 }, ammonium[] = { 7, 1, 1, 1, 1 };
static const double around[15] = { 0, 0, 0, 0.63, 0.63, 0.63, -0.63, -0.63, 0.63, -0.63, 0.63, -0.63, 0.63, -0.63, -0.63 };

static void atoms_become_a_molecule_with_its_charge(void **state)
{
    static int32_t wrong[5] = { 6, 1, 1, 1, 0 }, heavy[5] = { 6, 1, 1, 1, 119 }, last[1] = { 118 };
    double broken[15];
    molsieve_atoms in[10] = { { methane, around, 5, 0 }, { ammonium, around, 5, 1 }, { methane, around, 0, 0 },
                              { NULL, around, 5, 0 },    { methane, NULL, 5, 0 },    { wrong, around, 5, 0 },
                              { heavy, around, 5, 0 },   { methane, broken, 5, 0 },  { methane, around, 16385, 0 },
                              { last, around, 1, 0 } };
    molsieve_answers *a = NULL;
    molsieve_error e;
    molsieve_prediction p;

    (void)state;
    memcpy(broken, around, sizeof broken);
    broken[14] = NAN;
    told(&e, molsieve_predict_atoms(gap, in, 10, &a, &e), MOLSIEVE_OK, "");
    p = answer_of(a, 0);
    assert_string_equal(p.smiles, "C");
    assert_true(p.value > 10 && p.value < 18);
    assert_string_equal(p.problem, "");
    assert_string_equal(answer_of(a, 1).smiles, "[NH4+]");
    no_value(a, 2, "parse: no atoms");
    no_value(a, 3, "parse: no atoms");
    no_value(a, 4, "parse: no atoms");
    no_value(a, 5, "parse: an atomic number is not between 1 and 118");
    no_value(a, 6, "parse: an atomic number is not between 1 and 118");
    no_value(a, 7, "parse: a coordinate is not a finite number");
    no_value(a, 8, "too_large: more than 16384 atoms");
    no_value(a, 9, NULL);
    assert_null(strstr(answer_of(a, 9).problem, "atomic number"));
    molsieve_answers_free(a);
    in[0].xyz = broken;
    broken[14] = -0.63;
    assert_int_equal(molsieve_predict_atoms(gap, in, 1, &a, NULL), MOLSIEVE_OK);
    assert_true(answer_of(a, 0).value == p.value);
    molsieve_answers_free(a);
    broken[14] = -0.75; /* another structure of the same molecule */
    assert_int_equal(molsieve_predict_atoms(gap, in, 1, &a, NULL), MOLSIEVE_OK);
    assert_true(answer_of(a, 0).value != p.value);
    molsieve_answers_free(a);
}

static void calls_without_a_place_are_refused(void **state)
{
    static const char *const smiles[] = { "C" };
    const molsieve_atoms atoms = { methane, around, 5, 0 };
    molsieve_answers *a = NULL;
    molsieve_error e;

    (void)state;
    assert_int_equal(molsieve_predict_smiles(esol, smiles, 1, &a, NULL), MOLSIEVE_OK);
    molsieve_answers_free(a);
    told(&e, molsieve_predict_smiles(NULL, smiles, 1, &a, &e), MOLSIEVE_BAD_ARGUMENT,
         "molsieve_predict_smiles: model, smiles and out may not be NULL");
    assert_null(a);
    told(&e, molsieve_predict_smiles(esol, NULL, 1, &a, &e), MOLSIEVE_BAD_ARGUMENT, "molsieve_predict_smiles");
    told(&e, molsieve_predict_smiles(esol, smiles, 1, NULL, &e), MOLSIEVE_BAD_ARGUMENT, "molsieve_predict_smiles");
    told(&e, molsieve_predict_atoms(NULL, &atoms, 1, &a, &e), MOLSIEVE_BAD_ARGUMENT,
         "molsieve_predict_atoms: model, molecule and out may not be NULL");
    told(&e, molsieve_predict_atoms(gap, NULL, 1, &a, &e), MOLSIEVE_BAD_ARGUMENT, "molsieve_predict_atoms");
    told(&e, molsieve_predict_atoms(gap, &atoms, 1, NULL, &e), MOLSIEVE_BAD_ARGUMENT, "molsieve_predict_atoms");
    told(&e, molsieve_predict_smiles(esol, smiles, SIZE_MAX / sizeof(molsieve_prediction), &a, &e), MOLSIEVE_NO_MEMORY,
         "no memory for");
    assert_null(a);
    assert_int_equal(molsieve_n_answers(NULL), 0);
}

/* Programs of an earlier and of a later version have shorter and longer structs. */
static void an_answer_fills_the_bytes_that_there_are(void **state)
{
    static const char *const smiles[] = { "CCO" };
    struct {
        molsieve_prediction p;
        double later[2];
    } big;
    molsieve_prediction p;
    molsieve_answers *a = NULL;
    double values[3] = { 5, 5, 5 };

    (void)state;
    assert_int_equal(molsieve_predict_smiles(esol, smiles, 1, &a, NULL), MOLSIEVE_OK);
    p = answer_of(a, 0);
    assert_int_equal(molsieve_answer(a, 0, 0, (molsieve_prediction *)(void *)values, 2 * sizeof(double)), MOLSIEVE_OK);
    assert_true(values[0] == p.value && values[1] == p.half_width && values[2] == 5);
    big.later[0] = big.later[1] = 5;
    assert_int_equal(molsieve_answer(a, 0, 0, &big.p, sizeof big), MOLSIEVE_OK);
    assert_true(big.p.value == p.value && big.later[0] == 0 && big.later[1] == 0);
    assert_ptr_equal(big.p.smiles, p.smiles);
    assert_int_equal(molsieve_answer(a, 1, 0, &p, sizeof p), MOLSIEVE_BAD_ARGUMENT);
    assert_int_equal(molsieve_answer(a, 0, 1, &p, sizeof p), MOLSIEVE_BAD_ARGUMENT);
    assert_int_equal(molsieve_answer(NULL, 0, 0, &p, sizeof p), MOLSIEVE_BAD_ARGUMENT);
    assert_int_equal(molsieve_answer(a, 0, 0, NULL, sizeof p), MOLSIEVE_BAD_ARGUMENT);
    molsieve_answers_free(a);
}

/* Whichever request for memory is refused: there are all answers, or none. The next call has a new worker. */
static void answers_without_memory_are_none(void **state)
{
    static const char *const smiles[] = { "", "C C" }, *const good[] = { "C" };
    const molsieve_atoms atoms = { methane, around, 5, 0 };
    pl_arena *other = pl_arena_new(0);
    molsieve_answers *a = NULL;
    molsieve_error e;
    int n_refused = 0;

    (void)state;
    for (bool met = true; met;) {
        int code;
        pl_arena_refuse(++n_refused);
        code = molsieve_predict_smiles(esol, smiles, 2, &a, &e);
        met = pl_arena_get(other, 1, 1) != NULL; /* else this one is refused */
        pl_arena_refuse(0);
        if (code == MOLSIEVE_OK) {
            no_value(a, 0, "parse: an empty SMILES");
            no_value(a, 1, "parse: a SMILES has no blanks and no line ends");
            molsieve_answers_free(a);
        } else {
            told(&e, code, MOLSIEVE_NO_MEMORY, "memory");
            assert_true(met && a == NULL);
        }
    }
    assert_true(n_refused > 2);
    pl_arena_refuse(1);
    told(&e, molsieve_predict_atoms(gap, &atoms, 1, &a, &e), MOLSIEVE_NO_MEMORY, "no memory for a molecule");
    pl_arena_refuse(0);
    assert_null(a);
    assert_int_equal(molsieve_predict_smiles(esol, good, 1, &a, NULL), MOLSIEVE_OK);
    assert_string_equal(answer_of(a, 0).smiles, "C");
    molsieve_answers_free(a);
    pl_arena_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_opened_is_told),           cmocka_unit_test(properties_have_names_and_units),
        cmocka_unit_test(a_model_without_columns_takes_none),      cmocka_unit_test(each_smiles_has_its_own_answer),
        cmocka_unit_test(outside_of_the_domain_there_is_a_reason), cmocka_unit_test(atoms_become_a_molecule_with_its_charge),
        cmocka_unit_test(calls_without_a_place_are_refused),       cmocka_unit_test(an_answer_fills_the_bytes_that_there_are),
        cmocka_unit_test(answers_without_memory_are_none),         cmocka_unit_test(a_smiles_of_more_than_1_mib_is_too_long),
    };

    return cmocka_run_group_tests(tests, models_open, models_close);
}
