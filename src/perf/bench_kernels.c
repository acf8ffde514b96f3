/* bench_kernels.c - see bench_kernels.h.
 *
 * Products have the shapes of GPT-2 124 M. Operands are as in training: activations stay at the
 * same address; weights and their gradients are at another address each time, as they are from
 * layer to layer. Each round measures every system and the peak once; a figure is the median over
 * rounds. Time is the thread's processor time, which excludes other users of its core.
 */
#include "perf/bench_kernels.h"

#include <string.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/mem.h"
#include "perf/probe.h"
#include "tensor/peak.h"

enum {
    RING = 64 << 20, /* floats: weights, one after another */
    PEAK_ROUNDS = 20000,
    SYSTEMS = 1 + LS_BENCH_RIVALS,
    PASS_ROWS = 16384, /* size of a pass over memory ... */
    PASS_WIDTH = 768   /* 50 MB an array: more than caches hold */
};
static const double round_s = 0.02; /* time for a system in a round; at least one run */

typedef enum product { FORWARD, DX, DW, NPRODUCTS } product;
static const char *const product_names[NPRODUCTS] = {"y = x W", "dx = dy W'", "dW += x' dy"};

/* A linear map of GPT-2 124 M; the head's table is stored transposed. */
typedef struct shape {
    const char *name;
    int64_t in, out;
    bool table;
} shape;
static const shape shapes[] = {{"qkv", 768, 2304, false},
                               {"attention out", 768, 768, false},
                               {"mlp in", 768, 3072, false},
                               {"mlp out", 3072, 768, false},
                               {"head", 768, 50257, true}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

typedef struct bench {
    const ls_bench_kernels *o;
    ls_compute compute; /* one thread */
    float *x, *y, *ring;
    void *x_in, *y_in; /* as operands: themselves, or other memory in bf16 */
    size_t x_floats, y_floats;
    int64_t turn;
    double peak; /* FLOP/s: the median over all rounds */
    double peaks[LS_BENCH_ROUNDS];
} bench;

static double measure_peak(const bench *b) {
    return ls_peak_of_thread(b->compute.k, b->o->bf16, PEAK_ROUNDS);
}

/* ---- products ---- */

/* Returns the next `floats` floats of the ring. */
static float *next_weights(bench *b, int64_t floats) {
    return b->ring + b->turn++ % (RING / floats) * floats;
}

/* A row-major matrix in the type of operands. */
static ls_matrix matrix_of(const bench *b, const void *p, int64_t ld) {
    return (ls_matrix){p, ld, 1, b->o->bf16};
}

/* With a table [out, in] instead of weights [in, out], all operands are transposed. */
static ls_gemm_job job_of(bench *b, const shape *s, product p, int64_t rows) {
    int64_t in = s->in, out = s->out;
    float *w = next_weights(b, in * out), *x = b->x, *y = b->y;
    ls_matrix as_is = matrix_of(b, w, s->table ? in : out), across = ls_matrix_across(as_is);
    ls_matrix weights = s->table ? across : as_is, back = s->table ? as_is : across;
    ls_matrix x_as_is = matrix_of(b, b->x_in, in), y_as_is = matrix_of(b, b->y_in, out);
    ls_matrix xt = ls_matrix_across(x_as_is), yt = ls_matrix_across(y_as_is);
    ls_gemm_job g = {.M = rows, .N = out, .K = in, .a = x_as_is, .b = weights, .c = y, .ldc = out};
    if (p == DX)
        g = (ls_gemm_job){.M = rows, .N = in, .K = out, .a = y_as_is, .b = back, .c = x, .ldc = in};
    if (p == DW && s->table)
        g = (ls_gemm_job){.M = out, .N = in, .K = rows, .a = yt, .b = x_as_is, .c = w, .ldc = in};
    if (p == DW && !s->table)
        g = (ls_gemm_job){.M = in, .N = out, .K = rows, .a = xt, .b = y_as_is, .c = w, .ldc = out};
    if (p == DW) g.start = LS_GEMM_ADD;
    g.bf16 = b->o->bf16;
    return g;
}

static void run_product(bench *b, int system, const shape *s, product p, int64_t rows) {
    ls_gemm_job g = job_of(b, s, p, rows);
    if (system == 0)
        ls_gemm_in_thread(&b->compute, 0, &g);
    else
        b->o->rivals[system - 1].run(b->o->rivals[system - 1].self, &g);
}

static double time_product(bench *b, int system, const shape *s, product p, int64_t rows) {
    double begin = ls_clock_thread_s(), seconds = 0;
    int64_t runs = 0;
    for (; runs == 0 || seconds < round_s; runs++) {
        run_product(b, system, s, p, rows);
        seconds = ls_clock_thread_s() - begin;
    }
    return seconds / (double)runs;
}

/* Measures FLOP/s of each system. */
static void measure_product(bench *b, const shape *s, product p, int64_t rows, double *flops) {
    double times[SYSTEMS][LS_BENCH_ROUNDS];
    int systems = 1 + b->o->nrivals;
    for (int i = 0; i < systems; i++) run_product(b, i, s, p, rows);
    for (int r = 0; r < b->o->rounds; r++) {
        b->peaks[r] = measure_peak(b);
        for (int i = 0; i < systems; i++) times[i][r] = time_product(b, i, s, p, rows);
    }
    b->peak = ls_median(b->peaks, (size_t)b->o->rounds);
    double work = 2.0 * (double)rows * (double)s->in * (double)s->out;
    for (int i = 0; i < systems; i++) flops[i] = work / ls_median(times[i], (size_t)b->o->rounds);
}

static void all_products(bench *b) {
    double flops[SYSTEMS];
    for (int r = 0; r < b->o->nrows; r++)
        for (int s = 0; s < NSHAPES; s++)
            for (int p = 0; p < NPRODUCTS; p++) {
                const shape *x = &shapes[s];
                measure_product(b, x, (product)p, b->o->rows[r], flops);
                ls_bench_product result = {.shape = x->name,
                                           .product = product_names[p],
                                           .rows = b->o->rows[r],
                                           .in = x->in,
                                           .out = x->out,
                                           .peak = b->peak,
                                           .ours = flops[0]};
                memcpy(result.rivals, flops + 1, sizeof result.rivals);
                b->o->product(b->o->arg, &result);
            }
}

/* ---- passes over memory ---- */

typedef struct arrays {
    float *a, *b, *c, *d; /* [PASS_ROWS * PASS_WIDTH] */
    float *side;          /* one number for each row or column */
} arrays;

typedef void pass_fn(const ls_kernels *, int64_t rows, const arrays *);

static int64_t cells(int64_t rows) { return rows * PASS_WIDTH; }
static void pass_add_to(const ls_kernels *k, int64_t rows, const arrays *x) {
    k->add(cells(rows), x->a, x->b, x->a);
}
static void pass_norm(const ls_kernels *k, int64_t rows, const arrays *x) {
    float *mean = x->side + 2 * PASS_WIDTH;
    k->layernorm(rows, PASS_WIDTH, x->a, x->side, x->side + PASS_WIDTH, x->b, mean, mean + rows);
}
static void pass_norm_dx(const ls_kernels *k, int64_t rows, const arrays *x) {
    float *mean = x->side + 2 * PASS_WIDTH;
    k->layernorm_dx(rows, PASS_WIDTH, x->a, x->b, x->side, mean, mean + rows, x->c, x->d);
}
static void pass_norm_dparams(const ls_kernels *k, int64_t rows, const arrays *x) {
    float *mean = x->side + 2 * PASS_WIDTH;
    k->layernorm_dparams(rows, PASS_WIDTH, 0, PASS_WIDTH, x->a, x->b, mean, mean + rows, x->side,
                         x->side + PASS_WIDTH);
}
static void pass_column_sum(const ls_kernels *k, int64_t rows, const arrays *x) {
    k->column_sum(rows, PASS_WIDTH, 0, PASS_WIDTH, x->a, x->side);
}
static void pass_gelu(const ls_kernels *k, int64_t rows, const arrays *x) {
    k->gelu(cells(rows), x->a, x->b);
}
static void pass_gelu_back(const ls_kernels *k, int64_t rows, const arrays *x) {
    k->gelu_back(cells(rows), x->a, x->b, x->b, x->c);
}
static void pass_loss(const ls_kernels *k, int64_t rows, const arrays *x) {
    for (int64_t r = 0; r < rows / 64; r++)
        k->cross_entropy(cells(64), x->a + r * cells(64), x->side + 2 * r);
}
static void pass_loss_dx(const ls_kernels *k, int64_t rows, const arrays *x) {
    float stat[2] = {4.0f, 0.001f};
    for (int64_t r = 0; r < rows / 64; r++)
        k->cross_entropy_dx(cells(64), x->a + r * cells(64), stat, 1, 0.01f);
}
static void pass_squares(const ls_kernels *k, int64_t rows, const arrays *x) {
    for (int64_t r = 0; r < rows; r++)
        x->side[r] = k->sum_squares(PASS_WIDTH, x->a + r * PASS_WIDTH);
}
static void pass_adamw(const ls_kernels *k, int64_t rows, const arrays *x) {
    float *const states[] = {x->c, x->d};
    k->update[LS_RULE_ADAMW](cells(rows), &ls_probe_adamw, x->a, x->b, states);
}

/* Arrays that a pass reads or writes; one that is both read and written counts twice. */
typedef struct pass {
    const char *name;
    pass_fn *run;
    int arrays;
} pass;
static const pass passes[] = {{"layer norm", pass_norm, 2},
                              {"layer norm dx", pass_norm_dx, 4},
                              {"layer norm dW", pass_norm_dparams, 2},
                              {"column sum", pass_column_sum, 1},
                              {"GELU", pass_gelu, 2},
                              {"GELU back", pass_gelu_back, 4},
                              {"cross-entropy", pass_loss, 1},
                              {"its dx", pass_loss_dx, 2},
                              {"squares", pass_squares, 1},
                              {"AdamW", pass_adamw, 7}};
enum { NPASSES = sizeof passes / sizeof *passes };

static void fill(float *x, size_t n) {
    for (size_t i = 0; i < n; i++) x[i] = (float)((i * 2654435761u >> 8) & 0xffff) / 65536.0f;
}

/* Returns bytes per second, and *limit_p, those of a += b or of a sum in the same rounds. */
static double measure_pass(const bench *b, const pass *p, const arrays *x, double *limit_p) {
    double times[LS_BENCH_ROUNDS], limits[LS_BENCH_ROUNDS];
    double nbytes = (double)cells(PASS_ROWS) * sizeof(float);
    pass_fn *limit = p->arrays == 1 ? pass_squares : pass_add_to;
    int moved = p->arrays == 1 ? 1 : 3;
    for (int r = 0; r < b->o->rounds; r++) {
        fill(x->a, (size_t)cells(PASS_ROWS));
        fill(x->d, (size_t)cells(PASS_ROWS));
        double begin = ls_clock_thread_s();
        limit(b->compute.k, PASS_ROWS, x);
        limits[r] = ls_clock_thread_s() - begin;
        fill(x->a, (size_t)cells(PASS_ROWS));
        begin = ls_clock_thread_s();
        p->run(b->compute.k, PASS_ROWS, x);
        times[r] = ls_clock_thread_s() - begin;
    }
    *limit_p = moved * nbytes / ls_median(limits, (size_t)b->o->rounds);
    return p->arrays * nbytes / ls_median(times, (size_t)b->o->rounds);
}

static void all_passes(bench *b) {
    size_t n = (size_t)cells(PASS_ROWS);
    arrays x = {b->ring, b->ring + n, b->ring + 2 * n, b->ring + 3 * n, b->ring + 4 * n};
    fill(b->ring, 5 * n);
    for (int i = 0; i < NPASSES; i++) {
        ls_bench_pass result = {.name = passes[i].name};
        result.speed = measure_pass(b, &passes[i], &x, &result.limit);
        b->o->pass(b->o->arg, &result);
    }
}

size_t ls_bench_pass_nbytes(void) { return (size_t)cells(PASS_ROWS) * sizeof(float); }

/* ---- all measurements ---- */

/* Operands in bf16: those of x and y lie in one part, and the ring is filled with such values. */
static ls_status open_bf16(bench *b, ls_error *e) {
    size_t n = b->x_floats + b->y_floats;
    void *p = NULL;
    LS_TRY(ls_map(n * sizeof(uint16_t), "measuring", &p, e));
    b->x_in = p;
    b->y_in = (uint16_t *)p + b->x_floats;
    b->compute.k->narrow(LS_BF16, n, b->x, p);
    for (size_t i = 0; i < RING; i += n)
        memcpy(b->ring + i, p, (RING - i < n ? RING - i : n) * sizeof(uint16_t));
    return LS_OK;
}

static ls_status open_bench(bench *b, ls_error *e) {
    void *p = NULL;
    int64_t most = 0;
    for (int i = 0; i < b->o->nrows; i++)
        if (b->o->rows[i] > most) most = b->o->rows[i];
    LS_TRY(ls_compute_init(&b->compute, 1, 0, e));
    b->x_floats = (size_t)most * 3072;
    b->y_floats = (size_t)most * 50257;
    LS_TRY(ls_map((b->x_floats + b->y_floats + RING) * sizeof(float), "measuring", &p, e));
    b->x = p;
    b->y = b->x + b->x_floats;
    b->ring = b->y + b->y_floats;
    fill(b->x, b->x_floats + b->y_floats + RING);
    b->x_in = b->x;
    b->y_in = b->y;
    return b->o->bf16 ? open_bf16(b, e) : LS_OK;
}

static void close_bench(bench *b) {
    if (b->x_in != b->x) ls_unmap(b->x_in, (b->x_floats + b->y_floats) * sizeof(uint16_t));
    if (b->x) ls_unmap(b->x, (b->x_floats + b->y_floats + RING) * sizeof(float));
    ls_compute_close(&b->compute);
}

ls_status ls_bench_kernels_run(const ls_bench_kernels *o, ls_error *e) {
    bench b = {.o = o};
    ls_status s = open_bench(&b, e);
    if (s == LS_OK) {
        b.peak = measure_peak(&b);
        o->begin(o->arg, b.compute.k->name, b.peak);
        all_products(&b);
        if (!o->bf16) all_passes(&b);
    }
    close_bench(&b);
    return s;
}
