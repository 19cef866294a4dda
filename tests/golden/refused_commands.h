/* tests/golden/refused_commands.h - refuses each place of a command once and again: the command ends with that error, or prints what it
 * prints otherwise. Include it once, after cmocka.h. */
#ifndef REFUSED_COMMANDS_H
#define REFUSED_COMMANDS_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "golden/command.h"
#include "golden/refused_places.h"

/* places: at least; without: those that the command does without, at most; again: those of the second pass. */
typedef struct command {
    const char *words;
    int places, without, again;
} command;

/* A plan is compared without its numbers: seconds that this machine needs, and bytes that are free; so is what has a number of its own. */
static bool differ(const char *words, const char *a, const char *b)
{
    const bool plan = strncmp(words, "plan", 4) == 0 || strncmp(words, "retry", 5) == 0 || strstr(words, " --try") != NULL ||
                      strstr(words, "%ld") != NULL;
    const char *const left_out = plan ? "0123456789. kMGTB" : "";

    for (;; a++, b++) {
        a += strspn(a, left_out);
        b += strspn(b, left_out);
        if (*a != *b || *a == '\0')
            return *a != *b;
    }
}

/* A page shows the SMILES of what the chemistry worker cannot draw, and lacks what a model that cannot be read would say; model info
 * prints ? for a word without memory. */
static bool may_differ(const char *words)
{
    const bool page = strncmp(words, "report ", 7) == 0, info = strncmp(words, "model info ", 11) == 0;

    return what != NULL && (page ? strcmp(what, "memory") != 0 : info && strcmp(name_of(where), "st_model_plain") == 0);
}

/* Nothing is printed after a call has failed but that, once. `check --json` prints it as a problem, and `predict` may still print the
 * answers before the one that fails. */
static bool tells_it_alone(const char *words, const said *s)
{
    const bool more = s->out.len > told[0], by_list = more && strcmp(words, "check w.yaml --json") == 0;

    return n_told(s) == !by_list && (!more || by_list || strncmp(words, "predict ", 8) == 0);
}

static bool refuse_one(const char *words, const said *good, int *n_without)
{
    said s;
    bool met;

    refusing();
    s = say(words);
    atomic_store(&armed, false);
    met = what != NULL;
    if (s.status == good->status) {
        if (!may_differ(words) && differ(words, pl_text_str(&good->out), pl_text_str(&s.out)))
            fail_msg("%s, %s in %s (%p): status %d and\n%s", words, what, name_of(where), where, s.status, pl_text_str(&s.out));
        n_without[pass] += met;
    } else if (!met || (strstr(pl_text_str(&s.err), what) == NULL && strstr(pl_text_str(&s.out), what) == NULL)) {
        fail_msg("%s, %s in %s (%p): status %d\n%s%s", words, what, name_of(where), where, s.status, pl_text_str(&s.out),
                 pl_text_str(&s.err));
    }
    if (met && s.status != good->status && !tells_it_alone(words, &s))
        fail_msg("%s, %s in %s, and more:\n%s%s", words, what, name_of(where), pl_text_str(&s.out) + told[0],
                 pl_text_str(&s.err) + told[1]);
    if (!tells_for_what(pl_text_str(&s.err)))
        fail_msg("%s, in %s: %s", words, name_of(where), pl_text_str(&s.err));
    if (strstr(pl_text_str(&s.out), "(null)") != NULL)
        fail_msg("%s, %s in %s: %s", words, what != NULL ? what : "nothing", name_of(where), pl_text_str(&s.out));
    if (met && getenv("SHOW") != NULL)
        print_message("  %s %p: %s, status %d\n", name_of(where), where, what, s.status);
    said_free(&s);
    return met;
}

/* No compiler makes a place of none. */
static int at_most(int n) { return n > 0 ? n + PLACES_MORE : 0; }

static void command_refuse(const command *c)
{
    int n = 0, without[2] = { 0 };
    clock_t began = clock();
    said good = say(c->words);

    if (good.status > 3)
        fail_msg("%s: status %d\n%s", c->words, good.status, pl_text_str(&good.err));
    memset(seen, 0, sizeof seen);
    n_seen = 0;
    while (refuse_one(c->words, &good, without))
        n++;
    print_message("%s: %d places, %d and %d without, %.2f s\n", c->words, n, without[0], without[1],
                  (double)(clock() - began) / CLOCKS_PER_SEC);
    assert_true(n >= c->places && without[0] <= at_most(c->without) && without[1] <= at_most(c->again));
    said_free(&good);
}

#endif
