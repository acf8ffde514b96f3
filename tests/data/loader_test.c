/* loader_test.c - the loader returns the samples that order.h defines, from any step, and can be
 * freed at any time. */
#include "data/loader.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "data/tokens.h"
#include "test.h"

enum { T = 5, NSAMPLES = 23, NTOKENS = NSAMPLES * T + 1, NBYTES = (T + 1) * 4 };

static uint32_t tokens[NTOKENS];
static ls_tokens text;

static int set_up(void **state) {
    (void)state;
    for (uint32_t i = 0; i < NTOKENS; i++) tokens[i] = 1000 + i;
    text = ls_tokens_of(tokens, NTOKENS, 1000 + NTOKENS);
    return 0;
}

static ls_loader_config config_of(uint64_t batch, int V, int a, int b) {
    return (ls_loader_config){.read = ls_tokens_window,
                              .data = &text,
                              .sample_nbytes = NBYTES,
                              .order = {.n = NSAMPLES, .seed = 77},
                              .batch = batch,
                              .V = V,
                              .a = a,
                              .b = b,
                              .step = 1};
}

static void next(ls_loader *l, ls_batch *b, const uint32_t **got) {
    ls_error e = {0};
    const void *samples = NULL;
    assert_ls_ok(ls_loader_next(l, b, &samples, &e), e);
    *got = samples;
}

static ls_loader *open_at(const ls_loader_config *c, uint64_t step) {
    ls_error e = {0};
    ls_loader *l = NULL;
    assert_ls_ok(ls_loader_create(c, step, &l, &e), e);
    return l;
}

/* One step's samples, from the definitions: sample i is tokens i T .. i T + T. */
static void check_step(const ls_loader_config *c, ls_loader *l, uint64_t step) {
    ls_batch b = {0}, want = ls_batch_of(step, NSAMPLES, c->batch);
    uint64_t first = 0, end = 0, seen = 0;
    const uint32_t *got = NULL;
    next(l, &b, &got);
    assert_true(b.epoch == want.epoch && b.first == want.first && b.count == want.count);
    for (int v = c->a; v < c->b; v += c->step) {
        assert_int_equal(ls_loader_place(c, b.count, v), seen);
        ls_batch_share(want.count, c->V, v, v + 1, &first, &end);
        for (uint64_t i = first; i < end; i++, seen++) {
            uint64_t sample = ls_order_at(&c->order, b.epoch, b.first + i);
            for (uint64_t t = 0; t <= T; t++)
                assert_int_equal(got[seen * (T + 1) + t], 1000 + sample * T + t);
        }
    }
    assert_int_equal(ls_loader_place(c, b.count, c->b), seen);
}

static void test_over_epochs(void **state) {
    (void)state;
    static const uint64_t batches[] = {1, 4, 8, 23, 30};
    static const int workers[][4] = {{1, 0, 1, 1}, {4, 0, 4, 1}, {4, 1, 2, 1}, {8, 3, 8, 1},
                                     {5, 4, 5, 1}, {8, 0, 8, 2}, {8, 3, 8, 4}, {9, 1, 9, 3}};
    static const uint64_t starts[] = {0, 1, 2, 9, 1000};
    for (int i = 0; i < 5; i++)
        for (int w = 0; w < 8; w++) {
            const int *v = workers[w];
            ls_loader_config c = config_of(batches[i], v[0], v[1], v[2]);
            c.step = v[3];
            uint64_t start = starts[(i + w) % 5], steps = 3 * (NSAMPLES / c.batch + 1);
            ls_loader *l = open_at(&c, start);
            for (uint64_t step = start; step < start + steps; step++) check_step(&c, l, step);
            ls_loader_free(l);
        }
}

/* After a seek, as if opened there, whatever its thread is doing. */
static void test_seek(void **state) {
    (void)state;
    ls_loader_config c = config_of(8, 4, 1, 2);
    ls_loader *l = NULL;
    for (int i = 0; i < 600; i++) {
        if (i % 200 == 0) {
            ls_loader_free(l);
            c.threads = 1 + i / 200;
            l = open_at(&c, 0);
        }
        c.a = i % 4;
        c.b = c.a + 1;
        uint64_t step = (uint64_t)(7 * i % 30);
        ls_loader_seek(l, c.a, c.b, step);
        for (int k = 0; k < i % 4; k++) check_step(&c, l, step + (uint64_t)k);
    }
    ls_loader_free(l);
}

/* Any number of threads puts the same samples into the same places. */
static void test_threads(void **state) {
    (void)state;
    static const int threads[] = {1, 2, 3, 8, 40};
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        for (int step = 1; step <= 2; step++) {
            ls_loader_config c = config_of(20, 6, 1, 6);
            c.step = step;
            c.threads = threads[i];
            ls_loader *l = open_at(&c, 0);
            for (uint64_t at = 0; at < 30; at++) check_step(&c, l, at);
            ls_loader_free(l);
        }
}

/* All workers together return every sample of an epoch once, for any number of workers. */
static void test_epoch_is_covered(void **state) {
    (void)state;
    for (int n = 1; n <= 4; n++) {
        int seen[NSAMPLES] = {0};
        for (int w = 0; w < n; w++) {
            ls_loader_config c = config_of(7, 4, 4 * w / n, 4 * (w + 1) / n);
            ls_loader *l = open_at(&c, 0);
            for (int step = 0; step < 4; step++) { /* 7 + 7 + 7 + 2 */
                ls_batch b = {0};
                const uint32_t *got = NULL;
                next(l, &b, &got);
                for (uint64_t i = 0; i < ls_loader_place(&c, b.count, c.b); i++)
                    seen[(got[i * (T + 1)] - 1000) / T]++;
            }
            ls_loader_free(l);
        }
        for (int i = 0; i < NSAMPLES; i++) assert_int_equal(seen[i], 1);
    }
}

/* Samples that were handed out do not change while the thread prepares the next. */
static void test_in_use(void **state) {
    (void)state;
    ls_loader_config c = config_of(8, 1, 0, 1);
    ls_loader *l = open_at(&c, 0);
    for (int step = 0; step < 200; step++) {
        ls_batch b = {0};
        const uint32_t *got = NULL;
        uint32_t copy[8 * (T + 1)];
        next(l, &b, &got);
        size_t nbytes = ls_loader_place(&c, b.count, c.b) * (T + 1) * sizeof *got;
        memcpy(copy, got, nbytes);
        for (volatile int wait = 0; wait < 2000; wait++) continue;
        assert_memory_equal(copy, got, nbytes);
    }
    ls_loader_free(l);
}

static void test_freed_while_busy(void **state) {
    (void)state;
    enum { LONG = 20000 };
    uint32_t *many = LS_NEW_ARRAY(uint32_t, 64 * LONG + 1);
    ls_tokens zeros = ls_tokens_of(many, 64 * LONG + 1, 1);
    for (int i = 0; i < 40; i++) {
        ls_loader_config c = config_of(64, 1, 0, 1);
        c.data = &zeros;
        c.sample_nbytes = (LONG + 1) * sizeof(uint32_t);
        c.order = (ls_order){.n = 64, .seed = 1};
        ls_loader *l = open_at(&c, (uint64_t)i);
        ls_batch b = {0};
        const uint32_t *got = NULL;
        for (int k = 0; k < i % 3; k++) next(l, &b, &got);
        ls_loader_free(l);
    }
    ls_loader_free(NULL);
    free(many);
}

/* A sample's bytes are those of its draw. */
static ls_status read_draw(const void *unused, const ls_draw *d, size_t nbytes, void *sample,
                           ls_error *e) {
    (void)unused, (void)e;
    memcpy(sample, d, nbytes);
    return LS_OK;
}

/* Each sample is read with the seed, its epoch and its number, also where an epoch ends between two
 * steps. */
static void test_draws(void **state) {
    (void)state;
    ls_loader_config c = config_of(8, 1, 0, 1);
    c.read = read_draw;
    c.sample_nbytes = sizeof(ls_draw);
    ls_loader *l = open_at(&c, 0);
    for (uint64_t step = 0; step < 7; step++) {
        ls_batch b = {0};
        ls_error e = {0};
        const void *samples = NULL;
        assert_ls_ok(ls_loader_next(l, &b, &samples, &e), e);
        assert_int_equal(b.epoch, step / 3);
        for (uint64_t i = 0; i < b.count; i++) {
            const ls_draw *got = (const ls_draw *)samples + i;
            assert_int_equal(got->seed, c.order.seed);
            assert_int_equal(got->epoch, b.epoch);
            assert_int_equal(got->sample, ls_order_at(&c.order, b.epoch, b.first + i));
        }
    }
    ls_loader_free(l);
}

/* An id beyond the vocabulary fails the step that would train on it, and no other. */
static void test_bad_id(void **state) {
    (void)state;
    ls_loader_config c = config_of(NSAMPLES, 1, 0, 1);
    uint32_t was = tokens[7];
    ls_error e = {0};
    ls_batch b = {0};
    const uint32_t *got = NULL;
    const void *none = NULL;
    tokens[7] = 99999;
    ls_loader *l = open_at(&c, 0);
    assert_ls_fails(ls_loader_next(l, &b, &none, &e), LS_EINVAL, "token 7 has id 99999", e);
    ls_loader_free(l);
    tokens[7] = was;
    l = open_at(&c, 0);
    next(l, &b, &got);
    ls_loader_free(l);
}

typedef struct two_bad {
    uint64_t first, second; /* samples that can't be read, as the batch has them */
    bool waits;             /* the first fails after the second */
    _Atomic bool failed;    /* the second */
} two_bad;

static ls_status read_bad(const void *data, const ls_draw *d, size_t nbytes, void *sample,
                          ls_error *e) {
    two_bad *bad = (two_bad *)(uintptr_t)data;
    (void)nbytes, (void)sample;
    if (d->sample != bad->first && d->sample != bad->second) return LS_OK;
    if (d->sample == bad->second) bad->failed = true;
    while (d->sample == bad->first && bad->waits && !bad->failed) sched_yield();
    return ls_fail(e, LS_EIO, "sample %d", (int)d->sample);
}

/* If several samples can't be read, the first in the batch is reported, even if it is read last. */
static void test_first_error(void **state) {
    (void)state;
    for (int threads = 1; threads <= 5; threads++) {
        ls_loader_config c = config_of(NSAMPLES, 1, 0, 1);
        ls_error e = {0};
        ls_batch b = {0};
        const void *none = NULL;
        char message[32];
        two_bad bad = {.first = ls_order_at(&c.order, 0, 3),
                       .second = ls_order_at(&c.order, 0, 4),
                       .waits = threads > 1};
        snprintf(message, sizeof message, "sample %d", (int)bad.first);
        c.read = read_bad;
        c.data = &bad;
        c.threads = threads;
        ls_loader *l = open_at(&c, 0);
        assert_ls_fails(ls_loader_next(l, &b, &none, &e), LS_EIO, message, e);
        ls_loader_free(l);
    }
}

/* ---- times ---- */

/* Each sample takes this long. */
static _Atomic int64_t slow_ns;

static ls_status read_slowly(const void *unused, const ls_draw *d, size_t nbytes, void *sample,
                             ls_error *e) {
    (void)unused, (void)d, (void)nbytes, (void)sample, (void)e;
    struct timespec pause = {.tv_nsec = (long)slow_ns};
    nanosleep(&pause, NULL);
    return LS_OK;
}

/* How long the next samples are waited for, after a pause. */
static int64_t wait_after(ls_loader *l, int64_t pause_ns) {
    ls_batch b = {0};
    ls_error e = {0};
    const void *samples = NULL;
    struct timespec pause = {.tv_nsec = (long)pause_ns};
    nanosleep(&pause, NULL);
    int64_t began = ls_clock_ns();
    assert_ls_ok(ls_loader_next(l, &b, &samples, &e), e);
    int64_t waited_ns = ls_loader_waited_ns(l);
    assert_in_range(waited_ns, 0, ls_clock_ns() - began);
    return waited_ns;
}

/* A wait is measured, and one that was not necessary is 0. The pauses grow until the machine has
 * shown both. */
static void test_times(void **state) {
    (void)state;
    ls_loader_config c = config_of(1, 1, 0, 1);
    c.read = read_slowly;
    slow_ns = 100000;
    ls_loader *l = open_at(&c, 0);
    while (wait_after(l, 0) == 0) slow_ns = slow_ns < 200000000 ? 2 * slow_ns : slow_ns;
    slow_ns = 0;
    int64_t pause_ns = 100000;
    while (wait_after(l, pause_ns) > 0) pause_ns = pause_ns < 200000000 ? 2 * pause_ns : pause_ns;
    ls_loader_free(l);
}

static void test_nbytes(void **state) {
    (void)state;
    ls_loader_config c = config_of(8, 4, 1, 2); /* 2 samples of 8 */
    size_t least = 2 * (size_t)2 * (T + 1) * sizeof(uint32_t);
    assert_in_range(ls_loader_nbytes(&c), least, 2 * least);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_over_epochs), cmocka_unit_test(test_seek),
        cmocka_unit_test(test_draws),       cmocka_unit_test(test_epoch_is_covered),
        cmocka_unit_test(test_in_use),      cmocka_unit_test(test_freed_while_busy),
        cmocka_unit_test(test_bad_id),      cmocka_unit_test(test_nbytes),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_first_error),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
