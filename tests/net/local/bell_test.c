/* bell_test.c - no ring is lost, however the owner waits; no wait sleeps beyond its limit.
 *
 * A sleeper looks again once a second, which hides a lost ring. So the tests of rings make futex()
 * sleep for LOST_S instead: a sleep that lasts so long shows a lost ring.
 */
/* ctest: own-copy seconds=15 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

static long futex(long number, atomic_uint *at, int what, unsigned value, struct timespec *t);
static int yield(void);
static int64_t clock_ns(void);
#define syscall(number, at, what, value, t, other, mask) futex(number, at, what, value, t)
#define sched_yield                                      yield
#define ls_clock_ns                                      clock_ns
#include "net/local/bell.c"
#undef syscall
#undef sched_yield
#undef ls_clock_ns

enum { LOST_S = 120 };
static bool long_sleeps;        /* sleeps last LOST_S; set before there are other threads */
static atomic_int lost;         /* sleeps that did */
static atomic_llong longest_ns; /* the longest sleep that was asked for */

/* A clock by which nothing takes time but yields and sleeps. */
static bool pretends;
static int64_t pretended_ns, yield_takes_ns;
static int yields;

/* The bell's system calls. */
static long futex(long number, atomic_uint *at, int what, unsigned value, struct timespec *t) {
    if (what == FUTEX_WAIT) {
        long long ns = t->tv_sec * 1000000000LL + t->tv_nsec;
        if (ns > atomic_load(&longest_ns)) atomic_store(&longest_ns, ns);
        if (pretends) {
            pretended_ns += ns;
            return 0;
        }
        if (long_sleeps) *t = (struct timespec){.tv_sec = LOST_S};
    }
    long result = syscall(number, at, what, value, t, NULL, 0);
    if (result < 0 && errno == ETIMEDOUT && long_sleeps) atomic_fetch_add(&lost, 1);
    return result;
}

static int64_t clock_ns(void) { return pretends ? pretended_ns : ls_clock_ns(); }

static int yield(void) {
    if (!pretends) return sched_yield();
    yields++;
    pretended_ns += yield_takes_ns;
    return 0;
}

#if defined(__SANITIZE_THREAD__)
enum { ROUNDS = 20000 };
#else
enum { ROUNDS = 200000 };
#endif

/* SOME_ROUNDS are played in any case; then the game ends after five seconds. */
enum { RINGERS = 4, OVER = -1, SOME_ROUNDS = 100 };
static const int64_t MS = 1000 * 1000;

/* Ways to wait: spins for ever; yields between looks, for ever; sleeps at once; and as workers
 * do. */
static const ls_patience WAYS[] = {
    {.looks = INT_MAX}, {.looks = 1, .yields = INT_MAX}, {0}, {.looks = 20, .yields = 3}};
enum { NWAYS = sizeof WAYS / sizeof *WAYS };

/* ---- two threads that wait for each other ---- */

typedef struct game {
    ls_bell bells[2];
    atomic_int turn; /* the round's number: the player turn % 2 is next */
    int ball;        /* not atomic: the player whose turn it is owns it */
    ls_patience patience;
} game;

typedef struct player {
    game *g;
    int me;
    int wrong;
} player;

static bool my_turn(void *arg) {
    const player *p = arg;
    int turn = atomic_load_explicit(&p->g->turn, memory_order_acquire);
    return turn == OVER || turn % 2 == p->me;
}

/* If other programs hold the cores, fewer rounds than ROUNDS must do. */
static void play(player *p) {
    game *g = p->g;
    int64_t begin = ls_clock_ns();
    for (;;) {
        p->wrong += !ls_bell_wait(&g->bells[p->me], my_turn, p, &g->patience, -1);
        bool late = ls_clock_ns() - begin > 5000 * MS;
        int turn = atomic_load_explicit(&g->turn, memory_order_acquire);
        if (turn == OVER) return;
        p->wrong += g->ball++ != turn;
        bool end = turn >= ROUNDS || (late && turn >= SOME_ROUNDS);
        atomic_store_explicit(&g->turn, end ? OVER : turn + 1, memory_order_release);
        ls_bell_ring(&g->bells[1 - p->me]);
        if (end) return;
    }
}

static void *player_main(void *arg) {
    play(arg);
    return NULL;
}

static void test_turns(void **state) {
    (void)state;
    for (int w = 0; w < NWAYS; w++) {
        game g = {.patience = WAYS[w]};
        player a = {.g = &g, .me = 0}, b = {.g = &g, .me = 1};
        pthread_t other;
        assert_int_equal(pthread_create(&other, NULL, player_main, &b), 0);
        play(&a);
        pthread_join(other, NULL);
        assert_int_equal(a.wrong + b.wrong, 0);
        assert_int_equal(atomic_load(&lost), 0);
        assert_true(g.ball > SOME_ROUNDS);
        for (int i = 0; i < 2; i++) assert_int_equal(atomic_load(&g.bells[i].sleeping), 0);
    }
}

/* ---- many threads that ring ---- */

typedef struct doorbell {
    ls_bell bell;
    atomic_int given[RINGERS], taken[RINGERS];
    int turns;
} doorbell;

typedef struct ringer {
    doorbell *h;
    int me;
    pthread_t thread;
} ringer;

/* Each ringer waits until its last ring has been noticed, so no ring can make up for a lost one. */
static void *ringer_main(void *arg) {
    const ringer *r = arg;
    doorbell *h = r->h;
    for (int i = 1; i <= h->turns; i++) {
        atomic_store_explicit(&h->given[r->me], i, memory_order_release);
        ls_bell_ring(&h->bell);
        while (atomic_load(&h->taken[r->me]) < i) sched_yield();
    }
    return NULL;
}

static bool any_given(void *arg) {
    doorbell *h = arg;
    for (int i = 0; i < RINGERS; i++)
        if (atomic_load_explicit(&h->given[i], memory_order_acquire) != atomic_load(&h->taken[i]))
            return true;
    return false;
}

static void test_many_ringers(void **state) {
    (void)state;
    static doorbell h;
    h.turns = ROUNDS / 20;
    ringer ringers[RINGERS];
    int left = RINGERS * h.turns;
    for (int i = 0; i < RINGERS; i++) {
        ringers[i] = (ringer){.h = &h, .me = i};
        assert_int_equal(pthread_create(&ringers[i].thread, NULL, ringer_main, &ringers[i]), 0);
    }
    while (left) {
        assert_true(ls_bell_wait(&h.bell, any_given, &h, &WAYS[2], -1));
        for (int i = 0; i < RINGERS; i++) {
            int given = atomic_load_explicit(&h.given[i], memory_order_acquire);
            left -= given - atomic_exchange(&h.taken[i], given);
        }
    }
    for (int i = 0; i < RINGERS; i++) pthread_join(ringers[i].thread, NULL);
    assert_int_equal(atomic_load(&lost), 0);
}

/* Two threads of one worker sleep at one bell; each waits for an event of its own. */
typedef struct shared_bell {
    ls_bell bell;
    atomic_int woken[2];
} shared_bell;

typedef struct sleeper {
    shared_bell *b;
    int me;
    bool woke;
} sleeper;

static bool is_woken(void *arg) {
    const sleeper *s = arg;
    return atomic_load_explicit(&s->b->woken[s->me], memory_order_acquire) != 0;
}

static void *sleeper_main(void *arg) {
    sleeper *s = arg;
    s->woke = ls_bell_wait(&s->b->bell, is_woken, s, &WAYS[2], -1);
    return NULL;
}

static void test_two_sleepers(void **state) {
    (void)state;
    static shared_bell b;
    sleeper s[2] = {{.b = &b, .me = 0}, {.b = &b, .me = 1}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleeper_main, &s[i]), 0);
    while (atomic_load(&b.bell.sleeping) < 2) usleep(1000);
    for (int i = 1; i >= 0; i--) {
        atomic_store_explicit(&b.woken[i], 1, memory_order_release);
        ls_bell_ring(&b.bell);
        pthread_join(threads[i], NULL);
        assert_true(s[i].woke);
        assert_int_equal(atomic_load(&b.bell.sleeping), i);
    }
    assert_int_equal(atomic_load(&lost), 0);
}

/* ---- what a wait learns from the ones before ---- */

static bool at_once(void *arg) {
    (void)arg;
    return true;
}

static void *long_main(void *arg) {
    sleeper *s = arg;
    const ls_patience p = ls_patience_for(1, 1);
    for (int i = 0; i < 1000; i++) ls_bell_wait(&s->b->bell, at_once, NULL, &p, -1);
    s->woke = ls_bell_wait(&s->b->bell, is_woken, s, &p, -1);
    return NULL;
}

/* A wait that lasts sleeps, however quickly the waits before have ended. */
static void test_sleeps_after_quick_waits(void **state) {
    (void)state;
    static shared_bell b;
    sleeper s = {.b = &b};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, long_main, &s), 0);
    while (atomic_load(&b.bell.sleeping) < 1) usleep(1000);
    atomic_store_explicit(&b.woken[0], 1, memory_order_release);
    ls_bell_ring(&b.bell);
    pthread_join(thread, NULL);
    assert_true(s.woke);
}

static bool never(void *arg) {
    ++*(int *)arg;
    return false;
}
static bool at_third(void *arg) { return ++*(int *)arg == 3; }

/* The yields of a wait in vain. */
static int yields_in(ls_patience p, int64_t limit_ns) {
    ls_bell bell = {0};
    int looks = 0, before = yields;
    assert_false(ls_bell_wait(&bell, never, &looks, &p, limit_ns));
    return yields - before;
}

/* After a yield that took a time slice, waits sleep; some waits later one tries again. Workers that
 * share cores yield to each other. */
static void test_busy(void **state) {
    (void)state;
    const ls_patience alone = {.looks = 21, .yields = 3}, shared = {.looks = 1, .yields = 3};
    pretends = true;
    yield_takes_ns = 1000;
    assert_int_equal(yields_in(alone, 10 * MS), 3);
    yield_takes_ns = 2 * MS;
    assert_int_equal(yields_in(shared, 10 * MS), 3);
    assert_int_equal(yields_in(alone, 10 * MS), 1);
    for (int i = 0; i < BUSY_WAITS; i++) assert_int_equal(yields_in(alone, 1), 0);
    assert_int_equal(yields_in(alone, 10 * MS), 1);
    assert_int_equal(yields_in(shared, 10 * MS), 3);
    yield_takes_ns = 1000;
    for (int i = 0; i < BUSY_WAITS; i++) assert_int_equal(yields_in(alone, 1), 0);
    assert_int_equal(yields_in(alone, 10 * MS), 3);
    pretends = false;
}

/* ---- limits ---- */

static void test_limits(void **state) {
    (void)state;
    static const int64_t limits[] = {0, 1, 30, 1100};
    static const ls_patience ways[] = {{0}, {.looks = 100, .yields = 10}};
    for (int w = 0; w < 2; w++)
        for (int i = 0; i < 4; i++) {
            ls_bell bell = {0};
            int looks = 0;
            int64_t begin = ls_clock_ns();
            atomic_store(&longest_ns, 0);
            assert_false(ls_bell_wait(&bell, never, &looks, &ways[w], limits[i] * MS));
            assert_true(ls_clock_ns() - begin >= limits[i] * MS);
            assert_true(looks >= 1);
            assert_true(limits[i] || looks == 1); /* no time: one look */
            assert_true(atomic_load(&longest_ns) <= (limits[i] < 1000 ? limits[i] : 1000) * MS);
            assert_int_equal(atomic_load(&bell.sleeping), 0);
        }
}

static void test_ready(void **state) {
    (void)state;
    ls_bell bell = {0};
    int looks = 0;
    ls_patience p = {.looks = 2, .yields = 5};
    assert_true(ls_bell_wait(&bell, at_third, &looks, &p, -1));
    assert_int_equal(looks, 3);
    ls_bell_ring(&bell); /* nobody sleeps */
    assert_int_equal(atomic_load(&bell.rung), 0);
    looks = 2;
    assert_true(ls_bell_wait(&bell, at_third, &looks, &p, 0));
}

static void test_patience(void **state) {
    (void)state;
    assert_true(ls_patience_for(2, 2).looks > ls_patience_for(3, 2).looks);
    assert_true(ls_patience_for(64, 2).looks >= 1);
    assert_int_equal(setenv("LOCKSTEP_WAIT_POLICY", "passive", 1), 0);
    ls_patience p = ls_patience_for(2, 2);
    assert_int_equal(unsetenv("LOCKSTEP_WAIT_POLICY"), 0);
    assert_int_equal(p.looks + p.yields, 0);
}

static int sleep_long(void **state) {
    (void)state;
    long_sleeps = true;
    atomic_store(&lost, 0);
    return 0;
}

static int sleep_as_asked(void **state) {
    (void)state;
    long_sleeps = false;
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_turns, sleep_long, sleep_as_asked),
        cmocka_unit_test_setup_teardown(test_many_ringers, sleep_long, sleep_as_asked),
        cmocka_unit_test_setup_teardown(test_two_sleepers, sleep_long, sleep_as_asked),
        cmocka_unit_test_setup_teardown(test_sleeps_after_quick_waits, sleep_long, sleep_as_asked),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_patience),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
