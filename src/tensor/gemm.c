/* gemm.c - see gemm.h.
 *
 * Goto's scheme: b is packed in panels of KC x NC (strips of tile_n columns), a in blocks of MC x
 * KC (strips of tile_m rows); a tile of c stays in registers while k runs over the panel. Panels
 * are taken in the order of k, and a tile continues from the values in c, so each element remains
 * one chain. Threads split the columns or the rows of c, whichever are more, and each packs its own
 * operands.
 *
 * Source: Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34
 * (2008), article 12.
 */
#include "tensor/gemm.h"

#include <stdbool.h>
#include <string.h>

enum {
    STRIPS = 2,       /* strips of b packed together, for longer contiguous reads */
    FEW_STRIPS = 8,   /* with at most this many strips of b, packing a does not pay */
    AHEAD_ROWS = 512, /* with more rows, fetching b from memory is a small part of the time */
    LINE = 64
};

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

/* A block of a, a strip of packed b, and the place of their product. */
typedef struct column {
    int64_t m, n, depth;
    const float *a; /* row i begins at i * a_row; values of a tile are rs, cs apart */
    int64_t a_row, rs, cs;
    const float *rest; /* packed: the rows that do not fill a tile */
    const float *b;
    const float *start; /* [tile_n]; NULL: continue from c */
    float *c;
    int64_t ldc;
} column;

/* A tile at the edge of c is computed in a full tile in separate memory. */
static void tile_edge(const ls_kernels *k, const column *x, int64_t i, int64_t m) {
    float full[LS_TILE_MOST] = {0};
    float *c = x->c + i * x->ldc;
    size_t row = (size_t)x->n * sizeof *c;
    bool rest = m < k->tile_m;
    for (int64_t r = 0; r < m && !x->start; r++) memcpy(full + r * k->tile_n, c + r * x->ldc, row);
    k->gemm_tile(x->depth, rest ? x->rest : x->a + i * x->a_row, rest ? 1 : x->rs,
                 rest ? k->tile_m : x->cs, x->b, x->start, full, k->tile_n);
    for (int64_t r = 0; r < m; r++) memcpy(c + r * x->ldc, full + r * k->tile_n, row);
}

/* The part [p, p + depth) of k, for columns [j, j + n). */
typedef struct panel {
    int64_t p, depth, j, n;
} panel;

/* Memory that will be packed next: `count` segments of `nbytes`, `stride` bytes apart. Each tile
 * prefetches a few lines of it. */
typedef struct ahead {
    const char *p;
    int64_t count, nbytes, stride;
    int64_t segment, at; /* the next to prefetch */
    int64_t share;       /* lines for each tile */
} ahead;

/* The prefetch for the next columns of b. None if b is multiplied with many rows, since fetching
 * it is then cheap beside the products; none for a gradient (a is transposed), whose rows were just
 * used. */
static ahead ahead_of(const ls_kernels *k, const ls_gemm_job *g, const column *x, panel of) {
    if (of.n <= 0 || g->M > AHEAD_ROWS || g->a.rs == 1 || g->w.rows.data) return (ahead){0};
    const float *p = g->b.p + of.p * g->b.rs + of.j * g->b.cs;
    bool across = g->b.cs == 1;
    ahead y = {.p = (const char *)p,
               .count = across ? of.depth : of.n,
               .nbytes = (across ? of.n : of.depth) * (int64_t)sizeof *p,
               .stride = (across ? g->b.rs : g->b.cs) * (int64_t)sizeof *p};
    int64_t tiles = STRIPS * ((x->m + k->tile_m - 1) / k->tile_m);
    y.share = y.count * (y.nbytes / LINE + 1) / tiles + 1;
    return y;
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
        if (next->count) fetch_ahead(next);
        if (m == k->tile_m && x->n == k->tile_n)
            k->gemm_tile(x->depth, x->a + i * x->a_row, x->rs, x->cs, x->b, x->start,
                         x->c + i * x->ldc, x->ldc);
        else
            tile_edge(k, x, i, m);
    }
}

/* K is 0: c gets the values that its chains start from. */
static void start_only(const ls_gemm_job *g) {
    if (g->start == LS_GEMM_ADD) return;
    for (int64_t i = 0; i < g->M; i++)
        for (int64_t j = 0; j < g->N; j++)
            g->c[i * g->ldc + j] = g->start == LS_GEMM_BIAS ? g->bias[j] : 0.0f;
}

/* The rows [i, i + m) of a panel of a: packed, or, if only few strips of b use them, in place
 * except for the rows that do not fill a tile. */
static column rows_of(const ls_kernels *k, const ls_gemm_job *g, int64_t i, int64_t p,
                      int64_t depth, float *packed) {
    ls_matrix a = {g->a.p + i * g->a.rs + p * g->a.cs, g->a.rs, g->a.cs};
    column x = {.m = min64(LS_GEMM_MC, g->M - i), .depth = depth, .ldc = g->ldc};
    int64_t full = x.m / k->tile_m * k->tile_m;
    bool in_place = g->N <= FEW_STRIPS * k->tile_n && (a.rs == 1 || a.cs == 1);
    if (in_place) {
        x.a = a.p, x.a_row = a.rs, x.rs = a.rs, x.cs = a.cs;
        if (full < x.m) k->pack_a(x.m - full, depth, a.p + full * a.rs, a.rs, a.cs, packed);
        x.rest = packed;
    } else {
        k->pack_a(x.m, depth, a.p, a.rs, a.cs, packed);
        x.a = packed, x.a_row = depth, x.rs = 1, x.cs = k->tile_m;
        x.rest = packed + full * depth;
    }
    return x;
}

/* ---- weights of another type ---- */

enum { ROOM = LS_TILE_WIDEST * LS_BLOCK_MOST }; /* values that are widened at a time */

/* A strip of n columns, each a row of weights: some values of each are widened, then packed. */
static void pack_weight_rows(const ls_kernels *k, const ls_weight_matrix *w, panel of, float *out) {
    float room[ROOM];
    for (int64_t i = 0; i < of.depth; i += LS_BLOCK_MOST) {
        int64_t depth = min64(LS_BLOCK_MOST, of.depth - i);
        for (int64_t j = 0; j < of.n; j++)
            ls_stored_read(k, w->rows, (w->first + of.j + j) * w->width + of.p + i, depth,
                           room + j * depth);
        k->pack_b(depth, of.n, room, 1, depth, out + i * k->tile_n);
    }
}

/* Strips of n columns of the rows. */
static void pack_weight_columns(const ls_kernels *k, const ls_weight_matrix *w, panel of,
                                float *out) {
    float room[ROOM];
    int64_t most = ROOM / of.n;
    for (int64_t i = 0; i < of.depth; i += most) {
        int64_t depth = min64(most, of.depth - i);
        for (int64_t r = 0; r < depth; r++)
            ls_stored_read(k, w->rows, (of.p + i + r) * w->width + w->first + of.j, of.n,
                           room + r * of.n);
        for (int64_t s = 0; s < of.n; s += k->tile_n)
            k->pack_b(depth, min64(k->tile_n, of.n - s), room + s, of.n, 1,
                      out + s * of.depth + i * k->tile_n);
    }
}

/* Packs strips of b. */
static void pack_strips(const ls_kernels *k, const ls_gemm_job *g, panel of, float *out) {
    if (!g->w.rows.data) {
        const float *from = g->b.p + of.p * g->b.rs + of.j * g->b.cs;
        k->pack_b(of.depth, of.n, from, g->b.rs, g->b.cs, out);
        return;
    }
    if (!g->w.transposed) {
        pack_weight_columns(k, &g->w, of, out);
        return;
    }
    for (int64_t s = 0; s < of.n; s += k->tile_n)
        pack_weight_rows(
            k, &g->w, (panel){of.p, of.depth, of.j + s, min64(k->tile_n, of.n - s)},
            out + s * of.depth);
}

/* Strips of b are packed when the first block of rows needs them, and used at once; if that block
 * has all rows, the next strips overwrite them. */
static void run_panel(const ls_kernels *k, const ls_gemm_job *g, panel of, float *packed_a,
                      float *packed_b) {
    const int64_t p = of.p, depth = of.depth, j = of.j, n = of.n;
    float start[LS_TILE_MOST] = {0};
    bool first = p == 0 && g->start != LS_GEMM_ADD;
    int64_t group = STRIPS * k->tile_n;
    for (int64_t i = 0; i < g->M; i += LS_GEMM_MC) {
        column x = rows_of(k, g, i, p, depth, packed_a);
        ahead next = {0};
        for (int64_t s = 0; s < n; s += k->tile_n) {
            float *strip = packed_b + (g->M > LS_GEMM_MC ? s : s % group) * depth;
            x.b = g->packed_b ? g->packed_b + (j + s) * g->packed_K + p * k->tile_n : strip;
            x.n = min64(k->tile_n, n - s);
            x.c = g->c + i * g->ldc + j + s;
            x.start = first ? start : NULL;
            if (first && g->start == LS_GEMM_BIAS)
                memcpy(start, g->bias + j + s, (size_t)x.n * sizeof *start);
            if (!g->packed_b && i == 0 && s % group == 0) {
                pack_strips(k, g, (panel){p, depth, j + s, min64(group, n - s)}, strip);
                next = ahead_of(k, g, &x, (panel){p, depth, j + s + group, min64(group, n - s - group)});
            }
            run_column(k, &x, &next);
        }
    }
}

void ls_gemm_in_thread(const ls_compute *compute, int thread, const ls_gemm_job *g) {
    float *packed_a = ls_compute_gemm_work(compute, thread);
    float *packed_b = packed_a + LS_GEMM_MC * LS_GEMM_KALL;
    int64_t most = g->K <= LS_GEMM_KALL ? LS_GEMM_KALL : LS_GEMM_KC;
    if (g->K == 0) start_only(g);
    for (int64_t j = 0; j < g->N; j += LS_GEMM_NC)
        for (int64_t p = 0; p < g->K; p += most)
            run_panel(compute->k, g,
                      (panel){p, min64(most, g->K - p), j, min64(LS_GEMM_NC, g->N - j)}, packed_a,
                      packed_b);
}

int64_t ls_gemm_packed_floats(int64_t K, int64_t N) { return K * (N + LS_TILE_WIDEST - 1); }

void ls_gemm_pack(const ls_kernels *k, int64_t K, int64_t N, ls_matrix b, float *out) {
    k->pack_b(K, N, b.p, b.rs, b.cs, out);
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
        if (part.packed_b)
            part.packed_b += first * part.packed_K;
        else if (part.w.rows.data)
            part.w.first += first;
        else
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

/* Weights in f32 are packed where they are. */
static ls_gemm_job plain(const ls_gemm_job *g) {
    ls_gemm_job j = *g;
    if (!j.w.rows.data || j.w.rows.type != LS_BLOCK_F32) return j;
    const float *p = j.w.rows.data;
    j.b = j.w.transposed ? ls_matrix_transposed(p, j.w.width) : ls_matrix_of(p, j.w.width);
    j.b.p += j.w.first * j.b.cs;
    j.w.rows.data = NULL;
    return j;
}

void ls_gemm(const ls_compute *compute, const ls_gemm_job *g) {
    ls_gemm_job whole = plain(g);
    split_job s = {compute, &whole};
    ls_pool_run(compute->pool, split_run, &s);
}
