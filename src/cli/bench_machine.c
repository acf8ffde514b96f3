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

static void set_prices(ls_machine_prices *p, const ls_machine_prices *given) {
    if (given->worker_hour > 0) p->worker_hour = given->worker_hour;
    if (given->watts > 0) p->watts = given->watts;
    if (*given->currency) memcpy(p->currency, given->currency, sizeof p->currency);
}

/* What is not measured, and prices that are not given, stay as they are in the old file. */
static void keep_old(const char *save, const ls_machine_prices *given, ls_machine *m) {
    ls_machine old = {0};
    if (ls_file_exists(save) && ls_machine_read(save, &old, NULL) == LS_OK) {
        m->prices = old.prices;
        m->device = old.device;
    }
    ls_machine_free(&old);
    set_prices(&m->prices, given);
}

static ls_status write_machine(const char *save, const ls_machine *m, ls_error *e) {
    LS_TRY(ls_machine_write(save, m, "lockstep bench machine", e));
    ls_print("saved to %s\n", save);
    return LS_OK;
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
    const char *unused = ls_kernels_unused();
    if (unused) ls_print("products in bf16 and int8 are slower: %s\n", unused);
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
    if (s == LS_OK && save) keep_old(save, prices, &m);
    if (s == LS_OK && save) s = write_machine(save, &m, &e);
    ls_machine_free(&m);
    return s == LS_OK ? 0 : cli_fail(&e);
}

static ls_machine_device device_of(const ls_device_figures *f) {
    ls_machine_device d = {.memory_nbytes = (double)f->memory_nbytes,
                           .product = f->product,
                           .product_bf16 = f->product_bf16,
                           .memory = f->memory,
                           .to = f->pinned_to,
                           .from = f->pinned_from,
                           .launch_s = f->launch_s};
    memcpy(d.name, f->name, sizeof d.name);
    for (char *c = d.name; *c; c++)
        if (*c == '"' || *c == '\\' || *c < ' ') *c = ' ';
    return d;
}

int cli_bench_machine_device(const ls_bench_device *o, const char *save,
                             const ls_machine_prices *prices) {
    ls_machine m = {0};
    ls_device_figures f;
    ls_error e = {0};
    bool measured = ls_file_exists(save);
    ls_status s = ls_output_check(save, &e);
    if (s == LS_OK) s = ls_bench_device_machine(o, &f, &e);
    if (s == LS_OK) cli_bench_device_print(&f);
    if (s == LS_OK) s = measured ? ls_machine_read(save, &m, &e) : ls_calibrate(&m, &e);
    if (s == LS_OK && !measured) print(&m);
    if (s == LS_OK) {
        m.device = device_of(&f);
        set_prices(&m.prices, prices);
        s = write_machine(save, &m, &e);
    }
    ls_machine_free(&m);
    return s == LS_OK ? 0 : cli_fail(&e);
}
