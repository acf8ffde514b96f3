/* forecast_test.c - a forecast and a fit count the same memory, for the same values of
 * parallel.zero; a forecast overlaps communication where a run would; a published step is
 * predicted. */
#include "perf/forecast.h"

#include "perf/round_machine.h"
#include "test.h"
#include "train/fit.h"
#include "train/layout.h"

enum { WORKERS = 4 };

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

/* auto: a machine's cores are divided among its workers, whatever machine this one is, and no
 * worker has more threads than the machine's file says. */
static void test_threads(void **state) {
    (void)state;
    ls_config c = config_with("parallel.threads=auto"), three = config_with("parallel.threads=3");
    ls_machine one = machine;
    ls_layout l;
    ls_error e;
    ls_forecast f[2];
    one.threads = 1;
    assert_int_equal(ls_forecast_threads(&c, 2, &machine), 2); /* of 4 cores */
    assert_int_equal(ls_forecast_threads(&c, 8, &machine), 1);
    assert_int_equal(ls_forecast_threads(&c, 2, &one), 1);
    assert_int_equal(ls_forecast_threads(&three, 2, &one), 3);
    const ls_forecast_world w = {.machine = &machine},
                            hosts = {.machine = &machine, .host_workers = 1};
    assert_ls_ok(ls_layout_make(&c, 2, NULL, &l, &e), e);
    assert_int_equal(ls_forecast_site(&c, &l.plan, &w).threads, 2);
    assert_int_equal(ls_forecast_site(&c, &l.plan, &hosts).threads, 4);
    const ls_forecast_world limited = {.machine = &one};
    assert_int_equal(ls_forecast_site(&c, &l.plan, &limited).threads, 1);
    assert_true(ls_forecast_site(&c, &l.plan, &limited).overlap); /* each has a second core */
    assert_false(ls_forecast_site(&c, &l.plan, &w).overlap);
    assert_ls_ok(ls_forecast_plan(&c, &l.plan, &w, &f[0], &e), e);
    c.parallel.threads = 2;
    assert_ls_ok(ls_forecast_plan(&c, &l.plan, &w, &f[1], &e), e);
    assert_true(f[0].step_s == f[1].step_s && f[0].efficiency == f[1].efficiency);
    assert_int_equal(f[0].memory_nbytes, f[1].memory_nbytes);
    ls_layout_free(&l);
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

/* ---- overlap ---- */

/* Small buckets, so that some of them are reduced beside Backward. */
static ls_forecast forecast_of(const char *const *sets, int n, const ls_forecast_world *w) {
    ls_config c = config_with("parallel.bucket_mb=0.01");
    ls_layout l;
    ls_forecast f;
    ls_error e;
    for (; *sets; sets++) assert_ls_ok(ls_config_set(&c, *sets, &e), e);
    assert_ls_ok(ls_layout_make(&c, n, NULL, &l, &e), e);
    assert_ls_ok(ls_forecast_plan(&c, &l.plan, w, &f, &e), e);
    ls_layout_free(&l);
    return f;
}

typedef const char *settings[5]; /* ends with NULL */

/* Both forecasts are of the same work; in b all communication takes turns with computation, in a
 * some of it runs beside computation. */
static void assert_faster(const ls_forecast *a, const ls_forecast *b) {
    assert_true(a->step_s < b->step_s * (1 - 1e-6));
    assert_true(a->exposed_s < b->exposed_s);
}

static void assert_same_step(const ls_forecast *a, const ls_forecast *b) {
    assert_true(a->step_s == b->step_s && a->exposed_s == b->exposed_s);
}

/* auto overlaps if each worker of a host has a second core of its own. */
static void test_overlap(void **state) {
    (void)state;
    static const settings automatic = {NULL}, on = {"parallel.overlap=on", NULL},
                          off = {"parallel.overlap=off", NULL};
    const ls_forecast_world one = {.machine = &machine}; /* 4 cores */
    const ls_forecast_world two = {
        .machine = &machine, .host_workers = 2, .byte_s = 1e-9, .algorithm = "direct"};
    ls_forecast with = forecast_of(on, 2, &one), without = forecast_of(off, 2, &one);
    ls_forecast chosen = forecast_of(automatic, 2, &one);
    assert_faster(&with, &without);
    assert_same_step(&chosen, &with);
    with = forecast_of(on, 4, &one);
    without = forecast_of(off, 4, &one);
    chosen = forecast_of(automatic, 4, &one);
    assert_false(with.step_s == without.step_s);
    assert_same_step(&chosen, &without);
    with = forecast_of(on, 4, &two);
    without = forecast_of(off, 4, &two);
    chosen = forecast_of(automatic, 4, &two);
    assert_faster(&with, &without);
    assert_same_step(&chosen, &with);
}

/* A worker that helps others has no thread for communication, even where one is asked for. */
static void test_backups(void **state) {
    (void)state;
    static const char on[] = "parallel.overlap=on", off[] = "parallel.overlap=off",
                      backups[] = "survival.backup_workers=2";
    static const settings helps = {on, backups, NULL}, alone = {off, NULL}, free = {on, NULL};
    static const settings threads = {on, backups, "parallel.transport=thread", NULL};
    static const settings sharded = {on, backups, "parallel.zero=3", "parallel.whole_kb=0", NULL};
    static const settings sharded_free = {on, "parallel.zero=3", "parallel.whole_kb=0", NULL};
    const ls_forecast_world one = {.machine = &machine};
    ls_forecast with = forecast_of(helps, 2, &one), without = forecast_of(alone, 2, &one);
    assert_same_step(&with, &without);
    with = forecast_of(threads, 2, &one); /* no worker can help another */
    without = forecast_of(free, 2, &one);
    assert_same_step(&with, &without);
    with = forecast_of(sharded, 2, &one);
    without = forecast_of(sharded_free, 2, &one);
    assert_same_step(&with, &without);
}

static void set_all(ls_config *c, const char *const *sets, size_t n) {
    ls_error e;
    for (size_t k = 0; k < n; k++) assert_ls_ok(ls_config_set(c, sets[k], &e), e);
}

/* Predicted seconds of a step on A100 GPUs; w: all but the machine. */
static double a100_step_s(const ls_config *c, int workers, ls_forecast_world w) {
    ls_machine a100;
    ls_layout l;
    ls_forecast f;
    ls_error e;
    assert_ls_ok(ls_machine_read("configs/machines/a100.yaml", &a100, &e), e);
    assert_ls_ok(ls_layout_make(c, workers, NULL, &l, &e), e);
    w.machine = &a100;
    assert_ls_ok(ls_forecast_plan(c, &l.plan, &w, &f, &e), e);
    ls_layout_free(&l);
    ls_machine_free(&a100);
    return f.step_s;
}

/* A step of Megatron-LM's GPT of 22 billion parameters on 8 A100 GPUs with full recomputation: 1.42
 * s (Korthikanti et al., arXiv 2205.05198, table 5). */
static void test_published(void **state) {
    (void)state;
    static const char *const sets[] = {
        "model.layers=48",       "model.width=6144",        "model.heads=64",
        "model.context=2048",    "model.vocab=51200",       "train.batch=4",
        "train.micro_batch=4",   "train.compute=bf16",      "train.virtual_workers=1",
        "parallel.recompute=2",  "parallel.bucket_mb=1000", "parallel.tensor_virtual=8",
        "parallel.mesh.tensor=8"};
    ls_config c = config_with("optim.warmup=0");
    set_all(&c, sets, sizeof sets / sizeof *sets);
    double step_s = a100_step_s(&c, 8, (ls_forecast_world){0});
    if (step_s < 0.85 * 1.42 || step_s > 1.15 * 1.42) fail_msg("%g s, not 1.42", step_s);
}

/* Seconds of a step of a GPT of 12 blocks on four hosts of four A100 GPUs, a stage each, whose
 * workers divide slices and rows. */
static double piped_step_s(const char *schedule, const char *chunks, const char *batch) {
    static const char *const sets[] = {
        "model.layers=12",        "model.width=8192",        "model.heads=64",
        "model.context=2048",     "model.vocab=51200",       "train.compute=bf16",
        "train.micro_batch=1",    "train.virtual_workers=1", "parallel.bucket_mb=1000",
        "parallel.mesh.tensor=4", "parallel.mesh.pipe=4",    "parallel.tensor_virtual=4",
        "parallel.sequence=on"};
    const char *const own[] = {schedule, chunks, batch};
    ls_config c = config_with("optim.warmup=0");
    set_all(&c, sets, sizeof sets / sizeof *sets);
    set_all(&c, own, 3);
    return a100_step_s(&c, 16,
                       (ls_forecast_world){.host_workers = 4, .latency_s = 2e-6, .byte_s = 5e-12});
}

/* Chunks make a bubble shorter, and a further micro-batch no longer: a worker that waits for
 * another stage exchanges slices meanwhile. */
static void test_chunks(void **state) {
    (void)state;
    static const char few[] = "train.batch=4", many[] = "train.batch=8";
    double whole[] = {piped_step_s("parallel.schedule=1f1b", "parallel.chunks=1", few),
                      piped_step_s("parallel.schedule=1f1b", "parallel.chunks=1", many)};
    double cut[] = {piped_step_s("parallel.schedule=interleaved", "parallel.chunks=3", few),
                    piped_step_s("parallel.schedule=interleaved", "parallel.chunks=3", many)};
    assert_true(cut[0] < 0.85 * whole[0]);
    assert_true(cut[1] - cut[0] < whole[1] - whole[0]);
}

/* Between two exchanges replicas wait for no others: not for a link of 10 ms. If no step is
 * abandoned, all decide each step. */
static void test_apart(void **state) {
    (void)state;
    const ls_forecast_world far = {
        .machine = &machine, .host_workers = 1, .latency_s = 0.01, .byte_s = 1e-9};
    static const settings diloco = {"sync.mode=diloco", "sync.every=50", NULL},
                          together = {"sync.mode=diloco", "sync.every=50", "survival.stop_s=0",
                                      NULL};
    ls_forecast apart = forecast_of(diloco, 2, &far), all = forecast_of(together, 2, &far);
    assert_true(all.exposed_s > 0.01);
    assert_true(apart.exposed_s > 0 && apart.exposed_s < 0.1 * all.exposed_s);
    assert_true(apart.sync_s == all.sync_s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_memory), cmocka_unit_test(test_threads),
        cmocka_unit_test(test_hosts),       cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_backups),     cmocka_unit_test(test_published),
        plain_unit_test(test_chunks),       cmocka_unit_test(test_apart)};
    return cmocka_run_group_tests(tests, make_machine, free_machine);
}
