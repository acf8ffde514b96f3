/* launched_test.c - training by workers that other programs start: real mpiruns, `lockstep run`,
 * and RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The same bits as from one worker. */
/* ctest: slow seconds=12 */
#include "cli/program.h"
#include "free_port.h"

#define TRAIN LOCKSTEP_PROGRAM " train configs/tiny.yaml --set train.steps=14 -o "

/* Runs a shell command, with "@" for the test's directory and $PORT for a free port; returns its
 * exit code, and its output (free() it). */
static int shell(const char *line, char **output_p) {
    char text[2048], port[16], *output = calloc(1, MAX_OUTPUT + 1);
    snprintf(port, sizeof port, "%d", free_port());
    setenv("PORT", port, 1);
    size_t n = 0;
    for (const char *s = line; *s && n + 64 < sizeof text; s++) {
        if (*s == '@')
            n += (size_t)snprintf(text + n, sizeof text - n, "%s", folder);
        else
            text[n++] = *s;
    }
    text[n] = 0;
    FILE *f = popen(text, "r");
    assert_non_null(f);
    size_t got = fread(output, 1, MAX_OUTPUT, f);
    output[got] = 0;
    int how = pclose(f);
    *output_p = output;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void expect_shell(const char *line, bool good, const char *says) {
    char *output = NULL;
    int code = shell(line, &output);
    if ((code == 0) != good || (says && !strstr(output, says))) {
        print_error("%s\nexit code %d; output:\n%s\nexpected: %s\n", line, code, output,
                    says ? says : "(anything)");
        fail();
    }
    free(output);
}

static void skip_without(const char *mpirun) {
    char line[128], *output = NULL;
    snprintf(line, sizeof line, "command -v %s", mpirun);
    int code = shell(line, &output);
    free(output);
    if (code) skip_because("there is no %s", mpirun);
}

/* Trains with `launcher` in front, and compares with the run `one`. */
static void same_bits_as(const char *one, const char *launcher, const char *run, const char *sets) {
    char line[1024];
    snprintf(line, sizeof line, "timeout 400 %s " TRAIN "@/%s %s 2>&1", launcher, run, sets);
    expect_shell(line, true, "validation loss");
    same_hash(one, run);
}

static void same_bits(const char *launcher, const char *run, const char *sets) {
    if (!file_exists("one")) expect_shell(TRAIN "@/one -n 1 2>&1", true, NULL);
    same_bits_as("one", launcher, run, sets);
}

#define OPENMPI "mpirun.openmpi --allow-run-as-root --oversubscribe -n 3"

static void test_openmpi(void **state) {
    (void)state;
    skip_without("mpirun.openmpi");
    same_bits(OPENMPI, "openmpi", "");
    same_bits(OPENMPI, "openmpi-messages", "--set parallel.transport=mpi");
}

static void test_mpich(void **state) {
    (void)state;
    skip_without("mpirun.mpich");
    same_bits("mpirun.mpich -n 4", "mpich", "");
    same_bits("mpirun.mpich -n 2", "mpich-messages", "--set parallel.transport=mpi");
    same_bits("mpirun.mpich -n 4", "mpich-groups",
              "--set parallel.transport=mpi --set parallel.zero=3 --set parallel.shard_group=2");
}

static void test_lockstep_run(void **state) {
    (void)state;
    same_bits(LOCKSTEP_PROGRAM " run -n 3", "run", "");
}

/* Frozen parameters: of the run's file in f32; in 16 bits one copy in shared memory, or one
 * each. */
static void test_frozen(void **state) {
    (void)state;
    static const char F32[] = "--set 'train.freeze=[wte.*, h.0.*]'";
    static const char BF16[] = "--set 'train.freeze=[wte.*, h.0.*]' --set train.compute=bf16";
    static const char MPI[] = "--set 'train.freeze=[wte.*, h.0.*]' --set train.compute=bf16 "
                              "--set parallel.transport=mpi";
    char line[512];
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, TRAIN "@/frozen-%d -n 1 %s 2>&1", i, i ? BF16 : F32);
        expect_shell(line, true, NULL);
    }
    same_bits_as("frozen-0", LOCKSTEP_PROGRAM " run -n 3", "frozen-run", F32);
    same_bits_as("frozen-1", LOCKSTEP_PROGRAM " run -n 2", "frozen-half", BF16);
    skip_without("mpirun.mpich");
    same_bits_as("frozen-1", "mpirun.mpich -n 2", "frozen-mpich", MPI);
}

/* As torchrun sets it; a shell starts three workers, and fails if one of them does. */
#define AS_TORCHRUN(tail)                                                                          \
    "export MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT WORLD_SIZE=3 "                                 \
    "LOCKSTEP_KEY=0123456789abcdef0123456789abcdef; "                                              \
    "fail=0; for r in 0 1 2; do RANK=$r timeout 400 " TRAIN tail                                   \
    " 2>&1 & pids=\"$pids $!\"; done; for p in $pids; do wait $p || fail=1; done; exit $fail"

static void test_torchrun(void **state) {
    (void)state;
    char want[256];
    if (!file_exists("one")) expect_shell(TRAIN "@/one -n 1 2>&1", true, NULL);
    expect_shell(AS_TORCHRUN("@/torchrun"), true, "validation loss");
    hash_of("one", want);
    assert_hash("torchrun", want);
    expect_shell(AS_TORCHRUN("@/torchrun-tcp --set parallel.transport=tcp"), true, NULL);
    assert_hash("torchrun-tcp", want);
}

/* An error that every worker detects is reported once, and ends all workers. */
static void test_wrong(void **state) {
    (void)state;
    char *output = NULL;
    if (!file_exists("one")) expect_shell(TRAIN "@/one -n 1 2>&1", true, NULL);
    assert_int_not_equal(shell(AS_TORCHRUN("@/one"), &output), 0);
    assert_int_equal(occurrences(output, "exists already; continue it with --resume"), 1);
    assert_int_equal(occurrences(output, "lockstep:"), 1);
    free(output);
    expect_shell(AS_TORCHRUN("@/never -n 2"), false, "the launcher has started 3 workers");
    expect_shell(AS_TORCHRUN("@/never --set parallel.transport=thread"), false,
                 "started; leave it out");
    expect_shell(AS_TORCHRUN("@/other --set train.seed=$((r/2))"), false,
                 "worker 2 has train.seed 1, worker 0 has 0; these must match");
    expect_shell(AS_TORCHRUN("@/other --set train.sample_file=$([ $r = 0 ] && echo LICENSE)"),
                 false,
                 "worker 1 has train.sample_file none, worker 0 has a file; these must match");
    assert_false(file_exists("other/metrics.jsonl"));
    expect_shell("WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT " TRAIN "@/never 2>&1",
                 false, "WORLD_SIZE is '2' but RANK is not set");
    assert_false(file_exists("never"));
}

/* The error is reported once and ends all workers. MPICH's mpirun sometimes dies of SIGPIPE and
 * loses the workers' output: then the command is repeated. */
static void once(const char *launcher, const char *command, const char *says) {
    char line[1024], *output = NULL;
    int code = 0;
    snprintf(line, sizeof line, "timeout 400 %s %s 2>&1", launcher, command);
    for (int i = 0; i < 3; i++) {
        free(output);
        code = shell(line, &output);
        if (strstr(output, "lockstep:")) break;
    }
    if (code == 0 ||
        occurrences(output, "lockstep: ") - occurrences(output, "ended with exit code") != 1 ||
        occurrences(output, says) != 1)
        fail_msg("%s\nexit code %d; output:\n%s\nexpected once: %s", line, code, output, says);
    free(output);
}

/* An error before the workers have met is reported once: by the first worker, or by the only one
 * that has it. */
static void wrong_once(const char *launcher) {
    static const char script[] =
        "#!/bin/sh\nr=$LOCKSTEP_RANK$OMPI_COMM_WORLD_RANK$PMI_RANK\n[ $r != 2 ] || "
        "set -- --set optim.lrr=3\nexec " LOCKSTEP_PROGRAM " train configs/tiny.yaml \"$@\"\n";
    char command[256];
    write_file("one-wrong.sh", script, sizeof script - 1);
    snprintf(command, sizeof command, "sh %s/one-wrong.sh -o %s/never", folder, folder);
    once(launcher, LOCKSTEP_PROGRAM " train no-such.yaml", "no-such.yaml: can't be");
    once(launcher, LOCKSTEP_PROGRAM " train configs/tiny.yaml --bogus", "--bogus");
    once(launcher, LOCKSTEP_PROGRAM " train configs/tiny.yaml -n 7", "leave out -n");
    once(launcher, command, "unknown key 'optim.lrr'");
    assert_false(file_exists("never"));
}

static void test_wrong_once_openmpi(void **state) {
    (void)state;
    skip_without("mpirun.openmpi");
    wrong_once(OPENMPI);
}

static void test_wrong_once_mpich(void **state) {
    (void)state;
    skip_without("mpirun.mpich");
    wrong_once("mpirun.mpich -n 3");
}

static void test_wrong_once_lockstep_run(void **state) {
    (void)state;
    wrong_once(LOCKSTEP_PROGRAM " run -n 3");
}

/* One worker is stopped: the others give it up and exit, and mpirun ends it. */
static void stopped(const char *launcher, const char *run) {
    char line[1024], *output = NULL;
    static const char script[] =
        "#!/bin/sh\nr=$OMPI_COMM_WORLD_RANK$PMI_RANK\n[ $r != 1 ] || { until [ -s $1/metrics.jsonl "
        "]; "
        "do sleep 0.1; done; kill -STOP $$; } &\nexec " LOCKSTEP_PROGRAM
        " train configs/tiny.yaml -o $1 --set train.steps=1000000 --set parallel.timeout_s=1\n";
    write_file("stopped.sh", script, sizeof script - 1);
    snprintf(line, sizeof line, "timeout 200 %s sh %s/stopped.sh %s/%s 2>&1", launcher, folder,
             folder, run);
    int code = shell(line, &output);
    if (code == 0 || code == 124 || !strstr(output, " for worker 1 (pid "))
        fail_msg("%s: exit code %d; output:\n%s", launcher, code, output);
    free(output);
}

static void test_stopped_openmpi(void **state) {
    (void)state;
    skip_without("mpirun.openmpi");
    stopped(OPENMPI, "stopped-openmpi");
}

static void test_stopped_mpich(void **state) {
    (void)state;
    skip_without("mpirun.mpich");
    stopped("mpirun.mpich -n 3", "stopped-mpich");
}

/* One worker is killed: the others name the lost worker and exit. */
static void test_killed(void **state) {
    (void)state;
    char *output = NULL;
    int code = shell("export MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT WORLD_SIZE=3 "
                     "LOCKSTEP_KEY=0123456789abcdef0123456789abcdef; for r in 0 1 2; do RANK=$r "
                     "timeout 400 " LOCKSTEP_PROGRAM " train configs/tiny.yaml -o @/killed --set "
                     "train.steps=1000000 --set parallel.transport=tcp --set log.every=100000 "
                     "2>&1 & pids=\"$pids $!\"; done; "
                     "while [ ! -s @/killed/metrics.jsonl ]; do sleep 0.1; done; "
                     "victim=$(pgrep -P ${pids##* }); kill -9 $victim; "
                     "fail=0; for p in $pids; do wait $p || fail=1; done; exit $fail",
                     &output);
    assert_int_equal(code, 1);
    assert_non_null(strstr(output, "worker 2"));
    free(output);
}

/* ---- stopped, and started again with the same line ---- */

/* A learning rate that is independent of train.steps, so that a long run begins with the steps of a
 * short one. $more: further options. */
#define REQUEUED                                                                                   \
    LOCKSTEP_PROGRAM " train configs/tiny.yaml --resume --set optim.min_lr=3e-3 "                  \
                     "--set optim.warmup=0 --set log.every=100000 --set train.eval_every=0 "       \
                     "--set checkpoint.every=0 --set train.steps=$steps $more -o @/$run 2>&1 & "   \
                     "pids=\"$pids $!\"; "

/* Runs `launch` in a shell and, once it trains, signals `target` (words of `kill`), if given.
 * Returns the output, which ends with the exit codes. */
static char *launched(const char *launch, const char *run, int steps, const char *target) {
    static const char trains[] = "until [ -s @/$run/metrics.jsonl ]; do sleep 0.1; done; kill ";
    static const char codes[] = "for p in $pids; do wait $p; codes=\"$codes $?\"; done; "
                                "echo \"codes:$codes.\"";
    char line[2048], *output = NULL;
    snprintf(line, sizeof line, "run=%s steps=%d pids=; %s %s%s; %s", run, steps, launch,
             target ? trains : "true", target ? target : "", codes);
    assert_int_equal(shell(line, &output), 0);
    return output;
}

/* Stopped by a signal, all exit with 75, and the same command continues, to the bits of an
 * undisturbed run. */
static void requeued(const char *launch, const char *run, const char *target, int nprograms,
                     bool may_lose) {
    char want[256], got[256], alone[64], stopped[64] = "codes:", done[64] = "codes:";
    for (int i = 0; i < nprograms; i++) {
        strcat(stopped, " 75");
        strcat(done, " 0");
    }
    char *output = launched(launch, run, 1000000, target);
    int steps = 0;
    assert_output_has(output, "does not exist yet; a new run begins there");
    if (!may_lose || !strstr(output, "codes: 0.")) assert_output_has(output, strcat(stopped, "."));
    const char *line = strstr(output, "stopped after step ");
    if (!line || sscanf(line, "stopped after step %d of 1000000", &steps) != 1)
        fail_msg("%s", output);
    free(output);
    output = launched(launch, run, steps + 5, NULL);
    assert_output_has(output, "continuing from");
    assert_output_has(output, strcat(done, "."));
    free(output);
    snprintf(alone, sizeof alone, "%s-alone", run);
    free(launched(REQUEUED, alone, steps + 5, NULL));
    hash_of(alone, want);
    hash_of(run, got);
    assert_string_equal(want, got);
}

/* SIGTERM makes Open MPI's mpirun end all workers within a second and exit with 1; it forwards
 * SIGUSR1. */
static void test_requeue_openmpi(void **state) {
    (void)state;
    skip_without("mpirun.openmpi");
    requeued(OPENMPI " " REQUEUED, "re-openmpi", "-USR1 $!", 1, false);
}

/* A worker is killed in the middle of training: the others log the loss and end, and the next start
 * continues from the newest checkpoint. mpirun ends the others within two seconds, so it is stopped
 * until they have logged. */
static void test_lost_openmpi(void **state) {
    (void)state;
    static const char script[] = "d=$1; shift; echo $$ >$d/pid.$OMPI_COMM_WORLD_RANK\n"
                                 "exec \"$@\" 2>>$d/lost.errors\n";
    static const char lose[] =
        "until [ -e @/$run/checkpoints/latest ]; do sleep 0.1; done; kill -STOP $!; "
        "kill -KILL $(cat @/pid.1); for i in $(seq 600); do grep -q 'worker 1 (pid .*) is gone' "
        "@/lost.errors && break; sleep 0.1; done; kill -CONT $!; wait $!; code=$?; "
        "while kill -0 $(cat @/pid.0) || kill -0 $(cat @/pid.2); do sleep 0.1; done 2>/dev/null; "
        "[ $i -lt 600 ] && [ $code != 0 ] && echo && readlink @/$run/checkpoints/latest; pids=;";
    char launch[1600];
    int newest = 0;
    skip_without("mpirun.openmpi");
    write_file("ranked.sh", script, sizeof script - 1);
    snprintf(launch, sizeof launch, "more='--set checkpoint.every=5'; %s %s sh @/ranked.sh @ %s%s",
             OPENMPI, "--mca odls_base_sigkill_timeout 0", REQUEUED, lose);
    char *output = launched(launch, "lost", 1000000, NULL);
    const char *line = strstr(output, "\nstep-");
    if (!line || sscanf(line, "\nstep-%d\n", &newest) != 1) fail_msg("%s", output);
    free(output);
    output = launched(REQUEUED, "lost", newest + 5, NULL);
    assert_output_has(output, "continuing from");
    assert_output_has(output, "codes: 0.");
    free(output);
    free(launched(REQUEUED, "lost-alone", newest + 5, NULL));
    same_hash("lost-alone", "lost");
}

/* MPICH's mpirun sometimes exits with 0, whatever exit codes its programs have. */
static void test_requeue_mpich(void **state) {
    (void)state;
    skip_without("mpirun.mpich");
    requeued("mpirun.mpich -n 3 " REQUEUED, "re-mpich", "-TERM $!", 1, true);
}

static void test_requeue_lockstep_run(void **state) {
    (void)state;
    requeued(LOCKSTEP_PROGRAM " run -n 3 " REQUEUED, "re-run", "-TERM $!", 1, false);
    requeued(LOCKSTEP_PROGRAM " run -n 2 " REQUEUED, "re-run-usr1", "-USR1 $!", 1, false);
}

static void test_requeue_supervised(void **state) {
    (void)state;
    requeued(REQUEUED, "re-plain", "-TERM $!", 1, false);
    requeued(REQUEUED, "re-plain-usr1", "-USR1 $!", 1, false);
}

/* One worker gets the signal, and informs the others. */
static void test_requeue_torchrun(void **state) {
    (void)state;
    requeued("export MASTER_ADDR=127.0.0.1 MASTER_PORT=$PORT WORLD_SIZE=3 "
             "LOCKSTEP_KEY=0123456789abcdef0123456789abcdef; for RANK in 0 1 2; do export "
             "RANK; " REQUEUED "done;",
             "re-torchrun", "-TERM $!", 3, false);
}

/* With srun's variables, and a signal to all. */
static void test_requeue_srun(void **state) {
    (void)state;
    requeued("export SLURM_JOB_ID=$PORT SLURM_STEP_ID=0 SLURM_NTASKS=3 SLURM_STEP_NUM_TASKS=3 "
             "SLURM_NODEID=0 SLURM_STEP_NODELIST=localhost SLURM_STEP_TASKS_PER_NODE=3 "
             "LOCKSTEP_KEY=0123456789abcdef0123456789abcdef; for SLURM_PROCID in 0 1 2; do "
             "export SLURM_PROCID SLURM_LOCALID=$SLURM_PROCID; " REQUEUED "done;",
             "re-srun", "-TERM $pids", 3, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmpi),
        cmocka_unit_test(test_mpich),
        cmocka_unit_test(test_lockstep_run),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_torchrun),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_wrong_once_openmpi),
        slow_unit_test(test_wrong_once_mpich),
        cmocka_unit_test(test_wrong_once_lockstep_run),
        cmocka_unit_test(test_stopped_openmpi),
        cmocka_unit_test(test_stopped_mpich),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_requeue_openmpi),
        cmocka_unit_test(test_lost_openmpi),
        slow_unit_test(test_requeue_mpich),
        cmocka_unit_test(test_requeue_lockstep_run),
        cmocka_unit_test(test_requeue_supervised),
        cmocka_unit_test(test_requeue_torchrun),
        cmocka_unit_test(test_requeue_srun),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
