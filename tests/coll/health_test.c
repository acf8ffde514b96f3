/* health_test.c - what can go wrong with a group's calls, in threads and in processes, over shared
 * memory and over TCP: workers that disagree, are late, or leave; and the report of late workers.
 */
/* ctest: own-copy seconds=15 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "coll/call_record.h"
#include "coll/team.h"
#include "net/tcp/guest.h"

/* ---- workers that disagree ---- */

static ls_status disagree(ls_group *g, void *arg, ls_error *e) {
    static _Thread_local float x[100];
    (void)arg;
    LS_TRY(ls_barrier(g, e));
    if (ls_group_rank(g) == 1) return ls_all_reduce(g, x, x, 99, LS_F32, LS_SUM, e);
    return ls_all_reduce(g, x, x, 100, LS_F32, LS_SUM, e);
}

static void test_disagreement(void **state) {
    (void)state;
    ls_error e[3] = {0};
    run_threads(3, NULL, disagree, NULL, e);
    for (int r = 0; r < 3; r++) {
        assert_int_equal(e[r].code, LS_EDISAGREE);
        assert_non_null(
            strstr(e[r].msg, "worker 1 called all_reduce f32 sum, 99 elements as call 1"));
        assert_non_null(strstr(e[r].msg, "called all_reduce f32 sum, 100 elements as call 1"));
        assert_non_null(strstr(e[r].msg, "health_test.c:"));
    }
}

static ls_status wrong_result(ls_status s, ls_error *e) {
    char msg[400];
    snprintf(msg, sizeof msg, "%.399s", e->msg);
    return ls_fail(e, LS_EIO, "another result: %s: %s", ls_status_name(s), msg);
}

static ls_status check_disagreement(ls_status s, ls_error *e) {
    if (s == LS_EDISAGREE &&
        strstr(e->msg, "worker 1 called all_reduce f32 sum, 99 elements as call ") &&
        strstr(e->msg, "called all_reduce f32 sum, 100 elements as call ") &&
        strstr(e->msg, " at health_test.c:"))
        return LS_OK;
    return wrong_result(s, e);
}

static ls_status expect_disagreement(ls_group *g, void *arg, ls_error *e) {
    return check_disagreement(disagree(g, arg, e), e);
}

/* Each takes the other for the root, and waits for it: no message shows that. */
static ls_status check_crossed(ls_status s, ls_error *e) {
    if (s == LS_EDISAGREE &&
        strstr(e->msg,
               "worker 0 called broadcast f32, 50 elements, root 1 as call 0 at health_te") &&
        strstr(e->msg, "worker 1 called broadcast f32, 50 elements, root 0 as call 0 at health_te"))
        return LS_OK;
    return wrong_result(s, e);
}

static ls_status expect_without_messages(ls_group *g, void *arg, ls_error *e) {
    static _Thread_local float x[50];
    (void)arg;
    return check_crossed(ls_broadcast(g, x, 50, LS_F32, 1 - ls_group_rank(g), e), e);
}

/* Ends as soon as it has its error, and closes nothing. */
static ls_status expect_and_exit(ls_group *g, void *arg, ls_error *e) {
    ls_status s = expect_disagreement(g, arg, e);
    if (s == LS_OK) _exit(0);
    return s;
}

/* Worker 2 is outside any call when the others get their errors, and end. A worker that has not
 * left the barrier by then gets the error there. */
static ls_status expect_later(ls_group *g, void *arg, ls_error *e) {
    ls_status s = ls_barrier(g, e);
    if (s != LS_OK) return check_disagreement(s, e);
    if (ls_group_rank(g) == 2) nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return expect_disagreement(g, arg, e);
}

static void test_disagreement_of_processes(void **state) {
    (void)state;
    need_processes();
    static const ls_group_options ways[] = {
        {.timeout_s = 20},
        {.timeout_s = 20, .algorithm = "ring"},
        {.timeout_s = 20, .transport = "tcp"},
        {.timeout_s = 20, .transport = "tcp", .algorithm = "ring", .insecure = true}};
    for (int i = 0; i < 4; i++)
        for (int n = 2; n <= 5; n++) {
            run_processes(n, &ways[i], expect_disagreement, NULL);
            run_processes(n, &ways[i], expect_and_exit, NULL);
            if (n > 2) run_processes(n, &ways[i], expect_later, NULL);
        }
    ls_group_options o = {.timeout_s = 20, .algorithm = "binomial"};
    run_processes(2, &o, expect_without_messages, NULL);
    o.transport = "tcp";
    run_processes(2, &o, expect_without_messages, NULL);
}

/* The threads that answer for workers (net/tcp/watch.h) wait in this function. They answer nothing
 * before this time, as on a machine that is very busy. */
static _Atomic int64_t answers_from;

void __real_ls_guests_wait(ls_guests *, int stop_fd, int timeout_ms);
void __wrap_ls_guests_wait(ls_guests *, int stop_fd, int timeout_ms);
void __wrap_ls_guests_wait(ls_guests *guests, int stop_fd, int timeout_ms) {
    __real_ls_guests_wait(guests, stop_fd, timeout_ms);
    int64_t late = answers_from - ls_clock_ns();
    if (late > 0) nanosleep(&(struct timespec){late / 1000000000, late % 1000000000}, NULL);
}

/* Worker 1 forces names[0], the others names[1], or nothing. Over names[2]; names[3]: answers are
 * late. */
static int other_algorithm(void *arg) {
    const char *const *names = arg;
    bool first = strcmp(getenv("LOCKSTEP_RANK"), "1") == 0;
    ls_group_options o = {
        .timeout_s = 20, .algorithm = names[first ? 0 : 1], .transport = names[2]};
    ls_group *g = NULL;
    ls_error e = {0};
    float x[100] = {0};
    ls_status s = ls_group_open(&o, &g, &e);
    if (names[3]) answers_from = ls_clock_ns() + (int64_t)2500 * 1000 * 1000;
    if (s == LS_OK) s = ls_all_reduce(g, x, x, 100, LS_F32, LS_SUM, &e);
    ls_group_close(g);
    bool expected =
        s == LS_EDISAGREE && strstr(e.msg, "workers disagree: worker ") &&
        strstr(e.msg, "worker 1 called all_reduce f32 sum, 100 elements as call 0 at") &&
        strstr(e.msg, "the algorithms that they force (LOCKSTEP_ALGORITHM), differ");
    if (!expected) fprintf(stderr, "another result: %d %s\n", (int)s, e.msg);
    return expected ? 0 : 1;
}

static void test_other_algorithm(void **state) {
    (void)state;
    const char *tries[][4] = {{"ring", NULL, NULL, NULL},
                              {"doubling", "exchange", NULL, NULL},
                              {"ring", NULL, "tcp", NULL},
                              {"ring", NULL, "tcp", "late"},
                              {"doubling", "exchange", "tcp", NULL}};
    for (int i = 0; i < 5; i++) {
        ls_launch_options l = {.nworkers = 3, .main = other_algorithm, .arg = tries[i]};
        l.arena_nbytes = (size_t)16 << 20;
        ls_error e = {0};
        int code = 0;
        assert_ls_ok(ls_launch_run(&l, &code, &e), e);
        assert_int_equal(code, 0);
    }
}

/* ---- a worker that only tests now and then gets the same errors as one that waits ---- */

static ls_status test_until_done(ls_request **q, ls_error *e) {
    bool is_done = false;
    ls_status s = LS_OK;
    for (int i = 0; i < 20000 && !is_done && s == LS_OK; i++) {
        s = ls_test(q, &is_done, e);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return s;
}

static ls_status disagree_testing(ls_group *g, void *arg, ls_error *e) {
    static _Thread_local float x[50];
    ls_request *q = NULL;
    (void)arg;
    LS_TRY(ls_broadcast_start(g, x, 50, LS_F32, 1 - ls_group_rank(g), &q, e));
    return check_crossed(test_until_done(&q, e), e);
}

static ls_status leave_testing(ls_group *g, void *arg, ls_error *e) {
    ls_request *q = NULL;
    bool thread = *(const bool *)arg;
    if (ls_group_rank(g) == 1) {
        if (thread) return LS_OK;
        LS_TRY(ls_barrier(g, e));
        _exit(0);
    }
    if (!thread) LS_TRY(ls_barrier(g, e));
    ls_status s = ls_barrier_start(g, &q, e);
    if (s == LS_OK) s = test_until_done(&q, e);
    return s == LS_EPEER && strstr(e->msg, "worker 1 (pid") ? LS_OK : wrong_result(s, e);
}

static void test_testing(void **state) {
    (void)state;
    bool thread = true, process = false;
    static const char *const algorithms[] = {NULL, "binomial"};
    for (int a = 0; a < 2; a++) {
        ls_group_options o = {.timeout_s = 20, .algorithm = algorithms[a]};
        run_threads(2, &o, disagree_testing, NULL, NULL);
        run_threads(2, &o, leave_testing, &thread, NULL);
        run_processes(2, &o, disagree_testing, NULL);
        run_processes(2, &o, leave_testing, &process);
        o.transport = "tcp";
        o.algorithm = "binomial";
        run_processes(2, &o, disagree_testing, NULL);
        run_processes(2, &o, leave_testing, &process);
    }
}

/* ---- workers that never join ---- */

typedef struct absence {
    ls_group_options o;
    int rank; /* of the worker that ends at once, with exit code 0 */
} absence;

static int beside_absentee(void *arg) {
    const absence *a = arg;
    char want[96];
    ls_group *g = NULL;
    ls_error e = {0};
    int32_t x = 1;
    if (atoi(getenv("LOCKSTEP_RANK")) == a->rank) return 0;
    snprintf(want, sizeof want, "worker %d (pid ", a->rank);
    ls_status s = ls_group_open(&a->o, &g, &e);
    if (s == LS_OK) s = ls_all_reduce(g, &x, &x, 1, LS_I32, LS_SUM, &e);
    bool good = s == LS_EPEER && strncmp(e.msg, want, strlen(want)) == 0 &&
                strstr(e.msg, ") ended with exit code 0 before it had joined the group");
    if (!good) fprintf(stderr, "%s: %s\n", ls_status_name(s), e.msg);
    ls_group_close(g);
    return good ? 0 : 3;
}

/* The launcher lets the others know; they have no limit, and would wait for ever. */
static void test_never_joined(void **state) {
    (void)state;
    need_processes();
    for (int i = 0; i < 4; i++) {
        absence a = {.o = {.timeout_s = -1, .transport = i < 2 ? NULL : "tcp"}, .rank = i % 2};
        ls_launch_options l = {.nworkers = 2, .main = beside_absentee, .arg = &a};
        l.arena_nbytes = (size_t)4 << 20;
        ls_error e = {0};
        int code = 0;
        assert_ls_ok(ls_launch_run(&l, &code, &e), e);
        assert_int_equal(code, 0);
    }
}

/* ---- workers that are late ---- */

/* Worker 1 makes none of them: worker 0 can start only a few, and its error says why. */
static ls_status no_room(ls_group *g, void *arg, ls_error *e) {
    enum { CALLS = 100 };
    float x[CALLS];
    ls_request *q = NULL;
    atomic_bool *over = arg;
    ls_status s = LS_OK;
    if (ls_group_rank(g)) {
        while (!*over) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return LS_OK;
    }
    for (int k = 0; k < CALLS && s == LS_OK; k++)
        s = ls_all_reduce_start(g, &x[k], &x[k], 1, LS_F32, LS_SUM, &q, e);
    *over = true;
    if (s == LS_ETIMEOUT && strstr(e->msg, "for worker 1") &&
        strstr(e->msg, "as call 0 at health_test.c:")) {
        e->code = LS_OK;
        return LS_OK;
    }
    return ls_fail(e, LS_EIO, "100 calls: %s", s == LS_OK ? "all were started" : e->msg);
}

static void test_no_room(void **state) {
    (void)state;
    ls_error e[2] = {0};
    for (int forced = 0; forced < 2; forced++) {
        ls_group_options o = {.timeout_s = 0.3, .algorithm = forced ? "ring" : NULL};
        atomic_bool over = false;
        run_threads(2, &o, no_room, &over, e);
        if (e[0].code) fail_msg("%s", e[0].msg);
    }
}

static ls_status late(ls_group *g, void *arg, ls_error *e) {
    atomic_bool *over = arg;
    if (ls_group_rank(g) == 1) {
        while (!*over) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        return LS_OK;
    }
    ls_status s = ls_barrier(g, e);
    *over = true;
    ls_error again = {0};
    assert_ls_fails(ls_barrier(g, &again), s, "can only be closed", again);
    return s;
}

static void test_late(void **state) {
    (void)state;
    ls_error e[2] = {0};
    atomic_bool over = false;
    run_threads(2, &(ls_group_options){.timeout_s = 0.1}, late, &over, e);
    assert_int_equal(e[0].code, LS_ETIMEOUT);
    assert_non_null(strstr(e[0].msg, "for worker 1"));
    assert_non_null(strstr(e[0].msg, "barrier as call 0 at health_test.c:"));
}

/* The code alone says whether the group is usable. */
static ls_status pending(ls_group *g, void *arg, ls_error *e) {
    atomic_bool *over = arg;
    ls_request *q = NULL;
    if (ls_group_rank(g) == 1) {
        while (!*over) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        LS_TRY(ls_barrier(g, e));
        return ls_barrier(g, e);
    }
    LS_TRY(ls_barrier_start(g, &q, e));
    ls_status s = ls_wait(&q, 0.01, e);
    *over = true;
    if (s != LS_EPENDING || !q)
        return ls_fail(e, LS_EIO, "a limit of 10 ms: %s", ls_status_name(s));
    LS_TRY(ls_wait(&q, -1, e));
    return ls_barrier(g, e);
}

static void test_pending(void **state) {
    (void)state;
    for (int forced = 0; forced < 2; forced++) {
        atomic_bool over = false;
        run_threads(2, &(ls_group_options){.algorithm = forced ? "ring" : NULL}, pending, &over,
                    NULL);
    }
    assert_true(LS_EPENDING > LS_EPEER && LS_EDISAGREE < LS_EPEER && LS_EBROKEN < LS_EPEER);
}

/* Worker 1 is outside any call, asleep, or stopped, until worker 0 has its report. */
static ls_status stay_away(ls_group *g, bool stop, ls_error *e) {
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    if (stop)
        raise(SIGSTOP);
    else
        sigtimedwait(&wake, NULL, &(struct timespec){.tv_sec = 240});
    return ls_barrier(g, e);
}

/* What this worker writes to stderr while it waits, up to two minutes. */
static ls_status capture_report(ls_request **q, char *text, size_t nbytes, ls_error *e) {
    FILE *log = tmpfile();
    int saved = dup(STDERR_FILENO);
    ls_status s = LS_EPENDING;
    size_t n = 0;
    dup2(fileno(log), STDERR_FILENO);
    for (int i = 0; i < 120 && n == 0 && s == LS_EPENDING; i++) {
        s = ls_wait(q, 1, e);
        rewind(log);
        n = fread(text, 1, nbytes - 1, log);
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    fclose(log);
    text[n] = 0;
    return s;
}

/* The report says `who`, that it waits, for however many seconds: on a busy machine some more; and
 * `where`. */
static bool says_wait(const char *text, const char *who, const char *where) {
    const char *at = strstr(text, who);
    if (!at) return false;
    at += strlen(who);
    size_t digits = strspn(at, "0123456789");
    return digits && strncmp(at + digits, where, strlen(where)) == 0;
}

typedef struct way {
    bool stop, tcp;
} way;

static ls_status reported(ls_group *g, void *arg, ls_error *e) {
    char text[4096] = "";
    bool stop = ((const way *)arg)->stop;
    /* Over TCP it may not answer in time. */
    bool may_be_silent = stop || ((const way *)arg)->tcp;
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    int32_t other = ls_group_rank(g) ? getpid() : 0;
    LS_TRY(ls_all_reduce(g, &other, &other, 1, LS_I32, LS_MAX, e));
    if (ls_group_rank(g) == 1) return stay_away(g, stop, e);
    const char *awaited = stop ? "stopped" : "sleeping";
    for (int i = 0; i < 6000 && strcmp(ls_process_state(other), awaited) != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    ls_request *q = NULL;
    LS_TRY(ls_barrier_start(g, &q, e));
    ls_status s = capture_report(&q, text, sizeof text, e);
    kill(other, stop ? SIGCONT : SIGUSR1);
    bool stopped = strstr(text, "is stopped; "), silent = strstr(text, "; it does not answer");
    char late[64];
    snprintf(late, sizeof late, " for the other:\n  worker 1 (pid %d) is ", other);
    if (!says_wait(text, "1 of 2 workers have waited ",
                   " s in barrier as call 1 at health_test.c:") ||
        !strstr(text, late) || stopped != stop || (silent && !may_be_silent) ||
        (!silent &&
         !strstr(text, "it has made all_reduce i32 max, 1 element as call 0 at health_")))
        return ls_fail(e, LS_EINVAL, "status %d, the report is: %.300s", (int)s, text);
    return s == LS_OK ? s : ls_wait(&q, -1, e);
}

/* No worker is taken for gone because /proc can't be read. */
static void test_without_proc(void **state) {
    (void)state;
    struct rlimit before, none;
    pid_t child = fork();
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){3, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const char *own = ls_process_state(getpid()), *ended = ls_process_state(child);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_string_equal(own, "in an unknown state");
    assert_string_equal(ended, "gone");
}

static void test_report(void **state) {
    (void)state;
    need_processes();
    for (int i = 0; i < 4; i++) {
        way w = {.stop = i % 2, .tcp = i / 2};
        ls_group_options o = {.report_s = 0.2, .transport = w.tcp ? "tcp" : NULL};
        run_processes(2, &o, reported, &w);
    }
}

/* Worker 0 receives from worker 1, which receives from worker 0. */
static ls_status both_receive(ls_group *g, void *arg, ls_error *e) {
    enum { TRIES = 40 };
    float x[11] = {0}, y[TRIES][11];
    int32_t n = 0;
    ls_request *q[TRIES] = {0};
    (void)arg;
    LS_TRY(ls_barrier(g, e));
    if (ls_group_rank(g) == 1) {
        LS_TRY(ls_recv(g, &n, 1, LS_I32, 0, e));
        for (int i = 0; i < n; i++) LS_TRY(ls_send(g, x, 11, LS_F32, 0, e));
        return LS_OK;
    }
    for (bool seen = false; !seen; n++) { /* worker 1 may not be there yet when the report comes */
        char text[4096] = "";
        if (n == TRIES) return ls_fail(e, LS_EIO, "worker 1 is not seen to wait");
        LS_TRY(ls_recv_start(g, y[n], 11, LS_F32, 1, &q[n], e));
        ls_status s = capture_report(&q[n], text, sizeof text, e);
        if (s != LS_EPENDING || !says_wait(text, "worker 0 has waited ",
                                           " s in recv of 44 bytes from worker 1 at health_te"))
            return ls_fail(e, LS_EINVAL, "status %d, the report is: %.400s", (int)s, text);
        seen = strstr(text, "; it waits in recv of 4 bytes from worker 0 at health_test.c:");
    }
    LS_TRY(ls_send(g, &n, 1, LS_I32, 1, e));
    for (int i = 0; i < n; i++) LS_TRY(ls_wait(&q[i], -1, e));
    return LS_OK;
}

static void test_report_of_messages(void **state) {
    (void)state;
    need_processes();
    for (int tcp = 0; tcp < 2; tcp++)
        run_processes(2, &(ls_group_options){.report_s = 0.2, .transport = tcp ? "tcp" : NULL},
                      both_receive, NULL);
}

/* ---- workers that leave ---- */

static ls_status leave(ls_group *g, void *arg, ls_error *e) {
    (void)arg;
    return ls_group_rank(g) == 1 ? LS_OK : ls_barrier(g, e);
}

static void test_left(void **state) {
    (void)state;
    ls_error e[2] = {0};
    run_threads(2, NULL, leave, NULL, e);
    assert_int_equal(e[0].code, LS_EPEER);
    assert_non_null(strstr(e[0].msg, "worker 1 (pid"));
    assert_non_null(strstr(e[0].msg, "has left the group"));
}

static ls_status killed(ls_group *g, void *arg, ls_error *e) {
    (void)arg;
    LS_TRY(ls_barrier(g, e));
    if (ls_group_rank(g) == 1) _exit(0); /* without closing */
    ls_status s = ls_barrier(g, e);
    return s == LS_EPEER && strstr(e->msg, "worker 1 (pid") ? LS_OK : LS_EINVAL;
}

static void test_killed(void **state) {
    (void)state;
    need_processes();
    run_processes(3, NULL, killed, NULL);
    run_processes(3, &(ls_group_options){.transport = "tcp"}, killed, NULL);
}

/* health_test [TEST] */
int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_disagreement),
        cmocka_unit_test(test_disagreement_of_processes),
        cmocka_unit_test(test_testing),
        cmocka_unit_test(test_never_joined),
        cmocka_unit_test(test_late),
        cmocka_unit_test(test_pending),
        cmocka_unit_test(test_without_proc),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_report_of_messages),
        cmocka_unit_test(test_left),
        cmocka_unit_test(test_other_algorithm),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
