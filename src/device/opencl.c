/* opencl.c - see opencl.h. */
#include "device/opencl.h"

#include "base/library.h"

static const ls_symbol symbols[] = {
#define SYMBOL(name) {"cl" #name, offsetof(ls_opencl, name)},
    LS_OPENCL_FUNCTIONS(SYMBOL)};

static ls_opencl functions;
static ls_library library =
    LS_LIBRARY("libOpenCL.so.1", symbols, functions,
               .refusal = "device opencl needs OpenCL's loader and the driver of a device, such as "
                          "Debian's packages ocl-icd-libopencl1 and pocl-opencl-icd",
               .code = LS_EINVAL);

ls_status ls_opencl_load(const ls_opencl **cl_p, ls_error *e) {
    LS_TRY(ls_library_need(&library, e));
    *cl_p = &functions;
    return LS_OK;
}

const char *ls_opencl_error(cl_int code) {
    switch (code) {
    case CL_DEVICE_NOT_FOUND: return "CL_DEVICE_NOT_FOUND";
    case CL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
    case CL_COMPILER_NOT_AVAILABLE: return "CL_COMPILER_NOT_AVAILABLE";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case CL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
    case CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST:
        return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case CL_INVALID_VALUE: return "CL_INVALID_VALUE";
    case CL_INVALID_COMMAND_QUEUE: return "CL_INVALID_COMMAND_QUEUE";
    case CL_INVALID_BUILD_OPTIONS: return "CL_INVALID_BUILD_OPTIONS";
    case CL_INVALID_KERNEL_ARGS: return "CL_INVALID_KERNEL_ARGS";
    case CL_INVALID_ARG_VALUE: return "CL_INVALID_ARG_VALUE";
    case CL_INVALID_ARG_SIZE: return "CL_INVALID_ARG_SIZE";
    case CL_INVALID_WORK_GROUP_SIZE: return "CL_INVALID_WORK_GROUP_SIZE";
    case CL_INVALID_OPERATION: return "CL_INVALID_OPERATION";
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "see cl.h";
    }
}
