/* documents_test.c - which documents are held out, and the order of the others. */
#include "data/documents.h"

#include "base/mem.h"
#include "test.h"

enum { MOST = 400 };

/* Document i has lengths[i] tokens, all of them i. */
typedef struct set {
    ls_documents_tokens d;
    size_t ends[MOST];
} set;

static void make(set *s, const size_t *lengths, size_t n) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) s->ends[i] = total += lengths[i];
    s->d = (ls_documents_tokens){LS_NEW_ARRAY(uint32_t, total), total, s->ends, n};
    for (size_t i = 0, k = 0; i < n; i++)
        while (k < s->ends[i]) s->d.ids[k++] = (uint32_t)i;
}

/* Each document is there once, whole. */
static void assert_whole(const set *s, const size_t *lengths) {
    bool seen[MOST] = {0};
    size_t ndocuments = 0;
    for (size_t at = 0; at < s->d.n; ndocuments++) {
        uint32_t i = s->d.ids[at];
        assert_false(seen[i]);
        seen[i] = true;
        for (size_t k = 0; k < lengths[i]; k++) assert_int_equal(s->d.ids[at + k], i);
        at += lengths[i];
    }
    assert_int_equal(ndocuments, s->d.ndocuments);
}

static void test_whole(void **state) {
    (void)state;
    size_t lengths[MOST];
    for (size_t i = 0; i < MOST; i++) lengths[i] = 3 + i * 7 % 11;
    uint32_t *first = NULL;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        set s;
        make(&s, lengths, MOST);
        size_t nval = s.d.n / 20;
        ls_arranged a = ls_documents_arrange(&s.d, nval, 33, seed);
        assert_whole(&s, lengths);
        assert_true(s.d.n - a.val_first >= nval && s.d.n - a.val_first <= 2 * nval);
        assert_true(s.d.ids[a.val_first] != s.d.ids[a.val_first - 1]);
        assert_true(a.nheld > 10);
        if (!first) {
            first = s.d.ids;
            continue;
        }
        size_t same = 0; /* the held-out part is that of any seed, the others have another order */
        for (size_t i = a.val_first; i < s.d.n; i++) assert_int_equal(s.d.ids[i], first[i]);
        for (size_t i = 0; i < a.val_first; i++) same += s.d.ids[i] == first[i];
        assert_true(same < a.val_first / 4);
        free(s.d.ids);
    }
    free(first);
}

/* Documents too long to be held out: the end of the last one is. */
static void test_long(void **state) {
    (void)state;
    static const size_t lengths[] = {500, 400, 600};
    set s;
    make(&s, lengths, 3);
    ls_arranged a = ls_documents_arrange(&s.d, 75, 33, 1);
    assert_whole(&s, lengths);
    assert_int_equal(a.nheld, 0);
    assert_int_equal(a.val_first, 1500 - 75);
    free(s.d.ids);
}

/* Enough is left to train on. */
static void test_short(void **state) {
    (void)state;
    static const size_t lengths[] = {10, 10, 10, 10};
    set s;
    make(&s, lengths, 4);
    ls_arranged a = ls_documents_arrange(&s.d, 20, 20, 1);
    assert_whole(&s, lengths);
    assert_int_equal(a.nheld, 2);
    assert_int_equal(a.val_first, 20);
    free(s.d.ids);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_whole), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
