/* walk_test.c - files below directories, and patterns with **. */
#include "data/walk.h"

#include <sys/stat.h>
#include <unistd.h>

#include "folder.h"
#include "test.h"

static void test_matches(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool matches;
    } cases[] = {
        {"**", "a", true},
        {"**", "a/b/c", true},
        {"**/c", "c", true},
        {"**/c", "a/b/c", true},
        {"**/c", "a/b/cc", false},
        {"**/*.txt", "a/b.txt", true},
        {"**/*.txt", "b.txt", true},
        {"*/*.txt", "b.txt", false},
        {"*/*.txt", "a/b/c.txt", false},
        {"a/**/c", "a/c", true},
        {"a/**/c", "a/x/y/c", true},
        {"a/**/c", "b/c", false},
        {"**/b/**/d", "a/b/c/d", true},
        {"**/b/**/d", "a/c/d", false},
        {"a/**", "a", false},
        {"a/**", "a/b", true},
        {"[ab]/**/?.md", "b/c/d.md", true},
        {"**/*", ".x", false},
        {"a**", "abc", true},
        {"a**", "a/b", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (ls_walk_matches(cases[i].pattern, cases[i].path) != cases[i].matches)
            fail_msg("%s on %s", cases[i].pattern, cases[i].path);
}

static void found(const char *paths, const char *want) {
    ls_files f = {0};
    ls_error e = {0};
    ls_buf got = {0};
    assert_ls_ok(ls_files_find(paths, &f, &e), e);
    for (size_t i = 0; i < f.n; i++) ls_buf_printf(&got, "%s%s", i ? " " : "", f.paths[i]);
    assert_string_equal(got.data, want);
    ls_buf_free(&got);
    ls_files_free(&f);
}

static void touch(const char *path) {
    assert_ls_ok(ls_file_write(path, "x", 1, NULL), (ls_error){0});
}

/* Files alone, in the order of their bytes, each once; from any directory. */
static void test_find(void **state) {
    (void)state;
    ls_error e;
    ls_files f = {0};
    char pattern[64];
    assert_int_equal(chdir(folder) | mkdir("a", 0700) | mkdir("a/b", 0700) | mkdir("a-", 0700) |
                         mkdir("a/.c", 0700),
                     0);
    touch("a/b/2.txt");
    touch("a/1.txt");
    touch("a-/3.txt");
    touch("a/.c/4.txt");
    touch("5.txt");
    assert_int_equal(symlink("../a", "a/loop") | symlink("a", "linked"), 0);
    found("**/*.txt", "5.txt a-/3.txt a/1.txt a/b/2.txt");
    found("./**/2.txt", "./a/b/2.txt");
    found("a//**", "a/1.txt a/b/2.txt");
    found("**.txt", "5.txt a-/3.txt a/1.txt a/b/2.txt");
    found("a/**2.txt", "a/b/2.txt");
    found("**/b/**t", "a/b/2.txt");
    found("linked/**", "linked/1.txt linked/b/2.txt");
    found("a/**/*.txt\n**/1.txt", "a/1.txt a/b/2.txt");
    found("{a,a-}/**", "a/1.txt a/b/2.txt a-/3.txt");
    snprintf(pattern, sizeof pattern, "%s/a/**/2*", folder);
    assert_ls_ok(ls_files_find(pattern, &f, &e), e);
    assert_int_equal(f.n, 1);
    ls_files_free(&f);
    assert_ls_fails(ls_files_find("a/**/*.md", &f, &e), LS_EINVAL, "no file matches a/**/*.md", e);
    assert_ls_fails(ls_files_find("a/**.md", &f, &e), LS_EINVAL, "no file matches a/**.md", e);
    assert_ls_fails(ls_files_find("absent/**", &f, &e), LS_EINVAL, "no file matches absent/**", e);
    assert_int_equal(chdir("/"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test_setup_teardown(test_find, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
