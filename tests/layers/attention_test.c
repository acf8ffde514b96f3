/* attention_test.c - attention as a layer: of one value or of two, causal or not, with a mask, and
 * with dropout. */
#include "layers/layer_check.h"

enum { HEADS = 2, D = 5, C = HEADS * D, SIZE = 53 }; /* more queries than a block of them */

typedef struct shape {
    int T, S; /* S 0: queries, keys and values are one value */
    bool causal, masked;
    float dropout;
} shape;

static ls_value *build(ls_model *m, ls_value **x, const void *arg) {
    const shape *s = arg;
    ls_value *keys = s->S ? x[1] : NULL, *mask = s->masked ? x[s->S ? 2 : 1] : NULL;
    return ls_attention(m, x[0], .heads = HEADS, .causal = s->causal, .keys = keys, .mask = mask,
                        .dropout = s->dropout);
}

/* What dropout makes of 1 at place `at` of a sample's probabilities: tensor/kernels/dropout.c. */
static double kept(double rate, int sample, int at) {
    uint32_t w[4];
    ls_random_words(CHECK_SEED, LS_STREAM_DROPOUT, ((uint64_t)CHECK_STEP << 32) + (uint64_t)sample,
                    ((uint64_t)1 << 57) + (uint64_t)(at / 64 * 16 + at % 16), w);
    return w[at / 16 % 4] / 4294967296.0 < rate ? 0 : 1 / (1 - rate);
}

/* Keys and values, with rows `ld` apart, of which a query sees `n`; `keep` is NULL or [n]. */
typedef struct seen {
    const double *k, *mask, *keep;
    int ld, n;
} seen;

/* One query: its row q [D]. */
static void attend(const double *q, const seen *all, double *y) {
    const double *k = all->k, *mask = all->mask;
    int ld = all->ld, n = all->n;
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
        for (int d = 0; d < D; d++)
            y[d] += exp(e[s] - most) / sum * (all->keep ? all->keep[s] : 1) * k[s * ld + C + d];
}

/* What dropout makes of ones in the row of a head's query. */
static void keep_row(const shape *s, int sample, int h, int t, double *keep) {
    int S = s->S ? s->S : s->T, row = (h * s->T + t) * ((S + 63) / 64 * 64);
    for (int k = 0; k < S; k++) keep[k] = kept((double)s->dropout, sample, row + k);
}

static void reference_of(const shape *s, int sample, double *const *x, double *y) {
    double keep[SIZE];
    int q_row = s->S ? C : 3 * C, ld = s->S ? 2 * C : 3 * C, S = s->S ? s->S : s->T;
    const double *keys = s->S ? x[1] : x[0] + C, *mask = s->masked ? x[s->S ? 2 : 1] : NULL;
    for (int t = 0; t < s->T; t++)
        for (int h = 0; h < HEADS; h++) {
            seen all = {keys + h * D, mask, keep, ld, s->causal ? t + 1 : S};
            keep_row(s, sample, h, t, keep);
            attend(x[0] + t * q_row + h * D, &all, y + t * C + h * D);
        }
}

static void reference(const void *arg, double *const *x, double *const *params, double *y) {
    (void)params;
    reference_of(arg, 0, x, y);
}

/* The reference for all samples, each of which has its own mask. */
static void reference_of_all(const void *arg, double *const *x, double *const *params, double *y) {
    const shape *s = arg;
    int S = s->S ? s->S : s->T, last = s->S ? 2 : 1;
    (void)params;
    for (int i = 0; i < CHECK_SAMPLES; i++) {
        double *of[3] = {x[0] + i * s->T * (s->S ? C : 3 * C)};
        if (s->S) of[1] = x[1] + i * S * 2 * C;
        if (s->masked) of[last] = x[last] + i * S;
        reference_of(s, i, of, y + i * s->T * C);
    }
}

static layer_case case_of(const shape *s) {
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
    return c;
}

static void check(const shape *s) {
    layer_case c = case_of(s);
    layer_check(&c);
}

/* Values and gradients with all samples in a call; bits for any micro-batch. */
static void check_dropout(const shape *s) {
    layer_case c = case_of(s);
    c.joins = true;
    c.reference = reference_of_all;
    layer_check(&c);
    c.joins = false;
    c.reference = NULL;
    layer_check(&c);
}

static void test_dropout(void **state) {
    (void)state;
    static const shape shapes[] = {{.T = SIZE, .causal = true, .dropout = 0.3f},
                                   {.T = 3, .S = SIZE, .dropout = 0.5f},
                                   {.T = 7, .S = 9, .masked = true, .dropout = 0.2f}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_dropout(&shapes[i]);
}

/* With equal probabilities and values of 1, a query's sum has the mean 1, and the variance of
 * independent terms. */
static void test_rate(void **state) {
    (void)state;
    static const shape s = {.T = SIZE, .dropout = 0.25f};
    enum { ROWS = CHECK_SAMPLES * SIZE * HEADS };
    layer_case c = case_of(&s);
    layer_bench b;
    layer_way way = {.micro = 2, .threads = 1, .type = LS_F32, .grads = LS_F32};
    bench_open(&b, &c);
    for (size_t i = 0; i < CHECK_SAMPLES * SIZE * 3 * C; i++)
        ((float *)(void *)b.samples)[i] = i % (3 * C) < 2 * C ? 0 : 1;
    layer_result r = result_of(&b, &way);
    double mean = 0, squares = 0;
    for (int i = 0; i < ROWS; i++) {
        double y = (double)r.y[i * D];
        mean += y / ROWS, squares += y * y / ROWS;
    }
    assert_true(fabs(mean - 1) < 0.014); /* 4 standard deviations each */
    assert_true(fabs(squares - mean * mean - 0.25 / 0.75 / SIZE) < 0.0016);
    result_free(&r);
    bench_close(&b);
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

static void with_dropout(ls_model *m) { ls_attention(m, field(m), .heads = 2, .dropout = 1); }

static void test_refusals(void **state) {
    (void)state;
    layer_refused(with_vector, "attention 'attention': the input is [48]; [T, 3 C], queries, keys");
    layer_refused(with_no_heads, "heads is 0; it is at least 1");
    layer_refused(with_heads, "12 columns are no 9 heads of queries, keys and values");
    layer_refused(with_keys, "the keys are [4, 12]; [S, 24], keys and values, is needed");
    layer_refused(with_causal, "4 queries and 5 keys can't be causal");
    layer_refused(with_dropout, "dropout is 1; it is from 0 to below 1");
    layer_refused(with_mask, "the mask is no field of 4 u8, one for each key");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes), cmocka_unit_test(test_dropout), cmocka_unit_test(test_rate),
        cmocka_unit_test(test_padding), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
