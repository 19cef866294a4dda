/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a model file says, without reading the rest. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "models/files/model_file.h"
#include "models/files/model_file_parts.h"
#include "pipeline/base/text.h"

enum { LENGTH = 8, HEAD_MAX = 64 << 20 };

/* The JSON header of a safetensors file; NULL: it cannot be read. */
static json_t *head_read(FILE *f)
{
    unsigned char length[LENGTH];
    uint64_t n = 0;
    char *text;
    json_t *head = NULL;

    if (fread(length, 1, LENGTH, f) != LENGTH)
        return NULL;
    for (int k = LENGTH - 1; k >= 0; k--)
        n = n << 8 | length[k];
    text = n <= HEAD_MAX ? malloc((size_t)n + 1) : NULL;
    if (text != NULL && fread(text, 1, (size_t)n, f) == (size_t)n)
        head = json_loadb(text, (size_t)n, 0, NULL);
    free(text);
    return head;
}

/* The list of columns in the metadata `inputs`, which is JSON in a text. NULL: there is none. */
static json_t *columns_list(const json_t *head)
{
    const char *text = json_string_value(json_object_get(json_object_get(head, "__metadata__"), "inputs"));
    json_t *inputs = text != NULL ? json_loads(text, 0, NULL) : NULL, *list = json_incref(json_object_get(inputs, "columns"));

    json_decref(inputs);
    return list;
}

/* The targets of the metadata; of one alone that one. NULL: there are none. */
static json_t *targets_list(const json_t *head)
{
    const char *text = json_string_value(json_object_get(json_object_get(head, "__metadata__"), "target"));
    json_t *target = text != NULL ? json_loads(text, 0, NULL) : NULL, *list = json_incref(json_object_get(target, "targets"));

    if (list == NULL && target != NULL)
        list = json_pack("[O]", target);
    json_decref(target);
    return list;
}

/* The names in the list of a model's head, at most max, and with `unit` not NULL their units, "" where there is none; -1: no memory. */
static int32_t names_read(const char *name[], const char *unit[], int32_t max, json_t *(*list_of)(const json_t *head),
                          const char *path, pl_arena *mem)
{
    FILE *f = fopen(path, "rbe");
    json_t *head = f != NULL ? head_read(f) : NULL, *list = list_of(head);
    int32_t n = 0;

    for (size_t k = 0; k < json_array_size(list) && n >= 0 && n < max; k++) {
        const char *one = json_string_value(json_object_get(json_array_get(list, k), "name"));
        const char *of = json_string_value(json_object_get(json_array_get(list, k), "unit"));
        if (one == NULL)
            continue;
        name[n] = pl_strdup(mem, one);
        if (unit != NULL)
            unit[n] = pl_strdup(mem, of != NULL ? of : "");
        n = name[n] != NULL && (unit == NULL || unit[n] != NULL) ? n + 1 : -1;
    }
    json_decref(list);
    json_decref(head);
    if (f != NULL)
        (void)fclose(f);
    return n;
}

int32_t nn_model_column_names(const char *name[NN_COLUMNS_MAX], const char *path, pl_arena *mem)
{
    return names_read(name, NULL, NN_COLUMNS_MAX, columns_list, path, mem);
}

int32_t nn_model_target_names(const char *name[NN_TARGETS_MAX], const char *unit[NN_TARGETS_MAX], const char *path, pl_arena *mem)
{
    return names_read(name, unit, NN_TARGETS_MAX, targets_list, path, mem);
}

bool nn_model_may_have_network(const char *path)
{
    FILE *f = fopen(path, "rbe");
    json_t *head = f != NULL ? head_read(f) : NULL;
    const json_t *meta = json_object_get(head, "__metadata__");
    const bool without = json_object_get(meta, "family") != NULL && json_object_get(meta, "model") == NULL;

    json_decref(head);
    if (f != NULL)
        (void)fclose(f);
    return !without;
}

bool nn_model_has_basis(const char *path)
{
    FILE *f = fopen(path, "rbe");
    json_t *head = f != NULL ? head_read(f) : NULL;
    const char *text = json_string_value(json_object_get(json_object_get(head, "__metadata__"), "model"));
    json_t *model = text != NULL ? json_loads(text, 0, NULL) : NULL;
    const char *basis = json_string_value(json_object_get(json_object_get(model, "radial"), "basis"));
    const bool has = basis != NULL && strcmp(basis, nn_basis_names[NN_BASIS_DISTANCE]) != 0;

    json_decref(model);
    json_decref(head);
    if (f != NULL)
        (void)fclose(f);
    return has;
}
