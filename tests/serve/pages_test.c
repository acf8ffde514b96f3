/* pages_test.c - pages are shared where they are full, copied where they begin alike, and taken
 * again in the order in which they were left. */
#include "serve/page_name.h"
#include "serve/pages.h"
#include "test.h"

enum { NBYTES = 5000, PAGES = 4, PART = LS_PAGE_PART, PARTS = LS_PAGE_PARTS };

static ls_page_name name_of(uint32_t text, int part) {
    ls_page_name name = {0};
    for (uint32_t k = 0; k <= (uint32_t)part; k++)
        name = ls_page_name_of(&name, (uint32_t[]){text, k}, 2);
    return name;
}

static ls_pages *open_pages(void) {
    ls_pages *p = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_pages_open(NULL, NBYTES, PAGES, &p, &e), e);
    return p;
}

static ls_page_view open_view(const ls_pages *p) {
    ls_page_view v = {0};
    ls_error e = {0};
    assert_ls_ok(ls_page_view_open(p, PAGES + 1, &v, &e), e);
    return v;
}

/* A page more, filled with a byte, the first parts of which have names. */
static void write_page(ls_pages *p, ls_page_view *v, uint32_t text, int parts) {
    assert_true(ls_page_view_grow(p, v));
    int page = v->n - 1;
    memset(v->memory + (size_t)page * ls_pages_stride(p), (int)text, NBYTES);
    for (int k = 0; k < parts; k++) {
        ls_page_name name = name_of(text, k);
        ls_page_view_name(p, v, page * PARTS + k, &name);
    }
}

static void has_bytes(const ls_pages *p, const ls_page_view *v, int page, uint32_t text) {
    const char *at = v->memory + (size_t)page * ls_pages_stride(p);
    for (int i = 0; i < NBYTES; i++) assert_int_equal(at[i], (char)text);
}

static void test_shared(void **state) {
    (void)state;
    ls_pages *p = open_pages();
    ls_page_view a = open_view(p), b = open_view(p);
    write_page(p, &a, 'a', PARTS);
    ls_page_name full = name_of('a', PARTS - 1), part = name_of('a', 1), other = name_of('b', 0);
    assert_false(ls_page_view_find(p, &b, &part)); /* a part is not shared */
    assert_false(ls_page_view_find(p, &b, &other));
    assert_true(ls_page_view_find(p, &b, &full));
    assert_int_equal(ls_pages_used(p), 1);
    memset(a.memory, 'c', NBYTES);
    has_bytes(p, &b, 0, 'c');
    ls_page_view_close(p, &a);
    assert_int_equal(ls_pages_used(p), 1);
    ls_page_view_close(p, &b);
    assert_int_equal(ls_pages_used(p), 0);
    ls_pages_close(p);
}

static void test_copied(void **state) {
    (void)state;
    ls_pages *p = open_pages();
    ls_page_view a = open_view(p), b = open_view(p);
    write_page(p, &a, 'a', 2);
    ls_page_name second = name_of('a', 1), third = name_of('a', 2);
    assert_false(ls_page_view_copy(p, &b, &third));
    assert_true(ls_page_view_copy(p, &b, &second));
    assert_int_equal(ls_pages_used(p), 2);
    memset(a.memory, 'c', NBYTES); /* what the first one goes on with */
    has_bytes(p, &b, 0, 'a');
    ls_page_view_close(p, &a);
    ls_page_view_close(p, &b);
    ls_pages_close(p);
}

/* All pages are left with names: the one that was left first is taken, also by the text that wants
 * a copy of it; its names are forgotten. */
static void test_taken(void **state) {
    (void)state;
    ls_pages *p = open_pages();
    ls_page_view v = open_view(p);
    for (uint32_t text = 0; text < PAGES; text++) {
        write_page(p, &v, 'a' + text, 1);
        ls_page_view_clear(p, &v);
    }
    ls_page_name first = name_of('a', 0), second = name_of('b', 0);
    assert_true(ls_page_view_copy(p, &v, &first));
    has_bytes(p, &v, 0, 'a');
    assert_int_equal(ls_pages_used(p), 1);
    assert_false(ls_page_view_copy(p, &v, &first));
    assert_true(ls_page_view_grow(p, &v));
    assert_false(ls_page_view_copy(p, &v, &second));
    assert_int_equal(ls_pages_used(p), 2);
    assert_true(ls_page_view_grow(p, &v) && ls_page_view_grow(p, &v));
    assert_false(ls_page_view_grow(p, &v));
    assert_int_equal(ls_pages_used(p), PAGES);
    ls_page_view_close(p, &v);
    ls_pages_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared), cmocka_unit_test(test_copied),
                                       cmocka_unit_test(test_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
