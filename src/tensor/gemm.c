/* gemm.c - see gemm.h.
 *
 * Goto's scheme: b is packed in panels of KC x NC (strips of tile_n columns), a in blocks of MC x
 * KC (strips of tile_m rows); a tile of c stays in registers while k runs over the panel. Panels
 * follow each other in the order of k, and a tile goes on from what c holds, so the chain is never
 * broken. Threads split the columns or the rows of c, whichever are more, and each packs for
 * itself.
 *
 * Source: Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34
 * (2008), article 12.
 */
#include "tensor/gemm.h"

#include <stdbool.h>
#include <string.h>

enum { STRIPS = 2 }; /* of b, packed together: longer pieces of memory */

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* A block of packed a, a strip of packed b, and where their product belongs. */
typedef struct column {
    int64_t m, n, depth;
    const float *a, *b;
    const float *start; /* [tile_n]; NULL: go on from c */
    float *c;
    int64_t ldc;
} column;

/* One tile at the edge of c goes through a full tile in memory of its own. */
static void tile_edge(const ls_kernels *k, const column *x, int64_t i, int64_t m) {
    float full[LS_TILE_MOST] = {0};
    float *c = x->c + i * x->ldc;
    size_t row = (size_t)x->n * sizeof *c;
    for (int64_t r = 0; r < m && !x->start; r++) memcpy(full + r * k->tile_n, c + r * x->ldc, row);
    k->gemm_tile(x->depth, x->a + i * x->depth, x->b, x->start, full, k->tile_n);
    for (int64_t r = 0; r < m; r++) memcpy(c + r * x->ldc, full + r * k->tile_n, row);
}

/* The next tile of c comes from memory while this one is computed. */
static void prefetch_tile(const ls_kernels *k, const float *c, int64_t ldc) {
    for (int i = 0; i < k->tile_m; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        __builtin_prefetch(c + i * ldc + k->tile_n - 1, 1);
    }
}

/* Memory that will be packed next: `count` segments of `nbytes`, `stride` bytes apart. It is
 * fetched some lines a tile. */
typedef struct ahead {
    const char *p;
    int64_t count, nbytes, stride;
    int64_t segment, at; /* how far it has come */
    int64_t share;       /* lines a tile */
} ahead;

enum { LINE = 64 };

static ahead ahead_of(ls_matrix b, int64_t depth, int64_t n, int64_t tiles) {
    ahead x = {.p = (const char *)b.p, .stride = (int64_t)sizeof(float)};
    x.count = b.cs == 1 ? depth : n;
    x.nbytes = (b.cs == 1 ? n : depth) * (int64_t)sizeof(float);
    x.stride *= b.cs == 1 ? b.rs : b.cs;
    x.share = x.count * (x.nbytes / LINE + 1) / tiles + 1;
    return x;
}

static void fetch_ahead(ahead *x) {
    for (int64_t i = 0; i < x->share && x->segment < x->count; i++) {
        __builtin_prefetch(x->p + x->segment * x->stride + x->at);
        x->at += LINE;
        if (x->at < x->nbytes + LINE) continue;
        x->at = 0;
        x->segment++;
    }
}

static void run_column(const ls_kernels *k, const column *x, ahead *next) {
    for (int64_t i = 0; i < x->m; i += k->tile_m) {
        int64_t m = min64(k->tile_m, x->m - i);
        if (i + k->tile_m < x->m) prefetch_tile(k, x->c + (i + k->tile_m) * x->ldc, x->ldc);
        fetch_ahead(next);
        if (m == k->tile_m && x->n == k->tile_n)
            k->gemm_tile(x->depth, x->a + i * x->depth, x->b, x->start, x->c + i * x->ldc, x->ldc);
        else
            tile_edge(k, x, i, m);
    }
}

/* A product over nothing: c is what its chains start with. */
static void start_only(const ls_gemm_job *g) {
    if (g->start == LS_GEMM_ADD) return;
    for (int64_t i = 0; i < g->M; i++)
        for (int64_t j = 0; j < g->N; j++)
            g->c[i * g->ldc + j] = g->start == LS_GEMM_BIAS ? g->bias[j] : 0.0f;
}

/* Panel [p, p + depth) of k, columns [j, j + n). Strips of b are packed when the first rows need
 * them, and used at once; where these are all rows, the next strips take their place. */
static void run_panel(const ls_kernels *k, const ls_gemm_job *g, int64_t p, int64_t depth,
                      int64_t j, int64_t n, float *packed_a, float *packed_b) {
    float start[LS_TILE_MOST] = {0};
    bool first = p == 0 && g->start != LS_GEMM_ADD;
    int64_t group = STRIPS * k->tile_n;
    for (int64_t i = 0; i < g->M; i += LS_GEMM_MC) {
        column x = {.m = min64(LS_GEMM_MC, g->M - i), .depth = depth, .a = packed_a, .ldc = g->ldc};
        ls_matrix b = {g->b.p + p * g->b.rs + j * g->b.cs, g->b.rs, g->b.cs};
        ahead next = {0};
        k->pack_a(x.m, depth, g->a.p + i * g->a.rs + p * g->a.cs, g->a.rs, g->a.cs, packed_a);
        for (int64_t s = 0; s < n; s += k->tile_n) {
            float *strip = packed_b + (g->M > LS_GEMM_MC ? s : s % group) * depth;
            x.b = strip;
            x.n = min64(k->tile_n, n - s);
            x.c = g->c + i * g->ldc + j + s;
            x.start = first ? start : NULL;
            if (first && g->start == LS_GEMM_BIAS)
                memcpy(start, g->bias + j + s, (size_t)x.n * sizeof *start);
            if (i == 0 && s % group == 0) {
                int64_t rest = n - s - group, tiles = STRIPS * ((x.m + k->tile_m - 1) / k->tile_m);
                ls_matrix from = {b.p + s * b.cs, b.rs, b.cs};
                k->pack_b(depth, min64(group, n - s), from.p, from.rs, from.cs, strip);
                from.p += group * b.cs;
                next = rest > 0 ? ahead_of(from, depth, min64(group, rest), tiles) : (ahead){0};
            }
            run_column(k, &x, &next);
        }
    }
}

void ls_gemm_in_thread(const ls_compute *compute, int thread, const ls_gemm_job *g) {
    float *packed_a = ls_compute_gemm_work(compute, thread);
    float *packed_b = packed_a + LS_GEMM_MC * LS_GEMM_KC;
    if (g->K == 0) start_only(g);
    for (int64_t j = 0; j < g->N; j += LS_GEMM_NC)
        for (int64_t p = 0; p < g->K; p += LS_GEMM_KC)
            run_panel(compute->k, g, p, min64(LS_GEMM_KC, g->K - p), j, min64(LS_GEMM_NC, g->N - j),
                      packed_a, packed_b);
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
        ls_pool_share(part.N, s->compute->k->tile_n, thread, nthreads, &first, &end);
        part.N = end - first;
        part.b.p += first * part.b.cs;
        part.c += first;
        if (part.bias) part.bias += first;
    } else {
        ls_pool_share(part.M, s->compute->k->tile_m, thread, nthreads, &first, &end);
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
