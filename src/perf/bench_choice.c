/* bench_choice.c - see bench_choice.h. */
#include "perf/bench_choice.h"

#include "base/mem.h"
#include "perf/bench_comm.h"

static ls_bench_choice *add(ls_bench_choices *c, const char *name, ls_group *g, int rounds) {
    ls_bench_choice *x = &c->all[c->n++];
    *x = (ls_bench_choice){.name = name, .group = g};
    x->times = LS_NEW_ARRAY(double, (size_t)rounds);
    return x;
}

static ls_status add_algorithm(ls_bench_choices *c, ls_group *g, const ls_algorithm *a,
                               ls_collective what, int rounds, ls_error *e) {
    ls_group *own = NULL;
    LS_TRY(ls_group_dup(g, &own, e));
    own->forced = a;
    ls_bench_choice *x = add(c, a->name, own, rounds);
    x->owned = true;
    x->keeps_order = !ls_collective_reduces(what) || a->tree_order(what, ls_group_size(g));
    return LS_OK;
}

ls_status ls_bench_choices_open(ls_bench_choices *c, ls_group *g, ls_collective what, int rounds,
                                ls_error *e) {
    *c = (ls_bench_choices){.n = 0};
    LS_TRY(ls_group_dup(g, &c->chooser, e));
    if (g->shared) add(c, "shared memory", c->chooser, rounds)->keeps_order = true;
    for (int i = 0; ls_algorithms[i]; i++)
        if (ls_algorithm_has(ls_algorithms[i], what))
            LS_TRY(add_algorithm(c, g, ls_algorithms[i], what, rounds, e));
    if (!g->end->net || !g->end->net->native) return LS_OK;
    /* Only the group of all workers has the transport's own collectives. */
    add(c, "native", g, rounds);
    g->native = true;
    return LS_OK;
}

void ls_bench_choices_close(ls_bench_choices *c) {
    for (int i = 0; i < c->n; i++) {
        c->all[i].group->native = false;
        if (c->all[i].owned) ls_group_close(c->all[i].group);
        free(c->all[i].times);
    }
    ls_group_close(c->chooser);
}

/* ---- measuring ---- */

/* Runs the operation once on known numbers, then warms up. */
static void warm_up(ls_bench_choice *x, bench_peer *peer, const bench_job *job) {
    bench_fill(job);
    peer->barrier(peer);
    peer->run(peer, job);
    x->result = (bench_result){.wrong = peer->max(peer, (double)bench_wrong(job))};
    memset(job->in, 0, job->nbytes);
    if (!bench_in_place(job)) memset(job->out, 0, job->nbytes);
    x->result.batch = bench_warm_up(peer, job);
}

static void sum_up(ls_bench_choice *x, int rounds) {
    double *t = x->times;
    qsort(t, (size_t)rounds, sizeof *t, bench_compare);
    x->result.rounds = rounds;
    x->result.median_s = (t[(rounds - 1) / 2] + t[rounds / 2]) / 2;
    x->result.min_s = t[0];
    x->result.max_s = t[rounds - 1];
}

void ls_bench_choices_measure(ls_bench_choices *c, bench_peer *peer, const bench_job *job,
                              int rounds, ls_group **group_p) {
    ls_call call = ls_bench_comm_call(job, c->chooser);
    ls_route choice = ls_group_route(c->chooser, &call);
    for (int i = 0; i < c->n; i++) {
        c->all[i].chosen = strcmp(c->all[i].name, ls_route_name(&choice)) == 0;
        *group_p = c->all[i].group;
        warm_up(&c->all[i], peer, job);
    }
    for (int k = 0; k < rounds; k++)
        for (int i = 0; i < c->n; i++) {
            *group_p = c->all[i].group;
            c->all[i].times[k] = bench_round(peer, job, c->all[i].result.batch);
        }
    for (int i = 0; i < c->n; i++) sum_up(&c->all[i], rounds);
}
