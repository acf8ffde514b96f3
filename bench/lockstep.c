/* lockstep.c - our own collectives by the procedure of measure.h, for comparison with the peers.
 *
 *     lockstep run -n 2 build/bench/lockstep-peer all_reduce f32 20 8,65536 [private]
 *
 * Buffers are the group's (ls_group_alloc), which other workers read where they lie; with
 * "private", they are the program's own, as in a program that was not written for us.
 */
#include "measure.h"

#include "lockstep/group.h"

static void or_die(ls_status s, const ls_error *e) {
    if (s == LS_OK) return;
    fprintf(stderr, "lockstep-peer: %s\n", e->msg);
    exit(1);
}

static const ls_dtype dtypes[] = {LS_F32, LS_F64, LS_I32, LS_I64, LS_U8};

static void run(bench_peer *peer, const bench_job *job) {
    ls_group *g = peer->context;
    ls_error e;
    ls_dtype t = dtypes[job->dtype];
    size_t block = job->count / (size_t)job->workers;
    const char *in = job->in;
    ls_status s = LS_OK;
    switch (job->op) {
    case BENCH_ALL_REDUCE: s = ls_all_reduce(g, in, job->out, job->count, t, LS_SUM, &e); break;
    case BENCH_REDUCE_SCATTER: s = ls_reduce_scatter(g, in, job->out, block, t, LS_SUM, &e); break;
    case BENCH_ALL_GATHER:
        in += (size_t)job->rank * block * bench_dtype_sizes[job->dtype];
        s = ls_all_gather(g, in, job->out, block, t, &e);
        break;
    case BENCH_BROADCAST: s = ls_broadcast(g, job->out, job->count, t, 0, &e); break;
    case BENCH_REDUCE: s = ls_reduce(g, in, job->out, job->count, t, LS_SUM, 0, &e); break;
    case BENCH_ALL_TO_ALL: s = ls_all_to_all(g, in, job->out, block, t, &e); break;
    case BENCH_BARRIER:
    case BENCH_EXCHANGE: s = ls_barrier(g, &e); break;
    }
    or_die(s, &e);
}

static void barrier(bench_peer *peer) {
    ls_error e;
    or_die(ls_barrier(peer->context, &e), &e);
}

static double max(bench_peer *peer, double x) {
    ls_error e;
    or_die(ls_all_reduce(peer->context, &x, &x, 1, LS_F64, LS_MAX, &e), &e);
    return x;
}

static void *buffer(ls_group *g, size_t nbytes, int private_buffers) {
    void *p = private_buffers ? bench_buffer(nbytes) : ls_group_alloc(g, nbytes);
    if (!p) {
        fprintf(stderr, "no memory for a buffer of %zu bytes\n", nbytes);
        exit(1);
    }
    return p;
}

static void one_size(bench_peer *peer, const bench_request *request, size_t asked,
                     int private_buffers) {
    ls_group *g = peer->context;
    bench_job job;
    bench_job_size(&job, request->op, request->dtype, ls_group_rank(g), ls_group_size(g), asked);
    int in_place = job.op != BENCH_ALL_TO_ALL && job.op != BENCH_REDUCE_SCATTER;
    job.in = buffer(g, job.nbytes, private_buffers);
    job.out = in_place ? job.in : buffer(g, job.nbytes, private_buffers);
    double *times = malloc((size_t)request->repeat * sizeof *times);
    bench_result result = bench_measure(peer, &job, request->repeat, times);
    if (job.rank == 0) bench_print(peer, &job, bench_op_names[job.op], &result);
    free(times);
    barrier(peer);
    if (private_buffers) {
        free(job.in);
        if (!in_place) free(job.out);
    } else {
        ls_group_free(g, job.in);
        if (!in_place) ls_group_free(g, job.out);
    }
}

int main(int argc, char **argv) {
    bench_request request;
    ls_error e;
    ls_group *g = NULL;
    int private_buffers = argc == 6 && strcmp(argv[5], "private") == 0;
    if (bench_parse(argc - 1 - private_buffers, argv + 1, &request)) return 2;
    size_t most = 0;
    for (int i = 0; i < request.n_sizes; i++)
        if (request.sizes[i] > most) most = request.sizes[i];
    ls_group_options options = {.arena_nbytes = 2 * most + ((size_t)16 << 20)};
    or_die(ls_group_open(&options, &g, &e), &e);
    bench_peer peer = {.system = "lockstep", .version = ls_version(), .context = g};
    peer.variant = private_buffers ? "private" : "shared";
    peer.run = run;
    peer.barrier = barrier;
    peer.max = max;
    for (int i = 0; i < request.n_sizes; i++)
        one_size(&peer, &request, request.sizes[i], private_buffers);
    ls_group_close(g);
    return 0;
}
