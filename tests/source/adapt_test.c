/* adapt_test.c - fields for a model: found by name, converted where every value can be, refused
 * otherwise, and values out of range refused when they are read. */
#include "source/adapt.h"

#include <math.h>

#include "source/real.h"
#include "test.h"

enum { MOST = 64 };

/* A source of one sample with one field "x", beside a label; the bytes are the test's. */
typedef struct given {
    ls_source source;
    unsigned char bytes[256];
    bool closed;
} given;

static ls_status read_given(const ls_source *s, uint64_t i, void *sample, ls_error *e) {
    (void)i, (void)e;
    memcpy(sample, ((const given *)s)->bytes, s->nbytes);
    return LS_OK;
}

static void close_given(ls_source *s) { ((given *)s)->closed = true; }

static given give(ls_dtype type, int ndims, const int64_t *dims) {
    given g = {.source = {.format = "test", .count = 1, .read = read_given, .close = close_given}};
    ls_error e = {0};
    ls_field x = {.name = "x", .type = type, .ndims = ndims};
    for (int i = 0; i < ndims; i++) x.dims[i] = dims[i];
    assert_ls_ok(ls_source_add_field(&g.source, "test", &x, &e), e);
    x = (ls_field){.name = "label", .type = LS_I64};
    assert_ls_ok(ls_source_add_field(&g.source, "test", &x, &e), e);
    return g;
}

/* Adapts it to one field; the caller closes it. */
static ls_status adapt(given *g, const ls_field *want, int classes, ls_source **s_p, ls_error *e) {
    ls_field f = *want;
    f.nbytes = ls_dtype_size(f.type);
    for (int i = 0; i < f.ndims; i++) f.nbytes *= (size_t)f.dims[i];
    ls_adapt_wanted w = {.fields = &f,
                         .nfields = 1,
                         .classes = &classes,
                         .nbytes = f.offset + f.nbytes,
                         .what = "a.bin"};
    return ls_adapt(&g->source, &w, s_p, e);
}

static void refuses(ls_dtype from, const ls_field *want, const char *says) {
    given g = give(from, 1, (int64_t[]){3});
    ls_source *s = NULL;
    ls_error e = {0};
    assert_int_equal(adapt(&g, want, 0, &s, &e), LS_EINVAL);
    if (!strstr(e.msg, says)) fail_msg("%s\nexpected: %s", e.msg, says);
    assert_true(g.closed);
}

/* Each type to f32 and, whole ones, to i32: the values -1 or 0, 1, and the largest that fits. */
#define CONVERTS(T, dtype, a, b, c)                                                                \
    do {                                                                                           \
        T values[3] = {(T)(a), (T)(b), (T)(c)};                                                    \
        given g = give(dtype, 1, (int64_t[]){3});                                                  \
        memcpy(g.bytes, values, sizeof values);                                                    \
        double got[3];                                                                             \
        convert(&g, LS_F32, got);                                                                  \
        for (int i = 0; i < 3; i++) assert_true(got[i] == (double)(float)values[i]);               \
        if (dtype == LS_F64) break;                                                                \
        g.closed = false;                                                                          \
        convert(&g, LS_I32, got);                                                                  \
        for (int i = 0; i < 3; i++) assert_true(got[i] == (double)values[i]);                      \
    } while (0)

static void convert(given *g, ls_dtype to, double *got) {
    ls_source *s = NULL;
    ls_error e = {0};
    unsigned char sample[MOST] = {0};
    ls_field want = {
        .name = "x", .type = to, .ndims = 1, .dims = {3}, .offset = 16}; /* at another place */
    assert_ls_ok(adapt(g, &want, 0, &s, &e), e);
    assert_int_equal(s->nbytes, 16 + 3 * 4);
    assert_ls_ok(s->read(s, 0, sample, &e), e);
    for (int i = 0; i < 3; i++) {
        float f;
        int32_t n;
        memcpy(&f, sample + 16 + 4 * i, 4);
        memcpy(&n, sample + 16 + 4 * i, 4);
        got[i] = to == LS_F32 ? (double)f : (double)n;
    }
    ls_source_close(s);
    assert_true(g->closed);
}

static void test_types(void **state) {
    (void)state;
    CONVERTS(uint8_t, LS_U8, 0, 1, 255);
    CONVERTS(int8_t, LS_I8, -1, 1, -128);
    CONVERTS(uint16_t, LS_U16, 0, 1, 65535);
    CONVERTS(int16_t, LS_I16, -1, 1, -32768);
    CONVERTS(uint32_t, LS_U32, 0, 1, INT32_MAX);
    CONVERTS(int32_t, LS_I32, -1, INT32_MIN, INT32_MAX);
    CONVERTS(uint64_t, LS_U64, 0, 1, INT32_MAX);
    CONVERTS(int64_t, LS_I64, -1, INT32_MIN, INT32_MAX);
    CONVERTS(double, LS_F64, 0.1, -1e300 / 1e280, 16777217);
}

/* Bits of f16, and the numbers that they stand for. */
static void test_half(void **state) {
    (void)state;
    static const struct {
        uint16_t bits[3];
        double is[3];
    } cases[] = {{{0x3c00, 0xc000, 0x3555}, {1, -2, 0x1.554p-2}},
                 {{0x0001, 0x83ff, 0x7bff}, {0x1p-24, -0x3ffp-24, 65504}}};
    ls_error e = {0};
    double got[3];
    for (int i = 0; i < 2; i++) {
        given g = give(LS_F16, 1, (int64_t[]){3});
        memcpy(g.bytes, cases[i].bits, sizeof cases[i].bits);
        convert(&g, LS_F32, got);
        for (int k = 0; k < 3; k++) assert_true(got[k] == cases[i].is[k]);
    }
    static const uint16_t bad[] = {0x7e00, 0x7c00, 0xfc00};
    static const char *const names[] = {"'x' is nan", "'x' is inf", "'x' is -inf"};
    for (int i = 0; i < 3; i++) {
        given g = give(LS_F16, 1, (int64_t[]){3});
        unsigned char sample[MOST];
        ls_source *s = NULL;
        memcpy(g.bytes, &bad[i], sizeof bad[i]);
        ls_field want = {.name = "x", .type = LS_F32, .ndims = 1, .dims = {3}};
        assert_ls_ok(adapt(&g, &want, 0, &s, &e), e);
        assert_int_equal(s->read(s, 0, sample, &e), LS_EINVAL);
        assert_non_null(strstr(e.msg, names[i]));
        ls_source_close(s);
    }
}

/* Each f16 is the nearest one of itself; others are rounded, ties to even. */
static void test_nearest_half(void **state) {
    (void)state;
    static const struct {
        double x;
        uint16_t bits;
    } cases[] = {{1 + 0x1p-11, 0x3c00}, {1 + 0x3p-11, 0x3c02}, {-65519.9, 0xfbff},
                 {65520, 0x7c00},       {0x1p-25, 0},          {0x1.001p-25, 1},
                 {-0.0, 0x8000},        {0x1.ff9p-15, 0x3ff},  {0x1.ffcp-15, 0x400}};
    uint16_t got = 0;
    for (unsigned i = 0; i < 1 << 16; i++) {
        const uint16_t bits = (uint16_t)i;
        double x = ls_real_at(LS_F16, &bits);
        ls_real_set(LS_F16, x, &got);
        assert_true(isnan(x) ? isnan(ls_real_at(LS_F16, &got)) : got == bits);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_real_set(LS_F16, cases[i].x, &got);
        if (got != cases[i].bits) fail_msg("%g is %04x", cases[i].x, got);
    }
}

static void test_range(void **state) {
    (void)state;
    static const int64_t bad[] = {(int64_t)INT32_MAX + 1, (int64_t)INT32_MIN - 1, INT64_MAX};
    ls_error e = {0};
    for (int i = 0; i < 3; i++) {
        given g = give(LS_I64, 1, (int64_t[]){3});
        int64_t values[3] = {1, bad[i], 2};
        unsigned char sample[MOST];
        ls_source *s = NULL;
        memcpy(g.bytes, values, sizeof values);
        assert_ls_ok(
            adapt(&g, &(ls_field){.name = "x", .type = LS_I32, .ndims = 1, .dims = {3}}, 0, &s, &e),
            e);
        assert_int_equal(s->read(s, 0, sample, &e), LS_EINVAL);
        assert_non_null(strstr(e.msg, "a.bin: sample 0: 'x' is "));
        assert_non_null(strstr(e.msg, "out of the range of i32"));
        ls_source_close(s);
    }
}

/* Classes 0 to 9, also where the sample needs no change. */
static void test_classes(void **state) {
    (void)state;
    static const int32_t values[] = {0, 9, 10, -1};
    ls_error e = {0};
    for (int i = 0; i < 4; i++) {
        given g = give(LS_I32, 0, NULL);
        int32_t sample[32] = {0};
        ls_source *s = NULL;
        memcpy(g.bytes, &values[i], 4);
        assert_ls_ok(adapt(&g, &(ls_field){.name = "x", .type = LS_I32}, 10, &s, &e), e);
        ls_status got = s->read(s, 0, sample, &e);
        assert_int_equal(got, values[i] >= 0 && values[i] < 10 ? LS_OK : LS_EINVAL);
        if (got == LS_OK) assert_int_equal(sample[0], values[i]);
        if (got != LS_OK) assert_non_null(strstr(e.msg, "and the model takes 0 to 9"));
        ls_source_close(s);
    }
}

/* A list of ids from 0 to 9, padded with -1; 255 is read as that. */
static void test_padded(void **state) {
    (void)state;
    static const int32_t lists[][3] = {{0, 9, -1}, {INT32_MIN, 3, 3}, {255, 2, 255}, {-1, 10, 0}};
    static const int32_t read_as[][3] = {{0, 9, -1}, {INT32_MIN, 3, 3}, {-1, 2, -1}};
    static const bool padded = true;
    static const int classes = 10, ignored = 255;
    ls_error e = {0};
    for (int i = 0; i < 4; i++) {
        given g = give(LS_I32, 1, (int64_t[]){3});
        const ls_field f = {
            .name = "x", .type = LS_I32, .ndims = 1, .dims = {3}, .nbytes = sizeof lists[i]};
        int32_t sample[32] = {0};
        ls_source *s = NULL;
        memcpy(g.bytes, lists[i], sizeof lists[i]);
        ls_adapt_wanted w = {.fields = &f,
                             .nfields = 1,
                             .classes = &classes,
                             .padded = &padded,
                             .ignored = &ignored,
                             .nbytes = f.nbytes,
                             .what = "a.bin"};
        assert_ls_ok(ls_adapt(&g.source, &w, &s, &e), e);
        assert_int_equal(s->read(s, 0, sample, &e), i < 3 ? LS_OK : LS_EINVAL);
        if (i < 3) assert_memory_equal(sample, read_as[i], sizeof lists[i]);
        if (i == 3)
            assert_non_null(strstr(e.msg, "is 10, and the model takes 0 to 9, and -1 for none"));
        ls_source_close(s);
    }
}

/* Masks and small numbers, as JSON and CSV have them; what does not fit is refused. */
static void test_small(void **state) {
    (void)state;
    static const struct {
        ls_dtype type;
        int64_t least, most;
    } types[] = {{LS_U8, 0, 255},         {LS_I8, -128, 127}, {LS_BOOL, 0, 1},
                 {LS_I16, -32768, 32767}, {LS_U16, 0, 65535}, {LS_U32, 0, UINT32_MAX}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        for (int past = 0; past < 3; past++) {
            int64_t values[3] = {types[i].least - (past == 1), 1, types[i].most + (past == 2)};
            int64_t sample[3] = {0};
            ls_source *s = NULL;
            ls_error e = {0};
            given g = give(LS_I64, 1, (int64_t[]){3});
            memcpy(g.bytes, values, sizeof values);
            ls_field want = {.name = "x", .type = types[i].type, .ndims = 1, .dims = {3}};
            assert_ls_ok(adapt(&g, &want, 0, &s, &e), e);
            assert_int_equal(s->read(s, 0, sample, &e), past ? LS_EINVAL : LS_OK);
            if (past) assert_non_null(strstr(e.msg, "out of the range of "));
            size_t size = ls_dtype_size(want.type);
            for (size_t k = 0; !past && k < 3; k++)
                assert_memory_equal((char *)sample + k * size, &values[k], size);
            ls_source_close(s);
        }
}

/* Single numbers of CSV are f32. */
static void test_whole(void **state) {
    (void)state;
    float values[3] = {0, 255, 16777215};
    for (int k = 0; k < 2; k++) {
        int32_t sample[3];
        ls_source *s = NULL;
        ls_error e = {0};
        given g = give(LS_F32, 1, (int64_t[]){3});
        g.source.fields[0].is_whole = true;
        memcpy(g.bytes, values, sizeof values);
        ls_field want = {.name = "x", .type = LS_I32, .ndims = 1, .dims = {3}};
        assert_ls_ok(adapt(&g, &want, 0, &s, &e), e);
        if (k == 0) {
            assert_ls_ok(s->read(s, 0, sample, &e), e);
            for (int i = 0; i < 3; i++) assert_int_equal(sample[i], (int64_t)values[i]);
        } else {
            assert_ls_fails(s->read(s, 0, sample, &e), LS_EINVAL, "which an f32 can't hold exactly",
                            e);
        }
        ls_source_close(s);
        values[2] = 16777216; /* or 16777217 */
    }
}

static void test_refused(void **state) {
    (void)state;
    refuses(LS_U8, &(ls_field){.name = "x", .type = LS_U8, .ndims = 1, .dims = {4}},
            "a.bin: field 'x' is u8 [3]; the model's input 'x' is u8 [4]");
    refuses(LS_F32, &(ls_field){.name = "x", .type = LS_I32, .ndims = 1, .dims = {3}},
            "is f32 [3]; the model's input");
    refuses(LS_F64, &(ls_field){.name = "x", .type = LS_U8, .ndims = 1, .dims = {3}},
            "is f64 [3]; the model's input");
    refuses(LS_F16, &(ls_field){.name = "x", .type = LS_I32, .ndims = 1, .dims = {3}},
            "is f16 [3]; the model's input");
    refuses(LS_U8, &(ls_field){.name = "image", .type = LS_U8, .ndims = 1, .dims = {3}},
            "a.bin: has no field 'image', which the model reads; its fields are 'x' u8 [3], "
            "'label' i64");
}

/* Dimensions of 1 at the end don't count. */
static void test_dims(void **state) {
    (void)state;
    ls_error e = {0};
    ls_source *s = NULL;
    given g = give(LS_U8, 3, (int64_t[]){2, 2, 1});
    assert_ls_ok(
        adapt(&g, &(ls_field){.name = "x", .type = LS_U8, .ndims = 2, .dims = {2, 2}}, 0, &s, &e),
        e);
    ls_source_close(s);
    g = give(LS_U8, 1, (int64_t[]){1});
    assert_ls_ok(adapt(&g, &(ls_field){.name = "x", .type = LS_I32}, 0, &s, &e), e);
    ls_source_close(s);
    g = give(LS_U8, 2, (int64_t[]){1, 2});
    assert_int_equal(
        adapt(&g, &(ls_field){.name = "x", .type = LS_U8, .ndims = 1, .dims = {2}}, 0, &s, &e),
        LS_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),        cmocka_unit_test(test_half),
        cmocka_unit_test(test_nearest_half), cmocka_unit_test(test_range),
        cmocka_unit_test(test_classes),      cmocka_unit_test(test_padded),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_small),
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_dims)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
