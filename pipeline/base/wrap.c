/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/wrap.h"

#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int pl_columns(FILE *to)
{
    struct winsize w = { 0 };

    if (isatty(fileno(to)) == 0)
        return 0;
    return ioctl(fileno(to), TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : PL_COLUMNS;
}

/* Bytes of the character at s: of a sequence ESC [ ... m, which has no width; or 1, of UTF-8 only the first has a width. */
static size_t step_of(const char *s, size_t n, int *width)
{
    size_t k = 2;

    *width = ((unsigned char)s[0] & 0xC0) != 0x80;
    if (n < 3 || s[0] != '\033' || s[1] != '[')
        return 1;
    while (k + 1 < n && s[k] != 'm')
        k++;
    *width = 0;
    return k + 1;
}

/* Columns of s[0..n-1]. */
static int width_of(const char *s, size_t n)
{
    int width = 0, one;

    for (size_t i = 0; i < n; i += step_of(s + i, n - i, &one), width += one)
        ;
    return width;
}

/* The column to which the rest of the line is indented, so that the next word, of `need` columns, fits there. */
static int rest_column(const char *line, size_t n, int columns, int need)
{
    size_t first = strspn(line, " ");
    int at = first > 0 && (int)first < columns ? (int)first : 2;

    for (size_t i = first; i + 2 < n; i++) {
        int gap = line[i] == ' ' && line[i + 1] == ' ' && line[i + 2] != ' ' ? width_of(line, i + 2) : columns;
        if (gap <= columns * 4 / 5 && gap + need <= columns)
            at = gap;
    }
    return at;
}

/* The bytes of s[0..n-1] that go into `room` columns: up to the last blank that fits, or the first word. A blank between
 * two backticks counts only if `split`. */
static size_t fitting(const char *s, size_t n, int room, bool split)
{
    size_t end = 0;
    int width = 0, one;
    bool quoted = false, text = false;

    for (size_t i = 0; i < n; i += step_of(s + i, n - i, &one), width += one) {
        if (width > room && end > 0)
            return end;
        if (s[i] == ' ' && text && s[i - 1] != ' ' && s[i + 1] != '%' && (split || !quoted) && (width <= room || end == 0))
            end = i;
        quoted = quoted != (s[i] == '`');
        text = text || s[i] != ' ';
    }
    return width <= room || end == 0 ? n : end;
}

static void wrap_line(pl_text *out, const char *line, size_t n, int columns)
{
    const char *at = line, *end = line + n;
    int room = columns;

    while (width_of(at, (size_t)(end - at)) > room) {
        size_t k = fitting(at, (size_t)(end - at), room, false);
        size_t word;
        int rest;
        if (width_of(at, k) > room)
            k = fitting(at, (size_t)(end - at), room, true);
        if (at + k == end)
            break;
        pl_text_add_n(out, at, k);
        at += k;
        while (at < end && *at == ' ')
            at++;
        if (at == end)
            break;
        word = strcspn(at, " \n");
        rest = rest_column(line, (size_t)(at - line), columns, width_of(at, word));
        room = columns - rest;
        pl_text_addf(out, "\n%*s", rest, "");
    }
    pl_text_add_n(out, at, (size_t)(end - at));
}

void pl_text_wrap(pl_text *out, const char *text, int columns)
{
    while (*text != '\0') {
        size_t n = strcspn(text, "\n");
        wrap_line(out, text, n, columns);
        text += n;
        if (*text == '\n') {
            pl_text_add(out, "\n");
            text++;
        }
    }
}
