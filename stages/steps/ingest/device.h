/* stages/steps/ingest/device.h - whether `prepare` builds structures on a GPU. */
#ifndef ST_DEVICE_H
#define ST_DEVICE_H

#include "pipeline/workflow/workflow.h"

/* conformers.device as written. */
enum { ST_DEVICE_AUTO, ST_DEVICE_CPU, ST_DEVICE_CUDA };

/* What the workflow asks for. IF_THERE: `auto`, and some stage has `engine: auto`. A stage's engine changes no key, so neither
 * does `auto`: the run's level and the keys of the cache of structures say which device it was. `cuda` is part of the key. */
enum st_device_wish { ST_WISH_CPU, ST_WISH_CUDA, ST_WISH_IF_THERE };

/* The GPU to build on: the first of the first stage that has `engine: cuda` or `auto`; 0 where none is named. */
int32_t st_device_number(const pl_workflow *wf);

/* device: as written. `auto` is CUDA if a stage has `engine: cuda`. Depends on the workflow alone, not on the machine. */
enum st_device_wish st_device_wish_of(const pl_workflow *wf, int32_t device);

/* Whether the GPU builds, here. */
bool st_device_builds(enum st_device_wish wish);

/* Adds a problem if the workflow asks for a GPU that is not there. */
void st_device_check(const pl_step *step, enum st_device_wish wish, pl_problems *problems);

/* The part of a run's level: "avx2", or "avx2 and cuda (NAME, compute capability 9.0)". In mem; NULL: no memory. */
const char *st_device_level(enum st_device_wish wish, const char *kernels, pl_arena *mem);

#endif
