/* bound_cores_test.c - a worker that has a thread for communication is bound to a core for it, too.
 * The machine is described to hwloc, and what threads would be bound to is counted here.
 */
/* ctest: own-copy */
#include <hwloc.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "tiny_run.h"

enum { CORES = 24, WORKERS = 3 };

static atomic_int ncalls,
    workers_with[CORES + 1]; /* calls; those of whole workers, by their cores */

int hwloc_set_cpubind(hwloc_topology_t topology, hwloc_const_cpuset_t set, int flags) {
    int n = hwloc_bitmap_weight(set);
    (void)topology, (void)flags;
    atomic_fetch_add(&ncalls, 1);
    if (n > 1 && n <= CORES) atomic_fetch_add(&workers_with[n], 1);
    return 0;
}

/* 24 cores are 8 for each: 7 compute. Two workers have the cores of one package each, and the third
 * what remains of both. */
static void test_communication(void **state) {
    (void)state;
    ls_error e = {0};
    static const char *const sets[] = {"parallel.threads=auto", "parallel.transport=thread",
                                       "parallel.bind=auto",    "train.steps=1",
                                       "optim.warmup=0",        NULL};
    char *run = ls_format("%s/run", folder);
    assert_ls_ok(try_run(run, WORKERS, sets, sets + 5, &e), e);
    free(run);
    assert_true(atomic_load(&ncalls) > 0);
    for (int n = 2; n < CORES; n++)
        if (n != CORES / WORKERS) assert_int_equal(atomic_load(&workers_with[n]), 0);
    assert_true(atomic_load(&workers_with[CORES / WORKERS]) >= WORKERS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_communication)};
    setenv("HWLOC_SYNTHETIC", "package:2 numa:1 core:12 pu:1", 1);
    setenv("HWLOC_THISSYSTEM", "0", 1);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
