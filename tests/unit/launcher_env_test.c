/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of launchers, and the processors near a GPU in a made-up /sys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "models/comm/launcher_env.h"
#include "models/comm/numa.h"
#include "pipeline/base/file.h"

/* Sets the environment to "A=1 B=2" and nothing else. */
static nn_launcher launched(const char *variables)
{
    char text[512], *save = NULL;

    clearenv();
    snprintf(text, sizeof text, "%s", variables);
    for (char *one = strtok_r(text, " ", &save); one != NULL; one = strtok_r(NULL, " ", &save)) {
        char *value = strchr(one, '=');
        *value = '\0';
        setenv(one, value + 1, 1);
    }
    return nn_launcher_read();
}

static void every_launcher_is_understood(void **state)
{
    static const struct {
        const char *variables, *by;
        int rank, size, local;
        bool mpi;
    } c[] = {
        { "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 SLURM_STEP_NUM_TASKS=2 SLURM_PROCID=0",
          "mpirun", 3, 8, 1, true },
        { "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2", "mpiexec", 2, 4, 0, true },
        { "PMI_RANK=2 PMI_SIZE=4 PMI_LOCAL_RANK=1", "mpiexec", 2, 4, 1, true },
        { "PALS_RANKID=5 PALS_LOCAL_RANKID=1 PMI_RANK=5 PMI_SIZE=8 PBS_JOBID=7.head", "PALS", 5, 8, 1, true },
        { "PMIX_RANK=1 SLURM_NTASKS=2 SLURM_PROCID=1 SLURM_LOCALID=0 SLURM_STEP_NUM_TASKS=2", "srun --mpi=pmix", 1, 2, 0, true },
        { "SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_LOCALID=1 SLURM_STEP_NUM_TASKS=2", "srun", 1, 2, 1, false },
        { "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2", "torchrun", 1, 2, 1, false },
        { "RANK=1 WORLD_SIZE=2", "torchrun", 1, 2, -1, false },
        { "SLURM_PROCID=0 SLURM_NTASKS=4", NULL, 0, 1, -1, false }, /* a batch script, not a step of it */
        { "RANK=2 WORLD_SIZE=2", NULL, 0, 1, -1, false },
        { "RANK=x WORLD_SIZE=2", NULL, 0, 1, -1, false },
        { "RANK=16777214 WORLD_SIZE=16777215", "torchrun", 16777214, 16777215, -1, false },
        { "RANK=1 WORLD_SIZE=16777216", NULL, 0, 1, -1, false },
        { "RANK=-1 WORLD_SIZE=2", NULL, 0, 1, -1, false },
        { "A=1", NULL, 0, 1, -1, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        nn_launcher l = launched(c[i].variables);
        if (l.rank != c[i].rank || l.size != c[i].size || l.local_rank != c[i].local || l.mpi != c[i].mpi ||
            (l.by != NULL ? c[i].by == NULL || strcmp(l.by, c[i].by) != 0 : c[i].by != NULL))
            fail_msg("%s: %s, %d of %d, %d here", c[i].variables, l.by ? l.by : "nobody", l.rank, l.size, l.local_rank);
    }
}

static void each_job_restart_has_its_own_name(void **state)
{
    (void)state;
    assert_string_equal(launched("SLURM_JOB_ID=17 SLURM_STEP_ID=2").job, "17.2.");
    assert_string_equal(launched("SLURM_JOB_ID=17 SLURM_STEP_ID=2 SLURM_RESTART_COUNT=1").job, "17.2.1");
    assert_string_equal(launched("PBS_JOBID=9.head").job, "9.head");
    assert_string_equal(launched("MOLSIEVE_RUN=mine SLURM_JOB_ID=17").job, "mine");
    assert_string_equal(launched("TORCHELASTIC_RUN_ID=a TORCHELASTIC_RESTART_COUNT=3").job, "a.3");
    assert_string_equal(launched("A=1").job, "");
}

static void the_master_is_host_and_port(void **state)
{
    nn_launcher l = launched("MOLSIEVE_MASTER=node7:4000 MASTER_ADDR=x MASTER_PORT=1");

    (void)state;
    assert_string_equal(l.host, "node7");
    assert_string_equal(l.port, "4000");
    l = launched("MASTER_ADDR=10.0.0.1 MASTER_PORT=29500");
    assert_string_equal(l.host, "10.0.0.1");
    assert_string_equal(l.port, "29500");
    assert_string_equal(launched("MASTER_ADDR=x").host, "");
    assert_string_equal(launched("MASTER_ADDR=x MASTER_PORT=1 TORCHELASTIC_USE_AGENT_STORE=True").host, "");
    assert_string_equal(launched("MOLSIEVE_MASTER=nocolon").host, "");
}

/* ---- processors near a GPU ---- */

typedef struct machine {
    char sys[64];
    cpu_set_t was;
    int first, n; /* of the processors this test may use */
} machine;

static void put(const machine *m, const char *name, const char *text)
{
    char path[256], *slash;

    snprintf(path, sizeof path, "%s/%s", m->sys, name);
    slash = strrchr(path, '/');
    *slash = '\0';
    assert_int_equal(pl_mkdirs(path, NULL), PL_OK);
    *slash = '/';
    assert_int_equal(pl_file_write(path, (pl_bytes){ text, strlen(text) }, NULL), PL_OK);
}

static void online(const machine *m, const cpu_set_t *set)
{
    char text[4096] = "";
    size_t n = 0;

    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, set))
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%d", n ? "," : "", i);
    put(m, "devices/system/cpu/online", text);
}

static int machine_open(void **state)
{
    machine *m = calloc(1, sizeof *m);
    char text[32];

    if (m == NULL || sched_getaffinity(0, sizeof m->was, &m->was) != 0)
        return 1;
    strcpy(m->sys, "/tmp/molsieve-sys-XXXXXX");
    if (mkdtemp(m->sys) == NULL)
        return 1;
    while (!CPU_ISSET(m->first, &m->was))
        m->first++;
    m->n = CPU_COUNT(&m->was);
    put(m, "bus/pci/devices/0000:3b:00.0/numa_node", "1\n");
    put(m, "bus/pci/devices/0000:5e:00.0/numa_node", "-1\n");
    snprintf(text, sizeof text, "%d\n", m->first);
    put(m, "devices/system/node/node1/cpulist", text);
    put(m, "devices/system/node/node2/cpulist", "0-3,8,10-11\n");
    online(m, &m->was);
    *state = m;
    return 0;
}

static int machine_close(void **state)
{
    machine *m = *state;
    char command[128];
    int rc;

    snprintf(command, sizeof command, "rm -r %s", m->sys);
    rc = system(command); /* NOLINT: a name made by mkdtemp */
    free(m);
    return rc;
}

static void the_node_of_a_device_is_read(void **state)
{
    const machine *m = *state;
    cpu_set_t set;

    assert_int_equal(nn_numa_node(m->sys, "0000:3B:00.0"), 1);
    assert_int_equal(nn_numa_node(m->sys, "0000:5e:00.0"), -1);
    assert_int_equal(nn_numa_node(m->sys, "0000:ff:00.0"), -1);
    assert_int_equal(nn_numa_node(m->sys, ""), -1);
    assert_true(nn_numa_processors(m->sys, 2, &set));
    assert_int_equal(CPU_COUNT(&set), 7);
    assert_true(CPU_ISSET(3, &set) && CPU_ISSET(8, &set) && CPU_ISSET(11, &set) && !CPU_ISSET(9, &set));
    assert_false(nn_numa_processors(m->sys, 7, &set));
}

static void a_free_process_goes_near_and_back(void **state)
{
    const machine *m = *state;
    nn_binding b = nn_numa_bind(m->sys, "0000:3b:00.0");
    cpu_set_t now;

    assert_true(b.bound && b.node == 1);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_COUNT(&now) == 1 && CPU_ISSET(m->first, &now));
    nn_numa_restore(&b);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &m->was));
}

static void what_the_launcher_chose_stays(void **state)
{
    const machine *m = *state;
    cpu_set_t more = m->was, now;
    nn_binding b;

    CPU_SET(CPU_SETSIZE - 1, &more); /* the machine has a processor that this process may not use */
    online(m, &more);
    b = nn_numa_bind(m->sys, "0000:3b:00.0");
    assert_false(b.bound);
    nn_numa_restore(&b);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&now, &m->was));
    online(m, &m->was);
    assert_false(nn_numa_bind(m->sys, "0000:5e:00.0").bound);
    assert_false(nn_numa_bind("/nowhere", "0000:3b:00.0").bound);
}

#define WITH_MACHINE(f) cmocka_unit_test_setup_teardown(f, machine_open, machine_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_MACHINE(the_node_of_a_device_is_read),          WITH_MACHINE(a_free_process_goes_near_and_back),
        WITH_MACHINE(what_the_launcher_chose_stays),         cmocka_unit_test(every_launcher_is_understood),
        cmocka_unit_test(each_job_restart_has_its_own_name), cmocka_unit_test(the_master_is_host_and_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
