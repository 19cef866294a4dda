/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/fingerprint/nearest.h"

#include <stdbool.h>

void ch_nearest_open(ch_nearest *s, const ch_fingerprint *print, int32_t skip)
{
    *s = (ch_nearest){ .skip = skip };
    ch_sought_open(&s->sought, print);
}

static int64_t common(const ch_fingerprint *a, const ch_fingerprint *b)
{
    int64_t n = 0;

    for (int k = 0; k < CH_FINGERPRINT_BITS / 64; k++)
        n += __builtin_popcountll(a->word[k] & b->word[k]);
    return n;
}

static bool is_more(const ch_near *a, const ch_near *b) { return a->both * b->either > b->both * a->either; }

/* Sets the bar for the search: the similarity of the last entry of a full list, otherwise 0. */
static void bar_set(ch_nearest *s)
{
    const ch_near none = { 0, 1, -1 }, bar = s->n == CH_NEAREST ? s->near[CH_NEAREST - 1] : none;

    s->sought.both = bar.both;
    s->sought.either = bar.either;
    s->sought.at = -1;
}

static void put(ch_nearest *s, ch_near one)
{
    int32_t k = s->n < CH_NEAREST ? s->n++ : CH_NEAREST - 1;

    for (; k > 0 && is_more(&one, &s->near[k - 1]); k--)
        s->near[k] = s->near[k - 1];
    s->near[k] = one;
}

/* At least one of these eight is more similar than the bar. */
static void take(ch_nearest *s, const ch_among *a, int32_t from, int32_t end)
{
    const ch_near none = { 0, 1, -1 };

    for (int32_t i = from; i < end; i++) {
        const int64_t both = common(s->sought.print, &a->all[i]);
        const ch_near one = { both, a->folds[i / CH_FOLD].ones[i % CH_FOLD] + s->sought.ones - both, i };
        if (i != s->skip && ch_among_has(a, i) && is_more(&one, s->n == CH_NEAREST ? &s->near[CH_NEAREST - 1] : &none))
            put(s, one);
    }
    bar_set(s);
}

void ch_nearest_in(ch_nearest *s, const ch_among *a, int32_t from, int32_t end)
{
    ch_look *look = ch_look_at(0);

    for (int32_t i = from; i < end; i += CH_FOLD) {
        const int32_t to = end - i < CH_FOLD ? end : i + CH_FOLD;
        look(&s->sought, a, i, to);
        if (s->sought.at >= 0)
            take(s, a, i, to);
    }
}

double ch_nearest_alike(const ch_nearest *s, int32_t k) { return (double)s->near[k].both / (double)s->near[k].either; }
