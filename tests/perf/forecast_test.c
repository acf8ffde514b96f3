/* forecast_test.c - a forecast and a fit count the same memory, for the same values of
 * parallel.zero. */
#include "perf/forecast.h"

#include "perf/round_machine.h"
#include "test.h"
#include "train/fit.h"

enum { WORKERS = 4 };

static ls_machine machine;

static int make_machine(void **state) {
    (void)state;
    return round_machine_read(&machine) == LS_OK ? 0 : -1;
}

static int free_machine(void **state) {
    (void)state;
    ls_machine_free(&machine);
    return 0;
}

static ls_config config_with(const char *set) {
    ls_config c;
    ls_error e;
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    assert_ls_ok(ls_config_set(&c, set, &e), e);
    return c;
}

/* The bytes of a worker that the fit with the config's other settings needs; 0: there is none. */
static size_t fit_nbytes(const ls_config *c, int64_t zero) {
    ls_fit *fits = NULL;
    ls_error e;
    size_t nbytes = 0;
    int n = 0;
    assert_ls_ok(ls_fit_find(c, WORKERS, SIZE_MAX, &fits, &n, &e), e);
    for (int i = 0; i < n; i++)
        if (fits[i].zero == zero && fits[i].recompute == 0 &&
            fits[i].micro_batch == c->train.micro_batch &&
            fits[i].state == c->parallel.optimizer_state)
            nbytes = fits[i].nbytes;
    free(fits);
    return nbytes;
}

static void test_same_memory(void **state) {
    (void)state;
    static const char *const sets[] = {"parallel.zero=1",          "parallel.transport=tcp",
                                       "parallel.transport=mpi",   "parallel.shard_group=2",
                                       "parallel.threads=2",       "parallel.optimizer_state=file",
                                       "parallel.accumulate=early"};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        ls_config c = config_with(sets[k]);
        ls_forecast_world w = {.machine = &machine};
        ls_forecast_list list;
        ls_error e;
        int rows = 0;
        if (c.parallel.accumulate == LS_ACCUMULATE_EARLY) c.parallel.zero = 2;
        assert_ls_ok(ls_forecast_rows(&c, WORKERS, &w, &list, &e), e);
        for (int64_t zero = 0; zero <= 3; zero++) {
            size_t want = fit_nbytes(&c, zero);
            if (want == 0) continue;
            assert_true(rows < list.n);
            assert_int_equal(list.rows[rows].zero, zero);
            assert_int_equal(list.rows[rows++].memory_nbytes, want);
        }
        assert_int_equal(rows, list.n);
        assert_true(rows > 0);
    }
}

/* Workers on several hosts don't share one copy of the state: the same as over TCP. */
static void test_hosts(void **state) {
    (void)state;
    ls_config c = config_with("parallel.zero=1"), tcp = config_with("parallel.transport=tcp");
    ls_forecast_world near = {.machine = &machine}, far = {.machine = &machine, .host_workers = 2};
    ls_forecast_list one, several;
    ls_error e;
    assert_ls_ok(ls_forecast_rows(&c, WORKERS, &near, &one, &e), e);
    assert_ls_ok(ls_forecast_rows(&c, WORKERS, &far, &several, &e), e);
    assert_int_equal(several.rows[1].zero, 1);
    assert_int_equal(several.rows[1].memory_nbytes, fit_nbytes(&tcp, 1));
    assert_true(several.rows[1].memory_nbytes > one.rows[1].memory_nbytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_memory),
                                       cmocka_unit_test(test_hosts)};
    return cmocka_run_group_tests(tests, make_machine, free_machine);
}
