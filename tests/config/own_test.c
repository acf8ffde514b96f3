/* own_test.c - keys that a program adds: values, limits, defaults, what is refused, the saved
 * config. */
#include "config/own.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/differences.h"
#include "config/key_help.h"
#include "config/relations.h"
#include "config/write_config.h"
#include "test.h"

static const ls_key_spec keys[] = {
    {.name = "width", .type = LS_KEY_INT, .low = 8, .high = 512, .usual = "32", .help = "channels"},
    {.name = "rate", .type = LS_KEY_FLOAT, .low = 0, .high = 1, .usual = "0.25", .help = "a rate"},
    {.name = "note", .type = LS_KEY_STRING, .usual = "none: \"x\"", .help = "a text"},
    {.name = "any", .type = LS_KEY_INT},
    {.name = "least", .type = LS_KEY_FLOAT, .low = 2, .high = 3},
    {.name = "other", .type = LS_KEY_STRING},
    {0}};

static void use(void) {
    ls_error e = {0};
    assert_ls_ok(ls_config_use_program("mine", keys, false, &e), e);
}

static ls_status load(const char *text, ls_config *c, ls_error *e) {
    char path[] = "/tmp/lockstep-own-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    ls_status s = ls_config_load(path, NULL, 0, c, e);
    unlink(path);
    return s;
}

static void expect_values(const ls_config *c, int64_t width, double rate, const char *note) {
    ls_error e = {0};
    int64_t i = 0;
    double x = 0;
    const char *text = NULL;
    assert_ls_ok(ls_config_own_int(c, "width", &i, &e), e);
    assert_ls_ok(ls_config_own_float(c, "rate", &x, &e), e);
    assert_ls_ok(ls_config_own_string(c, "note", &text, &e), e);
    assert_int_equal(i, width);
    assert_true(x == rate);
    assert_string_equal(text, note);
}

static void test_values(void **state) {
    (void)state;
    ls_config c, again;
    ls_error e = {0};
    double least = 0;
    const char *other = NULL;
    use();
    assert_string_equal(ls_config_program(), "mine");
    ls_config_defaults(&c);
    assert_int_equal(c.model.kind, LS_MODEL_PROGRAM);
    expect_values(&c, 32, 0.25, "none: \"x\"");
    assert_ls_ok(ls_config_own_float(&c, "least", &least, &e), e);
    assert_true(least == 2);
    assert_ls_ok(ls_config_own_string(&c, "other", &other, &e), e);
    assert_string_equal(other, "");
    assert_ls_ok(load("data: {path: x}\nmine:\n  width: 48\n  rate: 1\n  note: 'a: b'\n", &c, &e),
                 e);
    expect_values(&c, 48, 1, "a: b");
    assert_ls_ok(ls_config_set(&c, "mine.any=-123456789012", &e), e);
    ls_buf text = {0}; /* the saved config gives the same values */
    ls_config_write(&c, &text);
    assert_non_null(strstr(text.data, "\nmine:\n  width: 48\n"));
    assert_ls_ok(load(text.data, &again, &e), e);
    assert_memory_equal(&c.own, &again.own, sizeof c.own);
    ls_buf_free(&text);
    char *note = NULL; /* a program's keys can change the bits */
    assert_ls_ok(ls_config_set(&again, "mine.width=49", &e), e);
    assert_int_equal(ls_config_compatible(&c, &again, &note, &e), LS_EINVAL);
    assert_non_null(strstr(e.msg, "mine.width is 49, but the run began with 48"));
}

static void test_help(void **state) {
    (void)state;
    ls_buf out = {0};
    ls_error e = {0};
    use();
    assert_ls_ok(ls_config_help("mine", &out, &e), e);
    assert_non_null(strstr(out.data, "mine.width = 32 (8 to 512)\n      channels\n"));
    ls_buf_free(&out);
    assert_ls_ok(ls_config_help(NULL, &out, &e), e);
    assert_non_null(strstr(out.data, "log.every"));
    assert_non_null(strstr(out.data, "mine.rate = 0.25"));
    ls_buf_free(&out);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"mine: {widht: 9}\n", ":1: unknown key 'mine.widht'; did you mean 'mine.width'?"},
        {"mine: {width: 7}\n", "mine.width: 7 is out of range; expected 8 to 512"},
        {"mine: {width: 8.5}\n", "mine.width: '8.5' is not a whole number"},
        {"mine: {rate: much}\n", "mine.rate: 'much' is not a number"},
        {"mine: {width: 9, width: 10}\n", "twice"},
        {"mine: 3\n", "'mine' is a group, not a key"},
        {"model: {kind: mlp}\ndata: {path: x}\n", "this program has a model of its own"},
    };
    ls_config c;
    ls_error e = {0};
    use();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(load(cases[i].text, &c, &e), LS_EINVAL);
        if (!strstr(e.msg, cases[i].says)) fail_msg("case %zu: %s", i, e.msg);
    }
    int64_t x = 0;
    ls_config_defaults(&c);
    assert_int_equal(ls_config_own_int(&c, "rate", &x, &e), LS_EINVAL);
    assert_string_equal(e.msg, "the program has no key 'rate' that is a whole number");
    assert_int_equal(ls_config_own_int(&c, "none", &x, &e), LS_EINVAL);
}

static void test_programs(void **state) {
    (void)state;
    static const struct {
        const char *name;
        ls_key_spec keys[3];
        const char *says;
    } cases[] = {
        {"train", {{0}}, "the program's name 'train' is not possible"},
        {"", {{0}}, "the program's name '' is not possible"},
        {"a b", {{0}}, "the program's name 'a b' is not possible"},
        {"mine", {{.name = "a-b", .type = LS_KEY_INT}}, "key 'a-b' of the program 'mine'"},
        {"mine", {{.name = "a"}}, "key 'a' of the program 'mine'"},
        {"mine",
         {{.name = "a", .type = LS_KEY_INT}, {.name = "a", .type = LS_KEY_FLOAT}},
         "two keys 'mine.a'"},
        {"mine",
         {{.name = "a", .type = LS_KEY_INT, .low = 1, .high = 2, .usual = "3"}},
         "mine.a: 3 is out of range; expected 1 to 2"},
        {"mine", {{.name = "a", .type = LS_KEY_FLOAT, .usual = "x"}}, "'x' is not a number"},
        {"mine",
         {{.name = "a", .type = LS_KEY_INT, .low = 2, .high = 1}},
         "key 'a' of the program 'mine': low is 2 and high 1; low is at most high"},
        {"mine", {{.name = "a", .type = LS_KEY_FLOAT, .low = NAN, .high = 1}}, "low is nan"},
        {"mine", {{.name = "a", .type = LS_KEY_FLOAT, .high = NAN}}, "high nan"},
    };
    ls_error e = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(ls_config_use_program(cases[i].name, cases[i].keys, false, &e), LS_EINVAL);
        if (!strstr(e.msg, cases[i].says)) fail_msg("case %zu: %s", i, e.msg);
    }
    static ls_key_spec many[LS_MAX_KEYS + 2];
    static char names[LS_MAX_KEYS + 1][8];
    for (int i = 0; i <= LS_MAX_KEYS; i++) {
        snprintf(names[i], sizeof names[i], "k%d", i);
        many[i] = (ls_key_spec){.name = names[i], .type = LS_KEY_INT};
    }
    assert_int_equal(ls_config_use_program("mine", many, false, &e), LS_EINVAL);
    many[LS_MAX_KEYS] = (ls_key_spec){0};
    assert_ls_ok(ls_config_use_program("mine", many, false, &e), e);
    for (int i = 0; i <= LS_MAX_STRING_KEYS; i++) many[i].type = LS_KEY_STRING;
    assert_int_equal(ls_config_use_program("mine", many, false, &e), LS_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_help),
                                       cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
