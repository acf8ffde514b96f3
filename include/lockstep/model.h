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
 * Shapes are those of one sample; the batch is ours. An image is [height, width, channels]. A value
 * is f32 numbers; only fields have other types, and a layer that needs numbers converts a field.
 *
 * Calls return values, never a status. The first error is remembered with the caller's file and
 * line; later calls do nothing, and whoever asked for the model reports the error once. Values
 * belong to the model, and live as long as it is being built. One thread at a time builds a model.
 *
 * Options are named, in the order of their struct: ls_linear(m, x, .name = "head", .out = 10). All
 * are 0 unless they are given; LS_DEFAULTS stands for no options. A layer's name is that of its
 * parameters in weight files ("head.weight", "head.bias"); without a name it is the layer's kind,
 * numbered from the second one on: "linear", "linear_2".
 *
 * The header is for C11 and for C++20.
 */
#ifndef LOCKSTEP_MODEL_H
#define LOCKSTEP_MODEL_H

#include "lockstep/group.h"

#ifdef __cplusplus
extern "C" {
#define LS_OPTIONS(type, ...)                                                                      \
    type { __VA_ARGS__ }
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

/* ---- fields of a sample ---- */

/* A field of the data, by its name; type: LS_U8, LS_I32 or LS_F32. */
ls_value *ls_input(ls_model *, const char *name, ls_dtype type, ls_dims dims);

/* scale x + shift, by element. */
ls_value *ls_affine(ls_model *, ls_value *x, float scale, float shift);

/* ---- layers ---- */

/* The same numbers as a vector. */
ls_value *ls_flatten(ls_model *, ls_value *x);

/* x . weight + bias for each vector of x's last dimension: [.., in] -> [.., out]. Parameters: weight
 * [in, out], N(0, 1 / in); bias [out], 0. */
typedef struct ls_linear_options {
    const char *name;
    int64_t out;
} ls_linear_options;
ls_value *ls_linear(ls_model *, ls_value *x, ls_linear_options);

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

/* ---- losses: the last layers of a model ---- */

/* Cross-entropy of logits [classes] and a class, an LS_I32 field from 0 to classes - 1. */
typedef struct ls_loss_options {
    const char *name;
} ls_loss_options;
void ls_cross_entropy(ls_model *, ls_value *logits, ls_value *label, ls_loss_options);

#define ls_scope(m, ...)              (ls_scope)(LS_HERE(m), __VA_ARGS__)
#define ls_input(m, name, type, dims) (ls_input)(LS_HERE(m), name, type, dims)
#define ls_affine(m, x, scale, shift) (ls_affine)(LS_HERE(m), x, scale, shift)
#define ls_flatten(m, x)              (ls_flatten)(LS_HERE(m), x)
#define ls_linear(m, x, ...)          (ls_linear)(LS_HERE(m), x, LS_OPTIONS(ls_linear_options, __VA_ARGS__))
#define ls_gelu(m, x)                 (ls_gelu)(LS_HERE(m), x)
#define ls_relu(m, x)                 (ls_relu)(LS_HERE(m), x)
#define ls_silu(m, x)                 (ls_silu)(LS_HERE(m), x)
#define ls_sigmoid(m, x)              (ls_sigmoid)(LS_HERE(m), x)
#define ls_tanh(m, x)                 (ls_tanh)(LS_HERE(m), x)
#define ls_add(m, a, b)               (ls_add)(LS_HERE(m), a, b)
#define ls_cross_entropy(m, x, label, ...)                                                         \
    (ls_cross_entropy)(LS_HERE(m), x, label, LS_OPTIONS(ls_loss_options, __VA_ARGS__))

#ifdef __cplusplus
}
#endif
#endif
