/* nccl.h - NVIDIA's communication between GPUs, libnccl, loaded when it is first used. The
 * prototypes are our own, of the functions that we call (NVIDIA: NCCL API), from version 2.7 on:
 * bytes are sent and received, and no sums are its own. */
#ifndef LS_DEVICE_NCCL_H
#define LS_DEVICE_NCCL_H

#include <stddef.h>

#include "base/error.h"
#include "device/cuda.h"

typedef struct ls_nccl_comm *ls_nccl_comm;
/* By which those that open a communicator find each other. */
typedef struct ls_nccl_id {
    char bytes[128];
} ls_nccl_id;

/* ncclResult_t, ncclDataType_t */
enum { LS_NCCL_SUCCESS = 0, LS_NCCL_UINT8 = 1 };

/* X(name, symbol, parameters): functions of libnccl, which return an ncclResult_t. */
#define LS_NCCL_FUNCTIONS(X)                                                                       \
    X(version, "ncclGetVersion", (int *version_p))                                                 \
    X(make_id, "ncclGetUniqueId", (ls_nccl_id * id_p))                                             \
    X(open, "ncclCommInitRank", (ls_nccl_comm * comm_p, int n, ls_nccl_id, int rank))              \
    X(abort, "ncclCommAbort", (ls_nccl_comm))                                                      \
    X(group_start, "ncclGroupStart", (void))                                                       \
    X(group_end, "ncclGroupEnd", (void))                                                           \
    X(send, "ncclSend",                                                                            \
      (const void *p, size_t count, int type, int to, ls_nccl_comm, ls_cuda_stream))               \
    X(receive, "ncclRecv",                                                                         \
      (void *p, size_t count, int type, int from, ls_nccl_comm, ls_cuda_stream))

typedef struct ls_nccl {
#define LS_NCCL_MEMBER(name, symbol, parameters) int(*name) parameters;
    LS_NCCL_FUNCTIONS(LS_NCCL_MEMBER)
#undef LS_NCCL_MEMBER
    const char *(*error_text)(int result);
} ls_nccl;

/* Any thread. LS_EINVAL: the library is not there, or too old. It stays loaded. */
ls_status ls_nccl_load(const ls_nccl **nccl_p, ls_error *);

#endif
