/* tests/emulator/nccl/nccl.h - the part of NCCL that models/comm/nccl uses, between processes of one
 * machine: a message is a file in a folder that the unique id names. As with the real one in
 * its non-blocking mode nothing is done by the call that asks for it; a group must be open for
 * sends and receives; a rank that is gone shows as nothing at all.
 *
 * MOLSIEVE_EMULATOR_NCCL=VERSION: what ncclGetVersion says. MOLSIEVE_EMULATOR_NCCL_MUTE=1:20:
 * nobody hears of rank 1 after its message 20. MOLSIEVE_EMULATOR_NCCL_PAUSE=20: the process stops
 * itself (SIGSTOP) before it sends its message 20. */
#ifndef EMU_NCCL_H
#define EMU_NCCL_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCL_MAJOR 2
#define NCCL_VERSION_CODE 21403
#define NCCL_CONFIG_INITIALIZER \
    {                           \
        1                       \
    }

typedef enum ncclResult_t { ncclSuccess, ncclSystemError = 2, ncclInvalidUsage = 5, ncclInProgress = 7 } ncclResult_t;
typedef enum ncclDataType_t { ncclInt8 = 0, ncclFloat32 = 7 } ncclDataType_t;
typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;
typedef struct ncclConfig_t {
    int blocking;
} ncclConfig_t;
typedef struct emu_comm *ncclComm_t;

ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int size, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *now);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
const char *ncclGetErrorString(ncclResult_t e);
const char *ncclGetLastError(ncclComm_t comm);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *p, size_t n, ncclDataType_t type, int to, ncclComm_t comm, cudaStream_t s);
ncclResult_t ncclRecv(void *p, size_t n, ncclDataType_t type, int from, ncclComm_t comm, cudaStream_t s);
ncclResult_t ncclAllGather(const void *from, void *to, size_t n, ncclDataType_t type, ncclComm_t comm, cudaStream_t s);

#ifdef __cplusplus
}
#endif
#endif
