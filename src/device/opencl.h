/* opencl.h - libOpenCL, loaded when it is first used: most machines have none, and need none. */
#ifndef LS_DEVICE_OPENCL_H
#define LS_DEVICE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "base/error.h"

/* X(name): functions of libOpenCL, without their cl. */
#define LS_OPENCL_FUNCTIONS(X)                                                                     \
    X(GetPlatformIDs)                                                                              \
    X(GetDeviceIDs)                                                                                \
    X(GetDeviceInfo)                                                                               \
    X(CreateContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(CreateCommandQueueWithProperties)                                                            \
    X(ReleaseCommandQueue)                                                                         \
    X(CreateProgramWithSource)                                                                     \
    X(CreateProgramWithBinary)                                                                     \
    X(BuildProgram)                                                                                \
    X(GetProgramInfo)                                                                              \
    X(GetProgramBuildInfo)                                                                         \
    X(ReleaseProgram)                                                                              \
    X(CreateKernel)                                                                                \
    X(GetKernelWorkGroupInfo)                                                                      \
    X(ReleaseKernel)                                                                               \
    X(SetKernelArg)                                                                                \
    X(SetKernelArgSVMPointer)                                                                      \
    X(SVMAlloc)                                                                                    \
    X(SVMFree)                                                                                     \
    X(EnqueueSVMMemcpy)                                                                            \
    X(EnqueueSVMMemFill)                                                                           \
    X(EnqueueNDRangeKernel)                                                                        \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(EnqueueBarrierWithWaitList)                                                                  \
    X(RetainEvent)                                                                                 \
    X(WaitForEvents)                                                                               \
    X(ReleaseEvent)                                                                                \
    X(Flush)                                                                                       \
    X(Finish)

typedef struct ls_opencl {
#define LS_OPENCL_MEMBER(name) __typeof__(cl##name) *name;
    LS_OPENCL_FUNCTIONS(LS_OPENCL_MEMBER)
#undef LS_OPENCL_MEMBER
} ls_opencl;

/* Any thread. LS_EINVAL: libOpenCL is not there, or lacks what we need. It stays loaded. */
ls_status ls_opencl_load(const ls_opencl **cl_p, ls_error *);

/* What OpenCL calls an error. */
const char *ls_opencl_error(cl_int code);

#endif
