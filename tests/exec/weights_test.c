/* weights_test.c - the step's loss and gradient of models with several losses, and of samples with
 * weights and ignored targets: the same bits for any workers, and those of a batch without weights
 * in which samples are repeated instead. */
#include <math.h>

#include "base/random.h"
#include "exec/trained.h"
#include "model/builder.h"

enum { BATCH = 24, V = 12, STEPS = 4, WIDTH = 9, TARGETS = 3, CLASSES = 4 };

/* Sample i has weight 2 if i is even, and else 0; `twice`: it is sample i - i % 2, of weight 1.
 * MANY: samples also have losses of other kinds. IGNORED: every other sample has no target that
 * counts, in place of weights. TIED: so too, and an embedding of the labels of the sample before is
 * tied to the loss. */
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

/* *t_p reads *v while it trains. */
static void run(const variant *v, int n, int64_t micro, int zero, trained *t_p) {
    *t_p = (trained){.read = read_sample,
                     .data = v,
                     .nsamples = BATCH,
                     .steps = STEPS,
                     .lr = 0.1,
                     .clip = 0.7,
                     .loss_scale = 1,
                     .how = {.nworkers = n,
                             .V = V,
                             .batch = BATCH,
                             .micro_batch = micro,
                             .bucket_nbytes = 5000,
                             .zero = zero,
                             .optim = ls_optim_usual()}};
    t_p->how.optim.groups[0].rule = LS_RULE_SGD;
    t_p->how.optim.groups[0].weight_decay = 0;
    make_model(*v, &t_p->model);
    trained_run(t_p);
}

static void test_weights(void **state) {
    (void)state;
    for (variant v = WEIGHTS; v <= TIED; v = (variant)(v + 2)) {
        variant twice = (variant)(v + 1);
        trained a, b;
        run(&v, 1, 2, 0, &a);
        run(&twice, 1, 2, 0, &b);
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
        trained_free(&a);
        trained_free(&b);
    }
}

static void test_bits(void **state) {
    (void)state;
    static const int workers[] = {2, 3, 5};
    for (variant v = WEIGHTS; v <= TIED; v = (variant)(v + 2)) {
        trained one, t;
        run(&v, 1, 2, 0, &one);
        for (int i = 0; i < 3; i++) {
            run(&v, workers[i], 1 + i % 2, i, &t);
            trained_same(&t, &one);
            trained_free(&t);
        }
        trained_free(&one);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_weights), cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
