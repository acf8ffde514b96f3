/* dialect.cu - the dialect of kernels (dialect.h) as CUDA. */
typedef unsigned uint32_t;
typedef unsigned long uint64_t;
/* Groups have up to 256 items; the registers of a multiprocessor hold two groups. */
#define KERNEL(name) extern "C" __global__ __launch_bounds__(256, 2) void name
#define HELPER __device__ static inline
#define GLOBAL
#define LOCAL __shared__
#define IN_LOCAL
#define PRIVATE(n, type, x, size) type x[size]
#define MINE(x) x
#define ITEM ((int)threadIdx.x)
#define GROUP_X ((long)blockIdx.x)
#define GROUP_Y ((long)blockIdx.y)
#define FMA __fmaf_rn
#define SQRT __fsqrt_rn
#define BITS __float_as_uint
#define FLOAT __uint_as_float
#define BITS64(x) ((uint64_t)__double_as_longlong(x))
#define DOUBLE(u) __longlong_as_double((long long)(u))
#define ITEMS(n) for (int once_ = 1; once_; once_ = 0, __syncthreads())
