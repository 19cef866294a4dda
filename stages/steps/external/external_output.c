/* SPDX-License-Identifier: Apache-2.0 */
/* What the program wrote is read as a stranger's: any bytes, any sizes within limits.output, any numbers. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "stages/steps/external/external_parts.h"

enum { COLUMNS_MAX = 4096, WORD_MAX = 60, NUMBER_MAX = 400 }; /* the last: bytes, as of 1e-320 without an exponent */

typedef struct reading {
    st_ext_item *item; /* [n] by growing id */
    int32_t n;
    bool *found; /* [n] a number */
    int32_t better;
    bool alone;       /* one molecule: everything is its */
    bool poses;       /* are wanted                      */
    bool others;      /* a value is of no molecule of the batch: perhaps the ids are row numbers */
    const char *name; /* of the column, field or key     */
    const st_ext_given *given;
    st_ext_atoms atoms; /* of the pose that is being read */
    double value;       /* of its record; NaN: none yet     */
} reading;

const char *st_ext_value_name(const st_external_conf *c)
{
    if (c->value != NULL && c->value[0] != '\0')
        return c->value;
    return c->output == ST_OUT_PDBQT ? "VINA RESULT" : c->property;
}

/* ---- one value ---- */

static st_ext_item *item_of(reading *r, const char *id, int32_t *at)
{
    int32_t low = 0, high = r->n - 1;
    int64_t number;

    *at = 0;
    if (r->alone)
        return r->item;
    r->others = r->others || id == NULL || !pl_parse_int(id, &number);
    if (r->others)
        return NULL;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (r->item[middle].id < number)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    r->others = r->item[low].id != number;
    return r->others ? NULL : &r->item[low];
}

/* A value that is no number: the molecule fails, whatever its other values are. */
static void set_bad(st_ext_item *m, const char *text)
{
    pl_text clean = { 0 };

    pl_text_add_clean(&clean, text, strlen(text), WORD_MAX);
    m->code = "not_a_number";
    (void)snprintf(m->message, sizeof m->message, "the value is '%s'; a finite number is expected", pl_text_str(&clean));
    pl_text_free(&clean);
}

static bool is_better(const reading *r, double now, double before)
{
    if (r->better == ST_BETTER_NONE)
        return false;
    return r->better == ST_BETTER_LOW ? now < before : now > before;
}

static void take_number(reading *r, const char *id, double value)
{
    int32_t at;
    st_ext_item *m = item_of(r, id, &at);
    char text[64];

    if (m == NULL)
        return;
    (void)snprintf(text, sizeof text, "%g", value);
    if (!isfinite(value))
        set_bad(m, text);
    else if (!r->found[at] || is_better(r, value, m->value))
        m->value = value;
    if (isfinite(value) && (isnan(r->value) || is_better(r, value, r->value)))
        r->value = value;
    r->found[at] = true;
}

/* text ends with NUL; blanks around the number are fine. */
static void take_text(reading *r, const char *id, char *text)
{
    size_t n;
    double value;
    int32_t at;
    st_ext_item *m = item_of(r, id, &at);

    text += strspn(text, " \t\r\n");
    for (n = strlen(text); n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL; n--)
        text[n - 1] = '\0';
    if (pl_parse_real(text, &value))
        take_number(r, id, value);
    else if (m != NULL)
        set_bad(m, text);
}

/* ---- csv ---- */

/* The next field of a row, unquoted in place; *at is then behind its delimiter. *last: the row ends with it. *loose: a quote is not
 * closed, or has text behind it. */
static char *csv_field(char **at, char delimiter, bool *last, bool *loose)
{
    char *s = *at, *out = s, *field = s;
    bool quoted = *s == '"', closed = false;

    s += quoted;
    while (*s != '\0' && (quoted || (*s != delimiter && *s != '\n'))) {
        if (*s == '"' && quoted && s[1] != '"') {
            quoted = false;
            closed = true;
            s++;
            continue;
        }
        *loose = *loose || (closed && strchr(" \t\r", *s) == NULL);
        s += *s == '"' && quoted;
        *out++ = *s++;
    }
    *loose = *loose || quoted;
    *last = *s != delimiter;
    *at = *s != '\0' ? s + 1 : s;
    *out = '\0';
    return field;
}

/* The first of these that is in the first row, outside of quotes. */
static char delimiter_of(const char *text)
{
    for (const char *sign = ",;"; *sign != '\0'; sign++) {
        bool quoted = false;
        for (const char *s = text; *s != '\0' && (quoted || *s != '\n'); s++) {
            quoted = quoted != (*s == '"');
            if (*s == *sign && !quoted)
                return *sign;
        }
    }
    return '\t';
}

static char *trimmed(char *s)
{
    size_t n;

    s += strspn(s, " \t\r");
    for (n = strlen(s); n > 0 && strchr(" \t\r", s[n - 1]) != NULL; n--)
        s[n - 1] = '\0';
    return s;
}

/* The columns of a table. */
typedef struct columns {
    char delimiter;
    int n, id_at, value_at; /* -1: there is none         */
    bool twice;             /* one of these is there twice */
    bool wide, loose;       /* a row has more values than there are columns; bad quotes */
} columns;

/* Reads the first row. */
static columns csv_columns(const reading *r, char **text)
{
    columns c = { .delimiter = delimiter_of(*text), .id_at = -1, .value_at = -1 };
    bool last = **text == '\0';

    for (; !last && c.n < COLUMNS_MAX; c.n++) {
        const char *name = trimmed(csv_field(text, c.delimiter, &last, &c.loose));
        int *at = strcmp(name, r->name) == 0 ? &c.value_at : NULL;
        at = at == NULL && strcmp(name, "id") == 0 ? &c.id_at : at;
        c.twice = c.twice || (at != NULL && *at >= 0);
        if (at != NULL)
            *at = c.n;
    }
    return c;
}

/* One row; id and value: NULL where it has none. False at the end of the text. */
static bool csv_row(char **at, columns *c, char **id, char **value)
{
    bool last = **at == '\0';

    *id = *value = NULL;
    if (last)
        return false;
    for (int k = 0; !last; k++) {
        char *field = trimmed(csv_field(at, c->delimiter, &last, &c->loose));
        *id = k == c->id_at ? field : *id;
        *value = k == c->value_at ? field : *value;
        c->wide = c->wide || (k >= c->n && field[0] != '\0');
    }
    return true;
}

static const char *read_csv(reading *r, char *text)
{
    columns c = csv_columns(r, &text);
    char *id, *value;

    if (c.value_at < 0)
        return "the table has no such column";
    if (c.id_at < 0 && !r->alone)
        return "the table has no column id, which a batch needs";
    if (c.twice)
        return "the table has two columns of this name, or two called id";
    while (csv_row(&text, &c, &id, &value))
        if (value != NULL && value[0] != '\0')
            take_text(r, id, value);
    if (c.loose)
        return "a quote is not closed, or has text behind it";
    return c.wide ? "a row has more values than the first row has names; put texts with the delimiter in quotes" : NULL;
}

/* A part of a text. Without its end a number would be another one, so a long one is none. */
static void take_part(reading *r, const char *id, const char *s, size_t n)
{
    char text[NUMBER_MAX + 1];

    if (n > NUMBER_MAX)
        (void)snprintf(text, sizeof text, "%.20s... (%zu characters)", s, n);
    else
        (void)snprintf(text, sizeof text, "%.*s", (int)n, s);
    take_text(r, id, text);
}

/* ---- json ---- */

static void take_json(reading *r, const char *id, const json_t *v)
{
    if (json_is_number(v)) {
        take_number(r, id, json_number_value(v));
        return;
    }
    if (json_is_null(v))
        return;
    const char *text = json_is_string(v) ? json_string_value(v) : "no number";
    take_part(r, id, text, strlen(text));
}

/* "a.b.c": the value below an object; the whole name first, which may have points. */
static const json_t *below(const json_t *object, const char *name)
{
    const json_t *v = json_object_get(object, name);
    char part[256];

    while (v == NULL && object != NULL && strchr(name, '.') != NULL) {
        size_t n = strcspn(name, ".");
        (void)snprintf(part, sizeof part, "%.*s", (int)n, name);
        object = json_object_get(object, part);
        name += n + 1;
        v = json_object_get(object, name);
    }
    return v;
}

static void take_object(reading *r, const json_t *object)
{
    const json_t *id = json_object_get(object, "id"), *v = below(object, r->name);
    char number[32] = "";

    if (json_is_integer(id))
        (void)snprintf(number, sizeof number, "%lld", (long long)json_integer_value(id));
    if (v != NULL)
        take_json(r, json_is_string(id) ? json_string_value(id) : number, v);
}

/* A number; an object; a list of objects. */
static void take_document(reading *r, const json_t *v)
{
    const json_t *one;
    size_t k;

    if (json_is_number(v))
        take_json(r, NULL, v);
    else if (json_is_object(v))
        take_object(r, v);
    json_array_foreach(v, k, one)
        if (json_is_object(one))
            take_object(r, one);
}

/* One JSON text, or one a line. NaN and Infinity, which Python writes, are no JSON. A number by itself may be anything that the program
 * printed ("3 conformers"), so it counts only where there is nothing else. */
static const char *read_json(reading *r, char *text, size_t len)
{
    json_error_t error;
    size_t at = 0;
    int n = 0, n_numbers = 0;

    for (; at < len && at + strspn(text + at, " \t\r\n") < len; n++) {
        json_t *v = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK | JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
        if (v == NULL || error.position <= 0) {
            const bool twice = v == NULL && json_error_code(&error) == json_error_duplicate_key;
            json_decref(v);
            return twice ? "an object of the output has two values of one key"
                         : "the output is no JSON (NaN and Infinity are none)";
        }
        take_document(r, v);
        n_numbers += json_is_number(v);
        json_decref(v);
        at += (size_t)error.position;
    }
    return n > 1 && n_numbers > 0 ? "the output has a number without a key and something else" : NULL;
}

/* ---- sdf ---- */

/* The line at *at without its end, which becomes NUL; NULL at the end of the text. */
static char *next_line(char **at)
{
    char *line = *at;
    size_t n = strcspn(line, "\n");

    if (*line == '\0')
        return NULL;
    *at = line[n] != '\0' ? line + n + 1 : line + n;
    line[n] = '\0';
    if (n > 0 && line[n - 1] == '\r')
        line[n - 1] = '\0';
    return line;
}

static bool is_field(const char *line, const char *name)
{
    const char *from = line[0] == '>' ? strchr(line, '<') : NULL;
    size_t n = strlen(name);

    return from != NULL && strncmp(from + 1, name, n) == 0 && from[1 + n] == '>';
}

/* What follows belongs to the next one. */
static void take_pose(reading *r, const char *id, const st_ext_atoms *input)
{
    int32_t at;
    st_ext_item *m = r->poses && (r->atoms.n > 0 || r->atoms.bad != NULL) ? item_of(r, id, &at) : NULL;

    if (m != NULL)
        (void)st_ext_pose_add(m, r->value, &r->atoms, input, r->given->mem); /* without a pose the value still counts */
    st_ext_atoms_begin(&r->atoms);
    r->value = (double)NAN;
}

/* "  9  8  0 ...": the number of atoms in the fourth line of a V2000 molfile. */
static int32_t atoms_of(reading *r, const char *counts)
{
    char number[4];
    int64_t n = 0;

    (void)snprintf(number, sizeof number, "%.3s", counts);
    if (strstr(counts, "V2000") == NULL || !pl_parse_int(number + strspn(number, " "), &n) || n <= 0)
        r->atoms.bad = "it has no atoms of a V2000 molfile";
    return r->atoms.bad == NULL ? (int32_t)n : 0;
}

static const char *read_sdf(reading *r, char *text)
{
    char *title = NULL, *line;
    bool is_value = false;
    int32_t n_atoms = 0;

    for (int32_t k = 0; (line = next_line(&text)) != NULL; k++) { /* k: the line of the record */
        if (strncmp(line, "$$$$", 4) == 0) {                      /* blanks may follow */
            take_pose(r, title, NULL);
            k = -1;
            is_value = false;
            continue;
        }
        if (k == 0)
            title = trimmed(line);
        else if (k == 3)
            n_atoms = atoms_of(r, line);
        else if (k > 3 && k <= 3 + n_atoms && r->poses)
            (void)st_ext_atom_sdf(&r->atoms, line, r->given->mem);
        if (is_value)
            take_text(r, title, line);
        is_value = k > 0 && !is_value && is_field(line, r->name);
    }
    take_pose(r, title, NULL); /* a file of one record may have no $$$$ */
    return NULL;
}

/* ---- pdbqt ---- */

/* What follows the name in the line, which has it as words of its own: score is not in rescore or score_2. NULL: it has not. */
static const char *behind(const char *line, const char *name)
{
    const size_t n = strlen(name);

    for (const char *at = line; n > 0 && (at = strstr(at, name)) != NULL; at++)
        if ((at == line || strchr(" \t", at[-1]) != NULL) && strchr(" \t:=", at[n]) != NULL)
            return at + n;
    return NULL;
}

/* "REMARK VINA RESULT:    -6.47      0.000      0.000": the first number behind the name. */
static void take_remark(reading *r, const char *line)
{
    const char *at = strncmp(line, "REMARK", 6) == 0 ? behind(line + 6, r->name) : NULL;
    if (at == NULL)
        return;
    at += strspn(at, " :=\t");
    take_part(r, NULL, at, strcspn(at, " \t"));
}

static const char *read_pdbqt(reading *r, char *text)
{
    char *line;

    while ((line = next_line(&text)) != NULL)
        if (strncmp(line, "ENDMDL", 6) == 0 || strncmp(line, "MODEL", 5) == 0) /* a remark in front of the first is of no pose */
            take_pose(r, NULL, r->given->input);
        else if (r->poses && st_ext_is_atom_pdbqt(line))
            (void)st_ext_atom_pdbqt(&r->atoms, line, r->given->mem);
        else
            take_remark(r, line);
    take_pose(r, NULL, r->given->input); /* a file of one pose may have no MODEL */
    return NULL;
}

/* ---- regex ---- */

static const char *read_regex(reading *r, const regex_t *re, char *text)
{
    regmatch_t at[2];
    char *line;

    while ((line = next_line(&text)) != NULL)
        if (regexec(re, line, 2, at, 0) == 0) {
            const regmatch_t *m = at[1].rm_so >= 0 ? &at[1] : &at[0];
            take_part(r, NULL, line + m->rm_so, (size_t)(m->rm_eo - m->rm_so));
        }
    return NULL;
}

/* ---- all ---- */

/* Then no value of the batch is believed; each molecule is tried by itself. */
static void set_others(reading *r)
{
    for (int32_t i = 0; i < r->n; i++) {
        r->item[i].code = "no_value";
        r->item[i].n_poses = r->item[i].n_left_out = 0;
        (void)snprintf(r->item[i].message, sizeof r->item[i].message, "the output of the batch has ids of other molecules");
    }
}

/* why: what is wrong with all of the output, of which no value is believed then. */
static void set_missing(reading *r, const char *why)
{
    for (int32_t i = 0; i < r->n; i++) {
        st_ext_item *m = &r->item[i];
        if (why == NULL && (r->found[i] || m->code != NULL))
            continue;
        m->code = "no_value";
        m->n_poses = m->n_left_out = 0;
        (void)snprintf(m->message, sizeof m->message, "no value '%.60s' in the output%s%s", r->name, why != NULL ? ": " : "",
                       why != NULL ? why : "");
    }
}

pl_code st_ext_read(st_ext_item *item, int32_t n, const st_external_conf *c, const st_ext_given *given, char *text, size_t len,
                    pl_error *err)
{
    pl_arena *mem = pl_arena_new(1 << 12);
    reading r = { .item = item,
                  .n = n,
                  .better = c->better,
                  .alone = n == 1,
                  .poses = c->poses,
                  .name = st_ext_value_name(c),
                  .given = given,
                  .value = (double)NAN };
    const char *why = NULL;

    r.found = mem != NULL ? PL_NEW(mem, bool, n) : NULL;
    if (r.found == NULL) {
        pl_arena_free(mem);
        return pl_fail(err, PL_ENOMEM, "the output of a program");
    }
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
        text += 3;
        len -= 3;
    }
    if (c->output == ST_OUT_JSON)
        why = read_json(&r, text, len);
    for (size_t i = 0; i < len; i++)
        if (text[i] == '\0')
            text[i] = '?';
    if (c->output == ST_OUT_CSV)
        why = read_csv(&r, text);
    else if (c->output == ST_OUT_SDF)
        why = read_sdf(&r, text);
    else if (c->output == ST_OUT_REGEX)
        why = read_regex(&r, given->re, text);
    else if (c->output == ST_OUT_PDBQT)
        why = read_pdbqt(&r, text);
    set_missing(&r, why);
    if (r.others)
        set_others(&r);
    for (int32_t i = 0; i < n; i++)
        st_ext_poses_sort(&item[i], (st_ext_better)c->better);
    pl_arena_free(mem);
    return r.atoms.refused ? pl_fail(err, PL_ENOMEM, "the poses of a program") : PL_OK;
}
