/* cmd_bench.c - lockstep bench train|generate|comm|kernels|machine: reads the options of each. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/json.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/print.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "cli/device_option.h"
#include "coll/algo/algorithm.h"
#include "net/launch/environment.h"
#include "perf/bench_generate.h"
#include "perf/busy.h"

enum {
    WORKERS,
    STEPS,
    SET,
    OP,
    SIZES,
    DTYPE,
    REDOP,
    PLACE,
    TRANSPORT,
    ALGORITHM,
    PRIVATE,
    ROUNDS,
    JSON,
    INSECURE,
    SAVE,
    TRACE,
    EXPORT,
    ROWS,
    TOKENS,
    PROMPT,
    BUSY,
    PRICE,
    CURRENCY,
    WATTS,
    DEVICE,
    SMALL,
    NOPTIONS
};

/* The benches that an option belongs to. */
enum { TRAIN = 1, COMM = 2, MACHINE = 4, KERNELS = 8, GENERATE = 16 };
static const char *const bench_names[] = {[TRAIN] = "train",
                                          [COMM] = "comm",
                                          [MACHINE] = "machine",
                                          [KERNELS] = "kernels",
                                          [GENERATE] = "generate"};
static const int belongs[NOPTIONS] = {[WORKERS] = TRAIN | COMM,
                                      [STEPS] = TRAIN,
                                      [SET] = TRAIN | GENERATE,
                                      [OP] = COMM,
                                      [SIZES] = COMM,
                                      [DTYPE] = COMM | KERNELS,
                                      [REDOP] = COMM,
                                      [PLACE] = COMM,
                                      [TRANSPORT] = COMM,
                                      [ALGORITHM] = COMM,
                                      [PRIVATE] = COMM,
                                      [ROUNDS] = COMM | KERNELS | MACHINE,
                                      [JSON] = COMM | TRAIN | KERNELS | GENERATE | MACHINE,
                                      [INSECURE] = COMM,
                                      [SAVE] = COMM | MACHINE,
                                      [PRICE] = MACHINE,
                                      [CURRENCY] = MACHINE,
                                      [WATTS] = MACHINE,
                                      [TRACE] = TRAIN,
                                      [EXPORT] = TRAIN,
                                      [ROWS] = KERNELS,
                                      [TOKENS] = GENERATE,
                                      [PROMPT] = GENERATE,
                                      [BUSY] = COMM,
                                      [DEVICE] = TRAIN | KERNELS | GENERATE | MACHINE,
                                      [SMALL] = KERNELS | MACHINE};

static const char default_sizes[] = "8,64,512,4K,32K,256K,2M,16M,128M,256M";
static const char *const transports[] = {"shm", "thread", "tcp", "mpi"};
static const char *const places[] = {"both", "out", "in"};
enum { NTRANSPORTS = 4, NPLACES = 3 };

static bool usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool usage(const char *fmt, ...) {
    va_list args;
    char line[400];
    va_start(args, fmt);
    vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    ls_log("bench: %s; see 'lockstep help bench'", line);
    return false;
}

static bool options_belong(const ls_args *a, int bench) {
    for (int i = 0; i < NOPTIONS; i++)
        if (cli_given(a, i) && !(belongs[i] & bench))
            return usage("--%s is an option of bench %s, not of bench %s",
                         cmd_bench.options[i].name, bench_names[belongs[i] & -belongs[i]],
                         bench_names[bench]);
    return true;
}

/* ---- train ---- */

static int run_train(const ls_args *a) {
    int64_t workers = 0, steps = 10;
    if (!options_belong(a, TRAIN)) return CLI_USAGE;
    if (a->nwords < 2) {
        usage("train: CONFIG.yaml is missing");
        return CLI_USAGE;
    }
    if (!cli_integer(&cmd_bench, a, WORKERS, 1, 4096, &workers) ||
        !cli_integer(&cmd_bench, a, STEPS, 1, 10000, &steps))
        return CLI_USAGE;
    int nset = a->options[SET].n;
    const char **set = LS_NEW_ARRAY(const char *, (size_t)nset + 1);
    char *device =
        cli_given(a, DEVICE) ? ls_format("parallel.device=%s", cli_value(a, DEVICE)) : NULL;
    for (int i = 0; i < nset; i++) set[i] = a->options[SET].values[i];
    if (device) set[nset++] = device;
    cli_bench_train o = {.config = a->words[1],
                         .set = set,
                         .nset = nset,
                         .workers = (int)workers,
                         .steps = steps,
                         .trace = cli_value(a, TRACE),
                         .export_dir = cli_value(a, EXPORT),
                         .json = cli_given(a, JSON)};
    int code = cli_bench_train_run(&o);
    free(set);
    free(device);
    return code;
}

/* ---- generate ---- */

static double read_by_token(const ls_bench_generate *f) {
    return (f->weights_nbytes + f->cache_nbytes) / f->decode_s;
}

static void print_generate(const ls_bench_generate *f, int64_t ntokens) {
    double speed = read_by_token(f);
    char *where = *f->device ? ls_format("device %s", f->device)
                             : ls_format("%d thread%s", f->nthreads, ls_plural(f->nthreads));
    ls_print("%zu parameters in %s, %s, %lld token%s after a prompt of %lld\n", f->parameters,
             ls_dtype_name(f->type), where, (long long)ntokens, ls_plural(ntokens),
             (long long)f->nprompt);
    free(where);
    if (*f->stored) ls_print("  weights as stored: %s\n", f->stored);
    ls_print("  prompt           %10.2f ms, %.1f tokens/s\n", f->prompt_s * 1e3,
             (double)f->nprompt / f->prompt_s);
    ls_print("  token            %10.3f ms (median), including %.3f ms for sampling\n",
             f->token_s * 1e3, (f->token_s - f->decode_s) * 1e3);
    ls_print("  tokens/s         %10.1f\n", 1 / f->token_s);
    if (*f->device) return;
    ls_print("  a token reads    %10.2f MB of weights, %.2f MB of keys and values\n",
             f->weights_nbytes / 1e6, f->cache_nbytes / 1e6);
    ls_print("  that is          %10.2f GB/s, %.1f%% of the %.2f GB/s of a sum over memory\n",
             speed / 1e9, 100 * speed / f->read_per_s, f->read_per_s / 1e9);
}

/* One JSON object. */
static void print_generate_json(const ls_bench_generate *f, int64_t ntokens) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "system", "lockstep");
    ls_json_set_text(o, "version", LS_VERSION);
    ls_json_set_integer(o, "parameters", (int64_t)f->parameters);
    ls_json_set_text(o, "dtype", ls_dtype_name(f->type));
    ls_json_set_integer(o, "threads", f->nthreads);
    if (*f->device) ls_json_set_text(o, "device", f->device);
    ls_json_set_integer(o, "tokens", ntokens);
    ls_json_set_integer(o, "prompt_tokens", f->nprompt);
    ls_json_set_number(o, "prompt_seconds", f->prompt_s);
    ls_json_set_number(o, "token_seconds", f->token_s);
    ls_json_set_number(o, "decode_seconds", f->decode_s);
    ls_json_set_number(o, "tokens_per_s", 1 / f->token_s);
    if (!*f->device) {
        ls_json_set_integer(o, "weights_nbytes", (int64_t)f->weights_nbytes);
        ls_json_set_integer(o, "cache_nbytes", (int64_t)f->cache_nbytes);
        ls_json_set_number(o, "read_bytes_per_s", read_by_token(f));
        ls_json_set_number(o, "memory_bytes_per_s", f->read_per_s);
    }
    ls_print_json(o);
}

static int run_generate(const ls_args *a) {
    int64_t ntokens = 64, nprompt = 8;
    if (!options_belong(a, GENERATE)) return CLI_USAGE;
    if (a->nwords < 2) {
        usage("generate: CONFIG.yaml or a model is missing");
        return CLI_USAGE;
    }
    if (!cli_integer(&cmd_bench, a, TOKENS, 1, 1000000, &ntokens) ||
        !cli_integer(&cmd_bench, a, PROMPT, 1, 1000000, &nprompt))
        return CLI_USAGE;
    const ls_bench_generate_request q = {.config = a->words[1],
                                         .set = a->options[SET].values,
                                         .nset = a->options[SET].n,
                                         .nprompt = nprompt,
                                         .ntokens = ntokens,
                                         .device = cli_device(a, DEVICE)};
    ls_bench_generate f;
    ls_error e = {0};
    if (ls_bench_generate_run(&q, &f, &e) != LS_OK) return cli_fail(&e);
    (cli_given(a, JSON) ? print_generate_json : print_generate)(&f, ntokens);
    return 0;
}

/* ---- comm ---- */

/* Finds the option's value among the names; leaves *place_p unchanged if the option is not
 * given. */
static bool read_name(const ls_args *a, int option, const char *const *names, size_t n,
                      int *place_p) {
    const char *text = cli_value(a, option);
    int place = text ? bench_find(names, n, text) : *place_p;
    if (place >= 0) {
        *place_p = place;
        return true;
    }
    ls_buf all = {0};
    for (size_t i = 0; i < n; i++) ls_buf_printf(&all, "%s%s", i ? ", " : "", names[i]);
    usage("--%s: '%.40s' is not one of %s", cmd_bench.options[option].name, text, all.data);
    ls_buf_free(&all);
    return false;
}

/* The operation, the type of its elements and the reduction. */
static bool read_operation(const ls_args *a, bench_request *q) {
    int op = BENCH_ALL_REDUCE, dtype = BENCH_F32, redop = BENCH_SUM;
    if (!read_name(a, OP, bench_op_names, BENCH_N_OPS, &op) ||
        !read_name(a, DTYPE, bench_dtype_names, BENCH_N_DTYPES, &dtype) ||
        !read_name(a, REDOP, bench_redop_names, BENCH_N_REDOPS, &redop))
        return false;
    q->op = (bench_op)op;
    q->dtype = (bench_dtype)dtype;
    q->redop = (bench_redop)redop;
    if (cli_given(a, REDOP) && !bench_reduces(q->op))
        return usage("--redop: %s reduces nothing", bench_op_names[op]);
    if (redop == BENCH_AVG && (q->op == BENCH_SCAN || q->op == BENCH_EXSCAN))
        return usage("--redop: %s has no averages", bench_op_names[op]);
    const char *takes = ls_bench_comm_misfit(q->redop, q->dtype);
    if (takes && bench_reduces(q->op))
        return usage("--redop: no %s of %s; it is for %s", bench_redop_names[redop],
                     bench_dtype_names[dtype], takes);
    return true;
}

static bool read_place(const ls_args *a, ls_bench_comm *o) {
    int place = 0;
    if (!read_name(a, PLACE, places, NPLACES, &place)) return false;
    o->out_of_place = place != 2;
    o->in_place = place != 1;
    bool has = (o->out_of_place && ls_bench_comm_has_out_of_place(o->request.op)) ||
               (o->in_place && ls_bench_comm_has_in_place(o->request.op));
    return has || usage("--place: %s is not possible %s", bench_op_names[o->request.op],
                        o->in_place ? "in place" : "out of place");
}

static bool read_algorithm(const ls_args *a, ls_bench_comm *o) {
    const char *name = cli_value(a, ALGORITHM), *op = bench_op_names[o->request.op];
    const ls_algorithm *algorithm = name ? ls_algorithm_named(name) : NULL;
    ls_collective what = LS_CALL_BARRIER;
    if (!name) return true;
    if (!ls_collective_from_name(op, &what)) return usage("--algorithm: there is none for %s", op);
    o->all = strcmp(name, "all") == 0;
    bool other = strcmp(name, "native") == 0 || strcmp(name, "shared") == 0;
    if (o->all) return true;
    if (other || (algorithm && ls_algorithm_has(algorithm, what))) {
        o->algorithm = name;
        return true;
    }
    ls_buf all = {0};
    for (int i = 0; ls_algorithms[i]; i++)
        if (ls_algorithm_has(ls_algorithms[i], what))
            ls_buf_printf(&all, " %s", ls_algorithms[i]->name);
    usage("--algorithm: '%.40s' %s; %s has%s native shared all", name,
          algorithm ? "does not support this operation" : "does not exist", op, all.data);
    ls_buf_free(&all);
    return false;
}

/* The number of workers and how they are started. Under another launcher, the launcher decides
 * their number. */
static bool read_workers(const ls_args *a, ls_bench_comm *o) {
    int transport = 0, cores = ls_cores();
    int64_t workers = cores < 2 ? 2 : cores;
    ls_environment env;
    if (!read_name(a, TRANSPORT, transports, NTRANSPORTS, &transport) ||
        !cli_integer(&cmd_bench, a, WORKERS, 1, 4096, &workers))
        return false;
    bool started = ls_environment_read(&env, NULL) == LS_OK && env.size > 1;
    const char *usual = getenv("LOCKSTEP_TRANSPORT");
    if (cli_given(a, TRANSPORT))
        o->transport = transports[transport];
    else if (!started)
        o->transport = usual && *usual ? usual : transports[transport];
    if (started && o->busy)
        return usage("--busy: bench must start the workers itself; here %s gives %d",
                     ls_launcher_title(env.launcher), env.size);
    o->workers = started && !cli_given(a, WORKERS) ? 0 : (int)workers;
    return true;
}

/* Drops default sizes that do not fit into memory; given sizes that don't are refused later, with
 * the figures. */
static bool read_sizes(const ls_args *a, ls_bench_comm *o) {
    const char *text = cli_value(a, SIZES);
    bench_request *q = &o->request;
    if (bench_parse_sizes(text ? text : default_sizes, q) != 0)
        return usage("--sizes: '%.60s' is not a list like 8,1K,64M of at most %d sizes", text,
                     BENCH_MAX_SIZES);
    while (!text && q->n_sizes > 1 &&
           ls_bench_comm_fits(o, o->workers, 2 * q->sizes[q->n_sizes - 1], NULL) != LS_OK)
        q->n_sizes--;
    if (q->op == BENCH_BARRIER) q->n_sizes = 1;
    return true;
}

/* Measures while o->busy other processes compute. */
static int run_measure(const ls_bench_comm *o) {
    ls_busy busy;
    ls_error e;
    if (ls_busy_start(o->busy, &busy, &e) != LS_OK) return cli_fail(&e);
    int code = ls_bench_comm_run(o);
    ls_busy_end(&busy);
    return code;
}

static int run_comm(const ls_args *a) {
    ls_bench_comm o = {.private_buffers = cli_given(a, PRIVATE),
                       .json = cli_given(a, JSON),
                       .insecure = cli_given(a, INSECURE),
                       .save = cli_value(a, SAVE),
                       .view = &cli_bench_view};
    int64_t rounds = 20, busy = 0;
    if (!options_belong(a, COMM) || !cli_integer(&cmd_bench, a, BUSY, 0, LS_BUSY_MOST, &busy))
        return CLI_USAGE;
    o.busy = (int)busy;
    if (a->nwords > 1) {
        usage("comm: '%.60s' is one argument too many", a->words[1]);
        return CLI_USAGE;
    }
    if (!read_operation(a, &o.request) || !read_place(a, &o) || !read_algorithm(a, &o) ||
        !read_workers(a, &o) || !read_sizes(a, &o) ||
        !cli_integer(&cmd_bench, a, ROUNDS, 1, 1000000, &rounds))
        return CLI_USAGE;
    o.request.repeat = (int)rounds;
    if (o.insecure && o.transport && strcmp(o.transport, "tcp") != 0) {
        usage("--insecure: it is for --transport tcp, not for %s", o.transport);
        return CLI_USAGE;
    }
    if (o.insecure) cli_make_insecure();
    return run_measure(&o);
}

/* ---- of a device ---- */

/* Those that act only with --device, or do not act with it. */
static bool device_options(const ls_args *a, const char *bench) {
    bool device = cli_given(a, DEVICE);
    if (cli_given(a, SMALL) && !device) return usage("%s: --small belongs to --device", bench);
    if (device && cli_given(a, DTYPE))
        return usage("%s: --dtype does not go with --device: its kernels are measured in f32",
                     bench);
    return true;
}

static int run_device_kernels(const ls_args *a, const ls_bench_kernels *read) {
    ls_bench_device o = {.device = cli_value(a, DEVICE),
                         .nrows = 1,
                         .rounds = read->rounds,
                         .small = cli_given(a, SMALL)};
    if (cli_given(a, ROWS)) {
        memcpy(o.rows, read->rows, sizeof o.rows);
        o.nrows = read->nrows;
    }
    return cli_bench_device_kernels(&o, cli_given(a, JSON));
}

static int run_device_machine(const ls_args *a, int rounds, const ls_machine_prices *p) {
    const ls_bench_device o = {
        .device = cli_value(a, DEVICE), .rounds = rounds, .small = cli_given(a, SMALL)};
    const char *save = cli_value(a, SAVE);
    if (save && cli_given(a, JSON)) {
        usage("machine: --json does not go with --save, whose file has the figures");
        return CLI_USAGE;
    }
    return save ? cli_bench_machine_device(&o, save, p)
                : cli_bench_device_machine(&o, cli_given(a, JSON));
}

/* ---- kernels ---- */

static int run_kernels(const ls_args *a) {
    ls_bench_kernels o = {0};
    ls_error e = {0};
    char *why = NULL;
    int64_t rounds = 5;
    if (!options_belong(a, KERNELS)) return CLI_USAGE;
    if (a->nwords > 1) {
        usage("kernels: '%.60s' is one argument too many", a->words[1]);
        return CLI_USAGE;
    }
    if (!device_options(a, "kernels")) return CLI_USAGE;
    if (!cli_bench_kernels_read(cli_given(a, ROWS) ? cli_value(a, ROWS) : "256,1024",
                                cli_given(a, DTYPE) ? cli_value(a, DTYPE) : "f32", &o, &why)) {
        usage("%s", why);
        free(why);
        return CLI_USAGE;
    }
    if (!cli_integer(&cmd_bench, a, ROUNDS, 1, LS_BENCH_ROUNDS, &rounds)) return CLI_USAGE;
    o.rounds = (int)rounds;
    if (cli_given(a, DEVICE)) return run_device_kernels(a, &o);
    return cli_bench_kernels_run(&o, cli_given(a, JSON), &e) == LS_OK ? 0 : cli_fail(&e);
}

static int run_machine(const ls_args *a) {
    if (!options_belong(a, MACHINE)) return CLI_USAGE;
    if (a->nwords > 1) {
        usage("machine: '%.60s' is one argument too many", a->words[1]);
        return CLI_USAGE;
    }
    int64_t rounds = 5;
    if (!device_options(a, "machine") ||
        !cli_integer(&cmd_bench, a, ROUNDS, 1, LS_BENCH_ROUNDS, &rounds))
        return CLI_USAGE;
    if (!cli_given(a, DEVICE) && (cli_given(a, JSON) || cli_given(a, ROUNDS))) {
        usage("machine: --json and --rounds belong to --device");
        return CLI_USAGE;
    }
    ls_machine_prices p = {0};
    const char *currency = cli_value(a, CURRENCY);
    if (!cli_real(&cmd_bench, a, PRICE, 0, 1e9, &p.worker_hour) ||
        !cli_real(&cmd_bench, a, WATTS, 0, 1e9, &p.watts))
        return CLI_USAGE;
    bool prices = p.worker_hour > 0 || p.watts > 0 || currency;
    if (prices && !cli_given(a, SAVE)) {
        usage("machine: --price, --watts and --currency are written to a file: add --save FILE");
        return CLI_USAGE;
    }
    if (currency && (strlen(currency) >= sizeof p.currency || strpbrk(currency, "\"\\\n"))) {
        usage("machine: --currency: '%.40s' is not a currency such as USD", currency);
        return CLI_USAGE;
    }
    if (currency) snprintf(p.currency, sizeof p.currency, "%s", currency);
    if (cli_given(a, DEVICE)) return run_device_machine(a, (int)rounds, &p);
    return cli_bench_machine_run(cli_value(a, SAVE), &p);
}

static int run(const ls_args *a) {
    if (strcmp(a->words[0], "train") == 0) return run_train(a);
    if (strcmp(a->words[0], "generate") == 0) return run_generate(a);
    if (strcmp(a->words[0], "comm") == 0) return run_comm(a);
    if (strcmp(a->words[0], "kernels") == 0) return run_kernels(a);
    if (strcmp(a->words[0], "machine") == 0) return run_machine(a);
    ls_log("bench: there is no '%s'; use train, generate, comm, kernels or machine", a->words[0]);
    return CLI_USAGE;
}

const ls_command cmd_bench = {
    .name = "bench",
    .words = "train|generate CONFIG.yaml|comm|kernels|machine",
    .min_words = 1,
    .max_words = 2,
    .summary = "measure the speed of training, generating, collectives, kernels, or the machine",
    .about =
        "train  tokens/s, model FLOP/s as a share of the machine's measured peak of\n"
        "       multiply-adds, and the seconds of a step by kind of action; on random tokens;\n"
        "       writes nothing but the timeline that --trace asks for\n"
        "generate  tokens/s of a published model, or of one with random weights, the\n"
        "       bytes read per token, and their share of the memory's speed, measured in\n"
        "       alternation\n"
        "comm   time and bandwidth of a collective for each size, in nccl-tests' columns; the\n"
        "       results are checked. It starts its own workers; under `lockstep run` or mpirun it\n"
        "       is one of the workers\n"
        "kernels  matrix products and passes over memory on one core, as shares of its peak and\n"
        "       of its memory's speed\n"
        "machine  the speed of this machine's kernels, shared memory and TCP, for `lockstep plan\n"
        "       --machine`. Takes about 45 seconds of processor time, longer on a busy machine;\n"
        "       nothing else should run meanwhile\n"
        "With --device, kernels are all that training a GPT-2 runs, on the device; machine "
        "measures\n"
        "its memory, copies to and from it, and products, which --save adds to the machine's file",
    .options =
        {[WORKERS] = {"workers", 'n', "N",
                      "number of workers (default: one per core; comm: at least 2)"},
         [STEPS] = {"steps", 0, "N",
                    "train: steps to measure, after two warm-up steps (default: 10)"},
         [SET] = {"set", 0, "KEY=VALUE", "train, generate: set a key of the config; repeatable"},
         [OP] = {"op", 0, "NAME",
                 "comm: all_reduce (default), reduce_scatter, all_gather, broadcast, reduce, "
                 "gather, scatter, all_to_all, gather_v, scatter_v, all_to_all_v, scan, exscan or "
                 "barrier"},
         [SIZES] = {"sizes", 0, "LIST",
                    "comm: bytes per worker's buffer, e.g. 8,1K,64M (default: 8 to 256M)"},
         [DTYPE] = {"dtype", 0, "NAME",
                    "comm: f32 (default), f64, bf16, f16, i64, i32, i8, u8, u16, u32, u64, i16, "
                    "bool, f64_i64, "
                    "f32_i32, i64_i64 or i32_i32; kernels: f32, or bf16 for matrix products alone"},
         [REDOP] =
             {"redop", 0, "NAME",
              "comm: sum (default), avg, prod, min, max, land, lor, lxor, band, bor, bxor, minloc "
              "or maxloc"},
         [PLACE] = {"place", 0, "NAME",
                    "comm: the result is written out of place (out), in place (in), or both "
                    "(default)"},
         [TRANSPORT] = {"transport", 0, "NAME",
                        "comm: shm (default: processes), thread, tcp or mpi"},
         [ALGORITHM] = {"algorithm", 0, "NAME",
                        "comm: use this one, e.g. ring (default: the group chooses); native: MPI's "
                        "own, in any order of summation; all: each of them in alternation, "
                        "beside the chosen one"},
         [PRIVATE] = {"private", 0, NULL, "comm: private buffers, which other workers can't read"},
         [ROUNDS] =
             {"rounds", 0, "N",
              "comm: times that each size is measured (default: 20); kernels: times that each "
              "product is (default: 5), and machine with --device"},
         [JSON] =
             {"json", 0, NULL,
              "train, generate, comm, kernels, and machine with --device: one JSON object a line"},
         [INSECURE] = {"insecure", 0, NULL,
                       "comm: TCP without a key and encryption: anyone who reaches a port can "
                       "join, read and change what is sent"},
         [SAVE] = {"save", 0, "FILE",
                   "comm: measure the links (tcp, mpi) thoroughly and write their speeds, which "
                   "LOCKSTEP_LINKS=FILE reads; machine: write everything that was measured, with "
                   "--device also to a file that has the machine already"},
         [TRACE] = {"trace", 0, "FILE",
                    "train: write a timeline of three more steps to FILE.json (for Perfetto) or "
                    "FILE.svg"},
         [EXPORT] = {"export", 0, "DIR",
                     "train: write the initial weights, the samples of each step (those of the "
                     "config's files, or random tokens for a text) and the settings, so that "
                     "another program can train on them"},
         [ROWS] = {"rows", 0, "LIST",
                   "kernels: numbers of rows of activations (default: 256,1024; of a device 4096)"},
         [TOKENS] = {"tokens", 0, "N", "generate: tokens to measure (default: 64)"},
         [PROMPT] = {"prompt", 0, "N", "generate: tokens of the prompt (default: 8)"},
         [BUSY] = {"busy", 0, "N",
                   "comm: measure while N other processes, which it starts and ends, compute all "
                   "the time (default: 0)"},
         [PRICE] = {"price", 0, "P",
                    "machine: the price of a worker for an hour, for `lockstep plan --budget`"},
         [CURRENCY] = {"currency", 0, "NAME", "machine: of --price, e.g. USD"},
         [WATTS] = {"watts", 0, "W", "machine: the power of a worker"},
         [DEVICE] = {"device", 0, "DEVICE",
                     "train, generate, kernels, machine: measure this device, e.g. cuda or c, in "
                     "place of the cores"},
         [SMALL] = {"small", 0, NULL,
                    "kernels, machine: with --device, sizes of a small model, as they are on "
                    "devices that the cores run"}},
    .run = run,
};
