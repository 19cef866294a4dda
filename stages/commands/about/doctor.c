/* SPDX-License-Identifier: Apache-2.0 */
#include "stages/commands/about/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chem/worker/worker_client.h"
#include "chem/common/confine.h"
#include "models/cuda/plugin.h"
#include "models/cpu/kernels/amx.h"
#include "models/cpu/kernels/kernels.h"
#include "models/comm/numa.h"
#include "pipeline/base/par.h"
#include "pipeline/base/text.h"
#include "pipeline/store/store.h"
#include "stages/steps/train/distributed.h"
#include "stages/files/data_dir.h"
#include "stages/files/version.h"

void st_find(st_findings *f, const char *name, st_health health, const char *fmt, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (f->n < (int)(sizeof f->list / sizeof f->list[0]))
        f->list[f->n++] = (st_finding){ name, health, pl_strdup(f->mem, text) };
}

/* ---- the machine ---- */

static void find_memory(st_findings *f)
{
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    char size[32];

    st_find(f, "memory", bytes < 1e9 ? ST_NOTE : ST_GOOD, "%s", pl_size_str(bytes, size));
}

static void find_limit(st_findings *f, const char *name, int which, double wanted, const char *remedy)
{
    struct rlimit limit;

    if (getrlimit((unsigned)which, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        st_find(f, name, ST_GOOD, "unlimited");
    else if ((double)limit.rlim_cur < wanted)
        st_find(f, name, ST_NOTE, "%llu; %s", (unsigned long long)limit.rlim_cur, remedy);
    else
        st_find(f, name, ST_GOOD, "%llu", (unsigned long long)limit.rlim_cur);
}

enum { GPUS_SHOWN = 16 };

static const char *where_word(const char *pci, char *buf, size_t size)
{
    int node = nn_numa_node("/sys", pci);

    buf[0] = '\0';
    if (node >= 0)
        snprintf(buf, size, ", NUMA node %d", node);
    return buf;
}

static void find_gpu(st_findings *f)
{
    bool device = access("/dev/nvidia0", F_OK) == 0;
    const nn_gpu_ops *ops;
    char text[256], pci[32], node[32];
    pl_error err = { 0 };

    if (nn_cuda_plugin(&ops, &err) != PL_OK)
        st_find(f, "gpu", device ? ST_NOTE : ST_GOOD, "%s%s", device ? "/dev/nvidia0 is there, but " : "", err.text);
    for (int32_t i = 0; err.code == PL_OK && (i == 0 || i < ops->count()) && i < GPUS_SHOWN; i++) {
        bool good = ops->find(i, text, sizeof text);
        ops->pci(i, pci, sizeof pci);
        st_find(f, "gpu", good || !device ? ST_GOOD : ST_NOTE, "%s%s%s%s", text, good && pci[0] ? ", at " : "", good ? pci : "",
                good && pci[0] ? where_word(pci, node, sizeof node) : "");
    }
    if (err.code == PL_OK && ops->cublaslt(NULL, text, sizeof text))
        st_find(f, "products", ST_GOOD, "%s is here; engine cuda uses it with products: cublaslt", text);
    else if (err.code == PL_OK)
        st_find(f, "products", ST_GOOD, "engine cuda's own kernels; cuBLASLt: %s", text);
}

/* A plugin whose MPI is not loaded, as on a login node, is no fault; any other that does not open is broken. */
static void find_ranks(st_findings *f)
{
    const char *path = st_plugin_path(ST_MPI_PLUGIN, f->mem);
    const nn_collective *kind = NULL;
    pl_error err = { 0 };

    if (path == NULL)
        st_find(f, "ranks", ST_GOOD, "no plugin %s: ranks sum over TCP", ST_MPI_PLUGIN);
    else if (nn_collective_load(&kind, path, &err) != PL_OK)
        st_find(f, "ranks", strstr(err.text, "cannot open shared object file") != NULL ? ST_NOTE : ST_BAD, "%s", err.text);
    else
        st_find(f, "ranks", ST_GOOD, "plugin %s, %s", path, kind->about());
}

static void find_nccl(st_findings *f)
{
    const char *path = st_plugin_path(ST_NCCL_PLUGIN, f->mem);
    const nn_collective *kind = NULL;
    pl_error err = { 0 };

    if (path == NULL)
        st_find(f, "nccl", ST_GOOD, "no plugin %s: ranks sum over MPI or TCP", ST_NCCL_PLUGIN);
    else if (nn_collective_load(&kind, path, &err) != PL_OK)
        st_find(f, "nccl", ST_NOTE, "%s", err.text);
    else
        st_find(f, "nccl", ST_GOOD, "plugin %s, %s", path, kind->about());
}

/* Which sets run here, best first, and what the others lack. */
static const char *kernels_words(st_findings *f, bool here)
{
    const char *words = "";
    nn_cpu_choice c;

    for (int i = 0; nn_cpu_kernels_list(i, &c); i++)
        if (c.here == here)
            words = pl_sprintf(f->mem, "%s%s%s%s%s", words != NULL ? words : "", words != NULL && words[0] ? ", " : "",
                               c.kernels->name, here ? "" : " needs ", here ? "" : c.needs);
    return words != NULL ? words : "";
}

static void find_kernels(st_findings *f)
{
    const char *forced = getenv("MOLSIEVE_CPU"), *lacking = kernels_words(f, false);
    const nn_cpu_kernels *k = nn_cpu_kernels_choose();

    if (k == NULL)
        st_find(f, "kernels", ST_BAD, "MOLSIEVE_CPU=%s: no such set of kernels on this processor; unset it",
                forced != NULL ? forced : "");
    else if (forced != NULL && forced[0])
        st_find(f, "kernels", ST_GOOD, "%s, forced by MOLSIEVE_CPU; without it %s", k->name, nn_cpu_kernels_find(NULL)->name);
    else
        st_find(f, "kernels", ST_GOOD, "%s, the best of those that run here: %s%s%s", k->name, kernels_words(f, true),
                lacking[0] ? "; not here: " : "", lacking);
    st_find(f, "matrix tiles", ST_GOOD, "%s",
            nn_amx_missing() != NULL ? nn_amx_missing() : "AMX with bf16, permission granted; precision bf16 and bf16x3 use it");
}

void st_doctor_machine(st_findings *f)
{
    struct utsname os;
    char cpu[256];

    st_find(f, "version", ST_GOOD, "molsieve %s, commit %s", st_version, st_commit);
    st_find(f, "sqlite", sqlite3_libversion_number() < 3022000 ? ST_BAD : ST_GOOD, "%s%s", sqlite3_libversion(),
            sqlite3_threadsafe() ? "" : ", built without threads");
    if (uname(&os) == 0)
        st_find(f, "system", ST_GOOD, "%s %s %s", os.sysname, os.release, os.machine);
    st_find(f, "processors", ST_GOOD, "%d usable; as many workers and threads unless a workflow says otherwise", pl_cpu_count());
    st_find(f, "features", ST_GOOD, "%s", st_cpu_features(cpu, sizeof cpu));
    find_kernels(f);
    find_memory(f);
    find_gpu(f);
    find_ranks(f);
    find_nccl(f);
    find_limit(f, "open files", RLIMIT_NOFILE, 256, "raise it with ulimit -n 1024");
    find_limit(f, "address space", RLIMIT_AS, 4e9, "a chemistry worker takes up to 2 GiB; ulimit -v unlimited");
    find_limit(f, "file size", RLIMIT_FSIZE, 1e10, "databases may grow beyond it; ulimit -f unlimited");
    find_limit(f, "cpu seconds", RLIMIT_CPU, 3600, "the program is killed when they are used up; run it as a job");
}

/* ---- the disk ---- */

static const char *fs_name(long magic, char buf[32])
{
    static const struct {
        long magic;
        const char *name;
    } known[] = { { 0xEF53, "ext4" },     { 0x58465342, "xfs" },    { 0x9123683E, "btrfs" }, { 0x01021994, "tmpfs" },
                  { 0x6969, "nfs" },      { 0x0BD00BD0, "lustre" }, { 0x47504653, "gpfs" },  { 0x794C7630, "overlayfs" },
                  { 0xFF534D42, "cifs" }, { 0x65735546, "fuse" },   { 0x2FC12FC1, "zfs" },   { 0x19830326, "beegfs" } };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].magic == magic)
            return known[i].name;
    (void)snprintf(buf, 32, "type 0x%lx", (unsigned long)magic);
    return buf;
}

static void find_space(st_findings *f, const char *dir)
{
    struct statfs fs;
    struct statvfs v;
    char buf[32], size[32];

    if (statfs(dir, &fs) == 0)
        st_find(f, "file system", pl_is_network_fs(dir) ? ST_NOTE : ST_GOOD, "%s%s", fs_name((long)fs.f_type, buf),
                pl_is_network_fs(dir) ? ", on the network: databases use the TRUNCATE journal; one run at a time" : ", local");
    if (statvfs(dir, &v) != 0)
        return;
    st_find(f, "free space", (double)v.f_bavail * (double)v.f_frsize < 1e9 ? ST_NOTE : ST_GOOD, "%s",
            pl_size_str((double)v.f_bavail * (double)v.f_frsize, size));
    if (v.f_files > 0 && v.f_favail < 100)
        st_find(f, "free files", ST_BAD, "%llu left on this file system", (unsigned long long)v.f_favail);
}

/* A second descriptor must be refused while the first holds the lock. */
static void find_lock(st_findings *f, const char *path)
{
    int a = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), b = open(path, O_RDWR | O_CLOEXEC);
    bool first = a >= 0 && flock(a, LOCK_EX | LOCK_NB) == 0, second = b >= 0 && flock(b, LOCK_EX | LOCK_NB) == 0;

    if (a < 0)
        st_find(f, "locks", ST_BAD, "%s: %s; choose a folder that can be written", path, strerror(errno));
    else if (!first)
        st_find(f, "locks", ST_BAD, "this file system has no locks (%s); use a local disk for workdir", strerror(errno));
    else if (second)
        st_find(f, "locks", ST_BAD, "locks do not exclude on this file system; never start two runs on one workdir");
    else
        st_find(f, "locks", ST_GOOD, "work");
    if (a >= 0)
        (void)close(a);
    if (b >= 0)
        (void)close(b);
    (void)unlink(path);
}

/* Tests SQLite's own locks, which work between processes: a child must be refused the lock that we hold. */
static void find_range_lock(st_findings *f, const char *path)
{
    struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), status = 0;
    bool held = fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
    pid_t child = held ? fork() : -1;

    if (child == 0)
        _exit(fcntl(fd, F_SETLK, &lock) == 0 ? 1 : 0);
    if (!held)
        st_find(f, "range locks", ST_BAD, "this file system has none (%s), a database needs them; use a local disk for workdir",
                strerror(errno));
    else if (child < 0 || waitpid(child, &status, 0) != child)
        st_find(f, "range locks", ST_NOTE, "not tried: %s", strerror(errno));
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        st_find(f, "range locks", ST_BAD,
                "two processes get the same one here (Lustre: mount with flock); use a local disk for "
                "workdir");
    else
        st_find(f, "range locks", ST_GOOD, "work between processes");
    if (fd >= 0)
        (void)close(fd);
    (void)unlink(path);
}

static void find_database(st_findings *f, const char *path)
{
    const char *journal = pl_sprintf(f->mem, "%s-journal", path);
    sqlite3 *db = NULL;
    struct timespec t0, t1;
    char *text = NULL;
    int rc;

    (void)clock_gettime(CLOCK_MONOTONIC, &t0);
    rc = sqlite3_open(path, &db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db,
                          "PRAGMA journal_mode=TRUNCATE; PRAGMA synchronous=FULL; CREATE TABLE t(x);"
                          "INSERT INTO t VALUES(1); PRAGMA integrity_check;",
                          NULL, NULL, &text);
    (void)clock_gettime(CLOCK_MONOTONIC, &t1);
    if (rc == SQLITE_OK)
        st_find(f, "database", ST_GOOD, "created and committed durably in %.0f ms",
                (double)(t1.tv_sec - t0.tv_sec) * 1e3 + (double)(t1.tv_nsec - t0.tv_nsec) / 1e6);
    else
        st_find(f, "database", ST_BAD, "cannot be written here: %s", text != NULL ? text : sqlite3_errstr(rc));
    sqlite3_free(text);
    (void)sqlite3_close(db);
    (void)unlink(path);
    if (journal != NULL)
        (void)unlink(journal);
}

void st_doctor_disk(st_findings *f, const char *dir)
{
    const char *lock = pl_sprintf(f->mem, "%s/.molsieve-doctor-%ld.lock", dir, (long)getpid());
    const char *db = pl_sprintf(f->mem, "%s/.molsieve-doctor-%ld.db", dir, (long)getpid());

    if (access(dir, W_OK | X_OK) != 0) {
        st_find(f, "folder", ST_BAD, "%s: %s; choose a folder that can be written", dir, strerror(errno));
        return;
    }
    st_find(f, "folder", ST_GOOD, "%s", dir);
    find_space(f, dir);
    if (lock == NULL || db == NULL)
        return;
    find_lock(f, lock);
    find_range_lock(f, lock);
    find_database(f, db);
}

/* ---- chemistry ---- */

/* Aspirin: its InChIKey is known, and its conformer is built quickly. */
static void find_molecule(st_findings *f, ch_worker *w)
{
    static const char smiles[] = "CC(=O)Oc1ccccc1C(=O)O aspirin", key[] = "BSYNRYMUTXBXSQ-UHFFFAOYSA-N";
    ch_prepare_opts opts = ch_prepare_defaults();
    ch_prepared got = { 0 };
    pl_error err = { 0 };

    if (ch_worker_prepare(w, smiles, strlen(smiles), "smi", &opts, &got, f->mem, &err) != PL_OK)
        st_find(f, "chemistry", ST_BAD, "aspirin could not be prepared: %s", err.text);
    else if (strcmp(got.inchikey, key) != 0)
        st_find(f, "chemistry", ST_BAD, "aspirin has the InChIKey %s here, not %s: another Open Babel, or its data are damaged",
                got.inchikey, key);
    else if (got.mol.n_atoms != 21 || got.mol.xyz == NULL)
        st_find(f, "chemistry", ST_BAD, "aspirin came back with %d atoms%s", got.mol.n_atoms,
                got.mol.xyz != NULL ? "" : " and no 3D structure: is BABEL_DATADIR right?");
    else
        st_find(f, "chemistry", ST_GOOD, "aspirin: right InChIKey, 21 atoms, 3D by %s in %.2f CPU s", got.geometry, got.cpu_s);
}

/* The worker reads untrusted files: reports what an exploited library could not reach. */
static void find_confined(st_findings *f, int confined)
{
    st_find(f, "confined", confined == CH_CONFINED_ALL ? ST_GOOD : ST_NOTE, "%s; %s; %s",
            confined & CH_CONFINED_FILES ? "opens nothing but the library's data (Landlock)"
                                         : "can open every file: this kernel has no Landlock",
            confined & CH_CONFINED_CALLS ? "no network, no other program, no writing (seccomp)"
                                         : "all system calls: no seccomp filter may be set here",
            confined & CH_CONFINED_GROWTH ? "writes no file (limit)" : "files not limited: built with a sanitizer");
}

void st_doctor_chemistry(st_findings *f)
{
    const char *data = getenv("BABEL_DATADIR");
    ch_worker_info info = { 0 };
    ch_worker *w = NULL;
    pl_error err = { 0 };

    if (ch_worker_open(&w, NULL, &err) != PL_OK || ch_worker_hello(w, &info, &err) != PL_OK) {
        st_find(f, "worker", ST_BAD, "%s", err.text);
    } else {
        st_find(f, "worker", ST_GOOD, "molsieve-chem with Open Babel %s, %d formats", info.openbabel, info.n_formats);
        st_find(f, "data folder", ST_GOOD, "%s", data != NULL ? data : "the library's own");
        find_confined(f, info.confined);
        find_molecule(f, w);
    }
    ch_worker_close(w);
}
