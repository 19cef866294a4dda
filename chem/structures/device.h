/* chem/structures/device.h - a GPU that builds structures (cuda/ops.h), through libmolsieve_cuda.so.
 *
 * One ch_device has a stream and memory of its own and serves one thread at a time; several of one GPU work side by side. */
#ifndef CH_DEVICE_H
#define CH_DEVICE_H

#include "chem/structures/cuda/ops.h"
#include "chem/structures/pack.h"

typedef struct ch_device ch_device;

/* Whether structures can be built on GPU `device`. text: its name and compute capability. ECONFIG: no plugin or no such GPU. */
pl_code ch_device_find(int32_t device, char *text, size_t n, pl_error *err);

/* ECONFIG as above; EDEVICE: the GPU cannot be used, for example because another program has it. */
pl_code ch_device_open(ch_device **out, int32_t device, pl_error *err);
void ch_device_close(ch_device *d); /* NULL is fine */

/* Copies molecules to the GPU, where they stay until the next load. EDEVICE: the GPU failed; only close is of use then. */
pl_code ch_device_load(ch_device *d, const ch_packed *const *molecules, int32_t n, pl_error *err);

/* Runs jobs of the molecules loaded, and waits. xyz[n_floats]: as ch_gpu_job.xyz says, in and out. EDEVICE. */
pl_code ch_device_run(ch_device *d, const ch_gpu_job *jobs, int32_t n, ch_gpu_result *results, float *xyz, int64_t n_floats,
                      pl_error *err);

#endif
