/* SPDX-License-Identifier: Apache-2.0 */
/* How a machine's mathematics are told apart: which arguments the C library's functions are tried with, and that one other digit is seen. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stages/steps/ingest/machine.h"

enum { ARGUMENTS = 4096 };

typedef struct called {
    int n, other; /* other: the call that gives another digit, from 0; -1: none */
    double low, high;
} called;

static called of_exp, of_asin, of_powf;

/* What is added to the value. */
static double note(called *c, double x)
{
    c->low = fmin(c->low, x);
    c->high = fmax(c->high, x);
    return c->n++ == c->other ? 1e-5 : 0;
}

double __real_exp(double x);
double __wrap_exp(double x);
double __real_asin(double x);
double __wrap_asin(double x);
float __real_powf(float x, float y);
float __wrap_powf(float x, float y);

double __wrap_exp(double x) { return __real_exp(x) + note(&of_exp, x); }
double __wrap_asin(double x) { return __real_asin(x) + note(&of_asin, x); }
float __wrap_powf(float x, float y) { return __real_powf(x, y) + (float)note(&of_powf, (double)x); }

/* With another digit in one call of each. */
static const char *level(int in_exp, int in_asin, int in_powf, pl_arena *mem)
{
    const char *text;

    of_exp = (called){ .other = in_exp };
    of_asin = (called){ .other = in_asin };
    of_powf = (called){ .other = in_powf, .low = 9 };
    text = st_machine_level(mem);
    assert_non_null(text);
    return text;
}

static void functions_are_tried_where_they_differ(void **state)
{
    pl_arena *mem = pl_arena_new(1 << 12);

    (void)state;
    (void)level(-1, -1, -1, mem);
    assert_true(of_exp.n == ARGUMENTS && of_asin.n == ARGUMENTS && of_powf.n == ARGUMENTS);
    assert_true(of_exp.low >= -8 && of_exp.low < -7.99 && of_exp.high > 7.99 && of_exp.high <= 8);
    assert_true(of_asin.low >= -1 && of_asin.low < -0.99 && of_asin.high > 0.99 && of_asin.high <= 1);
    assert_true(of_powf.low >= 0 && of_powf.low < 0.01 && of_powf.high > 7.99 && of_powf.high <= 8);
    pl_arena_free(mem);
}

static void one_other_digit_is_another_machine(void **state)
{
    static const int calls[] = { 0, 1, ARGUMENTS / 2, ARGUMENTS - 1 };
    pl_arena *mem = pl_arena_new(1 << 12);
    const char *own = level(-1, -1, -1, mem);

    (void)state;
    assert_string_equal(level(-1, -1, -1, mem), own);
    assert_string_equal(level(ARGUMENTS, ARGUMENTS, ARGUMENTS, mem), own);
    for (int k = 0; k < 4; k++)
        for (int f = 0; f < 3; f++) {
            int off[3] = { -1, -1, -1 };
            off[f] = calls[k];
            assert_string_not_equal(level(off[0], off[1], off[2], mem), own);
        }
    pl_arena_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_tried_where_they_differ),
        cmocka_unit_test(one_other_digit_is_another_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
