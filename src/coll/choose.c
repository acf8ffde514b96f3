/* choose.c - see choose.h.
 *
 * Two bounds, as for any work that is shared out (Brent, "The parallel evaluation of general
 * arithmetic expressions", J. ACM 21 (1974) 201-206). The chain: messages that wait for each other
 * cost a latency each, their bytes the bandwidth of a link, sums the speed of adding: Hockney's
 * model ("The communication challenge for MPP", Parallel Computing 20 (1994) 389-398), as Thakur et
 * al. (2005) use it. And the work: where all workers send at once, through the same links, or by
 * the same few cores, each message and byte costs what it costs then. On a network the chain
 * decides, among processes of one host the work.
 *
 * What is counted is in the table of docs/collectives.md.
 */
#include "coll/choose.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/dtype.h"

static double ceil_log2(int n) {
    int k = 0;
    while (1 << k < n) k++;
    return k;
}

static double floor_log2(int n) {
    int k = 0;
    while (2 << k <= n) k++;
    return k;
}

/* The same at all workers: the chain is each worker's own work. Further messages of a worker wait
 * for the ones before, but not for their receivers: `more` of them cost a tenth each. */
static ls_cost even(double steps, double more, double messages, double sent, double added) {
    return (ls_cost){steps + 0.1 * more, sent, added, messages, sent, added};
}

/* Halving and doubling: p workers take part; the other ones' vectors (m bytes) go to them before,
 * and the results back. log, sent, added: of the p. */
static ls_cost among_power(int n, double m, double steps, double sent, double added) {
    int p = 1 << (int)floor_log2(n), rest = n - p;
    ls_cost x = even(steps, 0, steps, sent, added);
    if (!rest) return x;
    x.chain_messages += 2;
    x.chain_sent += 2 * m;
    x.chain_added += m;
    x.messages = (p * steps + 2 * rest) / n;
    x.sent = (p * sent + 2 * rest * m) / n;
    x.added = (p * added + rest * m) / n;
    return x;
}

/* In a tree workers do different work, and those who wait do not leave all of the machine to the
 * busy ones: what counts is halfway between the mean and the root's. Bytes `block`, of which the
 * mean sends and adds n - 1 of n; the root has `links` neighbours. `ways`: 1 up or down, 2 both. */
static ls_cost tree_cost(double block, int n, int ways, double added) {
    double part = (n - 1.0) / n, links = ceil_log2(n), busy = (ways * part + ways * links / 2) / 2;
    return (ls_cost){ways * floor_log2(n), ways * links * block,      links * added, busy,
                     busy * block,         (part + links) / 2 * added};
}

/* m: bytes of the whole vector. */
static ls_cost all_reduce_cost(const ls_algorithm *a, double m, int n) {
    double others = n - 1.0, part = others / n, log = floor_log2(n);
    double p = 1 << (int)log, p_part = (p - 1) / p;
    if (a == &ls_exchange) return even(1, others - 1, others, others * m, others * m);
    if (a == &ls_direct) return even(2, 2 * (others - 1), 2 * others, 2 * part * m, part * m);
    if (a == &ls_ring) return even(2 * others, 0, 2 * others, 2 * part * m, part * m);
    if (a == &ls_halving) return among_power(n, m, 2 * log, 2 * p_part * m, p_part * m);
    if (a == &ls_doubling) return among_power(n, m, log, log * m, log * m);
    if (a == &ls_binomial) return tree_cost(m, n, 2, m);
    if (a == &ls_double_tree)
        return (ls_cost){4 * log, 3 * m, 2 * m, 4 * part, 2 * part * m, part * m};
    return even(6, 0, 2 * others, 2 * part * m, part * m); /* hierarchical, never chosen */
}

static ls_cost broadcast_cost(const ls_algorithm *a, const ls_call *c, double m, int n) {
    double size = (double)ls_dtype_size(c->dtype), others = n - 1.0, part = others / n;
    if (a == &ls_ring) {
        double pieces = fmax(ceil(m / size / (double)ls_choose_piece(c, n)), 1);
        return (ls_cost){others, m * (1 + (others - 1) / pieces), 0, part, part * m, 0};
    }
    if (a != &ls_direct) return tree_cost(m, n, 1, 0);
    return (ls_cost){
        2 + 0.2 * (others - 1), 2 * part * m, 0, others + part, part * m * (1 + 1.0 / n), 0};
}

/* Of doubling: one a step, and one more where the k blocks that go wrap round. */
static double wrapped_messages(int n) {
    double sum = 0;
    for (int d = 1; d < n; d *= 2) sum += 1 + ((d < n - d ? d : n - d) - 1.0) / n;
    return sum;
}

/* m: bytes of the vector. What workers of higher rank do of sums, and the first ones of messages,
 * the others don't: prefix.c. */
static ls_cost prefix_cost(const ls_algorithm *a, const ls_call *c, double m, int n) {
    double others = n - 1.0, log = ceil_log2(n), messages = 0, sums = 0;
    bool inclusive = c->what == LS_CALL_SCAN;
    if (a != &ls_doubling) {
        double mean = inclusive ? others / 2 : others * (n - 2) / 2 / n;
        return (ls_cost){1 + 0.1 * (others - 1), others * m, others * m, others / 2,
                         others / 2 * m,         mean * m};
    }
    for (int r = 0; r < n; r++)
        for (int d = 1, first = 1; d < n; d *= 2) {
            bool later = (r & ~(2 * d - 1)) + 2 * d < n, is_upper = r & d;
            if ((r ^ d) >= n) continue;
            messages += !is_upper || later;
            sums += later + (is_upper && (inclusive || !first));
            first = first && !is_upper;
        }
    return (ls_cost){log, log * m, log * m, messages / n, messages / n * m, sums / n * m};
}

static ls_cost other_cost(const ls_algorithm *a, const ls_call *c, double block, int n) {
    double log = ceil_log2(n), others = n - 1.0, part = others / n;
    switch (c->what) {
    case LS_CALL_REDUCE_SCATTER:
        if (a == &ls_ring) return even(others, 0, others, others * block, others * block);
        if (a == &ls_halving)
            return among_power(n, n * block, floor_log2(n), others * block, others * block);
        return even(1, others - 1, others, others * block, others * block);
    case LS_CALL_ALL_GATHER:
        if (a == &ls_ring) return even(others, 0, others, others * block, 0);
        if (a == &ls_doubling) return even(log, 0, wrapped_messages(n), others * block, 0);
        return even(1, others - 1, others, others * block, 0);
    case LS_CALL_BROADCAST: return broadcast_cost(a, c, block, n);
    case LS_CALL_REDUCE:
        if (a == &ls_binomial) return tree_cost(block, n, 1, block);
        return (ls_cost){
            2 + 0.2 * (others - 1),       2 * part * block, part * block, others + part,
            part * block * (1 + 1.0 / n), part * block};
    case LS_CALL_GATHER:
    case LS_CALL_SCATTER:
        if (a == &ls_binomial) return (ls_cost){log, others * block, 0, part, log / 2 * block, 0};
        return (ls_cost){1 + 0.1 * (others - 1), others * block, 0, part, part * block, 0};
    case LS_CALL_GATHER_V:
    case LS_CALL_SCATTER_V: /* each is answered by an empty message */
        return (ls_cost){1 + 0.2 * (others - 1), others * block, 0, 2 * part, part * block, 0};
    case LS_CALL_SCAN:
    case LS_CALL_EXSCAN: return prefix_cost(a, c, block, n);
    case LS_CALL_BARRIER:
        if (a == &ls_doubling) return even(log, 0, wrapped_messages(n), 0, 0);
        return even(1, others - 1, others, 0, 0);
    default: return even(1, others - 1, others, others * block, 0);
    }
}

ls_cost ls_choose_cost(const ls_algorithm *a, const ls_call *c, int n) {
    double size = (double)ls_dtype_size(c->dtype), count = (double)c->count;
    if (n == 1) return (ls_cost){0};
    for (int i = 0; c->counts && i < n; i++) count += (double)c->counts[i] / n;
    for (int i = 0; c->sends && i < n; i++) count += (double)c->sends[i] / n;
    for (int i = 0; !c->sends && c->receives && i < n; i++) count += (double)c->receives[i] / n;
    if (!c->sends && !c->receives) count += (double)c->own;
    bool whole = c->what == LS_CALL_ALL_REDUCE;
    ls_cost x = whole ? all_reduce_cost(a, count * size, n) : other_cost(a, c, count * size, n);
    bool as_they_are = a == &ls_direct || a == &ls_exchange; /* others send sums of halves as f32 */
    if (!ls_dtype_is_half(c->dtype) || !ls_collective_reduces(c->what) || as_they_are) return x;
    x.chain_sent *= 2;
    x.sent *= 2;
    return x;
}

double ls_choose_chain_seconds(const ls_cost *x, const ls_link *l) {
    return x->chain_messages * l->latency_s + x->chain_sent * l->byte_s +
           x->chain_added * l->reduce_s;
}

double ls_choose_work_seconds(const ls_cost *x, const ls_link *l) {
    return x->messages * l->busy_message_s + x->sent * l->busy_byte_s + x->added * l->reduce_s;
}

/* Where the chain's end is waited for, work is undone. A quarter of the smaller bound fits what is
 * measured (docs/collectives.md). */
double ls_choose_seconds(const ls_algorithm *a, const ls_call *c, int n, const ls_link *l) {
    ls_cost x = ls_choose_cost(a, c, n);
    double chain = ls_choose_chain_seconds(&x, l), work = ls_choose_work_seconds(&x, l);
    return fmax(chain, work) + 0.25 * fmin(chain, work);
}

bool ls_choose_allows(const ls_algorithm *a, const ls_call *c, int n) {
    return ls_algorithm_does(a, c) &&
           (!ls_collective_reduces(c->what) || a->tree_order(c->what, n));
}

const ls_algorithm *ls_choose(const ls_call *c, int n, const ls_link *link) {
    const ls_algorithm *best = &ls_direct;
    double least = INFINITY;
    for (int i = 0; ls_algorithms[i]; i++) {
        const ls_algorithm *a = ls_algorithms[i];
        if (!ls_choose_allows(a, c, n)) continue;
        double seconds = ls_choose_seconds(a, c, n, link);
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

/* ---- explaining ---- */

typedef struct writer {
    char *text;
    size_t nbytes, at;
} writer;

static void put(writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *fmt, ...) {
    va_list args;
    if (w->at + 1 >= w->nbytes) return;
    va_start(args, fmt);
    int n = vsnprintf(w->text + w->at, w->nbytes - w->at, fmt, args);
    va_end(args);
    if (n > 0) w->at += (size_t)n;
}

static void put_seconds(writer *w, double s) {
    if (s < 1e-3)
        put(w, "%.3g us", s * 1e6);
    else if (s < 1)
        put(w, "%.3g ms", s * 1e3);
    else
        put(w, "%.3g s", s);
}

static void put_bytes(writer *w, double n) {
    if (n < 1e3)
        put(w, "%.3g B", n);
    else if (n < 1e6)
        put(w, "%.3g KB", n / 1e3);
    else
        put(w, "%.3g MB", n / 1e6);
}

/* "6 messages x 15 us + 1.5 MB x 0.5 ns + 786 KB added x 0.1 ns": the larger of the two bounds. */
static void put_bound(writer *w, const ls_cost *x, const ls_link *l) {
    bool chain = ls_choose_chain_seconds(x, l) > ls_choose_work_seconds(x, l);
    double sent = chain ? x->chain_sent : x->sent, added = chain ? x->chain_added : x->added;
    double messages = chain ? x->chain_messages : x->messages;
    put(w, "%.3g message%s %s x ", messages, messages > 1 ? "s" : "",
        chain ? "one after the other" : "of each at once");
    put_seconds(w, chain ? l->latency_s : l->busy_message_s);
    if (sent > 0) {
        put(w, " + ");
        put_bytes(w, sent);
        put(w, " x %.3g ns", (chain ? l->byte_s : l->busy_byte_s) * 1e9);
    }
    if (added > 0) {
        put(w, " + ");
        put_bytes(w, added);
        put(w, " added x %.3g ns", l->reduce_s * 1e9);
    }
}

/* Those that may be chosen, or those that may not. */
static void put_others(writer *w, const ls_algorithm *a, const ls_call *c, int n, const ls_link *l,
                       bool allowed, const char *between) {
    for (int i = 0; ls_algorithms[i]; i++) {
        const ls_algorithm *b = ls_algorithms[i];
        if (b == a || !ls_algorithm_has(b, c->what) || ls_choose_allows(b, c, n) != allowed)
            continue;
        put(w, "%s%s ", between, b->name);
        put_seconds(w, ls_choose_seconds(b, c, n, l));
        between = ", ";
    }
}

void ls_choose_explain(const ls_algorithm *chosen, const ls_call *c, int n, const ls_link *l,
                       char *text, size_t nbytes) {
    writer w = {text, nbytes, 0};
    const ls_algorithm *a = chosen ? chosen : ls_choose(c, n, l);
    ls_cost x = ls_choose_cost(a, c, n);
    put(&w, "%s, ", a->name);
    put_seconds(&w, ls_choose_seconds(a, c, n, l));
    put(&w, " by ");
    put_bound(&w, &x, l);
    put_others(&w, a, c, n, l, true, "; ");
    put_others(&w, a, c, n, l, false, "; in another order of sums ");
}
