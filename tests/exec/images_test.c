/* images_test.c - a classifier of real images: from the files to trained weights, the same bits for
 * any number of workers.
 *
 * Fashion-MNIST, 60,000 images in training: Xiao, Rasul & Vollgraf, arXiv 1708.07747. */
#include "source/source.h"

#include <unistd.h>

#include "coll/team.h"
#include "exec/exec.h"
#include "infer/infer.h"
#include "model/builder.h"

#define FOLDER "/usr/share/datasets/fashion-mnist/"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* many times slower */
enum { STEPS = 12 };
static const double MLP_LIMIT = 1.9, CNN_LIMIT = 2.1;
#else
enum { STEPS = 80 };
static const double MLP_LIMIT = 0.8, CNN_LIMIT = 1.0;
#endif
enum { BATCH = 60, V = 10, WIDTH = 48, CLASSES = 10, TESTED = 500 };

typedef struct setup {
    ls_model model;
    ls_plan plan;
    const ls_source *source;
    float *params; /* [nfloats] of worker 0 */
    double loss;   /* of the last step */
} setup;

typedef ls_value *add_layers(ls_model *, ls_value *image);

static ls_value *mlp(ls_model *m, ls_value *x) {
    x = ls_flatten(m, ls_affine(m, x, 1 / 128.0f, -1));
    return ls_gelu(m, ls_linear(m, x, .name = "fc1", .out = WIDTH));
}

/* A value that two layers read, strides, padding, a window's maximum: 28 x 28 to 7 x 7. */
static ls_value *cnn(ls_model *m, ls_value *x) {
    x = ls_normalize(m, x, .mean = {0.29f}, .deviation = {0.35f});
    x = ls_conv2d(m, x, .name = "stem", .channels = 8, .kernel = 3, .stride = 2, .no_bias = true);
    x = ls_max_pool(m, ls_group_norm(m, x, .relu = true), .kernel = 3, .stride = 2, .pad = 1);
    ls_value *y = ls_conv2d(m, x, .channels = 8, .kernel = 3, .no_bias = true);
    y = ls_conv2d(m, ls_group_norm(m, y, .groups = 2, .relu = true), .channels = 8, .kernel = 3);
    x = ls_add_relu(m, x, ls_group_norm(m, y, .groups = 4));
    return ls_flatten(m, ls_average_pool(m, x, .kernel = 2, .stride = 1));
}

static void make_model(const ls_source *s, add_layers *net, ls_model *m) {
    ls_error e = {0};
    const ls_field *image = ls_source_field(s, "image");
    assert_non_null(image);
    *m = (ls_model){0};
    ls_value *x = ls_input(m, "image", LS_U8, LS_DIMS(image->dims[0], image->dims[1], 1));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    x = net(m, x);
    ls_cross_entropy(m, ls_linear(m, x, .name = "fc2", .out = CLASSES), label, LS_DEFAULTS);
    assert_ls_ok(ls_build_finish(m, &e), e);
    assert_int_equal(m->sample_nbytes, s->nbytes);
}

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
                        .loader = {.read = ls_source_sample,
                                   .data = s->source,
                                   .sample_nbytes = s->source->nbytes,
                                   .order = {.n = s->source->count, .seed = 3},
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
        ls_step_in in = {.step = i, .updates = i, .lr = 2e-3, .clip = 1, .loss_scale = 1};
        ls_step_out out = {0};
        LS_TRY(ls_exec_step(x, &in, &out, e));
        if (rank == 0) s->loss = out.loss;
    }
    LS_TRY(ls_barrier(g, e));
    if (rank == 0) memcpy(s->params, w.flat.of[0], s->model.nfloats * sizeof(float));
    LS_TRY(ls_barrier(g, e));
    ls_exec_free(x);
    ls_world_close(&w, &s->plan);
    return LS_OK;
}

/* How a model is trained. */
typedef struct way {
    add_layers *net;
    int workers;
    int64_t micro;
    int zero;
} train_way;

static setup run(const ls_source *source, const train_way *way) {
    setup s = {.source = source};
    ls_error e = {0};
    make_model(source, way->net, &s.model);
    ls_plan_config c = {.model = &s.model,
                        .nworkers = way->workers,
                        .V = V,
                        .batch = BATCH,
                        .micro_batch = way->micro,
                        .tree = true,
                        .bucket_nbytes = 50000,
                        .zero = way->zero,
                        .compute = LS_F32,
                        .reduce = LS_F32};
    assert_ls_ok(ls_plan_make(&c, &s.plan, &e), e);
    s.params = LS_NEW_ARRAY(float, s.model.nfloats);
    run_threads(way->workers, NULL, train, &s, NULL);
    return s;
}

static void close_run(setup *s) {
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
    free(s->params);
}

/* The mean loss of images that were not trained on. */
static double test_loss(const setup *s, const ls_source *test) {
    ls_compute c;
    ls_error e = {0};
    double losses[TESTED], sum = 0;
    char *samples = ls_alloc(TESTED * test->nbytes);
    assert_ls_ok(ls_compute_init(&c, 1, ls_model_scratch_floats(&s->model), &e), e);
    ls_infer f = {.model = &s->model, .compute = &c, .dtype = LS_F32, .params = s->params, .n = 16};
    f.memory = ls_alloc(ls_infer_nbytes(f.model, LS_F32, f.n));
    for (uint64_t i = 0; i < TESTED; i++)
        assert_ls_ok(test->read(test, i, samples + i * test->nbytes, &e), e);
    ls_infer_losses(&f, TESTED, samples, losses);
    for (int i = 0; i < TESTED; i++) sum += losses[i];
    ls_compute_close(&c);
    free(f.memory);
    free(samples);
    return sum / TESTED;
}

static ls_source *open_images(const char *images, const char *labels) {
    ls_error e = {0};
    ls_source *s = NULL;
    assert_ls_ok(ls_source_open(images, &(ls_source_options){.labels = labels}, &s, &e), e);
    return s;
}

/* The test loss falls below `limit`; other numbers of workers give the same bits. */
static void check_learns(add_layers *net, double limit) {
    ls_source *source =
        open_images(FOLDER "train-images-idx3-ubyte.gz", FOLDER "train-labels-idx1-ubyte.gz");
    ls_source *test =
        open_images(FOLDER "t10k-images-idx3-ubyte.gz", FOLDER "t10k-labels-idx1-ubyte.gz");
    assert_int_equal(source->count, 60000);
    setup one = run(source, &(train_way){net, 1, 6, 0});
    double loss = test_loss(&one, test);
    print_message("after %d steps: training loss %.4f, test loss %.4f\n", STEPS, one.loss, loss);
    assert_true(loss < limit); /* untrained: log 10 = 2.30 */
    static const int workers[] = {2, 3, 5};
    for (int i = 0; i < 3; i++) {
        setup s = run(source, &(train_way){net, workers[i], 1 + i, i});
        assert_true(s.loss == one.loss);
        assert_memory_equal(s.params, one.params, one.model.nfloats * sizeof(float));
        close_run(&s);
    }
    close_run(&one);
    ls_source_close(source);
    ls_source_close(test);
}

static void test_mlp(void **state) {
    (void)state;
    if (access(FOLDER "train-images-idx3-ubyte.gz", R_OK) != 0)
        skip_because("dataset-fashion-mnist is not installed");
    check_learns(mlp, MLP_LIMIT);
}

static void test_cnn(void **state) {
    (void)state;
    if (access(FOLDER "train-images-idx3-ubyte.gz", R_OK) != 0)
        skip_because("dataset-fashion-mnist is not installed");
    check_learns(cnn, CNN_LIMIT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mlp), cmocka_unit_test(test_cnn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
