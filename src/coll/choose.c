/* choose.c - see choose.h; the model of costs is in coll/algo/cost.h. */
#include "coll/choose.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Predicted seconds of a call of n workers. */
static double seconds_of(const ls_algorithm *a, const ls_call *c, int n, const ls_link *l) {
    ls_cost x = ls_algorithm_cost(a, c, n);
    return ls_cost_seconds(&x, l);
}

/* True if the algorithm can make the call and, in a reduction, keeps the order of the tree. */
static bool is_allowed(const ls_algorithm *a, const ls_call *c, int n) {
    return ls_algorithm_supports(a, c) &&
           (!ls_collective_reduces(c->what) || a->tree_order(c->what, n));
}

const ls_algorithm *ls_choose_among(const ls_algorithm *const *all, const ls_call *c,
                                    const ls_hosts *hosts) {
    const ls_algorithm *best = all[0];
    double least = INFINITY;
    for (int i = 0; all[i]; i++) {
        if (!is_allowed(all[i], c, hosts->nworkers)) continue;
        double seconds = all[i]->hosts_seconds(all[i], c, hosts);
        if (seconds >= least) continue;
        least = seconds;
        best = all[i];
    }
    return best;
}

const ls_algorithm *ls_choose(const ls_call *c, int n, const ls_link *link) {
    const ls_hosts one = {.nworkers = n, .host_workers = n, .inside = *link};
    return ls_choose_among(ls_algorithms, c, &one);
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
    bool chain = ls_cost_chain_seconds(x, l) > ls_cost_work_seconds(x, l);
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

/* What is explained: a call of n workers over a link, by algorithm `a`. */
typedef struct subject {
    const ls_algorithm *a;
    const ls_call *call;
    int n;
    const ls_link *link;
} subject;

/* The other algorithms: those that may be chosen, or those that may not. */
static void put_others(writer *w, const subject *x, bool allowed, const char *between) {
    for (int i = 0; ls_algorithms[i]; i++) {
        const ls_algorithm *b = ls_algorithms[i];
        if (b == x->a || !ls_algorithm_has(b, x->call->what) ||
            is_allowed(b, x->call, x->n) != allowed)
            continue;
        put(w, "%s%s ", between, b->name);
        put_seconds(w, seconds_of(b, x->call, x->n, x->link));
        between = ", ";
    }
}

void ls_choose_explain(const ls_algorithm *chosen, const ls_call *c, int n, const ls_link *l,
                       char *text, size_t nbytes) {
    writer w = {text, nbytes, 0};
    const subject x = {chosen ? chosen : ls_choose(c, n, l), c, n, l};
    ls_cost cost = ls_algorithm_cost(x.a, c, n);
    put(&w, "%s, ", x.a->name);
    put_seconds(&w, seconds_of(x.a, c, n, l));
    put(&w, " by ");
    put_bound(&w, &cost, l);
    put_others(&w, &x, true, "; ");
    put_others(&w, &x, false, "; in another order of sums ");
}
