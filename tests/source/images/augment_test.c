/* augment_test.c - changes of images against pixels that another program computed, against steps
 * made one after the other, and by their frequencies; and sources whose images are changed. */
#include "source/images/augmented.h"

#include <math.h>

#include "base/random.h"
#include "source/samples.h"

static ls_augment list(const char *text) {
    ls_augment a;
    ls_error e = {0};
    assert_ls_ok(ls_augment_read(text, &a, &e), e);
    return a;
}

static ls_field image_of(int64_t height, int64_t width, int64_t channels) {
    return (ls_field){.name = "image",
                      .type = LS_U8,
                      .ndims = 3,
                      .dims = {height, width, channels},
                      .nbytes = (size_t)(height * width * channels)};
}

/* ---- known pixels ---- */

static const uint8_t small[4][5] = {
    {11, 12, 13, 14, 15}, {21, 22, 23, 24, 25}, {31, 32, 33, 34, 35}, {41, 42, 43, 44, 45}};

/* By a program in Python, with its own Philox. */
static const struct {
    uint64_t epoch, sample;
    uint8_t pixels[4][5];
} recorded[] = {
    {0, 0, {{0, 0, 0, 0, 0}, {0, 13, 14, 15, 0}, {22, 23, 24, 25, 0}, {32, 33, 34, 35, 0}}},
    {0, 1, {{25, 0, 0, 22, 21}, {35, 0, 0, 32, 31}, {45, 44, 43, 42, 41}, {0, 0, 0, 0, 0}}},
    {1, 0, {{12, 13, 14, 15, 0}, {22, 23, 0, 0, 0}, {32, 33, 0, 0, 0}, {42, 43, 44, 45, 0}}},
    {7,
     ((uint64_t)1 << 40) + 3,
     {{0, 0, 0, 0, 0}, {0, 15, 14, 13, 12}, {0, 25, 24, 23, 22}, {0, 35, 34, 33, 32}}},
};

static void test_recorded(void **state) {
    (void)state;
    ls_augment a = list("pad=1\nflip=0.5\ncrop=4x5\ncutout=2");
    ls_field f = image_of(4, 5, 1);
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        ls_draw d = {.seed = 77, .epoch = recorded[i].epoch, .sample = recorded[i].sample};
        uint8_t out[4][5];
        ls_augment_apply(&a, &d, &f, &small[0][0], &out[0][0]);
        assert_memory_equal(out, recorded[i].pixels, sizeof out);
    }
}

static void gives(const char *text, const uint8_t *pixels, size_t nbytes) {
    ls_augment a = list(text);
    ls_field f = image_of(4, 5, 1), shape = f;
    ls_error e = {0};
    uint8_t out[256];
    assert_ls_ok(ls_augment_shape(&a, "data", &shape, &e), e);
    assert_int_equal(shape.dims[0] * shape.dims[1], nbytes);
    ls_augment_apply(&a, NULL, &f, &small[0][0], out);
    assert_memory_equal(out, pixels, nbytes);
}

/* Nothing random: the centre, and paddings. */
static void test_validation(void **state) {
    (void)state;
    gives("", &small[0][0], sizeof small);
    gives("flip=1\ncutout=3", &small[0][0], sizeof small);
    gives("pad=2\ncrop=4x5\nflip=0.5", &small[0][0], sizeof small);
    gives("crop=2x3", (const uint8_t[]){22, 23, 24, 32, 33, 34}, 6);
    gives("crop=1\npad=1", (const uint8_t[]){0, 0, 0, 0, 23, 0, 0, 0, 0}, 9);
}

/* ---- against steps one after the other ---- */

enum { SIDE = 40, CHANNELS = 3 };

typedef struct picture {
    int64_t height, width;
    uint8_t at[SIDE][SIDE][CHANNELS];
} picture;

static void take(picture *p, const ls_augment_step *s, const uint32_t *w) {
    picture was = *p;
    int64_t down = 0, right = 0, H = p->height, W = p->width;
    if (s->kind == LS_AUGMENT_PAD) {
        down = right = -s->height;
        p->height += 2 * s->height;
        p->width += 2 * s->height;
    }
    if (s->kind == LS_AUGMENT_CROP) {
        down = (int64_t)((double)w[0] / 4294967296.0 * (double)(H - s->height + 1));
        right = (int64_t)((double)w[1] / 4294967296.0 * (double)(W - s->width + 1));
        p->height = s->height;
        p->width = s->width;
    }
    int64_t top = (int64_t)((double)w[0] / 4294967296.0 * (double)H) - s->height / 2;
    int64_t left = (int64_t)((double)w[1] / 4294967296.0 * (double)W) - s->height / 2;
    bool flips = s->kind == LS_AUGMENT_FLIP && (double)w[0] / 4294967296.0 < s->p;
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width; x++)
            for (int c = 0; c < CHANNELS; c++) {
                int64_t r = y + down, q = flips ? W - 1 - x : x + right;
                bool there = r >= 0 && r < H && q >= 0 && q < W;
                if (s->kind == LS_AUGMENT_CUTOUT && y >= top && y < top + s->height && x >= left &&
                    x < left + s->height)
                    there = false;
                p->at[y][x][c] = there ? was.at[r][q][c] : 0;
            }
}

/* A list of up to 6 steps at random, each possible for the image then. */
static ls_augment any_list(uint64_t k, picture p) {
    ls_augment a = {0};
    uint32_t w[4];
    ls_random_words(1, LS_STREAM_FAKE, k, 0, w);
    for (int n = (int)(w[0] % 7); a.nsteps < n;) {
        ls_augment_step *s = &a.steps[a.nsteps++];
        ls_random_words(1, LS_STREAM_FAKE, k, (uint64_t)a.nsteps, w);
        s->kind = (ls_augment_kind)(w[0] % 4);
        if (s->kind == LS_AUGMENT_PAD && (p.height > 30 || p.width > 30)) s->kind = LS_AUGMENT_FLIP;
        s->p = 0.5;
        s->height = s->width = 1 + w[1] % 5;
        if (s->kind == LS_AUGMENT_CROP) {
            s->height = p.height = 1 + w[1] % p.height;
            s->width = p.width = 1 + w[2] % p.width;
        }
        if (s->kind == LS_AUGMENT_PAD) {
            p.height += 2 * s->height;
            p.width += 2 * s->height;
        }
    }
    return a;
}

static void test_one_by_one(void **state) {
    (void)state;
    static picture p;
    for (uint64_t k = 0; k < 3000; k++) {
        uint8_t in[SIDE * SIDE * CHANNELS], out[SIDE * SIDE * CHANNELS];
        p.height = 1 + (int64_t)(k % 11);
        p.width = 1 + (int64_t)(k % 13);
        size_t n = 0;
        for (int64_t y = 0; y < p.height; y++)
            for (int64_t x = 0; x < p.width; x++)
                for (int c = 0; c < CHANNELS; c++)
                    in[n++] = p.at[y][x][c] =
                        (uint8_t)(1 + (31 * y + 7 * x + c + (int64_t)k) % 255);
        ls_augment a = any_list(k, p);
        ls_field f = image_of(p.height, p.width, CHANNELS);
        ls_draw d = {.seed = 5, .epoch = k % 3, .sample = k};
        ls_augment_apply(&a, &d, &f, in, out);
        for (int i = 0; i < a.nsteps; i++) {
            uint32_t w[4];
            ls_random_words(5, LS_STREAM_AUGMENT, d.epoch, 16 * k + (uint64_t)i, w);
            take(&p, &a.steps[i], w);
        }
        for (int64_t y = 0; y < p.height; y++)
            assert_memory_equal(out + y * p.width * CHANNELS, p.at[y],
                                (size_t)(p.width * CHANNELS));
    }
}

/* ---- frequencies ---- */

/* Half of the images are mirrored, all places of a crop are as frequent, and a sample is drawn
 * otherwise in each epoch. */
static void test_frequencies(void **state) {
    (void)state;
    enum { DRAWS = 9000 };
    ls_augment flip = list("flip=0.5"), crop = list("crop=2x3"), never = list("flip=0"),
               always = list("flip=1");
    ls_field f = image_of(4, 5, 1);
    int mirrored = 0, equal = 0, places[64] = {0};
    for (uint64_t k = 0; k < DRAWS; k++) {
        ls_draw d = {.seed = 1, .sample = k}, other = {.seed = 1, .epoch = 1, .sample = k};
        uint8_t a[20], b[20];
        ls_augment_apply(&flip, &d, &f, &small[0][0], a);
        mirrored += a[0] == 15;
        ls_augment_apply(&flip, &other, &f, &small[0][0], b);
        equal += a[0] == b[0];
        ls_augment_apply(&never, &d, &f, &small[0][0], a);
        assert_memory_equal(a, small, sizeof small);
        ls_augment_apply(&always, &d, &f, &small[0][0], a);
        assert_int_equal(a[0], 15);
        ls_augment_apply(&crop, &d, &f, &small[0][0], a);
        places[a[0]]++;
    }
    assert_in_range(mirrored, 4250, 4750); /* 4500 +- 5 deviations */
    assert_in_range(equal, 4250, 4750);
    for (int y = 10; y <= 30; y += 10)
        for (int x = 1; x <= 3; x++) assert_in_range(places[y + x], 850, 1150);
}

/* ---- steps that compute pixels ---- */

/* Each step of a list gives what it gives alone, from what the ones before gave. */
static void test_stages(void **state) {
    (void)state;
    static const char *const steps[] = {"flip=1",   "brightness=0.4",   "crop=7x6",
                                        "hue=0.2",  "resized_crop=9x5", "pad=1",
                                        "cutout=2", "contrast=0.3"};
    uint8_t in[10 * 8 * 3], a[256 * 3], b[256 * 3], whole[256 * 3];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (uint8_t)(i * 37 % 251);
    ls_buf text = {0};
    for (int i = 0; i < 8; i++) ls_buf_printf(&text, "%s%s", i ? "\n" : "", steps[i]);
    ls_augment all = list(text.data);
    ls_buf_free(&text);
    for (uint64_t k = 0; k < 50; k++) {
        ls_draw d = {.seed = 3, .epoch = k % 2, .sample = k};
        ls_field f = image_of(10, 8, 3), shape = f;
        ls_error e = {0};
        ls_augment_apply(&all, &d, &f, in, whole);
        memcpy(a, in, sizeof in);
        for (int i = 0; i < 8; i++) {
            /* the step stands at its place in the list, behind steps that do nothing */
            ls_augment one = {.nsteps = i + 1};
            for (int j = 0; j < i; j++) one.steps[j] = (ls_augment_step){.kind = LS_AUGMENT_FLIP};
            one.steps[i] = all.steps[i];
            ls_augment_apply(&one, &d, &f, a, b);
            assert_ls_ok(ls_augment_shape(&one, "data", &f, &e), e);
            memcpy(a, b, sizeof a);
        }
        assert_ls_ok(ls_augment_shape(&all, "data", &shape, &e), e);
        assert_memory_equal(whole, a, (size_t)(shape.dims[0] * shape.dims[1] * 3));
    }
}

/* Parts are within the image, of the areas and ratios that are asked for, and everywhere. */
static void test_parts(void **state) {
    (void)state;
    enum { SIDE_PX = 200, DRAWS = 2000 };
    static uint8_t in[SIDE_PX * SIDE_PX], out[2 * 2];
    ls_augment a = list("resized_crop=2\tscale=0.25");
    ls_field f = image_of(SIDE_PX, SIDE_PX, 1);
    for (int y = 0; y < SIDE_PX; y++)
        for (int x = 0; x < SIDE_PX; x++) in[y * SIDE_PX + x] = (uint8_t)x;
    int nleft = 0, nright = 0;
    double sum = 0;
    for (uint64_t k = 0; k < DRAWS; k++) {
        ls_augment_apply(&a, &(ls_draw){.seed = 1, .sample = k}, &f, in, out);
        double width = (out[1] - out[0]) / 0.40476; /* triangles cut at the borders: their means */
        assert_true(width > 200 * sqrt(0.25 * 0.75) - 5 && width < 205);
        sum += width;
        nleft += (out[0] + out[1]) / 2 < 90;
        nright += (out[0] + out[1]) / 2 > 110;
    }
    assert_true(sum / DRAWS > 140 && sum / DRAWS < 165); /* sqrt of a mean area of 0.6 */
    assert_true(nleft > DRAWS / 6 && nright > DRAWS / 6);
    ls_augment_apply(&a, NULL, &f, in, out); /* for validation all of it */
    assert_true(out[0] >= 58 && out[0] <= 60 && out[1] >= 139 && out[1] <= 141);
}

/* Gray has no colours to change. */
static void test_gray(void **state) {
    (void)state;
    ls_augment a = list("flip=1\nhue=0.1"), b = list("contrast=0.5");
    ls_field gray = image_of(4, 5, 1), colour = image_of(4, 5, 3);
    ls_error e = {0};
    assert_ls_fails(ls_augment_shape(&a, "data", &gray, &e), LS_EINVAL,
                    "data: 'image' is gray, and step 2 of data.augment", e);
    assert_ls_ok(ls_augment_shape(&a, "data", &colour, &e), e);
    assert_ls_ok(ls_augment_shape(&b, "data", &gray, &e), e);
}

/* ---- lists that are not possible ---- */

static void refused(const char *text, const char *says) {
    ls_augment a;
    ls_error e = {0};
    assert_ls_fails(ls_augment_read(text, &a, &e), LS_EINVAL, says, e);
    assert_int_equal(strncmp(e.msg, "data.augment: step ", 19), 0);
}

static void test_lists(void **state) {
    (void)state;
    ls_augment a = list("flip=0.25\npad=4\ncrop=28x24\ncutout=8\ncrop=7");
    assert_int_equal(a.nsteps, 5);
    assert_true(a.steps[0].p == 0.25 && a.steps[2].height == 28 && a.steps[2].width == 24);
    assert_true(a.steps[4].height == 7 && a.steps[4].width == 7);
    assert_int_equal(list("").nsteps, 0);
    refused("flip=1.5", "'1.5' is not a probability");
    refused("flip=nan", "'nan' is not a probability");
    refused("flip=", "'' is not a probability");
    refused("crop=28\npad=-1", "step 2: pad: '-1' is not a number of pixels");
    refused("pad=2x2", "'2x2'");
    refused("pad=99999999999999999999", "from 1 to 65536");
    refused("crop=0", "crop: '0' is not a size");
    refused("crop=28x", "'28x'");
    refused("crop=28x28x3", "'28x28x3'");
    refused("crop= 28", "' 28'");
    refused("cutout=8.5", "'8.5'");
    refused("rotate=3",
            "'rotate' is not a step; possible are flip, pad, crop, cutout, resized_crop, "
            "brightness, contrast, saturation and hue");
    refused("pad=4\tcrop=28", "several steps in one item");
    a = list("resized_crop=8x6\tscale=0.5\nbrightness=0.4\nhue=0.5");
    assert_true(a.steps[0].height == 8 && a.steps[0].width == 6 && a.steps[0].scale == 0.5);
    assert_true(list("resized_crop=8").steps[0].scale == 0.08 && a.steps[1].p == 0.4);
    refused("hue=0.6", "hue: '0.6' is not a number from 0 to 0.5");
    refused("contrast=-1", "contrast: '-1' is not a number from 0 to 10");
    refused("resized_crop=8\tscale=0", "scale: '0' is not a part of the image's area");
    refused("resized_crop=8\tflip=1", "several steps in one item");
    refused("flip=1\nflip=1\nflip=1\nflip=1\nflip=1\nflip=1\nflip=1\nflip=1\nflip=1\nflip=1\n"
            "flip=1\nflip=1\nflip=1\nflip=1\nflip=1\nflip=1",
            "step 16: at most 15 steps");
}

/* ---- sources ---- */

/* Two images of 4 x 5 pixels with labels, as CIFAR-like IDX files. */
static int two_images(void **state) {
    static const uint8_t head[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 5};
    static const uint8_t labels[] = {0, 0, 8, 1, 0, 0, 0, 2, 3, 1};
    uint8_t images[sizeof head + 2 * sizeof small];
    if (make_folder(state) != 0) return -1;
    memcpy(images, head, sizeof head);
    memcpy(images + sizeof head, small, sizeof small);
    memset(images + sizeof head + sizeof small, 9, sizeof small);
    put_file("@images-idx3-ubyte", images, sizeof images);
    put_file("@labels-idx1-ubyte", labels, sizeof labels);
    return 0;
}

static void test_source(void **state) {
    (void)state;
    ls_augment a = list("pad=1\nflip=0.5\ncrop=4x5\ncutout=2"), large = list("pad=1\ncrop=7");
    ls_source *s = opened("@images-idx3-ubyte\n@labels-idx1-ubyte", NULL), *changed = NULL;
    ls_error e = {0};
    assert_ls_ok(ls_augmented_open(s, &a, "images", &changed, &e), e);
    const ls_field *image = ls_source_field(changed, "image"),
                   *label = ls_source_field(changed, "label");
    assert_non_null(image);
    uint8_t *sample = ls_alloc(changed->nbytes);
    int32_t value = 0;
    ls_draw d = {.seed = 77, .epoch = recorded[2].epoch, .sample = recorded[2].sample};
    assert_ls_ok(changed->read(changed, 0, sample, &e), e);
    assert_memory_equal(sample + image->offset, small, sizeof small);
    assert_ls_ok(ls_source_draw(changed, d.sample, &d, sample, &e), e);
    assert_memory_equal(sample + image->offset, recorded[2].pixels, sizeof small);
    memcpy(&value, sample + label->offset, sizeof value);
    assert_int_equal(value, 3);
    free(sample);
    ls_source_close(changed);
    s = opened("@images-idx3-ubyte", NULL);
    assert_ls_fails(ls_augmented_open(s, &large, "my/images", &changed, &e), LS_EINVAL,
                    "my/images: 'image' is 6 pixels high and 7 wide at step 2", e);
    s = opened("@labels-idx1-ubyte", NULL);
    assert_ls_fails(ls_augmented_open(s, &a, "my/labels", &changed, &e), LS_EINVAL,
                    "my/labels: data.augment changes images, and there are none", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_validation),
        cmocka_unit_test(test_one_by_one),
        cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_gray),
        cmocka_unit_test(test_lists),
        cmocka_unit_test_setup_teardown(test_source, two_images, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
