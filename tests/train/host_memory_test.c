/* host_memory_test.c - what a run is told that needs more memory than the machine has. */
#include "train/host_memory.h"

#include <math.h>

#include "test.h"
#include "train/layout.h"

enum { MANY = 1 << 30 }; /* workers: no machine has the memory */

/* A run of configs/tiny.yaml with these settings needs most memory for `most`: its advice. */
static void check(const char *const *sets, ls_purpose most, const char *advice) {
    ls_config c;
    ls_layout l;
    ls_error e = {0};
    assert_ls_ok(ls_config_read("configs/tiny.yaml", &c, &e), e);
    for (; *sets; sets++) assert_ls_ok(ls_config_set(&c, *sets, &e), e);
    assert_ls_ok(ls_layout_make(&c, 1, NULL, &l, &e), e);
    const ls_plan *p = &l.plan;
    ls_host_need need = ls_host_memory_need(&c, p, 1, 1, false);
    assert_string_equal(ls_purpose_name(ls_memory_worst(&need.most)), ls_purpose_name(most));
    assert_ls_ok(ls_host_memory_for_plan(&c, p, 1, 1, false, &e), e);
    assert_ls_fails(ls_host_memory_for_plan(&c, p, MANY, 1, false, &e), LS_ENOMEM, advice, e);
    assert_string_equal(strstr(e.msg, "; use "), advice);
    assert_non_null(strstr(e.msg, ls_purpose_name(most)));
    ls_layout_free(&l);
}

static void test_advice(void **state) {
    (void)state;
    check((const char *const[]){"train.micro_batch=2", "model.context=1024", NULL},
          LS_MEM_ACTIVATIONS, "; use a smaller train.micro_batch");
    check((const char *const[]){"train.micro_batch=1", "model.context=2048", NULL},
          LS_MEM_ACTIVATIONS, "; use parallel.recompute=2, or a smaller model.context");
    check((const char *const[]){"train.micro_batch=1", "model.context=8", "model.width=768", NULL},
          LS_MEM_GRADS, "; use fewer workers or virtual workers, or a smaller model");
}

static void test_text(void **state) {
    (void)state;
    char text[32];
    assert_string_equal(ls_host_memory_text(1.26e9, text), "1.3 GB");
    assert_string_equal(ls_host_memory_text(1.26e6, text), "1.3 MB");
    assert_string_equal(ls_host_memory_text((double)INFINITY, text), "an unknown amount");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_advice), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
