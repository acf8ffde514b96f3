/* run_test.c - `lockstep run`: how it ends, the environment of workers, and that no process or file
 * remains.
 */
#include <dirent.h>

#include "cli/program.h"

/* Scripts that workers run: `sh @/NAME`. */
static void write_script(const char *name, const char *text) {
    write_file(name, text, strlen(text));
}

/* ---- exit codes ---- */

static void test_codes(void **state) {
    (void)state;
    write_script("exit.sh", "exit $1\n");
    write_script("kill.sh", "kill -$1 $$\nsleep 20\n");
    write_script("plain", "not a program");
    for (int n = 1; n <= 3; n++) {
        expectf(0, "", "run -n %d sh @/exit.sh 0", n);
        expectf(3, "ended with exit code 3", "run -n %d sh @/exit.sh 3", n);
    }
    expect("run -n 2 sh @/exit.sh 255", 255, "ended with exit code 255");
    expect("run -n 2 sh @/kill.sh KILL", 137, "was killed by signal 9");
    expect("run -n 2 sh @/kill.sh TERM", 143, "was killed by signal 15");
    expect("run -n 2 sh @/kill.sh SEGV", 139, "was killed by signal 11");
    expect("run -n 2 no-such-program", 127, "lockstep: no-such-program: No such file");
    expect("run -n 2 @/no/such/program", 127, "No such file");
    expect("run -n 2 @/plain", 126, "ermission denied");
}

static void refused(const char *line, const char *says) { expect_line(line, 2, says); }

static void test_refused(void **state) {
    (void)state;
    refused("run -n 0 true", "--workers: '0' is not a whole number from 1 to");
    refused("run -n x true", "'x' is not a whole number");
    refused("run -n -1 true", "'-1'");
    refused("run -n 2.5 true", "'2.5'");
    refused("run -n 99999 true", "'99999'");
    refused("run -n 2", "is missing");
    refused("run", "is missing");
    refused("run -n", "needs a value");
    refused("run --", "is missing");
    refused("run --arena 0 -n 2 true", "--arena");
    refused("run --workres 2 true", "unknown option");
}

/* ---- the environment of workers ---- */

static void test_arguments(void **state) {
    (void)state;
    write_script("show.sh", "for a; do printf '[%s]' \"$a\"; done; echo\n");
    expect("run -n 1 sh @/show.sh", 0, "\n");
    expect("run -n 1 sh @/show.sh -n 5 --workers=7 --help", 0, "[-n][5][--workers=7][--help]\n");
    expect("run -n 1 sh @/show.sh -- a -- -x --", 0, "[--][a][--][-x][--]\n");
    expect("run -n 1 -- sh @/show.sh -n --arena", 0, "[-n][--arena]\n");
    expect("run -n 1 sh @/show.sh * $HOME ~ \\ '", 0, "[*][$HOME][~][\\][']\n");
}

/* The value of a variable in what `env` wrote, or NULL. */
static const char *value_of(const char *text, const char *name, char value[256]) {
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) != 0 || line[n] != '=') continue;
        snprintf(value, 256, "%.*s", (int)strcspn(line + n + 1, "\n"), line + n + 1);
        return value;
    }
    return NULL;
}

static void check_number(const char *text, const char *name, int want) {
    char value[256], number[16];
    snprintf(number, sizeof number, "%d", want);
    const char *got = value_of(text, name, value);
    if (!got || strcmp(got, number) != 0) {
        print_error("%s is %s, not %d\n", name, got ? got : "missing", want);
        fail();
    }
}

static void check_environment(int rank, int size, char key[256]) {
    char path[256], value[256];
    ls_buf text = {0};
    ls_error e = {0};
    snprintf(path, sizeof path, "%s/env.%d", folder, rank);
    assert_ls_ok(ls_file_read(path, 1 << 20, &text, &e), e);
    check_number(text.data, "LOCKSTEP_RANK", rank);
    check_number(text.data, "LOCKSTEP_SIZE", size);
    check_number(text.data, "LOCKSTEP_LOCAL_RANK", rank);
    check_number(text.data, "LOCKSTEP_LOCAL_SIZE", size);
    assert_non_null(value_of(text.data, "LOCKSTEP_SHM", value));
    assert_non_null(value_of(text.data, "LOCKSTEP_ADDR", value));
    assert_int_equal(strncmp(value, "127.0.0.1:", 10), 0);
    assert_string_equal(value_of(text.data, "LOCKSTEP_OF_THE_USER", value), "kept");
    assert_null(value_of(text.data, "LOCKSTEP_KEY_FILE", value));
    bool listens = value_of(text.data, "LOCKSTEP_LISTEN_FD", value) != NULL;
    assert_int_equal(listens, rank == 0);
    assert_non_null(value_of(text.data, "LOCKSTEP_KEY", value));
    assert_int_equal(strlen(value), 64);
    if (key[0]) assert_string_equal(value, key); /* the same for all */
    memcpy(key, value, sizeof value);
    ls_buf_free(&text);
}

/* Also inside another launch, whose variables are already set. */
static void test_environment(void **state) {
    (void)state;
    char key[256] = "", inner[256] = "";
    write_script("env.sh", "env > $1/env.$LOCKSTEP_RANK\n");
    setenv("LOCKSTEP_OF_THE_USER", "kept", 1);
    setenv("LOCKSTEP_KEY_FILE", "/nowhere", 1);
    setenv("LOCKSTEP_LISTEN_FD", "77", 1);
    expect("run -n 3 sh @/env.sh @", 0, "");
    for (int r = 0; r < 3; r++) check_environment(r, 3, key);
    expect("run -n 1 " LOCKSTEP_PROGRAM " run -n 2 sh @/env.sh @", 0, "");
    for (int r = 0; r < 2; r++) check_environment(r, 2, inner);
    assert_string_not_equal(key, inner);
    unsetenv("LOCKSTEP_KEY_FILE");
    unsetenv("LOCKSTEP_LISTEN_FD");
    unsetenv("LOCKSTEP_OF_THE_USER");
}

/* ---- one worker's end, and all workers' ---- */

/* Shared memory that is named after the program; other programs and tests come and go beside this
 * test. */
static int count_shared(void) {
    DIR *d = opendir("/dev/shm");
    int n = 0;
    for (struct dirent *entry; d && (entry = readdir(d));)
        n += strstr(entry->d_name, "lockstep") && !strstr(entry->d_name, "lockstep-test-");
    if (d) closedir(d);
    return n;
}

/* Reads the process id that the worker wrote first. */
static pid_t pid_of(const char *name) {
    wait_for_file(name);
    char path[256];
    int pid = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (int i = 0; i < PATIENCE_S * 100 && pid <= 0; i++) { /* it may be empty still */
        FILE *f = fopen(path, "r");
        if (f && fscanf(f, "%d", &pid) != 1) pid = 0;
        if (f) fclose(f);
        if (!pid) sleep_ms(10);
    }
    assert_true(pid > 0);
    return pid;
}

/* Whether the process has ended. (If its parent was killed, another process reaps it.) */
static bool is_gone(pid_t pid) {
    char path[64], state = 0;
    for (int i = 0; i < PATIENCE_S * 100; i++) {
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *f = fopen(path, "r");
        if (!f) return true;
        int n = fscanf(f, "%*d (%*[^)]) %c", &state);
        fclose(f);
        if (n == 1 && (state == 'Z' || state == 'X')) return true;
        sleep_ms(10);
    }
    return false;
}

/* Worker 0 fails while the others sleep; they end even if they ignore SIGTERM. */
static void test_failure_ends_all(void **state) {
    (void)state;
    write_script("fail.sh", "test $LOCKSTEP_RANK != 0 || { while ! test -e $1/pid.$2.1 || ! test "
                            "-e $1/pid.$2.2; do sleep 0.01; done; exit 7; }\n"
                            "test $2 = soft || trap '' TERM\n"
                            "echo $$ > $1/pid.$2.$LOCKSTEP_RANK\nexec sleep 1000\n");
    static const char *const how[] = {"soft", "hard"};
    for (int i = 0; i < 2; i++) {
        char name[32], *output = NULL;
        program p = startf("run -n 3 sh @/fail.sh @ %s", how[i]);
        pid_t pids[2];
        for (int r = 0; r < 2; r++) {
            snprintf(name, sizeof name, "pid.%s.%d", how[i], r + 1);
            pids[r] = pid_of(name);
        }
        assert_int_equal(program_end(&p, &output), 7);
        assert_non_null(strstr(output, "worker 0 ended with exit code 7"));
        for (int r = 0; r < 2; r++) assert_true(is_gone(pids[r]));
        free(output);
    }
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};

/* The launcher forwards signals; workers that handle them exit in their own way. */
static void test_signals(void **state) {
    (void)state;
    static const char *const names[] = {"TERM", "INT", "HUP"};
    write_script("heed.sh", "trap \"echo $2 > $1/heard.$2.$LOCKSTEP_RANK; exit $3\" $2\n"
                            "echo $$ > $1/ready.$2.$LOCKSTEP_RANK\n"
                            "while :; do sleep 0.02; done\n");
    for (int i = 0; i < 3; i++) {
        char name[32], *output = NULL;
        int code = i == 1 ? 5 : 0;
        program p = startf("run -n 2 sh @/heed.sh @ %s %d", names[i], code);
        for (int r = 0; r < 2; r++) {
            snprintf(name, sizeof name, "ready.%s.%d", names[i], r);
            pid_of(name);
        }
        kill(p.pid, signals[i]);
        assert_int_equal(program_end(&p, &output), code);
        for (int r = 0; r < 2; r++) {
            snprintf(name, sizeof name, "heard.%s.%d", names[i], r);
            assert_true(file_exists(name));
        }
        free(output);
    }
}

/* The second signal kills the workers that ignored the first. */
static void test_second_signal(void **state) {
    (void)state;
    char *output = NULL;
    write_script("deaf.sh", "trap \"echo > $1/first.$LOCKSTEP_RANK\" INT\n"
                            "test $LOCKSTEP_RANK = 1 || trap '' INT\n"
                            "echo $$ > $1/deaf.$LOCKSTEP_RANK\n"
                            "while :; do sleep 0.02; done\n");
    program p = program_start("run -n 2 sh @/deaf.sh @", 0);
    pid_t pids[2] = {pid_of("deaf.0"), pid_of("deaf.1")};
    kill(p.pid, SIGINT);
    wait_for_file("first.1"); /* the other one ignores it */
    for (int r = 0; r < 2; r++) assert_int_equal(kill(pids[r], 0), 0);
    sleep_ms(600); /* one that comes sooner belongs to the first */
    kill(p.pid, SIGINT);
    assert_int_equal(program_end(&p, &output), 137);
    for (int r = 0; r < 2; r++) assert_true(is_gone(pids[r]));
    free(output);
}

static void test_killed_launcher(void **state) {
    (void)state;
    char *output = NULL;
    write_script("stay.sh", "echo $$ > $1/stay.$LOCKSTEP_RANK\nexec sleep 1000\n");
    program p = program_start("run -n 3 sh @/stay.sh @", 0);
    pid_t pids[3] = {pid_of("stay.0"), pid_of("stay.1"), pid_of("stay.2")};
    kill(p.pid, SIGKILL);
    assert_int_equal(program_end(&p, &output), 137); /* the workers' ends of the pipe are closed */
    for (int r = 0; r < 3; r++) assert_true(is_gone(pids[r]));
    assert_int_equal(count_shared(), 0);
    free(output);
}

/* Between the launcher and its workers stand scripts, which alone are its children. */
static void test_killed_launcher_of_scripts(void **state) {
    (void)state;
    char *output = NULL;
    write_script("tied.sh", "$2 train configs/tiny.yaml -o $1/tied --set train.steps=1000000 "
                            ">$1/tied.log 2>&1 &\n"
                            "echo $! > $1/tied.$LOCKSTEP_RANK\nwait\n");
    program p = program_start("run -n 2 sh @/tied.sh @ " LOCKSTEP_PROGRAM, 0);
    pid_t pids[2] = {pid_of("tied.0"), pid_of("tied.1")};
    wait_for_file("tied/metrics.jsonl");
    kill(p.pid, SIGKILL);
    for (int r = 0; r < 2; r++) assert_true(is_gone(pids[r]));
    assert_int_equal(program_end(&p, &output), 137);
    free(output);
}

/* A child inherits an ignored SIGCHLD from its parent. */
static void test_ignored_children(void **state) {
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    program p = program_start("run -n 2 sh @/exit.sh 4", 0);
    signal(SIGCHLD, SIG_DFL);
    program_expect(&p, 4, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_failure_ends_all),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_second_signal),
        cmocka_unit_test(test_killed_launcher),
        cmocka_unit_test(test_killed_launcher_of_scripts),
        cmocka_unit_test(test_ignored_children),
    };
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], SIG_DFL); /* children inherit ignored signals */
    alarm(850);
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
