/* photos_test.c - a folder of photographs of several sizes: it trains as it is, with the same bits
 * for any workers, and the run's config has what a later reading needs. */
#include "cli/models.h"
#include "source/pictures.h"

enum { NCLASSES = 2, EACH = 12 };

/* Sizes from 24 to 50 pixels; every third is gray. */
static void put_photo(const char *dir, int class, int i) {
    ls_buf b = {0};
    uint8_t pixels[64 * 64 * 3];
    ls_image_shape s = {24 + 2 * i, 48 - i, i % 3 ? 3 : 1};
    char name[64];
    picture_fill(pixels, s, 5 * class + i % 2);
    picture_png(&b, pixels, s);
    snprintf(name, sizeof name, "%s/%s/%02d.png", dir, class ? "cats" : "ants", i);
    write_file(name, b.data, b.len);
    ls_buf_free(&b);
}

static int make(void **state) {
    static const char *const dirs[] = {"photos", "more"};
    static const char config[] =
        "model: {kind: cnn, channels: [4]}\n"
        "data: {path: @/photos, val_fraction: 0.2}\n"
        "train: {steps: 4, batch: 8, micro_batch: 1, virtual_workers: 4, eval_every: 2}\n"
        "optim: {lr: 0.01, warmup: 1}\n";
    if (folder_make(state)) return -1;
    for (int d = 0; d < 2; d++) {
        char line[256];
        snprintf(line, sizeof line, "mkdir -p %s/%s/ants %s/%s/cats", folder, dirs[d], folder,
                 dirs[d]);
        if (system(line) != 0) return -1;
        for (int i = 0; i < EACH; i++)
            for (int c = 0; c < NCLASSES; c++) put_photo(dirs[d], c, d ? EACH - 1 - i : i);
    }
    ls_buf text = {0};
    for (const char *c = config; *c; c++) {
        if (*c == '@')
            ls_buf_printf(&text, "%s", folder);
        else
            ls_buf_append(&text, c, 1);
    }
    write_file("photos.yaml", text.data, text.len);
    ls_buf_free(&text);
    return 0;
}

#define TRAIN "train @/photos.yaml "
#define AUTO  "--set data.normalize=auto "

static void test_run(void **state) {
    (void)state;
    char *one = NULL, *two = NULL, *config = NULL;
    size_t n = 0;
    expect(
        TRAIN AUTO "-n 1 -o @/one", 0,
        "photos: images of 12 sizes, 24x48 to 46x37 pixels are read as 32x32: scaled, and cut to "
        "the centre; data.resize sets another size");
    expect(TRAIN AUTO "-n 2 -o @/two --set data.threads=3", 0, "accuracy");
    one = output_of("ckpt hash @/one");
    two = output_of("ckpt hash @/two");
    assert_string_equal(one, two);
    config = read_file("one/config.yaml", &n);
    assert_non_null(strstr(config, "resize: \"32\""));
    assert_non_null(strstr(config, "normalize: {\"mean\": [\"0."));
    assert_non_null(strstr(config, "[\"32\", \"32\", \"3\"]"));
    free(config);
    expect("train --resume @/one -n 2 --set train.steps=6", 0, "accuracy");
    expect("eval @/one --set data.val_path=@/more", 0, "24 samples of ");
    expect("train --resume @/one --set data.resize=16", 1, "data.resize");
    free(one);
    free(two);
}

/* The model's input decides, unless a random crop hides what it was. */
static void test_sizes(void **state) {
    (void)state;
    expect(TRAIN "--set model.input={image:\t[20,28,3]} --set model.classes=2 -o @/a", 0,
           "are read as 20x28, the size of the model's input");
    expect(TRAIN "--set data.resize=20x28 --set data.channels=1 -o @/b", 0, "u8 [20, 28, 1]");
    expect(TRAIN "--set data.augment=[{crop:\t24}] -o @/c", 0, "u8 [24, 24, 3]");
    expect(TRAIN "--set data.augment=[{crop:\t24}] --set model.input={image:\t[24,24,3]} "
                 "--set model.classes=2 -o @/d",
           1,
           "images of several sizes, of which data.augment cuts a part; set data.resize, e.g. 32");
    expect(TRAIN "--set data.crop=40 -o @/e", 1,
           "an image of 24x48 pixels has 24x48, and data.crop");
    expect(TRAIN "--set data.resize=0 -o @/f", 1, "data.resize: '0' is not a number of pixels");
    expect(TRAIN "--set data.normalize={mean:\t[0.5]} -o @/g", 1, "data.normalize is auto, off,");
    expect(TRAIN "--set data.normalize={mean:\t[0.5],\tdeviation:\t[0.5]} -o @/h", 1,
           "data.normalize has 1 mean, and the image has 3 channels");
}

/* What has no classes can't be trained on by class, and is predicted; a directory with a damaged
 * image is one of images. */
static void test_no_classes(void **state) {
    (void)state;
    char line[512];
    snprintf(
        line, sizeof line,
        "cd %s && mkdir -p parts mixed/2023/may && cp -r photos parts/train && "
        "cp -r photos parts/val && cp photos/ants/0*.png mixed && "
        "cp photos/cats/0*.png mixed/2023/may && cp -r photos bad && echo no >bad/ants/00.png && "
        "cp bad/ants/00.png bad/README.txt",
        folder);
    assert_int_equal(system(line), 0);
    expect(TRAIN "--set data.path=@/parts -o @/p", 1, "train and val, are the parts of a data set");
    expect("data @/parts", 0, "train and val, are the parts of a data set");
    expect(TRAIN "--set data.path=@/mixed -o @/p", 1,
           "an image outside of the sub-directories, so");
    expect("predict @/one @/mixed", 0, "2023/may/09.png");
    expect("predict @/one @/parts", 0, "val/cats/09.png");
    expect("data @/bad", 1, "bad/ants/00.png: not a JPEG or PNG image; repair the file, or skip");
    expect("predict @/one @/bad --set data.damaged=skip", 0, "skipped: ");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_run), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_no_classes)};
    return cmocka_run_group_tests(tests, make, folder_remove);
}
