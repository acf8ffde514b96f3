/* variant_bits.c - every variant of the kernels gives the same bits, on ordinary and on extreme
 * numbers.
 *
 * Each variant that runs here does the same list of calls; the results of each call are hashed, and
 * the hash must be that of the portable variant. Then one hash per kernel is printed, which must be
 * the same on every machine: scripts/check_neon.sh compares those of two kinds of processors.
 * `avx512_mock` is the AVX-512 variant with its instructions in plain C, `avx512bf16_mock` has in
 * addition those for pairs of bf16, and `amx_mock` those of AMX.
 *
 * Which NaN an operation on f32 or f64 produces is not defined (kernels.h), so all NaNs count as
 * the same, except where the operation only selects.
 *
 * The program does not use cmocka, because it is cross-compiled, too.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/elements.h"
#include "tensor/groups.h"
#include "tensor/image.h"
#include "tensor/layer_groups.h"
#include "tensor/problem.h"
#include "tensor/vec_probe.h"

/* ---- what is compared ---- */

typedef struct subject {
    const ls_kernels *k;
    vec_probe_fn *probe;
    const char *own; /* of these names and products in bf16; the others are another's. NULL: all */
} subject;

extern const ls_kernels ls_kernels_avx512_mock;
void use_pairs_avx512_mock(ls_kernels *), use_amx_avx512_mock(ls_kernels *);
vec_probe_fn vec_probe_portable, vec_probe_avx2, vec_probe_avx512, vec_probe_avx512_mock,
    vec_probe_neon;

static const struct {
    const char *name;
    vec_probe_fn *probe;
    const char *own;
} probes[] = {
    {"portable", vec_probe_portable, NULL},
#ifdef LS_HAVE_AVX2
    {"avx2", vec_probe_avx2, NULL},
#endif
#ifdef LS_HAVE_AVX512
    {"avx512", vec_probe_avx512, NULL},     {"avx512bf16", vec_probe_avx512, "bf16"},
    {"amx", vec_probe_avx512, "int8"},
#endif
#ifdef LS_HAVE_NEON
    {"neon", vec_probe_neon, NULL},
#endif
};
enum { NPROBES = sizeof probes / sizeof *probes, MAX_SUBJECTS = NPROBES + 3 };

/* Lists the variants, portable first; returns how many run here, and prints those that don't. */
static int find_subjects(subject *s) {
    int n = 0;
    for (int i = 0; i < NPROBES; i++) {
        const ls_kernels *k = ls_kernels_named(probes[i].name);
        if (k)
            s[n++] = (subject){k, probes[i].probe, probes[i].own};
        else
            printf("skipped: %s kernels: this processor can't run them\n", probes[i].name);
    }
#ifdef LS_HAVE_AVX512_MOCK
    static ls_kernels pairs, amx;
    pairs = ls_kernels_avx512_mock;
    use_pairs_avx512_mock(&pairs);
    amx = pairs;
    use_amx_avx512_mock(&amx);
    pairs.name = "avx512bf16_mock", amx.name = "amx_mock";
    s[n++] = (subject){&ls_kernels_avx512_mock, vec_probe_avx512_mock, NULL};
    s[n++] = (subject){&pairs, vec_probe_avx512_mock, "bf16"};
    s[n++] = (subject){&amx, vec_probe_avx512_mock, "int8"};
#endif
    return n;
}

/* ---- results ---- */

enum { MAX_RESULTS = 60000, MAX_KERNELS = 160 };

static struct {
    const char *kernel; /* a literal */
    uint64_t hash;
} results[MAX_RESULTS]; /* of the first variant, in the order of the work */

static const char *variant, *first;
static char where[96]; /* what the piece of work is */
static int nresults, at, ndiffer;

__attribute__((format(printf, 1, 2))) static void here(const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(where, sizeof where, fmt, args);
    va_end(args);
}

/* FNV-1a over bytes in memory's order; all machines here are little-endian. */
static uint64_t hash(uint64_t h, const void *data, size_t nbytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < nbytes; i++) h = (h ^ p[i]) * 0x100000001b3;
    return h;
}
static const uint64_t HASH_START = 0xcbf29ce484222325;

static void put(const char *kernel, const void *data, size_t nbytes) {
    uint64_t h = hash(HASH_START, data, nbytes);
    if (variant == first) {
        if (nresults == MAX_RESULTS) abort();
        results[nresults].kernel = kernel;
        results[nresults++].hash = h;
    } else if (results[at++].hash != h && ndiffer++ < 20) {
        printf("%s: %s: %s: not the bits of %s\n", variant, kernel, where, first);
    }
}

/* Replaces every NaN by the same one. */
static void put_f32(const char *kernel, float *x, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (isnan(x[i])) x[i] = NAN;
    put(kernel, x, n * sizeof *x);
}

/* ---- the work ---- */

static const struct {
    group_fn *run;
    const char *outputs[NOUT]; /* the kernel that writes each */
} groups[] = {
    {do_layernorm,
     {"layernorm", "layernorm", "layernorm", "layernorm_dx", "layernorm_dx", "layernorm_dparams",
      "layernorm_dparams"}},
    {do_sums, {"column_sum", "add", "add", "sum_squares", "ema", "squares_and_dot"}},
    {do_gelu, {"gelu", "gelu_back", "gelu_back", "gelu_back", "gelu_back"}},
    {do_softmax_one,
     {"softmax_causal", "softmax_causal", "softmax_causal_again", "softmax_causal_dx"}},
    {do_softmax_half,
     {"softmax_causal", "softmax_causal", "softmax_causal_again", "softmax_causal_dx"}},
    {do_softmax_all,
     {"softmax_causal", "softmax_causal", "softmax_causal_again", "softmax_causal_dx"}},
    {do_cross_entropy, {"cross_entropy_dx", "cross_entropy", "cross_entropy"}},
    {do_draw, {"maxima", "draw_weights", "draw_weights"}},
    {do_adamw, {"adamw", "adamw", "adamw"}},
    {do_adam, {"adam", "adam", "adam"}},
    {do_sgd, {"sgd", "sgd", "sgd"}},
    {do_momentum, {"momentum", "momentum", "momentum"}},
    {do_lion, {"lion", "lion", "lion"}},
    {do_adagrad, {"adagrad", "adagrad", "adagrad"}},
    {do_schedule_free, {"schedule_free", "schedule_free", "schedule_free", "schedule_free"}},
    {do_activations,
     {"relu", "relu_dx", "sigmoid", "sigmoid_dx", "tanh", "tanh_dx", "silu", "silu_dx"}},
    {do_gates, {"silu_gate", "silu_gate", "silu_gate_dx", "silu_gate_dx", "rope", "rope"}},
    {do_elements_f32,
     {"multiply", "multiply", "affine", "affine", "bytes_affine", "dropout", "dropout"}},
    {do_group_norm_wide,
     {"group_norm", "group_norm", "group_norm", "group_norm_dx", "group_norm_dx", "group_norm_dx"}},
    {do_group_norm_tall,
     {"group_norm", "group_norm", "group_norm", "group_norm_dx", "group_norm_dx", "group_norm_dx"}},
    {do_rms_norm, {"rms_norm", "rms_norm", "rms_norm_dx", "rms_norm_dx", "rms_norm_dparams"}},
    {do_batch_norm_wide,
     {"batch_norm_apply", "batch_norm_stats", "batch_norm_stats", "batch_norm_rstd",
      "batch_norm_sums", "batch_norm_sums", "batch_norm_dx", "batch_norm_dx"}},
    {do_batch_norm_tall,
     {"batch_norm_apply", "batch_norm_stats", "batch_norm_stats", "batch_norm_rstd",
      "batch_norm_sums", "batch_norm_sums", "batch_norm_dx", "batch_norm_dx"}},
    {do_pooling_square,
     {"max_pooling", "max_pooling", "max_pooling_dx", "average_pooling", "average_pooling_dx",
      "mean_pooling", "mean_pooling_dx"}},
    {do_pooling_oblong,
     {"max_pooling", "max_pooling", "max_pooling_dx", "average_pooling", "average_pooling_dx",
      "mean_pooling", "mean_pooling_dx"}},
    {do_losses,
     {"softmax", "losses", "losses", "cross-entropy dx", "cross-entropy dx", "binary dx",
      "squares dx"}},
    {do_gemv, {"gemv", "gemv_table", "gemv", "gemv_table", "gemv", "gemv_table"}},
    {do_gemv_bf16,
     {"gemv_bf16", "gemv_table_bf16", "gemv_bf16", "gemv_table_bf16", "round_bf16",
      "gemv_table_bf16", "to_bf16"}},
    {do_gemv_blocks,
     {"gemv_table q8_0", "gemv_table q4_0", "gemv_table q4_1", "gemv_table q5_0", "gemv_table q5_1",
      "gemv_table q4_k", "gemv_table q5_k", "gemv_table q6_k"}},
    {do_gemv_blocks_bf16,
     {"gemv_table_bf16 q8_0", "gemv_table_bf16 q4_0", "gemv_table_bf16 q4_1",
      "gemv_table_bf16 q5_0", "gemv_table_bf16 q5_1", "gemv_table_bf16 q4_k",
      "gemv_table_bf16 q5_k", "gemv_table_bf16 q6_k"}},
    {do_int8,
     {"int8_rows", "int8_rows", "int8_rows", "int8_rows", "int8_rows", "int8_rows", "int8_rows",
      "int8_rows"}},
    {do_gemv_more,
     {"gemv_table q3_k", "gemv_table q2_k", "gemv_table iq4_nl", "gemv_table iq4_xs"}},
    {do_gemv_more_bf16,
     {"gemv_table_bf16 q3_k", "gemv_table_bf16 q2_k", "gemv_table_bf16 iq4_nl",
      "gemv_table_bf16 iq4_xs"}},
    {do_some,
     {"gemm_some q8_0", "gemm_some q4_0", "gemm_some q4_1", "gemm_some q5_0", "gemm_some q5_1",
      "gemm_some q4_k", "gemm_some q5_k", "gemm_some q6_k"}},
    {do_some_more, {"gemm_some q3_k", "gemm_some q2_k", "gemm_some iq4_nl", "gemm_some iq4_xs"}},
    {do_int8_more, {"int8_rows", "int8_rows", "int8_rows", "int8_rows"}},
    {do_kept_bf16, {"kept_scores_bf16", "kept_mix_bf16", "kept_mix_bf16"}},
    {do_gemv_kept, {"kept_scores", "kept_mix", "kept_mix"}},
    {do_kept_f16, {"kept_scores f16", "kept_mix f16", "kept_mix f16"}},
    {do_kept_q8, {"kept_scores q8", "kept_mix q8", "kept_mix q8"}},
    {do_compress_passes,
     {"add_error", "add_error", "subtract", "abs_max and abs_sum", "dot", "subtract_scaled",
      "above", "above"}},
    {do_compress_packing,
     {"unpack_signs", "pack_signs", "pack_i8", "unpack_i8", "pack_i4", "unpack_i4"}},
};

/* Every size about one and two vectors, about a transposed block of 8 and beyond, and primes. */
static void do_group(const subject *s, size_t g) {
    static const int64_t sizes[] = {0,  1,  2,  3,  5,  7,  8,  9,  13, 15, 16,  17,  23,
                                    31, 32, 33, 47, 48, 49, 63, 64, 65, 97, 127, 129, MAX_N};
    static values v;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int wild = 0; wild < 2; wild++) {
            fill(&v, wild);
            groups[g].run(s->k, sizes[i], &v);
            here("size %" PRId64 ", %s numbers", sizes[i], wild ? "wild" : "ordinary");
            for (int o = 0; o < NOUT; o++) {
                const char *kernel = groups[g].outputs[o];
                put_f32(kernel ? kernel : "(none)", v.out[o], CELLS);
            }
        }
}

static void put_block(const char *kernel, block *b, ls_dtype dtype, ls_op op) {
    settle_nans(b, dtype, op);
    put(kernel, b, sizeof *b);
}

static void do_combine(const subject *s, ls_dtype dtype, ls_op op, size_t n) {
    static block a, b, out, also;
    fill_block(&a, dtype, 3, true);
    fill_block(&b, dtype, 4, true);
    memset(&out, 0xa5, sizeof out);
    also = out;
    here("%s of %zu %s", ls_op_name(op), n, ls_dtype_name(dtype));
    s->k->combine(dtype, op, n, block_at(&a, dtype), block_at(&b, dtype), block_at(&out, dtype));
    put_block("combine", &out, dtype, op);
    s->k->combine_both(dtype, op, n, block_at(&a, dtype), block_at(&b, dtype),
                       block_at(&out, dtype), block_at(&also, dtype));
    put_block("combine_both", &out, dtype, op);
    put_block("combine_both", &also, dtype, op);
}

/* From index 1 on, so that it has only the alignment of an element. */
static void do_conversions(const subject *s, ls_dtype dtype, size_t n) {
    static block wide, narrow;
    fill_block(&narrow, dtype, 5, true);
    fill_block(&wide, LS_F32, 6, true);
    here("%zu %s", n, ls_dtype_name(dtype));
    s->k->widen(dtype, n, narrow.h + 1, wide.f32 + 1);
    put_block("widen", &wide, LS_F32, LS_SUM);
    fill_block(&wide, LS_F32, 7, true);
    s->k->narrow(dtype, n, wide.f32 + 1, narrow.h + 1);
    put_block("narrow", &narrow, dtype, LS_SUM);
}

/* Random bytes: every number and, as scales, every kind of f16. */
static void do_unpack(const subject *s) {
    enum { N = 37, MOST_BYTES = 210 };
    static const int64_t sizes[] = {0, 1, 2, 15, 16, 17, 33, N};
    static uint8_t x[2 + N * MOST_BYTES];
    static float y[N * LS_BLOCK_MOST + 1];
    for (size_t i = 0; i < sizeof x; i++) x[i] = (uint8_t)(random_bits(8, i) >> 13);
    for (int t = 0; t < LS_NBLOCK_TYPES; t++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (size_t k = 0; k < sizeof y / sizeof *y; k++) y[k] = UNTOUCHED;
            here("%" PRId64 " blocks of type %d", sizes[i], t);
            s->k->unpack[t](sizes[i], x + 2, y);
            put_f32("unpack", y, sizeof y / sizeof *y);
        }
}

static void do_elements(const subject *s) {
    static const size_t sizes[] = {0, 1, 2, 3, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 251, 1000};
    static block x;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int d = 0; d < LS_NDTYPES; d++) {
            ls_dtype dtype = (ls_dtype)d;
            for (int op = 0; op < LS_NOPS; op++)
                if (ls_op_takes((ls_op)op, dtype)) do_combine(s, dtype, (ls_op)op, sizes[i]);
            if (!ls_op_takes(LS_AVG, dtype)) continue;
            fill_block(&x, dtype, 5, true);
            here("%zu %s by 7", sizes[i], ls_dtype_name(dtype));
            s->k->average(dtype, sizes[i], 7, block_at(&x, dtype));
            put_block("average", &x, dtype, LS_AVG);
            if (dtype == LS_BF16 || dtype == LS_F16) do_conversions(s, dtype, sizes[i]);
        }
    do_unpack(s);
}

static void make_wild(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (i % 5 < 2) x[i] *= i % 3 ? 1e19f : 1e-22f;
}

static void do_product(const subject *s, ls_compute *c, const int64_t size[3], int how, bool wild,
                       bool bf16) {
    problem p = make_problem(size[0], size[1], size[2], how);
    if (wild) make_wild(p.a, p.M * p.K), make_wild(p.b, p.K * p.N);
    ls_gemm_job job = job_of(&p, p.c);
    job.bf16 = bf16;
    c->k = s->k;
    ls_gemm(c, &job);
    here("%" PRId64 " x %" PRId64 " x %" PRId64 ", way %d, %d threads, %s numbers", p.M, p.N, p.K,
         how, c->nthreads, wild ? "wild" : "ordinary");
    put_f32(bf16 ? "gemm bf16" : "gemm", p.c, (size_t)(p.M * p.ldc));
    drop_problem(&p);
}

/* A product in bf16 that is rounded, with rows that begin lines. */
static void do_rounded(const subject *s, ls_compute *c, int how) {
    problem p = make_problem(70, 96 - how % 3, 65, how);
    ls_gemm_job job = job_of(&p, p.c);
    _Alignas(64) uint16_t rounded[70 * 96] = {0};
    make_wild(p.a, p.M * p.K), make_wild(p.b, p.K * p.N);
    job.bf16 = true;
    job.rounded = rounded;
    c->k = s->k;
    ls_gemm(c, &job);
    here("way %d, %d threads", how, c->nthreads);
    s->k->widen(LS_BF16, (size_t)(p.M * p.ldc), rounded, p.c);
    put_f32("gemm rounded", p.c, (size_t)(p.M * p.ldc));
    drop_problem(&p);
}

/* Packing and tiles, whose sizes differ between variants, as whole products: all 12 ways to
 * transpose and to start for small ones, three for those larger than a block or a tile. */
static void do_products(const subject *s, bool bf16) {
    static const int64_t sizes[][3] = {{1, 1, 1},     {5, 7, 3},    {6, 16, 11},  {7, 17, 13},
                                       {13, 31, 2},   {12, 32, 64}, {29, 53, 37}, {11, 2, 19},
                                       {97, 33, 385}, {7, 1025, 3}, {193, 17, 2}, {1, 40, 800},
                                       {17, 97, 61}};
    for (int threads = 1; threads <= 2; threads++) {
        ls_compute c;
        ls_error e;
        if (ls_compute_init(&c, threads, 0, &e) != LS_OK) abort();
        ls_pool_share_cores(c.pool);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int how = 0; how < 12; how += i < 8 ? 1 : 5)
                for (int wild = 0; wild < 2; wild++) do_product(s, &c, sizes[i], how, wild, bf16);
        for (int how = 0; how < 12 && bf16; how++) do_rounded(s, &c, how);
        ls_compute_close(&c);
    }
}

/* Tiles of every size, depthwise ones too, as whole convolutions: their sizes differ between
 * variants. */
static void do_convolution(const subject *s, ls_compute *c, const ls_conv *v, bool wild) {
    image p = make_image(v, 3);
    if (wild) make_wild(p.x, (int64_t)p.nx), make_wild(p.dy, (int64_t)p.ny);
    if (wild) make_wild(p.w, (int64_t)p.nw);
    c->k = s->k;
    reset_image(&p);
    run_image(c, &p, (ls_gemm_start)(v->w % 3), 0, 3);
    here("%" PRId64 " x %" PRId64 ", %" PRId64 " to %" PRId64 " channels, %" PRId64
         " groups, stride %" PRId64 ", %d threads, %s numbers",
         v->h, v->w, v->in, v->out, v->groups, v->stride_w, c->nthreads,
         wild ? "wild" : "ordinary");
    put_f32("conv forward", p.y, p.ny);
    put_f32("conv dx", p.dx, p.nx);
    put_f32("conv dw", p.dw, p.nw);
    put_f32("conv db", p.db, (size_t)v->out);
    drop_image(&p);
}

static void do_convolutions(const subject *s) {
    static const int64_t channels[][3] = {{1, 3, 16}, {1, 9, 24},   {1, 5, 32},
                                          {1, 2, 35}, {2, 6, 10},   {16, 16, 16},
                                          {5, 5, 5},  {37, 37, 37}, {3, 12, 51}};
    for (int threads = 1; threads <= 2; threads++) {
        ls_compute c;
        ls_error e;
        if (ls_compute_init(&c, threads, 0, &e) != LS_OK) abort();
        ls_pool_share_cores(c.pool);
        for (int64_t w = 1; w < 20; w++)
            for (int wild = 0; wild < 2; wild++) {
                const int64_t *g = channels[w % 9];
                ls_conv v = {.h = 2 + w % 3,
                             .w = w,
                             .in = g[1],
                             .out = g[2],
                             .groups = g[0],
                             .kernel_h = 1 + w % 3,
                             .kernel_w = 3 - w % 2,
                             .stride_h = 1,
                             .stride_w = 1 + w / 4 % 2,
                             .pad_h = 1,
                             .pad_w = 1};
                do_convolution(s, &c, &v, wild);
            }
        ls_compute_close(&c);
    }
}

/* All pairs of special numbers, with a third. As bit patterns, since a NaN may change in a float
 * variable. */
static void do_vectors(const subject *s) {
    static const uint32_t odd[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff,
                                   0x00800000, 0x3f800000, 0xbf800000, 0x3fc00001, 0x7f7fffff,
                                   0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
                                   0x42b00000, 0xc2ae0000, 0x5f000000, 0x20000000};
    enum { NODD = sizeof odd / sizeof *odd };
    uint32_t in[4][64];
    for (int i = 0; i < NODD; i++)
        for (int j = 0; j < NODD; j++) {
            static float out[PROBE_FLOATS], x[4][64];
            for (int k = 0; k < 64; k++) {
                in[0][k] = odd[k % NODD];
                in[1][k] = odd[(k + i) % NODD];
                in[2][k] = odd[(k + j) % NODD];
                in[3][k] = 0x3f800000u + (uint32_t)(k + i * 64 + j); /* all different */
            }
            memcpy(x, in, sizeof x);
            memset(out, 0, sizeof out);
            s->probe(x[0] + j % 3, x[1], x[2], x[3], out);
            here("vectors %d, %d", i, j);
            put("vec: choosing", out, PROBE_EXACT * sizeof *out);
            put_f32("vec: computing", out + PROBE_EXACT, PROBE_SUMS);
            put("vec: transposing", out + PROBE_EXACT + PROBE_SUMS, 2 * PROBE_PACKED * sizeof *out);
        }
}

static void do_peak(const subject *s) {
    float peak = s->k->fma_peak(3);
    here("3 rounds");
    put("fma_peak", &peak, sizeof peak);
}

/* Part p of the work; returns false after the last one. */
static bool do_part(const subject *s, size_t p) {
    static int begins[MAX_KERNELS]; /* of each part in `results` */
    enum { NGROUPS = sizeof groups / sizeof *groups };
    if (variant == first)
        begins[p] = nresults;
    else
        at = begins[p];
    bool all = variant == first || !s->own;
    if (p < NGROUPS) {
        if (all || strstr(groups[p].outputs[0], s->own)) do_group(s, p);
        return true;
    }
    switch (p - NGROUPS) {
    case 0: do_products(s, true); return true;
    case 1:
        if (all) do_products(s, false), do_peak(s);
        return true;
    case 2:
        if (all) do_elements(s);
        return true;
    case 3:
        if (all) do_convolutions(s);
        return true;
    default:
        if (all) do_vectors(s);
        return false;
    }
}

/* ---- the hashes ---- */

static void print_hashes(void) {
    const char *names[MAX_KERNELS];
    uint64_t hashes[MAX_KERNELS];
    int n = 0;
    for (int i = 0; i < nresults; i++) {
        int k = 0;
        while (k < n && strcmp(names[k], results[i].kernel) != 0) k++;
        if (k == MAX_KERNELS) abort();
        if (k == n) names[n] = results[i].kernel, hashes[n++] = HASH_START;
        hashes[k] = hash(hashes[k], &results[i].hash, sizeof results[i].hash);
    }
    for (int k = 0; k < n; k++) printf("hash %016" PRIx64 " %s\n", hashes[k], names[k]);
}

/* variant_bits [VARIANT]: of this variant alone, for its hashes. */
int main(int argc, char **argv) {
    subject s[MAX_SUBJECTS];
    int n = find_subjects(s), chosen = 0;
    for (int i = 0; i < n; i++)
        if (argc < 2 || strcmp(s[i].k->name, argv[1]) == 0) s[chosen++] = s[i];
    n = chosen;
    unsetenv("LOCKSTEP_CPU");
    first = n ? s[0].k->name : "";
    for (int i = 0; i < n; i++) {
        variant = s[i].k->name;
        for (size_t p = 0; do_part(&s[i], p);) p++;
    }
    print_hashes();
    printf("%d pieces of work:", nresults);
    for (int i = 0; i < n; i++) printf(" %s", s[i].k->name);
    if (ndiffer)
        printf(": %d differ\n", ndiffer);
    else
        printf(": the same bits\n");
    return ndiffer ? 1 : 0;
}
