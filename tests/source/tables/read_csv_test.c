/* read_csv_test.c - CSV files that Python's csv module wrote, and damaged ones. */
#include "source/classes.h"
#include "source/number.h"
#include "source/written.h"

/* Quotes, commas and line breaks in cells; numbers in several spellings; the header's names. */
static void test_python(void **state) {
    (void)state;
    run_python("import csv\n"
               "with open('a.csv', 'w', newline='') as f:\n"
               "    w = csv.writer(f)\n"
               "    w.writerow(['weight', 'a \"name\"', 'class', 'note'])\n"
               "    for i in range(1000):\n"
               "        w.writerow([i / 7, -i * 1e-3, ['dog', 'cat, big', 'b\\n\"ird\"'][i % 3],\n"
               "                    f'note {i % 5}'])\n");
    ls_source *s = open_source(path_of("a.csv"));
    assert_string_equal(s->format, "csv");
    assert_int_equal(s->count, 1000);
    assert_int_equal(s->nfields, 4);
    assert_int_equal(field_of(s, "weight")->type, LS_F32);
    assert_int_equal(field_of(s, "label")->type, LS_I32);
    assert_int_equal(field_of(s, "note")->type, LS_I32);
    assert_int_equal(s->nclasses, 3);
    assert_string_equal(s->classes[0], "b\n\"ird\"");
    assert_string_equal(s->classes[1], "cat, big");
    assert_string_equal(s->classes[2], "dog");
    for (int i = 999; i >= 0; i -= 37) {
        float weight = (float)(i / 7.0), small = (float)(-i * 1e-3);
        assert_float_equal(value_of(s, (uint64_t)i, "weight", 0), weight, 0);
        assert_float_equal(value_of(s, (uint64_t)i, "a \"name\"", 0), small, 0);
        assert_int_equal((int)value_of(s, (uint64_t)i, "label", 0), 2 - i % 3);
        assert_int_equal((int)value_of(s, (uint64_t)i, "note", 0), i % 5);
    }
    ls_source_close(s);
}

/* Without a header, CR LF or LF, a byte order mark, empty lines, no line break at the end. */
static void test_lines(void **state) {
    (void)state;
    ls_source *s = open_source(write_text("b.csv", "\xef\xbb\xbf"
                                                   "1,+2.5\r\n\r\n\n 3 ,.5e1\n\"5\",6"));
    assert_int_equal(s->count, 3);
    assert_float_equal(value_of(s, 0, "column1", 0), 1, 0);
    assert_float_equal(value_of(s, 1, "column2", 0), 5, 0);
    assert_float_equal(value_of(s, 2, "column1", 0), 5, 0);
    assert_float_equal(value_of(s, 2, "column2", 0), 6, 0);
    ls_source_close(s);
}

/* Which column is the label, and what its type is. */
static void test_labels(void **state) {
    (void)state;
    ls_source *s = open_source(write_text("c.csv", "Target,x\n3,1\n-1,2\n"));
    assert_int_equal(field_of(s, "label")->type, LS_I32);
    assert_int_equal((int)value_of(s, 1, "label", 0), -1);
    ls_source_close(s);
    s = open_source(write_text("d.csv", "label,x\n3,1\n0.5,2\n"));
    assert_int_equal(field_of(s, "target")->type, LS_F32);
    ls_source_close(s);
}

/* Several files are one source; a damaged one has another hash. */
static void test_several(void **state) {
    (void)state;
    char paths[300];
    write_text("e1.csv", "a,b\n1,2\n3,4\n");
    write_text("e2.csv", "a,b\n5,6\n");
    snprintf(paths, sizeof paths, "%s\n%s", path_of("e1.csv"), path_of("e2.csv"));
    ls_source *s = open_source(paths);
    assert_int_equal(s->count, 3);
    assert_float_equal(value_of(s, 2, "b", 0), 6, 0);
    assert_float_equal(value_of(s, 1, "b", 0), 4, 0);
    ls_hash hash = s->hash;
    ls_source_close(s);
    write_text("e2.csv", "a,b\n5,7\n");
    s = open_source(paths);
    assert_false(ls_hash_same(hash, s->hash));
    ls_source_close(s);
    write_text("e2.csv", "a,c\n5,7\n");
    assert_refused(paths, "e2.csv:1: has no header line with the columns of");
}

/* A table of many columns: numbers are joined. */
static void test_many_columns(void **state) {
    (void)state;
    run_python(
        "with open('f.csv', 'w') as f:\n"
        "    print('label', *(f'p{i}' for i in range(784)), sep=',', file=f)\n"
        "    for r in range(20): print(r % 10, *(r * i for i in range(784)), sep=',', file=f)\n");
    ls_source *s = open_source(path_of("f.csv"));
    assert_int_equal(s->nfields, 2);
    assert_int_equal(field_of(s, "x")->dims[0], 784);
    assert_float_equal(value_of(s, 19, "x", 783), 19 * 783, 0);
    assert_int_equal((int)value_of(s, 19, "label", 0), 9);
    ls_source_close(s);
}

/* More texts than classes: the column becomes no field; a label must not. */
static void test_too_many_texts(void **state) {
    (void)state;
    run_python("for name, n in (('g', 1000), ('h', 1001)):\n"
               "    with open(name + '.csv', 'w') as f:\n"
               "        print('x,name', file=f)\n"
               "        for i in range(n): print(f'{i},name {i}', file=f)\n"
               "open('i.csv', 'w').write(open('h.csv').read().replace('x,name', 'x,class'))\n");
    ls_source *s = open_source(path_of("g.csv"));
    assert_int_equal(s->nfields, 2);
    ls_source_close(s);
    s = open_source(path_of("h.csv"));
    assert_int_equal(s->nfields, 1);
    assert_float_equal(value_of(s, 1000, "x", 0), 1000, 0);
    ls_source_close(s);
    assert_refused(path_of("i.csv"), "'class' can't be a label");
}

static void test_damaged(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
        int nleft, ndamaged;
    } bad[] = {
        {"a,b\n1,2\n3,x\n5,6\n", "bad.csv:3: column 2, 'b', has the text 'x'", 2, 1},
        {"a,b\n1,2\n3,\n", "bad.csv:3: column 2, 'b', is empty", 1, 1},
        {"a,b\n1,2\n3,nan\n", "bad.csv:3: column 2, 'b', has the text 'nan'", 1, 1},
        {"a,b\n1,2\n3,0x10\n", "has the text '0x10'", 1, 1},
        {"a,b\n1,2\n3,1e39\n", "which no f32 can hold", 1, 1},
        {"a,b\n1,2\n3\n4,5\n", "bad.csv:3: has 1 column, the first line 2", 2, 1},
        {"a,b\n1,2\n3,4,5\n", "bad.csv:3: has 3 columns, the first line 2", 1, 1},
        {"a,b\n1,\"2\n3\",4\n5,6\n7,8\n", "bad.csv:2: has 3 columns", 2, 1},
        {"a,b\n1,\"2\n3,4\n", "bad.csv:2: column 2 has a quote that is not closed", 1, 1},
        {"a,b\n1,\"2\"3\n4,5\n", "bad.csv:2: column 2 has text after its closing quote", 1, 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = write_text("bad.csv", bad[i].text);
        assert_refused(path, bad[i].message);
        assert_skips(path, (uint64_t)bad[i].nleft, (uint64_t)bad[i].ndamaged);
    }
    assert_refused(write_bytes("zero.csv", "1,2\n3,\0\n", 8),
                   "zero.csv:2: column 2 has a zero byte");
    assert_refused(write_bytes("utf16.csv",
                               "\xff\xfe"
                               "1\0,\0"
                               "2\0\n",
                               10),
                   "utf16.csv: is UTF-16LE, not UTF-8; convert it: iconv -f UTF-16LE -t UTF-8");
    assert_refused(write_text("none.csv", "a,b\n"), "none.csv: has no rows");
    assert_refused(write_text("same.csv", "a,a\n1,2\n"), "two fields are named 'a'");
    char name[300];
    memset(name, 'a', sizeof name);
    memcpy(name + LS_FIELD_NAME, "\n1\n", 4);
    assert_refused(write_text("long.csv", name),
                   "has 256 bytes, at most 255 are possible; shorten it");
}

/* Cells are never numbers because of what follows them, or of the locale's words. */
static void test_numbers(void **state) {
    (void)state;
    static const char *const bad[] = {"",    " ",   "+",   "-.",  "e5",  "1e",    "1e+", "0x1",
                                      "inf", "nan", "1 2", "1_0", "1,5", "1e999", "--1", "."};
    double value = 0;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(ls_number_parse(bad[i], strlen(bad[i]), &value));
    assert_true(ls_number_parse("12345", 3, &value));
    assert_float_equal(value, 123, 0);
    assert_true(ls_number_parse("\t-1.25E-2 ", 10, &value));
    assert_float_equal(value, -0.0125, 0);
}

/* Texts that begin alike are different classes. */
static void test_classes(void **state) {
    (void)state;
    ls_classes c = {0};
    ls_classes_add(&c, "ab", 2);
    ls_classes_add(&c, "abc", 3);
    ls_classes_add(&c, "", 0);
    ls_classes_add(&c, "abc", 2);
    assert_int_equal(c.n, 3);
    assert_int_equal(ls_classes_find(&c, "", 0), 0);
    assert_int_equal(ls_classes_find(&c, "abx", 2), 1);
    assert_int_equal(ls_classes_find(&c, "abc", 3), 2);
    assert_int_equal(ls_classes_find(&c, "abcd", 4), -1);
    ls_classes_free(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_python),       cmocka_unit_test(test_lines),
        cmocka_unit_test(test_labels),       cmocka_unit_test(test_several),
        cmocka_unit_test(test_many_columns), cmocka_unit_test(test_too_many_texts),
        cmocka_unit_test(test_damaged),      cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
