/* order_test.c - an epoch is a permutation, its batches cover it, and shares cover a batch. */
#include "data/order.h"

#include "base/mem.h"
#include "test.h"

/* The sample at a place of a global order. */
static uint64_t at(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t place) {
    return ls_order_at(&(ls_order){.n = n, .seed = seed}, epoch, place);
}

static void test_permutation(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 200; n++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            char seen[200] = {0};
            for (uint64_t i = 0; i < n; i++) {
                uint64_t sample = at(42, epoch, n, i);
                assert_true(sample < n);
                assert_int_equal(seen[sample]++, 0);
            }
        }
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* 20000 places at the beginning, spread out and at the end: all in range, no duplicates. */
static void test_large(void **state) {
    (void)state;
    static const uint64_t sizes[] = {
        65535, 65536, 65537, 4000000007, (uint64_t)1 << 40, ((uint64_t)1 << 45) + 1};
    enum { SAMPLED = 20000 };
    uint64_t *seen = LS_NEW_ARRAY(uint64_t, SAMPLED);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        uint64_t n = sizes[k];
        for (uint64_t i = 0; i < SAMPLED; i++) {
            uint64_t place = i < 5000 ? i : i >= 15000 ? n - SAMPLED + i : n / SAMPLED * i;
            if (n < 100000 && i >= 5000 && i < 15000) place = i;
            seen[i] = at(9, 1, n, place);
            assert_true(seen[i] < n);
        }
        qsort(seen, SAMPLED, sizeof *seen, by_value);
        for (int i = 1; i < SAMPLED; i++) assert_true(seen[i] != seen[i - 1]);
        assert_true(seen[0] < n / 1000 && seen[SAMPLED - 1] > n - n / 1000);
    }
    free(seen);
}

/* Two orders of 1000 agree at about one place by chance. */
static void test_differs(void **state) {
    (void)state;
    int seeds = 0, epochs = 0, identity = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t sample = at(1, 0, 1000, i);
        assert_int_equal(sample, at(1, 0, 1000, i));
        seeds += sample == at(2, 0, 1000, i);
        epochs += sample == at(1, 1, 1000, i);
        identity += sample == i;
    }
    assert_true(seeds < 10 && epochs < 10 && identity < 10);
}

/* ---- by blocks ---- */

static void check_order(const ls_order *o, uint64_t epoch, char *seen) {
    memset(seen, 0, o->n);
    for (uint64_t i = 0; i < o->n; i++) {
        uint64_t sample = ls_order_at(o, epoch, i);
        assert_true(sample < o->n);
        assert_int_equal(seen[sample]++, 0);
    }
}

/* Each sample once, for all sizes around those of blocks and windows. */
static void test_blocks_permutation(void **state) {
    (void)state;
    static const uint64_t windows[] = {1, 2, 3, 7, 1000};
    char seen[130];
    for (uint64_t n = 1; n <= 130; n += n < 40 ? 1 : 3)
        for (uint64_t block = 1; block <= 17; block++)
            for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
                ls_order o = {.n = n, .seed = 42, .block = block, .window = windows[w]};
                for (uint64_t epoch = 0; epoch < 2; epoch++) check_order(&o, epoch, seen);
            }
    check_order(&(ls_order){.n = 130, .block = 1000, .window = 1}, 0, seen);
    check_order(&(ls_order){.n = 130, .block = UINT64_MAX / 4, .window = UINT64_MAX / 4}, 0, seen);
}

/* A window's samples are those of `window` blocks, complete, and are not taken in their order. */
static void test_windows(void **state) {
    (void)state;
    enum { N = 10007, BLOCK = 16, WINDOW = 10, NBLOCKS = (N + BLOCK - 1) / BLOCK };
    ls_order o = {.n = N, .seed = 3, .block = BLOCK, .window = WINDOW};
    int of_block[NBLOCKS] = {0}, full = 0, follow = 0;
    for (uint64_t i = 0; i < N; i++) {
        uint64_t sample = ls_order_at(&o, 5, i);
        int count = ++of_block[sample / BLOCK];
        full += count == BLOCK || (sample / BLOCK == NBLOCKS - 1 && count == N % BLOCK);
        follow += i > 0 && sample == ls_order_at(&o, 5, i - 1) + 1;
        int begun = 0; /* blocks of which some samples were taken: those of one window */
        for (int k = 0; i % 97 == 0 && k < NBLOCKS; k++)
            begun += of_block[k] > 0 && of_block[k] < (k == NBLOCKS - 1 ? N % BLOCK : BLOCK);
        assert_true(begun < 2 * WINDOW);
        if (i == N / 2) assert_in_range(full, NBLOCKS / 2 - 2 * WINDOW, NBLOCKS / 2 + 1);
    }
    assert_int_equal(full, NBLOCKS);
    assert_true(follow < N / 100);
}

/* Epochs and seeds have other blocks, and other places within them; each block is as likely to be
 * early as late. */
static void test_blocks_differ(void **state) {
    (void)state;
    ls_order one = {.n = 1000, .seed = 1, .block = 10, .window = 5}, two = one;
    two.seed = 2;
    int seeds = 0, epochs = 0, early[100] = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t sample = ls_order_at(&one, 0, i);
        assert_int_equal(sample, ls_order_at(&one, 0, i));
        seeds += sample == ls_order_at(&two, 0, i);
        epochs += sample == ls_order_at(&one, 1, i);
    }
    assert_true(seeds < 10 && epochs < 10);
    for (uint64_t epoch = 0; epoch < 400; epoch++)
        for (uint64_t i = 0; i < 500; i += 10) early[ls_order_at(&one, epoch, i) / 10]++;
    for (int k = 0; k < 100; k++) assert_in_range(early[k], 120, 280); /* 200 +- 6 deviations */
}

/* A run that continues with a later version takes the samples that it has not taken yet. */
static void test_blocks_recorded(void **state) {
    (void)state;
    static const uint64_t recorded[] = {641, 892, 694, 792, 115, 469, 571, 658};
    ls_order o = {.n = 1003, .seed = 7, .block = 8, .window = 4};
    for (uint64_t i = 0; i < 8; i++) assert_int_equal(ls_order_at(&o, 2, 143 * i), recorded[i]);
}

static void test_batches(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 40; n++)
        for (uint64_t batch = 1; batch <= 45; batch++) {
            uint64_t step = 0;
            for (uint64_t epoch = 0; epoch < 3; epoch++)
                for (uint64_t done = 0; done < n; step++) {
                    ls_batch b = ls_batch_of(step, n, batch);
                    assert_int_equal(b.epoch, epoch);
                    assert_int_equal(b.first, done);
                    assert_int_equal(b.count, n - done < batch ? n - done : batch);
                    done += b.count;
                }
        }
}

/* Samples of virtual workers are adjacent however many a worker runs, and differ by at most one. */
static void test_shares(void **state) {
    (void)state;
    for (uint64_t count = 0; count <= 20; count++)
        for (int V = 1; V <= 8; V++)
            for (int a = 0; a < V; a++) {
                uint64_t first = 0, end = 0, whole_first = 0, whole_end = 0;
                ls_batch_share(count, V, a, a + 1, &first, &end);
                assert_true(end - first == count / (uint64_t)V ||
                            end - first == (count + (uint64_t)V - 1) / (uint64_t)V);
                ls_batch_share(count, V, 0, a + 1, &whole_first, &whole_end);
                assert_true(whole_first == 0 && whole_end == end);
                ls_batch_share(count, V, a, V, &whole_first, &whole_end);
                assert_true(whole_first == first && whole_end == count);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permutation),     cmocka_unit_test(test_large),
        cmocka_unit_test(test_differs),         cmocka_unit_test(test_batches),
        cmocka_unit_test(test_shares),          cmocka_unit_test(test_blocks_permutation),
        cmocka_unit_test(test_windows),         cmocka_unit_test(test_blocks_differ),
        cmocka_unit_test(test_blocks_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
