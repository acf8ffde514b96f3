/* mpi_calls_test.c - groups over MPI, under real mpiruns: the collectives that mpi_test.c, which
 * runs single algorithms, does not call. */
/* ctest: slow busy seconds=15 */
#include "coll/compressed_sums.h"
#include "coll/ops.h"
#include "coll/uneven.h"
#include "net/mpi/mpirun.h"

static const size_t UNEVEN[] = {0, 1, 4, 5, 6, 3000, 60001};

static void case_calls(void) {
    ls_group *g = NULL;
    ls_group_options o = {.transport = "mpi", .timeout_s = 120};
    succeed(ls_group_open(&o, &g, &err));
    succeed(ops_all(g, NULL, &err));
    for (size_t i = 0; i < sizeof UNEVEN / sizeof *UNEVEN; i++) {
        uneven u = {.count = UNEVEN[i], .async = i % 2};
        succeed(uneven_all(g, &u, &err));
    }
    compressed_sums sums;
    succeed(compressed_alone(3001, &sums, &err));
    succeed(compressed_all(g, &sums, &err));
    printf("ok %d\n", ls_group_rank(g));
    fflush(stdout);
    ls_group_close(g);
    exit(0);
}

/* With MPI's own collectives, where it has them. */
static void case_native(void) {
    ls_group *g = NULL;
    ls_group_options o = {.transport = "mpi", .timeout_s = 120, .algorithm = "native"};
    succeed(ls_group_open(&o, &g, &err));
    succeed(ops_all(g, &(bool){true}, &err));
    printf("ok %d\n", ls_group_rank(g));
    fflush(stdout);
    ls_group_close(g);
    exit(0);
}

static const mpi_case cases[] = {
    {"calls", case_calls, OPENS_ITSELF}, {"native", case_native, OPENS_ITSELF}, {0}};

static void run(const launcher *l) {
    static const int sizes[] = {1, 2, 3, 5, 8};
    skip_without(l);
    for (int i = 0; i < ncases(3, 5); i++) { /* more workers than cores spin */
        launch_case(l, sizes[i], "calls", 0);
        if (i == 2) launch_case(l, sizes[i], "native", 0);
    }
}

static void test_openmpi(void **state) {
    (void)state;
    run(&openmpi);
}
static void test_mpich(void **state) {
    (void)state;
    run(&mpich);
}

int main(int argc, char **argv) {
    (void)argc;
    mpirun_begin(cases, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_openmpi),
        cmocka_unit_test(test_mpich),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
