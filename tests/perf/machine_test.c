/* machine_test.c - machine files: they are read back as written, errors are named; speeds
 * between the points of a table. */
#include "perf/machine.h"

#include <math.h>
#include <unistd.h>

#include "base/file.h"
#include "perf/round_machine.h"
#include "test.h"

static char path[64];

static ls_status read_text(const char *text, ls_machine *m, ls_error *e) {
    assert_ls_ok(ls_file_replace(path, text, strlen(text), e), *e);
    return ls_machine_read(path, m, e);
}

static int make_path(void **state) {
    (void)state;
    snprintf(path, sizeof path, "/tmp/lockstep-machine-%d.yaml", (int)getpid());
    return 0;
}

static int remove_path(void **state) {
    (void)state;
    unlink(path);
    return 0;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

static void test_round(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_machine m;
    ls_error e;
    round_machine_text(&text);
    assert_ls_ok(read_text(text.data, &m, &e), e);
    assert_int_equal(m.cores, 4);
    assert_string_equal(m.name, "round");
    assert_true(near(m.shared_start_s, 1e-6));
    assert_true(near(ls_machine_product_s(&m, LS_WORK_PRODUCT, 2, 3, 5, 1), 60e-9));
    assert_true(near(ls_machine_pass_s(&m, LS_WORK_UPDATE, 1000, 1), 1e-6));
    assert_true(near(ls_machine_pass_s(&m, LS_WORK_UPDATE, 1000, 8), 2e-6)); /* 8 on 4 cores */
    assert_true(ls_machine_pass_s(&m, LS_WORK_ADD, 0, 1) == 0);
    assert_true(ls_machine_product_s(&m, LS_WORK_PRODUCT, 0, 3, 5, 1) == 0);
    ls_machine_free(&m);
    ls_buf_free(&text);
}

/* Prices are optional, and are written as they were read. */
static void test_prices(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_machine m, again;
    ls_error e;
    round_machine_text(&text);
    ls_buf_printf(&text, "cost:\n  worker_hour: 0.125\n  watts: 35\n  currency: EUR\n");
    assert_ls_ok(read_text(text.data, &m, &e), e);
    assert_ls_ok(ls_machine_write(path, &m, "again", &e), e);
    assert_ls_ok(ls_machine_read(path, &again, &e), e);
    assert_true(again.prices.worker_hour == 0.125 && again.prices.watts == 35);
    assert_string_equal(again.prices.currency, "EUR");
    ls_machine_free(&m);
    ls_machine_free(&again);
    ls_buf_free(&text);
}

/* Replaces the first `what` by `with`. */
static char *changed(const char *text, const char *what, const char *with) {
    const char *at = strstr(text, what);
    assert_non_null(at);
    return ls_format("%.*s%s%s", (int)(at - text), text, with, at + strlen(what));
}

/* Speeds of 1, 2, 4 and 8 at two sizes of each axis but one. */
static void test_between(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_machine m;
    ls_error e;
    round_machine_text(&text);
    char *with = changed(text.data, "product:\n  1x1x1: 1 1",
                         "product:\n  10x10x7: 1 0.5\n  10x1000x7: 2 1\n  40x10x7: 4 2\n"
                         "  40x1000x7: 8 4");
    assert_ls_ok(read_text(with, &m, &e), e);
    const struct {
        double M, N, K, speed;
    } cases[] = {{10, 10, 7, 1}, {10, 1000, 7, 2},      {40, 10, 7, 4},
                 {20, 10, 7, 2}, {10, 100, 7, sqrt(2)}, {20, 100, 7, 2 * sqrt(2)},
                 {1, 1, 1, 1},   {1000, 100000, 99, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double M = cases[i].M, N = cases[i].N, K = cases[i].K, units = 2e-9 * M * N * K;
        double s = ls_machine_product_s(&m, LS_WORK_PRODUCT, M, N, K, 1);
        assert_true(near(s, units / cases[i].speed));
        /* All four cores: half the speed. Two: a third of the way there. Eight: two per core. */
        assert_true(near(ls_machine_product_s(&m, LS_WORK_PRODUCT, M, N, K, 4), 2 * s));
        assert_true(near(ls_machine_product_s(&m, LS_WORK_PRODUCT, M, N, K, 2), s * 4 / 3));
        assert_true(near(ls_machine_product_s(&m, LS_WORK_PRODUCT, M, N, K, 8), 4 * s));
    }
    ls_machine_free(&m);
    free(with);
    ls_buf_free(&text);
}

static void test_again(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_machine m, again;
    ls_error e;
    round_machine_text(&text);
    char *with = changed(text.data, "norm:\n  1: 1 1", "norm:\n  5: 3.25 2\n  70000: 1.5 0.5");
    assert_ls_ok(read_text(with, &m, &e), e);
    m.link.latency_s = 12.5e-6;
    assert_ls_ok(ls_machine_write(path, &m, "a test", &e), e);
    assert_ls_ok(ls_machine_read(path, &again, &e), e);
    assert_true(near(again.link.latency_s, 12.5e-6));
    for (double n = 1; n < 1e6; n *= 3)
        for (int busy = 1; busy < 6; busy++)
            assert_true(near(ls_machine_pass_s(&again, LS_WORK_NORM, n, busy),
                             ls_machine_pass_s(&m, LS_WORK_NORM, n, busy)));
    ls_machine_free(&m);
    ls_machine_free(&again);
    free(with);
    ls_buf_free(&text);
}

/* The limit of a worker's threads is optional, and is written as it was read. */
static void test_threads(void **state) {
    (void)state;
    ls_buf text = {0};
    ls_machine m, again;
    ls_error e;
    round_machine_text(&text);
    assert_ls_ok(read_text(text.data, &m, &e), e);
    assert_int_equal(m.threads, 0);
    ls_machine_free(&m);
    char *with = changed(text.data, "cores: 4", "cores: 4\n  threads: 3");
    assert_ls_ok(read_text(with, &m, &e), e);
    assert_ls_ok(ls_machine_write(path, &m, "a test", &e), e);
    assert_ls_ok(ls_machine_read(path, &again, &e), e);
    assert_int_equal(again.threads, 3);
    ls_machine_free(&m);
    ls_machine_free(&again);
    free(with);
    ls_buf_free(&text);
}

/* A device is optional, and is written as it was read; of one, nothing may be missing or 0, but its
 * speed of products in bf16, which older files lack. */
static void test_device(void **state) {
    static const char device[] = "device:\n  name: \"a GPU\"\n  memory_gb: 80\n"
                                 "  product_gflops: 30000\n  memory_gb_per_s: 2000\n"
                                 "  to_gb_per_s: 25\n  from_gb_per_s: 20\n  launch_us: 3\n";
    static const char *const wrong[][3] = {
        {"  to_gb_per_s: 25\n", "",
         "device.to_gb_per_s is missing; `lockstep bench machine --device DEVICE"},
        {"_gflops: 30000", "_gflops: 0", "device.product_gflops is '0'; a number from 1e-9"},
        {"launch_us: 3", "launch_us: x", "device.launch_us is 'x'; a number from 0"},
        {"launch_us: 3", "launch_us: 3\n  product_bf16_gflops: 0",
         "device.product_bf16_gflops is '0'; a number from 1e-9"}};
    ls_buf text = {0};
    ls_machine m, again;
    ls_error e;
    (void)state;
    round_machine_text(&text);
    assert_ls_ok(read_text(text.data, &m, &e), e);
    assert_true(m.device.product == 0);
    ls_machine_free(&m);
    ls_buf_printf(&text, "%s", device);
    assert_ls_ok(read_text(text.data, &m, &e), e);
    assert_ls_ok(ls_machine_write(path, &m, "a test", &e), e);
    assert_ls_ok(ls_machine_read(path, &again, &e), e);
    assert_string_equal(again.device.name, "a GPU");
    assert_true(near(again.device.memory_nbytes, 80e9) && near(again.device.product, 3e13));
    assert_true(near(again.device.memory, 2e12) && near(again.device.to, 25e9));
    assert_true(near(again.device.from, 20e9) && near(again.device.launch_s, 3e-6));
    assert_true(again.device.product_bf16 == 0);
    assert_ls_fails(ls_machine_device_has_bf16(&again, &e), LS_EINVAL, "product_bf16_gflops", e);
    ls_machine_free(&again);
    m.device.product_bf16 = 1.5e13;
    assert_ls_ok(ls_machine_write(path, &m, "a test", &e), e);
    assert_ls_ok(ls_machine_read(path, &again, &e), e);
    assert_true(near(again.device.product_bf16, 1.5e13));
    assert_ls_ok(ls_machine_device_has_bf16(&again, &e), e);
    ls_machine_free(&m);
    ls_machine_free(&again);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char *with = changed(text.data, wrong[i][0], wrong[i][1]);
        assert_ls_fails(read_text(with, &m, &e), LS_EINVAL, wrong[i][2], e);
        free(with);
    }
    ls_buf_free(&text);
}

/* Each change gives one line that names the error. */
static void test_wrong(void **state) {
    (void)state;
    static const char *const cases[][3] = {
        {"  version: 1\n", "", "machine.version is missing; `lockstep bench machine --save FILE`"},
        {"version: 1", "version: 2", ":2: machine.version is '2'; version 1"},
        {"  cores: 4\n", "", "machine.cores is missing"},
        {"cores: 4", "cores: 0", ":4: machine.cores is '0'; a number of cores"},
        {"cores: 4", "cores: many", "a number of cores"},
        {"cores: 4", "cores: 4\n  threads: 0", ":5: machine.threads is '0'; a worker's number of"},
        {"cores: 4", "kernels: 4", ":4: 'machine.kernels' is not a key of a machine file"},
        {"  start_us: 1\n", "", "shared.start_us is missing"},
        {"start_us: 1", "start_us: -1", "shared.start_us is '-1'; a number from 0"},
        {"start_us: 1", "start_us: nan", "shared.start_us is 'nan'"},
        {"start_us: 1", "start_us: 1\n  start_us: 1", "twice"},
        {"product:\n  1x1x1: 1 1\n", "", "the speeds of 'product' are missing"},
        {"product:\n  1x1x1", "product:\n  1x1",
         "'1x1' is not a size of product, such as 64x128x512"},
        {"product:\n  1x1x1", "product:\n  0x1x1", "is not a size of product"},
        {"product:\n  1x1x1", "product:\n  1x1x1x1", "is not a size of product"},
        {"product:\n  1x1x1", "product:\n  2x2x2: 1 1\n  1x1x1",
         "product.1x1x2 is missing: the sizes of a product form a grid"},
        {"1x1x1: 1 1", "1x1x1: 1", "two speeds"},
        {"1x1x1: 1 1", "1x1x1: 1 1 1", "two speeds"},
        {"1x1x1: 1 1", "1x1x1: 1 0", "two speeds"},
        {"adamw:\n  1: 1 1", "adamw:\n  1: 1 1\n  1.0: 1 1", "occurs twice"},
        {"adamw:\n  1: 1 1", "adamw:\n  - 1", "is a list"},
        {"adamw", "adam", "is not a key of a machine file"},
    };
    ls_buf text = {0};
    round_machine_text(&text);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_machine m;
        ls_error e;
        char *with = changed(text.data, cases[i][0], cases[i][1]);
        assert_ls_fails(read_text(with, &m, &e), LS_EINVAL, cases[i][2], e);
        assert_null(strchr(e.msg, '\n'));
        assert_non_null(strstr(e.msg, path));
        free(with);
    }
    ls_buf_free(&text);
}

/* A file without speeds of 16 bits is read, and written, as it is; a step that needs them is
 * refused (cli/forecast_test.c). */
static void test_16_bits(void **state) {
    (void)state;
    static const ls_work_kind kinds[] = {LS_WORK_PRODUCT_BF16, LS_WORK_PRODUCT_DX_BF16,
                                         LS_WORK_PRODUCT_DW_BF16, LS_WORK_WIDEN, LS_WORK_NARROW};
    ls_buf text = {0};
    round_machine_text(&text);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ls_machine m, again;
        ls_error e;
        char table[64], wanted[64];
        const char *name = ls_work_name(kinds[i]);
        snprintf(table, sizeof table, "\n%s:\n  %s: 1 1\n", name,
                 kinds[i] < LS_NPRODUCTS ? "1x1x1" : "1");
        char *without = changed(text.data, table, "\n");
        assert_ls_ok(read_text(without, &m, &e), e);
        assert_ls_ok(ls_machine_write(path, &m, "a test", &e), e);
        assert_ls_ok(ls_machine_read(path, &again, &e), e);
        snprintf(wanted, sizeof wanted, "'round' has no speeds of '%s'", name);
        for (int k = 0; k < LS_NWORK_KINDS; k++) {
            if ((ls_work_kind)k == kinds[i])
                assert_ls_fails(ls_machine_has(&again, kinds[i], &e), LS_EINVAL, wanted, e);
            else
                assert_ls_ok(ls_machine_has(&again, (ls_work_kind)k, &e), e);
        }
        ls_machine_free(&m);
        ls_machine_free(&again);
        free(without);
    }
    ls_buf_free(&text);
}

static void test_hostile(void **state) {
    (void)state;
    ls_machine m;
    ls_error e;
    ls_buf text = {0};
    assert_int_equal(ls_machine_read("/nowhere/machine.yaml", &m, &e), LS_EIO);
    assert_ls_fails(read_text("", &m, &e), LS_EINVAL, "missing", e);
    assert_ls_fails(read_text("[1, 2]\n", &m, &e), LS_EINVAL, "", e);
    assert_ls_fails(read_text("product: 1\n", &m, &e), LS_EINVAL, "not a key", e);
    assert_ls_fails(read_text("a: {b: {c: {d: {e: 1}}}}\n", &m, &e), LS_EINVAL, "", e);
    round_machine_text(&text);
    for (size_t n = 1; n + 1 < text.len; n += 7) { /* cut anywhere but at the last newline */
        char *cut = ls_format("%.*s", (int)n, text.data);
        assert_int_not_equal(read_text(cut, &m, &e), LS_OK);
        free(cut);
    }
    ls_buf many = {0};
    for (int i = 0; i < 200; i++) ls_buf_printf(&many, "  %d: 1 1\n", 100 + i);
    char *table = ls_format("gelu:\n%s", many.data);
    char *with = changed(text.data, "gelu:\n", table);
    assert_ls_fails(read_text(with, &m, &e), LS_EINVAL, "more than 12 sizes", e);
    free(with);
    free(table);
    ls_buf_free(&many);
    ls_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),   cmocka_unit_test(test_between),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_prices),
        cmocka_unit_test(test_again),   cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_16_bits), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_device)};
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
