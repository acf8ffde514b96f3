/* dialect.cl - the dialect of kernels (dialect.h) as OpenCL C. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef uint uint32_t;
typedef ulong uint64_t;
#define KERNEL(name) __kernel void name
#define HELPER
#define GLOBAL __global
#define LOCAL __local
#define IN_LOCAL __local
#define PRIVATE(n, type, x, size) type x[size]
#define MINE(x) x
#define ITEM ((int)get_local_id(0))
#define GROUP_X ((long)get_group_id(0))
#define GROUP_Y ((long)get_group_id(1))
#define FMA fma
#define SQRT sqrt
#define BITS as_uint
#define FLOAT as_float
#define BITS64 as_ulong
#define DOUBLE as_double
#define ITEMS(n)                                                                                   \
    for (int once_ = 1; once_; once_ = 0, barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE))
