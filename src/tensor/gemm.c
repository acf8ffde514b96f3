/* gemm.c - see gemm.h.
 *
 * Goto's scheme: b is packed in panels of KC x NC (strips of 16 columns), a in blocks of MC x KC
 * (strips of 6 rows); a tile of c stays in registers while k runs over the panel. Panels follow
 * each other in the order of k, and a tile goes on from what c holds, so the chain is never broken.
 * Threads split the columns or the rows of c, whichever are more, and each packs for itself.
 *
 * Source: Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34
 * (2008), article 12.
 */
#include "tensor/gemm.h"

#include <string.h>

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* One tile at the edge of c goes through a full tile in memory of its own. */
static void tile_edge(const ls_kernels *k, int64_t m, int64_t n, int64_t depth, const float *a,
                      const float *b, const float *start, float *c, int64_t ldc) {
    float full[LS_TILE_M * LS_TILE_N] = {0};
    size_t row = (size_t)n * sizeof *c;
    if (!start)
        for (int64_t i = 0; i < m; i++) memcpy(full + i * LS_TILE_N, c + i * ldc, row);
    k->gemm_tile(depth, a, b, start, full, LS_TILE_N);
    for (int64_t i = 0; i < m; i++) memcpy(c + i * ldc, full + i * LS_TILE_N, row);
}

/* c[0:M, 0:N] over one depth, from packed a and b. The first depth starts the chains. */
static void block(const ls_kernels *k, int64_t M, int64_t N, int64_t depth, const float *a,
                  const float *b, const float *bias, int first, float *c, int64_t ldc) {
    for (int64_t j = 0; j < N; j += LS_TILE_N) {
        float start[LS_TILE_N] = {0};
        int64_t n = min64(LS_TILE_N, N - j);
        if (first && bias) memcpy(start, bias + j, (size_t)n * sizeof *start);
        const float *from = first ? start : NULL;
        for (int64_t i = 0; i < M; i += LS_TILE_M) {
            int64_t m = min64(LS_TILE_M, M - i);
            const float *ai = a + i * depth, *bj = b + j * depth;
            float *cij = c + i * ldc + j;
            if (m == LS_TILE_M && n == LS_TILE_N)
                k->gemm_tile(depth, ai, bj, from, cij, ldc);
            else
                tile_edge(k, m, n, depth, ai, bj, from, cij, ldc);
        }
    }
}

/* A product over nothing: c is what its chains start with. */
static void start_only(const ls_gemm_job *g) {
    if (g->start == LS_GEMM_ADD) return;
    for (int64_t i = 0; i < g->M; i++)
        for (int64_t j = 0; j < g->N; j++)
            g->c[i * g->ldc + j] = g->start == LS_GEMM_BIAS ? g->bias[j] : 0.0f;
}

void ls_gemm_in_thread(const ls_compute *compute, int thread, const ls_gemm_job *g) {
    const ls_kernels *k = compute->k;
    float *packed_a = ls_compute_gemm_work(compute, thread);
    float *packed_b = packed_a + LS_GEMM_MC * LS_GEMM_KC;
    if (g->K == 0) start_only(g);
    for (int64_t j = 0; j < g->N; j += LS_GEMM_NC) {
        int64_t n = min64(LS_GEMM_NC, g->N - j);
        const float *bias = g->start == LS_GEMM_BIAS ? g->bias + j : NULL;
        for (int64_t p = 0; p < g->K; p += LS_GEMM_KC) {
            int64_t depth = min64(LS_GEMM_KC, g->K - p);
            int first = p == 0 && g->start != LS_GEMM_ADD;
            k->pack_b(depth, n, g->b.p + p * g->b.rs + j * g->b.cs, g->b.rs, g->b.cs, packed_b);
            for (int64_t i = 0; i < g->M; i += LS_GEMM_MC) {
                int64_t m = min64(LS_GEMM_MC, g->M - i);
                k->pack_a(m, depth, g->a.p + i * g->a.rs + p * g->a.cs, g->a.rs, g->a.cs, packed_a);
                block(k, m, n, depth, packed_a, packed_b, bias, first, g->c + i * g->ldc + j,
                      g->ldc);
            }
        }
    }
}

typedef struct split_job {
    const ls_compute *compute;
    const ls_gemm_job *whole;
} split_job;

static void split_run(void *arg, int thread, int nthreads) {
    const split_job *s = arg;
    ls_gemm_job part = *s->whole;
    int64_t first = 0, end = 0;
    if (part.N >= part.M) {
        ls_pool_share(part.N, LS_TILE_N, thread, nthreads, &first, &end);
        part.N = end - first;
        part.b.p += first * part.b.cs;
        part.c += first;
        if (part.bias) part.bias += first;
    } else {
        ls_pool_share(part.M, LS_TILE_M, thread, nthreads, &first, &end);
        part.M = end - first;
        part.a.p += first * part.a.rs;
        part.c += first * part.ldc;
    }
    if (part.M && part.N) ls_gemm_in_thread(s->compute, thread, &part);
}

void ls_gemm(const ls_compute *compute, const ls_gemm_job *g) {
    split_job s = {compute, g};
    ls_pool_run(compute->pool, split_run, &s);
}
