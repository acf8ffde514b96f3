/* bench_device.c - see bench_device.h.
 *
 * What training queues is measured: products and attention by the calls of the layers. Weights and
 * activations are random numbers of the usual size, so nothing overflows, and no number is below
 * 1.2e-38.
 */
#include "perf/bench_device.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/mem.h"
#include "layers/heads_device.h"
#include "model/row_device.h"
#include "perf/probe.h"
#include "tensor/gemm_device.h"
#include "tensor/update_device.h"

/* A model, and how long a measurement takes at least. */
typedef struct sizes {
    const char *name;
    int64_t C, V, heads, T, rows;
    size_t copy_nbytes;
    double round_s;
} sizes;
static const sizes gpt2 = {"GPT-2 124 M", 768, 50257, 12, 1024, 4096, 256 << 20, 0.02};
static const sizes small = {"a small model", 64, 512, 4, 64, 64, 1 << 20, 0};

typedef struct bench {
    const sizes *z;
    ls_compute compute; /* its device alone is set */
    int rounds;
    int64_t rows;
    /* Memory of the device: x, y [rows, 4 C] and at least a table's worth, three more of a table's
     * size, and logits [rows, V]. */
    float *x, *y, *weights[4], *logits;
    double *sums; /* [rows, 3]: statistics and losses of rows */
} bench;

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t table_floats(const sizes *z) { return most(4 * z->C * z->C, z->C * z->V); }
static int64_t side_floats(const bench *b) {
    return most(4 * b->z->C * b->rows, table_floats(b->z));
}

/* ---- time ---- */

typedef void queue_fn(const bench *, const void *arg);

static ls_status finish(const bench *b, ls_error *e) {
    LS_TRY(ls_device_finish(b->compute.device, LS_DEVICE_COMPUTE, e));
    return ls_device_finish(b->compute.device, LS_DEVICE_COPY, e);
}

static ls_status time_runs(const bench *b, queue_fn *queue, const void *arg, int64_t n, double *s_p,
                           ls_error *e) {
    int64_t begin = ls_clock_ns();
    for (int64_t i = 0; i < n; i++) queue(b, arg);
    LS_TRY(finish(b, e));
    *s_p = (double)(ls_clock_ns() - begin) / 1e9;
    return LS_OK;
}

/* Seconds of one: the median of rounds, in each of which enough are queued. */
static ls_status measure(const bench *b, queue_fn *queue, const void *arg, double *s_p,
                         ls_error *e) {
    double times[LS_BENCH_ROUNDS], s = 0;
    int64_t n = 1;
    LS_TRY(time_runs(b, queue, arg, 1, &s, e)); /* the first may load its kernel */
    if (b->z->round_s > 0) LS_TRY(time_runs(b, queue, arg, 1, &s, e));
    while (s < b->z->round_s && n < 1 << 14) {
        n *= 2;
        LS_TRY(time_runs(b, queue, arg, n, &s, e));
    }
    for (int r = 0; r < b->rounds; r++) {
        LS_TRY(time_runs(b, queue, arg, n, &times[r], e));
        times[r] /= (double)n;
    }
    *s_p = ls_median(times, (size_t)b->rounds);
    return LS_OK;
}

/* ---- products ---- */

typedef struct product {
    const char *shape, *name;
    int64_t in, out;
    bool table; /* it is stored transposed */
    bool bf16;
    enum { FORWARD, DX, DW } pass;
} product;

/* Operands as in perf/bench_kernels.c. */
static void queue_product(const bench *b, const void *arg) {
    const product *p = arg;
    float *w = b->weights[0], *y = p->table ? b->logits : b->y;
    int64_t in = p->in, out = p->out, rows = b->rows;
    ls_matrix as_is = {w, p->table ? in : out, 1, false}, across = ls_matrix_across(as_is);
    ls_matrix weights = p->table ? across : as_is, back = p->table ? as_is : across;
    ls_matrix xm = {b->x, in, 1, false}, ym = {y, out, 1, false};
    ls_matrix xt = ls_matrix_across(xm), yt = ls_matrix_across(ym);
    ls_gemm_job g = {.M = rows, .N = out, .K = in, .a = xm, .b = weights, .c = y, .ldc = out};
    if (p->pass == DX)
        g = (ls_gemm_job){.M = rows, .N = in, .K = out, .a = ym, .b = back, .c = b->x, .ldc = in};
    if (p->pass == DW && p->table)
        g = (ls_gemm_job){.M = out, .N = in, .K = rows, .a = yt, .b = xm, .c = w, .ldc = in};
    if (p->pass == DW && !p->table)
        g = (ls_gemm_job){.M = in, .N = out, .K = rows, .a = xt, .b = ym, .c = w, .ldc = out};
    if (p->pass == DW) g.c = b->weights[1]; /* sums would grow for ever */
    g.bf16 = p->bf16;
    ls_gemm_device(&b->compute, &g);
}

/* ---- attention, in the memory of logits: q k v and y, and their gradients ---- */

static ls_heads heads_of(const bench *b) {
    int64_t C = b->z->C, T = b->rows < b->z->T ? b->rows : b->z->T;
    float *qkv = b->x, *dqkv = b->y;
    return (ls_heads){.compute = &b->compute,
                      .n = b->rows / T,
                      .T = T,
                      .S = T,
                      .heads = b->z->heads,
                      .kv_heads = b->z->heads,
                      .D = C / b->z->heads,
                      .causal = true,
                      .q = qkv,
                      .k = qkv + C,
                      .v = qkv + 2 * C,
                      .q_row = 3 * C,
                      .kv_row = 3 * C,
                      .stat = b->weights[2],
                      .y = b->weights[3],
                      .dy = {b->weights[3], C, 1, false},
                      .dq = dqkv,
                      .dk = dqkv + C,
                      .dv = dqkv + 2 * C};
}

static void queue_attention(const bench *b, const void *back) {
    const ls_heads a = heads_of(b);
    if (back)
        ls_heads_device_backward(&a);
    else
        ls_heads_device_forward(&a);
}

/* ---- passes over memory ---- */

static void queue_add(const bench *b, const void *arg) {
    (void)arg;
    ls_row_device_add(&b->compute, 4 * b->z->C * b->rows, b->x, b->x, b->y);
}

static void queue_gelu(const bench *b, const void *arg) {
    (void)arg;
    ls_row_device_gelu(&b->compute, 4 * b->z->C * b->rows, b->x, b->y);
}

static void queue_gelu_back(const bench *b, const void *arg) {
    (void)arg;
    ls_row_device_gelu_back(&b->compute, 4 * b->z->C * b->rows, b->x, b->y, b->y);
}

static void queue_column_sum(const bench *b, const void *arg) {
    ls_matrix x = {b->x, 4 * b->z->C, 1, false};
    (void)arg;
    ls_row_device_column_sum(&b->compute, b->rows, x, false, b->weights[0]);
}

/* The parameters of a layer norm, and statistics of rows, are where weights[1] and [2] begin. */
static void queue_norm(const bench *b, const void *back) {
    enum { ROWS = 16 }; /* of a group */
    float *gamma = b->weights[1], *beta = gamma + b->z->C, *mean = b->weights[2];
    ls_device_call forward = {.kernel = LS_KERNEL_layernorm,
                              .groups_x = ls_device_groups(b->rows, ROWS),
                              .groups_y = 1,
                              .args = {{.l = b->rows},
                                       {.l = b->z->C},
                                       {.from = b->x},
                                       {.from = gamma},
                                       {.from = beta},
                                       {.p = b->y},
                                       {.p = mean},
                                       {.p = mean + b->rows}}};
    ls_device_call dx = {.kernel = LS_KERNEL_layernorm_dx,
                         .groups_x = forward.groups_x,
                         .groups_y = 1,
                         .args = {{.l = b->rows},
                                  {.l = b->z->C},
                                  {.from = b->y},
                                  {.from = b->x},
                                  {.from = gamma},
                                  {.from = mean},
                                  {.from = mean + b->rows},
                                  {.from = b->x},
                                  {.p = b->weights[3]}}};
    ls_compute_launch(&b->compute, back ? &dx : &forward);
}

static void queue_squares(const bench *b, const void *arg) {
    enum { BLOCK = 1024 };
    (void)arg;
    ls_update_device_squares(&b->compute, &(ls_squares_call){table_floats(b->z) / BLOCK, BLOCK, 0},
                             b->weights[0], b->sums);
}

static void queue_adamw(const bench *b, const void *arg) {
    float *const states[] = {b->weights[2], b->weights[3]};
    (void)arg;
    ls_update_device(&b->compute, &(ls_update_device_call){.rule = LS_RULE_ADAMW,
                                                           .n = table_floats(b->z),
                                                           .scalars = &ls_probe_adamw,
                                                           .grad = b->weights[0],
                                                           .param = b->weights[1],
                                                           .states = states});
}

/* Arrays that a pass reads or writes, of rows of `width` C, or of a table. */
typedef struct pass {
    const char *name;
    queue_fn *queue;
    const void *arg;
    int arrays, width; /* width 0: tables */
} pass;
static const pass passes[] = {{"add", queue_add, NULL, 3, 4},
                              {"layer norm", queue_norm, NULL, 2, 1},
                              {"layer norm dx", queue_norm, "back", 4, 1},
                              {"column sum", queue_column_sum, NULL, 1, 4},
                              {"GELU", queue_gelu, NULL, 2, 4},
                              {"GELU back", queue_gelu_back, NULL, 3, 4},
                              {"squares", queue_squares, NULL, 1, 0},
                              {"AdamW", queue_adamw, NULL, 7, 0}};
enum { NPASSES = sizeof passes / sizeof *passes };

/* ---- opening ---- */

static ls_status get(bench *b, int64_t floats, float **p_p, ls_error *e) {
    void *p = NULL;
    LS_TRY(
        ls_device_alloc(b->compute.device, (size_t)floats * sizeof(float), "a benchmark", &p, e));
    *p_p = p;
    return LS_OK;
}

/* Numbers of 0 to 1, by a repeated part. */
static void fill(const bench *b, float *to, int64_t floats, const float *part, int64_t npart) {
    for (int64_t i = 0; i < floats; i += npart)
        ls_device_copy_to(b->compute.device, LS_DEVICE_COMPUTE, to + i, part,
                          (size_t)(floats - i < npart ? floats - i : npart) * sizeof(float));
}

static ls_status fill_all(const bench *b, ls_error *e) {
    enum { PART = 1 << 16 };
    float *part = LS_NEW_ARRAY(float, PART);
    for (size_t i = 0; i < PART; i++) part[i] = (float)((i * 2654435761u >> 8) & 0xffff) / 65536.0f;
    fill(b, b->x, side_floats(b), part, PART);
    fill(b, b->y, side_floats(b), part, PART);
    for (int i = 0; i < 4; i++) fill(b, b->weights[i], side_floats(b), part, PART);
    fill(b, b->logits, b->rows * b->z->V, part, PART);
    ls_status s = finish(b, e);
    free(part);
    return s;
}

static void close_bench(bench *b) {
    ls_device *d = b->compute.device;
    if (!d) return;
    finish(b, NULL);
    float *const all[] = {b->x,          b->y,          b->weights[0], b->weights[1],
                          b->weights[2], b->weights[3], b->logits,     (float *)(void *)b->sums};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ls_device_free(d, all[i]);
    ls_device_close(d);
    *b = (bench){0};
}

static ls_status open_memory(bench *b, ls_error *e) {
    float *sums = NULL;
    LS_TRY(get(b, side_floats(b), &b->x, e));
    LS_TRY(get(b, side_floats(b), &b->y, e));
    for (int i = 0; i < 4; i++) LS_TRY(get(b, side_floats(b), &b->weights[i], e));
    LS_TRY(get(b, b->rows * b->z->V, &b->logits, e));
    LS_TRY(get(b, most(8 * b->rows, table_floats(b->z) / 256), &sums, e));
    b->sums = (double *)(void *)sums;
    return fill_all(b, e);
}

/* On failure nothing is open. */
static ls_status open_bench(bench *b, const ls_bench_device *o, int64_t rows, ls_error *e) {
    ls_device_seen list[LS_DEVICE_LIST];
    int n = 0;
    *b = (bench){.rounds = o->rounds};
    LS_TRY(ls_device_list(o->device, list, &n, e));
    LS_TRY(ls_device_open(o->device, &b->compute.device, e));
    b->z = o->small || (n > 0 && list[0].is_cores) ? &small : &gpt2;
    b->rows = rows ? rows : b->z->rows;
    ls_status s = open_memory(b, e);
    if (s != LS_OK) close_bench(b);
    return s;
}

/* ---- all kernels ---- */

static void report(const ls_bench_device *o, const bench *b, ls_bench_launch *r, double work) {
    r->rows = b->rows;
    r->per_s = work / r->seconds;
    o->launch(o->arg, r);
}

static ls_status run_products(const ls_bench_device *o, const bench *b, ls_error *e) {
    static const char *const names[] = {"y = x W", "dx = dy W'", "dW += x' dy"};
    int64_t C = b->z->C;
    const product shapes[] = {{.shape = "qkv", .in = C, .out = 3 * C},
                              {.shape = "attention out", .in = C, .out = C},
                              {.shape = "mlp in", .in = C, .out = 4 * C},
                              {.shape = "mlp out", .in = 4 * C, .out = C},
                              {.shape = "head", .in = C, .out = b->z->V, .table = true}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int k = FORWARD; k <= DW; k++) {
            product p = shapes[i];
            p.pass = k == FORWARD ? FORWARD : k == DX ? DX : DW;
            ls_bench_launch r = {.name = names[k], .shape = p.shape, .is_product = true};
            LS_TRY(measure(b, queue_product, &p, &r.seconds, e));
            double flops = 2.0 * (double)b->rows * (double)p.in * (double)p.out;
            report(o, b, &r, flops);
        }
    return LS_OK;
}

/* Of scores, those that queries see: half. Backward has 5 products where forward has 2. */
static ls_status run_attention(const ls_bench_device *o, const bench *b, ls_error *e) {
    const ls_heads a = heads_of(b);
    double forward = 2.0 * (double)a.n * (double)a.T * (double)a.T * (double)b->z->C;
    ls_bench_launch there = {.name = "forward", .shape = "attention", .is_product = true};
    ls_bench_launch back = {.name = "backward", .shape = "attention", .is_product = true};
    LS_TRY(measure(b, queue_attention, NULL, &there.seconds, e));
    report(o, b, &there, forward);
    LS_TRY(measure(b, queue_attention, "back", &back.seconds, e));
    report(o, b, &back, 2.5 * forward);
    return LS_OK;
}

static ls_status run_passes(const ls_bench_device *o, const bench *b, ls_error *e) {
    for (int i = 0; i < NPASSES; i++) {
        const pass *p = &passes[i];
        ls_bench_launch r = {.name = p->name, .shape = ""};
        int64_t floats = p->width ? p->width * b->z->C * b->rows : table_floats(b->z);
        LS_TRY(measure(b, p->queue, p->arg, &r.seconds, e));
        report(o, b, &r, (double)p->arrays * (double)floats * sizeof(float));
    }
    return LS_OK;
}

static ls_status run_rows(const ls_bench_device *o, int i, ls_error *e) {
    bench b;
    LS_TRY(open_bench(&b, o, o->rows[i], e));
    if (i == 0) o->begin(o->arg, b.compute.device->name, b.z->name);
    ls_status s = run_products(o, &b, e);
    if (s == LS_OK) s = fill_all(&b, e); /* products of products have grown */
    if (s == LS_OK) s = run_attention(o, &b, e);
    if (s == LS_OK) s = fill_all(&b, e);
    if (s == LS_OK) s = run_passes(o, &b, e);
    close_bench(&b);
    return s;
}

ls_status ls_bench_device_run(const ls_bench_device *o, ls_error *e) {
    for (int i = 0; i < o->nrows; i++) LS_TRY(run_rows(o, i, e));
    return LS_OK;
}

/* ---- the device itself ---- */

typedef struct transfer {
    void *host;
    size_t nbytes;
    enum { TO, FROM, WITHIN } way;
} transfer;

static void queue_copy(const bench *b, const void *arg) {
    const transfer *t = arg;
    ls_device *d = b->compute.device;
    if (t->way == TO) ls_device_copy_to(d, LS_DEVICE_COPY, b->x, t->host, t->nbytes);
    if (t->way == FROM) ls_device_copy_from(d, LS_DEVICE_COPY, t->host, b->x, t->nbytes);
    if (t->way == WITHIN) ls_device_copy(d, LS_DEVICE_COPY, b->y, b->x, t->nbytes);
}

static void queue_least(const bench *b, const void *arg) {
    (void)arg;
    ls_row_device_add(&b->compute, 1, b->x, b->x, b->y);
}

static ls_status measure_copies(const bench *b, void *host, size_t nbytes, double *to_p,
                                double *from_p, ls_error *e) {
    transfer to = {host, nbytes, TO}, from = {host, nbytes, FROM};
    LS_TRY(measure(b, queue_copy, &to, to_p, e));
    LS_TRY(measure(b, queue_copy, &from, from_p, e));
    *to_p = (double)nbytes / *to_p;
    *from_p = (double)nbytes / *from_p;
    return LS_OK;
}

static ls_status measure_transfers(const bench *b, ls_device_figures *f, ls_error *e) {
    size_t fits = (size_t)side_floats(b) * sizeof(float);
    void *host = NULL;
    f->nbytes = b->z->copy_nbytes < fits ? b->z->copy_nbytes : fits;
    LS_TRY(ls_map(f->nbytes, "copies", &host, e));
    memset(host, 0, f->nbytes);
    ls_status s = measure_copies(b, host, f->nbytes, &f->to, &f->from, e);
    f->pinned_to = f->to; /* where memory can't be pinned */
    f->pinned_from = f->from;
    if (s == LS_OK && ls_device_pin(b->compute.device, host, f->nbytes, NULL) == LS_OK) {
        s = measure_copies(b, host, f->nbytes, &f->pinned_to, &f->pinned_from, e);
        finish(b, NULL);
        ls_device_unpin(b->compute.device, host);
    }
    ls_unmap(host, f->nbytes);
    return s;
}

static ls_status measure_device(const bench *b, ls_device_figures *f, ls_error *e) {
    product p = {.in = b->z->C, .out = 4 * b->z->C};
    double flops = 2.0 * (double)b->rows * (double)p.in * (double)p.out;
    transfer within = {NULL, 0, WITHIN};
    double seconds = 0;
    LS_TRY(measure_transfers(b, f, e));
    within.nbytes = f->nbytes;
    LS_TRY(measure(b, queue_copy, &within, &seconds, e));
    f->memory = 2 * (double)f->nbytes / seconds;
    LS_TRY(fill_all(b, e));
    LS_TRY(measure(b, queue_product, &p, &seconds, e));
    f->rows = b->rows;
    f->in = p.in;
    f->out = p.out;
    f->product = flops / seconds;
    p.bf16 = true;
    LS_TRY(measure(b, queue_product, &p, &seconds, e));
    f->product_bf16 = flops / seconds;
    return measure(b, queue_least, NULL, &f->launch_s, e);
}

ls_status ls_bench_device_machine(const ls_bench_device *o, ls_device_figures *f, ls_error *e) {
    bench b;
    *f = (ls_device_figures){0};
    LS_TRY(open_bench(&b, o, 0, e));
    memcpy(f->name, b.compute.device->name, sizeof f->name);
    f->memory_nbytes = b.compute.device->memory_nbytes;
    ls_status s = measure_device(&b, f, e);
    close_bench(&b);
    return s;
}
