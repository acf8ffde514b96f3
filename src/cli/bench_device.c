/* bench_device.c - see bench.h. */
#include <stdio.h>

#include "base/json.h"
#include "base/print.h"
#include "cli/bench.h"
#include "cli/cli.h"

/* ---- kernels ---- */

typedef struct printer {
    bool json, passes; /* passes: the head of their table is there */
    const char *device;
} printer;

static void begin(void *arg, const char *name, const char *sizes) {
    printer *p = arg;
    p->device = name;
    if (p->json) return;
    ls_print("%s, sizes of %s, f32; products, GFLOP/s:\n", name, sizes);
    ls_print("%-14s %-12s %6s %10s %12s\n", "", "", "rows", "GFLOP/s", "ms");
}

static void print_json(const printer *p, const ls_bench_launch *x) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "device", p->device);
    ls_json_set_text(o, x->is_product ? "product" : "pass", x->name);
    if (x->is_product) ls_json_set_text(o, "shape", x->shape);
    ls_json_set_text(o, "dtype", "f32");
    ls_json_set_integer(o, "rows", x->rows);
    ls_json_set_number(o, "seconds", x->seconds);
    ls_json_set_number(o, x->is_product ? "gflops" : "gb_per_s", x->per_s / 1e9);
    ls_print_json(o);
}

static void print_launch(void *arg, const ls_bench_launch *x) {
    printer *p = arg;
    if (p->json) {
        print_json(p, x);
        return;
    }
    if (!x->is_product && !p->passes) ls_print("passes over memory, GB/s read and written:\n");
    p->passes = !x->is_product;
    if (x->is_product)
        ls_print("%-14s %-12s", x->shape, x->name);
    else
        ls_print("%-27s", x->name);
    ls_print(" %6lld %10.1f %12.4f\n", (long long)x->rows, x->per_s / 1e9, x->seconds * 1e3);
    fflush(stdout);
}

int cli_bench_device_kernels(ls_bench_device *o, bool json) {
    printer p = {.json = json};
    ls_error e = {0};
    o->begin = begin;
    o->launch = print_launch;
    o->arg = &p;
    return ls_bench_device_run(o, &e) == LS_OK ? 0 : cli_fail(&e);
}

/* ---- machine ---- */

void cli_bench_device_print(const ls_device_figures *f) {
    ls_print("%s", f->name);
    if (f->memory_nbytes) ls_print(", %.1f GB of memory", (double)f->memory_nbytes / 1e9);
    ls_print("\n  copies to it     %10.2f GB/s, from pinned memory %.2f\n", f->to / 1e9,
             f->pinned_to / 1e9);
    ls_print("  copies from it   %10.2f GB/s, to pinned memory %.2f\n", f->from / 1e9,
             f->pinned_from / 1e9);
    ls_print("  its memory       %10.2f GB/s read and written by a copy\n", f->memory / 1e9);
    ls_print("  matrix products  %10.1f GFLOP/s in f32, %.1f in bf16, %lld x %lld x %lld\n",
             f->product / 1e9, f->product_bf16 / 1e9, (long long)f->rows, (long long)f->out,
             (long long)f->in);
    ls_print("  a small kernel   %10.2f us, queued among others\n", f->launch_s * 1e6);
}

static void print_figures_json(const ls_device_figures *f) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "device", f->name);
    ls_json_set_integer(o, "memory_nbytes", (int64_t)f->memory_nbytes);
    ls_json_set_number(o, "to_bytes_per_s", f->to);
    ls_json_set_number(o, "from_bytes_per_s", f->from);
    ls_json_set_number(o, "pinned_to_bytes_per_s", f->pinned_to);
    ls_json_set_number(o, "pinned_from_bytes_per_s", f->pinned_from);
    ls_json_set_number(o, "memory_bytes_per_s", f->memory);
    ls_json_set_number(o, "product_flops_per_s", f->product);
    ls_json_set_number(o, "product_bf16_flops_per_s", f->product_bf16);
    ls_json_set_number(o, "kernel_seconds", f->launch_s);
    ls_print_json(o);
}

int cli_bench_device_machine(const ls_bench_device *o, bool json) {
    ls_device_figures f;
    ls_error e = {0};
    if (ls_bench_device_machine(o, &f, &e) != LS_OK) return cli_fail(&e);
    (json ? print_figures_json : cli_bench_device_print)(&f);
    return 0;
}
