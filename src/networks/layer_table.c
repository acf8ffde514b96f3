/* layer_table.c - see layer_table.h. */
#include "networks/layer_table.h"

#include <string.h>

#define INT(type, member, low, high)                                                               \
    { #member, LS_OPTION_INT, offsetof(type, member), low, high, 0 }
#define FLAG(type, member)                                                                         \
    { #member, LS_OPTION_FLAG, offsetof(type, member), 0, 1, 0 }
#define REALS(type, member, low, high)                                                             \
    {                                                                                              \
#member, LS_OPTION_REALS, offsetof(type, member), low, high,                               \
            sizeof(((type *)0)->member) / sizeof(float)                                            \
    }
#define REAL(type, member, low, high)                                                              \
    { #member, LS_OPTION_REAL, offsetof(type, member), low, high, 0 }

enum { MOST = 1 << 30 };

/* Calls without options, with an options struct, and with one number. */
#define PLAIN(layer)                                                                               \
    static ls_value *add_##layer(ls_model *m, ls_value *x, const void *o) {                        \
        (void)o;                                                                                   \
        return (ls_##layer)(m, x);                                                                 \
    }
#define WITH_OPTIONS(layer, type)                                                                  \
    static ls_value *add_##layer(ls_model *m, ls_value *x, const void *o) {                        \
        return (ls_##layer)(m, x, *(const type *)o);                                               \
    }

PLAIN(flatten)
PLAIN(gelu)
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
WITH_OPTIONS(normalize, ls_normalize_options)
WITH_OPTIONS(rms_norm, ls_rms_norm_options)
WITH_OPTIONS(rope, ls_rope_options)
WITH_OPTIONS(scale, ls_scale_options)

typedef struct one_option {
    const char *name; /* no layer takes it */
    int64_t size, dim;
} one_option;

static ls_value *add_patches(ls_model *m, ls_value *x, const void *o) {
    return (ls_patches)(m, x, ((const one_option *)o)->size);
}

static ls_value *add_mean(ls_model *m, ls_value *x, const void *o) {
    return (ls_mean)(m, x, (int)((const one_option *)o)->dim);
}

typedef struct affine_options {
    const char *name;
    float scale, shift;
} affine_options;

static ls_value *add_affine(ls_model *m, ls_value *x, const void *options) {
    const affine_options *o = options;
    return (ls_affine)(m, x, o->scale == 0 ? 1 : o->scale, o->shift);
}

#define LOSS(loss)                                                                                 \
    static void add_##loss(ls_model *m, ls_value *x, ls_value *target, const void *o) {            \
        (ls_##loss)(m, x, target, *(const ls_loss_options *)o);                                    \
    }

LOSS(binary_cross_entropy)
LOSS(cross_entropy)
LOSS(mean_squared_error)

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
    {{"affine",
      NULL,
      {REAL(affine_options, scale, -1e30, 1e30), REAL(affine_options, shift, -1e30, 1e30)}},
     add_affine},
    {{"attention",
      "heads",
      {INT(ls_attention_options, heads, 1, MOST), INT(ls_attention_options, kv_heads, 1, MOST),
       INT(ls_attention_options, window, 1, MOST), FLAG(ls_attention_options, causal)}},
     add_attention},
    {{"average_pool", "kernel", POOL_OPTIONS}, add_average_pool},
    {{"batch_norm",
      NULL,
      {REAL(ls_batch_norm_options, momentum, 1e-6, 1), REAL(ls_batch_norm_options, eps, 0, 1),
       FLAG(ls_batch_norm_options, relu)}},
     add_batch_norm},
    {{"conv2d", NULL, CONV_OPTIONS}, add_conv2d},
    {{"conv2d_transposed", NULL, CONV_OPTIONS}, add_conv2d_transposed},
    {{"dropout", "rate", {REAL(ls_dropout_options, rate, 0, 0.999)}}, add_dropout},
    {{"embedding",
      NULL,
      {INT(ls_embedding_options, rows, 1, MOST), INT(ls_embedding_options, width, 1, MOST),
       FLAG(ls_embedding_options, positions), REAL(ls_embedding_options, deviation, 0, 1e6)}},
     add_embedding},
    {{"embedding_sum",
      NULL,
      {INT(ls_embedding_sum_options, rows, 1, MOST), INT(ls_embedding_sum_options, width, 1, MOST),
       FLAG(ls_embedding_sum_options, mean), REAL(ls_embedding_sum_options, deviation, 0, 1e6)}},
     add_embedding_sum},
    {{"flatten", NULL, {{0}}}, add_flatten},
    {{"gelu", NULL, {{0}}}, add_gelu},
    {{"group_norm",
      "groups",
      {INT(ls_group_norm_options, groups, 1, MOST), REAL(ls_group_norm_options, eps, 0, 1),
       FLAG(ls_group_norm_options, relu)}},
     add_group_norm},
    {{"layer_norm", NULL, {{0}}}, add_layer_norm},
    {{"linear", "out", {INT(ls_linear_options, out, 1, MOST), FLAG(ls_linear_options, no_bias)}},
     add_linear},
    {{"max_pool", "kernel", POOL_OPTIONS}, add_max_pool},
    {{"mean", "dim", {INT(one_option, dim, -4, 3)}}, add_mean},
    {{"mean_pool", NULL, {{0}}}, add_mean_pool},
    {{"normalize",
      NULL,
      {REALS(ls_normalize_options, mean, -1e30, 1e30),
       REALS(ls_normalize_options, deviation, 1e-30, 1e30)}},
     add_normalize},
    {{"patches", "size", {INT(one_option, size, 1, MOST)}}, add_patches},
    {{"relu", NULL, {{0}}}, add_relu},
    {{"rms_norm", NULL, {REAL(ls_rms_norm_options, eps, 0, 1)}}, add_rms_norm},
    {{"rope",
      "heads",
      {INT(ls_rope_options, heads, 1, MOST), REAL(ls_rope_options, base, 1, 1e12),
       REAL(ls_rope_options, factor, 0, 1e6), REAL(ls_rope_options, low, 0, 1e6),
       REAL(ls_rope_options, high, 0, 1e6), INT(ls_rope_options, original, 0, MOST)}},
     add_rope},
    {{"scale", "start", {REAL(ls_scale_options, start, -1e6, 1e6)}}, add_scale},
    {{"sigmoid", NULL, {{0}}}, add_sigmoid},
    {{"silu", NULL, {{0}}}, add_silu},
    {{"softmax", NULL, {{0}}}, add_softmax},
    {{"tanh", NULL, {{0}}}, add_tanh},
};
enum { NENTRIES = sizeof entries / sizeof *entries };

static const ls_loss_entry losses[] = {
    {{"binary_cross_entropy", NULL, {REAL(ls_loss_options, factor, 1e-30, 1e30)}},
     false,
     add_binary_cross_entropy},
    {{"cross_entropy",
      NULL,
      {REAL(ls_loss_options, factor, 1e-30, 1e30), REAL(ls_loss_options, smoothing, 0, 1)}},
     true,
     add_cross_entropy},
    {{"mean_squared_error", NULL, {REAL(ls_loss_options, factor, 1e-30, 1e30)}},
     false,
     add_mean_squared_error},
};
enum { NLOSSES = sizeof losses / sizeof *losses };

const ls_layer_entry *ls_layer_entry_find(const char *kind) {
    for (int i = 0; i < NENTRIES; i++)
        if (strcmp(entries[i].options.kind, kind) == 0) return &entries[i];
    return NULL;
}

const ls_loss_entry *ls_loss_entry_find(const char *kind) {
    for (int i = 0; i < NLOSSES; i++)
        if (strcmp(losses[i].options.kind, kind) == 0) return &losses[i];
    return NULL;
}

const char *ls_layer_entry_name(int i) { return i < NENTRIES ? entries[i].options.kind : NULL; }

const char *ls_loss_entry_name(int i) { return i < NLOSSES ? losses[i].options.kind : NULL; }
