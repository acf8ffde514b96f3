/* conv_test.c - convolutions and their gradients against plain loops: in double precision, and bit
 * by bit against one chain of multiply-adds for every element. */
#include "tensor/conv.h"

#include <math.h>

#include "tensor/each_kernel.h"
#include "tensor/image.h"
#include "test.h"

/* ---- the reference ---- */

/* A chain, and the same sum in double precision with the sum of its terms' magnitudes. */
typedef struct chain {
    float f;
    double exact, size;
} chain;

static chain chain_from(float start) { return (chain){start, (double)start, fabs((double)start)}; }
static void chain_add(chain *s, float a, float b) {
    s->f = fmaf(a, b, s->f);
    s->exact += (double)a * (double)b;
    s->size += fabs((double)a * (double)b);
}

static void check_chain(const chain *s, float got, const char *what, size_t at) {
    if (memcmp(&s->f, &got, sizeof got) != 0)
        print_error("%s[%zu]: %.9g, not %.9g\n", what, at, (double)got, (double)s->f);
    assert_memory_equal(&s->f, &got, sizeof got);
    assert_true(fabs(s->exact - (double)got) <= 1e-5 * s->size + 1e-30);
}

static float start_of(ls_gemm_start start, float bias, float before) {
    return start == LS_GEMM_ADD ? before : start == LS_GEMM_BIAS ? bias : 0.0f;
}

/* A pixel's channel, 0 outside of the image. */
static float pixel(const float *p, const int64_t dims[3], int64_t n, const int64_t at[3]) {
    if (at[0] < 0 || at[0] >= dims[0] || at[1] < 0 || at[1] >= dims[1]) return 0.0f;
    return p[((n * dims[0] + at[0]) * dims[1] + at[1]) * dims[2] + at[2]];
}

static float weight(const image *p, int64_t r, int64_t s, int64_t c, int64_t k) {
    return p->w[((r * p->v.kernel_w + s) * (p->v.in / p->v.groups) + c) * p->v.out + k];
}

static chain chain_y(const image *p, chain s, int64_t n, const int64_t at[3]) {
    const ls_conv *v = &p->v;
    const int64_t dims[] = {v->h, v->w, v->in}, depth = v->in / v->groups;
    int64_t g = at[2] / (v->out / v->groups);
    for (int64_t r = 0; r < v->kernel_h; r++)
        for (int64_t c = 0; c < v->kernel_w * depth; c++) {
            int64_t from[] = {at[0] * v->stride_h + r - v->pad_h,
                              at[1] * v->stride_w + c / depth - v->pad_w, g * depth + c % depth};
            chain_add(&s, pixel(p->x, dims, n, from), weight(p, r, c / depth, c % depth, at[2]));
        }
    return s;
}

static chain chain_dx(const image *p, chain s, int64_t n, const int64_t at[3]) {
    const ls_conv *v = &p->v;
    const int64_t dims[] = {ls_conv_out_h(v), ls_conv_out_w(v), v->out};
    int64_t depth = v->in / v->groups, width = v->out / v->groups, g = at[2] / depth;
    for (int64_t r = v->kernel_h - 1; r >= 0; r--)
        for (int64_t c = v->kernel_w - 1; c >= 0; c--) {
            int64_t y = at[0] + v->pad_h - r, x = at[1] + v->pad_w - c;
            if (y % v->stride_h || x % v->stride_w) continue;
            for (int64_t k = g * width; k < (g + 1) * width; k++) {
                int64_t from[] = {y / v->stride_h, x / v->stride_w, k};
                chain_add(&s, pixel(p->dy, dims, n, from), weight(p, r, c, at[2] % depth, k));
            }
        }
    return s;
}

/* at: r, s, c. */
static chain chain_dw(const image *p, chain s, const int64_t at[3], int64_t k) {
    const ls_conv *v = &p->v;
    const int64_t dims[] = {v->h, v->w, v->in}, h = ls_conv_out_h(v), w = ls_conv_out_w(v);
    int64_t g = k / (v->out / v->groups);
    for (int64_t i = 0; i < p->n * h * w; i++) {
        int64_t from[] = {i / w % h * v->stride_h + at[0] - v->pad_h,
                          i % w * v->stride_w + at[1] - v->pad_w, g * (v->in / v->groups) + at[2]};
        chain_add(&s, pixel(p->x, dims, i / (h * w), from), p->dy[i * v->out + k]);
    }
    return s;
}

static void check_images(const image *p, ls_gemm_start start) {
    const ls_conv *v = &p->v;
    const int64_t w = ls_conv_out_w(v), h = ls_conv_out_h(v);
    for (size_t i = 0; i < p->ny; i++) {
        int64_t e = (int64_t)i, k = e % v->out, at[] = {e / v->out / w % h, e / v->out % w, k};
        chain s = chain_from(start_of(start, p->bias[k], p->before[i]));
        s = chain_y(p, s, e / (h * w * v->out), at);
        check_chain(&s, p->y[i], "y", i);
    }
    for (size_t i = 0; i < p->nx; i++) {
        int64_t e = (int64_t)i, c = e % v->in,
                at[] = {e / v->in / v->w % v->h, e / v->in % v->w, c};
        chain s = chain_from(start_of(start, p->bias_x[c], p->before[p->ny + i]));
        s = chain_dx(p, s, e / (v->h * v->w * v->in), at);
        check_chain(&s, p->dx[i], "dx", i);
    }
}

static void check_params(const image *p, ls_gemm_start start) {
    const ls_conv *v = &p->v;
    const float *before = p->before + p->ny + p->nx;
    int64_t depth = v->in / v->groups;
    for (size_t i = 0; i < p->nw; i++) {
        int64_t e = (int64_t)i / v->out;
        int64_t at[] = {e / depth / v->kernel_w, e / depth % v->kernel_w, e % depth};
        chain s = chain_from(start_of(start, 0.0f, before[i]));
        s = chain_dw(p, s, at, (int64_t)i % v->out);
        check_chain(&s, p->dw[i], "dw", i);
    }
    for (int64_t k = 0; k < v->out; k++) {
        float s = start_of(start, 0.0f, before[(int64_t)p->nw + k]);
        for (size_t i = (size_t)k; i < p->ny; i += (size_t)v->out) s += p->dy[i];
        assert_memory_equal(&s, &p->db[k], sizeof s);
    }
}

static void check(const ls_compute *c, const ls_conv *v, int64_t n, ls_gemm_start start) {
    ls_error e;
    assert_ls_ok(ls_conv_check(v, &e), e);
    image p = make_image(v, n);
    reset_image(&p);
    run_image(c, &p, start, 0, n);
    check_images(&p, start);
    check_params(&p, start);
    drop_image(&p);
}

/* ---- tests ---- */

static int64_t draw(uint32_t *state, int64_t least, int64_t most) {
    *state = *state * 1664525u + 1013904223u;
    return least + (int64_t)(*state >> 12) % (most - least + 1);
}

static ls_conv draw_conv(uint32_t *state) {
    static const int64_t groups[] = {1, 1, 2, 3};
    ls_conv v = {.groups = groups[draw(state, 0, 3)]};
    v.in = v.groups * draw(state, 1, 11);
    v.out = v.groups * draw(state, 1, 19);
    if (draw(state, 0, 3) == 0) v.in = v.out = v.groups = draw(state, 1, 35);
    v.kernel_h = draw(state, 1, 7), v.kernel_w = draw(state, 1, 7);
    v.stride_h = draw(state, 1, 3), v.stride_w = draw(state, 1, 3);
    v.pad_h = draw(state, 0, 3), v.pad_w = draw(state, 0, 3);
    v.h = draw(state, 1, 9) + v.kernel_h / 2, v.w = draw(state, 1, 19) + v.kernel_w / 2;
    if (v.h + 2 * v.pad_h < v.kernel_h) v.h = v.kernel_h;
    if (v.w + 2 * v.pad_w < v.kernel_w) v.w = v.kernel_w;
    return v;
}

static void random_sizes(const ls_compute *c) {
    uint32_t state = 5;
    for (int i = 0; i < 36; i++) {
        ls_conv v = draw_conv(&state);
        check(c, &v, i % 4, (ls_gemm_start)(i % 3));
    }
}

static void test_random_sizes(void **state) {
    (void)state;
    each_kernel(random_sizes, 3);
}

/* Sizes at the limits of tiles, rows wider than work memory, weights that exceed it, a kernel that
 * is smaller than its stride, a border wider than the kernel. */
static void edges(const ls_compute *c) {
    static const ls_conv cases[] = {
        {.h = 5,
         .w = 33,
         .in = 16,
         .out = 16,
         .kernel_h = 3,
         .kernel_w = 3,
         .pad_h = 1,
         .pad_w = 1},
        {.h = 4, .w = 16, .in = 5, .out = 32, .kernel_h = 3, .kernel_w = 3, .pad_h = 1, .pad_w = 1},
        {.h = 3, .w = 8, .in = 4, .out = 65, .kernel_h = 1, .kernel_w = 1},
        {.h = 6,
         .w = 6,
         .in = 3,
         .out = 3,
         .kernel_h = 1,
         .kernel_w = 1,
         .stride_h = 3,
         .stride_w = 3},
        {.h = 2, .w = 2, .in = 2, .out = 3, .kernel_h = 1, .kernel_w = 1, .pad_h = 3, .pad_w = 3},
        {.h = 1, .w = 1, .in = 1, .out = 1, .kernel_h = 7, .kernel_w = 7, .pad_h = 3, .pad_w = 3},
        {.h = 1, .w = 1400, .in = 192, .out = 1, .kernel_h = 1, .kernel_w = 2},
        {.h = 3, .w = 3, .in = 5000, .out = 2, .kernel_h = 3, .kernel_w = 2},
        {.h = 2, .w = 9, .in = 16, .out = 16, .kernel_h = 2, .kernel_w = 7, .groups = 16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_conv v = cases[i];
        if (!v.groups) v.groups = 1;
        if (!v.stride_h) v.stride_h = v.stride_w = 1;
        check(c, &v, 2, (ls_gemm_start)(i % 3));
    }
}

static void test_edges(void **state) {
    (void)state;
    each_kernel(edges, 2);
}

/* Seven samples at once have the bits of three and four, with gradients that continue. */
static void in_parts(const ls_compute *c) {
    uint32_t state = 99;
    for (int i = 0; i < 6; i++) {
        ls_conv v = draw_conv(&state);
        image whole = make_image(&v, 7), parts = make_image(&v, 7);
        ls_gemm_start start = (ls_gemm_start)(i % 3);
        reset_image(&whole);
        reset_image(&parts);
        run_image(c, &whole, start, 0, 7);
        run_image(c, &parts, start, 0, 3);
        run_image(c, &parts, start, 3, 4);
        assert_memory_equal(whole.y, parts.y, whole.ny * sizeof(float));
        assert_memory_equal(whole.dx, parts.dx, whole.nx * sizeof(float));
        assert_memory_equal(whole.dw, parts.dw, whole.nw * sizeof(float));
        assert_memory_equal(whole.db, parts.db, (size_t)v.out * sizeof(float));
        drop_image(&whole);
        drop_image(&parts);
    }
}

static void test_parts(void **state) {
    (void)state;
    each_kernel(in_parts, 3);
}

/* A sum of -0 becomes +0 where padding is multiplied, and an infinite weight meets it as NaN. */
static void test_padding(void **state) {
    (void)state;
    ls_compute c;
    ls_error e;
    assert_ls_ok(ls_compute_init(&c, 1, 0, &e), e);
    ls_conv v = {.h = 1,
                 .w = 2,
                 .in = 1,
                 .out = 1,
                 .kernel_h = 1,
                 .kernel_w = 2,
                 .stride_h = 1,
                 .stride_w = 1,
                 .pad_w = 1,
                 .groups = 1};
    float x[2] = {1.0f, 1.0f}, w[2] = {-0.0f, -0.0f}, bias = -0.0f, y[3];
    ls_conv_job job = {.n = 1, .start = LS_GEMM_BIAS, .x = x, .w = w, .bias = &bias, .y = y};
    const ls_kernels *k = NULL;
    for (int i = 0; (k = ls_kernels_at(i)); i++) {
        c.k = k;
        w[0] = -0.0f;
        ls_conv_forward(&c, &v, &job);
        assert_true(y[0] == 0 && signbit(y[0])); /* 0 * -0 is -0, too */
        w[0] = 0.0f;
        ls_conv_forward(&c, &v, &job);
        assert_true(y[0] == 0 && !signbit(y[0]));
        w[0] = INFINITY;
        ls_conv_forward(&c, &v, &job);
        assert_true(isnan(y[0]) && isinf(y[1]) && isinf(y[2]));
    }
    ls_compute_close(&c);
}

static void test_refused(void **state) {
    (void)state;
    const ls_conv good = {.h = 8,
                          .w = 8,
                          .in = 6,
                          .out = 4,
                          .kernel_h = 3,
                          .kernel_w = 3,
                          .stride_h = 1,
                          .stride_w = 1,
                          .groups = 2};
    ls_error e;
    assert_ls_ok(ls_conv_check(&good, &e), e);
    ls_conv v = good;
    v.stride_w = 0;
    assert_ls_fails(ls_conv_check(&v, &e), LS_EINVAL, "the stride is 0", e);
    v = good, v.pad_h = -1;
    assert_ls_fails(ls_conv_check(&v, &e), LS_EINVAL, "the padding is -1", e);
    v = good, v.groups = 4;
    assert_ls_fails(ls_conv_check(&v, &e), LS_EINVAL, "6 input and 4 output channels", e);
    v = good, v.w = 2;
    assert_ls_fails(ls_conv_check(&v, &e), LS_EINVAL, "larger than the padded image of 8 x 2", e);
    v = good, v.in = 1 << 15;
    assert_ls_fails(ls_conv_check(&v, &e), LS_EINVAL, "at most 4096 are possible", e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_sizes), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_parts),        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
