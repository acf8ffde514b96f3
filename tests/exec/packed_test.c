/* packed_test.c - rows as a message of those that are not 0: packed and opened again, of any
 * number, from none to all; and what can't be such a message. */
#include "exec/packed.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "test.h"

enum { MOST = 40, WIDEST = 12 };

static uint32_t draw(uint64_t seed, uint64_t i) {
    uint32_t w[4];
    ls_random_words(seed, LS_STREAM_FAKE, 0, i, w);
    return w[0];
}

static bool has_mark(void *arg, size_t row) { return ((const bool *)arg)[row]; }

/* n rows, of which a part is 0, and a part is not wanted; of the others each has at least one
 * byte. */
static void check_rows(uint64_t seed, size_t n, size_t width, int of_ten, bool marked) {
    unsigned char rows[MOST * WIDEST], sent[MOST * WIDEST], bits[8];
    bool mark[MOST];
    size_t left = 0;
    memset(rows, 0, sizeof rows);
    for (size_t i = 0; i < n; i++) {
        mark[i] = !marked || draw(seed, 3 * i) % 2;
        if ((int)(draw(seed, 3 * i + 1) % 10) < of_ten)
            rows[i * width + draw(seed, 3 * i + 2) % width] = (unsigned char)(i + 1);
    }
    memcpy(sent, rows, sizeof rows);
    for (size_t i = 0; i < n; i++) {
        bool empty = true;
        for (size_t k = 0; k < width; k++) empty = empty && rows[i * width + k] == 0;
        left += mark[i] && !empty;
    }
    size_t whole = n * width, some = left * width + (n + 7) / 8;
    const ls_packed_rows p = {.rows = sent, .n = n, .nbytes = width, .bits = bits};
    size_t nbytes = ls_packed_make(&p, marked ? has_mark : NULL, mark);
    assert_int_equal(nbytes, some < whole ? some : whole);
    memset(bits, 0x55, sizeof bits);
    memset(sent + nbytes, 0x77, sizeof sent - nbytes); /* what the receiver had there */
    assert_true(ls_packed_open(&p, nbytes));
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < width; k++)
            assert_int_equal(sent[i * width + k],
                             some < whole && !mark[i] ? 0 : rows[i * width + k]);
    for (size_t i = whole; i < sizeof sent; i++) assert_int_equal(sent[i], 0x77);
}

static void test_rows(void **state) {
    (void)state;
    static const size_t counts[] = {1, 2, 7, 8, 9, MOST}, widths[] = {1, 2, 4, WIDEST};
    for (uint64_t seed = 0; seed < 20; seed++)
        for (int i = 0; i < 6; i++)
            for (int k = 0; k < 4; k++)
                for (int of_ten = 0; of_ten <= 10; of_ten += 5) {
                    check_rows(seed, counts[i], widths[k], of_ten, false);
                    check_rows(seed, counts[i], widths[k], of_ten, true);
                }
}

/* Lengths, and bits of rows that there are not, or of another number than came. */
static void test_wrong(void **state) {
    (void)state;
    unsigned char rows[10 * 4] = {0}, bits[2];
    const ls_packed_rows p = {.rows = rows, .n = 10, .nbytes = 4, .bits = bits};
    assert_false(ls_packed_open(&p, 1));
    assert_false(ls_packed_open(&p, 41));
    assert_false(ls_packed_open(&p, 7));
    rows[4] = 3; /* two rows, but one came */
    assert_false(ls_packed_open(&p, 6));
    rows[4] = 0;
    rows[5] = 0x80; /* row 15 */
    assert_false(ls_packed_open(&p, 6));
    rows[4] = rows[5] = 0;
    assert_true(ls_packed_open(&p, 2));
    rows[4] = 1;
    assert_true(ls_packed_open(&p, 6));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
