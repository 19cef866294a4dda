/* tests/unit/made_machine.h - another machine for the tests of `doctor` and of what computes a model: what the system, plugins and the chemistry worker say is what
 * `made` holds. For a program whose calls of the functions of WRAPS the linker replaces (tests/stages.cmake). Include it once, after
 * cmocka.h. */
#ifndef TESTS_MADE_MACHINE_H
#define TESTS_MADE_MACHINE_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chem/common/confine.h"
#include "chem/worker/worker_client.h"
#include "models/comm/collective.h"
#include "models/cpu/kernels/kernels.h"
#include "models/cuda/plugin.h"
#include "stages/steps/train/distributed.h"

static struct {
    long pages; /* of memory, each of 1,000 bytes; 0: as it is here */
    bool timed; /* the clock is at 10.9 s, then at 12.15 s */
    int looks;
    int limited;     /* the resource that has this limit; the others have none */
    rlim_t limit;    /* 0: it cannot be asked for */
    bool has_device; /* /dev/nvidia0 */
    int gpus;        /* -1: no plugin */
    bool found, cublaslt;
    const char *about; /* each of them; NULL: its number */
    int node;
    const char *plugin, *broken; /* of ranks: its path, and why it does not open */
    const char *kernels;         /* "": none of that name */
    const char *amx;
    long type;
    bool network;
    unsigned long blocks, files; /* free ones; files 0: not counted */
    int locks;                   /* that are given to who asks */
    int forked;                  /* 0: as here; -1: no process */
    bool lost;                   /* it cannot be waited for */
    int ended;                   /* its status */
    const char *missing;         /* why the worker does not start */
    const char *silent;          /* why it says nothing */
    ch_worker_info info;
    const char *refused, *key; /* why aspirin is not prepared; its InChIKey */
    int atoms;
    bool flat;
} made;

/* What the linker puts in place of `name` (tests/stages.cmake), and the function itself. */
#define REAL(name) __real_##name
#define WRAPS(type, name, parameters)     \
    extern type __real_##name parameters; \
    extern type __wrap_##name parameters; \
    type __wrap_##name parameters

WRAPS(long, sysconf, (int what))
{
    if (made.pages == 0 || (what != _SC_PHYS_PAGES && what != _SC_PAGESIZE))
        return REAL(sysconf)(what);
    return what == _SC_PHYS_PAGES ? made.pages : 1000;
}

WRAPS(int, getrlimit, (int which, struct rlimit *out))
{
    const bool is_made = which == made.limited;

    if ((is_made && made.limit == 0) || REAL(getrlimit)(which, out) != 0)
        return -1;
    out->rlim_cur = is_made ? made.limit : RLIM_INFINITY;
    return 0;
}

WRAPS(int, access, (const char *path, int mode))
{
    if (strcmp(path, "/dev/nvidia0") != 0)
        return REAL(access)(path, mode);
    return made.has_device ? 0 : -1;
}

WRAPS(int, clock_gettime, (clockid_t clock, struct timespec *out))
{
    static const struct timespec looked[] = { { 10, 900000000 }, { 12, 150000000 } };

    if (!made.timed)
        return REAL(clock_gettime)(clock, out);
    *out = looked[made.looks++ % 2];
    return 0;
}

static int32_t gpus_count(void) { return made.gpus; }

static void gpu_pci(int32_t device, char *text, size_t n) { (void)snprintf(text, n, "%s", device == 1 ? "" : "0000:3b:00.0"); }

static bool gpu_find(int32_t device, char *text, size_t n)
{
    if (made.about != NULL)
        (void)snprintf(text, n, "%s", made.about);
    else
        (void)snprintf(text, n, made.found ? "GPU %d" : "no driver for %d", (int)device);
    return made.found;
}

static bool gpu_products(nn_gpu *g, char *text, size_t n)
{
    (void)g;
    (void)snprintf(text, n, made.cublaslt ? "cuBLASLt 13" : "not there");
    return made.cublaslt;
}

WRAPS(pl_code, nn_cuda_plugin, (const nn_gpu_ops **out, pl_error *err))
{
    static nn_gpu_ops ops = { .count = gpus_count, .pci = gpu_pci, .find = gpu_find, .cublaslt = gpu_products };

    *out = &ops;
    return made.gpus < 0 ? pl_fail(err, PL_EDEVICE, "no plugin") : PL_OK;
}

WRAPS(int, nn_numa_node, (const char *sys, const char *pci))
{
    (void)sys, (void)pci;
    return made.node;
}

WRAPS(const char *, st_plugin_path, (const char *file, pl_arena *mem))
{
    return made.plugin != NULL ? pl_sprintf(mem, "%s/%s", made.plugin, file) : NULL;
}

static const char *ranks_about(void) { return "Open MPI 4"; }

WRAPS(pl_code, nn_collective_load, (const nn_collective **out, const char *path, pl_error *err))
{
    static const nn_collective kind = { .about = ranks_about };

    (void)path;
    *out = &kind;
    return made.broken != NULL ? pl_fail(err, PL_EDEVICE, "%s", made.broken) : PL_OK;
}

static const nn_cpu_kernels sets[] = { { .name = "wide" }, { .name = "plain" }, { .name = "strange" }, { .name = "other" } };

WRAPS(const nn_cpu_kernels *, nn_cpu_kernels_choose, (void))
{
    if (made.kernels == NULL)
        return &sets[0];
    return made.kernels[0] != '\0' ? &sets[1] : NULL;
}

/* A set of any name. */
WRAPS(pl_code, nn_cpu_kernels_pick, (const nn_cpu_kernels **out, const char *pinned, pl_error *err))
{
    static nn_cpu_kernels named;

    assert_null(pinned);
    named.name = made.kernels != NULL ? made.kernels : sets[0].name;
    *out = &named;
    return named.name[0] != '\0' ? PL_OK : pl_fail(err, PL_ECONFIG, "no kernels");
}

WRAPS(const nn_cpu_kernels *, nn_cpu_kernels_find, (const char *name))
{
    assert_null(name);
    return &sets[0];
}

WRAPS(bool, nn_cpu_kernels_list, (int i, nn_cpu_choice *out))
{
    if (i >= 4)
        return false;
    *out = (nn_cpu_choice){ .kernels = &sets[i], .needs = i == 2 ? "tiles" : "wings", .here = i < 2 };
    return true;
}

WRAPS(const char *, nn_amx_missing, (void)) { return made.amx; }

WRAPS(int, statfs, (const char *path, struct statfs *out))
{
    const int status = REAL(statfs)(path, out);

    out->f_type = made.type;
    return status;
}

WRAPS(bool, pl_is_network_fs, (const char *path))
{
    (void)path;
    return made.network;
}

WRAPS(int, statvfs, (const char *path, struct statvfs *out))
{
    const int status = REAL(statvfs)(path, out);

    out->f_frsize = 1000;
    out->f_bavail = made.blocks;
    out->f_files = made.files > 0 ? 1000 : 0;
    out->f_favail = made.files;
    return status;
}

WRAPS(int, flock, (int fd, int what))
{
    (void)fd, (void)what;
    if (made.locks-- > 0)
        return 0;
    errno = ENOLCK;
    return -1;
}

WRAPS(pid_t, fork, (void))
{
    errno = EAGAIN;
    return made.forked == 0 ? REAL(fork)() : -1;
}

WRAPS(pid_t, waitpid, (pid_t pid, int *status, int options))
{
    const pid_t got = REAL(waitpid)(pid, status, options);

    if (made.ended != 0)
        *status = made.ended;
    errno = ECHILD;
    return made.lost ? -1 : got;
}

WRAPS(pl_code, ch_worker_open, (ch_worker * *out, const ch_worker_opts *opts, pl_error *err))
{
    (void)opts;
    *out = NULL;
    return made.missing != NULL ? pl_fail(err, PL_ECONFIG, "%s", made.missing) : PL_OK;
}

WRAPS(pl_code, ch_worker_hello, (ch_worker * w, ch_worker_info *out, pl_error *err))
{
    (void)w;
    *out = made.info;
    return made.silent != NULL ? pl_fail(err, PL_EIO, "%s", made.silent) : PL_OK;
}

WRAPS(pl_code, ch_worker_prepare,
      (ch_worker * w, const char *text, size_t len, const char *format, const ch_prepare_opts *opts, ch_prepared *out,
       pl_arena *mem, pl_error *err))
{
    static float xyz[3];

    (void)w, (void)opts, (void)mem;
    assert_string_equal(text, "CC(=O)Oc1ccccc1C(=O)O aspirin");
    assert_int_equal(len, strlen(text));
    assert_string_equal(format, "smi");
    if (made.refused != NULL)
        return pl_fail(err, PL_EINPUT, "%s", made.refused);
    *out = (ch_prepared){ .inchikey = made.key, .geometry = "mmff94", .cpu_s = 0.25 };
    out->mol.n_atoms = made.atoms;
    out->mol.xyz = made.flat ? NULL : (float(*)[3])xyz;
    return PL_OK;
}

/* A machine without faults, without GPUs and without plugins. */
static void made_usual(void)
{
    memset(&made, 0, sizeof made);
    made.limit = RLIM_INFINITY;
    made.gpus = -1;
    made.blocks = 1000000;
    made.files = 1000;
    made.locks = 1;
    made.info = (ch_worker_info){ .openbabel = "3.1.1", .n_formats = 140, .confined = CH_CONFINED_ALL };
    made.key = "BSYNRYMUTXBXSQ-UHFFFAOYSA-N";
    made.atoms = 21;
}

#endif
