/* peft_pattern_test.c - which entry of peft's patterns a module has: the answers are those of
 * Python's re.match(rf"(.*\\.)?({key})$", module). */
#include "storage/peft_pattern.h"

#include <string.h>

#include "base/mem.h"
#include "test.h"

/* The entries' numbers are 1, 2, ...; 0: no entry matches. */
static void gives(const char *const *keys, const char *module, double want) {
    ls_error e = {0};
    ls_peft_pattern *p = NULL;
    ls_json *o = ls_json_new_object();
    for (int i = 0; keys[i]; i++) ls_json_set_integer(o, keys[i], i + 1);
    assert_ls_ok(ls_peft_pattern_read(o, true, "rank_pattern", &p, &e), e);
    double got = ls_peft_pattern_number(p, module, 0);
    if (got != want) fail_msg("%s: entry %g, not %g", module, got, want);
    assert_true(ls_peft_pattern_is_found(p));
    ls_peft_pattern_free(p);
    ls_json_free(o);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_entries(void **state) {
    (void)state;
    const char *q = "model.layers.11.self_attn.q_proj";
    gives(KEYS("q_proj"), q, 1);
    gives(KEYS("proj"), q, 0); /* the name ends so, but not at a dot */
    gives(KEYS(".*proj"), q, 1);
    gives(KEYS("self_attn"), q, 0);
    gives(KEYS("self_attn.q_proj", "q_proj"), q, 1); /* the first that matches */
    gives(KEYS("k_proj", "q_proj", ".*"), q, 2);
    gives(KEYS("1.self_attn.q_proj"), q, 0);
    gives(KEYS("layers\\.1[0-9]\\..*\\.(q|v)_proj"), q, 1);
    gives(KEYS("layers.\\d.*q_proj"), q, 1);
    gives(KEYS("layers\\.\\d\\..*q_proj"), q, 0);
    gives(KEYS("^model.layers.11.self_attn.q_proj"), q, 1);
    gives(KEYS("^layers.11.self_attn.q_proj"), q, 0);
    gives(KEYS("^model.*(q|k)_proj"), q, 1);
    gives(KEYS("k_proj|q_proj"), q, 1);
    gives(KEYS("model.layers.11.self_attn.q_proj"), q, 1);
    gives(KEYS(""), q, 0);
    gives(KEYS("model"), "model", 1);
}

static void test_numbers(void **state) {
    (void)state;
    ls_error e = {0};
    ls_peft_pattern *p = NULL;
    ls_json *o = ls_json_new_object();
    ls_json_set_number(o, "up_proj", 0.5);
    assert_ls_ok(ls_peft_pattern_read(o, false, "alpha_pattern", &p, &e), e);
    assert_true(ls_peft_pattern_number(p, "mlp.up_proj", 8) == 0.5);
    assert_true(ls_peft_pattern_number(p, "mlp.down_proj", 8) == 8);
    ls_peft_pattern_free(p);
    p = NULL;
    assert_ls_ok(ls_peft_pattern_read(NULL, false, "alpha_pattern", &p, &e), e);
    assert_true(ls_peft_pattern_number(p, "mlp.up_proj", 8) == 8);
    ls_peft_pattern_free(p);
    assert_ls_fails(ls_peft_pattern_read(o, true, "rank_pattern", &p, &e), LS_EINVAL,
                    "rank_pattern: that of 'up_proj' is not a rank", e);
    ls_json_free(o);
    o = ls_json_new_object();
    ls_json_set_integer(o, "^q|k", 3); /* ^ is that of one alternative */
    assert_ls_fails(ls_peft_pattern_read(o, true, "rank_pattern", &p, &e), LS_EINVAL, "'^q|k'", e);
    ls_json_free(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries),
                                       cmocka_unit_test(test_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
