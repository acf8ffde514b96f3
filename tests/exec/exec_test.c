/* exec_test.c - executors against each other, bit for bit, and against one sum over the whole
 * batch.
 *
 * Workers are threads here, so that the thread sanitizer sees them. */
/* ctest: seconds=20 */
#include "exec/exec.h"

#include <math.h>

#include "exec/setup.h"
#include "infer/infer.h"
#include "plan/pick.h"

#if defined(__SANITIZE_THREAD__) /* many times slower; chaos has no threads */
enum { SEEDS = 5, VARIANTS = 3, CHAOS = 4, STRIDE = 2 };
enum { FEW_SEEDS = 4, FEW_CHAOS = 1 }; /* in make check */
#elif defined(__SANITIZE_ADDRESS__)
enum { SEEDS = 5, VARIANTS = 5, CHAOS = 20, STRIDE = 2 };
enum { FEW_SEEDS = 4, FEW_CHAOS = 4 };
#else
enum { SEEDS = 100, VARIANTS = 10, CHAOS = 60, STRIDE = 1 };
enum { FEW_SEEDS = 20, FEW_CHAOS = 20 };
#endif

typedef struct variant {
    int n, V;
    int64_t micro;
    bool overlap;
    int threads;
    int zero;
    const char *algorithm;
} variant;

static void same_as_oracle(variant x) {
    setup oracle = {.sequential = true, .threads = 1, .zero = 1};
    setup s = {
        .overlap = x.overlap, .threads = x.threads, .algorithm = x.algorithm, .zero = x.zero};
    set_up(&oracle, x.n, x.V, x.micro);
    set_up(&s, x.n, x.V, x.micro);
    run(&oracle);
    run(&s);
    assert_same(&s, &oracle, 0);
    tear_down(&oracle);
    tear_down(&s);
}

static void test_lanes(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int i = 0; i < 5; i++) {
        same_as_oracle((variant){workers[i], 8, 1, false, 1, 1, NULL});
        same_as_oracle((variant){workers[i], 8, 1, true, 1, 1, NULL});
    }
    same_as_oracle((variant){2, 4, 2, true, 2, 1, NULL});
    same_as_oracle((variant){1, 1, 8, true, 2, 1, NULL});
}

/* Sums over messages, not over shared memory. */
static void test_messages(void **state) {
    (void)state;
    same_as_oracle((variant){3, 8, 1, false, 1, 1, "direct"});
    same_as_oracle((variant){5, 8, 1, true, 1, 1, "ring"});
}

/* Every sharding, over shared memory and over messages, with and without a communication thread. */
static void test_sharding(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int zero = 0; zero <= 3; zero++)
        for (int i = zero % STRIDE; i < 5; i += STRIDE)
            for (int way = 0; way < 4; way++)
                same_as_oracle(
                    (variant){workers[i], 8, 1, way % 2, 1, zero, way / 2 ? "direct" : NULL});
    setup again = {.threads = 1, .zero = 3, .recompute = 3};
    setup all = {.sequential = true, .threads = 1, .zero = 0, .own = true};
    setup one = {.sequential = true, .threads = 1, .zero = 3};
    set_up(&all, 3, 8, 1);
    set_up(&one, 3, 8, 1);
    run(&all);
    run(&one);
    assert_memory_equal(all.params, one.params, 3 * one.model.nfloats * sizeof(float));
    set_up(&again, 3, 8, 1);
    run(&again);
    assert_memory_equal(all.params, again.params, 3 * one.model.nfloats * sizeof(float));
    tear_down(&again);
    tear_down(&all);
    tear_down(&one);
}

/* Gradients as random codes, from step 0 or 2 on; often none. */
static ls_share_compress random_codes(uint64_t seed, ls_dtype reduce) {
    static const ls_compression_kind kinds[] = {LS_COMPRESS_TOPK,     LS_COMPRESS_ONEBIT,
                                                LS_COMPRESS_INT8,     LS_COMPRESS_INT4,
                                                LS_COMPRESS_POWERSGD, LS_COMPRESS_BF16};
    ls_compression_kind kind = kinds[pick(seed, 61, 6)];
    int feedback = kind == LS_COMPRESS_POWERSGD ? LS_FEEDBACK_ERROR : pick(seed, 62, 3);
    return (ls_share_compress){.on = reduce == LS_F32 && pick(seed, 60, 2),
                               .how = {.kind = kind,
                                       .feedback = (ls_feedback)feedback,
                                       .rank = 1 + pick(seed, 66, 4),
                                       .ratio = 0.1},
                               .warmup = 2 * pick(seed, 63, 2),
                               .min_count = (size_t)pick(seed, 64, 100)};
}

/* Random settings that do not change the bits. */
static setup random_setup(uint64_t seed, const setup *oracle, int *n_p, int64_t *micro_p, int V) {
    setup s = {.threads = 1, .seed = seed, .compute = oracle->compute, .reduce = oracle->reduce};
    s.kind = oracle->kind;
    s.compress = oracle->compress;
    s.compress.codes = pick(seed, 65, 2);
    *n_p = 1 + pick(seed, 10, V < MOST ? V : MOST);
    *micro_p = 1 + pick(seed, 11, BATCH / V);
    s.zero = pick(seed, 12, 4);
    s.recompute = pick(seed, 13, 5);
    s.recompute_layers = pick(seed, 22, 4);
    s.prefetch = pick(seed, 14, 3);
    s.whole_nbytes = pick(seed, 23, 2) ? (size_t)(2048 << pick(seed, 24, 5)) : 0;
    s.bucket_nbytes = (size_t)(4096 << pick(seed, 15, 5));
    s.overlap = pick(seed, 16, 2);
    s.sequential = pick(seed, 17, 2);
    s.chaos = pick(seed, 18, 2);
    s.own = s.zero == 0 || pick(seed, 19, 2);
    s.algorithm = pick(seed, 20, 4) ? NULL : "direct";
    s.dir = !s.sequential && pick(seed, 21, 4) == 0 ? "." : NULL;
    bool even = (V & (V - 1)) == 0 && (*n_p & (*n_p - 1)) == 0;
    s.early = s.zero >= 2 && even && pick(seed, 9, 2);
    if (s.compress.how.kind == LS_COMPRESS_POWERSGD) s.early = false;
    for (int g = 2; s.zero && (V & (V - 1)) == 0 && g <= *n_p; g *= 2)
        if (*n_p % g == 0 && pick(seed, 21 + (uint64_t)g, 2)) s.shards = *n_p / g;
    if (!s.early && !s.shards && pick(seed, 40, 2)) s.uneven = seed + 1;
    return s;
}

/* Any plan, by any executor, with any type of parameters and gradients, against one worker. The
 * plans are verified pass by pass. */
static void test_random(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_F32, LS_BF16, LS_F16};
    static const int parts[] = {1, 2, 4, 8};
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_SEEDS, SEEDS); seed++) {
        int V = parts[pick(seed, 0, 4)], n = 1;
        int64_t micro = 1;
        setup oracle = {.sequential = true, .threads = 1, .zero = 1};
        oracle.compute = types[pick(seed, 1, 4)];
        oracle.reduce = pick(seed, 2, 2) ? oracle.compute : types[pick(seed, 3, 4)];
        oracle.kind = (int)(seed % NKINDS);
        oracle.compress = random_codes(seed, oracle.reduce);
        set_up(&oracle, 1, V, 1);
        run(&oracle);
        for (uint64_t k = 0; k < VARIANTS; k++) {
            setup s = random_setup(seed * VARIANTS + k, &oracle, &n, &micro, V);
            set_up(&s, n, V, micro);
            run(&s);
            assert_same(&s, &oracle, (int)(seed * VARIANTS + k));
            tear_down(&s);
        }
        tear_down(&oracle);
    }
}

/* Random orders that the lanes allow, with random settings. */
static void test_chaos(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < (uint64_t)ncases(FEW_CHAOS, CHAOS); seed++) {
        uint32_t r[4];
        ls_random_words(seed, LS_STREAM_FAKE, 0, 0, r);
        int n = 1 + (int)(r[0] % 4), zero = (int)(r[1] % 4), micro = 1 + (int)(r[2] % 2);
        setup oracle = {.sequential = true, .threads = 1, .zero = 1};
        setup s = {.sequential = true, .threads = 1, .chaos = true, .seed = seed};
        s.own = zero == 0 || r[3] % 2;
        s.zero = zero;
        s.recompute = (int)(r[2] / 2 % 4);
        s.kind = oracle.kind = (int)(seed % NKINDS);
        s.compress = oracle.compress = random_codes(seed, LS_F32);
        s.compress.codes = true;
        set_up(&oracle, n, 4, micro);
        set_up(&s, n, 4, micro);
        run(&oracle);
        run(&s);
        assert_same(&s, &oracle, (int)seed);
        tear_down(&oracle);
        tear_down(&s);
    }
}

/* The sum over virtual workers is the gradient of the mean loss over the batch: the same, but for
 * rounding, as with one virtual worker, whose gradients the tests of the model check. */
static void test_one_sum(void **state) {
    (void)state;
    setup one = {.threads = 1}, many = {.threads = 1};
    set_up(&one, 1, 1, 8);
    set_up(&many, 3, 8, 1);
    run(&one);
    run(&many);
    for (int i = 0; i < STEPS; i++) { /* with the uneven last batch of the epoch */
        assert_true(fabs(one.losses[i] - many.losses[i]) < 1e-4 * one.losses[i]);
        assert_true(fabs(one.norms[i] - many.norms[i]) < 1e-3 * one.norms[i]);
    }
    assert_true(fabs(one.losses[0] - log(VOCAB)) < 0.1); /* untrained */
    assert_true(fabs(one.losses[0] - many.losses[0]) < 1e-6);
    tear_down(&one);
    tear_down(&many);
}

/* ---- the gradient of a graph ---- */

/* The loss of the batch, by a forward alone. */
static double loss_of(const setup *s, const ls_compute *c, const float *params) {
    ls_infer f = {.model = &s->model, .compute = c, .dtype = LS_F32, .params = params, .n = 2};
    double losses[BATCH], sum = 0;
    ls_loader_config loader = samples_of(s);
    size_t nbytes = s->model.sample_nbytes;
    char *samples = ls_alloc(BATCH * nbytes);
    f.memory = ls_alloc(ls_infer_nbytes(f.model, LS_F32, f.n));
    for (uint64_t i = 0; i < BATCH; i++) {
        ls_draw d = {.seed = 5, .sample = ls_order_at(&loader.order, 0, i)};
        ls_status read = loader.read(loader.data, &d, nbytes, samples + i * nbytes, NULL);
        assert_int_equal(read, LS_OK);
    }
    ls_infer_losses(&f, BATCH, samples, losses);
    for (int i = 0; i < BATCH; i++) sum += losses[i];
    free(f.memory);
    free(samples);
    return sum / (BATCH * (double)s->model.targets);
}

/* A step of SGD subtracts the gradient, which is compared with central differences of a forward. */
static ls_status gradient_main(ls_group *g, void *arg, ls_error *e) {
    setup *s = arg;
    ls_world w;
    ls_board_slot slot = {0};
    ls_exec *x = NULL;
    ls_step_out out = {0};
    ls_step_in in = {.lr = 1, .loss_scale = 1};
    float *grads = LS_NEW_ARRAY(float, s->model.nfloats);
    LS_TRY(ls_world_open(&w, &s->plan.share, g, NULL, NULL, e));
    ls_exec_config c = config_of(s, &w, &slot, 0);
    LS_TRY(ls_exec_create(&c, &x, e));
    draw(s, &w, 0, x);
    memcpy(s->params, w.flat.of[0], s->model.nfloats * sizeof(float));
    LS_TRY(ls_exec_step(x, &in, &out, e));
    for (size_t i = 0; i < s->model.nfloats; i++) grads[i] = s->params[i] - w.flat.of[0][i];
    assert_true(fabs(out.loss - loss_of(s, ls_exec_compute(x), s->params)) < 1e-6);
    for (int p = 0; p < s->model.nparams; p++) {
        size_t i = s->model.params[p].offset + s->model.params[p].count / 2;
        float was = s->params[i];
        s->params[i] = was + 0.01f;
        double more = loss_of(s, ls_exec_compute(x), s->params);
        s->params[i] = was - 0.01f;
        double slope = (more - loss_of(s, ls_exec_compute(x), s->params)) / 0.02;
        s->params[i] = was;
        if (fabs(slope - (double)grads[i]) > 2e-5 + 2e-2 * fabs(slope))
            print_error("%s: gradient %g, slope %g\n", s->model.params[p].name, (double)grads[i],
                        slope);
        assert_true(fabs(slope - (double)grads[i]) <= 2e-5 + 2e-2 * fabs(slope));
    }
    free(grads);
    ls_exec_free(x);
    ls_world_close(&w, &s->plan.share);
    return LS_OK;
}

static void test_graph_gradient(void **state) {
    (void)state;
    for (int kind = GRAPH; kind <= MLP; kind++) {
        setup s = {.threads = 1, .kind = kind};
        set_up(&s, 1, 1, 3);
        s.plan.share.optim =
            (ls_optim){.ngroups = 1, .groups = {{.rule = LS_RULE_SGD, .lr_scale = 1}}};
        run_threads(1, NULL, gradient_main, &s, NULL);
        tear_down(&s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),          cmocka_unit_test(test_messages),
        plain_unit_test(test_sharding),        cmocka_unit_test(test_chaos),
        cmocka_unit_test(test_graph_gradient), cmocka_unit_test(test_one_sum),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
