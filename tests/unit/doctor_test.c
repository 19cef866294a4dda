/* SPDX-License-Identifier: Apache-2.0 */
/* What `doctor` finds on other machines than this one (made_machine.h): each finding with its health, word for word; and which GPUs a
 * model is computed on there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "stages/commands/about/doctor.h"
#include "stages/steps/train/compute.h"
#include "tests/unit/made_machine.h"
#include "toy.h"

static st_findings all;
static char folder[256];

static int begin(void **state)
{
    (void)state;
    made_usual();
    unsetenv("MOLSIEVE_CPU");
    unsetenv("BABEL_DATADIR");
    all = (st_findings){ .mem = pl_arena_new(1 << 12) };
    toy_directory(folder);
    return all.mem == NULL;
}

static int end(void **state)
{
    (void)state;
    pl_arena_free(all.mem);
    toy_remove(folder);
    return sqlite3_memory_used() == 0 ? 0 : -1; /* no database is open */
}

/* "note: 255" of each finding of this name, with bars between; "" none. */
static const char *found(const char *name)
{
    static const char *const health[] = { "ok", "note", "bad" };
    static char said[2048];
    size_t n = 0;

    said[0] = '\0';
    for (int i = 0; i < all.n; i++)
        if (strcmp(all.list[i].name, name) == 0)
            n += (size_t)snprintf(said + n, sizeof said - n, "%s%s: %s", n > 0 ? "|" : "", health[all.list[i].health],
                                  all.list[i].text);
    return said;
}

static void machine(void)
{
    all.n = 0;
    st_doctor_machine(&all);
}

static void disk(void)
{
    all.n = 0;
    st_doctor_disk(&all, folder);
}

static void chemistry(void)
{
    all.n = 0;
    st_doctor_chemistry(&all);
}

static void limits_that_are_too_low_are_noted_with_a_remedy(void **state)
{
    static const struct {
        int resource;
        const char *name, *remedy;
        rlim_t least;
    } limits[] = { { RLIMIT_NOFILE, "open files", "raise it with ulimit -n 1024", 256 },
                   { RLIMIT_AS, "address space", "a chemistry worker takes up to 2 GiB; ulimit -v unlimited", 4000000000 },
                   { RLIMIT_FSIZE, "file size", "databases may grow beyond it; ulimit -f unlimited", 10000000000 },
                   { RLIMIT_CPU, "cpu seconds", "the program is killed when they are used up; run it as a job", 3600 } };
    char want[128];

    (void)state;
    for (int k = 0; k < 4; k++) {
        made.limited = limits[k].resource;
        made.limit = limits[k].least;
        machine();
        (void)snprintf(want, sizeof want, "ok: %llu", (unsigned long long)made.limit);
        assert_string_equal(found(limits[k].name), want);
        made.limit--;
        machine();
        (void)snprintf(want, sizeof want, "note: %llu; %s", (unsigned long long)made.limit, limits[k].remedy);
        assert_string_equal(found(limits[k].name), want);
        assert_string_equal(found(limits[(k + 1) % 4].name), "ok: unlimited");
        made.limit = RLIM_INFINITY;
        machine();
        assert_string_equal(found(limits[k].name), "ok: unlimited");
        made.limit = 0;
        machine();
        assert_string_equal(found(limits[k].name), "");
    }
}

static void little_memory_is_noted(void **state)
{
    (void)state;
    made.pages = 1000000;
    machine();
    assert_string_equal(found("memory"), "ok: 1.0 GB");
    made.pages = 999000;
    machine();
    assert_string_equal(found("memory"), "note: 999 MB");
}

static void gpus_are_told_with_their_place_and_products(void **state)
{
    (void)state;
    machine();
    assert_string_equal(found("gpu"), "ok: no plugin");
    assert_string_equal(found("products"), "");
    made.has_device = true;
    machine();
    assert_string_equal(found("gpu"), "note: /dev/nvidia0 is there, but no plugin");
    made.gpus = 3;
    made.found = made.cublaslt = true;
    made.node = 1;
    machine();
    assert_string_equal(found("gpu"), "ok: GPU 0, at 0000:3b:00.0, NUMA node 1|ok: GPU 1|ok: GPU 2, at 0000:3b:00.0, NUMA node 1");
    assert_string_equal(found("products"), "ok: cuBLASLt 13 is here; engine cuda uses it with products: cublaslt");
    made.node = -1;
    made.cublaslt = false;
    made.gpus = 1;
    machine();
    assert_string_equal(found("gpu"), "ok: GPU 0, at 0000:3b:00.0");
    assert_string_equal(found("products"), "ok: engine cuda's own kernels; cuBLASLt: not there");
    made.node = 0;
    machine();
    assert_string_equal(found("gpu"), "ok: GPU 0, at 0000:3b:00.0, NUMA node 0");
    made.found = false;
    made.gpus = 0;
    machine();
    assert_string_equal(found("gpu"), "note: no driver for 0");
    made.has_device = false;
    machine();
    assert_string_equal(found("gpu"), "ok: no driver for 0");
}

static void of_many_gpus_the_first_16_are_told(void **state)
{
    int n = 0;

    (void)state;
    made.gpus = 20;
    machine();
    for (int i = 0; i < all.n; i++)
        n += strcmp(all.list[i].name, "gpu") == 0;
    assert_int_equal(n, 16);
    assert_string_equal(found("cpu seconds"), "ok: unlimited");
}

static void a_plugin_of_ranks_that_is_broken_is_bad(void **state)
{
    (void)state;
    machine();
    assert_string_equal(found("ranks"), "ok: no plugin libmolsieve_mpi.so: ranks sum over TCP");
    assert_string_equal(found("nccl"), "ok: no plugin libmolsieve_nccl.so: ranks sum over MPI or TCP");
    made.plugin = "/lib";
    machine();
    assert_string_equal(found("ranks"), "ok: plugin /lib/libmolsieve_mpi.so, Open MPI 4");
    assert_string_equal(found("nccl"), "ok: plugin /lib/libmolsieve_nccl.so, Open MPI 4");
    made.broken = "libmpi.so.40: cannot open shared object file";
    machine();
    assert_string_equal(found("ranks"), "note: libmpi.so.40: cannot open shared object file");
    assert_string_equal(found("nccl"), "note: libmpi.so.40: cannot open shared object file");
    made.broken = "it is of another version";
    machine();
    assert_string_equal(found("ranks"), "bad: it is of another version");
    assert_string_equal(found("nccl"), "note: it is of another version");
}

static void sets_of_kernels_are_told_with_what_they_need(void **state)
{
    (void)state;
    machine();
    assert_string_equal(found("kernels"),
                        "ok: wide, the best of those that run here: wide, plain; not here: strange needs tiles, other needs wings");
    assert_string_equal(found("matrix tiles"), "ok: AMX with bf16, permission granted; precision bf16 and bf16x3 use it");
    made.amx = "no AMX";
    made.kernels = "plain";
    setenv("MOLSIEVE_CPU", "plain", 1);
    machine();
    assert_string_equal(found("kernels"), "ok: plain, forced by MOLSIEVE_CPU; without it wide");
    assert_string_equal(found("matrix tiles"), "ok: no AMX");
    setenv("MOLSIEVE_CPU", "p", 1);
    machine();
    assert_string_equal(found("kernels"), "ok: plain, forced by MOLSIEVE_CPU; without it wide");
    setenv("MOLSIEVE_CPU", "", 1);
    machine();
    assert_non_null(strstr(found("kernels"), "ok: plain, the best of those"));
    made.kernels = "";
    setenv("MOLSIEVE_CPU", "mmx", 1);
    machine();
    assert_string_equal(found("kernels"), "bad: MOLSIEVE_CPU=mmx: no such set of kernels on this processor; unset it");
    unsetenv("MOLSIEVE_CPU");
    machine();
    assert_string_equal(found("kernels"), "bad: MOLSIEVE_CPU=: no such set of kernels on this processor; unset it");
}

static void a_disk_is_told_with_what_is_left(void **state)
{
    (void)state;
    made.type = 0xEF53;
    disk();
    assert_string_equal(found("file system"), "ok: ext4, local");
    assert_string_equal(found("free space"), "ok: 1.0 GB");
    assert_string_equal(found("free files"), "");
    made.type = 0x1234;
    made.network = true;
    made.blocks = 999000;
    made.files = 100;
    disk();
    assert_string_equal(found("file system"),
                        "note: type 0x1234, on the network: databases use the TRUNCATE journal; one run at a time");
    assert_string_equal(found("free space"), "note: 999 MB");
    assert_string_equal(found("free files"), "");
    made.files = 99;
    disk();
    assert_string_equal(found("free files"), "bad: 99 left on this file system");
    made.files = 0;
    disk();
    assert_string_equal(found("free files"), "");
}

static void kinds_of_file_systems_have_names(void **state)
{
    static const struct {
        long type;
        const char *name;
    } known[] = { { 0x58465342, "xfs" },    { 0x9123683E, "btrfs" }, { 0x01021994, "tmpfs" },     { 0x6969, "nfs" },
                  { 0x0BD00BD0, "lustre" }, { 0x47504653, "gpfs" },  { 0x794C7630, "overlayfs" }, { 0xFF534D42, "cifs" },
                  { 0x65735546, "fuse" },   { 0x2FC12FC1, "zfs" },   { 0x19830326, "beegfs" } };
    char want[64];

    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        made.type = known[k].type;
        disk();
        (void)snprintf(want, sizeof want, "ok: %s, local", known[k].name);
        assert_string_equal(found("file system"), want);
    }
}

static void locks_are_tried_and_all_files_are_removed(void **state)
{
    (void)state;
    disk();
    assert_string_equal(found("folder") + strlen("ok: "), folder);
    assert_string_equal(found("locks"), "ok: work");
    assert_string_equal(found("range locks"), "ok: work between processes");
    assert_int_equal(strncmp(found("database"), "ok: created and committed durably in ", 37), 0);
    made.timed = true;
    made.locks = 1;
    disk();
    assert_string_equal(found("database"), "ok: created and committed durably in 1250 ms");
    made.timed = false;
    assert_int_equal(rmdir(folder), 0); /* it is empty */
    assert_int_equal(mkdir(folder, 0700), 0);
    made.locks = 2;
    disk();
    assert_string_equal(found("locks"), "bad: locks do not exclude on this file system; never start two runs on one workdir");
    made.locks = 0;
    disk();
    assert_string_equal(found("locks"), "bad: this file system has no locks (No locks available); use a local disk for workdir");
}

static void range_locks_are_tried_by_another_process(void **state)
{
    (void)state;
    made.forked = -1;
    disk();
    assert_string_equal(found("range locks"), "note: not tried: Resource temporarily unavailable");
    made.forked = 0;
    made.lost = true;
    disk();
    assert_string_equal(found("range locks"), "note: not tried: No child processes");
    made.lost = false;
    made.ended = 1 << 8;
    disk();
    assert_string_equal(found("range locks"),
                        "bad: two processes get the same one here (Lustre: mount with flock); use a local disk for workdir");
    made.ended = SIGKILL;
    disk();
    assert_string_equal(found("range locks"),
                        "bad: two processes get the same one here (Lustre: mount with flock); use a local disk for workdir");
}

static void a_folder_that_cannot_be_used_is_bad(void **state)
{
    char lock[320], db[320], want[400];

    (void)state;
    all.n = 0;
    st_doctor_disk(&all, "/nonexistent");
    assert_int_equal(all.n, 1);
    assert_string_equal(found("folder"), "bad: /nonexistent: No such file or directory; choose a folder that can be written");
    (void)snprintf(lock, sizeof lock, "%s/.molsieve-doctor-%ld.lock", folder, (long)getpid());
    (void)snprintf(db, sizeof db, "%s/.molsieve-doctor-%ld.db", folder, (long)getpid());
    assert_int_equal(mkdir(lock, 0700), 0);
    assert_int_equal(mkdir(db, 0700), 0);
    disk();
    (void)snprintf(want, sizeof want, "bad: %s: Is a directory; choose a folder that can be written", lock);
    assert_string_equal(found("locks"), want);
    assert_string_equal(found("range locks"),
                        "bad: this file system has none (Is a directory), a database needs them; use a local disk for workdir");
    assert_string_equal(found("database"), "bad: cannot be written here: unable to open database file");
}

static void a_worker_that_cannot_work_is_bad(void **state)
{
    (void)state;
    made.missing = "it is not there";
    chemistry();
    assert_int_equal(all.n, 1);
    assert_string_equal(found("worker"), "bad: it is not there");
    made.missing = NULL;
    made.silent = "it says nothing";
    chemistry();
    assert_int_equal(all.n, 1);
    assert_string_equal(found("worker"), "bad: it says nothing");
}

static void aspirin_must_come_back_whole(void **state)
{
    (void)state;
    chemistry();
    assert_string_equal(found("worker"), "ok: molsieve-chem with Open Babel 3.1.1, 140 formats");
    assert_string_equal(found("data folder"), "ok: the library's own");
    assert_string_equal(found("chemistry"), "ok: aspirin: right InChIKey, 21 atoms, 3D by mmff94 in 0.25 CPU s");
    made.flat = true;
    chemistry();
    assert_string_equal(found("chemistry"), "bad: aspirin came back with 21 atoms and no 3D structure: is BABEL_DATADIR right?");
    made.flat = false;
    made.atoms = 20;
    setenv("BABEL_DATADIR", "/tables", 1);
    chemistry();
    assert_string_equal(found("data folder"), "ok: /tables");
    assert_string_equal(found("chemistry"), "bad: aspirin came back with 20 atoms");
    made.key = "X";
    chemistry();
    assert_string_equal(found("chemistry"), "bad: aspirin has the InChIKey X here, not BSYNRYMUTXBXSQ-UHFFFAOYSA-N: another Open "
                                            "Babel, or its data are damaged");
    made.refused = "timeout: 30 s";
    chemistry();
    assert_string_equal(found("chemistry"), "bad: aspirin could not be prepared: timeout: 30 s");
}

static void what_confines_the_worker_is_told(void **state)
{
    (void)state;
    chemistry();
    assert_string_equal(found("confined"), "ok: opens nothing but the library's data (Landlock); no network, no other program, no "
                                           "writing (seccomp); writes no file (limit)");
    made.info.confined = 0;
    chemistry();
    assert_string_equal(found("confined"), "note: can open every file: this kernel has no Landlock; all system calls: no seccomp "
                                           "filter may be set here; files not limited: built with a sanitizer");
    made.info.confined = CH_CONFINED_CALLS;
    chemistry();
    assert_non_null(strstr(found("confined"), "note: can open every file: this kernel has no Landlock; no network"));
    made.info.confined = CH_CONFINED_FILES | CH_CONFINED_GROWTH;
    chemistry();
    assert_non_null(strstr(found("confined"), "note: opens nothing but the library's data (Landlock); all system calls"));
    assert_non_null(strstr(found("confined"), "; writes no file (limit)"));
}

static void a_list_that_is_full_takes_no_more(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++)
        st_find(&all, "n", ST_NOTE, "%d", i);
    assert_int_equal(all.n, 48);
    assert_string_equal(all.list[47].text, "47");
}

/* "0 2" of the GPUs that are asked for, or why there are none; of no words, without a setting. */
static const char *devices_of(int32_t engine, int n_words, const char *const *words)
{
    static char said[512];
    st_compute c = st_compute_defaults();
    const char *word[3] = { NULL };
    int32_t device[ST_DEVICES];
    pl_error err = { 0 };
    int n = 0, at = 0;

    for (int i = 0; i < n_words; i++)
        word[i] = words[i];
    c.engine = engine;
    c.devices = (pl_list){ .n = n_words, .items = word };
    if (st_compute_devices(&c, device, &n, &err) != PL_OK)
        return strcpy(said, err.text);
    for (int i = 0; i < n; i++)
        at += snprintf(said + at, sizeof said - (size_t)at, "%s%d", i > 0 ? " " : "", (int)device[i]);
    return said;
}

static void gpus_are_those_that_are_asked_for_or_all(void **state)
{
    static const struct {
        const char *word[3], *said;
    } cases[] = {
        { { NULL }, "0 1 2" },
        { { "all" }, "0 1 2" },
        { { "0" }, "0" },
        { { "2", "0" }, "2 0" },
        { { "0", "1", "2" }, "0 1 2" },
        { { "3" }, "devices: there is no GPU 3; this machine shows 3" },
        { { "-1" }, "devices: -1 is neither all nor the number of a GPU" },
        { { "x" }, "devices: x is neither all nor the number of a GPU" },
        { { "all", "1" }, "devices: all is neither all nor the number of a GPU" },
        { { "1", "0", "1" }, "devices: GPU 1 is named twice" },
    };
    static const char *const last[] = { "63" };

    (void)state;
    assert_string_equal(devices_of(ST_ENGINE_CUDA, 0, NULL), "no plugin");
    made.gpus = 3;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int n = 0;
        while (n < 3 && cases[i].word[n] != NULL)
            n++;
        assert_string_equal(devices_of(ST_ENGINE_CUDA, n, cases[i].word), cases[i].said);
        assert_string_equal(devices_of(ST_ENGINE_CPU, n, cases[i].word), "0");
    }
    made.gpus = 0;
    assert_string_equal(devices_of(ST_ENGINE_CUDA, 0, NULL), "devices: 0 GPUs; 1 to 64 can be used");
    made.gpus = 65;
    assert_string_equal(devices_of(ST_ENGINE_CUDA, 0, NULL), "devices: 65 GPUs; 1 to 64 can be used");
    made.gpus = 64;
    assert_string_equal(strstr(devices_of(ST_ENGINE_CUDA, 0, NULL), " 61 "), " 61 62 63");
    assert_string_equal(devices_of(ST_ENGINE_CUDA, 1, last), "63");
}

/* A rank has the GPU of its number on its machine; with one GPU, all have that. */
static void each_rank_has_a_gpu_of_its_own(void **state)
{
    st_compute c = st_compute_defaults();
    nn_launcher launch = { .rank = 7, .local_rank = 1 };
    int32_t device = -1;
    pl_error err = { 0 };

    (void)state;
    c.engine = ST_ENGINE_CUDA;
    made.gpus = 2;
    assert_int_equal(st_compute_device(&c, &launch, &device, &err), PL_OK);
    assert_int_equal(device, 1);
    launch.local_rank = -1; /* not told */
    assert_int_equal(st_compute_device(&c, &launch, &device, &err), PL_OK);
    assert_int_equal(device, 0);
    launch.local_rank = 2;
    assert_int_equal(st_compute_device(&c, &launch, &device, &err), PL_ECONFIG);
    assert_string_equal(
        err.text,
        "rank 7 is number 2 on this machine, but there are only 2 GPUs for ranks: start fewer ranks, or use more machines");
    made.gpus = 1;
    assert_int_equal(st_compute_device(&c, &launch, &device, &err), PL_OK);
    assert_int_equal(device, 0);
    made.gpus = -1;
    assert_int_equal(st_compute_device(&c, &launch, &device, &err), PL_EDEVICE);
}

/* What the last digits depend on: the GPU without its memory, its library where that multiplies, how radial networks are computed. */
static void the_level_of_a_gpu_is_told_without_its_memory(void **state)
{
    st_compute c = st_compute_defaults();

    (void)state;
    unsetenv("MOLSIEVE_CUDA_UNITS");
    c.engine = ST_ENGINE_CUDA;
    c.radial = NN_RADIAL_NODES;
    c.products = NN_PRODUCTS_OWN;
    assert_string_equal(st_compute_level(&c, all.mem), "cuda (no GPU)");
    made.gpus = 1;
    made.found = made.cublaslt = true;
    made.about = "A100, compute capability 8.0, 80 GB, driver 13.0";
    assert_string_equal(st_compute_level(&c, all.mem), "cuda (A100, compute capability 8.0, driver 13.0)");
    made.about = "A100, 80 GB, driver 13.0";
    c.products = NN_PRODUCTS_CUBLASLT;
    assert_string_equal(st_compute_level(&c, all.mem), "cuda (A100, driver 13.0, cuBLASLt 13)");
    made.cublaslt = false;
    made.about = "A100 of 80 GB";
    c.radial = NN_RADIAL_EXACT;
    assert_string_equal(st_compute_level(&c, all.mem), "cuda (A100 of 80 GB, exact by hidden units)");
    setenv("MOLSIEVE_CUDA_UNITS", "0", 1);
    assert_string_equal(st_compute_level(&c, all.mem), "cuda (A100 of 80 GB, exact by tables of pairs)");
    unsetenv("MOLSIEVE_CUDA_UNITS");
}

/* The set amx differs from avx512 only in products of bf16. */
static void the_level_of_a_processor_is_its_set_of_kernels(void **state)
{
    st_compute c = st_compute_defaults();

    (void)state;
    assert_memory_equal(st_compute_level(&c, all.mem), "cpu wide (", strlen("cpu wide ("));
    made.kernels = "plain";
    assert_memory_equal(st_compute_level(&c, all.mem), "cpu plain (", strlen("cpu plain ("));
    made.kernels = "amx";
    assert_memory_equal(st_compute_level(&c, all.mem), "cpu avx512 (", strlen("cpu avx512 ("));
    c.of_contract = 1 + NN_PREC_BF16;
    assert_memory_equal(st_compute_level(&c, all.mem), "cpu amx (", strlen("cpu amx ("));
    made.kernels = "";
    assert_string_equal(st_compute_level(&c, all.mem), "");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(limits_that_are_too_low_are_noted_with_a_remedy),
        CASE(little_memory_is_noted),
        CASE(gpus_are_told_with_their_place_and_products),
        CASE(of_many_gpus_the_first_16_are_told),
        CASE(a_plugin_of_ranks_that_is_broken_is_bad),
        CASE(sets_of_kernels_are_told_with_what_they_need),
        CASE(a_disk_is_told_with_what_is_left),
        CASE(kinds_of_file_systems_have_names),
        CASE(locks_are_tried_and_all_files_are_removed),
        CASE(range_locks_are_tried_by_another_process),
        CASE(a_folder_that_cannot_be_used_is_bad),
        CASE(a_worker_that_cannot_work_is_bad),
        CASE(aspirin_must_come_back_whole),
        CASE(what_confines_the_worker_is_told),
        CASE(a_list_that_is_full_takes_no_more),
        CASE(gpus_are_those_that_are_asked_for_or_all),
        CASE(each_rank_has_a_gpu_of_its_own),
        CASE(the_level_of_a_gpu_is_told_without_its_memory),
        CASE(the_level_of_a_processor_is_its_set_of_kernels),
    };
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
