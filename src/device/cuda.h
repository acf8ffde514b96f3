/* cuda.h - NVIDIA's driver, libcuda, loaded when it is first used. The prototypes are our own, of
 * the functions that we call (NVIDIA: CUDA Driver API): nothing of CUDA is needed to build. */
#ifndef LS_DEVICE_CUDA_H
#define LS_DEVICE_CUDA_H

#include <stddef.h>

#include "base/error.h"

typedef unsigned long long ls_cuda_address;
typedef struct ls_cuda_context *ls_cuda_context;
typedef struct ls_cuda_stream *ls_cuda_stream;
typedef struct ls_cuda_event *ls_cuda_event;
typedef struct ls_cuda_module *ls_cuda_module;
typedef struct ls_cuda_function *ls_cuda_function;

/* Names memory for other processes. */
typedef struct ls_cuda_ipc {
    char bytes[64];
} ls_cuda_ipc;

/* CUresult and other values, as cuda.h of CUDA has them. */
enum {
    LS_CUDA_OUT_OF_MEMORY = 2,
    LS_CUDA_STUB = 34,        /* libcuda is CUDA's, to link programs with */
    LS_CUDA_UNAVAILABLE = 46, /* by its compute mode: another process has it, or none may */
    LS_CUDA_NO_DEVICE = 100,
    LS_CUDA_NO_CODE = 209, /* for this GPU, in a file of code */
    LS_CUDA_TIMEOUT = 702, /* of a kernel, on a GPU that draws a display */
    LS_CUDA_PINNED = 712,  /* the host's memory is pinned already */
    LS_CUDA_NOT_READY = 802,
    LS_CUDA_MISMATCH = 803, /* of libcuda and the kernel's module */
    LS_CUDA_COMPAT = 804,   /* libcuda is CUDA's newer one, which this GPU does not take */
    LS_CUDA_MPS = 805,      /* } errors of the multi-process service */
    LS_CUDA_MPS_LAST = 810, /* } */
    LS_CUDA_UNKNOWN = 999,
    LS_CUDA_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR */
    LS_CUDA_MINOR = 76,
    LS_CUDA_STREAM_NON_BLOCKING = 1, /* it does not wait for other programs' default stream */
    LS_CUDA_EVENT_DISABLE_TIMING = 2,
    LS_CUDA_IPC_LAZY_PEERS = 1 /* access to another device's memory begins when it is used */
};

/* X(name, symbol, parameters): functions of libcuda, which return a CUresult. */
#define LS_CUDA_FUNCTIONS(X)                                                                       \
    X(init, "cuInit", (unsigned flags))                                                            \
    X(version, "cuDriverGetVersion", (int *version_p))                                             \
    X(error_name, "cuGetErrorName", (int error, const char **name_p))                              \
    X(error_text, "cuGetErrorString", (int error, const char **text_p))                            \
    X(device_count, "cuDeviceGetCount", (int *n_p))                                                \
    X(device_get, "cuDeviceGet", (int *device_p, int index))                                       \
    X(device_name, "cuDeviceGetName", (char *name, int size, int device))                          \
    X(device_uuid, "cuDeviceGetUuid_v2", (unsigned char uuid[16], int device))                     \
    X(device_memory, "cuDeviceTotalMem_v2", (size_t * nbytes_p, int device))                       \
    X(device_can_access, "cuDeviceCanAccessPeer", (int *can_p, int device, int peer))              \
    X(device_attribute, "cuDeviceGetAttribute", (int *value_p, int attribute, int device))         \
    X(context_retain, "cuDevicePrimaryCtxRetain", (ls_cuda_context * context_p, int device))       \
    X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                               \
    X(context_push, "cuCtxPushCurrent_v2", (ls_cuda_context))                                      \
    X(context_pop, "cuCtxPopCurrent_v2", (ls_cuda_context * context_p))                            \
    X(memory_info, "cuMemGetInfo_v2", (size_t * free_p, size_t * all_p))                           \
    X(alloc, "cuMemAlloc_v2", (ls_cuda_address * p_p, size_t nbytes))                              \
    X(free, "cuMemFree_v2", (ls_cuda_address))                                                     \
    X(copy_to, "cuMemcpyHtoDAsync_v2",                                                             \
      (ls_cuda_address to, const void *from, size_t nbytes, ls_cuda_stream))                       \
    X(copy_from, "cuMemcpyDtoHAsync_v2",                                                           \
      (void *to, ls_cuda_address from, size_t nbytes, ls_cuda_stream))                             \
    X(copy, "cuMemcpyAsync",                                                                       \
      (ls_cuda_address to, ls_cuda_address from, size_t nbytes, ls_cuda_stream))                   \
    X(ipc_handle, "cuIpcGetMemHandle", (ls_cuda_ipc * h_p, ls_cuda_address))                       \
    X(ipc_open, "cuIpcOpenMemHandle_v2", (ls_cuda_address * p_p, ls_cuda_ipc, unsigned flags))     \
    X(ipc_close, "cuIpcCloseMemHandle", (ls_cuda_address))                                         \
    X(set, "cuMemsetD8Async",                                                                      \
      (ls_cuda_address to, unsigned char value, size_t nbytes, ls_cuda_stream))                    \
    X(stream_create, "cuStreamCreate", (ls_cuda_stream * stream_p, unsigned flags))                \
    X(stream_destroy, "cuStreamDestroy_v2", (ls_cuda_stream))                                      \
    X(stream_finish, "cuStreamSynchronize", (ls_cuda_stream))                                      \
    X(stream_wait, "cuStreamWaitEvent", (ls_cuda_stream, ls_cuda_event, unsigned flags))           \
    X(event_create, "cuEventCreate", (ls_cuda_event * event_p, unsigned flags))                    \
    X(event_await, "cuEventSynchronize", (ls_cuda_event))                                          \
    X(host_pin, "cuMemHostRegister_v2", (void *p, size_t nbytes, unsigned flags))                  \
    X(host_unpin, "cuMemHostUnregister", (void *p))                                                \
    X(event_destroy, "cuEventDestroy_v2", (ls_cuda_event))                                         \
    X(event_record, "cuEventRecord", (ls_cuda_event, ls_cuda_stream))                              \
    X(module_load, "cuModuleLoadData", (ls_cuda_module * module_p, const void *image))             \
    X(module_unload, "cuModuleUnload", (ls_cuda_module))                                           \
    X(module_function, "cuModuleGetFunction",                                                      \
      (ls_cuda_function * function_p, ls_cuda_module, const char *name))                           \
    X(launch, "cuLaunchKernel",                                                                    \
      (ls_cuda_function, unsigned groups_x, unsigned groups_y, unsigned groups_z,                  \
       unsigned items_x, unsigned items_y, unsigned items_z, unsigned shared_nbytes,               \
       ls_cuda_stream, void **params, void **extra))

typedef struct ls_cuda {
#define LS_CUDA_MEMBER(name, symbol, parameters) int(*name) parameters;
    LS_CUDA_FUNCTIONS(LS_CUDA_MEMBER)
#undef LS_CUDA_MEMBER
    int driver; /* the version of CUDA that it supports: 12040 is 12.4 */
} ls_cuda;

/* Any thread. LS_EINVAL: there is no driver, or it is too old. It stays loaded. */
ls_status ls_cuda_load(const ls_cuda **cuda_p, ls_error *);

#endif
