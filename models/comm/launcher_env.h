/* models/comm/launcher_env.h - the rank and size that a launcher gave this process in environment variables.
 *
 * Known launchers: mpirun (Open MPI, MPICH, Intel MPI), PALS under PBS, srun with and without
 * PMIx, torchrun, and others that set the same variables. Only the environment is read. */
#ifndef NN_LAUNCHER_ENV_H
#define NN_LAUNCHER_ENV_H

#include <stdbool.h>

typedef struct nn_launcher {
    const char *by;             /* the launcher: "torchrun"; NULL: none                */
    bool mpi;                   /* an MPI library would find its ranks here            */
    int rank, size;             /* 0 and 1 without a launcher                          */
    int local_rank, local_size; /* among the ranks of this node; -1: not given         */
    char job[160];              /* a text that all ranks of this start share, and no
                                    other start has; "": not given                      */
    char host[256], port[16];   /* address where rank 0 listens: MOLSIEVE_MASTER=host:port,
                                    or MASTER_ADDR and MASTER_PORT; "": not given       */
} nn_launcher;

nn_launcher nn_launcher_read(void);

#endif
