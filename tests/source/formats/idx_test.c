/* idx_test.c - IDX files: Fashion-MNIST as Debian ships it, other types, labels, packings, and
 * damaged files. */
#include "source/samples.h"

#define FASHION "/usr/share/datasets/fashion-mnist/"

static void test_fashion_mnist(void **state) {
    (void)state;
    if (!ls_file_exists(FASHION "train-images-idx3-ubyte.gz"))
        skip_because("dataset-fashion-mnist is not installed");
    ls_source *s =
        opened(FASHION "train-images-idx3-ubyte.gz\n" FASHION "train-labels-idx1-ubyte.gz", NULL);
    assert_string_equal(s->format, "idx");
    assert_int_equal(s->count, 60000);
    assert_int_equal(s->nfields, 2);
    assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){28, 28, 1}));
    assert_true(has_shape(&s->fields[1], "label", LS_I32, 0, NULL));
    assert_int_equal(s->nfiles, 2);
    assert_in_range(s->file_nbytes, 26000000, 27000000);
    int64_t counts[10] = {0};
    uint64_t sum = 0;
    uint8_t *sample = ls_alloc(s->nbytes);
    ls_error e = {0};
    for (uint64_t i = 0; i < s->count; i++) {
        int32_t label;
        assert_ls_ok(s->read(s, i, sample, &e), e);
        memcpy(&label, sample + s->fields[1].offset, sizeof label);
        assert_in_range(label, 0, 9);
        counts[label]++;
        for (int k = 0; k < 784; k++) sum += sample[k];
    }
    free(sample);
    for (int c = 0; c < 10; c++) assert_int_equal(counts[c], 6000);
    /* The published mean of the training images is 0.2860. */
    assert_int_equal(sum * 10000 / (60000ull * 784 * 255), 2860);
    ls_source_close(s);
}

/* Two images of 2 x 3 in a file, and their labels. */
static const uint8_t images[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2,  0,  0,
                                 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 7, 9};

static void expect_images(const ls_source *s, uint64_t first) {
    for (uint64_t i = 0; i < 2; i++) {
        uint8_t *sample = sample_of(s, first + i);
        assert_memory_equal(sample, images + 16 + 6 * i, 6);
        assert_int_equal(*(int32_t *)(void *)(sample + s->fields[1].offset), i ? 9 : 7);
        free(sample);
    }
}

static void test_lists(void **state) {
    (void)state;
    put_file("@a-images-idx3-ubyte", images, sizeof images);
    put_file("@a-labels-idx1-ubyte", labels, sizeof labels);
    in_folder("cp a-images-idx3-ubyte b-images-idx3-ubyte; gzip -k b-images-idx3-ubyte; "
              "cp a-labels-idx1-ubyte b-labels-idx1-ubyte; zstd -q b-labels-idx1-ubyte");
    ls_source *s = opened("@a-images-idx3-ubyte\n@a-labels-idx1-ubyte", NULL);
    assert_int_equal(s->count, 2);
    expect_images(s, 0);
    ls_source *packed = opened("@b-images-idx3-ubyte.gz\n@b-labels-idx1-ubyte.zst", NULL);
    expect_images(packed, 0);
    assert_true(ls_hash_same(s->hash, packed->hash)); /* of what is packed */
    ls_source_close(packed);
    ls_source_close(s);
    s = opened("@[ab]-images-idx3-ubyte",
               &(ls_source_options){.labels = "@[ab]-labels-idx1-ubyte"});
    assert_int_equal(s->count, 4);
    expect_images(s, 0);
    expect_images(s, 2);
    ls_source_close(s);
    s = opened("@[ab]-*-ubyte", NULL);
    assert_int_equal(s->count, 4);
    expect_images(s, 2);
    ls_source_close(s);
    s = opened("@a-images-idx3-ubyte", NULL); /* no labels */
    assert_int_equal(s->nfields, 1);
    ls_source_close(s);
    refuses("@[ab]-images-idx3-ubyte\n@a-labels-idx1-ubyte", NULL,
            "2 files of data come with 1 files of labels");
    refuses("@[ab]-images-idx3-ubyte", &(ls_source_options){.labels = "@a-labels-idx1-ubyte"},
            "1 files of labels for 2 files of data");
}

/* Each type: one sample of two numbers, 1 and -2 or 254. */
static void test_types(void **state) {
    (void)state;
    static const struct {
        uint8_t code, bytes[16];
        ls_dtype type;
    } all[] = {
        {0x08, {1, 254}, LS_U8},
        {0x09, {1, 0xfe}, LS_I8},
        {0x0b, {0, 1, 0xff, 0xfe}, LS_I16},
        {0x0c, {0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe}, LS_I32},
        {0x0d, {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0}, LS_F32},
        {0x0e, {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0}, LS_F64},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        uint8_t file[28] = {0, 0, all[i].code, 2, 0, 0, 0, 1, 0, 0, 0, 2};
        size_t size = ls_dtype_size(all[i].type);
        memcpy(file + 12, all[i].bytes, 2 * size);
        put_file("@x.idx", file, 12 + 2 * size);
        ls_source *s = opened("@x.idx", NULL);
        assert_true(has_shape(&s->fields[0], "x", all[i].type, 1, (int64_t[]){2}));
        uint8_t *p = sample_of(s, 0);
        double two = all[i].type == LS_U8    ? p[1]
                     : all[i].type == LS_I8  ? ((int8_t *)p)[1]
                     : all[i].type == LS_I16 ? ((int16_t *)(void *)p)[1]
                     : all[i].type == LS_I32 ? ((int32_t *)(void *)p)[1]
                     : all[i].type == LS_F32 ? (double)((float *)(void *)p)[1]
                                             : ((double *)(void *)p)[1];
        assert_true(two == (all[i].type == LS_U8 ? 254 : -2));
        free(p);
        ls_source_close(s);
    }
}

/* Copies the images' file with one byte changed and another length. */
static void changed(const char *name, size_t at, uint8_t value, size_t nbytes) {
    uint8_t file[64] = {0};
    memcpy(file, images, sizeof images);
    file[at] = value;
    put_file(name, file, nbytes);
}

static void test_damage(void **state) {
    (void)state;
    size_t n = sizeof images;
    for (size_t cut = 0; cut < n; cut++) {
        put_file("@cut.idx", images, cut);
        refuses("@cut.idx", NULL, cut < 4 ? "is not an IDX file" : "is truncated");
    }
    changed("@bad.idx", 7, 3, n);
    refuses("@bad.idx", NULL,
            "announces 3 samples of 6 bytes, but it ends at offset 28, in sample 2");
    changed("@bad.idx", 7, 1, n);
    refuses("@bad.idx", NULL,
            "6 bytes follow the 1 samples that its header announces, from offset 22");
    put_file("@long.idx", images, n); /* its size is known before it is read */
    in_folder("truncate -s 512G long.idx");
    refuses("@long.idx", NULL, "follow the 2 samples that its header announces");
    changed("@bad.idx", 2, 0x0a, n);
    refuses("@bad.idx", NULL, "is not an IDX file");
    changed("@bad.idx", 3, 200, n);
    refuses("@bad.idx", NULL, "has 200 dimensions");
    changed("@bad.idx", 15, 0, n);
    refuses("@bad.idx", NULL, "dimension 2 is 0");
    uint8_t huge[24] = {0, 0, 14, 5};
    memset(huge + 4, 0xff, 20);
    put_file("@bad.idx", huge, sizeof huge);
    refuses("@bad.idx", NULL, "a sample has more than 2048 MB");
    put_file("@images.idx", images, n);
    put_file("@labels.idx", (const uint8_t[]){0, 0, 8, 1, 0, 0, 0, 1, 7}, 9);
    refuses("@images.idx\n@labels.idx", NULL, "has 1 labels, but");
    static const uint8_t below[] = {0, 0, 9, 1, 0, 0, 0, 2, 7, 0xff};
    put_file("@labels.idx", below, sizeof below);
    refuses("@images.idx\n@labels.idx", NULL, "label 1, at offset 9, is -1");
    refuses("@labels.idx", &(ls_source_options){.format = "idz"}, "did you mean 'idx'?");
    put_file("@what", "some text", 9);
    refuses("@what", NULL, "name the format: idx");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fashion_mnist),
        cmocka_unit_test_setup_teardown(test_lists, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_types, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_damage, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
