/* SPDX-License-Identifier: Apache-2.0 */
/* What the head of a model file says, without reading the rest. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "models/files/model_file.h"

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
