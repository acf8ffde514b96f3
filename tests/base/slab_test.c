/* slab_test.c - blocks keep their contents, are aligned, and are reused. */
#include "base/slab.h"
#include "test.h"

enum { N = 20 };

static void test_blocks(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 8, 63, 64, 65, 5000};
    for (int i = 0; i < 6; i++) {
        ls_slab s;
        unsigned char *p[N];
        ls_slab_open(&s, sizes[i], 7); /* three segments */
        for (int k = 0; k < N; k++) {
            p[k] = k % 2 ? ls_slab_take(&s) : ls_slab_try(&s);
            assert_int_equal((uintptr_t)p[k] % 16, 0);
            memset(p[k], k, sizes[i]);
        }
        for (int k = 0; k < N; k++)
            for (size_t at = 0; at < sizes[i]; at++) assert_int_equal(p[k][at], k);
        ls_slab_close(&s);
    }
}

static void test_reuse(void **state) {
    (void)state;
    ls_slab s;
    void *p[N];
    ls_slab_open(&s, 100, 4);
    for (int k = 0; k < N; k++) p[k] = ls_slab_take(&s);
    void *segments = s.segments;
    for (int round = 0; round < 3; round++) {
        for (int k = 0; k < N; k++) ls_slab_give(&s, p[k]);
        for (int k = 0; k < N; k++) p[k] = ls_slab_take(&s);
        for (int k = 0; k < N; k++)
            for (int j = 0; j < k; j++) assert_true(p[j] != p[k]);
    }
    assert_ptr_equal(s.segments, segments); /* no new one */
    ls_slab_close(&s);
    ls_slab_close(&(ls_slab){0});
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks), cmocka_unit_test(test_reuse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
