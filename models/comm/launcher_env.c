/* SPDX-License-Identifier: Apache-2.0 */
#include "models/comm/launcher_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/base/text.h"

/* The first line whose variables for rank and size are both set is used. A batch script has SLURM_NTASKS and SLURM_PROCID too,
 * but only a step has SLURM_STEP_NUM_TASKS. */
static const struct launcher {
    const char *by, *rank, *size, *local_rank, *local_size;
    bool mpi;
} launchers[] = {
    { "mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", true },
    { "PALS", "PALS_RANKID", "PMI_SIZE", "PALS_LOCAL_RANKID", "PMI_LOCAL_SIZE", true },
    { "mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", true },
    { "srun --mpi=pmix", "PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", "", true },
    { "torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", false },
    { "srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", false },
};

static int number(const char *name)
{
    const char *text = getenv(name);
    int64_t n = 0;

    return text != NULL && pl_parse_int(text, &n) && n >= 0 && n < 1 << 24 ? (int)n : -1;
}

static const char *word(const char *name)
{
    const char *text = getenv(name);

    return text != NULL ? text : "";
}

/* The most specific name of this start; a requeued or restarted job gets another name. */
static void job_read(nn_launcher *l)
{
    static const char *const names[][3] = {
        { "MOLSIEVE_RUN", NULL, NULL }, { "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT" },
        { "PALS_APID", NULL, NULL },    { "PBS_JOBID", NULL, NULL },
        { "LSB_JOBID", NULL, NULL },    { "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", NULL },
    };

    for (size_t i = 0; i < sizeof names / sizeof *names && !l->job[0]; i++)
        if (word(names[i][0])[0])
            snprintf(l->job, sizeof l->job, "%.80s%s%.30s%s%.30s", word(names[i][0]), names[i][1] != NULL ? "." : "",
                     names[i][1] != NULL ? word(names[i][1]) : "", names[i][2] != NULL ? "." : "",
                     names[i][2] != NULL ? word(names[i][2]) : "");
}

/* torchrun's own agent may already listen at the master's port, so that port is not used. */
static void master_read(nn_launcher *l)
{
    bool taken = strcmp(word("TORCHELASTIC_USE_AGENT_STORE"), "True") == 0;
    const char *ours = word("MOLSIEVE_MASTER"), *colon = strrchr(ours, ':');

    if (colon != NULL && colon[1]) {
        snprintf(l->host, sizeof l->host, "%.*s", (int)(colon - ours), ours);
        snprintf(l->port, sizeof l->port, "%s", colon + 1);
    } else if (!taken && word("MASTER_ADDR")[0] && word("MASTER_PORT")[0]) {
        snprintf(l->host, sizeof l->host, "%s", word("MASTER_ADDR"));
        snprintf(l->port, sizeof l->port, "%s", word("MASTER_PORT"));
    }
}

nn_launcher nn_launcher_read(void)
{
    nn_launcher l = { .size = 1, .local_rank = -1, .local_size = -1 };

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && l.by == NULL; i++) {
        const struct launcher *a = &launchers[i];
        int rank = number(a->rank), size = number(a->size);
        if (rank < 0 || size < 1 || rank >= size)
            continue;
        l.by = a->by;
        l.mpi = a->mpi;
        l.rank = rank;
        l.size = size;
        l.local_rank = number(a->local_rank);
        l.local_size = number(a->local_size);
    }
    if (l.by != NULL && l.local_rank < 0)
        l.local_rank = number("PMI_LOCAL_RANK");
    job_read(&l);
    master_read(&l);
    return l;
}
