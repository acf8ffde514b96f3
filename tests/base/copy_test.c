/* copy_test.c - all bytes are copied, and none beside them, whatever the size and the places. */
#include "base/copy.h"

#include <stdlib.h>

#include "test.h"

enum { MOST = 600 << 10, EDGE = 128 };

static void check(unsigned char *to, const unsigned char *from, size_t n, size_t a, size_t b) {
    memset(to, 0xee, n + 2 * EDGE + a);
    ls_copy(to + EDGE + a, from + b, n);
    if (n) assert_memory_equal(to + EDGE + a, from + b, n);
    for (size_t i = 0; i < EDGE; i++) {
        assert_int_equal(to[a + i], 0xee);
        assert_int_equal(to[EDGE + a + n + i], 0xee);
    }
}

static void test_sizes_and_places(void **state) {
    (void)state;
    static const size_t sizes[] = {
        0, 1, 63, 64, 65, 2047, 2048, 2049, 2111, 2112, 99999, (512 << 10) - 1, 512 << 10, MOST};
    unsigned char *from = malloc(MOST + 64), *to = malloc(MOST + 2 * EDGE + 64);
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < MOST + 64; i++) from[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t a = 0; a < 64; a += 13)
            for (size_t b = 0; b < 64; b += 16) check(to, from, sizes[i], a, b);
    free(to);
    free(from);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes_and_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
