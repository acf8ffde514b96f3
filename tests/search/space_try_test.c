/* space_try_test.c - the text of a search from words of a command line. */
#include "search/space_try.h"

#include "test.h"

static ls_status text_of(const char *const *words, int n, const char *method, ls_buf *text,
                         ls_error *e) {
    ls_config base;
    ls_config_defaults(&base);
    assert_int_equal(ls_config_set(&base, "data.path=x", NULL), LS_OK);
    const ls_space_tries t = {words, n, method};
    return ls_space_try(&t, &base, text, e);
}

/* The words become this text, which is a space. */
static ls_space means(const char *const *words, int n, const char *method, const char *want) {
    ls_config base;
    ls_buf text = {0};
    ls_space s;
    ls_error e = {0};
    ls_config_defaults(&base);
    assert_ls_ok(text_of(words, n, method, &text, &e), e);
    assert_string_equal(text.data, want);
    assert_ls_ok(ls_space_parse(&text, LS_SPACE_TRY, &base, &s, &e), e);
    ls_buf_free(&text);
    return s;
}
#define MEANS(method, want, ...)                                                                   \
    means((const char *const[]){__VA_ARGS__},                                                      \
          (int)(sizeof(const char *const[]){__VA_ARGS__} / sizeof(const char *)), method, want)

static void test_texts(void **state) {
    (void)state;
    ls_space s = MEANS(NULL,
                       "method: grid\nspace:\n  \"optim.lr\": {choice: [\"1e-4\", \"1e-3\"]}\n"
                       "  \"optim.optimizer\": {choice: [\"adamw\", \"lion\", \"sgd\"]}\n",
                       "optim.lr=1e-4,1e-3", "optim.optimizer=adamw, lion ,sgd");
    assert_int_equal(s.rules.trials, 6);
    ls_space_free(&s);
    s = MEANS(NULL,
              "method: random\ntrials: 20\nspace:\n"
              "  \"optim.lr\": {log_uniform: [\"1e-4\", \"1e-1\"]}\n"
              "  \"optim.weight_decay\": {uniform: [\"0\", \"0.2\"]}\n"
              "  \"model.layers\": {int: [\"2\", \"8\"]}\n",
              "optim.lr=log:1e-4,1e-1", "optim.weight_decay=lin:0,0.2", "model.layers=int:2,8");
    assert_int_equal(s.keys[0].ranges[0].kind, LS_RANGE_LOG_UNIFORM);
    assert_int_equal(s.keys[2].ranges[0].kind, LS_RANGE_INT);
    ls_space_free(&s);
    s = MEANS("asha", "method: asha\ntrials: 20\nspace:\n  \"optim.lr\": {choice: [\"0.1\"]}\n",
              "optim.lr=0.1");
    ls_space_free(&s);
}

/* Commas in lists and maps, and quotes, belong to a value. */
static void test_lists(void **state) {
    (void)state;
    ls_space s = MEANS(NULL,
                       "method: grid\nspace:\n  \"optim.groups\": {choice: [\"[{match: \\\"*a\\\", "
                       "lr_scale: 2}]\", \"[]\"]}\n",
                       "optim.groups=[{match: \"*a\", lr_scale: 2}],[]");
    assert_int_equal(s.rules.trials, 2);
    assert_string_equal(s.grid[0].values[0], "[{match: \"*a\", lr_scale: 2}]");
    ls_space_free(&s);
}

static void refused(const char *word, const char *says) {
    const char *const words[] = {"optim.warmup=1,2", word};
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_fails(text_of(words, 2, NULL, &text, &e), LS_EINVAL, says, e);
    ls_buf_free(&text);
}

static void test_refused(void **state) {
    (void)state;
    refused("optim.lr", "--try optim.lr: expected KEY=VALUE,VALUE or KEY=log:LOW,HIGH");
    refused("optim.lr=", "expected KEY=VALUE,VALUE");
    refused("=1", "expected KEY=VALUE,VALUE");
    refused("optim.lr=1,,2", "has an empty value between its commas");
    refused("optim.lr=1,2,1", "has the same value twice");
    refused("optim.lr=log:1", "a range has a lowest and a highest value");
    refused("optim.lr=lin:1,2,3", "a range has a lowest and a highest value");
    refused("lr=1,2", "--try: unknown key 'lr'; did you mean 'optim.lr'?");
    refused("optim.lr=a,2", "--try: optim.lr: 'a' is not a number");
    refused("optim.warmup=3", "another word has this key, too");
    const char *const word = "optim.lr=1";
    ls_buf text = {0};
    ls_error e = {0};
    assert_ls_fails(text_of(&word, 1, "bayes", &text, &e), LS_EINVAL,
                    "--method: 'bayes' is not one of grid, random, asha, pbt", e);
    ls_buf_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_texts), cmocka_unit_test(test_lists),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
