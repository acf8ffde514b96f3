/* split_test.c - every sample is in exactly one part, and over all folds validated exactly once. */
#include "data/split.h"

#include "test.h"

enum { MOST = 400 };

/* Marks the samples of both parts: each exactly once, in ascending order. */
static void check_parts(const ls_split *s, unsigned *validated) {
    char seen[MOST] = {0};
    uint64_t before = 0;
    assert_int_equal(s->ntrain + s->nval, s->n);
    for (uint64_t i = 0; i < s->ntrain; i++) {
        uint64_t at = ls_split_train(s, i);
        assert_true(at < s->n && (i == 0 || at > before));
        assert_int_equal(seen[at]++, 0);
        before = at;
    }
    for (uint64_t i = 0; i < s->nval; i++) {
        uint64_t at = ls_split_val(s, i);
        assert_true(at < s->n && (i == 0 || at > before));
        assert_int_equal(seen[at]++, 0);
        before = at;
        validated[at]++;
    }
}

static void test_fractions(void **state) {
    (void)state;
    static const double fractions[] = {0.001, 0.05, 0.1, 1 / 3.0, 0.37, 0.5};
    ls_error e = {0};
    for (uint64_t n = 2; n < MOST; n++)
        for (size_t k = 0; k < sizeof fractions / sizeof *fractions; k++) {
            ls_split s;
            unsigned validated[MOST] = {0};
            assert_ls_ok(ls_split_by_fraction(n, fractions[k], "x", &s, &e), e);
            uint64_t want = (uint64_t)((double)n * fractions[k]);
            assert_int_equal(s.nval, want ? want : 1);
            check_parts(&s, validated);
        }
}

static void test_folds(void **state) {
    (void)state;
    ls_error e = {0};
    for (uint64_t n = 2; n < 130; n++)
        for (uint64_t folds = 2; folds <= n && folds <= 17; folds++) {
            unsigned validated[MOST] = {0};
            for (uint64_t fold = 0; fold < folds; fold++) {
                ls_split s;
                assert_ls_ok(ls_split_by_folds(n, folds, fold, "x", &s, &e), e);
                assert_true(s.nval == n / folds || s.nval == n / folds + 1);
                check_parts(&s, validated);
            }
            for (uint64_t i = 0; i < n; i++) assert_int_equal(validated[i], 1);
        }
}

/* Sorted data, 1000 samples a class: each class is validated in about its share, and the places
 * within groups are spread. */
static void test_sorted(void **state) {
    (void)state;
    ls_error e = {0};
    ls_split s;
    unsigned classes[10] = {0}, places[20] = {0};
    assert_ls_ok(ls_split_by_fraction(10000, 0.05, "x", &s, &e), e);
    assert_int_equal(s.nval, 500);
    for (uint64_t k = 1; k <= 50; k++) {
        ls_split hundredths;
        assert_ls_ok(ls_split_by_fraction(100, (double)k / 100, "x", &hundredths, &e), e);
        assert_int_equal(hundredths.nval, k);
    }
    for (uint64_t i = 0; i < s.nval; i++) {
        classes[ls_split_val(&s, i) / 1000]++;
        places[ls_split_val(&s, i) % 20]++;
    }
    for (int i = 0; i < 10; i++) assert_int_equal(classes[i], 50);
    for (int i = 0; i < 20; i++) assert_in_range(places[i], 10, 45);
}

/* Sizes at which products would overflow: the last samples, and no place twice. */
static void test_large(void **state) {
    (void)state;
    ls_error e = {0};
    ls_split s;
    uint64_t n = ((uint64_t)1 << 62) + 12345;
    assert_ls_ok(ls_split_by_fraction(n, 0.37, "x", &s, &e), e);
    assert_true(ls_split_val(&s, s.nval - 1) < n);
    assert_true(ls_split_train(&s, s.ntrain - 1) < n);
    assert_true(n - ls_split_train(&s, s.ntrain - 1) <= 2);
    assert_ls_ok(ls_split_by_folds(n, 10, 3, "x", &s, &e), e);
    assert_true(n - ls_split_train(&s, s.ntrain - 1) <= 2);
    assert_true(n - ls_split_val(&s, s.nval - 1) <= 20);
}

static void test_refused(void **state) {
    (void)state;
    ls_error e = {0};
    ls_split s;
    assert_int_equal(ls_split_by_fraction(1, 0.1, "one.csv", &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "one.csv: has 1 sample; training and validation need at least"));
    assert_int_equal(ls_split_by_folds(4, 5, 0, "few.csv", &s, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "few.csv: has 4 samples, fewer than data.folds 5"));
    s = ls_split_nothing(7);
    assert_int_equal(s.ntrain, 7);
    assert_int_equal(s.nval, 0);
    assert_int_equal(ls_split_train(&s, 6), 6);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fractions),
                                       cmocka_unit_test(test_folds), cmocka_unit_test(test_sorted),
                                       cmocka_unit_test(test_large),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
