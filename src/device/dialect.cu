/* dialect.cu - the dialect of kernels (dialect.h) as CUDA. */
typedef unsigned uint32_t;
typedef unsigned long uint64_t;
/* Groups have up to 256 items; the registers of a multiprocessor hold two groups. */
#define KERNEL(name) extern "C" __global__ __launch_bounds__(256, 2) void name
/* Those of 128 items have half as many again; of three groups. */
#define KERNEL128(name) extern "C" __global__ __launch_bounds__(128, 3) void name
#define KERNEL128_2(name) extern "C" __global__ __launch_bounds__(128, 2) void name
#define HELPER __device__ static inline
#define GLOBAL
#define LOCAL __shared__
#define IN_LOCAL
#define PRIVATE(n, type, x, size) type x[size]
#define MINE(x) x
#define ITEM ((int)threadIdx.x)
#define GROUP_X ((long)blockIdx.x)
#define GROUP_Y ((long)blockIdx.y)
#define ALIGNED __align__(16)
#define LOAD4(space, p, r)                                                                         \
    do {                                                                                           \
        float4 four_ = *(const float4 *)(p);                                                       \
        (r)[0] = four_.x, (r)[1] = four_.y, (r)[2] = four_.z, (r)[3] = four_.w;                    \
    } while (0)
#define STORE4(space, p, r) (*(float4 *)(p) = make_float4((r)[0], (r)[1], (r)[2], (r)[3]))
#if __CUDA_ARCH__ >= 800
#define COPY_ASYNC(kind, to, from, n)                                                              \
    asm volatile("cp.async." kind ".shared.global [%0], [%1], " n ";" ::"r"(                       \
                     (unsigned)__cvta_generic_to_shared(to)),                                      \
                 "l"(from)                                                                         \
                 : "memory")
#define COPY(to, from) COPY_ASYNC("ca", to, from, "4")
#define COPY4(to, from) COPY_ASYNC("cg", to, from, "16")
#define COPIED() asm volatile("cp.async.wait_all;" ::: "memory")
#else
#define COPY(to, from) (*(to) = *(from))
#define COPY4(to, from) (*(float4 *)(to) = *(const float4 *)(from))
#define COPIED() ((void)0)
#endif
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define FRESH(i) asm volatile("" : "+r"(i))
#define FMA __fmaf_rn
#define DIV __fdiv_rn
#define SQRT __fsqrt_rn
#define BITS __float_as_uint
#define FLOAT __uint_as_float
#define BITS64(x) ((uint64_t)__double_as_longlong(x))
#define DOUBLE(u) __longlong_as_double((long long)(u))
#define ITEMS(n) for (int once_ = 1; once_; once_ = 0, __syncthreads())
