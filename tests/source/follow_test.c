/* follow_test.c - data of a run whose texts are numbered elsewhere: validation files and later ones
 * give names the numbers that they have in the training data, whatever else stands in them. */
#include "source/numbering.h"
#include "source/pictures.h"
#include "source/samples.h"

static void put_text(const char *name, const char *text) { put_file(name, text, strlen(text)); }

/* `path` with the numbering of `training`. */
static ls_source *followed(const char *path, const ls_source *training) {
    ls_source *s = opened(path, NULL);
    ls_error e = {0};
    assert_ls_ok(ls_source_follow(s, training->numbering, path, &e), e);
    return s;
}

static double value_of(const ls_source *s, uint64_t i, const char *name, size_t k) {
    const ls_field *f = ls_source_field(s, name);
    assert_non_null(f);
    uint8_t *sample = sample_of(s, i);
    int32_t whole = 0;
    float real = 0;
    memcpy(&whole, sample + f->offset + 4 * k, sizeof whole);
    memcpy(&real, sample + f->offset + 4 * k, sizeof real);
    free(sample);
    return f->type == LS_I32 ? whole : (double)real;
}

static void has_trouble(const ls_source *s, const char *field, const char *says) {
    const ls_field *f = ls_source_field(s, field);
    assert_non_null(f);
    assert_non_null(f->trouble);
    if (!strstr(f->trouble, says)) fail_msg("%s\nexpected: %s", f->trouble, says);
}

static const char animals[] = "size,colour,kind,label\n1,red,a,ant\n2,blue,b,bee\n3,red,c,cow\n";

/* Fewer classes, other columns first, and a label with another of its names. */
static void test_csv(void **state) {
    (void)state;
    put_text("@train.csv", animals);
    put_text("@val.csv", "class,extra,kind,size,colour\ncow,9,zebra,7,red\nbee,9,b,8,blue\n");
    ls_source *t = opened("@train.csv", NULL), *v = followed("@val.csv", t);
    assert_int_equal((int)value_of(v, 0, "label", 0), 2);
    assert_int_equal((int)value_of(v, 1, "label", 0), 1);
    assert_int_equal((int)value_of(v, 0, "colour", 0), 1);
    assert_int_equal((int)value_of(v, 1, "colour", 0), 0);
    assert_true(value_of(v, 0, "size", 0) == 7);
    assert_int_equal(v->nclasses, 3);
    assert_string_equal(v->classes[0], "ant");
    assert_null(ls_source_field(v, "label")->trouble);
    has_trouble(v, "kind",
                "@val.csv: 'kind' has 'zebra', which the training data do not have: "
                "there it is 'a', 'b', 'c'");
    assert_null(ls_source_field(v, "extra"));
    ls_source_close(v);
    ls_source_close(t);
}

/* Texts that are spelled like numbers, and numbers that have a text among them. */
static void test_spelled(void **state) {
    (void)state;
    put_text("@train.csv", "x,label\n1,10\n2,9\n3,x\n4,y\n");
    put_text("@val.csv", "x,label\n1,9\n2,10\n");
    put_text("@other.csv", "x,label\n1,9.0\n2,10\n");
    ls_source *t = opened("@train.csv", NULL), *v = followed("@val.csv", t);
    assert_int_equal((int)value_of(v, 0, "label", 0), 1);
    assert_int_equal((int)value_of(v, 1, "label", 0), 0);
    ls_source_close(v);
    v = followed("@other.csv", t);
    has_trouble(v, "label", "has '9.0', which the training data do not have");
    ls_source_close(v);
    ls_source_close(t);
    put_text("@train.csv", "x,label\n1,10\n2,9\n");
    put_text("@val.csv", "x,label\n1,a\n2,b\n");
    t = opened("@train.csv", NULL);
    v = followed("@val.csv", t);
    has_trouble(v, "label", "has texts, and numbers in the training data");
    ls_source_close(v);
    ls_source_close(t);
}

/* Columns that are joined are in the order of the training data. */
static void test_joined(void **state) {
    (void)state;
    put_text("@train.csv", "a,b,c,d,e,f,g,h,i,label\n1,2,3,4,5,6,7,8,9,x\n1,2,3,4,5,6,7,8,9,y\n");
    put_text("@val.csv", "label,i,h,g,f,e,d,c,b,a,z\ny,9,8,7,6,5,4,3,2,1,0\n");
    put_text("@few.csv", "label,i,h,g,f,e,d,c,b\ny,9,8,7,6,5,4,3,2\n");
    put_text("@val.jsonl", "{\"i\":9,\"h\":8,\"g\":7,\"f\":6,\"e\":5,\"d\":4,\"c\":3,\"b\":2,"
                           "\"a\":1,\"label\":\"y\"}\n");
    ls_source *t = opened("@train.csv", NULL);
    static const char *const paths[] = {"@val.csv", "@val.jsonl"};
    for (int p = 0; p < 2; p++) {
        ls_source *v = followed(paths[p], t);
        assert_int_equal(v->nfields, 2);
        assert_int_equal((int)value_of(v, 0, "label", 0), 1);
        for (size_t k = 0; k < 9; k++) assert_true(value_of(v, 0, "x", k) == (double)k + 1);
        ls_source_close(v);
    }
    ls_source *v = opened("@few.csv", NULL);
    ls_error e = {0};
    assert_ls_fails(ls_source_follow(v, t->numbering, "few.csv", &e), LS_EINVAL,
                    "few.csv: has no 'a', which the training data have", e);
    ls_source_close(v);
    ls_source_close(t);
}

static void test_images(void **state) {
    (void)state;
    in_folder("mkdir -p train/ant train/bee train/cow val/bee val/cow new/bee new/dog");
    static const char *const dirs[] = {"train/ant", "train/bee", "train/cow", "val/bee",
                                       "val/cow",   "new/bee",   "new/dog"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        static const uint8_t pixels[4 * 4 * 3];
        char name[64];
        ls_buf png = {0};
        snprintf(name, sizeof name, "@%s/1.png", dirs[i]);
        picture_png(&png, pixels, (ls_image_shape){4, 4, 3});
        put_file(name, png.data, png.len);
        ls_buf_free(&png);
    }
    ls_source *t = opened("@train", NULL), *v = followed("@val", t);
    assert_int_equal((int)value_of(v, 0, "label", 0), 1);
    assert_int_equal((int)value_of(v, 1, "label", 0), 2);
    assert_string_equal(v->classes[2], "cow");
    ls_source_close(v);
    v = followed("@new", t);
    has_trouble(v, "label", "@new: 'label' has 'dog', which the training data do not have");
    ls_source_close(v);
    ls_source_close(t);
}

/* The image of an archive stays, with a cls beside it, and with members of JSON. */
static void test_archives(void **state) {
    (void)state;
    test_images(state);
    in_folder("cp train/ant/1.png 1.png && echo 2 > 1.cls && echo '{\"size\": 3}' > 1.json && "
              "tar cf image.tar 1.png && tar cf cls.tar 1.png 1.cls && "
              "tar cf json.tar 1.png 1.cls 1.json");
    ls_source *t = opened("@train", NULL);
    static const char *const paths[] = {"@image.tar", "@cls.tar", "@json.tar"};
    for (int p = 0; p < 3; p++) {
        ls_source *v = followed(paths[p], t);
        assert_non_null(ls_source_field(v, "image"));
        assert_int_equal(v->nfields, p ? 2 : 1);
        if (p) assert_int_equal((int)value_of(v, 0, "label", 0), 2);
        assert_null(v->classes);
        ls_source_close(v);
    }
    ls_source_close(t);
}

/* What data.json keeps is what later files follow. */
static void test_record(void **state) {
    (void)state;
    put_text("@train.csv", animals);
    ls_source *t = opened("@train.csv", NULL);
    ls_json *j = ls_numbering_json(t->numbering);
    ls_numbering read = {0}, none = {0};
    assert_true(ls_numbering_read(j, &read));
    assert_true(ls_numbering_same(&read, t->numbering));
    assert_false(ls_numbering_same(&read, &none));
    ls_json_free(j);
    ls_source_close(t);
    put_text("@val.csv", "size,colour,kind,label\n3,red,c,cow\n");
    ls_source *v = opened("@val.csv", NULL);
    ls_error e = {0};
    assert_ls_ok(ls_source_follow(v, &read, "val.csv", &e), e);
    assert_int_equal((int)value_of(v, 0, "label", 0), 2);
    ls_source_close(v);
    ls_numbering_free(&read);
    static const char *const bad[] = {"{}", "[1]", "[{\"name\":\"a\"}]",
                                      "[{\"name\":\"a\",\"field\":\"a\",\"texts\":[\"b\",\"a\"]}]",
                                      "[{\"name\":\"a\",\"field\":\"a\",\"mean\":\"x\"}]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_ls_ok(ls_json_parse(bad[i], strlen(bad[i]), "bad", &j, &e), e);
        assert_false(ls_numbering_read(j, &read));
        ls_json_free(j);
    }
}

/* The mean that stands for a missing value is that of the training data. */
static void test_means(void **state) {
    (void)state;
    put_text("@train.csv", "x,y,label\n1,2,a\n3,4,b\nNA,9,a\n");
    put_text("@val.csv", "x,y,label\n100,?,b\n,200,a\n");
    ls_source_options o = {.missing = LS_MISSING_MEAN};
    ls_source *t = opened("@train.csv", &o), *v = opened("@val.csv", &o);
    ls_error e = {0};
    assert_ls_ok(ls_source_follow(v, t->numbering, "val.csv", &e), e);
    assert_true(value_of(t, 2, "x", 0) == 2);
    assert_true(value_of(v, 1, "x", 0) == 2);
    assert_true(value_of(v, 0, "y", 0) == 5);
    assert_true(value_of(v, 1, "y", 0) == 200);
    ls_source_close(v);
    ls_source_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_csv),      cmocka_unit_test(test_spelled),
        cmocka_unit_test(test_joined),   cmocka_unit_test(test_images),
        cmocka_unit_test(test_archives), cmocka_unit_test(test_record),
        cmocka_unit_test(test_means)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
