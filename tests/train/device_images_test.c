/* device_images_test.c - classifiers of images whose layers are computed by a device have the bits
 * of cores: networks of all kinds, with images that are changed at random, micro-batches, and
 * several workers. */
/* ctest: slow */
#include <sys/wait.h>
#include <unistd.h>

#include "device/drivers.h"
#include "train/tiny_run.h"

enum { SIDE = 8, TRAINED = 40, VALIDATED = 8, CLASSES = 5 };

static const char *const models[] = {
    "{kind: mlp, hidden: [20, 12]}",
    "{kind: cnn, channels: [6, 5], loss: {cross_entropy: {target: label, smoothing: 0.1}}}",
    "{kind: cnn, channels: [4, 6], norm: batch}", "{kind: resnet, channels: [4, 8], blocks: 1}",
    "{kind: vit, patch: 4, width: 12, heads: 2, layers: 1}"};
enum { MLP, CNN, BATCH_NORM, RESNET, VIT, NMODELS };

static const char text[] = "model: %s\n"
                           "data:\n"
                           "  path: %s/train-images-idx3-ubyte\n"
                           "  labels: %s/train-labels-idx1-ubyte\n"
                           "  val_path: %s/val-images-idx3-ubyte\n"
                           "  val_labels: %s/val-labels-idx1-ubyte\n"
                           "  augment: [{flip: 0.5}]\n"
                           "  normalize: {mean: [0.4], deviation: [0.3]}\n"
                           "train: {steps: 3, batch: 6, virtual_workers: 3, eval_every: 3}\n"
                           "log: {every: 1000}\n"
                           "optim: {optimizer: sgd, momentum: 0.9, lr: 0.1}\n";

/* ---- data ---- */

static FILE *opened(const char *name) {
    char *path = ls_format("%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    free(path);
    return f;
}

static void write_set(const char *which, int n) {
    const unsigned char head[] = {0, 0, 8, 3,    0, 0, 0, (unsigned char)n,
                                  0, 0, 0, SIDE, 0, 0, 0, SIDE};
    const unsigned char labels_head[] = {0, 0, 8, 1, 0, 0, 0, (unsigned char)n};
    char *images = ls_format("%s-images-idx3-ubyte", which);
    char *labels = ls_format("%s-labels-idx1-ubyte", which);
    FILE *f = opened(images);
    fwrite(head, 1, sizeof head, f);
    for (int i = 0; i < n * SIDE * SIDE; i++) fputc(i * i / 7 * 31 & 255, f);
    assert_int_equal(fclose(f), 0);
    f = opened(labels);
    fwrite(labels_head, 1, sizeof labels_head, f);
    for (int i = 0; i < n; i++) fputc(i % CLASSES, f);
    assert_int_equal(fclose(f), 0);
    free(images);
    free(labels);
}

static int make_data(void **state) {
    if (make_folder(state) || setenv("XDG_CACHE_HOME", folder, 1)) return -1;
    write_set("train", TRAINED);
    write_set("val", VALIDATED);
    for (int i = 0; i < NMODELS; i++) {
        char *name = ls_format("%d.yaml", i);
        FILE *f = opened(name);
        fprintf(f, text, models[i], folder, folder, folder, folder);
        fclose(f);
        free(name);
    }
    return 0;
}

/* ---- runs ---- */

static result trained(int model, int nworkers, const char *a, const char *b) {
    const char *const sets[] = {a, b};
    char *config = ls_format("%s/%d.yaml", folder, model), *run = run_path(nruns++);
    bool unfinished = false;
    ls_error e = {0};
    ls_train_options o = {.config = config,
                          .sets = sets,
                          .nsets = (a != NULL) + (b != NULL),
                          .nworkers = nworkers,
                          .run = run};
    assert_ls_ok(ls_train(&o, &unfinished, &e), e);
    result r = last_of(run);
    free(config);
    free(run);
    return r;
}

static void check(int model) {
    result cores = trained(model, 1, NULL, NULL);
    same(trained(model, 1, "parallel.device=c:1", NULL), cores);
    same_evaluations(nruns - 1, nruns - 2);
    same(trained(model, 2, "parallel.device=c:2", NULL), cores);
}

static void test_mlp(void **state) {
    (void)state;
    check(MLP);
    same(trained(MLP, 3, "parallel.device=c:3", "parallel.zero=2"), trained(MLP, 1, NULL, NULL));
}
static void test_cnn(void **state) {
    (void)state;
    check(CNN);
    check(BATCH_NORM);
}
/* Running values have kernels where the optimizer is on the device. */
static void test_running_there(void **state) {
    static const char THERE[] = "parallel.optimizer_state=device";
    result cores = trained(BATCH_NORM, 1, NULL, NULL);
    int of_cores = nruns - 1;
    (void)state;
    for (int n = 1; n <= 3; n += 2) {
        same(trained(BATCH_NORM, n, "parallel.device=c:5", THERE), cores);
        same_evaluations(nruns - 1, of_cores);
    }
}
static void test_resnet(void **state) {
    (void)state;
    check(RESNET);
    same(trained(RESNET, 1, "parallel.device=c:4", "train.micro_batch=1"),
         trained(RESNET, 1, "train.micro_batch=2", NULL));
}
static void test_vit(void **state) {
    (void)state;
    check(VIT);
}

/* A driver and a compiler that stand before devices `c` (fake_cuda.c). */
static void test_cuda(void **state) {
    (void)state;
    same(trained(RESNET, 2, "parallel.device=cuda:0", NULL), trained(RESNET, 1, NULL, NULL));
}

/* A driver that has threads can't be used after a fork: a child finds out whether there is one. */
static void test_opencl(void **state) {
    int status = 0;
    pid_t child = fork();
    (void)state;
    assert_true(child >= 0);
    if (child == 0) {
        ls_device *d = NULL;
        _exit(ls_device_open("opencl", &d, NULL) != LS_OK);
    }
    waitpid(child, &status, 0);
    if (status) skip_because("there is no device of OpenCL");
    for (int i = 0; i < NMODELS; i++)
        same(trained(i, 2, "parallel.device=opencl:0", NULL), trained(i, 1, NULL, NULL));
}

/* Starts itself again, so that the driver for tests is found. */
int main(int argc, char **argv) {
    if (argc == 1) {
        char *again[] = {argv[0], "found", NULL};
        setenv("LD_LIBRARY_PATH", FAKE_CUDA ":" FAKE_NVRTC, 1);
        execv("/proc/self/exe", again);
        perror(argv[0]);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp),           cmocka_unit_test(test_cnn),
        cmocka_unit_test(test_resnet),        cmocka_unit_test(test_vit),
        cmocka_unit_test(test_running_there), cmocka_unit_test(test_cuda),
        slow_unit_test(test_opencl)};
    return cmocka_run_group_tests(tests, make_data, remove_folder);
}
