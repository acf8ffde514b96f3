/* batch_norm_test.c - training with batch norm: the same bits for any layout, running values that a
 * double-precision loop gives. */
#include <math.h>

#include "base/random.h"
#include "exec/trained.h"
#include "model/builder.h"
#include "test.h"

enum { BATCH = 20, V = 5, SAMPLES = 47 }; /* the last batch of an epoch has 7 samples */

/* Numbers of a sample, one field after the other. */
static float number(uint64_t sample, uint64_t i) {
    uint32_t r[4];
    ls_random_words(23, LS_STREAM_FAKE, sample, i, r);
    return (float)(r[0] % 1000) / 250 - 1.5f;
}

/* `data` is the model. Labels are classes of 3; a weight is a number from 0 to 2. */
static ls_status read_sample(const void *data, const ls_draw *d, size_t nbytes, void *sample,
                             ls_error *e) {
    const ls_model *m = data;
    (void)e;
    memset(sample, 0, nbytes);
    for (int k = 0; k < m->ninputs; k++) {
        float *to = (float *)(void *)((char *)sample + m->inputs[k].offset);
        for (size_t i = 0; i < m->inputs[k].nbytes / sizeof *to; i++) {
            float x = number(d->sample, (uint64_t)k * 64 + i);
            if (m->inputs[k].type == LS_I32)
                ((int32_t *)(void *)to)[i] = (int32_t)(x + 1.5f) % 3;
            else
                to[i] = strcmp(m->inputs[k].name, "weight") == 0 ? (x + 1.5f) / 2 : x;
        }
    }
    return LS_OK;
}

typedef void make_model(ls_model *);

/* How a model is trained. */
typedef struct way {
    int workers, zero, recompute;
    bool overlap;
    size_t bucket;
} way;

static void run(make_model *make, const way *w, int64_t steps, double lr, trained *t_p) {
    ls_error e = {0};
    *t_p = (trained){.read = read_sample,
                     .data = &t_p->model,
                     .nsamples = SAMPLES,
                     .steps = steps,
                     .lr = lr,
                     .clip = 0.5,
                     .loss_scale = 64,
                     .overlap = w->overlap,
                     .mixes_threads = true,
                     .how = {.nworkers = w->workers,
                             .V = V,
                             .batch = BATCH,
                             .micro_batch = BATCH / V,
                             .bucket_nbytes = w->bucket,
                             .zero = w->zero,
                             .recompute = w->recompute}};
    make(&t_p->model);
    assert_ls_ok(ls_build_finish(&t_p->model, &e), e);
    trained_run(t_p);
}

/* ---- bits ---- */

/* Norms of images, with and without ReLU, and one of vectors, which has one number a channel where
 * a virtual worker has one sample. */
static void residual(ls_model *m) {
    ls_value *x = ls_input(m, "image", LS_F32, LS_DIMS(4, 4, 2)),
             *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    x = ls_conv2d(m, x, .name = "stem", .channels = 18, .kernel = 3, .no_bias = true);
    x = ls_batch_norm(m, x, .relu = true);
    ls_value *y = ls_conv2d(m, x, .channels = 18, .kernel = 3, .no_bias = true);
    y = ls_batch_norm(m, y, .momentum = 0.3f);
    x = ls_flatten(m, ls_add_relu(m, x, y));
    x = ls_relu(m, ls_batch_norm(m, ls_linear(m, x, .out = 9), LS_DEFAULTS));
    ls_cross_entropy(m, ls_linear(m, x, .name = "head", .out = 3), label, LS_DEFAULTS);
}

static void test_bits(void **state) {
    (void)state;
    static const way ways[] = {{2, 0, 0, false, 5000}, {3, 1, 0, false, 5000},
                               {5, 2, 0, false, 5000}, {2, 3, 0, false, 5000},
                               {1, 0, 2, false, 5000}, {3, 3, 2, false, 5000},
                               {2, 2, 1, true, 9000},  {5, 3, 3, true, 5000}};
    enum { STEPS = 7 };
    trained one, t;
    run(residual, &(way){1, 0, 0, false, 1 << 20}, STEPS, 0.02, &one);
    assert_true(one.out[STEPS - 1].loss < 1.2 && one.out[STEPS - 1].grad_norm > 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        run(residual, &ways[i], STEPS, 0.02, &t);
        trained_same(&t, &one);
        trained_free(&t);
    }
    trained_free(&one);
}

/* ---- running values ---- */

enum { C = 3 };

/* Weights of samples, clipping, the loss scale and weight decay do not touch running values. */
static void weighted(ls_model *m) {
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(C)), *y = ls_input(m, "y", LS_F32, LS_DIMS(C));
    ls_sample_weight(m, ls_input(m, "weight", LS_F32, LS_SCALAR));
    ls_mean_squared_error(m, ls_batch_norm(m, x, .name = "norm", .momentum = 0.2f), y, LS_DEFAULTS);
}

typedef struct running {
    double mean[C], variance[C];
} running;

/* A step by the definition: the means of the virtual workers' values by their samples; those of a
 * virtual worker with one sample are the running values. */
static void exact_step(running *r, uint64_t step) {
    ls_order order = {.n = SAMPLES, .seed = 3};
    ls_batch b = ls_batch_of(step, SAMPLES, BATCH);
    running sum = {{0}, {0}};
    for (int vw = 0; vw < V; vw++) {
        uint64_t first = 0, end = 0;
        ls_batch_share(b.count, V, vw, vw + 1, &first, &end);
        double n = (double)(end - first);
        for (uint64_t c = 0; c < C; c++) {
            double mean = 0, squares = 0;
            for (uint64_t i = first; i < end; i++)
                mean += (double)number(ls_order_at(&order, b.epoch, b.first + i), c) / n;
            for (uint64_t i = first; i < end; i++)
                squares +=
                    pow((double)number(ls_order_at(&order, b.epoch, b.first + i), c) - mean, 2);
            sum.mean[c] += n > 1 ? n * mean : n * r->mean[c];
            sum.variance[c] += n > 1 ? n * squares / (n - 1) : n * r->variance[c];
        }
    }
    for (int c = 0; c < C; c++) {
        r->mean[c] = 0.8 * r->mean[c] + 0.2 * sum.mean[c] / (double)b.count;
        r->variance[c] = 0.8 * r->variance[c] + 0.2 * sum.variance[c] / (double)b.count;
    }
}

static void test_running_values(void **state) {
    (void)state;
    running r = {{0}, {1, 1, 1}};
    for (int64_t steps = 1; steps <= 4; steps++) { /* the third batch is short */
        trained t;
        run(weighted, &(way){2, 1, 0, false, 5000}, steps, 0.05, &t);
        exact_step(&r, (uint64_t)steps - 1);
        for (int c = 0; c < C; c++) {
            double mean = (double)t.params[t.model.params[2].offset + (size_t)c],
                   variance = (double)t.params[t.model.params[3].offset + (size_t)c];
            assert_true(fabs(mean - r.mean[c]) < 1e-6);
            assert_true(fabs(variance - r.variance[c]) < 1e-6 * r.variance[c]);
        }
        trained_free(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits),
                                       cmocka_unit_test(test_running_values)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
