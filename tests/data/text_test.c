/* text_test.c - which files make up a text, and in which order. */
#include "data/text.h"

#include <unistd.h>

#include "folder.h"
#include "test.h"

static int make_files(void **state) {
    static const char *const files[][2] = {{"b.txt", "bee\n"},
                                           {"a.txt", "ay"},
                                           {"C.txt", "\xc3\xa4"},
                                           {"a[1].txt", "bracket\n"},
                                           {"empty", ""},
                                           {"bad", "ok\xff"},
                                           {"mark", "\xef\xbb\xbf"},
                                           {"wide", "\xfe\xff!!"},
                                           {"marked", "\xef\xbb\xbf"
                                                      "first\r\n"}};
    if (make_folder(state)) return -1;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = ls_format("%s/%s", folder, files[i][0]);
        ls_status s = ls_file_write(path, files[i][1], strlen(files[i][1]), NULL);
        free(path);
        if (s != LS_OK) return -1;
    }
    return chdir(folder);
}

static int remove_files(void **state) { return chdir("/") || remove_folder(state); }

static void check(const char *paths, const char *text, const char *name) {
    ls_text t;
    ls_error e = {0};
    assert_ls_ok(ls_text_open(paths, &t, &e), e);
    assert_int_equal(t.nbytes, strlen(text));
    if (t.nbytes) assert_memory_equal(t.data, text, t.nbytes);
    assert_string_equal(t.name, name);
    ls_text_close(&t);
}

static void test_order(void **state) {
    (void)state;
    check("b.txt", "bee\n", "b.txt");
    check("b.txt\na.txt", "bee\nay", "b.txt and 1 more file");
    check("[abC].txt",
          "\xc3\xa4"
          "aybee\n",
          "C.txt and 2 more files");
    check("a.txt\n*.txt",
          "ay\xc3\xa4"
          "bracket\nbee\n",
          "a.txt and 3 more files");
    check("a.txt\na.txt\nempty", "ay", "a.txt and 1 more file");
    check("a[1].txt", "bracket\n", "a[1].txt"); /* it exists, so it is not a pattern */
    check("empty", "", "empty");
}

static void refuses(const char *paths, ls_status code, const char *says) {
    ls_text t = {0};
    ls_error e;
    assert_ls_fails(ls_text_open(paths, &t, &e), code, says, e);
    assert_null(t.name);
}

static void test_refusals(void **state) {
    (void)state;
    refuses("absent.txt", LS_EIO, "absent.txt: can't be opened");
    refuses("a.txt\nabsent.txt", LS_EIO, "absent.txt: can't be opened");
    refuses("x*.txt", LS_EINVAL, "no file matches x*.txt");
    refuses("a.txt\nbad", LS_EINVAL, "bad: is not UTF-8");
    refuses(folder, LS_EIO, "is not a regular file");
}

/* Byte order marks are no part of the text, of one file or of several. */
static void test_marks(void **state) {
    (void)state;
    check("marked", "first\r\n", "marked");
    check("b.txt\nmarked\na.txt\nmark", "bee\nfirst\r\nay", "b.txt and 3 more files");
    check("mark", "", "mark");
    refuses("a.txt\nwide", LS_EINVAL, "wide: is UTF-16BE, not UTF-8");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_marks)};
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
