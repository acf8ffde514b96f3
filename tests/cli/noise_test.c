/* noise_test.c - train.noise_scale: the same figures for any layout, killed and resumed, and no
 * other bits; what is refused. */
/* ctest: busy seconds=60 */
/* ctest: long-asan: optim/noise runs the same code */
#include "cli/killed_at.h"

#define LINE(name, more)                                                                           \
    "train configs/tiny.yaml -o @/" name " --set train.steps=40 --set train.eval_every=0 "         \
    "--set checkpoint.every=20 --set survival.balance=off " SMALL_MODEL more
#define NOISE " --set train.noise_scale=true"

static char plain[256];

/* The lines of steps without what depends on workers and time. */
#define FIGURES                                                                                    \
    "sed '/\"started\"/d; s/.*\"loss\"/\"loss\"/; "                                                \
    "s/\"seconds\".*\"noise_scale\"/\"noise_scale\"/'"

static int make(void **state) {
    if (folder_make(state) != 0) return -1;
    expect(LINE("plain", "-n 1"), 0, NULL);
    hash_of("plain", plain);
    expect(LINE("one", "-n 1" NOISE), 0, "gradient noise scale at the end: ");
    shell_of_run("one", FIGURES " $m > figures && grep -c 'noise_scale_fit' $m | grep -qx 40 && "
                                "! grep -q noise plain/metrics.jsonl");
    return 0;
}

static void has_figures(const char *run) {
    assert_hash(run, plain);
    shell_of_run(run, FIGURES " $m | diff - figures");
}

static void test_layouts(void **state) {
    (void)state;
    expect(LINE("two", "-n 2 --set parallel.zero=2" NOISE), 0, "  noise ");
    has_figures("two");
    expect(LINE("three", "-n 3 --set train.micro_batch=2 --set parallel.bucket_mb=0.01" NOISE), 0,
           NULL);
    has_figures("three");
    expect(LINE("eight", "-n 8 --set parallel.zero=0 --set parallel.transport=tcp" NOISE), 0, NULL);
    has_figures("eight");
    expect(LINE("early", "-n 4 --set parallel.zero=3 --set parallel.accumulate=early" NOISE), 0,
           NULL);
    has_figures("early");
    expect(LINE("threads", "-n 2 --set parallel.transport=thread --set parallel.threads=2" NOISE),
           0, NULL);
    has_figures("threads");
    expect(LINE("sequential", "-n 3 --set parallel.executor=sequential" NOISE), 0, NULL);
    has_figures("sequential");
    shell_of_run("one", "cat $r/events.out.tfevents* | grep -qa train/noise_scale_fit");
}

/* Each rank of a pipeline measures its own buckets. */
static void test_pipelines(void **state) {
    (void)state;
#define PIPE(n) NOISE " --set parallel.mesh.pipe=" n " --set parallel.schedule="
    expect(LINE("pipe2", "-n 2" PIPE("2") "1f1b"), 0, "  noise ");
    has_figures("pipe2");
    expect(LINE("pipe3", "-n 3 --set parallel.bucket_mb=0.01" PIPE("3") "gpipe"), 0, NULL);
    has_figures("pipe3");
    expect(LINE("data", "-n 4 --set parallel.zero=2" PIPE(
                            "2") "interleaved"
                                 " --set parallel.chunks=2 --set parallel.transport=tcp"),
           0, NULL);
    has_figures("data");
    expect(LINE("split", "-n 3" PIPE("3") "zb-h1"), 0, NULL);
    has_figures("split");
    expect(LINE("v", "-n 2" PIPE("2") "zb-v --set parallel.chunks=2"), 0, NULL);
    has_figures("v");
    kill_worker_at_20(LINE("lost", "-n 4" PIPE("2") "1f1b"), "lost");
    has_figures("lost");
    kill_run_at_20(LINE("change", "-n 2" PIPE("2") "1f1b"), "change");
    expect("train --resume @/change -n 3 --set parallel.mesh.pipe=3", 0, NULL);
    has_figures("change");
}

static void test_killed(void **state) {
    (void)state;
    kill_worker_at_20(LINE("worker", "-n 3" NOISE), "worker");
    has_figures("worker");
    kill_run_at_20(LINE("run", "-n 2" NOISE), "run");
    expect("train --resume @/run -n 3", 0, "gradient noise scale at the end: ");
    has_figures("run");
    expect(LINE("backup", "-n 2 --set survival.backup_workers=2" NOISE), 0, NULL);
    has_figures("backup");
}

/* The noise scale may be switched on and off in the middle of a run. */
static void test_switched(void **state) {
    (void)state;
    expect(LINE("later", "-n 2 --set train.steps=20"), 0, NULL);
    expect("train --resume @/later -n 2 --set train.steps=30" NOISE, 0, "  noise ");
    shell_of_run("later", "grep -c 'noise_scale_fit' $m | grep -qx 10 && tail -2 $m | head -1 | "
                          "grep -q '\"steps\": 9}'");
}

static void test_refused(void **state) {
    (void)state;
#define REFUSED(what, key)                                                                         \
    expect_line("train configs/tiny.yaml -o @/none" NOISE " --set " what, 1,                       \
                "train.noise_scale: on does not go with " key)
    REFUSED("compress.kind=int8", "compress.kind");
    REFUSED("sync.mode=local", "sync.mode");
    REFUSED("sync.mode=async", "sync.mode");
    REFUSED("parallel.reduce=fastest", "parallel.reduce");
    REFUSED("train.virtual_workers=1", "train.virtual_workers");
}

static void test_plan(void **state) {
    (void)state;
    expect("plan configs/tiny.yaml -n 2 --actions" NOISE, 0,
           "Squares        bucket 0   vw 7  sum ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_pipelines),
        cmocka_unit_test(test_killed),  cmocka_unit_test(test_switched),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, make, folder_remove);
}
