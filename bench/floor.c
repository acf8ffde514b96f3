/* floor.c - what the machine itself allows two workers: a bound for any all-reduce on it.
 *
 *   floor shm SIZE[,SIZE...] REPEAT     floor tcp SIZE[,SIZE...] REPEAT
 *
 * shm  Two processes, a buffer each, both mapped by both. Barrier; each reads its half of both
 *      buffers and writes the sum into both; barrier. Nothing is copied, so an all-reduce of
 *      private memory can't be as fast for large sizes. Stores are ordinary, or non-temporal
 *      (which don't fetch the line that they overwrite).
 * tcp  Two processes, two loopback connections, one each way; both directions at once. Each worker
 *      sends SIZE bytes, as in a reduce-scatter and an all-gather between two, but without the
 *      sum, and the second does not wait for the first. Socket buffers are the system's, or large;
 *      congestion control is the system's, or reno, which doesn't pace (as bbr does).
 *
 * For each size the best of these ways is printed. shm also prints "round_trip": the time of a flag
 * there and back. measure.h describes the procedure.
 */
#define _GNU_SOURCE 1
#include "measure.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define CHUNK        ((size_t)256 << 10) /* of a send */
#define LARGE_BUFFER (4 << 20)

enum { VARIANTS = 3 }; /* at most */
enum { TCP_DEFAULT, TCP_LARGE, TCP_RENO };

/* A cache line, written by one worker and read by the other. */
typedef struct line {
    _Alignas(64) _Atomic unsigned count;
    double value;
} line;

typedef struct board {
    line barrier[2], trip[2];
} board;

typedef struct worker {
    int rank;
    unsigned barriers, trips; /* that this worker has reached */
    board *board;
    float *buffers[2];               /* [nbytes / 4] of worker 0, of worker 1; mapped by both */
    int variant;                     /* the way that is being measured */
    int out[VARIANTS], in[VARIANTS]; /* connected sockets of each variant */
} worker;

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void *map_shared(size_t nbytes) {
    void *p = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) die("mmap");
    return p;
}

/* Waits until the line's count is at least `count`. Yields the core now and then: on a machine with
 * other work, spinning could use up the time slices of the other worker. */
static void wait_for(line *l, unsigned count) {
    for (unsigned spins = 1;
         atomic_load_explicit(&l->count, memory_order_acquire) - count > 1u << 31; spins++) {
#ifdef __x86_64__
        _mm_pause();
#endif
        if (spins % 16384 == 0) sched_yield();
    }
}

static void post(line *l, unsigned count) {
    atomic_store_explicit(&l->count, count, memory_order_release);
}

static void come_together(worker *w) {
    w->barriers++;
    post(&w->board->barrier[w->rank], w->barriers);
    wait_for(&w->board->barrier[1 - w->rank], w->barriers);
}

static void barrier(bench_peer *peer) { come_together(peer->context); }

static double max(bench_peer *peer, double value) {
    worker *w = peer->context;
    w->board->barrier[w->rank].value = value;
    come_together(w);
    double other = w->board->barrier[1 - w->rank].value;
    come_together(w); /* the other worker has read the value before it is overwritten */
    return value > other ? value : other;
}

/* a[i] = b[i] = a[i] + b[i] */
static void sum_plain(float *a, float *b, size_t n) {
    for (size_t i = 0; i < n; i++) a[i] = b[i] = a[i] + b[i];
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void sum_ordinary(float *a, float *b, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 sum = _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i));
        _mm256_storeu_ps(a + i, sum);
        _mm256_storeu_ps(b + i, sum);
    }
    sum_plain(a + i, b + i, n - i);
}

/* a and b are aligned to 64 bytes. Writes whole lines: streaming half a line is slow. */
__attribute__((target("avx2"))) static void sum_non_temporal(float *a, float *b, size_t n) {
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256 low = _mm256_add_ps(_mm256_load_ps(a + i), _mm256_load_ps(b + i));
        __m256 high = _mm256_add_ps(_mm256_load_ps(a + i + 8), _mm256_load_ps(b + i + 8));
        _mm256_stream_ps(a + i, low);
        _mm256_stream_ps(a + i + 8, high);
        _mm256_stream_ps(b + i, low);
        _mm256_stream_ps(b + i + 8, high);
    }
    sum_plain(a + i, b + i, n - i);
    _mm_sfence(); /* these stores are not ordered by the barrier's release */
}

static void sum(float *a, float *b, size_t n, int non_temporal) {
    if (!__builtin_cpu_supports("avx2"))
        sum_plain(a, b, n);
    else if (non_temporal && (uintptr_t)a % 64 == 0)
        sum_non_temporal(a, b, n);
    else
        sum_ordinary(a, b, n);
}
#else
static void sum(float *a, float *b, size_t n, int non_temporal) {
    (void)non_temporal;
    sum_plain(a, b, n);
}
#endif

static void run_shm(bench_peer *peer, const bench_job *job) {
    worker *w = peer->context;
    size_t half = job->count / 2;
    if (half >= 16) half -= half % 16; /* no line is written by both */
    size_t begin = w->rank ? half : 0, end = w->rank ? job->count : half;
    come_together(w);
    sum(w->buffers[0] + begin, w->buffers[1] + begin, end - begin, w->variant);
    come_together(w);
}

static void run_round_trip(bench_peer *peer, const bench_job *job) {
    (void)job;
    worker *w = peer->context;
    w->trips++;
    if (w->rank == 1) wait_for(&w->board->trip[0], w->trips);
    post(&w->board->trip[w->rank], w->trips);
    if (w->rank == 0) wait_for(&w->board->trip[1], w->trips);
}

static int would_block(ssize_t n) { return n < 0 && (errno == EAGAIN || errno == EINTR); }

static void run_tcp(bench_peer *peer, const bench_job *job) {
    worker *w = peer->context;
    int out = w->out[w->variant], in = w->in[w->variant];
    size_t sent = 0, got = 0;
    while (sent < job->nbytes || got < job->nbytes) {
        ssize_t n_sent = 0, n_got = 0;
        if (sent < job->nbytes) {
            size_t left = job->nbytes - sent;
            n_sent = send(out, (const char *)job->in + sent, left < CHUNK ? left : CHUNK, 0);
            if (n_sent < 0 && !would_block(n_sent)) die("send");
            if (n_sent > 0) sent += (size_t)n_sent;
        }
        if (got < job->nbytes) {
            size_t left = job->nbytes - got;
            n_got = recv(in, (char *)job->out + got, left < CHUNK ? left : CHUNK, 0);
            if (n_got < 0 && !would_block(n_got)) die("recv");
            if (n_got == 0) die("the other worker's connection has ended");
            if (n_got > 0) got += (size_t)n_got;
        }
        if (n_sent > 0 || n_got > 0) continue;
        struct pollfd ready[2] = {{.fd = sent < job->nbytes ? out : -1, .events = POLLOUT},
                                  {.fd = got < job->nbytes ? in : -1, .events = POLLIN}};
        if (poll(ready, 2, -1) < 0 && errno != EINTR) die("poll");
    }
}

/* Only root may exceed the system's limit; other users get the limit. */
static void enlarge(int fd) {
    int size = LARGE_BUFFER;
    if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size))
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

/* Options are set before connecting, since the handshake fixes the window's scale. */
static void connect_pair(int variant, int *out_p, int *in_p) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || out < 0) die("socket");
    if (variant == TCP_LARGE) {
        enlarge(listener);
        enlarge(out);
    }
    if (variant == TCP_RENO && setsockopt(out, IPPROTO_TCP, TCP_CONGESTION, "reno", 4))
        die("TCP_CONGESTION");
    if (bind(listener, (struct sockaddr *)&address, length) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &length))
        die("listen");
    if (connect(out, (struct sockaddr *)&address, length)) die("connect");
    int in = accept(listener, NULL, NULL);
    if (in < 0) die("accept");
    close(listener);
    int yes = 1;
    setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (fcntl(out, F_SETFL, O_NONBLOCK) || fcntl(in, F_SETFL, O_NONBLOCK)) die("fcntl");
    *out_p = out;
    *in_p = in;
}

/* Measures all ways, and prints the line of the best. */
static void measure(bench_peer *peer, const bench_job *job, const char *const *names, int n,
                    int repeat, double *times) {
    worker *w = peer->context;
    bench_result results[VARIANTS];
    double wrong = 0; /* a wrong sum must show, even if another way is faster */
    int best = 0;
    for (w->variant = 0; w->variant < n; w->variant++) {
        results[w->variant] = bench_measure(peer, job, repeat, times);
        wrong += results[w->variant].wrong;
        if (results[w->variant].median_s < results[best].median_s) best = w->variant;
    }
    results[best].wrong = wrong;
    peer->variant = names[best];
    if (w->rank == 0) bench_print(peer, job, "all_reduce", &results[best]);
}

static void measure_shm(worker *w, const bench_request *request, double *times) {
    static const char *const names[2] = {"ordinary stores", "non-temporal stores"};
    bench_peer peer = {.system = "floor-shm",
                       .version = "1",
                       .variant = "flag",
                       .context = w,
                       .run = run_round_trip,
                       .barrier = barrier,
                       .max = max};
    bench_job job;
    bench_job_size(&job, BENCH_BARRIER, BENCH_F32, BENCH_SUM, w->rank, 2, 0);
    job.in = job.out = w->buffers[w->rank];
    bench_result trip = bench_measure(&peer, &job, request->repeat, times);
    if (w->rank == 0) bench_print(&peer, &job, "round_trip", &trip);

    peer.run = run_shm;
    for (int i = 0; i < request->n_sizes; i++) {
        bench_job_size(&job, BENCH_ALL_REDUCE, BENCH_F32, BENCH_SUM, w->rank, 2, request->sizes[i]);
        measure(&peer, &job, names, 2, request->repeat, times);
    }
}

static void measure_tcp(worker *w, const bench_request *request, double *times) {
    static const char *const names[VARIANTS] = {[TCP_DEFAULT] = "default socket buffers",
                                                [TCP_LARGE] = "large socket buffers",
                                                [TCP_RENO] = "reno"};
    bench_peer peer = {.system = "floor-tcp",
                       .version = "1",
                       .context = w,
                       .run = run_tcp,
                       .barrier = barrier,
                       .max = max};
    for (int i = 0; i < request->n_sizes; i++) {
        bench_job job;
        bench_job_size(&job, BENCH_EXCHANGE, BENCH_F32, BENCH_SUM, w->rank, 2, request->sizes[i]);
        job.in = bench_buffer(job.nbytes);
        job.out = bench_buffer(job.nbytes);
        measure(&peer, &job, names, VARIANTS, request->repeat, times);
        free(job.in);
        free(job.out);
    }
}

static pid_t start(int rank, int shm, const bench_request *request, worker common,
                   int sockets[VARIANTS][4]) {
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid > 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* no worker outlives the program */
    common.rank = rank;
    double *times = bench_buffer((size_t)request->repeat * sizeof *times);
    for (int variant = 0; variant < VARIANTS; variant++) {
        /* worker 0 sends on the first connection */
        common.out[variant] = sockets[variant][rank ? 2 : 0];
        common.in[variant] = sockets[variant][rank ? 1 : 3];
    }
    if (shm)
        measure_shm(&common, request, times);
    else
        measure_tcp(&common, request, times);
    exit(0);
}

int main(int argc, char **argv) {
    bench_request request;
    int shm = argc == 4 && strcmp(argv[1], "shm") == 0;
    int tcp = argc == 4 && strcmp(argv[1], "tcp") == 0;
    if (!(shm || tcp) || bench_parse_sizes(argv[2], &request) ||
        bench_parse_repeat(argv[3], &request.repeat)) {
        fprintf(stderr, "usage: floor shm|tcp SIZE[,SIZE...] REPEAT\n");
        return 2;
    }
    size_t largest = 4;
    for (int i = 0; i < request.n_sizes; i++)
        if (request.sizes[i] > largest) largest = request.sizes[i];
    worker common = {.board = map_shared(sizeof *common.board)};
    for (int rank = 0; shm && rank < 2; rank++) common.buffers[rank] = map_shared(largest);
    int sockets[VARIANTS][4]; /* of tcp */
    for (int v = 0; v < VARIANTS; v++) {
        if (!tcp) break;
        connect_pair(v, &sockets[v][0], &sockets[v][1]);
        connect_pair(v, &sockets[v][2], &sockets[v][3]);
    }

    pid_t workers[2];
    for (int rank = 0; rank < 2; rank++)
        workers[rank] = start(rank, shm, &request, common, sockets);
    int failed = 0;
    for (int ended = 0; ended < 2; ended++) {
        int status;
        pid_t pid = wait(&status);
        if (status == 0) continue;
        failed = 1; /* the other worker would wait forever */
        kill(pid == workers[0] ? workers[1] : workers[0], SIGKILL);
    }
    return failed;
}
