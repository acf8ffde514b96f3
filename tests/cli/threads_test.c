/* threads_test.c - a run divides the cores of a machine among its workers, says so in one line, and
 * has the bits of one worker with one thread. The machine is described to hwloc: its cores are not
 * there, so threads share those that are.
 */
#include "cli/program.h"

/* A run of two steps on a machine that is described so (NULL: on this one) must end with the exit
 * code and print `says`. */
static void train(const char *machine, const char *run, const char *options, int code,
                  const char *says) {
    if (machine) {
        setenv("HWLOC_SYNTHETIC", machine, 1);
        setenv("HWLOC_THISSYSTEM", "0", 1);
    }
    expectf(code, says,
            "train configs/tiny.yaml -o @/%s --resume --set train.steps=2 --set optim.warmup=0 "
            "--set train.eval_every=0 %s",
            run, options);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
}

static void assert_same(const char *a, const char *b) {
    char *x = output_of("ckpt hash @/%s", a), *y = output_of("ckpt hash @/%s", b);
    assert_string_equal(x, y);
    free(x), free(y);
}

#define AUTO "--set parallel.threads=auto"

static void test_line_and_bits(void **state) {
    (void)state;
    train(NULL, "one", "-n 1 --set parallel.threads=1", 0, NULL);
    train("package:2 numa:1 core:4 pu:1", "a", AUTO, 0, ": 8 workers x 1 thread = 8 cores\n");
    train("package:2 numa:1 core:4 pu:2", "b", "-n 2 " AUTO, 0,
          ": 2 workers x 4 threads = 8 cores\n");
    train("package:2 numa:1 core:4 pu:2", "c", "-n 3 " AUTO, 0,
          ": 3 workers x 2 threads = 6 of 8 cores\n");
    train(
        "package:1 core:12 pu:1", "d", "--set train.batch=48 " AUTO, 0,
        ": 8 workers x 1 thread = 8 of 12 cores; train.virtual_workers=12 would use them better\n");
    train("package:1 core:3 pu:1", "e", "-n 2 --set parallel.transport=thread " AUTO, 0,
          ": 2 workers x 1 thread = 2 of 3 cores\n");
    assert_same("one", "a");
    assert_same("one", "b");
    assert_same("one", "c");
    assert_same("one", "e");
}

/* The run's own config says auto: on another machine it has other threads, and the same bits. */
static void test_resumed(void **state) {
    (void)state;
    train("package:1 core:4 pu:1", "parts", "-n 2 --until 1 " AUTO, 75,
          ": 2 workers x 2 threads = 4 cores\n");
    shellf("grep -q 'threads: \"auto\"' %s/parts/config.yaml", folder);
    train("package:1 core:6 pu:1", "parts", "-n 2 " AUTO, 0, ": 2 workers x 3 threads = 6 cores\n");
    train(NULL, "whole", "-n 1", 0, NULL);
    assert_same("parts", "whole");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_line_and_bits),
                                       cmocka_unit_test(test_resumed)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
