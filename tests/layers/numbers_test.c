/* numbers_test.c - options that are numbers: NaN, infinity and what is out of range is refused, by
 * the option's name. */
#include "model/refused.h"

#include <math.h>

enum { T = 2, C = 4 };

static float x; /* the option */

static ls_value *rows(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(T, C)); }
static ls_value *ids(ls_model *m) { return ls_input(m, "i", LS_I32, LS_DIMS(T)); }
static ls_value *classes(ls_model *m) { return ls_input(m, "y", LS_I32, LS_DIMS(T)); }
static ls_value *computed(ls_model *m) { return ls_gelu(m, rows(m)); }

static void linear(ls_model *m) { ls_linear(m, rows(m), .out = 3, .deviation = x); }
static void embedding(ls_model *m) {
    ls_embedding(m, ids(m), .rows = 3, .width = 3, .deviation = x);
}
static void embedding_sum(ls_model *m) {
    ls_embedding_sum(m, ids(m), .rows = 3, .width = 3, .deviation = x);
}
static void learned(ls_model *m) { ls_learned(m, LS_DIMS(3), .deviation = x); }
static void group_norm(ls_model *m) { ls_group_norm(m, rows(m), .eps = x); }
static void batch_norm(ls_model *m) { ls_batch_norm(m, rows(m), .eps = x); }
static void rms_norm(ls_model *m) { ls_rms_norm(m, rows(m), .eps = x); }
static void momentum(ls_model *m) { ls_batch_norm(m, rows(m), .momentum = x); }
static void attention(ls_model *m) {
    ls_attention(m, ls_input(m, "x", LS_F32, LS_DIMS(T, 3 * C)), .heads = 1, .dropout = x);
}
static void dropout(ls_model *m) { ls_dropout(m, rows(m), .rate = x); }

static void moe(ls_model *m, ls_moe_options o) {
    o.experts = 2, o.per_token = 1, o.width = 3;
    (ls_moe)(m, rows(m), o);
}
static void moe_balance(ls_model *m) { moe(m, (ls_moe_options){.balance = x}); }
static void moe_deviation(ls_model *m) { moe(m, (ls_moe_options){.deviation = x}); }
static void moe_capacity(ls_model *m) { moe(m, (ls_moe_options){.capacity = x}); }
static void moe_bias_rate(ls_model *m) { moe(m, (ls_moe_options){.bias_rate = x}); }

static void adapter(ls_model *m, ls_lora o) {
    o.rank = 1;
    ls_linear(m, rows(m), .out = 3, .out_in = true, .lora = o);
}
static void lora_alpha(ls_model *m) { adapter(m, (ls_lora){.alpha = x}); }
static void lora_dropout(ls_model *m) { adapter(m, (ls_lora){.dropout = x}); }

static void loss_factor(ls_model *m) { ls_cross_entropy(m, rows(m), classes(m), .factor = x); }
static void loss_smoothing(ls_model *m) {
    ls_cross_entropy(m, rows(m), classes(m), .smoothing = x);
}
static void own_loss(ls_model *m) { ls_own_loss(m, rows(m), .factor = x); }

static void rope(ls_model *m, ls_rope_options o) {
    o.heads = 1;
    (ls_rope)(m, rows(m), o);
}
static void rope_base(ls_model *m) { rope(m, (ls_rope_options){.base = x}); }
static void rope_factor(ls_model *m) { rope(m, (ls_rope_options){.factor = x}); }
static void rope_scale(ls_model *m) { rope(m, (ls_rope_options){.scale = x}); }
static void rope_low(ls_model *m) { rope(m, (ls_rope_options){.low = x, .original = 8}); }
static void rope_high(ls_model *m) { rope(m, (ls_rope_options){.high = x, .original = 8}); }

static void deviation_of(ls_model *m) {
    ls_normalize(m, rows(m), .mean = {0, 0, 0, 0}, .deviation = {1, 1, x, 1});
}
static void scale(ls_model *m) { ls_affine(m, computed(m), x, 0); }
static void shift(ls_model *m) { ls_affine(m, computed(m), 1, x); }
static void scale_of_field(ls_model *m) { ls_affine(m, rows(m), x, 0); }
static void shift_of_field(ls_model *m) { ls_affine(m, rows(m), 1, x); }
static void start(ls_model *m) { ls_scale(m, rows(m), .start = x); }
static void mean_of(ls_model *m) {
    ls_normalize(m, rows(m), .mean = {0, 0, x, 0}, .deviation = {1, 1, 1, 1});
}

static void work(const ls_layer_args *a) { (void)a; }
static void own_std(ls_model *m) {
    static const ls_layer_kind kind = {
        .name = "mine", .nparams = 1, .forward = work, .backward = work};
    ls_own_layer(m, &kind, rows(m), .params = {LS_PARAM("w", LS_NORMAL(x), 2)});
}
static void own_value(ls_model *m) {
    static const ls_layer_kind kind = {
        .name = "mine", .nparams = 1, .forward = work, .backward = work};
    ls_own_layer(m, &kind, rows(m), .params = {LS_PARAM("w", LS_CONSTANT(x), 2)});
}
static const char *sizes(const ls_layer_args *a, ls_layer_sizes *s) {
    (void)a;
    s->flops = (double)x;
    return NULL;
}
static void own_flops(ls_model *m) {
    static const ls_layer_kind kind = {
        .name = "mine", .forward = work, .backward = work, .sizes = sizes};
    ls_own_layer(m, &kind, rows(m), LS_DEFAULTS);
}

typedef struct number {
    void (*build)(ls_model *);
    const char *says;
} number;

static const number not_negative[] = {{linear, "deviation is "},
                                      {embedding, "deviation is "},
                                      {embedding_sum, "deviation is "},
                                      {learned, "deviation is "},
                                      {group_norm, "eps is "},
                                      {batch_norm, "eps is "},
                                      {rms_norm, "eps is "},
                                      {momentum, "momentum is "},
                                      {attention, "dropout is "},
                                      {dropout, "rate is "},
                                      {moe_balance, "balance is "},
                                      {moe_deviation, "deviation is "},
                                      {moe_capacity, "capacity is "},
                                      {moe_bias_rate, "bias_rate is "},
                                      {lora_alpha, "alpha is "},
                                      {lora_dropout, "dropout is "},
                                      {loss_factor, "factor is "},
                                      {loss_smoothing, "smoothing is "},
                                      {own_loss, "factor is "},
                                      {rope_base, "base is "},
                                      {rope_factor, "factor "},
                                      {rope_scale, "scale "},
                                      {rope_low, "low "},
                                      {rope_high, "high "},
                                      {deviation_of, "the deviation of channel 2 is "},
                                      {own_std, "parameter 'w': std is "},
                                      {own_flops, "sizes: flops is "}};
static const number of_any_sign[] = {{scale, "scale is "},
                                     {shift, "shift is "},
                                     {scale_of_field, "scale is "},
                                     {shift_of_field, "shift is "},
                                     {start, "start is "},
                                     {mean_of, "the mean of channel 2 is "},
                                     {own_value, "parameter 'w': value is "}};

static void check(const number *numbers, size_t n, float value) {
    x = value;
    for (size_t i = 0; i < n; i++)
        check_refused(&(refused_model){numbers[i].build, numbers[i].says}, 1);
}

static void check_taken(const number *numbers, size_t n, float value) {
    x = value;
    for (size_t i = 0; i < n; i++) {
        ls_model m = {0};
        ls_error e = {0};
        numbers[i].build(&m);
        ls_status s = ls_build_finish(&m, &e);
        if (s != LS_OK && strstr(e.msg, numbers[i].says)) fail_msg("%s", e.msg);
        ls_model_free(&m);
    }
}

#define ALL(numbers) numbers, sizeof(numbers) / sizeof *(numbers)

static void test_refused(void **state) {
    (void)state;
    check(ALL(not_negative), NAN);
    check(ALL(not_negative), INFINITY);
    check(ALL(not_negative), -INFINITY);
    check(ALL(not_negative), -1);
    check(ALL(of_any_sign), NAN);
    check(ALL(of_any_sign), INFINITY);
    check(ALL(of_any_sign), -INFINITY);
}

/* 0 stands for the default. */
static void test_taken(void **state) {
    (void)state;
    size_t n = sizeof not_negative / sizeof *not_negative;
    for (size_t i = 0; i < n; i++)
        if (not_negative[i].build != deviation_of) check_taken(&not_negative[i], 1, 0);
    check_taken(ALL(of_any_sign), 0);
    check_taken(ALL(of_any_sign), -2.5f);
    check_taken(ALL(of_any_sign), 2.5f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
