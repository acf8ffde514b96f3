/* infer_test.c - forward alone has training's bits, however the samples and positions are cut. */
#include "infer/infer.h"

#include "model/fixture.h"

enum { C = 24, T = 70, V = 37, N = 5 };

typedef struct setup {
    ls_model model;
    ls_compute compute;
    float *params;
    uint32_t *tokens; /* [N, T + 1] */
    double losses[N];
    float *logits; /* [N, T, V] */
} setup;

/* Training's forward: each layer with its own buffers, all samples at once. */
static void forward_all(setup *s) {
    float *x = NULL;
    float *work = fix_nans(fix_work_floats(&s->model, N));
    for (int i = 0; i < s->model.nlayers; i++) {
        const ls_layer *l = &s->model.layers[i];
        float *y = fix_nans(N * l->y_floats), *saved = fix_nans(N * l->memory.saved);
        ls_layer_call c = {.compute = &s->compute,
                           .n = N,
                           .T = T,
                           .samples = s->tokens,
                           .sample_nbytes = (T + 1) * sizeof(uint32_t),
                           .params = s->params,
                           .x = {x},
                           .y = y,
                           .saved = saved,
                           .work = work,
                           .losses = s->losses};
        l->ops->forward(l, &c);
        if (l->traits.loss) {
            c.losses = NULL;
            c.y = s->logits;
            l->ops->forward(l, &c);
        }
        free(x), free(saved);
        x = y;
    }
    free(x), free(work);
}

static int set_up(void **state) {
    static setup s;
    ls_error e = {0};
    ls_gpt_config config = {2, C, 3, T, V};
    assert_ls_ok(ls_gpt_create(&config, &s.model, &e), e);
    fix_compute(&s.compute, &s.model, 2, NULL);
    s.params = fix_params(&s.model, 21);
    s.tokens = fix_tokens(N * (T + 1), V, 22);
    s.logits = fix_nans(N * T * V);
    forward_all(&s);
    *state = &s;
    return 0;
}

static int tear_down(void **state) {
    setup *s = *state;
    free(s->params), free(s->tokens), free(s->logits);
    ls_compute_close(&s->compute);
    ls_model_free(&s->model);
    return 0;
}

static ls_infer infer_of(const setup *s, int64_t n) {
    size_t nbytes = ls_infer_nbytes(&s->model, LS_F32, n);
    return (ls_infer){.model = &s->model,
                      .compute = &s->compute,
                      .dtype = LS_F32,
                      .params = s->params,
                      .memory = fix_nans(nbytes / sizeof(float)),
                      .n = n};
}

static void test_losses(void **state) {
    const setup *s = *state;
    for (int64_t n = 1; n <= N + 1; n++)
        for (int64_t count = 0; count <= N; count++) {
            ls_infer f = infer_of(s, n);
            double losses[N + 1];
            for (int i = 0; i <= N; i++) losses[i] = -1;
            ls_infer_losses(&f, count, s->tokens, losses);
            assert_memory_equal(losses, s->losses, (size_t)count * sizeof(double));
            assert_true(losses[count] == -1);
            free(f.memory);
        }
}

/* The logits after t tokens don't see what comes later, nor how long the text is. */
static void test_next(void **state) {
    const setup *s = *state;
    for (int64_t n = 1; n <= 2; n++) {
        ls_infer f = infer_of(s, n);
        for (int64_t i = 0; i < 2; i++)
            for (int64_t t = 1; t <= T; t++) {
                uint32_t *tokens = LS_NEW_ARRAY(uint32_t, (size_t)t); /* exactly what it may read */
                memcpy(tokens, s->tokens + i * (T + 1), (size_t)t * sizeof *tokens);
                const float *logits = ls_infer_next(&f, tokens, t);
                assert_memory_equal(logits, s->logits + (i * T + t - 1) * V, V * sizeof(float));
                free(tokens);
            }
        free(f.memory);
    }
}

/* GPT in double precision, up to its last norm. */
static void reference_of(const setup *s, const uint32_t *tokens, int64_t length, double *h) {
    const ref_shape shape = {1, length, C, 3, V};
    double *params = fix_doubles(s->params, s->model.nfloats), *x = NULL;
    int last = s->model.nlayers - 1;
    for (int i = 0; i < last; i++) {
        ref_tensors p = fix_tensors(&s->model.layers[i], params);
        double *y = ref_zeros(length * C);
        (i == 0 ? ref_embedding : i % 2 ? ref_attention : ref_mlp)(&shape, &p, tokens, x, y);
        free(x);
        x = y;
    }
    ref_tensors p = fix_tensors(&s->model.layers[last], params);
    ref_norm(length, C, x, p.t[0], p.t[1], h);
    free(x), free(params);
}

/* Vectors are taken behind the last norm, which GPT's head computes itself. */
static void test_vectors(void **state) {
    const setup *s = *state;
    ls_infer f = infer_of(s, 1);
    for (int64_t t = 1; t <= T; t += t < 3 ? 1 : 22) {
        double *want = ref_zeros(t * C), mean[C] = {0};
        float *got = fix_nans((size_t)(t * C)), vector[C];
        reference_of(s, s->tokens, t, want);
        for (int64_t i = 0; i < t * C; i++) mean[i % C] += want[i] / (double)t;
        ls_infer_hidden(&f, s->tokens, t, got);
        assert_true(fix_distance(got, want, (size_t)(t * C)) < 3e-6);
        ls_infer_mean(&f, s->tokens, t, vector);
        for (int k = 0; k < C; k++) assert_true(fabs((double)vector[k] - mean[k]) < 3e-6);
        free(want), free(got);
    }
    free(f.memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_losses), cmocka_unit_test(test_next),
                                       cmocka_unit_test(test_vectors)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
