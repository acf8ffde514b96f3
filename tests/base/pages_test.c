/* pages_test.c - pages that are given back read as zeros; those that are held stay as they are, and
 * those that another process may hold stay where they are. */
#include "base/pages.h"

#include <sys/mman.h>

#include "test.h"

enum { PAGE = 4096, PAGES = 9 };

static unsigned char *mapped(int flags) {
    void *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

/* Are the bytes of pages [first, end) all of this value? */
static bool are(const unsigned char *p, int first, int end, int value) {
    for (int i = first * PAGE; i < end * PAGE; i++)
        if (p[i] != value) return false;
    return true;
}

static void check_return(int flags) {
    unsigned char *p = mapped(flags);
    memset(p, 7, PAGES * PAGE);
    ls_pages_hold(p + 3 * PAGE, 2 * PAGE + 5);
    ls_pages_hold(p + 3 * PAGE, 1);
    ls_pages_return(p, PAGES * PAGE); /* a part of it is held */
    ls_pages_return(p + 5 * PAGE, PAGE);
    assert_true(are(p, 0, PAGES, 7));
    ls_pages_return(p + 1, 3 * PAGE - 1); /* whole pages: 1 and 2 */
    ls_pages_return(p + 6 * PAGE, 2 * PAGE - 1);
    assert_true(are(p, 0, 1, 7) && are(p, 1, 3, 0) && are(p, 3, 6, 7));
    assert_true(are(p, 6, 7, 0) && are(p, 7, PAGES, 7));
    ls_pages_let_go(p + 3 * PAGE); /* one of the two that hold it */
    ls_pages_return(p + 3 * PAGE, PAGE);
    assert_true(are(p, 3, 4, 7));
    ls_pages_let_go(p + 3 * PAGE);
    ls_pages_let_go(p + 3 * PAGE);
    ls_pages_return(p + 3 * PAGE, PAGE);
    assert_true(are(p, 3, 4, 0));
    munmap(p, PAGES * PAGE);
}

static void test_return(void **state) {
    (void)state;
    check_return(MAP_SHARED);
    check_return(MAP_PRIVATE);
}

static void test_clear(void **state) {
    unsigned char *p = mapped(MAP_SHARED), there[PAGES];
    (void)state;
    memset(p, 7, PAGE);
    memset(p + 4 * PAGE, 7, 3 * PAGE);
    p[PAGES * PAGE - 1] = 7;
    ls_pages_clear(p, (PAGES - 1) * PAGE);
    assert_int_equal(mincore(p, PAGES * PAGE, there), 0);
    for (int i = 0; i < PAGES - 1; i++) assert_int_equal(there[i] & 1, i == 0 || (i >= 4 && i < 7));
    assert_true(are(p, 0, PAGES - 1, 0));
    assert_int_equal(p[PAGES * PAGE - 1], 7);
    munmap(p, PAGES * PAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_return), cmocka_unit_test(test_clear)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
