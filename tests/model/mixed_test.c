/* mixed_test.c - layers whose parameters, activations and gradients are stored in 16 bits: against
 * the same layer in f32 on the same rounded operands, and the promise, bit for bit.
 *
 * Buffers have exactly the size that is declared, and begin as NaN. */
/* ctest: long-tsan: layers/attention, networks/gpt2 and exec/exec start the same threads */
#include "model/mixed.h"

#include "model/fixture.h"

enum { EMBED, ATTENTION, MLP, HEAD, KINDS };
enum { N = 3, T = 33, C = 12, V = 3000, ROWS = N * T }; /* V: more than a block of the head's */

typedef struct bench {
    ls_model model;
    ls_compute compute;
    const ls_layer *l;
    uint32_t *tokens;
    float *params, *x, *dy; /* rounded to `type` */
    ls_dtype type, grads;
    ls_frozen_value *frozen; /* [nparams] */
    bool no_dx;              /* gradients of inputs are not wanted */
    const ls_compute *with;  /* for the calls; NULL: `compute` */
} bench;

static void round_to(const bench *b, float *x, size_t n) {
    if (b->type == LS_F32) return;
    uint16_t *half = LS_NEW_ARRAY(uint16_t, n);
    b->compute.k->narrow(b->type, n, x, half);
    b->compute.k->widen(b->type, n, half, x);
    free(half);
}

static void *narrowed(const bench *b, ls_dtype type, const float *x, size_t n) {
    void *p = calloc(n + 1, ls_dtype_size(type));
    if (type == LS_F32)
        memcpy(p, x, n * sizeof *x);
    else
        b->compute.k->narrow(type, n, x, p);
    return p;
}

static float *widened(const bench *b, ls_dtype type, const void *x, size_t n) {
    float *p = LS_NEW_ARRAY(float, n);
    if (type == LS_F32)
        memcpy(p, x, n * sizeof *p);
    else
        b->compute.k->widen(type, n, x, p);
    return p;
}

static void bench_open(bench *b, int kind, ls_dtype type, ls_dtype grads) {
    ls_error e = {0};
    ls_gpt_config c = {1, C, 3, T, V};
    *b = (bench){.type = type, .grads = grads};
    assert_ls_ok(ls_gpt_create(&c, &b->model, &e), e);
    fix_compute(&b->compute, &b->model, 2, NULL);
    b->l = &b->model.layers[kind];
    b->tokens = fix_tokens(N * (T + 1), V, 5);
    b->params = fix_params(&b->model, 1);
    b->x = fix_floats(ROWS * C, 0.1, 1.0, 2);
    b->dy = fix_floats(ROWS * C, 0.0, 1.0, 3);
    round_to(b, b->params, b->model.nfloats);
    round_to(b, b->x, ROWS * C);
    round_to(b, b->dy, ROWS * C);
}

static void bench_close(bench *b) {
    ls_compute_close(&b->compute);
    for (int i = 0; b->frozen && i < b->model.nparams; i++)
        free((void *)(uintptr_t)b->frozen[i].data);
    ls_model_free(&b->model);
    free(b->tokens), free(b->params), free(b->x), free(b->dy), free(b->frozen);
    b->frozen = NULL;
}

/* Freezes the layer's parameters of the mask: their values move to memory of their own. */
static void freeze(bench *b, unsigned mask) {
    ls_model *m = &b->model;
    ls_error e = {0};
    size_t *was = LS_NEW_ARRAY(size_t, (size_t)m->nparams);
    float *params = b->params;
    b->frozen = LS_NEW_ARRAY(ls_frozen_value, (size_t)m->nparams);
    for (int i = 0; i < m->nparams; i++) was[i] = m->params[i].offset;
    for (int i = 0; i < b->l->nparams; i++) m->params[b->l->params[i]].frozen = mask >> i & 1;
    assert_ls_ok(ls_model_link(m, &e), e);
    b->params = fix_nans(m->nfloats);
    for (int i = 0; i < m->nparams; i++) {
        const ls_param *p = &m->params[i];
        b->frozen[i].type = ls_block_of_dtype(b->type);
        if (p->frozen)
            b->frozen[i].data = narrowed(b, b->type, params + was[i], p->count);
        else
            memcpy(b->params + p->offset, params + was[i], p->count * sizeof(float));
    }
    free(was), free(params);
}

typedef struct result {
    float *y, *dx, *grads; /* widened */
    double losses[N];
} result;

static void result_free(result *r) { free(r->y), free(r->dx), free(r->grads); }

static void *nans(size_t nbytes) {
    void *p = malloc(nbytes ? nbytes : 1);
    memset(p, 0xff, nbytes); /* a NaN in each of the types */
    return p;
}

/* Forward and backward in micro-batches; `goes_on`: chains continue from gradients of 0.5. */
static result run(const bench *b, int64_t micro, bool goes_on) {
    const ls_layer *l = b->l;
    size_t size = ls_dtype_size(b->type), sample = T * C * size, nfloats = b->model.nfloats;
    float *half = fix_floats(nfloats, 0.5, 0, 0);
    void *params = narrowed(b, b->type, b->params, nfloats);
    void *grads = narrowed(b, b->grads, half, nfloats);
    char *x = narrowed(b, b->type, b->x, ROWS * C), *dy = narrowed(b, b->type, b->dy, ROWS * C);
    char *y = nans(N * sample), *dx = nans(N * sample);
    float *wide = micro < N ? fix_nans(nfloats) : NULL;
    result r = {0};
    for (int64_t i = 0; i < N; i += micro) {
        int64_t n = N - i < micro ? N - i : micro;
        void *saved = nans(ls_mixed_saved_nbytes(l, n, b->type));
        int64_t most = l->traits.backward_whole ? N : n;
        void *work = nans(ls_mixed_work_nbytes(l, most, b->type, b->grads, wide != NULL));
        ls_layer_call c = {.compute = b->with ? b->with : &b->compute,
                           .type = b->type,
                           .grads_type = b->grads,
                           .params = params,
                           .frozen = b->frozen,
                           .grads = grads,
                           .wide = wide,
                           .first = i == 0,
                           .last = i + n == N,
                           .n = n,
                           .T = T,
                           .samples = b->tokens + i * (T + 1),
                           .sample_nbytes = (T + 1) * sizeof(uint32_t),
                           .grads_start = i == 0 && !goes_on,
                           .x = {l->traits.backward_whole ? NULL : x + (size_t)i * sample},
                           .y = y + (size_t)i * sample,
                           .saved = saved,
                           .work = work,
                           .dy = dy + (size_t)i * sample,
                           .dx = {b->no_dx ? NULL : dx + (size_t)i * sample},
                           .loss_scale = 0.37f,
                           .losses = r.losses + i};
        ls_mixed_forward(l, &c);
        if (l->traits.backward_whole) {
            c.n = N;
            c.samples = b->tokens;
            c.dy = dy;
            c.dx[0] = NULL;
            c.grads_start = !goes_on;
        }
        if (!l->traits.backward_whole || i + n == N) ls_mixed_backward(l, &c);
        free(saved), free(work);
    }
    r.y = widened(b, b->type, y, ROWS * C);
    r.dx = widened(b, b->type, dx, ROWS * C);
    r.grads = widened(b, b->grads, grads, nfloats);
    free(half), free(params), free(grads), free(x), free(dy), free(y), free(dx), free(wide);
    return r;
}

/* tolerance: by how much a may differ from b, relative to the largest value. */
static void assert_near(const float *a, const float *b, size_t n, double tolerance) {
    double *want = fix_doubles(b, n), off = fix_distance(a, want, n);
    if (!(off <= tolerance))
        print_error("off by %g of the largest, %g is allowed\n", off, tolerance);
    assert_true(off <= tolerance);
    free(want);
}

static void check(int kind, ls_dtype type, ls_dtype grads, bool goes_on) {
    bench b, exact;
    bench_open(&b, kind, type, grads);
    bench_open(&exact, kind, type, LS_F32);
    exact.type = LS_F32; /* operands are rounded, nothing else */
    const ls_layer *l = b.l;
    result want = run(&exact, N, goes_on), got = run(&b, N, goes_on), parts = run(&b, 1, goes_on);
    double unit = type == LS_BF16 || grads == LS_BF16 ? 1.0 / 256 : 1.0 / 2048;
    if (type == LS_BF16) { /* operands of products are rounded, too */
        if (!l->traits.loss) assert_near(got.y, want.y, ROWS * C, 2 * unit);
        for (int i = 0; l->traits.loss && i < N; i++)
            assert_true(fabs(got.losses[i] - want.losses[i]) <= unit * fabs(want.losses[i]));
    } else if (!l->traits.loss) { /* forward rounds only its result */
        float *y = LS_NEW_ARRAY(float, ROWS *C);
        memcpy(y, want.y, ROWS * C * sizeof *y);
        round_to(&b, y, ROWS * C);
        assert_memory_equal(got.y, y, ROWS * C * sizeof *y);
        free(y);
    }
    if (l->traits.loss && type != LS_BF16)
        assert_memory_equal(got.losses, want.losses, sizeof got.losses);
    if (!l->traits.backward_whole) assert_near(got.dx, want.dx, ROWS * C, 4 * unit);
    for (int i = 0; i < l->nparams; i++) {
        size_t at = l->link.offsets[i], n = l->counts[i];
        assert_near(got.grads + at, want.grads + at, n, 4 * unit);
    }
    /* the size of a micro-batch does not affect the bits; padding is not written */
    assert_memory_equal(got.grads, parts.grads, b.model.nfloats * sizeof *got.grads);
    if (!l->traits.loss) assert_memory_equal(got.y, parts.y, ROWS * C * sizeof *got.y);
    if (!l->traits.backward_whole) assert_memory_equal(got.dx, parts.dx, ROWS * C * sizeof *got.dx);
    assert_memory_equal(got.losses, parts.losses, sizeof got.losses);
    result_free(&want), result_free(&got), result_free(&parts);
    bench_close(&b), bench_close(&exact);
}

static void test_layers(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < 3; t++)
            for (int g = 0; g < 3; g++)
                for (int on = 0; on < 2; on++) check(kind, types[t], types[g], on);
}

/* Where sums in f32 outlive a call, or there is room for them, the head computes some rows at a
 * time, to the same bits. */
static void test_blocks(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    for (int t = 0; t < 3; t++)
        for (int on = 0; on < 2; on++) {
            bench b;
            bench_open(&b, HEAD, types[t], LS_BF16);
            result whole = run(&b, N, on), some = run(&b, 2, on);
            size_t most = ls_mixed_work_nbytes(b.l, 2, b.type, b.grads, true);
            b.model.layers[HEAD].memory.block_rows = 2 * LS_SUM_BLOCK;
            assert_true(ls_mixed_work_nbytes(b.l, 2, b.type, b.grads, true) < most);
            result blocks = run(&b, 2, on), chained = run(&b, N, on);
            most = ls_mixed_work_nbytes(b.l, N, b.type, b.grads, false);
            b.model.layers[HEAD].half.chain_floats = 0;
            assert_true(ls_mixed_work_nbytes(b.l, N, b.type, b.grads, false) > most);
            result rounded = run(&b, N, on);
            const result *same[] = {&some, &blocks, &rounded, &chained};
            for (int i = 0; i < 4; i++) {
                assert_memory_equal(same[i]->grads, whole.grads,
                                    b.model.nfloats * sizeof *whole.grads);
                assert_memory_equal(same[i]->dx, whole.dx, ROWS * C * sizeof *whole.dx);
                assert_memory_equal(same[i]->losses, whole.losses, sizeof whole.losses);
            }
            result_free(&whole), result_free(&some), result_free(&blocks), result_free(&rounded);
            result_free(&chained);
            bench_close(&b);
        }
}

/* What is not frozen has the bits that it has in `want`, where nothing is. */
static void check_frozen(const bench *b, const result *want, unsigned mask, bool no_dx) {
    bench f;
    size_t kind = (size_t)(b->l - b->model.layers);
    bench_open(&f, (int)kind, b->type, b->grads);
    freeze(&f, mask);
    f.no_dx = no_dx;
    result got = run(&f, 2, true);
    if (!b->l->traits.loss) assert_memory_equal(got.y, want->y, ROWS * C * sizeof *got.y);
    if (b->l->traits.loss) assert_memory_equal(got.losses, want->losses, sizeof got.losses);
    if (!no_dx && !b->l->traits.backward_whole)
        assert_memory_equal(got.dx, want->dx, ROWS * C * sizeof *got.dx);
    for (int i = 0; i < b->l->nparams; i++)
        if (!(mask >> i & 1))
            assert_memory_equal(got.grads + f.l->link.offsets[i],
                                want->grads + b->l->link.offsets[i],
                                b->l->counts[i] * sizeof(float));
    result_free(&got);
    bench_close(&f);
}

static void test_frozen(void **state) {
    (void)state;
    static const ls_dtype types[][2] = {{LS_F32, LS_F32}, {LS_BF16, LS_F32}, {LS_F16, LS_BF16}};
    for (int kind = 0; kind < KINDS; kind++)
        for (int t = 0; t < 3; t++) {
            bench b;
            bench_open(&b, kind, types[t][0], types[t][1]);
            unsigned all = (1u << b.l->nparams) - 1;
            result want = run(&b, N, true);
            for (int i = 0; i < b.l->nparams; i++) {
                check_frozen(&b, &want, 1u << i, false);
                check_frozen(&b, &want, 1u << i, true);
                check_frozen(&b, &want, all & ~(1u << i), false);
                check_frozen(&b, &want, all & ~(1u << i), true);
            }
            if (kind != EMBED) check_frozen(&b, &want, all, false);
            result_free(&want);
            bench_close(&b);
        }
}

/* Less is saved for backward. */
static void test_sizes(void **state) {
    (void)state;
    bench b;
    bench_open(&b, MLP, LS_BF16, LS_BF16);
    size_t whole = ls_mixed_saved_nbytes(b.l, 64, LS_F32);
    size_t half = ls_mixed_saved_nbytes(b.l, 64, LS_BF16);
    assert_int_equal(whole, 64 * T * (5 * C + 2) * 4);
    assert_int_equal(half, 64 * T * (5 * C * 2 + 2 * 4));
    bench_close(&b);
}

/* ---- what a call converts, as prices have it ---- */

static _Atomic size_t widened_floats, narrowed_floats;

static void count_widen(ls_dtype type, size_t n, const void *x, float *y) {
    widened_floats += n;
    ls_kernels_at(0)->widen(type, n, x, y);
}

static void count_narrow(ls_dtype type, size_t n, const float *x, void *y) {
    narrowed_floats += n;
    ls_kernels_at(0)->narrow(type, n, x, y);
}

static void count_to_bf16(int64_t n, const float *x, void *y) {
    narrowed_floats += (size_t)n;
    ls_kernels_at(0)->to_bf16(n, x, y);
}

/* The counts are those of the kernels that the calls really use. In bf16 these layers take operands
 * as they are stored, and convert some themselves. */
static void check_floats(bench *b) {
    ls_kernels counting = *b->compute.k;
    ls_compute with = b->compute;
    counting.widen = count_widen, counting.narrow = count_narrow;
    counting.to_bf16 = count_to_bf16;
    with.k = &counting, b->with = &with;
    ls_mixed_floats f = ls_mixed_forward_floats(b->l, N, b->type);
    ls_mixed_floats back = ls_mixed_backward_floats(b->l, N, b->type, b->grads, !b->no_dx, true);
    widened_floats = narrowed_floats = 0;
    result r = run(b, N, false);
    size_t widened_parts = f.widened_parts + back.widened_parts;
    size_t narrowed_parts = f.narrowed_parts + back.narrowed_parts;
    assert_int_equal(widened_floats, f.widened + back.widened + widened_parts);
    assert_int_equal(narrowed_floats, f.narrowed + back.narrowed + narrowed_parts);
    assert_true(b->type == LS_BF16 ? widened_parts && narrowed_parts
                                   : !widened_parts && !narrowed_parts);
    assert_true(b->type == LS_F32 ? widened_floats == 0 : widened_floats > 0);
    result_free(&r);
    b->with = NULL;
}

static void test_floats(void **state) {
    (void)state;
    static const ls_dtype types[] = {LS_F32, LS_BF16, LS_F16};
    for (int kind = ATTENTION; kind <= MLP; kind++)
        for (int t = 0; t < 3; t++)
            for (int g = 0; g < 3; g++) {
                bench b;
                bench_open(&b, kind, types[t], types[g]);
                check_floats(&b);
                b.no_dx = true;
                check_floats(&b);
                freeze(&b, 5);
                check_floats(&b);
                bench_close(&b);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layers), cmocka_unit_test(test_frozen),
                                       cmocka_unit_test(test_blocks), cmocka_unit_test(test_sizes),
                                       cmocka_unit_test(test_floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
