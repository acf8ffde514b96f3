/* braces_test.c - names with braces; what is expected is what bash prints. */
#include "data/braces.h"

#include <string.h>

#include "data/files.h"
#include "folder.h"
#include "test.h"

static void expands(const char *name, const char *want) {
    ls_buf b = {0};
    ls_error e = {0};
    assert_ls_ok(ls_braces_expand(name, &b, &e), e);
    assert_string_equal(b.data, want);
    size_t n = 0;
    for (const char *s = b.data; *s; s++) n += *s == '\n';
    assert_int_equal(ls_braces_are_in(name), n > 1 || strncmp(b.data, name, strlen(name)) != 0);
    ls_buf_free(&b);
}

static void test_names(void **state) {
    (void)state;
    expands("shard-{08..11}.tar", "shard-08.tar\nshard-09.tar\nshard-10.tar\nshard-11.tar\n");
    expands("{8..11}", "8\n9\n10\n11\n");
    expands("{003..1}x", "003x\n002x\n001x\n");
    expands("{-1..1}", "-1\n0\n1\n");
    expands("{7..7}", "7\n");
    expands("a{b,,cd}e", "abe\nae\nacde\n");
    expands("{a,b}/{1..2}", "a/1\na/2\nb/1\nb/2\n");
    expands("{a,b{1,2}c,d}", "a\nb1c\nb2c\nd\n");
    expands("{x{a,b}}", "{xa}\n{xb}\n");
    expands("{{1..2},3}", "1\n2\n3\n");
}

static void test_not_braces(void **state) {
    (void)state;
    static const char *const same[] = {"",
                                       "a",
                                       "{}",
                                       "{a}",
                                       "a{b",
                                       "a}b{",
                                       "{1..}",
                                       "{..2}",
                                       "{1..b}",
                                       "{1...3}",
                                       "{1..2",
                                       "x{{a}}y",
                                       "{1.. 2}",
                                       "{--1..2}",
                                       "${HOME}",
                                       "{1,2",
                                       "{99999999999999999999..1}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char want[64];
        snprintf(want, sizeof want, "%s\n", same[i]);
        expands(same[i], want);
    }
}

static void test_limits(void **state) {
    (void)state;
    ls_buf b = {0};
    ls_error e;
    assert_ls_fails(ls_braces_expand("x{0..100000}", &b, &e), LS_EINVAL,
                    "x{0..100000}: its braces stand for more than 100000 names", e);
    ls_buf_free(&b);
    assert_ls_fails(ls_braces_expand("{-999999999999999999..999999999999999999}", &b, &e),
                    LS_EINVAL, "more than 100000 names", e);
    assert_ls_fails(ls_braces_expand("{1..999}{1..999}", &b, &e), LS_EINVAL,
                    "more than 100000 names", e);
    ls_buf_free(&b);
    assert_ls_fails(ls_braces_expand("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
                                     "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"
                                     "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}",
                                     &b, &e),
                    LS_EINVAL, "has more than 32 pairs of braces", e);
    ls_buf_free(&b);
}

/* A file that exists is no pattern; braces come before * and ?; each file is taken once. */
static void test_files(void **state) {
    (void)state;
    ls_files f = {0};
    ls_error e = {0};
    char command[256],
        *paths = ls_format("%s/s-{1..2}*\n%s/s-{2..3}\n%s/{x,y}", folder, folder, folder);
    snprintf(command, sizeof command, "cd %s && touch s-1 s-1b s-2 s-3 '{x,y}' x y", folder);
    assert_int_equal(system(command), 0);
    assert_ls_ok(ls_files_find(paths, &f, &e), e);
    static const char *const want[] = {"s-1", "s-1b", "s-2", "s-3", "{x,y}"};
    assert_int_equal(f.n, 5);
    for (size_t i = 0; i < f.n; i++) assert_string_equal(f.paths[i] + strlen(folder) + 1, want[i]);
    ls_files_free(&f);
    free(paths);
    paths = ls_format("%s/s-{3..4}\n%s/no-{3..4}*", folder, folder);
    assert_ls_fails(ls_files_find(paths, &f, &e), LS_EINVAL, "no-3*", e);
    free(paths);
    paths = ls_format("%s/s-{3..4}", folder);
    assert_ls_ok(ls_files_find(paths, &f, &e), e);
    assert_int_equal(f.n, 2); /* opening s-4 reports that it is missing */
    ls_files_free(&f);
    free(paths);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_not_braces),
        cmocka_unit_test(test_limits),
        cmocka_unit_test_setup_teardown(test_files, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
