/* hosts.h - several supervisors on 127.0.0.1, each a host of its own, that train one run.
 *
 * A host's output goes to a file in the test's directory, which can be read while it runs.
 */
#ifndef LS_TEST_HOSTS_H
#define LS_TEST_HOSTS_H

#include <sys/prctl.h>

#include "cli/program.h"
#include "free_port.h"

typedef struct host {
    pid_t pid; /* 0: the host does not run */
    char log[96];
} host;

static uint64_t drawn = 1;

static inline unsigned draw(unsigned below) {
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(drawn >> 33) % below;
}

/* Starts the program with a line, which is formatted. */
static inline __attribute__((format(printf, 1, 2))) host host_start(const char *fmt, ...) {
    static int number;
    char *argv[MAX_ARGS], text[4096], *line = NULL;
    host h = {0};
    va_list args;
    va_start(args, fmt);
    assert_true(vasprintf(&line, fmt, args) >= 0);
    va_end(args);
    split_line(line, argv, text, sizeof text);
    free(line);
    snprintf(h.log, sizeof h.log, "%s/host-%d.log", folder, ++number);
    pid_t parent = getpid();
    h.pid = fork();
    if (h.pid == 0) {
        int fd = open(h.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, 1);
        dup2(fd, 2);
        close_range(3, ~0U, 0); /* what the test's parent has left open; tests limit descriptors */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) exec_program(argv);
        _exit(127);
    }
    assert_true(h.pid > 0);
    return h;
}

/* The host's output so far; free() it. */
static inline char *host_output(const host *h) {
    char *text = calloc(1, MAX_OUTPUT + 1);
    FILE *f = fopen(h->log, "r");
    size_t n = f ? fread(text, 1, MAX_OUTPUT, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
    return text;
}

static inline int host_count(const host *h, const char *says) {
    char *text = host_output(h);
    int n = 0;
    for (const char *s = text; (s = strstr(s, says)); s++) n++;
    free(text);
    return n;
}

static inline bool host_says(const host *h, const char *says) { return host_count(h, says) > 0; }

static inline bool host_is_over(const host *h) {
    siginfo_t info = {0};
    if (!h->pid) return true;
    return waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

static inline void host_fail(const host *h, const char *why) {
    char *text = host_output(h);
    print_error("%s: %s:\n%s\n", h->log, why, text);
    free(text);
    fail();
}

/* Waits until the host has said something n times. */
static inline void host_await_times(const host *h, const char *says, int n) {
    for (int i = 0; i < PATIENCE_S * 100 && host_count(h, says) < n && !host_is_over(h); i++)
        sleep_ms(10);
    if (host_count(h, says) >= n) return;
    print_error("expected %d times: %s\n", n, says);
    host_fail(h, "its output lacks that");
}

static inline void host_await(const host *h, const char *says) { host_await_times(h, says, 1); }

/* Returns the host's exit code, or 128 + the signal that ended it. */
static inline int host_end(host *h) {
    int how = 0;
    for (int i = 0; i < PATIENCE_S * 100 && !host_is_over(h); i++) sleep_ms(10);
    if (!host_is_over(h)) {
        kill(h->pid, SIGABRT);
        host_fail(h, "it does not end");
    }
    assert_int_equal(waitpid(h->pid, &how, 0), h->pid);
    h->pid = 0;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

static inline void host_expect(host *h, int code, const char *says) {
    int got = host_end(h);
    if (got == code && (!says || host_says(h, says))) return;
    print_error("exit code %d, expected %d; expected: %s\n", got, code, says ? says : "(anything)");
    host_fail(h, "the exit code or the output is wrong");
}

/* Simulates a power failure: the host's workers end with it. */
static inline void host_kill(host *h) {
    kill(h->pid, SIGKILL);
    waitpid(h->pid, NULL, 0);
    h->pid = 0;
}

/* Signals a random child: a worker, or a process that writes a checkpoint or repairs the state. */
static inline bool host_signal_child(const host *h, int number) {
    pid_t pids[16];
    int n = h->pid ? children_of(h->pid, pids, 16) : 0;
    return n && kill(pids[draw((unsigned)n)], number) == 0;
}

/* Kills n children, one after the other. */
static inline void host_kill_children(const host *h, int n) {
    for (int i = 0; i < n; i++) {
        assert_true(host_signal_child(h, SIGKILL));
        sleep_ms(300);
    }
}

/* A host of a run of the small model. */
static inline host host_train(int workers, const char *run, const char *how, const char *settings) {
    return host_start("train configs/tiny.yaml -n %d -o @/%s %s %s", workers, run, how, settings);
}

/* How a test starts a host of a run: `how` it finds the others, and more settings. */
typedef host start_host(int workers, const char *run, const char *how, const char *more);

/* Two hosts of a run, of which the first one listens. */
typedef struct pair {
    start_host *start;
    const char *run, *more; /* more: settings of both */
    int port;
    char listen[64], join[64]; /* how the first host and others find each other */
    host a, b;
} pair;

/* No host runs yet. */
static inline pair pair_of(start_host *start, const char *run, const char *more) {
    pair p = {.start = start, .run = run, .more = more, .port = free_port()};
    snprintf(p.listen, sizeof p.listen, "--listen 127.0.0.1:%d", p.port);
    snprintf(p.join, sizeof p.join, "--join 127.0.0.1:%d", p.port);
    return p;
}

static inline host pair_start(const pair *p, const char *how, int workers, const char *more) {
    char all[1024];
    snprintf(all, sizeof all, "%s %s", p->more, more);
    return p->start(workers, p->run, how, all);
}

static inline host pair_listen(const pair *p, int workers, const char *more) {
    return pair_start(p, p->listen, workers, more);
}

static inline host pair_join(const pair *p, int workers, const char *more) {
    return pair_start(p, p->join, workers, more);
}

/* Starts the first host, which waits until there are `hosts` hosts. */
static inline pair pair_begin(start_host *start, const char *run, int workers, int hosts,
                              const char *more) {
    pair p = pair_of(start, run, more);
    char wait[32];
    snprintf(wait, sizeof wait, "--hosts %d", hosts);
    p.a = pair_listen(&p, workers, wait);
    return p;
}

static inline void await_step(const char *run, int step, const host *h) {
    for (int i = 0; i < PATIENCE_S * 50 && steps_of(run) < step && !host_is_over(h); i++)
        sleep_ms(20);
    if (steps_of(run) < step) host_fail(h, "the run makes no progress");
}

/* Checks that the run has the bits of the run `undisturbed` and a clean ledger. */
static inline void check_run(const char *undisturbed, const char *run, const host *h) {
    char want[256], got[256], line[128], *output = NULL;
    hash_of(undisturbed, want);
    hash_of(run, got);
    if (strcmp(want, got) != 0) {
        print_error("%s: %swanted: %s", run, got, want);
        host_fail(h, "other bits");
    }
    snprintf(line, sizeof line, "ckpt ledger @/%s", run);
    int code = run_program(line, &output);
    if (code != 0 || !strstr(output, ": clean: ")) {
        print_error("%s", output);
        host_fail(h, "the ledger is not clean");
    }
    free(output);
}

#endif
