/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stages/steps/external/external.h"
#include "stages/steps/external/external_parts.h"

extern char **environ;

static const char *const words[] = { "input", "output", "dir", "id", "cores" };
enum { N_WORDS = sizeof words / sizeof *words };

/* The word of "{word}" at s: its length, or 0 if this is no placeholder. */
static size_t word_at(const char *s)
{
    size_t n = s[0] == '{' ? strspn(s + 1, "abcdefghijklmnopqrstuvwxyz_") : 0;

    return n > 0 && s[1 + n] == '}' ? n : 0;
}

/* "{{word}}" stands for "{word}". */
static bool is_escaped(const char *s) { return s[0] == '{' && s[1] == '{' && word_at(s + 1) > 0 && s[word_at(s + 1) + 3] == '}'; }

static int which(const char *s, size_t n)
{
    for (int k = 0; k < N_WORDS; k++)
        if (strlen(words[k]) == n && strncmp(s, words[k], n) == 0)
            return k;
    return -1;
}

const char *st_ext_bad_word(const char *text, char out[64])
{
    for (const char *s = text; *s != '\0'; s++) {
        size_t n = word_at(s);
        if (is_escaped(s)) {
            s += word_at(s + 1) + 3;
        } else if (n > 0 && which(s + 1, n) < 0) {
            (void)snprintf(out, 64, "{%.*s}", n < 60 ? (int)n : 60, s + 1);
            return out;
        }
    }
    return NULL;
}

bool st_ext_has_word(const st_external_conf *c, const char *word)
{
    const char *const *text = c->command.items;

    for (int32_t i = 0; i < c->command.n; i++)
        for (const char *s = text[i]; *s != '\0'; s++) {
            size_t n = word_at(s);
            if (is_escaped(s))
                s += word_at(s + 1) + 3;
            else if (n == strlen(word) && strncmp(s + 1, word, n) == 0)
                return true;
        }
    return false;
}

static void add_value(pl_text *out, int word, const st_ext_words *w)
{
    const char *const text[] = { w->input, w->output, w->dir, w->id };

    if (word < 4)
        pl_text_add(out, text[word]);
    else
        pl_text_addf(out, "%lld", (long long)w->cores);
}

static char *fill(const char *s, const st_ext_words *w, pl_arena *mem)
{
    pl_text out = { 0 };
    char *done;

    for (; *s != '\0'; s++) {
        size_t n = word_at(s);
        if (is_escaped(s)) {
            n = word_at(s + 1);
            pl_text_add_n(&out, s + 1, n + 2);
            s += n + 3;
        } else if (n > 0 && which(s + 1, n) >= 0) {
            add_value(&out, which(s + 1, n), w);
            s += n + 1;
        } else {
            pl_text_add_n(&out, s, 1);
        }
    }
    done = pl_text_ok(&out) ? pl_strdup(mem, pl_text_str(&out)) : NULL;
    pl_text_free(&out);
    return done;
}

char **st_ext_argv(const st_external_conf *c, const st_ext_words *w, pl_arena *mem)
{
    const char *const *text = c->command.items;
    char **argv = PL_NEW(mem, char *, c->command.n + 1);
    bool good = argv != NULL;

    for (int32_t i = 0; i < c->command.n && good; i++)
        good = (argv[i] = fill(text[i], w, mem)) != NULL;
    return good ? argv : NULL;
}

/* ---- files ---- */

pl_code st_ext_path(const char **out, const pl_workflow *wf, const char *path, pl_arena *mem, pl_error *err)
{
    const char *slash = strrchr(wf->path, '/');
    char *folder, *real;

    *out = path;
    if (path[0] == '/')
        return PL_OK;
    folder = pl_strndup(mem, wf->path, slash != NULL ? (size_t)(slash - wf->path) + 1 : 0);
    if (folder == NULL)
        return pl_fail(err, PL_ENOMEM, "the path of %s", path);
    real = realpath(folder[0] != '\0' ? folder : ".", NULL);
    if (real == NULL)
        return pl_fail_errno(err, folder);
    *out = pl_sprintf(mem, "%s/%s", real, path);
    free(real);
    return *out != NULL ? PL_OK : pl_fail(err, PL_ENOMEM, "the path of %s", path);
}

const char *st_ext_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

const char *st_tmp_dir(void)
{
    const char *named = getenv("TMPDIR");

    return named != NULL && named[0] != '\0' ? named : "/tmp";
}

static pl_code no_program(const char *name, pl_error *err) { return pl_fail(err, PL_ECONFIG, "%s: no such program", name); }

static pl_code search(const char **out, const char *name, pl_arena *mem, pl_error *err)
{
    const char *path = getenv("PATH");

    for (const char *s = path != NULL ? path : "/usr/local/bin:/usr/bin:/bin"; *s != '\0';) {
        size_t n = strcspn(s, ":");
        if (s[0] == '/') {
            *out = pl_sprintf(mem, "%.*s/%s", (int)n, s, name);
            if (*out == NULL)
                return pl_fail(err, PL_ENOMEM, "the path of %s", name);
            if (is_program(*out))
                return PL_OK;
        }
        s += n + (s[n] == ':');
    }
    return no_program(name, err);
}

pl_code st_ext_program(const char **out, const pl_workflow *wf, const st_external_conf *c, pl_arena *mem, pl_error *err)
{
    const char *name = c->command.n > 0 ? ((const char *const *)c->command.items)[0] : NULL;
    pl_code code;

    if (name == NULL || name[0] == '\0')
        return no_program("", err);
    if (strchr(name, '/') == NULL)
        return search(out, name, mem, err);
    code = st_ext_path(out, wf, name, mem, err);
    return code != PL_OK || is_program(*out) ? code : no_program(name, err);
}

/* ---- the environment ---- */

static bool is_of(const char *entry, const char *name)
{
    size_t n = strlen(name);

    return strncmp(entry, name, n) == 0 && entry[n] == '=';
}

/* Adds NAME=value, in place of an earlier one. */
static bool set(char **env, int *n, const char *name, const char *value, pl_arena *mem)
{
    char *entry = pl_sprintf(mem, "%s=%s", name, value);
    int i = 0;

    while (i < *n && !is_of(env[i], name))
        i++;
    env[i] = entry;
    *n += i == *n;
    return entry != NULL;
}

char **st_ext_environment(const st_external_conf *c, const char *dir, pl_arena *mem)
{
    const st_ext_variable *v = c->env.items;
    const char *cores = pl_sprintf(mem, "%lld", (long long)c->cores);
    char **env;
    int n = 0;
    bool good;

    while (environ[n] != NULL)
        n++;
    env = PL_NEW(mem, char *, n + c->env.n + 8);
    if (env == NULL || cores == NULL)
        return NULL;
    memcpy(env, environ, (size_t)n * sizeof *env);
    good = set(env, &n, "LC_ALL", "C", mem) && set(env, &n, "TMPDIR", dir, mem) && set(env, &n, "OMP_NUM_THREADS", cores, mem);
    for (int32_t i = 0; i < c->env.n && good; i++)
        good = set(env, &n, v[i].name, v[i].value != NULL ? v[i].value : "", mem);
    return good ? env : NULL;
}
