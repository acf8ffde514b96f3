/* pack_test.c - packing: each sample once, no row too long, few rows, the order of equal ones. */
#include "chat/pack.h"

#include "test.h"

static void check(const uint32_t *lengths, uint64_t n, uint32_t room, bool alone) {
    ls_packing p = ls_pack(lengths, n, room, alone);
    int *seen = LS_NEW_ARRAY(int, n + 1);
    uint64_t all = 0;
    assert_int_equal(p.first[0], 0);
    assert_int_equal(p.first[p.nrows], n);
    for (uint64_t r = 0; r < p.nrows; r++) {
        uint64_t sum = 0;
        assert_true(p.first[r] < p.first[r + 1]);
        for (uint64_t i = p.first[r]; i < p.first[r + 1]; i++) {
            sum += lengths[p.samples[i]];
            seen[p.samples[i]]++;
        }
        assert_true(sum <= room);
        all += sum;
    }
    for (uint64_t i = 0; i < n; i++) assert_int_equal(seen[i], 1);
    /* Best fit decreasing takes at most 11/9 of the fewest rows, and 4 more. */
    if (!alone) assert_true((double)p.nrows <= 11.0 / 9 * (double)(all / room + 1) + 4);
    if (alone) assert_int_equal(p.nrows, n);
    free(seen);
    ls_packing_free(&p);
}

static void test_rules(void **state) {
    (void)state;
    static const uint32_t rooms[] = {1, 2, 63, 64, 65, 100, 1000};
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
        for (uint64_t n = 0; n < 300; n += n < 5 ? 1 : 97) {
            uint32_t lengths[300];
            for (uint64_t i = 0; i < n; i++)
                lengths[i] = 1 + (uint32_t)(i * 7919 + k * 31 + i * i) % rooms[k];
            check(lengths, n, rooms[k], false);
            check(lengths, n, rooms[k], true);
        }
    }
}

/* By hand: 6 and 4, 5 and 5, 3 with 3 and 2. */
static void test_example(void **state) {
    (void)state;
    static const uint32_t lengths[] = {3, 6, 5, 4, 2, 5, 3};
    static const uint64_t rows[][3] = {{1, 3}, {2, 5}, {0, 6, 4}};
    ls_packing p = ls_pack(lengths, 7, 10, false);
    assert_int_equal(p.nrows, 3);
    for (int r = 0; r < 3; r++)
        for (uint64_t i = p.first[r]; i < p.first[r + 1]; i++)
            assert_int_equal(p.samples[i], rows[r][i - p.first[r]]);
    assert_int_equal(p.first[2], 4);
    ls_packing_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules),
                                       cmocka_unit_test(test_example)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
