/* gemm_test.c - products on a device, of every kind, have the bits of the host: by each kernel, for
 * operands that lie in all ways, and for tiles that are whole, cut and beside many others. */
/* ctest: seconds=15 */
#include "tensor/gemm_device.h"

#include "device/on_device.h"

/* How a and b lie: as for a layer's output, and for the gradients of its input and weights; and
 * with elements apart in both directions. */
typedef enum layout { OUTPUT, INPUT, WEIGHTS, APART, NLAYOUTS } layout;

typedef struct product {
    int64_t M, N, K;
    layout layout;
    int64_t gap; /* numbers before each operand and after each row: with 1, none is at 16 bytes */
    ls_gemm_start start;
    ls_gemm_units units;
} product;

static ls_matrix matrix_of(const void *p, int64_t rows, int64_t columns, bool across,
                           const product *x) {
    const float *first = (const float *)p + x->gap;
    if (x->layout == APART) return (ls_matrix){first, 2 * (columns + x->gap) - 1, 2, false};
    return across ? ls_matrix_transposed(first, rows + x->gap)
                  : ls_matrix_of(first, columns + x->gap);
}

/* Room for any layout. */
static int64_t floats_of(int64_t rows, int64_t columns, const product *x) {
    return x->gap + (rows + x->gap) * (columns + x->gap) * (x->layout == APART ? 2 : 1);
}

/* Ordinary numbers; mostly zeros of both signs; many sizes, below the least normal number too; or
 * of which products are about that size. */
typedef enum numbers { ORDINARY, ZEROS, SIZES, SMALL, NNUMBERS } numbers;

static pair numbers_of(sides *s, int64_t n, numbers kind) {
    static const float zeros[] = {0.0f, -0.0f, 0.0f, -0.0f, -0.0f, 0x1p-149f, -1.0f, 0.5f};
    static const float sizes[] = {1e-30f, -1e-39f, 3e8f, -1e12f, 1.0f, -0.0f, 1e-20f, -7.25f};
    /* products and sums about 2^-126, of which some are below it only before they are rounded */
    static const float small[] = {0x1p-63f, -0x1.fep-64f, 0x1p-100f, -0x1.02p-63f,
                                  0x1p-30f, 0x1.fep-64f,  -0.0f,     -0x1.fcp-97f};
    pair p = pair_numbers(s, n, 1);
    for (int64_t i = 0; kind != ORDINARY && i < n; i++) {
        uint32_t words[4];
        ls_random_words(s->seed, LS_STREAM_FAKE, 2, (uint64_t)i, words);
        const float *list = kind == ZEROS ? zeros : kind == SIZES ? sizes : small;
        ((float *)p.host)[i] = list[(words[0] ^ words[1]) % 8];
    }
    pair_send(s, &p);
    return p;
}

typedef struct operands {
    pair a, b, c, bias;
    bool bf16;
    pair rows; /* numbers of the rows of k; NULL: k itself */
} operands;

static ls_gemm_job job_of(const product *x, const operands *o, bool device) {
#define AT(pair) (device ? (pair).device : (pair).host)
    return (ls_gemm_job){.M = x->M,
                         .bf16 = o->bf16,
                         .units = {x->units.rows, x->units.first, AT(o->rows)},
                         .N = x->N,
                         .K = x->K,
                         .a = matrix_of(AT(o->a), x->M, x->K, x->layout == WEIGHTS, x),
                         .b = matrix_of(AT(o->b), x->K, x->N, x->layout == INPUT, x),
                         .c = (float *)AT(o->c) + x->gap,
                         .ldc = x->N + x->gap,
                         .start = x->start,
                         .bias = AT(o->bias)};
#undef AT
}

/* Those of about three quarters of all rows. */
static pair some_rows(sides *s, int64_t n) {
    pair p = pair_of(s, (size_t)n * sizeof(int32_t) + 4);
    for (int64_t i = 0, row = 0; i < n; i++, row++) {
        uint32_t words[4];
        ls_random_words(s->seed, LS_STREAM_FAKE, 3, (uint64_t)i, words);
        if (words[0] % 3 == 0) row++;
        ((int32_t *)p.host)[i] = (int32_t)row;
    }
    pair_send(s, &p);
    return p;
}

static void check_by(sides *s, const product *x, numbers kind, const ls_device_kernel *kernels,
                     int nkernels) {
    operands o = {.bf16 = kernels[0] == LS_KERNEL_gemm_blocks,
                  .a = numbers_of(s, floats_of(x->M, x->K, x), kind),
                  .b = numbers_of(s, floats_of(x->K, x->N, x), kind),
                  .c = numbers_of(s, floats_of(x->M, x->N, x), kind),
                  .bias = numbers_of(s, x->N, kind)};
    if (x->units.row) o.rows = some_rows(s, x->K);
    void *before = malloc(o.c.nbytes), *after = malloc(o.c.nbytes);
    assert_true(before && after);
    memcpy(before, o.c.host, o.c.nbytes);
    ls_gemm_job host = job_of(x, &o, false), device = job_of(x, &o, true);
    ls_gemm(&s->host, &host);
    memcpy(after, o.c.host, o.c.nbytes);
    for (int i = 0; i < nkernels; i++) {
        memcpy(o.c.host, before, o.c.nbytes);
        pair_send(s, &o.c);
        ls_gemm_device_by(&s->device, &device, kernels[i]);
        memcpy(o.c.host, after, o.c.nbytes);
        if (pair_same(s, &o.c, "c")) continue;
        nwrong++;
        print_error("  %s of %d x %d x %d, layout %d, gap %d, start %d, numbers %d\n",
                    ls_device_kernels[kernels[i]].name, (int)x->M, (int)x->N, (int)x->K, x->layout,
                    (int)x->gap, x->start, kind);
    }
    pair *all[] = {&o.a, &o.b, &o.c, &o.bias, &o.rows};
    for (size_t i = 0; i < sizeof all / sizeof *all - !x->units.row; i++) pair_free(s, all[i]);
    free(before);
    free(after);
}

static void check(sides *s, const product *x, numbers kind) {
    static const ls_device_kernel kernels[] = {LS_KERNEL_gemm, LS_KERNEL_gemm_small,
                                               LS_KERNEL_gemm_some, LS_KERNEL_gemm_rows};
    check_by(s, x, kind, kernels, 2 + (x->M <= 16) + (x->M <= 4));
}

/* In bf16. */
static void check_blocks(sides *s, const product *x, numbers kind) {
    static const ls_device_kernel kernels[] = {LS_KERNEL_gemm_blocks, LS_KERNEL_gemm_some_blocks,
                                               LS_KERNEL_gemm_rows_blocks};
    check_by(s, x, kind, kernels, x->units.rows ? 1 : 1 + (x->M <= 16) + (x->M <= 4));
}

/* Each size in every layout, with some starts and kinds of numbers. */
static void check_sizes(const int64_t (*sizes)[3], int64_t n, uint64_t seed,
                        void (*compare)(sides *, const product *, numbers)) {
    sides s;
    sides_open(&s, seed, 0);
    for (int64_t i = 0; i < n * NLAYOUTS * ncases(2, 6); i++) {
        const int64_t *size = sizes[i % n];
        product x = {
            .M = size[0], .N = size[1], .K = size[2], .layout = (layout)(i / n % NLAYOUTS)};
        x.gap = i / n / NLAYOUTS % 2 * (i % 2 ? 1 : 4);
        x.start = (ls_gemm_start)((i + i / n) % 3);
        compare(&s, &x, (numbers)((i / 3 + i / n) % NNUMBERS));
    }
    sides_close(&s);
}

/* Every layout, start and kind of numbers with small sizes, and with tiles that are whole or
 * cut. */
static void test_layouts(void **state) {
    static const int64_t sizes[][3] = {{1, 1, 1},      {3, 5, 0},     {4, 67, 131}, {2, 33, 64},
                                       {5, 40, 66},    {16, 33, 131}, {11, 67, 64}, {20, 30, 17},
                                       {65, 7, 9},     {7, 68, 16},   {132, 4, 33}, {64, 64, 32},
                                       {128, 136, 19}, {129, 127, 48}};
    (void)state;
    check_sizes(sizes, sizeof sizes / sizeof *sizes, 1, check);
    assert_none_wrong();
}

/* The same in bf16: blocks that are whole and cut. */
static void test_blocks(void **state) {
    static const int64_t sizes[][3] = {{1, 1, 1},    {3, 5, 0},   {4, 67, 131}, {1, 31, 97},
                                       {20, 30, 17}, {65, 7, 31}, {7, 68, 32},  {132, 4, 33},
                                       {64, 64, 64}, {12, 9, 97}, {5, 66, 2},   {129, 127, 48}};
    (void)state;
    check_sizes(sizes, sizeof sizes / sizeof *sizes, 3, check_blocks);
    assert_none_wrong();
}

/* Blocks that begin anew in a sum over rows: at multiples of a unit from its first row on, or where
 * the numbers of rows say so. */
static void test_units(void **state) {
    static const int32_t some = 0;
    static const int64_t units[][2] = {{32, 0}, {33, 0}, {33, 32}, {5, 3}, {100, 64}, {64, 0}};
    sides s;
    (void)state;
    sides_open(&s, 4, 0);
    for (int i = 0; i < 6; i++)
        for (int listed = 0; listed < 2; listed++) {
            product x = {.M = 9, .N = 70, .K = 131, .layout = WEIGHTS, .start = LS_GEMM_ADD};
            x.units = (ls_gemm_units){units[i][0], units[i][1], listed ? &some : NULL};
            check_blocks(&s, &x, i % 2 ? ORDINARY : SIZES);
        }
    sides_close(&s);
    assert_none_wrong();
}

/* More tiles down than a band has, and a last band that is lower. */
static void test_many_tiles(void **state) {
    sides s;
    (void)state;
    sides_open(&s, 2, 0);
    check(&s, &(product){.M = 11 * 64 + 1, .N = 3 * 64 + 5, .K = 2}, ORDINARY);
    check(&s, &(product){.M = 9 * 128 + 3, .N = 2 * 128 + 1, .K = 1}, ORDINARY);
    sides_close(&s);
    assert_none_wrong();
}

static ls_device_kernel in_f32(int64_t M, int64_t N) {
    return ls_gemm_device_kernel(&(ls_gemm_job){.M = M, .N = N});
}
static ls_device_kernel in_bf16(int64_t M, int64_t N, int64_t unit) {
    return ls_gemm_device_kernel(&(ls_gemm_job){.M = M, .N = N, .bf16 = true, .units.rows = unit});
}

/* A product that has enough large tiles for a GPU's multiprocessors has them, and no other; few
 * rows have kernels of their own, in bf16 only where k has no units. */
static void test_choice(void **state) {
    (void)state;
    assert_int_equal(in_f32(8192, 768), LS_KERNEL_gemm);
    assert_int_equal(in_f32(1, 50257), LS_KERNEL_gemm_rows);
    assert_int_equal(in_f32(4, 768), LS_KERNEL_gemm_rows);
    assert_int_equal(in_f32(5, 768), LS_KERNEL_gemm_some);
    assert_int_equal(in_f32(16, 50257), LS_KERNEL_gemm_some);
    assert_int_equal(in_f32(17, 768), LS_KERNEL_gemm_small);
    assert_int_equal(in_f32(768, 3072), LS_KERNEL_gemm);
    assert_int_equal(in_f32(768, 768), LS_KERNEL_gemm_small);
    assert_int_equal(in_f32(98 * 128, 128), LS_KERNEL_gemm_small);
    assert_int_equal(in_f32(98 * 128 + 1, 128), LS_KERNEL_gemm);
    assert_int_equal(in_bf16(4, 768, 0), LS_KERNEL_gemm_rows_blocks);
    assert_int_equal(in_bf16(5, 768, 0), LS_KERNEL_gemm_some_blocks);
    assert_int_equal(in_bf16(16, 50257, 0), LS_KERNEL_gemm_some_blocks);
    assert_int_equal(in_bf16(17, 768, 0), LS_KERNEL_gemm_blocks);
    assert_int_equal(in_bf16(4, 768, 32), LS_KERNEL_gemm_blocks);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layouts), cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_units),   cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_choice),
    };
    return run_on_devices(tests, sizeof tests / sizeof *tests, NULL, NULL);
}
