/* models/launch.h - what a launcher's environment says about this process.
 *
 * mpirun (Open MPI, MPICH, Intel MPI), PALS under PBS, srun with and without PMIx,
 * torchrun and whatever sets the same variables. Reads the environment, nothing else. */
#ifndef NN_LAUNCH_H
#define NN_LAUNCH_H

#include <stdbool.h>

typedef struct nn_launch {
    const char *by;              /* "torchrun"; NULL: nobody launched this              */
    bool mpi;                    /* an MPI finds its ranks here                         */
    int rank, size;              /* 0 of 1 without a launcher                           */
    int local_rank, local_size;  /* among the ranks of this node; -1: it does not say   */
    char job[160];               /* the same for all ranks of this start and for no
                                    other start; "": it does not say                    */
    char host[256], port[16];    /* where rank 0 waits: MOLSIEVE_MASTER=host:port, or
                                    MASTER_ADDR and MASTER_PORT; "": nobody says        */
} nn_launch;

nn_launch nn_launch_read(void);

#endif
