/* gpt_test.c - each of GPT-2's fused layers alone: against a double-precision reference, against
 * central differences, and the promise, bit for bit.
 *
 * The scalar function of a layer is sum(dy * y) with random dy; of the head, the weighted loss. */
/* ctest: long-tsan: a minute; networks/gpt2_test computes these layers with threads */
#include "model/fixture.h"

enum { EMBED, ATTENTION, MLP, HEAD, KINDS };

static ref_forward *const forwards[KINDS] = {ref_embedding, ref_attention, ref_mlp, ref_head};
static ref_backward *const backwards[KINDS] = {ref_embedding_back, ref_attention_back, ref_mlp_back,
                                               ref_head_back};

/* Relative to the largest value of the same tensor; single precision: 6e-8; measured: 7e-7. */
static const double TOLERANCE = 2e-6;
static const float LOSS_SCALE = 0.37f;

/* One layer with its operands. */
typedef struct bench {
    ref_shape s;
    int kind;
    ls_model model;
    const ls_layer *l;
    uint32_t *tokens;
    float *params, *x, *dy;
} bench;

/* The results of a layer. */
typedef struct result {
    float *y, *dx, *grads;
    double *losses;
} result;

static void bench_open(bench *b, int kind, ref_shape s) {
    ls_error e = {0};
    ls_gpt_config c = {1, s.C, s.heads, s.T, s.V};
    *b = (bench){.s = s, .kind = kind};
    assert_ls_ok(ls_gpt_create(&c, &b->model, &e), e);
    b->l = &b->model.layers[kind];
    b->tokens = fix_tokens((size_t)(s.n * (s.T + 1)), s.V, 5);
    b->params = fix_params(&b->model, 1);
    b->x = fix_floats((size_t)(s.n * s.T * s.C), 0.1, 1.0, 2);
    b->dy = fix_floats((size_t)(s.n * s.T * s.C), 0.0, 1.0, 3);
}

static void bench_close(bench *b) {
    ls_model_free(&b->model);
    free(b->tokens), free(b->params), free(b->x), free(b->dy);
}

static void result_free(result *r) { free(r->y), free(r->dx), free(r->grads), free(r->losses); }

static size_t rows_floats(const bench *b) { return (size_t)(b->s.n * b->s.T * b->s.C); }

/* Forward of samples [i, end), and backward unless the layer takes all samples at once. */
static void run_part(const bench *b, const ls_compute *c, int64_t i, int64_t end, result *r) {
    const ls_layer *l = b->l;
    int64_t at = i * b->s.T * b->s.C;
    float *saved = fix_nans((size_t)(end - i) * l->memory.saved);
    float *work = fix_nans(ls_layer_work_floats(l, end - i, false));
    ls_layer_call call = {.compute = c,
                          .n = end - i,
                          .T = b->s.T,
                          .samples = b->tokens + i * (b->s.T + 1),
                          .sample_nbytes = (size_t)(b->s.T + 1) * sizeof(uint32_t),
                          .params = b->params,
                          .grads = r->grads,
                          .grads_start = i == 0,
                          .x = {b->x + at},
                          .y = r->y + at,
                          .saved = saved,
                          .work = work,
                          .dy = b->dy + at,
                          .dx = {r->dx + at},
                          .loss_scale = LOSS_SCALE,
                          .losses = r->losses + i};
    l->ops->forward(l, &call);
    if (!l->traits.backward_whole) l->ops->backward(l, &call);
    if (l->traits.backward_whole && end == b->s.n) {
        call.n = b->s.n;
        call.samples = b->tokens;
        call.dy = b->dy;
        call.grads_start = true;
        l->ops->backward(l, &call);
    }
    free(saved), free(work);
}

/* Gradients begin as garbage, which grads_start must clear; only wte's chain continues from it. */
static result run(const bench *b, int nthreads, const char *cpu, int64_t micro) {
    ls_compute c;
    fix_compute(&c, &b->model, nthreads, cpu);
    result r = {fix_nans(rows_floats(b)), fix_nans(rows_floats(b)), fix_nans(b->model.nfloats),
                LS_NEW_ARRAY(double, (size_t)b->s.n)};
    if (b->kind == EMBED)
        for (size_t i = 0; i < b->model.params[0].count; i++) r.grads[i] = 0.25f;
    for (int64_t i = 0; i < b->s.n; i += micro)
        run_part(b, &c, i, i + micro < b->s.n ? i + micro : b->s.n, &r);
    ls_compute_close(&c);
    return r;
}

/* The scalar function in double precision, and its gradients. dy: for the head, one per sample. */
typedef struct exact {
    const bench *b;
    double *params, *x, *dy, *grads, *dx, *y;
} exact;

static exact exact_of(const bench *b) {
    size_t n = rows_floats(b), nfloats = b->model.nfloats;
    exact f = {b,
               fix_doubles(b->params, nfloats),
               fix_doubles(b->x, n),
               fix_doubles(b->dy, n),
               ref_zeros((int64_t)nfloats),
               ref_zeros((int64_t)n),
               ref_zeros((int64_t)n)};
    if (b->kind == HEAD)
        for (int64_t i = 0; i < b->s.n; i++) f.dy[i] = (double)LOSS_SCALE;
    if (b->kind == EMBED)
        for (size_t i = 0; i < b->model.params[0].count; i++) f.grads[i] = 0.25;
    ref_tensors p = fix_tensors(b->l, f.params), g = fix_tensors(b->l, f.grads);
    forwards[b->kind](&b->s, &p, b->tokens, f.x, f.y);
    backwards[b->kind](&b->s, &p, b->tokens, f.x, f.dy, &g, f.dx);
    return f;
}

static void exact_free(exact *f) {
    free(f->params), free(f->x), free(f->dy), free(f->grads), free(f->dx), free(f->y);
}

static double exact_value(const exact *f) {
    const bench *b = f->b;
    size_t n = b->kind == HEAD ? (size_t)b->s.n : rows_floats(b);
    ref_tensors p = fix_tensors(b->l, f->params);
    double *y = ref_zeros((int64_t)rows_floats(b)), sum = 0;
    forwards[b->kind](&b->s, &p, b->tokens, f->x, y);
    for (size_t i = 0; i < n; i++) sum += f->dy[i] * y[i];
    free(y);
    return sum;
}

static void check_near(const bench *b, const char *what, const float *got, const double *want,
                       size_t n, double tolerance) {
    double off = fix_distance(got, want, n);
    if (off <= tolerance) return;
    print_error("%s, T %d C %d heads %d: %s is off by %g\n", b->l->name, (int)b->s.T, (int)b->s.C,
                (int)b->s.heads, what, off);
    fail();
}

/* Central differences for at most 24 elements of the n at `at`; got: the library's. `most`: the
 * largest gradient of the tensor. */
static void check_slopes(const exact *f, const char *what, double *at, const float *got, size_t n,
                         double most, double start) {
    const double h = 1e-5;
    size_t step = n / 24 + 1;
    for (size_t i = 0; i < n; i += step) {
        double was = at[i];
        at[i] = was + h;
        double up = exact_value(f);
        at[i] = was - h;
        double down = exact_value(f);
        at[i] = was;
        double slope = (up - down) / (2 * h) + start;
        if (fabs((double)got[i] - slope) <= (TOLERANCE + 1e-8) * most + 1e-7) continue;
        print_error("%s, T %d: d/d %s[%zu] is %g, by differences %g\n", f->b->l->name,
                    (int)f->b->s.T, what, i, (double)got[i], slope);
        fail();
    }
}

static double largest(const double *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
    return most;
}

/* A layer writes gradients of its own parameters and nowhere else. */
static void check_untouched(const bench *b, const result *r) {
    size_t left = 0, own = 0;
    for (int i = 0; i < b->l->nparams; i++) own += b->model.params[b->l->params[i]].count;
    for (size_t i = 0; i < b->model.nfloats; i++) left += isnan(r->grads[i]) ? 1 : 0;
    assert_int_equal(left + own, b->model.nfloats);
}

static void check_layer(int kind, ref_shape s) {
    bench b;
    bench_open(&b, kind, s);
    exact f = exact_of(&b);
    result r = run(&b, 1, NULL, s.n);
    if (kind != HEAD) check_near(&b, "y", r.y, f.y, rows_floats(&b), TOLERANCE);
    for (int64_t i = 0; kind == HEAD && i < s.n; i++)
        assert_true(fabs(r.losses[i] - f.y[i]) < 1e-6 * f.y[i]);
    for (int i = 0; i < b.l->nparams; i++) {
        const ls_param *p = &b.model.params[b.l->params[i]];
        const double *want = f.grads + p->offset;
        double start = kind == EMBED && i == 0 ? 0.25 : 0.0;
        check_near(&b, p->name, r.grads + p->offset, want, p->count, TOLERANCE);
        check_slopes(&f, p->name, f.params + p->offset, r.grads + p->offset, p->count,
                     largest(want, p->count), start);
    }
    if (kind != EMBED) {
        check_near(&b, "dx", r.dx, f.dx, rows_floats(&b), TOLERANCE);
        check_slopes(&f, "x", f.x, r.dx, rows_floats(&b), largest(f.dx, rows_floats(&b)), 0);
    }
    check_untouched(&b, &r);
    result_free(&r);
    exact_free(&f);
    bench_close(&b);
}

static void check_shapes(int kind) {
    static const int64_t lengths[] = {1, 5, 67};
    for (int i = 0; i < 3; i++) {
        for (int64_t heads = 1; heads <= (kind == ATTENTION ? 2 : 1); heads++)
            check_layer(kind, (ref_shape){2, lengths[i], 4, heads, 11});
        for (int64_t heads = 1; heads <= (kind == ATTENTION ? 3 : 1); heads++)
            check_layer(kind, (ref_shape){2, lengths[i], 24, heads, 11});
    }
}

static void test_embedding(void **state) { (void)state, check_shapes(EMBED); }
static void test_attention(void **state) { (void)state, check_shapes(ATTENTION); }
static void test_mlp(void **state) { (void)state, check_shapes(MLP); }
static void test_head(void **state) { (void)state, check_shapes(HEAD); }

static void check_same(const bench *b, const result *a, const result *r) {
    size_t nbytes = rows_floats(b) * sizeof(float);
    for (int i = 0; i < b->l->nparams; i++) {
        const ls_param *p = &b->model.params[b->l->params[i]];
        assert_memory_equal(a->grads + p->offset, r->grads + p->offset, p->count * sizeof(float));
    }
    if (b->kind != HEAD) assert_memory_equal(a->y, r->y, nbytes);
    if (b->kind != EMBED) assert_memory_equal(a->dx, r->dx, nbytes);
    assert_memory_equal(a->losses, r->losses, (size_t)b->s.n * sizeof(double));
}

/* Micro-batches of 1, 2 (and an uneven 1) and 3 samples; 1, 2 and 3 threads; all kernels. */
static void test_same_bits(void **state) {
    (void)state;
    const ls_kernels *k = NULL;
    for (int kind = 0; kind < KINDS; kind++)
        for (int64_t T = 5; T <= 67; T += 62) {
            bench b;
            bench_open(&b, kind, (ref_shape){3, T, 24, 3, 11});
            result whole = run(&b, 1, "portable", 3);
            for (int i = 0; (k = ls_kernels_at(i)); i++)
                for (int64_t micro = 1; micro <= 3; micro++)
                    for (int threads = 1; threads <= 3; threads++) {
                        result r = run(&b, threads, k->name, micro);
                        check_same(&b, &whole, &r);
                        result_free(&r);
                    }
            result_free(&whole);
            bench_close(&b);
        }
}

/* Blocks of rows that end within samples, and all rows at once. */
static void test_head_in_blocks(void **state) {
    (void)state;
    bench b;
    bench_open(&b, HEAD, (ref_shape){3, 7, 24, 3, 11});
    result whole = run(&b, 1, "portable", 3);
    for (int64_t rows = 1; rows <= 21; rows += rows < 4 ? 1 : 5) {
        b.model.layers[HEAD].memory.block_rows = rows;
        result r = run(&b, 2, NULL, 3);
        check_same(&b, &whole, &r);
        result_free(&r);
    }
    result_free(&whole);
    bench_close(&b);
}

/* A second backward without grads_start continues from the first: two equal samples give exactly
 * twice what one gives, where a sample has a single term. */
static void test_gradients_go_on(void **state) {
    (void)state;
    bench b;
    bench_open(&b, MLP, (ref_shape){2, 1, 4, 1, 11});
    memcpy(b.x + 4, b.x, 4 * sizeof(float));
    memcpy(b.dy + 4, b.dy, 4 * sizeof(float));
    result two = run(&b, 1, NULL, 1);
    b.s.n = 1;
    result one = run(&b, 1, NULL, 1);
    const size_t bias = b.l->link.offsets[5]; /* b_out's gradient is dy itself */
    for (size_t i = 0; i < 4; i++) {
        assert_true(one.grads[bias + i] == b.dy[i]);
        assert_true(two.grads[bias + i] == b.dy[i] + b.dy[i]);
    }
    result_free(&one);
    result_free(&two);
    bench_close(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_mlp),
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_head_in_blocks),
        cmocka_unit_test(test_gradients_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
