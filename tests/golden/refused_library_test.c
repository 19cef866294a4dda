/* SPDX-License-Identifier: Apache-2.0 */
/* Each place of libmolsieve_predict that asks for memory or calls another room is refused once and again: the function says so, or the
 * answers are those that it gives otherwise; then the same model answers as before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "golden/command.h"
#include "golden/refused_places.h"
#include "stages/library/molsieve_predict.h"
#include "unit/statements.h"

static const char *const smiles[] = { "CCO", "C(", "c1ccccc1", "[Na+].CC(=O)[O-]" };
enum { N = sizeof smiles / sizeof *smiles };

static const int32_t element[] = { 8, 1, 1 };
static const double xyz[] = { 0, 0, 0.117, 0, 0.757, -0.469, 0, -0.757, -0.469 };

static void put(pl_text *out, const molsieve_model *m, const molsieve_answers *a)
{
    for (size_t i = 0; i < molsieve_n_answers(a); i++) {
        molsieve_prediction p;
        assert_int_equal(molsieve_answer(a, i, 0, &p, sizeof p), MOLSIEVE_OK);
        pl_text_addf(out, "%s: %s %.9g +- %.9g %s, %.9g, %d %s; %s\n", p.smiles, molsieve_property_name(m, 0), p.value,
                     p.half_width, molsieve_property_unit(m, 0), p.similarity, (int)p.domain, p.reason, p.problem);
    }
}

/* Both kinds of molecules, by a model that is open. */
static int predict(pl_text *out, molsieve_model *m, molsieve_error *e)
{
    const molsieve_atoms water = { element, xyz, 3, 0 };
    molsieve_answers *a = NULL;
    int code = molsieve_predict_smiles(m, smiles, N, &a, e);

    put(out, m, a);
    molsieve_answers_free(a);
    if (code != MOLSIEVE_OK)
        return code;
    code = molsieve_predict_atoms(m, &water, 1, &a, e);
    put(out, m, a);
    molsieve_answers_free(a);
    return code;
}

static const char *model_path(void) { return MOLSIEVE_TESTS "/../workflows/models/esol.safetensors"; }

/* What was refused is told, or all is as it was; without a refusal it is. */
static void judge(int code, const molsieve_error *e, const char *is, const char *want)
{
    if (code == MOLSIEVE_OK && strcmp(is, want) != 0)
        fail_msg("%s in %s (%p), and the answers are\n%s\ninstead of\n%s", what != NULL ? what : "nothing", name_of(where), where,
                 is, want);
    if (code != MOLSIEVE_OK && (what == NULL || code != e->code || strstr(e->text, what) == NULL))
        fail_msg("%s in %s (%p): code %d, %s", what != NULL ? what : "nothing", name_of(where), where, code, e->text);
    if (code != MOLSIEVE_OK && code != (strcmp(what, "memory") == 0 ? MOLSIEVE_NO_MEMORY : MOLSIEVE_IO))
        fail_msg("%s in %s (%p): code %d, %s", what, name_of(where), where, code, e->text);
}

static bool refuse_opening(const char *want)
{
    molsieve_model *m = NULL;
    molsieve_error e = { 0 };
    pl_text is = { 0 };
    int code;

    refusing();
    code = molsieve_open(&m, model_path(), &e);
    if (code == MOLSIEVE_OK)
        code = predict(&is, m, &e);
    atomic_store(&armed, false);
    judge(code, &e, pl_text_str(&is), want);
    molsieve_close(m);
    pl_text_free(&is);
    return what != NULL;
}

static bool refuse_predicting(molsieve_model *m, const char *want)
{
    molsieve_error e = { 0 };
    pl_text is = { 0 };
    bool met;
    int code;

    refusing();
    code = predict(&is, m, &e);
    atomic_store(&armed, false);
    judge(code, &e, pl_text_str(&is), want);
    met = what != NULL;
    what = NULL;
    pl_text_reset(&is);
    code = predict(&is, m, &e);
    judge(code, &e, pl_text_str(&is), want);
    pl_text_free(&is);
    return met;
}

static void every_place_of_the_library_that_is_refused_is_told(void **state)
{
    molsieve_model *m = NULL;
    molsieve_error e = { 0 };
    pl_text want = { 0 };
    int n = 0, n_again = 0;

    (void)state;
    functions_read();
    assert_int_equal(molsieve_open(&m, model_path(), &e), MOLSIEVE_OK);
    assert_int_equal(predict(&want, m, &e), MOLSIEVE_OK);
    const int open = count_in("/proc/self/fd");
    while (refuse_predicting(m, pl_text_str(&want)))
        n_again++;
    while (refuse_opening(pl_text_str(&want)))
        n++;
    assert_int_equal(count_in("/proc/self/fd"), open);
    print_message("%d places of predictions, %d of what opens a model\n", n_again, n);
    assert_true(n_again > 20 && n > 20);
    molsieve_close(m);
    pl_text_free(&want);
    free(functions);
    nothing_is_left_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_place_of_the_library_that_is_refused_is_told) };

    return cmocka_run_group_tests_name("library, refused places", tests, NULL, NULL);
}
