/* fused16.cu - one link of products by tensor cores, of tiles of 16 x 8 elements: d = c + a . b, for
 * tests/device/fused16_test.c. a [n][16][16] and b [n / 4][8][16] are bf16, k beside k; c and d [n][16][8].
 * Four tiles share one of b. What an item of a warp has of a tile is as PTX says of m16n8k16. */
typedef unsigned uint32_t;
typedef unsigned long long uint64_t;

struct tile {
    uint32_t a[4];
    float d[4];
};

/* Pairs of neighbours in k of rows g and g + 8, from column 2 t and from 8 further. */
__device__ static tile load(long n, int lane, const uint32_t *a, const float *c) {
    int g = lane / 4, t = lane % 4;
    tile x;
    a += n * 16 * 8;
    c += n * 16 * 8;
    for (int i = 0; i < 4; i++) x.a[i] = a[(g + i % 2 * 8) * 8 + t + i / 2 * 4];
    for (int i = 0; i < 4; i++) x.d[i] = c[(g + i / 2 * 8) * 8 + 2 * t + i % 2];
    return x;
}

__device__ static void store(long n, int lane, const tile &x, float *d) {
    int g = lane / 4, t = lane % 4;
    d += n * 16 * 8;
    for (int i = 0; i < 4; i++) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = x.d[i];
}

/* A warp a tile. */
extern "C" __global__ void by_mma(const uint32_t *a, const uint32_t *b, const float *c, float *d) {
    int lane = threadIdx.x % 32;
    long n = (long)blockIdx.x * 4 + threadIdx.x / 32;
    tile x = load(n, lane, a, c);
    const uint32_t *of = b + n / 4 * 8 * 8 + lane / 4 * 8 + lane % 4;
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(x.d[0]), "+f"(x.d[1]), "+f"(x.d[2]), "+f"(x.d[3])
                 : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "r"(of[0]), "r"(of[4]));
    store(n, lane, x, d);
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
/* Four warps four tiles, as 64 rows. b is in shared memory, in blocks of 8 columns x 16 bytes of k, one
 * after the other; the descriptor has its address, and the distance of blocks, in units of 16 bytes. */
extern "C" __global__ void by_wgmma(const uint32_t *a, const uint32_t *b, const float *c, float *d) {
    __shared__ __align__(128) uint32_t bs[2 * 8 * 4];
    int lane = threadIdx.x % 32;
    long n = (long)blockIdx.x * 4 + threadIdx.x / 32;
    tile x = load(n, lane, a, c);
    if (threadIdx.x < 64) {
        int column = threadIdx.x / 8, pair = threadIdx.x % 8;
        bs[pair / 4 * 32 + column * 4 + pair % 4] = b[(long)blockIdx.x * 64 + threadIdx.x];
    }
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    uint64_t at = (uint64_t)__cvta_generic_to_shared(bs);
    uint64_t descriptor = (at & 0x3ffff) >> 4 | (uint64_t)8 << 16 | (uint64_t)8 << 32;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("{ .reg .pred add; setp.ne.b32 add, 1, 0; "
                 "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, add, 1, 1, 0; }"
                 : "+f"(x.d[0]), "+f"(x.d[1]), "+f"(x.d[2]), "+f"(x.d[3])
                 : "r"(x.a[0]), "r"(x.a[1]), "r"(x.a[2]), "r"(x.a[3]), "l"(descriptor)
                 : "memory");
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    store(n, lane, x, d);
}
#endif
