/* bench_choice.c - see bench_choice.h. */
#include "cli/bench_choice.h"

#include "base/mem.h"
#include "base/print.h"
#include "cli/bench_comm.h"

static cli_choice *add(cli_choices *c, const char *name, ls_group *g, int rounds) {
    cli_choice *x = &c->all[c->n++];
    *x = (cli_choice){.name = name, .group = g};
    x->times = LS_NEW_ARRAY(double, (size_t)rounds);
    return x;
}

static ls_status add_algorithm(cli_choices *c, ls_group *g, const ls_algorithm *a,
                               ls_collective what, int rounds, ls_error *e) {
    ls_group *own = NULL;
    LS_TRY(ls_group_dup(g, &own, e));
    own->forced = a;
    cli_choice *x = add(c, a->name, own, rounds);
    x->owned = true;
    x->keeps_order = !ls_collective_reduces(what) || a->tree_order(what, ls_group_size(g));
    return LS_OK;
}

ls_status cli_choices_open(cli_choices *c, ls_group *g, ls_collective what, int rounds,
                           ls_error *e) {
    *c = (cli_choices){.n = 0};
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

void cli_choices_close(cli_choices *c) {
    for (int i = 0; i < c->n; i++) {
        c->all[i].group->native = false;
        if (c->all[i].owned) ls_group_close(c->all[i].group);
        free(c->all[i].times);
    }
    ls_group_close(c->chooser);
}

/* ---- measuring ---- */

/* Runs the operation once on known numbers, then warms up. */
static void warm_up(cli_choice *x, bench_peer *peer, const bench_job *job) {
    bench_fill(job);
    peer->barrier(peer);
    peer->run(peer, job);
    x->result = (bench_result){.wrong = peer->max(peer, (double)bench_wrong(job))};
    memset(job->in, 0, job->nbytes);
    if (!bench_in_place(job)) memset(job->out, 0, job->nbytes);
    x->result.batch = bench_warm_up(peer, job);
}

static void sum_up(cli_choice *x, int rounds) {
    double *t = x->times;
    qsort(t, (size_t)rounds, sizeof *t, bench_compare);
    x->result.rounds = rounds;
    x->result.median_s = (t[(rounds - 1) / 2] + t[rounds / 2]) / 2;
    x->result.min_s = t[0];
    x->result.max_s = t[rounds - 1];
}

void cli_choices_measure(cli_choices *c, bench_peer *peer, const bench_job *job, int rounds,
                         ls_group **group_p) {
    ls_call call = cli_bench_comm_call(job, c->chooser);
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

/* ---- printing ---- */

void cli_choices_print_head(const cli_choices *c, int rounds) {
    ls_print("# times in us: medians of %d rounds, algorithms alternating\n", rounds);
    ls_print("# *: sums in another order; used only if forced\n");
    ls_print("# /best: the chosen algorithm's time / the shortest that keeps the order of sums\n");
    ls_print("#\n# %10s %14s %6s", "size (B)", "chosen", "/best");
    for (int i = 0; i < c->n; i++)
        ls_print(" %13s%s", c->all[i].name, c->all[i].keeps_order ? " " : "*");
    ls_print(" #wrong\n");
}

void cli_choices_print_row(const cli_choices *c, const bench_job *job) {
    double least = 0, chosen = 0, wrong = 0;
    const char *name = "none";
    for (int i = 0; i < c->n; i++) {
        const cli_choice *x = &c->all[i];
        double s = x->result.median_s;
        wrong += x->result.wrong;
        if (x->keeps_order && (least <= 0 || s < least)) least = s;
        if (!x->chosen) continue;
        chosen = s;
        name = x->name;
    }
    ls_print("%12zu %14s %6.2f", job->nbytes, name, least > 0 ? chosen / least : 1);
    for (int i = 0; i < c->n; i++) ls_print(" %13.2f ", c->all[i].result.median_s * 1e6);
    ls_print(" %6.0f\n", wrong);
    fflush(stdout);
}
