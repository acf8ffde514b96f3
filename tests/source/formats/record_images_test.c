/* record_images_test.c - images in records: bytes of TFRecord and MDS files that are PNG images
 * become their pixels; damaged ones are refused, or left out. */
#include "source/samples.h"

enum { N = 40, H = 2, W = 3 };

/* The pixels that write_sets.py gives image `value`; gray ones have three equal channels here. */
static void assert_pixels(const uint8_t *pixels, int value, bool gray) {
    for (int i = 0; i < H * W * 3; i++)
        assert_int_equal(pixels[i], value + (gray ? i / 3 % W : i % (3 * W)));
}

static int32_t label_of(const ls_source *s, const uint8_t *sample) {
    int32_t label;
    memcpy(&label, sample + ls_source_field(s, "label")->offset, sizeof label);
    return label;
}

static const int64_t dims[] = {H, W, 3};

/* By the names that TensorFlow's own data sets have. */
static void test_tfrecord(void **state) {
    (void)state;
    ls_source *s = opened("@images.tfrecord", NULL);
    assert_int_equal(s->count, N);
    assert_int_equal(s->nfields, 3);
    assert_true(s->decodes);
    const ls_field *image = ls_source_field(s, "image");
    assert_true(image && has_shape(image, "image", LS_U8, 3, dims));
    assert_true(ls_field_is_image(image));
    for (int i = N - 1; i >= 0; i--) {
        uint8_t *sample = sample_of(s, (uint64_t)i);
        assert_pixels(sample + image->offset, i, i == 5);
        assert_int_equal(label_of(s, sample), i % 10);
        assert_memory_equal(sample + ls_source_field(s, "image/format")->offset, "png", 3);
        free(sample);
    }
    ls_source_close(s);
}

static void test_tfrecord_damage(void **state) {
    (void)state;
    const ls_source_options skip = {.skip_damaged = true};
    refuses("@badimages.tfrecord", NULL, "'image/encoded': not a JPEG or PNG image");
    ls_source *s = opened("@badimages.tfrecord", &skip);
    assert_int_equal(s->count, N - 1);
    assert_int_equal(s->damage.n, 2);
    for (uint64_t i = 0; i < s->count; i++) {
        uint8_t *sample = sample_of(s, i);
        int value = (int)i + (i >= 3);
        assert_pixels(sample + ls_source_field(s, "image")->offset, value, value == 5);
        free(sample);
    }
    ls_source_close(s);
    s = opened("@sizes.tfrecord", NULL); /* scaled to squares */
    const ls_field *image = ls_source_field(s, "image");
    assert_true(image && s->decodes && s->side > 0);
    assert_int_equal(image->dims[0], s->side);
    assert_int_equal(image->dims[1], s->side);
    for (uint64_t i = 0; i < s->count; i++) free(sample_of(s, i));
    ls_source_close(s);
}

static void test_mds(void **state) {
    (void)state;
    ls_error e = {0};
    ls_source *s = opened("@mdsphotos", NULL);
    const ls_field *photo = ls_source_field(s, "photo");
    assert_true(photo && has_shape(photo, "photo", LS_U8, 3, dims));
    assert_true(s->decodes);
    for (int i = 0; i < N; i++) {
        uint8_t *sample = sample_of(s, (uint64_t)i);
        assert_pixels(sample + photo->offset, i, false);
        free(sample);
    }
    ls_source_close(s);
    s = opened("@mdssizes", NULL);
    photo = ls_source_field(s, "photo");
    assert_true(photo && s->side > 0 && photo->dims[0] == s->side && photo->dims[1] == s->side);
    for (uint64_t i = 0; i < s->count; i++) free(sample_of(s, i));
    ls_source_close(s);
    s = opened("@badphotos", NULL); /* only headers are read */
    uint8_t *sample = ls_alloc(s->nbytes);
    assert_ls_fails(s->read(s, 3, sample, &e), LS_EINVAL, "sample 3: 'photo' is damaged", e);
    free(sample);
    ls_source_close(s);
    s = opened("@badphotos", &(ls_source_options){.skip_damaged = true});
    assert_int_equal(s->count, N - 1);
    assert_int_equal(s->damage.n, 1);
    for (uint64_t i = 0; i < s->count; i++) free(sample_of(s, i));
    ls_source_close(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tfrecord),
        cmocka_unit_test(test_tfrecord_damage),
        cmocka_unit_test(test_mds),
    };
    return cmocka_run_group_tests(tests, write_sets, remove_folder);
}
