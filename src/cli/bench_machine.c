/* bench_machine.c - see bench.h. */
#include "cli/bench.h"

#include <string.h>

#include "base/file.h"
#include "base/output.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/cli.h"
#include "perf/calibrate.h"
#include "perf/node_rates.h"
#include "tensor/kernels.h"

/* The speed of the largest work of a kind. */
static const ls_speed *last(const ls_machine *m, ls_work_kind k) {
    const ls_speeds *t = &m->speeds[k];
    return &t->points[t->n[0] * t->n[1] * t->n[2] - 1];
}

/* Prints the most important numbers; the file contains all of them. */
static void print(const ls_machine *m) {
    const ls_speed *large = last(m, LS_WORK_PRODUCT), *bf16 = last(m, LS_WORK_PRODUCT_BF16);
    const ls_speed *stream = last(m, LS_WORK_UPDATE);
    ls_print("%s, %d core%s; speeds of one core, alone and while all compute:\n", m->name, m->cores,
             ls_plural(m->cores));
    ls_print("  matrix products  %8.1f %8.1f GFLOP/s\n", large->alone / 1e9, large->busy / 1e9);
    ls_print("  in bf16          %8.1f %8.1f GFLOP/s\n", bf16->alone / 1e9, bf16->busy / 1e9);
    ls_print("  AdamW            %8.2f %8.2f G parameters/s\n", stream->alone / 1e9,
             stream->busy / 1e9);
    ls_print("shared memory      %8.1f us a call, sums %.2f GB/s, copies %.2f GB/s a worker\n",
             m->shared_start_s * 1e6, 1e-9 / m->shared_sum_byte_s, 1e-9 / m->shared_copy_byte_s);
    ls_print("TCP, 2 processes   %8.1f us, %.2f GB/s\n", m->link.latency_s * 1e6,
             1e-9 / m->link.byte_s);
}

/* Prices that are not given stay as they are in the old file. */
static ls_machine_prices prices_of(const char *save, const ls_machine_prices *given) {
    ls_machine old = {0};
    ls_machine_prices p = {0};
    if (ls_file_exists(save) && ls_machine_read(save, &old, NULL) == LS_OK) p = old.prices;
    ls_machine_free(&old);
    if (given->worker_hour > 0) p.worker_hour = given->worker_hour;
    if (given->watts > 0) p.watts = given->watts;
    if (*given->currency) memcpy(p.currency, given->currency, sizeof p.currency);
    return p;
}

/* The memory of NUMA nodes: no part of the file, since predictions do not use it. */
static void print_nodes(void) {
    ls_node_rates r = {0};
    ls_error e = {0};
    if (ls_node_rates_measure(&r, &e) != LS_OK)
        ls_print("memory of NUMA nodes: not measured, since %s\n", e.msg);
    else if (r.nodes < 2)
        ls_print("memory: of one NUMA node\n");
    for (int i = 0; r.nodes > 1 && i < r.nodes; i++) {
        ls_print("cores of node %-3d   ", i);
        for (int k = 0; k < r.nodes; k++)
            ls_print("%s%.1f", k ? " " : "", r.rate[i * r.nodes + k] / 1e9);
        ls_print(" GB/s, from the memory of nodes 0 to %d\n", r.nodes - 1);
    }
    ls_node_rates_free(&r);
}

static ls_status print_kernels(ls_error *e) {
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e));
    ls_print("kernels: %s, %s\n", k->name, ls_kernels_why(k));
    return LS_OK;
}

int cli_bench_machine_run(const char *save, const ls_machine_prices *prices) {
    ls_machine m = {0};
    ls_error e = {0};
    ls_status s = save ? ls_output_check(save, &e) : LS_OK;
    if (s == LS_OK) s = print_kernels(&e);
    if (s == LS_OK) s = ls_calibrate(&m, &e);
    if (s == LS_OK) print(&m);
    if (s == LS_OK) print_nodes();
    if (s == LS_OK && save) m.prices = prices_of(save, prices);
    if (s == LS_OK && save) s = ls_machine_write(save, &m, "lockstep bench machine", &e);
    if (s == LS_OK && save) ls_print("saved to %s\n", save);
    ls_machine_free(&m);
    return s == LS_OK ? 0 : cli_fail(&e);
}
