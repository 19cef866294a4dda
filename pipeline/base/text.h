/* pipeline/base/text.h - a growable string, and numbers that read and write the
 * same in every locale.
 *
 * A pl_text starts zeroed and is freed with pl_text_free. When memory is
 * refused it stays as it was and remembers it: check pl_text_ok once, at the
 * end, instead of after every call. */
#ifndef PL_BASE_TEXT_H
#define PL_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/base/arena.h"
#include "pipeline/base/error.h"

typedef struct pl_text {
    char *s;     /* NUL-terminated; NULL until something is added */
    size_t len, cap;
    bool refused;
} pl_text;

void pl_text_free(pl_text *t);
void pl_text_reset(pl_text *t); /* empty, memory kept */
void pl_text_add(pl_text *t, const char *s);
void pl_text_add_n(pl_text *t, const char *s, size_t n);
void pl_text_addf(pl_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The text as a JSON string, quotes included; bytes that are not UTF-8 become U+FFFD, control characters (as below) are escaped. */
void pl_text_add_json(pl_text *t, const char *s);
/* A whole JSON text, in which control characters (as below) stand for themselves only within strings: those are escaped. */
void pl_text_add_json_text(pl_text *t, const char *json);
/* n bytes as UTF-8 on one line: control characters (C0, C1, bidirectional) become blanks, other bytes that are not UTF-8 U+FFFD.
 * Stops when the text has `most` bytes, with a whole character. */
void pl_text_add_clean(pl_text *t, const char *s, size_t n, size_t most);
/* The same in place, for a message to a terminal: each byte of a control character becomes a blank, one that is not UTF-8 a '?'. */
void pl_clean_line(char *s);
bool pl_text_ok(const pl_text *t);
const char *pl_text_str(const pl_text *t); /* never NULL */

/* A copy in the arena; NULL when refused. */
char *pl_strdup(pl_arena *mem, const char *s);
char *pl_strndup(pl_arena *mem, const char *s, size_t n);
char *pl_sprintf(pl_arena *mem, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The whole of `s` must be the number. Accepts "1e-3", "inf" and "nan" are refused. */
bool pl_parse_real(const char *s, double *out);
bool pl_parse_int(const char *s, int64_t *out);
bool pl_parse_duration(const char *s, double *seconds); /* "2s", "10m", "3h50m", "1d", "0"; no other bare number */
bool pl_parse_size(const char *s, double *bytes);       /* "64MiB", "2GB", "0"; no other bare number */

/* The shortest decimal that reads back as the same double (or float). buf holds 32. */
const char *pl_real_str(double x, char buf[32]);
const char *pl_float_str(float x, char buf[32]);

/* For people: "1.2 GB", "3h12m", "12,345,678". buf holds 32. */
const char *pl_size_str(double bytes, char buf[32]);
const char *pl_duration_str(double seconds, char buf[32]);
const char *pl_count_str(int64_t n, char buf[32]);

/* The entry of names[0..n-1] that is closest to `word`, or NULL if none is close. */
const char *pl_nearest(const char *word, const char *const *names, int n);

#endif
