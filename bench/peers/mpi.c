/* mpi.c - times the collectives of an MPI library; the procedure is ../measure.h.
 *
 * One source for Open MPI and MPICH: the printed line names the one that it was linked with.
 * Operations are in place (MPI_IN_PLACE), except those that only move blocks: no other system has
 * an all_to_all in place, and the MPI libraries don't optimize theirs.
 */
#define _GNU_SOURCE 1
#include "../measure.h"

#include <limits.h>
#include <mpi.h>
#include <stdbool.h>

/* MPI_DATATYPE_NULL: MPI has no such type. */
static MPI_Datatype mpi_type(bench_dtype dtype) {
    switch (dtype) {
    case BENCH_F32: return MPI_FLOAT;
    case BENCH_F64: return MPI_DOUBLE;
    case BENCH_I64: return MPI_INT64_T;
    case BENCH_I32: return MPI_INT32_T;
    case BENCH_I8: return MPI_INT8_T;
    case BENCH_U8: return MPI_UINT8_T;
    case BENCH_U16: return MPI_UINT16_T;
    case BENCH_U32: return MPI_UINT32_T;
    case BENCH_U64: return MPI_UINT64_T;
    case BENCH_I16: return MPI_INT16_T;
    case BENCH_BOOL: return MPI_C_BOOL;
    case BENCH_F32_I32: return MPI_FLOAT_INT;
    case BENCH_I32_I32: return MPI_2INT;
    case BENCH_F64_I64:
    case BENCH_I64_I64: break;
    case BENCH_BF16:
    case BENCH_F16: break;
    }
    return MPI_DATATYPE_NULL;
}

/* MPI_OP_NULL: MPI has no such operation. */
static MPI_Op mpi_op(bench_redop redop) {
    switch (redop) {
    case BENCH_SUM: return MPI_SUM;
    case BENCH_PROD: return MPI_PROD;
    case BENCH_MIN: return MPI_MIN;
    case BENCH_MAX: return MPI_MAX;
    case BENCH_LAND: return MPI_LAND;
    case BENCH_LOR: return MPI_LOR;
    case BENCH_LXOR: return MPI_LXOR;
    case BENCH_BAND: return MPI_BAND;
    case BENCH_BOR: return MPI_BOR;
    case BENCH_BXOR: return MPI_BXOR;
    case BENCH_MINLOC: return MPI_MINLOC;
    case BENCH_MAXLOC: return MPI_MAXLOC;
    case BENCH_AVG: break;
    }
    return MPI_OP_NULL;
}

/* Calls a _v form with blocks of equal length. */
static void run_v(const bench_job *job, int block, MPI_Datatype type, void *out) {
    static int *counts, *first;
    static int workers;
    if (workers != job->workers) {
        workers = job->workers;
        counts = realloc(counts, (size_t)workers * sizeof *counts);
        first = realloc(first, (size_t)workers * sizeof *first);
    }
    for (int i = 0; i < workers; i++) counts[i] = block, first[i] = i * block;
    if (job->op == BENCH_GATHER_V)
        MPI_Gatherv(job->in, block, type, out, counts, first, type, 0, MPI_COMM_WORLD);
    else if (job->op == BENCH_SCATTER_V)
        MPI_Scatterv(job->in, counts, first, type, out, block, type, 0, MPI_COMM_WORLD);
    else
        MPI_Alltoallv(job->in, counts, first, type, out, counts, first, type, MPI_COMM_WORLD);
}

/* MPI's default error handler ends the program, so nothing is returned here. */
static void run(bench_peer *peer, const bench_job *job) {
    (void)peer;
    MPI_Comm world = MPI_COMM_WORLD;
    MPI_Datatype type = mpi_type(job->dtype);
    MPI_Op reduction = mpi_op(job->redop);
    int count = (int)job->count, block = count / job->workers;
    void *buffer = job->out;
    switch (job->op) {
    case BENCH_ALL_REDUCE:
        MPI_Allreduce(MPI_IN_PLACE, buffer, count, type, reduction, world);
        break;
    case BENCH_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(MPI_IN_PLACE, buffer, block, type, reduction, world);
        break;
    case BENCH_ALL_GATHER:
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, buffer, block, type, world);
        break;
    case BENCH_BROADCAST: MPI_Bcast(buffer, count, type, 0, world); break;
    case BENCH_REDUCE:
        if (job->rank == 0)
            MPI_Reduce(MPI_IN_PLACE, buffer, count, type, reduction, 0, world);
        else
            MPI_Reduce(buffer, NULL, count, type, reduction, 0, world);
        break;
    case BENCH_ALL_TO_ALL: MPI_Alltoall(job->in, block, type, buffer, block, type, world); break;
    case BENCH_GATHER: MPI_Gather(job->in, block, type, buffer, block, type, 0, world); break;
    case BENCH_SCATTER: MPI_Scatter(job->in, block, type, buffer, block, type, 0, world); break;
    case BENCH_GATHER_V:
    case BENCH_SCATTER_V:
    case BENCH_ALL_TO_ALL_V: run_v(job, block, type, buffer); break;
    case BENCH_SCAN: MPI_Scan(MPI_IN_PLACE, buffer, count, type, reduction, world); break;
    case BENCH_EXSCAN: MPI_Exscan(MPI_IN_PLACE, buffer, count, type, reduction, world); break;
    case BENCH_BARRIER: MPI_Barrier(world); break;
    case BENCH_EXCHANGE: break; /* not on the command line */
    }
}

static void barrier(bench_peer *peer) {
    (void)peer;
    MPI_Barrier(MPI_COMM_WORLD);
}

static double max(bench_peer *peer, double value) {
    (void)peer;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
}

/* The library's text starts "Open MPI v4.1.4, ..." or "MPICH Version: 4.0.2 ...". */
static void name_library(bench_peer *peer_p) {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(text, &length);
    peer_p->system = strstr(text, "Open MPI") ? "openmpi" : strstr(text, "MPICH") ? "mpich" : "mpi";
    char *version = text + strcspn(text, "0123456789");
    version[strspn(version, "0123456789.")] = '\0';
    peer_p->version = version;
}

static void measure(bench_peer *peer, const bench_request *request, bench_job *job, size_t asked,
                    double *times) {
    bench_job_size(job, request->op, request->dtype, request->redop, job->rank, job->workers,
                   asked);
    if (job->count > INT_MAX) {
        if (job->rank == 0)
            fprintf(stderr, "%zu bytes skipped: MPI counts at most %d elements\n", asked, INT_MAX);
        return;
    }
    job->in = bench_buffer(job->nbytes);
    bool apart = job->op >= BENCH_GATHER && job->op <= BENCH_ALL_TO_ALL_V;
    job->out = apart ? bench_buffer(job->nbytes) : job->in;
    bench_result result = bench_measure(peer, job, request->repeat, times);
    if (job->rank == 0) bench_print(peer, job, bench_op_names[job->op], &result);
    if (job->out != job->in) free(job->out);
    free(job->in);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    bench_request request;
    if (bench_parse(argc - 1, argv + 1, &request)) {
        MPI_Finalize();
        return 2;
    }
    bench_job job = {0};
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.workers);
    bench_peer peer = {.variant = "default", .run = run, .barrier = barrier, .max = max};
    name_library(&peer);
    if (mpi_type(request.dtype) == MPI_DATATYPE_NULL || mpi_op(request.redop) == MPI_OP_NULL) {
        if (job.rank == 0) bench_refuse(peer.system, &request);
        MPI_Finalize();
        return 2;
    }
    double *times = bench_buffer((size_t)request.repeat * sizeof *times);
    for (int i = 0; i < request.n_sizes; i++)
        measure(&peer, &request, &job, request.sizes[i], times);
    free(times);
    MPI_Finalize();
    return 0;
}
