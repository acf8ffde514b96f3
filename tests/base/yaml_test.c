/* yaml_test.c - what ls_yaml_read() accepts, and what it refuses, naming the line. */
#include "base/yaml.h"

#include <unistd.h>

#include "folder.h"
#include "test.h"

/* Writes the bytes to a file and reads it. */
static ls_status read_bytes(const char *bytes, size_t nbytes, ls_yaml *y, ls_error *e) {
    char *path = ls_format("%s/a.yaml", folder);
    unlink(path);
    assert_ls_ok(ls_file_write(path, bytes, nbytes, e), *e);
    ls_status s = ls_yaml_read(path, y, e);
    free(path);
    return s;
}

static void check_item(const ls_yaml *y, size_t i, const char *key, const char *value, int line) {
    assert_true(i < y->nitems);
    assert_string_equal(y->items[i].key, key);
    assert_string_equal(y->items[i].value, value);
    assert_int_equal(y->items[i].line, line);
}

static void test_reads(void **state) {
    (void)state;
    static const char text[] = "# a comment\n"
                               "train:\n"
                               "  steps: 50 # of training\n"
                               "\n"
                               "  name: \"a \\\"b\\\" \\u00e9\\n\"\n"
                               "  empty:\n"
                               "alone: 'it''s'\n"
                               "data: {path: x/y.txt, deep: {er: 1}}\n";
    ls_yaml y = {0};
    ls_error e = {0};
    assert_ls_ok(read_bytes(text, strlen(text), &y, &e), e);
    assert_int_equal(y.nitems, 6);
    check_item(&y, 0, "train.steps", "50", 3);
    check_item(&y, 1, "train.name", "a \"b\" \xc3\xa9\n", 5);
    check_item(&y, 2, "train.empty", "", 6);
    check_item(&y, 3, "alone", "it's", 7);
    check_item(&y, 4, "data.path", "x/y.txt", 8);
    check_item(&y, 5, "data.deep.er", "1", 8);
    ls_yaml_free(&y);
    assert_int_equal(y.nitems, 0);
}

/* Duplicate keys are left to the caller: both are returned, with their lines. */
static void test_duplicates(void **state) {
    (void)state;
    static const char text[] = "a:\n  b: 1\n  b: 2\na: {b: 3}\n";
    ls_yaml y = {0};
    ls_error e = {0};
    assert_ls_ok(read_bytes(text, strlen(text), &y, &e), e);
    assert_int_equal(y.nitems, 3);
    check_item(&y, 0, "a.b", "1", 2);
    check_item(&y, 1, "a.b", "2", 3);
    check_item(&y, 2, "a.b", "3", 4);
    ls_yaml_free(&y);
}

static void test_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {"", "\n\n", "# only a comment\n", "{}"};
    ls_error e = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ls_yaml y = {0};
        assert_ls_ok(read_bytes(texts[i], strlen(texts[i]), &y, &e), e);
        assert_int_equal(y.nitems, 0);
        ls_yaml_free(&y);
    }
}

static bool is_tree(const char *key) { return strcmp(key, "m.layers") == 0; }

static ls_status parse_lists(const char *text, ls_yaml *y, ls_error *e) {
    ls_buf buf = {0};
    ls_buf_printf(&buf, "%s", text);
    ls_status s = ls_yaml_parse_lists(&buf, "x", is_tree, y, e);
    ls_buf_free(&buf);
    return s;
}

static void test_lists(void **state) {
    (void)state;
    ls_yaml y = {0};
    ls_error e = {0};
    assert_ls_ok(parse_lists("a:\n  b: [1, x y]\n  c:\n    - 'z'\nd: []\ne: 5\n", &y, &e), e);
    assert_int_equal(y.nitems, 4);
    check_item(&y, 0, "a.b", "1\nx y", 2);
    check_item(&y, 1, "a.c", "z", 4);
    check_item(&y, 2, "d", "", 5);
    check_item(&y, 3, "e", "5", 6);
    assert_true(y.items[0].is_list && y.items[1].is_list && y.items[2].is_list);
    assert_false(y.items[3].is_list);
    ls_yaml_free(&y);
    assert_ls_fails(parse_lists("a: [[1]]", &y, &e), LS_EINVAL, "x:1: has a list in a list", e);
    assert_ls_ok(parse_lists("a: [{b: 1, c: 'x=y'}, {}, {d: z}]\nb: [1]\n", &y, &e), e);
    check_item(&y, 0, "a", "b=1\tc=x=y\n\nd=z", 1);
    assert_true(y.items[0].has_maps && !y.items[1].has_maps);
    ls_yaml_free(&y);
    assert_ls_fails(parse_lists("a: [{b: 1}, 2]", &y, &e), LS_EINVAL, "has maps and other values",
                    e);
    assert_ls_fails(parse_lists("a: [2, {b: 1}]", &y, &e), LS_EINVAL, "has maps and other values",
                    e);
    assert_ls_fails(parse_lists("a: [{b: {c: 1}}]", &y, &e), LS_EINVAL, "a map in a map", e);
    assert_ls_fails(parse_lists("a: [{b: [1]}]", &y, &e), LS_EINVAL, "has a list in a map", e);
    assert_ls_fails(parse_lists("a: [{\"b=c\": 1}]", &y, &e), LS_EINVAL, "has a '='", e);
    assert_ls_fails(parse_lists("a: [{b: \"1\\t\"}]", &y, &e), LS_EINVAL, "has a tab", e);
    assert_ls_fails(parse_lists("a: [\"b\\nc\"]", &y, &e), LS_EINVAL, "has a line end", e);
    assert_ls_fails(parse_lists("- 1", &y, &e), LS_EINVAL, "'(top)' is a list", e);
    assert_ls_fails(parse_lists("a: &x [1]", &y, &e), LS_EINVAL, "anchors are not supported", e);
}

static void test_trees(void **state) {
    (void)state;
    ls_yaml y = {0};
    ls_error e = {0};
    static const char text[] = "m:\n"
                               "  layers:\n"
                               "    - conv2d: {channels: 32,\n"
                               "               kernel: 3}\n"
                               "\n"
                               "    - residual: [relu, 'a \"b\"']\n"
                               "    - {}\n"
                               "  kind: x\n"
                               "o: [{a: 1}]\n";
    assert_ls_ok(parse_lists(text, &y, &e), e);
    assert_int_equal(y.nitems, 3);
    check_item(&y, 0, "m.layers",
               "[{\"conv2d\": {\"channels\": \"32\", \n\"kernel\": \"3\"}}, \n\n"
               "{\"residual\": [\"relu\", \"a \\\"b\\\"\"]}, \n{}]",
               3);
    assert_true(y.items[0].is_tree && !y.items[1].is_tree && y.items[2].has_maps);
    ls_yaml_node *root = NULL;
    assert_ls_ok(ls_yaml_parse_tree(y.items[0].value, "x", y.items[0].line, &root, &e), e);
    assert_int_equal(root->kind, LS_YAML_LIST);
    assert_int_equal(root->nitems, 3);
    const ls_yaml_node *conv = ls_yaml_node_find(root->items[0], "conv2d");
    assert_non_null(conv);
    assert_string_equal(ls_yaml_node_find(conv, "kernel")->text, "3");
    assert_int_equal(ls_yaml_node_find(conv, "kernel")->line, 4);
    const ls_yaml_node *residual = ls_yaml_node_find(root->items[1], "residual");
    assert_int_equal(residual->line, 6);
    assert_string_equal(residual->items[1]->text, "a \"b\"");
    assert_int_equal(root->items[2]->kind, LS_YAML_MAP);
    assert_int_equal(root->items[2]->nitems, 0);
    ls_yaml_node_free(root);
    ls_yaml_free(&y);
    assert_ls_ok(parse_lists("m: {layers: 3}", &y, &e), e); /* a scalar is none */
    assert_false(y.items[0].is_tree);
    ls_yaml_free(&y);
    assert_ls_fails(parse_lists("m: {layers: [{[a]: 1}]}", &y, &e), LS_EINVAL,
                    "x:1: a list or a map can't be a key", e);
    assert_ls_fails(parse_lists("m: {layers: [\"\\t\"]}", &y, &e), LS_EINVAL,
                    "x:1: has a control character", e);
    ls_buf deep = {0};
    ls_buf_printf(&deep, "m: {layers: ");
    for (int i = 0; i < 1000; i++) ls_buf_printf(&deep, "[");
    assert_ls_fails(parse_lists(deep.data, &y, &e), LS_EINVAL, "x:1: is nested too deeply", e);
    assert_ls_fails(ls_yaml_parse_tree(deep.data + 12, "x", 5, &root, &e), LS_EINVAL,
                    "x:5: is nested too deeply", e);
    ls_buf_free(&deep);
    assert_ls_fails(ls_yaml_parse_tree("{a: 1,\n a: 2}", "x", 5, &root, &e), LS_EINVAL,
                    "x:6: 'a' occurs twice", e);
    assert_ls_fails(ls_yaml_parse_tree("", "x", 5, &root, &e), LS_EINVAL, "x:5: is empty", e);
    ls_buf wide = {0};
    for (int i = 0; i < 100000; i++) ls_buf_printf(&wide, "%sk%d: 1", i ? ", " : "{", i);
    ls_buf_printf(&wide, "}");
    assert_ls_fails(ls_yaml_parse_tree(wide.data, "x", 5, &root, &e), LS_EINVAL,
                    "x:5: has over 4096 keys in one map", e);
    ls_buf_free(&wide);
}

static void refuses(const char *text, const char *says) {
    ls_yaml y = {0};
    ls_error e;
    assert_ls_fails(read_bytes(text, strlen(text), &y, &e), LS_EINVAL, says, e);
    assert_null(y.items);
}

static void test_refusals(void **state) {
    (void)state;
    refuses("a:\n  b: [1, 2]\n", "a.yaml:2: 'a.b' is a list; a single value is expected");
    refuses("a:\n  b:\n    - 1\n", ":3: 'a.b' is a list");
    refuses("- 1\n- 2\n", ":1: '(top)' is a list");
    refuses("a: 1\nb: &x 2\n", ":2: anchors are not supported");
    refuses("a: &x {b: 1}\n", ":1: anchors are not supported");
    refuses("a: 1\n\nb: *x\n", ":3: aliases are not supported");
    refuses("a: 1\nb: !!int 2\n", ":2: tags are not supported");
    refuses("a: !mine\n  b: 1\n", ":1: tags are not supported; leave out '!mine'");
    refuses("just words\n", ":1: expected groups of keys such as 'train:', not 'just words'");
    refuses("---\n...\n", "expected groups of keys");
    refuses("a: 1\n---\nb: 2\n", ":2: begins a second document");
    refuses("? {a: 1}\n: 2\n", ":1: a group can't be a key");
}

/* At most four levels; a thousand don't use more of the stack. */
static void test_depth(void **state) {
    (void)state;
    static const char four[] = "a: {b: {c: {d: 1}}}\n";
    ls_yaml y = {0};
    ls_error e = {0};
    assert_ls_ok(read_bytes(four, strlen(four), &y, &e), e);
    check_item(&y, 0, "a.b.c.d", "1", 1);
    ls_yaml_free(&y);
    refuses("a: {b: {c: {d: {e: 1}}}}\n", ":1: groups are nested too deeply");
    ls_buf deep = {0};
    for (int i = 0; i < 1000; i++) ls_buf_printf(&deep, "{a: ");
    refuses(deep.data, "groups are nested too deeply");
    deep.len = 0;
    for (int i = 0; i < 1000; i++) ls_buf_printf(&deep, "%*sa:\n", i, "");
    refuses(deep.data, ":5: groups are nested too deeply");
    ls_buf_free(&deep);
}

static void test_not_yaml(void **state) {
    (void)state;
    refuses("a:\n  b: {c: 1\n", "is not valid YAML");
    refuses("a:\n\tb: 1\n", ":2: is not valid YAML: the line is indented with a tab");
    refuses("a: b\tc: d\n", "is not valid YAML: mapping values");
    refuses("a: \"open\n", "is not valid YAML");
    refuses("a: b: c\n", ":1: is not valid YAML");
    refuses("a: 1\nb: 2\nc: \xff\xfe\n", ":3: is not valid YAML");
    refuses("a: 1\nb: \x01\n", ":2: is not valid YAML");
    static const unsigned char binary[] = "\x7f"
                                          "ELF\x02\x01\x01\0\0\x80\x90\xff\n\0: {";
    ls_yaml y = {0};
    ls_error e;
    const char *bytes = (const char *)binary;
    assert_ls_fails(read_bytes(bytes, sizeof binary, &y, &e), LS_EINVAL, "is not valid YAML", e);
    static const char zero[] = "a: \"1\\0\"\n"; /* escaped, so that YAML accepts it */
    assert_ls_fails(read_bytes(zero, strlen(zero), &y, &e), LS_EINVAL, "has a zero byte", e);
}

static void test_files(void **state) {
    (void)state;
    ls_yaml y = {0};
    ls_error e;
    assert_ls_fails(ls_yaml_read("/nowhere/a.yaml", &y, &e), LS_EIO,
                    "/nowhere/a.yaml: can't be opened: No such file", e);
    assert_ls_fails(ls_yaml_read(folder, &y, &e), LS_EIO, "is not a regular file", e);
    size_t nbytes = (1 << 20) + 1;
    char *big = ls_alloc(nbytes);
    memset(big, '#', nbytes);
    assert_ls_fails(read_bytes(big, nbytes, &y, &e), LS_EINVAL, "has 1048577 bytes", e);
    free(big);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),   cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lists),   cmocka_unit_test(test_trees),
        cmocka_unit_test(test_depth),   cmocka_unit_test(test_not_yaml),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
