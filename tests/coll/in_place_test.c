/* in_place_test.c - collectives whose in and out overlap: the same pointer on all workers, the own
 * block, or anywhere; over shared memory, by every algorithm over messages, and over TCP.
 */
/* ctest: long-tsan: half a minute; coll/ops and coll/group run the same code with threads */
/* ctest: long-asan: coll/uneven and coll/ops run the same code */
#include "coll/algo/algorithm.h"
#include "coll/team.h"

enum { MOST = 5 };

typedef enum kind { REDUCE_SCATTER, ALL_GATHER, GATHER, SCATTER, NKINDS } kind;
static const char *const names[] = {"reduce_scatter", "all_gather", "gather", "scatter"};

typedef struct trial {
    kind what;
    bool uneven, async;
    int root;
    size_t count;    /* of a block; uneven: worker r's has count + r */
    ptrdiff_t place; /* where the smaller buffer begins in the larger, -1: at the own block */
} trial;

static int32_t value(int rank, size_t i) { return (int32_t)(i * 7 + (size_t)rank * 1000003); }

static size_t count_of(const trial *t, int rank) {
    return t->count + (t->uneven ? (size_t)rank : 0);
}

static size_t first_of(const trial *t, int rank) {
    size_t first = 0;
    for (int i = 0; i < rank; i++) first += count_of(t, i);
    return first;
}

static ls_status finish(ls_status s, ls_request **q, ls_error *e) {
    return s == LS_OK && *q ? ls_wait(q, -1, e) : s;
}

static ls_status call(ls_group *g, const trial *t, int32_t *large, int32_t *small, ls_error *e) {
    size_t counts[MOST];
    ls_request *q = NULL;
    for (int i = 0; i < ls_group_size(g); i++) counts[i] = count_of(t, i);
    switch (t->what) {
    case REDUCE_SCATTER:
        if (t->uneven) return ls_reduce_scatter_v(g, large, small, counts, LS_I32, LS_SUM, e);
        if (!t->async) return ls_reduce_scatter(g, large, small, t->count, LS_I32, LS_SUM, e);
        return finish(ls_reduce_scatter_start(g, large, small, t->count, LS_I32, LS_SUM, &q, e), &q,
                      e);
    case ALL_GATHER:
        if (t->uneven) return ls_all_gather_v(g, small, large, counts, LS_I32, e);
        if (!t->async) return ls_all_gather(g, small, large, t->count, LS_I32, e);
        return finish(ls_all_gather_start(g, small, large, t->count, LS_I32, &q, e), &q, e);
    case GATHER: return ls_gather(g, small, large, t->count, LS_I32, t->root, e);
    default: return ls_scatter(g, large, small, t->count, LS_I32, t->root, e);
    }
}

static ls_status check(const trial *t, ls_group *g, const int32_t *large, const int32_t *small,
                       ls_error *e) {
    int n = ls_group_size(g), r = ls_group_rank(g);
    size_t own = first_of(t, r);
    bool all = t->what == ALL_GATHER || (t->what == GATHER && r == t->root);
    for (int k = 0; k < n && all; k++)
        for (size_t i = 0; i < count_of(t, k); i++)
            if (large[first_of(t, k) + i] != value(k, i))
                return ls_fail(e, LS_EIO, "%s of %zu at %td: block %d's element %zu of worker %d",
                               names[t->what], t->count, t->place, k, i, r);
    for (size_t i = 0; i < count_of(t, r); i++) {
        int32_t want = 0;
        for (int k = 0; k < n; k++) want += value(k, own + i);
        if (t->what == SCATTER) want = value(t->root, own + i);
        if ((t->what == SCATTER || t->what == REDUCE_SCATTER) && small[i] != want)
            return ls_fail(e, LS_EIO, "%s of %zu at %td: element %zu of worker %d", names[t->what],
                           t->count, t->place, i, r);
    }
    return LS_OK;
}

/* The arena is freed only when all are done with it. */
static ls_status try(ls_group *g, const trial *t, bool arena, ls_error *e) {
    int n = ls_group_size(g), r = ls_group_rank(g);
    size_t all = first_of(t, n), own = first_of(t, r), mine = count_of(t, r);
    size_t nbytes = (all + mine) * sizeof(int32_t); /* room for a small one beyond the end */
    int32_t *large = arena ? ls_group_alloc(g, nbytes) : calloc(1, nbytes + 1);
    int32_t *small = large + (t->place < 0 ? own : (size_t)t->place);
    bool gathers = t->what == ALL_GATHER || t->what == GATHER;
    for (size_t i = 0; i < all; i++) large[i] = value(r, i);
    for (size_t i = 0; i < mine && gathers; i++) small[i] = value(r, i);
    ls_status s = call(g, t, large, small, e);
    if (s == LS_OK) s = check(t, g, large, small, e);
    if (s == LS_OK) s = ls_barrier(g, e);
    if (arena)
        ls_group_free(g, large);
    else
        free(large);
    return s;
}

static ls_status try_all(ls_group *g, void *arg, ls_error *e) {
    static const size_t counts[] = {1, 5, 300, 40000};
    int n = ls_group_size(g);
    (void)arg;
    for (int what = 0; what < NKINDS; what++)
        for (int c = 0; c < 4; c++)
            for (int p = -1; p < 3; p++)
                for (int way = 0; way < 3; way++) {
                    trial t = {.what = (kind)what, .uneven = way == 1, .async = way == 2};
                    t.count = counts[c];
                    t.root = (c + p + 1) % n;
                    t.place = p < 2 ? p * (ptrdiff_t)t.count : (ptrdiff_t)first_of(&t, n) - 1;
                    if (way && (what == GATHER || what == SCATTER)) continue;
                    LS_TRY(try(g, &t, c % 2, e));
                    if (c == 3) LS_TRY(try(g, &t, false, e));
                }
    return LS_OK;
}

static const int sizes[] = {1, 2, 3, 5};

static void test_shared(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        run_threads(sizes[i], NULL, try_all, NULL, NULL);
        run_processes(sizes[i], NULL, try_all, NULL);
    }
}

static void test_algorithms(void **state) {
    (void)state;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int i = 1; i < 4; i++)
            if (runs_case(a + i, 2))
                run_threads(sizes[i], &(ls_group_options){.algorithm = ls_algorithms[a]->name},
                            try_all, NULL, NULL);
}

static void test_tcp(void **state) {
    (void)state;
    need_processes();
    for (int i = 1; i < 3; i++)
        run_processes(sizes[i], &(ls_group_options){.transport = "tcp"}, try_all, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_algorithms),
        cmocka_unit_test(test_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
