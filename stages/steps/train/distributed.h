/* stages/steps/train/distributed.h - one command started several times by mpirun, srun or torchrun.
 *
 * Rank 0 does everything else: it alone has the lock, the databases and the log. The others
 * wait for a training, take part in it, and wait again. They open no
 * file of the work directory: rank 0 sends what they need, so the directory may
 * lie on a disk that only rank 0 sees. */
#ifndef ST_DISTRIBUTED_H
#define ST_DISTRIBUTED_H

#include "models/comm/collective.h"
#include "pipeline/base/stop.h"
#include "pipeline/workflow/workflow.h"

#define ST_MPI_PLUGIN "libmolsieve_mpi.so"
#define ST_NCCL_PLUGIN "libmolsieve_nccl.so"

typedef struct st_team {
    nn_ranks ranks, control;                                                   /* control: carries bytes beside NCCL     */
    enum { ST_TEAM_NONE, ST_TEAM_REFUSED, ST_TEAM_READY, ST_TEAM_BUSY } state; /* busy: in a training */
    pl_stop stop; /* kept to the end of the process: a signal that reaches a rank after another
                                    has already stopped all of them must not kill it       */
} st_team;

/* Decides by the train step of the workflow. ECONFIG: several ranks and no plugin, or no
 * training, or more ranks than shards, or another build. EDEVICE: the plugin cannot start,
 * a rank does not connect. Close it also after an error; state REFUSED: the error is the same
 * on all ranks. */
pl_code st_team_open(st_team *team, const pl_workflow *wf, pl_error *err);

/* Rank 0: makes the others join the training `step`. */
pl_code st_team_call(st_team *team, const pl_workflow *wf, const pl_step *step, pl_error *err);

/* Another rank: waits for an order of rank 0. *train: it is to join the training `step`, now; false: rank 0 released it.
 * ECONFIG: rank 0 has read another workflow. */
pl_code st_team_wait(st_team *team, const pl_workflow *wf, const pl_step *step, bool *train, pl_error *err);

/* Call it last. Rank 0 releases the others, or ends them when the run failed in the
 * middle of a training; another rank that failed ends all. Returns status. */
int st_team_close(st_team *team, int status);

/* A plugin of this program: in $MOLSIEVE_PLUGINS, beside the program, or in ../lib/molsieve.
 * NULL if it is in none of them. */
const char *st_plugin_path(const char *file, pl_arena *mem);

#endif
