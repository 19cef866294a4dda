/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model file: refused, or every number of every tensor lies inside it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "models/files/model_file.h"
#include "models/tensors/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const nn_tensor *t, const uint8_t *file, size_t size, pl_arena *mem)
{
    const uint8_t *at = t->data;
    double *wide = PL_NEW(mem, double, t->count + 1);
    int64_t *whole = PL_NEW(mem, int64_t, t->count + 1);

    if (at < file || (size_t)(at - file) > size || t->count * nn_dtype_bytes(t->dtype) > size - (size_t)(at - file))
        abort();
    if (wide == NULL || whole == NULL)
        abort();
    (void)nn_tensor_doubles(wide, t->count, t, NULL);
    (void)nn_tensor_ints(whole, t->count, t, NULL);
}

/* Reads the file like `molsieve model info`: from a path. */
static void read_model(const uint8_t *data, size_t size, pl_arena *mem)
{
    int fd = memfd_create("model", MFD_CLOEXEC);
    nn_model_file *m;
    char path[32];

    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    (void)nn_model_read(&m, path, mem, NULL);
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pl_arena *mem = pl_arena_new(1 << 16);
    nn_tensors *all;

    if (mem == NULL)
        abort();
    if (nn_tensors_parse(&all, (pl_bytes){ data, size }, mem, NULL) == PL_OK) {
        for (int i = 0; i < all->n; i++)
            touch(&all->t[i], data, size, mem);
        read_model(data, size, mem);
    }
    pl_arena_free(mem);
    return 0;
}
