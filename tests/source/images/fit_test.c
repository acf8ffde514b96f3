/* fit_test.c - scaling against a double-precision sum, orientations by their definition, and what
 * is decided about the sizes of images. */
#include "source/images/fit.h"

#include "source/images/fitted.h"
#include "source/images/orientation.h"
#include "source/images/resample.h"
#include "source/pictures.h"
#include "source/samples.h"

/* ---- scaling ---- */

/* New pixel i of a line of n values at `stride`, which becomes m long: the mean under a
 * triangle. */
static double mean_under(const double *line, int n, int stride, int m, int i) {
    double scale = (double)n / m, width = scale > 1 ? scale : 1, centre = (i + 0.5) * scale;
    double sum = 0, weights = 0;
    for (int k = 0; k < n; k++) {
        double w = 1 - fabs(k + 0.5 - centre) / width;
        if (w <= 0) continue;
        sum += w * line[k * stride];
        weights += w;
    }
    return sum / weights;
}

static double rounded(double x) { return floor(x + 0.5); }

static void check_scaling(ls_image_shape s, int H, int W, int seed) {
    static uint8_t in[64 * 64 * 3], out[200 * 200 * 3];
    static double rows[64 * 200 * 3], pixels[64 * 64 * 3];
    picture_fill(in, s, seed);
    for (int i = 0; i < s.height * s.width * s.channels; i++) {
        in[i] = (uint8_t)(in[i] ^ ((unsigned)i * 2654435761u >> 25)); /* some noise */
        pixels[i] = in[i];
    }
    ls_resample_window w = {H, W, H / 3, W / 4, H - H / 3, W - W / 4};
    ls_resample(in, s, &w, out);
    int C = s.channels;
    for (int y = 0; y < s.height; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < C; c++)
                rows[(y * W + x) * C + c] =
                    rounded(mean_under(pixels + y * s.width * C + c, s.width, C, W, x));
    for (int y = 0; y < (int)w.nrows; y++)
        for (int x = 0; x < (int)w.ncolumns; x++)
            for (int c = 0; c < C; c++) {
                double v = mean_under(rows + (x + (int)w.left) * C + c, s.height, W * C, H,
                                      y + (int)w.top);
                int got = out[(y * (int)w.ncolumns + x) * C + c];
                /* half a level of rounding, and one where a column's value ends in a half */
                if (fabs(got - v) > 1.51) fail_msg("%d, not %g", got, v);
            }
}

static void test_resample(void **state) {
    (void)state;
    static const int sizes[][4] = {
        {7, 5, 7, 5},  {64, 64, 10, 7}, {10, 7, 64, 64}, {1, 1, 9, 9},     {33, 64, 32, 63},
        {64, 3, 1, 1}, {2, 64, 3, 64},  {64, 1, 5, 200}, {17, 23, 16, 21}, {63, 61, 31, 199}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int c = 1; c <= 3; c += 2)
            check_scaling((ls_image_shape){sizes[i][0], sizes[i][1], c}, sizes[i][2], sizes[i][3],
                          (int)i);
    uint8_t white[50 * 41], out[17 * 90]; /* one colour stays as it is */
    memset(white, 255, sizeof white);
    ls_resample(white, (ls_image_shape){50, 41, 1}, &(ls_resample_window){17, 90, 0, 0, 17, 90},
                out);
    for (size_t i = 0; i < sizeof out; i++) assert_int_equal(out[i], 255);
}

/* Bits that must not change; by Pillow 12 resize((4, 3), BILINEAR) of the same pixels. */
static void test_pillow(void **state) {
    (void)state;
    uint8_t in[5 * 7], out[3 * 4];
    for (int i = 0; i < 5 * 7; i++) in[i] = (uint8_t)(i * i * 37 % 251);
    ls_resample(in, (ls_image_shape){5, 7, 1}, &(ls_resample_window){3, 4, 0, 0, 3, 4}, out);
    static const uint8_t expected[] = {50, 146, 134, 133, 110, 172, 148, 152, 128, 194, 161, 126};
    assert_memory_equal(out, expected, sizeof out);
}

/* ---- orientation ---- */

/* A 2 x 3 image, and what it is upright, by the tag: where its first row and column belong. */
static void test_turns(void **state) {
    (void)state;
    static const uint8_t in[] = {1, 2, 3, 4, 5, 6};
    static const uint8_t upright[9][6] = {
        [1] = {1, 2, 3, 4, 5, 6}, [2] = {3, 2, 1, 6, 5, 4}, [3] = {6, 5, 4, 3, 2, 1},
        [4] = {4, 5, 6, 1, 2, 3}, [5] = {1, 4, 2, 5, 3, 6}, [6] = {4, 1, 5, 2, 6, 3},
        [7] = {6, 3, 5, 2, 4, 1}, [8] = {3, 6, 2, 5, 1, 4}};
    for (int o = 1; o <= 8; o++) {
        uint8_t out[6];
        ls_image_shape s = ls_orientation_shape(o, (ls_image_shape){2, 3, 1});
        assert_int_equal(s.height, o < 5 ? 2 : 3);
        assert_int_equal(s.width, o < 5 ? 3 : 2);
        ls_orientation_turn(o, in, (ls_image_shape){2, 3, 1}, out);
        assert_memory_equal(out, upright[o], sizeof out);
    }
}

/* A TIFF header with two entries, the second of which is the orientation. */
static size_t put_tiff(uint8_t *to, bool little, int orientation) {
    static const uint8_t big[] = {'M', 'M', 0, 42, 0,  0, 0, 8, 0, 2, 1, 15, 0, 2, 0, 0, 0, 1, 0,
                                  0,   0,   0, 1,  18, 0, 3, 0, 0, 0, 1, 0,  0, 0, 0, 0, 0, 0, 0};
    static const uint8_t small[] = {'I', 'I', 42, 0,  8, 0, 0, 0, 2, 0, 15, 1, 2, 0, 1, 0, 0, 0, 0,
                                    0,   0,   0,  18, 1, 3, 0, 1, 0, 0, 0,  0, 0, 0, 0, 0, 0, 0, 0};
    memcpy(to, little ? small : big, sizeof big);
    to[little ? 30 : 31] = (uint8_t)orientation;
    return sizeof big;
}

/* A JPEG file whose first segments are a comment and EXIF. */
static void put_exif_jpeg(ls_buf *b, const uint8_t *pixels, ls_image_shape s, int orientation) {
    ls_buf plain = {0};
    uint8_t segment[64] = {0xff, 0xfe, 0, 3, 'x', 0xff, 0xe1, 0, 0, 'E', 'x', 'i', 'f', 0, 0};
    size_t n = put_tiff(segment + 15, orientation % 2, orientation);
    segment[8] = (uint8_t)(n + 8);
    picture_jpeg(&plain, pixels, s, (picture_options){.quality = 100});
    ls_buf_append(b, plain.data, 2);
    ls_buf_append(b, segment, 15 + n);
    ls_buf_append(b, plain.data + 2, plain.len - 2);
    ls_buf_free(&plain);
}

/* The checksum of PNG. */
static uint32_t crc_of(const uint8_t *data, size_t n) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

/* A PNG file with an orientation, in a chunk behind the header's 33 bytes. */
static void put_exif_png(ls_buf *b, const uint8_t *pixels, ls_image_shape s, int orientation) {
    ls_buf plain = {0};
    uint8_t chunk[64] = {0, 0, 0, 0, 'e', 'X', 'I', 'f'};
    size_t n = put_tiff(chunk + 8, orientation % 2, orientation);
    uint32_t crc = crc_of(chunk + 4, n + 4);
    chunk[3] = (uint8_t)n;
    for (size_t i = 0; i < 4; i++) chunk[8 + n + i] = (uint8_t)(crc >> (24 - 8 * i));
    picture_png(&plain, pixels, s);
    ls_buf_append(b, plain.data, 33);
    ls_buf_append(b, chunk, 12 + n);
    ls_buf_append(b, plain.data + 33, plain.len - 33);
    ls_buf_free(&plain);
}

/* Photographs are read upright, or as they are stored. */
static void test_exif(void **state) {
    (void)state;
    enum { H = 16, W = 24 };
    ls_image_shape s = {H, W, 3};
    uint8_t pixels[H * W * 3], expected[H * W * 3], out[H * W * 3];
    picture_fill(pixels, s, 3);
    for (int o = 1; o <= 8; o++)
        for (int png = 0; png < 2; png++) {
            ls_buf b = {0};
            ls_error e = {0};
            ls_image_seen seen;
            (png ? put_exif_png : put_exif_jpeg)(&b, pixels, s, o);
            const uint8_t *data = (const uint8_t *)b.data;
            assert_int_equal(ls_orientation_find(data, b.len), o);
            assert_ls_ok(ls_image_fit_inspect(false, data, b.len, &seen, &e), e);
            assert_int_equal(seen.turned, o != 1);
            ls_image_fit f = {.shape = seen.shape};
            assert_ls_ok(ls_image_fit_decode(&f, data, b.len, out, &e), e);
            ls_orientation_turn(o, pixels, s, expected);
            for (size_t i = 0; i < sizeof out; i++) assert_true(abs(out[i] - expected[i]) <= 12);
            f = (ls_image_fit){.shape = s, .unturned = true};
            assert_ls_ok(ls_image_fit_decode(&f, data, b.len, out, &e), e);
            for (size_t i = 0; i < sizeof out; i++) assert_true(abs(out[i] - pixels[i]) <= 12);
            ls_buf_free(&b);
        }
}

/* Files that end at any byte, and others with any byte changed: an orientation, or none. */
static void test_hostile_exif(void **state) {
    (void)state;
    uint8_t pixels[8 * 8];
    memset(pixels, 9, sizeof pixels);
    for (int png = 0; png < 2; png++) {
        ls_buf b = {0};
        (png ? put_exif_png : put_exif_jpeg)(&b, pixels, (ls_image_shape){8, 8, 1}, 6);
        for (size_t n = 0; n <= b.len; n++) {
            uint8_t *part = ls_alloc(n + 1), *at = part + 1; /* ends with the allocation */
            memcpy(at, b.data, n);
            int o = ls_orientation_find(at, n);
            assert_in_range(o, 1, 8);
            for (size_t k = 0; n == b.len && k < n && k < 120; k++)
                for (int v = 0; v < 256; v += 5) {
                    uint8_t was = at[k];
                    at[k] = (uint8_t)(v + (v == 255 ? 0 : (int)(k % 5)));
                    assert_in_range(ls_orientation_find(at, n), 1, 8);
                    at[k] = was;
                }
            free(part);
        }
        ls_buf_free(&b);
    }
}

/* ---- decisions ---- */

static ls_image_fit decided(const ls_image_way *w, const int (*sizes)[3], int n, int64_t *side_p) {
    ls_image_sizes s = {0};
    ls_source source = {0};
    ls_image_fit f = {0};
    ls_error e = {0};
    for (int i = 0; i < n; i++)
        ls_image_sizes_add(&s, (ls_image_seen){{sizes[i][0], sizes[i][1], sizes[i][2]}, false});
    ls_image_sizes_end(&s);
    ls_image_case c = {w, &s, "image", "data"};
    assert_ls_ok(ls_image_fit_decide(&c, &f, &source, &e), e);
    ls_image_sizes_free(&s);
    *side_p = source.side;
    return f;
}

static void test_decisions(void **state) {
    (void)state;
    static const int photos[][3] = {{3000, 4000, 3}, {4000, 3000, 1}, {480, 640, 3}};
    static const int same[][3] = {{30, 40, 1}, {30, 40, 1}};
    static const int small[][3] = {{45, 90, 1}, {100, 41, 1}, {47, 47, 1}};
    int64_t side = 0;
    ls_image_fit f = decided(NULL, photos, 3, &side);
    assert_int_equal(side, LS_IMAGE_USUAL_SIDE);
    assert_true(f.scaling == LS_IMAGE_TO_COVER && f.shape.channels == 3);
    f = decided(NULL, same, 2, &side);
    assert_true(side == 0 && f.scaling == LS_IMAGE_AS_IT_IS && f.shape.width == 40 &&
                f.shape.channels == 1);
    decided(NULL, small, 3, &side);
    assert_int_equal(side, 32); /* 41, 45, 47: the median, in multiples of 16 */
    f = decided(&(ls_image_way){.side = 64}, photos, 3, &side);
    assert_true(f.scaling == LS_IMAGE_TO_SIDE && f.shape.height == 64 && f.shape.width == 64);
    f = decided(&(ls_image_way){.height = 64, .width = 48}, photos, 3, &side);
    assert_true(f.scaling == LS_IMAGE_TO_SIZE && f.shape.height == 64 && f.shape.width == 48);
    f = decided(&(ls_image_way){.side = 64, .crop_height = 56, .crop_width = 60}, photos, 3, &side);
    assert_true(f.shape.height == 56 && f.shape.width == 60 && side == 0);
    f = decided(&(ls_image_way){.channels = 1}, photos, 3, &side);
    assert_int_equal(f.shape.channels, 1);
}

static void refuses_key(const char *resize, const char *crop, const char *says) {
    ls_image_way w;
    ls_error e = {0};
    assert_ls_fails(ls_image_way_read(resize, crop, &w, &e), LS_EINVAL, says, e);
}

static void test_keys(void **state) {
    (void)state;
    ls_image_way w;
    ls_error e = {0};
    assert_ls_ok(ls_image_way_read("", "", &w, &e), e);
    assert_false(ls_image_way_is_given(&w));
    assert_ls_ok(ls_image_way_read("64", "56", &w, &e), e);
    assert_true(w.side == 64 && !w.height && w.crop_height == 56 && w.crop_width == 56);
    assert_ls_ok(ls_image_way_read("64x48", "32\n16", &w, &e), e);
    assert_true(!w.side && w.height == 64 && w.width == 48 && w.crop_width == 16);
    refuses_key("big", "", "data.resize: 'big' is not a number of pixels");
    refuses_key("0", "", "data.resize: '0'");
    refuses_key("64x", "", "data.resize: '64x'");
    refuses_key("64x64x3", "", "data.resize: '64x64x3'");
    refuses_key("", "99999", "data.crop: '99999'");
}

/* ---- pixels of other formats ---- */

/* Gray pixels of an IDX file as 8 x 8 in colour; labels stay. */
static void test_fitted(void **state) {
    (void)state;
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 4};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 1};
    uint8_t images[sizeof head + 32];
    memcpy(images, head, sizeof head);
    for (int i = 0; i < 32; i++) images[sizeof head + (size_t)i] = (uint8_t)(i < 16 ? 7 : 200);
    put_file("@i-images-idx3-ubyte", images, sizeof images);
    put_file("@i-labels-idx1-ubyte", labels, sizeof labels);
    const ls_image_way way = {.side = 8, .channels = 3}, off = {.unturned = true};
    ls_error e = {0};
    ls_source *s = opened("@i-images-idx3-ubyte\n@i-labels-idx1-ubyte", NULL), *out = NULL;
    assert_ls_ok(ls_fitted_open(s, &way, "data", &out, &e), e);
    assert_true(has_shape(&out->fields[0], "image", LS_U8, 3, (int64_t[]){8, 8, 3}));
    uint8_t *sample = sample_of(out, 1);
    for (int i = 0; i < 8 * 8 * 3; i++) assert_int_equal(sample[i], 200);
    assert_int_equal(sample[out->fields[1].offset], 1);
    free(sample);
    assert_ls_ok(ls_source_verify(out, &e), e);
    ls_source_close(out);
    s = opened("@i-labels-idx1-ubyte", NULL);
    assert_ls_fails(ls_fitted_open(s, &way, "data", &out, &e), LS_EINVAL, "has no images", e);
    s = opened("@i-images-idx3-ubyte", NULL);
    assert_ls_fails(ls_fitted_open(s, &off, "data", &out, &e), LS_EINVAL, "no JPEG or PNG", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resample),
        cmocka_unit_test(test_pillow),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_exif),
        cmocka_unit_test(test_hostile_exif),
        cmocka_unit_test(test_decisions),
        cmocka_unit_test(test_keys),
        cmocka_unit_test_setup_teardown(test_fitted, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
