/* table_test.c - tables of groups of threads: the same bits for any number of workers, known
 * outcomes, rows that come and go, and bad arguments. */
#include "lockstep/table.h"

#include <math.h>

#include "table/id_map.h"
#include "table/workout.h"
#include "test.h"

/* ---- the same bits ---- */

static void same_for_any_number(ls_table_config c) {
    char first[33] = "", other[33];
    c.virtual_workers = 11;
    for (int n = 1; n <= 11; n = n < 3 ? n + 1 : 2 * n - 1) { /* 1 2 3 5 9 */
        workout w = {.c = &c, .steps = 12, .hash = n == 1 ? first : other};
        work_out(n, &w);
        if (n > 1) assert_string_equal(other, first);
    }
}

static void test_same_bits(void **state) {
    (void)state;
    for (int o = LS_ROW_SGD; o <= LS_ROW_ADAM; o++)
        for (int limited = 0; limited < 2; limited++) {
            ls_table_config c = {.width = 5,
                                 .rows = limited ? 100 : 0,
                                 .optimizer = (ls_row_optimizer)o,
                                 .bound = 0.5,
                                 .seed = 3,
                                 .weight_decay = 0.01};
            same_for_any_number(c);
            c.admit = 4;
            c.keep = 3;
            same_for_any_number(c);
        }
}

/* The seed and each setting that changes rows change the hash. */
static void test_hash_differs(void **state) {
    (void)state;
    const ls_table_config base = {
        .width = 4, .optimizer = LS_ROW_ADAGRAD, .bound = 0.5, .virtual_workers = 4};
    ls_table_config others[4] = {base, base, base, base};
    others[0].seed = 1;
    others[1].admit = 3;
    others[2].keep = 1;
    others[3].eps = 1e-3;
    char first[33], hash[33];
    work_out(2, &(workout){.c = &base, .steps = 20, .hash = first});
    for (int i = 0; i < 4; i++) {
        work_out(2, &(workout){.c = &others[i], .steps = 20, .hash = hash});
        assert_string_not_equal(hash, first);
    }
    work_out(2, &(workout){.c = &base, .steps = 21, .hash = hash});
    assert_string_not_equal(hash, first);
}

/* ---- known outcomes ---- */

/* Worker r pushes r + 1 at rate 2: after push i the value is n (n + 1) (i + 1). */
static ls_status pushes(ls_group *g, void *arg, ls_error *e) {
    ls_table_config c = {.width = 2};
    ls_table *t = NULL;
    (void)arg;
    int n = ls_group_size(g), rank = ls_group_rank(g);
    assert_ls_ok(ls_table_open(g, &c, &t, e), *e);
    const int64_t ids[2] = {3, -9};
    const float v = -(float)(rank + 1), gradients[4] = {v, v, v, v};
    for (int i = 0; i < 4; i++) {
        float rows[4];
        assert_ls_ok(ls_table_add(t, rank, ids, 2, gradients, e), *e);
        assert_ls_ok(ls_table_update(t, 2, e), *e);
        assert_ls_ok(ls_table_read(t, ids, 2, rows, e), *e);
        for (int k = 0; k < 4; k++) assert_true(rows[k] == (float)(n * (n + 1) * (i + 1)));
        assert_int_equal(ls_table_clock(t), i + 1);
    }
    ls_table_close(t);
    return LS_OK;
}

static void test_pushes(void **state) {
    (void)state;
    ls_error e = {0};
    for (int n = 1; n <= 7; n++) assert_ls_ok(ls_run_threads(n, pushes, NULL, &e), e);
}

/* The rows of a factorization of a matrix of rank 2 recover it. */
static ls_status factorize(ls_group *g, void *arg, ls_error *e) {
    enum { N = 12, WIDTH = 2, PAIRS = 16 };
    double *error = arg;
    ls_table_config c = {.name = "factors",
                         .width = WIDTH,
                         .rows = 2 * N,
                         .bound = 0.5,
                         .seed = 5,
                         .virtual_workers = 4,
                         .optimizer = LS_ROW_ADAM};
    ls_table *t = NULL;
    int first = 0, end = 0;
    assert_ls_ok(ls_table_open(g, &c, &t, e), *e);
    ls_table_virtual_workers(t, &first, &end);
    double sum = 0;
    for (int step = 0; step < 1500; step++) {
        int64_t ids[2 * PAIRS];
        float rows[2 * PAIRS * WIDTH], gradients[2 * PAIRS * WIDTH];
        sum = 0;
        size_t n = 0; /* pairs of this worker's virtual workers */
        for (int i = first * PAIRS / 4; i < end * PAIRS / 4; i++, n++) {
            uint64_t drawn = ls_id_mix((uint64_t)(step * PAIRS + i));
            ids[2 * n] = (int64_t)(drawn % N);
            ids[2 * n + 1] = (int64_t)(N + drawn / N % N);
        }
        assert_ls_ok(ls_table_read(t, ids, 2 * n, rows, e), *e);
        for (size_t i = 0; i < n; i++) {
            const float *a = rows + 2 * i * WIDTH, *b = a + WIDTH;
            float *g2 = gradients + 2 * i * WIDTH;
            double want =
                sin((double)ids[2 * i]) * cos((double)ids[2 * i + 1]) + 0.1 * (double)ids[2 * i];
            float differ = a[0] * b[0] + a[1] * b[1] - (float)want;
            for (int x = 0; x < WIDTH; x++) {
                g2[x] = differ * b[x];
                g2[WIDTH + x] = differ * a[x];
            }
            sum += (double)(differ * differ);
        }
        for (int v = first; v < end; v++) {
            size_t at = (size_t)(v - first) * 2 * (PAIRS / 4);
            assert_ls_ok(ls_table_add(t, v, ids + at, 2 * (PAIRS / 4), gradients + at * WIDTH, e),
                         *e);
        }
        assert_ls_ok(ls_table_update(t, 0.02, e), *e);
    }
    assert_ls_ok(ls_all_reduce(g, &sum, &sum, 1, LS_F64, LS_SUM, e), *e);
    if (ls_group_rank(g) == 0) *error = sum / PAIRS;
    ls_table_close(t);
    return LS_OK;
}

static void test_factorization(void **state) {
    (void)state;
    ls_error e = {0};
    double error = 1;
    assert_ls_ok(ls_run_threads(3, factorize, &error, &e), e);
    assert_true(error < 1e-3);
}

/* ---- rows that come and go ---- */

typedef struct one {
    ls_table *t;
    ls_error e;
} one;

static void push(one *o, int64_t id, int times) {
    const float g = -1;
    for (int i = 0; i < times; i++) assert_ls_ok(ls_table_add(o->t, 0, &id, 1, &g, &o->e), o->e);
    assert_ls_ok(ls_table_update(o->t, 1, &o->e), o->e);
}

static float value(one *o, int64_t id) {
    float row = 0;
    assert_ls_ok(ls_table_read(o->t, &id, 1, &row, &o->e), o->e);
    return row;
}

static ls_status come_and_go(ls_group *g, void *arg, ls_error *e) {
    one o = {0};
    (void)arg;
    (void)e;
    ls_table_config c = {.width = 1, .admit = 3};
    assert_ls_ok(ls_table_open(g, &c, &o.t, &o.e), o.e);
    push(&o, 7, 2);
    assert_true(value(&o, 7) == 0); /* added twice */
    assert_int_equal(ls_table_count(o.t), 0);
    push(&o, 7, 2); /* the third and fourth time, which both count */
    assert_true(value(&o, 7) == 2);
    assert_int_equal(ls_table_count(o.t), 1);
    ls_table_close(o.t);

    c = (ls_table_config){.width = 1, .keep = 2};
    assert_ls_ok(ls_table_open(g, &c, &o.t, &o.e), o.e);
    push(&o, 7, 1);
    push(&o, 8, 1);
    push(&o, 9, 1);
    assert_true(value(&o, 7) == 1); /* two updates after its own */
    push(&o, 9, 1);
    assert_true(value(&o, 7) == 0); /* three */
    assert_true(value(&o, 8) == 1);
    for (int i = 0; i < 200; i++) push(&o, 9, 1);
    assert_int_equal(ls_table_count(o.t), 1); /* its memory is given back */
    push(&o, 7, 1);
    assert_true(value(&o, 7) == 1); /* it begins anew */
    ls_table_close(o.t);
    return LS_OK;
}

static void test_come_and_go(void **state) {
    (void)state;
    ls_error e = {0};
    assert_ls_ok(ls_run_threads(1, come_and_go, NULL, &e), e);
}

/* ---- the optimizers, beside figures computed in double precision ---- */

static void change(one *o, double lr, const float *g) {
    const int64_t id = 5;
    assert_ls_ok(ls_table_add(o->t, 0, &id, 1, g, &o->e), o->e);
    assert_ls_ok(ls_table_update(o->t, lr, &o->e), o->e);
}

static void check_row(one *o, size_t width, const double *want) {
    const int64_t id = 5;
    float row[32];
    assert_ls_ok(ls_table_read(o->t, &id, 1, row, &o->e), o->e);
    for (size_t i = 0; i < width; i++) assert_true(fabs((double)row[i] - want[i]) < 1e-6);
}

static ls_status sgd(ls_group *g, void *arg, ls_error *e) {
    const ls_table_config c = {.width = 2, .weight_decay = 0.5};
    one o = {0};
    (void)arg;
    assert_ls_ok(ls_table_open(g, &c, &o.t, e), *e);
    change(&o, 1, (const float[2]){-0.75f, 4}); /* from zeros: without decay */
    check_row(&o, 2, (const double[2]){0.75, -4});
    change(&o, 0.5, (const float[2]){0.5f, 4}); /* g = (0.5 + 0.375, 4 - 2) */
    check_row(&o, 2, (const double[2]){0.75 - 0.4375, -5});
    ls_table_close(o.t);
    return LS_OK;
}

/* G += mean g^2; w -= lr g / (sqrt G + eps). */
static ls_status adagrad(ls_group *g, void *arg, ls_error *e) {
    enum { WIDTH = 21 };
    const ls_table_config c = {.width = WIDTH, .optimizer = LS_ROW_ADAGRAD, .lr_decay = 0.25};
    one o = {0};
    (void)arg;
    assert_ls_ok(ls_table_open(g, &c, &o.t, e), *e);
    double want[WIDTH] = {0}, sum = 0;
    for (int t = 0; t < 5; t++) {
        float x[WIDTH];
        for (int i = 0; i < WIDTH; i++) {
            x[i] = (float)((i * 7 + t * 5) % 11 - 5) / 4;
            sum += (double)x[i] * (double)x[i] / WIDTH;
        }
        for (int i = 0; i < WIDTH; i++)
            want[i] -= 0.1 / (1 + t * 0.25) * (double)x[i] / (sqrt(sum) + 1e-10);
        change(&o, 0.1, x);
        check_row(&o, WIDTH, want);
    }
    ls_table_close(o.t);
    return LS_OK;
}

/* Adam's first step is lr sign g; later steps are as Kingma and Ba write them. */
static ls_status adam(ls_group *g, void *arg, ls_error *e) {
    const ls_table_config c = {.width = 1, .optimizer = LS_ROW_ADAM};
    one o = {0};
    (void)arg;
    assert_ls_ok(ls_table_open(g, &c, &o.t, e), *e);
    double m = 0, v = 0, want = 0;
    for (int t = 1; t <= 20; t++) {
        float x = (float)(t % 3) - 0.5f;
        m = 0.9 * m + 0.1 * (double)x;
        v = 0.999 * v + 0.001 * (double)x * (double)x;
        want -= 0.01 * sqrt(1 - pow(0.999, t)) / (1 - pow(0.9, t)) * m / (sqrt(v) + 1e-8);
        change(&o, 0.01, &x);
        check_row(&o, 1, &want);
        if (t == 1) assert_true(fabs(want + 0.01) < 1e-6);
    }
    ls_table_close(o.t);
    return LS_OK;
}

static void test_optimizers(void **state) {
    (void)state;
    ls_error e = {0};
    assert_ls_ok(ls_run_threads(1, sgd, NULL, &e), e);
    assert_ls_ok(ls_run_threads(1, adagrad, NULL, &e), e);
    assert_ls_ok(ls_run_threads(1, adam, NULL, &e), e);
}

/* Reading takes no memory, and gives what the first change begins with. */
static ls_status initial(ls_group *g, void *arg, ls_error *e) {
    enum { N = 1000 };
    static const ls_table_config c = {.width = 1, .bound = 0.25, .seed = 2};
    ls_table *t = NULL;
    (void)arg;
    assert_ls_ok(ls_table_open(g, &c, &t, e), *e);
    int64_t ids[N];
    float rows[N], again[N];
    double sum = 0;
    for (int i = 0; i < N; i++) ids[i] = i * (int64_t)1000003 - 500;
    assert_ls_ok(ls_table_read(t, ids, N, rows, e), *e);
    for (int i = 0; i < N; i++) {
        assert_true(rows[i] >= -0.25f && rows[i] < 0.25f);
        sum += (double)rows[i];
    }
    assert_true(fabs(sum / N) < 0.02);
    assert_int_equal(ls_table_count(t), 0);
    static const float zeros[N];
    assert_ls_ok(ls_table_add(t, ls_group_rank(g), ids, N, zeros, e), *e);
    assert_ls_ok(ls_table_update(t, 1, e), *e);
    assert_ls_ok(ls_table_read(t, ids, N, again, e), *e);
    assert_memory_equal(again, rows, sizeof rows);
    int64_t count = ls_table_count(t);
    assert_ls_ok(ls_all_reduce(g, &count, &count, 1, LS_I64, LS_SUM, e), *e);
    assert_int_equal(count, N);
    ls_table_close(t);
    return LS_OK;
}

static void test_initial_values(void **state) {
    (void)state;
    ls_error e = {0};
    assert_ls_ok(ls_run_threads(3, initial, NULL, &e), e);
}

/* Many rows, far apart: each has what it was given. */
static ls_status far_apart(ls_group *g, void *arg, ls_error *e) {
    enum { N = 20000 };
    const ls_table_config *c = arg;
    ls_table *t = NULL;
    int rank = ls_group_rank(g), n = ls_group_size(g), first = N * rank / n;
    int count = N * (rank + 1) / n - first;
    float *rows = calloc(N, sizeof *rows);
    int64_t *ids = calloc(N, sizeof *ids);
    assert_ls_ok(ls_table_open(g, c, &t, e), *e);
    for (int i = 0; i < N; i++) ids[i] = c->rows - 1 - (int64_t)i * 9973;
    for (int i = 0; i < count; i++) rows[i] = -(float)(first + i);
    assert_ls_ok(ls_table_add(t, rank, ids + first, (size_t)count, rows, e), *e);
    assert_ls_ok(ls_table_update(t, 1, e), *e);
    assert_ls_ok(ls_table_read(t, ids, N, rows, e), *e);
    for (int i = 0; i < N; i++) assert_true(rows[i] == (float)i);
    ls_table_close(t);
    free(rows);
    free(ids);
    return LS_OK;
}

static void test_far_apart(void **state) {
    (void)state;
    ls_error e = {0};
    ls_table_config limited = {.width = 1, .rows = (int64_t)1 << 28};
    ls_table_config any = {.width = 1};
    for (int n = 1; n <= 3; n++) {
        assert_ls_ok(ls_run_threads(n, far_apart, &limited, &e), e);
        assert_ls_ok(ls_run_threads(n, far_apart, &any, &e), e);
    }
}

/* ---- bad arguments ---- */

static ls_status bad(ls_group *g, void *arg, ls_error *e) {
    ls_table_config c = {.name = "users", .width = 2, .rows = 10, .virtual_workers = 4};
    ls_table *t = NULL;
    (void)arg;
    int rank = ls_group_rank(g);
    c.width = rank == 1 ? 3 : 2;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL, "workers 0 and 1 have different", *e);
    c.width = rank == 1 ? 0 : 2;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL,
                    rank == 1 ? "width must be" : "ls_table_open() failed on worker 1", *e);
    c.width = 2;
    c.virtual_workers = 1;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL, "virtual_workers is 1", *e);
    c.virtual_workers = 4;
    c.weight_decay = NAN;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL, "weight_decay", *e);
    c.weight_decay = 0;
    c.eps = INFINITY;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL, "eps is inf; it must be at least 0",
                    *e);
    c.eps = 0;
    c.bound = 1e39;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL, "bound is 1e+39; it must be", *e);
    c.bound = 0;
    c.beta2 = 1;
    assert_ls_fails(ls_table_open(g, &c, &t, e), LS_EINVAL, "beta1 is 0.9 and beta2 1; both", *e);
    c.beta2 = 0;
    assert_ls_ok(ls_table_open(g, &c, &t, e), *e);

    const int64_t good[2] = {1, 9}, wrong[2] = {1, 10};
    char text[33];
    const float ones[4] = {1, 1, 1, 1};
    float rows[4] = {7, 7, 7, 7};
    assert_ls_fails(ls_table_read(t, rank == 1 ? wrong : good, 2, rows, e), LS_EINVAL,
                    rank == 1 ? "'users': id 10 is not one of 0 to 9" : "failed on worker 1", *e);
    assert_true(rows[0] == 7);
    assert_ls_fails(ls_table_read(t, good, 2, rank == 1 ? NULL : rows, e), LS_EINVAL,
                    rank == 1 ? "rows are NULL, but there are 2 ids" : "failed on worker 1", *e);
    assert_ls_fails(ls_table_hash(t, rank == 0 ? NULL : text, e), LS_EINVAL,
                    rank == 0 ? "the text is NULL" : "failed on worker 0", *e);
    assert_ls_fails(ls_table_save(t, rank == 0 ? NULL : "nowhere", e), LS_EINVAL,
                    rank == 0 ? "the directory is NULL" : "failed on worker 0", *e);
    assert_ls_fails(ls_table_load(t, rank == 0 ? NULL : "nowhere", e), LS_EINVAL,
                    rank == 0 ? "the directory is NULL" : "failed on worker 0", *e);
    assert_ls_fails(ls_table_save(t, rank == 0 ? "" : "nowhere", e), LS_EINVAL,
                    rank == 0 ? "the directory is ''" : "failed on worker 0", *e);
    assert_ls_fails(ls_table_add(t, 2 * rank, NULL, 2, ones, e), LS_EINVAL, "ids are NULL", *e);
    ls_table_virtual_workers(t, NULL, NULL);
    assert_ls_fails(ls_table_add(t, rank == 0 ? 2 : 1, good, 2, ones, e), LS_EINVAL,
                    "is not this worker's", *e);
    assert_ls_fails(ls_table_add(t, 2 * rank, wrong, 2, ones, e), LS_EINVAL, "id 10", *e);
    assert_ls_ok(ls_table_add(t, 2 * rank, good, 2, ones, e), *e);
    assert_ls_fails(ls_table_update(t, rank == 1 ? INFINITY : 1, e), LS_EINVAL,
                    rank == 1 ? "lr is inf" : "failed on worker 1", *e);
    assert_ls_fails(ls_table_update(t, rank == 1 ? 2 : 1, e), LS_EINVAL,
                    rank == 1 ? "lr is 2, and 1 on worker 0" : "failed on worker 1", *e);
    assert_int_equal(ls_table_clock(t), 0);
    assert_ls_ok(ls_table_update(t, 1, e), *e); /* what was added remained */
    assert_ls_ok(ls_table_read(t, good, 2, rows, e), *e);
    for (int i = 0; i < 4; i++) assert_true(rows[i] == -2);
    assert_ls_ok(ls_table_add(t, 2 * rank, good, 2, ones, e), *e);
    ls_table_discard(t);
    assert_ls_ok(ls_table_update(t, 1, e), *e);
    assert_ls_ok(ls_table_read(t, good, 2, rows, e), *e);
    assert_true(rows[0] == -2);
    ls_table_close(t);
    return LS_OK;
}

static void test_bad_arguments(void **state) {
    (void)state;
    ls_error e = {0};
    assert_ls_ok(ls_run_threads(2, bad, NULL, &e), e);
    ls_table_close(NULL);
}

static void test_null(void **state) {
    (void)state;
    ls_error e = {0};
    ls_table *t = NULL;
    int first = 5, end = 5;
    char text[33];
    assert_ls_fails(ls_table_open(NULL, &(ls_table_config){.width = 1}, &t, &e), LS_EINVAL,
                    "ls_table_open(): the group is NULL", e);
    ls_table_virtual_workers(NULL, &first, &end);
    assert_true(first == 0 && end == 0 && ls_table_clock(NULL) == 0 && ls_table_count(NULL) == 0);
    ls_table_discard(NULL);
    assert_ls_fails(ls_table_read(NULL, NULL, 0, NULL, &e), LS_EINVAL,
                    "ls_table_read(): the table is NULL", e);
    assert_int_equal(ls_table_add(NULL, 0, NULL, 0, NULL, NULL), LS_EINVAL);
    assert_int_equal(ls_table_update(NULL, 1, NULL), LS_EINVAL);
    assert_int_equal(ls_table_hash(NULL, text, NULL), LS_EINVAL);
    assert_int_equal(ls_table_save(NULL, "nowhere", NULL), LS_EINVAL);
    assert_int_equal(ls_table_load(NULL, "nowhere", NULL), LS_EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),      cmocka_unit_test(test_hash_differs),
        cmocka_unit_test(test_pushes),         cmocka_unit_test(test_factorization),
        cmocka_unit_test(test_come_and_go),    cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_initial_values), cmocka_unit_test(test_far_apart),
        cmocka_unit_test(test_bad_arguments),  cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
