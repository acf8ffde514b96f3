/* loop_test.c - a program that owns its loop (lockstep/train.h), and a lost worker: the others get
 * an error within a limit, and a start with `resume` ends with the bits of an undisturbed run. */
/* ctest: slow seconds=6 */
#include "cli/program.h"
#include "free_port.h"

/* Runs a line of a shell in the test's directory; returns its exit code. $w: the program,
 * loop_worker.c; $PORT: a free port. */
static int shell(const char *line) {
    char text[2048];
    snprintf(text, sizeof text,
             "cd %s && w=%s PORT=%d; export LOCKSTEP_KEY=0123456789abcdef0123456789abcdef "
             "LOCKSTEP_PLUGINS=$(dirname %s)/plugins; %s",
             folder, LOOP_WORKER, free_port(), LOCKSTEP_PROGRAM, line);
    int how = system(text);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void expect_shell(const char *line, int code) {
    int got = shell(line);
    if (got != code) fail_msg("%s\nexit code %d, expected %d", line, got, code);
}

/* The run in this directory has the weights of an undisturbed one. */
static void expect_same(const char *run) {
    char line[256];
    if (!file_exists("alone/weights")) expect_shell("mkdir alone && $w alone - -1 0", 0);
    snprintf(line, sizeof line, "cmp alone/weights %s/weights", run);
    expect_shell(line, 0);
}

static void skip_without(const char *mpirun) {
    char line[128];
    snprintf(line, sizeof line, "command -v %s >/dev/null", mpirun);
    if (shell(line)) skip_because("there is no %s", mpirun);
}

/* `lockstep run --restarts` starts all workers again: after a worker was killed, failed, or
 * hung. */
static void test_restarts(void **state) {
    (void)state;
    expect_shell(
        "mkdir killed && " LOCKSTEP_PROGRAM " run -n 3 --restarts 2 $w killed kill 1 8 2>log", 0);
    /* whichever worker's end is seen first */
    expect_shell("grep -Eq '(killed by signal 9|exit code 3).*; all workers start again [(]1 of 2 "
                 "times[)]' log",
                 0);
    expect_same("killed");
    expect_shell(
        "mkdir failed && " LOCKSTEP_PROGRAM " run -n 2 --restarts 1 $w failed exit 0 2 2>log", 0);
    expect_shell("grep -q 'exit code [34]; all workers start again (1 of 1 times)' log", 0);
    expect_same("failed");
    expect_shell("mkdir hung && " LOCKSTEP_PROGRAM " run -n 2 --restarts 1 $w hung hang 1 5 2>log",
                 0);
    expect_shell("grep -q 'worker 0: timed out: ' log", 0);
    expect_same("hung");
}

/* Without it the run ends, and the next start continues it with another number of workers. */
static void test_ends(void **state) {
    (void)state;
    int code = shell("mkdir ended && " LOCKSTEP_PROGRAM " run -n 3 $w ended kill 2 7 2>log");
    assert_true(code == 137 || code == 3); /* whichever worker's end is seen first */
    expect_shell("test -e ended/run/checkpoints/step-6 && ! test -e ended/weights", 0);
    expect_shell(LOCKSTEP_PROGRAM " run -n 2 $w ended - -1 0", 0);
    expect_same("ended");
}

#define AS_TORCHRUN(transport, what)                                                               \
    "export MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT WORLD_SIZE=3 LOCKSTEP_TRANSPORT=" transport    \
    "; pids=; for r in 0 1 2; do RANK=$r $w " what " & pids=\"$pids $!\"; done 2>log; codes=; "    \
    "for p in $pids; do wait $p; codes=\"$codes $?\"; done; test \"$codes\" = "

/* Nobody ends the others: each gets an error that names the lost worker. */
static void test_survivors(void **state) {
    (void)state;
    static const char *const transports[] = {"shm", "tcp"};
    char line[512];
    for (int i = 0; i < 2; i++) {
        const char *t = transports[i];
        snprintf(line, sizeof line, "mkdir %s && " AS_TORCHRUN("%s", "%s kill 1 8") "' 3 137 3'", t,
                 t, t);
        expect_shell(line, 0);
        snprintf(line, sizeof line,
                 "grep -q 'worker 1' %s/error.0 && grep -q 'worker 1' %s/error.2", t, t);
        expect_shell(line, 0);
        snprintf(line, sizeof line, AS_TORCHRUN("%s", "%s kill 1 8") "' 0 0 0'", t, t);
        expect_shell(line, 0);
        expect_same(t);
    }
}

/* mpirun ends the others, and the next one continues the run. */
static void lost_under(const char *mpirun, const char *run) {
    char line[512];
    snprintf(line, sizeof line,
             "mkdir %s && ! timeout 400 %s $w %s kill 1 8 >log 2>&1 && test -e %s/lost", run,
             mpirun, run, run);
    expect_shell(line, 0);
    snprintf(line, sizeof line, "timeout 400 %s $w %s kill 1 8", mpirun, run);
    expect_shell(line, 0);
    expect_same(run);
}

static void test_openmpi(void **state) {
    (void)state;
    skip_without("mpirun.openmpi");
    lost_under("mpirun.openmpi --allow-run-as-root --oversubscribe -n 3", "openmpi");
}

static void test_mpich(void **state) {
    (void)state;
    skip_without("mpirun.mpich");
    lost_under("mpirun.mpich -n 3", "mpich");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_restarts), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_survivors),
                                       cmocka_unit_test(test_openmpi),
                                       cmocka_unit_test(test_mpich)};
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
