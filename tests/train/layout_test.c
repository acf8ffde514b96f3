/* layout_test.c - the nearest layout that is possible, and whether communication has a thread. */
#include "train/layout.h"

#include "test.h"

static ls_config config_with(const char *const *sets) {
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    for (; *sets; sets++) assert_ls_ok(ls_config_set(&c, *sets, &e), e);
    return c;
}

static void check_nearest(const ls_config *c, int n, int group, int shards, bool early) {
    ls_layout l;
    ls_error e = {0};
    assert_ls_ok(ls_layout_make_nearest(c, n, group, NULL, &l, &e), e);
    assert_int_equal(l.plan.share.nworkers, n);
    assert_int_equal(l.plan.share.nshards, shards);
    assert_int_equal(l.plan.share.by_rounds, early);
    ls_layout_free(&l);
}

/* The largest groups of at most `group` workers, all of one size. */
static void test_groups(void **state) {
    (void)state;
    const char *const sets[] = {"parallel.zero=1", "parallel.shard_group=2", NULL};
    ls_config c = config_with(sets);
    ls_layout l;
    ls_error e = {0};
    assert_int_equal(ls_layout_make(&c, 3, NULL, &l, &e), LS_EINVAL);
    check_nearest(&c, 4, 2, 2, false);
    check_nearest(&c, 3, 2, 3, false); /* a group of one shards nothing */
    check_nearest(&c, 6, 4, 3, false);
    check_nearest(&c, 2, 8, 2, false);
    check_nearest(&c, 5, 0, 5, false); /* all are one group */
}

/* With a number of workers for which `early` is not possible, gradients accumulate late. */
static void test_early(void **state) {
    (void)state;
    const char *const sets[] = {"parallel.zero=2", "parallel.accumulate=early", NULL};
    ls_config c = config_with(sets);
    ls_layout l;
    ls_error e = {0};
    assert_int_equal(ls_layout_make(&c, 3, NULL, &l, &e), LS_EINVAL);
    check_nearest(&c, 4, 0, 4, true);
    check_nearest(&c, 3, 0, 3, false);
}

/* More workers than virtual workers have no layout. */
static void test_none(void **state) {
    (void)state;
    const char *const sets[] = {NULL};
    ls_config c = config_with(sets);
    int n = (int)c.train.virtual_workers + 1;
    ls_layout l;
    ls_error e = {0};
    assert_int_equal(ls_layout_make_nearest(&c, n, 0, NULL, &l, &e), LS_EINVAL);
}

static bool overlaps(const char *const *sets, int n, bool survives, int near, int cores) {
    ls_config c = config_with(sets);
    ls_layout l;
    ls_error e = {0};
    assert_ls_ok(ls_layout_make(&c, n, NULL, &l, &e), e);
    bool overlap = ls_layout_has_overlap(&c, &l.plan, survives, near, cores);
    ls_layout_free(&l);
    return overlap;
}

/* auto: overlap if each worker has a core beside those of its threads, and communicates. */
static void test_overlap(void **state) {
    (void)state;
    const char *const plain[] = {NULL};
    const char *const on[] = {"parallel.overlap=on", NULL};
    const char *const off[] = {"parallel.overlap=off", NULL};
    const char *const threads[] = {"parallel.threads=2", NULL};
    const char *const sequential[] = {"parallel.executor=sequential", "parallel.overlap=on", NULL};
    assert_true(overlaps(plain, 2, true, 2, 4));
    assert_false(overlaps(plain, 2, true, 2, 3));
    assert_false(overlaps(plain, 1, true, 1, 4));
    assert_false(overlaps(threads, 2, true, 2, 5));
    assert_true(overlaps(threads, 2, true, 1, 4)); /* the other is on another host */
    assert_true(overlaps(threads, 2, true, 2, 6)); /* a core beside those that compute */
    assert_true(overlaps(on, 2, true, 2, 1));
    assert_false(overlaps(off, 2, true, 2, 64));
    assert_false(overlaps(sequential, 2, true, 2, 64));
}

static int threads_of(const char *const *sets, int n, int near, int cores) {
    ls_config c = config_with(sets);
    ls_layout l;
    ls_error e = {0};
    assert_ls_ok(ls_layout_make(&c, n, NULL, &l, &e), e);
    int threads = ls_layout_threads(&c, &l.plan, true, near, cores);
    ls_layout_free(&l);
    return threads;
}

/* With auto, a worker with many cores leaves one to communication, if there is any. */
static void test_threads(void **state) {
    (void)state;
    const char *const many[] = {"parallel.threads=auto", NULL};
    const char *const off[] = {"parallel.threads=auto", "parallel.overlap=off", NULL};
    const char *const eight[] = {"parallel.threads=8", NULL};
    assert_int_equal(threads_of(many, 8, 8, 64), 7);
    assert_int_equal(threads_of(many, 8, 8, 63), 7); /* there is one more core */
    assert_int_equal(threads_of(many, 2, 1, 56), 55);
    assert_int_equal(threads_of(many, 2, 2, 4), 2);
    assert_int_equal(threads_of(many, 1, 1, 64), 64);
    assert_int_equal(threads_of(off, 8, 8, 64), 8);
    assert_int_equal(threads_of(eight, 8, 8, 64), 8);
    assert_true(overlaps(many, 8, true, 8, 64));
    assert_false(overlaps(many, 2, true, 2, 4));
    assert_false(overlaps(eight, 8, true, 8, 64));
}

/* A worker that helps others has no thread for communication, even where one is asked for. */
static void test_backups(void **state) {
    (void)state;
    const char *const with[] = {"survival.backup_workers=2", "parallel.overlap=on", NULL};
    const char *const sharded[] = {"survival.backup_workers=2", "parallel.zero=3",
                                   "parallel.whole_kb=0", "parallel.overlap=on", NULL};
    const char *const early[] = {"survival.backup_workers=2", "parallel.zero=2",
                                 "parallel.accumulate=early", "parallel.overlap=on", NULL};
    assert_false(overlaps(with, 2, true, 2, 64));
    assert_true(overlaps(with, 2, false, 2, 64)); /* no memory shared by the workers */
    assert_true(overlaps(with, 1, true, 1, 64));
    assert_true(overlaps(sharded, 2, true, 2, 64));
    assert_true(overlaps(early, 2, true, 2, 64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups),  cmocka_unit_test(test_early),
        cmocka_unit_test(test_none),    cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_backups), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
