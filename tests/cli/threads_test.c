/* threads_test.c - a run divides the cores of a machine among its workers, says so in one line, and
 * has the bits of one worker with one thread. The machine is described to hwloc: its cores are not
 * there, so threads share those that are.
 */
#include <sched.h>

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

/* Returns what this test may use. */
static cpu_set_t need_first_two(void) {
    cpu_set_t all;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (!CPU_ISSET(0, &all) || !CPU_ISSET(1, &all))
        skip_because("this process may not use the first two processors");
    return all;
}

/* A process that may use one core only says that the machine has more. */
static void test_bound_by_others(void **state) {
    (void)state;
    cpu_set_t all = need_first_two(), one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    setenv("HWLOC_SYNTHETIC", "package:1 numa:1 core:2 pu:1",
           1); /* a processor is a core of its own */
    setenv("HWLOC_THISSYSTEM", "1", 1);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    expect(
        "train configs/tiny.yaml -n 1 -o @/alone --set train.steps=1 --set optim.warmup=0", 0,
        ": 1 worker x 1 thread = 1 core; the machine has 2, but this process is bound to these\n");
    expectf(0, "= 1 core; the machine has 2, but the launcher has bound the workers to these\n",
            "run -n 1 %s train configs/tiny.yaml -o @/launched --set train.steps=1 "
            "--set optim.warmup=0",
            LOCKSTEP_PROGRAM);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
}

/* Where the cores can't be divided equally, a launcher binds some workers to more than others: each
 * has as many threads as cores, and they are counted as they are. */
static void test_unequal(void **state) {
    (void)state;
    static const char part[] = "r=$LOCKSTEP_RANK; n=3; i=$((r * 3)),$((r * 3 + 1)),$((r * 3 + 2))\n"
                               "[ $r != 2 ] || { n=2; i=6,7; }\n"
                               "export HWLOC_SYNTHETIC=\"core:$n pu:1(indexes=$i)\"\n"
                               "export HWLOC_THISSYSTEM=0\nexec \"$@\"\n";
    char *path = ls_format("%s/part.sh", folder);
    ls_error e = {0};
    assert_ls_ok(ls_file_replace(path, part, sizeof part - 1, &e), e);
    free(path);
    expectf(0, ": 3 workers x 2 to 3 threads = 8 cores\n",
            "run -n 3 sh @/part.sh %s train configs/tiny.yaml -o @/unequal --set train.steps=2 "
            "--set optim.warmup=0 --set train.eval_every=0 " AUTO,
            LOCKSTEP_PROGRAM);
    train(NULL, "equal", "-n 1", 0, NULL);
    assert_same("unequal", "equal");
}

/* Threads that are bound, and memory that is placed, as on two NUMA nodes: hwloc takes the first
 * two hardware threads of this machine for their cores. */
static void test_bound(void **state) {
    (void)state;
    static const char *const ways[] = {"", "--set parallel.transport=thread",
                                       "--set parallel.zero=3 --set parallel.overlap=on"};
    need_first_two();
    setenv("HWLOC_SYNTHETIC", "package:2 numa:1 core:1 pu:1", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    for (int type = 0; type < 2; type++) {
        const char *compute = type ? "--set train.compute=bf16" : "";
        expectf(
            0, ": 1 worker x 1 thread = 1 of 2 cores\n",
            "train configs/tiny.yaml -n 1 -o @/one-%d --set train.steps=4 --set optim.warmup=0 %s",
            type, compute);
        for (int i = 0; i < 3; i++) {
            char run[32], one[32];
            snprintf(run, sizeof run, "bound-%d-%d", type, i);
            snprintf(one, sizeof one, "one-%d", type);
            for (int step = 2; step <= 4; step += 2) /* the second time the state is read */
                expectf(step == 4 ? 0 : 75, ": 2 workers x 1 thread = 2 cores\n",
                        "train configs/tiny.yaml -n 2 -o @/%s --resume --until %d "
                        "--set train.steps=4 --set optim.warmup=0 " AUTO " %s %s",
                        run, step, compute, ways[i]);
            assert_same(run, one);
        }
    }
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
}

/* A plan for cores that are described says that the speed is that of those here. */
static void test_plan(void **state) {
    (void)state;
    static const char says[] = "the cores are those that HWLOC_SYNTHETIC describes";
    setenv("HWLOC_SYNTHETIC", "package:1 core:4 pu:1", 1);
    expect("plan configs/tiny.yaml", 0, "; 4 workers, ");
    expect("plan configs/tiny.yaml", 0, says);
    unsetenv("HWLOC_SYNTHETIC");
    char *here = output_of("plan configs/tiny.yaml -n 1");
    assert_null(strstr(here, says));
    free(here);
}

/* Workers without a common step: one for each core, whose memory is that of its own threads. */
static void test_apart(void **state) {
    (void)state;
    setenv("HWLOC_SYNTHETIC", "package:2 core:56 pu:2", 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    char *one = output_of("plan configs/tiny.yaml --set sync.mode=async");
    char *all = output_of("plan configs/tiny.yaml --set sync.mode=async " AUTO);
    char *few = output_of("plan configs/tiny.yaml --set sync.mode=async -n 13 " AUTO);
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_THISSYSTEM");
    assert_non_null(strstr(all, " a worker; 112 need "));
    assert_int_equal(strcspn(one, "\n"), strcspn(all, "\n"));
    assert_int_equal(strncmp(one, all, strcspn(one, "\n")), 0);
    assert_non_null(strstr(few, " a worker; 13 need "));
    free(one), free(all), free(few);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_line_and_bits),
                                       cmocka_unit_test(test_resumed),
                                       cmocka_unit_test(test_bound_by_others),
                                       cmocka_unit_test(test_unequal),
                                       cmocka_unit_test(test_bound),
                                       cmocka_unit_test(test_plan),
                                       cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
