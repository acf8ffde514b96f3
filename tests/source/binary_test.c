/* binary_test.c - the simple binary formats: .npy, CIFAR-10, tokens of llm.c and nanoGPT. */
#include <math.h>

#include "source/options.h"
#include "source/samples.h"

/* ---- .npy ---- */

/* Writes a .npy file as NumPy does: the header is padded to a multiple of 64 bytes. */
static void put_npy(const char *name, int version, const char *header, const void *data,
                    size_t nbytes) {
    ls_buf b = {0};
    size_t before = version == 1 ? 10 : 12, n = strlen(header);
    size_t all = (before + n + 1 + 63) / 64 * 64, length = all - before;
    ls_buf_append(&b, "\x93NUMPY", 6);
    ls_buf_append(&b,
                  (uint8_t[]){(uint8_t)version, 0, (uint8_t)length, (uint8_t)(length >> 8), 0, 0},
                  version == 1 ? 4 : 6);
    ls_buf_printf(&b, "%s%*s\n", header, (int)(length - n - 1), "");
    ls_buf_append(&b, data, nbytes);
    put_file(name, b.data, b.len);
    ls_buf_free(&b);
}

#define HEADER(descr, shape) "{'descr': '" descr "', 'fortran_order': False, 'shape': " shape ", }"

static void test_npy(void **state) {
    (void)state;
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const int64_t y[] = {3, 7};
    for (int version = 1; version <= 3; version++) {
        put_npy("@x.npy", version, HEADER("<f4", "(2, 3)"), x, sizeof x);
        put_npy("@y.npy", version, HEADER("<i8", "(2,)"), y, sizeof y);
        ls_source *s = opened("@x.npy\n@y.npy", NULL);
        assert_string_equal(s->format, "npy");
        assert_int_equal(s->count, 2);
        assert_true(has_shape(&s->fields[0], "x", LS_F32, 1, (int64_t[]){3}));
        assert_true(has_shape(&s->fields[1], "label", LS_I32, 0, NULL));
        uint8_t *p = sample_of(s, 1);
        assert_memory_equal(p, x + 3, 12);
        assert_int_equal(*(int32_t *)(void *)(p + s->fields[1].offset), 7);
        free(p);
        ls_source_close(s);
    }
    ls_source *s = opened("@y.npy", &(ls_source_options){.labels = "@x.npy"});
    assert_true(has_shape(&s->fields[0], "x", LS_I64, 0, NULL));
    assert_true(has_shape(&s->fields[1], "target", LS_F32, 1, (int64_t[]){3}));
    ls_source_close(s);
    put_npy("@b.npy", 1, HEADER(">i2", "(1, 2)"), (uint8_t[]){1, 2, 0xff, 0xfe}, 4);
    s = opened("@b.npy", NULL);
    uint8_t *p = sample_of(s, 0);
    assert_int_equal(((int16_t *)(void *)p)[0], 258);
    assert_int_equal(((int16_t *)(void *)p)[1], -2);
    free(p);
    ls_source_close(s);
    put_npy("@b.npy", 1, HEADER("|u1", "(1L, 2L, 2L, 3L)"), "abcdefghijkl", 12); /* Python 2 */
    s = opened("@b.npy", NULL);
    assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){2, 2, 3}));
    ls_source_close(s);
}

static void test_npy_damage(void **state) {
    (void)state;
    static const struct {
        const char *header, *says;
    } all[] = {
        {HEADER("<f4", "(3, 1)"), "announces 3 samples of 4 bytes, but it ends at offset 136"},
        {HEADER("<f4", "(1,)"), "4 bytes follow the 1 samples"},
        {HEADER("<f4", "()"), "has 0 dimensions"},
        {HEADER("<f4", "(1, 1, 1, 1, 1, 1)"), "has 6 dimensions"},
        {HEADER("<f4", "(2, 99999999999999999999)"), "its header is not understood at offset"},
        {HEADER("<f4", "(2LL,)"), "its header is not understood at offset"},
        {HEADER("<f4", "(L,)"), "its header is not understood at offset"},
        {HEADER("<f4", "(2, 9999999999, 9999999999)"), "a sample has more than 2048 MB"},
        {HEADER("<f4", "(922337203685477580,)"), "is truncated"},
        {HEADER("<f4", "(2, 0)"), "dimension 1 is 0"},
        {HEADER("<f4", "(-2,)"), "its header is not understood"},
        {HEADER("|O", "(2,)"), "elements of type '|O'"},
        {HEADER("<U8", "(2,)"), "elements of type '<U8'"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }",
         "its elements have several named values"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", "Fortran's order"},
        {"{'descr': '<f4', 'shape': (2,), }", "not understood"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'descr': '<f8'}",
         "not understood"},
        {"{", "not understood"},
        {"", "not understood"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        put_npy("@x.npy", 1, all[i].header, "12345678", 8);
        refuses("@x.npy", NULL, all[i].says);
    }
    put_file("@x.npy", "\x93NUMPY\4\0abcdef", 14);
    refuses("@x.npy", NULL, "is of version 4");
    put_file("@x.npy", "\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    refuses("@x.npy", NULL, "its header has 4294967295 bytes");
    put_file("@x.npy", "\x93NUM", 4);
    refuses("@x.npy", NULL, "is not an .npy file");
    static const int64_t large[] = {0, 1ll << 31};
    put_npy("@x.npy", 1, HEADER("<f4", "(2, 1)"), "12345678", 8);
    put_npy("@y.npy", 1, HEADER("<i8", "(2,)"), large, sizeof large);
    refuses("@x.npy\n@y.npy", NULL, "label 1, at offset 136, is 2147483648");
}

/* ---- CIFAR-10 ---- */

enum { RECORD = 3073 };

/* Record i has label i mod 10; channel c of pixel p is i + 3 p + c. */
static void put_cifar(const char *name, int n, int bad, size_t extra) {
    uint8_t *file = ls_alloc((size_t)n * RECORD + extra);
    for (int i = 0; i < n; i++) {
        uint8_t *r = file + (size_t)i * RECORD;
        r[0] = (uint8_t)(i == bad ? 10 : i % 10);
        for (int c = 0; c < 3; c++)
            for (int p = 0; p < 1024; p++) r[1 + c * 1024 + p] = (uint8_t)(i + 3 * p + c);
    }
    put_file(name, file, (size_t)n * RECORD + extra);
    free(file);
}

/* NaN is a missing value: data.missing says what becomes of it. */
static void test_npy_missing(void **state) {
    (void)state;
    static const float x[] = {1, NAN, 3, 4, 5, 9}, y[] = {1, 2.5F, NAN};
    put_npy("@x.npy", 1, HEADER("<f4", "(3, 2)"), x, sizeof x);
    put_npy("@y.npy", 1, HEADER("<f4", "(3,)"), y, sizeof y);
    ls_source *s = opened("@x.npy\n@y.npy", &(ls_source_options){.missing = LS_MISSING_DROP});
    assert_true(s->count == 1 && s->nmissing == 2 && ls_source_record(s, 0).number == 1);
    uint8_t *p = sample_of(s, 0);
    assert_memory_equal(p, x + 2, 2 * sizeof *x);
    free(p);
    ls_source_close(s);
    ls_missing_rule rules[] = {{.column = "x", .rule = LS_MISSING_MEAN},
                               {.column = "target", .rule = LS_MISSING_DROP}};
    ls_csv_rules by = {.rules = rules, .nrules = 2};
    ls_source_options o = {.csv = &by};
    s = opened("@x.npy\n@y.npy", &o);
    assert_true(s->count == 2 && s->nmissing == 1);
    p = sample_of(s, 0);
    assert_memory_equal(p, ((float[]){1, 4}), 2 * sizeof *x); /* of what is left */
    free(p);
    /* other files get the same means */
    static const float other[] = {NAN, NAN};
    put_npy("@o.npy", 1, HEADER("<f4", "(1, 2)"), other, sizeof other);
    ls_source_options follows = {.csv = &by, .follows = true};
    ls_source *after = opened("@o.npy", &follows);
    ls_error e;
    assert_ls_ok(ls_source_follow(after, s->numbering, "o.npy", &e), e);
    p = sample_of(after, 0);
    assert_memory_equal(p, ((float[]){2, 4}), 2 * sizeof *x);
    free(p);
    ls_source_close(after);
    ls_source_close(s);
    by.nrules = 1;
    refuses("@x.npy\n@y.npy", &o, "x.npy: row 2: 'target' is nan, and a model can't learn from it");
    refuses("@o.npy", &(ls_source_options){.missing = LS_MISSING_DROP},
            "o.npy: each sample lacks a number (nan)");
    rules[0].column = "z";
    refuses("@x.npy", &o, "x.npy: data.missing: there is no field 'z'");
}

static void test_cifar(void **state) {
    (void)state;
    put_cifar("@data_batch_1.bin", 12, -1, 0);
    put_cifar("@data_batch_2.bin", 5, -1, 0);
    ls_source *s = opened("@data_batch_*.bin", NULL);
    assert_string_equal(s->format, "cifar");
    assert_int_equal(s->count, 17);
    assert_string_equal(s->classes[9], "truck");
    assert_true(has_shape(&s->fields[0], "image", LS_U8, 3, (int64_t[]){32, 32, 3}));
    uint8_t *p = sample_of(s, 14); /* record 2 of the second file */
    for (int i = 0; i < 3072; i++) assert_int_equal(p[i], (uint8_t)(2 + i));
    assert_int_equal(*(int32_t *)(void *)(p + s->fields[1].offset), 2);
    free(p);
    ls_source_close(s);
}

static void test_cifar_damage(void **state) {
    (void)state;
    put_cifar("@x.bin", 12, 4, 0);
    ls_source_options o = {.format = "cifar"};
    ls_source *s = opened("@x.bin", &o);
    uint8_t sample[4096];
    ls_error e = {0};
    assert_ls_fails(s->read(s, 4, sample, &e), LS_EINVAL,
                    "record 4, at offset 12292, has label 10; labels are from 0 to 9", e);
    ls_source_close(s);
    put_cifar("@x.bin", 12, 4, 100);
    refuses("@x.bin", &o, "it ends at offset 36976, in record 12 of 3073 bytes");
    o.skip_damaged = true;
    s = opened("@x.bin", &o);
    assert_int_equal(s->count, 11);
    assert_int_equal(s->damage.n, 2);
    uint8_t *p = sample_of(s, 4); /* record 5 */
    assert_int_equal(p[0], 5);
    free(p);
    ls_source_close(s);
}

/* ---- tokens ---- */

static void put_tokens(const char *name, const int32_t *first, int n, size_t size, int announced) {
    uint8_t file[1024 + 4 * 100] = {0};
    size_t at = first ? 1024 : 0;
    if (first) {
        int32_t header[3] = {first[0], first[1], announced};
        memcpy(file, header, sizeof header);
    }
    for (int i = 0; i < n; i++) {
        uint32_t id = (uint32_t)i * 500;
        memcpy(file + at + (size_t)i * size, &id, size);
    }
    put_file(name, file, at + (size_t)n * size);
}

static void test_tokens(void **state) {
    (void)state;
    static const int32_t gpt2[] = {20240520, 1}, llama[] = {20240801, 7};
    static const struct {
        const char *name;
        const int32_t *first;
        size_t size;
    } all[] = {{"@a.bin", gpt2, 2}, {"@b.bin", llama, 4}, {"@train.bin", NULL, 2}};
    ls_source_options o = {.window = 8};
    for (int i = 0; i < 3; i++) {
        put_tokens(all[i].name, all[i].first, 25, all[i].size, 25);
        ls_source *s = opened(all[i].name, &o);
        assert_string_equal(s->format, "tokens");
        assert_int_equal(s->count, 3); /* 0 to 8, 8 to 16, 16 to 24 */
        assert_true(has_shape(&s->fields[0], "tokens", all[i].size == 2 ? LS_U16 : LS_U32, 1,
                              (int64_t[]){9}));
        uint8_t *p = sample_of(s, 2);
        for (size_t k = 0; k < 9; k++) {
            uint32_t id = 0;
            memcpy(&id, p + k * all[i].size, all[i].size);
            assert_int_equal(id, (16 + k) * 500);
        }
        free(p);
        ls_source_close(s);
        put_tokens(all[i].name, all[i].first, 24, all[i].size, 24);
        s = opened(all[i].name, &o);
        assert_int_equal(s->count, 2);
        ls_source_close(s);
        refuses(all[i].name, NULL, "fewer than a window of 1024 and one more");
    }
    refuses("@a.bin\n@b.bin", &o, "its tokens have 4 bytes");
    put_tokens("@a.bin", gpt2, 25, 2, 26);
    refuses("@a.bin", &o, "is truncated: it ends at offset 1074, in token 25");
    put_tokens("@a.bin", gpt2, 25, 2, 24);
    refuses("@a.bin", &o, "2 bytes follow the 24 tokens");
    put_tokens("@a.bin", gpt2, 25, 2, -1);
    refuses("@a.bin", &o, "is truncated");
    put_file("@val.bin", "abc", 3);
    refuses("@val.bin", &o, "is truncated: it ends at offset 3, in token 1");
    put_file("@val.bin", "", 0);
    refuses("@val.bin", &o, "has 0 tokens");
    refuses("@val.bin", &(ls_source_options){.window = -1},
            "a window of -1 tokens is not possible");
    put_file("@other.bin", "abcdefgh", 8);
    refuses("@other.bin", &o, "name the format");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_npy, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_npy_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_npy_missing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_cifar, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_cifar_damage, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_tokens, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
