/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/relation.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "pipeline/base/text.h"

/* KEY: of names with more letters the first count. */
enum { KEY = 256, BRACKETS = 8, UP_TO_FIRST = -1 };

static bool opens(char c) { return c == '(' || c == '['; }

static bool closes(char c) { return c == ')' || c == ']'; }

/* The last bracket that closes, or else the beginning. */
static const char *last_close(const char *name)
{
    const char *close = name;

    for (const char *s = strpbrk(name, ")]"); s != NULL; s = strpbrk(s + 1, ")]"))
        close = s;
    return close;
}

/* The first `kept` of key_of for all forms of a name; the next are one less each, to UP_TO_FIRST. */
static int brackets(const char *name)
{
    int n = 0;

    for (name = strpbrk(name, "(["); name != NULL && n < BRACKETS; name = strpbrk(name + 1, "(["))
        n++;
    return n > 0 ? n : UP_TO_FIRST;
}

/* Bytes of the sign beyond ASCII that a text begins with, such as a no-break space, a degree, a dash, a wide bracket or
 * the sign for bytes that are no text; 0: none. */
static size_t wide_sign(const char *text)
{
    static const char *const begins[] = { "\xc2", "\xe2", "\xe3\x80", "\xef\xbb", "\xef\xbc", "\xef\xbf" };
    size_t n = 0;

    for (size_t k = 0; k < sizeof begins / sizeof *begins && n == 0; k++)
        n = strncmp(text, begins[k], strlen(begins[k])) == 0;
    while (n > 0 && n < 3 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n++;
    return n;
}

/* A letter or digit of ASCII, in lower case; '\0': another byte. In tables with hundreds of columns isalnum() and tolower() cost a fifth of
 * the time. */
static char plain_letter(char c)
{
    const char lower = (char)(c | 0x20);

    if (c >= '0' && c <= '9')
        return c;
    return (char)(lower >= 'a' && lower <= 'z' ? lower : '\0');
}

/* The next byte of the letter beyond ASCII that a text begins with, or u for micro; '\0': it is a sign. *bytes: to what comes next. */
static char wide_letter(size_t *bytes, const char *text)
{
    const size_t sign = wide_sign(text);

    *bytes = sign > 0 ? sign : 1;
    if (ch_is_micro(text)) {
        *bytes = 2;
        return 'u';
    }
    return (char)(sign > 0 ? '\0' : *text);
}

/* One form of a name: its letters and digits, without those in brackets behind the first `kept` pairs; BRACKETS: of all, UP_TO_FIRST: the
 * name ends at the first bracket. Returns whether the last letter stands outside of brackets. */
static bool key_of(char key[KEY], const char *name, int kept)
{
    const char *close = last_close(name);
    bool inside = false, is_last_inside = false;
    int seen = 0;
    size_t n = 0, bytes;

    for (; *name != '\0' && n + 1 < KEY; name += bytes) {
        char letter = plain_letter(*name);
        bytes = 1;
        if (((unsigned char)*name & 0x80) != 0)
            letter = wide_letter(&bytes, name);
        if (letter != '\0' && (!inside || seen <= kept)) {
            key[n++] = letter;
            is_last_inside = inside;
        } else if (closes(*name)) {
            inside = false;
        } else if (opens(*name) && kept == UP_TO_FIRST) {
            break;
        } else if (opens(*name) && !inside && close > name) {
            inside = true;
            seen += seen < BRACKETS;
        }
    }
    key[n] = '\0';
    return !is_last_inside;
}

/* Cuts the ending off a key that has it. */
static bool cut(char key[KEY], const char *ending)
{
    const size_t n = strlen(key), end = strlen(ending);

    if (n < end || strcmp(key + n - end, ending) != 0)
        return false;
    key[n - end] = '\0';
    return true;
}

static bool cut_any(char key[KEY], const char *const *endings)
{
    for (; *endings != NULL; endings++)
        if (cut(key, *endings))
            return true;
    return false;
}

/* stem: what a field has before the ending that says what it holds, "standard" of "Standard Relation", "ic50nm" of "IC50 (nM) relation".
 * The ending is outside of brackets. */
static bool stem_of(char stem[KEY], const char *name, const char *const *endings)
{
    for (int kept = brackets(name); kept >= UP_TO_FIRST; kept--) {
        const bool is_outside = key_of(stem, name, kept);
        if (is_outside && cut_any(stem, endings))
            return true;
        kept = is_outside && kept > 0 ? 0 : kept; /* forms with fewer brackets end in the same way */
    }
    return false;
}

/* Whether a field with that stem belongs to the column `name`: it has the name of the column, with the unit in brackets or without. */
static bool belongs(const char *stem, const char *name)
{
    char key[KEY];

    for (int kept = brackets(name); kept >= UP_TO_FIRST; kept--) {
        (void)key_of(key, name, kept);
        if ((stem[0] != '\0' && strcmp(key, stem) == 0) || (cut(key, "value") && strcmp(key, stem) == 0))
            return true;
    }
    return false;
}

static bool is_relation(char stem[KEY], const char *name)
{
    static const char *const endings[] = { "relation", "qualifier", NULL };

    return stem_of(stem, name, endings);
}

/* Names that mean other things, too, such as a person: they are a relation where the text is a sign. */
static bool may_be_relation(char stem[KEY], const char *name)
{
    static const char *const endings[] = { "relationship", "operator", "modifier", "comparator", NULL };

    return stem_of(stem, name, endings);
}

static bool is_equal(const char *text, size_t n) { return n == 0 || (n <= 2 && strspn(text, "=") >= n); }

/* A sign that says that the value is not the measured one. */
static bool is_sign(const char *text, size_t n)
{
    return n > 0 &&
           (strchr("<>~", text[0]) != NULL || strncmp(text, "\xe2\x89\xa4", 3) == 0 || strncmp(text, "\xe2\x89\xa5", 3) == 0);
}

/* "<", ">=" and the like, whatever the field is called. */
static bool is_sign_alone(const ch_field *f)
{
    size_t n;
    const char *text = ch_unquoted(&n, f->text);

    return !f->is_number && is_sign(text, n) && (n <= 2 ? strspn(text, "<>=~") >= n : n == 3 && (unsigned char)text[0] == 0xe2);
}

static bool relates(char stem[KEY], const ch_field *f)
{
    return is_relation(stem, f->name) || (may_be_relation(stem, f->name) && is_sign_alone(f));
}

static pl_code join(ch_field *field, int n, const ch_field *relation, const char *stem, pl_arena *mem, pl_error *err)
{
    size_t len;
    const char *text = ch_unquoted(&len, relation->text);

    for (int i = 0; i < n && !is_equal(text, len); i++) {
        ch_field *f = &field[i];
        if (!f->is_number || f == relation || !belongs(stem, f->name))
            continue;
        f->text = pl_sprintf(mem, "%.*s%s%s", (int)len, text, is_sign(text, len) ? "" : " ", f->text);
        f->is_number = false;
        if (f->text == NULL)
            return pl_fail(err, PL_ENOMEM, "no memory for a data field");
    }
    return PL_OK;
}

pl_code ch_record_measured(ch_field **out, int *n_out, const ch_reader *r, const ch_record *rec, pl_arena *mem, pl_error *err)
{
    char stem[KEY];
    pl_code code = ch_record_fields(out, n_out, r, rec, mem, err);

    for (int i = 0; code == PL_OK && i < *n_out; i++)
        if (relates(stem, &(*out)[i]))
            code = join(*out, *n_out, &(*out)[i], stem, mem, err);
    return code;
}

const ch_field *ch_relation_unclear(const ch_field *fields, int n, const ch_field *label)
{
    const ch_field *found = NULL;
    char stem[KEY];

    for (int i = 0; i < n && label != NULL; i++) {
        size_t len;
        const char *text;
        const bool named = relates(stem, &fields[i]);
        if (named && belongs(stem, label->name))
            return NULL;
        text = ch_unquoted(&len, fields[i].text);
        if (found == NULL && &fields[i] != label && (named ? is_sign(text, len) : is_sign_alone(&fields[i])))
            found = &fields[i];
    }
    return found;
}

void ch_relation_say(char out[CH_RELATION_BYTES], const ch_field *relation, const char *label)
{
    (void)snprintf(
        out, CH_RELATION_BYTES,
        "%.60s is '%.20s' beside a number in %.60s: a limit is no measured value; if the column belongs to %.60s, call it "
        "\"%.60s relation\", otherwise remove it",
        relation->name, relation->text, label, label, label);
}

bool ch_is_of_prediction(const char *name, const char *label)
{
    static const char *const endings[] = { "_similarity", "_domain", "_interval90", "_stdev" };
    const size_t n = strlen(label);
    bool found = false;

    for (size_t k = 0; k < sizeof endings / sizeof *endings; k++)
        found = found || (strncasecmp(name, label, n) == 0 && strcasecmp(name + n, endings[k]) == 0);
    return found;
}

/* ---- units and kinds ------------------------------------------------------ */

static bool is_units(char stem[KEY], const char *name)
{
    static const char *const endings[] = { "units", "unit", "uom", "unitofmeasure", NULL };

    return stem_of(stem, name, endings);
}

static bool is_type(char stem[KEY], const char *name)
{
    static const char *const endings[] = { "type", NULL };

    return stem_of(stem, name, endings);
}

/* Of ChEMBL and others, for the value of a row. */
static bool is_of_any(const char *stem)
{
    static const char *const all[] = { "",      "standard", "published",   "activity",     "result",
                                       "assay", "value",    "measurement", "concentration" };

    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (strcmp(stem, all[k]) == 0)
            return true;
    return false;
}

/* As these, but for "type" and "Assay Type" (binding, functional), which say other things of a row. */
static bool is_type_of_any(const char *stem) { return stem[0] != '\0' && strcmp(stem, "assay") != 0 && is_of_any(stem); }

static bool belongs_to_some(const char *stem, const ch_field *fields, int n)
{
    for (int i = 0; i < n; i++)
        if (belongs(stem, fields[i].name))
            return true;
    return false;
}

/* The field with such a name that belongs to `label`, of several the one that has more of its name, or else one that may be meant for any.
 * NULL: none, or its text says nothing. */
static const ch_field *beside(const ch_field *fields, int n, const ch_field *label, bool (*is_such)(char[KEY], const char *),
                              bool (*may_be_of_any)(const char *))
{
    const ch_field *own = NULL, *any = NULL;
    size_t longest = 0;
    char stem[KEY];

    for (int i = 0; i < n && label != NULL; i++) {
        const ch_field *f = &fields[i];
        if (f == label || f->is_number || f->text[0] == '\0' || strlen(f->text) >= CH_UNIT_BYTES || !is_such(stem, f->name))
            continue;
        if (!belongs(stem, label->name)) {
            any = any == NULL && may_be_of_any(stem) && !belongs_to_some(stem, fields, n) ? f : any;
        } else if (own == NULL || strlen(stem) > longest) {
            own = f;
            longest = strlen(stem);
        }
    }
    return own != NULL ? own : any;
}

bool ch_unit_in_name(char unit[CH_UNIT_BYTES], const char *name)
{
    const char *open = strpbrk(name, "([");
    const char *end = open != NULL ? strpbrk(open, ")]") : NULL, *last = strrchr(name, '_');
    const size_t n = end != NULL ? (size_t)(end - open - 1) : CH_UNIT_BYTES;

    last = last != NULL ? last : strrchr(name, ' ');
    unit[0] = '\0';
    if (open != NULL && open != name && n < CH_UNIT_BYTES) {
        memcpy(unit, open + 1, n);
        unit[n] = '\0';
    } else if (open == NULL && last != NULL && last != name && last[1] != '\0' && strlen(last) < CH_UNIT_BYTES) {
        (void)snprintf(unit, CH_UNIT_BYTES, "%s", last + 1);
    }
    if (open != NULL ? ch_unit_known(unit) == NULL : ch_unit_concentration(unit) == NULL || strlen(unit) < 2)
        unit[0] = '\0';
    return unit[0] != '\0';
}

static bool is_units_of_other(const char *name, const ch_field *fields, int n)
{
    char stem[KEY];

    return is_units(stem, name) && belongs_to_some(stem, fields, n);
}

static bool is_of_none(const char *stem)
{
    (void)stem;
    return false;
}

const ch_field *ch_unit_own(char unit[CH_UNIT_BYTES], const ch_field *fields, int n, const ch_field *column)
{
    const ch_field *f = beside(fields, n, column, is_units, is_of_none);

    if (f == NULL && column != NULL && ch_unit_in_name(unit, column->name))
        return column;
    unit[0] = '\0';
    if (f != NULL)
        ch_unit_plain(unit, f->text);
    return f;
}

const ch_field *ch_unit_of(char unit[CH_UNIT_BYTES], const ch_field *fields, int n, const ch_field *label)
{
    const ch_field *f = beside(fields, n, label, is_units, is_of_any);

    if (f == NULL && label != NULL && ch_unit_in_name(unit, label->name))
        return label;
    for (int i = 0; i < n && f == NULL && label != NULL; i++)
        if (&fields[i] != label && !fields[i].is_number && ch_unit_concentration(fields[i].text) != NULL &&
            !is_units_of_other(fields[i].name, fields, n))
            f = &fields[i];
    unit[0] = '\0';
    if (f != NULL)
        ch_unit_plain(unit, f->text);
    return f;
}

bool ch_unit_differs(const char *unit, const char *wanted, const char *by, const char *label)
{
    char want[CH_UNIT_BYTES], stem[KEY];
    const bool named = strcmp(by, label) != 0 && is_units(stem, by);
    const char *a = ch_unit_known(unit), *b = ch_unit_known(wanted);

    ch_unit_plain(want, wanted);
    if (unit[0] == '\0' || want[0] == '\0' || strcmp(unit, want) == 0)
        return false;
    return a != NULL && b != NULL ? strcmp(a, b) != 0 : named;
}

bool ch_type_differs(const char *a, const char *b)
{
    char one[KEY], other[KEY];

    (void)key_of(one, a, UP_TO_FIRST);
    (void)key_of(other, b, UP_TO_FIRST);
    return one[0] != '\0' && other[0] != '\0' && strcmp(one, other) != 0;
}

bool ch_is_logarithm(const char *label)
{
    const char *first = label;

    while (*first != '\0' && !isalnum((unsigned char)*first))
        first++;
    return (first[0] == 'p' && isupper((unsigned char)first[1])) || strcasestr(label, "log") != NULL;
}

bool ch_units_contradict(const char *a, const char *b)
{
    char plain[CH_UNIT_BYTES];

    ch_unit_plain(plain, a);
    return ch_unit_differs(plain, b, "unit", "");
}

/* Adds the text of field f; same: it is what the first row says. Returns whether it differs. */
static bool said_add(ch_said *s, const ch_field *f, const char *text, bool same, int64_t line)
{
    if (s->first[0] == '\0') {
        (void)snprintf(s->first, sizeof s->first, "%s", text);
        (void)snprintf(s->name, sizeof s->name, "%s", f->name);
        s->line = line;
        return false;
    }
    if (!same && s->other[0] == '\0') {
        (void)snprintf(s->other, sizeof s->other, "%s", text);
        s->other_line = line;
    }
    return !same;
}

/* Adds the unit of `label` that field f says. */
static bool unit_add(ch_said *s, const ch_field *label, const ch_field *f, const char *unit, int64_t line)
{
    char own[CH_UNIT_BYTES];

    if (f == NULL || unit[0] == '\0')
        return false;
    if (f != label && ch_unit_in_name(own, label->name) && ch_unit_differs(unit, own, label->name, label->name))
        (void)said_add(s, label, own, strcmp(own, s->first) == 0, line);
    return said_add(s, f, unit, strcmp(unit, s->first) == 0, line);
}

static bool is_kind(const char *text)
{
    static const char *const all[] = { "ic50",  "ic90",  "ec50",  "ec90",       "ac50",    "xc50",      "dc50", "gi50",
                                       "cc50",  "tc50",  "lc50",  "ld50",       "ed50",    "id50",      "td50", "mic",
                                       "mic50", "mic90", "mbc",   "ki",         "kd",      "kb",        "km",   "kinact",
                                       "kon",   "koff",  "pic50", "pec50",      "pac50",   "pki",       "pkd",  "logs",
                                       "logp",  "logd",  "pka",   "inhibition", "potency", "solubility" };
    char key[KEY];
    size_t n;

    (void)key_of(key, ch_unquoted(&n, text), UP_TO_FIRST);
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (strcmp(key, all[k]) == 0)
            return true;
    return false;
}

static bool is_type_of_other(const char *name, const ch_field *fields, int n)
{
    char stem[KEY];

    return is_type(stem, name) && belongs_to_some(stem, fields, n);
}

/* The field whose name says that it holds kinds, or else the first whose text is one: "endpoint" is as common a name as "type". */
static const ch_field *type_of(const ch_field *fields, int n, const ch_field *label)
{
    const ch_field *named = beside(fields, n, label, is_type, is_type_of_any);

    for (int i = 0; i < n && named == NULL && label != NULL; i++) {
        const ch_field *f = &fields[i];
        if (f != label && !f->is_number && is_kind(f->text) && !is_type_of_other(f->name, fields, n))
            return f;
    }
    return named;
}

/* Adds the kind that field f says. */
static bool type_add(ch_said *s, const ch_field *f, int64_t line)
{
    char type[CH_UNIT_BYTES], key[KEY], first[KEY];

    if (f == NULL)
        return false;
    ch_unit_plain(type, f->text);
    (void)key_of(key, type, UP_TO_FIRST);
    (void)key_of(first, s->first, UP_TO_FIRST);
    return key[0] != '\0' && said_add(s, f, type, strcmp(key, first) == 0, line);
}

bool ch_units_add(ch_units *u, const ch_field *fields, int n, const ch_field *label, int64_t line)
{
    char text[CH_UNIT_BYTES];
    const ch_field *f = ch_unit_of(text, fields, n, label);
    const bool unit = unit_add(&u->unit, label, f, text, line), type = type_add(&u->type, type_of(fields, n, label), line);

    return unit || type;
}

void ch_units_add_own(ch_units *u, const ch_field *fields, int n, const ch_field *column, int64_t line)
{
    char text[CH_UNIT_BYTES];
    const ch_field *f = ch_unit_own(text, fields, n, column);

    (void)unit_add(&u->unit, column, f, text, line);
    (void)type_add(&u->type, beside(fields, n, column, is_type, is_of_none), line);
}

bool ch_units_differ(const ch_units *u) { return u->unit.other[0] != '\0' || u->type.other[0] != '\0'; }

static void several_say(char out[CH_RELATION_BYTES], const ch_said *s, const char *label, const char *what, const char *to_do)
{
    (void)snprintf(out, CH_RELATION_BYTES, "%lld: %s is '%s', and '%s' in line %lld: %s are not one column of %.60s; %s",
                   (long long)s->other_line, s->name, s->other, s->first, (long long)s->line, what, label, to_do);
}

const ch_said *ch_units_say(char out[CH_RELATION_BYTES], const ch_units *u, const char *label, const char *wanted)
{
    const ch_said *s = &u->unit;

    if (s->other[0] != '\0') {
        several_say(out, s, label, "numbers of two units",
                    "convert them, or remove the column of units if it does not belong to them");
        return s;
    }
    if (ch_unit_differs(s->first, wanted, s->name, label)) {
        const char *is = strcmp(s->name, label) == 0 ? "has by its name the unit" : "is";
        (void)snprintf(out, CH_RELATION_BYTES, "%lld: %s %s '%s', and %.60s is said to be in %.60s", (long long)s->line, s->name,
                       is, s->first, label, wanted);
        return s;
    }
    s = &u->type;
    if (s->other[0] == '\0')
        return NULL;
    several_say(out, s, label, "two kinds of measurement", "keep the rows of one, or remove the column of types to mix them");
    return s;
}
