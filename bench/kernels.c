/* kernels.c - our kernels on one core, beside other libraries' if they are installed, in
 * alternation.
 *
 *     build/bench/kernels [--vs openblas,onednn] [--rows 256,1024] [--dtype bf16] [--rounds N]
 *                         [--json]
 *
 * What `lockstep bench kernels` measures, and the convolutions of a residual network and the codecs
 * of compressed sums.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "codecs.h"
#include "convolutions.h"
#include "gemm_library.h"
#include "tensor/compute.h"

enum { VS, ROWS, DTYPE, ROUNDS, JSON };

static const ls_command command = {
    .name = "kernels",
    .words = "",
    .options = {[VS] = {"vs", 0, "LIST", "openblas,onednn"},
                [ROWS] = {"rows", 0, "LIST", "numbers of rows of activations"},
                [DTYPE] = {"dtype", 0, "NAME", "f32, or bf16 for matrix products alone"},
                [ROUNDS] = {"rounds", 0, "N", "times that each product is measured"},
                [JSON] = {"json", 0, NULL, "one JSON object a line"}}};

static void run_rival(const void *self, const ls_gemm_job *g) { gemm_library_run(self, g); }

typedef struct rivals {
    gemm_library libraries[LS_BENCH_RIVALS];
    ls_rival list[LS_BENCH_RIVALS]; /* [n] */
    int n;
    bool onednn;
} rivals;

/* "openblas,onednn" */
static ls_status open_rivals(const char *names, bool bf16, rivals *r, ls_error *e) {
    while (names && *names) {
        size_t length = strcspn(names, ",");
        int which = 0;
        while (which < GEMM_LIBRARIES && (strlen(gemm_library_names[which]) != length ||
                                          strncmp(gemm_library_names[which], names, length) != 0))
            which++;
        if (which == GEMM_LIBRARIES || r->n == LS_BENCH_RIVALS)
            return ls_fail(e, LS_EINVAL, "--vs: '%.40s' is not one of openblas, onednn", names);
        LS_TRY(gemm_library_open(which, bf16, &r->libraries[r->n], e));
        r->list[r->n] = (ls_rival){gemm_library_names[which], run_rival, &r->libraries[r->n]};
        ls_log("%s: %s", gemm_library_names[which], r->libraries[r->n++].version);
        r->onednn = r->onednn || which == GEMM_ONEDNN;
        names += length + (names[length] == ',');
    }
    return LS_OK;
}

static ls_status run_all(ls_bench_kernels *o, bool onednn, bool json, ls_error *e) {
    ls_compute compute;
    LS_TRY(cli_bench_kernels_run(o, json, e));
    if (o->bf16) return LS_OK;
    LS_TRY(ls_compute_init(&compute, 1, 0, e));
    const bench_convolutions b = {&compute, o->rounds, onednn, json};
    ls_status s = bench_convolutions_run(&b, e);
    if (s == LS_OK) s = bench_codecs(compute.k, o->rounds, json, e);
    ls_compute_close(&compute);
    return s;
}

int main(int argc, char **argv) {
    ls_args a = {.program = argv[0], .argc = argc, .argv = argv};
    ls_bench_kernels o = {0};
    ls_error e = {0};
    rivals r = {.n = 0};
    char *why = NULL;
    int64_t rounds = 5;
    if (!cli_parse(&command, argc, argv, &a) ||
        !cli_integer(&command, &a, ROUNDS, 1, LS_BENCH_ROUNDS, &rounds))
        return CLI_USAGE;
    if (!cli_bench_kernels_read(cli_given(&a, ROWS) ? cli_value(&a, ROWS) : "256,1024",
                                cli_given(&a, DTYPE) ? cli_value(&a, DTYPE) : "f32", &o, &why)) {
        ls_log("kernels: %s", why);
        free(why);
        return CLI_USAGE;
    }
    o.rounds = (int)rounds;
    o.rivals = r.list;
    ls_status s = open_rivals(cli_value(&a, VS), o.bf16, &r, &e);
    o.nrivals = r.n;
    if (s == LS_OK) s = run_all(&o, r.onednn, cli_given(&a, JSON), &e);
    for (int i = 0; i < r.n; i++) gemm_library_close(&r.libraries[i]);
    cli_args_free(&a);
    return s == LS_OK ? 0 : cli_fail(&e);
}
