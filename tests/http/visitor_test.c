/* visitor_test.c - which requests a server takes for its own. */
#include "http/visitor.h"
#include "test.h"

static void test_hosts(void **state) {
    static const char *const names[] = {"red.example", "fe80::1", "10.0.0.7"};
    static const char *const ours[] = {
        "localhost",   "localhost:8080", "LOCALHOST",   "127.0.0.1",   "127.0.0.1:1", "[::1]",
        "[::1]:65535", "red.example:80", "Red.Example", "[fe80::1]:9", "10.0.0.7:12", "localhost:"};
    static const char *const others[] = {"",
                                         "evil.example",
                                         "localhost.evil.example",
                                         "localhost.",
                                         "127.0.0.2",
                                         "127.0.0.1.evil",
                                         "::1",
                                         "[::1",
                                         "[::1]x",
                                         "localhost:80x",
                                         "localhost:80:80",
                                         "red.example.",
                                         "fe80::1",
                                         "red.example@evil:1",
                                         "localhost evil",
                                         ":80",
                                         "[localhost]"};
    (void)state;
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (!ls_visitor_host_is_ours(ours[i], names, 3)) fail_msg("'%s' is ours", ours[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ls_visitor_host_is_ours(others[i], names, 3)) fail_msg("'%s' is not ours", others[i]);
    assert_false(ls_visitor_host_is_ours(NULL, names, 3));
    assert_false(ls_visitor_host_is_ours("red.example", NULL, 0));
}

static void test_loopback(void **state) {
    (void)state;
    assert_true(ls_visitor_is_loopback("127.0.0.1"));
    assert_true(ls_visitor_is_loopback("127.8.0.1"));
    assert_true(ls_visitor_is_loopback("::1"));
    assert_true(ls_visitor_is_loopback("localhost"));
    assert_false(ls_visitor_is_loopback("0.0.0.0"));
    assert_false(ls_visitor_is_loopback("::"));
    assert_false(ls_visitor_is_loopback("192.168.0.1"));
}

static void test_name(void **state) {
    (void)state;
    static const char *const red[] = {"red", "blue"};
    static const struct {
        const char *address;
        int n;
        const char *want;
    } cases[] = {{NULL, 0, "localhost"},        {"127.0.0.1", 2, "localhost"},
                 {"localhost", 0, "localhost"}, {"127.0.0.2", 0, "127.0.0.2"},
                 {"::1", 0, "[::1]"},           {"0.0.0.0", 0, "0.0.0.0"},
                 {"0.0.0.0", 2, "red"},         {"fe80::1", 0, "[fe80::1]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_buf name = {0};
        ls_visitor_name(cases[i].address, red, cases[i].n, &name);
        assert_string_equal(name.data, cases[i].want);
        ls_buf_free(&name);
    }
}

static void test_token(void **state) {
    char a[LS_TOKEN_TEXT], b[LS_TOKEN_TEXT];
    ls_error e = {0};
    (void)state;
    assert_ls_ok(ls_visitor_token_make(a, &e), e);
    assert_ls_ok(ls_visitor_token_make(b, &e), e);
    assert_int_equal(strlen(a), LS_TOKEN_TEXT - 1);
    assert_int_equal(strspn(a, "0123456789abcdef"), LS_TOKEN_TEXT - 1);
    assert_string_not_equal(a, b);
    assert_true(ls_visitor_token_is(a, a));
    assert_false(ls_visitor_token_is(b, a));
    assert_false(ls_visitor_token_is(NULL, a));
    assert_false(ls_visitor_token_is("", a));
    assert_false(ls_visitor_token_is("", ""));
    a[LS_TOKEN_TEXT - 2] = 0; /* a beginning is not enough */
    assert_false(ls_visitor_token_is(a, b));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
