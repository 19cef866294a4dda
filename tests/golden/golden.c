/* SPDX-License-Identifier: Apache-2.0 */
#include "golden/golden.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

enum { NAMES = 512, NAME = 256 };

static const char *const kinds[] = { "b1_bases_", "b2_conv_", "b3_attn_", "b3_norm_", "b3_linear", "b4_", "molecules_" };
static const char *const endings[] = { ".safetensors.gz", ".safetensors" };
static const char weights[] = "_weights"; /* of a case, in a file of their own */
static char names[NAMES][NAME];           /* of all files of a known kind, endings cut off, sorted */
static int n_names;

/* Removes the extension. False: not a file with tensors. */
static bool stem(char *name)
{
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t n = strlen(name), m = strlen(endings[i]);
        if (n > m && !strcmp(name + n - m, endings[i])) {
            name[n - m] = '\0';
            return true;
        }
    }
    return false;
}

static bool known(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strncmp(name, kinds[i], strlen(kinds[i])))
            return true;
    return false;
}

static bool is_weights(const char *name)
{
    size_t n = strlen(name), m = strlen(weights);

    return n > m && !strcmp(name + n - m, weights);
}

static bool listed(const char *name, size_t len)
{
    for (int i = 0; i < n_names; i++)
        if (strlen(names[i]) == len && !strncmp(names[i], name, len))
            return true;
    return false;
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static void folder_list(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;

    if (dir == NULL) {
        fprintf(stderr, "golden: cannot read %s: %s\n", path, strerror(errno));
        exit(1);
    }
    while ((e = readdir(dir)) != NULL) {
        char *name = names[n_names];
        if (e->d_name[0] == '.' || !strncmp(e->d_name, "README", 6))
            continue;
        snprintf(name, NAME, "%s", e->d_name);
        if (!stem(name) || !known(name) || ++n_names == NAMES) {
            fprintf(stderr, "golden: %s/%s is of no kind that a test knows\n", path, e->d_name);
            exit(1);
        }
    }
    closedir(dir);
    if (!n_names) {
        fprintf(stderr, "golden: no tensors in %s\n", path);
        exit(1);
    }
    qsort(names, (size_t)n_names, NAME, by_text);
    for (int i = 0; i < n_names; i++)
        if (is_weights(names[i]) && !listed(names[i], strlen(names[i]) - strlen(weights))) {
            fprintf(stderr, "golden: %s/%s: the case that these weights belong to is not there\n", path, names[i]);
            exit(1);
        }
}

const char *golden_folder(void)
{
    static char path[4096]; /* filled once, before any test runs */
    const char *golden = getenv("MOLSIEVE_GOLDEN"), *shared = getenv("MOLSIEVE_SHARED");

    if (path[0])
        return path;
    snprintf(path, sizeof path, "%s/golden", shared != NULL && *shared ? shared : "");
    if (golden != NULL && *golden)
        snprintf(path, sizeof path, "%s", golden);
    else if (shared == NULL || !*shared || access(path, R_OK))
        snprintf(path, sizeof path, "%s", MOLSIEVE_TESTS "/data/golden");
    folder_list(path);
    return path;
}

const char *const *golden_names(const char *prefix, pl_arena *mem)
{
    const char **out = PL_NEW(mem, const char *, NAMES + 1);
    int n = 0;

    golden_folder();
    assert_non_null(out);
    for (int i = 0; i < n_names; i++)
        if (!strncmp(names[i], prefix, strlen(prefix)) && !is_weights(names[i]) && (!i || strcmp(names[i], names[i - 1])))
            out[n++] = names[i];
    return out;
}

/* A whole file, unpacked if it is compressed. */
static pl_bytes file_read(const char *path, pl_arena *mem)
{
    size_t room = 1 << 20, n = 0;
    char *data = malloc(room), *copy;
    gzFile f = gzopen(path, "rb");
    int got = 0;

    while (f != NULL && data != NULL && (got = gzread(f, data + n, (unsigned)(room - n))) > 0)
        if ((n += (size_t)got) == room)
            data = realloc(data, room *= 2);
    if (f == NULL || data == NULL || got < 0 || gzclose(f) != Z_OK)
        fail_msg("cannot read %s", path);
    copy = PL_NEW(mem, char, n + 1);
    assert_non_null(copy);
    memcpy(copy, data, n);
    free(data);
    return (pl_bytes){ copy, n };
}

const nn_tensors *golden_open(const char *name, pl_arena *mem)
{
    char path[4352];
    nn_tensors *all = NULL;
    pl_error err = { 0 };

    snprintf(path, sizeof path, "%s/%s.safetensors", golden_folder(), name);
    if (access(path, R_OK))
        snprintf(path, sizeof path, "%s/%s.safetensors.gz", golden_folder(), name);
    if (nn_tensors_parse(&all, file_read(path, mem), mem, &err) != PL_OK)
        fail_msg("%s: %s", path, err.text);
    return all;
}

bool golden_has(const nn_tensors *all, const char *fmt, ...)
{
    char name[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    return nn_tensors_find(all, name) != NULL;
}

const double *golden_get(const nn_tensors *all, size_t *n, pl_arena *mem, const char *fmt, ...)
{
    char name[256];
    const nn_tensor *t;
    pl_error err = { 0 };
    double *out;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    t = nn_tensors_find(all, name);
    if (t == NULL)
        fail_msg("no tensor %s", name);
    out = PL_NEW(mem, double, t->count + 1);
    assert_non_null(out);
    if (nn_tensor_doubles(out, t->count, t, &err) != PL_OK)
        fail_msg("%s", err.text);
    if (n != NULL)
        *n = t->count;
    return out;
}

const int32_t *golden_ints(const nn_tensors *all, size_t *n, pl_arena *mem, const char *name)
{
    const nn_tensor *t = nn_tensors_find(all, name);
    int64_t *wide;
    int32_t *out;

    if (t == NULL)
        fail_msg("no tensor %s", name);
    wide = PL_NEW(mem, int64_t, t->count + 1);
    out = PL_NEW(mem, int32_t, t->count + 1);
    assert_true(wide && out);
    assert_int_equal(nn_tensor_ints(wide, t->count, t, NULL), PL_OK);
    for (size_t k = 0; k < t->count; k++)
        out[k] = (int32_t)wide[k];
    if (n != NULL)
        *n = t->count;
    return out;
}

void golden_check(const char *name, const double *got, const double *want, size_t n, double rel)
{
    double scale = 0.0;

    for (size_t k = 0; k < n; k++)
        scale = fmax(scale, fabs(want[k]));
    for (size_t k = 0; k < n; k++)
        if (!(fabs(got[k] - want[k]) <= rel * scale))
            fail_msg("%s[%zu]: got %.15g, want %.15g, off by %.2g of the largest entry %.6g", name, k, got[k], want[k],
                     fabs(got[k] - want[k]) / scale, scale);
}

double *golden_params(const nn_tensors *all, const nn_se3 *model, const char *prefix, pl_arena *mem)
{
    double *out = PL_NEW(mem, double, model->n_floats);
    size_t n;

    assert_non_null(out);
    for (int32_t k = 0; k < model->n_params; k++) {
        const nn_param *p = &model->param[k];
        const double *w = golden_get(all, &n, mem, "%s%s", prefix, p->name);
        assert_int_equal(n, p->size);
        for (size_t e = 0; e < n; e++)
            out[p->at + e] = w[e];
    }
    return out;
}
