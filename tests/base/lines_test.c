/* lines_test.c - lines read forwards and backwards, against a simple loop. */
#include "base/lines.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json_records.h"
#include "folder.h"
#include "test.h"

static char path[96];

static int make_path(void **state) {
    int failed = make_folder(state);
    snprintf(path, sizeof path, "%s/lines", folder);
    return failed;
}

static void write_text(const ls_buf *b) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(b->data ? b->data : "", 1, b->len, f), b->len);
    assert_int_equal(fclose(f), 0);
}

static bool next(ls_lines *l, ls_line *line) {
    ls_error e = {0};
    bool there = false;
    assert_ls_ok(ls_lines_next(l, line, &there, &e), e);
    return there;
}

static void same(const ls_line *line, const ls_buf *b, size_t start, size_t end) {
    assert_int_equal(line->at, start);
    assert_int_equal(line->too_long, end - start > LS_LONGEST_LINE);
    assert_int_equal(line->whole, end < b->len);
    if (line->too_long) return;
    assert_int_equal(line->nbytes, end - start);
    assert_memory_equal(line->text, b->data + start, end - start);
}

static size_t end_of(const ls_buf *b, size_t start) {
    const char *found = memchr(b->data + start, '\n', b->len - start);
    return found ? (size_t)(found - b->data) : b->len;
}

/* Reads in both directions; frees the text. */
static void check(ls_buf b) {
    ls_error e = {0};
    ls_lines *l = NULL;
    ls_line line;
    size_t *starts = LS_NEW_ARRAY(size_t, b.len + 1), n = 0;
    write_text(&b);
    for (size_t at = 0; at < b.len; at = end_of(&b, at) + 1) starts[n++] = at;
    assert_ls_ok(ls_lines_open(path, false, &l, &e), e);
    for (size_t i = 0; i < n; i++) {
        assert_true(next(l, &line));
        same(&line, &b, starts[i], end_of(&b, starts[i]));
        assert_int_equal(line.number, i + 1);
    }
    assert_false(next(l, &line));
    ls_lines_close(l);
    assert_ls_ok(ls_lines_open(path, true, &l, &e), e);
    assert_int_equal(ls_lines_size(l), b.len);
    for (size_t i = n; i-- > 0;) {
        assert_true(next(l, &line));
        same(&line, &b, starts[i], end_of(&b, starts[i]));
    }
    assert_false(next(l, &line));
    ls_lines_close(l);
    free(starts);
    ls_buf_free(&b);
}

static ls_buf text_of(const char *s) {
    ls_buf b = {0};
    ls_buf_append(&b, s, strlen(s));
    return b;
}

static void test_small(void **state) {
    (void)state;
    static const char *const texts[] = {"",     "\n",   "a",     "a\n",
                                        "\n\n", "a\nb", "\na\n", "abc\n\ndef\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(text_of(texts[i]));
}

/* Lines of a few hundred bytes; some are empty, some have the maximum length or more. */
static void test_random(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 12; round++) {
        ls_buf b = {0};
        for (int i = 0; i < 3000; i++) {
            seed = seed * 1664525u + 1013904223u;
            size_t n = (seed >> 16) % 300;
            if ((seed >> 8) % 500 == 0) n = LS_LONGEST_LINE - 2 + (seed >> 16) % 5;
            if ((seed >> 8) % 1000 == 1) n = 5 * (size_t)LS_LONGEST_LINE;
            char *line = LS_NEW_ARRAY(char, n + 1);
            memset(line, 'a' + i % 26, n);
            line[n] = '\n';
            ls_buf_append(&b, line, n + 1);
            free(line);
        }
        if (round % 2) ls_buf_append(&b, "torn", 4);
        check(b);
    }
}

/* Holes of 8 GB before, between and after two lines. */
static void test_sparse(void **state) {
    (void)state;
    const uint64_t hole = (uint64_t)8 << 30;
    ls_error e = {0};
    ls_lines *l = NULL;
    ls_line line;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "\none\n", 5, (off_t)hole), 5);
    assert_int_equal(pwrite(fd, "\ntwo\n", 5, (off_t)(2 * hole)), 5);
    assert_int_equal(ftruncate(fd, (off_t)(3 * hole)), 0);
    close(fd);
    assert_ls_ok(ls_lines_open(path, true, &l, &e), e);
    assert_true(next(l, &line) && line.too_long && !line.whole);
    assert_true(next(l, &line) && line.nbytes == 3 && memcmp(line.text, "two", 3) == 0);
    assert_true(next(l, &line) && line.too_long && line.whole);
    assert_true(next(l, &line) && line.nbytes == 3 && memcmp(line.text, "one", 3) == 0);
    ls_lines_stop_at(l, hole - 1000);
    assert_false(next(l, &line));
    ls_lines_close(l);
    assert_ls_ok(ls_lines_open(path, false, &l, &e), e);
    assert_true(next(l, &line) && line.too_long && line.whole);
    assert_true(next(l, &line) && line.nbytes == 3 && line.number == 2);
    assert_true(next(l, &line) && line.too_long && line.whole);
    assert_true(next(l, &line) && line.nbytes == 3 && line.at == 2 * hole + 1);
    assert_true(next(l, &line) && line.too_long && !line.whole);
    assert_false(next(l, &line));
    ls_lines_close(l);
}

static void test_no_file(void **state) {
    (void)state;
    ls_error e = {0};
    ls_lines *l = NULL;
    assert_ls_fails(ls_lines_open("/nowhere/lines", false, &l, &e), LS_EIO, "/nowhere/lines", e);
    assert_ls_fails(ls_lines_open(folder, true, &l, &e), LS_EIO, "is not a regular file", e);
    ls_lines_close(NULL);
}

static void test_split(void **state) {
    (void)state;
    static const char *const want[] = {"a", "", "b c", "", "d", "e"};
    char text[] = "a\n\nb c\r\n\rd\re", *rest = text;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char *line = ls_lines_split(&rest);
        assert_non_null(line);
        assert_string_equal(line, want[i]);
    }
    assert_null(ls_lines_split(&rest));
}

static bool is_json(void *arg, const ls_line *line) {
    ls_json *j = ls_json_of_line(line);
    bool is = j != NULL;
    (void)arg;
    ls_json_free(j);
    return is;
}

/* What stands behind the last line that stays goes; lines before it stay, whatever they are. */
static void test_cut(void **state) {
    static const struct {
        const char *text;
        size_t stays;
    } files[] = {{"", 0},         {"{}\n", 3},        {"{}", 0},
                 {"x\ny\n", 0},   {"x\n{}\n[1\n", 5}, {"{}\n{}\nx\n{", 6},
                 {"{}\n\n\n", 3}, {"x\n{}\n", 5}};
    ls_error e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ls_buf b = {0}, left = {0};
        ls_buf_printf(&b, "%s", files[i].text);
        write_text(&b);
        assert_ls_ok(ls_lines_cut(path, is_json, NULL, &e), e);
        assert_ls_ok(ls_file_read(path, 100, &left, &e), e);
        assert_int_equal(left.len, files[i].stays);
        assert_memory_equal(left.data ? left.data : "", files[i].text, left.len);
        ls_buf_free(&b);
        ls_buf_free(&left);
    }
    assert_ls_ok(ls_lines_cut("/nowhere/at/all", is_json, NULL, &e), e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),  cmocka_unit_test(test_random),
        cmocka_unit_test(test_sparse), cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_split),  cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, make_path, remove_folder);
}
