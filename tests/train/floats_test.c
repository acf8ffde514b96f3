/* floats_test.c - a program whose arithmetic takes denormal numbers as zeros, rounds up, and traps
 * at a NaN has the same bits, is not stopped, and keeps its arithmetic. */
#include <fenv.h>
#include <math.h>
#include <stdlib.h>
#ifdef __x86_64__
#include <xmmintrin.h>
#endif

#include "base/mem.h"
#include "folder.h"
#include "lockstep/compress.h"
#include "lockstep/infer.h"
#include "lockstep/table.h"
#include "lockstep/train.h"
#include "lockstep/virtual.h"
#include "test.h"

enum { FLUSH = 0x8040 }; /* of MXCSR: denormal operands and results are zeros */

static void set_odd(void) {
    fesetround(FE_UPWARD);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
#ifdef __x86_64__
    _mm_setcsr(_mm_getcsr() | FLUSH);
#endif
}

static bool is_odd(void) {
#ifdef __x86_64__
    if ((_mm_getcsr() & FLUSH) != FLUSH) return false;
#endif
    return fegetround() == FE_UPWARD;
}

static void set_usual(void) { fesetenv(FE_DFL_ENV); }

/* ---- sums ---- */

enum { N = 4096, WORKERS = 3, V = 5 };

typedef struct sums {
    float plain[N], later[N], of_virtual[N], compressed[N], rows[2 * N];
    double scan[2];
    bool odd; /* set before */
} sums;

/* Denormal numbers, numbers whose sums are rounded, an infinity and its opposite. They are written
 * as bits: this program's arithmetic may be odd. */
static void fill(int rank, float *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        uint32_t digits = (uint32_t)(i * 2654435761u + (size_t)rank * 40503u) & 0x7fffff;
        uint32_t sign = (uint32_t)(i + (size_t)rank) % 3 == 0 ? 0x80000000 : 0;
        uint32_t bits = sign | digits | (i % 2 ? 0 : (uint32_t)(124 + i % 5) << 23);
        if (i == 4) bits = rank ? 0x7f800000 : 0xff800000;
        memcpy(x + i, &bits, sizeof bits);
    }
}

static ls_status update_table(ls_group *g, sums *s, ls_error *e) {
    const ls_table_config c = {.width = 2,
                               .virtual_workers = WORKERS,
                               .optimizer = LS_ROW_ADAGRAD,
                               .bound = 0.05,
                               .seed = 1};
    int64_t ids[N];
    float *gradients = LS_NEW_ARRAY(float, 2 * N);
    ls_table *t = NULL;
    fill(ls_group_rank(g), gradients, 2 * N);
    gradients[4] = 1;
    for (int i = 0; i < N; i++) ids[i] = i % 700;
    ls_status done = ls_table_open(g, &c, &t, e);
    if (done == LS_OK) done = ls_table_add(t, ls_group_rank(g), ids, N, gradients, e);
    if (done == LS_OK) done = ls_table_update(t, 0.01, e);
    if (done == LS_OK) done = ls_table_read(t, ids, N, s->rows, e);
    ls_table_close(t);
    free(gradients);
    return done;
}

static ls_status work(ls_group *g, void *arg, ls_error *e) {
    sums *s = arg;
    bool odd = s->odd;
    if (odd) set_odd();
    int rank = ls_group_rank(g), first = 0, end = 0;
    sums *own = rank ? LS_NEW(sums) : s;
    float *x = LS_NEW_ARRAY(float, (size_t)V *N);
    const ls_compression how = {.kind = LS_COMPRESS_INT8};
    ls_compression_state state = {.errors = LS_NEW_ARRAY(float, N)};
    ls_request *later = NULL;
    fill(rank, x, N);
    LS_TRY(ls_all_reduce(g, x, own->plain, N, LS_F32, LS_AVG, e));
    LS_TRY(ls_all_reduce_start(g, x, own->later, N, LS_F32, LS_SUM, &later, e));
    static const double third = 1.0 / 3;
    LS_TRY(ls_scan(g, &third, own->scan, 1, LS_F64, LS_SUM, e));
    LS_TRY(ls_wait(&later, -1, e));
    ls_group_virtual_workers(g, V, &first, &end);
    for (int v = first; v < end; v++) fill(v, x + (v - first) * N, N);
    LS_TRY(ls_all_reduce_virtual(g, x, own->of_virtual, N, LS_F32, LS_AVG, V, e));
    fill(rank, x, N), x[4] = 1;
    LS_TRY(ls_all_reduce_compressed(g, x, own->compressed, N, &how, &state, e));
    free(state.errors);
    LS_TRY(update_table(g, own, e));
    if (odd) assert_true(is_odd());
    if (rank) free(own);
    free(x);
    return LS_OK;
}

static void test_sums(void **state) {
    (void)state;
    ls_error e = {0};
    sums *usual = LS_NEW(sums), *odd = LS_NEW(sums);
    odd->odd = true;
    assert_ls_ok(ls_run_threads(WORKERS, work, usual, &e), e);
    assert_ls_ok(ls_run_threads(WORKERS, work, odd, &e), e);
    set_usual(); /* the main thread was a worker */
    odd->odd = false;
    assert_memory_equal(odd, usual, sizeof *usual);
    assert_true(usual->plain[1] != 0 && fabsf(usual->plain[1]) < 0x1p-126f);
    assert_true(isnan(usual->plain[4]));
    free(usual), free(odd);
}

/* ---- training and predictions ---- */

static void build(ls_model *m, const ls_keys *k) {
    (void)k;
    ls_value *x = ls_input(m, "x", LS_F32, LS_DIMS(3));
    ls_value *label = ls_input(m, "label", LS_I32, LS_SCALAR);
    ls_value *y = ls_gelu(m, ls_linear(m, x, .name = "first", .out = 40));
    ls_cross_entropy(m, ls_linear(m, y, .name = "last", .out = 4), label, LS_DEFAULTS);
}

static const ls_program program = {.name = "mine", .build = build};

static void write_sample(ls_sample *s, uint64_t number) {
    float *x = ls_sample_field(s, "x");
    int32_t *label = ls_sample_field(s, "label");
    uint32_t denormal = (uint32_t)(number * 99991) & 0x7fffff;
    for (int j = 0; j < 2; j++) x[j] = (float)((number * (uint64_t)(7 + j)) % 11) / 4;
    memcpy(x + 2, &denormal, sizeof denormal);
    *label = (int32_t)(number % 4);
}

static ls_status read_sample(void *own, uint64_t i, ls_sample *s, ls_error *e) {
    (void)own, (void)e;
    write_sample(s, i + 5);
    return LS_OK;
}

typedef struct trained {
    double loss, score;
    float chances[4];
} trained;

static void train(const char *dir, trained *to) {
    static const char *const sets[] = {"train.batch=6",
                                       "train.virtual_workers=3",
                                       "train.steps=4",
                                       "optim.lr=0.05",
                                       "optim.warmup=0",
                                       "parallel.threads=2",
                                       NULL};
    static const ls_own_source held_out = {.count = 9, .read = read_sample};
    ls_trainer_options o = {.program = &program, .sets = sets, .count = 50, .run = dir};
    ls_trainer *t = NULL;
    ls_trainer_result r = {0};
    ls_trainer_score score;
    ls_error e = {0};
    assert_ls_ok(ls_trainer_open(&o, &t, &e), e);
    while (ls_trainer_steps(t) < 4) {
        for (int64_t i = 0; i < ls_trainer_nsamples(t); i++)
            write_sample(ls_trainer_sample(t, i), ls_trainer_number(t, i));
        assert_ls_ok(ls_trainer_step(t, &r, &e), e);
    }
    assert_ls_ok(ls_trainer_evaluate(t, &held_out, &score, &e), e);
    assert_ls_ok(ls_trainer_checkpoint(t, &e), e);
    ls_trainer_close(t);
    to->loss = r.loss, to->score = score.loss;

    const ls_predictor_options from = {.program = &program};
    static const float x[3] = {0.3f, -1.7f, 3e-39f};
    ls_predictor *p = NULL;
    assert_ls_ok(ls_predictor_open(dir, &from, &p, &e), e);
    assert_ls_ok(ls_predict(p, 1, (const void *[]){x}, (float *[]){to->chances}, &e), e);
    ls_predictor_close(p);
}

static void test_training(void **state) {
    (void)state;
    trained usual = {0}, odd = {0};
    char *first = ls_format("%s/usual", folder), *second = ls_format("%s/odd", folder);
    train(first, &usual);
    set_odd();
    train(second, &odd);
    bool kept = is_odd();
    set_usual();
    assert_true(kept);
    assert_memory_equal(&odd, &usual, sizeof odd);
    free(first), free(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test_setup_teardown(test_training, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
