/* first_process_test.c - the program as process 1 of a container: signals end it, and orphans are
 * reaped. */
#include <sched.h>
#include <sys/syscall.h>

#include "cli/program.h"

static int input; /* the other end of the program's standard input */

static pid_t fork_with(int flags) {
    return (pid_t)syscall(SYS_clone, (unsigned long)(flags | SIGCHLD), 0L, 0L, 0L, 0L);
}

/* Starts the program as process 1 of a namespace; pid -1: there are none here. */
static program start_first(const char *line) {
    char *argv[MAX_ARGS], text[4096];
    int in[2], out[2];
    split_line(line, argv, text, sizeof text);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    fflush(NULL);
    pid_t pid = fork_with(CLONE_NEWPID);
    if (pid < 0) pid = fork_with(CLONE_NEWUSER | CLONE_NEWPID);
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(out[1], 2);
        exec_program(argv);
    }
    close(in[0]);
    close(out[1]);
    input = in[1];
    return (program){pid, out[0]};
}

static void end_first(program *p, int code, const char *says) {
    program_expect(p, code, says);
    close(input);
}

/* Waits until the process has n children. */
static void await_children(pid_t parent, int n) {
    pid_t pids[8];
    for (int i = 0; i < PATIENCE_S * 100 && children_of(parent, pids, 8) != n; i++) sleep_ms(10);
    assert_int_equal(children_of(parent, pids, 8), n);
}

static const char TRAIN[] = "train configs/tiny.yaml -n 2 -o @/%s --set train.steps=%d " SMALLER;

/* A command without handlers, which waits for its input. */
static void test_signals(void **state) {
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    expectf(0, NULL, TRAIN, "run", 6);
    for (int i = 0; i < 3; i++) {
        program p = start_first("tokens @/run -");
        if (p.pid < 0) skip_because("process 1: no namespaces of processes");
        await_children(p.pid, 1);
        kill(p.pid, numbers[i]);
        end_first(&p, 128 + numbers[i], NULL);
    }
    program p = start_first("tokens @/run -");
    assert_int_equal(write(input, "a", 1), 1);
    close(input);
    program_expect(&p, 0, "a");
    p = start_first("tokens @/none");
    end_first(&p, 1, "none");
}

/* A run stops with a checkpoint, as it does elsewhere. */
static void test_stop(void **state) {
    (void)state;
    char line[256];
    snprintf(line, sizeof line, TRAIN, "cut", 400);
    pace("cut", 3);
    program p = start_first(line);
    if (p.pid < 0) skip_because("process 1: no namespaces of processes");
    wait_for_step("cut", 3);
    kill(p.pid, SIGTERM);
    end_first(&p, 75, "; continue with: ");
    let_go("cut");
    expect("ckpt verify @/cut", 0, "good: step");
}

static void test_orphans(void **state) {
    (void)state;
    char line[512], script[512];
    snprintf(script, sizeof script,
             "cd %s\n(sh -c 'touch orphan; until [ -e go ]; do sleep 0.01; done' &)\nread x\n",
             folder);
    write_text("script", script);
    snprintf(line, sizeof line, "run -n 1 sh @/script");
    program p = start_first(line);
    if (p.pid < 0) skip_because("process 1: no namespaces of processes");
    wait_for_file("orphan");
    await_children(p.pid, 2);
    write_text("go", "");
    await_children(p.pid, 1);
    assert_int_equal(write(input, "\n", 1), 1);
    end_first(&p, 0, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_signals, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_stop, folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(test_orphans, folder_make, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
