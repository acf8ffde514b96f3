/* bench_compare.c - see bench_compare.h. */
#include "cli/bench_compare.h"

#include <stdarg.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cores.h"
#include "base/json.h"
#include "base/log.h"
#include "base/print.h"
#include "cli/child.h"
#include "cli/cli.h"

enum { OPENMPI, MPICH, GLOO, FLOOR, MAX_WORDS = 40, WHY = 256 };

const char *const cli_peer_names[CLI_PEERS] = {"openmpi", "mpich", "gloo", "floor"};

/* The results of one system. */
typedef struct measured {
    char name[32], version[32];
    bool failed;
    char why[WHY];
    double medians[BENCH_MAX_SIZES][CLI_PASSES]; /* seconds */
    int npasses[BENCH_MAX_SIZES];                /* number of medians present */
    char variant[BENCH_MAX_SIZES][48];           /* of the last pass */
    size_t nbytes[BENCH_MAX_SIZES];
    double wrong;
} measured;

typedef struct comparison {
    const cli_bench_comm *o;
    char program[4096];              /* the path of this program */
    char folder[4096];               /* the directory of the peers' programs */
    int rounds;                      /* in a pass */
    measured systems[1 + CLI_PEERS]; /* ours first */
    int peers[CLI_PEERS], nsystems;
} comparison;

/* ---- command lines ---- */

typedef struct words {
    char *argv[MAX_WORDS + 1];
    int n;
} words;

static void add(words *w, const char *word) {
    if (w->n < MAX_WORDS) w->argv[w->n++] = ls_strdup(word);
}

static void add_number(words *w, int number) {
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    add(w, text);
}

static void free_words(words *w) {
    for (int i = 0; i < w->n; i++) free(w->argv[i]);
}

static void add_sizes(words *w, const bench_request *q) {
    ls_buf text = {0};
    for (int i = 0; i < q->n_sizes; i++) ls_buf_printf(&text, "%s%zu", i ? "," : "", q->sizes[i]);
    add(w, text.data);
    ls_buf_free(&text);
}

/* Adds the arguments of bench_parse(), which all peers take. */
static void add_request(words *w, const comparison *c) {
    const bench_request *q = &c->o->request;
    add(w, bench_op_names[q->op]);
    add(w, bench_dtype_names[q->dtype]);
    add_number(w, c->rounds);
    add_sizes(w, q);
    add(w, bench_redop_names[q->redop]);
}

/* Peers are measured in place, except operations that move blocks between two buffers. */
static const char *place_of(bench_op op) {
    return cli_bench_comm_has_in_place(op) && op != BENCH_ALL_TO_ALL ? "in" : "out";
}

static void our_words(words *w, const comparison *c) {
    const cli_bench_comm *o = c->o;
    const char *const options[][2] = {{"--op", bench_op_names[o->request.op]},
                                      {"--dtype", bench_dtype_names[o->request.dtype]},
                                      {"--place", place_of(o->request.op)},
                                      {"--transport", o->transport},
                                      {"--algorithm", o->algorithm}};
    add(w, c->program);
    add(w, "bench");
    add(w, "comm");
    add(w, "--json");
    if (o->private_buffers) add(w, "--private");
    if (o->insecure) add(w, "--insecure");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (!options[i][1]) continue;
        add(w, options[i][0]);
        add(w, options[i][1]);
    }
    if (bench_reduces(o->request.op)) {
        add(w, "--redop");
        add(w, bench_redop_names[o->request.redop]);
    }
    add(w, "--workers");
    add_number(w, o->workers);
    add(w, "--rounds");
    add_number(w, c->rounds);
    add(w, "--sizes");
    add_sizes(w, &o->request);
}

static bool tcp(const cli_bench_comm *o) { return strcmp(o->transport, "tcp") == 0; }

static void peer_words(words *w, const comparison *c, int peer, const char *program) {
    int workers = c->o->workers;
    if (peer == FLOOR) {
        add(w, program);
        add(w, tcp(c->o) ? "tcp" : "shm");
        add_sizes(w, &c->o->request);
        add_number(w, c->rounds);
        return;
    }
    if (peer == GLOO) {
        add(w, program);
        add(w, "-n");
        add_number(w, workers);
    } else {
        add(w, peer == OPENMPI ? "mpirun.openmpi" : "mpirun.mpich");
        if (peer == OPENMPI) {
            add(w, "--allow-run-as-root");
            add(w, "--oversubscribe");
        }
        if (peer == OPENMPI && tcp(c->o)) { /* else it uses shared memory */
            const char *const only_tcp[] = {"--mca", "pml", "ob1", "--mca", "btl", "tcp,self"};
            for (size_t i = 0; i < sizeof only_tcp / sizeof *only_tcp; i++) add(w, only_tcp[i]);
        }
        add(w, "-n");
        add_number(w, workers);
        add(w, program);
    }
    add_request(w, c);
}

/* ---- results ---- */

static void set_failed(measured *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void set_failed(measured *m, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(m->why, sizeof m->why, fmt, args);
    va_end(args);
    m->failed = true;
}

static void copy_text(const ls_json *line, const char *key, char *to, size_t nbytes) {
    const char *text = ls_json_text(ls_json_get(line, key));
    if (text) snprintf(to, nbytes, "%s", text);
}

static bool text_is(const ls_json *line, const char *key, const char *want) {
    const char *text = ls_json_text(ls_json_get(line, key));
    return text && strcmp(text, want) == 0;
}

/* Reads a line that the program has printed for one of the sizes. taken: the sizes of this pass
 * that already have a line; a size may occur twice. */
static void take_line(const comparison *c, measured *m, const ls_json *line, bool *taken) {
    const bench_request *q = &c->o->request;
    int64_t asked, nbytes;
    double median_s, wrong;
    /* Over TCP, the floor's exchange has two buffers, and counts as an all-reduce nevertheless. */
    bool place = text_is(line, "place", place_of(q->op)) || strncmp(m->name, "floor", 5) == 0;
    if (!place || !text_is(line, "op", bench_op_names[q->op]) ||
        !ls_json_integer(ls_json_get(line, "asked"), &asked) ||
        !ls_json_integer(ls_json_get(line, "nbytes"), &nbytes) ||
        !ls_json_number(ls_json_get(line, "median_s"), &median_s) ||
        !ls_json_number(ls_json_get(line, "wrong"), &wrong))
        return;
    for (int i = 0; i < q->n_sizes; i++) {
        if (taken[i] || q->sizes[i] != (size_t)asked) continue;
        taken[i] = true;
        m->medians[i][m->npasses[i]++] = median_s;
        m->nbytes[i] = (size_t)nbytes;
        m->wrong += wrong;
        copy_text(line, "variant", m->variant[i], sizeof m->variant[i]);
        copy_text(line, "system", m->name, sizeof m->name);
        copy_text(line, "version", m->version, sizeof m->version);
        return;
    }
}

static void take_output(const comparison *c, measured *m, const ls_buf *out) {
    bool taken[BENCH_MAX_SIZES] = {false};
    int n = 0;
    const char *end = out->data + out->len;
    for (const char *line = out->data; line && line < end;) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (!stop) stop = end;
        ls_json *j = NULL;
        if (*line == '{' && ls_json_parse(line, (size_t)(stop - line), "line", &j, NULL) == LS_OK) {
            take_line(c, m, j, taken);
            ls_json_free(j);
        }
        line = stop + 1;
    }
    for (int i = 0; i < c->o->request.n_sizes; i++) n += taken[i];
    if (n == 0) set_failed(m, "it printed no result");
}

/* Copies the first line with text; after it mpirun prints frames and explanations. */
static void first_line(const ls_buf *err, char *text, size_t nbytes) {
    const char *s = err->data ? err->data : "";
    s += strspn(s, "-= \t\r\n");
    snprintf(text, nbytes, "%.*s", (int)strcspn(s, "\r\n"), s);
}

/* LS_EABORT: this process must exit; all other errors are recorded in m. */
static ls_status run_words(const comparison *c, measured *m, words *w, int *code_p, ls_error *e) {
    ls_buf out = {0}, err = {0};
    char said[WHY - 64];
    int code = 0;
    w->argv[w->n] = NULL;
    ls_status s = cli_child_run(w->argv, CLI_PEER_LIMIT_S, &out, &err, &code, e);
    first_line(&err, said, sizeof said);
    if (s == LS_EABORT)
        *code_p = code;
    else if (s != LS_OK)
        set_failed(m, "%.200s", e->msg);
    else if (code)
        set_failed(m, "exit code %d%s%s", code, *said ? ": " : "", said);
    else
        take_output(c, m, &out);
    ls_buf_free(&out);
    ls_buf_free(&err);
    free_words(w);
    return s == LS_EABORT ? s : LS_OK;
}

/* ---- one run of one system ---- */

static ls_status run_ours(comparison *c, int *code_p, ls_error *e) {
    words w = {.n = 0};
    our_words(&w, c);
    return run_words(c, &c->systems[0], &w, code_p, e);
}

static bool floor_can(const cli_bench_comm *o) {
    const bench_request *q = &o->request;
    return o->workers == 2 && q->op == BENCH_ALL_REDUCE && q->dtype == BENCH_F32 &&
           q->redop == BENCH_SUM;
}

static ls_status run_peer(comparison *c, int i, int *code_p, ls_error *e) {
    measured *m = &c->systems[i];
    int peer = c->peers[i - 1];
    words w = {.n = 0};
    if (m->failed) return LS_OK;
    if (peer == FLOOR && !floor_can(c->o)) {
        set_failed(m, "it only measures all_reduce of f32 sum with 2 workers");
        return LS_OK;
    }
    char *program =
        ls_format("%s/%s%s", c->folder, peer == FLOOR ? "" : "peer-", cli_peer_names[peer]);
    ls_status s = LS_OK;
    if (access(program, X_OK) != 0)
        set_failed(m, "%.180s does not exist; `make bench` builds it", program);
    else {
        peer_words(&w, c, peer, program);
        s = run_words(c, m, &w, code_p, e);
    }
    free(program);
    return s;
}

/* ---- output ---- */

/* Returns 0 if the system has no result for that size. */
static double median_s(const measured *m, int size) {
    double sorted[CLI_PASSES];
    int n = m->npasses[size];
    if (m->failed || n == 0) return 0;
    memcpy(sorted, m->medians[size], (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, bench_compare);
    return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

static double algbw(const measured *m, int size) {
    double s = median_s(m, size);
    return s > 0 ? (double)m->nbytes[size] / s * 1e-9 : 0;
}

static void print_head(const comparison *c) {
    const bench_request *q = &c->o->request;
    struct utsname host = {.nodename = "?"};
    uname(&host);
    ls_print("# %s %s%s%s, %d workers, transport %s, %s, host %s, cores %d\n",
             bench_op_names[q->op], bench_dtype_names[q->dtype], bench_reduces(q->op) ? " " : "",
             bench_reduces(q->op) ? bench_redop_names[q->redop] : "", c->o->workers,
             c->o->transport,
             c->o->private_buffers ? "buffers of the program" : "buffers of the group",
             host.nodename, ls_cores());
    if (c->o->busy)
        ls_print("# beside %d busy process%s\n", c->o->busy, c->o->busy > 1 ? "es" : "");
    ls_print("# systems alternate, %d passes of %d rounds; median of the passes' medians\n",
             CLI_PASSES, c->rounds);
    ls_print("# x: that system's bandwidth / ours; below 1, ours is faster\n#\n");
}

static void print_columns(const comparison *c) {
    char name[72];
    ls_print("# %10s", "size");
    for (int i = 0; i < c->nsystems; i++) {
        const measured *m = &c->systems[i];
        if (m->failed) continue;
        snprintf(name, sizeof name, "%s %s", m->name, m->version);
        ls_print(i ? "  | %27s" : "  %19s", name);
    }
    ls_print("\n# %10s", "(B)");
    for (int i = 0; i < c->nsystems; i++)
        if (!c->systems[i].failed) {
            ls_print(i ? "  | %10s %8s" : "  %10s %8s", "time(us)", "GB/s");
            if (i) ls_print(" %7s", "x");
        }
    ls_print("\n");
}

static void print_row(const comparison *c, int size) {
    const measured *ours = &c->systems[0];
    ls_print("%12zu", ours->nbytes[size]);
    for (int i = 0; i < c->nsystems; i++) {
        const measured *m = &c->systems[i];
        double s = median_s(m, size);
        if (m->failed) continue;
        if (s > 0)
            ls_print(i ? "  | %10.2f %8.4g" : "  %10.2f %8.4g", s * 1e6, algbw(m, size));
        else
            ls_print("  | %10s %8s", "-", "-");
        if (i && s > 0) ls_print(" %7.3g", median_s(ours, size) / s);
        if (i && s <= 0) ls_print(" %7s", "-");
    }
    ls_print("\n");
}

static void print_table(const comparison *c) {
    print_head(c);
    print_columns(c);
    for (int i = 0; i < c->o->request.n_sizes; i++) print_row(c, i);
    ls_print("#\n");
    for (int i = 0; i < c->nsystems; i++) {
        const measured *m = &c->systems[i];
        if (m->failed)
            ls_print("# %s: %s\n", m->name, m->why);
        else if (m->wrong > 0)
            ls_print("# %s: %.0f wrong elements\n", m->name, m->wrong);
    }
}

static ls_json *json_of(const measured *m, const measured *ours, int size) {
    ls_json *j = ls_json_new_object();
    double s = median_s(m, size);
    ls_json_set_text(j, "system", m->name);
    if (m->failed) {
        ls_json_set_text(j, "failed", m->why);
        return j;
    }
    ls_json_set_text(j, "version", m->version);
    ls_json_set_text(j, "variant", m->variant[size]);
    ls_json_set(j, "median_s", s > 0 ? ls_json_new_number(s) : ls_json_new_null());
    ls_json_set(j, "algbw", s > 0 ? ls_json_new_number(algbw(m, size)) : ls_json_new_null());
    if (m != ours)
        ls_json_set(j, "x",
                    s > 0 ? ls_json_new_number(median_s(ours, size) / s) : ls_json_new_null());
    ls_json_set_integer(j, "passes", m->npasses[size]);
    ls_json_set_number(j, "wrong", m->wrong);
    return j;
}

/* Prints one object for a size. */
static void print_json(const comparison *c, int size) {
    const bench_request *q = &c->o->request;
    const measured *ours = &c->systems[0];
    ls_json *j = ls_json_new_object(), *peers = ls_json_new_array();
    ls_json_set_text(j, "op", bench_op_names[q->op]);
    ls_json_set_text(j, "dtype", bench_dtype_names[q->dtype]);
    ls_json_set_text(j, "redop", bench_reduces(q->op) ? bench_redop_names[q->redop] : "none");
    ls_json_set_integer(j, "workers", c->o->workers);
    ls_json_set_text(j, "place", place_of(q->op));
    ls_json_set_integer(j, "asked", (int64_t)q->sizes[size]);
    ls_json_set_integer(j, "nbytes", (int64_t)ours->nbytes[size]);
    ls_json_set_integer(j, "rounds", c->rounds);
    ls_json_set(j, "ours", json_of(ours, ours, size));
    for (int i = 1; i < c->nsystems; i++) ls_json_push(peers, json_of(&c->systems[i], ours, size));
    ls_json_set(j, "peers", peers);
    ls_print_json(j);
    ls_json_free(j);
}

/* ---- all passes ---- */

static ls_status run_passes(comparison *c, int *code_p, ls_error *e) {
    for (int pass = 0; pass < CLI_PASSES && !c->systems[0].failed; pass++) {
        LS_TRY(run_ours(c, code_p, e));
        for (int i = 1; i < c->nsystems && !c->systems[0].failed; i++)
            LS_TRY(run_peer(c, i, code_p, e));
    }
    return LS_OK;
}

static ls_status find_programs(comparison *c, ls_error *e) {
    ssize_t n = readlink("/proc/self/exe", c->program, sizeof c->program - 1);
    if (n <= 0) return ls_fail(e, LS_EIO, "/proc/self/exe can't be read: %s", strerror(errno));
    char *slash = memrchr(c->program, '/', (size_t)n);
    int length = slash ? (int)(slash - c->program) : 0;
    snprintf(c->folder, sizeof c->folder, "%.*s/bench", length > 4000 ? 4000 : length, c->program);
    return LS_OK;
}

static int report(const comparison *c) {
    const measured *ours = &c->systems[0];
    if (ours->failed) {
        ls_log("bench comm: %s", ours->why);
        return CLI_FAILED;
    }
    if (!c->o->json)
        print_table(c);
    else
        for (int i = 0; i < c->o->request.n_sizes; i++) print_json(c, i);
    return ours->wrong > 0 ? CLI_FAILED : 0;
}

int cli_bench_compare_run(const cli_bench_comm *o, const int *peers, int npeers) {
    comparison *c = LS_NEW(comparison);
    ls_error e = {0};
    int code = CLI_FAILED;
    c->o = o;
    c->rounds = o->request.repeat / CLI_PASSES;
    if (c->rounds < CLI_LEAST_ROUNDS) c->rounds = CLI_LEAST_ROUNDS;
    c->nsystems = 1 + npeers;
    snprintf(c->systems[0].name, sizeof c->systems[0].name, "lockstep");
    for (int i = 0; i < npeers; i++) {
        c->peers[i] = peers[i];
        snprintf(c->systems[1 + i].name, sizeof c->systems[0].name, "%s", cli_peer_names[peers[i]]);
    }
    ls_status s = find_programs(c, &e);
    if (s == LS_OK) s = run_passes(c, &code, &e);
    if (s == LS_OK)
        code = report(c);
    else
        ls_log("bench comm: %s", e.msg);
    free(c);
    return code;
}
