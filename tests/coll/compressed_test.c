/* compressed_test.c - compressed sums: the same bits for any number of workers and any transport;
 * out + errors = in; bytes; bad input. */
/* ctest: seconds=20 */
/* ctest: long-tsan: coll/group and coll/ops start the same threads */
/* ctest: long-asan: compress/codec and coll/uneven run the same code */
#include "coll/compressed_sums.h"

#include <math.h>

#include "coll/team.h"

static const int SIZES[] = {1, 2, 3, 5, 8};
enum { NSIZES = sizeof SIZES / sizeof *SIZES };

/* ---- the same bits ---- */

static compressed_sums sums_of(size_t count) {
    compressed_sums x;
    ls_error e = {0};
    assert_ls_ok(compressed_alone(count, &x, &e), e);
    return x;
}

static void test_threads(void **state) {
    static const size_t counts[] = {0, 1, 31, 33, 1000, 20011};
    (void)state;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        compressed_sums x = sums_of(counts[c]);
        for (int s = 0; s < NSIZES; s++) run_threads(SIZES[s], NULL, compressed_all, &x, NULL);
    }
}

static void test_processes(void **state) {
    (void)state;
    need_processes();
    compressed_sums x = sums_of(5003);
    for (int s = 0; s < NSIZES; s++) {
        run_processes(SIZES[s], NULL, compressed_all, &x);
        run_processes(SIZES[s], &(ls_group_options){.transport = "tcp"}, compressed_all, &x);
    }
}

static void test_algorithms(void **state) {
    static const char *const names[] = {"ring", "direct", "halving"};
    (void)state;
    compressed_sums x = sums_of(3001);
    for (int i = 0; i < 3; i++)
        run_threads(5, &(ls_group_options){.algorithm = names[i]}, compressed_all, &x, NULL);
}

/* ---- what is sent and what is left make up what came in ---- */

enum { COUNT = 4000, SUMMED_STEPS = 20 };

/* Over all steps: the sum of what came out and of what is left is the sum of what went in. */
static ls_status conserve(ls_group *g, void *arg, ls_error *e) {
    ls_compression how = *(const ls_compression *)arg;
    int n = ls_group_size(g), rank = ls_group_rank(g);
    double *difference = calloc(COUNT, sizeof *difference), *all = calloc(COUNT, sizeof *all);
    float *in = malloc(COUNT * sizeof *in), *out = malloc(COUNT * sizeof *out);
    ls_compression_state s = compressed_state(&how, 1, COUNT);
    ls_status status = LS_OK;
    for (how.step = 0; how.step < SUMMED_STEPS && status == LS_OK; how.step++) {
        compressed_fill(in, rank, COUNT, how.step);
        status = ls_all_reduce_compressed(g, in, out, COUNT, &how, &s, e);
        for (int i = 0; i < COUNT; i++) difference[i] += (double)in[i] - (double)out[i] / n;
    }
    for (int i = 0; i < COUNT; i++) difference[i] -= (double)s.errors[i] + (double)s.sums[i];
    if (status == LS_OK) status = ls_all_reduce(g, difference, all, COUNT, LS_F64, LS_SUM, e);
    for (int i = 0; i < COUNT && status == LS_OK; i++)
        if (!(fabs(all[i]) < 2e-3))
            status = ls_fail(e, LS_EINVAL, "%s: element %d: %g is lost",
                             ls_compression_name(how.kind), i, all[i]);
    free(difference);
    free(all);
    free(in);
    free(out);
    compressed_state_free(&s);
    return status;
}

static void test_conserve(void **state) {
    (void)state;
    for (int i = 0; i < NCOMPRESSED; i++) {
        ls_compression how = COMPRESSED[i];
        how.decay = 0;
        how.op = LS_SUM;
        if (how.feedback == LS_FEEDBACK_ERROR) run_threads(3, NULL, conserve, &how, NULL);
    }
}

/* ---- bytes ---- */

/* What compress.h says of a call's cost, with one contribution each; the collectives of a ring
 * add nothing. */
static uint64_t expected_bytes(const ls_compression *how, size_t count, int rank, int n) {
    uint64_t others = (uint64_t)n - 1, b = ls_compression_nbytes(how, count), sum = 0;
    if (!how->two_hops) return others * (16 + b);
    for (int r = 0; r < n; r++) {
        size_t first = 0, end = 0;
        ls_error e;
        assert_ls_ok(ls_compression_range(how, count, r, n, &first, &end, &e), e);
        uint64_t part = ls_compression_nbytes(how, end - first);
        sum += 16 + (r == rank ? others * part : part);
        if (r == rank) sum += others * 16 - 16;
    }
    return sum;
}

static ls_status count_bytes(ls_group *g, void *arg, ls_error *e) {
    const ls_compression *how = arg;
    enum { N = 4 * 4096 }; /* four equal ranges */
    static float zeros[4][N];
    int rank = ls_group_rank(g);
    float *in = zeros[rank], *out = malloc(N * sizeof *out);
    ls_compression_state s = compressed_state(how, 1, N);
    uint64_t before = ls_group_counters(g).bytes_sent;
    ls_status status = ls_all_reduce_compressed(g, in, out, N, how, &s, e);
    uint64_t sent = ls_group_counters(g).bytes_sent - before;
    uint64_t want = expected_bytes(how, N, rank, ls_group_size(g));
    free(out);
    compressed_state_free(&s);
    if (status == LS_OK && sent != want)
        return ls_fail(e, LS_EINVAL, "%s: worker %d sent %llu bytes instead of %llu",
                       ls_compression_name(how->kind), rank, (unsigned long long)sent,
                       (unsigned long long)want);
    return status;
}

static void test_bytes(void **state) {
    (void)state;
    for (int i = 0; i < NCOMPRESSED; i++) {
        ls_compression how = COMPRESSED[i];
        if (how.kind != LS_COMPRESS_POWERSGD)
            run_threads(4, &(ls_group_options){.algorithm = "ring"}, count_bytes, &how, NULL);
    }
}

/* Two factors of the all-reduces: with two workers each sends half of a vector twice. */
static ls_status count_summed(ls_group *g, void *arg, ls_error *e) {
    const ls_compression *how = arg;
    enum { N = 6400 };
    float *in = calloc(N, sizeof *in), *out = calloc(N, sizeof *out);
    ls_compression_state s = compressed_state(how, 1, N);
    uint64_t before = ls_group_counters(g).bytes_sent;
    ls_status status = ls_all_reduce_compressed(g, in, out, N, how, &s, e);
    uint64_t sent = ls_group_counters(g).bytes_sent - before;
    free(in);
    free(out);
    compressed_state_free(&s);
    LS_TRY(status);
    uint64_t want = 16 + ls_compression_nbytes(how, N);
    if (sent == want) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %llu bytes instead of %llu", ls_compression_name(how->kind),
                   (unsigned long long)sent, (unsigned long long)want);
}

static void test_summed_bytes(void **state) {
    ls_compression powersgd = {.kind = LS_COMPRESS_POWERSGD, .rank = 2};
    (void)state;
    run_threads(2, &(ls_group_options){.algorithm = "direct"}, count_summed, &powersgd, NULL);
}

/* ---- bad input ---- */

/* Worker 1 has a NaN, then an infinity, then a sum with its error above the range: all workers get
 * the same error, nothing changes, and the group goes on. */
static ls_status not_finite(ls_group *g, void *arg, ls_error *e) {
    const ls_compression *how = arg;
    enum { N = 100 };
    const float bad[] = {NAN, INFINITY, 3e38f};
    float in[N], out[N], was[N];
    ls_compression_state s = compressed_state(how, 1, N);
    ls_status status = LS_OK;
    for (int i = 0; i < N; i++) in[i] = (float)(i % 7), out[i] = was[i] = -5.0f;
    for (int kind = 0; kind < 3 && status == LS_OK; kind++) {
        bool ef = how->feedback == LS_FEEDBACK_ERROR;
        if (kind == 2 && !ef) break;
        if (kind == 2) s.errors[17] = 3e38f;
        if (ls_group_rank(g) == 1) in[17] = bad[kind];
        ls_error got = {0};
        ls_status failed = ls_all_reduce_compressed(g, in, out, N, how, &s, &got);
        if (failed != LS_EINVAL || !strstr(got.msg, "element 17 of worker 1 ") ||
            memcmp(out, was, sizeof out) != 0)
            status = ls_fail(e, LS_EINVAL, "%s: %d '%s'", ls_compression_name(how->kind),
                             (int)failed, got.msg);
        for (int i = 0; status == LS_OK && s.errors && i < N; i++)
            if (s.errors[i] != (kind == 2 && i == 17 ? 3e38f : 0.0f))
                status = ls_fail(e, LS_EINVAL, "errors[%d] changed", i);
        if (s.errors) s.errors[17] = 0;
        in[17] = 1.0f;
    }
    if (status == LS_OK) status = ls_all_reduce_compressed(g, in, out, N, how, &s, e);
    compressed_state_free(&s);
    return status;
}

static void test_not_finite(void **state) {
    (void)state;
    for (int i = 0; i < NCOMPRESSED; i++) {
        ls_compression how = COMPRESSED[i];
        run_threads(3, NULL, not_finite, &how, NULL);
    }
}

/* Finite values whose sum is infinite: as in ls_all_reduce(). */
static ls_status overflow(ls_group *g, void *arg, ls_error *e) {
    float in[40], out[40], errors[40] = {0};
    const ls_compression how = {.kind = LS_COMPRESS_INT8};
    ls_compression_state s = {.errors = errors};
    (void)arg;
    for (int i = 0; i < 40; i++) in[i] = 3e38f;
    LS_TRY(ls_all_reduce_compressed(g, in, out, 40, &how, &s, e));
    for (int i = 0; i < 40; i++)
        if (!isinf(out[i])) return ls_fail(e, LS_EINVAL, "%g", (double)out[i]);
    return LS_OK;
}

static ls_status refuse(ls_group *g, void *arg, ls_error *e) {
    float x[64] = {0};
    static const struct {
        ls_compression how;
        const char *text;
    } cases[] = {
        {{.kind = (ls_compression_kind)99}, "kind 99"},
        {{.feedback = (ls_feedback)7}, "feedback 7"},
        {{.op = LS_MAX}, "only sums and averages"},
        {{.kind = LS_COMPRESS_POWERSGD, .feedback = LS_FEEDBACK_EF21}, "EF21"},
        {{.two_hops = true}, "not for topk"},
        {{.kind = LS_COMPRESS_INT8, .two_hops = true, .feedback = LS_FEEDBACK_EF21}, "two_hops"},
        {{.decay = 1.0f}, "decay 1 "},
        {{.ratio = 1.5}, "ratio 1.5"},
        {{.kind = LS_COMPRESS_INT8, .block = 33}, "block 33"},
        {{.kind = LS_COMPRESS_POWERSGD, .rank = 65}, "rank 65"},
        {{.kind = LS_COMPRESS_ONEBIT, .sign_scale = (ls_sign_scale)5}, "sign_scale 5"},
        {{.kind = LS_COMPRESS_INT8}, "no errors"},
        {{.kind = LS_COMPRESS_POWERSGD, .feedback = LS_FEEDBACK_NONE}, "shared"},
        {{.virtual_workers = 1}, "1 virtual workers for 2"},
    };
    (void)arg;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ls_error got = {0};
        ls_status s = ls_all_reduce_compressed(g, x, x, 64, &cases[i].how, NULL, &got);
        if (s != LS_EINVAL || !strstr(got.msg, cases[i].text))
            return ls_fail(e, LS_EINVAL, "case %zu: %d '%s'", i, (int)s, got.msg);
    }
    return LS_OK;
}

/* Settings of which the messages have the same length. */
static ls_status differ(ls_group *g, void *arg, ls_error *e) {
    float x[64] = {0}, errors[64] = {0};
    ls_compression_state s = {.errors = errors};
    ls_compression how = {.kind = LS_COMPRESS_INT8, .decay = ls_group_rank(g) ? 0.25f : 0.5f};
    ls_error got = {0};
    (void)arg;
    ls_status failed = ls_all_reduce_compressed(g, x, x, 64, &how, &s, &got);
    if (failed == LS_EINVAL && strstr(got.msg, "has other settings")) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%d '%s'", (int)failed, got.msg);
}

static void test_bad(void **state) {
    (void)state;
    run_threads(2, NULL, refuse, NULL, NULL);
    run_threads(3, NULL, differ, NULL, NULL);
    run_threads(2, NULL, overflow, NULL, NULL);
}

/* Counts that differ: found as for every collective, under the name of this call. */
static ls_status counts_differ(ls_group *g, void *arg, ls_error *e) {
    static float x[2][4096];
    const ls_compression how = {.feedback = LS_FEEDBACK_NONE};
    (void)arg;
    return ls_all_reduce_compressed(g, x[ls_group_rank(g)], x[ls_group_rank(g)],
                                    ls_group_rank(g) ? 4096 : 64, &how, NULL, e);
}

static void test_disagree(void **state) {
    ls_error errors[2] = {0};
    (void)state;
    run_threads(2, NULL, counts_differ, NULL, errors);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(errors[i].code, LS_EDISAGREE);
        assert_non_null(strstr(errors[i].msg, "all_reduce_compressed"));
        assert_non_null(strstr(errors[i].msg, "compressed_test.c:"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_processes),
        cmocka_unit_test(test_algorithms), cmocka_unit_test(test_conserve),
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_summed_bytes),
        cmocka_unit_test(test_not_finite), cmocka_unit_test(test_bad),
        cmocka_unit_test(test_disagree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
