/* SPDX-License-Identifier: Apache-2.0 */
/* Formats whose records are separated by single lines. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "chem/records/cxsmiles.h"
#include "chem/records/record_parts.h"
#include "chem/worker/worker_client.h"

bool ch_line_blank(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isspace((unsigned char)s[i]))
            return false;
    return true;
}

bool ch_line_starts(const ch_line *line, const char *prefix)
{
    const size_t n = strlen(prefix);
    return line->len >= n && memcmp(line->s, prefix, n) == 0;
}

const char *ch_word(const char **at, const char *end, size_t *n)
{
    const char *from = *at;

    while (from < end && isspace((unsigned char)*from))
        from++;
    *at = from;
    while (*at < end && !isspace((unsigned char)**at))
        (*at)++;
    *n = (size_t)(*at - from);
    return *n > 0 ? from : NULL;
}

/* InChI files have other lines between (AuxInfo, structure numbers). */
static bool is_line_record(const ch_reader *r, const ch_line *line)
{
    if (ch_line_blank(line->s, line->len) || line->s[0] == '#')
        return false;
    return strcmp(r->format->name, "inchi") != 0 || ch_line_starts(line, "InChI=");
}

/* SMILES and InChI: one record per line, its first word and a title. */
pl_code ch_next_line_record(ch_reader *r, bool *more, pl_error *err)
{
    ch_line line;
    const char *at, *word, *problem;
    size_t n;

    for (;;) {
        pl_code code = ch_source_line(r->src, &line, more, err);
        if (code != PL_OK || !*more)
            return code;
        if (is_line_record(r, &line))
            break;
    }
    ch_reader_begin(r, &line);
    at = line.s;
    word = ch_word(&at, line.s + line.len, &n);
    problem = word != NULL ? ch_cx_problem(word, n, at, (size_t)(line.s + line.len - at)) : NULL;
    if (problem != NULL)
        ch_reader_set_problem(r, "%s", problem);
    at += ch_cx_length(at, (size_t)(line.s + line.len - at));
    ch_reader_set_title(r, at, (size_t)(line.s + line.len - at));
    line.whole -= (size_t)(word - line.s);
    line.len -= (size_t)(word - line.s);
    line.s = word;
    ch_reader_add(r, &line);
    return PL_OK;
}

/* Whether a line begins a record of mol2, or of cif (any letter case). */
static bool is_header(const ch_reader *r, const ch_line *line)
{
    return r->format->header[0] == '@' ? ch_line_starts(line, r->format->header)
                                       : line->len > 5 && strncasecmp(line->s, r->format->header, 5) == 0;
}

/* For a mol2 record: the numbers of atoms and bonds announced in its third line, and those found; -1: not announced. */
typedef struct mol2_watch {
    long line, said[2], seen[2];
    int section; /* 0: atoms, 1: bonds, -1: another */
} mol2_watch;

static int section_of(const ch_line *line)
{
    if (ch_line_starts(line, "@<TRIPOS>ATOM"))
        return 0;
    return ch_line_starts(line, "@<TRIPOS>BOND") ? 1 : -1;
}

static void watch_mol2(mol2_watch *w, const ch_line *line)
{
    const char *at = line->s, *end = line->s + line->len, *word;
    size_t n;

    w->line++;
    for (int k = 0; w->line == 3 && k < 2; k++)
        if ((word = ch_word(&at, end, &n)) == NULL || !ch_line_is_count(word, n, &w->said[k]))
            break;
    if (line->len > 0 && end[-1] == '\\') /* continues on the next line */
        w->said[0] = w->said[1] = -1;
    if (ch_line_starts(line, "@<TRIPOS>"))
        w->section = section_of(line);
    else if (w->section >= 0 && !ch_line_blank(line->s, line->len) && line->s[0] != '#')
        w->seen[w->section]++;
}

/* Open Babel reads only as many as are announced. */
static void check_mol2(ch_reader *r, const mol2_watch *w)
{
    for (int k = 0; k < 2; k++)
        if (w->said[k] >= 0 && w->seen[k] > w->said[k])
            ch_reader_set_problem(r, "mol2: %ld %s, and the record announces %ld", w->seen[k], k ? "bonds" : "atoms", w->said[k]);
}

/* A text without closing ; would include all records after it. So a record whose text is not closed by the end of the file, or
 * by the size limit, ends before the first header inside the text, and reading continues there. */
static pl_code end_text(ch_reader *r, const ch_line *swallowed, bool *more, pl_error *err)
{
    *more = true;
    ch_reader_set_problem(r, "cif: a text that is not closed, before line %lld", (long long)swallowed->number);
    return ch_source_seek(r->src, swallowed->offset, swallowed->number, err);
}

/* From a header line to the next. Open Babel's own cif reader skips every second molecule. */
pl_code ch_next_headed(ch_reader *r, bool *more, pl_error *err)
{
    const bool is_cif = r->format->header[0] != '@';
    bool inside = false, something = false, titled = false, in_text = false;
    mol2_watch w = { .said = { -1, -1 }, .section = -1 };
    ch_line line, swallowed = { .number = 0 }; /* the first header in a text of the record */

    for (;;) {
        pl_code code = ch_source_line(r->src, &line, more, err);
        if (code != PL_OK)
            return code;
        if (in_text && swallowed.number > 0 && (!*more || r->dropped > 0))
            return end_text(r, &swallowed, more, err);
        if (!*more)
            break;
        in_text = in_text != (is_cif && line.len > 0 && line.s[0] == ';'); /* cif: text between two lines with ; */
        if (!in_text && is_header(r, &line)) {
            if (inside) {
                ch_source_unread(r->src);
                break;
            }
            inside = true;
            if (is_cif)
                ch_reader_set_title(r, line.s + 5, line.len - 5);
        } else if (inside && !titled && !is_cif) {
            ch_reader_set_title(r, line.s, line.len);
            titled = true;
        }
        if (in_text && inside && swallowed.number == 0 && is_header(r, &line))
            swallowed = line;
        something = something || (!ch_line_blank(line.s, line.len) && line.s[0] != '#');
        if (inside && !is_cif)
            watch_mol2(&w, &line);
        if (inside)
            ch_reader_add(r, &line);
        else if (something && !r->begun)
            ch_reader_begin(r, &line);
    }
    check_mol2(r, &w);
    if (!inside && something && r->ordinal == 0)
        ch_reader_set_problem(r, "no %s in the file", r->format->header);
    *more = inside || (something && r->ordinal == 0);
    return PL_OK;
}

static bool is_pdb_atom(const ch_line *line) { return ch_line_starts(line, "ATOM  ") || ch_line_starts(line, "HETATM"); }

/* Lines that precede the atoms of an entry: after atoms they begin the next entry, in files concatenated without END. */
static bool is_pdb_head(const ch_line *line)
{
    return ch_line_starts(line, "HEADER") || ch_line_starts(line, "TITLE ") || ch_line_starts(line, "COMPND");
}

/* "END" but not ENDMDL */
static bool is_pdb_end(const ch_line *line) { return ch_line_starts(line, "END") && ch_line_blank(line->s + 3, line->len - 3); }

static void pdb_watch_title(ch_reader *r, const ch_line *line)
{
    if (r->title.len == 0 && line->len > 10 && (ch_line_starts(line, "COMPND") || ch_line_starts(line, "TITLE")))
        ch_reader_set_title(r, line->s + 10, line->len - 10);
}

/* Drops the lines before the first model. */
static void pdb_restart(ch_reader *r)
{
    pl_text_reset(&r->text);
    r->dropped = 0;
    r->begun = false;
    r->has_models = true;
}

pl_code ch_next_pdb(ch_reader *r, bool *more, pl_error *err)
{
    bool atoms = false, something = false, inside = false;
    ch_line line;

    for (;;) {
        pl_code code = ch_source_line(r->src, &line, more, err);
        if (code != PL_OK)
            return code;
        if (!*more)
            break;
        if (ch_line_starts(&line, "MODEL ") && !atoms) {
            pdb_restart(r);
            inside = true;
        }
        if (atoms && !inside && is_pdb_head(&line)) {
            ch_source_unread(r->src);
            return PL_OK;
        }
        something = something || !ch_line_blank(line.s, line.len);
        atoms = atoms || is_pdb_atom(&line);
        pdb_watch_title(r, &line);
        if (inside || !r->has_models)
            ch_reader_add(r, &line);
        if ((inside && ch_line_starts(&line, "ENDMDL")) || (!inside && atoms && is_pdb_end(&line)))
            return PL_OK;
    }
    if (!atoms && something && r->ordinal == 0)
        ch_reader_set_problem(r, "no ATOM or HETATM line in the file");
    *more = inside || (atoms && !r->has_models) || (something && r->ordinal == 0);
    return PL_OK;
}

/* ---- whole files, listed by the worker ---------------------------------- */

/* Reads the whole file, up to the limit for whole files. */
static pl_code read_whole(ch_reader *r, pl_text *all, pl_error *err)
{
    bool more = true;
    ch_line line;

    while (more) {
        pl_code code = ch_source_line(r->src, &line, &more, err);
        if (code != PL_OK || !more)
            return code;
        pl_text_add_n(all, line.s, line.len);
        pl_text_add_n(all, "\n", 1);
        if (!pl_text_ok(all))
            return pl_fail(err, PL_ENOMEM, "%s: %zu bytes", r->path, all->len);
        if (all->len > r->file_limit || line.whole > line.len)
            return pl_fail(err, PL_EINPUT,
                           "record too long: a file of more than %zu bytes in a format that "
                           "cannot be read in parts",
                           r->file_limit);
    }
    return PL_OK;
}

static pl_code ask_worker(ch_reader *r, pl_text *all, pl_error *err)
{
    ch_listing found;
    pl_code code;

    if (r->lister == NULL)
        return pl_fail(err, PL_EINPUT, "format: only the chemistry worker reads \"%s\"", r->name);
    code = read_whole(r, all, err);
    if (code == PL_OK)
        code = ch_worker_list(r->lister, pl_text_str(all), all->len, r->name, &found, r->listed_mem, err);
    if (code != PL_OK)
        return code;
    r->n_listed = found.n;
    r->listed = found.text;
    r->listed_problem = found.problem;
    r->listed_len = found.len;
    r->listed_short = found.message;
    return PL_OK;
}

/* Lists the file, once. A file that cannot be listed becomes one failed record, so that no input is lost silently. */
static pl_code list_file(ch_reader *r, pl_error *err)
{
    pl_error why = { 0 };
    pl_text all = { 0 };
    const char *data;
    size_t n;
    pl_code code = ch_source_peek(r->src, &data, &n, err);

    if (code != PL_OK)
        return code;
    r->n_listed = 0;
    if (n == 0)
        return PL_OK; /* an empty file has no record */
    r->listed_mem = pl_arena_new(1 << 16);
    if (r->listed_mem == NULL)
        return pl_fail(err, PL_ENOMEM, "%s", r->path);
    code = ask_worker(r, &all, &why);
    pl_text_free(&all);
    if (code == PL_EINPUT) {
        ch_reader_set_problem(r, "%s", why.text);
        return PL_OK;
    }
    return code == PL_OK ? PL_OK : pl_fail(err, code, "%s", why.text);
}

pl_code ch_next_listed(ch_reader *r, bool *more, pl_error *err)
{
    const bool first = r->n_listed < 0;

    *more = false;
    if (first) {
        pl_code code = list_file(r, err);
        if (code != PL_OK)
            return code;
        *more = r->problem.len > 0;
    }
    r->line = 1;
    r->offset = 0;
    if (r->next_listed < r->n_listed) {
        const int64_t i = r->next_listed++;
        const char *text = r->listed[i];

        ch_reader_set_title(r, text, strcspn(text, "\n"));
        pl_text_add_n(&r->text, text, r->listed_len[i]);
        if (r->text.len > r->limit)
            ch_reader_set_problem(r, "record too long: %zu bytes, %zu allowed", r->text.len, r->limit);
        if (r->listed_problem[i][0] != '\0')
            ch_reader_set_problem(r, "%s", r->listed_problem[i]);
        *more = true;
    } else if (r->next_listed == r->n_listed && r->n_listed > 0 && r->listed_short[0] != '\0') {
        r->next_listed++; /* the part that could not be listed is a record, too */
        ch_reader_set_problem(r, "%s", r->listed_short);
        *more = true;
    }
    return PL_OK;
}
