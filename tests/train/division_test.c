/* division_test.c - how cores are divided among workers, the line that says so, and the number of
 * virtual workers that it recommends. */
#include "train/division.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cores.h"
#include "folder.h"
#include "test.h"
#include "train/layout.h"
#include "train/run.h"

static ls_config config_with(const char *const *sets) {
    ls_config c;
    ls_error e = {0};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    for (; *sets; sets++) assert_ls_ok(ls_config_set(&c, *sets, &e), e);
    return c;
}

#define CONFIG(...) config_with((const char *const[]){__VA_ARGS__, NULL})
#define AUTO        "parallel.threads=auto"

static void test_threads(void **state) {
    (void)state;
    static const struct {
        int workers, cores, threads;
    } cases[] = {{1, 1, 1},  {1, 2, 2},   {2, 2, 1},     {3, 2, 1},     {8, 64, 8},
                 {8, 63, 7}, {3, 64, 21}, {1, 128, 128}, {1, 300, 256}, {5, 7, 1}};
    ls_config c = CONFIG(AUTO);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(ls_config_threads(&c, cases[i].workers, cases[i].cores), cases[i].threads);
    assert_int_equal(ls_config_workers_on(&c, 7), 7);
    c = CONFIG("parallel.threads=3");
    assert_int_equal(ls_config_threads(&c, 8, 2), 3);
    assert_int_equal(ls_config_workers_on(&c, 7), 2);
    assert_int_equal(ls_config_workers_on(&c, 2), 1);
    ls_config_defaults(&c);
    assert_int_equal(c.parallel.threads, LS_AUTO);
}

static void test_binding(void **state) {
    (void)state;
    ls_config c = CONFIG("parallel.bind=auto");
    assert_true(ls_config_binds(&c, 8, 8, 64, 2));
    assert_true(ls_config_binds(&c, 8, 5, 64, 2));
    assert_false(ls_config_binds(&c, 8, 4, 64, 2)); /* another run may take the other half */
    assert_false(ls_config_binds(&c, 8, 8, 64, 1));
    c = CONFIG("parallel.bind=on");
    assert_true(ls_config_binds(&c, 1, 1, 64, 1));
    c = CONFIG("parallel.bind=off");
    assert_false(ls_config_binds(&c, 8, 8, 64, 2));
    ls_config_defaults(&c);
    assert_int_equal(c.parallel.bind, LS_BIND_AUTO);
}

static void assert_line(const ls_config *c, ls_division d, const char *wanted) {
    ls_buf text = {0};
    ls_division_write(c, &d, &text);
    assert_string_equal(text.data, wanted);
    ls_buf_free(&text);
}

static void test_lines(void **state) {
    (void)state;
    ls_config c = CONFIG(AUTO);
    assert_line(&c, (ls_division){8, 8, 64, true, true, false, 0, 0},
                "8 workers x 8 threads = 64 cores");
    assert_line(&c, (ls_division){1, 1, 1, true, true, false, 0, 0},
                "1 worker x 1 thread = 1 core");
    assert_line(&c, (ls_division){2, 3, 7, false, false, false, 0, 0},
                "2 workers x 3 threads = 6 of 7 cores of this machine");
    assert_line(&c, (ls_division){8, 7, 64, true, true, true, 0, 0},
                "8 workers x 8 threads (one for communication) = 64 cores");
    assert_line(&c, (ls_division){2, 1, 2, true, true, true, 0, 0}, /* parallel.overlap: on */
                "2 workers x 1 thread = 2 cores");
    assert_line(&c, (ls_division){3, 2, 8, true, false, false, 3, 8},
                "3 workers x 2 to 3 threads = 8 cores");
    assert_line(&c, (ls_division){2, 7, 17, true, false, true, 9, 17},
                "2 workers x 8 to 9 threads (one for communication) = 17 cores");
    assert_line(&c, (ls_division){3, 1, 2, true, true, false, 0, 0},
                "warning: 3 workers with 1 thread each, on 2 cores: they take turns; 2 workers "
                "would fit");
    assert_line(&c, (ls_division){2, 3, 4, true, true, false, 0, 0},
                "warning: 2 workers with 3 threads each, on 4 cores: they take turns; "
                "parallel.threads=2 would fit");
}

/* 8 virtual workers leave 4 of 12 cores without work, and 4 of 6 cores with half of it. More of
 * them have to divide the batch. */
static void test_better(void **state) {
    (void)state;
    ls_config c = CONFIG(AUTO), fixed = CONFIG("parallel.threads=1"); /* batch 16 */
    assert_int_equal(ls_division_better(&c, &(ls_division){6, 1, 6, true, true, false, 0, 0}), 16);
    assert_int_equal(ls_division_better(&c, &(ls_division){8, 1, 12, true, true, false, 0, 0}), 0);
    assert_int_equal(ls_division_better(&c, &(ls_division){8, 1, 8, true, true, false, 0, 0}), 0);
    assert_int_equal(ls_division_better(&c, &(ls_division){8, 8, 64, true, true, false, 0, 0}), 0);
    assert_int_equal(ls_division_better(&fixed, &(ls_division){8, 1, 64, true, true, false, 0, 0}),
                     16);
    assert_int_equal(ls_division_better(&fixed, &(ls_division){8, 1, 256, true, true, false, 0, 0}),
                     16);
    c = CONFIG(AUTO, "train.batch=24");
    assert_line(&c, (ls_division){8, 1, 12, true, true, false, 0, 0},
                "8 workers x 1 thread = 8 of 12 cores; train.virtual_workers=12 would use them "
                "better");
    assert_int_equal(ls_division_better(&c, &(ls_division){8, 1, 12, true, false, false, 0, 0}), 0);
    assert_int_equal(ls_division_better(&c, &(ls_division){8, 1, 12, false, true, false, 0, 0}), 0);
    c = CONFIG(AUTO, "train.batch=24", "train.micro_batch=3"); /* 12 would have 2 samples each */
    assert_int_equal(ls_division_better(&c, &(ls_division){8, 1, 12, true, true, false, 0, 0}), 0);
}

/* Where no number of virtual workers helps: 4 workers with 3 threads each have work for 12
 * cores. */
static void test_fewer(void **state) {
    (void)state;
    ls_config c = CONFIG(AUTO), fixed = CONFIG("parallel.threads=1"); /* batch 16 */
    assert_line(&c, (ls_division){8, 1, 12, true, true, false, 0, 0},
                "8 workers x 1 thread = 8 of 12 cores; -n 4 would use them better");
    assert_int_equal(ls_division_fewer(&c, &(ls_division){8, 1, 12, true, false, false, 0, 0}), 0);
    assert_int_equal(ls_division_fewer(&c, &(ls_division){8, 1, 8, true, true, false, 0, 0}), 0);
    assert_int_equal(ls_division_fewer(&c, &(ls_division){7, 1, 7, true, true, false, 0, 0}),
                     0); /* but 1 */
    assert_int_equal(ls_division_fewer(&c, &(ls_division){8, 8, 64, true, true, false, 0, 0}), 0);
    assert_int_equal(ls_division_fewer(&fixed, &(ls_division){8, 1, 12, true, true, false, 0, 0}),
                     0);
}

/* ---- machines that are described to hwloc ---- */

/* In a child, since a process looks at its machine once: what a run of the config chooses there.
 * limit: a control group's cpu.max; NULL: none. */
static void on_machine(const char *machine, const char *limit, const char *wanted) {
    char *max = ls_format("%s/cpu.max", folder), *self = ls_format("%s/self", folder);
    ls_config c = CONFIG(AUTO);
    ls_error e = {0};
    const char *text = limit ? limit : "max 100000\n";
    assert_ls_ok(ls_file_replace(max, text, strlen(text), &e), e);
    assert_ls_ok(ls_file_replace(self, "0::/\n", 5, &e), e);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int n = 0;
        ls_buf line = {0};
        setenv("HWLOC_SYNTHETIC", machine, 1);
        setenv("HWLOC_THISSYSTEM", "0", 1);
        ls_cores_set_groups(folder, self);
        if (ls_run_workers_here(&c, 0, &n, NULL) != LS_OK) _exit(1);
        ls_layout l;
        int cores = ls_cores();
        if (ls_layout_make(&c, n, NULL, &l, NULL) != LS_OK) _exit(1);
        int threads = ls_layout_threads(&c, &l.plan, true, n, cores);
        bool talks = ls_layout_has_overlap(&c, &l.plan, true, n, cores);
        bool binds = ls_config_binds(&c, n, threads, cores, ls_cores_nodes());
        ls_division_write(&c, &(ls_division){n, threads, cores, true, true, talks, 0, 0}, &line);
        ls_buf_printf(&line, binds ? ", bound" : "");
        if (strcmp(line.data, wanted) != 0)
            print_error("%s: %s\nexpected: %s\n", machine, line.data, wanted);
        _exit(strcmp(line.data, wanted) != 0);
    }
    int how = 0;
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    free(max), free(self);
}

/* With 8 virtual workers. */
static void test_machines(void **state) {
    (void)state;
    on_machine("package:2 numa:1 core:32 pu:2", NULL,
               "8 workers x 8 threads (one for communication) = 64 cores, bound");
    on_machine("package:1 numa:1 core:128 pu:2", NULL,
               "8 workers x 16 threads (one for communication) = 128 cores");
    on_machine("package:2 numa:4 core:8 pu:2", NULL,
               "8 workers x 8 threads (one for communication) = 64 cores, bound");
    on_machine("package:2 numa:1 core:3 pu:1", NULL,
               "6 workers x 1 thread = 6 cores; train.virtual_workers=16 would use them better, "
               "bound");
    on_machine("package:1 numa:1 core:1 pu:2", NULL, "1 worker x 1 thread = 1 core");
    on_machine("package:2 numa:1 core:32 pu:2", "650000 100000\n",
               "7 workers x 1 thread = 7 cores; train.virtual_workers=16 would use them better");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads), cmocka_unit_test(test_binding),
        cmocka_unit_test(test_lines),   cmocka_unit_test(test_better),
        cmocka_unit_test(test_fewer),   cmocka_unit_test(test_machines)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
