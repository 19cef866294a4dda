/* SPDX-License-Identifier: Apache-2.0 */
/* What `doctor` finds on other machines than this one (made_machine.h): each finding with its health, word for word. */
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

#include "stages/commands/about/doctor.h"
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
    return 0;
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
    };
    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
