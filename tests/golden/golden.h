/* tests/golden/golden.h - opening the stored tensors of the reference and
 * comparing with them. A failing comparison names the tensor and the index. */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include <stddef.h>

#include "models/network/se3.h"
#include "models/tensors/safetensors.h"

/* The folder with the golden files: $MOLSIEVE_GOLDEN, else $MOLSIEVE_SHARED/golden if it exists, else
 * tests/data/golden. Exits with 1 if it cannot be read or has a file of a kind that no test knows. */
const char *golden_folder(void);

/* The names, without ".safetensors" or ".safetensors.gz", of the cases in the folder that begin with `prefix`,
 * sorted. Files with the weights of a case are not listed. Allocated in mem, NULL-terminated. */
const char *const *golden_names(const char *prefix, pl_arena *mem);

/* NAME.safetensors or NAME.safetensors.gz in the folder; a failed read fails the test. */
const nn_tensors *golden_open(const char *name, pl_arena *mem);

/* The tensor called by the format, as doubles in the arena; it must exist. */
const double *golden_get(const nn_tensors *all, size_t *n, pl_arena *mem, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
const int32_t *golden_ints(const nn_tensors *all, size_t *n, pl_arena *mem, const char *name);
bool golden_has(const nn_tensors *all, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* |got - want| <= rel * (largest |want|), entry by entry. */
void golden_check(const char *name, const double *got, const double *want, size_t n, double rel);

/* All parameters of a model from the tensors "w.NAME" (or "NAME" when prefix is ""). */
double *golden_params(const nn_tensors *all, const nn_se3 *model, const char *prefix, pl_arena *mem);

#endif
