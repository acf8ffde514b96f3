/* decode_test.c - decoding token by token gives the bits of the whole text at once. */
/* ctest: long-tsan: two minutes; infer_test computes with the same threads */
/* ctest: long-asan: infer/infer and infer/sampler run the same code */
/* ctest: seconds=8 */
#include "infer/decoding.h"

#include "test.h"

static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};

typedef struct setup {
    const ls_gpt_config *config;
    decoding d; /* its text is three contexts long */
} setup;

static void set_up(setup *s, const ls_gpt_config *config, ls_dtype type, const char *cpu,
                   int threads, uint64_t seed) {
    ls_error e = {0};
    *s = (setup){.config = config};
    assert_ls_ok(ls_gpt_create(config, &s->d.model, &e), e);
    decoding_open(&s->d, type, cpu, threads, seed);
    s->d.text = fix_tokens((size_t)(3 * config->context + 2), config->vocab, seed + 1);
}

static void tear_down(setup *s) { decoding_close(&s->d); }

static void check(const setup *s, const float *logits, const float *want, int64_t first,
                  int64_t end) {
    size_t V = (size_t)s->config->vocab;
    assert_true(want[0] == want[0]); /* no NaN */
    if (memcmp(logits, want, V * sizeof *want) != 0)
        fail_msg("width %lld, heads %lld, type %d, %s, %d threads: tokens %lld to %lld",
                 (long long)s->config->width, (long long)s->config->heads, (int)s->d.infer.dtype,
                 s->d.compute.k->name, s->d.compute.nthreads, (long long)first, (long long)end);
}

/* After prompts of one token, of some, and of the whole context; one after the other in the same
 * memory. */
static void each_token(setup *s) {
    int64_t T = s->config->context, V = s->config->vocab;
    const int64_t prompts[] = {T, 1, T / 2, T - 1};
    float *want = fix_nans((size_t)(T * V)); /* after the first 1, 2, ... T tokens */
    for (int64_t n = 1; n <= T; n++)
        memcpy(want + (n - 1) * V, ls_infer_next(&s->d.infer, s->d.text, n),
               (size_t)V * sizeof *want);
    for (int i = 0; i < 4; i++) {
        int64_t n = prompts[i] < 1 ? 1 : prompts[i];
        check(s, ls_decode_prompt(&s->d.decode, s->d.text, n), want + (n - 1) * V, 0, n);
        for (; n < T; n++)
            check(s, ls_decode_next(&s->d.decode, s->d.text[n]), want + n * V, 0, n + 1);
        assert_int_equal(s->d.decode.npositions, T);
    }
    free(want);
}

/* The older half is dropped whenever the context is full. */
static void long_text(setup *s) {
    int64_t T = s->config->context, half = T / 2 < 1 ? 1 : T / 2;
    for (int64_t begin = 1; begin <= 2 * T; begin += T - (T > 1)) {
        int64_t first = begin > T ? begin - T : 0;
        s->d.decode.npositions = 0;
        for (int64_t n = begin; n <= 3 * T + 2; n++) {
            if (n - first > T) first = n - half;
            check(s, ls_decode_text(&s->d.decode, s->d.text, n),
                  ls_infer_next(&s->d.infer, s->d.text + first, n - first), first, n);
        }
    }
}

/* Each token with these kernels. The portable ones are slow: only with two threads. */
static void each_setup(const ls_gpt_config *configs, int n, const char *kernels) {
    if (!ls_kernels_named(kernels)) skip_because("this processor can't run %s kernels", kernels);
    bool slow = strcmp(kernels, "portable") == 0;
    for (int i = 0; i < n; i++)
        for (int type = 0; type < 3; type++)
            for (int threads = slow ? 2 : 1; threads <= (slow ? 2 : 3); threads++) {
                setup s;
                set_up(&s, &configs[i], types[type], kernels, threads, 31 + (uint64_t)i);
                each_token(&s);
                tear_down(&s);
            }
}

/* Only the default kernels, with two threads. */
static void each_type(const ls_gpt_config *configs, int n, void (*fn)(setup *)) {
    for (int i = 0; i < n; i++)
        for (int type = 0; type < 3; type++) {
            setup s;
            set_up(&s, &configs[i], types[type], NULL, 2, 7);
            fn(&s);
            tear_down(&s);
        }
}

/* Layers, width, heads, context, vocabulary. */
static void test_shapes(void **state) {
    static const ls_gpt_config configs[] = {
        {1, 1, 1, 1, 1},   {1, 2, 1, 2, 3},     {2, 15, 3, 18, 17}, {2, 24, 4, 17, 31},
        {1, 7, 1, 33, 50}, {3, 48, 2, 16, 100}, {2, 39, 3, 20, 37}};
    each_setup(configs, sizeof configs / sizeof *configs, *state);
}

/* Depths beyond a panel of ls_gemm(), a vocabulary of several blocks. */
static void test_deep(void **state) {
    static const ls_gpt_config deep = {1, 390, 5, 3, 2100};
    each_setup(&deep, 1, *state);
}

/* Several blocks of queries. */
static void test_far(void **state) {
    static const ls_gpt_config far = {1, 24, 2, 131, 11};
    (void)state;
    each_type(&far, 1, each_token);
}

static void test_long_text(void **state) {
    static const ls_gpt_config configs[] = {
        {1, 4, 1, 1, 5}, {2, 6, 2, 2, 5}, {2, 10, 2, 9, 13}, {1, 8, 2, 16, 13}};
    (void)state;
    each_type(configs, sizeof configs / sizeof *configs, long_text);
}

/* All weights, but of the table of positions only one row, and one row of the tokens' table once
 * more; and the whole cache. */
static void test_bytes(void **state) {
    static const ls_gpt_config config = {2, 6, 2, 8, 13};
    setup s;
    (void)state;
    set_up(&s, &config, LS_BF16, NULL, 1, 1);
    size_t block = 4 * 6 + 12 * 6 * 6 + 9 * 6, read = 2 * block + 2 * 6 + 13 * 6 + 2 * 6;
    assert_int_equal(ls_decode_weights_read(&s.d.decode), 2 * read);
    ls_decode_prompt(&s.d.decode, s.d.text, 3);
    assert_int_equal(ls_decode_cache_read(&s.d.decode), 4u * 6 * 2 * 2 * 4);
    tear_down(&s);
}

int main(void) {
    static char portable[] = "portable", avx2[] = "avx2";
    const struct CMUnitTest tests[] = {
        {"test_shapes_portable", test_shapes, NULL, NULL, portable},
        {"test_shapes_avx2", test_shapes, NULL, NULL, avx2},
        {"test_deep_portable", test_deep, NULL, NULL, portable},
        {"test_deep_avx2", test_deep, NULL, NULL, avx2},
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_long_text),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
