/* choose.c - see choose.h.
 *
 * The cost of an algorithm is what its slowest worker does: messages one after the other cost a
 * latency each, bytes the bandwidth, sums the speed of adding. Hockney's model ("The communication
 * challenge for MPP", Parallel Computing 20 (1994) 389-398), as Thakur et al. (2005) use it.
 */
#include "coll/choose.h"

#include <math.h>

#include "tensor/dtype.h"

const ls_link ls_link_default = {.latency_s = 15e-6, .byte_s = 1 / 2.0e9, .reduce_s = 1 / 8e9};

/* A message that waits for no other costs the processor's time, at both ends: a share of a latency,
 * measured with 4 to 32 workers on two cores. */
#define BESIDE 0.6

typedef struct cost {
    double steps, sent, added; /* messages one after the other, bytes sent, bytes added */
} cost;

static double ceil_log2(int n) {
    int k = 0;
    while (1 << k < n) k++;
    return k;
}

/* m: bytes of the whole vector. */
static cost all_reduce_cost(const ls_algorithm *a, double m, int n) {
    double part = (n - 1.0) / n, log = ceil_log2(n), odd = n & (n - 1) ? 2 : 0;
    if (a == &ls_exchange) return (cost){1 + BESIDE * (n - 2), (n - 1) * m, (n - 1) * m};
    if (a == &ls_direct) return (cost){2 + 2 * BESIDE * (n - 2), 2 * part * m, part * m};
    if (a == &ls_ring) return (cost){2 * (n - 1.0), 2 * part * m, part * m};
    if (a == &ls_halving) return (cost){2 * log + odd, (2 * part + odd) * m, (part + odd / 2) * m};
    if (a == &ls_doubling) return (cost){log + odd, (log + odd) * m, (log + odd / 2) * m};
    if (a == &ls_binomial) return (cost){2 * log, 2 * log * m, log * m};
    if (a == &ls_double_tree) return (cost){4 * log, 2 * m, 2 * m};
    return (cost){6, 2 * part * m, part * m};
}

static cost other_cost(const ls_algorithm *a, const ls_call *c, double block, int n) {
    double log = ceil_log2(n), all = block * n, others = block * (n - 1.0);
    switch (c->what) {
    case LS_CALL_REDUCE_SCATTER:
        if (a == &ls_ring) return (cost){n - 1.0, others, others};
        if (a == &ls_halving)
            return (cost){log + (n & (n - 1) ? 2 : 0), others + (n & (n - 1) ? all : 0), others};
        return (cost){1 + BESIDE * (n - 2), others, others};
    case LS_CALL_ALL_GATHER:
        if (a == &ls_ring) return (cost){n - 1.0, others, 0};
        if (a == &ls_doubling) return (cost){log, others, 0};
        return (cost){1 + BESIDE * (n - 2), others, 0};
    case LS_CALL_BROADCAST:
        if (a == &ls_ring) return (cost){n - 1.0, block, 0};
        if (a == &ls_binomial || a == &ls_hierarchical) return (cost){log, log * block, 0};
        return (cost){2 + 2 * BESIDE * (n - 2), 2 * block, 0};
    case LS_CALL_REDUCE:
        if (a == &ls_binomial) return (cost){log, log * block, log * block};
        return (cost){2 + 2 * BESIDE * (n - 2), 2 * block, block};
    case LS_CALL_GATHER:
    case LS_CALL_SCATTER:
        if (a == &ls_binomial) return (cost){log, others, 0};
        return (cost){1 + BESIDE * (n - 2), others, 0};
    case LS_CALL_BARRIER:
        if (a == &ls_doubling) return (cost){log, 0, 0};
        return (cost){1 + BESIDE * (n - 2), 0, 0};
    default: return (cost){1 + BESIDE * (n - 2), others, 0};
    }
}

double ls_choose_cost(const ls_algorithm *a, const ls_call *c, int n, const ls_link *link) {
    double size = (double)ls_dtype_size(c->dtype), count = (double)c->count;
    if (c->counts) {
        count = 0;
        for (int i = 0; i < n; i++) count += (double)c->counts[i] / n;
    }
    bool whole = c->what == LS_CALL_ALL_REDUCE;
    cost x = whole ? all_reduce_cost(a, count * size, n) : other_cost(a, c, count * size, n);
    bool as_they_are = a == &ls_direct || a == &ls_exchange; /* others send sums of halves as f32 */
    if (ls_dtype_is_half(c->dtype) && ls_collective_reduces(c->what) && !as_they_are) x.sent *= 2;
    return x.steps * link->latency_s + x.sent * link->byte_s + x.added * link->reduce_s;
}

const ls_algorithm *ls_choose(const ls_call *c, int n, const ls_link *link) {
    const ls_algorithm *best = &ls_direct;
    double least = INFINITY;
    for (int i = 0; ls_algorithms[i]; i++) {
        const ls_algorithm *a = ls_algorithms[i];
        if (!(a->does >> c->what & 1)) continue;
        if (ls_collective_reduces(c->what) && !a->tree_order(c->what, n)) continue;
        double seconds = ls_choose_cost(a, c, n, link);
        if (seconds < least) {
            least = seconds;
            best = a;
        }
    }
    return best;
}

/* Sixty-four pieces of what goes to one worker, none shorter than 512 KiB: over loopback TCP
 * shorter ones cost more system calls and wake-ups than they hide. */
size_t ls_choose_piece(const ls_call *c, int n) {
    size_t size = ls_dtype_size(c->dtype), least = 524288 / size, count = c->count;
    for (int i = 0; c->counts && i < n; i++)
        if (c->counts[i] > count) count = c->counts[i];
    bool whole =
        c->what == LS_CALL_ALL_REDUCE || c->what == LS_CALL_REDUCE || c->what == LS_CALL_BROADCAST;
    size_t part = (whole ? count / (size_t)n : count) / 64 + 1;
    return part > least ? part : least;
}
