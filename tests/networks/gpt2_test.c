/* gpt2_test.c - the whole model: loss and gradients against double precision, also with dropout,
 * its table of parameters, and its initial weights. */
#include "model/fixture.h"

enum { LAYERS = 2, C = 24, HEADS = 3, T = 33, V = 50, N = 3 };

/* Measured: 9e-7 of the largest value of a tensor; the loss, 5e-8 of itself. */
static const double TOLERANCE = 3e-6, LOSS_TOLERANCE = 2e-7;
static const ls_gpt_config small = {LAYERS, C, HEADS, T, V};

static const double RATE = 0.3;

static void create(const ls_gpt_config *c, ls_model *m_p) {
    ls_error e = {0};
    assert_ls_ok(ls_gpt_create(c, m_p, &e), e);
}

static void create_dropping(ls_model *m_p, double rate) {
    create(&small, m_p);
    if (rate > 0) ls_gpt_drop(m_p, (float)rate);
}

/* Forward and backward of all samples, a micro-batch at a time; the embedding's backward last. */
typedef struct training {
    const ls_model *m;
    const ls_compute *compute;
    const uint32_t *tokens;
    const float *params;
    float *grads;
    double losses[N];
    float *below; /* [N, T, C] gradient at the embedding's output */
} training;

static ls_layer_call call_of(training *r, int64_t first, int64_t n) {
    return (ls_layer_call){.compute = r->compute,
                           .n = n,
                           .T = T,
                           .samples = r->tokens + first * (T + 1),
                           .sample_nbytes = (T + 1) * sizeof(uint32_t),
                           .params = r->params,
                           .grads = r->grads,
                           .grads_start = first == 0,
                           .loss_scale = 1,
                           .training = true,
                           .seed = REF_SEED,
                           .step = REF_STEP,
                           .first_sample = (uint64_t)first,
                           .losses = r->losses + first};
}

static void train_part(training *r, int64_t first, int64_t n) {
    enum { MOST = 2 * LAYERS + 2 };
    float *act[MOST], *saved[MOST], *dact[MOST];
    float *work = fix_nans(fix_work_floats(r->m, n));
    int nlayers = r->m->nlayers;
    for (int i = 0; i < nlayers; i++) {
        const ls_layer *l = &r->m->layers[i];
        ls_layer_call c = call_of(r, first, n);
        act[i] = fix_nans((size_t)n * l->y_floats);
        dact[i] = fix_nans((size_t)n * l->y_floats);
        saved[i] = fix_nans((size_t)n * l->memory.saved);
        c.x[0] = i ? act[i - 1] : NULL;
        c.y = act[i];
        c.saved = saved[i];
        c.work = work;
        if (!l->traits.loss) l->ops->forward(l, &c); /* backward computes the losses */
    }
    for (int i = nlayers - 1; i > 0; i--) {
        ls_layer_call c = call_of(r, first, n);
        c.x[0] = act[i - 1];
        c.saved = saved[i];
        c.work = work;
        c.dy = dact[i];
        c.dx[0] = i > 1 ? dact[i - 1] : r->below + first * T * C;
        r->m->layers[i].ops->backward(&r->m->layers[i], &c);
    }
    for (int i = 0; i < nlayers; i++) free(act[i]), free(dact[i]), free(saved[i]);
    free(work);
}

static void train(training *r, int64_t micro) {
    r->grads = fix_nans(r->m->nfloats);
    r->below = fix_nans(N * T * C);
    for (int64_t i = 0; i < N; i += micro) train_part(r, i, N - i < micro ? N - i : micro);
    ls_layer_call c = call_of(r, 0, N);
    c.dy = r->below;
    r->m->layers[0].ops->backward(&r->m->layers[0], &c);
}

static ref_forward *forward_of(int i) {
    if (i == 0) return ref_embedding;
    if (i == 2 * LAYERS + 1) return ref_head;
    return i % 2 ? ref_attention : ref_mlp;
}

static ref_backward *backward_of(int i) {
    if (i == 0) return ref_embedding_back;
    if (i == 2 * LAYERS + 1) return ref_head_back;
    return i % 2 ? ref_attention_back : ref_mlp_back;
}

/* The layer's tensors in a flat buffer, and its masks: the embedding has one, then each block's
 * attention two, and its MLP one. */
static ref_tensors tensors_of(const ls_model *m, int layer, double rate, double *flat) {
    ref_tensors t = fix_tensors(&m->layers[layer], flat);
    int block = (layer - 1) / 2, first = 1 << 18;
    t.rate = layer < m->nlayers - 1 ? rate : 0;
    t.mask = layer == 0 ? first : first + 1 + 3 * block + (layer % 2 ? 0 : 2);
    return t;
}

/* losses [N], and grads (zeroed before) unless NULL. */
static void reference(const ls_model *m, double rate, const uint32_t *tokens, double *params,
                      double *losses, double *grads) {
    const ref_shape s = {N, T, C, HEADS, V};
    double *act[2 * LAYERS + 2], ones[N] = {1, 1, 1};
    int last = m->nlayers - 1;
    for (int i = 0; i <= last; i++) {
        ref_tensors p = tensors_of(m, i, rate, params);
        act[i] = ref_zeros(N * T * C);
        forward_of(i)(&s, &p, tokens, i ? act[i - 1] : NULL, i < last ? act[i] : losses);
    }
    double *dy = ref_zeros(N * T * C), *dx = ref_zeros(N * T * C);
    for (int i = last; grads && i >= 0; i--) {
        ref_tensors p = tensors_of(m, i, rate, params), g = tensors_of(m, i, rate, grads);
        backward_of(i)(&s, &p, tokens, i ? act[i - 1] : NULL, i < last ? dy : ones, &g, dx);
        double *swap = dy;
        dy = dx, dx = swap;
    }
    for (int i = 0; i <= last; i++) free(act[i]);
    free(dy), free(dx);
}

static void check_against_double(double rate) {
    ls_model m;
    ls_compute c;
    create_dropping(&m, rate);
    fix_compute(&c, &m, 2, NULL);
    uint32_t *tokens = fix_tokens(N * (T + 1), V, 9);
    float *params = fix_params(&m, 4);
    double *exact = fix_doubles(params, m.nfloats), *want = ref_zeros((int64_t)m.nfloats);
    double losses[N];
    training r = {.m = &m, .compute = &c, .tokens = tokens, .params = params};
    train(&r, N);
    reference(&m, rate, tokens, exact, losses, want);
    for (int i = 0; i < N; i++)
        assert_true(fabs(r.losses[i] - losses[i]) <= LOSS_TOLERANCE * losses[i]);
    for (int i = 0; i < m.nparams; i++) {
        const ls_param *p = &m.params[i];
        double off = fix_distance(r.grads + p->offset, want + p->offset, p->count);
        if (!(off <= TOLERANCE)) print_error("%s is off by %g\n", p->name, off);
        assert_true(off <= TOLERANCE);
    }
    free(r.grads), free(r.below), free(tokens), free(params), free(exact), free(want);
    ls_compute_close(&c);
    ls_model_free(&m);
}

static void test_against_double(void **state) {
    (void)state;
    check_against_double(0);
    check_against_double(RATE);
}

/* The reference's own backward, at one place of every tensor. */
static void check_reference(double rate) {
    ls_model m;
    create(&small, &m);
    uint32_t *tokens = fix_tokens(N * (T + 1), V, 9);
    float *params = fix_params(&m, 4);
    double *p = fix_doubles(params, m.nfloats), *grads = ref_zeros((int64_t)m.nfloats);
    double up[N], down[N];
    reference(&m, rate, tokens, p, up, grads);
    for (int i = 0; i < m.nparams; i++) {
        size_t at = m.params[i].offset + m.params[i].count * 3 / 4;
        if (i == 0) at = m.params[0].offset + tokens[0] * C + 1; /* both uses of wte */
        double was = p[at], slope = 0;
        p[at] = was + 1e-5;
        reference(&m, rate, tokens, p, up, NULL);
        p[at] = was - 1e-5;
        reference(&m, rate, tokens, p, down, NULL);
        p[at] = was;
        for (int k = 0; k < N; k++) slope += (up[k] - down[k]) / 2e-5;
        if (fabs(slope - grads[at]) > 1e-6 + 1e-6 * fabs(slope))
            print_error("%s: %g, by differences %g\n", m.params[i].name, grads[at], slope);
        assert_true(fabs(slope - grads[at]) <= 1e-6 + 1e-6 * fabs(slope));
    }
    free(tokens), free(params), free(p), free(grads);
    ls_model_free(&m);
}

static void test_reference(void **state) {
    (void)state;
    check_reference(0);
    check_reference(RATE);
}

static void check_same_bits(double rate) {
    const ls_kernels *kernels = NULL;
    ls_model m;
    create_dropping(&m, rate);
    uint32_t *tokens = fix_tokens(N * (T + 1), V, 9);
    float *params = fix_params(&m, 4), *grads = NULL;
    double losses[N];
    for (int i = 0; (kernels = ls_kernels_at(i / 3)); i++) {
        ls_compute c;
        fix_compute(&c, &m, 1 + i % 3, kernels->name);
        training r = {.m = &m, .compute = &c, .tokens = tokens, .params = params};
        train(&r, 1 + i % N);
        for (int k = 0; grads && k < m.nparams; k++)
            assert_memory_equal(r.grads + m.params[k].offset, grads + m.params[k].offset,
                                m.params[k].count * sizeof(float));
        if (grads) assert_memory_equal(r.losses, losses, sizeof losses);
        memcpy(losses, r.losses, sizeof losses);
        free(grads), free(r.below);
        grads = r.grads;
        ls_compute_close(&c);
    }
    free(grads), free(params), free(tokens);
    ls_model_free(&m);
}

static void test_same_bits(void **state) {
    (void)state;
    check_same_bits(0);
    check_same_bits(RATE);
}

static void check_param(const ls_model *m, int i, const char *name, int64_t d0, int64_t d1) {
    const ls_param *p = &m->params[i];
    assert_string_equal(p->name, name);
    assert_int_equal(p->ndims, d1 ? 2 : 1);
    assert_int_equal(p->dims[0], d0);
    if (d1) assert_int_equal(p->dims[1], d1);
    assert_int_equal(p->count, d0 * (d1 ? d1 : 1));
    assert_int_equal(p->decay, d1 != 0);
}

static void test_table(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t d0, d1;
    } block[] = {{"ln_1.weight", C, 0},
                 {"ln_1.bias", C, 0},
                 {"attn.c_attn.weight", C, 3 * C},
                 {"attn.c_attn.bias", 3 * C, 0},
                 {"attn.c_proj.weight", C, C},
                 {"attn.c_proj.bias", C, 0},
                 {"ln_2.weight", C, 0},
                 {"ln_2.bias", C, 0},
                 {"mlp.c_fc.weight", C, 4 * C},
                 {"mlp.c_fc.bias", 4 * C, 0},
                 {"mlp.c_proj.weight", 4 * C, C},
                 {"mlp.c_proj.bias", C, 0}};
    ls_model m;
    create(&small, &m);
    assert_int_equal(m.nparams, 12 * LAYERS + 4);
    check_param(&m, 0, "wte.weight", V, C);
    check_param(&m, 1, "wpe.weight", T, C);
    for (int i = 0; i < 12 * LAYERS; i++) {
        char name[LS_NAME];
        snprintf(name, sizeof name, "h.%d.%s", i / 12, block[i % 12].name);
        check_param(&m, 2 + i, name, block[i % 12].d0, block[i % 12].d1);
    }
    check_param(&m, m.nparams - 2, "ln_f.weight", C, 0);
    check_param(&m, m.nparams - 1, "ln_f.bias", C, 0);
    size_t at = 0, count = 0;
    for (int i = 0; i < m.nparams; i++) {
        assert_int_equal(m.params[i].offset, (at + 15) / 16 * 16);
        at = m.params[i].offset + m.params[i].count;
        count += m.params[i].count;
    }
    assert_int_equal(m.count, count);
    assert_int_equal(m.nfloats, (at + LS_BLOCK - 1) / LS_BLOCK * LS_BLOCK);
    ls_model_free(&m);
}

static void test_count_of_gpt2(void **state) {
    (void)state;
    ls_model m;
    create(&(ls_gpt_config){12, 768, 12, 1024, 50257}, &m);
    assert_int_equal(m.count, 124439808);
    ls_model_free(&m);
}

static void test_bad_config(void **state) {
    (void)state;
    ls_model m = {0};
    ls_error e;
    const ls_gpt_config bad[] = {{2, 24, 5, 8, 50}, {0, 24, 3, 8, 50}, {2, 24, 0, 8, 50},
                                 {2, 0, 3, 8, 50},  {2, 24, 3, 0, 50}, {2, 24, 3, 8, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_ls_fails(ls_gpt_create(&bad[i], &m, &e), LS_EINVAL, "model.", e);
    const ls_gpt_config huge = {2, 1 << 20, 1, 8, (int64_t)1 << 40};
    assert_ls_fails(ls_gpt_create(&huge, &m, &e), LS_EINVAL, "parameters", e);
    assert_null(m.params);
}

/* Random weights have a mean near 0 and standard deviation `std`; vectors are all `init_value`. */
static void check_drawn(const ls_model *m, const float *w) {
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        bool norm = strstr(p->name, "ln_") && strstr(p->name, "weight");
        double n = (double)p->count, sum = 0, squares = 0;
        for (size_t k = p->offset; k < p->offset + p->count; k++) {
            if (p->ndims == 1) assert_true(w[k] == (norm ? 1.0f : 0.0f));
            sum += (double)w[k];
            squares += (double)w[k] * (double)w[k];
        }
        if (p->ndims == 1) continue;
        double std = strstr(p->name, "c_proj") ? 0.02 / sqrt(2.0 * LAYERS) : 0.02;
        assert_true(fabs(sum / n) < 5 * std / sqrt(n));
        assert_true(fabs(sqrt(squares / n) / std - 1) < 5 / sqrt(2 * n));
    }
}

static void test_init(void **state) {
    (void)state;
    ls_model m;
    create(&small, &m);
    float *whole = fix_floats(m.nfloats, 3, 0, 0), *other = fix_floats(m.nfloats, 3, 0, 0);
    ls_model_init(&m, 7, 0, m.nfloats, whole);
    check_drawn(&m, whole);
    static const size_t cuts[] = {1, 7, 1000, 1024, 4096};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        float *parts = fix_floats(m.nfloats, 3, 0, 0);
        for (size_t at = 0; at < m.nfloats; at += cuts[i])
            ls_model_init(&m, 7, at, at + cuts[i] < m.nfloats ? at + cuts[i] : m.nfloats, parts);
        assert_memory_equal(parts, whole, m.nfloats * sizeof(float));
        free(parts);
    }
    ls_model_init(&m, 8, 0, m.nfloats, other);
    size_t same = 0;
    for (size_t k = 0; k < m.params[0].count; k++) same += whole[k] == other[k];
    assert_true(same < 5);
    free(whole), free(other);
    ls_model_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_double), cmocka_unit_test(test_reference),
        cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_table),
        cmocka_unit_test(test_count_of_gpt2),  cmocka_unit_test(test_bad_config),
        cmocka_unit_test(test_init),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
