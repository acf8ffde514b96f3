/* image_test.c - images are decoded to the pixels that were written, or to recorded bits; damaged
 * ones are refused. */
#include "source/images/image.h"

#include "base/file.h"
#include "base/hash.h"
#include "source/pictures.h"
#include "test.h"

enum { H = 37, W = 53, MOST = H * W * 8 };
static uint8_t pixels[MOST], out[MOST];

static const uint8_t *bytes(const ls_buf *b) { return (const uint8_t *)b->data; }

static void assert_shape(const ls_buf *b, int channels) {
    ls_error e = {0};
    ls_image_shape s = {0};
    assert_ls_ok(ls_image_inspect(bytes(b), b->len, &s, &e), e);
    assert_int_equal(s.height, H);
    assert_int_equal(s.width, W);
    assert_int_equal(s.channels, channels);
}

static void decode(const ls_buf *b, int channels) {
    ls_error e = {0};
    memset(out, 0xa5, sizeof out);
    assert_ls_ok(ls_image_decode(bytes(b), b->len, (ls_image_shape){H, W, channels}, out, &e), e);
    assert_int_equal(out[H * W * channels], 0xa5); /* nothing behind it is written */
}

/* Each kind of PNG; a pixel's expected samples are computed here from the raw row. */
static int png_sample(int type, int bits, int x, int y, int c) {
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    size_t row = ((size_t)W * (size_t)(channels[type] * bits) + 7) / 8;
    const uint8_t *r = pixels + (size_t)y * row;
    int at = x * channels[type] + (channels[type] > 2 ? c : 0), v;
    if (bits == 16)
        v = (int)((r[2 * at] * 256 + r[2 * at + 1]) * 255.0 / 65535.0 + 0.5);
    else
        v = r[at * bits / 8] >> (8 - bits - at * bits % 8) & ((1 << bits) - 1);
    if (type == PNG_COLOR_TYPE_PALETTE) return c == 0 ? v : c == 1 ? 2 * v % 256 : 255 - v;
    return bits < 8 ? v * 255 / ((1 << bits) - 1) : v;
}

static void test_png(void **state) {
    (void)state;
    static const int kinds[][2] = {
        {PNG_COLOR_TYPE_GRAY, 1},       {PNG_COLOR_TYPE_GRAY, 2},
        {PNG_COLOR_TYPE_GRAY, 4},       {PNG_COLOR_TYPE_GRAY, 8},
        {PNG_COLOR_TYPE_GRAY, 16},      {PNG_COLOR_TYPE_RGB, 8},
        {PNG_COLOR_TYPE_RGB, 16},       {PNG_COLOR_TYPE_PALETTE, 1},
        {PNG_COLOR_TYPE_PALETTE, 4},    {PNG_COLOR_TYPE_PALETTE, 8},
        {PNG_COLOR_TYPE_GRAY_ALPHA, 8}, {PNG_COLOR_TYPE_GRAY_ALPHA, 16},
        {PNG_COLOR_TYPE_RGB_ALPHA, 8},  {PNG_COLOR_TYPE_RGB_ALPHA, 16},
    };
    for (size_t i = 0; i < sizeof pixels; i++) pixels[i] = (uint8_t)(i * i * 31 + i / 7);
    for (size_t k = 0; k < 2 * sizeof kinds / sizeof *kinds; k++) {
        int type = kinds[k / 2][0], bits = kinds[k / 2][1];
        int own = type & PNG_COLOR_MASK_COLOR ? 3 : 1;
        ls_buf b = {0};
        picture_png_as(&b, pixels, (ls_image_shape){H, W, 1}, type, bits, k % 2);
        assert_shape(&b, own);
        for (int n = own; n <= 3; n += 2) {
            decode(&b, n);
            for (int i = 0; i < H * W * n; i++)
                assert_int_equal(out[i], png_sample(type, bits, i / n % W, i / n / W, i % n));
        }
        ls_buf_free(&b);
    }
}

/* A smooth image of high quality comes back close to what was written. */
static void test_jpeg(void **state) {
    (void)state;
    for (int k = 0; k < 8; k++) {
        ls_buf b = {0};
        ls_image_shape s = {H, W, k & 1 ? 1 : 3};
        picture_fill(pixels, s, k);
        picture_jpeg(&b, pixels, s,
                     (picture_options){
                         .quality = 98,
                         .sampling = k & 2 ? 2 : 1,
                         .progressive = (k & 4) != 0,
                         .space = k == 0 ? JCS_RGB : 0,
                     });
        assert_shape(&b, s.channels);
        decode(&b, s.channels);
        for (int i = 0; i < H * W * s.channels; i++)
            assert_in_range(out[i] + 20, pixels[i] < 1 ? 0 : pixels[i], pixels[i] + 40);
        if (s.channels == 1) { /* as three channels: each pixel three times */
            memcpy(pixels, out, H * W);
            decode(&b, 3);
            for (int i = 0; i < H * W * 3; i++) assert_int_equal(out[i], pixels[i / 3]);
        }
        ls_buf_free(&b);
    }
}

/* The JPEG image b with three bytes that belong to nothing at an offset. */
static ls_buf with_bytes(const ls_buf *b, size_t at) {
    ls_buf more = {0};
    ls_buf_append(&more, b->data, at);
    ls_buf_append(&more, "abc", 3);
    ls_buf_append(&more, b->data + at, b->len - at);
    return more;
}

/* Bytes between the parts of a header change no pixel. */
static void test_bytes_between(void **state) {
    (void)state;
    const ls_image_shape s = {16, 24, 3};
    uint8_t from[16 * 24 * 3], one[sizeof from], two[sizeof from];
    ls_buf b = {0};
    ls_error e = {0};
    picture_fill(from, s, 3);
    picture_jpeg(&b, from, s, (picture_options){0});
    size_t behind_app0 = 4 + (size_t)(uint8_t)b.data[4] * 256 + (uint8_t)b.data[5];
    ls_buf more = with_bytes(&b, behind_app0);
    assert_ls_ok(ls_image_decode((const uint8_t *)b.data, b.len, s, one, &e), e);
    assert_ls_ok(ls_image_decode((const uint8_t *)more.data, more.len, s, two, &e), e);
    assert_memory_equal(one, two, sizeof one);
    ls_buf_free(&b);
    ls_buf_free(&more);
}

/* Files whose decoded bits are recorded: another version of the library must give the same. */
static void test_recorded_bits(void **state) {
    (void)state;
    static const struct {
        const char *path, *hash;
    } files[] = {
        {"tests/source/chroma420.jpg", "7ae220a795a67015d791d721fbe99e89"},
        {"tests/source/progressive.jpg", "881e4ce630a546f8ea55717aa148d506"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        ls_error e = {0};
        ls_buf b = {0};
        char text[LS_HASH_TEXT];
        assert_ls_ok(ls_file_read(files[i].path, 1 << 20, &b, &e), e);
        decode(&b, 3);
        ls_hash_text(ls_hash_bytes(out, H * W * 3), text);
        assert_string_equal(text, files[i].hash);
        ls_buf_free(&b);
    }
    assert_non_null(strstr(ls_image_decoders(), "libjpeg-turbo "));
    assert_non_null(strstr(ls_image_decoders(), "libpng 1."));
}

/* Cut anywhere, an image is refused: no pixel is invented. */
static void test_cut(void **state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        ls_buf b = {0};
        ls_image_shape s = {H, W, 3};
        ls_error e;
        picture_fill(pixels, s, k);
        if (k == 0)
            picture_png(&b, pixels, s);
        else
            picture_jpeg(&b, pixels, s, (picture_options){.progressive = k == 2});
        for (size_t n = 0; n < b.len; n++) {
            uint8_t *part = malloc(n + !n); /* so that a sanitizer sees reads beyond it */
            assert_non_null(part);
            memcpy(part, b.data, n);
            assert_ls_fails(ls_image_decode(part, n, s, out, &e), LS_EINVAL, "", e);
            assert_true(e.msg[0]);
            free(part);
        }
        ls_buf_free(&b);
    }
}

static void test_refused(void **state) {
    (void)state;
    ls_buf b = {0};
    ls_error e;
    ls_image_shape s = {H, W, 3}, found;
    assert_ls_fails(ls_image_inspect(NULL, 0, &found, &e), LS_EINVAL, "empty (0 bytes)", e);
    assert_ls_fails(ls_image_inspect((const uint8_t *)"GIF89a..", 8, &found, &e), LS_EINVAL,
                    "not a JPEG or PNG image, but a GIF: convert it", e);
    static const char *const others[][2] = {{"RIFF....WEBPVP8 ", "but a WebP: "},
                                            {"....ftypheic....", "but a HEIC: "},
                                            {"....ftypmif1....", "but a HEIF: "},
                                            {"....ftypavif....", "but an AVIF: "},
                                            {"not an image....", "not a JPEG or PNG image"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_ls_fails(ls_image_inspect((const uint8_t *)others[i][0], 16, &found, &e), LS_EINVAL,
                        others[i][1], e);
    picture_fill(pixels, s, 0);
    picture_png(&b, pixels, s);
    assert_ls_fails(ls_image_decode(bytes(&b), b.len, (ls_image_shape){H, W, 1}, out, &e),
                    LS_EINVAL, "with 3 channels instead of 53 x 37 with 1", e);
    assert_ls_fails(ls_image_decode(bytes(&b), b.len, (ls_image_shape){H, W + 1, 3}, out, &e),
                    LS_EINVAL, "53 x 37 pixels with 3 channels instead of 54 x 37", e);
    b.data[b.len / 2] = (char)~b.data[b.len / 2];
    assert_ls_fails(ls_image_decode(bytes(&b), b.len, s, out, &e), LS_EINVAL, "PNG image: ", e);
    b.len = 0; /* four channels: CMYK */
    picture_jpeg(&b, pixels, (ls_image_shape){H, W / 2, 4}, (picture_options){0});
    assert_ls_fails(ls_image_inspect(bytes(&b), b.len, &found, &e), LS_EINVAL, "convert it to RGB",
                    e);
    ls_buf_free(&b);
}

/* A few bytes that claim a huge image are refused before anything is allocated for it. */
static void test_huge(void **state) {
    (void)state;
    ls_buf b = {0};
    ls_error e;
    ls_image_shape s = {H, W, 3}, found;
    picture_fill(pixels, s, 0);
    picture_jpeg(&b, pixels, s, (picture_options){0});
    for (size_t i = 0; i + 8 < b.len; i++)
        if (b.data[i] == '\xff' && b.data[i + 1] == '\xc0')
            memcpy(b.data + i + 5, "\xff\xff\xff\xff", 4);
    assert_ls_fails(ls_image_inspect(bytes(&b), b.len, &found, &e), LS_EINVAL, "", e);
    assert_true(strstr(e.msg, "at most 16384 on a side") || strstr(e.msg, "65500"));
    b.len = 0;
    uint8_t *row = ls_alloc(20000);
    picture_png(&b, row, (ls_image_shape){1, 20000, 1});
    assert_ls_fails(ls_image_inspect(bytes(&b), b.len, &found, &e), LS_EINVAL,
                    "a PNG image of 20000 x 1 pixels; at most 16384 on a side", e);
    free(row);
    ls_buf_free(&b);
}

/* A progressive image whose last scan is repeated. */
static void test_scans(void **state) {
    (void)state;
    ls_buf b = {0}, many = {0};
    ls_error e;
    ls_image_shape s = {H, W, 1};
    picture_fill(pixels, s, 0);
    picture_jpeg(&b, pixels, s, (picture_options){.progressive = true});
    size_t scan = 0;
    for (size_t i = 0; i + 1 < b.len; i++)
        if (b.data[i] == '\xff' && b.data[i + 1] == '\xda' && !scan) scan = i;
    size_t end = scan + 2;
    while (!(b.data[end] == '\xff' && b.data[end + 1])) end++;
    ls_buf_append(&many, b.data, end);
    for (int i = 0; i < 200; i++) ls_buf_append(&many, b.data + scan, end - scan);
    ls_buf_append(&many, b.data + end, b.len - end);
    assert_ls_fails(ls_image_decode(bytes(&many), many.len, s, out, &e), LS_EINVAL,
                    "JPEG image: ", e);
    ls_buf_free(&b);
    ls_buf_free(&many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),           cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_bytes_between), cmocka_unit_test(test_recorded_bits),
        cmocka_unit_test(test_cut),           cmocka_unit_test(test_refused),
        cmocka_unit_test(test_huge),          cmocka_unit_test(test_scans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
