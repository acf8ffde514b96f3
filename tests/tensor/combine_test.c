/* combine_test.c - every type of elements with every operation, against arithmetic in double
 * precision and in integers of 128 bits; 16-bit floats against their definition by ldexp, all
 * patterns of them; and the same bits from every variant. Variants are compared with one reference,
 * bit by bit, too. */
#include <math.h>

#include "base/random.h"
#include "lockstep/group.h"
#include "tensor/dtype.h"
#include "tensor/kernels.h"
#include "test.h"

__extension__ typedef __int128 wide;

static const size_t sizes[] = {0, 1, 7, 15, 16, 17, 33, 1000};
enum { NSIZES = sizeof sizes / sizeof *sizes, MAX_N = 1000, CELLS = MAX_N + 64, UNTOUCHED = 0xa5 };

static const char *const variants[] = {"portable", "avx2"};

/* Elements of any type, from index 1 on: aligned to an element and to no more. */
typedef union block {
    double f64[CELLS];
    float f32[CELLS];
    uint16_t h[CELLS];
    int64_t i64[CELLS];
    int32_t i32[CELLS];
    int8_t i8[CELLS];
    uint8_t u8[CELLS];
    unsigned char bytes[CELLS * sizeof(double)];
} block;

static void *start(block *b, ls_dtype dtype) { return b->bytes + ls_dtype_size(dtype); }

/* ---- the reference ---- */

static double number_of(ls_dtype dtype, unsigned h) {
    int digits = dtype == LS_BF16 ? 7 : 10, bias = dtype == LS_BF16 ? 127 : 15;
    int exponent = (int)(h & 0x7fff) >> digits, mantissa = (int)(h & ((1u << digits) - 1));
    double sign = h & 0x8000 ? -1 : 1;
    if (exponent == 2 * bias + 1) return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(mantissa, 1 - bias - digits);
    return sign * ldexp(mantissa + (1 << digits), exponent - bias - digits);
}

/* The nearest; rint() rounds ties to even. */
static uint16_t pattern_of(ls_dtype dtype, double x) {
    int digits = dtype == LS_BF16 ? 7 : 10, bias = dtype == LS_BF16 ? 127 : 15;
    int infinity = (2 * bias + 1) << digits, sign = signbit(x) ? 0x8000 : 0;
    if (isnan(x)) return (uint16_t)(infinity | 1 << (digits - 1));
    if (isinf(x)) return (uint16_t)(sign | infinity);
    int exponent = x == 0 || ilogb(x) < 1 - bias ? 1 - bias : ilogb(x);
    if (exponent > bias) return (uint16_t)(sign | infinity);
    int h = (exponent + bias - 1) * (1 << digits) + (int)rint(ldexp(fabs(x), digits - exponent));
    return (uint16_t)(sign | h);
}

/* In double precision: exact for products of f32, and precise enough that rounding to f32 after it
 * is rounding once. */
static double combine_numbers(ls_op op, double a, double b) {
    if (op == LS_SUM || op == LS_AVG) return a + b;
    if (op == LS_PROD) return a * b;
    if (isnan(a) || isnan(b)) return NAN;
    if (a == b) return (op == LS_MIN) == !!signbit(a) ? a : b;
    return op == LS_MIN ? fmin(a, b) : fmax(a, b);
}

static wide combine_integers(ls_op op, wide a, wide b) {
    if (op == LS_SUM || op == LS_AVG) return a + b;
    if (op == LS_PROD) return a * b;
    return (a < b) == (op == LS_MIN) ? a : b;
}

/* out[i] = a[i] op b[i]. */
static void combine_element(ls_dtype dtype, ls_op op, const block *a, const block *b, size_t i,
                            block *out) {
    uint64_t low = 0;
    if (dtype == LS_I64) low = (uint64_t)combine_integers(op, a->i64[i], b->i64[i]);
    if (dtype == LS_I32) low = (uint64_t)combine_integers(op, a->i32[i], b->i32[i]);
    if (dtype == LS_I8) low = (uint64_t)combine_integers(op, a->i8[i], b->i8[i]);
    if (dtype == LS_U8) low = (uint64_t)combine_integers(op, a->u8[i], b->u8[i]);
    double x = 0, y = 0;
    if (dtype == LS_F32) x = (double)a->f32[i], y = (double)b->f32[i];
    if (dtype == LS_BF16 || dtype == LS_F16)
        x = number_of(dtype, a->h[i]), y = number_of(dtype, b->h[i]);
    switch (dtype) {
    case LS_F64: out->f64[i] = combine_numbers(op, a->f64[i], b->f64[i]); break;
    case LS_F32: out->f32[i] = (float)combine_numbers(op, x, y); break;
    case LS_BF16:
    case LS_F16: out->h[i] = pattern_of(dtype, (double)(float)combine_numbers(op, x, y)); break;
    case LS_I64: out->i64[i] = (int64_t)low; break;
    case LS_I32: out->i32[i] = (int32_t)(uint32_t)low; break;
    case LS_I8: out->i8[i] = (int8_t)(uint8_t)low; break;
    case LS_U8: out->u8[i] = (uint8_t)low; break;
    case LS_NDTYPES: fail();
    }
}

/* ---- inputs ---- */

static uint64_t random_bits(uint64_t which, uint64_t i) {
    uint32_t w[4];
    ls_random_words(11, LS_STREAM_SAMPLE, which, i, w);
    return (uint64_t)w[0] << 32 | w[1];
}

/* Patterns of bits, every third one of a moderate number; some infinities, zeros of both signs and,
 * if asked for, NaNs. */
static void fill(block *v, ls_dtype dtype, uint64_t which, bool nans) {
    static const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 65504, -1};
    for (size_t i = 0; i < CELLS; i++) {
        uint64_t u = random_bits(which, i);
        double x = (double)(int64_t)u / 1e18;
        if (u % 16 < 8) x = odd[(u >> 8) % 8];
        bool pattern = i % 3 == 0;
        if (dtype == LS_F64) memcpy(&v->f64[i], &u, sizeof u);
        if (dtype == LS_F32) memcpy(&v->f32[i], &u, sizeof v->f32[i]);
        if (dtype == LS_BF16 || dtype == LS_F16)
            v->h[i] = pattern ? (uint16_t)u : pattern_of(dtype, x);
        if (dtype == LS_F64 && (!pattern || isnan(v->f64[i]))) v->f64[i] = x;
        if (dtype == LS_F32 && (!pattern || isnan(v->f32[i]))) v->f32[i] = (float)x;
        if (dtype == LS_F64 && !nans && isnan(v->f64[i])) v->f64[i] = 1;
        if (dtype == LS_F32 && !nans && isnan(v->f32[i])) v->f32[i] = 1;
        if (dtype == LS_I64) v->i64[i] = (int64_t)u;
        if (dtype == LS_I32) v->i32[i] = (int32_t)(uint32_t)u;
        if (ls_dtype_size(dtype) == 1) v->u8[i] = (uint8_t)u;
    }
}

/* A NaN from a sum or product of f32 or f64 may have any payload. */
static bool any_nan(ls_dtype dtype, ls_op op) {
    return ls_dtype_size(dtype) >= 4 && op != LS_MIN && op != LS_MAX;
}

static void settle_nans(block *v, ls_dtype dtype, ls_op op) {
    for (size_t i = 0; i < CELLS && any_nan(dtype, op); i++) {
        if (dtype == LS_F64 && isnan(v->f64[i])) v->f64[i] = NAN;
        if (dtype == LS_F32 && isnan(v->f32[i])) v->f32[i] = NAN;
    }
}

/* ---- combine ---- */

/* Elements 1 to n as the reference has them, and nothing written beside them. */
static void check_combined(const char *variant, ls_dtype dtype, ls_op op, size_t n, const block *a,
                           const block *b, block *got, const block *before) {
    static block want;
    want = *before;
    for (size_t i = 1; i <= n; i++) combine_element(dtype, op, a, b, i, &want);
    settle_nans(&want, dtype, op);
    settle_nans(got, dtype, op);
    if (memcmp(got, &want, sizeof want) == 0) return;
    size_t at = 0, size = ls_dtype_size(dtype);
    while (got->bytes[at] == want.bytes[at]) at++;
    print_error("%s, %s of %s, size %zu: element %zu differs\n", variant, ls_op_name(op),
                ls_dtype_name(dtype), n, at / size);
    fail();
}

static void check_combine(const ls_kernels *k, ls_dtype dtype, ls_op op, size_t n) {
    static block a, b, out, before;
    fill(&a, dtype, 1, true);
    fill(&b, dtype, 2, true);
    memset(&before, UNTOUCHED, sizeof before);
    out = before;
    k->combine(dtype, op, n, start(&a, dtype), start(&b, dtype), start(&out, dtype));
    check_combined(k->name, dtype, op, n, &a, &b, &out, &before);
    out = before = a;
    settle_nans(&before, dtype, op);
    k->combine(dtype, op, n, start(&out, dtype), start(&b, dtype), start(&out, dtype));
    check_combined(k->name, dtype, op, n, &a, &b, &out, &before);
    out = before = b;
    settle_nans(&before, dtype, op);
    k->combine(dtype, op, n, start(&a, dtype), start(&out, dtype), start(&out, dtype));
    check_combined(k->name, dtype, op, n, &a, &b, &out, &before);
    out = b;
    k->combine(dtype, op, n, start(&out, dtype), start(&out, dtype), start(&out, dtype));
    check_combined(k->name, dtype, op, n, &b, &b, &out, &before);
}

static void test_combine(void **state) {
    (void)state;
    for (int v = 0; v < 2; v++)
        for (int dtype = 0; dtype < LS_NDTYPES && ls_kernels_named(variants[v]); dtype++)
            for (int op = 0; op < LS_NOPS; op++)
                for (int s = 0; s < NSIZES; s++)
                    check_combine(ls_kernels_named(variants[v]), (ls_dtype)dtype, (ls_op)op,
                                  sizes[s]);
}

static void test_same_bits(void **state) {
    (void)state;
    static block a, b, portable, avx2;
    const ls_kernels *p = ls_kernels_named("portable"), *k = ls_kernels_named("avx2");
    if (!k) {
        print_message("skipped: no avx2 kernels on this processor\n");
        skip();
    }
    for (int d = 0; d < LS_NDTYPES; d++)
        for (int o = 0; o < LS_NOPS; o++)
            for (int s = 0; s < NSIZES; s++) {
                ls_dtype dtype = (ls_dtype)d;
                ls_op op = (ls_op)o;
                fill(&a, dtype, 3, !any_nan(dtype, op));
                fill(&b, dtype, 4, !any_nan(dtype, op));
                memset(&portable, UNTOUCHED, sizeof portable);
                avx2 = portable;
                p->combine(dtype, op, sizes[s], start(&a, dtype), start(&b, dtype),
                           start(&portable, dtype));
                k->combine(dtype, op, sizes[s], start(&a, dtype), start(&b, dtype),
                           start(&avx2, dtype));
                assert_memory_equal(&portable, &avx2, sizeof portable);
                if (!ls_dtype_is_float(dtype)) continue;
                p->average(dtype, sizes[s], 7, start(&a, dtype));
                fill(&b, dtype, 3, !any_nan(dtype, op));
                k->average(dtype, sizes[s], 7, start(&b, dtype));
                assert_memory_equal(&a, &b, sizeof a);
            }
}

/* Neither order, nor sign or payload of a NaN, shows; -0 < +0. Three NaNs, then numbers in order.
 */
static void check_pick(const ls_kernels *k) {
    static const uint32_t f32[] = {0x7f800001, 0xffc12345, 0x7fc00000, 0xff800000,
                                   0xc0000000, 0x80000001, 0x80000000, 0,
                                   1,          0x40000000, 0x7f7fffff, 0x7f800000};
    static const uint64_t f64[] = {0x7ff0000000000001,
                                   0xfff8000012345678,
                                   0x7ff8000000000000,
                                   0xfff0000000000000,
                                   0xc000000000000000,
                                   0x8000000000000001,
                                   0x8000000000000000,
                                   0,
                                   1,
                                   0x4000000000000000,
                                   0x7fefffffffffffff,
                                   0x7ff0000000000000};
    for (size_t i = 0; i < 12; i++)
        for (size_t j = 0; j < 12; j++) {
            uint32_t min32 = 0, max32 = 0;
            uint64_t min64 = 0, max64 = 0;
            size_t less = i < j ? i : j, more = i < j ? j : i;
            if (less < 3) less = more = 2;
            k->combine(LS_F32, LS_MIN, 1, &f32[i], &f32[j], &min32);
            k->combine(LS_F32, LS_MAX, 1, &f32[i], &f32[j], &max32);
            k->combine(LS_F64, LS_MIN, 1, &f64[i], &f64[j], &min64);
            k->combine(LS_F64, LS_MAX, 1, &f64[i], &f64[j], &max64);
            assert_true(min32 == f32[less] && max32 == f32[more]);
            assert_true(min64 == f64[less] && max64 == f64[more]);
        }
}

static void test_pick(void **state) {
    (void)state;
    for (int v = 0; v < 2; v++)
        if (ls_kernels_named(variants[v])) check_pick(ls_kernels_named(variants[v]));
}

static void test_wrap(void **state) {
    (void)state;
    int64_t i64 = INT64_MAX, one64 = 1;
    int32_t i32 = INT32_MIN, minus32 = -1;
    int8_t i8 = -128, minus8 = -1;
    uint8_t u8 = 255, two8 = 2;
    for (int v = 0; v < 2 && ls_kernels_named(variants[v]); v++) {
        const ls_kernels *k = ls_kernels_named(variants[v]);
        int64_t out64 = 0;
        int32_t out32 = 0;
        int8_t out8 = 0;
        uint8_t outu8 = 0;
        k->combine(LS_I64, LS_SUM, 1, &i64, &one64, &out64);
        assert_true(out64 == INT64_MIN);
        k->combine(LS_I64, LS_PROD, 1, &i64, &i64, &out64);
        assert_true(out64 == 1);
        k->combine(LS_I32, LS_SUM, 1, &i32, &minus32, &out32);
        assert_true(out32 == INT32_MAX);
        k->combine(LS_I32, LS_PROD, 1, &i32, &minus32, &out32);
        assert_true(out32 == INT32_MIN);
        k->combine(LS_I8, LS_SUM, 1, &i8, &minus8, &out8);
        assert_int_equal(out8, 127);
        k->combine(LS_I8, LS_MAX, 1, &i8, &minus8, &out8);
        assert_int_equal(out8, -1);
        k->combine(LS_U8, LS_PROD, 1, &u8, &two8, &outu8);
        assert_int_equal(outu8, 254);
        k->combine(LS_U8, LS_MAX, 1, &u8, &two8, &outu8);
        assert_int_equal(outu8, 255);
    }
}

/* ---- average ---- */

static void average_element(ls_dtype dtype, int by, size_t i, block *x) {
    if (dtype == LS_F64) x->f64[i] = x->f64[i] / by;
    if (dtype == LS_F32) x->f32[i] = (float)((double)x->f32[i] / by);
    if (dtype == LS_BF16 || dtype == LS_F16)
        x->h[i] = pattern_of(dtype, (double)(float)(number_of(dtype, x->h[i]) / by));
}

static void test_average(void **state) {
    (void)state;
    static const int divisors[] = {1, 2, 3, 5, 7, 8, 1000003};
    static block got, want;
    for (int v = 0; v < 2 && ls_kernels_named(variants[v]); v++)
        for (ls_dtype dtype = LS_F64; dtype <= LS_F16; dtype++)
            for (int d = 0; d < 7; d++)
                for (int s = 0; s < NSIZES; s++) {
                    fill(&got, dtype, 5, true);
                    want = got;
                    ls_kernels_named(variants[v])
                        ->average(dtype, sizes[s], divisors[d], start(&got, dtype));
                    for (size_t i = 1; i <= sizes[s]; i++)
                        average_element(dtype, divisors[d], i, &want);
                    settle_nans(&got, dtype, LS_AVG);
                    settle_nans(&want, dtype, LS_AVG);
                    assert_memory_equal(&got, &want, sizeof got);
                }
}

/* ---- conversions ---- */

enum { PATTERNS = 65536 };

static void check_widen(const ls_kernels *k, ls_dtype dtype) {
    static uint16_t patterns[PATTERNS], again[PATTERNS];
    static float got[PATTERNS];
    for (unsigned i = 0; i < PATTERNS; i++) patterns[i] = (uint16_t)i;
    k->widen(dtype, PATTERNS, patterns, got);
    k->narrow(dtype, PATTERNS, got, again);
    for (unsigned i = 0; i < PATTERNS; i++) {
        double want = number_of(dtype, i);
        if (isnan(want)) {
            assert_true(isnan(got[i]));
            assert_int_equal(again[i], pattern_of(dtype, NAN));
            continue;
        }
        assert_true((double)got[i] == want && !signbit(got[i]) == !signbit(want));
        assert_int_equal(again[i], i);
    }
}

static void check_narrow(const ls_kernels *k, ls_dtype dtype, size_t n, const float *x) {
    static uint16_t got[PATTERNS * 3];
    k->narrow(dtype, n, x, got);
    for (size_t i = 0; i < n; i++) {
        uint16_t want = pattern_of(dtype, (double)x[i]);
        if (got[i] == want) continue;
        print_error("%s of %a, variant %s: %#x, not %#x\n", ls_dtype_name(dtype), (double)x[i],
                    k->name, got[i], want);
        fail();
    }
}

/* Half way between neighbours, and just below and above: subnormals, the step to infinity, all. */
static void check_halves(const ls_kernels *k, ls_dtype dtype) {
    static float x[PATTERNS * 3];
    size_t n = 0;
    for (unsigned h = 0; h < PATTERNS; h++) {
        double number = number_of(dtype, h), next = number_of(dtype, h + 1);
        if (!isfinite(number)) continue;
        if (!isfinite(next)) next = 2 * number - number_of(dtype, h - 1);
        float half = (float)((number + next) / 2);
        assert_true((double)half == (number + next) / 2);
        x[n++] = half;
        x[n++] = nextafterf(half, 0.0f);
        x[n++] = nextafterf(half, half > 0 ? INFINITY : -INFINITY);
    }
    check_narrow(k, dtype, n, x);
}

static void test_conversions(void **state) {
    (void)state;
    static float x[PATTERNS];
    for (size_t i = 0; i < PATTERNS; i++) {
        uint32_t u = (uint32_t)random_bits(6, i);
        if (i % 2) u = (u & 0x8fffffff) | 0x30000000; /* about the range of f16 */
        memcpy(&x[i], &u, sizeof u);
    }
    for (int v = 0; v < 2; v++)
        for (ls_dtype dtype = LS_BF16; dtype <= LS_F16 && ls_kernels_named(variants[v]); dtype++) {
            const ls_kernels *k = ls_kernels_named(variants[v]);
            check_widen(k, dtype);
            check_halves(k, dtype);
            check_narrow(k, dtype, PATTERNS, x);
            for (int s = 0; s < NSIZES; s++) check_narrow(k, dtype, sizes[s], x + 1);
        }
}

/* Numbers that the standards and manuals give. */
static void test_known(void **state) {
    (void)state;
    const ls_kernels *k = ls_kernels_named("portable");
    const float x[] = {1.0f, -2.0f, 65504.0f, 65519.99f, 65520.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f};
    const uint16_t want[] = {0x3c00, 0xc000, 0x7bff, 0x7bff, 0x7c00, 1, 0, 1};
    const uint16_t want_bf16[] = {0x3f80, 0xc000, 0x4780, 0x4780, 0x4780, 0x3380, 0x3300, 0x3340};
    uint16_t got[8];
    k->narrow(LS_F16, 8, x, got);
    assert_memory_equal(got, want, sizeof got);
    k->narrow(LS_BF16, 8, x, got);
    assert_memory_equal(got, want_bf16, sizeof got);
}

/* ---- names ---- */

static void test_names(void **state) {
    (void)state;
    static const size_t want[] = {8, 4, 2, 2, 8, 4, 1, 1};
    for (int i = 0; i < LS_NDTYPES; i++) {
        ls_dtype dtype = LS_NDTYPES;
        assert_true(ls_dtype_from_name(ls_dtype_name((ls_dtype)i), &dtype));
        assert_int_equal(dtype, i);
        assert_int_equal(ls_dtype_size(dtype), want[i]);
        assert_int_equal(ls_dtype_is_float(dtype), i <= LS_F16);
    }
    for (int i = 0; i < LS_NOPS; i++) {
        ls_op op = LS_NOPS;
        assert_true(ls_op_from_name(ls_op_name((ls_op)i), &op));
        assert_int_equal(op, i);
    }
    ls_dtype dtype = LS_U8;
    ls_op op = LS_MAX;
    assert_false(ls_dtype_from_name("f8", &dtype) || ls_dtype_from_name(NULL, &dtype));
    assert_false(ls_op_from_name("", &op) || ls_op_from_name(NULL, &op));
    assert_true(dtype == LS_U8 && op == LS_MAX);
    assert_string_equal(ls_dtype_name(LS_NDTYPES), "?");
    assert_string_equal(ls_op_name(LS_NOPS), "?");
    assert_string_equal(ls_dtype_name(LS_BF16), "bf16");
    assert_string_equal(ls_op_name(LS_PROD), "prod");
    assert_int_equal(ls_dtype_size(LS_NDTYPES), 0);
}

int main(void) {
    unsetenv("LOCKSTEP_CPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_combine), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_pick),    cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_average), cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_known),   cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
