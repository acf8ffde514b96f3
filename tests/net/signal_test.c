/* signal_test.c - waits end at the value, at the time limit, or when the group is aborted. */
#include "net/signal.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

enum { WAITERS = 6 };

static const int64_t MS = 1000 * 1000;
static atomic_int aborted;

static ls_waiter waiter(int spins, int64_t timeout_ns) {
    return (ls_waiter){.aborted = &aborted, .spins = spins, .timeout_ns = timeout_ns};
}

static int reset(void **state) {
    (void)state;
    atomic_store(&aborted, 0);
    return 0;
}

static void test_values(void **state) {
    (void)state;
    ls_signal s = {0};
    ls_waiter w = waiter(10, 0);
    assert_int_equal(ls_signal_wait(&s, 0, &w), LS_OK);
    assert_int_equal(ls_signal_wait(&s, 1, &w), LS_ETIMEOUT);
    ls_signal_post(&s, 5);
    assert_int_equal(ls_signal_wait(&s, 4, &w), LS_OK); /* a later value counts, too */
    assert_int_equal(ls_signal_wait(&s, 5, &w), LS_OK);
    assert_int_equal(ls_signal_wait(&s, 6, &w), LS_ETIMEOUT);
}

static void test_wrap(void **state) {
    (void)state;
    ls_signal s = {0};
    ls_waiter w = waiter(0, 0);
    ls_signal_post(&s, UINT32_MAX);
    assert_int_equal(ls_signal_wait(&s, UINT32_MAX, &w), LS_OK);
    assert_int_equal(ls_signal_wait(&s, 0, &w), LS_ETIMEOUT); /* the next value */
    ls_signal_post(&s, 0);
    assert_int_equal(ls_signal_wait(&s, UINT32_MAX, &w), LS_OK);
    assert_int_equal(ls_signal_wait(&s, 0, &w), LS_OK);
    assert_int_equal(ls_signal_wait(&s, 1, &w), LS_ETIMEOUT);
}

static void test_timeout(void **state) {
    (void)state;
    ls_signal s = {0};
    static const int64_t limits[] = {0, 1, 30, 70};
    for (int i = 0; i < 4; i++) {
        ls_waiter w = waiter(i % 2 ? 100 : 0, limits[i] * MS);
        int64_t begin = ls_clock_ns();
        assert_int_equal(ls_signal_wait(&s, 1, &w), LS_ETIMEOUT);
        int64_t took = ls_clock_ns() - begin;
        assert_true(took >= limits[i] * MS);
        assert_true(took < (limits[i] + 1000) * MS);
    }
    assert_int_equal(atomic_load(&s.sleepers), 0);
}

typedef struct wait_job {
    ls_signal *s;
    ls_waiter w;
    unsigned want;
    int data; /* plain memory that the poster writes first */
    int *read;
    ls_status got;
    pthread_t thread;
} wait_job;

static void *wait_main(void *arg) {
    wait_job *j = arg;
    j->got = ls_signal_wait(j->s, j->want, &j->w);
    if (j->got == LS_OK) j->data = *j->read;
    return NULL;
}

static void start_waiters(wait_job *jobs, ls_signal *s, int *data) {
    for (int i = 0; i < WAITERS; i++) {
        jobs[i] = (wait_job){.s = s, .want = 3, .read = data};
        jobs[i].w = waiter(i % 2 ? 1000 : 0, i % 3 ? -1 : 20000 * MS);
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, wait_main, &jobs[i]), 0);
    }
    while (atomic_load(&s->sleepers) < WAITERS) usleep(1000);
}

static void join_waiters(wait_job *jobs, ls_status want) {
    for (int i = 0; i < WAITERS; i++) {
        pthread_join(jobs[i].thread, NULL);
        assert_int_equal(jobs[i].got, want);
    }
}

static void test_many_waiters(void **state) {
    (void)state;
    ls_signal s = {0};
    wait_job jobs[WAITERS];
    int data = 0;
    start_waiters(jobs, &s, &data);
    ls_signal_post(&s, 2); /* not yet */
    usleep(50000);
    assert_int_equal(atomic_load(&s.sleepers), WAITERS);
    data = 42;
    ls_signal_post(&s, 3);
    join_waiters(jobs, LS_OK);
    for (int i = 0; i < WAITERS; i++) assert_int_equal(jobs[i].data, 42);
    assert_int_equal(atomic_load(&s.sleepers), 0);
}

static void test_abort(void **state) {
    (void)state;
    ls_signal s = {0};
    wait_job jobs[WAITERS];
    int data = 0;
    start_waiters(jobs, &s, &data);
    int64_t begin = ls_clock_ns();
    atomic_store(&aborted, 1);
    join_waiters(jobs, LS_EABORT);
    assert_true(ls_clock_ns() - begin < 2000 * MS); /* 20 ms where the machine is idle */
    ls_waiter w = waiter(0, -1);
    assert_int_equal(ls_signal_wait(&s, 1, &w), LS_EABORT);
    assert_int_equal(ls_signal_wait(&s, 0, &w), LS_OK); /* what has come, has come */
}

enum { ROUNDS = 3000 };

typedef struct game {
    ls_signal ping, pong;
    int ball; /* plain: whoever's turn it is owns it */
} game;

/* The second player; returns how often the ball was wrong. */
static int answer(game *g, int spins) {
    int wrong = 0;
    ls_waiter w = waiter(spins, 20000 * MS);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        if (ls_signal_wait(&g->ping, i, &w) != LS_OK) return -1;
        wrong += g->ball != (int)(2 * i - 1);
        g->ball++;
        ls_signal_post(&g->pong, i);
    }
    return wrong;
}

static void serve(game *g, int spins) {
    ls_waiter w = waiter(spins, 20000 * MS);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        g->ball++;
        ls_signal_post(&g->ping, i);
        assert_int_equal(ls_signal_wait(&g->pong, i, &w), LS_OK);
        assert_int_equal(g->ball, 2 * i);
    }
}

static void *answer_main(void *arg) { return (void *)(intptr_t)answer(arg, 0); }

/* No wake-up is lost: each turn waits for the other's; a lost one would cost 20 ms. */
static void test_turns_of_threads(void **state) {
    (void)state;
    static game g;
    pthread_t other;
    void *wrong = NULL;
    int64_t begin = ls_clock_ns();
    assert_int_equal(pthread_create(&other, NULL, answer_main, &g), 0);
    serve(&g, 0);
    pthread_join(other, &wrong);
    assert_null(wrong);
    assert_true(ls_clock_ns() - begin < ROUNDS * 10 * MS);
}

static void test_turns_of_processes(void **state) {
    (void)state;
    for (int spins = 0; spins <= 2000; spins += 2000) {
        game *g = mmap(NULL, sizeof *g, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(g != MAP_FAILED);
        pid_t pid = fork();
        if (pid == 0) _exit(answer(g, spins) != 0);
        assert_true(pid > 0);
        serve(g, spins);
        int how = -1;
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_int_equal(how, 0);
        munmap(g, sizeof *g);
    }
}

static void test_spins(void **state) {
    (void)state;
    assert_true(ls_waiter_spins(2, 2) > 0);
    assert_int_equal(ls_waiter_spins(3, 2), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_many_waiters),
        cmocka_unit_test_setup_teardown(test_abort, reset, reset),
        cmocka_unit_test(test_turns_of_threads),
        cmocka_unit_test(test_turns_of_processes),
        cmocka_unit_test(test_spins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
