/* gemm.c - see gemm.h.
 *
 * Goto's scheme: b is packed in panels of KC x NC (strips of tile_n columns), a in blocks of MC x
 * KC (strips of tile_m rows); a tile of c stays in registers while k runs over the panel. Panels
 * are taken in the order of k, and a tile continues from the values in c, so each element remains
 * one chain. Products in bf16 pack words of one or two values of k, and panels are whole blocks
 * (kernels.h). Threads cut c into a grid, and each packs its own operands.
 *
 * Source: Goto & van de Geijn, "Anatomy of high-performance matrix multiplication", ACM TOMS 34
 * (2008), article 12.
 */
#include "tensor/gemm.h"

#include <stdbool.h>
#include <string.h>

#include "base/min.h"
#include "tensor/gemm_device.h"
#include "tensor/int8.h"

enum {
    STRIPS = 2,        /* strips of b packed together, for longer contiguous reads */
    WEIGHT_STRIPS = 4, /* the same of weights, whose values have fewer bytes */
    FEW_STRIPS = 8,    /* with at most this many strips of b, packing a does not pay */
    AHEAD_ROWS = 512,  /* with more rows, fetching b from memory is a small part of the time */
};

typedef struct tile {
    int m, n; /* rows, columns */
} tile;

static tile tile_of(const ls_kernels *k, bool bf16) {
    return bf16 ? (tile){k->bf16_m, k->bf16_n} : (tile){k->tile_m, k->tile_n};
}

/* A block of a, a strip of packed b, and the place of their product. */
typedef struct column {
    bool bf16;
    tile tile;
    int64_t m, n, depth;
    const float *a; /* row i begins at i * a_row; values of a tile are rs, cs apart */
    int64_t a_row, rs, cs;
    const float *rest; /* packed: the rows that do not fill a tile */
    const float *b;
    const float *start; /* [tile.n]; NULL: continue from c */
    float *c;
    int64_t ldc;
    uint16_t *rounded; /* NULL, or what gets the sums in place of c */
    ls_ahead *ahead;   /* prefetched meanwhile */
} column;

/* n tiles of c, one below the other; in f32 n is 1. */
static void tiles(const ls_kernels *k, const column *x, int64_t n, const float *a, float *c) {
    bool packed = a == x->rest;
    if (x->bf16) {
        k->bf16_tiles(&(ls_gemm_tiles){.n = n,
                                       .K = x->depth,
                                       .a = a,
                                       .b = x->b,
                                       .start = x->start,
                                       .c = c,
                                       .ldc = x->ldc,
                                       .rounded = x->rounded ? x->rounded + (c - x->c) : NULL,
                                       .ahead = x->ahead});
        return;
    }
    ls_ahead_fetch(x->ahead, x->ahead->share, 0);
    k->gemm_tile(x->depth, a, packed ? 1 : x->rs, packed ? k->tile_m : x->cs, x->b, x->start, c,
                 x->ldc);
}

/* A tile at the edge of c is computed in a full tile in separate memory. */
static void tile_edge(const ls_kernels *k, const column *x, int64_t i, int64_t m) {
    float full[LS_TILE_MOST];
    float *c = x->c + i * x->ldc;
    size_t row = (size_t)x->n * sizeof *c;
    int64_t width = x->tile.n;
    bool rest = m < x->tile.m;
    column one = *x;
    one.ldc = width;
    one.rounded = NULL;
    memset(full, 0, (size_t)(x->tile.m * width) * sizeof *full);
    for (int64_t r = 0; r < m && !x->start; r++) memcpy(full + r * width, c + r * x->ldc, row);
    tiles(k, &one, 1, rest ? x->rest : x->a + i * x->a_row, full);
    for (int64_t r = 0; r < m; r++)
        if (x->rounded)
            k->narrow(LS_BF16, (size_t)x->n, full + r * width, x->rounded + (i + r) * x->ldc);
        else
            memcpy(c + r * x->ldc, full + r * width, row);
}

/* The part [p, p + depth) of k, for columns [j, j + n). */
typedef struct panel {
    int64_t p, depth, j, n;
} panel;

/* Are panels cut for a matrix unit (cut_of)? */
static bool is_deep(const ls_kernels *k, const ls_gemm_job *g) {
    return g->bf16 && k->bf16_deepest;
}

/* Are the neighbours in b's memory values of a row? */
static bool is_across(const ls_gemm_job *g) { return !g->w.rows.data && g->b.cs == 1; }

/* Columns of b that are packed together: whole strips. A block of weights is widened as a whole, so
 * the columns are those of a block at least. */
static int64_t group_of(const ls_kernels *k, const ls_gemm_job *g) {
    int64_t width = tile_of(k, g->bf16).n;
    if (!g->w.rows.data || g->w.transposed) return STRIPS * width;
    int64_t strips = (ls_block_elements(g->w.rows.type) + width - 1) / width;
    return (strips > WEIGHT_STRIPS ? strips : WEIGHT_STRIPS) * width;
}

/* Each row of weights has a part of these columns, or is one of them. None where they are packed
 * from strips, which lie one after the other. */
static ls_ahead weights_ahead(const ls_gemm_job *g, panel of) {
    const ls_weight_matrix *w = &g->w;
    ls_block_type t = w->rows.type;
    bool across = !w->transposed;
    if (!across && w->rows.strips) return (ls_ahead){0};
    int64_t elements = ls_block_elements(t);
    int64_t row = across ? of.p : w->first + of.j, col = across ? w->first + of.j : of.p;
    int64_t first = (row * w->width + col) / elements * elements;
    int64_t n = ((across ? of.n : of.depth) + elements - 1) / elements * elements;
    return (ls_ahead){.p = (const char *)w->rows.data + ls_block_nbytes(t, first),
                      .count = across ? of.depth : of.n,
                      .nbytes = (int64_t)ls_block_nbytes(t, n),
                      .stride = (int64_t)ls_block_nbytes(t, w->width)};
}

/* None if b is multiplied with many rows, since fetching it is then cheap beside the products; none
 * for a gradient (a is transposed), whose rows were just used; none across rows of deep panels,
 * which packing itself prefetches. */
static ls_ahead matrix_ahead(const ls_kernels *k, const ls_gemm_job *g, panel of) {
    if (g->M > AHEAD_ROWS || g->a.rs == 1 || (is_deep(k, g) && is_across(g))) return (ls_ahead){0};
    int64_t size = g->b.bf16 ? 2 : 4;
    bool across = is_across(g);
    return (ls_ahead){.p = ls_matrix_from(g->b, of.p, of.j).p,
                      .count = across ? of.depth : of.n,
                      .nbytes = (across ? of.n : of.depth) * size,
                      .stride = (across ? g->b.rs : g->b.cs) * size};
}

/* The prefetch for these columns of b, while n others are multiplied. */
static ls_ahead ahead_of(const ls_kernels *k, const ls_gemm_job *g, const column *x, panel of,
                         int64_t n) {
    if (of.n <= 0) return (ls_ahead){0};
    ls_ahead y = g->w.rows.data ? weights_ahead(g, of) : matrix_ahead(k, g, of);
    int64_t tiles = n / x->tile.n * ((x->m + x->tile.m - 1) / x->tile.m);
    y.share = y.count * (y.nbytes / LS_AHEAD_LINE + 1) / tiles + 1;
    return y;
}

/* Rows i to x->m: a tile at the edge, or some whole ones. Returns the number of rows. */
static int64_t run_tiles(const ls_kernels *k, const column *x, int64_t i) {
    int64_t n = ls_min(x->bf16 ? x->m : 1, (x->m - i) / x->tile.m);
    if (n && x->n == x->tile.n) {
        tiles(k, x, n, x->a + i * x->a_row, x->c + i * x->ldc);
        return n * x->tile.m;
    }
    int64_t m = ls_min(x->tile.m, x->m - i);
    tile_edge(k, x, i, m);
    return m;
}

static void run_column(const ls_kernels *k, const column *x) {
    for (int64_t i = 0; i < x->m; i += run_tiles(k, x, i)) continue;
}

/* c gets the values that its chains start from. */
static void begin_chains(const ls_gemm_job *g) {
    if (g->start == LS_GEMM_ADD) return;
    for (int64_t i = 0; i < g->M; i++)
        for (int64_t j = 0; j < g->N; j++)
            g->c[i * g->ldc + j] = g->start == LS_GEMM_BIAS ? g->bias[j] : 0.0f;
}

/* The number of packed words of `depth` values. */
static int64_t words_of(const ls_kernels *k, bool bf16, int64_t depth) {
    return bf16 ? k->bf16_words(depth) : depth;
}

static void pack_a(const ls_kernels *k, bool bf16, int64_t M, int64_t K, ls_matrix a, float *out) {
    if (bf16)
        k->pack_a_bf16(M, K, &(ls_gemm_lines){a.p, a.bf16, a.rs, a.cs}, out);
    else
        k->pack_a(M, K, a.p, a.rs, a.cs, out);
}

void ls_gemm_pack(const ls_kernels *k, bool bf16, int64_t K, int64_t N, ls_matrix b, float *out) {
    if (bf16)
        k->pack_b_bf16(K, N, &(ls_gemm_lines){b.p, b.bf16, b.cs, b.rs}, out);
    else
        k->pack_b(K, N, b.p, b.rs, b.cs, out);
}

/* Do tiles of this panel round their sums themselves? With a matrix unit, if the sums are complete
 * and rows of a tile are whole lines. */
static bool tiles_round(const ls_kernels *k, const ls_gemm_job *g, panel of) {
    return g->rounded && is_deep(k, g) && g->start != LS_GEMM_ADD && of.depth && of.depth == g->K &&
           (uintptr_t)g->rounded % LS_AHEAD_LINE == 0 && g->ldc % k->bf16_n == 0;
}

/* The rows [i, i + m) of a panel of a: packed, or, if only few strips of b use them, in place
 * except for the rows that do not fill a tile. */
static column rows_of(const ls_kernels *k, const ls_gemm_job *g, int64_t i, int64_t m, panel of,
                      float *packed) {
    const int64_t depth = of.depth;
    ls_matrix a = ls_matrix_from(g->a, i, of.p);
    int64_t words = words_of(k, g->bf16, depth);
    column x = {.bf16 = g->bf16,
                .tile = tile_of(k, g->bf16),
                .m = ls_min(m, g->M - i),
                .depth = depth,
                .ldc = g->ldc};
    int64_t full = x.m / x.tile.m * x.tile.m;
    bool in_place = !g->bf16 && g->N <= FEW_STRIPS * x.tile.n && (a.rs == 1 || a.cs == 1);
    if (in_place) {
        x.a = a.p, x.a_row = a.rs, x.rs = a.rs, x.cs = a.cs;
        if (full < x.m) pack_a(k, false, x.m - full, depth, ls_matrix_from(a, full, 0), packed);
        x.rest = packed;
    } else {
        pack_a(k, g->bf16, x.m, depth, a, packed);
        x.a = packed, x.a_row = words, x.rs = 1, x.cs = x.tile.m;
        x.rest = packed + full * words;
    }
    return x;
}

/* ---- weights of another type ---- */

enum { ROOM = LS_TILE_WIDEST * LS_BLOCK_MOST }; /* values that are widened at a time */

/* Where weights are also in strips (gemv.h), columns are there as they are packed. False: not
 * these. */
static bool pack_from_strips(const ls_kernels *k, const ls_gemm_job *g, panel of, float *out) {
    const ls_weight_matrix *w = &g->w;
    int64_t first = w->first + of.j, whole = w->end / LS_GEMV_GROUP * LS_GEMV_GROUP;
    int64_t block = ls_max(ls_block_elements(w->rows.type), LS_STRIP_DEPTH);
    if (g->bf16 || !w->rows.strips || of.n != k->tile_n || first % k->strip_rows ||
        first + of.n > whole || of.p % block || of.depth % block)
        return false;
    k->unpack_strips(&(ls_strip_part){.type = w->rows.type,
                                      .strips = w->rows.strips,
                                      .C = w->width,
                                      .v = first,
                                      .n = of.n,
                                      .k = of.p,
                                      .depth = of.depth},
                     out);
    return true;
}

/* A strip of n columns, each a row of weights: some values of each are widened, then packed. */
static void pack_weight_rows(const ls_kernels *k, const ls_gemm_job *g, panel of, float *out) {
    const ls_weight_matrix *w = &g->w;
    float room[ROOM];
    if (pack_from_strips(k, g, of, out)) return;
    for (int64_t i = 0; i < of.depth; i += LS_BLOCK_MOST) {
        int64_t depth = ls_min(LS_BLOCK_MOST, of.depth - i);
        for (int64_t j = 0; j < of.n; j++) {
            int64_t at = (w->first + of.j + j) * w->width + of.p + i;
            ls_stored_read(k, w->rows, at, depth, room + j * depth);
        }
        ls_gemm_pack(k, g->bf16, depth, of.n, ls_matrix_transposed(room, depth),
                     out + words_of(k, g->bf16, i) * tile_of(k, g->bf16).n);
    }
}

/* Strips of n columns of the rows. */
static void pack_weight_columns(const ls_kernels *k, const ls_gemm_job *g, panel of, float *out) {
    const ls_weight_matrix *w = &g->w;
    float room[ROOM];
    int width = tile_of(k, g->bf16).n;
    int64_t most = ROOM / of.n / LS_SUM_BLOCK * LS_SUM_BLOCK,
            words = words_of(k, g->bf16, of.depth);
    for (int64_t i = 0; i < of.depth; i += most) {
        int64_t depth = ls_min(most, of.depth - i);
        for (int64_t r = 0; r < depth; r++)
            ls_stored_read(k, w->rows, (of.p + i + r) * w->width + w->first + of.j, of.n,
                           room + r * of.n);
        for (int64_t s = 0; s < of.n; s += width)
            ls_gemm_pack(k, g->bf16, depth, ls_min(width, of.n - s), ls_matrix_of(room + s, of.n),
                         out + s * words + words_of(k, g->bf16, i) * width);
    }
}

/* Packs strips of b. */
static void pack_strips(const ls_kernels *k, const ls_gemm_job *g, panel of, float *out) {
    if (!g->w.rows.data) {
        ls_gemm_pack(k, g->bf16, of.depth, of.n, ls_matrix_from(g->b, of.p, of.j), out);
        return;
    }
    if (!g->w.transposed) {
        pack_weight_columns(k, g, of, out);
        return;
    }
    int width = tile_of(k, g->bf16).n;
    for (int64_t s = 0; s < of.n; s += width)
        pack_weight_rows(k, g, (panel){of.p, of.depth, of.j + s, ls_min(width, of.n - s)},
                         out + s * words_of(k, g->bf16, of.depth));
}

/* The largest of `parts` parts of n, in whole units. */
static int64_t units_of(int64_t n, int64_t unit, int64_t parts) {
    return ((n + unit - 1) / unit + parts - 1) / parts * unit;
}

/* What is packed at a time: rows of a, columns of b, and values of k. */
typedef struct cut {
    int64_t rows, columns, depth;
} cut;

/* With a matrix unit c, in f32, is the largest part of what moves between memory and the caches, so
 * panels are deep: parts of k of about the same depth, and the rows of a that fill A_WORDS. */
static cut cut_of(const ls_kernels *k, const ls_gemm_job *g) {
    enum { A_WORDS = 1 << 18 }; /* 1 MB */
    int64_t in_word = g->bf16 ? k->bf16_depth : 1;
    if (!is_deep(k, g))
        return (cut){LS_GEMM_MC, LS_GEMM_NC,
                     in_word * (g->K <= LS_GEMM_KALL * in_word ? LS_GEMM_KALL : LS_GEMM_KC)};
    int64_t parts = (g->K + k->bf16_deepest - 1) / k->bf16_deepest, group = group_of(k, g);
    int64_t depth = units_of(g->K, LS_SUM_BLOCK, ls_max(parts, 1));
    int64_t words = ls_max(words_of(k, true, depth), 1);
    int64_t at_once = A_WORDS / words / k->bf16_m * k->bf16_m;
    int64_t rows = units_of(g->M, k->bf16_m, ls_max((g->M + at_once - 1) / at_once, 1));
    int64_t columns = (LS_GEMM_WORK / words - rows) / group * group;
    return (cut){rows, g->M <= rows ? g->N : columns, depth};
}

/* Strips of b are packed when the first block of rows needs them, and used at once; if that block
 * has all rows, the next strips overwrite them. */
static void run_panel(const ls_kernels *k, const ls_gemm_job *g, cut at_once, panel of,
                      float *packed_a) {
    float *packed_b = packed_a + at_once.rows * words_of(k, g->bf16, at_once.depth);
    const int64_t p = of.p, depth = of.depth, j = of.j, n = of.n;
    const int64_t words = words_of(k, g->bf16, depth), before = words_of(k, g->bf16, p);
    const int64_t packed_words = words_of(k, g->bf16, g->packed_K);
    float start[LS_TILE_WIDEST] = {0};
    bool first = p == 0 && g->start != LS_GEMM_ADD, rounds = tiles_round(k, g, of);
    int64_t width = tile_of(k, g->bf16).n, group = group_of(k, g);
    for (int64_t i = 0; i < g->M; i += at_once.rows) {
        column x = rows_of(k, g, i, at_once.rows, of, packed_a);
        ls_ahead next = {0};
        x.ahead = &next;
        for (int64_t s = 0; s < n; s += width) {
            float *strip = packed_b + (g->M > at_once.rows ? s : s % group) * words;
            x.b = g->packed_b ? g->packed_b + (j + s) * packed_words + before * width : strip;
            x.n = ls_min(width, n - s);
            x.c = g->c + i * g->ldc + j + s;
            x.rounded = rounds ? g->rounded + (x.c - g->c) : NULL;
            x.start = first ? start : NULL;
            if (first && g->start == LS_GEMM_BIAS)
                memcpy(start, g->bias + j + s, (size_t)x.n * sizeof *start);
            if (!g->packed_b && i == 0 && s % group == 0) {
                int64_t after = s + group;
                pack_strips(k, g, (panel){p, depth, j + s, ls_min(group, n - s)}, strip);
                next = ahead_of(k, g, &x, (panel){p, depth, j + after, ls_min(group, n - after)},
                                group);
            }
            run_column(k, &x);
        }
    }
}

/* The end of the panel from p on: at most `most`, whole blocks, later. A unit that begins in the
 * middle of a block begins a panel. */
static int64_t panel_end(const ls_gemm_job *g, int64_t p, int64_t most) {
    int64_t end = ls_min(p + most, g->K);
    if (!g->bf16 || !g->units.rows) return end;
    for (int64_t k = p + 1; k < end; k++)
        if ((k - p) % LS_SUM_BLOCK && ls_gemm_begins_unit(&g->units, k)) return k;
    return end;
}

/* Rounds the sums of n columns, unless tiles have done so. */
static void round_columns(const ls_kernels *k, const ls_gemm_job *g, panel last) {
    if (!g->rounded || tiles_round(k, g, last)) return;
    for (int64_t i = 0, at = last.j; i < g->M; i++, at += g->ldc)
        k->narrow(LS_BF16, (size_t)last.n, g->c + at, g->rounded + at);
}

void ls_gemm_in_thread(const ls_compute *compute, int thread, const ls_gemm_job *g) {
    cut part = cut_of(compute->k, g);
    if (g->K == 0) begin_chains(g);
    for (int64_t j = 0; j < g->N; j += part.columns) {
        panel of = {.j = j, .n = ls_min(part.columns, g->N - j)};
        for (int64_t p = 0; p < g->K; p += of.depth) {
            of.p = p;
            of.depth = panel_end(g, p, part.depth) - p;
            run_panel(compute->k, g, part, of, ls_compute_gemm_work(compute, thread));
        }
        round_columns(compute->k, g, of);
    }
}

/* With words of pairs a last block may be complete. */
int64_t ls_gemm_packed_floats(int64_t K, int64_t N) {
    int64_t pairs = (K + LS_SUM_BLOCK - 1) / LS_SUM_BLOCK * LS_SUM_BLOCK / 2;
    return (K > pairs ? K : pairs) * (N + LS_TILE_WIDEST - 1);
}

/* ---- threads ---- */

/* c cut into rows x columns parts, one a thread. */
typedef struct grid {
    int rows, columns;
} grid;

/* The time of the largest part, in multiply-adds: its tiles, and packing its operands. A value that
 * is packed takes about as long as PACK multiply-adds. */
static double time_of(const ls_kernels *k, const ls_gemm_job *g, grid x) {
    enum { PACK = 12 };
    tile t = tile_of(k, g->bf16);
    double m = (double)units_of(g->M, t.m, x.rows);
    double n = (double)units_of(g->N, t.n, x.columns);
    return (m * n + PACK * (m + (g->packed_b ? 0 : n))) * (double)g->K;
}

/* The grid that is done first. Few multiply-adds are not worth waking a thread. */
static grid grid_of(const ls_compute *c, const ls_gemm_job *g) {
    double fmas = (double)g->M * (double)g->N * (double)g->K;
    int most = ls_pool_threads_for(c->pool, fmas / LS_POOL_FMAS);
    grid best = {1, 1};
    double least = time_of(c->k, g, best);
    for (int rows = 1; rows <= most; rows++) {
        grid x = {rows, most / rows};
        double time = time_of(c->k, g, x);
        if (time < least) best = x, least = time;
    }
    return best;
}

typedef struct split_job {
    const ls_compute *compute;
    const ls_gemm_job *whole;
    grid grid;
} split_job;

static void take_columns(const ls_kernels *k, ls_gemm_job *part, int64_t first, int64_t end) {
    part->N = end - first;
    if (part->packed_b)
        part->packed_b += first * words_of(k, part->bf16, part->packed_K);
    else if (part->w.rows.data)
        part->w.first += first;
    else
        part->b = ls_matrix_from(part->b, 0, first);
    part->c += first;
    if (part->rounded) part->rounded += first;
    if (part->bias) part->bias += first;
}

static void split_run(void *arg, int thread, int nthreads) {
    const split_job *s = arg;
    const ls_kernels *k = s->compute->k;
    ls_gemm_job part = *s->whole;
    tile t = tile_of(k, part.bf16);
    int64_t first = 0, end = 0;
    (void)nthreads;
    ls_pool_share(part.N, t.n, thread % s->grid.columns, s->grid.columns, &first, &end);
    take_columns(k, &part, first, end);
    ls_pool_share(part.M, t.m, thread / s->grid.columns, s->grid.rows, &first, &end);
    part.M = end - first;
    part.a = ls_matrix_from(part.a, first, 0);
    part.c += first * part.ldc;
    if (part.rounded) part.rounded += first * part.ldc;
    if (part.M && part.N) ls_gemm_in_thread(s->compute, thread, &part);
}

/* ---- some rows with weights in strips ---- */

/* Reading a weight takes longer than multiplying it with these rows, so that packing it does not
 * pay. Each thread has a group of them. */
static bool is_some(const ls_compute *c, const ls_gemm_job *g) {
    const ls_weight_matrix *w = &g->w;
    return g->M > 1 && g->M <= LS_GEMM_SOME && !g->bf16 && !g->a.bf16 && g->a.cs == 1 &&
           w->transposed && w->rows.data && w->rows.strips && w->first % LS_GEMV_GROUP == 0 &&
           g->K == w->width && LS_GEMM_SOME * g->K <= LS_GEMM_WORK &&
           (g->M <= LS_GEMV_FEW || g->N >= LS_GEMV_GROUP * c->nthreads);
}

/* Rows of a, value by value. */
static void pack_rows(const ls_gemm_job *g, int64_t room, float *out) {
    const float *a = g->a.p;
    for (int64_t k = 0; k < g->K; k++)
        for (int64_t r = 0; r < room; r++) *out++ = r < g->M ? a[r * g->a.rs + k] : 0.0f;
}

/* A part whose columns are whole groups. */
static void multiply_some(const ls_compute *c, int thread, const ls_gemm_job *g) {
    const ls_weight_matrix *w = &g->w;
    const void *strips =
        (const char *)w->rows.strips + ls_block_nbytes(w->rows.type, w->first * w->width);
    bool groups = ls_strips_in_groups(w->rows.type);
    if (g->M <= LS_GEMV_FEW && groups) {
        c->k->gemv_few(&(ls_gemv_few_job){.table = {.w = {.type = w->rows.type, .strips = strips},
                                                    .V = g->N,
                                                    .C = g->K,
                                                    .x = g->a.p,
                                                    .y = g->c},
                                          .rows = g->M,
                                          .ldx = g->a.rs,
                                          .ldy = g->ldc});
        return;
    }
    int64_t room = g->M <= 4 ? 4 : groups && g->M <= 6 ? 6 : 8;
    float *x = ls_compute_gemm_work(c, thread);
    pack_rows(g, room, x);
    c->k->gemm_some(&(ls_gemm_some_job){.type = w->rows.type,
                                        .strips = strips,
                                        .V = g->N,
                                        .C = g->K,
                                        .M = g->M,
                                        .room = room,
                                        .x = x,
                                        .y = g->c,
                                        .ldy = g->ldc});
}

/* Whole groups from the strips; the last thread has the columns that fill none. */
static void some_run(void *arg, int thread, int nthreads) {
    const split_job *s = arg;
    ls_gemm_job part = *s->whole, rest;
    int64_t first = 0, end = 0;
    ls_pool_share(part.N, LS_GEMV_GROUP, thread, nthreads, &first, &end);
    take_columns(s->compute->k, &part, first, end);
    rest = part;
    int64_t whole = part.N / LS_GEMV_GROUP * LS_GEMV_GROUP;
    take_columns(s->compute->k, &rest, whole, part.N);
    part.N = whole;
    begin_chains(&part);
    if (part.N) multiply_some(s->compute, thread, &part);
    if (rest.N) ls_gemm_in_thread(s->compute, thread, &rest);
}

/* Weights that a product can pack where they are. */
static ls_gemm_job plain(const ls_gemm_job *g) {
    ls_gemm_job j = *g;
    bool half = j.bf16 && j.w.rows.type == LS_BLOCK_BF16;
    if (!j.w.rows.data || (j.w.rows.type != LS_BLOCK_F32 && !half)) return j;
    ls_matrix all = {j.w.rows.data, j.w.width, 1, half};
    if (j.w.transposed) all.rs = 1, all.cs = j.w.width;
    j.b = ls_matrix_from(all, 0, j.w.first);
    j.w.rows.data = NULL;
    return j;
}

/* Rows of a with rows of weights. */
static void in_int8(const ls_compute *compute, const ls_gemm_job *g) {
    const ls_weight_matrix *w = &g->w;
    ls_int8_multiply(compute, &(ls_int8_product){.M = g->M,
                                                 .V = g->N,
                                                 .C = g->K,
                                                 .w = ls_stored_at(w->rows, w->first * w->width),
                                                 .x = g->a.p,
                                                 .ldx = g->a.rs,
                                                 .bias = g->start == LS_GEMM_BIAS ? g->bias : NULL,
                                                 .add = g->start == LS_GEMM_ADD,
                                                 .y = g->c,
                                                 .ldy = g->ldc});
    round_columns(compute->k, g, (panel){.n = g->N});
}

void ls_gemm(const ls_compute *compute, const ls_gemm_job *g) {
    if (g->w.rows.data && g->w.rows.int8 && g->w.transposed) {
        in_int8(compute, g);
        return;
    }
    ls_gemm_job whole = plain(g);
    whole.w.end = whole.w.first + whole.N;
    if (compute->device) {
        ls_gemm_device(compute, &whole);
        return;
    }
    split_job s = {compute, &whole, {1, 1}};
    if (is_some(compute, &whole)) {
        ls_pool_run(compute->pool, some_run, &s);
        return;
    }
    s.grid = grid_of(compute, &whole);
    ls_pool_run_in(compute->pool, s.grid.rows * s.grid.columns, split_run, &s);
}
