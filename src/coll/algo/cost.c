/* cost.c - see cost.h. */
#include "coll/algo/cost.h"

#include <math.h>

ls_link ls_hosts_link(const ls_hosts *h, double load) {
    ls_link l = h->inside;
    if (h->nworkers == h->host_workers) return l;
    l.latency_s += h->card_latency_s;
    l.byte_s = fmax(l.byte_s, h->card_byte_s);
    l.busy_byte_s = fmax(l.busy_byte_s, h->card_byte_s * load);
    return l;
}

double ls_cost_chain_seconds(const ls_cost *x, const ls_link *l) {
    return x->chain_messages * l->latency_s + x->chain_sent * l->byte_s +
           x->chain_added * l->reduce_s;
}

double ls_cost_work_seconds(const ls_cost *x, const ls_link *l) {
    return x->messages * l->busy_message_s + x->sent * l->busy_byte_s + x->added * l->reduce_s;
}

/* While the end of the chain is waited for, work is left undone. A quarter of the smaller bound
 * fits the measurements (docs/design/collectives.md). */
double ls_cost_seconds(const ls_cost *x, const ls_link *l) {
    double chain = ls_cost_chain_seconds(x, l), work = ls_cost_work_seconds(x, l);
    return fmax(chain, work) + 0.25 * fmin(chain, work);
}

double ls_ceil_log2(int n) {
    int k = 0;
    while (1 << k < n) k++;
    return k;
}

double ls_floor_log2(int n) {
    int k = 0;
    while (2 << k <= n) k++;
    return k;
}

ls_cost ls_cost_even(ls_even_cost x) {
    return (ls_cost){.chain_messages = x.steps + 0.1 * x.further,
                     .chain_sent = x.sent,
                     .chain_added = x.added,
                     .messages = x.messages,
                     .sent = x.sent,
                     .added = x.added};
}

/* Workers of a tree do different amounts of work, and those that wait don't leave the whole machine
 * to the busy ones: what counts is halfway between the mean and the root's. The mean worker sends
 * and adds (n - 1) / n of the bytes; the root has log2 n neighbours. */
ls_cost ls_cost_tree(double nbytes, int n, int ways, double added) {
    double part = (n - 1.0) / n, links = ls_ceil_log2(n),
           busy = (ways * part + ways * links / 2) / 2;
    return (ls_cost){.chain_messages = ways * ls_floor_log2(n),
                     .chain_sent = ways * links * nbytes,
                     .chain_added = links * added,
                     .messages = busy,
                     .sent = busy * nbytes,
                     .added = (part + links) / 2 * added};
}
