/* weights_test.c - the step's loss and gradient of models with several losses, and of samples with
 * weights and ignored targets: the same bits for any workers, and those of a batch without weights in
 * which samples are repeated instead. */
#include <math.h>

#include "base/random.h"
#include "coll/team.h"
#include "exec/exec.h"
#include "model/builder.h"

enum { BATCH = 24, V = 12, STEPS = 4, WIDTH = 9, TARGETS = 3, CLASSES = 4 };

/* Sample i has weight 2 if i is even, and else 0; `twice`: it is sample i - i % 2, of weight 1.
 * MANY: samples also have losses of other kinds. IGNORED: every other sample has no target that
 * counts, in place of weights. TIED: so too, and an embedding of the labels of the sample before is tied
 * to the loss. */
typedef enum variant {
    WEIGHTS,
    WEIGHTS_TWICE,
    MANY,
    MANY_TWICE,
    IGNORED,
    IGNORED_TWICE,
    TIED,
    TIED_TWICE
} variant;

static bool is_twice(variant v) { return v % 2 != 0; }
static bool ignores(variant v) { return v >= IGNORED; }

typedef struct sample {
    _Alignas(64) float x[5];
    _Alignas(64) int32_t labels[TARGETS];
    _Alignas(64) float y[2];
    _Alignas(64) unsigned char bits[4];
    _Alignas(64) float weight;
    _Alignas(64) int32_t ids[TARGETS];
} sample;

static ls_status read_sample(const void *data, const ls_draw *d, size_t nbytes, void *to,
                             ls_error *e) {
    (void)e;
    variant v = *(const variant *)data;
    uint64_t i = is_twice(v) ? d->sample - d->sample % 2 : d->sample;
    sample s = {.weight = is_twice(v) || ignores(v) ? 1 : i % 2 ? 0 : 2};
    uint64_t k = 0;
    for (int j = 0; j < 5; j++)
        s.x[j] = (float)ls_random_uniform(8, LS_STREAM_FAKE, i, k++) * 2 - 1;
    for (int j = 0; j < TARGETS; j++)
        s.labels[j] = (int32_t)(CLASSES * ls_random_uniform(8, LS_STREAM_FAKE, i, k++));
    for (int j = 0; j < TARGETS && ignores(v) && !is_twice(v) && i % 2; j++) s.labels[j] = -1;
    if (ignores(v)) s.labels[i / 2 % TARGETS] = -1;
    for (int j = 0; j < 2; j++) s.y[j] = (float)ls_random_uniform(8, LS_STREAM_FAKE, i, k++);
    for (int j = 0; j < 4; j++) s.bits[j] = ls_random_uniform(8, LS_STREAM_FAKE, i, k++) < 0.5;
    for (int j = 0; j < TARGETS; j++)
        s.ids[j] = (int32_t)(CLASSES * ls_random_uniform(8, LS_STREAM_FAKE, i, k++));
    assert_true(nbytes <= sizeof s);
    memcpy(to, &s, nbytes);
    return LS_OK;
}

static void make_model(variant v, ls_model *m) {
    ls_error e = {0};
    *m = (ls_model){0};
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(5));
    ls_value *labels = ls_input(m, "labels", LS_I32, LS_DIMS(TARGETS));
    ls_value *y = ls_input(m, "y", LS_F32, LS_DIMS(2));
    ls_value *bits = ls_input(m, "bits", LS_U8, LS_DIMS(4));
    ls_value *weight = ls_input(m, "weight", LS_F32, LS_SCALAR);
    ls_value *ids = ls_input(m, "ids", LS_I32, LS_DIMS(TARGETS));
    x = ls_gelu(m, ls_linear(m, x, .out = WIDTH));
    ls_value *logits = ls_linear(m, x, .name = "head", .out = TARGETS * CLASSES);
    logits = ls_build_view(m, logits, LS_DIMS(TARGETS, CLASSES));
    if (v == MANY || v == MANY_TWICE) {
        ls_mean_squared_error(m, ls_linear(m, x, .name = "y", .out = 2), y, .factor = 0.5f);
        ls_binary_cross_entropy(m, ls_linear(m, x, .name = "bits", .out = 4), bits, LS_DEFAULTS);
    }
    if (v >= TIED) {
        ls_value *embedding = ls_embedding(m, ids, .rows = CLASSES, .width = CLASSES);
        ls_value *both = ls_add(m, ls_rms_norm(m, embedding, LS_DEFAULTS), logits);
        ls_linear_cross_entropy(m, both, labels, .name = "labels.loss", .tied = embedding);
    } else {
        ls_cross_entropy(m, logits, labels, .smoothing = 0.1f, .name = "labels.loss");
    }
    if (v <= MANY_TWICE) ls_sample_weight(m, weight);
    assert_ls_ok(ls_build_finish(m, &e), e);
    if (v == MANY) assert_int_equal(m->nlosses, 3);
}

typedef struct setup {
    variant variant;
    ls_model model;
    ls_plan plan;
    float *params; /* [nfloats] of worker 0 */
    ls_step_out out[STEPS];
} setup;

static ls_status train(ls_group *g, void *arg, ls_error *e) {
    setup *s = arg;
    ls_world w;
    ls_board_slot slot = {0};
    ls_exec *x = NULL;
    int rank = ls_group_rank(g);
    LS_TRY(ls_world_open(&w, &s->plan, g, NULL, NULL, e));
    ls_exec_config c = {.plan = &s->plan,
                        .world = &w,
                        .slot = &slot,
                        .worker = rank,
                        .threads = 1,
                        .busy = 64,
                        .loader = {.read = read_sample,
                                   .data = &s->variant,
                                   .sample_nbytes = s->model.sample_nbytes,
                                   .order = {.n = BATCH, .seed = 3},
                                   .batch = BATCH,
                                   .V = V,
                                   .a = ls_plan_vw(&s->plan, rank, 0),
                                   .step = 1}};
    c.loader.b = c.loader.a + ls_plan_nvws(&s->plan, rank);
    LS_TRY(ls_exec_create(&c, &x, e));
    for (int k = 0; k < s->plan.nbuckets; k++) {
        ls_bucket b = w.shares_params ? ls_plan_shard(&s->plan, k, rank) : s->plan.buckets[k];
        ls_model_init(&s->model, 1, b.first, b.end, w.flat.of[0]);
    }
    LS_TRY(ls_barrier(g, e));
    for (int64_t i = 0; i < STEPS; i++) {
        ls_step_in in = {.step = i, .updates = i, .lr = 0.1, .clip = 0.7, .loss_scale = 1};
        ls_step_out out = {0};
        LS_TRY(ls_exec_step(x, &in, &out, e));
        if (rank == 0) s->out[i] = out;
    }
    LS_TRY(ls_barrier(g, e));
    if (rank == 0) memcpy(s->params, w.flat.of[0], s->model.nfloats * sizeof(float));
    LS_TRY(ls_barrier(g, e));
    ls_exec_free(x);
    ls_world_close(&w, &s->plan);
    return LS_OK;
}

static setup run(variant v, int n, int64_t micro, int zero) {
    setup s = {.variant = v};
    ls_error e = {0};
    make_model(v, &s.model);
    ls_plan_config c = {.model = &s.model,
                        .nworkers = n,
                        .V = V,
                        .batch = BATCH,
                        .micro_batch = micro,
                        .tree = true,
                        .bucket_nbytes = 5000,
                        .zero = zero,
                        .compute = LS_F32,
                        .reduce = LS_F32,
                        .optim = ls_optim_usual()};
    c.optim.groups[0].rule = LS_RULE_SGD;
    c.optim.groups[0].weight_decay = 0;
    assert_ls_ok(ls_plan_make(&c, &s.plan, &e), e);
    s.params = LS_NEW_ARRAY(float, s.model.nfloats);
    run_threads(n, NULL, train, &s, NULL);
    return s;
}

static void close_run(setup *s) {
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
    free(s->params);
}

static void test_weights(void **state) {
    (void)state;
    for (variant v = WEIGHTS; v <= TIED; v = (variant)(v + 2)) {
        setup a = run(v, 1, 2, 0), b = run((variant)(v + 1), 1, 2, 0);
        for (int i = 0; i < STEPS; i++) {
            double loss = b.out[i].loss, norm = b.out[i].grad_norm;
            assert_true(loss > 0.5);
            if (fabs(a.out[i].loss - loss) > 1e-5 * loss)
                fail_msg("%d, step %d: loss %.9g, not %.9g", (int)v, i, a.out[i].loss, loss);
            if (fabs(a.out[i].grad_norm - norm) > 1e-4 * norm)
                fail_msg("%d, step %d: norm %.9g, not %.9g", (int)v, i, a.out[i].grad_norm, norm);
        }
        for (size_t i = 0; i < a.model.nfloats; i++)
            assert_true(fabsf(a.params[i] - b.params[i]) < 1e-5f);
        close_run(&a);
        close_run(&b);
    }
}

static void test_bits(void **state) {
    (void)state;
    static const int workers[] = {2, 3, 5};
    for (variant v = WEIGHTS; v <= TIED; v = (variant)(v + 2)) {
        setup one = run(v, 1, 2, 0);
        for (int i = 0; i < 3; i++) {
            setup s = run(v, workers[i], 1 + i % 2, i);
            for (int k = 0; k < STEPS; k++) assert_true(s.out[k].loss == one.out[k].loss);
            assert_memory_equal(s.params, one.params, one.model.nfloats * sizeof(float));
            close_run(&s);
        }
        close_run(&one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
