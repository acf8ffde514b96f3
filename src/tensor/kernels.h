/* kernels.h - the inner loops, one table for each kind of processor.
 *
 * Every variant gives the same bits (see vec.h). ls_kernels_pick() chooses the fastest one that
 * runs on this processor; LOCKSTEP_CPU=NAME in the environment forces one. Kernels allocate
 * nothing, run in one thread, and accept all sizes from 0 unless noted; pointers need not be
 * aligned. Matrices are row-major.
 *
 * Order of sums: along a row, 16 lanes (element i belongs to lane i mod 16), then a fixed tree over
 * the lanes; down a column, one chain in the order of rows, which continues from the value in the
 * output.
 */
#ifndef LS_TENSOR_KERNELS_H
#define LS_TENSOR_KERNELS_H

#include <stdint.h>

#include "base/error.h"
#include "lockstep/group.h"
#include "tensor/ahead.h"
#include "tensor/block.h"
#include "tensor/compress.h"
#include "tensor/int8_block.h"
#include "tensor/loss.h"
#include "tensor/norm.h"
#include "tensor/pooling.h"

/* The most elements and columns of the GEMM's tile. */
enum { LS_TILE_MOST = 1024, LS_TILE_WIDEST = 48 };

/* The order of sums of products in bf16: k is cut into blocks of LS_SUM_BLOCK from its first value;
 * a last, shorter block is a block. For each block in order c = c + (E + O), E and O being the
 * chains of multiply-adds over the block's even and odd places, from +0, in order. Each operation
 * rounds to f32; operands and results below 1.2e-38 are zeros. TDPBF16PS of Intel's AMX computes
 * just that (Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2). */
enum { LS_SUM_BLOCK = 32 };

/* The scalars of an optimizer's update, the same for all elements of a parameter group in a step.
 * Each update reads its own. */
typedef struct ls_update_scalars {
    float lr, beta1, beta2, eps, weight_decay, momentum;
    float correct1, correct2; /* Adam: 1 / (1 - beta^t) */
    float grad_scale;         /* clip factor */
    float weight;             /* schedule-free: of the newest point in the average */
    bool nesterov, first;     /* first: no update came before */
    bool frozen,
        first_frozen; /* onebit: the gradient is the new first moment, and the second stays */
} ls_update_scalars;

/* Updates n elements of a parameter and of the optimizer's states, with their gradient. */
typedef void ls_update_kernel(int64_t n, const ls_update_scalars *, const float *grad, float *param,
                              float *const *states);

/* The states of the rules: adamw and adam: means of gradients and of their squares; momentum: the
 * velocity; lion: the mean of gradients; sgd: none; adagrad: the sum of squares; schedule-free: z,
 * the mean of squares, and the average of z. */
typedef enum ls_update_rule {
    LS_RULE_ADAMW,
    LS_RULE_ADAM,
    LS_RULE_SGD,
    LS_RULE_MOMENTUM,
    LS_RULE_LION,
    LS_RULE_ADAGRAD,
    LS_RULE_SCHEDULE_FREE,
    LS_RULE_ONEBIT_ADAM, /* adamw, which takes over a momentum once the second moment is frozen */
    LS_NUPDATES,
    /* Rules that need all of a parameter (optim/whole.h) have no kernel of their own. */
    LS_RULE_LARS = LS_NUPDATES,
    LS_RULE_LAMB,
    LS_RULE_ADAFACTOR,
    LS_RULE_MUON,
    LS_RULE_SOAP,
    LS_RULE_ONEBIT_LAMB,
    LS_RULE_ROWWISE_ADAGRAD,
    LS_NRULES
} ls_update_rule;

/* Activation functions, element by element. ReLU is max(0, x); SiLU is x * sigmoid(x). GELU has
 * kernels of its own. */
typedef enum ls_activation { LS_RELU, LS_SIGMOID, LS_TANH, LS_SILU, LS_NACTIVATIONS } ls_activation;

/* x [n] -> y [n]; they may be the same. */
typedef void ls_activation_kernel(int64_t n, const float *x, float *y);
/* dx = dy * derivative, from the output y, or from the input x for LS_SILU, in `saved`. dx may be
 * dy or `saved`. */
typedef void ls_activation_dx_kernel(int64_t n, const float *saved, const float *dy, float *dx);

/* The place of a sample's dropout mask. p, the probability of a zero, is in [0, 1). */
typedef struct ls_dropout_place {
    uint64_t seed;
    uint32_t step, sample; /* the sample's number within the step's batch, over all workers */
    uint32_t layer;        /* which dropout of the model, < 2^24 */
    float p;
} ls_dropout_place;
/* Numbers whose words come from 16 places of the counter. */
enum { LS_DROPOUT_BLOCK = 64 };
/* A number is 0 where its word is below the limit, and else times the scale. */
static inline uint32_t ls_dropout_limit(const ls_dropout_place *d) {
    return (uint32_t)((double)d->p * 0x1p32);
}
static inline float ls_dropout_scale(const ls_dropout_place *d) { return 1.0f / (1.0f - d->p); }

/* A tile of a convolution [rows, regs * conv_lanes], called by conv.c. Every element is one chain
 * of outer * inner multiply-adds, the inner loop first. Strides are in floats. */
typedef struct ls_conv_tile {
    int rows, regs; /* regs is 1 or 2; rows * regs <= conv_cells */
    int64_t outer, inner;
    int64_t a_outer, a_inner, a_row; /* a_inner or a_row is 1 */
    int64_t b_outer, b_inner;
    int64_t c_row;
    const float *start; /* [regs * conv_lanes], where all rows begin; NULL: continue from c */
} ls_conv_tile;

/* Lines of an operand in f32 or bf16: value k of line i is element i * line + k * step of p. */
typedef struct ls_gemm_lines {
    const void *p;
    bool bf16;
    int64_t line, step;
} ls_gemm_lines;

/* n tiles of c, one below the other, which get the products of K values in bf16: of n strips of a,
 * one after the other, and one of b. */
typedef struct ls_gemm_tiles {
    int64_t n, K;
    const float *a, *b;
    const float *start; /* [bf16_n]: where chains begin; NULL: they continue from c */
    float *c;
    int64_t ldc;
    uint16_t *rounded; /* NULL, or [n * bf16_m, bf16_n] in bf16, rows ldc apart, at multiples of 64
                        * bytes: gets the sums, which are complete, in place of c */
    ls_ahead *ahead;   /* prefetched meanwhile, its share with each tile */
} ls_gemm_tiles;

/* y [V] = x [C] . w [V, C]^T. The rows of w are whole blocks. Strips are in groups of rows, of
 * which LS_GEMV_GROUP is a multiple for all processors. */
enum { LS_GEMV_GROUP = 64 };
typedef struct ls_gemv_table_job {
    ls_stored w;
    int64_t V, C;
    const float *x;
    const float *bias; /* [V]: where chains start, may be y; NULL: at 0 */
    float *y;
    bool bf16;          /* the product is in bf16 */
    const void *x_bf16; /* of ls_gemv_table(), if it is: x in bf16; NULL: x is in f32 */
} ls_gemv_table_job;

/* The same in f32 with a few rows of x, 2 or 3, rows ldx and ldy apart, where the table is in
 * strips and V a multiple of LS_GEMV_GROUP: chains go on from the values of y, and the bias is not
 * read. Types: ls_strips_in_groups(). */
enum { LS_GEMV_FEW = 3 };
typedef struct ls_gemv_few_job {
    ls_gemv_table_job table;
    int64_t rows, ldx, ldy;
} ls_gemv_few_job;

/* The same with some rows of x, up to LS_GEMM_SOME, and all types that have strips. There is room
 * for 4 or 8 rows, or 6 where strips are in groups; those that are not there are any numbers. */
enum { LS_GEMM_SOME = 8 };
typedef struct ls_gemm_some_job {
    ls_block_type type;
    const void *strips; /* [V, C] */
    int64_t V, C, M, room, ldy;
    const float *x; /* [C, room] */
    float *y;       /* [M, V] */
} ls_gemm_some_job;

/* Values k to k + depth of rows v to v + n of a table [V, C] that is in strips: depth and k are
 * multiples of LS_STRIP_DEPTH and of a block, v and n of strip_rows, and the rows are in whole
 * groups. */
enum { LS_STRIP_DEPTH = 32 };
typedef struct ls_strip_part {
    ls_block_type type;
    const void *strips; /* of the table's first row */
    int64_t C, v, n, k, depth;
} ls_strip_part;

enum { LS_MAXIMA = 256 };

/* Queries of one position, and the head of keys and values that they share, kept in pages of
 * LS_KEPT_PAGE positions: in each page the keys [D, LS_KEPT_PAGE], then the values
 * [LS_KEPT_PAGE, D]. */
enum { LS_KEPT_PAGE = 64, LS_KEPT_BLOCK = 32 };
/* How these are stored. Q8: in 8 bits, each LS_KEPT_BLOCK of a vector times a factor in f32; keys
 * are followed by their factors [blocks, LS_KEPT_PAGE], values by theirs [LS_KEPT_PAGE, blocks]. */
typedef enum ls_kept_type { LS_KEPT_F32, LS_KEPT_F16, LS_KEPT_Q8 } ls_kept_type;
static inline int64_t ls_kept_blocks(int64_t D) { return (D + LS_KEPT_BLOCK - 1) / LS_KEPT_BLOCK; }
/* Floats of the keys, or of the values, of a page. */
static inline int64_t ls_kept_half(ls_kept_type type, int64_t D) {
    int64_t n = LS_KEPT_PAGE * D;
    return type == LS_KEPT_F32   ? n
           : type == LS_KEPT_F16 ? n / 2
                                 : n / 4 + LS_KEPT_PAGE * ls_kept_blocks(D);
}
typedef struct ls_gemv_kept_job {
    int64_t queries, D;
    ls_kept_type type;
    const float *kept; /* the first page */
    int64_t page;      /* floats between pages */
    const float *q;    /* [queries, D] */
    float *s;          /* scores or weights of all positions, s_row apart for each query */
    int64_t s_row;
    float *y; /* [queries, D] */
} ls_gemv_kept_job;

typedef struct ls_kernels {
    const char *name;

    /* GEMM, called by gemm.c. A tile of c is [tile_m, tile_n]; packed a is strips of tile_m rows
     * [K, tile_m], packed b strips of tile_n columns [K, tile_n], both padded with zeros. gemm_tile
     * takes a with strides, one of which is 1 (packed: 1 and tile_m), and b packed; chains continue
     * from c or, if start is not NULL, begin with start [tile_n]. */
    int tile_m, tile_n;
    void (*gemm_tile)(int64_t K, const float *a, int64_t rs, int64_t cs, const float *b,
                      const float *start, float *c, int64_t ldc);
    void (*pack_a)(int64_t M, int64_t K, const float *a, int64_t rs, int64_t cs, float *out);
    void (*pack_b)(int64_t K, int64_t N, const float *b, int64_t rs, int64_t cs, float *out);

    /* Products in bf16: operands, rounded to bf16, are packed as strips of words of 32 bits, each
     * of bf16_depth values of k or, at the end of a block, fewer; the blocks of a strip follow each
     * other. bf16_words: words of a line of K values. Lines are rows of a, columns of b.
     * bf16_tiles takes several tiles, since setting the mode for each takes 3% of the time. */
    int bf16_m, bf16_n, bf16_depth; /* tiles and strips of these, as tile_m and tile_n are in f32 */
    /* The most values of k in a panel, if it is to fill half of the L2 cache; 0: cut as in f32. */
    int64_t bf16_deepest;
    int64_t (*bf16_words)(int64_t K);
    void (*pack_a_bf16)(int64_t M, int64_t K, const ls_gemm_lines *a, float *out);
    void (*pack_b_bf16)(int64_t K, int64_t N, const ls_gemm_lines *b, float *out);
    void (*bf16_tiles)(const ls_gemm_tiles *);

    /* c[p][k] += a[o * a_outer + i * a_inner + p * a_row] * b[o * b_outer + i * b_inner + k]. */
    int conv_cells, conv_lanes;
    void (*conv_tile)(const ls_conv_tile *, const float *a, const float *b, float *c);
    /* The sum for 16 channels, each by itself: [k] is added to the index of a, too. Strides are
     * arbitrary, regs is not read, start is [16], rows <= conv_each_rows. */
    int conv_each_rows;
    void (*conv_each)(const ls_conv_tile *, const float *a, const float *b, float *c);

    /* Products of one row, called by gemv.c (shapes there). Weights are f32, bf16 or f16, and are
     * read once, at the speed of memory. y [N] += x [K] . w [K, N], rows of w ld apart; each
     * element of y is one chain over K that continues from its value. */
    void (*gemv)(ls_dtype, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                 float *y);
    void (*gemv_table)(const ls_gemv_table_job *);
    void (*gemv_few)(const ls_gemv_few_job *);
    void (*gemm_some)(const ls_gemm_some_job *);
    /* Writes rows of whole blocks [V, C] in the order of gemv_table(), at their own offsets: V is a
     * multiple of LS_GEMV_GROUP, or the last rows are among these. Types: ls_gemv_has_strips(). */
    void (*gemv_strips)(ls_block_type, int64_t V, int64_t C, const uint8_t *from, uint8_t *to);
    /* out [depth, n]: value k + i of row v + j is out[i * n + j], as pack_b() has it, with the bits
     * of unpack. tile_n is a multiple of strip_rows. */
    int strip_rows;
    void (*unpack_strips)(const ls_strip_part *, float *out);
    /* Positions [first, end) of s = q . keys^T; first is a multiple of LS_KEPT_PAGE. Columns
     * [first, end) of y = s . values over `seen` positions. */
    void (*kept_scores)(const ls_gemv_kept_job *, int64_t first, int64_t end);
    void (*kept_mix)(const ls_gemv_kept_job *, int64_t seen, int64_t first, int64_t end);

    /* The products above in bf16. x has bf16 values (round_bf16), and so have the weights, in f32
     * or bf16; a table of blocks is rounded, where bf16_depth is 2, and else not allowed. */
    void (*gemv_bf16)(ls_dtype, int64_t K, int64_t N, const float *x, const void *w, int64_t ld,
                      float *y);
    void (*gemv_table_bf16)(const ls_gemv_table_job *);
    void (*kept_scores_bf16)(const ls_gemv_kept_job *, int64_t first, int64_t end);
    void (*kept_mix_bf16)(const ls_gemv_kept_job *, int64_t seen, int64_t first, int64_t end);
    /* Rounds as products in bf16 round their operands; x and y may be the same. */
    void (*round_bf16)(int64_t n, const float *x, float *y);
    /* Rounds so, and stores the results as bf16: [n] 16-bit values at y, which may be x. */
    void (*to_bf16)(int64_t n, const float *x, void *y);

    /* Products with activations in int8 (int8.h has the rule, and calls these). Quantizes x [C] as
     * blocks `stride` apart. */
    void (*int8_quantize)(int64_t C, const float *x, ls_int8_block *out, int64_t stride);
    void (*int8_rows)(const ls_int8_job *);

    /* Layer norm over rows of C: y = (x - mean) * rstd * gamma + beta. x, y [rows, C];
     * mean, rstd [rows]. */
    void (*layernorm)(int64_t rows, int64_t C, const float *x, const float *gamma,
                      const float *beta, float *y, float *mean, float *rstd);
    /* dx = residual + the gradient through the norm; residual, dx [rows, C] may be the same;
     * residual NULL means zeros. */
    void (*layernorm_dx)(int64_t rows, int64_t C, const float *dy, const float *x,
                         const float *gamma, const float *mean, const float *rstd,
                         const float *residual, float *dx);
    /* Columns [c0, c1) of dgamma and dbeta [C], chains over rows. */
    void (*layernorm_dparams)(int64_t rows, int64_t C, int64_t c0, int64_t c1, const float *dy,
                              const float *x, const float *mean, const float *rstd, float *dgamma,
                              float *dbeta);

    ls_pooling_kernels pooling;

    ls_norm_kernels norm; /* group norm, RMS norm, batch norm */

    /* Columns [c0, c1) of sum [C] += x [rows, C], chains over rows. */
    void (*column_sum)(int64_t rows, int64_t C, int64_t c0, int64_t c1, const float *x, float *sum);

    /* GELU in the tanh form of GPT-2; x and y may be the same. The backward pass computes dx, which
     * may be dy, and y. */
    void (*gelu)(int64_t n, const float *x, float *y);
    void (*gelu_back)(int64_t n, const float *x, const float *dy, float *dx, float *y);

    /* Sigmoid, SiLU and tanh are within 4 ulp (values below 1.2e-38 aside); sigmoid is 0 below -88.
     * NaN gives NaN, as for ReLU. */
    ls_activation_kernel *activation[LS_NACTIVATIONS];
    ls_activation_dx_kernel *activation_dx[LS_NACTIVATIONS];

    /* y = SiLU(gate) * x. y may be one of them. Its gradients: dgate and dx may be dy. */
    void (*silu_gate)(int64_t n, const float *gate, const float *x, float *y);
    void (*silu_gate_dx)(int64_t n, const float *gate, const float *x, const float *dy,
                         float *dgate, float *dx);

    /* Turns the pair (x[i], x[D / 2 + i]) of each of `heads` vectors [D] by an angle, D even. turn
     * [D]: the cosines of the D / 2 angles, then their sines. back: by the opposite angles. x and y
     * may be the same. */
    void (*rope)(int64_t heads, int64_t D, const float *turn, bool back, const float *x, float *y);

    /* Softmax of rows of attention scores, in place. Row i [width] has the scores of query first +
     * i; later keys are masked. Forward: s = softmax(scale * s), and the row's maximum and 1/sum go
     * to stat [rows, 2]. Again: the same probabilities from scores and stat. */
    void (*softmax_causal)(int64_t rows, int64_t width, int64_t first, float scale, float *s,
                           float *stat);
    void (*softmax_causal_again)(int64_t rows, int64_t width, int64_t first, float scale, float *s,
                                 const float *stat);
    /* ds = scale * p * (dp - sum(dp * p)) in place of dp [rows, width]. */
    void (*softmax_causal_dx)(int64_t rows, int64_t width, float scale, const float *p, float *dp);

    /* Softmax of rows of n; x and y may be the same. Terms below 1.2e-38 of the greatest are 0; NaN
     * gives a row of NaN. Its gradient is softmax_causal_dx with scale 1. */
    void (*softmax)(int64_t rows, int64_t n, const float *x, float *y);
    /* most [ceil(n / LS_MAXIMA)] = the largest of each LS_MAXIMA values of x, without NaN; -inf if
     * there are none. */
    void (*maxima)(int64_t n, const float *x, float *most);
    /* y = softmax((x - top) by), top being the largest of x. Returns y's sum in f64, in eight
     * chains: of y[8i], of y[8i + 1] ..., and then of these. */
    double (*draw_weights)(int64_t n, const float *x, float top, float by, float *y);
    /* Losses over rows of logits or predictions. */
    ls_loss_kernel *loss[LS_NLOSSES], *loss_dx[LS_NLOSSES];

    /* Cross-entropy of one row: stat[0] = maximum, stat[1] = 1/sum of exp(x - max); returns the
     * sum. dx: x[j] = scale * (softmax(x)[j] - (j == target)), in place. */
    float (*cross_entropy)(int64_t n, const float *x, float stat[2]);
    void (*cross_entropy_dx)(int64_t n, float *x, const float stat[2], int64_t target, float scale);

    /* out = a + b; any of them may be the same. */
    void (*add)(int64_t n, const float *a, const float *b, float *out);
    /* out = a * b; any of them may be the same. */
    void (*multiply)(int64_t n, const float *a, const float *b, float *out);
    /* y = x * scale + shift, rounded once; x and y may be the same. */
    void (*affine)(int64_t n, const float *x, float scale, float shift, float *y);
    /* y = x * scale + shift of bytes, by channel: x, y [pixels, C]; scale, shift [C]. */
    void (*bytes_affine)(int64_t pixels, int64_t C, const uint8_t *x, const float *scale,
                         const float *shift, float *y);
    /* Elements [first, first + n) of a sample, at x and y, which may be the same: y = 0 with
     * probability p, else x / (1 - p). The mask is a function of the place and of an element's
     * index alone. The backward pass is the same call on the gradient. */
    void (*dropout)(const ls_dropout_place *, int64_t first, int64_t n, const float *x, float *y);
    /* Sum of squares of n values. */
    float (*sum_squares)(int64_t n, const float *x);
    /* out[0]: the same; out[1]: the sum of x y. */
    void (*squares_and_dot)(int64_t n, const float *x, const float *y, float out[2]);
    /* One step of an optimizer, in place (kernels/update.c has the sources). */
    ls_update_kernel *update[LS_NUPDATES];
    /* mean += weight * (x - mean) */
    void (*ema)(int64_t n, float weight, const float *x, float *mean);

    /* Runs `rounds` of 192 independent multiply-adds of 16 lanes: the machine's peak. */
    float (*fma_peak)(int64_t rounds);
    /* The peak of products in bf16: each is bf16_depth multiply-adds. */
    float (*bf16_peak)(int64_t rounds);

    /* Elements of any type (group.h says what an operation means); pointers are aligned to an
     * element.
     *
     * out = a op b; out may be a or b, but must not overlap them otherwise. LS_AVG is the same as
     * LS_SUM here. The operation must be defined for the type (ls_op_takes).
     * 16-bit floats are computed in f32 and rounded once more, to nearest, ties to even. Minimum,
     * maximum and rounding to a 16-bit float produce only the NaNs 0x7fc00000, 0x7ff8000000000000,
     * 0x7fc0 and 0x7e00; sums and products of f32 and f64 may produce any NaN. */
    void (*combine)(ls_dtype, ls_op, size_t n, const void *a, const void *b, void *out);
    /* Combines into two outputs; either may be a or b. */
    void (*combine_both)(ls_dtype, ls_op, size_t n, const void *a, const void *b, void *out,
                         void *also);
    /* x = x / by, a division; floating point only. by > 0. */
    void (*average)(ls_dtype, size_t n, int by, void *x);
    /* Conversions between 16-bit floats (LS_BF16, LS_F16) and f32; x and y don't overlap. Narrow
     * rounds to nearest, ties to even. */
    void (*widen)(ls_dtype from, size_t n, const void *x, float *y);
    void (*narrow)(ls_dtype to, size_t n, const float *x, void *y);
    /* Blocks of weights, as files hold them, as f32. */
    ls_unpack_kernel *unpack[LS_NBLOCK_TYPES];

    ls_compress_kernels compress;
} ls_kernels;

/* Names: amx, avx512bf16, avx512, avx2 (x86-64), neon (AArch64), portable (everywhere).
 * LS_EINVAL: LOCKSTEP_CPU names a variant that does not exist or does not run here. */
ls_status ls_kernels_pick(const ls_kernels **k_p, ls_error *);

/* Why ls_kernels_pick() chose this variant, as part of a sentence. */
const char *ls_kernels_why(const ls_kernels *);

/* Why products in bf16 do not use a unit that this processor has for them, as part of a sentence;
 * NULL: there is none, or they use it. */
const char *ls_kernels_unused(void);

/* The variant with this name if it exists and runs here, else NULL. */
const ls_kernels *ls_kernels_named(const char *name);

/* The variants that run here, for i = 0, 1 ...: the fastest first, portable last, then NULL. */
const ls_kernels *ls_kernels_at(int i);

#endif
