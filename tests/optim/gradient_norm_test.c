/* gradient_norm_test.c - block sums, the norm from them, and the factor that clips. */
#include "optim/gradient_norm.h"

#include <math.h>

#include "base/mem.h"
#include "model/model.h"
#include "test.h"

enum { BLOCKS = 9, FLOATS = BLOCKS * LS_BLOCK };

static const ls_model none; /* without running values */

static float *values(void) {
    float *x = LS_NEW_ARRAY(float, FLOATS);
    uint32_t r = 12345;
    for (int i = 0; i < FLOATS; i++) {
        r = r * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)r / 1e8f * (i < 3 * LS_BLOCK ? 1e-4f : 1.0f);
    }
    return x;
}

static void compute_open(ls_compute *c, int nthreads, const char *cpu) {
    ls_error e = {0};
    setenv("LOCKSTEP_CPU", cpu, 1);
    assert_ls_ok(ls_compute_init(c, nthreads, 16, &e), e);
    unsetenv("LOCKSTEP_CPU");
}

/* Every block's sum, within 16 lanes of 64 roundings each. */
static void test_blocks(void **state) {
    (void)state;
    ls_compute c;
    compute_open(&c, 1, "portable");
    float *x = values();
    double sums[BLOCKS], total = 0;
    ls_norm_blocks(&c, &(ls_norm_input){&none, LS_F32, x}, 0, FLOATS, sums);
    for (int b = 0; b < BLOCKS; b++) {
        double want = 0;
        for (int i = b * LS_BLOCK; i < (b + 1) * LS_BLOCK; i++) want += (double)x[i] * (double)x[i];
        assert_true(fabs(sums[b] - want) <= 2e-6 * want);
        total += want;
    }
    assert_true(fabs(ls_norm_total(sums, BLOCKS) - sqrt(total)) <= 2e-6 * sqrt(total));
    free(x);
    ls_compute_close(&c);
}

static void test_same_bits(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    float *x = values();
    double want[BLOCKS];
    ls_compute c;
    compute_open(&c, 1, "portable");
    ls_norm_blocks(&c, &(ls_norm_input){&none, LS_F32, x}, 0, FLOATS, want);
    ls_compute_close(&c);
    for (int i = 0; (k = ls_kernels_at(i / 3)); i++) {
        compute_open(&c, 1 + i % 3, k->name);
        for (size_t cut = 0; cut <= BLOCKS; cut++) {
            double sums[BLOCKS];
            ls_norm_blocks(&c, &(ls_norm_input){&none, LS_F32, x}, 0, cut * LS_BLOCK, sums);
            ls_norm_blocks(&c, &(ls_norm_input){&none, LS_F32, x}, cut * LS_BLOCK, FLOATS, sums);
            assert_memory_equal(sums, want, sizeof want);
        }
        ls_compute_close(&c);
    }
    free(x);
}

/* A model with running values in the middle of a block, in three blocks, and at the end of one.
 * Frozen ones among them have places elsewhere. */
static void with_running(ls_model *m) {
    static const struct {
        int64_t count;
        float momentum;
        bool frozen;
    } params[] = {{40, 0, false},  {70, 0.1f, false}, {9000, 0.1f, true},
                  {800, 0, false}, {20, 0.5f, true},  {2500, 0.5f, false},
                  {100, 0, false}, {544, 1, false},   {33, 0, false}};
    size_t elsewhere = 0;
    ls_layer *l = ls_model_add_layer(m, "layer");
    for (size_t i = 0; i < sizeof params / sizeof *params; i++) {
        ls_param p = {.ndims = 1, .dims = {params[i].count}, .momentum = params[i].momentum};
        size_t before = m->nfloats;
        l->nparams = 0; /* more than a layer may have */
        ls_model_add_param(m, l, "p", &p);
        if (!params[i].frozen) continue;
        m->nfloats = before;
        m->params[i].frozen = true;
        m->params[i].offset = elsewhere;
        elsewhere += 9008;
    }
    m->nfloats = FLOATS;
}

/* Running values count as 0, whatever the ranges, the threads and the type. */
static void test_running_values(void **state) {
    (void)state;
    ls_model m = {0};
    with_running(&m);
    assert_int_equal(m.params[7].offset + m.params[7].count, 4 * LS_BLOCK);
    float *x = values(), *zeroed = values();
    for (int i = 0; i < m.nparams; i++)
        for (size_t k = 0; k < m.params[i].count && m.params[i].momentum > 0 && !m.params[i].frozen;
             k++)
            zeroed[m.params[i].offset + k] = 0;
    uint16_t *half = LS_NEW_ARRAY(uint16_t, FLOATS), *half_zeroed = LS_NEW_ARRAY(uint16_t, FLOATS);
    for (int threads = 1; threads <= 3; threads++) {
        ls_compute c;
        compute_open(&c, threads, "portable");
        c.k->narrow(LS_BF16, FLOATS, x, half);
        c.k->narrow(LS_BF16, FLOATS, zeroed, half_zeroed);
        for (int type = 0; type < 2; type++) {
            ls_norm_input in = {&m, type ? LS_BF16 : LS_F32, type ? (void *)half : x};
            ls_norm_input without = {&none, in.type, type ? (void *)half_zeroed : zeroed};
            double want[BLOCKS], got[BLOCKS];
            ls_norm_blocks(&c, &without, 0, FLOATS, want);
            for (size_t cut = 0; cut <= BLOCKS; cut++) {
                ls_norm_blocks(&c, &in, 0, cut * LS_BLOCK, got);
                ls_norm_blocks(&c, &in, cut * LS_BLOCK, FLOATS, got);
                assert_memory_equal(got, want, sizeof want);
            }
        }
        ls_compute_close(&c);
    }
    free(x), free(zeroed), free(half), free(half_zeroed);
    ls_model_free(&m);
}

/* A range writes its own sums only. */
static void test_range(void **state) {
    (void)state;
    ls_compute c;
    compute_open(&c, 2, "portable");
    float *x = values();
    double sums[BLOCKS];
    for (int b = 0; b < BLOCKS; b++) sums[b] = -1;
    ls_norm_blocks(&c, &(ls_norm_input){&none, LS_F32, x}, 2 * LS_BLOCK, 4 * LS_BLOCK, sums);
    ls_norm_blocks(&c, &(ls_norm_input){&none, LS_F32, x}, 7 * LS_BLOCK, 7 * LS_BLOCK, sums);
    for (int b = 0; b < BLOCKS; b++) assert_true((sums[b] == -1) == (b < 2 || b >= 4));
    free(x);
    ls_compute_close(&c);
}

static void test_total(void **state) {
    (void)state;
    const double sums[] = {9, 16, 0};
    assert_true(ls_norm_total(sums, 3) == 5);
    assert_true(ls_norm_total(sums, 1) == 3);
    assert_true(ls_norm_total(NULL, 0) == 0);
}

static void test_clip(void **state) {
    (void)state;
    assert_true(ls_clip_factor(5, 0) == 1);
    assert_true(ls_clip_factor(0.5, 1) == 1);
    assert_true(ls_clip_factor(1, 1) == 1);
    assert_true(ls_clip_factor(4, 1) == 0.25);
    assert_true(ls_clip_factor(0, 1) == 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_range),  cmocka_unit_test(test_running_values),
        cmocka_unit_test(test_total),  cmocka_unit_test(test_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
