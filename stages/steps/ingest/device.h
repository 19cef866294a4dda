/* stages/steps/ingest/device.h - whether `prepare` builds structures on a GPU. */
#ifndef ST_DEVICE_H
#define ST_DEVICE_H

#include "pipeline/workflow/workflow.h"

/* conformers.device. A GPU gives other last digits, and at times another conformer: `cuda` is part of the key of `prepare`. */
enum { ST_DEVICE_CPU, ST_DEVICE_CUDA };

/* The GPU to build on: the first of the first stage that has `engine: cuda` or `auto`; 0 where none is named. */
int32_t st_device_number(const pl_workflow *wf);

/* Adds a problem if there is no GPU. */
void st_device_check(const pl_step *step, pl_problems *problems);

/* The part of a run's level: "avx2 and cuda (NAME, compute capability 9.0)". In mem; NULL: no memory. */
const char *st_device_level(const char *kernels, pl_arena *mem);

#endif
