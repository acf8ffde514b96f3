/* order_test.c - an epoch is a permutation, its batches cover it, and shares cover a batch. */
#include "data/order.h"

#include "base/mem.h"
#include "test.h"

static void test_permutation(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 200; n++)
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            char seen[200] = {0};
            for (uint64_t i = 0; i < n; i++) {
                uint64_t at = ls_order_at(42, epoch, n, i);
                assert_true(at < n);
                assert_int_equal(seen[at]++, 0);
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
            seen[i] = ls_order_at(9, 1, n, place);
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
        uint64_t at = ls_order_at(1, 0, 1000, i);
        assert_int_equal(at, ls_order_at(1, 0, 1000, i));
        seeds += at == ls_order_at(2, 0, 1000, i);
        epochs += at == ls_order_at(1, 1, 1000, i);
        identity += at == i;
    }
    assert_true(seeds < 10 && epochs < 10 && identity < 10);
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
        cmocka_unit_test(test_permutation), cmocka_unit_test(test_large),
        cmocka_unit_test(test_differs),     cmocka_unit_test(test_batches),
        cmocka_unit_test(test_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
