/* attention_test.c - attention as a layer: of one value or of two, causal or not, with a mask. */
#include "layers/layer_check.h"

enum { HEADS = 2, D = 5, C = HEADS * D, SIZE = 53 }; /* more queries than a block of them */

typedef struct shape {
    int T, S; /* S 0: queries, keys and values are one value */
    bool causal, masked;
} shape;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const shape *s = arg;
    ls_value *keys = s->S ? x[1] : NULL, *mask = s->masked ? x[s->S ? 2 : 1] : NULL;
    return ls_attention(m, x[0], .heads = HEADS, .causal = s->causal, .keys = keys, .mask = mask);
}

/* One query: its row q [D], keys and values with rows `ld` apart, of which it sees `n`. */
static void attend(const double *q, const double *k, int ld, const double *mask, int n, double *y) {
    double e[SIZE], most = -INFINITY, sum = 0;
    for (int s = 0; s < n; s++) {
        e[s] = 0;
        for (int d = 0; d < D; d++) e[s] += q[d] * k[s * ld + d] / sqrt(D);
        if (mask && mask[s] == 0) e[s] = -INFINITY;
        if (e[s] > most) most = e[s];
    }
    for (int d = 0; d < D; d++) y[d] = 0;
    if (isinf(most)) return;
    for (int s = 0; s < n; s++) sum += exp(e[s] - most);
    for (int s = 0; s < n; s++)
        for (int d = 0; d < D; d++) y[d] += exp(e[s] - most) / sum * k[s * ld + C + d];
}

static void reference(const void *arg, double *const *x, double *const *params, double *y) {
    const shape *s = arg;
    (void)params;
    int q_row = s->S ? C : 3 * C, ld = s->S ? 2 * C : 3 * C, S = s->S ? s->S : s->T;
    const double *keys = s->S ? x[1] : x[0] + C, *mask = s->masked ? x[s->S ? 2 : 1] : NULL;
    for (int t = 0; t < s->T; t++)
        for (int h = 0; h < HEADS; h++)
            attend(x[0] + t * q_row + h * D, keys + h * D, ld, mask, s->causal ? t + 1 : S,
                   y + t * C + h * D);
}

static void check(const shape *s) {
    int S = s->S ? s->S : s->T;
    layer_case c = {.name = "attention",
                    .arg = s,
                    .fields = {{.type = LS_F32, .dims = LS_DIMS(s->T, s->S ? C : 3 * C)}},
                    .nfields = 1,
                    .build = build,
                    .reference = reference,
                    .half_units = 8};
    if (s->S) c.fields[c.nfields++] = (layer_field){.type = LS_F32, .dims = LS_DIMS(s->S, 2 * C)};
    if (s->masked)
        c.fields[c.nfields++] = (layer_field){.type = LS_U8, .dims = LS_DIMS(S), .below = 2};
    layer_check(&c);
}

static void test_shapes(void **state) {
    (void)state;
    static const shape shapes[] = {{.T = SIZE},
                                   {.T = SIZE, .causal = true},
                                   {.T = 1},
                                   {.T = 3, .S = SIZE},
                                   {.T = SIZE, .S = 4},
                                   {.T = 7, .S = 7, .causal = true},
                                   {.T = 9, .S = 1},
                                   {.T = 7, .masked = true},
                                   {.T = 5, .S = 9, .masked = true},
                                   {.T = 1, .masked = true},
                                   {.T = SIZE, .causal = true, .masked = true}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check(&shapes[i]);
}

/* Padding does not matter: other numbers in masked keys and values give the same bits. */
static void test_padding(void **state) {
    (void)state;
    static const shape s = {.T = 4, .S = 6, .masked = true};
    const layer_case c = {.arg = &s,
                          .fields = {{.type = LS_F32, .dims = LS_DIMS(4, C)},
                                     {.type = LS_F32, .dims = LS_DIMS(6, 2 * C)},
                                     {.type = LS_U8, .dims = LS_DIMS(6), .below = 2}},
                          .nfields = 3,
                          .build = build};
    layer_bench b;
    layer_way way = {.micro = CHECK_SAMPLES, .threads = 1, .type = LS_F32, .grads = LS_F32};
    bench_open(&b, &c);
    layer_result r = result_of(&b, &way);
    int changed = 0;
    for (size_t i = 0; i < CHECK_SAMPLES; i++) {
        unsigned char *sample = b.samples + i * b.model.sample_nbytes;
        float *keys = (float *)(void *)(sample + b.model.inputs[1].offset);
        const unsigned char *mask = sample + b.model.inputs[2].offset;
        for (int k = 0; k < 6 * 2 * C; k++)
            if (!mask[k / (2 * C)]) keys[k] = 1e4f * (float)(k % 3 - 1), changed++;
    }
    layer_result other = result_of(&b, &way);
    assert_true(changed > 0);
    assert_memory_equal(r.y, other.y, (size_t)(CHECK_SAMPLES * b.count) * sizeof(float));
    assert_memory_equal(r.dx[0], other.dx[0], CHECK_SAMPLES * 4 * C * sizeof(float));
    result_free(&r), result_free(&other);
    bench_close(&b);
}

static ls_value *field(ls_model *m) { return ls_input(m, "x", LS_F32, LS_DIMS(4, 12)); }
static void with_vector(ls_model *m) { ls_attention(m, ls_flatten(m, field(m)), .heads = 1); }
static void with_no_heads(ls_model *m) { ls_attention(m, field(m), LS_DEFAULTS); }
static void with_heads(ls_model *m) { ls_attention(m, field(m), .heads = 3); }
static void with_keys(ls_model *m) {
    ls_value *x = field(m);
    ls_attention(m, x, .heads = 3, .keys = x);
}
static void with_causal(ls_model *m) {
    ls_value *keys = ls_input(m, "keys", LS_F32, LS_DIMS(5, 24));
    ls_attention(m, field(m), .heads = 3, .causal = true, .keys = keys);
}
static void with_mask(ls_model *m) {
    ls_value *mask = ls_input(m, "mask", LS_U8, LS_DIMS(3));
    ls_attention(m, field(m), .heads = 2, .mask = mask);
}

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_vector, "attention 'attention': the input is [48]; [T, 3 C], queries, keys");
    layer_refused(with_no_heads, "heads is 0; it is at least 1");
    layer_refused(with_heads, "12 columns are no 9 heads of queries, keys and values");
    layer_refused(with_keys, "the keys are [4, 12]; [S, 24], keys and values, is needed");
    layer_refused(with_causal, "4 queries and 5 keys can't be causal");
    layer_refused(with_mask, "the mask is no field of 4 u8, one for each key");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes),
                                       cmocka_unit_test(test_padding),
                                       cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
