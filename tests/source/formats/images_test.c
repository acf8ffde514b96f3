/* images_test.c - a directory of images by class. */
#include "source/pictures.h"
#include "source/samples.h"

enum { H = 19, W = 23 };

static void put_picture(const char *name, ls_image_shape s, int seed) {
    ls_buf b = {0};
    uint8_t pixels[64 * 64 * 3];
    picture_fill(pixels, s, seed);
    if (strstr(name, ".png"))
        picture_png(&b, pixels, s);
    else
        picture_jpeg(&b, pixels, s, (picture_options){.quality = 97});
    put_file(name, b.data, b.len);
    ls_buf_free(&b);
}

static int32_t label_of(const ls_source *s, const uint8_t *sample) {
    int32_t label;
    memcpy(&label, sample + s->fields[1].offset, sizeof label);
    return label;
}

static void make_set(void) {
    in_folder("mkdir -p set/zebra set/Ant set/bee");
    put_picture("@set/zebra/1.png", (ls_image_shape){H, W, 3}, 0);
    put_picture("@set/zebra/10.png", (ls_image_shape){H, W, 3}, 1);
    put_picture("@set/zebra/2.PNG.png", (ls_image_shape){H, W, 1}, 2);
    put_picture("@set/Ant/x.jpeg", (ls_image_shape){H, W, 3}, 3);
    put_picture("@set/bee/a.JPG", (ls_image_shape){H, W, 3}, 4);
    put_picture("@set/bee/.hidden.jpg", (ls_image_shape){5, 5, 3}, 5);
    put_file("@set/README", "text", 4);
    put_file("@set/bee/notes.txt", "text", 4);
}

/* Classes in byte order; samples in order of class and name; their pixels are those written. */
static void test_read(void **state) {
    (void)state;
    static const char *const classes[] = {"Ant", "bee", "zebra"};
    static const int labels[] = {0, 1, 2, 2, 2}, seeds[] = {3, 4, 0, 1, 2};
    make_set();
    ls_source *s = opened("@set", NULL);
    assert_string_equal(s->format, "images");
    assert_int_equal(s->count, 5);
    assert_int_equal(s->nfiles, 5);
    assert_int_equal(s->nclasses, 3);
    for (int i = 0; i < 3; i++) assert_string_equal(s->classes[i], classes[i]);
    assert_int_equal(s->nfields, 2);
    assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){H, W, 3}));
    assert_true(has_shape(&s->fields[1], "label", LS_I32, 0, NULL));
    for (int i = 0; i < 5; i++) {
        uint8_t *sample = sample_of(s, (uint64_t)i), pixels[H * W * 3];
        int c = seeds[i] == 2 ? 1 : 3, error = i < 2 ? 20 : 0; /* JPEG is not exact */
        picture_fill(pixels, (ls_image_shape){H, W, c}, seeds[i]);
        assert_int_equal(label_of(s, sample), labels[i]);
        for (int k = 0; k < H * W * 3; k++)
            assert_true(abs(sample[k] - pixels[c == 1 ? k / 3 : k]) <= error);
        free(sample);
    }
    ls_hash before = s->hash;
    ls_source_close(s);
    s = opened("@set", NULL);
    assert_true(ls_hash_same(s->hash, before));
    ls_source_close(s);
    in_folder("mv set/bee/a.JPG set/bee/b.JPG");
    s = opened("@set", NULL);
    assert_false(ls_hash_same(s->hash, before));
    ls_source_close(s);
}

static void test_refused(void **state) {
    (void)state;
    make_set();
    in_folder("mkdir set/empty");
    refuses("@set", NULL, "/set/empty: has no images (.jpg, .jpeg or .png)");
    in_folder("rmdir set/empty && mkdir flat && cp set/README flat");
    refuses("@flat", NULL, "/flat: has no images");
    refuses("@set\n@flat", NULL,
            "images come from one directory, or from files; 2 paths are given");
}

static void assert_names(const ls_source *s, const char *const *names) {
    for (uint64_t i = 0; i < s->count; i++) {
        ls_buf name = {0};
        ls_source_put_name(s, i, &name);
        assert_string_equal(name.data, names[i]);
        ls_buf_free(&name);
    }
}

/* Images of a class may lie deeper, in the order of their paths; what is beside them does not
 * matter, and links lead into no other class and around no circle. */
static void test_nested(void **state) {
    (void)state;
    static const char *const names[] = {"Ant/x.jpeg",   "bee/2023-1.png",   "bee/2023/b/1.png",
                                        "bee/a.JPG",    "bee/linked/1.png", "zebra/1.png",
                                        "zebra/10.png", "zebra/2.PNG.png"};
    make_set();
    ls_source *s = opened("@set", NULL);
    ls_hash flat = s->hash;
    ls_source_close(s);
    in_folder("mkdir -p set/bee/.git set/__MACOSX/bee set/bee/__MACOSX set/bee/none && "
              "touch set/.DS_Store set/Thumbs.db set/__MACOSX/bee/1.png set/bee/__MACOSX/2.png && "
              "cp set/zebra/1.png set/bee/.git && ln -s ../.. set/bee/none/up && "
              "ln -s ../Ant set/bee/ant && ln -s . set/zebra/again");
    s = opened("@set/", NULL);
    assert_int_equal(s->count, 5);
    assert_true(ls_hash_same(s->hash, flat));
    ls_source_close(s);
    in_folder("mkdir -p set/bee/2023/b out && cp set/zebra/1.png set/bee/2023/b && "
              "cp set/zebra/1.png set/bee/2023-1.png && cp set/zebra/1.png out && "
              "ln -s ../../out set/bee/linked && touch set/bee/2023/b/notes.md");
    for (int known = 0; known < 2; known++) {
        ls_source_options o = {.index_nbytes = 1};
        in_folder("sleep 0.03");
        s = opened("@set", &o);
        assert_int_equal(s->index_use, known ? LS_INDEX_USED : LS_INDEX_MADE);
        assert_int_equal(s->count, 8);
        assert_int_equal(s->nclasses, 3);
        assert_names(s, names);
        uint8_t *sample = sample_of(s, 4);
        assert_int_equal(label_of(s, sample), 1);
        free(sample);
        ls_source_close(s);
    }
}

/* Directories that can't be classes: whoever reads the label is told. */
static void test_no_classes(void **state) {
    (void)state;
    make_set();
    in_folder("mkdir parts one && cp -r set parts/train && cp -r set parts/val && cp -r set one");
    ls_source *s = opened("@parts", NULL);
    assert_non_null(strstr(s->fields[1].trouble, "/parts: its sub-directories, train and val, are "
                                                 "the parts of a data set and no classes; set "));
    ls_source_close(s);
    s = opened("@one", NULL);
    assert_non_null(
        strstr(s->fields[1].trouble, "/one: has one sub-directory, set, which would be"));
    ls_source_close(s);
    s = opened("@set", NULL);
    assert_null(s->fields[1].trouble);
    ls_source_close(s);
    in_folder("cp set/zebra/1.png set/m.png");
    static const char *const names[] = {"Ant/x.jpeg",  "bee/a.JPG",    "m.png",
                                        "zebra/1.png", "zebra/10.png", "zebra/2.PNG.png"};
    s = opened("@set", NULL);
    assert_int_equal(s->count, 6);
    assert_int_equal(s->nfields, 1);
    assert_names(s, names);
    ls_source_close(s);
}

/* Images of several sizes are squares of the usual side, or what the keys and the model say; the
 * same from the index. */
static void test_sizes(void **state) {
    (void)state;
    ls_field wanted = {
        .name = "image", .type = LS_U8, .ndims = 3, .dims = {24, 32, 3}, .nbytes = 24 * 32 * 3};
    ls_image_way model = {.fields = &wanted, .nfields = 1}, side = {.side = 12},
                 gray = {.side = 12, .channels = 1}, small = {.crop_height = 20, .crop_width = 4};
    ls_source_options o = {.index_nbytes = 1};
    make_set();
    put_picture("@set/bee/large.png", (ls_image_shape){60, 41, 3}, 9);
    in_folder("sleep 0.03"); /* so that a change would be seen */
    for (int round = 0; round < 2; round++) {
        o.images = NULL;
        ls_source *s = opened("@set", &o);
        assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){16, 16, 3}));
        assert_int_equal(s->side, 16); /* of 19, 19, 19, 19, 19 and 41 */
        assert_int_equal(s->index_use, round ? LS_INDEX_USED : LS_INDEX_MADE);
        ls_source_close(s);
        o.images = &model;
        s = opened("@set", &o);
        assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, wanted.dims));
        assert_int_equal(s->side, 0);
        for (uint64_t i = 0; i < s->count; i++) free(sample_of(s, i));
        ls_source_close(s);
        o.images = &side;
        s = opened("@set", &o);
        assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){12, 12, 3}));
        ls_source_close(s);
        o.images = &gray;
        s = opened("@set", &o);
        assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){12, 12, 1}));
        for (uint64_t i = 0; i < s->count; i++) free(sample_of(s, i));
        ls_source_close(s);
    }
    o.images = &small;
    refuses("@set", &o, "/set: an image of 19x23 pixels has 19x23, and data.crop is 20x4");
}

/* Images in the directory itself have no class. */
static void test_flat(void **state) {
    (void)state;
    in_folder("mkdir flat");
    put_picture("@flat/b.png", (ls_image_shape){H, W, 3}, 0);
    put_picture("@flat/a.png", (ls_image_shape){H, W, 3}, 1);
    put_file("@flat/notes.txt", "text", 4);
    ls_source *s = opened("@flat", NULL);
    ls_buf name = {0};
    uint8_t pixels[H * W * 3], *sample = sample_of(s, 1);
    assert_int_equal(s->count, 2);
    assert_int_equal(s->nfields, 1);
    assert_null(s->classes);
    picture_fill(pixels, (ls_image_shape){H, W, 3}, 0);
    assert_memory_equal(sample, pixels, sizeof pixels);
    ls_source_put_name(s, 1, &name);
    assert_string_equal(name.data, "b.png");
    ls_buf_free(&name);
    free(sample);
    ls_source_close(s);
    s = opened("@flat/*.png", NULL); /* the same as files */
    assert_int_equal(s->count, 2);
    assert_int_equal(s->nfields, 1);
    sample = sample_of(s, 1);
    assert_memory_equal(sample, pixels, sizeof pixels);
    ls_source_put_name(s, 0, &name); /* as it is given */
    assert_non_null(strstr(name.data, "/flat/a.png"));
    ls_buf_free(&name);
    free(sample);
    ls_source_close(s);
    s = opened("@flat/b.png", NULL);
    assert_int_equal(s->count, 1);
    ls_source_close(s);
    refuses("@flat/b.png\n@flat", NULL, "images come from one directory, or from files");
}

/* Damage is an error with the file's name, or the image is left out and counted. */
static void test_damage(void **state) {
    (void)state;
    make_set();
    in_folder("head -c 300 set/Ant/x.jpeg > set/Ant/a.jpg && : > set/bee/0.png && "
              "cp set/README set/zebra/0.jpg");
    const ls_source_options skip = {.skip_damaged = true};
    ls_source *s = opened("@set", &skip);
    assert_int_equal(s->count, 5);
    assert_int_equal(s->damage.n, 3);
    for (uint64_t i = 0; i < 5; i++) free(sample_of(s, i));
    ls_source_close(s);
    refuses("@set", NULL, "/Ant/a.jpg: JPEG image: Premature end of JPEG file");
    in_folder("rm set/Ant/a.jpg");
    refuses("@set", NULL, "/bee/0.png: the image is empty (0 bytes)");
    in_folder("rm set/bee/0.png");
    refuses("@set", NULL, "/zebra/0.jpg: not a JPEG or PNG image");
    in_folder("for i in 0 1 2 3 4 5 6 7 8 9 a b; do echo no > set/bee/$i.png; done; sleep 0.03");
    for (int known = 0; known < 2; known++) { /* as the index says, too */
        s = opened("@set", &(ls_source_options){.skip_damaged = true, .index_nbytes = 1});
        assert_int_equal(s->index_use, known ? LS_INDEX_USED : LS_INDEX_MADE);
        assert_int_equal(s->damage.n, 13);
        assert_non_null(strstr(s->damage.named[0], "/bee/0.png: not a JPEG or PNG image"));
        assert_non_null(strstr(s->damage.named[9], "/bee/9.png: "));
        ls_source_close(s);
    }
    in_folder("for f in $(find set -name '*.*'); do echo no > $f; done");
    refuses("@set", &skip, "all images are damaged; the first: ");
}

/* Pixels are damaged behind a good header: the sample's read names the file. */
static void test_damaged_pixels(void **state) {
    (void)state;
    make_set();
    in_folder("head -c 800 set/Ant/x.jpeg > t && mv t set/Ant/x.jpeg");
    ls_source *s = opened("@set", NULL);
    ls_error e;
    uint8_t *sample = ls_alloc(s->nbytes);
    assert_ls_fails(s->read(s, 0, sample, &e), LS_EINVAL, "/set/Ant/x.jpeg: JPEG image: ", e);
    free(sample);
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_refused, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_nested, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_no_classes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_flat, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_sizes, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damaged_pixels, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
