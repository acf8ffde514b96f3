/* bench_kernels.c - see bench.h. */
#include "cli/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/print.h"

typedef struct printer {
    const ls_bench_kernels *o;
    bool json, passes; /* passes: the head of their table is there */
} printer;

bool cli_bench_kernels_read(const char *rows, const char *dtype, ls_bench_kernels *o,
                            char **why_p) {
    for (const char *at = rows; *at || at == rows;) {
        char *end = NULL;
        long n = strtol(at, &end, 10);
        if (end == at || n < 1 || n > 65536 || (*end && *end != ',') || o->nrows == LS_BENCH_ROWS) {
            *why_p = ls_format("--rows: '%.60s' is not a list like 256,1024 of at most %d numbers "
                               "to 65536",
                               rows, LS_BENCH_ROWS);
            return false;
        }
        o->rows[o->nrows++] = n;
        at = *end ? end + 1 : end;
    }
    o->bf16 = strcmp(dtype, "bf16") == 0;
    if (o->bf16 || strcmp(dtype, "f32") == 0) return true;
    *why_p = ls_format("--dtype: kernels are measured in f32 or bf16, not in '%.40s'", dtype);
    return false;
}

static void begin(void *arg, const char *kernels, double peak) {
    const printer *p = arg;
    const char *type = p->o->bf16 ? "bf16" : "f32";
    if (p->json) return;
    ls_print("kernels: %s; peak of multiply-adds%s %.1f GFLOP/s\n", kernels,
             p->o->bf16 ? " in bf16" : "", peak / 1e9);
    ls_print("matrix products of GPT-2 124 M in %s, one core, GFLOP/s:\n", type);
    ls_print("%-14s %-12s %6s %9s %8s", "", "", "rows", "lockstep", "of peak");
    for (int i = 0; i < p->o->nrivals; i++) ls_print(" %9s", p->o->rivals[i].name);
    ls_print("%s\n", p->o->nrivals ? "  ratio" : "");
}

static void print_product_json(const printer *p, const ls_bench_product *x) {
    ls_print("{\"product\": \"%s\", \"dtype\": \"%s\", \"shape\": \"%s\", \"rows\": %lld, "
             "\"in\": %lld, \"out\": %lld, \"peak_gflops\": %.2f, \"lockstep_gflops\": %.2f",
             x->product, p->o->bf16 ? "bf16" : "f32", x->shape, (long long)x->rows,
             (long long)x->in, (long long)x->out, x->peak / 1e9, x->ours / 1e9);
    for (int i = 0; i < p->o->nrivals; i++)
        ls_print(", \"%s_gflops\": %.2f", p->o->rivals[i].name, x->rivals[i] / 1e9);
    ls_print("}\n");
}

static void print_product(void *arg, const ls_bench_product *x) {
    const printer *p = arg;
    double best = 0;
    if (p->json) {
        print_product_json(p, x);
        return;
    }
    ls_print("%-14s %-12s %6lld %9.1f %7.1f%%", x->shape, x->product, (long long)x->rows,
             x->ours / 1e9, 100 * x->ours / x->peak);
    for (int i = 0; i < p->o->nrivals; i++) {
        if (x->rivals[i] > best) best = x->rivals[i];
        ls_print(" %9.1f", x->rivals[i] / 1e9);
    }
    if (best > 0) ls_print(" %8.2f", x->ours / best);
    ls_print("\n");
    fflush(stdout);
}

static void print_pass(void *arg, const ls_bench_pass *x) {
    printer *p = arg;
    if (p->json) {
        ls_print("{\"pass\": \"%s\", \"gb_per_s\": %.2f, \"limit_gb_per_s\": %.2f}\n", x->name,
                 x->speed / 1e9, x->limit / 1e9);
        return;
    }
    if (!p->passes)
        ls_print_wrapped(
            "passes over memory, one core, arrays of %zu MB; GB/s read and written, as a share "
            "of a += b (of a sum, where nothing is written):",
            ls_bench_pass_nbytes() >> 20);
    p->passes = true;
    ls_print("%-14s %9.1f %7.1f%%\n", x->name, x->speed / 1e9, 100 * x->speed / x->limit);
}

ls_status cli_bench_kernels_run(ls_bench_kernels *o, bool json, ls_error *e) {
    printer p = {.o = o, .json = json};
    o->begin = begin;
    o->product = print_product;
    o->pass = print_pass;
    o->arg = &p;
    return ls_bench_kernels_run(o, e);
}
