/* ops_test.c - every operation on every type of integers, over every transport; what is refused.
 * Over MPI: net/mpi/mpi_calls_test.c. */
#include "coll/ops.h"

#include "coll/team.h"

static const int SIZES[] = {1, 2, 3, 5, 8};
enum { NSIZES = 5 };

static void test_threads(void **state) {
    (void)state;
    for (int s = 0; s < NSIZES; s++) run_threads(SIZES[s], NULL, ops_all, NULL, NULL);
}

static void test_processes(void **state) {
    (void)state;
    need_processes();
    for (int s = 0; s < NSIZES; s += 2) run_processes(SIZES[s], NULL, ops_all, NULL);
}

static void test_tcp(void **state) {
    (void)state;
    need_processes();
    ls_group_options o = {.transport = "tcp", .insecure = true};
    run_processes(3, &o, ops_all, NULL);
}

static ls_status refused(ls_group *g, void *arg, ls_error *unused) {
    ls_error e = {0};
    float x[2] = {0};
    double y[2] = {0};
    uint16_t h[2] = {0};
    (void)arg;
    assert_ls_fails(ls_all_reduce(g, x, x, 2, LS_F32, LS_BAND, &e), LS_EINVAL,
                    "all_reduce: no band of f32; it is for integers", e);
    assert_ls_fails(ls_all_reduce(g, y, y, 2, LS_F64, LS_LXOR, &e), LS_EINVAL, "no lxor of f64", e);
    assert_ls_fails(ls_all_reduce(g, h, h, 2, LS_BOOL, LS_SUM, &e), LS_EINVAL,
                    "all_reduce: no sum of bool; it is for numbers", e);
    assert_ls_fails(ls_all_reduce(g, h, h, 2, LS_BOOL, LS_BXOR, &e), LS_EINVAL, "no bxor of bool",
                    e);
    assert_ls_fails(ls_all_reduce(g, h, h, 2, LS_U16, LS_AVG, &e), LS_EINVAL, "no average of u16",
                    e);
    assert_ls_fails(ls_all_reduce(g, x, x, 1, LS_F32_I32, LS_MIN, &e), LS_EINVAL,
                    "no min of f32_i32; it is for numbers", e);
    assert_ls_fails(ls_all_reduce(g, x, x, 1, LS_F32, LS_MINLOC, &e), LS_EINVAL,
                    "no minloc of f32; it is for pairs", e);
    assert_ls_fails(ls_scan(g, x, x, 2, LS_F32, LS_AVG, &e), LS_EINVAL,
                    "scan: there are no averages", e);
    assert_ls_fails(ls_reduce(g, h, h, 2, LS_BF16, LS_LOR, 0, &e), LS_EINVAL,
                    "reduce: no lor of bf16", e);
    return ls_all_reduce(g, x, x, 2, LS_F32, LS_SUM, unused);
}

static void test_refused(void **state) {
    (void)state;
    run_threads(2, NULL, refused, NULL, NULL);
}

int main(int argc, char **argv) {
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
