/* bench_comm.c - see bench_comm.h. */
#include "perf/bench_comm.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "lockstep/group.h"
#include "net/launch/environment.h"
#include "net/launch/launch.h"
#include "perf/bench_choice.h"
#include "tensor/dtype.h"

/* Arena bytes that a group needs beside the buffers. */
static const size_t ARENA_REST = (size_t)64 << 20;

/* Exit codes. */
enum { FAILED = 1, USAGE = 2 };

/* The state of one worker. */
typedef struct worker {
    const ls_bench_comm *o;
    ls_group *group;      /* for barriers */
    ls_group *measured;   /* its calls are timed */
    double *times;        /* [rounds] */
    size_t *counts;       /* [workers], for the _v operations */
    atomic_int *reported; /* shared by all: a worker has reported an error */
    char variant[64];
    double wrong, busbw; /* sums over the sizes */
    int nbusbw;
    int code;
} worker;

static const ls_dtype dtypes[] = {
    [BENCH_F32] = LS_F32,         [BENCH_F64] = LS_F64,         [BENCH_BF16] = LS_BF16,
    [BENCH_F16] = LS_F16,         [BENCH_I64] = LS_I64,         [BENCH_I32] = LS_I32,
    [BENCH_I8] = LS_I8,           [BENCH_U8] = LS_U8,           [BENCH_U16] = LS_U16,
    [BENCH_U32] = LS_U32,         [BENCH_U64] = LS_U64,         [BENCH_I16] = LS_I16,
    [BENCH_BOOL] = LS_BOOL,       [BENCH_F64_I64] = LS_F64_I64, [BENCH_F32_I32] = LS_F32_I32,
    [BENCH_I64_I64] = LS_I64_I64, [BENCH_I32_I32] = LS_I32_I32};
static const ls_op redops[] = {
    [BENCH_SUM] = LS_SUM,      [BENCH_AVG] = LS_AVG,   [BENCH_PROD] = LS_PROD,
    [BENCH_MIN] = LS_MIN,      [BENCH_MAX] = LS_MAX,   [BENCH_LAND] = LS_LAND,
    [BENCH_LOR] = LS_LOR,      [BENCH_LXOR] = LS_LXOR, [BENCH_BAND] = LS_BAND,
    [BENCH_BOR] = LS_BOR,      [BENCH_BXOR] = LS_BXOR, [BENCH_MINLOC] = LS_MINLOC,
    [BENCH_MAXLOC] = LS_MAXLOC};

const char *ls_bench_comm_misfit(bench_redop redop, bench_dtype dtype) {
    return ls_op_takes(redops[redop], dtypes[dtype]) ? NULL : ls_op_takes_what(redops[redop]);
}

bool ls_bench_comm_has_out_of_place(bench_op op) {
    return op != BENCH_BROADCAST && op != BENCH_BARRIER;
}

bool ls_bench_comm_has_in_place(bench_op op) {
    return op < BENCH_GATHER || op == BENCH_ALL_TO_ALL || op > BENCH_ALL_TO_ALL_V;
}

/* The first worker that fails reports why; the others of a launch fail because of it. */
static void report(worker *w, const char *what) {
    if (atomic_exchange(w->reported, 1) == 0) ls_log("bench comm: %s", what);
    w->code = FAILED;
}

/* bench_measure() can't return an error, and needs none: the process exits. */
static void or_die(worker *w, ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    report(w, e->msg);
    fflush(stdout);
    _exit(FAILED);
}

/* ---- the system under measure ---- */

static const size_t *even_counts(worker *w, const bench_job *job, size_t block) {
    for (int i = 0; i < job->workers; i++) w->counts[i] = block;
    return w->counts;
}

static void run(bench_peer *peer, const bench_job *job) {
    worker *w = peer->context;
    ls_group *g = w->measured;
    ls_error e;
    ls_dtype t = dtypes[job->dtype];
    ls_op op = redops[job->redop];
    size_t block = job->count / (size_t)job->workers;
    const char *in = job->in;
    ls_status s = LS_OK;
    switch (job->op) {
    case BENCH_ALL_REDUCE: s = ls_all_reduce(g, in, job->out, job->count, t, op, &e); break;
    case BENCH_REDUCE_SCATTER: s = ls_reduce_scatter(g, in, job->out, block, t, op, &e); break;
    case BENCH_ALL_GATHER:
        in += (size_t)job->rank * block * bench_dtype_sizes[job->dtype];
        s = ls_all_gather(g, in, job->out, block, t, &e);
        break;
    case BENCH_BROADCAST: s = ls_broadcast(g, job->out, job->count, t, 0, &e); break;
    case BENCH_REDUCE: s = ls_reduce(g, in, job->out, job->count, t, op, 0, &e); break;
    case BENCH_GATHER: s = ls_gather(g, in, job->out, block, t, 0, &e); break;
    case BENCH_SCATTER: s = ls_scatter(g, in, job->out, block, t, 0, &e); break;
    case BENCH_ALL_TO_ALL: s = ls_all_to_all(g, in, job->out, block, t, &e); break;
    case BENCH_GATHER_V:
        s = ls_gather_v(g, in, block, job->out, even_counts(w, job, block), t, 0, &e);
        break;
    case BENCH_SCATTER_V:
        s = ls_scatter_v(g, in, even_counts(w, job, block), job->out, block, t, 0, &e);
        break;
    case BENCH_ALL_TO_ALL_V: {
        const size_t *counts = even_counts(w, job, block);
        s = ls_all_to_all_v(g, in, counts, job->out, counts, t, &e);
        break;
    }
    case BENCH_SCAN: s = ls_scan(g, in, job->out, job->count, t, op, &e); break;
    case BENCH_EXSCAN: s = ls_exscan(g, in, job->out, job->count, t, op, &e); break;
    case BENCH_BARRIER:
    case BENCH_EXCHANGE: s = ls_barrier(g, &e); break;
    }
    or_die(w, s, &e);
}

static void barrier(bench_peer *peer) {
    worker *w = peer->context;
    ls_error e;
    or_die(w, ls_barrier(w->group, &e), &e);
}

static double max(bench_peer *peer, double x) {
    worker *w = peer->context;
    ls_error e;
    or_die(w, ls_all_reduce(w->group, &x, &x, 1, LS_F64, LS_MAX, &e), &e);
    return x;
}

/* ---- which algorithm ---- */

static ls_collective collective_of(bench_op op) {
    ls_collective what = LS_CALL_BARRIER;
    ls_collective_from_name(bench_op_names[op], &what);
    return what;
}

ls_call ls_bench_comm_call(const bench_job *job, const ls_group *g) {
    ls_call call = {.what = collective_of(job->op),
                    .dtype = dtypes[job->dtype],
                    .op = redops[job->redop],
                    .count = job->count,
                    .hosts = g->hosts};
    if (bench_divides(job->op)) call.count /= (size_t)job->workers;
    return call;
}

const char *ls_bench_comm_algorithm(const ls_group *g, const bench_job *job) {
    ls_call call = ls_bench_comm_call(job, g);
    ls_route choice = ls_group_route(g, &call);
    return g->size == 1 ? "none" : ls_route_name(&choice);
}

/* ---- memory ---- */

static int nbuffers(const ls_bench_comm *o) {
    return o->out_of_place && ls_bench_comm_has_out_of_place(o->request.op) ? 2 : 1;
}

/* Available memory of this machine in bytes, at most the container's limit. */
static double memory_nbytes(void) {
    double least = 1e18, value;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "MemAvailable: %lf kB", &value) == 1) least = value * 1024;
    if (f) fclose(f);
    f = fopen("/sys/fs/cgroup/memory.max", "r");
    if (f && fscanf(f, "%lf", &value) == 1 && value < least) least = value;
    if (f) fclose(f);
    return least;
}

ls_status ls_bench_comm_fits(const ls_bench_comm *o, int workers, size_t size, ls_error *e) {
    double wanted = (double)size * workers * nbuffers(o), there = memory_nbytes();
    if (o->request.op == BENCH_BARRIER || wanted <= there) return LS_OK;
    return ls_fail(e, LS_ENOMEM,
                   "no memory for %zu bytes: %d workers with %d buffers each need %.1f MB; "
                   "available: %.1f MB",
                   size, workers, nbuffers(o), wanted / 1e6, there / 1e6);
}

static size_t largest(const ls_bench_comm *o) {
    size_t most = 0;
    for (int i = 0; i < o->request.n_sizes; i++)
        if (o->request.sizes[i] > most) most = o->request.sizes[i];
    return o->request.op == BENCH_BARRIER ? 0 : most;
}

/* The size of a worker's arena. A size may be rounded up to one element for each worker. */
static size_t arena_nbytes(const ls_bench_comm *o) {
    size_t buffer = largest(o) + (size_t)8 * LS_COMMONS_MAX;
    return ARENA_REST + (o->private_buffers ? 0 : (size_t)nbuffers(o) * buffer);
}

static void *buffer_new(worker *w, size_t nbytes) {
    if (w->o->private_buffers) return bench_buffer(nbytes);
    const ls_commons *c = w->group->end->commons;
    void *p = ls_group_alloc(w->group, nbytes);
    ls_error e;
    if (p && (!c || ls_commons_readable(c, p, nbytes))) return p;
    or_die(w,
           ls_fail(&e, LS_ENOMEM,
                   "no room for a buffer of %zu bytes in the arena; use a larger one with "
                   "`lockstep run --arena`, or none with --private",
                   nbytes),
           &e);
    return NULL;
}

static void buffer_free(worker *w, void *p) {
    if (w->o->private_buffers)
        free(p);
    else
        ls_group_free(w->group, p);
}

/* ---- one size ---- */

static bench_result measure(worker *w, bench_peer *peer, bench_job *job, void *out) {
    job->out = out;
    bench_result r = bench_measure(peer, job, w->o->request.repeat, w->times);
    if (job->rank == 0 && w->o->json) w->o->view->each(w->measured, peer, job, &r);
    w->wrong += r.wrong;
    w->busbw += bench_busbw(job, &r);
    w->nbusbw++;
    return r;
}

static void one_size(worker *w, bench_peer *peer, size_t asked) {
    const ls_bench_comm *o = w->o;
    const bench_request *q = &o->request;
    bool outs = o->out_of_place && ls_bench_comm_has_out_of_place(q->op);
    bool ins = o->in_place && ls_bench_comm_has_in_place(q->op);
    bench_job job;
    bench_result out, in;
    bench_job_size(&job, q->op, q->dtype, q->redop, ls_group_rank(w->group),
                   ls_group_size(w->group), asked);
    job.in = buffer_new(w, job.nbytes);
    char *in_place = job.in;
    if (q->op == BENCH_REDUCE_SCATTER)
        in_place += job.nbytes / (size_t)job.workers * (size_t)job.rank;
    const char *algorithm = ls_bench_comm_algorithm(w->group, &job);
    snprintf(w->variant, sizeof w->variant, "%s%s", algorithm,
             o->private_buffers ? ", private buffers" : "");
    if (outs) {
        void *other = buffer_new(w, job.nbytes);
        out = measure(w, peer, &job, other);
        barrier(peer); /* no worker reads it any more */
        buffer_free(w, other);
    }
    if (ins) in = measure(w, peer, &job, in_place);
    barrier(peer);
    if (job.rank == 0 && !o->json)
        o->view->size(&job, outs ? &out : NULL, ins ? &in : NULL, algorithm);
    buffer_free(w, job.in);
}

/* ---- all algorithms, alternating ---- */

static void one_size_of_all(worker *w, bench_peer *peer, ls_bench_choices *c, size_t asked) {
    const bench_request *q = &w->o->request;
    bench_job job;
    bench_job_size(&job, q->op, q->dtype, q->redop, ls_group_rank(w->group),
                   ls_group_size(w->group), asked);
    bool in_place = w->o->in_place && ls_bench_comm_has_in_place(q->op);
    job.in = buffer_new(w, job.nbytes);
    job.out = in_place ? job.in : buffer_new(w, job.nbytes);
    if (in_place && q->op == BENCH_REDUCE_SCATTER)
        job.out = (char *)job.in + job.nbytes / (size_t)job.workers * (size_t)job.rank;
    ls_bench_choices_measure(c, peer, &job, q->repeat, &w->measured);
    barrier(peer); /* no worker reads it any more */
    for (int i = 0; i < c->n; i++) {
        const ls_bench_choice *x = &c->all[i];
        w->measured = x->group;
        snprintf(w->variant, sizeof w->variant, "%s%s%s", x->name, x->chosen ? ", chosen" : "",
                 w->o->private_buffers ? ", private buffers" : "");
        if (job.rank == 0 && w->o->json) w->o->view->each(x->group, peer, &job, &x->result);
        w->wrong += x->result.wrong;
    }
    if (job.rank == 0 && !w->o->json) w->o->view->choices(c, &job);
    if (!in_place) buffer_free(w, job.out);
    buffer_free(w, job.in);
}

static void work_all(worker *w, bench_peer *peer) {
    const bench_request *q = &w->o->request;
    bool prints = ls_group_rank(w->group) == 0 && !w->o->json;
    ls_group *whole = w->group;
    ls_bench_choices c;
    ls_error e;
    or_die(w, ls_bench_choices_open(&c, whole, collective_of(q->op), q->repeat, &e), &e);
    /* for barriers: the measured group may be forced to the transport's own collectives */
    w->group = c.chooser;
    if (prints) w->o->view->begin_choices(&c, q->repeat);
    for (int i = 0; i < q->n_sizes; i++) one_size_of_all(w, peer, &c, q->sizes[i]);
    if (prints) w->o->view->end(w->wrong, 0);
    w->group = w->measured = whole;
    ls_bench_choices_close(&c);
}

/* ---- the speed of the links ---- */

static void save_links(worker *w) {
    enum { CARE = 50 };
    ls_endpoint *end = w->group->end;
    struct utsname host = {.nodename = "?"};
    ls_link link;
    bool given = false;
    ls_error e;
    if (!end->net || end->met_over || end->commons) {
        or_die(
            w,
            ls_fail(&e, LS_EINVAL,
                    "--save: workers that share memory use no links; add --transport tcp or mpi"),
            &e);
    }
    ls_link_plan plan = {.hosts = end->hosts, .care = CARE, .timeout_ns = (int64_t)300e9};
    or_die(w, ls_link_agree(end->net, end->k, &plan, &link, &given, &e), &e);
    if (ls_group_rank(w->group)) return;
    uname(&host);
    char *title = ls_format("lockstep bench comm --save: %s, %d workers, worker 0 on %.80s",
                            end->net->ops->name, end->size, host.nodename);
    or_die(w, ls_link_write(w->o->save, &link, title, &e), &e);
    free(title);
}

/* ---- all sizes ---- */

static void work_sizes(worker *w, bench_peer *peer, bool prints) {
    const bench_request *q = &w->o->request;
    w->times = bench_buffer((size_t)q->repeat * sizeof *w->times);
    for (int i = 0; i < q->n_sizes; i++) one_size(w, peer, q->sizes[i]);
    if (prints) w->o->view->end(w->wrong, q->op == BENCH_BARRIER ? 0 : w->busbw / w->nbusbw);
    free(w->times);
}

static void work(worker *w) {
    bench_peer peer = {.system = "lockstep",
                       .version = ls_version(),
                       .variant = w->variant,
                       .context = w,
                       .run = run,
                       .barrier = barrier,
                       .max = max};
    bool prints = ls_group_rank(w->group) == 0 && !w->o->json;
    w->measured = w->group;
    w->counts = LS_NEW_ARRAY(size_t, (size_t)ls_group_size(w->group));
    if (w->o->save) save_links(w);
    if (prints) w->o->view->begin(w->o, w->group);
    if (w->o->all)
        work_all(w, &peer);
    else
        work_sizes(w, &peer, prints);
    if (w->wrong > 0) report(w, "there are wrong elements");
    free(w->counts);
}

/* ---- starting the workers ---- */

static int fail(const ls_error *e) {
    if (e->msg[0]) ls_log("%s", e->msg);
    return FAILED;
}

static ls_group_options group_options(const ls_bench_comm *o) {
    return (ls_group_options){.transport = o->transport,
                              .algorithm = o->algorithm ? o->algorithm
                                           : o->all     ? "auto"
                                                        : NULL,
                              .arena_nbytes = arena_nbytes(o),
                              .insecure = o->insecure};
}

/* A worker that finds its group through the environment. */
static int process_main(void *arg) {
    worker w = *(worker *)arg;
    ls_group_options options = group_options(w.o);
    ls_error e;
    /* Shared memory would be used if present; the requested transport must not become shm. */
    if (options.transport && strcmp(options.transport, "shm") != 0) unsetenv("LOCKSTEP_SHM");
    or_die(&w, ls_group_open(&options, &w.group, &e), &e);
    work(&w);
    ls_group_close(w.group);
    return w.code;
}

static void *thread_main(void *arg) {
    worker *w = arg;
    work(w);
    ls_group_close(w->group);
    return NULL;
}

static int run_threads(const ls_bench_comm *o, atomic_int *reported) {
    size_t n = (size_t)o->workers;
    ls_group_options options = group_options(o);
    options.transport = NULL;
    ls_error e;
    ls_group **groups = LS_NEW_ARRAY(ls_group *, n);
    pthread_t *threads = LS_NEW_ARRAY(pthread_t, n);
    worker *workers = LS_NEW_ARRAY(worker, n);
    workers[0] = (worker){.o = o, .reported = reported};
    or_die(workers, ls_group_open_threads(o->workers, &options, groups, &e), &e);
    for (size_t i = 0; i < n; i++) {
        workers[i] = (worker){.o = o, .group = groups[i], .reported = reported};
        int failed = pthread_create(&threads[i], NULL, thread_main, &workers[i]);
        if (failed)
            or_die(
                &workers[i],
                ls_fail(&e, LS_ENOMEM, "thread %zu can't be started: %s", i, ls_thread_why(failed)),
                &e);
    }
    for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
    int code = workers[0].code;
    free(groups);
    free(threads);
    free(workers);
    return code;
}

static int run_processes(const ls_bench_comm *o, atomic_int *reported) {
    worker first = {.o = o, .reported = reported};
    ls_launch_options l = {.nworkers = o->workers,
                           .arena_nbytes = arena_nbytes(o),
                           .bind = true, /* as `lockstep run` and mpirun do */
                           .main = process_main,
                           .arg = &first};
    ls_error e = {0};
    int code = 0;
    if (ls_launch_run(&l, &code, &e) != LS_OK) return fail(&e);
    if (code && !atomic_load(reported)) ls_log("bench comm: %s", e.msg);
    return code;
}

/* One of several workers that another command has started. */
static int run_started(const ls_bench_comm *o, const ls_environment *env, atomic_int *reported) {
    worker w = {.o = o, .reported = reported};
    if (o->workers && o->workers != env->size) {
        ls_log("bench: --workers %d, but %s gives %d", o->workers, ls_launcher_title(env->launcher),
               env->size);
        return USAGE;
    }
    if (o->transport && strcmp(o->transport, "thread") == 0) {
        ls_log("bench: --transport thread, but %s gives %d processes",
               ls_launcher_title(env->launcher), env->size);
        return USAGE;
    }
    return process_main(&w);
}

static ls_status check_memory(const ls_bench_comm *o, int workers, ls_error *e) {
    return ls_bench_comm_fits(o, workers, largest(o), e);
}

int ls_bench_comm_run(const ls_bench_comm *o) {
    ls_environment env;
    ls_error e = {0};
    if (ls_environment_read(&env, &e) != LS_OK) return fail(&e);
    bool started = env.size > 1;
    int here = !started ? o->workers : env.local_size > 0 ? env.local_size : env.size;
    if (check_memory(o, here, &e) != LS_OK) return fail(&e);
    atomic_int *reported =
        mmap(NULL, sizeof *reported, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (reported == MAP_FAILED) {
        ls_fail(&e, LS_ENOMEM, "no shared memory: %s", strerror(errno));
        return fail(&e);
    }
    int code = started ? run_started(o, &env, reported)
               : o->transport && strcmp(o->transport, "thread") == 0 ? run_threads(o, reported)
                                                                     : run_processes(o, reported);
    munmap(reported, sizeof *reported);
    return code;
}
