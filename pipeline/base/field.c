/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/base/field.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "pipeline/base/text.h"

static void set_default(const pl_field *f, void *at)
{
    switch (f->type) {
    case PL_INT: *(int64_t *)at = (int64_t)f->dflt; break;
    case PL_REAL:
    case PL_DURATION:
    case PL_SIZE: *(double *)at = f->dflt; break;
    case PL_BOOL: *(bool *)at = f->dflt != 0; break;
    case PL_TEXT:
    case PL_PATH: *(const char **)at = f->text; break;
    case PL_CHOICE: *(int32_t *)at = (int32_t)f->dflt; break;
    case PL_TEXTS:
    case PL_REALS:
    case PL_LIST: *(pl_list *)at = (pl_list){ 0 }; break;
    case PL_END: break;
    }
}

void pl_fields_default(const pl_field *table, void *conf)
{
    for (const pl_field *f = table; f != NULL && f->type != PL_END; f++)
        set_default(f, (char *)conf + f->at);
}

int pl_fields_count(const pl_field *table)
{
    int n = 0;

    while (table != NULL && table[n].type != PL_END)
        n++;
    return n;
}

bool pl_field_limited(const pl_field *f) { return f->min < f->max || (f->min == f->max && f->min != 0); }

int pl_field_choice(const pl_field *f, const char *word)
{
    const char *s = f->choices;
    size_t n = strlen(word);

    for (int i = 0; s != NULL; i++) {
        size_t len = strcspn(s, "|");
        if (len == n && strncmp(s, word, n) == 0)
            return i;
        s = s[len] == '|' ? s + len + 1 : NULL;
    }
    return -1;
}

const char *pl_field_choice_name(const pl_field *f, int position, char *buf, size_t size)
{
    const char *s = f->choices;

    for (int i = 0; s != NULL; i++) {
        size_t len = strcspn(s, "|");
        if (i == position) {
            (void)snprintf(buf, size, "%.*s", (int)len, s);
            return buf;
        }
        s = s[len] == '|' ? s + len + 1 : NULL;
    }
    return "?";
}

const char *pl_number_text(double x, char buf[64])
{
    char *e;

    if (x == floor(x) && fabs(x) <= 9007199254740992.0) {
        (void)snprintf(buf, 64, "%.0f", x);
        return buf;
    }
    (void)pl_real_str(x, buf);
    e = strchr(buf, 'e');
    if (e != NULL && strchr(buf, '.') == NULL) { /* YAML 1.1 reads 1e-08 as text, 1.0e-08 as a number */
        memmove(e + 2, e, strlen(e) + 1);
        memcpy(e, ".0", 2);
    }
    return buf;
}

/* A number in the largest unit that divides it, so that it reads back exactly. */
static const char *in_units(double x, const double *scale, const char *const *name, char buf[64])
{
    char digits[64];
    int i = 0;

    while (scale[i] > 1 && !(x >= scale[i] && fmod(x, scale[i]) == 0))
        i++;
    (void)snprintf(buf, 64, "%s%s", pl_number_text(x / scale[i], digits), name[i]);
    return buf;
}

static const char *duration_text(double x, char buf[64])
{
    static const double scale[] = { 86400, 3600, 60, 1 };
    static const char *const name[] = { "d", "h", "m", "s" };
    return in_units(x, scale, name, buf);
}

static const char *size_text(double x, char buf[64])
{
    static const double scale[] = { 1099511627776.0, 1073741824, 1048576, 1024, 1e9, 1e6, 1e3, 1 };
    static const char *const name[] = { "TiB", "GiB", "MiB", "KiB", "GB", "MB", "kB", "B" };
    return in_units(x, scale, name, buf);
}

const char *pl_field_number(const pl_field *f, double x, char buf[64])
{
    if (f->type == PL_DURATION)
        return duration_text(x, buf);
    if (f->type == PL_SIZE)
        return size_text(x, buf);
    return pl_number_text(x, buf);
}

const char *pl_field_value(const pl_field *f, const void *conf, char buf[64])
{
    const void *at = (const char *)conf + f->at;

    switch (f->type) {
    case PL_INT:
        if (f->choices != NULL && *(const int64_t *)at == -1)
            return f->choices;
        (void)snprintf(buf, 64, "%lld", (long long)*(const int64_t *)at);
        return buf;
    case PL_REAL:
    case PL_DURATION:
    case PL_SIZE:
        if (f->choices != NULL && *(const double *)at == -1)
            return f->choices;
        return pl_field_number(f, *(const double *)at, buf);
    case PL_BOOL: return *(const bool *)at ? "true" : "false";
    case PL_TEXT:
    case PL_PATH: return *(const char *const *)at ? *(const char *const *)at : "";
    case PL_CHOICE: return pl_field_choice_name(f, *(const int32_t *)at, buf, 64);
    default: return "";
    }
}

/* "radius, bonds, knn or full" */
static size_t list_choices(const char *choices, char *buf, size_t size)
{
    size_t used = 0;

    for (const char *s = choices; *s != '\0' && used < size;) {
        size_t len = strcspn(s, "|"), rest = strcspn(s + len, "|") + len;
        const char *join = s[rest] == '\0' ? " or " : ", ";
        int n = snprintf(buf + used, size - used, "%s%.*s", s == choices ? "" : join, (int)len, s);
        used += n > 0 ? (size_t)n : 0;
        s += len + (s[len] == '|');
    }
    return used;
}

static void add(char *buf, size_t size, const char *text)
{
    size_t used = strlen(buf);
    (void)snprintf(buf + used, size - used, "%s", text);
}

static void add_range(const pl_field *f, const char *anything, char *buf, size_t size)
{
    char a[64], b[64];

    if (!pl_field_limited(f)) {
        add(buf, size, anything);
    } else {
        add(buf, size, pl_field_number(f, f->min, a));
        if (f->max >= 1e15) { /* reads better than 9007199254740991 */
            add(buf, size, " or more");
        } else if (f->min < f->max) {
            add(buf, size, "..");
            add(buf, size, pl_field_number(f, f->max, b));
        }
    }
    if (f->unit != NULL && f->unit[0] != '\0') {
        add(buf, size, " ");
        add(buf, size, f->unit);
    }
    if (f->choices != NULL) {
        add(buf, size, " or ");
        add(buf, size, f->choices);
    }
}

const char *pl_field_allowed(const pl_field *f, char *buf, size_t size)
{
    buf[0] = '\0';
    switch (f->type) {
    case PL_INT: add_range(f, "a whole number", buf, size); break;
    case PL_REAL: add_range(f, "a number", buf, size); break;
    case PL_DURATION: add_range(f, "a time such as 2s or 3h50m", buf, size); break;
    case PL_SIZE: add_range(f, "a size such as 64MiB or 20GB", buf, size); break;
    case PL_BOOL: add(buf, size, "true or false"); break;
    case PL_TEXT: add(buf, size, "text"); break;
    case PL_PATH: add(buf, size, "a file name"); break;
    case PL_CHOICE: (void)list_choices(f->choices, buf, size); break;
    case PL_TEXTS:
        add(buf, size, f->choices != NULL ? "a list of " : "a list of texts");
        if (f->choices != NULL)
            (void)list_choices(f->choices, buf + strlen(buf), size - strlen(buf));
        break;
    case PL_REALS: {
        pl_field one = *f;
        one.type = PL_REAL;
        add(buf, size, "a list of numbers");
        if (pl_field_limited(f)) {
            add(buf, size, ", each ");
            add_range(&one, "", buf, size);
        }
        break;
    }
    case PL_LIST: {
        bool keyed = (f->flags & PL_KEYED) != 0;
        add(buf, size, keyed ? "a map such as {NAME: {" : "a list such as [{");
        add(buf, size, f->sub[keyed && strcmp(f->sub->key, "name") == 0].key); /* the name is the key */
        add(buf, size, keyed ? ": ...}}" : ": ...}]");
        break;
    }
    case PL_END: break;
    }
    return buf;
}

static bool group_seen(const pl_field *table, const pl_field *f, size_t n)
{
    for (const pl_field *g = table; g < f; g++)
        if (strncmp(g->key, f->key, n) == 0)
            return true;
    return false;
}

static void walk(const pl_field *table, const char *prefix, size_t n_prefix, int depth, const pl_field_visit *visit, void *ctx)
{
    for (const pl_field *f = table; f->type != PL_END; f++) {
        const char *rest = f->key + n_prefix, *dot;
        if (strncmp(f->key, prefix, n_prefix) != 0)
            continue;
        dot = strchr(rest, '.');
        if (dot == NULL) {
            visit->field(ctx, f, rest, depth);
        } else if (!group_seen(table, f, (size_t)(dot - f->key) + 1)) {
            visit->group(ctx, f, rest, (size_t)(dot - rest), depth, true);
            walk(table, f->key, (size_t)(dot - f->key) + 1, depth + 1, visit, ctx);
            visit->group(ctx, f, rest, (size_t)(dot - rest), depth, false);
        }
    }
}

void pl_fields_walk(const pl_field *table, int depth, const pl_field_visit *visit, void *ctx)
{
    if (table != NULL)
        walk(table, "", 0, depth, visit, ctx);
}
