/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/workflow/settings_parts.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pipeline/base/spelling.h"

static const char *example_of(pl_field_type type)
{
    if (type == PL_DURATION)
        return ", written like 30s, 10m or 3h50m";
    return type == PL_SIZE ? ", written like 64MiB or 20GB" : "";
}

static void say_wrong(const pl_settings *ctx, const pl_field *f, const pl_node *node, const char *path)
{
    static const char *const kinds[] = { "", "a list", "a map" };
    char allowed[512];

    (void)pl_field_allowed(f, allowed, sizeof allowed);
    if (node->kind != PL_SCALAR)
        pl_problem_add(ctx->problems, node, "%s: found %s; allowed: %s", path, kinds[node->kind], allowed);
    else if (pl_node_is_null(node))
        pl_problem_add(ctx->problems, node, "%s: no value; allowed: %s", path, allowed);
    else
        pl_problem_add(ctx->problems, node, "%s: '%s' is not understood; allowed: %s%s", path, node->text, allowed,
                       example_of(f->type));
}

/* ---- numbers ---- */

/* Reports numbers that YAML 1.1 readers silently read as another number. Times and sizes have units and are read as text. */
static bool is_trap(const pl_settings *ctx, const pl_field *f, const pl_node *node, const char *path)
{
    const char *s = node->text + (node->text[0] == '-' || node->text[0] == '+');
    size_t digits = strspn(s, "0123456789"), rest = s[digits] == ':' ? strspn(s + digits + 1, "0123456789:") : 0;
    char allowed[512];

    if (f->type == PL_DURATION || f->type == PL_SIZE)
        return false;
    if (node->quoted)
        pl_problem_add(ctx->problems, node, "%s: \"%s\" in quotes is text; write the number without quotes; allowed: %s", path,
                       node->text, pl_field_allowed(f, allowed, sizeof allowed));
    else if (digits > 1 && s[0] == '0' && s[digits] == '\0')
        pl_problem_add(ctx->problems, node, "%s: %s would be octal in YAML 1.1; write %s without the leading zero", path,
                       node->text, s + strspn(s, "0") - (s[strspn(s, "0")] == '\0'));
    else if (digits > 0 && rest > 0 && s[digits + 1 + rest] == '\0')
        pl_problem_add(ctx->problems, node, "%s: %s would be a base-60 number in YAML 1.1; allowed: %s", path, node->text,
                       pl_field_allowed(f, allowed, sizeof allowed));
    else
        return false;
    return true;
}

static bool parse_number(const pl_field *f, const char *s, double *out)
{
    int64_t whole;

    if (f->type == PL_DURATION)
        return pl_parse_duration(s, out);
    if (f->type == PL_SIZE)
        return pl_parse_size(s, out);
    if (f->type == PL_INT && pl_parse_int(s, &whole)) {
        *out = (double)whole;
        return true;
    }
    return pl_parse_real(s, out) && (f->type != PL_INT || (floor(*out) == *out && fabs(*out) < 9007199254740992.0));
}

static bool read_number(const pl_settings *ctx, const pl_field *f, const pl_node *node, const char *path, double *out)
{
    char allowed[512];
    double x;

    if (node->kind == PL_SCALAR && f->choices != NULL && f->type != PL_REALS && strcmp(node->text, f->choices) == 0) {
        *out = -1;
        return true;
    }
    if (node->kind == PL_SCALAR && is_trap(ctx, f, node, path))
        return false;
    if (node->kind != PL_SCALAR || !parse_number(f, node->text, &x)) {
        say_wrong(ctx, f, node, path);
        return false;
    }
    if (pl_field_limited(f) && !(x >= f->min && x <= f->max)) {
        pl_problem_add(ctx->problems, node, "%s: %s is outside %s", path, node->text, pl_field_allowed(f, allowed, sizeof allowed));
        return false;
    }
    *out = x;
    return true;
}

static void read_int(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    double x;

    if (read_number(ctx, f, node, path, &x) && !pl_parse_int(node->text, at))
        *(int64_t *)at = (int64_t)x;
}

static void read_real(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    (void)read_number(ctx, f, node, path, at);
}

/* ---- words ---- */

static void read_bool(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    static const char *const yes[] = { "yes", "on", "y", "true" }, *const no[] = { "no", "off", "n", "false" };
    const char *meant = NULL;

    if (node->kind != PL_SCALAR) {
        say_wrong(ctx, f, node, path);
        return;
    }
    for (int i = 0; i < 4; i++) {
        if (strcasecmp(node->text, yes[i]) == 0)
            meant = "true";
        else if (strcasecmp(node->text, no[i]) == 0)
            meant = "false";
    }
    if (meant == NULL)
        say_wrong(ctx, f, node, path);
    else if (strcmp(meant, node->text) != 0 || node->quoted)
        pl_problem_add(ctx->problems, node, "%s: %s%s%s: write %s (without quotes); allowed: true or false", path,
                       node->quoted ? "\"" : "", node->text, node->quoted ? "\"" : "", meant);
    else
        *(bool *)at = meant[0] == 't';
}

static bool is_choice(const pl_settings *ctx, const pl_field *f, const pl_node *node, const char *path, int *out)
{
    char words[32][64];
    const char *list[32], *what;
    int n = 0;

    if (node->kind != PL_SCALAR || pl_node_is_null(node)) {
        say_wrong(ctx, f, node, path);
        return false;
    }
    *out = pl_field_choice(f, node->text);
    if (*out < 0 && pl_british(node->text, words[0]))
        *out = pl_field_choice(f, words[0]);
    if (*out >= 0)
        return true;
    for (; n < 32 && strcmp(pl_field_choice_name(f, n, words[n], sizeof words[n]), "?") != 0; n++)
        list[n] = words[n];
    what = pl_sprintf(ctx->mem, "%s: unknown choice '%s'", path, node->text);
    pl_unknown_name(ctx->problems, node, what != NULL ? what : path, node->text, list, n);
    return false;
}

static void read_choice(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    int position;

    if (is_choice(ctx, f, node, path, &position))
        *(int32_t *)at = position;
}

static bool is_text(const pl_settings *ctx, const pl_field *f, const pl_node *node, const char *path)
{
    if (node->kind != PL_SCALAR) {
        say_wrong(ctx, f, node, path);
        return false;
    }
    if ((f->flags & PL_REQUIRED) && (pl_node_is_null(node) || node->text[0] == '\0')) {
        pl_problem_add(ctx->problems, node, "%s: must not be empty (%s)", path, f->help);
        return false;
    }
    return true;
}

/* Nothing is written as null, too, and is "" where that is the default. */
static void read_text(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    const char *nothing = f->text != NULL && f->text[0] == '\0' ? f->text : NULL;

    if (is_text(ctx, f, node, path))
        *(const char **)at = pl_node_is_null(node) ? nothing : node->text;
}

/* ---- files ---- */

static int names_order(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* The file in the folder of `absolute` whose name is nearest to it; of several the first by name. */
static const char *nearest_file(const pl_settings *ctx, const char *absolute)
{
    const char *slash = strrchr(absolute, '/'), *best = NULL;
    char *folder = slash != NULL ? pl_strndup(ctx->mem, absolute, (size_t)(slash - absolute) + 1) : NULL;
    DIR *dir = folder != NULL ? opendir(folder) : NULL;
    const char *names[1024];
    struct dirent *e;
    int n = 0;

    while (dir != NULL && n < 1024 && (e = readdir(dir)) != NULL)
        if (e->d_name[0] != '.' && (names[n] = pl_strdup(ctx->mem, e->d_name)) != NULL)
            n++;
    if (dir != NULL) {
        qsort(names, (size_t)n, sizeof *names, names_order);
        best = pl_nearest(slash + 1, names, n);
        (void)closedir(dir);
    }
    return best;
}

static bool is_inside(const char *folder, const char *path)
{
    size_t n = folder != NULL ? strlen(folder) : 0;
    return n > 0 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

bool pl_settings_find(const pl_settings *ctx, const char *absolute, const pl_node *at, const char *path)
{
    const char *near;
    struct stat st;

    if (ctx->stored)
        return true;
    if (stat(absolute, &st) == 0 && S_ISDIR(st.st_mode)) {
        pl_problem_add(ctx->problems, at, "%s: %s is a folder, a file is expected", path, absolute);
        return false;
    }
    if (stat(absolute, &st) == 0 && !S_ISREG(st.st_mode)) {
        pl_problem_add(ctx->problems, at,
                       "%s: %s is a pipe or a device, but inputs are read more than once; save the data to a file "
                       "first",
                       path, absolute);
        return false;
    }
    if (access(absolute, R_OK) == 0 || (errno == ENOENT && is_inside(ctx->made, absolute)))
        return true;
    if (errno != ENOENT) {
        pl_problem_add(ctx->problems, at, "%s: %s: %s", path, absolute, strerror(errno));
        return false;
    }
    near = nearest_file(ctx, absolute);
    pl_problem_add(ctx->problems, at, "%s: %s: %s%s%s%s; paths are relative to the workflow file", path, absolute, strerror(ENOENT),
                   near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    return false;
}

/* Reports ~ and $SCRATCH, which only a shell expands: a folder of that name is never meant. */
static bool is_for_a_shell(const pl_settings *ctx, const pl_node *node, const char *path)
{
    const char *s = node->text, *name = s[0] == '~' ? "HOME" : s + 1;
    int n = s[0] == '~' ? 4 : (int)strcspn(name, "/");

    if (s[0] != '$' && strcmp(s, "~") != 0 && strncmp(s, "~/", 2) != 0)
        return false;
    pl_problem_add(ctx->problems, node, "%s: %s: only a shell expands %.*s; write ${env:%.*s}", path, s, (int)strcspn(s, "/"), s, n,
                   name);
    return true;
}

static void read_path(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    char *absolute;

    if (!is_text(ctx, f, node, path))
        return;
    if (pl_node_is_null(node) || node->text[0] == '\0') {
        *(const char **)at = NULL;
        return;
    }
    if (is_for_a_shell(ctx, node, path))
        return;
    absolute = pl_settings_path(ctx, node->text);
    if (absolute == NULL)
        pl_problem_refused(ctx->problems, node, NULL);
    else if (!(f->flags & PL_EXISTS) || !ctx->find_files || pl_settings_find(ctx, absolute, node, path))
        *(const char **)at = absolute;
}

/* ---- lists ---- */

static bool is_ready(const pl_settings *ctx, const pl_field *f, const pl_node *node, const char *path, const void *items, int n)
{
    if (items == NULL)
        pl_problem_refused(ctx->problems, node, NULL);
    else if (n == 0 && (f->flags & PL_REQUIRED))
        pl_problem_add(ctx->problems, node, "%s: the list is empty (%s)", path, f->help);
    else
        return true;
    return false;
}

/* One value may stand for a list of one. */
static int items_of(const pl_node *node, pl_node *const **items, pl_node *const *self)
{
    bool many = node->kind == PL_SEQUENCE;

    *items = many ? node->item : self;
    if (many)
        return node->n;
    return pl_node_is_null(node) ? 0 : 1;
}

static void read_texts(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    pl_node *self = (pl_node *)node, *const * item;
    int n = node->kind == PL_MAPPING ? -1 : items_of(node, &item, &self), position;
    const char **texts;

    if (n < 0) {
        say_wrong(ctx, f, node, path);
        return;
    }
    texts = PL_NEW(ctx->mem, const char *, n + 1);
    if (!is_ready(ctx, f, node, path, texts, n))
        return;
    for (int i = 0; i < n; i++) {
        texts[i] = ""; /* checks read those that are wrong, too */
        if (item[i]->kind != PL_SCALAR)
            say_wrong(ctx, f, item[i], path);
        else if (f->choices == NULL || is_choice(ctx, f, item[i], path, &position))
            texts[i] = item[i]->text;
    }
    *(pl_list *)at = (pl_list){ texts, n };
}

static void read_reals(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    pl_node *self = (pl_node *)node, *const * item;
    int n = node->kind == PL_MAPPING ? -1 : items_of(node, &item, &self);
    pl_field one = *f;
    double *reals;

    if (n < 0) {
        say_wrong(ctx, f, node, path);
        return;
    }
    one.type = PL_REAL;
    reals = PL_NEW(ctx->mem, double, n + 1);
    if (!is_ready(ctx, f, node, path, reals, n))
        return;
    for (int i = 0; i < n; i++)
        (void)read_number(ctx, &one, item[i], path, &reals[i]);
    *(pl_list *)at = (pl_list){ reals, n };
}

/* The sub field that a key of a PL_KEYED map fills: "name". */
static void set_name(const pl_field *sub, void *record, const char *name)
{
    for (; sub->type != PL_END; sub++)
        if (sub->type == PL_TEXT && strcmp(sub->key, "name") == 0)
            *(const char **)((char *)record + sub->at) = name;
}

const pl_field *pl_settings_short(const pl_field *f)
{
    const pl_field *value = NULL;

    for (const pl_field *sub = f->sub; (f->flags & PL_KEYED) && sub->type != PL_END; sub++)
        if (strcmp(sub->key, "value") == 0)
            value = sub;
        else if (strcmp(sub->key, "name") != 0)
            return NULL;
    return value;
}

static void read_record(const pl_settings *ctx, const pl_field *f, void *record, const pl_node *node, const char *path)
{
    const pl_field *value = node->kind == PL_SCALAR && !pl_node_is_null(node) ? pl_settings_short(f) : NULL;

    if (value == NULL) {
        pl_settings_read(ctx, f->sub, record, node, path, NULL);
        return;
    }
    pl_fields_default(f->sub, record);
    pl_settings_value(ctx, value, (char *)record + value->at, node, path);
}

static void read_list(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    pl_node_kind expected = (f->flags & PL_KEYED) ? PL_MAPPING : PL_SEQUENCE;
    char *records;

    if (node->kind != expected && !pl_node_is_null(node)) {
        say_wrong(ctx, f, node, path);
        return;
    }
    records = PL_NEW(ctx->mem, char, (size_t)(node->n + 1) * f->sub_size);
    if (!is_ready(ctx, f, node, path, records, node->n))
        return;
    for (int i = 0; i < node->n; i++) {
        void *record = records + (size_t)i * f->sub_size;
        const char *key = expected == PL_MAPPING && node->key[i]->text != NULL ? node->key[i]->text : "?";
        const char *one =
            expected == PL_MAPPING ? pl_sprintf(ctx->mem, "%s.%s", path, key) : pl_sprintf(ctx->mem, "%s.%d", path, i);
        read_record(ctx, f, record, node->item[i], one != NULL ? one : path);
        if (expected == PL_MAPPING)
            set_name(f->sub, record, key);
    }
    *(pl_list *)at = (pl_list){ records, node->n };
}

void pl_settings_value(const pl_settings *ctx, const pl_field *f, void *at, const pl_node *node, const char *path)
{
    typedef void read_one(const pl_settings *, const pl_field *, void *, const pl_node *, const char *);
    static read_one *const readers[] = {
        [PL_INT] = read_int,     [PL_REAL] = read_real,     [PL_BOOL] = read_bool,     [PL_TEXT] = read_text,
        [PL_PATH] = read_path,   [PL_CHOICE] = read_choice, [PL_DURATION] = read_real, [PL_SIZE] = read_real,
        [PL_TEXTS] = read_texts, [PL_REALS] = read_reals,   [PL_LIST] = read_list,
    };
    if (!node->faulty)
        readers[f->type](ctx, f, at, node, path);
}
