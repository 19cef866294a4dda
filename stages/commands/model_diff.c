/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/model_diff.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chem/molecule/element.h"
#include "pipeline/cli/cmd.h"

enum { SHOWN = 10 }; /* tensors */

const char *st_model_plain(const char *s, pl_arena *mem)
{
    pl_text clean = { 0 };
    const char *copy;

    pl_text_add_clean(&clean, s != NULL ? s : "?", s != NULL ? strlen(s) : 1, 200);
    copy = pl_strdup(mem, pl_text_str(&clean));
    pl_text_free(&clean);
    return copy != NULL ? copy : "?";
}

static bool text_diff(const char *key, const json_t *a, const json_t *b, pl_arena *mem)
{
    char *x, *y;

    if (json_equal(a, b))
        return false;
    x = json_dumps(a, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    y = json_dumps(b, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    pl_cmd_print("%s: %.200s -> %.200s\n", st_model_plain(key, mem), x != NULL ? x : "nothing", y != NULL ? y : "nothing");
    free(x);
    free(y);
    return true;
}

static bool object_diff(const char *prefix, json_t *a, json_t *b, pl_arena *mem);

/* What is said of two whole lists ends after 200 bytes: those of as many objects are compared one by one. */
static bool are_lists(const json_t *a, const json_t *b)
{
    return json_array_size(a) > 0 && json_array_size(a) == json_array_size(b) && json_is_object(json_array_get(a, 0)) &&
           json_is_object(json_array_get(b, 0));
}

static bool value_diff(const char *path, json_t *a, json_t *b, pl_arena *mem)
{
    char one[280];
    bool differ = false;

    if (strlen(path) >= 200)
        return text_diff(path, a, b, mem);
    if (json_is_object(a) && json_is_object(b))
        return object_diff(path, a, b, mem);
    if (!are_lists(a, b))
        return text_diff(path, a, b, mem);
    for (size_t k = 0; k < json_array_size(a); k++) {
        (void)snprintf(one, sizeof one, "%s[%zu]", path, k);
        differ |= value_diff(one, json_array_get(a, k), json_array_get(b, k), mem);
    }
    return differ;
}

static bool object_diff(const char *prefix, json_t *a, json_t *b, pl_arena *mem)
{
    const char *key;
    json_t *value;
    char path[256];
    bool differ = false;

    json_object_foreach(a, key, value) {
        (void)snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "." : "", key);
        differ |= value_diff(path, value, json_object_get(b, key), mem);
    }
    json_object_foreach(b, key, value) {
        (void)snprintf(path, sizeof path, "%s%s%s", prefix, prefix[0] ? "." : "", key);
        if (json_object_get(a, key) == NULL)
            differ |= text_diff(path, NULL, value, mem);
    }
    return differ;
}

/* How a tensor differs. All numbers are finite, as files with others are refused. */
typedef struct tensor_diff {
    const char *name, *what; /* what NULL: by numbers */
    int32_t network;         /* of which of several   */
    double max, relative;    /* largest difference; and as a part of the largest number of the first file */
} tensor_diff;

/* Order: tensors that cannot be compared first, then by relative difference, then by name. */
static int compare_diffs(const void *a, const void *b)
{
    const tensor_diff *x = a, *y = b;

    if (x->relative != y->relative)
        return x->relative < y->relative ? 1 : -1;
    if (x->network != y->network)
        return x->network < y->network ? -1 : 1;
    return strcmp(x->name, y->name);
}

static tensor_diff tensor_differs(const nn_model_file *a, const nn_model_file *b, int32_t network, int32_t k)
{
    const nn_param *p = &a->model->param[k];
    const int32_t j = nn_se3_find(b->model, p->name);
    const float *one = nn_model_params(a, network) + p->at, *other;
    tensor_diff d = { .name = p->name, .network = network };
    double largest = 0;

    if (j < 0 || b->model->param[j].size != p->size) {
        d.what = j < 0 ? "only in the first" : "of another shape";
        d.max = d.relative = INFINITY;
        return d;
    }
    other = nn_model_params(b, network) + b->model->param[j].at;
    for (size_t i = 0; i < p->size; i++) {
        const double x = (double)one[i];
        d.max = fmax(d.max, fabs(x - (double)other[i]));
        largest = fmax(largest, fabs(x));
    }
    d.relative = d.max > 0 ? d.max / largest : 0; /* infinite where the first has zeros only */
    return d;
}

static void print_tensors(const tensor_diff *d, int n, int n_all, int shown)
{
    pl_cmd_print("weights: %d of %d tensors differ%s\n", n, n_all, n > shown ? "; those that differ most:" : "");
    for (int k = 0; k < shown; k++) {
        char network[32] = "";
        if (d[k].network > 0)
            (void)snprintf(network, sizeof network, "networks.%d.", (int)d[k].network);
        if (d[k].what != NULL)
            pl_cmd_print("  %s%s: %s\n", network, d[k].name, d[k].what);
        else
            pl_cmd_print("  %s%s: largest difference %.3g, %.3g %% of the largest number\n", network, d[k].name, d[k].max,
                         100 * d[k].relative);
    }
    if (n > shown)
        pl_cmd_print("  and %d more; --all for every one\n", n - shown);
}

static bool same_tensor(const nn_tensor *a, const nn_tensor *b)
{
    return a->dtype == b->dtype && a->count == b->count && memcmp(a->data, b->data, a->count * nn_dtype_bytes(a->dtype)) == 0;
}

/* Tensors of the members of a that are not the same in b, or -1 and err. */
static int members_diff(const nn_model_file *a, const nn_model_file *b, pl_arena *mem, pl_error *err)
{
    nn_tensor *x, *y;
    const char **json;
    int n_x, n_y, n = 0;

    if (nn_members_tensors(&x, &n_x, &json, &a->members, mem, err) != PL_OK ||
        nn_members_tensors(&y, &n_y, &json, &b->members, mem, err) != PL_OK)
        return -1;
    for (int k = 0; k < n_x; k++) {
        int j = 0;
        while (j < n_y && strcmp(x[k].name, y[j].name) != 0)
            j++;
        if (j < n_y && same_tensor(&x[k], &y[j]))
            continue;
        pl_cmd_print("%s: %s\n", x[k].name, j == n_y ? "only in the first" : "differs");
        n++;
    }
    return n;
}

/* Of the networks that both have; that one has more is told with the settings. -1 and err: no memory. */
static int tensors_diff(const nn_model_file *a, const nn_model_file *b, bool all, pl_arena *mem, pl_error *err)
{
    const int32_t networks = nn_model_networks(a) < nn_model_networks(b) ? nn_model_networks(a) : nn_model_networks(b);
    int n = 0, n_all = networks * a->model->n_params;
    tensor_diff *d = PL_NEW(mem, tensor_diff, n_all + b->model->n_params);

    if (d == NULL) {
        (void)pl_fail(err, PL_ENOMEM, "tensors to compare");
        return -1;
    }
    for (int32_t k = 0; k < n_all; k++) {
        d[n] = tensor_differs(a, b, k / a->model->n_params, k % a->model->n_params);
        n += d[n].max > 0;
    }
    for (int32_t k = 0; k < b->model->n_params; k++)
        if (nn_se3_find(a->model, b->model->param[k].name) < 0) {
            d[n++] = (tensor_diff){
                .name = b->model->param[k].name, .what = "only in the second", .max = INFINITY, .relative = INFINITY
            };
            n_all++;
        }
    qsort(d, (size_t)n, sizeof *d, compare_diffs);
    if (n > 0)
        print_tensors(d, n, n_all, all || n < SHOWN ? n : SHOWN);
    return n;
}

/* How many of a's molecules b has not; both are sorted. */
static int32_t missing_from(const nn_domain *a, const nn_domain *b)
{
    int32_t n = 0, k = 0;

    for (int32_t i = 0; i < a->n; i++) {
        while (k < b->n && strcmp(b->key[k], a->key[i]) < 0)
            k++;
        n += k == b->n || strcmp(b->key[k], a->key[i]) != 0;
    }
    return n;
}

static bool domain_diff(const nn_domain *a, const nn_domain *b)
{
    if (nn_domain_same(a, b))
        return false;
    pl_cmd_print("domain: %d -> %d molecules; %d only in the first, %d only in the second\n", (int)a->n, (int)b->n,
                 (int)missing_from(a, b), (int)missing_from(b, a));
    return true;
}

/* Of targets that both models have in the same place; nothing where the molecules differ. */
static bool measured_diff(const nn_model_file *a, const nn_model_file *b)
{
    const int32_t n = a->conf.outputs < b->conf.outputs ? a->conf.outputs : b->conf.outputs;
    bool differ = false;

    for (int32_t k = 0; k < n && nn_domain_same(&a->domain, &b->domain); k++) {
        if (nn_domain_same_of(&a->domain, k, &b->domain, k))
            continue;
        pl_cmd_print("domain: other training molecules have %s\n", b->target[k].name);
        differ = true;
    }
    return differ;
}

static bool seen_diff(const nn_seen *a, const nn_seen *b)
{
    if (nn_seen_same(a, b))
        return false;
    pl_cmd_print("validation: %d -> %d molecules%s\n", (int)a->n, (int)b->n, a->n == b->n ? ", not the same" : "");
    return true;
}

int st_model_diff(const nn_model_file *a, const nn_model_file *b, bool all, pl_arena *mem)
{
    json_t *x = json_loads(nn_model_metadata(a, mem), 0, NULL), *y = json_loads(nn_model_metadata(b, mem), 0, NULL);
    bool differ = object_diff("", x, y, mem);
    differ |= domain_diff(&a->domain, &b->domain);
    differ |= measured_diff(a, b);
    differ |= seen_diff(&a->seen, &b->seen);
    pl_error err = { 0 };
    const int n_members = members_diff(a, b, mem, &err);
    const int n_network = n_members >= 0 && a->model != NULL && b->model != NULL ? tensors_diff(a, b, all, mem, &err) : 0;

    json_decref(x);
    json_decref(y);
    if (n_members < 0 || n_network < 0)
        return pl_cmd_fail(&err);
    differ |= n_members + n_network > 0;
    if (!differ)
        pl_cmd_print("no difference\n");
    return differ ? 1 : 0;
}
