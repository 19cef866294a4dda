/* SPDX-License-Identifier: Apache-2.0 */
/* Which component of a model to trust: only what a paired test supports is claimed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "stages/steps/errors/errors.h"
#include "stages/steps/errors/trust.h"

typedef struct given {
    const char *who;
    int side;
    double error, difference, difference_error;
} given;

static const char *const side_names[] = { "inside", "outside" };

static void put(st_trust *t, const char *who, const char *what, int side, double x, int64_t n)
{
    char name[80];

    (void)snprintf(name, sizeof name, "%s%s%s.domain %s", who, who[0] ? "." : "", what, side_names[side]);
    st_trust_add(t, name, x, n);
}

/* n molecules inside and m outside, where the mean has the error 0.5. */
static st_trust made(const given *g, int n_given, int64_t n, int64_t m)
{
    const int64_t size[2] = { n, m };
    st_trust t = st_trust_new(false);

    for (int side = 0; side < 2; side++)
        put(&t, "", "mae", side, 0.5, size[side]);
    for (int k = 0; k < n_given; k++) {
        put(&t, g[k].who, "mae", g[k].side, g[k].error, size[g[k].side]);
        put(&t, g[k].who, "difference", g[k].side, g[k].difference, size[g[k].side]);
        put(&t, g[k].who, "difference_error", g[k].side, g[k].difference_error, size[g[k].side]);
    }
    return t;
}

static void expect(const st_trust *t, const char *want)
{
    pl_text said = { 0 };

    st_trust_sentence(&said, t, "test", "eV");
    if (strcmp(pl_text_str(&said), want) != 0)
        fail_msg("said: %s", pl_text_str(&said));
    pl_text_free(&said);
}

static void without_evidence_the_mean_is_taken(void **state)
{
    /* 0.1 of 0.04: 2.5 standard errors, but four comparisons were made and 30 molecules are few. */
    const given g[] = {
        { "trees", 0, 0.45, -0.05, 0.05 }, { "gp", 0, 0.7, 0.2, 0.01 }, { "trees", 1, 0.4, -0.1, 0.04 }, { "gp", 1, 0.6, 0.1, 0.02 }
    };
    const st_trust t = made(g, 4, 100, 30);

    (void)state;
    expect(&t,
           "By the part test: take the mean of the components: none is shown to be better inside of the domain (100 molecules) or "
           "outside of it (30 molecules)");
}

static void a_component_that_is_shown_to_be_better_is_named(void **state)
{
    const given g[] = { { "trees", 0, 0.45, -0.05, 0.05 },
                        { "gp", 0, 0.7, 0.2, 0.01 },
                        { "trees", 1, 0.4, -0.1, 0.035 },
                        { "gp", 1, 0.38, -0.12, 0.07 } };
    const st_trust t = made(g, 4, 100, 30);

    (void)state;
    expect(
        &t,
        "By the part test: outside of it trust trees: MAE 0.4 eV, the mean 0.5 eV (30 molecules); take the mean of the components: "
        "none is shown to be better inside of the domain (100 molecules)");
}

static void few_molecules_show_nothing(void **state)
{
    const given g[] = { { "trees", 0, 0.1, -0.4, 0.001 },
                        { "gp", 0, 0.7, 0.2, 0.01 },
                        { "trees", 1, 0.1, -0.4, 0.001 },
                        { "gp", 1, 0.2, -0.3, 0.001 } };
    const st_trust t = made(g, 4, 100, 19);

    (void)state;
    expect(&t,
           "By the part test: inside of the domain trust trees: MAE 0.1 eV, the mean 0.5 eV (100 molecules); take the mean of the "
           "components: none is shown to be better outside of it (19 molecules, too few to compare)");
}

/* Two components and two sides: a difference is claimed from the quantile 1 - 0.05 / 8 on. */
static void the_threshold_is_that_of_students_distribution(void **state)
{
    /* scipy.stats.t.ppf(1 - 0.05 / 8, n - 1) */
    static const struct {
        int64_t n;
        double t;
    } known[] = { { 20, 2.758586 }, { 30, 2.663196 }, { 100, 2.544161 }, { 1000, 2.502238 } };

    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        for (int above = 0; above < 2; above++) {
            const double times = known[k].t * (above ? 1.002 : 0.998);
            const given g[] = { { "trees", 0, 0.4, -0.1, 0.1 / times }, { "gp", 0, 0.6, 0.1, 0.1 } };
            const st_trust t = made(g, 2, known[k].n, 0);
            pl_text said = { 0 };
            st_trust_sentence(&said, &t, "test", "eV");
            if ((strstr(pl_text_str(&said), "trust trees") != NULL) != (above == 1))
                fail_msg("%d molecules, %g standard errors: %s", (int)known[k].n, times, pl_text_str(&said));
            pl_text_free(&said);
        }
}

static void other_metrics_and_single_models_say_nothing(void **state)
{
    st_trust t = st_trust_new(false);
    pl_text said = { 0 };

    (void)state;
    for (const char *const *m = (const char *const[]){ "mae", "rmse.domain inside", "x", "", ".domain inside", "mae.domain ",
                                                       "a name that is much too long.mae.domain inside", NULL };
         *m != NULL; m++)
        st_trust_add(&t, *m, 1, 5);
    st_trust_take(&t, NULL);
    st_trust_sentence(&said, &t, "test", "eV");
    st_trust_lines(&said, &t, "", "eV");
    assert_string_equal(pl_text_str(&said), "");
    pl_text_free(&said);
}

/* Scores outside have no interval, so a coverage there is not shown. */
static void only_the_coverage_inside_is_shown(void **state)
{
    const given g[] = { { "trees", 0, 0.45, -0.05, 0.05 }, { "gp", 0, 0.7, 0.2, 0.01 } };
    pl_text said = { 0 };
    st_trust t = made(g, 2, 28, 1);

    (void)state;
    st_trust_add(&t, "coverage90.domain outside", 1, 1);
    st_trust_lines(&said, &t, "", "");
    assert_null(strstr(pl_text_str(&said), "interval90"));
    pl_text_reset(&said);
    st_trust_add(&t, "coverage90", 0.9286, 28);
    st_trust_lines(&said, &t, "", "");
    assert_non_null(strstr(pl_text_str(&said), "  interval90   92.86 % held -\n"));
    pl_text_free(&said);
}

/* The network is judged by the targets that some molecule of the part has. */
static void a_target_without_molecules_has_no_part_in_a_ratio(void **state)
{
    const st_errors with[] = { { .model = { .rmse = 3 } }, { .model = { .rmse = NAN } }, { .model = { .rmse = 1 } } };
    const st_errors without[] = { { .model = { .rmse = 2 } }, { .model = { .rmse = NAN } }, { .model = { .rmse = 4 } } };

    (void)state;
    assert_true(st_errors_ratio(with, without, 3, ST_ERROR_rmse) == (1.5 + 0.25) / 2);
    assert_true(st_errors_ratio(with, without, 2, ST_ERROR_rmse) == 1.5);
    assert_true(isnan(st_errors_ratio(with + 1, without + 1, 1, ST_ERROR_rmse)));
    assert_true(isnan(st_errors_ratio(with, without, 0, ST_ERROR_rmse)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_evidence_the_mean_is_taken),
        cmocka_unit_test(a_component_that_is_shown_to_be_better_is_named),
        cmocka_unit_test(few_molecules_show_nothing),
        cmocka_unit_test(the_threshold_is_that_of_students_distribution),
        cmocka_unit_test(other_metrics_and_single_models_say_nothing),
        cmocka_unit_test(only_the_coverage_inside_is_shown),
        cmocka_unit_test(a_target_without_molecules_has_no_part_in_a_ratio),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
