/* schedule_test.c - orders of pipelines: against tables that others publish, and by enumeration of
 * all small pipelines: what depends on what, the bubble, and the activations in memory. */
#include "share/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "test.h"

enum { MOST_WORKERS = 6, MOST_CHUNKS = 3, MOST_MICROS = 12, MEGATRON_CHUNKS = 8 };

static ls_pass *list_of(const ls_pipe_schedule *s, int rank) {
    ls_pass *passes = LS_NEW_ARRAY(ls_pass, (size_t)ls_pipe_npasses(s));
    ls_pipe_list(s, rank, passes);
    return passes;
}

static char letter_of(const ls_pass *x) {
    return x->back == LS_BACK_INPUTS   ? 'I'
           : x->back == LS_BACK_PARAMS ? 'W'
           : x->backward               ? 'B'
                                       : 'F';
}

/* The passes of a worker as text: F, B, or split I and W, with the micro-batch, and the chunk if
 * there are several. */
static void write_list(const ls_pipe_schedule *s, int rank, char *text, size_t size) {
    ls_pass *passes = list_of(s, rank);
    size_t n = 0;
    for (int i = 0; i < ls_pipe_npasses(s); i++) {
        const ls_pass *x = &passes[i];
        char chunk[8] = "";
        if (s->chunks > 1) snprintf(chunk, sizeof chunk, ".%d", x->chunk);
        n += (size_t)snprintf(text + n, size - n, "%s%c%d%s", i ? " " : "", letter_of(x), x->micro,
                              chunk);
    }
    free(passes);
}

static void check_list(ls_pipe_schedule s, int rank, const char *want) {
    char got[512];
    write_list(&s, rank, got, sizeof got);
    assert_string_equal(got, want);
}

/* Four workers, five micro-batches, as in the figures of the papers. Two workers with two chunks:
 * the order of Megatron-LM's interleaved schedule for four micro-batches. */
static void test_known(void **state) {
    (void)state;
    ls_pipe_schedule s = {LS_PIPE_1F1B, 4, 1, 5};
    check_list(s, 0, "F0 F1 F2 F3 B0 F4 B1 B2 B3 B4");
    check_list(s, 2, "F0 F1 B0 F2 B1 F3 B2 F4 B3 B4");
    check_list(s, 3, "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4");
    s.kind = LS_PIPE_GPIPE;
    check_list(s, 1, "F0 F1 F2 F3 F4 B0 B1 B2 B3 B4");
    /* ZB1P of torch.distributed.pipelining */
    ls_pipe_schedule zero = {LS_PIPE_ZB_H1, 4, 1, 4};
    check_list(zero, 0, "F0 F1 F2 F3 I0 W0 I1 W1 I2 W2 I3 W3");
    check_list(zero, 1, "F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3");
    check_list(zero, 3, "F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3");
    ls_pipe_schedule v = {LS_PIPE_ZB_V, 2, 2, 4}; /* ZBV, the same */
    check_list(v, 0,
               "F0.0 F1.0 F2.0 F0.1 I0.1 W0.1 F1.1 I1.1 W1.1 F3.0 I0.0 W0.0 F2.1 I2.1 W2.1 I1.0 "
               "W1.0 F3.1 I3.1 W3.1 I2.0 W2.0 I3.0 W3.0");
    check_list(v, 1,
               "F0.0 F0.1 F1.0 F1.1 I0.1 W0.1 F2.0 I0.0 W0.0 F2.1 I1.1 W1.1 F3.0 I1.0 W1.0 F3.1 "
               "I2.1 W2.1 I2.0 I3.1 I3.0 W2.0 W3.1 W3.0");
    ls_pipe_schedule two = {LS_PIPE_INTERLEAVED, 2, 2, 4};
    check_list(two, 0,
               "F0.0 F1.0 F0.1 F1.1 F2.0 B0.1 F3.0 B1.1 F2.1 B0.0 F3.1 B1.0 B2.1 B3.1 B2.0 B3.0");
    check_list(two, 1,
               "F0.0 F1.0 F0.1 B0.1 F1.1 B1.1 F2.0 B0.0 F3.0 B1.0 F2.1 B2.1 F3.1 B3.1 B2.0 B3.0");
}

/* ---- Megatron-LM ---- */

/* The order of a worker in the form of its tests: 1, 2, ... are forward passes of the first chunk,
 * of the second, and so on; negative numbers are backward passes. */
static int signed_chunk(const ls_pass *x) { return x->backward ? -(x->chunk + 1) : x->chunk + 1; }

static void check_signed(ls_pipe_schedule s, int rank, const char *want) {
    char got[512];
    size_t n = 0;
    ls_pass *passes = list_of(&s, rank);
    for (int i = 0; i < ls_pipe_npasses(&s); i++)
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d", i ? " " : "",
                              signed_chunk(&passes[i]));
    free(passes);
    assert_string_equal(got, want);
}

/* A forward pass in its table: groups of micro-batches, each through all chunks. */
typedef struct entry {
    int micro, chunk;
} entry;

static void fill_table(int m, int v, int group, entry *table) {
    int n = 0;
    for (int first = 0; first < m; first += group)
        for (int chunk = 0; chunk < v; chunk++)
            for (int i = first; i < m && i < first + group; i++) table[n++] = (entry){i, chunk};
}

/* Megatron's rule: warm-up passes, then one forward and one backward pass in turn, then the other
 * backward passes; these go through the same table with the chunks reversed. Megatron's test
 * demands that each chunk has as many backward passes as forward ones, none before its own forward
 * pass. */
static void check_rule(const ls_pipe_schedule *s, int rank, int group) {
    int v = s->chunks, all = s->micros * v, behind = s->workers - 1 - rank, n = 0;
    int warm = v == 1 ? behind : 2 * behind + (v - 1) * group;
    int open[MEGATRON_CHUNKS] = {0};
    entry *table = LS_NEW_ARRAY(entry, (size_t)all);
    ls_pass *got = list_of(s, rank);
    fill_table(s->micros, v, group, table);
    if (warm > all) warm = all;
    for (int i = 0; i < all + warm; i++)
        for (int backward = 0; backward < 2; backward++) {
            int at = backward ? i - warm : i;
            if (at < 0 || at >= all) continue;
            const ls_pass *x = &got[n++];
            int chunk = backward ? v - 1 - table[at].chunk : table[at].chunk;
            assert_int_equal(x->backward, backward);
            assert_int_equal(x->micro, table[at].micro);
            assert_int_equal(x->chunk, chunk);
            open[chunk] += backward ? -1 : 1;
            assert_true(open[chunk] >= 0);
        }
    assert_int_equal(n, ls_pipe_npasses(s));
    for (int i = 0; i < v; i++) assert_int_equal(open[i], 0);
    free(table);
    free(got);
}

/* The order that is written out in its source for two workers, two chunks and five micro-batches in
 * groups of three. Then all that its test goes through where the groups are ours: Megatron has one
 * size of all groups but the last, ours differ by one. Its larger groups than the number of workers
 * are ours where all micro-batches are one group. */
static void test_megatron(void **state) {
    (void)state;
    static const int workers[] = {1, 2, 4, 8}, chunks[] = {1, 2, 4, 8};
    static const int micros[] = {4, 5, 8, 9, 11, 32};
    int compared = 0;
    ls_pipe_schedule five = {LS_PIPE_INTERLEAVED, 2, 2, 5};
    check_signed(five, 0, "1 1 1 2 2 2 -2 1 -2 1 -2 2 -1 2 -1 -1 -2 -2 -1 -1");
    for (int i = 0; i < 4 * 4 * 6; i++) {
        ls_pipe_schedule s = {LS_PIPE_INTERLEAVED, workers[i / 24], chunks[i / 6 % 4],
                              micros[i % 6]};
        bool one = s.micros >= s.workers && s.micros < 2 * s.workers,
             even = s.micros % s.workers == 0;
        if ((!one && !even) || (s.workers == 1 && s.chunks > 1)) continue;
        if (s.chunks == 1) s.kind = LS_PIPE_1F1B;
        for (int r = 0; r < s.workers; r++) check_rule(&s, r, one ? s.micros : s.workers);
        compared++;
    }
    assert_int_equal(compared, 6 + 4 * (3 + 4 + 4));
}

/* ---- DualPipeV ---- */

/* The forward passes of a worker, or the gradients of inputs, in order: "3.1" is micro-batch 3 of
 * chunk 1. */
static void check_order(const ls_pipe_schedule *s, int rank, bool backward, const char *want) {
    char got[256];
    size_t n = 0;
    ls_pass *passes = list_of(s, rank);
    for (int i = 0; i < ls_pipe_npasses(s); i++) {
        const ls_pass *x = &passes[i];
        if (x->backward != backward || x->back == LS_BACK_PARAMS) continue;
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%d.%d", n ? " " : "", x->micro, x->chunk);
    }
    free(passes);
    assert_string_equal(got, want);
}

/* Table of torch.distributed.pipelining for DualPipeV (DeepSeek, 2025) with four workers and ten
 * micro-batches. It has zb-v's two stages of a worker, and runs a forward and a backward pass at
 * the same time where zb-v takes turns: the orders of forward passes, and of gradients of inputs,
 * are the same. */
static void test_dualpipev(void **state) {
    (void)state;
    static const char *forward[] = {
        "0.0 1.0 2.0 3.0 4.0 5.0 6.0 0.1 1.1 2.1 3.1 7.0 4.1 8.0 5.1 9.0 6.1 7.1 8.1 9.1",
        "0.0 1.0 2.0 3.0 4.0 0.1 5.0 1.1 2.1 3.1 6.0 4.1 7.0 5.1 8.0 6.1 9.0 7.1 8.1 9.1",
        "0.0 1.0 2.0 0.1 3.0 1.1 4.0 2.1 3.1 5.0 4.1 6.0 5.1 7.0 6.1 8.0 7.1 9.0 8.1 9.1",
        "0.0 0.1 1.0 1.1 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1 6.0 6.1 7.0 7.1 8.0 8.1 9.0 9.1",
    };
    static const char *inputs[] = {
        "0.1 1.1 2.1 3.1 0.0 4.1 1.0 5.1 2.0 6.1 3.0 7.1 4.0 8.1 5.0 9.1 6.0 7.0 8.0 9.0",
        "0.1 1.1 2.1 0.0 3.1 1.0 4.1 2.0 5.1 3.0 6.1 4.0 7.1 5.0 8.1 6.0 9.1 7.0 8.0 9.0",
        "0.1 1.1 0.0 2.1 1.0 3.1 2.0 4.1 3.0 5.1 4.0 6.1 5.0 7.1 6.0 8.1 7.0 9.1 8.0 9.0",
        "0.1 0.0 1.1 1.0 2.1 2.0 3.1 3.0 4.1 4.0 5.1 5.0 6.1 6.0 7.1 7.0 8.1 8.0 9.1 9.0",
    };
    ls_pipe_schedule s = {LS_PIPE_ZB_V, 4, 2, 10};
    for (int r = 0; r < 4; r++) {
        check_order(&s, r, false, forward[r]);
        check_order(&s, r, true, inputs[r]);
    }
}

/* ---- all small ones ---- */

typedef struct timing {
    int end;  /* of the step, where a forward pass takes 1 and a backward pass 2, each part of it
               * 1 */
    int most; /* activations of micro-batches in a worker, at most */
} timing;

/* Runs a schedule: each worker takes its passes in order, as soon as what they need is there. */
static timing time_of(const ls_pipe_schedule *s) {
    int stages = s->workers * s->chunks, n = ls_pipe_npasses(s), left = n * s->workers;
    int at[MOST_WORKERS] = {0}, free_at[MOST_WORKERS] = {0}, held[MOST_WORKERS] = {0};
    int done[3][MOST_WORKERS * MOST_CHUNKS]
            [MOST_MICROS]; /* forward, gradients of inputs, the rest */
    ls_pass *lists[MOST_WORKERS];
    timing t = {0, 0};
    memset(done, -1, sizeof done);
    for (int r = 0; r < s->workers; r++) lists[r] = list_of(s, r);
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < s->workers; r++) {
            if (at[r] == n) continue;
            const ls_pass *x = &lists[r][at[r]];
            int stage = ls_pipe_stage(s, r, x->chunk), rank = 0, chunk = 0, ready = 0;
            int kind = x->back == LS_BACK_PARAMS ? 2 : x->backward;
            bool frees = x->backward && x->back != LS_BACK_INPUTS;
            ls_pipe_place(s, stage, &rank, &chunk);
            assert_true(rank == r && chunk == x->chunk);
            if (kind == 0 && stage > 0) ready = done[0][stage - 1][x->micro];
            if (kind == 1 && stage < stages - 1) ready = done[1][stage + 1][x->micro];
            if (kind == 1 && stage == stages - 1) ready = done[0][stage][x->micro];
            if (kind == 2) ready = done[1][stage][x->micro];
            if (ready < 0) continue;
            assert_int_equal(done[kind][stage][x->micro], -1); /* each pass once */
            if (x->micro > 0) assert_true(done[kind][stage][x->micro - 1] >= 0);
            if (x->backward) assert_true(done[0][stage][x->micro] >= 0);
            int begin = ready > free_at[r] ? ready : free_at[r];
            int takes = x->backward && x->back == LS_BACK_ALL ? 2 : 1;
            free_at[r] = done[kind][stage][x->micro] = begin + takes;
            held[r] += frees ? -1 : kind == 0;
            if (held[r] > t.most) t.most = held[r];
            if (free_at[r] > t.end) t.end = free_at[r];
            at[r]++;
            left--;
            moved = true;
        }
    }
    for (int r = 0; r < s->workers; r++) free(lists[r]);
    assert_int_equal(left, 0); /* no deadlock */
    return t;
}

static int least(int a, int b) { return a < b ? a : b; }

/* All pipelines of up to six workers, three chunks and twelve micro-batches. The bubble of 1F1B and
 * GPipe is (P - 1)(F + B), of the interleaved schedule a v-th of that if P divides the
 * micro-batches (passes of a chunk take a v-th of the time). 1F1B has P micro-batches in flight,
 * GPipe all, the interleaved one P v + P - 1 passes' worth. ZB-H1 has the activations of 1F1B, and
 * a bubble of (P - 1)(F + I - W) where there are as many micro-batches as workers; ZB-V half of it
 * where there are 2 P - 1, with as many passes' activations. */
static void test_all_small(void **state) {
    (void)state;
    for (int P = 1; P <= MOST_WORKERS; P++)
        for (int m = 1; m <= MOST_MICROS; m++) {
            ls_pipe_schedule one = {LS_PIPE_1F1B, P, 1, m}, all = {LS_PIPE_GPIPE, P, 1, m};
            timing t = time_of(&one), g = time_of(&all);
            assert_int_equal(t.end, 3 * m + 3 * (P - 1));
            assert_int_equal(t.most, least(P, m));
            ls_pipe_schedule zero = {LS_PIPE_ZB_H1, P, 1, m};
            timing z = time_of(&zero);
            if (m >= P) assert_int_equal(z.end, 3 * m + P - 1);
            assert_true(z.end <= t.end);
            assert_int_equal(z.most, least(P, m));
            assert_int_equal(g.end, 3 * m + 3 * (P - 1));
            assert_int_equal(g.most, m);
            ls_pipe_schedule two = {LS_PIPE_ZB_V, P, 2, m};
            timing x2 = time_of(&two);
            if (m >= 2 * P - 1) assert_int_equal(x2.end, 6 * m + P - 1);
            if (m >= 2 * P - 1) assert_int_equal(x2.most, 2 * P);
            for (int v = 2; v <= MOST_CHUNKS; v++) {
                ls_pipe_schedule s = {LS_PIPE_INTERLEAVED, P, v, m};
                timing x = time_of(&s);
                if (m % P == 0) assert_int_equal(x.end, 3 * m * v + 3 * (P - 1));
                if (m % P == 0) assert_int_equal(x.most, least(P * v + P - 1, m * v));
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_megatron),
        cmocka_unit_test(test_dualpipev),
        cmocka_unit_test(test_all_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
