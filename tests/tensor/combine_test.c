/* combine_test.c - every element type with every operation, against arithmetic in double precision
 * and in 128-bit integers; all patterns of 16-bit floats against their definition by ldexp. Every
 * variant is compared with the reference bit by bit. */
#include <math.h>

#include "lockstep/group.h"
#include "tensor/dtype.h"
#include "tensor/elements.h"
#include "tensor/kernels.h"
#include "test.h"

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

static const size_t sizes[] = {0, 1, 7, 15, 16, 17, 33, MAX_ELEMENTS};
enum { NSIZES = sizeof sizes / sizeof *sizes, UNTOUCHED = 0xa5 };

/* ---- the reference ---- */

/* In double precision: exact for products of f32, and precise enough that rounding the result to
 * f32 has the effect of rounding once. */
static double combine_numbers(ls_op op, double a, double b) {
    if (op == LS_SUM || op == LS_AVG) return a + b;
    if (op == LS_PROD) return a * b;
    if (isnan(a) || isnan(b)) return NAN;
    if (a == b) return (op == LS_MIN) == !!signbit(a) ? a : b;
    return op == LS_MIN ? fmin(a, b) : fmax(a, b);
}

static wide combine_integers(ls_op op, wide a, wide b) {
    if (op == LS_BAND) return a & b;
    if (op == LS_BOR) return a | b;
    if (op == LS_BXOR) return a ^ b;
    if (op == LS_LAND) return a && b;
    if (op == LS_LOR) return a || b;
    if (op == LS_LXOR) return !a != !b;
    if (op == LS_SUM || op == LS_AVG) return a + b;
    if (op == LS_PROD) return (wide)((unsigned_wide)a * (unsigned_wide)b);
    return (a < b) == (op == LS_MIN) ? a : b;
}

/* True if the first of two pairs wins: NaNs before numbers, then by value, then the lower index. */
static bool wins(ls_op op, double x, double y, int64_t i, int64_t j) {
    if (isnan(x) != isnan(y)) return isnan(x);
    if (!isnan(x) && (x < y || x > y)) return (x < y) == (op == LS_MINLOC);
    if (!isnan(x) && x == 0 && !!signbit(x) != !!signbit(y))
        return !!signbit(x) == (op == LS_MINLOC);
    return i <= j;
}

static bool wins_i64(ls_op op, const ls_i64_i64 *x, const ls_i64_i64 *y) {
    return x->value != y->value ? (x->value < y->value) == (op == LS_MINLOC) : x->index <= y->index;
}

static void combine_pair(ls_dtype dtype, ls_op op, const block *a, const block *b, size_t i,
                         block *out) {
    const ls_f64_i64 *d = &a->f64_i64[i], *e = &b->f64_i64[i];
    const ls_f32_i32 *f = &a->f32_i32[i], *g = &b->f32_i32[i];
    const ls_i32_i32 *p = &a->i32_i32[i], *q = &b->i32_i32[i];
    if (dtype == LS_F64_I64) {
        out->f64_i64[i] = wins(op, d->value, e->value, d->index, e->index) ? *d : *e;
        if (isnan(out->f64_i64[i].value)) out->f64_i64[i].value = (double)NAN;
    } else if (dtype == LS_F32_I32) {
        bool one = wins(op, (double)f->value, (double)g->value, f->index, g->index);
        out->f32_i32[i] = one ? *f : *g;
        if (isnan(out->f32_i32[i].value)) out->f32_i32[i].value = NAN;
    } else if (dtype == LS_I64_I64) {
        bool one = wins_i64(op, &a->i64_i64[i], &b->i64_i64[i]);
        out->i64_i64[i] = one ? a->i64_i64[i] : b->i64_i64[i];
    } else {
        ls_i64_i64 x = {p->value, p->index}, y = {q->value, q->index};
        out->i32_i32[i] = wins_i64(op, &x, &y) ? *p : *q;
    }
}

/* out[i] = a[i] op b[i]. */
static void combine_element(ls_dtype dtype, ls_op op, const block *a, const block *b, size_t i,
                            block *out) {
    uint64_t low = 0;
    if (dtype == LS_I64) low = (uint64_t)combine_integers(op, a->i64[i], b->i64[i]);
    if (dtype == LS_I32) low = (uint64_t)combine_integers(op, a->i32[i], b->i32[i]);
    if (dtype == LS_I8) low = (uint64_t)combine_integers(op, a->i8[i], b->i8[i]);
    if (dtype == LS_U16) low = (uint64_t)combine_integers(op, a->u16[i], b->u16[i]);
    if (dtype == LS_U32) low = (uint64_t)combine_integers(op, a->u32[i], b->u32[i]);
    if (dtype == LS_U64) low = (uint64_t)combine_integers(op, a->u64[i], b->u64[i]);
    if (dtype == LS_I16) low = (uint64_t)combine_integers(op, a->i16[i], b->i16[i]);
    if (dtype == LS_BOOL) low = (uint64_t)combine_integers(op, a->u8[i], b->u8[i]);
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
    case LS_BOOL:
    case LS_U8: out->u8[i] = (uint8_t)low; break;
    case LS_I16:
    case LS_U16: out->u16[i] = (uint16_t)low; break;
    case LS_U32: out->u32[i] = (uint32_t)low; break;
    case LS_U64: out->u64[i] = low; break;
    case LS_F64_I64:
    case LS_F32_I32:
    case LS_I64_I64:
    case LS_I32_I32: combine_pair(dtype, op, a, b, i, out); break;
    case LS_NDTYPES: fail();
    }
}

/* ---- combine ---- */

/* Elements 1 to n are those of the reference, and nothing else was written. */
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
    fill_block(&a, dtype, 1, true);
    fill_block(&b, dtype, 2, true);
    memset(&before, UNTOUCHED, sizeof before);
    out = before;
    k->combine(dtype, op, n, block_at(&a, dtype), block_at(&b, dtype), block_at(&out, dtype));
    check_combined(k->name, dtype, op, n, &a, &b, &out, &before);
    out = before = a;
    settle_nans(&before, dtype, op);
    k->combine(dtype, op, n, block_at(&out, dtype), block_at(&b, dtype), block_at(&out, dtype));
    check_combined(k->name, dtype, op, n, &a, &b, &out, &before);
    out = before = b;
    settle_nans(&before, dtype, op);
    k->combine(dtype, op, n, block_at(&a, dtype), block_at(&out, dtype), block_at(&out, dtype));
    check_combined(k->name, dtype, op, n, &a, &b, &out, &before);
    out = b;
    k->combine(dtype, op, n, block_at(&out, dtype), block_at(&out, dtype), block_at(&out, dtype));
    check_combined(k->name, dtype, op, n, &b, &b, &out, &before);
}

static bool takes(int op, int dtype) { return ls_op_takes((ls_op)op, (ls_dtype)dtype); }

static void test_combine(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    for (int v = 0; (k = ls_kernels_at(v)); v++)
        for (int dtype = 0; dtype < LS_NDTYPES; dtype++)
            for (int op = 0; op < LS_NOPS; op++)
                for (int s = 0;
                     s < NSIZES && (takes(op, dtype) || (op == LS_AVG && dtype < LS_BOOL)); s++)
                    check_combine(k, (ls_dtype)dtype, (ls_op)op, sizes[s]);
}

/* The result depends neither on the order nor on the sign or payload of a NaN; -0 < +0. Three NaNs,
 * then numbers in order. */
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
    const ls_kernels *k = NULL;
    for (int v = 0; (k = ls_kernels_at(v)); v++) check_pick(k);
}

static void test_wrap(void **state) {
    (void)state;
    int64_t i64 = INT64_MAX, one64 = 1;
    int32_t i32 = INT32_MIN, minus32 = -1;
    int8_t i8 = -128, minus8 = -1;
    uint8_t u8 = 255, two8 = 2;
    const ls_kernels *k = NULL;
    for (int v = 0; (k = ls_kernels_at(v)); v++) {
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
    const ls_kernels *k = NULL;
    for (int v = 0; (k = ls_kernels_at(v)); v++)
        for (ls_dtype dtype = LS_F64; dtype <= LS_F16; dtype++)
            for (int d = 0; d < 7; d++)
                for (int s = 0; s < NSIZES; s++) {
                    fill_block(&got, dtype, 5, true);
                    want = got;
                    k->average(dtype, sizes[s], divisors[d], block_at(&got, dtype));
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

/* Halfway between all neighbours, and just below and above, with subnormals and the step to
 * infinity. */
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
    const ls_kernels *k = NULL;
    for (int v = 0; (k = ls_kernels_at(v)); v++)
        for (ls_dtype dtype = LS_BF16; dtype <= LS_F16; dtype++) {
            check_widen(k, dtype);
            check_halves(k, dtype);
            check_narrow(k, dtype, PATTERNS, x);
            for (int s = 0; s < NSIZES; s++) check_narrow(k, dtype, sizes[s], x + 1);
        }
}

/* Values from standards and manuals. */
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
    static const size_t want[] = {8, 4, 2, 2, 8, 4, 1, 1, 2, 4, 8, 2, 1, 16, 8, 16, 8};
    for (int i = 0; i < LS_NDTYPES; i++) {
        assert_int_equal(ls_dtype_size((ls_dtype)i), want[i]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(ls_dtype_name((ls_dtype)i), ls_dtype_name((ls_dtype)j));
    }
    for (int i = 0; i < LS_NOPS; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(ls_op_name((ls_op)i), ls_op_name((ls_op)j));
    for (int d = 0; d < LS_NDTYPES; d++)
        for (int i = 0; i < LS_NOPS; i++)
            assert_int_equal(takes(i, d), i >= LS_MINLOC ? d > LS_BOOL
                                          : i >= LS_BAND ? d > LS_F16 && d < LS_BOOL
                                          : i >= LS_LAND ? d > LS_F16 && d <= LS_BOOL
                                          : i == LS_AVG  ? d <= LS_F16
                                                         : d < LS_BOOL);
    assert_false(ls_op_takes(LS_NOPS, LS_U8) || ls_op_takes(LS_SUM, LS_NDTYPES));
    assert_string_equal(ls_dtype_name(LS_NDTYPES), "?");
    assert_string_equal(ls_op_name(LS_NOPS), "?");
    assert_string_equal(ls_dtype_name(LS_BF16), "bf16");
    assert_string_equal(ls_op_name(LS_PROD), "prod");
    assert_int_equal(ls_dtype_size(LS_NDTYPES), 0);
}

int main(void) {
    unsetenv("LOCKSTEP_CPU");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_combine),     cmocka_unit_test(test_pick),
        cmocka_unit_test(test_wrap),        cmocka_unit_test(test_average),
        cmocka_unit_test(test_conversions), cmocka_unit_test(test_known),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
