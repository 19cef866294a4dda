/* SPDX-License-Identifier: Apache-2.0 */
/* What a training covers, and what lies outside of it, counted by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "chem/molecule/element.h"
#include "tests/unit/held.h"
#include "tests/unit/made_traits.h"

/* The range of n chains of 3 to 9 atoms. */
static nn_range range_of_chains(int n)
{
    static nn_census c;
    nn_range r;

    memset(&c, 0, sizeof c);
    for (int i = 0; i < n; i++) {
        const made m = chain(3 + i % 7);
        const nn_traits t = traits_of(&m);
        nn_census_add(&c, &t, NN_SOURCE_MMFF94);
    }
    nn_range_of(&r, &c, "as drawn");
    return r;
}

static const char *reasons(const nn_range *r, const made *m, nn_source source, double alike, double lowest)
{
    static char text[1000];
    const nn_traits t = traits_of(m);
    const nn_case c = { .traits = &t, .source = source, .form = "as drawn", .alike = alike };
    pl_text out = { 0 };

    nn_range_reasons(&out, r, lowest, &c);
    nn_range_reasons(&out, r, lowest, &c); /* a second model of the same training */
    assert_true(pl_text_ok(&out) && out.len < sizeof text);
    memcpy(text, pl_text_str(&out), out.len + 1);
    pl_text_free(&out);
    return text;
}

static void every_reason_is_given_once(void **state)
{
    const nn_range r = range_of_chains(70);
    made m = chain(9);

    (void)state;
    assert_string_equal(reasons(&r, &m, NN_SOURCE_MMFF94, 0.5, 0.3), "");
    assert_string_equal(reasons(&r, &m, NN_SOURCE_MMFF94, NAN, 0.3), "");
    assert_string_equal(reasons(&r, &m, NN_SOURCE_MMFF94, 0.3, 0.3), "");
    m = chain(14);
    m.atom[5].z = 7;
    m.atom[5].charge = 1;
    m.atom[8].z = 17;
    assert_string_equal(
        reasons(&r, &m, NN_SOURCE_INPUT, 0.2149, 0.2951),
        "heavy atoms 14 > 9; net charge 1 > 0; unusual valences 14 > 9; atomic charge N+1 not in the training; element Cl rare in the training; "
        "high valence Cl with 2 bonds not in the training; "
        "structure from file, model trained on structures built (MMFF94); similarity 0.21 < 0.30");
    m = ring(8);
    assert_string_equal(reasons(&r, &m, NN_SOURCE_MMFF94, 1, 0), "rings 1 > 0; ring of 8 not in the training");
    m = chain(2);
    assert_string_equal(reasons(&r, &m, NN_SOURCE_MMFF94, 1, 0), "heavy atoms 2 < 3; unusual valences 2 < 3");
}

/* Atoms of the same molecule in another order, as with and without structures. */
static void reasons_have_one_order(void **state)
{
    static const int z[3][3] = { { 35, 17, 9 }, { 9, 35, 17 }, { 17, 9, 35 } };
    const nn_range r = range_of_chains(70);
    char first[1000] = "";

    (void)state;
    for (int k = 0; k < 3; k++) {
        made m = chain(9);
        const char *now;
        for (int i = 0; i < 3; i++)
            m.atom[i == 0 ? 2 : 2 + 2 * i].z = z[k][i];
        m.atom[8].z = 7;
        m.atom[8].charge = 1;
        now = reasons(&r, &m, NN_SOURCE_MMFF94, 1, 0);
        assert_true(strstr(now, "element F") < strstr(now, "element Cl") && strstr(now, "element Cl") < strstr(now, "element Br"));
        assert_true(strstr(now, "N+1") != NULL && strstr(now, "N+1") < strstr(now, "element F"));
        assert_true(k == 0 || strcmp(strstr(now, "atomic charge"), first) == 0);
        (void)snprintf(first, sizeof first, "%s", strstr(now, "atomic charge"));
    }
}

/* One in a hundred, from 1 to 5. */
static void one_percent_of_outliers_does_not_widen_the_range(void **state)
{
    static nn_census c;
    const made small = chain(5), large = chain(30);
    const nn_traits a = traits_of(&small), b = traits_of(&large);
    const struct {
        int n, odd, high;
    } cases[] = { { 99, 1, 30 }, { 300, 2, 5 }, { 300, 3, 30 }, { 3000, 4, 5 }, { 3000, 5, 30 } };

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        nn_range r;
        memset(&c, 0, sizeof c);
        for (int i = 0; i < cases[k].n; i++)
            nn_census_add(&c, i >= 40 && i < 40 + cases[k].odd ? &b : &a,
                          i >= 40 && i < 40 + cases[k].odd ? NN_SOURCE_UFF : NN_SOURCE_INPUT);
        nn_range_of(&r, &c, "neutral");
        assert_int_equal(r.high[NN_HEAVY], cases[k].high);
        assert_int_equal(r.low[NN_HEAVY], 5);
        assert_int_equal(r.sources >> NN_SOURCE_UFF & 1, cases[k].high == 30);
    }
}

static void forms_of_acids_and_bases_are_compared(void **state)
{
    static const struct {
        const char *then, *now;
        bool changed, ions, outside;
    } cases[] = {
        { "as drawn", "as drawn", false, true, false }, { "as drawn", "neutral", false, true, false },
        { "as drawn", "neutral", true, true, true },    { "as drawn", "neutral", true, false, false },
        { "as drawn", "at pH 7.4", true, false, true }, { "at pH 7.4", "at pH 7.4", true, true, false },
        { "at pH 7.4", "as drawn", false, true, true }, { "at pH 7.4", "at pH 6", true, true, true },
    };
    const made m = chain(4);
    const nn_traits t = traits_of(&m);

    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        nn_range r = range_of_chains(20);
        const nn_case c = {
            .traits = &t, .source = NN_SOURCE_MMFF94, .form = cases[k].now, .changed = cases[k].changed, .alike = 1
        };
        pl_text out = { 0 };
        strcpy(r.form, cases[k].then);
        r.low[NN_CHARGE] = cases[k].ions ? -1 : 0;
        nn_range_reasons(&out, &r, 0, &c);
        assert_int_equal(out.len > 0, cases[k].outside);
        assert_int_equal(strstr(pl_text_str(&out), "acids and bases") != NULL, cases[k].outside);
        pl_text_free(&out);
    }
}

static void the_metadata_holds_all_of_it(void **state)
{
    nn_range r = range_of_chains(70), back;
    const char *text;

    (void)state;
    r.kind[r.n_kinds++] = (nn_kind){ 7, 1, false };
    r.kind[r.n_kinds++] = (nn_kind){ 17, -1, true };
    r.ring_sizes = 1u << 3 | 1u << NN_RING_MAX;
    r.low[NN_CHARGE] = -2;
    text = nn_range_text(&r, mem);
    assert_non_null(text);
    assert_int_equal(nn_range_take(&back, text, NULL), PL_OK);
    assert_int_equal(back.n_kinds, r.n_kinds);
    assert_string_equal(nn_range_text(&back, mem), text);
    assert_true(back.low[NN_CHARGE] == -2 && back.sources == r.sources && back.ring_sizes == r.ring_sizes && back.kind[2].paired);
}

static int reason_count(const nn_range *r, const nn_traits *t)
{
    const nn_case c = { .traits = t, .source = NN_SOURCE_MMFF94, .form = "as drawn", .alike = 1 };
    pl_text out = { 0 };
    int n;

    nn_range_reasons(&out, r, 0, &c);
    n = out.len == 0 ? 0 : 2;
    if (n > 0 && strcmp(pl_text_str(&out), "high valence S with 6 bonds not in the training") == 0)
        n = 1;
    pl_text_free(&out);
    return n;
}

/* Sulfides and sulfoxides in the training, then a sulfone; a file without the list has seen no high valences. */
static void a_valence_that_the_training_never_had_is_outside(void **state)
{
    static nn_census c;
    nn_range r, back;
    nn_traits t[3];
    char *text, *at;

    (void)state;
    memset(&c, 0, sizeof c);
    for (int k = 0; k < 3; k++) {
        made m = { .n_atoms = 1 };
        m.atom[0].z = 16;
        hydrogens_add(&m, 0, 2 + 2 * k);
        t[k] = traits_of(&m);
        if (k < 2)
            nn_census_add(&c, &t[k], NN_SOURCE_MMFF94);
    }
    nn_range_of(&r, &c, "as drawn");
    for (int k = 0; k < 3; k++)
        assert_int_equal(reason_count(&r, &t[k]), k == 2);
    text = (char *)nn_range_text(&r, mem);
    assert_int_equal(nn_range_take(&back, text, NULL), PL_OK);
    assert_memory_equal(back.expanded, r.expanded, sizeof r.expanded);
    at = strstr(text, "\"high_valences\":[\"S4\"],");
    assert_non_null(at);
    memmove(at, at + strlen("\"high_valences\":[\"S4\"],"), strlen(at + strlen("\"high_valences\":[\"S4\"],")) + 1);
    assert_int_equal(nn_range_take(&back, text, NULL), PL_OK);
    assert_true(reason_count(&back, &t[0]) == 0 && reason_count(&back, &t[1]) == 2);
}

/* Like files of earlier versions: without the list, no training molecule counts as having such an atom. */
static void a_file_that_tells_no_valences_has_seen_none(void **state)
{
    const nn_range r = range_of_chains(70);
    char *text = (char *)nn_range_text(&r, mem), *at = strstr(text, "\"unusual_valences\"");
    nn_range back;

    (void)state;
    assert_non_null(at);
    memmove(at, strchr(at, ']') + 2, strlen(strchr(at, ']') + 2) + 1);
    assert_int_equal(nn_range_take(&back, text, NULL), PL_OK);
    assert_true(back.low[NN_VALENCES] == 0 && back.high[NN_VALENCES] == 0 && back.high[NN_HEAVY] == 9);
}

static void wrong_metadata_is_refused(void **state)
{
    static const char *const wrong[][2] = { { "\"molecules\":70", "\"molecules\":0" },
                                            { "\"molecules\":70", "\"molecules\":-1" },
                                            { "[3,9]", "[9,3]" },
                                            { "[3,9]", "[3]" },
                                            { "[3,9]", "[3,9e99]" },
                                            { "\"as drawn\"", "7" },
                                            { "\"as drawn\"", "\"as drawn, and much longer than any form is\"" },
                                            { "\"C\"", "\"Qq\"" },
                                            { "\"C\"", "\"C+999\"" },
                                            { "\"C\"", "\"C+1 pairs\"" },
                                            { "\"C\"", "6" },
                                            { "\"ring_sizes\":[]", "\"ring_sizes\":[32]" },
                                            { "\"ring_sizes\":[]", "\"ring_sizes\":3" },
                                            { "\"high_valences\":[]", "\"high_valences\":3" },
                                            { "\"high_valences\":[]", "\"high_valences\":[\"S\"]" },
                                            { "\"high_valences\":[]", "\"high_valences\":[\"S16\"]" },
                                            { "\"high_valences\":[]", "\"high_valences\":[\"S0\"]" },
                                            { "\"high_valences\":[]", "\"high_valences\":[\"C5\"]" },
                                            { "\"high_valences\":[]", "\"high_valences\":[6]" },
                                            { "\"mmff94\"]", "\"mmff94\"" } };
    const nn_range r = range_of_chains(70);
    const char *text = nn_range_text(&r, mem);
    nn_range back;

    (void)state;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        const char *at = strstr(text, wrong[k][0]);
        pl_text changed = { 0 };
        assert_non_null(at);
        pl_text_add_n(&changed, text, (size_t)(at - text));
        pl_text_addf(&changed, "%s%s", wrong[k][1], at + strlen(wrong[k][0]));
        assert_int_equal(nn_range_take(&back, pl_text_str(&changed), NULL), PL_EDATA);
        pl_text_free(&changed);
    }
}

/* ---- counts by hand: each place of the lists, the first and the last, too ---- */

/* The range of 100 molecules with these traits, and of one more with others: one in a hundred is enough. */
static nn_range range_of_traits(const nn_traits *often, const nn_traits *once)
{
    static nn_census c;
    nn_range r;

    memset(&c, 0, sizeof c);
    for (int i = 0; i < 199; i++)
        nn_census_add(&c, often, NN_SOURCE_INPUT);
    nn_census_add(&c, once, NN_SOURCE_UFF); /* min is 2 */
    nn_range_of(&r, &c, "neutral");
    return r;
}

static const char *said_of(const nn_range *r, const nn_traits *t, double alike, double lowest)
{
    static pl_text text;
    const nn_case c = { .traits = t, .source = NN_SOURCE_INPUT, .form = "neutral", .alike = alike };

    pl_text_reset(&text);
    nn_range_reasons(&text, r, lowest, &c);
    return pl_text_str(&text);
}

static void rings_and_valences_of_every_size_are_told(void **state)
{
    const nn_traits none = { 0 };
    char want[100];

    (void)state;
    for (int k = 0; k <= NN_RING_MAX; k++) {
        const nn_traits t = { .ring_sizes = 1u << k };
        const nn_range r = range_of_traits(&t, &none), other = range_of_traits(&none, &t);
        assert_int_equal(r.ring_sizes, t.ring_sizes);
        assert_int_equal(other.ring_sizes, 0);
        assert_string_equal(said_of(&r, &t, 1, 0), "");
        (void)snprintf(want, sizeof want, "ring of %d%s not in the training", k, k == NN_RING_MAX ? " or more" : "");
        assert_string_equal(said_of(&other, &t, 1, 0), want);
    }
    for (int e = 0; e < NN_EXPANDED; e++)
        for (int bonds = 0; bonds <= NN_EXPANDED_MAX; bonds++) {
            nn_traits t = { 0 };
            t.expanded[e] = (uint16_t)(1u << bonds);
            const nn_range r = range_of_traits(&t, &none), other = range_of_traits(&none, &t);
            assert_memory_equal(r.expanded, t.expanded, sizeof t.expanded);
            assert_memory_equal(other.expanded, none.expanded, sizeof t.expanded);
            assert_string_equal(said_of(&r, &t, 1, 0), "");
            (void)snprintf(want, sizeof want, "high valence %s with %d%s bonds not in the training",
                           ch_element_symbol(nn_expanded_z[e]), bonds, bonds == NN_EXPANDED_MAX ? " or more" : "");
            assert_string_equal(said_of(&other, &t, 1, 0), want);
        }
}

static void numbers_are_inside_up_to_their_limits(void **state)
{
    char want[100];

    (void)state;
    for (int k = 0; k < NN_NUMBERS; k++) {
        nn_traits t = { 0 };
        t.number[k] = 4;
        nn_range r = range_of_traits(&t, &t);
        r.high[k] = 7;
        for (t.number[k] = 4; t.number[k] <= 7; t.number[k]++)
            assert_string_equal(said_of(&r, &t, 1, 0), "");
        (void)snprintf(want, sizeof want, "%s 8 > 7", nn_range_words[k]);
        assert_string_equal(said_of(&r, &t, 1, 0), want);
        t.number[k] = 3;
        (void)snprintf(want, sizeof want, "%s 3 < 4", nn_range_words[k]);
        assert_string_equal(said_of(&r, &t, 1, 0), want);
    }
}

/* Rounded away from each other, so that the message never says "0.50 < 0.50". */
static void similarities_are_rounded_away_from_each_other(void **state)
{
    static const struct {
        double alike, lowest;
        const char *say;
    } cases[] = { { 0.5, 0.5, "" },
                  { 0.4999, 0.5, "similarity 0.49 < 0.50" },
                  { 0.499, 0.501, "similarity 0.49 < 0.51" },
                  { 0.231, 0.233, "similarity 0.23 < 0.24" },
                  { 0.05, 0.07, "similarity 0.05 < 0.07" },
                  { 0, 1, "similarity 0.00 < 1.00" },
                  { 1, 0.2, "" } };
    const nn_traits t = { 0 };
    const nn_range r = range_of_traits(&t, &t);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(said_of(&r, &t, cases[i].alike, cases[i].lowest), cases[i].say);
}

/* The most frequent atoms are kept, and of equally frequent ones the first by element, charge and neighbour. */
static void only_so_many_kinds_of_atoms_are_kept(void **state)
{
    static nn_census c;
    nn_range r;

    (void)state;
    memset(&c, 0, sizeof c);
    for (int i = 0; i < 10; i++) {
        nn_traits t = { .n_kinds = 0 };
        for (int k = 0; k < NN_KINDS_MAX; k++) /* in no order */
            t.kind[t.n_kinds++] = (nn_kind){ (uint8_t)(90 - 37 * k % NN_KINDS_MAX), 0, false };
        nn_census_add(&c, &t, NN_SOURCE_INPUT);
    }
    for (int i = 0; i < 20; i++) {
        const nn_traits t = {
            .n_kinds = 6,
            .kind = { { 8, -1, true }, { 8, -1, false }, { 8, -2, false }, { 7, 1, false }, { 9, 1, false }, { 9, 1, true } }
        };
        nn_census_add(&c, &t, NN_SOURCE_INPUT);
    }
    nn_range_of(&r, &c, "neutral");
    assert_int_equal(r.n_kinds, NN_KINDS_MAX);
    assert_true(r.kind[0].z == 7 && r.kind[1].charge == -2 && r.kind[2].charge == -1 && !r.kind[2].paired && r.kind[3].paired);
    assert_true(r.kind[4].z == 9 && !r.kind[4].paired && r.kind[5].paired);
    for (int k = 6; k < NN_KINDS_MAX; k++)
        assert_int_equal(r.kind[k].z, 90 - NN_KINDS_MAX + 1 + k - 6);
}

/* More kinds than there is room for: those that came first are counted, and nothing is written behind them. */
static void a_census_has_room_for_so_many_kinds(void **state)
{
    enum { ROOM = sizeof(((nn_census *)0)->kind) / sizeof(struct nn_kind_count), MOLECULES = 40, EACH = 30 };
    static struct {
        nn_census c;
        int64_t behind[4];
    } all;

    (void)state;
    memset(&all, 0, sizeof all);
    for (int twice = 0; twice < 2; twice++)
        for (int i = 0; i < MOLECULES; i++) {
            nn_traits t = { .n_kinds = EACH };
            for (int k = 0; k < EACH; k++)
                t.kind[k] = (nn_kind){ (uint8_t)(1 + k), (int8_t)(i / 2 - 10), i % 2 };
            nn_census_add(&all.c, &t, NN_SOURCE_INPUT);
        }
    assert_int_equal(all.c.n_kinds, ROOM);
    for (int k = 0; k < ROOM; k++) {
        const nn_kind is = all.c.kind[k].kind;
        assert_true(is.z == 1 + k % EACH && is.charge == k / EACH / 2 - 10 && is.paired == k / EACH % 2);
        assert_int_equal(all.c.kind[k].n, 2);
    }
    for (int k = 0; k < 4; k++)
        assert_int_equal(all.behind[k], 0);
}

static int by_number(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return (x > y) - (x < y);
}

/* The lowest and the highest number but for one in a hundred, 1 to 5 of them, in whatever order they come. */
static void limits_are_those_of_sorted_numbers(void **state)
{
    enum { MOST = 620 };
    static const int sizes[] = { 1, 2, 3, 4, 5, 6, 7, 99, 100, 199, 200, 299, 300, 399, 400, 499, 500, 599, MOST };
    static nn_census c;

    (void)state;
    for (size_t case_of = 0; case_of < sizeof sizes / sizeof *sizes; case_of++) {
        const int n = sizes[case_of];
        int32_t sorted[MOST];
        const int out = n >= 500 ? 5 : n / 100;
        const int at = out > 1 ? out - 1 : 0;
        nn_range r;
        memset(&c, 0, sizeof c);
        for (int i = 0; i < n; i++) {
            nn_traits t = { .n_kinds = 0 };
            sorted[i] = (int32_t)((i * 2654435761u >> 7) % 1000) - 400;
            for (int k = 0; k < NN_NUMBERS; k++)
                t.number[k] = sorted[i] + k;
            nn_census_add(&c, &t, NN_SOURCE_INPUT);
        }
        qsort(sorted, (size_t)n, sizeof *sorted, by_number);
        nn_range_of(&r, &c, "neutral");
        for (int k = 0; k < NN_NUMBERS; k++) {
            assert_int_equal(r.low[k], sorted[at] + k);
            assert_int_equal(r.high[k], sorted[n - 1 - at] + k);
        }
    }
}

static void unknown_atoms_are_named_by_element_and_charge(void **state)
{
    static const nn_kind unknown[] = { { 7, -1, false }, { 7, -1, true },   { 7, 0, true },
                                       { 7, 2, false },  { 16, -2, false }, { 16, 1, true } };
    enum { N = sizeof unknown / sizeof *unknown };
    const made m = chain(4);
    nn_range r = range_of_chains(20);
    const nn_traits all = traits_of(&m);
    nn_traits t = all;

    static const char want[] =
        "atomic charge N-1 not in the training; atomic charge N-1 next to an opposite one not in the training; "
        "element N rare in the training; atomic charge N+2 not in the training; atomic charge S-2 not in the "
        "training; atomic charge S+1 next to an opposite one not in the training";

    (void)state;
    nn_range_ignore_sources(&r);
    for (int turn = 0; turn < N; turn++) {
        t.n_kinds = 0;
        for (int k = 0; k < N; k++)
            t.kind[t.n_kinds++] = unknown[(k * 5 + turn) % N];
        for (int k = 0; k < all.n_kinds; k++)
            t.kind[t.n_kinds++] = all.kind[k];
        assert_string_equal(said_of(&r, &t, 1, 0), want);
    }
}

static void any_numbers_are_kept(void **state)
{
    nn_range r = range_of_chains(20), back;

    (void)state;
    for (int k = 0; k < NN_NUMBERS; k++) {
        r.low[k] = k % 2 ? INT32_MIN : -k;
        r.high[k] = k % 2 ? -k : INT32_MAX;
    }
    for (int k = 0; k < NN_EXPANDED; k++)
        r.expanded[k] = 0xFFFE; /* 1 bond to 15 or more */
    r.ring_sizes = 0xFFFFFFF8;
    nn_range_ignore_sources(&r);
    assert_int_equal(nn_range_take(&back, nn_range_text(&r, mem), NULL), PL_OK);
    assert_memory_equal(back.low, r.low, sizeof r.low);
    assert_memory_equal(back.high, r.high, sizeof r.high);
    assert_memory_equal(back.expanded, r.expanded, sizeof r.expanded);
    assert_true(back.ring_sizes == r.ring_sizes && back.sources == r.sources);
}

static void text_once(void *ctx)
{
    pl_arena *own = pl_arena_new(0);
    nn_range back;

    (void)nn_range_take(&back, nn_range_text(ctx, own), NULL);
    (void)nn_range_take(&back, "{\"molecules\":70}", NULL);
    (void)nn_range_take(&back, "{", NULL);
    pl_arena_free(own);
}

static void texts_of_a_range_hold_nothing(void **state)
{
    nn_range r = range_of_chains(20);

    (void)state;
    assert_holds_nothing(text_once, &r);
}

/* The range of some molecules is never wider than that of all; where nothing is in both, it stays. */
static void two_ranges_meet(void **state)
{
    const nn_kind kinds[] = { { .z = 6 }, { .z = 7, .charge = 1 }, { .z = 7, .charge = 1, .paired = true }, { .z = 17 } };
    nn_range all = {
        .low = { 5, 0, 1 }, .high = { 20, 0, 3 }, .ring_sizes = 0x60, .sources = 6, .expanded = { 0x20, 0, 8 }, .n_kinds = 3
    };
    nn_range some = { .molecules = 7,
                      .low = { 2, -1, 4 },
                      .high = { 30, 1, 5 },
                      .ring_sizes = 0x48,
                      .sources = 2,
                      .expanded = { 0, 8, 8 },
                      .n_kinds = 2 };

    (void)state;
    memcpy(all.kind, kinds, 3 * sizeof *kinds);
    some.kind[0] = kinds[3];
    some.kind[1] = kinds[2];
    nn_range_meet(&some, &all);
    assert_true(some.low[0] == 5 && some.high[0] == 20 && some.low[1] == 0 && some.high[1] == 0);
    assert_true(some.low[2] == 4 && some.high[2] == 5);
    assert_true(some.ring_sizes == 0x40 && some.sources == 2 && some.molecules == 7);
    assert_true(some.expanded[0] == 0 && some.expanded[1] == 0 && some.expanded[2] == 8);
    assert_true(some.n_kinds == 1 && some.kind[0].z == 7 && some.kind[0].charge == 1 && some.kind[0].paired);
    some.sources = 1;
    nn_range_meet(&some, &all);
    assert_int_equal(some.sources, 1);
}

/* Of 300 molecules three are large, so that 28 atoms count as seen; for the 90 that the target has, one such molecule would be enough for 30. */
static void a_target_does_not_widen_the_range(void **state)
{
    nn_census *const of[4] = { calloc(1, sizeof(nn_census)), calloc(1, sizeof(nn_census)), NULL, calloc(1, sizeof(nn_census)) };
    nn_range out[4];

    (void)state;
    for (int32_t i = 0; i < 300; i++) {
        nn_traits t = { .number = { [NN_HEAVY] = i < 297 ? 10 + i % 5 : 28 + i - 297 } };
        nn_census_add(of[0], &t, NN_SOURCE_NONE);
        if (i >= 210)
            nn_census_add(of[1], &t, NN_SOURCE_NONE);
    }
    nn_ranges_of(out, of, 4, "neutral");
    assert_true(out[0].molecules == 300 && out[0].low[NN_HEAVY] == 10 && out[0].high[NN_HEAVY] == 28);
    assert_true(out[1].molecules == 90 && out[1].low[NN_HEAVY] == 10 && out[1].high[NN_HEAVY] == 28); /* alone: 30 */
    assert_true(out[2].molecules == 0 && out[3].molecules == 0);
    assert_string_equal(out[1].form, "neutral");
    for (int k = 0; k < 4; k++)
        free(of[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rings_and_valences_of_every_size_are_told),
        cmocka_unit_test(numbers_are_inside_up_to_their_limits),
        cmocka_unit_test(similarities_are_rounded_away_from_each_other),
        cmocka_unit_test(a_census_has_room_for_so_many_kinds),
        cmocka_unit_test(any_numbers_are_kept),
        cmocka_unit_test(texts_of_a_range_hold_nothing),
        cmocka_unit_test(limits_are_those_of_sorted_numbers),
        cmocka_unit_test(unknown_atoms_are_named_by_element_and_charge),
        cmocka_unit_test(only_so_many_kinds_of_atoms_are_kept),
        cmocka_unit_test(every_reason_is_given_once),
        cmocka_unit_test(reasons_have_one_order),
        cmocka_unit_test(one_percent_of_outliers_does_not_widen_the_range),
        cmocka_unit_test(forms_of_acids_and_bases_are_compared),
        cmocka_unit_test(the_metadata_holds_all_of_it),
        cmocka_unit_test(a_valence_that_the_training_never_had_is_outside),
        cmocka_unit_test(a_file_that_tells_no_valences_has_seen_none),
        cmocka_unit_test(wrong_metadata_is_refused),
        cmocka_unit_test(two_ranges_meet),
        cmocka_unit_test(a_target_does_not_widen_the_range),
    };

    return cmocka_run_group_tests(tests, mem_open, mem_close);
}
