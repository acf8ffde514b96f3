/* stack_test.c - with a stack of 256 kB every way to train works; a smaller limit is named. */
/* ctest: slow seconds=6 */
#include <sys/resource.h>

#include "cli/program.h"

#define SMALL "configs/tiny.yaml --set train.steps=4 --set train.eval_every=4 --set optim.warmup=1 "

/* Limits the stack of programs that are started from here on, in kilobytes; they may raise the
 * limit, or not. */
static void limit(int kb, bool may_raise) {
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_STACK, &r), 0);
    r.rlim_cur = (rlim_t)kb << 10;
    if (!may_raise) r.rlim_max = r.rlim_cur;
    assert_int_equal(setrlimit(RLIMIT_STACK, &r), 0);
}

static void test_small(void **state) {
    (void)state;
    static const char *const commands[] = {
        "train " SMALL "-n 2 -o @/supervised",
        "train " SMALL "-n 2 -o @/threads --set parallel.transport=thread",
        "train " SMALL "-n 2 -o @/async --set sync.mode=async",
        "train " SMALL "-n 2 -o @/ssp --set sync.mode=ssp",
        "train " SMALL "-n 4 -o @/pipe --set parallel.mesh.pipe=2",
        "train " SMALL "-n 2 -o @/coded --set compress.kind=int4 --set compress.block=64",
        "eval @/supervised",
        "generate @/supervised --prompt a --tokens 4",
        "plan configs/tiny.yaml -n 2 --machine configs/machines/p100.yaml",
        "plan configs/tiny.yaml -n 4 --mesh auto --machine configs/machines/p100.yaml",
        "check configs/tiny.yaml --set model.layers=1"};
    limit(256, true);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) expect(commands[i], 0, NULL);
}

static void test_too_small(void **state) {
    (void)state;
    limit(100, true);
    expect("ckpt list @/supervised", 0, "supervised/checkpoints/step-4");
    limit(100, false); /* for the rest of this program */
    expect_line("ckpt list @/supervised", 1,
                "the stack is limited to 100 kB, and 256 are needed; it is a hard limit");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small),
                                       cmocka_unit_test(test_too_small)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
