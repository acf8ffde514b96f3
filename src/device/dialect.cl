/* dialect.cl - the dialect of kernels (dialect.h) as OpenCL C. */
#pragma OPENCL FP_CONTRACT OFF
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef uint uint32_t;
typedef ulong uint64_t;
#define KERNEL(name) __kernel void name
#define KERNEL128(name) __kernel void name
#define KERNEL128_2(name) __kernel void name
#define HELPER
#define GLOBAL __global
#define LOCAL __local
#define IN_LOCAL __local
#define PRIVATE(n, type, x, size) type x[size]
#define MINE(x) x
#define ITEM ((int)get_local_id(0))
#define GROUP_X ((long)get_group_id(0))
#define GROUP_Y ((long)get_group_id(1))
#define ALIGNED __attribute__((aligned(16)))
#define LOAD4(space, p, r)                                                                         \
    do {                                                                                           \
        float4 four_ = *(space const float4 *)(p);                                                 \
        (r)[0] = four_.x, (r)[1] = four_.y, (r)[2] = four_.z, (r)[3] = four_.w;                    \
    } while (0)
#define STORE4(space, p, r)                                                                        \
    (*(space float4 *)(p) = (float4)((r)[0], (r)[1], (r)[2], (r)[3]))
#define COPY(to, from) (*(to) = *(from))
#define COPY4(to, from) (*(__local float4 *)(to) = *(__global const float4 *)(from))
#define COPIED() ((void)0)
#define UNROLL
#define ROLLED
#define FRESH(i) ((void)0)
#define FMA fma
#ifdef DIVIDES_IN_DOUBLE /* rounded twice, a quotient or root of floats is the right float all the same */
#define DIV(a, b) ((float)((double)(a) / (double)(b)))
#define SQRT(x) ((float)sqrt((double)(x)))
#else
#define DIV(a, b) ((a) / (b))
#define SQRT sqrt
#endif
#define BITS as_uint
#define FLOAT as_float
#define BITS64 as_ulong
#define DOUBLE as_double
#define ITEMS(n)                                                                                   \
    for (int once_ = 1; once_; once_ = 0, barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE))
