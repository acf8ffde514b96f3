/* far_test.c - bytes from other NUMA nodes, beside sums worked out by hand, on machines that are
 * described to hwloc. Each case runs in a process of its own, since a process looks once.
 */
#include "perf/far.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"
#include "train/layout.h"

/* The far bytes of configs/tiny.yaml with n workers on the machine. */
static ls_far far_on(const char *machine, int n, const char *const *sets) {
    int pipes[2], how = 0;
    ls_far f = {0};
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ls_config c;
        ls_layout l;
        setenv("HWLOC_SYNTHETIC", machine, 1);
        setenv("HWLOC_THISSYSTEM", "0", 1);
        if (ls_config_read("configs/tiny.yaml", &c, NULL) != LS_OK) _exit(1);
        for (; *sets; sets++)
            if (ls_config_set(&c, *sets, NULL) != LS_OK) _exit(1);
        if (ls_layout_make(&c, n, NULL, &l, NULL) != LS_OK) _exit(1);
        f = ls_far_of(&c, &l.plan);
        _exit(write(pipes[1], &f, sizeof f) != sizeof f);
    }
    assert_int_equal(read(pipes[0], &f, sizeof f), sizeof f);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    close(pipes[0]);
    close(pipes[1]);
    return f;
}

#define FAR(machine, n, ...) far_on(machine, n, (const char *const[]){__VA_ARGS__, NULL})
#define AUTO                 "parallel.threads=auto"

static bool near(double a, double b) { return a >= b * 0.999999 && a <= b * 1.000001; }

/* The parameters of the layers that one sample's passes read, in floats. The embedding's Backward
 * reads none, and the head has no Forward: its Backward does that work. */
static double read_by_sample(double *all_p) {
    ls_config c;
    ls_layout l;
    ls_error e = {0};
    double sum = 0;
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    assert_ls_ok(ls_layout_make(&c, 1, NULL, &l, &e), e);
    *all_p = (double)l.model.count;
    for (int i = 0; i < l.model.nlayers; i++) {
        double floats = 0;
        const ls_layer *x = &l.model.layers[i];
        for (int k = 0; k < x->nparams; k++) floats += (double)l.model.params[x->params[k]].count;
        if (i == 0) floats = (double)x->y_floats; /* rows */
        sum += floats * (i == 0 || x->traits.loss ? 1 : 2);
    }
    ls_layout_free(&l);
    return sum;
}

static void test_nodes(void **state) {
    (void)state;
    double all = 0, sample = read_by_sample(&all);
    const char *two = "package:2 numa:1 core:4 pu:2", *four = "package:2 numa:2 core:4 pu:2";
    ls_far f = FAR(two, 2, AUTO);
    assert_int_equal(f.nodes, 2);
    assert_true(near(f.parameters, 16 * sample * 4 / 2)); /* 16 samples, half of the pages */
    assert_true(f.moved >= all * 4); /* each of two reads the other's sum of its half, or more */
    assert_true(f.moved < all * 4 * 4);
    ls_far more = FAR(four, 4, AUTO);
    assert_int_equal(more.nodes, 4);
    assert_true(near(more.parameters, 16 * sample * 4 * 3 / 4));
    ls_far own = FAR(two, 2, AUTO, "parallel.zero=0"); /* each reads its own copy */
    assert_int_equal(own.nodes, 2);
    assert_true(own.parameters == 0 && own.moved > 0);
    ls_far one = FAR(two, 1, AUTO);
    assert_true(one.parameters == 0 && one.moved == 0);
}

static void test_none(void **state) {
    (void)state;
    assert_int_equal(FAR("package:1 numa:1 core:8 pu:2", 2, AUTO).nodes, 1);
    assert_int_equal(FAR("package:2 numa:1 core:4 pu:2", 2, AUTO, "parallel.bind=off").nodes, 1);
    assert_int_equal(FAR("package:2 numa:1 core:4 pu:2", 2, "parallel.threads=1").nodes, 1);
    assert_int_equal(FAR("package:2 numa:1 core:4 pu:2", 2, AUTO, "parallel.transport=tcp").nodes,
                     1);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nodes), cmocka_unit_test(test_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
