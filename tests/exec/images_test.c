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
static const double LIMIT = 1.9;
#else
enum { STEPS = 80 };
static const double LIMIT = 0.8;
#endif
enum { BATCH = 60, V = 10, WIDTH = 48, CLASSES = 10, TESTED = 500 };

typedef struct setup {
    ls_model model;
    ls_plan plan;
    const ls_source *source;
    float *params; /* [nfloats] of worker 0 */
    double loss;   /* of the last step */
} setup;

static void make_model(const ls_source *s, ls_model *m) {
    ls_error e = {0};
    const ls_field *image = ls_source_field(s, "image");
    assert_non_null(image);
    *m = (ls_model){0};
    ls_value *x = ls_input(m, "image", LS_U8, LS_DIMS(image->dims[0], image->dims[1], 1));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    x = ls_flatten(m, ls_affine(m, x, 1 / 128.0f, -1));
    x = ls_gelu(m, ls_linear(m, x, .name = "fc1", .out = WIDTH));
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

static setup run(const ls_source *source, int n, int64_t micro, int zero) {
    setup s = {.source = source};
    ls_error e = {0};
    make_model(source, &s.model);
    ls_plan_config c = {.model = &s.model,
                        .nworkers = n,
                        .V = V,
                        .batch = BATCH,
                        .micro_batch = micro,
                        .tree = true,
                        .bucket_nbytes = 50000,
                        .zero = zero,
                        .compute = LS_F32,
                        .reduce = LS_F32};
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

static void test_learns(void **state) {
    (void)state;
    if (access(FOLDER "train-images-idx3-ubyte.gz", R_OK) != 0)
        skip_because("dataset-fashion-mnist is not installed");
    ls_source *source =
        open_images(FOLDER "train-images-idx3-ubyte.gz", FOLDER "train-labels-idx1-ubyte.gz");
    ls_source *test =
        open_images(FOLDER "t10k-images-idx3-ubyte.gz", FOLDER "t10k-labels-idx1-ubyte.gz");
    assert_int_equal(source->count, 60000);
    setup one = run(source, 1, 6, 0);
    double loss = test_loss(&one, test);
    print_message("after %d steps: training loss %.4f, test loss %.4f\n", STEPS, one.loss, loss);
    assert_true(loss < LIMIT); /* untrained: log 10 = 2.30 */
    static const int workers[] = {2, 3, 5};
    for (int i = 0; i < 3; i++) {
        setup s = run(source, workers[i], 1 + i, i);
        assert_true(s.loss == one.loss);
        assert_memory_equal(s.params, one.params, one.model.nfloats * sizeof(float));
        close_run(&s);
    }
    close_run(&one);
    ls_source_close(source);
    ls_source_close(test);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_learns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
