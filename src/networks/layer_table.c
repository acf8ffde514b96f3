/* layer_table.c - see layer_table.h. */
#include "networks/layer_table.h"

#include <string.h>

#define INT   LS_OPT_INT
#define FLAG  LS_OPT_FLAG
#define REAL  LS_OPT_REAL
#define REALS LS_OPT_REALS

enum { MOST = 1 << 30 };

/* Calls without options, with an options struct, and with one number. */
#define PLAIN(layer)                                                                               \
    static ls_value *add_##layer(ls_model *m, const ls_several *x, const void *o) {                \
        (void)o;                                                                                   \
        return (ls_##layer)(m, x->of[0]);                                                          \
    }
#define WITH_OPTIONS(layer, type)                                                                  \
    static ls_value *add_##layer(ls_model *m, const ls_several *x, const void *o) {                \
        return (ls_##layer)(m, x->of[0], *(const type *)o);                                        \
    }
/* The sum, or the product, of all values. */
#define OF_PAIRS(layer)                                                                            \
    static ls_value *add_##layer(ls_model *m, const ls_several *x, const void *o) {                \
        (void)o;                                                                                   \
        ls_value *y = x->of[0];                                                                    \
        for (int i = 1; i < LS_SEVERAL && x->of[i]; i++) y = (ls_##layer)(m, y, x->of[i]);         \
        return y;                                                                                  \
    }

OF_PAIRS(add)
OF_PAIRS(multiply)
PLAIN(flatten)
PLAIN(gelu)
PLAIN(interaction)
PLAIN(mean_pool)
PLAIN(relu)
PLAIN(sigmoid)
PLAIN(silu)
PLAIN(softmax)
PLAIN(tanh)
WITH_OPTIONS(attention, ls_attention_options)
WITH_OPTIONS(average_pool, ls_pool_options)
WITH_OPTIONS(batch_norm, ls_batch_norm_options)
WITH_OPTIONS(conv2d, ls_conv2d_options)
WITH_OPTIONS(conv2d_transposed, ls_conv2d_options)
WITH_OPTIONS(dropout, ls_dropout_options)
WITH_OPTIONS(embedding, ls_embedding_options)
WITH_OPTIONS(embedding_sum, ls_embedding_sum_options)
WITH_OPTIONS(group_norm, ls_group_norm_options)
WITH_OPTIONS(layer_norm, ls_layer_norm_options)
WITH_OPTIONS(linear, ls_linear_options)
WITH_OPTIONS(max_pool, ls_pool_options)
WITH_OPTIONS(moe, ls_moe_options)
WITH_OPTIONS(normalize, ls_normalize_options)
WITH_OPTIONS(rms_norm, ls_rms_norm_options)
WITH_OPTIONS(rope, ls_rope_options)
WITH_OPTIONS(scale, ls_scale_options)

typedef struct one_option {
    const char *name; /* no layer takes it */
    int64_t size, dim;
} one_option;

static ls_value *add_patches(ls_model *m, const ls_several *x, const void *o) {
    return (ls_patches)(m, x->of[0], ((const one_option *)o)->size);
}

static ls_value *add_mean(ls_model *m, const ls_several *x, const void *o) {
    return (ls_mean)(m, x->of[0], (int)((const one_option *)o)->dim);
}

ls_value *ls_several_concat(ls_model *m, int dim, const ls_several *x) {
    ls_several from = *x;
    int n = 0;
    while (n < LS_SEVERAL && from.of[n]) n++;
    for (int k = 0; n > LS_MAX_VALUES; n = k) {
        ls_several to = {{0}};
        k = 0;
        for (int i = 0; i < n; i += LS_MAX_VALUES) {
            ls_values some = {{0}};
            for (int j = 0; j < LS_MAX_VALUES && i + j < n; j++) some.of[j] = from.of[i + j];
            to.of[k++] = some.of[1] ? (ls_concat)(m, dim, some) : some.of[0];
        }
        from = to;
    }
    ls_values all = {{0}};
    memcpy(all.of, from.of, (size_t)n * sizeof *all.of);
    return (ls_concat)(m, dim, all);
}

static ls_value *add_concat(ls_model *m, const ls_several *x, const void *o) {
    return ls_several_concat(m, (int)((const one_option *)o)->dim, x);
}

typedef struct affine_options {
    const char *name;
    float scale, shift;
} affine_options;

static ls_value *add_affine(ls_model *m, const ls_several *x, const void *options) {
    const affine_options *o = options;
    return (ls_affine)(m, x->of[0], o->scale, o->shift);
}

typedef struct slice_options {
    const char *name;
    int64_t dim, first, count;
} slice_options;

static ls_value *add_slice(ls_model *m, const ls_several *x, const void *options) {
    const slice_options *o = options;
    return (
        ls_slice)(m, x->of[0],
                  (ls_slice_options){
                      .name = o->name, .dim = (int)o->dim, .first = o->first, .count = o->count});
}

typedef struct shape_options {
    const char *name;
    ls_dims dims;
    float deviation; /* learned */
} shape_options;

static ls_value *add_reshape(ls_model *m, const ls_several *x, const void *o) {
    return (ls_reshape)(m, x->of[0], ((const shape_options *)o)->dims);
}

static ls_value *add_learned(ls_model *m, const ls_several *x, const void *options) {
    const shape_options *o = options;
    (void)x;
    return (ls_learned)(m, o->dims,
                        (ls_learned_options){.name = o->name, .deviation = o->deviation});
}

static ls_value *add_silu_gate(ls_model *m, const ls_several *x, const void *o) {
    (void)o;
    return (ls_silu_gate)(m, x->of[0], x->of[1]);
}

static ls_value *add_dot(ls_model *m, const ls_several *x, const void *o) {
    (void)o;
    return (ls_dot)(m, x->of[0], x->of[1]);
}

/* max(0, the sum of all values). */
static ls_value *add_add_relu(ls_model *m, const ls_several *x, const void *o) {
    ls_several first = *x;
    int last = LS_SEVERAL - 1;
    while (!x->of[last]) last--;
    first.of[last] = NULL;
    return (ls_add_relu)(m, add_add(m, &first, o), x->of[last]);
}

#define CONV_OPTIONS                                                                               \
    {                                                                                              \
        INT(ls_conv2d_options, channels, 1, MOST), INT(ls_conv2d_options, kernel, 1, MOST),        \
            INT(ls_conv2d_options, kernel_w, 1, MOST), INT(ls_conv2d_options, stride, 1, MOST),    \
            INT(ls_conv2d_options, pad, LS_NO_PAD, MOST), INT(ls_conv2d_options, groups, 1, MOST), \
            FLAG(ls_conv2d_options, no_bias)                                                       \
    }
#define POOL_OPTIONS                                                                               \
    {                                                                                              \
        INT(ls_pool_options, kernel, 1, MOST), INT(ls_pool_options, kernel_w, 1, MOST),            \
            INT(ls_pool_options, stride, 1, MOST), INT(ls_pool_options, pad, 0, MOST),             \
            FLAG(ls_pool_options, count_pad)                                                       \
    }

static const ls_layer_entry entries[] = {
    {{"add", NULL, {{0}}}, .add = add_add, .reads = LS_READS_MANY},
    {{"add_relu", NULL, {{0}}}, .add = add_add_relu, .reads = LS_READS_MANY},
    {{"affine",
      NULL,
      {LS_OPT_REAL_OR(affine_options, scale, -1e30, 1e30, 1),
       REAL(affine_options, shift, -1e30, 1e30)}},
     .add = add_affine,
     .takes_bytes = true},
    {{"attention",
      "heads",
      {INT(ls_attention_options, heads, 1, MOST), INT(ls_attention_options, kv_heads, 1, MOST),
       INT(ls_attention_options, window, 1, MOST), FLAG(ls_attention_options, causal),
       REAL(ls_attention_options, dropout, 0, 0.999), LS_OPT_VALUE(ls_attention_options, keys),
       LS_OPT_VALUE(ls_attention_options, values), LS_OPT_VALUE(ls_attention_options, mask),
       LS_OPT_VALUE(ls_attention_options, positions)}},
     .add = add_attention},
    {{"average_pool", "kernel", POOL_OPTIONS}, .add = add_average_pool},
    {{"batch_norm",
      NULL,
      {REAL(ls_batch_norm_options, momentum, 1e-6, 1), REAL(ls_batch_norm_options, eps, 0, 1),
       FLAG(ls_batch_norm_options, relu)}},
     .add = add_batch_norm},
    {{"concat", NULL, {LS_OPT_INT_OR(one_option, dim, -4, 3, -1)}},
     .add = add_concat,
     .reads = LS_READS_MANY},
    {{"conv2d", NULL, CONV_OPTIONS}, .add = add_conv2d},
    {{"conv2d_transposed", NULL, CONV_OPTIONS}, .add = add_conv2d_transposed},
    {{"dot", NULL, {{0}}}, .add = add_dot, .reads = LS_READS_TWO},
    {{"dropout", "rate", {REAL(ls_dropout_options, rate, 0, 0.999)}}, .add = add_dropout},
    {{"embedding",
      NULL,
      {INT(ls_embedding_options, rows, 0, MOST), INT(ls_embedding_options, width, 1, MOST),
       FLAG(ls_embedding_options, positions), REAL(ls_embedding_options, deviation, 0, 1e6)}},
     .add = add_embedding,
     .takes_ids = true},
    {{"embedding_sum",
      NULL,
      {INT(ls_embedding_sum_options, rows, 0, MOST), INT(ls_embedding_sum_options, width, 1, MOST),
       FLAG(ls_embedding_sum_options, mean), REAL(ls_embedding_sum_options, deviation, 0, 1e6)}},
     .add = add_embedding_sum,
     .takes_ids = true},
    {{"flatten", NULL, {{0}}}, .add = add_flatten},
    {{"gelu", NULL, {{0}}}, .add = add_gelu},
    {{"group_norm",
      "groups",
      {INT(ls_group_norm_options, groups, 1, MOST), REAL(ls_group_norm_options, eps, 0, 1),
       FLAG(ls_group_norm_options, relu)}},
     .add = add_group_norm},
    {{"interaction", NULL, {{0}}}, .add = add_interaction},
    {{"layer_norm", NULL, {{0}}}, .add = add_layer_norm},
    {{"learned",
      "dims",
      {LS_OPT_DIMS(shape_options, dims, 1, MOST), REAL(shape_options, deviation, 0, 1e6)}},
     .add = add_learned,
     .reads = LS_READS_NONE},
    {{"linear", "out", {INT(ls_linear_options, out, 1, MOST), FLAG(ls_linear_options, no_bias)}},
     .add = add_linear},
    {{"max_pool", "kernel", POOL_OPTIONS}, .add = add_max_pool},
    {{"mean", "dim", {INT(one_option, dim, -4, 3)}}, .add = add_mean},
    {{"mean_pool", NULL, {{0}}}, .add = add_mean_pool},
    {{"moe",
      NULL,
      {INT(ls_moe_options, experts, 1, MOST), INT(ls_moe_options, per_token, 1, MOST),
       INT(ls_moe_options, width, 1, MOST), INT(ls_moe_options, shared, 0, MOST),
       FLAG(ls_moe_options, normalize), REAL(ls_moe_options, balance, 0, 1e6),
       REAL(ls_moe_options, capacity, 0, 1e6), REAL(ls_moe_options, bias_rate, 0, 1)}},
     .add = add_moe},
    {{"multiply", NULL, {{0}}}, .add = add_multiply, .reads = LS_READS_MANY},
    {{"normalize",
      NULL,
      {REALS(ls_normalize_options, mean, -1e30, 1e30),
       REALS(ls_normalize_options, deviation, 1e-30, 1e30)}},
     .add = add_normalize,
     .takes_bytes = true},
    {{"patches", "size", {INT(one_option, size, 1, MOST)}}, .add = add_patches},
    {{"relu", NULL, {{0}}}, .add = add_relu},
    {{"reshape", "dims", {LS_OPT_DIMS(shape_options, dims, -1, MOST)}}, .add = add_reshape},
    {{"rms_norm", NULL, {REAL(ls_rms_norm_options, eps, 0, 1)}}, .add = add_rms_norm},
    {{"rope",
      "heads",
      {INT(ls_rope_options, heads, 1, MOST), REAL(ls_rope_options, base, 1, 1e12),
       REAL(ls_rope_options, factor, 0, 1e6), REAL(ls_rope_options, low, 0, 1e6),
       REAL(ls_rope_options, high, 0, 1e6), INT(ls_rope_options, original, 0, MOST),
       REAL(ls_rope_options, scale, 0, 1e6), INT(ls_rope_options, turned, 0, MOST),
       LS_OPT_VALUE(ls_rope_options, positions)}},
     .add = add_rope},
    {{"scale", "start", {REAL(ls_scale_options, start, -1e6, 1e6)}}, .add = add_scale},
    {{"sigmoid", NULL, {{0}}}, .add = add_sigmoid},
    {{"silu", NULL, {{0}}}, .add = add_silu},
    {{"silu_gate", NULL, {{0}}}, .add = add_silu_gate, .reads = LS_READS_TWO},
    {{"slice",
      NULL,
      {INT(slice_options, dim, -4, 3), INT(slice_options, first, 0, MOST),
       INT(slice_options, count, 0, MOST)}},
     .add = add_slice},
    {{"softmax", NULL, {{0}}}, .add = add_softmax},
    {{"tanh", NULL, {{0}}}, .add = add_tanh},
};
enum { NENTRIES = sizeof entries / sizeof *entries };

const ls_layer_entry *ls_layer_entry_find(const char *kind) {
    for (int i = 0; i < NENTRIES; i++)
        if (strcmp(entries[i].options.kind, kind) == 0) return &entries[i];
    return NULL;
}

const char *ls_layer_entry_name(int i) { return i < NENTRIES ? entries[i].options.kind : NULL; }
