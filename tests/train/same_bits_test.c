/* same_bits_test.c - the promise: for one config, the same hashes of weights and optimizer state.
 *
 * Each variant trains configs/tiny.yaml (8 virtual workers, 28 steps, two epochs with an uneven
 * last batch each; make check: 15 steps, of which the last is of the second epoch). The last test
 * shows that the comparison can fail.
 */
/* make check does not run it under the address sanitizer: recorded_bits_test trains all types
 * there. */
/* ctest: slow busy seconds=40 */
#include <unistd.h>

#include "base/hash.h"
#include "folder.h"
#include "storage/checkpoint.h"
#include "test.h"
#include "train/train.h"

#ifdef __SANITIZE_ADDRESS__ /* many times slower: one epoch with its uneven last batch */
static const char *width_set = "model.width=12";
static const char *steps_set = "train.steps=14";
static int64_t nsteps = 14;
#else
static const char *width_set = "model.width=24"; /* of make check: 12, and 15 steps */
static const char *steps_set = "train.steps=28";
static int64_t nsteps = 28;
#endif

static int nruns;

typedef struct hashes {
    char weights[LS_HASH_TEXT], optimizer[LS_HASH_TEXT];
} hashes;

/* Trains with some settings, to the first NULL, and hashes the last checkpoint. */
static hashes train_with(int nworkers, const char *const *more) {
    const char *sets[12] = {"log.every=1000", width_set, steps_set};
    int nsets = 3;
    while (*more) sets[nsets++] = *more++;
    char run[128];
    snprintf(run, sizeof run, "%s/run-%d", folder, nruns++);
    bool unfinished = false;
    ls_error e = {0};
    ls_train_options o = {.config = "configs/tiny.yaml",
                          .sets = sets,
                          .nsets = nsets,
                          .nworkers = nworkers,
                          .run = run};
    assert_ls_ok(ls_train(&o, &unfinished, &e), e);
    assert_false(unfinished);
    char *path = NULL;
    ls_checkpoint_info i;
    assert_ls_ok(ls_checkpoint_newest(run, &path, NULL, &e), e);
    assert_ls_ok(ls_checkpoint_verify(path, &i, &e), e);
    assert_int_equal(i.step, nsteps);
    free(path);
    hashes h;
    ls_hash_text(i.weights, h.weights);
    ls_hash_text(i.optimizer, h.optimizer);
    return h;
}

static hashes train(int nworkers, const char *a, const char *b, const char *c) {
    const char *sets[4] = {NULL};
    int n = 0;
    if (a) sets[n++] = a;
    if (b) sets[n++] = b;
    if (c) sets[n++] = c;
    return train_with(nworkers, sets);
}

static hashes expected; /* of one worker with one thread */

static void same(hashes h) {
    assert_string_equal(h.weights, expected.weights);
    assert_string_equal(h.optimizer, expected.optimizer);
}

static const char THREAD[] = "parallel.transport=thread";

static void test_workers(void **state) {
    (void)state;
    static const int workers[] = {2, 3, 5, 8};
    expected = train(1, THREAD, NULL, NULL);
    for (int i = 0; i < 4; i++) same(train(workers[i], THREAD, NULL, NULL));
}

static void test_processes(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5, 8};
    for (int i = 0; i < 5; i++) same(train(workers[i], NULL, NULL, NULL));
}

/* Every worker has its own parameters and its own shards of the moments, and sends. */
static void test_tcp(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 3, 5};
    for (int i = 0; i < 4; i++) same(train(workers[i], "parallel.transport=tcp", NULL, NULL));
    same(train(3, "parallel.transport=tcp", "parallel.overlap=on", "parallel.bucket_mb=0.02"));
}

static void test_sharding(void **state) {
    (void)state;
    static const char *const zero[] = {"parallel.zero=0", "parallel.zero=2", "parallel.zero=3"};
    for (int i = 0; i < 3; i++) {
        same(train(3, zero[i], NULL, NULL));
        same(train(2, zero[i], "parallel.transport=tcp", NULL));
        same(train(5, zero[i], "parallel.transport=tcp", "parallel.bucket_mb=0.02"));
        same(train(3, zero[i], "parallel.executor=sequential", THREAD));
    }
    same(train(4, zero[2], "parallel.prefetch=3", "parallel.bucket_mb=0.02"));
}

/* Groups of workers; each group has one copy of what is sharded. */
static void test_groups(void **state) {
    (void)state;
    static const char TWO[] = "parallel.shard_group=2";
    same(train(4, TWO, "parallel.zero=1", NULL));
    same(train(4, TWO, "parallel.zero=3", "parallel.transport=tcp"));
    same(train(8, "parallel.shard_group=4", "parallel.zero=2", THREAD));
    same(train(4, "parallel.shard_group=1", "parallel.zero=3", "parallel.bucket_mb=0.02"));
    same(train(4, TWO, "parallel.zero=3", "parallel.executor=sequential"));
}

static void test_state_file(void **state) {
    (void)state;
    static const char IN_FILE[] = "parallel.optimizer_state=file";
    same(train(1, IN_FILE, NULL, NULL));
    same(train(3, IN_FILE, "parallel.zero=3", NULL));
    same(train(2, IN_FILE, "parallel.zero=0", "parallel.transport=tcp"));
}

/* In 16-bit types: other bits than in f32, but the same for all layouts. */
static void test_mixed(void **state) {
    (void)state;
    static const char *const types[] = {"train.compute=bf16", "train.compute=f16",
                                        "train.reduce_dtype=bf16"};
    static const struct {
        int n;
        const char *sets[2];
    } ways[] = {{2, {"parallel.zero=2", "train.micro_batch=2"}},
                {3, {"parallel.zero=3", "parallel.transport=tcp"}},
                {4, {"parallel.shard_group=2", "parallel.recompute=2"}},
                {8, {"parallel.zero=0", THREAD}},
                {3, {"parallel.optimizer_state=file", "parallel.bucket_mb=0.02"}}};
    for (int i = 0; i < 3; i++) {
        hashes one = train(1, types[i], NULL, NULL);
        assert_string_not_equal(one.weights, expected.weights);
        for (int k = 0; k < (int)(sizeof ways / sizeof *ways); k++) {
            if (!runs_case(i + k, 2)) continue;
            hashes other = train(ways[k].n, types[i], ways[k].sets[0], ways[k].sets[1]);
            assert_string_equal(other.weights, one.weights);
            assert_string_equal(other.optimizer, one.optimizer);
        }
    }
}

static void test_recompute(void **state) {
    (void)state;
    static const char *const segments[] = {"parallel.recompute=1", "parallel.recompute=2",
                                           "parallel.recompute=3"};
    for (int i = 0; i < 3; i++) {
        same(train(2, segments[i], THREAD, NULL));
        same(train(3, segments[i], "parallel.zero=3", "train.micro_batch=2"));
    }
}

static void test_micro_batches(void **state) {
    (void)state;
    same(train(3, "train.micro_batch=2", THREAD, NULL));
    /* parts of 4 samples: micro-batches of 1, 2, 4, and 3 + 1 */
    hashes one = train(1, "train.batch=32", "train.micro_batch=1", THREAD);
    static const char *const micros[] = {"train.micro_batch=2", "train.micro_batch=3",
                                         "train.micro_batch=4"};
    for (int i = 0; i < 3; i++) {
        hashes h = train(2, "train.batch=32", micros[i], THREAD);
        assert_string_equal(h.weights, one.weights);
        assert_string_equal(h.optimizer, one.optimizer);
    }
}

/* Sums in bf16 are in blocks, which begin anew at each sample, or with fewer rows than a block at
 * each unit of two. */
static void test_blocks(void **state) {
    (void)state;
    static const char *const contexts[] = {"model.context=33", "model.context=100",
                                           "model.context=20"};
    static const char *const micros[] = {"train.micro_batch=4", "train.micro_batch=2",
                                         "train.micro_batch=3", "train.micro_batch=1"};
    for (int i = 0; i < 3; i++) {
        const char *sets[] = {"train.compute=bf16", "train.batch=32",
                              contexts[i],          micros[0],
                              "parallel.threads=3", NULL};
        hashes one = train_with(1, sets);
        sets[4] = NULL;
        for (int k = 1; k < 4; k++) {
            if (!runs_case(i + k, 2)) continue;
            sets[3] = micros[k];
            hashes h = train_with(2, sets);
            assert_string_equal(h.weights, one.weights);
            assert_string_equal(h.optimizer, one.optimizer);
        }
    }
}

static void test_threads(void **state) {
    (void)state;
    same(train(1, "parallel.threads=2", THREAD, NULL));
    same(train(3, "parallel.threads=3", THREAD, NULL));
}

static void test_kernels(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    for (int i = 1; (k = ls_kernels_at(i)); i++) { /* 0: all other tests use these */
        assert_int_equal(setenv("LOCKSTEP_CPU", k->name, 1), 0);
        hashes h = train(2, THREAD, NULL, NULL);
        assert_int_equal(unsetenv("LOCKSTEP_CPU"), 0);
        same(h);
    }
}

static void test_executors(void **state) {
    (void)state;
    same(train(3, "parallel.executor=sequential", THREAD, NULL));
    same(train(5, "parallel.overlap=on", THREAD, NULL));
    same(train(5, "parallel.overlap=off", THREAD, NULL));
}

static void test_buckets(void **state) {
    (void)state;
    same(train(3, "parallel.bucket_mb=0.005", THREAD, NULL));
    same(train(2, "parallel.bucket_mb=0.02", "parallel.overlap=on", THREAD));
}

/* Not a power of two: other sums than with 8, but the same for any number of workers. */
static void test_odd_virtual_workers(void **state) {
    (void)state;
    static const char V[] = "train.virtual_workers=7", B[] = "train.batch=14";
    hashes one = train(1, V, B, THREAD);
    for (int n = 2; n <= 7; n++) assert_string_equal(train(n, V, B, THREAD).weights, one.weights);
}

/* Sums in an order that depends on the number of workers: hashes differ, so the tests above can
 * fail. */
static void test_can_fail(void **state) {
    (void)state;
    hashes one = train(1, "parallel.reduce=fastest", THREAD, NULL);
    hashes two = train(2, "parallel.reduce=fastest", THREAD, NULL);
    assert_string_not_equal(one.weights, two.weights);
    assert_string_not_equal(one.weights, expected.weights);
}

int main(void) {
    if (!all_cases()) {
        width_set = "model.width=12";
        steps_set = "train.steps=15";
        nsteps = 15;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_sharding),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_state_file),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_recompute),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_executors),
        cmocka_unit_test(test_buckets),
        cmocka_unit_test(test_odd_virtual_workers),
        cmocka_unit_test(test_can_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
