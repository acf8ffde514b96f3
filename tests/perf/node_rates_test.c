/* node_rates_test.c - rates of NUMA nodes: none where there is one node; where two are described to
 * hwloc and the machine has one, the first node's rate of its own memory, and an error that names
 * the other. Each case runs in a process of its own, since a process looks once.
 */
#include "perf/node_rates.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cores.h"
#include "test.h"

/* Runs the case in a child, on this machine or on one of which hwloc is told; returns its exit
 * code. */
static int in_child(const char *machine, const char *real, int (*run)(void)) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (machine) setenv("HWLOC_SYNTHETIC", machine, 1);
        if (machine) setenv("HWLOC_THISSYSTEM", real, 1);
        _exit(run());
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static int one_node(void) {
    ls_node_rates r = {0};
    ls_error e = {0};
    bool good = ls_node_rates_measure(&r, &e) == LS_OK && r.nodes == 1 && !r.rate;
    ls_node_rates_free(&r);
    return !good;
}

static int sizes(void) {
    return !(ls_cores_nodes() == 2 && ls_cores_of_node(0) == 6 && ls_cores_of_node(1) == 6 &&
             ls_cores_of_node(2) == 0);
}

/* 0: measured, as where there are two nodes; 1: refused as it has to be. */
static int two_nodes(void) {
    ls_node_rates r = {0};
    ls_error e = {0};
    ls_status s = ls_node_rates_measure(&r, &e);
    bool measured = s == LS_OK;
    for (int i = 0; measured && i < 4; i++) measured = r.rate[i] > 1e6 && r.rate[i] < 1e13;
    ls_node_rates_free(&r);
    if (s == LS_OK) return measured ? 0 : 2;
    return s == LS_EINVAL && strstr(e.msg, "does not let this process have memory of NUMA node")
               ? 1
               : 3;
}

static void test_nodes(void **state) {
    (void)state;
    assert_int_equal(in_child("package:1 numa:1 core:8 pu:1", "0", one_node), 0);
    assert_int_equal(in_child("package:2 numa:1 core:6 pu:2", "0", sizes), 0);
}

static void test_rates(void **state) {
    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2) skip_because("this machine has one processor");
    assert_true(in_child("package:2 numa:1 core:1 pu:1", "1", two_nodes) < 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes), cmocka_unit_test(test_rates)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
