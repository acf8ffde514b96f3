/* shards_test.c - safetensors in one file or in several; an index that differs from its files is an
 * error that names it. */
#include "weights/shards.h"

#include <unistd.h>

#include "folder.h"
#include "test.h"

static const float data[] = {1, 2, 3, 4, 5, 6};

/* Writes a file of tensors [1], named by the letters, with values from 1 on. */
static void write_file(const char *name, const char *letters) {
    ls_tensor t[8] = {0};
    size_t n = strlen(letters);
    ls_error e = {0};
    for (size_t i = 0; i < n; i++) {
        t[i] = (ls_tensor){.ndims = 1, .dims = {1}, .count = 1};
        snprintf(t[i].name, sizeof t[i].name, "%c", letters[i]);
        t[i].data = data + (letters[i] - 'a');
    }
    char *path = ls_format("%s/%s", folder, name);
    unlink(path);
    assert_ls_ok(ls_safetensors_write(path, t, n, &e), e);
    free(path);
}

static void write_index(const char *text) {
    char *path = ls_format("%s/" LS_SHARDS_INDEX, folder);
    unlink(path);
    ls_error e = {0};
    if (text) assert_ls_ok(ls_file_write(path, text, strlen(text), &e), e);
    free(path);
}

static void write_map(const char *map) {
    char *text = ls_format("{\"metadata\": {\"total_size\": 20}, \"weight_map\": {%s}}", map);
    write_index(text);
    free(text);
}

static void check_refused(const char *text) {
    ls_shards s = {0};
    ls_error e;
    assert_ls_fails(ls_shards_open(folder, &s, &e), LS_EINVAL, text, e);
    assert_non_null(strstr(e.msg, folder));
    assert_null(s.files);
}

static void check_tensors(const char *letters, size_t nfiles) {
    ls_shards s = {0};
    ls_error e = {0};
    assert_ls_ok(ls_shards_open(folder, &s, &e), e);
    assert_true(s.nfiles == nfiles && s.n == strlen(letters));
    for (size_t i = 0; i < s.n; i++) {
        const char name[] = {letters[i], 0};
        const ls_tensor *t = ls_shards_find(&s, name);
        assert_non_null(t);
        assert_ptr_equal(t, s.tensors[i]); /* by name */
        assert_true(*(const float *)t->data == data[letters[i] - 'a']);
    }
    assert_null(ls_shards_find(&s, "z"));
    ls_shards_close(&s);
}

static void test_one(void **state) {
    (void)state;
    ls_shards s;
    ls_error e;
    assert_false(ls_shards_exist(folder));
    assert_ls_fails(ls_shards_open(folder, &s, &e), LS_EIO, "has no model.safetensors", e);
    write_file(LS_SHARDS_ONE, "bca");
    assert_true(ls_shards_exist(folder));
    check_tensors("abc", 1);
    /* an index of this one file, as MLX writes it, must list all of it */
    write_map("\"a\": \"" LS_SHARDS_ONE "\", \"b\": \"" LS_SHARDS_ONE "\", \"c\": \"" LS_SHARDS_ONE
              "\"");
    check_tensors("abc", 1);
    write_map("\"a\": \"" LS_SHARDS_ONE "\"");
    check_refused("not listed there");
    write_file("other.safetensors", "abc");
    write_map("\"a\": \"other.safetensors\", \"b\": \"other.safetensors\", \"c\": "
              "\"other.safetensors\"");
    check_refused("lists other files");
}

static void test_several(void **state) {
    (void)state;
    write_file("model-1.safetensors", "ca");
    write_file("model-2.safetensors", "b");
    write_map("\"a\": \"model-1.safetensors\", \"b\": \"model-2.safetensors\", \"c\": "
              "\"model-1.safetensors\"");
    assert_true(ls_shards_exist(folder));
    check_tensors("abc", 2);
}

static void test_differs(void **state) {
    (void)state;
    write_file("1", "ca");
    write_file("2", "b");
    write_map("\"a\": \"1\", \"b\": \"2\"");
    check_refused("tensor 'c' is in");
    write_map("\"a\": \"1\", \"b\": \"2\", \"c\": \"1\", \"d\": \"2\"");
    check_refused("tensor 'd' is not in 2");
    write_map("\"a\": \"1\", \"b\": \"2\", \"c\": \"2\"");
    check_refused("tensor 'c' is in");
    write_map("\"a\": \"1\", \"b\": \"3\", \"c\": \"1\"");
    ls_shards s;
    ls_error e;
    assert_ls_fails(ls_shards_open(folder, &s, &e), LS_EIO, "/3: ", e);
    write_file("2", "ab");
    write_map("\"a\": \"1\", \"b\": \"2\", \"c\": \"1\"");
    check_refused("tensor 'a' is also in");
}

static void test_hostile(void **state) {
    (void)state;
    static const char *const maps[] = {
        "",
        "\"a\": \"../1\"",
        "\"a\": \"/etc/passwd\"",
        "\"a\": \"x/1\"",
        "\"a\": \".\"",
        "\"a\": \"..\"",
        "\"a\": \".1\"",
        "\"a\": \"\"",
        "\"a\": 7",
        "\"a\": null",
        "\"a\": [\"1\"]",
        "\"a\": \"" LS_SHARDS_INDEX "\"", /* no safetensors file */
        "\"a\": \"1\", \"a\": \"1\"",
    };
    write_file("1", "a");
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        write_map(maps[i]);
        check_refused("");
    }
    static const char *const texts[] = {"",
                                        "[]",
                                        "7",
                                        "{}",
                                        "{\"weight_map\": []}",
                                        "{\"weight_map\": {\"a\": \"1\"}",
                                        "{\"weight_map\": 3}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_index(texts[i]);
        check_refused(LS_SHARDS_INDEX);
    }
    char name[300];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    char *map = ls_format("\"a\": \"%s\"", name);
    write_map(map);
    check_refused("must be a name in the same directory");
    free(map);
}

static void test_damaged(void **state) {
    (void)state;
    ls_error e = {0};
    write_file("1", "ab");
    write_map("\"a\": \"1\", \"b\": \"1\"");
    char *path = ls_format("%s/1", folder);
    assert_int_equal(truncate(path, 100), 0);
    check_refused("/1: ");
    assert_ls_ok(ls_file_remove_tree(path, &e), e);
    free(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_several, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_differs, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_hostile, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
