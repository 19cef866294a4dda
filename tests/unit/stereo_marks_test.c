/* SPDX-License-Identifier: Apache-2.0 */
/* Stereo that stands behind a SMILES because no SMILES has it: what fits the molecule is built so, anything else is refused. */
#include <stdio.h>

#include "tests/unit/prepared.h"

/* Of no record: the worker's own text for what is to be built is exchanged for this one. */
static pl_code exchange_text(void *ctx, ch_prepared *p, pl_arena *arena, pl_error *err)
{
    (void)arena;
    (void)err;
    p->built_from = *(const char **)ctx;
    return PL_OK;
}

static ch_prepared built(const char *text)
{
    const ch_known known = { .ctx = &text, .judge = exchange_text };
    const ch_input in = { .text = "CC", .format = "smi", .len = 2 };
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;
    pl_error err = { 0 };

    o.builder = CH_OPENBABEL;
    if (ch_worker_prepare_all(worker, &in, 1, &o, &known, &p, mem, &err) != PL_OK)
        fail_msg("%s: %s", text, err.text);
    return p;
}

/* Nothing is built; what would be is kept. */
static pl_code keep_text(void *ctx, ch_prepared *p, pl_arena *arena, pl_error *err)
{
    (void)arena;
    (void)err;
    *(const char **)ctx = p->built_from;
    p->set_aside = "a test";
    return PL_OK;
}

static const char *text_of(const char *smiles)
{
    const char *text = NULL;
    const ch_known known = { .ctx = &text, .judge = keep_text };
    const ch_input in = { .text = smiles, .format = "smi", .len = strlen(smiles) };
    ch_prepare_opts o = ch_prepare_defaults();
    ch_prepared p;

    assert_int_equal(ch_worker_prepare_all(worker, &in, 1, &o, &known, &p, mem, NULL), PL_OK);
    assert_non_null(text);
    return text;
}

/* The ends of C=C=C=C, whose / and \\ may stand at either digit of a ring closure. */
static void marks_of_ring_closures_are_those_of_bonds(void **state)
{
    static const char *const same[][2] = { { "C/C=C=C=C/C", "C/C=C=C=C/1.C1" },   { "C/C=C=C=C/C", "C/C=C=C=C1.C\\1" },
                                           { "C/C=C=C=C/C", "C/C=C=C=C/1.C\\1" }, { "C/C=C=C=C\\C", "C/C=C=C=C1.C/1" },
                                           { "C/C=C=C=C/C", "C1.C/C=C=C=C/1" },   { "C/C=C=C=C/C", "C\\1.C/C=C=C=C1" },
                                           { "C/C=C=C=C/C", "C/C=C=C=C(/C)[H]" }, { "C/C(F)=C=C=C(/C)Cl", "C/C(F)=C=C=C(Cl)/C" } };

    (void)state;
    assert_string_not_equal(text_of("C/C=C=C=C/C"), text_of("C/C=C=C=C\\C"));
    assert_string_not_equal(text_of("C/C=C=C=C/C"), text_of("CC=C=C=CC"));
    for (size_t k = 0; k < sizeof same / sizeof *same; k++)
        if (strcmp(text_of(same[k][0]), text_of(same[k][1])) != 0)
            fail_msg("%s is %s, %s is %s", same[k][0], text_of(same[k][0]), same[k][1], text_of(same[k][1]));
}

#define AMINE "C[N+](CC)(CCC)[O-]"
#define IMINE "CC=N"
#define ALLENE "CC=C=CC"
#define TRIENE "CC=C=C=CC"

static void stereo_that_fits_is_built(void **state)
{
    static const char *const cases[] = { AMINE,
                                         AMINE " t1,0,2,4,7",
                                         AMINE " t1,0,4,2,7",
                                         IMINE " d1,2,0,-1,-1,-2",
                                         IMINE " d1,2,0,-1,-2,-1",
                                         ALLENE " x1,3,0,-1,4,-1",
                                         ALLENE " x1,3,0,-1,-1,4",
                                         TRIENE " y1,4,0,-1,-1,5",
                                         TRIENE " y1,4,0,-1,5,-1" };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const ch_prepared p = built(cases[k]);
        if (p.code != CH_OK && p.code != CH_GEOMETRY) /* the builder may have made the other form, and be told so */
            fail_msg("%s: %s", cases[k], p.message);
    }
}

static void stereo_that_does_not_fit_is_refused(void **state)
{
    static const char *const cases[][2] = {
        { AMINE, "t1,0,2,4" },         { AMINE, "t1,0,2,4,7,8" },      { AMINE, "t-1,0,2,4,7" },
        { AMINE, "t8,0,2,4,7" },       { AMINE, "t1,0,2,4,8" },        { AMINE, "t1,0,2,4,-4" },
        { AMINE, "t1,8,2,4,7" },       { AMINE, "z1,0,2,4,7" },        { AMINE, "t1,0,2,4,-3" },
        { IMINE, "d1,2,0,-1,-1" },     { IMINE, "d1,2,0,-1,-1,-2,0" }, { IMINE, "d-1,2,0,-1,-1,-2" },
        { IMINE, "d1,-2,0,-1,-1,-2" }, { IMINE, "d1,3,0,-1,-1,-2" },   { IMINE, "d1,1,0,-1,-1,-2" },
        { IMINE, "d0,2,0,-1,-1,-2" },  { IMINE, "d1,2,9,-1,-1,-2" },   { IMINE, "d1,2,0,-1,-1,9" },
        { IMINE, "y1,2,0,-1,-1,-2" },  { TRIENE, "d1,4,0,-1,-1,5" },   { TRIENE, "y1,4,9,-1,-1,5" },
        { TRIENE, "y1,4,0,-1,-1,9" },  { TRIENE, "y1,4,0,-1,-1" },     { TRIENE, "y1,9,0,-1,-1,5" },
        { TRIENE, "y1,1,0,-1,-1,5" },  { TRIENE, "y-1,4,0,-1,-1,5" },  { TRIENE, "y1,-4,0,-1,-1,5" },
        { ALLENE, "x1,3,0,-1,4" },     { ALLENE, "x1,3,0,-1,4,-1,0" }, { ALLENE, "x1,1,0,-1,4,-1" },
        { ALLENE, "x-1,3,0,-1,4,-1" }, { ALLENE, "x1,-1,0,-1,4,-1" },  { ALLENE, "x1,5,0,-1,4,-1" },
        { ALLENE, "x1,3,4,-1,4,-1" },  { ALLENE, "x1,3,0,-1,0,-1" },   { ALLENE, "x1,3,0,-2,4,-1" },
        { ALLENE, "x1,3,0,9,4,-1" },   { ALLENE, "x1,3,0,-3,4,-1" },
    };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[64], want[96];
        (void)snprintf(text, sizeof text, "%s %s", cases[k][0], cases[k][1]);
        (void)snprintf(want, sizeof want, "stereo that does not fit the molecule: %s", cases[k][1]);
        const ch_prepared p = built(text);
        if (p.code != CH_CONFORMER || strcmp(p.message, want) != 0)
            fail_msg("%s: %s, %s", text, ch_status_name(p.code), p.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(marks_of_ring_closures_are_those_of_bonds),
                                        cmocka_unit_test(stereo_that_fits_is_built),
                                        cmocka_unit_test(stereo_that_does_not_fit_is_refused) };

    return cmocka_run_group_tests(tests, setup, teardown);
}
