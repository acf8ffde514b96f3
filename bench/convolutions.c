/* convolutions.c - see convolutions.h.
 *
 * The 3 x 3 convolutions of ResNet-20 for images of 32 x 32, with a batch of 32. oneDNN reads and
 * writes images as NHWC, too; the layout of its weights is its own, and not converted here.
 */
#include "convolutions.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/median.h"
#include "base/mem.h"
#include "base/print.h"
#include "conv_library.h"
#include "tensor/peak.h"

enum {
    BATCH = 32,
    MAX_ROUNDS = 101,
    PEAK_ROUNDS = 20000,
    SYSTEMS = 2,
    MOST = BATCH * 32 * 32 * 16
};
static const double round_s = 0.02; /* time for a system in a round; at least one run */

static const char *const kind_names[CONV_KINDS] = {"y = x * w", "dx", "dw"};
static const struct { int64_t channels, size; } shapes[] = {{16, 32}, {32, 16}, {64, 8}};
enum { NSHAPES = sizeof shapes / sizeof *shapes };

typedef struct bench {
    const bench_convolutions *o;
    const ls_compute *compute;
    conv_library library;
    bool compare;
    float *memory; /* x, y, w: [3, MOST] */
    double peak;
} bench;

typedef struct product {
    ls_conv v;
    ls_conv_job job;
    conv_kind kind;
    conv_product theirs;
} product;

static void run(const bench *b, const product *p, int system) {
    if (system == 1)
        conv_product_run(&p->theirs);
    else if (p->kind == CONV_Y)
        ls_conv_forward(b->compute, &p->v, &p->job);
    else if (p->kind == CONV_DX)
        ls_conv_back_x(b->compute, &p->v, &p->job);
    else
        ls_conv_back_w(b->compute, &p->v, &p->job);
}

static double time_run(const bench *b, const product *p, int system) {
    double begin = ls_clock_thread_s(), seconds = 0;
    int64_t runs = 0;
    for (; runs == 0 || seconds < round_s; runs++) {
        run(b, p, system);
        seconds = ls_clock_thread_s() - begin;
    }
    return seconds / (double)runs;
}

/* x and y are small numbers, since a gradient may be written over them. */
static void fill(float *x) {
    for (size_t i = 0; i < 3 * (size_t)MOST; i++) x[i] = (float)(i * 2654435761u >> 24 & 15) / 64;
}

/* FLOP/s of each system: medians over alternating rounds. */
static void measure(bench *b, const product *p, double *flops) {
    double times[SYSTEMS][MAX_ROUNDS], peaks[MAX_ROUNDS];
    int systems = b->compare ? 2 : 1;
    size_t rounds = (size_t)b->o->rounds;
    for (int i = 0; i < systems; i++) run(b, p, i);
    for (size_t r = 0; r < rounds; r++) {
        fill(b->memory);
        peaks[r] = ls_peak_of_thread(b->compute->k, false, PEAK_ROUNDS);
        for (int i = 0; i < systems; i++) times[i][r] = time_run(b, p, i);
    }
    int64_t pixels = p->job.n * ls_conv_out_h(&p->v) * ls_conv_out_w(&p->v);
    double work = 2.0 * 9 * (double)(pixels * p->v.in * p->v.out);
    for (int i = 0; i < systems; i++) flops[i] = work / ls_median(times[i], rounds);
    b->peak = ls_median(peaks, rounds);
}

static void print_product(const bench *b, const product *p, const double *flops) {
    if (b->o->json) {
        ls_print("{\"convolution\": \"%s\", \"channels\": %lld, \"size\": %lld, \"batch\": %d, "
                 "\"peak_gflops\": %.2f, \"lockstep_gflops\": %.2f",
                 kind_names[p->kind], (long long)p->v.in, (long long)p->v.h, BATCH, b->peak / 1e9,
                 flops[0] / 1e9);
        if (b->compare) ls_print(", \"onednn_gflops\": %.2f", flops[1] / 1e9);
        ls_print("}\n");
        return;
    }
    ls_print("%3lld x %2lld x %2lld   %-12s        %9.1f %7.1f%%", (long long)p->v.in,
             (long long)p->v.h, (long long)p->v.w, kind_names[p->kind], flops[0] / 1e9,
             100 * flops[0] / b->peak);
    if (b->compare) ls_print(" %9.1f %8.2f", flops[1] / 1e9, flops[0] / flops[1]);
    ls_print("\n");
    fflush(stdout);
}

static ls_status run_product(bench *b, int shape, conv_kind kind, ls_error *e) {
    int64_t size = shapes[shape].size, c = shapes[shape].channels;
    float *x = b->memory, *y = x + MOST, *w = y + MOST;
    double flops[SYSTEMS];
    product p = {.v = {size, size, c, c, 3, 3, 1, 1, 1, 1, 1},
                 .job = {.n = BATCH, .x = x, .w = w, .dy = y, .y = y, .dx = x, .dw = w},
                 .kind = kind};
    if (b->compare) LS_TRY(conv_product_open(&b->library, &p.v, &p.job, kind, &p.theirs, e));
    fill(b->memory);
    measure(b, &p, flops);
    print_product(b, &p, flops);
    if (b->compare) conv_product_close(&p.theirs);
    return LS_OK;
}

static ls_status run_all(bench *b, ls_error *e) {
    void *memory = NULL;
    if (b->compare) LS_TRY(conv_library_open(&b->library, e));
    LS_TRY(ls_map(3 * (size_t)MOST * sizeof(float), "measuring", &memory, e));
    b->memory = memory;
    if (!b->o->json)
        ls_print("3 x 3 convolutions of ResNet-20 (channels x height x width),\n"
                 "batch of %d, one core, GFLOP/s:\n%-36s %9s %8s%s\n",
                 BATCH, "", "lockstep", "of peak", b->compare ? "    onednn    ratio" : "");
    for (int s = 0; s < NSHAPES; s++)
        for (int k = 0; k < CONV_KINDS; k++) LS_TRY(run_product(b, s, (conv_kind)k, e));
    return LS_OK;
}

ls_status bench_convolutions_run(const bench_convolutions *o, ls_error *e) {
    bench b = {.o = o, .compute = o->compute, .compare = o->onednn};
    ls_status s = run_all(&b, e);
    if (b.memory) ls_unmap(b.memory, 3 * (size_t)MOST * sizeof(float));
    conv_library_close(&b.library);
    return s;
}
