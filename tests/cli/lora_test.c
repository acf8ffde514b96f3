/* lora_test.c - a run with adapters whose workers are killed has the bits of an undisturbed one. */
/* ctest: busy seconds=8 */
/* ctest: long-asan: train/lora and cli/resume run the same code */
#include "cli/hosts.h"

#define STEPS "60"

static const char LINE[] =
    "train configs/tiny.yaml -n %d -o @/%s --set train.steps=" STEPS " " SMALLER
    "--set model.kind=llama --set model.heads=2 --set checkpoint.every=20 --set log.every=1000 "
    "--set train.eval_every=0 --set survival.balance=off --set lora.rank=4 --set lora.dora=on "
    "--set lora.targets=all-linear --set lora.dropout=0.1 --set lora.train=embed_tokens %s";

static host start(int workers, const char *run, const char *more) {
    return host_start(LINE, workers, run, more);
}

static void killed(const char *run, int workers, const char *more) {
    pace(run, 25);
    host h = start(workers, run, more);
    await_step(run, 25, &h);
    host_kill_children(&h, 2);
    let_go(run);
    host_expect(&h, 0, "was killed");
    same_hash("whole", run);
}

static void test_killed(void **state) {
    (void)state;
    host h = start(1, "whole", "");
    host_expect(&h, 0, NULL);
    killed("killed-3", 3, "--set parallel.zero=3");
    killed("killed-2", 2, "--set parallel.transport=tcp --set train.micro_batch=2");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_killed)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
