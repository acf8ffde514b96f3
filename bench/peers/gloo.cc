/* gloo.cc - times the collectives of Gloo over TCP on loopback; the procedure is ../measure.h.
 *
 *   gloo -n WORKERS OPERATION DTYPE REPEAT SIZE[,SIZE...] [REDOP]
 *
 * The program forks its workers, which find each other through a FileStore in a new directory.
 * Gloo has several all-reduces. All of them are timed, and the best median of each size is printed,
 * with the algorithm's name as "variant": "allreduce" is gloo::allreduce with its defaults (a ring;
 * what PyTorch calls), "bcube" the same with its other algorithm; the two others belong to the
 * older interface, whose buffers are set up once, before the rounds. reduce_scatter exists only in
 * the older interface.
 */
#include "../measure.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/config.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

namespace {

using Context = std::shared_ptr<gloo::Context>;
using Algorithm = gloo::AllreduceOptions::Algorithm;

/* One way to run the operation. */
struct Variant {
    const char *name;
    std::function<void()> run;
};

/* Collective: the older interface exchanges its buffers when an algorithm is made. */
using Maker = Variant (*)(const Context &, const bench_job &);

/* What bench_peer's context points to. */
struct Worker {
    Context context;
    Variant variant;
};

/* Messages of different purposes must not be confused. */
enum : uint32_t { TAG_OPERATION = 1, TAG_BARRIER = 2, TAG_MAX = 3 };

void run(bench_peer *peer, const bench_job *) {
    static_cast<Worker *>(peer->context)->variant.run();
}

void barrier(bench_peer *peer) {
    gloo::BarrierOptions options(static_cast<Worker *>(peer->context)->context);
    options.setTag(TAG_BARRIER);
    gloo::barrier(options);
}

double max(bench_peer *peer, double value) {
    gloo::AllreduceOptions options(static_cast<Worker *>(peer->context)->context);
    options.setOutput(&value, 1);
    options.setReduceFunction(
        static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::max<double>));
    options.setTag(TAG_MAX);
    gloo::allreduce(options);
    return value;
}

using Reduction = void (*)(void *, const void *, const void *, size_t);

template <typename T> Reduction reduction(const bench_job &job) {
    switch (job.redop) {
    case BENCH_PROD: return &gloo::product<T>;
    case BENCH_MIN: return &gloo::min<T>;
    case BENCH_MAX: return &gloo::max<T>;
    default: break; /* sum; others are refused */
    }
    return &gloo::sum<T>;
}

/* The same for the older interface. */
template <typename T> const gloo::ReductionFunction<T> *older_reduction(const bench_job &job) {
    switch (job.redop) {
    case BENCH_PROD: return gloo::ReductionFunction<T>::product;
    case BENCH_MIN: return gloo::ReductionFunction<T>::min;
    case BENCH_MAX: return gloo::ReductionFunction<T>::max;
    default: break; /* sum; others are refused */
    }
    return gloo::ReductionFunction<T>::sum;
}

template <typename T, Algorithm kind>
Variant all_reduce(const Context &context, const bench_job &job) {
    auto options = std::make_shared<gloo::AllreduceOptions>(context);
    options->setAlgorithm(kind);
    options->setOutput(static_cast<T *>(job.out), job.count);
    options->setReduceFunction(reduction<T>(job));
    options->setTag(TAG_OPERATION);
    return {kind == Algorithm::BCUBE ? "bcube" : "allreduce",
            [options] { gloo::allreduce(*options); }};
}

template <typename T> Variant halving_doubling(const Context &context, const bench_job &job) {
    std::vector<T *> pointers{static_cast<T *>(job.out)};
    auto algorithm = std::make_shared<gloo::AllreduceHalvingDoubling<T>>(
        context, pointers, static_cast<int>(job.count), older_reduction<T>(job));
    return {"halving_doubling", [algorithm] { algorithm->run(); }};
}

template <typename T> Variant ring_chunked(const Context &context, const bench_job &job) {
    std::vector<T *> pointers{static_cast<T *>(job.out)};
    auto algorithm = std::make_shared<gloo::AllreduceRingChunked<T>>(
        context, pointers, static_cast<int>(job.count), older_reduction<T>(job));
    return {"ring_chunked", [algorithm] { algorithm->run(); }};
}

template <typename T> Variant reduce_scatter(const Context &context, const bench_job &job) {
    int count = static_cast<int>(job.count);
    std::vector<int> blocks(static_cast<size_t>(job.workers), count / job.workers);
    std::vector<T *> pointers{static_cast<T *>(job.out)};
    auto algorithm = std::make_shared<gloo::ReduceScatterHalvingDoubling<T>>(
        context, pointers, count, blocks, older_reduction<T>(job));
    return {"halving_doubling", [algorithm] { algorithm->run(); }};
}

/* Without an input, each worker's own block is taken from its place in the output. */
template <typename T> Variant all_gather(const Context &context, const bench_job &job) {
    auto options = std::make_shared<gloo::AllgatherOptions>(context);
    options->setOutput(static_cast<T *>(job.out), job.count);
    options->setTag(TAG_OPERATION);
    return {"default", [options] { gloo::allgather(*options); }};
}

template <typename T> Variant broadcast(const Context &context, const bench_job &job) {
    auto options = std::make_shared<gloo::BroadcastOptions>(context);
    options->setOutput(static_cast<T *>(job.out), job.count);
    options->setRoot(0);
    options->setTag(TAG_OPERATION);
    return {"default", [options] { gloo::broadcast(*options); }};
}

template <typename T> Variant reduce(const Context &context, const bench_job &job) {
    auto options = std::make_shared<gloo::ReduceOptions>(context);
    options->setOutput(static_cast<T *>(job.out), job.count);
    options->setRoot(0);
    options->setReduceFunction(reduction<T>(job));
    options->setTag(TAG_OPERATION);
    return {"default", [options] { gloo::reduce(*options); }};
}

template <typename T> Variant all_to_all(const Context &context, const bench_job &job) {
    auto options = std::make_shared<gloo::AlltoallOptions>(context);
    options->setInput(static_cast<T *>(job.in), job.count);
    options->setOutput(static_cast<T *>(job.out), job.count);
    options->setTag(TAG_OPERATION);
    return {"default", [options] { gloo::alltoall(*options); }};
}

Variant only_barrier(const Context &context, const bench_job &) {
    auto options = std::make_shared<gloo::BarrierOptions>(context);
    options->setTag(TAG_OPERATION);
    return {"default", [options] { gloo::barrier(*options); }};
}

/* The older interface counts bytes in int, and is left out above that. */
template <typename T> std::vector<Maker> makers_of(const bench_job &job) {
    bool older = job.nbytes <= INT_MAX;
    switch (job.op) {
    case BENCH_ALL_REDUCE:
        if (!older) return {all_reduce<T, Algorithm::UNSPECIFIED>, all_reduce<T, Algorithm::BCUBE>};
        return {all_reduce<T, Algorithm::UNSPECIFIED>, all_reduce<T, Algorithm::BCUBE>,
                halving_doubling<T>, ring_chunked<T>};
    case BENCH_REDUCE_SCATTER:
        if (!older) throw std::runtime_error("Gloo's reduce_scatter counts bytes in int");
        return {reduce_scatter<T>};
    case BENCH_ALL_GATHER: return {all_gather<T>};
    case BENCH_BROADCAST: return {broadcast<T>};
    case BENCH_REDUCE: return {reduce<T>};
    case BENCH_ALL_TO_ALL: return {all_to_all<T>};
    case BENCH_BARRIER: return {only_barrier};
    default: break; /* others are refused */
    }
    return {};
}

std::vector<Maker> makers_of(const bench_job &job) {
    switch (job.dtype) {
    case BENCH_F32: return makers_of<float>(job);
    case BENCH_F64: return makers_of<double>(job);
    case BENCH_I64: return makers_of<int64_t>(job);
    case BENCH_I32: return makers_of<int32_t>(job);
    case BENCH_I8: return makers_of<int8_t>(job);
    case BENCH_U8: return makers_of<uint8_t>(job);
    default: break; /* others are refused */
    }
    return {};
}

/* Makes new connections for each candidate: when all candidates shared them, gloo::allreduce of 4
 * workers waited forever. `name` distinguishes this rendezvous from the others. */
Context connect(const bench_job &job, const char *directory, const std::string &name) {
    gloo::transport::tcp::attr address;
    address.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(address);
    gloo::rendezvous::FileStore files(directory);
    gloo::rendezvous::PrefixStore store(name, files);
    auto context = std::make_shared<gloo::rendezvous::Context>(job.rank, job.workers);
    context->connectFullMesh(store, device);
    return context;
}

void measure(bench_peer *peer, bench_job *job, const char *directory, int repeat, double *times) {
    auto *worker = static_cast<Worker *>(peer->context);
    job->in = bench_buffer(job->nbytes);
    job->out = job->op == BENCH_ALL_TO_ALL ? bench_buffer(job->nbytes) : job->in;
    bench_result best{};
    double wrong = 0;
    peer->variant = nullptr;
    for (Maker make : makers_of(*job)) {
        static int n_connections = 0;
        worker->context = connect(*job, directory, std::to_string(n_connections++));
        worker->variant = make(worker->context, *job);
        bench_result result = bench_measure(peer, job, repeat, times);
        barrier(peer);         /* no worker frees a buffer that another still writes to */
        wrong += result.wrong; /* a wrong result must show, even if another is faster */
        if (!peer->variant || result.median_s < best.median_s) {
            best = result;
            peer->variant = worker->variant.name;
        }
        worker->variant = {};
        worker->context = nullptr;
    }
    best.wrong = wrong;
    if (job->rank == 0) bench_print(peer, job, bench_op_names[job->op], &best);
    if (job->out != job->in) free(job->out);
    free(job->in);
}

int work(int rank, int workers, const char *directory, const bench_request &request) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no worker outlives the program */
    Worker worker{};
    std::string version = std::to_string(GLOO_VERSION_MAJOR) + "." +
                          std::to_string(GLOO_VERSION_MINOR) + "." +
                          std::to_string(GLOO_VERSION_PATCH);
    bench_peer peer{"gloo", version.c_str(), "", &worker, run, barrier, max};
    std::vector<double> times(static_cast<size_t>(request.repeat));
    for (int i = 0; i < request.n_sizes; i++) {
        bench_job job;
        bench_job_size(&job, request.op, request.dtype, request.redop, rank, workers,
                       request.sizes[i]);
        measure(&peer, &job, directory, request.repeat, times.data());
    }
    return 0;
}

int work_and_report(int rank, int workers, const char *directory, const bench_request &request) {
    try {
        return work(rank, workers, directory, request);
    } catch (const std::exception &e) {
        fprintf(stderr, "worker %d: %s\n", rank, e.what());
        return 1;
    }
}

/* Returns 0 if all workers succeed. When one fails, ends the others. */
int wait_for_all(std::vector<pid_t> workers) {
    int failed = 0;
    for (size_t left = workers.size(); left > 0; left--) {
        int status;
        pid_t ended = wait(&status);
        for (pid_t &pid : workers)
            if (pid == ended) pid = 0;
        if (status == 0 || failed) continue;
        failed = 1;
        for (pid_t pid : workers)
            if (pid > 0) kill(pid, SIGTERM);
    }
    return failed;
}

bool has(const bench_request &request) {
    bool type =
        request.dtype <= BENCH_U8 && request.dtype != BENCH_BF16 && request.dtype != BENCH_F16;
    bool reduction = request.redop <= BENCH_MAX && request.redop != BENCH_AVG;
    switch (request.op) {
    case BENCH_ALL_REDUCE:
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALL_GATHER:
    case BENCH_BROADCAST:
    case BENCH_REDUCE:
    case BENCH_ALL_TO_ALL:
    case BENCH_BARRIER: return type && reduction;
    default: return false;
    }
}

} // namespace

int main(int argc, char **argv) {
    bench_request request;
    int workers = argc > 2 && strcmp(argv[1], "-n") == 0 ? atoi(argv[2]) : 0;
    if (workers < 1) {
        fprintf(stderr, "usage: gloo -n WORKERS OPERATION DTYPE REPEAT SIZE[,SIZE...] [REDOP]\n");
        return 2;
    }
    if (bench_parse(argc - 3, argv + 3, &request)) return 2;
    if (!has(request)) {
        bench_refuse("gloo", &request);
        return 2;
    }

    char directory[] = "/tmp/gloo-store-XXXXXX";
    if (!mkdtemp(directory)) {
        perror(directory);
        return 1;
    }
    std::vector<pid_t> started;
    for (int rank = 0; rank < workers; rank++) {
        pid_t pid = fork();
        if (pid == 0) return work_and_report(rank, workers, directory, request);
        if (pid > 0) started.push_back(pid);
    }
    int failed = started.size() < static_cast<size_t>(workers);
    if (failed) {
        perror("fork");
        for (pid_t pid : started) kill(pid, SIGTERM);
    }
    failed |= wait_for_all(started);
    std::string remove = std::string("rm -r ") + directory;
    failed |= system(remove.c_str()) != 0;
    return failed;
}
