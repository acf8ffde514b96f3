/* factors_test.c - gradients as two factors of low rank, against the formula in double precision:
 * PyTorch's powerSGD_hook with error feedback and warm start, and a mean over the virtual
 * workers. */
#include "exec/factors.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "networks/gpt2.h"
#include "plan/plan.h"
#include "share/codes.h"
#include "share/config.h"
#include "state/errors.h"
#include "test.h"

enum { V = 3, RANK = 2, STEPS = 4, THREADS = 2 };

typedef struct setup {
    ls_model model;
    ls_plan plan;
    ls_factors factors;
    ls_compute compute;
    float *errors, *grads, *sum; /* grads [V][nfloats] */
} setup;

static void open_setup(setup *s) {
    ls_error e = {0};
    ls_gpt_config c = {.layers = 1, .width = 48, .heads = 3, .context = 8, .vocab = 300};
    assert_ls_ok(ls_gpt_create(&c, &s->model, &e), e);
    ls_share_place_matrices(&s->model);
    ls_share_config p = {
        .model = &s->model,
        .nworkers = 1,
        .V = V,
        .batch = V,
        .micro_batch = 1,
        .tree = true,
        .bucket_nbytes = 20000,
        .compute = LS_F32,
        .reduce = LS_F32,
        .compress = {.on = true,
                     .how = {.kind = LS_COMPRESS_POWERSGD, .op = LS_SUM, .rank = RANK, .seed = 5},
                     .min_count = 100}};
    assert_ls_ok(ls_plan_make(&p, &s->plan, &e), e);
    assert_ls_ok(ls_factors_open(&s->factors, &s->plan.share, 0, &e), e);
    assert_ls_ok(ls_errors_map(&s->plan.share, &s->errors, &e), e);
    assert_ls_ok(ls_compute_init(&s->compute, THREADS, 0, &e), e);
    s->grads = LS_NEW_ARRAY(float, V * s->model.nfloats);
    s->sum = LS_NEW_ARRAY(float, s->model.nfloats);
}

static void close_setup(setup *s) {
    ls_errors_unmap(&s->plan.share, s->errors);
    ls_factors_close(&s->factors);
    ls_compute_close(&s->compute);
    ls_plan_free(&s->plan);
    ls_model_free(&s->model);
    free(s->grads);
    free(s->sum);
}

static void draw(setup *s, uint64_t step) {
    for (int i = 0; i < s->model.nparams; i++)
        for (uint64_t v = 0; v < V; v++) {
            const ls_param *p = &s->model.params[i];
            ls_random_place at = {7, LS_STREAM_SAMPLE, 10 * step + v, p->offset};
            ls_random_normal(at, p->count, 1, s->grads + v * s->model.nfloats + p->offset);
        }
}

/* One step; the sum over the one worker's virtual workers is the sum over all. Returns whether all
 * values were finite. */
static bool run(setup *s, int64_t step) {
    atomic_bool bad = false;
    for (int k = 0; k < s->plan.share.nbuckets; k++) {
        const ls_factors_job j = {&s->factors, k, step, s->errors, &bad};
        for (int v = 0; v < V; v++)
            ls_factors_first(&j, &s->compute, v, s->grads + (size_t)v * s->model.nfloats);
        for (int v = 0; v < V; v++) ls_factors_second(&j, &s->compute, v);
        ls_factors_decode(&j, &s->compute, s->sum);
    }
    return !bad;
}

static float *row(const setup *s, int64_t steps, int vw) {
    return ls_errors_of(s->errors, &s->plan.share, steps, vw);
}

/* ---- the formula ---- */

typedef struct reference {
    size_t rows, cols;
    double *mean, *p, *q; /* of M [rows][cols]; P [rows][RANK], Q [cols][RANK] */
    double *errors;       /* [V][rows][cols] */
} reference;

/* Q of the first step is what ours has drawn: it is not part of the formula. */
static reference reference_of(const ls_code_piece *x) {
    size_t n = x->end - x->first;
    reference r = {.rows = n / x->cols, .cols = x->cols};
    r.mean = LS_NEW_ARRAY(double, n);
    r.p = LS_NEW_ARRAY(double, r.rows *RANK);
    r.q = LS_NEW_ARRAY(double, r.cols *RANK);
    r.errors = LS_NEW_ARRAY(double, V *n);
    return r;
}

static void free_reference(reference *r) {
    free(r->mean);
    free(r->p);
    free(r->q);
    free(r->errors);
}

/* Gram and Schmidt, column by column. */
static void orthogonalize(reference *r) {
    for (size_t c = 0; c < RANK; c++) {
        for (size_t b = 0; b <= c; b++) {
            double dot = 0;
            for (size_t i = 0; i < r->rows; i++) dot += r->p[i * RANK + c] * r->p[i * RANK + b];
            for (size_t i = 0; i < r->rows; i++)
                if (b < c)
                    r->p[i * RANK + c] -= dot * r->p[i * RANK + b];
                else
                    r->p[i * RANK + c] /= sqrt(dot);
        }
    }
}

/* out [rows][cols]: the mean over the virtual workers as it is sent. */
static void step_reference(reference *r, const setup *s, const ls_code_piece *x, double *out) {
    size_t n = r->rows * r->cols;
    memset(r->mean, 0, n * sizeof *r->mean);
    for (size_t v = 0; v < V; v++)
        for (size_t i = 0; i < n; i++) {
            r->errors[v * n + i] += (double)s->grads[v * s->model.nfloats + x->first + i];
            r->mean[i] += r->errors[v * n + i] / V;
        }
    for (size_t i = 0; i < r->rows; i++)
        for (size_t c = 0; c < RANK; c++) {
            r->p[i * RANK + c] = 0;
            for (size_t k = 0; k < r->cols; k++)
                r->p[i * RANK + c] += r->mean[i * r->cols + k] * r->q[k * RANK + c];
        }
    orthogonalize(r);
    for (size_t k = 0; k < r->cols; k++)
        for (size_t c = 0; c < RANK; c++) {
            r->q[k * RANK + c] = 0;
            for (size_t i = 0; i < r->rows; i++)
                r->q[k * RANK + c] += r->mean[i * r->cols + k] * r->p[i * RANK + c];
        }
    for (size_t i = 0; i < n; i++) {
        out[i] = 0;
        for (size_t c = 0; c < RANK; c++)
            out[i] += r->p[i / r->cols * RANK + c] * r->q[i % r->cols * RANK + c];
        for (size_t v = 0; v < V; v++) r->errors[v * n + i] -= out[i];
    }
}

static void test_formula(void **state) {
    (void)state;
    setup s = {0};
    open_setup(&s);
    const ls_code_piece *x = ls_share_factor_of(&s.plan.share, &s.model.params[0]);
    assert_non_null(x);
    assert_int_equal(x->end - x->first, s.model.params[0].count);
    reference r = reference_of(x);
    double *out = LS_NEW_ARRAY(double, r.rows *r.cols);
    for (size_t i = 0; i < r.cols * RANK; i++) { /* both begin with a Q of ours */
        float q = (float)((double)(i % 7) - 3 + (double)(i % 5) / 8);
        r.q[i % r.cols * RANK + i / r.cols] = (double)q;
        for (int v = 0; v < V; v++) row(&s, 0, v)[s.model.nfloats + x->factor_at + i] = q;
    }
    for (int64_t step = 0; step < STEPS; step++) {
        draw(&s, (uint64_t)step);
        assert_true(run(&s, step));
        step_reference(&r, &s, x, out);
        for (size_t i = 0; i < r.rows * r.cols; i++) {
            assert_true(fabs((double)s.sum[x->first + i] - V * out[i]) < 2e-4);
            for (size_t v = 0; v < V; v++) {
                double e = (double)row(&s, step + 1, (int)v)[x->first + i];
                assert_true(fabs(e - r.errors[v * r.rows * r.cols + i]) < 2e-4);
            }
        }
    }
    free(out);
    free_reference(&r);
    close_setup(&s);
}

/* ---- what must hold ---- */

/* What is taken for the sum, and the new errors, are together the sum of gradients and errors; what
 * is no matrix is the sum itself; and all virtual workers have the same second factor. */
static void test_sums(void **state) {
    (void)state;
    setup s = {0};
    int nmatrices = 0;
    size_t n = 0;
    open_setup(&s);
    for (int64_t step = 0; step < 2; step++) {
        draw(&s, (uint64_t)step);
        assert_true(run(&s, step));
        for (int i = 0; i < s.plan.share.pieces_from[s.plan.share.nbuckets]; i++) {
            const ls_code_piece *x = &s.plan.share.pieces[i];
            nmatrices += x->nfactor > 0;
            for (size_t at = x->first; at < x->end; at++) {
                double in = 0, out = (double)s.sum[at];
                for (int v = 0; v < V; v++) {
                    in += (double)s.grads[(size_t)v * s.model.nfloats + at] +
                          (double)row(&s, step, v)[at];
                    out += (double)row(&s, step + 1, v)[at];
                }
                assert_true(fabs(in - out) < 1e-4);
            }
        }
        n = s.plan.share.nfactors;
        assert_memory_equal(row(&s, step + 1, 0) + s.model.nfloats,
                            row(&s, step + 1, 2) + s.model.nfloats, n * sizeof(float));
    }
    assert_true(nmatrices > 4 && n > 0);
    close_setup(&s);
}

/* A sum of rank 2 or less is exact in one step. */
static void test_low_rank(void **state) {
    (void)state;
    setup s = {0};
    open_setup(&s);
    const ls_code_piece *x = ls_share_factor_of(&s.plan.share, &s.model.params[0]);
    for (size_t i = x->first; i < x->end; i++) {
        size_t row_at = (i - x->first) / x->cols, col = (i - x->first) % x->cols;
        s.grads[i] = (float)(row_at % 5) - 2;
        s.grads[s.model.nfloats + i] = (float)(col % 3) * (float)(row_at % 2);
    }
    assert_true(run(&s, 0));
    for (size_t i = x->first; i < x->end; i++)
        assert_true(fabs((double)(s.sum[i] - s.grads[i] - s.grads[s.model.nfloats + i])) < 1e-4);
    close_setup(&s);
}

static void test_not_finite(void **state) {
    (void)state;
    setup s = {0};
    open_setup(&s);
    draw(&s, 0);
    s.grads[s.model.nfloats + s.model.params[0].offset + 5] = INFINITY;
    assert_false(run(&s, 0));
    close_setup(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formula),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_low_rank),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
