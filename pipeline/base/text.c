/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void pl_text_free(pl_text *t)
{
    free(t->s);
    *t = (pl_text){ 0 };
}

void pl_text_reset(pl_text *t)
{
    t->len = 0;
    t->refused = false;
    if (t->s != NULL)
        t->s[0] = '\0';
}

static bool grow(pl_text *t, size_t extra)
{
    size_t need = t->len + extra + 1, cap = t->cap ? t->cap : 64;
    char *s;

    if (t->refused || need < extra)
        return false;
    while (cap < need)
        cap *= 2;
    if (cap == t->cap)
        return true;
    s = realloc(t->s, cap);
    if (s == NULL) {
        t->refused = true;
        return false;
    }
    t->s = s;
    t->cap = cap;
    return true;
}

void pl_text_add_n(pl_text *t, const char *s, size_t n)
{
    if (!grow(t, n))
        return;
    memcpy(t->s + t->len, s, n);
    t->len += n;
    t->s[t->len] = '\0';
}

void pl_text_add(pl_text *t, const char *s) { pl_text_add_n(t, s, strlen(s)); }

void pl_text_addf(pl_text *t, const char *fmt, ...)
{
    va_list ap, again;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0 && grow(t, (size_t)n)) {
        (void)vsnprintf(t->s + t->len, (size_t)n + 1, fmt, again);
        t->len += (size_t)n;
    }
    va_end(again);
}

/* Length in bytes of the UTF-8 sequence that begins s[0..n-1]; 0 if these bytes are not UTF-8. */
static size_t utf8_len(const unsigned char *s, size_t n)
{
    size_t len = 0;

    if (s[0] < 0x80)
        len = 1;
    else if (s[0] >= 0xC2 && s[0] < 0xF5)
        len = 2 + (s[0] >= 0xE0) + (s[0] >= 0xF0);
    if (len == 0 || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] > 0x8F))
        return 0;
    return len;
}

/* Characters that control a terminal or reorder the text around them: C0 and C1 controls, line and paragraph
 * separators, bidirectional controls. s holds one sequence of n bytes. */
static bool is_control(const unsigned char *s, size_t n)
{
    if (n == 1)
        return *s < 0x20 || *s == 0x7F;
    if (n == 2)
        return (s[0] == 0xC2 && s[1] < 0xA0) || (s[0] == 0xD8 && s[1] == 0x9C); /* U+0080 to 9F, 061C */
    if (n == 3 && s[0] == 0xE2 && s[1] == 0x80)                                 /* U+200E, 200F, 2028 to 202E */
        return s[2] == 0x8E || s[2] == 0x8F || (s[2] >= 0xA8 && s[2] <= 0xAE);
    return n == 3 && s[0] == 0xE2 && s[1] == 0x81 && s[2] >= 0xA6 && s[2] <= 0xA9; /* U+2066 to 2069 */
}

void pl_text_add_clean(pl_text *t, const char *s, size_t n, size_t max)
{
    while (n > 0 && t->len < max && !t->refused) {
        size_t len = utf8_len((const unsigned char *)s, n);
        if (len == 0)
            pl_text_add(t, "\xEF\xBF\xBD");
        else if (is_control((const unsigned char *)s, len))
            pl_text_add(t, " ");
        else
            pl_text_add_n(t, s, len);
        s += len ? len : 1;
        n -= len ? len : 1;
    }
}

void pl_clean_line(char *s)
{
    while (*s != '\0') {
        size_t n = utf8_len((const unsigned char *)s, 4); /* no sequence goes beyond the NUL */
        if (n == 0)
            *s = '?';
        else if (is_control((const unsigned char *)s, n))
            memset(s, ' ', n);
        s += n ? n : 1;
    }
}

/* The code point of a UTF-8 sequence of 1 to 3 bytes. */
static unsigned code_point(const unsigned char *s, size_t n)
{
    if (n == 1)
        return s[0];
    if (n == 2)
        return (s[0] & 0x1FU) << 6 | (s[1] & 0x3FU);
    return (s[0] & 0x0FU) << 12 | (s[1] & 0x3FU) << 6 | (s[2] & 0x3FU);
}

void pl_text_add_json(pl_text *t, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    pl_text_add(t, "\"");
    while (*s != '\0') {
        size_t n = utf8_len(s, 4); /* no sequence goes beyond the NUL */
        if (n == 0)
            pl_text_add(t, "\\ufffd");
        else if (*s == '"' || *s == '\\')
            pl_text_addf(t, "\\%c", *s);
        else if (is_control(s, n))
            pl_text_addf(t, "\\u%04x", code_point(s, n));
        else
            pl_text_add_n(t, (const char *)s, n);
        s += n ? n : 1;
    }
    pl_text_add(t, "\"");
}

/* The writer of the JSON text has escaped the controls of C0, and line breaks are between the strings. */
void pl_text_add_json_text(pl_text *t, const char *json)
{
    const unsigned char *s = (const unsigned char *)json;

    while (*s != '\0') {
        size_t n = utf8_len(s, 4);
        if ((n > 1 || *s == 0x7F) && is_control(s, n))
            pl_text_addf(t, "\\u%04x", code_point(s, n));
        else
            pl_text_add_n(t, (const char *)s, n ? n : 1);
        s += n ? n : 1;
    }
}

void pl_text_depend(pl_text *t, const pl_text *part) { t->refused = t->refused || part->refused; }

bool pl_text_ok(const pl_text *t) { return !t->refused; }
const char *pl_text_str(const pl_text *t) { return t->s != NULL ? t->s : ""; }

char *pl_strndup(pl_arena *mem, const char *s, size_t n)
{
    char *copy = PL_NEW(mem, char, n + 1);
    if (copy != NULL)
        memcpy(copy, s, n);
    return copy;
}

char *pl_strdup(pl_arena *mem, const char *s) { return pl_strndup(mem, s, strlen(s)); }

bool pl_ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), n_end = strlen(end);

    return n >= n_end && strcmp(s + n - n_end, end) == 0;
}

char *pl_sprintf(pl_arena *mem, const char *fmt, ...)
{
    va_list ap, again;
    char *s = NULL;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n >= 0)
        s = PL_NEW(mem, char, n + 1);
    if (s != NULL)
        (void)vsnprintf(s, (size_t)n + 1, fmt, again);
    va_end(again);
    return s;
}

bool pl_parse_real(const char *s, double *out)
{
    char *end;
    double x;

    if (*s == '\0' || isspace((unsigned char)*s) || strpbrk(s, "nNxXpP") != NULL)
        return false; /* no nan, inf or hexadecimal */
    errno = 0;
    x = strtod(s, &end);
    if (*end != '\0' || !isfinite(x))
        return false;
    *out = x;
    return true;
}

bool pl_parse_int(const char *s, int64_t *out)
{
    char *end;
    long long x;

    if (*s == '\0' || isspace((unsigned char)*s))
        return false;
    errno = 0;
    x = strtoll(s, &end, 10);
    if (*end != '\0' || errno == ERANGE)
        return false;
    *out = x;
    return true;
}

typedef struct unit {
    const char *name;
    double scale;
} unit;

/* A sum of "number unit" pairs. A number without a unit is ambiguous (seconds or minutes?), so only 0 is accepted. */
static bool parse_units(const char *s, const unit *units, bool many, double *out)
{
    double sum = 0;

    if (strcmp(s, "0") == 0) {
        *out = 0;
        return true;
    }
    do {
        char *end;
        const bool hexadecimal = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
        double x = strtod(s, &end);
        size_t n = strspn(end, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        const unit *u = units;
        if ((!isdigit((unsigned char)*s) && *s != '.') || hexadecimal || end == s || !isfinite(x))
            return false; /* 1d-12h would be 12 hours */
        while (u->name != NULL && (strlen(u->name) != n || strncmp(u->name, end, n) != 0))
            u++;
        if (u->name == NULL)
            return false;
        sum += x * u->scale;
        s = end + n;
    } while (many && *s != '\0');
    *out = sum;
    return *s == '\0';
}

bool pl_parse_duration(const char *s, double *seconds)
{
    static const unit units[] = {
        { "s", 1 }, { "ms", 1e-3 }, { "m", 60 }, { "min", 60 }, { "h", 3600 }, { "d", 86400 }, { NULL, 0 }
    };
    return parse_units(s, units, true, seconds);
}

bool pl_parse_size(const char *s, double *bytes)
{
    static const unit units[] = {
        { "B", 1 },     { "kB", 1e3 },   { "KB", 1e3 },      { "MB", 1e6 },         { "GB", 1e9 },
        { "TB", 1e12 }, { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 }, { "TiB", 1099511627776.0 },
        { NULL, 0 }
    };
    return parse_units(s, units, false, bytes);
}

/* Whole numbers below 1e15 are written with all digits: 400, not 4e+02. */
static bool is_plain_whole(double x) { return fabs(x) < 1e15 && x == floor(x); }

const char *pl_real_str(double x, char buf[32])
{
    if (is_plain_whole(x)) {
        (void)snprintf(buf, 32, "%.0f", x);
        return buf;
    }
    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(buf, 32, "%.*g", digits, x);
        if (strtod(buf, NULL) == x)
            break;
    }
    return buf;
}

const char *pl_digits_str(double x, int digits, char buf[32])
{
    if (fabs(x) >= pow(10, digits) && fabs(x) < 1e15)
        (void)snprintf(buf, 32, "%.0f", x);
    else if (x == 0 || fabs(x) < 1e-4 || !(fabs(x) < 1e15))
        (void)snprintf(buf, 32, "%.*g", digits, x);
    else
        (void)snprintf(buf, 32, "%#.*g", digits, x);
    if (buf[strlen(buf) - 1] == '.')
        buf[strlen(buf) - 1] = '\0';
    return buf;
}

const char *pl_float_str(float x, char buf[32])
{
    if (is_plain_whole((double)x)) {
        (void)snprintf(buf, 32, "%.0f", (double)x);
        return buf;
    }
    for (int digits = 1; digits <= 9; digits++) {
        (void)snprintf(buf, 32, "%.*g", digits, (double)x);
        if (strtof(buf, NULL) == x)
            break;
    }
    return buf;
}

const char *pl_size_str(double bytes, char buf[32])
{
    static const char *const names[] = { "B", "kB", "MB", "GB", "TB", "PB" };
    int i = 0;

    while (bytes >= 999.5 && i < 5) {
        bytes /= 1000;
        i++;
    }
    (void)snprintf(buf, 32, i > 0 && bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, names[i]);
    return buf;
}

const char *pl_duration_str(double seconds, char buf[32])
{
    int64_t s = (int64_t)(seconds + 0.5);

    if (seconds < 10)
        (void)snprintf(buf, 32, "%.1fs", seconds);
    else if (s < 60)
        (void)snprintf(buf, 32, "%ds", (int)s);
    else if (s < 3600)
        (void)snprintf(buf, 32, "%dm%02ds", (int)(s / 60), (int)(s % 60));
    else if (s < 86400)
        (void)snprintf(buf, 32, "%dh%02dm", (int)(s / 3600), (int)(s / 60 % 60));
    else
        (void)snprintf(buf, 32, "%lldd%02dh", (long long)(s / 86400), (int)(s / 3600 % 24));
    return buf;
}

const char *pl_count_str(int64_t n, char buf[32])
{
    char plain[24];
    int len = snprintf(plain, sizeof plain, "%lld", (long long)n), out = 0;

    for (int i = 0; i < len; i++) {
        if (i > 0 && plain[i - 1] != '-' && (len - i) % 3 == 0)
            buf[out++] = ',';
        buf[out++] = plain[i];
    }
    buf[out] = '\0';
    return buf;
}

const char *pl_plural(int64_t n, const char *one, const char *several) { return n == 1 ? one : several; }

static int min(int a, int b) { return a < b ? a : b; }

static bool is_same_letter(char a, char b) { return tolower((unsigned char)a) == tolower((unsigned char)b); }

/* Two letters of a that are those of b in the other order. */
static bool is_swapped(const char *a, const char *b, int i, int j)
{
    return i > 1 && j > 1 && is_same_letter(a[i - 1], b[j - 2]) && is_same_letter(a[i - 2], b[j - 1]);
}

/* Letters to insert, delete, replace or swap with their neighbour (optimal string alignment), without regard to case, of the first 63
 * bytes of each word. */
static int distance(const char *a, const char *b)
{
    int rows[3][64], n = (int)strnlen(b, 63), i = 0;

    for (int j = 0; j <= n; j++)
        rows[0][j] = j;
    for (i = 1; a[i - 1] != '\0' && i < 64; i++) {
        int *row = rows[i % 3];
        const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            row[j] = min(last[j - 1] + !is_same_letter(a[i - 1], b[j - 1]), min(last[j], row[j - 1]) + 1);
            if (is_swapped(a, b, i, j))
                row[j] = min(row[j], before[j - 2] + 1);
        }
    }
    return rows[(i - 1) % 3][n];
}

const char *pl_nearest(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    int limit = (int)strnlen(word, 63) / 2;

    for (int i = 0; i < n; i++) {
        int d = distance(word, names[i]);
        if (d <= limit && d <= 3) {
            best = names[i];
            limit = d - 1;
        }
    }
    return best;
}
