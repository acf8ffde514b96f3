/* own_launched_test.c - a program with a model and data of its own (examples/tabular.c) under
 * mpirun, as torchrun starts workers, and on several hosts: the bits of one worker, also where a
 * worker is killed. scripts/check_hosts.sh and check_slurm.sh try it between real hosts and under
 * srun. */
/* ctest: slow seconds=8 */
#undef LOCKSTEP_PROGRAM
#define LOCKSTEP_PROGRAM EXAMPLE_TABULAR
#include "cli/hosts.h"

static const char config[] = "train: {steps: 40, batch: 24, virtual_workers: 6, eval_every: 20}\n"
                             "optim: {warmup: 5, lr: 0.01}\n"
                             "checkpoint: {every: 5}\n"
                             "log: {every: 1}\n";

static int make(void **state) {
    if (folder_make(state)) return -1;
    setenv("LOCKSTEP_KEY", "0123456789abcdef0123456789abcdef", 1);
    write_file("table.yaml", config, strlen(config));
    expect("train @/table.yaml -n 1 -o @/alone", 0, NULL);
    return 0;
}

static void expect_right(const char *run) { same_hash("alone", run); }

/* Runs a line of a shell, in which $T is the program, $D the test's directory, $P a free port, and
 * $slow what a paced run begins with. */
static int shell(const char *line) {
    char text[2048];
    snprintf(text, sizeof text,
             "T=%s D=%s P=%d slow='env LD_PRELOAD=%s'; export LOCKSTEP_PLUGINS=$(dirname "
             "%s)/plugins; (%s) >$D/log 2>&1",
             EXAMPLE_TABULAR, folder, free_port(), LOCKSTEP_FAULTS_LIBRARY, LOCKSTEP, line);
    int how = system(text);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void expect_shell(const char *line, bool good) {
    if ((shell(line) == 0) == good) return;
    (void)!shell("cat $D/log >&2");
    fail_msg("%s", line);
}

#define OPENMPI "timeout 400 mpirun.openmpi --allow-run-as-root --oversubscribe "
#define TRAIN   "$T train $D/table.yaml -o $D/"
#define KILL                                                                                       \
    "until [ $(cat $D/$run/metrics.jsonl | wc -l) -ge 10 ]; do sleep 0.05; done 2>/dev/null; "     \
    "kill -9 $(pgrep -f \"^$T train .* -o $D/$run\" | tail -n 1); "

/* mpirun ends the others with a worker that is killed. The run continues from its checkpoint, with
 * workers of another launcher. */
static void test_openmpi(void **state) {
    (void)state;
    if (shell("command -v mpirun.openmpi")) skip_because("there is no %s", "mpirun.openmpi");
    expect_shell(OPENMPI "-n 3 " TRAIN "openmpi", true);
    expect_right("openmpi");
    pace("lost", 12);
    expect_shell("run=lost; " OPENMPI "-n 3 $slow " TRAIN "lost & " KILL "wait $!", false);
    let_go("lost");
    expect_shell("export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$P; for r in 0 1; do "
                 "RANK=$r " TRAIN "lost --resume & pids=\"$pids $!\"; done; "
                 "for p in $pids; do wait $p || exit 1; done; grep -q 'continuing from' $D/log",
                 true);
    expect_right("lost");
}

static void test_mpich(void **state) {
    (void)state;
    if (shell("command -v mpirun.mpich")) skip_because("there is no %s", "mpirun.mpich");
    expect_shell("timeout 400 mpirun.mpich -n 2 " TRAIN "mpich --set parallel.transport=mpi", true);
    expect_right("mpich");
}

/* `lockstep run --restarts` starts all workers again after one was killed. */
static void test_restarts(void **state) {
    (void)state;
    pace("again", 12);
    expect_shell(
        "run=again; $(dirname $LOCKSTEP_PLUGINS)/lockstep run -n 2 --restarts 1 $slow " TRAIN
        "again --resume & " KILL "rm $D/again.pace; wait $! && "
        "grep -q 'all workers start again' $D/log",
        true);
    expect_right("again");
}

/* Two hosts with two workers each; one of the workers is killed and replaced. */
static void test_hosts(void **state) {
    (void)state;
    int port = free_port();
    pace("hosts", 10);
    host a = host_start("train @/table.yaml -n 2 -o @/hosts --listen 127.0.0.1:%d --hosts 2", port);
    host b = host_start("train @/table.yaml -n 2 -o @/hosts --join 127.0.0.1:%d", port);
    await_step("hosts", 10, &a);
    assert_true(host_signal_child(&b, SIGKILL));
    let_go("hosts");
    host_expect(&a, 0, "with 4 workers on 2 hosts");
    host_expect(&b, 0, "the run has ended");
    check_run("alone", "hosts", &a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_openmpi), cmocka_unit_test(test_mpich),
                                       cmocka_unit_test(test_restarts),
                                       cmocka_unit_test(test_hosts)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
