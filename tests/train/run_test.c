/* run_test.c - what hosts must have in common: settings, and the order of products in bf16. */
#include "train/run.h"

#include <stdlib.h>

#include "config/relations.h"
#include "net/tcp/admission.h"
#include "tensor/sum_order.h"
#include "test.h"

static ls_buf must_match(const char *compute) {
    ls_config c;
    ls_error e = {0};
    ls_buf text = {0};
    assert_ls_ok(ls_config_load("configs/tiny.yaml", &compute, 1, &c, &e), e);
    ls_run_must_match(&c, &text);
    return text;
}

static ls_status check(const char *own, const char *theirs, ls_error *e) {
    const ls_admission g = {.settings = own};
    return ls_admission_check(&g, "red", theirs, e);
}

static void test_order(void **state) {
    (void)state;
    static const char LINE[] = "train.compute.sum " LS_SUM_ORDER "\n";
    ls_error e = {0};
    ls_buf f32 = must_match("train.compute=f32"), bf16 = must_match("train.compute=bf16");
    assert_null(strstr(f32.data, "sum"));
    assert_string_equal(bf16.data + bf16.len - strlen(LINE), LINE);
    char *known = ls_format("%srun 1\ndata 2\n", bf16.data);
    assert_ls_ok(check(bf16.data, known, &e), e);
    char *other = ls_format("%.*strain.compute.sum blocks64\nrun 1\n",
                            (int)(bf16.len - strlen(LINE)), bf16.data);
    assert_ls_fails(check(bf16.data, other, &e), LS_EINVAL,
                    "this host has train.compute.sum blocks32, the host at red has blocks64; these "
                    "must match",
                    e);
    bf16.data[bf16.len - strlen(LINE)] = 0; /* an older version, which may know its run */
    char *older = ls_format("%srun 1\ndata 2\n", bf16.data),
         *now = ls_format("%s%s", bf16.data, LINE);
    const char *const texts[] = {bf16.data, older};
    for (int i = 0; i < 2; i++)
        assert_ls_fails(check(now, texts[i], &e), LS_EINVAL,
                        "this host has train.compute.sum blocks32, the host at red has no such "
                        "setting; these must match",
                        e);
    free(known), free(other), free(older), free(now);
    ls_buf_free(&f32);
    ls_buf_free(&bf16);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
