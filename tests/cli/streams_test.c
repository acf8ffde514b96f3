/* streams_test.c - output without a reader or that can't be written: training continues, saves, and
 * ends with its proper exit code; a command whose product is its output fails at once.
 */
/* ctest: slow seconds=8 */
#include <pty.h>

#include "cli/program.h"

enum { STEPS = 60 };
static char whole[256]; /* `ckpt hash` of an undisturbed run */

static const char TRAIN[] = "train configs/tiny.yaml -n 2 -o @/%s --set train.steps=%d " SMALLER
                            "--set checkpoint.every=20 --set log.every=1 "
                            "--set survival.balance=off %s";

/* Executes the program, with the pipe's end `out` as output and error; -1: unchanged. */
static _Noreturn void become(const char *line, int out) {
    char *argv[MAX_ARGS], text[4096];
    split_line(line, argv, text, sizeof text);
    if (out >= 0) {
        dup2(out, 1);
        dup2(out, 2);
    }
    exec_program(argv);
}

static int exit_code(pid_t pid) {
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static void same_bits(const char *run) { assert_hash(run, whole); }

static int make_whole(void **state) {
    if (folder_make(state) != 0) return -1;
    expectf(0, "validation loss", TRAIN, "whole", STEPS, "");
    hash_of("whole", whole);
    return 0;
}

/* `2>&1 | head -4`, with each kind of workers. */
static void test_reader_gone(void **state) {
    (void)state;
    static const struct {
        const char *run, *before, *more;
    } kinds[] = {{"gone", "", ""},
                 {"gone-threads", "", "--set parallel.transport=thread"},
                 {"gone-launched", "run -n 2 " LOCKSTEP_PROGRAM " ", ""}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char train[512], text[64], *output = NULL;
        snprintf(train, sizeof train, TRAIN, kinds[i].run, STEPS, kinds[i].more);
        if (*kinds[i].before) memmove(strstr(train, "-n 2"), "    ", 4);
        program p = startf("%s%s", kinds[i].before, train);
        assert_true(read(p.out, text, sizeof text) > 0);
        close(p.out);
        p.out = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_int_equal(program_end(&p, &output), 0);
        free(output);
        same_bits(kinds[i].run);
    }
}

/* Ctrl-C with `2>&1 | tee log`: both get the signal, and tee has ended when a worker next
 * writes. */
static void test_interrupt_with_tee(void **state) {
    (void)state;
    char line[512];
    int pipes[2];
    pace("tee", 30);
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    snprintf(line, sizeof line, TRAIN, "tee", STEPS, "");
    pid_t train = fork();
    if (train == 0) {
        setpgid(0, 0);
        become(line, pipes[1]);
    }
    setpgid(train, train);
    pid_t tee = fork();
    if (tee == 0) {
        setpgid(0, train);
        dup2(pipes[0], 0);
        dup2(open("/dev/null", O_WRONLY), 1);
        execlp("tee", "tee", (char *)NULL);
        _exit(127);
    }
    setpgid(tee, train);
    close(pipes[0]);
    close(pipes[1]);
    wait_for_file("tee/checkpoints/step-20");
    kill(tee, SIGINT);
    assert_int_equal(exit_code(tee), 128 + SIGINT);
    kill(-train, SIGINT);
    assert_int_equal(exit_code(train), 75);
    let_go("tee");
    expectf(0, "continuing from", TRAIN, "tee", STEPS, "--resume");
    same_bits("tee");
}

static pid_t start_in_terminal(const char *line, bool nohup, int *terminal_p) {
    pid_t pid = forkpty(terminal_p, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        if (nohup) signal(SIGHUP, SIG_IGN);
        become(line, -1);
    }
    return pid;
}

/* Closing the terminal is SIGHUP, now and then twice: a request to stop. Not under nohup. */
static void test_terminal_closed(void **state) {
    (void)state;
    static const char *const runs[] = {"hup", "hup-threads", "nohup", "nohup-threads"};
    for (int i = 0; i < 4; i++) {
        char line[512], first[64];
        int terminal = -1;
        pace(runs[i], 30);
        snprintf(line, sizeof line, TRAIN, runs[i], STEPS,
                 i % 2 ? "--set parallel.transport=thread" : "");
        snprintf(first, sizeof first, "%s/checkpoints/step-20", runs[i]);
        pid_t pid = start_in_terminal(line, i >= 2, &terminal);
        wait_for_file(first);
        close(terminal);
        for (int k = 0; k < 3; k++, sleep_ms(20)) kill(pid, SIGHUP);
        if (i >= 2) let_go(runs[i]);
        assert_int_equal(exit_code(pid), i >= 2 ? 0 : 75);
        let_go(runs[i]);
        expectf(0, i >= 2 ? "is complete" : "continuing from", TRAIN, runs[i], STEPS, "--resume");
        same_bits(runs[i]);
    }
}

/* Descriptors that are closed, or at a full disk. No file of the run gets a closed one's number. */
static void test_closed(void **state) {
    (void)state;
    static const char *const how[] = {">&- 2>/dev/null", "2>&- >/dev/null", ">&- 2>&- <&-",
                                      ">/dev/full 2>&1"};
    for (int i = 0; i < 4; i++) {
        char run[32], train[512];
        snprintf(run, sizeof run, "closed-%d", i);
        snprintf(train, sizeof train, TRAIN, run, STEPS, "");
        char *at = strchr(train, '@');
        shellf(LOCKSTEP_PROGRAM " %.*s%s%s %s", (int)(at - train), train, folder, at + 1, how[i]);
        same_bits(run);
        shellf("! grep -rv '^{' %s/%s/metrics.jsonl", folder, run);
    }
}

/* A reader that stops reading, like a terminal after Ctrl-S: it misses lines, and a line reports
 * that. */
static void test_reader_stopped(void **state) {
    (void)state;
    enum { MANY = 1500 }; /* lines, more than a pipe has room for */
    char some[65536], *output = NULL;
    pace("stopped", MANY);
    program p = startf(TRAIN, "stopped", MANY + 4,
                       "--set model.layers=1 --set train.batch=8 --set checkpoint.every=1500 "
                       "--set train.eval_every=0");
    wait_for_file("stopped/checkpoints/step-1500");
    assert_true(read(p.out, some, sizeof some) > 0);
    let_go("stopped");
    assert_int_equal(program_end(&p, &output), 0);
    const char *lost = strstr(output, " lines of this log lost: nobody read it\n");
    assert_non_null(lost);
    assert_non_null(strstr(lost, "validation loss"));
    free(output);
}

/* A picture is written, whoever reads the text: `plan ... --svg FILE | head -1`. */
static void test_pictures(void **state) {
    (void)state;
    static const char *const commands[][2] = {
        {"plan configs/tiny.yaml -n 2 --actions --svg @/plan.svg", "plan.svg"},
        {"plan configs/tiny.yaml -n 2 --actions --machine configs/machines/p100.yaml "
         "--trace @/plan.json",
         "plan.json"},
        {"plan configs/tiny.yaml -n 2 --json --svg @/json.svg", "json.svg"},
        {"compare @/whole @/whole --svg @/compare.svg", "compare.svg"}};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int out[2];
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(out[0]);
            become(commands[i][0], out[1]);
        }
        close(out[0]);
        close(out[1]);
        exit_code(pid);
        if (!file_exists(commands[i][1])) fail_msg("%s: no picture", commands[i][0]);
    }
}

/* A command whose product is its output fails, with one line, and stops writing. */
static void test_products(void **state) {
    (void)state;
    static const char *const commands[] = {"generate @/whole --tokens 1000000",
                                           "plan configs/tiny.yaml -n 2",
                                           "plan configs/tiny.yaml -n 1",
                                           "ckpt hash @/whole",
                                           "ckpt show @/whole",
                                           "eval @/whole",
                                           "help",
                                           "help --man",
                                           "plan --help",
                                           "--version"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        for (int how = 0; how < 3; how++) {
            int out[2], err[2];
            char text[256] = "";
            assert_int_equal(pipe2(out, O_CLOEXEC), 0);
            assert_int_equal(pipe2(err, O_CLOEXEC), 0);
            close(out[0]); /* before the command can write to it */
            pid_t pid = fork();
            if (pid == 0) {
                signal(SIGPIPE, SIG_IGN); /* as under systemd */
                dup2(how == 0 ? open("/dev/full", O_WRONLY) : out[1], 1);
                dup2(err[1], 2);
                if (how == 1) close(1);
                become(commands[i], -1);
            }
            close(out[1]);
            close(err[1]);
            assert_true(read(err[0], text, sizeof text - 1) > 0);
            if (exit_code(pid) != 1 || !strstr(text, "lockstep: standard output can't be written"))
                fail_msg("lockstep %s (%d): %s", commands[i], how, text);
            close(err[0]);
        }
}

/* Programs that `lockstep run` starts have the signals that it was started with. */
static void test_children(void **state) {
    (void)state;
    char line[256];
    static const char script[] = "kill -PIPE $$\nkill -XFSZ $$\nexit 7\n";
    write_file("signals.sh", script, sizeof script - 1);
    expect("run -n 1 sh @/signals.sh", 128 + SIGPIPE, "was killed by signal 13");
    snprintf(line, sizeof line, "trap '' PIPE XFSZ; %s run -n 1 sh %s/signals.sh 2>/dev/null",
             LOCKSTEP_PROGRAM, folder);
    assert_int_equal(system(line), 7 << 8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader_gone),     cmocka_unit_test(test_interrupt_with_tee),
        cmocka_unit_test(test_terminal_closed), cmocka_unit_test(test_closed),
        cmocka_unit_test(test_reader_stopped),  cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_products),        cmocka_unit_test(test_children),
    };
    return cmocka_run_group_tests(tests, make_whole, folder_remove);
}
