/* algorithm_test.c - every algorithm, over the fake transport: right results for any number of
 * workers, count, type, operation, in place or not, in any order of arrival; the bits and the
 * traffic that it claims; and faults that end in an error, not in a hang. */
#include "coll/algo/algorithm.h"

#include <math.h>

#include "base/mem.h"
#include "coll/flight.h"
#include "net/fake.h"
#include "test.h"

enum { MAX_N = 9 };

/* One call on n workers, from making programs to the end. */
typedef struct world {
    const ls_algorithm *algorithm;
    ls_call call;
    int n;
    bool in_place;
    size_t sends[MAX_N][MAX_N], receives[MAX_N][MAX_N]; /* of a pairwise call, by worker */
    unsigned char *in[MAX_N], *out[MAX_N];              /* with a guard byte behind each */
    size_t in_nbytes[MAX_N], out_nbytes[MAX_N];
    ls_coll_program programs[MAX_N];
    ls_flight flights[MAX_N];
    ls_fake *fake;
} world;

static const ls_kernels *kernels(void) { return ls_kernels_named("portable"); }

static size_t block_count(const world *w, int rank) {
    return w->call.counts ? w->call.counts[rank] : w->call.count;
}
static size_t all_blocks(const world *w) {
    size_t n = 0;
    for (int i = 0; i < w->n; i++) n += block_count(w, i);
    return n;
}
static size_t first_of_block(const world *w, int rank) {
    size_t n = 0;
    for (int i = 0; i < rank; i++) n += block_count(w, i);
    return n;
}

/* Elements that go from one worker to another in a pairwise call. */
static size_t pair_count(const world *w, int from, int to) {
    if (w->call.what == LS_CALL_GATHER_V && to != w->call.root) return 0;
    if (w->call.what == LS_CALL_SCATTER_V && from != w->call.root) return 0;
    if ((from * 7 + to * 3) % 4 == 1) return 0;
    return w->call.count * (size_t)((from + 2 * to) % 3) / 2 + (size_t)((from + to) % 2);
}
static size_t sum_of_pairs(const world *w, int r, bool sent) {
    size_t n = 0;
    for (int i = 0; i < w->n; i++) n += sent ? pair_count(w, r, i) : pair_count(w, i, r);
    return n;
}

/* Elements of IN and OUT, as algorithm.h defines them. */
static size_t in_count(const world *w, int r) {
    switch (w->call.what) {
    case LS_CALL_REDUCE_SCATTER: return all_blocks(w);
    case LS_CALL_ALL_GATHER: return block_count(w, r);
    case LS_CALL_SCATTER: return r == w->call.root ? (size_t)w->n * w->call.count : 0;
    case LS_CALL_ALL_TO_ALL: return (size_t)w->n * w->call.count;
    case LS_CALL_ALL_TO_ALL_V:
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V: return sum_of_pairs(w, r, true);
    case LS_CALL_BROADCAST:
    case LS_CALL_BARRIER:
    case LS_NCALLS: return 0;
    default: return w->call.count;
    }
}
static size_t out_count(const world *w, int r) {
    switch (w->call.what) {
    case LS_CALL_REDUCE_SCATTER: return block_count(w, r);
    case LS_CALL_ALL_GATHER: return all_blocks(w);
    case LS_CALL_REDUCE: return r == w->call.root ? w->call.count : 0;
    case LS_CALL_EXSCAN: return r ? w->call.count : 0;
    case LS_CALL_GATHER: return r == w->call.root ? (size_t)w->n * w->call.count : 0;
    case LS_CALL_ALL_TO_ALL: return (size_t)w->n * w->call.count;
    case LS_CALL_ALL_TO_ALL_V:
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V: return sum_of_pairs(w, r, false);
    case LS_CALL_BARRIER:
    case LS_NCALLS: return 0;
    default: return w->call.count;
    }
}

/* Element i of worker r's input: small integers, with fractions where the type has them. Sums of
 * f32 fractions are inexact, so that their order shows. */
static double value(const world *w, int r, size_t i) {
    int x = (int)((i * 7 + (size_t)r * 13 + 5) % 23) - 11;
    if (w->call.op == LS_PROD) return x % 2 ? 1 : x % 4 ? -1 : 2;
    if (w->call.dtype == LS_F32 && ls_collective_reduces(w->call.what)) return x + 0.1 * (r + 1);
    if (w->call.dtype == LS_BOOL) return x > 0;
    return w->call.dtype == LS_U8 || (w->call.dtype >= LS_U16 && w->call.dtype <= LS_U64)
               ? (x + 12) % 12
               : x;
}

static void put(ls_dtype t, void *p, size_t i, double x) {
    float f = (float)x;
    switch (t) {
    case LS_F64: ((double *)p)[i] = x; break;
    case LS_F32: ((float *)p)[i] = f; break;
    case LS_I64: ((int64_t *)p)[i] = (int64_t)x; break;
    case LS_I32: ((int32_t *)p)[i] = (int32_t)x; break;
    case LS_I8: ((int8_t *)p)[i] = (int8_t)x; break;
    case LS_BOOL:
    case LS_U8: ((uint8_t *)p)[i] = (uint8_t)(int)x; break;
    case LS_U16: ((uint16_t *)p)[i] = (uint16_t)(int)x; break;
    case LS_U32: ((uint32_t *)p)[i] = (uint32_t)(int64_t)x; break;
    case LS_U64: ((uint64_t *)p)[i] = (uint64_t)(int64_t)x; break;
    case LS_I16: ((int16_t *)p)[i] = (int16_t)x; break;
    case LS_F64_I64: ((ls_f64_i64 *)p)[i] = (ls_f64_i64){x, 0}; break;
    case LS_F32_I32: ((ls_f32_i32 *)p)[i] = (ls_f32_i32){f, 0}; break;
    case LS_I64_I64: ((ls_i64_i64 *)p)[i] = (ls_i64_i64){(int64_t)x, 0}; break;
    case LS_I32_I32: ((ls_i32_i32 *)p)[i] = (ls_i32_i32){(int32_t)x, 0}; break;
    default: kernels()->narrow(t, 1, &f, (uint16_t *)p + i); break;
    }
}

static double get(ls_dtype t, const void *p, size_t i) {
    float f = 0;
    switch (t) {
    case LS_F64: return ((const double *)p)[i];
    case LS_F32: return (double)((const float *)p)[i];
    case LS_I64: return (double)((const int64_t *)p)[i];
    case LS_I32: return (double)((const int32_t *)p)[i];
    case LS_I8: return (double)((const int8_t *)p)[i];
    case LS_BOOL:
    case LS_U8: return (double)((const uint8_t *)p)[i];
    case LS_U16: return (double)((const uint16_t *)p)[i];
    case LS_U32: return (double)((const uint32_t *)p)[i];
    case LS_U64: return (double)((const uint64_t *)p)[i];
    case LS_I16: return (double)((const int16_t *)p)[i];
    case LS_F64_I64: return ((const ls_f64_i64 *)p)[i].value;
    case LS_F32_I32: return (double)((const ls_f32_i32 *)p)[i].value;
    case LS_I64_I64: return (double)((const ls_i64_i64 *)p)[i].value;
    case LS_I32_I32: return (double)((const ls_i32_i32 *)p)[i].value;
    default: kernels()->widen(t, 1, (const uint16_t *)p + i, &f); return (double)f;
    }
}

/* ---- running ---- */

enum { GUARD = 0x5a };

static unsigned char *buffer(size_t nbytes) {
    unsigned char *p = ls_alloc(nbytes + 1);
    memset(p, 0x77, nbytes);
    p[nbytes] = GUARD;
    return p;
}

/* In place, the smaller buffer lies in the larger one, at the worker's own block. */
static ls_overlap place(world *w, int r, size_t *first_p) {
    *first_p = 0;
    if (!w->in_place) return LS_APART;
    switch (w->call.what) {
    case LS_CALL_ALL_REDUCE:
    case LS_CALL_ALL_TO_ALL:
    case LS_CALL_SCAN:
    case LS_CALL_EXSCAN:
    case LS_CALL_REDUCE: return in_count(w, r) && out_count(w, r) ? LS_IN_IN_OUT : LS_APART;
    case LS_CALL_REDUCE_SCATTER: *first_p = first_of_block(w, r); return LS_OUT_IN_IN;
    case LS_CALL_ALL_GATHER: *first_p = first_of_block(w, r); return LS_IN_IN_OUT;
    default: return LS_APART;
    }
}

static void open_worker(world *w, int r) {
    size_t size = ls_dtype_size(w->call.dtype), first;
    ls_overlap overlap = place(w, r, &first);
    w->in_nbytes[r] = in_count(w, r) * size;
    w->out_nbytes[r] = out_count(w, r) * size;
    if (overlap != LS_OUT_IN_IN) w->out[r] = buffer(w->out_nbytes[r]);
    w->in[r] = overlap == LS_IN_IN_OUT ? w->out[r] + first * size : buffer(w->in_nbytes[r]);
    if (overlap == LS_OUT_IN_IN) w->out[r] = w->in[r] + first * size;
    for (size_t i = 0; i < in_count(w, r); i++) put(w->call.dtype, w->in[r], i, value(w, r, i));
    if (w->call.what == LS_CALL_BROADCAST && r == w->call.root)
        for (size_t i = 0; i < w->call.count; i++) put(w->call.dtype, w->out[r], i, value(w, r, i));
    ls_call call = w->call;
    for (int i = 0; i < w->n && ls_collective_is_pairwise(call.what); i++) {
        w->sends[r][i] = pair_count(w, r, i);
        w->receives[r][i] = pair_count(w, i, r);
        call.sends = w->sends[r];
        call.receives = w->receives[r];
        if (call.what != LS_CALL_ALL_TO_ALL_V)
            call.own =
                call.what == LS_CALL_GATHER_V ? w->sends[r][call.root] : w->receives[r][call.root];
    }
    ls_algorithm_make(w->algorithm, &call, r, w->n, (ls_in_place){overlap, first}, &w->programs[r]);
    ls_flight_open(&w->flights[r], &w->programs[r], ls_fake_net(w->fake, r), kernels(), NULL);
}

static void close_world(world *w) {
    for (int r = 0; r < w->n; r++) {
        size_t first;
        ls_overlap overlap = place(w, r, &first);
        if (overlap != LS_IN_IN_OUT) free(w->in[r]);
        if (overlap != LS_OUT_IN_IN) free(w->out[r]);
        ls_flight_free(&w->flights[r]);
        ls_coll_program_free(&w->programs[r]);
    }
    ls_fake_free(w->fake);
}

/* Advances worker r: one poll, the messages that it returned, one computation. */
static ls_status drive(world *w, int r, ls_error *e) {
    ls_flight *f = &w->flights[r];
    ls_message *done = NULL;
    bool did = false;
    LS_TRY(f->net->ops->poll(f->net, 1000, &done, e));
    while (done) {
        ls_message *next = done->next;
        LS_TRY(ls_flight_done(f, done, e));
        done = next;
    }
    return ls_flight_work(f, &did, e);
}

/* Runs until all are done, one has failed, or `rounds` have passed. */
static ls_status run(world *w, const ls_fake_faults *faults, int rounds, ls_error *e) {
    w->fake = ls_fake_new(w->n, faults);
    for (int r = 0; r < w->n; r++) open_worker(w, r);
    for (int r = 0; r < w->n; r++)
        LS_TRY(ls_flight_start(&w->flights[r],
                               &(ls_flight_call){w->in[r], w->out[r], 0, 7, 99, NULL}, e));
    for (int round = 0; round < rounds; round++) {
        int left = 0;
        for (int r = 0; r < w->n; r++) {
            if (ls_flight_finished(&w->flights[r])) continue;
            left++;
            LS_TRY(drive(w, r, e));
        }
        if (!left) return LS_OK;
    }
    return ls_fail(e, LS_ETIMEOUT, "not done in %d rounds", rounds);
}

/* ---- the expected results ---- */

static double combine(ls_op op, double a, double b) {
    switch (op) {
    case LS_PROD: return a * b;
    case LS_MINLOC:
    case LS_MIN: return a < b ? a : b;
    case LS_MAXLOC:
    case LS_MAX: return a > b ? a : b;
    case LS_LAND: return (int64_t)a && (int64_t)b;
    case LS_LOR: return (int64_t)a || (int64_t)b;
    case LS_LXOR: return !(int64_t)a != !(int64_t)b;
    case LS_BAND: return (double)((int64_t)a & (int64_t)b);
    case LS_BOR: return (double)((int64_t)a | (int64_t)b);
    case LS_BXOR: return (double)((int64_t)a ^ (int64_t)b);
    default: return a + b;
    }
}

/* The reduction of workers [0, end). */
static double reduced(const world *w, int end, size_t i) {
    double x = value(w, 0, i);
    for (int r = 1; r < end; r++) x = combine(w->call.op, x, value(w, r, i));
    if (w->call.op == LS_AVG) x /= w->n;
    if (w->call.dtype == LS_I8) return (double)(int8_t)(uint8_t)(int64_t)x;
    if (w->call.dtype == LS_U8) return (double)(uint8_t)(int64_t)x;
    if (w->call.dtype == LS_U16) return (double)(uint16_t)(int64_t)x;
    if (w->call.dtype == LS_U32) return (double)(uint32_t)(int64_t)x;
    if (w->call.dtype == LS_U64) return (double)(uint64_t)(int64_t)x;
    return x;
}

/* Element i of worker r's output. */
static double expected(const world *w, int r, size_t i) {
    size_t count = w->call.count;
    int from = 0;
    switch (w->call.what) {
    case LS_CALL_REDUCE_SCATTER: return reduced(w, w->n, first_of_block(w, r) + i);
    case LS_CALL_SCAN: return reduced(w, r + 1, i);
    case LS_CALL_EXSCAN: return reduced(w, r, i);
    case LS_CALL_BROADCAST: return value(w, w->call.root, i);
    case LS_CALL_SCATTER: return value(w, w->call.root, (size_t)r * count + i);
    case LS_CALL_GATHER: return value(w, (int)(i / count), i % count);
    case LS_CALL_ALL_TO_ALL: return value(w, (int)(i / count), (size_t)r * count + i % count);
    case LS_CALL_ALL_TO_ALL_V:
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V:
        while (i >= pair_count(w, from, r)) i -= pair_count(w, from++, r);
        for (int to = 0; to < r; to++) i += pair_count(w, from, to);
        return value(w, from, i);
    case LS_CALL_ALL_GATHER:
        while (i >= first_of_block(w, from + 1)) from++;
        return value(w, from, i - first_of_block(w, from));
    default: return reduced(w, w->n, i);
    }
}

static double tolerance(ls_dtype t, double x) {
    if (t == LS_F32) return 1e-5 * (1 + fabs(x));
    if (t == LS_F64) return 1e-12;
    if (t == LS_BF16) return 0.004 * fabs(x); /* half a unit of 8 digits */
    return t == LS_F16 ? 0.0005 * fabs(x) : 0;
}

static void fail_at(const world *w, int r, const char *what) {
    print_error("%s %s, %s %s, n %d, count %zu, root %d, piece %zu, in place %d, worker %d: %s\n",
                w->algorithm->name, ls_collective_name(w->call.what), ls_dtype_name(w->call.dtype),
                ls_op_name(w->call.op), w->n, w->call.count, w->call.root, w->call.piece,
                w->in_place, r, what);
    fail();
}

static void check_outputs(const world *w) {
    for (int r = 0; r < w->n; r++) {
        for (size_t i = 0; i < out_count(w, r); i++) {
            double want = expected(w, r, i), got = get(w->call.dtype, w->out[r], i);
            if (fabs(got - want) > tolerance(w->call.dtype, want)) fail_at(w, r, "a wrong result");
        }
        size_t first;
        ls_overlap overlap = place((world *)(uintptr_t)w, r, &first);
        if (overlap != LS_OUT_IN_IN && w->out[r][w->out_nbytes[r]] != GUARD)
            fail_at(w, r, "wrote behind out");
        if (overlap != LS_APART) continue;
        if (w->in[r][w->in_nbytes[r]] != GUARD) fail_at(w, r, "wrote behind in");
        size_t size = ls_dtype_size(w->call.dtype);
        for (size_t i = 0; i < in_count(w, r); i++) {
            uint64_t was[2] = {0};
            put(w->call.dtype, was, 0, value(w, r, i));
            if (memcmp(was, w->in[r] + i * size, size) != 0) fail_at(w, r, "wrote into in");
        }
    }
}

static void run_and_check(world *w, uint64_t seed) {
    ls_error e = {0};
    ls_fake_faults faults = {.seed = seed, .delay_ns = seed % 3 ? 0 : 5000};
    if (run(w, &faults, 1000000, &e) != LS_OK) fail_at(w, -1, e.msg);
    check_outputs(w);
    close_world(w);
}

/* ---- tests ---- */

static const size_t COUNTS[] = {0, 1, 2, 3, 4, 5, 8, 9, 31, 100};
enum { NCOUNTS = sizeof COUNTS / sizeof *COUNTS };

/* Every algorithm, collective, n, count, in place or not; pieces of 3 elements or whole. */
static void test_all(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int what = 0; what < LS_NCALLS; what++)
            for (int n = 1; n <= MAX_N; n++)
                for (int k = 0;
                     k < NCOUNTS && ls_algorithm_has(ls_algorithms[a], (ls_collective)what); k++) {
                    world w = {.algorithm = ls_algorithms[a], .n = n, .in_place = seed % 2};
                    w.call = (ls_call){.what = (ls_collective)what,
                                       .dtype = LS_F32,
                                       .root = (int)(seed / 2) % n,
                                       .count = COUNTS[k],
                                       .piece = seed % 3 ? 0 : 3};
                    run_and_check(&w, seed++);
                }
}

/* The reducing ones with every type and operation. */
static void test_types(void **state) {
    (void)state;
    uint64_t seed = 1;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int what = 0; what < LS_NCALLS; what++)
            for (int dtype = 0; dtype < LS_NDTYPES; dtype++)
                for (int op = 0; op < LS_NOPS; op++) {
                    if (!ls_algorithm_has(ls_algorithms[a], (ls_collective)what)) continue;
                    if (!ls_collective_reduces((ls_collective)what) ||
                        !ls_op_takes((ls_op)op, (ls_dtype)dtype) ||
                        (op == LS_AVG && ls_collective_is_prefix((ls_collective)what)))
                        continue;
                    int n = 2 + (int)(seed % 6);
                    world w = {.algorithm = ls_algorithms[a], .n = n, .in_place = seed % 2};
                    w.call = (ls_call){.what = (ls_collective)what,
                                       .dtype = (ls_dtype)dtype,
                                       .op = (ls_op)op,
                                       .root = n - 1,
                                       .count = 13,
                                       .piece = seed % 3 ? 0 : 3};
                    run_and_check(&w, seed++);
                }
}

/* Blocks of different sizes, some of them empty. */
static void test_uneven(void **state) {
    (void)state;
    static const size_t counts[MAX_N] = {3, 0, 11, 1, 0, 7, 2, 5, 64};
    uint64_t seed = 1;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int n = 1; n <= MAX_N; n++)
            for (int kind = 0; kind < 4; kind++) {
                ls_collective what = kind & 1 ? LS_CALL_REDUCE_SCATTER : LS_CALL_ALL_GATHER;
                if (!ls_algorithm_has(ls_algorithms[a], what)) continue;
                world w = {.algorithm = ls_algorithms[a], .n = n, .in_place = kind & 2};
                w.call = (ls_call){
                    .what = what, .dtype = LS_F32, .counts = counts, .piece = seed % 2 ? 4 : 0};
                run_and_check(&w, seed++);
            }
}

/* Hosts with one, two and four workers, mixed. */
static void test_hosts(void **state) {
    (void)state;
    static const int hosts[][MAX_N] = {{0, 0, 1, 1, 2, 2, 3, 3, 3},
                                       {0, 1, 0, 1, 1, 0, 1, 0, 0},
                                       {0, 0, 0, 0, 1, 1, 1, 1, 2},
                                       {5, 4, 3, 2, 1, 0, 6, 7, 8}};
    for (int h = 0; h < 4; h++)
        for (int n = 1; n <= MAX_N; n++)
            for (int root = 0; root < n; root++)
                for (int kind = 0; kind < 2; kind++) {
                    world w = {.algorithm = &ls_hierarchical, .n = n, .in_place = kind};
                    w.call = (ls_call){.what = kind ? LS_CALL_ALL_REDUCE : LS_CALL_BROADCAST,
                                       .dtype = LS_F32,
                                       .op = root % 2 ? LS_AVG : LS_SUM,
                                       .root = root,
                                       .count = 37,
                                       .hosts = hosts[h],
                                       .piece = root % 2 ? 5 : 0};
                    run_and_check(&w, (uint64_t)(h * 100 + n));
                }
}

/* The fixed tree, written plainly. */
static float tree(const float *x, int lo, int hi) {
    if (hi - lo == 1) return x[lo];
    int half = 1;
    while (half * 2 < hi - lo) half *= 2;
    return tree(x, lo, lo + half) + tree(x, lo + half, hi);
}

/* Element i of worker r's output, added up in the order of the tree. */
static float tree_value(const world *w, int r, size_t i) {
    float x[MAX_N];
    size_t at = w->call.what == LS_CALL_REDUCE_SCATTER ? first_of_block(w, r) + i : i;
    bool scan = w->call.what == LS_CALL_SCAN, exscan = w->call.what == LS_CALL_EXSCAN;
    for (int k = 0; k < w->n; k++) x[k] = ((const float *)(const void *)w->in[k])[at];
    return tree(x, 0, scan ? r + 1 : exscan ? r : w->n);
}

/* Algorithms that claim the order of the tree have its bits; among the others, some differ. */
static void test_tree_order(void **state) {
    (void)state;
    static const ls_collective reducing[] = {LS_CALL_ALL_REDUCE, LS_CALL_REDUCE_SCATTER,
                                             LS_CALL_REDUCE, LS_CALL_SCAN, LS_CALL_EXSCAN};
    int differing = 0;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int k = 0; k < 5; k++)
            for (int n = 1; n <= MAX_N; n++) {
                world w = {.algorithm = ls_algorithms[a], .n = n};
                w.call =
                    (ls_call){.what = reducing[k], .dtype = LS_F32, .root = n - 1, .count = 200};
                ls_error e = {0};
                if (!ls_algorithm_has(w.algorithm, w.call.what)) continue;
                assert_ls_ok(run(&w, &(ls_fake_faults){.seed = 3}, 1000000, &e), e);
                int wrong = 0;
                for (int r = 0; r < n; r++)
                    for (size_t i = 0; i < out_count(&w, r); i++) {
                        float want = tree_value(&w, r, i);
                        wrong += memcmp(w.out[r] + i * sizeof want, &want, sizeof want) != 0;
                    }
                if (wrong && w.algorithm->tree_order(w.call.what, n))
                    fail_at(&w, -1, "not the order of the tree");
                differing += wrong > 0;
                close_world(&w);
            }
    assert_true(differing > 3); /* or this test could not fail */
}

static ls_traffic traffic_of(const ls_algorithm *a, ls_collective what, int n, int rank,
                             size_t count) {
    ls_coll_program s;
    ls_call c = {.what = what, .dtype = LS_F32, .count = count};
    ls_algorithm_make(a, &c, rank, n, (ls_in_place){0}, &s);
    ls_traffic t = ls_coll_program_traffic(&s);
    ls_coll_program_free(&s);
    return t;
}

/* The formulas of docs/design/collectives.md, where n divides the count. */
static void test_traffic(void **state) {
    (void)state;
    for (int n = 1; n <= MAX_N; n++) {
        size_t N = (size_t)n, count = N * 60, nbytes = count * 4;
        for (int r = 0; r < n; r++) {
            ls_traffic t = traffic_of(&ls_ring, LS_CALL_ALL_REDUCE, n, r, count);
            assert_int_equal(t.nbytes, 2 * (N - 1) * nbytes / N);
            assert_int_equal(t.messages, 2 * (N - 1));
            t = traffic_of(&ls_direct, LS_CALL_ALL_REDUCE, n, r, count);
            assert_int_equal(t.nbytes, 2 * (N - 1) * nbytes / N);
            assert_int_equal(t.messages, 2 * (N - 1));
            t = traffic_of(&ls_direct, LS_CALL_REDUCE_SCATTER, n, r, count / N);
            assert_int_equal(t.nbytes, (N - 1) * nbytes / N);
            t = traffic_of(&ls_ring, LS_CALL_ALL_GATHER, n, r, count / N);
            assert_int_equal(t.nbytes, (N - 1) * nbytes / N);
            t = traffic_of(&ls_doubling, LS_CALL_ALL_GATHER, n, r, count / N);
            assert_int_equal(t.nbytes, (N - 1) * nbytes / N);
            t = traffic_of(&ls_exchange, LS_CALL_ALL_REDUCE, n, r, count);
            assert_int_equal(t.nbytes, (N - 1) * nbytes);
            t = traffic_of(&ls_direct, LS_CALL_ALL_TO_ALL, n, r, count);
            assert_int_equal(t.nbytes, (N - 1) * nbytes);
            if (N & (N - 1)) continue;
            t = traffic_of(&ls_halving, LS_CALL_ALL_REDUCE, n, r, count / 60 * 64);
            assert_int_equal(t.nbytes, 2 * (N - 1) * 256);
            t = traffic_of(&ls_doubling, LS_CALL_ALL_REDUCE, n, r, count);
            assert_int_equal(t.messages, (unsigned)__builtin_ctz((unsigned)n));
        }
        uint64_t messages = 0;
        for (int r = 0; r < n; r++)
            messages += traffic_of(&ls_binomial, LS_CALL_BROADCAST, n, r, count).messages;
        assert_int_equal(messages, N - 1);
    }
}

/* Messages are lost, links cut, workers killed: every run ends, with the right result or an error.
 */
static void test_faults(void **state) {
    (void)state;
    int ended[3] = {0};
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        int a = (int)(seed % 8), n = 2 + (int)(seed / 8 % 6);
        world w = {.algorithm = ls_algorithms[a], .n = n};
        w.call = (ls_call){.what = LS_CALL_ALL_REDUCE, .dtype = LS_F32, .count = 40, .piece = 5};
        ls_fake_faults faults = {.seed = seed, .delay_ns = 3000};
        *(seed % 3 == 0 ? &faults.drop : seed % 3 == 1 ? &faults.cut : &faults.kill) = 0.02;
        ls_error e = {0};
        ls_status s = run(&w, &faults, 3000, &e);
        if (s == LS_OK) check_outputs(&w);
        ended[s == LS_OK ? 0 : s == LS_ETIMEOUT ? 1 : 2]++;
        close_world(&w);
    }
    for (int i = 0; i < 3; i++) assert_true(ended[i] > 100);
}

/* A worker in another call is noticed by its message. */
static void test_disagreement(void **state) {
    (void)state;
    world w = {.algorithm = &ls_direct, .n = 2};
    w.call = (ls_call){.what = LS_CALL_ALL_REDUCE, .dtype = LS_F32, .count = 8};
    w.fake = ls_fake_new(2, &(ls_fake_faults){.seed = 1});
    ls_error e = {0};
    for (int r = 0; r < 2; r++) open_worker(&w, r);
    for (int r = 0; r < 2; r++)
        assert_ls_ok(
            ls_flight_start(&w.flights[r],
                            &(ls_flight_call){w.in[r], w.out[r], 0, 7, 99 + (uint64_t)r, NULL}, &e),
            e);
    ls_status s = LS_OK;
    for (int i = 0; i < 100 && s == LS_OK; i++) s = drive(&w, 0, &e);
    assert_int_equal(s, LS_EDISAGREE);
    close_world(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all),        cmocka_unit_test(test_types),
        cmocka_unit_test(test_uneven),     cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_tree_order), cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_faults),     cmocka_unit_test(test_disagreement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
