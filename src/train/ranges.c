/* ranges.c - see ranges.h. */
#include "train/ranges.h"

#include <stdlib.h>

#include "base/log.h"
#include "share/config.h"

static bool can_balance(const ls_config *c, const ls_plan *p) {
    return c->survival.balance == LS_BALANCE_AUTO && p->share.config->tree && !p->share.by_rounds &&
           p->share.nreplicas == 1 && p->share.islands == 0 && p->share.ncells == 1;
}

static void take_times(ls_ranges *r, const ls_ranges_view *v) {
    int n = v->plan->share.nworkers;
    if (r->balanced_view != v->number)
        ls_balance_begin(&r->balance, n, v->plan->share.V, r->now, v->steps);
    r->balanced_view = v->number;
    for (int w = 0; w < n; w++) {
        int64_t steps = atomic_load(&v->board->slots[w].measured);
        double ns = (double)atomic_load(&v->board->slots[w].compute_ns);
        bool whole = atomic_load(&v->board->slots[w].measured) == steps;
        if (steps > 0 && whole) ls_balance_note(&r->balance, w, steps, ns / 1e9);
    }
}

static void log_next(const ls_ranges *r, int n) {
    ls_buf text = {0};
    for (int w = 0; w < n; w++) ls_buf_printf(&text, " %d", r->next[w + 1] - r->next[w]);
    ls_log("virtual workers are divided anew among workers 0 to %d:%s", n - 1, text.data);
    ls_buf_free(&text);
}

bool ls_ranges_look(ls_ranges *r, const ls_config *c, const ls_ranges_view *v) {
    double factor = 0, limit = c->survival.slow_limit;
    if (!can_balance(c, v->plan) || r->next) return false;
    take_times(r, v);
    int slow = ls_balance_slow(&r->balance, &factor);
    bool replaced = slow >= 0 && limit > 0 && factor >= limit;
    if (slow >= 0)
        ls_log("worker %d is slow: a virtual worker takes it %.1f times as long as the others%s",
               slow, factor, replaced ? "; it is replaced" : "");
    if (!r->proposal) r->proposal = LS_NEW_ARRAY(int, (size_t)v->plan->share.V + 1);
    if (!ls_balance_propose(&r->balance, r->proposal)) return replaced;
    r->next = r->proposal;
    r->proposal = NULL;
    log_next(r, v->plan->share.nworkers);
    return true;
}

void ls_ranges_begin(ls_ranges *r, bool same) {
    free(r->now);
    r->now = same ? r->next : NULL;
    if (!r->now) free(r->next);
    r->next = NULL;
}

void ls_ranges_free(ls_ranges *r) {
    ls_balance_free(&r->balance);
    free(r->now);
    free(r->next);
    free(r->proposal);
    *r = (ls_ranges){0};
}
