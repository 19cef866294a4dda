/* SPDX-License-Identifier: Apache-2.0 */
/* SDF and molfiles: from line to $$$$. */
#include <string.h>

#include "chem/records/record_parts.h"

/* Where the molecule of a record ends according to its lines (CTfile formats, BIOVIA 2020: the counts line, V2000). */
typedef struct sdf_watch {
    long line, block_end; /* in the record, from 1; block_end: line of the last announced atom or bond, 0: unknown */
    int n_ends;           /* lines M  END before its data */
    bool foreign, data;   /* a reaction or another kind of file; "> <NAME>" has come */
    bool wanted;          /* the next line is the title */
} sdf_watch;

/* The value of "> <NAME>" wanted as a title is the line after it. */
static void sdf_watch_title(ch_reader *r, const ch_line *line, sdf_watch *w)
{
    const size_t n = r->title_from != NULL ? strlen(r->title_from) : 0;
    const char *name;

    if (w->wanted) {
        ch_reader_set_title(r, line->s, line->len);
        w->wanted = false;
    }
    if (n == 0 || line->len < n + 3 || line->s[0] != '>')
        return;
    name = memchr(line->s, '<', line->len);
    w->wanted = name != NULL && (size_t)(line->s + line->len - name) > n + 1 && name[n + 1] == '>' &&
                memcmp(name + 1, r->title_from, n) == 0;
}

/* A number in three columns of a counts line; blank is 0; -1: not a number. */
static long count_at(const ch_line *line, size_t column)
{
    long n = 0;

    for (size_t i = column; i < column + 3 && i < line->len; i++) {
        if (line->s[i] >= '0' && line->s[i] <= '9')
            n = 10 * n + (line->s[i] - '0');
        else if (line->s[i] != ' ' || n > 0)
            return -1;
    }
    return n;
}

/* The fourth line, if it is not of V3000. The obsolete atom lists and texts would follow the bonds. */
static void watch_counts(sdf_watch *w, const ch_line *line)
{
    const long atoms = count_at(line, 0), bonds = count_at(line, 3);

    if (memmem(line->s, line->len, "V3000", 5) == NULL && atoms >= 0 && bonds >= 0 && count_at(line, 6) == 0 &&
        count_at(line, 15) == 0)
        w->block_end = w->line + atoms + bonds;
}

/* An atom or a bond begins with three numbers; no other line that can follow them does. */
static bool is_atom_or_bond(const ch_line *line)
{
    const char *at = line->s, *end = line->s + line->len;
    double x;
    int n = 0;

    for (size_t len; n < 3; n++) {
        const char *word = ch_word(&at, end, &len);
        if (word == NULL || !ch_word_real(word, len, &x))
            break;
    }
    return n == 3;
}

static void watch(ch_reader *r, sdf_watch *w, const ch_line *line)
{
    w->line++;
    w->foreign = w->foreign || (w->line == 1 && ch_line_starts(line, "$"));
    w->data = w->data || ch_line_starts(line, ">");
    if (w->line == 4)
        watch_counts(w, line);
    w->n_ends += !w->data && ch_line_starts(line, "M  END");
    if (!w->foreign && w->block_end > 0 && w->line == w->block_end + 1 && is_atom_or_bond(line))
        ch_reader_set_problem(r, "sdf: line %lld is one atom or bond more than the fourth line of the record announces",
                              (long long)line->number);
    sdf_watch_title(r, line, w);
}

/* Molfiles concatenated without $$$$: a reader would return the first one and lose the others. */
static void check_ends(ch_reader *r, const sdf_watch *w)
{
    if (w->n_ends > 1 && !w->foreign)
        ch_reader_set_problem(r, "sdf: %d molecules in one record; a line $$$$ has to stand between them", w->n_ends);
}

pl_code ch_next_sdf(ch_reader *r, bool *more, pl_error *err)
{
    sdf_watch w = { 0 };
    bool blank = true;
    ch_line line;

    for (;;) {
        pl_code code = ch_source_line(r->src, &line, more, err);
        if (code != PL_OK)
            return code;
        if (!*more)
            break;
        blank = blank && ch_line_blank(line.s, line.len);
        if (!r->begun && r->title_from == NULL)
            ch_reader_set_title(r, line.s, line.len);
        ch_reader_add(r, &line);
        watch(r, &w, &line);
        if (ch_line_starts(&line, "$$$$"))
            break;
    }
    check_ends(r, &w);
    *more = *more || !blank; /* blank lines after the last $$$$ are not a record */
    return PL_OK;
}
