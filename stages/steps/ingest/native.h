/* stages/steps/ingest/native.h - structures by molsieve's own builder (chem/structures), for the stage `prepare`.
 *
 * What it cannot build (an element or ion that MMFF94 does not know, several parts, no attempt that keeps the stereo) it leaves to
 * Open Babel, with the reason in ch_prepared.fallback. Read-only after st_native_open: threads share it, each with its own scratch. */
#ifndef ST_NATIVE_H
#define ST_NATIVE_H

#include "chem/structures/device.h"
#include "chem/structures/kernels.h"
#include "chem/structures/parameters.h"
#include "chem/worker/worker_client.h"

/* Raised when the same molecule would get another structure. Part of keys. */
#define ST_NATIVE_VERSION "3"
#define ST_ENSEMBLE_VERSION ".3" /* behind it, where several are asked for */

typedef struct st_native {
    ch_mmff parameters;
    const ch_kernels *kernels;
    const ch_prepare_opts *opts; /* borrowed: seed, force_field, n_structures, window, dielectric */
    int64_t max_work;            /* ch_structure_options.max_work */
} st_native;

/* Reads the tables of MMFF94 and chooses the kernels. tables: folder of Open Babel's parameter tables (ch_worker_info.tables).
 * ECONFIG: no tables, or MOLSIEVE_CPU names kernels that this processor lacks. EDATA: a damaged table. */
pl_code st_native_tables(ch_mmff *out, const ch_kernels **kernels, const char *tables, pl_arena *mem, pl_error *err);

/* The errors are those of st_native_tables. seconds: CPU time a molecule may take, as a count of steps
 * so that the result does not depend on the speed of the machine. */
pl_code st_native_open(st_native *out, const char *tables, const ch_prepare_opts *opts, double seconds, pl_arena *mem,
                       pl_error *err);

/* The same with the tables of the worker's library, which a worker that is started for it names. */
pl_code st_native_find(st_native *out, const ch_prepare_opts *opts, double seconds, pl_arena *mem, pl_error *err);

/* Builds the structures of all, as ch_known.build says: on the GPU, or one after the other on the CPU if device is NULL. scratch is
 * reset. EDEVICE: the GPU failed. */
pl_code st_native_build(const st_native *native, ch_device *device, const ch_to_build *all, int32_t n, pl_arena *mem,
                        pl_arena *scratch, pl_error *err);

#endif
