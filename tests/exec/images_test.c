/* images_test.c - a classifier of real images: from the files to trained weights, the same bits for
 * any number of workers.
 *
 * Fashion-MNIST, 60,000 images in training: Xiao, Rasul & Vollgraf, arXiv 1708.07747. */
/* ctest: long-tsan: exec/exec starts the same threads, layers/conv2d divides the same rows */
#include "source/formats/open.h"

#include <unistd.h>

#include "exec/trained.h"
#include "infer/infer.h"
#include "model/builder.h"
#include "source/source.h"

#define FOLDER "/usr/share/datasets/fashion-mnist/"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) /* many times slower */
enum { STEPS = 12 };
static const double MLP_LIMIT = 1.9, CNN_LIMIT = 2.1;
#else
enum { STEPS = 80 };
static const double MLP_LIMIT = 0.8, CNN_LIMIT = 1.0;
#endif
enum { BATCH = 60, V = 10, WIDTH = 48, CLASSES = 10, TESTED = 500 };

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

/* How a model is trained. */
typedef struct way {
    add_layers *net;
    int workers;
    int64_t micro;
    int zero;
} train_way;

static ls_status read_drawn(const void *source, const ls_draw *d, size_t nbytes, void *sample,
                            ls_error *e) {
    (void)nbytes; /* of a sample of the source */
    return ls_source_draw(source, d->sample, d, sample, e);
}

static void run(const ls_source *source, const train_way *way, trained *t_p) {
    *t_p = (trained){.read = read_drawn,
                     .data = source,
                     .nsamples = source->count,
                     .steps = STEPS,
                     .lr = 2e-3,
                     .clip = 1,
                     .loss_scale = 1,
                     .how = {.nworkers = way->workers,
                             .V = V,
                             .batch = BATCH,
                             .micro_batch = way->micro,
                             .bucket_nbytes = 50000,
                             .zero = way->zero}};
    make_model(source, way->net, &t_p->model);
    trained_run(t_p);
}

/* The mean loss of images that were not trained on. */
static double test_loss(const trained *s, const ls_source *test) {
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
    trained one, t;
    run(source, &(train_way){net, 1, 6, 0}, &one);
    double loss = test_loss(&one, test);
    print_message("after %d steps: training loss %.4f, test loss %.4f\n", STEPS,
                  one.out[STEPS - 1].loss, loss);
    assert_true(loss < limit); /* untrained: log 10 = 2.30 */
    static const int workers[] = {2, 3, 5};
    for (int i = 0; i < 3; i++) {
        run(source, &(train_way){net, workers[i], 1 + i, i}, &t);
        trained_same(&t, &one);
        trained_free(&t);
    }
    trained_free(&one);
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
