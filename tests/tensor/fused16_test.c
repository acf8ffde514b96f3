/* fused16_test.c - the model of tensor cores: results that GPUs gave, values that follow from its
 * words, and the same computed in another way. */
#include "tensor/fused16.h"

#include <math.h>

#include "base/random.h"
#include "tensor/links.h"
#include "test.h"

static float widened(uint16_t h) { return float_of((uint32_t)h << 16); }

/* A number that bf16 has. */
static uint16_t bf16(float x) {
    assert_int_equal(bits_of(x) & 0xffff, 0);
    return (uint16_t)(bits_of(x) >> 16);
}

/* ---- what GPUs gave ---- */

/* From the results that F. A. Khattak & M. Mikaitis recorded (github.com/north-numerical-computing/
 * MATLAB-tensor-core, model_validation): of 5,000 of each GPU those from which most other models
 * differ: with 23, 24, 26 or 30 bits after the point, with rounding to nearest, or with two links
 * of 8. */
static const struct {
    const char *gpu;
    uint32_t c, d;
    uint16_t a[LINK], b[LINK];
} recorded[] = {
    {"H100",
     0x3e675e17,
     0xbe80cfa6,
     {0xbf88, 0xbfaa, 0xbf08, 0x3f4e, 0xbec8, 0xbe82, 0xbfc4, 0x3d43, 0xbe1a, 0xbf90, 0x3ec5,
      0x3fee, 0xbd3a, 0x3f3c, 0xbf5d, 0xbd23},
     {0xbf0a, 0x3fd0, 0x3f55, 0xbf40, 0xbf32, 0x3f6d, 0xbf29, 0x3f82, 0x3f86, 0xc00f, 0xbf95,
      0xbe96, 0x3fba, 0xbe92, 0x3cad, 0x3e9e}},
    {"H100",
     0x3ab041ea,
     0xbee53f5f,
     {0x3fdf, 0xbdea, 0xbf05, 0x3e29, 0xbf07, 0x3ee6, 0x4023, 0xbf97, 0x3f8e, 0xbf8c, 0xbf3a,
      0x3f92, 0xbdee, 0xbe84, 0x3fa6, 0xbf60},
     {0x3fcb, 0x3f9b, 0xbd7a, 0x3ea5, 0x3f7f, 0xbd71, 0xbf0a, 0xbec1, 0xbe63, 0xbc13, 0x3f88,
      0xbf5d, 0xbfb4, 0xbf61, 0x3f6c, 0x3fba}},
    {"H100",
     0x3e6ae273,
     0xbd389a38,
     {0xbdc9, 0x3fd9, 0x3f84, 0xbed1, 0xbef1, 0xbf0e, 0xbe4a, 0xbfae, 0xbe6e, 0xbf74, 0xbf1f,
      0x3e88, 0xbfc4, 0x3ee6, 0xbfbf, 0xbe23},
     {0xbfad, 0xbf39, 0xbfaf, 0xbe09, 0xbea1, 0xbfb2, 0x3fe0, 0xbede, 0x3f69, 0x3edc, 0xbeab,
      0xbfce, 0xbf1f, 0x3f2a, 0xbee0, 0x3ea5}},
    {"H100",
     0x3e1ca80b,
     0xbd082cd8,
     {0xbf56, 0xbe2e, 0xbf3c, 0x3f37, 0x3e37, 0x3ed3, 0xbf87, 0x3e14, 0x3f28, 0xc008, 0x3ee8,
      0xbf4d, 0xbf60, 0xbf9f, 0x3f8e, 0xbf65},
     {0xbe20, 0x3f0b, 0xbd1a, 0x3f66, 0xbe37, 0x3fc7, 0xbdcf, 0xbebf, 0xbf6b, 0xbf1c, 0xbda6,
      0x3fd0, 0x3eb1, 0x3ea8, 0xbf11, 0xbef5}},
    {"H200",
     0x3e2045c7,
     0xbef6ff3e,
     {0x3d45, 0x3ec5, 0xbd4f, 0xc02b, 0xbde9, 0x401e, 0x3f3c, 0xbf2c, 0x3e23, 0xc046, 0xbee5,
      0xbf71, 0xbda3, 0xbfc7, 0xbd8c, 0xbe3b},
     {0xbfdf, 0xbe1b, 0xbed8, 0xbfa6, 0xbef1, 0x3fbc, 0xbeec, 0xbfcb, 0x3ed7, 0x3fe5, 0xbdd8,
      0x4011, 0xbf0e, 0x3f22, 0xbd84, 0xbf0b}},
    {"H200",
     0x3d97b15d,
     0x3e096c6c,
     {0xbede, 0xbf93, 0xbf81, 0x3eda, 0x3fba, 0x3fb7, 0xbfc2, 0xbf10, 0xbd9e, 0xbfd8, 0x3ec9,
      0xbfa8, 0x3d55, 0x3f57, 0x3e2c, 0xbf19},
     {0x3f75, 0xc009, 0xbd33, 0xbfbd, 0xbdb5, 0x3f54, 0x3f04, 0x3f3d, 0xbf3e, 0x3f7a, 0x3f9a,
      0x3e58, 0x3f65, 0x3f5b, 0xbf93, 0x3f3a}},
    {"H200",
     0x3c47de74,
     0xbec02f3d,
     {0x3e6d, 0x3ea3, 0x3c8e, 0x3f84, 0xbfa2, 0xbfa2, 0x3ffa, 0xbf28, 0x3ffd, 0xbf2f, 0x3eb4,
      0xbfec, 0x3f16, 0x3f9c, 0x3fa6, 0xbf41},
     {0x3eab, 0x3f55, 0xbeb1, 0xbee9, 0x3f5f, 0x3f74, 0x3f2a, 0xbeb2, 0x3ece, 0x3d4c, 0x3ea7,
      0xbf68, 0xbea7, 0xbeee, 0xbf89, 0xbe2e}},
    {"H200",
     0x3ef86f14,
     0x3edfce21,
     {0x3f05, 0x3e11, 0xbea5, 0xbe97, 0x3cc8, 0x3ebd, 0x3f02, 0x3f6b, 0x3f80, 0x3f19, 0x3f55,
      0x3ebc, 0x3fb1, 0xc035, 0xbdfb, 0xbe52},
     {0xbfbf, 0x3f30, 0x3f86, 0xbf77, 0xbb3f, 0xbdab, 0xbd7f, 0x3f12, 0xbf81, 0xbf9b, 0x3f68,
      0xbe14, 0x3f88, 0xbd50, 0x3f64, 0x3f9d}},
    {"B200",
     0x3e34338e,
     0xbe8325da,
     {0x3fb1, 0xbfa1, 0xbf8b, 0x3fbe, 0xbe57, 0x3fa0, 0xbf94, 0x3f29, 0xbea7, 0xbd7a, 0xc000,
      0x3ec0, 0xbeae, 0xbf56, 0xbdf2, 0xbeca},
     {0xbea1, 0xbf1d, 0x3d09, 0xbf01, 0x3fb5, 0x3f6f, 0xbf8d, 0xbe44, 0xbfcf, 0xbfec, 0x3fc4,
      0x3e71, 0x3dc8, 0xbdee, 0xc01c, 0x3d4b}},
    {"B200",
     0x3dd2db3d,
     0x3d528770,
     {0xbe79, 0xbf65, 0xbed5, 0xbf84, 0x3fe0, 0xbe95, 0xbe16, 0xc00c, 0x3ea9, 0x3e9a, 0x3f1b,
      0xbe94, 0x3eff, 0x4042, 0x3e58, 0xbdc1},
     {0x3ea8, 0xbda9, 0xbe51, 0xbe8b, 0x3fc0, 0x3d90, 0x3e79, 0xbe8c, 0x3eb4, 0x3eab, 0x3dd2,
      0x3c8d, 0xbf67, 0xbf97, 0x3f03, 0xbf34}},
    {"B200",
     0x3ece6233,
     0x3e90f4f2,
     {0x3fdb, 0x3e1c, 0xbfe9, 0xbedb, 0xbf00, 0xbe9f, 0xbf68, 0xbed1, 0xbebb, 0xbed4, 0xc00f,
      0xbf66, 0xbe82, 0xbf2c, 0x3e8e, 0x3e8c},
     {0x3e27, 0x3f0b, 0x3f1d, 0xbe45, 0x3edf, 0x400b, 0x3f3c, 0xbfae, 0x3f46, 0xbeb3, 0xbfb9,
      0x3e4b, 0xbebc, 0x3fa4, 0xbed7, 0xbfde}},
    {"B200",
     0x3df4e809,
     0x3d53ea30,
     {0x3fae, 0xbe9f, 0xbf5d, 0xbf83, 0x3ffa, 0xbf01, 0xbfe6, 0xbd1d, 0x3f2c, 0xbf99, 0xbd8f,
      0x3e2a, 0x3f9c, 0xbf83, 0xbf06, 0xbf8c},
     {0xc00b, 0x396e, 0x3eea, 0x3f3a, 0x3fd9, 0x3e94, 0xbf94, 0xc010, 0x4014, 0xbf2b, 0x3fa1,
      0xbf8d, 0xbf74, 0x3ec4, 0x3e94, 0x3fc5}},
};

static void test_recorded(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        float d = ls_fused16_link(float_of(recorded[i].c), LINK, recorded[i].a, recorded[i].b);
        if (bits_of(d) != recorded[i].d)
            fail_msg("case %d: %08x, an %s gave %08x", (int)i, bits_of(d), recorded[i].gpu,
                     recorded[i].d);
    }
}

/* ---- the same computed in another way ---- */

/* x = *m 2^result with 1 <= |*m| < 2, or, below the least normal number, with the exponent -126. */
static int split(float x, long double *m) {
    int e = 0;
    frexpf(x, &e);
    e = e - 1 < -126 ? -126 : e - 1;
    *m = ldexpl(x, -e);
    return e;
}

/* Numbers and not bits, for finite operands. */
static float reference(float c, const uint16_t *a, const uint16_t *b) {
    long double terms[LINK + 1], sum = 0, m = 0, n = 0;
    int exponents[LINK + 1], most = -133;
    for (int i = 0; i <= LINK; i++) {
        exponents[i] =
            i < LINK ? split(widened(a[i]), &m) + split(widened(b[i]), &n) : split(c, &m);
        terms[i] = i < LINK ? m * n : m;
        if (terms[i] != 0 && exponents[i] > most) most = exponents[i];
    }
    for (int i = 0; i <= LINK; i++) sum += truncl(ldexpl(terms[i], exponents[i] - most + 25));
    int e = 0;
    frexpl(sum, &e);
    e += most - 25; /* |sum| 2^(most - 25) is from 2^(e - 1) on, and below 2^e */
    int least = e - 24 < -149 ? -149 : e - 24;
    long double d = ldexpl(truncl(ldexpl(sum, most - 25 - least)), least);
    if (sum == 0) return 0;
    return fabsl(d) >= 0x1p128L ? (float)(d < 0 ? -INFINITY : INFINITY) : (float)d;
}

typedef struct one_link {
    float c;
    uint16_t a[LINK], b[LINK];
} one_link;

static one_link link_of(uint64_t i, link_kind kind) {
    uint32_t words[2][2 * LINK + 4];
    one_link x;
    for (int w = 0; w < 2; w++)
        for (uint32_t k = 0; k < 2 * LINK + 4; k += 4)
            ls_random_words(7, LS_STREAM_FAKE, (uint32_t)w, i * 64 + k, words[w] + k);
    for (int k = 0; k < LINK; k++) {
        x.a[k] = bf16(link_number(words[0][k], words[1][k], kind, false));
        x.b[k] = bf16(link_number(words[0][LINK + k], words[1][LINK + k], kind, false));
        /* numbers that others take away again, so that what was cut shows */
        if (k % 4 == 3 && (words[1][k] & 3) == 0) x.a[k] = x.a[k - 1] ^ 0x8000, x.b[k] = x.b[k - 1];
    }
    x.c = link_number(words[0][2 * LINK], words[1][2 * LINK], kind, true);
    return x;
}

static void test_reference(void **state) {
    int n = ncases(4000, 400000), infinite = 0, small = 0;
    (void)state;
    for (int i = 0; i < n; i++) {
        one_link x = link_of((uint64_t)i, (link_kind)(i % NKINDS));
        float want = reference(x.c, x.a, x.b), got = ls_fused16_link(x.c, LINK, x.a, x.b);
        infinite += isinf(want) != 0;
        small += want != 0 && fabsf(want) < 0x1p-126f;
        if (bits_of(got) != bits_of(want))
            fail_msg("case %d of kind %d: %a, the reference gives %a", i, i % NKINDS, (double)got,
                     (double)want);
    }
    assert_in_range(infinite, n / 100, n / 5); /* both are tested */
    assert_in_range(small, n / 100, n / 5);
}

/* ---- what follows ---- */

/* The order of the products does not matter, zeros have no part, and signs are alike. */
static void test_symmetry(void **state) {
    (void)state;
    for (int i = 0; i < ncases(500, 20000); i++) {
        one_link x = link_of((uint64_t)i, (link_kind)(i % NKINDS)), y = x;
        float d = ls_fused16_link(x.c, LINK, x.a, x.b);
        for (int k = 0; k < LINK; k++) y.a[k] = x.b[k * 5 % LINK], y.b[k] = x.a[k * 5 % LINK];
        assert_int_equal(bits_of(ls_fused16_link(x.c, LINK, y.a, y.b)), bits_of(d));
        for (int k = 0; k < LINK; k++) y.a[k] ^= 0x8000;
        if (d != 0) assert_int_equal(bits_of(ls_fused16_link(-x.c, LINK, y.a, y.b)), bits_of(-d));
        for (int k = 9; k < LINK; k++) x.a[k] = k % 2 ? 0 : 0x8000;
        assert_int_equal(bits_of(ls_fused16_link(x.c, LINK, x.a, x.b)),
                         bits_of(ls_fused16_link(x.c, 9, x.a, x.b)));
    }
}

/* A product is a chain of links of 16 from its first k, whose last is shorter. */
static void test_chain(void **state) {
    uint16_t a[3][70], b[70][2], x[70], y[70];
    int differ = 0;
    (void)state;
    for (int i = 0; i < 70; i++) {
        one_link l = link_of((uint64_t)i, ORDINARY);
        a[1][i] = x[i] = l.a[0];
        b[i][1] = y[i] = l.b[0];
    }
    for (int K = 0; K <= 70; K++) {
        float c = 0.25f, shifted = 0.25f;
        for (int k = 0; k < K; k += LINK)
            c = ls_fused16_link(c, K - k < LINK ? K - k : LINK, x + k, y + k);
        assert_int_equal(bits_of(ls_fused16_dot(0.25f, K, a[1], 1, &b[0][1], 2)), bits_of(c));
        shifted = ls_fused16_dot(shifted, K < 8 ? K : 8, x, 1, y, 1);
        shifted = ls_fused16_dot(shifted, K < 8 ? 0 : K - 8, x + 8, 1, y + 8, 1);
        differ += bits_of(shifted) != bits_of(c);
    }
    assert_true(differ > 20); /* where links begin matters */
}

static float sum_of(float c, int n, float a, float b) {
    uint16_t x[LINK], y[LINK];
    for (int i = 0; i < n; i++) x[i] = bf16(a), y[i] = bf16(b);
    return ls_fused16_link(c, n, x, y);
}

/* Values that follow from the words of fused16.h by hand. */
static void test_values(void **state) {
    uint16_t zero[2] = {0, bf16(0x1p-50f)}, large[2] = {bf16(0x1p100f), bf16(0x1p-20f)};
    (void)state;
    assert_true(sum_of(1, 16, 0x1p-12f, 0x1p-13f) == 1 + 0x1p-21f);     /* 2^-25 is kept */
    assert_true(sum_of(1, 16, 0x1p-13f, 0x1p-13f) == 1);                /* 2^-26 is cut */
    assert_true(sum_of(1, 16, 0x1.8p-13f, 0x1.8p-13f) == 1 + 0x1p-21f); /* 2.25 of it, once */
    assert_true(sum_of(-1, 16, 0x1p-13f, 0x1p-13f) == -1);              /* towards zero, not down */
    assert_true(sum_of(1, 1, 0x1p-24f, 1.5f) == 1);                     /* and not to nearest */
    assert_true(sum_of(1, 1, -0x1p-25f, 1) == 1 - 0x1p-24f);
    assert_true(sum_of(0x1p24f, 3, 1, 1) == 0x1p24f + 2); /* 3 is exact, and the sum is cut */
    assert_true(sum_of(0, 16, 255, 255) == 16 * 255 * 255);
    assert_true(sum_of(0x1p-149f, 1, 0x1p-133f, 0x1p-16f) == 0x1p-148f); /* small numbers count */
    assert_true(sum_of(0, 1, 0x1p-133f, 0x1p-17f) == 0);
    assert_true(sum_of(0, 16, 0x1p-133f, 0x1p-20f) == 0x1p-149f);
    assert_true(sum_of(0, 16, 0x1p-79f, 0x1p-80f) == 0); /* 2^-159 is cut, whatever their number */
    assert_true(sum_of(0, 16, 0x1p-79f, 0x1p-79f) == 0); /* 2^-154, and the result is cut */
    assert_true(ls_fused16_link(0x1p-80f, 2, zero, large) ==
                0x1p-70f + 0x1p-80f); /* 0 has no exponent */
    assert_int_equal(bits_of(sum_of(-0.0f, 16, -0.0f, 3)), 0);
    assert_int_equal(bits_of(sum_of(1, 1, -1, 1)), 0);
    assert_int_equal(bits_of(sum_of(0, 1, -0x1p-80f, 0x1p-70f)), 0x80000000);
}

/* Infinities and NaNs. A product may be beyond f32, where others take it back. */
static void test_special(void **state) {
    const uint32_t nan = 0x7fffffff;
    uint16_t one[2] = {bf16(1), bf16(1)}, both[2] = {bf16(INFINITY), bf16(-INFINITY)};
    uint16_t large[2] = {bf16(0x1p127f), bf16(-0x1p127f)}, four[2] = {bf16(4), bf16(4)};
    (void)state;
    assert_int_equal(bits_of(sum_of(NAN, 1, 1, 1)), nan);
    assert_int_equal(bits_of(sum_of(0, 1, INFINITY, 0)), nan);
    assert_int_equal(bits_of(sum_of(0, 1, -0.0f, -INFINITY)), nan);
    assert_int_equal(bits_of(sum_of(-INFINITY, 1, INFINITY, 1)), nan);
    assert_int_equal(bits_of(ls_fused16_link(0, 2, both, one)), nan);
    assert_int_equal(bits_of(ls_fused16_link(0, 2, (uint16_t[]){0x7f81, 0}, one)), nan);
    assert_true(sum_of(1, 3, INFINITY, -INFINITY) == -INFINITY);
    assert_true(sum_of(INFINITY, 2, -1, 1) == INFINITY);
    assert_true(sum_of(-0x1.fffffep127f, 2, -0x1p127f, 1) == -INFINITY);
    assert_true(sum_of(0x1.fffffep127f, 1, 0x1p60f, 1) == 0x1.fffffep127f);
    assert_true(ls_fused16_link(0x1p105f, 2, large, four) == 0x1p105f);
    assert_true(ls_fused16_link(0x1p103f, 2, large, four) == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded), cmocka_unit_test(test_reference),
        cmocka_unit_test(test_symmetry), cmocka_unit_test(test_chain),
        cmocka_unit_test(test_values),   cmocka_unit_test(test_special),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
