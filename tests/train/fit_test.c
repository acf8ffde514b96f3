/* fit_test.c - the memory of a plan by the formulas of ZeRO; settings that fit into a limit. */
#include "train/fit.h"

#include <math.h>

#include "base/cores.h"
#include "networks/network.h"
#include "test.h"
#include "train/layout.h"

static ls_config config_with(const char *const *sets, int n) {
    ls_config c;
    ls_error e;
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    for (int i = 0; i < n; i++) assert_ls_ok(ls_config_set(&c, sets[i], &e), e);
    return c;
}

static ls_memory memory_of(const ls_config *c, int workers, size_t *flat_p) {
    ls_layout l;
    ls_memory memory;
    ls_error e;
    assert_ls_ok(ls_layout_make(c, workers, NULL, &l, &e), e);
    ls_memory_config how = ls_layout_memory_config(c, workers, workers);
    ls_plan_memory(&l.plan, &how, &memory);
    *flat_p = l.model.nfloats * sizeof(float);
    ls_layout_free(&l);
    return memory;
}

static void near(double got, double want) {
    if (fabs(got - want) > 0.05 * want) print_error("%g instead of %g\n", got, want);
    assert_true(fabs(got - want) <= 0.05 * want);
}

/* Bytes per parameter, without what a step frees: in f32 16, 8 + 8/N, 4 + 12/N and 16/N; in
 * mixed precision, with f32 masters, 16, 4 + 12/N, 2 + 14/N and 16/N. */
static void check_formulas(const char *compute) {
    bool mixed = strcmp(compute, "train.compute=f32") != 0;
    static const char *const zeros[] = {"parallel.zero=0", "parallel.zero=1", "parallel.zero=2",
                                        "parallel.zero=3"};
    for (int n = 1; n <= 8; n *= 2)
        for (int zero = 0; zero <= 3; zero++) {
            char V[64], micro[64];
            snprintf(micro, sizeof micro, "train.micro_batch=%d", 8 / n);
            size_t flat = 0;
            snprintf(V, sizeof V, "train.virtual_workers=%d", n);
            const char *const sets[] = {zeros[zero],
                                        V,
                                        "parallel.transport=tcp",
                                        "train.batch=8",
                                        "parallel.bucket_mb=0.1",
                                        "model.width=96",
                                        compute,
                                        micro};
            ls_config c = config_with(sets, 8);
            ls_memory m = memory_of(&c, n, &flat);
            double N = n, P = (double)flat / 4;
            double want[] = {16, 8 + 8 / N, 4 + 12 / N, 16 / N};
            if (mixed) want[1] = 4 + 12 / N;
            if (mixed) want[2] = 2 + 14 / N;
            double got = (double)(m.nbytes[LS_MEM_PARAMS] + m.nbytes[LS_MEM_GRADS] +
                                  m.nbytes[LS_MEM_OPTIMIZER] - m.extra[0] - m.extra[1]);
            near(got, want[zero] * P);
            if (zero < 2) assert_int_equal(m.extra[0] + m.extra[1], 0);
            if (zero == 3 && n > 1) assert_true(m.extra[0] > 0 && m.extra[0] < flat);
        }
}

static void test_formulas(void **state) {
    (void)state;
    check_formulas("train.compute=f32");
    check_formulas("train.compute=bf16");
    check_formulas("train.compute=f16");
}

/* The settings found fit into the limit, and cost more with a lower one. */
static void test_find(void **state) {
    (void)state;
    static const char *const sets[] = {"parallel.transport=tcp", "train.micro_batch=2",
                                       "parallel.bucket_mb=0.02", "train.virtual_workers=4",
                                       "model.context=64"};
    ls_config c = config_with(sets, 5);
    ls_error e;
    ls_fit *fits = NULL;
    int all = 0, some = 0;
    assert_ls_ok(ls_fit_find(&c, 4, SIZE_MAX, &fits, &all, &e), e);
    assert_true(all > 20);
    size_t least = SIZE_MAX, most = 0;
    for (int i = 0; i < all; i++) {
        if (i && fits[i].state == fits[i - 1].state)
            assert_true(fits[i].compute >= fits[i - 1].compute);
        if (fits[i].nbytes < least) least = fits[i].nbytes;
        if (fits[i].nbytes > most) most = fits[i].nbytes;
    }
    assert_true(least < most);
    free(fits);
    assert_ls_ok(ls_fit_find(&c, 4, (least + most) / 2, &fits, &some, &e), e);
    assert_true(some > 0 && some < all);
    for (int i = 0; i < some; i++) assert_true(fits[i].nbytes <= (least + most) / 2);
    free(fits);
    assert_ls_ok(ls_fit_find(&c, 4, least - 1, &fits, &some, &e), e);
    assert_int_equal(some, 0);

    c.parallel.zero = 0;
    c.parallel.memory_limit_mb = (double)least / 1e6 + 0.001;
    assert_ls_fails(ls_fit_limit(&c, 4, &e), LS_ENOMEM, "parallel.fit=auto takes it", e);
    c.parallel.fit = LS_FIT_AUTO;
    assert_ls_ok(ls_fit_limit(&c, 4, &e), e);
    size_t flat = 0;
    assert_true(memory_of(&c, 4, &flat).peak <= least + 1000);
    c.parallel.memory_limit_mb = 0.1;
    assert_ls_fails(ls_fit_limit(&c, 4, &e), LS_ENOMEM, "use more workers or a smaller model", e);
}

/* Batch norm needs all samples of a virtual worker at once: no smaller micro-batch is tried. */
static void test_joined_samples(void **state) {
    (void)state;
    static const char *const sets[] = {"model.kind=cnn", "model.norm=batch", "model.classes=3",
                                       "model.input={image: [8, 8, 1]}", "train.micro_batch=2"};
    ls_config c = config_with(sets, 5);
    ls_error e;
    ls_fit *fits = NULL;
    int n = 0;
    assert_ls_ok(ls_fit_find(&c, 2, SIZE_MAX, &fits, &n, &e), e);
    assert_true(n > 20);
    for (int i = 0; i < n; i++) assert_int_equal(fits[i].micro_batch, 2);
    free(fits);
}

/* Micro-batches that nobody has asked for don't make a run too large, nor recompute layers. */
static void test_chosen(void **state) {
    (void)state;
    static const char *const sets[] = {"model.context=32", "train.batch=48",
                                       "train.virtual_workers=4"};
    size_t flat = 0;
    ls_error e;
    ls_config c = config_with(sets, 3), lower;
    size_t least = memory_of(&c, 2, &flat).peak;
    memset(c.written, LS_NOT_WRITTEN, sizeof c.written);
    ls_network_choose_micro(&c);
    assert_int_equal(c.train.micro_batch, 8);
    size_t most = memory_of(&c, 2, &flat).peak;
    for (int recompute = LS_AUTO; recompute <= 0; recompute++) {
        lower = c;
        lower.parallel.recompute = recompute;
        lower.parallel.memory_limit_mb = (double)(most - 1) / 1e6;
        assert_ls_ok(ls_fit_limit(&lower, 2, &e), e);
        assert_int_equal(lower.train.micro_batch, 4);
        lower.parallel.memory_limit_mb = (double)least / 1e6 + 0.001;
        assert_ls_ok(ls_fit_limit(&lower, 2, &e), e);
        assert_int_equal(lower.train.micro_batch, 1);
        assert_int_equal(lower.parallel.recompute, 0);
    }
    lower = c;
    lower.parallel.memory_limit_mb = 0.1;
    assert_ls_fails(ls_fit_limit(&lower, 2, &e), LS_ENOMEM, "use more workers or a smaller", e);
    assert_int_equal(lower.train.micro_batch, 8);
    assert_ls_ok(ls_config_set(&c, "train.micro_batch=8", &e), e);
    c.parallel.memory_limit_mb = (double)(most - 1) / 1e6;
    assert_ls_fails(ls_fit_limit(&c, 2, &e), LS_ENOMEM, "train.micro_batch=4", e);
    assert_false(ls_fit_lower_micro(&c));
}

/* Hosts with other numbers of workers and threads decide the same, by the fewest workers that there
 * may be, none of which shares memory with another. */
static void test_hosts(void **state) {
    (void)state;
    static const char *const sets[] = {"model.width=96", "parallel.threads=auto",
                                       "train.micro_batch=2"};
    size_t flat = 0;
    ls_error e;
    ls_config c = config_with(sets, 3), one = c;
    one.parallel.threads = 1;
    one.parallel.transport = LS_TRANSPORT_TCP;
    size_t most[] = {memory_of(&one, 1, &flat).peak, memory_of(&one, 4, &flat).peak};
    assert_true(most[1] < most[0]);
    c.parallel.memory_limit_mb = (double)most[1] / 1e6 + 0.001;
    assert_ls_fails(ls_fit_limit_hosts(&c, 4, 0, &e), LS_ENOMEM,
                    "; planned for 1 worker, the fewest that the hosts may have", e);
    c.survival.min_workers = 4;
    assert_ls_ok(ls_fit_limit_hosts(&c, 4096, 0, &e), e);
    assert_int_equal(c.train.micro_batch, 2);
    if (ls_cores() > 1) /* not enough for as many threads */
        assert_ls_fails(ls_fit_limit_hosts(&c, 1, 0, &e), LS_ENOMEM,
                        "threads that it has on this host, and parallel.memory_limit_mb is ", e);
    c.survival.min_workers = 1;
    c.parallel.fit = LS_FIT_AUTO;
    c.parallel.memory_limit_mb = (double)most[0] / 1e6 - 0.001;
    assert_ls_ok(ls_fit_limit_hosts(&c, 4096, 0, &e), e);
    assert_int_equal(c.parallel.optimizer_state, LS_STATE_MEMORY);
    one.parallel.zero = c.parallel.zero;
    one.parallel.recompute = c.parallel.recompute;
    one.parallel.recompute_layers = c.parallel.recompute_layers;
    one.train.micro_batch = c.train.micro_batch;
    one.parallel.bucket_mb = c.parallel.bucket_mb;
    assert_true((double)memory_of(&one, 1, &flat).peak <= c.parallel.memory_limit_mb * 1e6);
    c = config_with(sets, 3);
    c.parallel.mesh_pipe = 3;
    c.parallel.memory_limit_mb = 100;
    assert_ls_ok(ls_fit_limit_hosts(&c, 2, 0, &e), e); /* of which others have more */
    assert_int_equal(c.parallel.mesh_pipe, 3);
}

static ls_fit automatic(ls_config c, double limit_mb) {
    ls_error e;
    size_t flat = 0;
    c.parallel.recompute = LS_AUTO;
    c.parallel.memory_limit_mb = limit_mb;
    assert_ls_ok(ls_fit_auto(&c, 2, &e), e);
    return (ls_fit){.recompute = c.parallel.recompute,
                    .recompute_layers = c.parallel.recompute_layers,
                    .nbytes = memory_of(&c, 2, &flat).peak};
}

/* As little recompute as the limit requires; the least memory if nothing meets it. */
static void test_auto(void **state) {
    (void)state;
    static const char *const sets[] = {"parallel.transport=tcp", "train.virtual_workers=2",
                                       "model.context=64",       "model.layers=6",
                                       "train.batch=8",          "train.micro_batch=4"};
    ls_config c = config_with(sets, 6);
    ls_fit none = automatic(c, 0), tiny = automatic(c, 0.001);
    assert_int_equal(none.recompute, 0);
    assert_int_equal(automatic(c, (double)none.nbytes / 1e6).recompute, 0);
    assert_true(tiny.recompute > 0 && tiny.recompute_layers == 0 && tiny.nbytes < none.nbytes);
    int64_t layers = 0;
    for (int i = 1; i < 8; i++) {
        double limit = (double)none.nbytes - (double)(none.nbytes - tiny.nbytes) * i / 8;
        ls_fit f = automatic(c, limit / 1e6);
        assert_true(f.recompute > 0 && (double)f.nbytes <= limit);
        int64_t now = f.recompute_layers ? f.recompute_layers : 12;
        assert_true(now >= layers);
        layers = now;
    }
    assert_true(automatic(c, (double)none.nbytes / 1e6 - 0.001).recompute_layers > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),       cmocka_unit_test(test_find),
        cmocka_unit_test(test_joined_samples), cmocka_unit_test(test_auto),
        cmocka_unit_test(test_chosen),         cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
