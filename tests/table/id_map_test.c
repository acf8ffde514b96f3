/* id_map_test.c - ids to numbers: beside an array that is searched from end to end. */
#include "table/id_map.h"

#include "test.h"

enum { N = 3000 };

typedef struct reference {
    uint64_t ids[N];
    uint32_t values[N];
    size_t n;
} reference;

static uint32_t value_of(const reference *r, uint64_t id) {
    for (size_t i = 0; i < r->n; i++)
        if (r->ids[i] == id) return r->values[i];
    return LS_ID_NONE;
}

static void check(const ls_id_map *m, const reference *r) {
    assert_int_equal(m->n, r->n);
    for (size_t i = 0; i < r->n; i++)
        assert_int_equal(ls_id_map_get(m, r->ids[i]), value_of(r, r->ids[i]));
    for (uint64_t id = 0; id < 100; id++)
        assert_int_equal(ls_id_map_get(m, id * 7), value_of(r, id * 7));
}

static void put(ls_id_map *m, reference *r, uint64_t id, uint32_t value) {
    ls_error e = {0};
    bool new = false, known = value_of(r, id) != LS_ID_NONE;
    assert_ls_ok(ls_id_map_reserve(m, 1, &e), e);
    uint32_t *at = ls_id_map_put(m, id, &new);
    assert_int_equal(new, !known);
    if (known) return;
    *at = value;
    r->ids[r->n] = id;
    r->values[r->n++] = value;
}

static void take_away(ls_id_map *m, reference *r, size_t i) {
    ls_id_map_remove(m, r->ids[i]);
    r->ids[i] = r->ids[--r->n];
    r->values[i] = r->values[r->n];
}

static void test_random(void **state) {
    (void)state;
    static reference r;
    ls_id_map m = {0};
    assert_int_equal(ls_id_map_get(&m, 0), LS_ID_NONE);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t drawn = ls_id_mix(i);
        put(&m, &r, i % 3 ? drawn % 2000 : drawn, i);
        if (i % 4 == 3) take_away(&m, &r, drawn % r.n);
        if (i % 100 == 0) check(&m, &r);
    }
    check(&m, &r);
    while (r.n > 0) take_away(&m, &r, r.n / 2);
    check(&m, &r);
    ls_id_map_free(&m);
}

static void test_clear(void **state) {
    (void)state;
    static reference r;
    ls_id_map m = {0};
    for (int round = 0; round < 5; round++) {
        r.n = 0;
        ls_id_map_clear(&m);
        for (uint32_t i = 0; i < 200; i++) put(&m, &r, i * (uint64_t)(round + 1), i);
        check(&m, &r);
    }
    m.round = UINT32_MAX; /* the next clear begins the rounds again */
    ls_id_map_clear(&m);
    r.n = 0;
    check(&m, &r);
    ls_id_map_free(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
