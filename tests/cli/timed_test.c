/* timed_test.c - checkpoints by time (checkpoint.minutes): the same bits in every way in which
 * workers run, the newest two beside the best, a run that is killed without checkpoint.every, and a
 * disk that has no room for them. */
/* ctest: busy seconds=8 */
/* ctest: long-asan: cli/checkpoint runs the same code */
#include "cli/program.h"

#define LINE                                                                                       \
    "train configs/tiny.yaml --set train.steps=30 --set train.eval_every=10 --set log.every=1000 " \
    "--set survival.balance=off " SMALLER
#define OFTEN "--set checkpoint.minutes=0.0002 "

static char here[256]; /* the working directory */

static int checkpoints_of(const char *run) {
    int n = 0;
    for (int step = 1; step <= 30; step++) {
        char path[128];
        snprintf(path, sizeof path, "%s/checkpoints/step-%d", run, step);
        n += file_exists(path);
    }
    return n;
}

static void test_bits(void **state) {
    (void)state;
    static const char *const ways[] = {
        "-n 1 ",
        "-n 3 --set parallel.zero=3 ",
        "-n 2 --set parallel.transport=thread ",
        "-n 2 --set parallel.transport=tcp ",
        "-n 2 --set parallel.executor=sequential ",
    };
    char want[256], line[1024], name[16];
    expect(LINE "-n 2 -o @/plain", 0, NULL);
    assert_int_equal(checkpoints_of("plain"), 1); /* ten minutes have not passed */
    assert_false(file_exists("plain/checkpoints/best"));
    hash_of("plain", want);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(name, sizeof name, "way-%zu", i);
        expectf(0, NULL, LINE OFTEN "%s-o @/%s", ways[i], name);
        assert_hash(name, want);
        int n = checkpoints_of(name);
        if (n != 2 && n != 3) fail_msg("%s: %d checkpoints", name, n);
        snprintf(line, sizeof line, "%s/checkpoints/step-30", name);
        assert_true(file_exists(line));
    }
}

/* Where workers write checkpoints themselves, each evaluation with a new lowest loss has one. */
static void test_best(void **state) {
    (void)state;
    expect(LINE OFTEN "-n 2 -o @/best --set parallel.transport=thread", 0, NULL);
    shell_of_run("best",
                 "l=$(sed -n 's/.*\"step\": \\([0-9]*\\), \"val_loss\": \\([0-9.]*\\).*/\\2 \\1/p' "
                 "$m | grep -v ' 30$' | sort -g | head -1) && "
                 "[ step-${l#* } = $(readlink $r/checkpoints/best) ]");
    expect(LINE OFTEN "-n 2 -o @/off --set checkpoint.best=off --set parallel.transport=thread", 0,
           NULL);
    assert_false(file_exists("off/checkpoints/best"));
    assert_int_equal(checkpoints_of("off"), 2);
}

static void test_killed(void **state) {
    (void)state;
    hold_after("killed", 15);
    program p = program_start(LINE OFTEN "-n 2 -o @/killed", 0);
    wait_for_file("killed/checkpoints/latest");
    kill_paced(&p, "killed");
    expect("train --resume @/killed -n 3", 0, "continuing from");
    same_hash("plain", "killed");
    expect("ckpt ledger @/killed", 0, ": clean: 30 steps");
}

/* ---- room ---- */

/* Trains in a file system of 250 KB, in which a checkpoint takes 130 at most. */
static void in_room(const char *more, const char *says) {
    char line[1024];
    snprintf(line, sizeof line,
             "export r && unshare -m sh -c 'mkdir -p $r/mnt && mount -t tmpfs -o size=250k none "
             "$r/mnt && cd %s && %s %s -n 2 -o $r/mnt/run --set train.steps=30 --set "
             "train.eval_every=10 " SMALLER "%s >$r/out 2>&1; echo code $? >>$r/out; ls "
             "$r/mnt/run/checkpoints >>$r/out 2>&1'; grep -q \"%s\" $r/out",
             here, LOCKSTEP_PROGRAM, "train configs/tiny.yaml", more, says);
    shell_of_run("room", line);
}

static void test_room(void **state) {
    (void)state;
    char try[128];
    shell_of_run("", "mkdir -p room/mnt");
    snprintf(try, sizeof try, "unshare -m mount -t tmpfs none %s/room/mnt", folder);
    if (geteuid() != 0 || system(try) != 0) skip_because("no file system can be mounted here");
    assert_non_null(getcwd(here, sizeof here));
    in_room("", "^step-30$");
    in_room("--set checkpoint.every=15", "and 2 checkpoints, which are there at one time");
    in_room("--set checkpoint.every=10", "and 3 checkpoints, which are there at one time");
    in_room(OFTEN, "and 3 checkpoints, which are there at one time");
    in_room("--set checkpoint.best=on", "and 2 checkpoints, which are there at one time");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
