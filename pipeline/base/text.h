/* pipeline/base/text.h - a growable string; numbers to and from text, the same
 * in every locale.
 *
 * A pl_text starts zeroed and is freed with pl_text_free. When memory is refused,
 * the text stays as it was and ignores what is added later: check pl_text_ok once,
 * at the end, instead of after every call. */
#ifndef PL_BASE_TEXT_H
#define PL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"

typedef struct pl_text {
    char *s; /* NUL-terminated; NULL until something is added */
    size_t len, cap;
    bool refused;
} pl_text;

void pl_text_free(pl_text *t);
void pl_text_reset(pl_text *t); /* empty, memory kept */
void pl_text_add(pl_text *t, const char *s);
void pl_text_add_n(pl_text *t, const char *s, size_t n);
void pl_text_addf(pl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds s as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD, control characters (as below) are escaped. */
void pl_text_add_json(pl_text *t, const char *s);
/* Adds a whole JSON text. Control characters (as below) stand for themselves only within strings; those are escaped. */
void pl_text_add_json_text(pl_text *t, const char *json);
/* Adds n bytes as one line of UTF-8: a control character (C0, C1, bidirectional) becomes a blank, a byte that is not UTF-8
 * becomes U+FFFD. Stops after the character with which the text has `max` bytes or more. */
void pl_text_add_clean(pl_text *t, const char *s, size_t n, size_t max);
/* The same in place, for a message to a terminal: each byte of a control character becomes a blank, a byte that is not UTF-8 '?'. */
void pl_clean_line(char *s);
void pl_text_depend(pl_text *t, const pl_text *part); /* t is incomplete if part is */
bool pl_text_ok(const pl_text *t);                    /* false: memory was refused, the text is incomplete */
const char *pl_text_str(const pl_text *t);            /* never NULL; valid until the text changes */

/* A copy in the arena; NULL when memory is refused. */
char *pl_strdup(pl_arena *mem, const char *s);
char *pl_strndup(pl_arena *mem, const char *s, size_t n);
char *pl_sprintf(pl_arena *mem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

bool pl_ends_with(const char *s, const char *end);

/* The whole of `s` must be the number. "1e-3" is accepted; "inf", "nan" and hexadecimal are not. */
bool pl_parse_real(const char *s, double *out);
bool pl_parse_int(const char *s, int64_t *out);
bool pl_parse_duration(const char *s, double *seconds); /* "2s", "10m", "3h50m", "1d"; without a unit only "0" */
bool pl_parse_size(const char *s, double *bytes);       /* "64MiB", "2GB"; without a unit only "0" */

/* The shortest decimal that reads back as the same double (or float). buf holds 32. */
const char *pl_real_str(double x, char buf[32]);
const char *pl_float_str(float x, char buf[32]);

/* For people, with that many significant digits (1 to 15): "-1.90", "0.0300", "216"; whole above these digits, "12345". buf holds 32. */
const char *pl_digits_str(double x, int digits, char buf[32]);

/* For people: "1.2 GB", "3h12m", "12,345,678". buf holds 32. */
const char *pl_size_str(double bytes, char buf[32]);
const char *pl_duration_str(double seconds, char buf[32]);
const char *pl_count_str(int64_t n, char buf[32]);
/* The word that agrees with n: "molecule is", "molecules are". */
const char *pl_plural(int64_t n, const char *one, const char *several);

/* The entry of names[0..n-1] closest to `word`: at most 3 edits, and at most half the length of the word; or NULL. */
const char *pl_nearest(const char *word, const char *const *names, int n);

#endif
