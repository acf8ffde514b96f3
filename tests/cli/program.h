/* program.h - runs the program `lockstep` as a user would, in a directory that is removed
 * afterwards.
 */
#ifndef LS_TEST_PROGRAM_H
#define LS_TEST_PROGRAM_H

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "folder.h"
#include "test.h"

/* PATIENCE_S: seconds to wait for an event on a busy machine. */
enum { MAX_ARGS = 64, MAX_OUTPUT = 1 << 20, PATIENCE_S = 240 };

/* For runs of many steps, in which the model does not matter. */
#define SMALLER "--set model.width=12 --set model.context=8 "
/* For runs that generate text or compare losses. */
#define SMALL_MODEL "--set model.width=12 --set model.context=16 "

typedef struct program {
    pid_t pid;
    int out; /* reads its standard output and error */
} program;

static int folder_make(void **state) { return make_folder(state); }

static int folder_remove(void **state) {
    (void)state;
    return ls_file_remove_tree(folder, NULL);
}

/* Splits `line` into arguments; "@" in a word stands for the test's directory. No quoting. */
static void split_line(const char *line, char **argv, char *text, size_t nbytes) {
    size_t n = 0;
    for (const char *s = line; *s && n + 64 < nbytes; s++) {
        if (*s == '@')
            n += (size_t)snprintf(text + n, nbytes - n, "%s", folder);
        else
            text[n++] = *s;
    }
    text[n] = 0;
    int argc = 0;
    argv[argc++] = (char *)(uintptr_t)LOCKSTEP_PROGRAM;
    for (char *word = strtok(text, " "); word && argc < MAX_ARGS - 1; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
}

/* The disk may fail, or be slow, where a test is built with the library for that (faults.c). */
static _Noreturn void exec_program(char **argv) {
#ifdef LOCKSTEP_FAULTS_LIBRARY
    setenv("LD_PRELOAD", LOCKSTEP_FAULTS_LIBRARY, 1);
    setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 0);
#endif
    execv(argv[0], argv);
    _exit(127);
}

/* file_limit: largest file that it may write, bytes; 0: no limit. */
static program program_start(const char *line, rlim_t file_limit) {
    char *argv[MAX_ARGS], text[4096];
    int pipes[2];
    split_line(line, argv, text, sizeof text);
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(pipes[1], 1);
        dup2(pipes[1], 2);
        close(pipes[0]);
        close(pipes[1]);
        if (file_limit) setrlimit(RLIMIT_FSIZE, &(struct rlimit){file_limit, file_limit});
        exec_program(argv);
    }
    close(pipes[1]);
    assert_true(pid > 0);
    return (program){pid, pipes[0]};
}

/* Returns the exit code, or 128 + the signal that ended the program; the caller frees *output_p. */
static int program_end(program *p, char **output_p) {
    char *output = calloc(1, MAX_OUTPUT + 1);
    size_t n = 0;
    for (ssize_t got; n < MAX_OUTPUT && (got = read(p->out, output + n, MAX_OUTPUT - n)) > 0;)
        n += (size_t)got;
    close(p->out);
    int how = 0;
    assert_int_equal(waitpid(p->pid, &how, 0), p->pid);
    *output_p = output;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* program_start() with a line that is formatted. */
static inline __attribute__((format(printf, 1, 2))) program startf(const char *fmt, ...) {
    char *line = NULL;
    va_list args;
    va_start(args, fmt);
    assert_true(vasprintf(&line, fmt, args) >= 0);
    va_end(args);
    program p = program_start(line, 0);
    free(line);
    return p;
}

/* The program's exit code must be `code` and its output contain `says` (or NULL). */
static inline void program_expect(program *p, int code, const char *says) {
    char *output = NULL;
    int got = program_end(p, &output);
    if (got != code || (says && !strstr(output, says)))
        fail_msg("exit code %d, expected %d and '%s':\n%s", got, code, says ? says : "", output);
    free(output);
}

static int run_program(const char *line, char **output_p) {
    program p = program_start(line, 0);
    return program_end(&p, output_p);
}

/* Runs the program; its exit code must be `code` and its output contain `says` (or NULL). */
static inline void expect(const char *line, int code, const char *says) {
    char *output = NULL;
    int got = run_program(line, &output);
    if (got != code || (says && !strstr(output, says))) {
        print_error("lockstep %s\nexit code %d, expected %d; output:\n%s\nexpected: %s\n", line,
                    got, code, output, says ? says : "(anything)");
        fail();
    }
    free(output);
}

/* The output of the program with a line that is formatted, which must succeed; free() it. */
static inline __attribute__((format(printf, 1, 2))) char *output_of(const char *fmt, ...) {
    char *line = NULL, *output = NULL;
    va_list args;
    va_start(args, fmt);
    assert_true(vasprintf(&line, fmt, args) >= 0);
    va_end(args);
    int code = run_program(line, &output);
    if (code != 0) fail_msg("lockstep %s\nexit code %d; output:\n%s", line, code, output);
    free(line);
    return output;
}

/* expect() with a line that is formatted. */
static inline __attribute__((format(printf, 3, 4))) void expectf(int code, const char *says,
                                                                 const char *fmt, ...) {
    char *line = NULL;
    va_list args;
    va_start(args, fmt);
    assert_true(vasprintf(&line, fmt, args) >= 0);
    va_end(args);
    expect(line, code, says);
    free(line);
}

/* Runs a command of the shell, which must succeed. */
static inline __attribute__((format(printf, 1, 2))) void shellf(const char *fmt, ...) {
    char *line = NULL;
    va_list args;
    va_start(args, fmt);
    assert_true(vasprintf(&line, fmt, args) >= 0);
    va_end(args);
    if (system(line) != 0) fail_msg("%s", line);
    free(line);
}

/* As expect(), and the output must be a single line. */
static inline void expect_line(const char *line, int code, const char *says) {
    char *output = NULL;
    int got = run_program(line, &output);
    const char *end = strchr(output, '\n');
    if (got != code || !strstr(output, says) || !end || end[1]) {
        print_error(
            "lockstep %s\nexit code %d, expected %d; output:\n%s\nexpected, in one line: %s\n",
            line, got, code, output, says);
        fail();
    }
    free(output);
}

static inline void write_file(const char *name, const void *data, size_t nbytes) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    assert_int_equal(fclose(f), 0);
}

static inline void write_text(const char *name, const char *text) {
    write_file(name, text, strlen(text));
}

/* The output of the program that reads this input; its exit code must be `code`. free() it. */
static inline char *output_with_input(const char *line, const char *input, int code) {
    char path[256], *output = NULL;
    write_text("input", input);
    snprintf(path, sizeof path, "%s/input", folder);
    int in = open(path, O_RDONLY), own = dup(0);
    assert_true(in >= 0 && own >= 0);
    dup2(in, 0);
    int got = run_program(line, &output);
    dup2(own, 0);
    close(in), close(own);
    if (got != code) fail_msg("lockstep %s: exit code %d: %s", line, got, output);
    return output;
}

/* The bytes of a file, and a 0. */
static inline char *read_file(const char *name, size_t *n_p) {
    ls_buf text = {0};
    ls_error e = {0};
    char *path = ls_format("%s/%s", folder, name);
    assert_ls_ok(ls_file_read(path, 1 << 24, &text, &e), e);
    free(path);
    ls_buf_append(&text, "", 1);
    if (n_p) *n_p = text.len;
    return text.data;
}

static inline void same_files(const char *a, const char *b) {
    size_t n = 0, m = 0;
    char *x = read_file(a, &n), *y = read_file(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x), free(y);
}

static inline bool file_exists(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return ls_file_exists(path);
}

static inline void sleep_ms(long ms) {
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* The children of `parent`, oldest first: workers, then writers of checkpoints. */
static inline int children_of(pid_t parent, pid_t *pids, int most) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", parent, parent);
    FILE *f = fopen(path, "r");
    int n = 0, pid = 0;
    while (f && n < most && fscanf(f, "%d", &pid) == 1) pids[n++] = pid;
    if (f) fclose(f);
    return n;
}

/* ---- runs that are slow until the test has acted ---- */

/* faults.c says what the numbers mean. */
static inline void pace_ms(const char *run, int step, int first_ms, int most_ms) {
    char path[256], hidden[256];
    snprintf(path, sizeof path, "%s/%s.pace", folder, run);
    snprintf(hidden, sizeof hidden, "%s/.pace", folder);
    FILE *f = fopen(hidden, "w");
    assert_non_null(f);
    fprintf(f, "%d %d %d\n", step, first_ms, most_ms);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(rename(hidden, path), 0);
}

/* Makes a run of this name slow after `step` until let_go(): four steps a second, later one. Called
 * before the start, or to let the run advance to a later step. What the test does meanwhile must
 * not depend on how long it takes: it waits for each event that it needs (hosts.h) before
 * let_go(). */
static inline void pace(const char *run, int step) { pace_ms(run, step, 250, 1000); }

/* As pace(), and slower still: for runs in which no worker that is between two steps is asked to
 * stop, as no others come to a common step (sync.mode async, ssp), or nothing happens to them. */
static inline void pace_long(const char *run, int step) { pace_ms(run, step, 250, 2000); }

/* The run stands still when it has made the step after `step`, whose line it can't write before
 * let_go(): for tests that kill, or change files, and then let it go. */
static inline void hold_after(const char *run, int step) { pace_ms(run, step, 600000, 600000); }

static inline void let_go(const char *run) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s.pace", folder, run);
    unlink(path);
}

/* Waits until a file of the test's folder exists. */
static inline void wait_for_file(const char *name) {
    for (int i = 0; i < PATIENCE_S * 100 && !file_exists(name); i++) sleep_ms(10);
    if (!file_exists(name)) fail_msg("%s does not come", name);
}

/* The last step whose line is in the run's metrics. */
static inline int steps_of(const char *run) {
    char path[256], line[1024];
    int step = 0, n = 0;
    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, run);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, "\"step\": ");
        if (at && sscanf(at, "\"step\": %d", &n) == 1) step = n;
    }
    if (f) fclose(f);
    return step;
}

static inline void wait_for_step(const char *run, int step) {
    for (int i = 0; i < PATIENCE_S * 50 && steps_of(run) < step; i++) sleep_ms(20);
    if (steps_of(run) < step) fail_msg("%s does not get to step %d", run, step);
}

/* Waits until a process has n children or more, oldest first: the last of a run's workers may start
 * when the first one trains, or tokenizes. Returns their number. */
static inline int wait_for_children(pid_t parent, int n, pid_t *pids, int most) {
    int got = 0;
    for (int i = 0; i < PATIENCE_S * 100 && got < n; i++) {
        if (i) sleep_ms(10);
        got = children_of(parent, pids, most);
    }
    assert_true(got >= n);
    return got;
}

/* Asks a run that pace() has made slow to stop, and waits for its end; only then it is let go,
 * since at its full speed it might be complete before the signal has come. Returns its exit
 * code. */
static inline int stop_paced(program *p, const char *run, char **output_p) {
    kill(p->pid, SIGTERM);
    int code = program_end(p, output_p);
    let_go(run);
    return code;
}

/* Kills a run that pace() has made slow. Its workers end when it has, and could be through
 * before. */
static inline void kill_paced(program *p, const char *run) {
    char *output = NULL;
    kill(p->pid, SIGKILL);
    assert_int_equal(program_end(p, &output), 128 + SIGKILL);
    free(output);
    let_go(run);
}

/* The output of `lockstep ckpt hash` for a run in the test's directory. */
static inline void hash_of(const char *run, char hash[256]) {
    char line[128], *output = NULL;
    snprintf(line, sizeof line, "ckpt hash @/%s", run);
    assert_int_equal(run_program(line, &output), 0);
    snprintf(hash, 256, "%s", output);
    free(output);
}

/* The run's hash is `want`. */
static inline void assert_hash(const char *run, const char *want) {
    char hash[256];
    hash_of(run, hash);
    assert_string_equal(hash, want);
}

/* Both runs end with the same weights. */
static inline void same_hash(const char *one, const char *other) {
    char hash[256];
    hash_of(other, hash);
    assert_hash(one, hash);
}

/* Runs shell commands in the test's directory; $r is the run directory, $m its metrics.jsonl. */
static inline void shell_of_run(const char *run, const char *what) {
    shellf("cd %s && r=%s/%s && m=$r/metrics.jsonl && %s", folder, folder, run, what);
}

/* ---- output ---- */

static inline void assert_output_has(const char *output, const char *what) {
    if (!strstr(output, what)) fail_msg("expected: %s\noutput:\n%s", what, output);
}

#endif
