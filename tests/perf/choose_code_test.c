/* choose_code_test.c - compress.kind auto: slow links get a code, fast ones and one host none; what
 * is chosen is complete, and what can't be decided is refused. */
#include "perf/choose_code.h"

#include <string.h>

#include "config/relations.h"
#include "folder.h"
#include "perf/round_machine.h"
#include "test.h"

static char machine_path[256], links_path[256];

static void write_links(double latency_us, double byte_ns) {
    ls_buf text = {0};
    ls_error e;
    ls_buf_printf(&text,
                  "links:\n  latency_us: %g\n  byte_ns: %g\n  busy_message_us: %g\n"
                  "  busy_byte_ns: %g\n  reduce_ns: 0.1\n",
                  latency_us, byte_ns, latency_us, byte_ns);
    assert_ls_ok(ls_file_replace(links_path, text.data, text.len, &e), e);
    ls_buf_free(&text);
}

static void write_machine(void) {
    ls_buf text = {0};
    ls_error e;
    snprintf(machine_path, sizeof machine_path, "%s/machine.yaml", folder);
    snprintf(links_path, sizeof links_path, "%s/links.yaml", folder);
    round_machine_text(&text);
    assert_ls_ok(ls_file_replace(machine_path, text.data, text.len, &e), e);
    ls_buf_free(&text);
}

static void set(ls_config *c, const char *text) {
    ls_error e;
    assert_ls_ok(ls_config_set(c, text, &e), e);
}

static ls_config config_auto(bool with_files) {
    ls_config c;
    ls_error e;
    char text[512];
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    set(&c, "compress.kind=auto");
    set(&c, "parallel.zero=0");
    snprintf(text, sizeof text, "compress.machine=%s", machine_path);
    if (with_files) set(&c, text);
    snprintf(text, sizeof text, "compress.links=%s", links_path);
    if (with_files) set(&c, text);
    return c;
}

static int64_t chosen(ls_config c, int workers, int hosts) {
    ls_error e;
    assert_ls_ok(ls_choose_code(&c, workers, hosts, &e), e);
    assert_true(c.compress.kind != LS_COMPRESS_AUTO && !*c.compress.machine && !*c.compress.links);
    assert_ls_ok(ls_config_check(&c, "chosen", &e), e);
    return c.compress.kind;
}

static void test_links(void **state) {
    (void)state;
    write_machine();
    write_links(0.01, 1e-6);
    assert_int_equal(chosen(config_auto(true), 1, 2), LS_COMPRESS_OFF);
    write_links(0.01, 1e5);
    assert_int_not_equal(chosen(config_auto(true), 1, 2), LS_COMPRESS_OFF);
    assert_int_equal(chosen(config_auto(true), 1, 2), chosen(config_auto(true), 1, 2));
    assert_int_equal(chosen(config_auto(false), 4, 1), LS_COMPRESS_OFF); /* one host */
    /* other settings may exclude all codes; keys of a kind go with it */
    ls_config c = config_auto(true);
    set(&c, "parallel.reduce=fastest");
    set(&c, "compress.warmup=3");
    assert_int_equal(chosen(c, 1, 2), LS_COMPRESS_OFF);
    /* so may the sizes of parameters; none of the keys is left */
    c = config_auto(true);
    set(&c, "compress.min_size=1000000");
    assert_int_equal(chosen(c, 1, 2), LS_COMPRESS_OFF);
}

static void refused(ls_config c, const char *message) {
    ls_error e;
    assert_int_equal(ls_choose_code(&c, 1, 2, &e), LS_EINVAL);
    if (!strstr(e.msg, message)) fail_msg("%s", e.msg);
}

static void test_refused(void **state) {
    (void)state;
    ls_error e;
    write_machine();
    refused(config_auto(false), "set compress.machine to what");
    ls_config c = config_auto(true); /* the machine has no speeds of products in 16 bits */
    write_links(1, 1);
    ls_buf text = {0};
    assert_ls_ok(ls_file_read(machine_path, SIZE_MAX, &text, &e), e);
    char *wide = strstr(text.data, "product_bf16");
    assert_non_null(wide);
    wide[0] = strchr(wide, '\n')[1] = '#';
    assert_ls_ok(ls_file_replace(machine_path, text.data, text.len, &e), e);
    ls_buf_free(&text);
    set(&c, "train.compute=bf16");
    set(&c, "train.reduce_dtype=f32");
    refused(c, "product_bf16");
    write_machine();
    assert_ls_ok(ls_file_replace(links_path, "nothing: 1\n", 11, &e), e);
    refused(config_auto(true), links_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_links),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
