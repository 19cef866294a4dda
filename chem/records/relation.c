/* SPDX-License-Identifier: Apache-2.0 */
#include "chem/records/relation.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"

enum { KEY = 64 };

/* Letters and digits of a name, in lower case, up to a bracket. */
static void key_of(char key[KEY], const char *name)
{
    size_t n = 0;

    for (; *name != '\0' && *name != '(' && *name != '[' && n + 1 < KEY; name++)
        if (isalnum((unsigned char)*name))
            key[n++] = (char)tolower((unsigned char)*name);
    key[n] = '\0';
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

/* stem: what a relation field has before the ending, "standard" of "Standard Relation". */
static bool is_relation(char stem[KEY], const char *name)
{
    key_of(stem, name);
    return cut(stem, "relation") || cut(stem, "qualifier");
}

static bool belongs(const char *stem, const char *name)
{
    char key[KEY];

    key_of(key, name);
    if (stem[0] != '\0' && strcmp(key, stem) == 0)
        return true;
    return cut(key, "value") && strcmp(key, stem) == 0;
}

/* Without quotes and blanks. */
static const char *relation_text(size_t *n, const char *text)
{
    static const char around[] = "'\" ";

    text += strspn(text, around);
    *n = strlen(text);
    while (*n > 0 && strchr(around, text[*n - 1]) != NULL)
        (*n)--;
    return text;
}

static bool is_equal(const char *text, size_t n) { return n == 0 || (n <= 2 && strspn(text, "=") >= n); }

/* A sign that says that the value is not the measured one. */
static bool is_sign(const char *text, size_t n)
{
    return n > 0 &&
           (strchr("<>~", text[0]) != NULL || strncmp(text, "\xe2\x89\xa4", 3) == 0 || strncmp(text, "\xe2\x89\xa5", 3) == 0);
}

static pl_code join(ch_field *field, int n, const ch_field *relation, const char *stem, pl_arena *mem, pl_error *err)
{
    size_t len;
    const char *text = relation_text(&len, relation->text);

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
        if (is_relation(stem, (*out)[i].name))
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
        if (!is_relation(stem, fields[i].name))
            continue;
        if (belongs(stem, label->name))
            return NULL;
        text = relation_text(&len, fields[i].text);
        if (found == NULL && is_sign(text, len))
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
