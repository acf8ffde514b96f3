/* bench_comm.c - see bench.h. The columns are nccl-tests'. */
#include "cli/bench.h"

#include <sys/utsname.h>

#include "base/cores.h"
#include "base/json.h"
#include "base/print.h"
#include "lockstep/group.h"
#include "perf/bench_choice.h"

/* Prints why an algorithm is chosen: a line for each size at which the choice changes. */
static void print_reasons(const ls_bench_comm *o, ls_group *g) {
    const bench_request *r = &o->request;
    const char *last = "";
    for (int i = 0; i < r->n_sizes; i++) {
        bench_job job;
        char why[1024];
        bench_job_size(&job, r->op, r->dtype, r->redop, 0, ls_group_size(g), r->sizes[i]);
        const char *name = ls_bench_comm_algorithm(g, &job);
        ls_call call = ls_bench_comm_call(&job, g);
        if (strcmp(name, last) == 0) continue;
        ls_route_explain(g, &call, why, sizeof why);
        ls_print("# %s\n", why);
        last = name;
    }
}

static void print_links(const ls_endpoint *end) {
    const ls_link *l = &end->link;
    if (!end->net || end->met_over || end->commons) return;
    ls_print("# links (%s): latency %.3g us, byte %.3g ns; all at once: message %.3g us, byte %.3g "
             "ns, added byte %.3g ns\n",
             end->link_given ? "from a file" : "measured", l->latency_s * 1e6, l->byte_s * 1e9,
             l->busy_message_s * 1e6, l->busy_byte_s * 1e9, l->reduce_s * 1e9);
}

static void print_head(const ls_bench_comm *o, ls_group *g) {
    const ls_endpoint *end = g->end;
    struct utsname host = {.nodename = "?"};
    if (o->save)
        ls_print("# links are saved; with LOCKSTEP_LINKS=%s worker 0 reads them from there\n",
                 o->save);
    uname(&host);
    ls_print("# lockstep %s: %s, transport %s, %d workers, %s, host %s, cores %d\n", ls_version(),
             bench_op_names[o->request.op], end->net ? end->net->ops->name : "none",
             ls_group_size(g),
             o->private_buffers ? "buffers of the program" : "buffers of the group", host.nodename,
             ls_cores());
    if (o->busy) ls_print("# beside %d busy process%s\n", o->busy, o->busy > 1 ? "es" : "");
    print_links(end);
    if (o->all) return;
    print_reasons(o, g);
    ls_print("# median of %d rounds\n", o->request.repeat);
    ls_print("#\n# %60s%-30s  %s\n", "", "out of place", "in place");
    ls_print("# %10s %12s %6s %6s %5s", "size", "count", "type", "redop", "root");
    for (int i = 0; i < 2; i++) ls_print("   %10s %8s %8s %6s", "time", "algbw", "busbw", "#wrong");
    ls_print("  algorithm");
    ls_print("\n# %10s %12s %6s %6s %5s", "(B)", "(elements)", "", "", "");
    for (int i = 0; i < 2; i++) ls_print("   %10s %8s %8s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    ls_print("\n");
}

static void print_columns(const bench_job *job, const bench_result *r) {
    if (!r) {
        ls_print("   %10s %8s %8s %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    ls_print("   %10.2f", r->median_s * 1e6);
    if (job->op == BENCH_BARRIER)
        ls_print(" %8s %8s %6s", "N/A", "N/A", "N/A");
    else
        ls_print(" %8.4g %8.4g %6.0f", bench_algbw(job, r), bench_busbw(job, r), r->wrong);
}

static void print_row(const bench_job *job, const bench_result *out, const bench_result *in,
                      const char *algorithm) {
    bool rooted = job->op == BENCH_BROADCAST || job->op == BENCH_REDUCE ||
                  job->op == BENCH_GATHER || job->op == BENCH_SCATTER ||
                  job->op == BENCH_GATHER_V || job->op == BENCH_SCATTER_V;
    ls_print("%12zu %12zu %6s %6s %5d", job->nbytes, job->count, bench_dtype_names[job->dtype],
             bench_redop_of(job), rooted ? 0 : -1);
    print_columns(job, out);
    print_columns(job, in);
    ls_print("  %s\n", algorithm);
    fflush(stdout);
}

/* Prints an object on one line: the fields of bench_print(), and how the call was made. */
static void print_json(ls_group *measured, const bench_peer *peer, const bench_job *job,
                       const bench_result *r) {
    char why[1024];
    ls_call call = ls_bench_comm_call(job, measured);
    ls_json *j = ls_json_new_object();
    ls_route_explain(measured, &call, why, sizeof why);
    ls_json_set_text(j, "system", peer->system);
    ls_json_set_text(j, "version", peer->version);
    ls_json_set_text(j, "variant", peer->variant);
    ls_json_set_text(j, "op", bench_op_names[job->op]);
    ls_json_set_text(j, "dtype", bench_dtype_names[job->dtype]);
    ls_json_set_text(j, "redop", bench_redop_of(job));
    ls_json_set_integer(j, "workers", job->workers);
    ls_json_set_text(j, "place", bench_in_place(job) ? "in" : "out");
    ls_json_set_integer(j, "asked", (int64_t)job->asked);
    ls_json_set_integer(j, "nbytes", (int64_t)job->nbytes);
    ls_json_set_integer(j, "rounds", r->rounds);
    ls_json_set_integer(j, "batch", r->batch);
    ls_json_set_number(j, "median_s", r->median_s);
    ls_json_set_number(j, "min_s", r->min_s);
    ls_json_set_number(j, "max_s", r->max_s);
    ls_json_set_number(j, "algbw", bench_algbw(job, r));
    ls_json_set_number(j, "busbw", bench_busbw(job, r));
    ls_json_set_integer(j, "wrong", (int64_t)r->wrong);
    ls_json_set_text(j, "algorithm", ls_bench_comm_algorithm(measured, job));
    ls_json_set_text(j, "why", why);
    ls_print_json(j);
    fflush(stdout);
}

/* ---- all algorithms, alternating ---- */

static void print_choices_head(const ls_bench_choices *c, int rounds) {
    ls_print("# times in us: medians of %d rounds, algorithms alternating\n", rounds);
    ls_print("# *: sums in another order; used only if forced\n");
    ls_print("# /best: the chosen algorithm's time / the shortest that keeps the order of sums\n");
    ls_print("#\n# %10s %14s %6s", "size (B)", "chosen", "/best");
    for (int i = 0; i < c->n; i++)
        ls_print(" %13s%s", c->all[i].name, c->all[i].keeps_order ? " " : "*");
    ls_print(" #wrong\n");
}

static void print_choices(const ls_bench_choices *c, const bench_job *job) {
    double least = 0, chosen = 0, wrong = 0;
    const char *name = "none";
    for (int i = 0; i < c->n; i++) {
        const ls_bench_choice *x = &c->all[i];
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

static void print_end(double wrong, double busbw) {
    ls_print("# wrong elements: %.0f\n", wrong);
    if (busbw > 0) ls_print("# average bus bandwidth: %.4g GB/s\n", busbw);
}

const ls_bench_view cli_bench_view = {.begin = print_head,
                                      .size = print_row,
                                      .begin_choices = print_choices_head,
                                      .choices = print_choices,
                                      .each = print_json,
                                      .end = print_end};
