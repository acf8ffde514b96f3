/* pixel_cache_test.c - scaled pixels in the cache: what is found is what would be decoded, of each
 * format; other files and other sizes have others; damage, changes and limits. */
#include "source/pixel_cache.h"

#include "source/samples.h"

static const ls_image_way small = {.height = 5, .width = 4}, other = {.height = 4, .width = 5};

static int make_sets(void **state) {
    if (make_folder(state) != 0) return -1;
    char line[256];
    snprintf(line, sizeof line, "python3 tests/source/write_sets.py %s && sleep 0.03", folder);
    return system(line) != 0;
}

static ls_source *open_kept(const char *paths, const ls_image_way *way, uint64_t nbytes) {
    return opened(paths, &(ls_source_options){.images = way, .pixels_nbytes = nbytes});
}

/* The image of a sample as it is found; NULL: it is not there. */
static uint8_t *found(const ls_source *s, uint64_t i) {
    const ls_field *f = ls_source_field(s, "image");
    if (!f) f = ls_source_field(s, "photo");
    uint8_t *out = ls_alloc(f->nbytes);
    if (ls_pixel_cache_get(s->pixels, i, f->offset, out)) return out;
    free(out);
    return NULL;
}

static uint64_t nfound(const ls_source *s) {
    uint64_t n = 0;
    for (uint64_t i = 0; i < s->count; i++) {
        uint8_t *image = found(s, i);
        n += image != NULL;
        free(image);
    }
    return n;
}

/* Reads all samples and compares them with those of `plain`, which are decoded. */
static void assert_alike(const ls_source *s, const ls_source *plain) {
    assert_int_equal(s->count, plain->count);
    for (uint64_t i = 0; i < s->count; i++) {
        uint8_t *a = sample_of(s, i), *b = sample_of(plain, i);
        for (int k = 0; k < s->nfields; k++)
            assert_memory_equal(a + s->fields[k].offset, b + s->fields[k].offset,
                                s->fields[k].nbytes);
        free(a);
        free(b);
    }
}

static void test_formats(void **state) {
    (void)state;
    static const char *const sets[] = {"@tree", "@all.tar", "@images.tfrecord", "@mdsphotos"};
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++) {
        ls_source *plain = open_kept(sets[k], &small, 0);
        assert_null(plain->pixels);
        for (int known = 0; known < 2; known++) {
            ls_source *s = open_kept(sets[k], &small, 1 << 20);
            assert_non_null(s->pixels);
            assert_int_equal(nfound(s), known ? s->count : 0);
            assert_alike(s, plain);
            assert_int_equal(nfound(s), s->count);
            ls_source_close(s);
        }
        ls_source *s = open_kept(sets[k], &other, 1 << 20);
        assert_int_equal(nfound(s), 0);
        ls_source_close(s);
        ls_source_close(plain);
    }
}

/* With images that are left out, samples have other numbers. */
static void test_left_out(void **state) {
    (void)state;
    ls_source_options o = {.images = &small, .skip_damaged = true};
    ls_source *plain = opened("@badimages.tfrecord", &o);
    o.pixels_nbytes = 1 << 20;
    ls_source *s = opened("@badimages.tfrecord", &o);
    assert_alike(s, plain);
    assert_alike(s, plain);
    ls_source_close(s);
    ls_source_close(plain);
}

/* Bytes that are lost or changed are decoded again. */
static void test_damaged(void **state) {
    (void)state;
    static const char *const damage[] = {
        "f=$(ls index/*.pixels) && printf x | dd of=$f bs=1 seek=90 conv=notrunc 2>/dev/null",
        "truncate -s 20 index/*.pixels", "f=$(ls index/*.pixels) && tac $f >t && cat t >$f",
        "rm index/*.pixels"};
    in_folder("rm -rf index");
    ls_source *plain = open_kept("@tree", &small, 0);
    for (size_t k = 0; k < sizeof damage / sizeof *damage; k++) {
        ls_source *s = open_kept("@tree", &small, 1 << 20);
        assert_alike(s, plain);
        in_folder(damage[k]);
        assert_alike(s, plain);
        ls_source_close(s);
        s = open_kept("@tree", &small, 1 << 20);
        assert_alike(s, plain);
        assert_int_equal(nfound(s), s->count);
        ls_source_close(s);
    }
    ls_source_close(plain);
}

/* An image that changes is noticed at its next reading; later it is another data set. */
static void test_changed(void **state) {
    (void)state;
    in_folder("rm -rf index new && cp -r tree new && sleep 0.03");
    ls_source *s = open_kept("@new", &small, 1 << 20);
    for (uint64_t i = 0; i < s->count; i++) free(sample_of(s, i));
    uint8_t *was = sample_of(s, 0), *sample = ls_alloc(s->nbytes);
    in_folder("f=$(ls new/*/*.png | head -1) && g=$(ls new/*/*.png | tail -1) && touch $f && "
              "sleep 0.03 && cp $f old && echo $f >name && echo $g >other");
    assert_ls_ok(s->read(s, 0, sample, NULL), (ls_error){0});
    assert_memory_equal(sample, was, s->fields[0].nbytes);
    in_folder("cp -p $(cat name) t && cat $(cat other) >$(cat name) && touch -r t $(cat name)");
    ls_error e = {0};
    assert_ls_fails(s->read(s, 0, sample, &e), LS_EIO, "has changed since it was opened", e);
    ls_source_close(s);
    in_folder("sleep 0.03");
    s = open_kept("@new", &small, 1 << 20);
    assert_int_equal(nfound(s), 0);
    ls_source_close(s);
    free(was);
    free(sample);
}

static void test_limits(void **state) {
    (void)state;
    in_folder("rm -rf index");
    ls_source *plain = open_kept("@tree", &small, 0);
    uint64_t place = sizeof(ls_hash) + plain->fields[0].nbytes;
    ls_source *s = open_kept("@tree", &small, 2 * place + 1);
    assert_alike(s, plain);
    assert_int_equal(nfound(s), 2);
    ls_source_close(s);
    assert_null((s = open_kept("@tree", &small, place - 1))->pixels);
    ls_source_close(s);
    assert_null((s = open_kept("@tree", NULL, 1 << 20))->pixels); /* as they are */
    ls_source_close(s);
    s = opened("@tree",
               &(ls_source_options){.images = &small, .pixels_nbytes = 1 << 20, .fresh = true});
    assert_null(s->pixels); /* all is read again */
    ls_source_close(s);
    in_folder("rm -rf index && touch index"); /* no directory can be made */
    s = open_kept("@tree", &small, 1 << 20);
    assert_null(s->pixels);
    assert_alike(s, plain);
    ls_source_close(s);
    in_folder("rm index");
    ls_source_close(plain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats), cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_damaged), cmocka_unit_test(test_changed),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, make_sets, remove_folder);
}
