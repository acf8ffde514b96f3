/* model.h - a model as calls: fields of a sample, values computed from them, losses.
 *
 *     static void build(ls_model *m) {
 *         ls_value *x = ls_input(m, "image", LS_U8, LS_DIMS(28, 28, 1));
 *         ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
 *         x = ls_affine(m, x, 1 / 255.0f, -0.5f);
 *         x = ls_gelu(m, ls_linear(m, ls_flatten(m, x), .name = "hidden", .out = 256));
 *         x = ls_linear(m, x, .name = "head", .out = 10);
 *         ls_cross_entropy(m, x, label, LS_DEFAULTS);
 *     }
 *
 * Shapes are those of one sample; the library adds the batch. An image is [height, width,
 * channels]. A value is f32 numbers; only fields have other types, and a layer that needs numbers
 * converts a field.
 *
 * Calls return values, never a status. The first error is remembered with the caller's file and
 * line; later calls do nothing, and the code that asked for the model reports the error once.
 * Values belong to the model, and live as long as it is being built. One thread at a time builds a
 * model.
 *
 * Options are named, in the order of their struct: ls_linear(m, x, .name = "head", .out = 10). All
 * are 0 unless they are given; LS_DEFAULTS stands for no options. A layer's name is that of its
 * parameters in weight files ("head.weight", "head.bias"); without a name it is the layer's kind,
 * numbered from the second one on: "linear", "linear_2".
 *
 * The header is for C11 and for C++ (g++ and clang++, from C++14 on).
 */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include <stdbool.h>

#include "lockstep/group.h"

#ifdef __cplusplus
extern "C" {
#define LS_OPTIONS(type, ...) (__extension__ type{__VA_ARGS__}) /* also before C++20 */
#else
#define LS_OPTIONS(type, ...) ((type){__VA_ARGS__})
#endif

typedef struct ls_model ls_model;
typedef struct ls_value ls_value;

/* A shape: the dimensions of one sample, each at least 1; a scalar has none. */
enum { LS_MAX_DIMS = 4 };
typedef struct ls_dims {
    int64_t of[LS_MAX_DIMS]; /* the first 0 ends them */
} ls_dims;
#define LS_DIMS(...) LS_OPTIONS(ls_dims, {__VA_ARGS__})
#define LS_SCALAR    LS_DIMS(0)

#define LS_DEFAULTS .name = NULL

/* For the macros below: the calls that follow are at this line of this file. */
ls_model *ls_model_at(ls_model *, const char *file, int line);
#define LS_HERE(m) ls_model_at((m), __FILE__, __LINE__)

/* ---- names ---- */

/* Names of the layers that follow begin with this one and a dot, after those of open scopes.
 * The text is that of printf. */
void ls_scope(ls_model *, const char *name, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;
void ls_scope_end(ls_model *);

/* ---- parameters that are not trained ---- */

/* Freezes the parameters whose names match the pattern, as in a shell: "block.0.*", "*.bias". It
 * may be called before or after their layers are added. A frozen parameter retains its initial
 * value, or that of the run or checkpoint that the training begins with (train.from): it has no
 * gradient and no optimizer state, and workers of a host share one copy. Layers on which no trained
 * parameter has an effect have no backward. The config's key train.freeze does the same. A pattern
 * that matches no parameter fails. */
void ls_freeze(ls_model *, const char *pattern);

/* ---- fields of a sample ---- */

/* A field of the data, by its name; type: LS_U8, LS_I32 or LS_F32. */
ls_value *ls_input(ls_model *, const char *name, ls_dtype type, ls_dims dims);

/* scale x + shift, by element. */
ls_value *ls_affine(ls_model *, ls_value *x, float scale, float shift);

/* ---- layers ----
 *
 * Options that are numbers are finite. NaN, an infinity, and a number out of an option's range
 * (deviations, eps and factors are not negative) fail the model, with a message that names the
 * option. */

/* The numbers of x as a vector. */
ls_value *ls_flatten(ls_model *, ls_value *x);

/* The numbers of x in another shape; one dimension may be -1: it follows from the others. */
ls_value *ls_reshape(ls_model *, ls_value *x, ls_dims dims);

/* Dimensions are numbered from 0, and from -1 down, the last one first.
 *
 * The range [first, first + count) of a dimension; count 0: up to its end. */
typedef struct ls_slice_options {
    const char *name LS_UNSET;
    int dim LS_UNSET;
    int64_t first LS_UNSET, count LS_UNSET;
} ls_slice_options;
ls_value *ls_slice(ls_model *, ls_value *x, ls_slice_options);

/* Values one after the other along a dimension, in which alone their shapes may differ:
 * ls_concat(m, -1, a, b, c). One number counts as a vector. */
enum { LS_MAX_VALUES = 8 };
typedef struct ls_values {
    ls_value *of[LS_MAX_VALUES] LS_UNSET;
} ls_values;
ls_value *ls_concat(ls_model *, int dim, ls_values x);

/* The mean over a dimension, which the result does not have. */
ls_value *ls_mean(ls_model *, ls_value *x, int dim);

/* The patches of size x size pixels of an image [h, w, c], row by row, each as a vector:
 * [(h / size) (w / size), size size c]. */
ls_value *ls_patches(ls_model *, ls_value *x, int64_t size);

/* An adapter of a linear layer: the weight and the bias are frozen, and trained are a [rank, in]
 * and b [out, rank], which begin as U(-1/sqrt(in), 1/sqrt(in)) and 0:
 *     y = x . weight^T + bias + scale (drop(x) . a^T) . b^T,  scale = alpha / rank
 * rs: scale = alpha / sqrt(rank). dora: only the direction of w = weight + scale b . a counts; the
 * norm of each row is `magnitude` [out], trained, which begins as the norms of the weight's rows:
 *     y = magnitude / |w| times (x . weight^T + scale (drop(x) . a^T) . b^T) + bias
 * The gradient treats |w| as a constant. Hu et al., "LoRA", ICLR 2022; Kalajdzievski, "A rank
 * stabilization scaling factor", 2023; Liu et al., "DoRA", ICML 2024. */
typedef struct ls_lora {
    int64_t rank LS_UNSET; /* 0: no adapter */
    float alpha LS_UNSET;  /* 0: 8 */
    bool rs LS_UNSET, dora LS_UNSET;
    float dropout LS_UNSET; /* probability with which an input of the adapter is set to 0 */
} ls_lora;

/* x . weight + bias for each vector of x's last dimension: [.., in] -> [.., out]. Parameters:
 * weight [in, out], N(0, deviation^2), deviation 0: 1 / sqrt(in); bias [out], 0. With .out_in the
 * weight is [out, in], as PyTorch stores it, and the layer may have an adapter, with the parameters
 * lora_A.weight, lora_B.weight and, with dora, lora_magnitude_vector. */
typedef struct ls_linear_options {
    const char *name LS_UNSET;
    int64_t out LS_UNSET;
    bool no_bias LS_UNSET, out_in LS_UNSET;
    float deviation LS_UNSET;
    ls_lora lora LS_UNSET;
} ls_linear_options;
ls_value *ls_linear(ls_model *, ls_value *x, ls_linear_options);

/* A convolution of an image: [h, w, in] -> [h', w', channels], h' = (h + 2 pad - kernel) / stride +
 * 1, rounded down. Pixels beyond the border are 0. Parameters: weight [kernel, kernel_w, in /
 * groups, channels], N(0, 2 / (kernel * kernel_w * in / groups)); bias [channels], 0. He, Zhang,
 * Ren & Sun, "Delving deep into rectifiers", ICCV 2015. */
enum { LS_NO_PAD = -1 };
typedef struct ls_conv2d_options {
    const char *name LS_UNSET;
    int64_t channels LS_UNSET; /* channels of the output */
    int64_t kernel LS_UNSET;   /* its height */
    int64_t kernel_w LS_UNSET; /* its width; 0: the height */
    int64_t stride LS_UNSET;   /* 0: 1 */
    /* on each side; 0: kernel / 2, so that an odd kernel with stride 1 keeps the size; LS_NO_PAD:
     * none */
    int64_t pad LS_UNSET;
    /* groups that the channels are divided into; 0: 1; the number of channels: depthwise */
    int64_t groups LS_UNSET;
    bool no_bias LS_UNSET;
} ls_conv2d_options;
ls_value *ls_conv2d(ls_model *, ls_value *x, ls_conv2d_options);

/* A transposed convolution, which enlarges: what the gradient of a convolution with these options
 * computes. pad 0: the output is `stride` times as large as the input; LS_NO_PAD, or a positive
 * number: its height is (h - 1) stride + kernel - 2 pad. Parameters: weight [kernel, kernel_w,
 * channels / groups, in], N(0, 2 stride^2 / (kernel * kernel_w * in / groups)); bias [channels], 0.
 * Zeiler, Krishnan, Taylor & Fergus, "Deconvolutional networks", CVPR 2010. */
ls_value *ls_conv2d_transposed(ls_model *, ls_value *x, ls_conv2d_options);

/* Group norm of an image [.., C]: neighbouring channels form groups; the numbers of a group, over
 * all pixels, get mean 0 and deviation 1; then times weight, plus bias, by channel. relu: then
 * max(0, y), in the same pass. Parameters: weight [C], 1; bias [C], 0. Wu & He, "Group
 * normalization", ECCV 2018. */
typedef struct ls_group_norm_options {
    const char *name LS_UNSET;
    int64_t groups LS_UNSET; /* 0: the most, up to 32, that have at least 4 channels each */
    float eps LS_UNSET;      /* added to the variance; 0: 1e-5 */
    bool relu LS_UNSET;
} ls_group_norm_options;
ls_value *ls_group_norm(ls_model *, ls_value *x, ls_group_norm_options);

/* Batch norm of [.., C]: each channel, over all numbers of all samples, gets mean 0 and deviation
 * 1; then times weight, plus bias. relu: then max(0, y), in the same pass.
 *
 * In training "all samples" are those of one virtual worker (train.batch / train.virtual_workers),
 * so the bits depend on the config alone; train.micro_batch must be that number, and gradients are
 * reduced in f32. Evaluation uses running values: after each step, running = (1 - momentum) running
 * + momentum * the mean over the virtual workers of their means, and of their variances (divided by
 * count - 1), each by its number of samples. A virtual worker with one number a channel, at the end
 * of an epoch, uses the running values and leaves them.
 *
 * Parameters: weight [C], 1; bias [C], 0; running_mean [C], 0; running_var [C], 1: no gradient
 * trains the last two. Ioffe & Szegedy, "Batch normalization", ICML 2015. */
typedef struct ls_batch_norm_options {
    const char *name LS_UNSET;
    float momentum LS_UNSET; /* weight of the step's values in the running ones; 0: 0.1 */
    float eps LS_UNSET;      /* added to the variance; 0: 1e-5 */
    bool relu LS_UNSET;
} ls_batch_norm_options;
ls_value *ls_batch_norm(ls_model *, ls_value *x, ls_batch_norm_options);

/* Layer norm of each vector of the last dimension: mean 0 and deviation 1 (1e-5 is added to the
 * variance), then times weight, plus bias. Parameters: weight [C], 1; bias [C], 0. Ba, Kiros &
 * Hinton, "Layer normalization", 2016. */
typedef struct ls_layer_norm_options {
    const char *name LS_UNSET;
} ls_layer_norm_options;
ls_value *ls_layer_norm(ls_model *, ls_value *x, ls_layer_norm_options);

/* RMS norm of each vector of the last dimension: divided by the root of its mean square, then times
 * weight. Parameter: weight [C], 1. Zhang & Sennrich, "Root mean square layer normalization",
 * NeurIPS 2019. */
typedef struct ls_rms_norm_options {
    const char *name LS_UNSET;
    float eps LS_UNSET; /* added to the mean square; 0: 1e-5 */
} ls_rms_norm_options;
ls_value *ls_rms_norm(ls_model *, ls_value *x, ls_rms_norm_options);

/* (x - mean) / deviation, by channel of [.., C]. An image of bytes counts as numbers from 0 to
 * 1. */
enum { LS_NORMALIZE_CHANNELS = 16 };
typedef struct ls_normalize_options {
    const char *name LS_UNSET;
    /* the first C; above 0 */
    float mean[LS_NORMALIZE_CHANNELS] LS_UNSET, deviation[LS_NORMALIZE_CHANNELS] LS_UNSET;
} ls_normalize_options;
ls_value *ls_normalize(ls_model *, ls_value *x, ls_normalize_options);

/* The maximum, or the mean, of each window of an image: [h, w, C] -> [h', w', C],
 * h' = (h + 2 pad - kernel) / stride + 1, rounded down. Pixels beyond the border do not count. */
typedef struct ls_pool_options {
    const char *name LS_UNSET;
    int64_t kernel LS_UNSET;   /* the window's height */
    int64_t kernel_w LS_UNSET; /* its width; 0: the height */
    int64_t stride LS_UNSET;   /* 0: the kernel */
    int64_t pad LS_UNSET;      /* on each side; less than the kernel */
    /* the mean divides by the window's size also where it is partly beyond */
    bool count_pad LS_UNSET;
} ls_pool_options;
ls_value *ls_max_pool(ls_model *, ls_value *x, ls_pool_options);
ls_value *ls_average_pool(ls_model *, ls_value *x, ls_pool_options);

/* The mean over all pixels: [.., C] -> [C]. */
ls_value *ls_mean_pool(ls_model *, ls_value *x);

/* e^x / the sum of e^x, for each vector of the last dimension. Losses take logits: they need no
 * softmax. */
ls_value *ls_softmax(ls_model *, ls_value *x);

/* x times the normal distribution function at x, by its usual approximation with tanh. Hendrycks &
 * Gimpel, "Gaussian error linear units", 2016. */
ls_value *ls_gelu(ls_model *, ls_value *x);

/* max(0, x). At 0 the derivative is 0. */
ls_value *ls_relu(ls_model *, ls_value *x);

/* x / (1 + e^-x), also called swish. Elfwing, Uchibe & Doya, Neural Networks 107 (2018) 3-11. */
ls_value *ls_silu(ls_model *, ls_value *x);

/* 1 / (1 + e^-x). */
ls_value *ls_sigmoid(ls_model *, ls_value *x);

/* The hyperbolic tangent of x. */
ls_value *ls_tanh(ls_model *, ls_value *x);

/* The sum of two values of one shape. */
ls_value *ls_add(ls_model *, ls_value *a, ls_value *b);

/* max(0, a + b), in one pass: the end of a residual block. He, Zhang, Ren & Sun, "Deep residual
 * learning for image recognition", CVPR 2016. */
ls_value *ls_add_relu(ls_model *, ls_value *a, ls_value *b);

/* Row ids[i] of a table, for each number of an LS_I32 field: [..] -> [.., width]. Ids are below
 * `rows`; a negative one stands for none, and gives zeros. Parameters: weight [rows, width], N(0,
 * deviation^2), deviation 0: 0.02; with .positions also positions [ids, width], drawn in the same
 * way, which are added to the rows. */
typedef struct ls_embedding_options {
    const char *name LS_UNSET;
    int64_t rows LS_UNSET, width LS_UNSET;
    bool positions LS_UNSET;
    float deviation LS_UNSET;
} ls_embedding_options;
ls_value *ls_embedding(ls_model *, ls_value *ids, ls_embedding_options);

/* The sum of the rows of ls_embedding(), or their mean: [..] -> [width]. A list shorter than its
 * field is padded with -1; for an empty list both are 0. The bits do not depend on the padding.
 * Lists of different lengths in files are padded so (docs/reference/data.md). Parameters: weight
 * [rows, width], N(0, deviation^2), deviation 0: 0.02. PyTorch calls the layer EmbeddingBag. */
typedef struct ls_embedding_sum_options {
    const char *name LS_UNSET;
    int64_t rows LS_UNSET, width LS_UNSET;
    bool mean LS_UNSET;
    float deviation LS_UNSET;
} ls_embedding_sum_options;
ls_value *ls_embedding_sum(ls_model *, ls_value *ids, ls_embedding_sum_options);

/* Attention: y = softmax(q k^T / sqrt(D)) v, for each of `heads` parts of D columns by itself. q, k
 * and v are rows of linear layers; the result [T, heads D] is the input of another one.
 *
 *     ls_attention(m, qkv, .heads = 12)                       qkv [T, 3 C]: the columns of q, k, v
 *     ls_attention(m, q, .heads = 12, .keys = kv)             q [T, C], kv [S, 2 C]
 *     ls_attention(m, q, .heads = 9, .kv_heads = 3, .keys = k, .values = v)
 *
 * .kv_heads: k and v have fewer heads, kv_heads D columns each, and heads / kv_heads consecutive
 * heads of q share one of them (Ainslie et al., "GQA", EMNLP 2023). .causal: row t of q meets rows
 * 0 to t of k; with .window only the last .window of these. .mask, an LS_U8 field [S]: a row of k
 * whose number is 0 does not count; a row of q that meets no other gives zeros. .positions, an
 * LS_I32 field [T], with .causal: a sample is several texts one after the other, and the field has
 * each row's place in its own text, from 0; a row meets only rows of its own text. Vaswani et al.,
 * "Attention is all you need", NeurIPS 2017. */
typedef struct ls_attention_options {
    const char *name LS_UNSET;
    int64_t heads LS_UNSET, kv_heads LS_UNSET; /* kv_heads 0: heads */
    int64_t window LS_UNSET;                   /* 0: none */
    bool causal LS_UNSET;
    ls_value *keys LS_UNSET, *values LS_UNSET, *mask LS_UNSET, *positions LS_UNSET;
    /* in training: the probability with which one of the softmax becomes 0 */
    float dropout LS_UNSET;
} ls_attention_options;
ls_value *ls_attention(ls_model *, ls_value *x, ls_attention_options);

/* Rotary positions, for queries and keys: x [T, heads D], D even. In row t, elements i and i + D
 * / 2 of each head are turned by the angle t * base^(-2 i / D). .positions, an LS_I32 field [T],
 * has other places than t, each from 0 to T - 1 (ls_attention_options). Frequencies of models for
 * longer texts are scaled: .factor alone divides all of them ("linear"); with .original, the number
 * of positions that the model was first trained for, frequencies of waves longer than original /
 * low are divided, those of waves shorter than original / high stay, and those between are
 * interpolated ("llama3"). .kept [D / 2] is the part of each frequency, 0 to 1, that .factor does
 * not divide ("yarn"); .divisors [D / 2] divide each frequency ("longrope"), with a .factor of 1;
 * .scale multiplies cosines and sines. With .turned = R, of each head the first R elements are
 * turned, as if D were R, and the others stay. Su et al., "RoFormer", 2021.
 * Frequencies and angles are rounded to f32, as in Hugging Face's. */
typedef struct ls_rope_options {
    const char *name LS_UNSET;
    int64_t heads LS_UNSET;
    float base LS_UNSET;                                /* 0: 10000 */
    float factor LS_UNSET, low LS_UNSET, high LS_UNSET; /* factor 0: 1; low 0: 1; high 0: 4 */
    int64_t original LS_UNSET;                          /* 0: not of Llama 3's kind */
    ls_value *positions LS_UNSET;
    const float *kept LS_UNSET;     /* is copied; NULL: all frequencies are divided alike */
    float scale LS_UNSET;           /* 0: 1 */
    const float *divisors LS_UNSET; /* is copied; NULL: none */
    int64_t turned LS_UNSET;        /* even; 0: D */
} ls_rope_options;
ls_value *ls_rope(ls_model *, ls_value *x, ls_rope_options);

/* In training, each number is 0 with probability `rate`, else divided by 1 - rate; in evaluation
 * the result is x. The zeros follow from the run's seed, the step, and the sample's place in the
 * batch: they are the same for any number of workers and any micro-batches. Srivastava et al.,
 * "Dropout", JMLR 15 (2014). */
typedef struct ls_dropout_options {
    const char *name LS_UNSET;
    float rate LS_UNSET;
} ls_dropout_options;
ls_value *ls_dropout(ls_model *, ls_value *x, ls_dropout_options);

/* The product of two values of one shape, by element. */
ls_value *ls_multiply(ls_model *, ls_value *a, ls_value *b);

/* The dot products of a [C] with b [rows, C]: [rows]; or with b [C]: [1]. A user's row and the rows
 * of items give the items' scores. */
ls_value *ls_dot(ls_model *, ls_value *a, ls_value *b);

/* The dot products of all pairs of rows of x [rows, C]: [rows (rows - 1) / 2], of row 1 with 0, of
 * row 2 with 0 and 1, and so on. Naumov et al., "Deep learning recommendation model for
 * personalization and recommendation systems", 2019. */
ls_value *ls_interaction(ls_model *, ls_value *x);

/* SiLU(gate) * x, by element, of two values of one shape: SwiGLU, with a linear layer for each.
 * Shazeer, "GLU variants improve transformer", 2020. */
ls_value *ls_silu_gate(ls_model *, ls_value *gate, ls_value *x);

/* A mixture of experts: each row of x [T, C], or [C], goes through the `per_token` experts with the
 * greatest logits of a router; of equal logits those with lower numbers count. There are `experts`
 * experts, each a SwiGLU layer of this width. Their results are summed with weights: the softmax
 * over all logits, or, with `normalize`, over the chosen ones. No row is dropped, unless there is a
 * capacity: in training an expert then takes ceil(capacity * T * per_token / experts) choices of a
 * sample, those of the first rows, and the other choices add nothing. `shared` further experts take
 * all rows. balance: the factor of an auxiliary loss of each sample for an even load, experts *
 * sum(f p), with f the number of choices of an expert for each row, and p the mean of its softmax.
 * bias_rate: experts are chosen by the softmax plus a bias (choice.bias [experts]); after a step
 * the bias of an expert with more than an even part of the batch's choices falls by bias_rate, and
 * that of an expert with fewer rises by it. Parameters: gate.weight [experts, C], in f32 products;
 * experts.gate_proj and experts.up_proj [experts, width, C], experts.down_proj [experts, C, width];
 * shared_experts.gate_proj.weight, shared_experts.up_proj.weight and
 * shared_experts.down_proj.weight. Jiang et al., "Mixtral of experts", 2024; Fedus, Zoph & Shazeer,
 * "Switch transformers", JMLR 2022 (the loss). */
typedef struct ls_moe_options {
    const char *name LS_UNSET;
    int64_t experts LS_UNSET, per_token LS_UNSET, width LS_UNSET; /* 1 to 128 experts */
    int64_t shared LS_UNSET;
    bool normalize LS_UNSET;
    float balance LS_UNSET;   /* 0: no such loss */
    float deviation LS_UNSET; /* of initial weights; 0: 1 / sqrt(their inputs) */
    float capacity LS_UNSET;  /* 0: none */
    float bias_rate LS_UNSET; /* 0: no biases */
} ls_moe_options;
ls_value *ls_moe(ls_model *, ls_value *x, ls_moe_options);

/* Each vector of x's last dimension, times a learned one, by element. Parameter: weight [last],
 * `start` (0: 1). Touvron et al., "Going deeper with image transformers", 2021 (LayerScale). */
typedef struct ls_scale_options {
    const char *name LS_UNSET;
    float start LS_UNSET;
} ls_scale_options;
ls_value *ls_scale(ls_model *, ls_value *x, ls_scale_options);

/* A learned value, the same for each sample: positions to add, a class token to put in front.
 * Parameter: weight [dims], N(0, deviation^2); deviation 0: 0.02. */
typedef struct ls_learned_options {
    const char *name LS_UNSET;
    float deviation LS_UNSET;
} ls_learned_options;
ls_value *ls_learned(ls_model *, ls_dims dims, ls_learned_options);

/* ---- layers of your own ----
 *
 *     static void forward(const ls_layer_args *a) {
 *         for (int64_t i = 0; i < a->samples * a->in[0].count; i++)
 *             a->out[i] = a->in[0].data[i] * a->param[0].data[0];
 *     }
 *     static const ls_layer_kind scale = {
 *         .name = "scale", .nparams = 1, .forward = forward, .backward = backward};
 *     y = ls_own_layer(m, &scale, x, .params = {LS_PARAM("factor", LS_ONES, 1)});
 *
 * The result for a sample must depend on that sample and the parameters alone: not on other samples
 * of the call, on earlier calls, or on threads. ls_model_check() looks for layers that break this,
 * and for wrong gradients.
 *
 * Several threads call forward at the same time, each with its own samples. backward is called for
 * one sample at a time if the layer has parameters (from several threads, unless it has more
 * parameters than numbers in its inputs and output), else like forward. */

enum { LS_OWN_INPUTS = 8, LS_OWN_PARAMS = 6 };

/* The numbers of all samples of a call, one sample after the other; or a parameter, which all
 * samples share. */
typedef struct ls_operand {
    const float *data;         /* [samples][count]; of a parameter: [count] */
    int64_t count;             /* numbers of one sample */
    int64_t dims[LS_MAX_DIMS]; /* shape of one sample, ended by a 0; not set for a parameter */
} ls_operand;

typedef struct ls_layer_args {
    int64_t samples;
    ls_operand in[LS_OWN_INPUTS];
    ls_operand param[LS_OWN_PARAMS];
    const void *own;              /* `own` of the options */
    float *saved;                 /* [samples][sizes.saved]: forward writes, backward reads */
    float *work;                  /* [samples][sizes.work]: undefined when a call begins */
    float *out;                   /* [samples][count of the output]: forward writes all of it */
    const float *dout;            /* the same shape, in backward: gradient of the loss */
    float *din[LS_OWN_INPUTS];    /* backward writes all of them: the gradients of the inputs */
    float *dparam[LS_OWN_PARAMS]; /* backward adds to them; NULL: the parameter is frozen */
} ls_layer_args;

typedef struct ls_layer_sizes {
    ls_dims out;         /* one sample's output; preset to the shape of the first input */
    int64_t saved, work; /* floats of memory for each sample; preset to 0 */
    /* operations of forward for one sample, for predictions of a step's time and the share of the
     * peak in metrics; preset to 0: the layer is priced as one pass over memory, and the share is
     * not known */
    double flops;
} ls_layer_sizes;

typedef struct ls_layer_kind {
    const char *name LS_UNSET; /* "swish" */
    int nparams LS_UNSET;
    void (*forward)(const ls_layer_args *) LS_UNSET;
    /* reads in, param, saved, dout; out is NULL */
    void (*backward)(const ls_layer_args *) LS_UNSET;
    /* NULL: all sizes are as preset. Reads only shapes and `own`. Returns NULL, or what is wrong
     * with the shapes of the inputs, in words. */
    const char *(*sizes)(const ls_layer_args *, ls_layer_sizes *out)LS_UNSET;
    /* backward leaves out parameters whose dparam is NULL. Without it no parameter of the layer can
     * be frozen (ls_freeze()), unless no backward is needed at all. */
    bool may_freeze LS_UNSET;
} ls_layer_kind;

/* Initial weights: N(0, std^2), or a constant if std is 0. */
typedef struct ls_initial {
    float std LS_UNSET, value LS_UNSET;
} ls_initial;
#define LS_NORMAL(std)     LS_OPTIONS(ls_initial, (std), 0)
#define LS_CONSTANT(value) LS_OPTIONS(ls_initial, 0, (value))
#define LS_ZEROS           LS_CONSTANT(0)
#define LS_ONES            LS_CONSTANT(1)

/* A parameter "LAYER.name" of these dimensions. Weight decay applies to those with two or more. */
typedef struct ls_own_param {
    const char *name LS_UNSET;
    ls_initial initial LS_UNSET;
    ls_dims dims LS_UNSET;
} ls_own_param;
#define LS_PARAM(name, initial, ...) LS_OPTIONS(ls_own_param, (name), initial, LS_DIMS(__VA_ARGS__))

/* The kind, and what `own` points to, must exist for as long as the model does. */
typedef struct ls_own_options {
    const char *name LS_UNSET;
    ls_own_param params[LS_OWN_PARAMS] LS_UNSET; /* as many as the kind has */
    ls_value *more[LS_OWN_INPUTS - 1] LS_UNSET;  /* inputs after the first one; NULL ends them */
    const void *own LS_UNSET;                    /* for the kind's functions */
} ls_own_options;
ls_value *ls_own_layer(ls_model *, const ls_layer_kind *, ls_value *x, ls_own_options);

/* ---- losses: the last layers of a model ----
 *
 * A sample's loss is the sum over the model's losses, each its factor times the mean over the
 * sample's targets. The step's loss is the mean over the samples of the batch, by their weights:
 * sum(weight * loss) / sum(weight). It does not depend on workers or micro-batches. */

typedef struct ls_loss_options {
    const char *name LS_UNSET;
    float factor LS_UNSET; /* 0: 1 */
    /* cross-entropy: this part of each target is spread over all classes */
    float smoothing LS_UNSET;
    /* cross-entropy: a label that has no loss, as negative labels have none: a class, or a number
     * above all classes, such as 255 in masks. 0: none; so class 0 can't be ignored this way: label
     * its samples -1 */
    int32_t ignore LS_UNSET;
} ls_loss_options;

/* Cross-entropy, in nats, of logits [.., classes] and labels [..], an LS_I32 field, each from 0 to
 * classes - 1: log(sum(e^x)) - x[label]. With smoothing s the target is 1 - s at the label, plus
 * s / classes everywhere (Szegedy et al., arXiv 1512.00567).
 *
 * A target whose label is negative or `ignore` has no loss. If this is the model's only loss, a
 * sample's weight is multiplied by the part of its targets that have one: the step's loss is the
 * mean over these targets of the whole batch. Beside other losses, a sample's loss is the mean over
 * its own targets, or 0 if it has none. */
void ls_cross_entropy(ls_model *, ls_value *logits, ls_value *label, ls_loss_options);

/* Cross-entropy of labels [T], an LS_I32 field, and logits that are a linear layer of x [T, C]: for
 * many classes, as in a language model, since the logits are never in memory as a whole. Parameter:
 * weight [classes, C], N(0, 0.02^2); or that of .tied, the value of an ls_embedding() without
 * positions. Rows with a negative label have no loss, and cost nothing; they count as above. */
typedef struct ls_linear_cross_entropy_options {
    const char *name LS_UNSET;
    int64_t classes LS_UNSET; /* not with .tied */
    ls_value *tied LS_UNSET;
} ls_linear_cross_entropy_options;
void ls_linear_cross_entropy(ls_model *, ls_value *x, ls_value *label,
                             ls_linear_cross_entropy_options);

/* Binary cross-entropy, in nats, of logits x and as many targets t in [0, 1]:
 * max(x, 0) - x t + log(1 + e^-|x|). Targets: a field of any type, or a value that depends on no
 * trained parameter; a field in f32 is not rounded, whatever the run computes in. */
void ls_binary_cross_entropy(ls_model *, ls_value *logits, ls_value *targets, ls_loss_options);

/* The mean of (x - t)^2 over as many targets t, as above. */
void ls_mean_squared_error(ls_model *, ls_value *x, ls_value *targets, ls_loss_options);

/* The loss of Bayesian personalized ranking, of two or more scores and as many targets, a field:
 * the mean over all pairs of a score x whose target is above 1/2 and a score y whose target is not
 * of log(1 + e^-(x - y)). Rendle, Freudenthaler, Gantner & Schmidt-Thieme, UAI 2009. */
void ls_bpr(ls_model *, ls_value *scores, ls_value *targets, ls_loss_options);

/* A loss of the program's own: the mean of the numbers of x, which ls_own_layer(), or other layers,
 * have computed from predictions and targets. It predicts nothing: programs that predict
 * (lockstep/infer.h) need another loss in the model. It does not run on devices. */
void ls_own_loss(ls_model *, ls_value *x, ls_loss_options);

/* The field, one LS_F32 or LS_I32, is the weight of a sample in the step's loss: at least 0. */
void ls_sample_weight(ls_model *, ls_value *field);

/* ---- metrics, of evaluations ----
 *
 *     ls_metric(m, "accuracy", ls_is_top(m, x, label, 1));
 *
 * Metrics are printed and written beside the loss. Each sample counts the same, whatever its
 * weight. A metric may read values that no loss depends on: their layers run in evaluations alone,
 * and have no parameters. A model with one loss and no call of ls_metric() has the usual metrics:
 * with cross-entropy accuracy, top5 (from 10 classes on) and auc (with 2 classes); with binary
 * cross-entropy of one number auc; with the mean squared error rmse. */

/* Names a measure, which the calls below return; letters, digits, _ and -. */
void ls_metric(ls_model *, const char *name, ls_value *measure);

/* The part of the labels [..] that are among the k largest logits [.., classes] of their rows;
 * among equal logits lower classes come first. Negative labels do not count. */
ls_value *ls_is_top(ls_model *, ls_value *logits, ls_value *label, int64_t k);

/* The area under the receiver operating characteristic: the part of all pairs of a sample of class
 * 1 and one of class 0 in which the former has the larger score; equal scores count half. score:
 * one number, or the logits of two classes. label: a field of one number, 1 if it is above 1/2;
 * samples with negative ones do not count. Mann & Whitney, Ann. Math. Stat. 18 (1947) 50-60. */
ls_value *ls_auc(ls_model *, ls_value *score, ls_value *label);

/* The confusion matrix of samples with one label: which classes are taken for which. At the end of
 * a run it is drawn as NAME.svg, by the metric's name. Negative labels do not count. */
ls_value *ls_confusion(ls_model *, ls_value *logits, ls_value *label);

/* The mean of (x - t)^2, its root, and the mean of |x - t|, over as many targets t: a field or a
 * value. */
ls_value *ls_squared_error(ls_model *, ls_value *x, ls_value *targets);
ls_value *ls_root_squared_error(ls_model *, ls_value *x, ls_value *targets);
ls_value *ls_absolute_error(ls_model *, ls_value *x, ls_value *targets);

/* The coefficient of determination R^2 = 1 - sum((x - t)^2) / sum((t - mean(t))^2); with several
 * targets a sample, at most 64, the mean over these. Not defined where all t are the same. Wright,
 * J. Agricultural Research 20 (1921) 557-585. */
ls_value *ls_r2(ls_model *, ls_value *x, ls_value *targets);

#define ls_scope(m, ...)              (ls_scope)(LS_HERE(m), __VA_ARGS__)
#define ls_freeze(m, pattern)         (ls_freeze)(LS_HERE(m), pattern)
#define ls_input(m, name, type, dims) (ls_input)(LS_HERE(m), name, type, dims)
#define ls_affine(m, x, scale, shift) (ls_affine)(LS_HERE(m), x, scale, shift)
#define ls_flatten(m, x)              (ls_flatten)(LS_HERE(m), x)
#define ls_reshape(m, x, dims)        (ls_reshape)(LS_HERE(m), x, dims)
#define ls_slice(m, x, ...)           (ls_slice)(LS_HERE(m), x, LS_OPTIONS(ls_slice_options, __VA_ARGS__))
#define ls_concat(m, dim, ...)        (ls_concat)(LS_HERE(m), dim, LS_OPTIONS(ls_values, {__VA_ARGS__}))
#define ls_mean(m, x, dim)            (ls_mean)(LS_HERE(m), x, dim)
#define ls_patches(m, x, size)        (ls_patches)(LS_HERE(m), x, size)
#define ls_linear(m, x, ...)          (ls_linear)(LS_HERE(m), x, LS_OPTIONS(ls_linear_options, __VA_ARGS__))
#define ls_gelu(m, x)                 (ls_gelu)(LS_HERE(m), x)
#define ls_relu(m, x)                 (ls_relu)(LS_HERE(m), x)
#define ls_silu(m, x)                 (ls_silu)(LS_HERE(m), x)
#define ls_sigmoid(m, x)              (ls_sigmoid)(LS_HERE(m), x)
#define ls_tanh(m, x)                 (ls_tanh)(LS_HERE(m), x)
#define ls_add(m, a, b)               (ls_add)(LS_HERE(m), a, b)
#define ls_own_layer(m, kind, x, ...)                                                              \
    (ls_own_layer)(LS_HERE(m), kind, x, LS_OPTIONS(ls_own_options, __VA_ARGS__))
#define ls_conv2d(m, x, ...) (ls_conv2d)(LS_HERE(m), x, LS_OPTIONS(ls_conv2d_options, __VA_ARGS__))
#define ls_conv2d_transposed(m, x, ...)                                                            \
    (ls_conv2d_transposed)(LS_HERE(m), x, LS_OPTIONS(ls_conv2d_options, __VA_ARGS__))
#define ls_embedding(m, ids, ...)                                                                  \
    (ls_embedding)(LS_HERE(m), ids, LS_OPTIONS(ls_embedding_options, __VA_ARGS__))
#define ls_embedding_sum(m, ids, ...)                                                              \
    (ls_embedding_sum)(LS_HERE(m), ids, LS_OPTIONS(ls_embedding_sum_options, __VA_ARGS__))
#define ls_attention(m, x, ...)                                                                    \
    (ls_attention)(LS_HERE(m), x, LS_OPTIONS(ls_attention_options, __VA_ARGS__))
#define ls_dropout(m, x, ...)                                                                      \
    (ls_dropout)(LS_HERE(m), x, LS_OPTIONS(ls_dropout_options, __VA_ARGS__))
#define ls_moe(m, x, ...)        (ls_moe)(LS_HERE(m), x, LS_OPTIONS(ls_moe_options, __VA_ARGS__))
#define ls_multiply(m, a, b)     (ls_multiply)(LS_HERE(m), a, b)
#define ls_dot(m, a, b)          (ls_dot)(LS_HERE(m), a, b)
#define ls_interaction(m, x)     (ls_interaction)(LS_HERE(m), x)
#define ls_silu_gate(m, gate, x) (ls_silu_gate)(LS_HERE(m), gate, x)
#define ls_rope(m, x, ...)       (ls_rope)(LS_HERE(m), x, LS_OPTIONS(ls_rope_options, __VA_ARGS__))
#define ls_scale(m, x, ...)      (ls_scale)(LS_HERE(m), x, LS_OPTIONS(ls_scale_options, __VA_ARGS__))
#define ls_learned(m, dims, ...)                                                                   \
    (ls_learned)(LS_HERE(m), dims, LS_OPTIONS(ls_learned_options, __VA_ARGS__))
#define ls_group_norm(m, x, ...)                                                                   \
    (ls_group_norm)(LS_HERE(m), x, LS_OPTIONS(ls_group_norm_options, __VA_ARGS__))
#define ls_batch_norm(m, x, ...)                                                                   \
    (ls_batch_norm)(LS_HERE(m), x, LS_OPTIONS(ls_batch_norm_options, __VA_ARGS__))
#define ls_layer_norm(m, x, ...)                                                                   \
    (ls_layer_norm)(LS_HERE(m), x, LS_OPTIONS(ls_layer_norm_options, __VA_ARGS__))
#define ls_rms_norm(m, x, ...)                                                                     \
    (ls_rms_norm)(LS_HERE(m), x, LS_OPTIONS(ls_rms_norm_options, __VA_ARGS__))
#define ls_normalize(m, x, ...)                                                                    \
    (ls_normalize)(LS_HERE(m), x, LS_OPTIONS(ls_normalize_options, __VA_ARGS__))
#define ls_max_pool(m, x, ...)                                                                     \
    (ls_max_pool)(LS_HERE(m), x, LS_OPTIONS(ls_pool_options, __VA_ARGS__))
#define ls_average_pool(m, x, ...)                                                                 \
    (ls_average_pool)(LS_HERE(m), x, LS_OPTIONS(ls_pool_options, __VA_ARGS__))
#define ls_mean_pool(m, x)   (ls_mean_pool)(LS_HERE(m), x)
#define ls_add_relu(m, a, b) (ls_add_relu)(LS_HERE(m), a, b)
#define ls_softmax(m, x)     (ls_softmax)(LS_HERE(m), x)
#define ls_cross_entropy(m, x, label, ...)                                                         \
    (ls_cross_entropy)(LS_HERE(m), x, label, LS_OPTIONS(ls_loss_options, __VA_ARGS__))
#define ls_linear_cross_entropy(m, x, label, ...)                                                  \
    (ls_linear_cross_entropy)(LS_HERE(m), x, label,                                                \
                              LS_OPTIONS(ls_linear_cross_entropy_options, __VA_ARGS__))
#define ls_binary_cross_entropy(m, x, targets, ...)                                                \
    (ls_binary_cross_entropy)(LS_HERE(m), x, targets, LS_OPTIONS(ls_loss_options, __VA_ARGS__))
#define ls_mean_squared_error(m, x, targets, ...)                                                  \
    (ls_mean_squared_error)(LS_HERE(m), x, targets, LS_OPTIONS(ls_loss_options, __VA_ARGS__))
#define ls_bpr(m, x, targets, ...)                                                                 \
    (ls_bpr)(LS_HERE(m), x, targets, LS_OPTIONS(ls_loss_options, __VA_ARGS__))
#define ls_own_loss(m, x, ...)                                                                     \
    (ls_own_loss)(LS_HERE(m), x, LS_OPTIONS(ls_loss_options, __VA_ARGS__))
#define ls_sample_weight(m, field)           (ls_sample_weight)(LS_HERE(m), field)
#define ls_metric(m, name, measure)          (ls_metric)(LS_HERE(m), name, measure)
#define ls_is_top(m, x, label, k)            (ls_is_top)(LS_HERE(m), x, label, k)
#define ls_auc(m, score, label)              (ls_auc)(LS_HERE(m), score, label)
#define ls_confusion(m, x, label)            (ls_confusion)(LS_HERE(m), x, label)
#define ls_r2(m, x, targets)                 (ls_r2)(LS_HERE(m), x, targets)
#define ls_squared_error(m, x, targets)      (ls_squared_error)(LS_HERE(m), x, targets)
#define ls_root_squared_error(m, x, targets) (ls_root_squared_error)(LS_HERE(m), x, targets)
#define ls_absolute_error(m, x, targets)     (ls_absolute_error)(LS_HERE(m), x, targets)

#ifdef __cplusplus
}
#endif
#endif
