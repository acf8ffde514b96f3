/* measure.h - how one collective is timed, the same for every system that is compared.
 *
 * A program provides a bench_peer: how its system synchronises, how it finds the largest of the
 * workers' numbers, how it runs the operation. The procedure is here, once, so that two results
 * differ in the system and in nothing else:
 *
 *   1. the operation once on known numbers; the wrong elements are counted;
 *   2. warm-up: 2 operations, then 4, 8 ... until 50 ms have passed;
 *   3. `repeat` rounds: a barrier, t0, the operation, t1; a round's time is its slowest worker's.
 *      Below 32 KB a round is a batch of operations back to back, about 200 us long, and its time
 *      is divided by their number: one operation costs little more than reading the clock.
 *
 * The timed operations run on zeros, because repeated sums in place would overflow.
 * Sizes follow nccl-tests: the whole buffer of a worker, for reduce_scatter and all_gather the
 * large one of the two. They are rounded down to whole elements (of each worker, where the
 * operation divides the buffer), but not below one.
 *
 * Bandwidths are nccl-tests', in GB/s of 10^9 bytes. Algorithm bandwidth is size / time. Bus
 * bandwidth is what each link must carry for it, whatever the algorithm, so that it can be compared
 * with the hardware's and doesn't fall with the number of workers.
 *
 * This file is also valid C++, for peers that have only a C++ interface; hence the casts.
 * Not here: starting the workers.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum bench_op {
    BENCH_ALL_REDUCE,
    BENCH_REDUCE_SCATTER,
    BENCH_ALL_GATHER,
    BENCH_BROADCAST,
    BENCH_REDUCE,
    BENCH_GATHER,
    BENCH_SCATTER,
    BENCH_ALL_TO_ALL,
    /* With the same blocks as gather, scatter, all_to_all, so that times can be compared. */
    BENCH_GATHER_V,
    BENCH_SCATTER_V,
    BENCH_ALL_TO_ALL_V,
    BENCH_SCAN,
    BENCH_EXSCAN,
    BENCH_BARRIER,
    BENCH_EXCHANGE, /* each of two workers gets the other's buffer; not on the command line */
} bench_op;

typedef enum bench_dtype {
    BENCH_F32,
    BENCH_F64,
    BENCH_BF16,
    BENCH_F16,
    BENCH_I64,
    BENCH_I32,
    BENCH_I8,
    BENCH_U8,
    BENCH_U16,
    BENCH_U32,
    BENCH_U64,
    BENCH_I16,
    BENCH_BOOL,
    BENCH_F64_I64,
    BENCH_F32_I32,
    BENCH_I64_I64,
    BENCH_I32_I32
} bench_dtype;

typedef enum bench_redop {
    BENCH_SUM,
    BENCH_AVG,
    BENCH_PROD,
    BENCH_MIN,
    BENCH_MAX,
    BENCH_LAND,
    BENCH_LOR,
    BENCH_LXOR,
    BENCH_BAND,
    BENCH_BOR,
    BENCH_BXOR,
    BENCH_MINLOC,
    BENCH_MAXLOC
} bench_redop;

static const char *const bench_op_names[] = {
    "all_reduce", "reduce_scatter", "all_gather", "broadcast",    "reduce", "gather", "scatter",
    "all_to_all", "gather_v",       "scatter_v",  "all_to_all_v", "scan",   "exscan", "barrier"};
static const char *const bench_dtype_names[] = {
    "f32", "f64", "bf16", "f16",  "i64",     "i32",     "i8",      "u8",     "u16",
    "u32", "u64", "i16",  "bool", "f64_i64", "f32_i32", "i64_i64", "i32_i32"};
static const size_t bench_dtype_sizes[] = {4, 8, 2, 2, 8, 4, 1, 1, 2, 4, 8, 2, 1, 16, 8, 16, 8};
static const char *const bench_redop_names[] = {"sum",  "avg",    "prod",  "min",  "max",
                                                "land", "lor",    "lxor",  "band", "bor",
                                                "bxor", "minloc", "maxloc"};

#define BENCH_N_OPS         (sizeof bench_op_names / sizeof bench_op_names[0])
#define BENCH_N_DTYPES      (sizeof bench_dtype_names / sizeof bench_dtype_names[0])
#define BENCH_N_REDOPS      (sizeof bench_redop_names / sizeof bench_redop_names[0])
#define BENCH_MAX_SIZES     64
#define BENCH_MAX_BATCH     100000
#define BENCH_BATCHED_BELOW 32768
#define BENCH_BATCH_S       200e-6
#define BENCH_WARM_UP_S     50e-3

/* One operation on one size. The root is worker 0. In place: `out` points into `in`, to its
 * beginning or, for a reduce_scatter, to the worker's own block. */
typedef struct bench_job {
    bench_op op;
    bench_dtype dtype;
    bench_redop redop;
    int rank, workers;
    size_t asked;         /* bytes, as the user wrote them */
    size_t count, nbytes; /* of the large buffer, after rounding */
    void *in, *out;       /* [nbytes], the caller's */
} bench_job;

typedef struct bench_peer bench_peer;
struct bench_peer {
    const char *system, *version, *variant;
    void *context;
    void (*run)(bench_peer *, const bench_job *);
    void (*barrier)(bench_peer *);
    double (*max)(bench_peer *, double); /* the largest over the workers, on every worker */
};

typedef struct bench_result {
    double median_s, min_s, max_s;
    double wrong; /* elements, of the worker with the most */
    int rounds, batch;
} bench_result;

typedef struct bench_request {
    bench_op op;
    bench_dtype dtype;
    bench_redop redop;
    int repeat, n_sizes;
    size_t sizes[BENCH_MAX_SIZES];
} bench_request;

static inline double bench_now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Touches the pages: the first write to a page costs more than the operation. */
static inline void *bench_buffer(size_t nbytes) {
    size_t whole = (nbytes + 4095) / 4096 * 4096;
    void *p = aligned_alloc(4096, whole ? whole : 4096);
    if (!p) {
        fprintf(stderr, "no memory for a buffer of %zu bytes\n", nbytes);
        exit(1);
    }
    memset(p, 0, whole ? whole : 4096);
    return p;
}

static inline int bench_reduces(bench_op op) {
    return op == BENCH_ALL_REDUCE || op == BENCH_REDUCE_SCATTER || op == BENCH_REDUCE ||
           op == BENCH_SCAN || op == BENCH_EXSCAN;
}

/* True if the buffer is divided into one block a worker. */
static inline int bench_divides(bench_op op) {
    return op == BENCH_REDUCE_SCATTER || op == BENCH_ALL_GATHER || op == BENCH_GATHER ||
           op == BENCH_SCATTER || op == BENCH_ALL_TO_ALL || op == BENCH_GATHER_V ||
           op == BENCH_SCATTER_V || op == BENCH_ALL_TO_ALL_V;
}

/* Fills in all of *job_p but the buffers. */
static inline void bench_job_size(bench_job *job_p, bench_op op, bench_dtype dtype,
                                  bench_redop redop, int rank, int workers, size_t asked) {
    size_t n = (size_t)workers, count = asked / bench_dtype_sizes[dtype];
    if (bench_divides(op)) count = count < n ? n : count - count % n;
    if (op == BENCH_BARRIER)
        count = 0;
    else if (count == 0)
        count = 1;
    job_p->op = op;
    job_p->dtype = dtype;
    job_p->redop = redop;
    job_p->rank = rank;
    job_p->workers = workers;
    job_p->asked = asked;
    job_p->count = count;
    job_p->nbytes = count * bench_dtype_sizes[dtype];
}

static inline int bench_in_place(const bench_job *job) {
    const char *in = (const char *)job->in, *out = (const char *)job->out;
    return out == in || (out > in && out < in + job->nbytes);
}

/* Operands of and, or, xor: those of the first eight workers decide the result. */
static inline int bench_bits(bench_redop redop, int rank, int at) {
    int is_and = redop == BENCH_LAND || redop == BENCH_BAND;
    if (rank >= 8) return is_and ? 127 : 0;
    switch (redop) {
    case BENCH_LAND: return (at + rank) % 11 ? 2 : 0;
    case BENCH_LOR: return (at + rank) % 7 == 0 ? 3 : 0;
    case BENCH_BAND: return 127 ^ 1 << (at + rank) % 7;
    case BENCH_BOR: return 1 << (at + rank) % 7;
    default: return at * rank % 5;
    }
}

static inline int bench_fold_bits(bench_redop redop, int a, int b) {
    switch (redop) {
    case BENCH_LAND: return a && b;
    case BENCH_LOR: return a || b;
    case BENCH_LXOR: return !a != !b;
    case BENCH_BAND: return a & b;
    case BENCH_BOR: return a | b;
    default: return a ^ b;
    }
}

/* Small whole numbers: the result over 8 workers is exact in every dtype (of more workers it is
 * within bench_is()'s tolerance, and integers wrap around). */
static inline int bench_value(const bench_job *job, int rank, size_t i) {
    int at = (int)(i % 7);
    if (!bench_reduces(job->op)) return at + rank + 1;
    switch (job->redop) {
    case BENCH_SUM: return at + rank + 1;
    case BENCH_AVG: return at + 2 * rank + 1;
    case BENCH_PROD: return rank < 8 && (at + rank) % 2 ? 2 : 1;
    case BENCH_MINLOC:
    case BENCH_MAXLOC:
    case BENCH_MIN:
    case BENCH_MAX: return at + rank % 100 + 1; /* a minimum must not wrap around */
    default: return bench_bits(job->redop, rank, at);
    }
}

/* The reduction of bench_value() over the first n workers. */
static inline int bench_reduced(const bench_job *job, int n, size_t i) {
    int at = (int)(i % 7), product = 1;
    switch (job->redop) {
    case BENCH_SUM: return n * at + n * (n + 1) / 2;
    case BENCH_AVG: return at + n;
    case BENCH_PROD:
        for (int rank = 0; rank < n && rank < 8; rank++) product *= bench_value(job, rank, i);
        return product;
    case BENCH_MINLOC:
    case BENCH_MIN: return at + 1;
    case BENCH_MAXLOC:
    case BENCH_MAX: return at + (n < 100 ? n : 100);
    default: break;
    }
    int bits = bench_bits(job->redop, 0, at);
    for (int rank = 1; rank < n && rank < 9; rank++)
        bits = bench_fold_bits(job->redop, bits, bench_bits(job->redop, rank, at));
    return bits;
}

/* Converts the numbers that occur here, which are whole, positive and normal, to 16-bit floats. The
 * lower bits are cut off. */
static inline uint16_t bench_half(bench_dtype dtype, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (dtype == BENCH_BF16) return (uint16_t)(bits >> 16);
    return (uint16_t)(bits ? (bits >> 13) - (112u << 10) : 0);
}

static inline float bench_whole(bench_dtype dtype, uint16_t half) {
    float x;
    uint32_t bits = (uint32_t)half << 16;
    if (dtype == BENCH_F16) bits = half & 0x7fffu ? ((uint32_t)half << 13) + (112u << 23) : 0;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline void bench_put(bench_dtype dtype, void *buffer, size_t i, int value) {
    switch (dtype) {
    case BENCH_F32: ((float *)buffer)[i] = (float)value; break;
    case BENCH_F64: ((double *)buffer)[i] = (double)value; break;
    case BENCH_BF16:
    case BENCH_F16: ((uint16_t *)buffer)[i] = bench_half(dtype, (float)value); break;
    case BENCH_I64: ((int64_t *)buffer)[i] = (int64_t)value; break;
    case BENCH_I32: ((int32_t *)buffer)[i] = (int32_t)value; break;
    case BENCH_I8: ((int8_t *)buffer)[i] = (int8_t)value; break;
    case BENCH_U8: ((uint8_t *)buffer)[i] = (uint8_t)value; break;
    case BENCH_U16: ((uint16_t *)buffer)[i] = (uint16_t)value; break;
    case BENCH_U32: ((uint32_t *)buffer)[i] = (uint32_t)value; break;
    case BENCH_U64: ((uint64_t *)buffer)[i] = (uint64_t)value; break;
    case BENCH_I16: ((int16_t *)buffer)[i] = (int16_t)value; break;
    case BENCH_BOOL: ((uint8_t *)buffer)[i] = value != 0; break;
    case BENCH_F64_I64: /* an index that follows from the value */
        ((double *)buffer)[2 * i] = value;
        ((int64_t *)buffer)[2 * i + 1] = -value;
        break;
    case BENCH_F32_I32:
        ((float *)buffer)[2 * i] = (float)value;
        ((int32_t *)buffer)[2 * i + 1] = -value;
        break;
    case BENCH_I64_I64:
        ((int64_t *)buffer)[2 * i] = value;
        ((int64_t *)buffer)[2 * i + 1] = -value;
        break;
    case BENCH_I32_I32:
        ((int32_t *)buffer)[2 * i] = value;
        ((int32_t *)buffer)[2 * i + 1] = -value;
        break;
    }
}

static inline int bench_is(bench_dtype dtype, const void *buffer, size_t i, int value) {
    switch (dtype) { /* floats: a range, since compilers warn of == between floats */
    case BENCH_F32: {
        float difference = ((const float *)buffer)[i] - (float)value;
        return difference > -0.5f && difference < 0.5f;
    }
    case BENCH_F64: {
        double difference = ((const double *)buffer)[i] - (double)value;
        return difference > -0.5 && difference < 0.5;
    }
    case BENCH_BF16:
    case BENCH_F16: {
        float difference = bench_whole(dtype, ((const uint16_t *)buffer)[i]) - (float)value;
        float near = value > 32 ? (float)value / 64 : 0.5f; /* at least 8 bits are left */
        return difference > -near && difference < near;
    }
    case BENCH_I64: return ((const int64_t *)buffer)[i] == (int64_t)value;
    case BENCH_I32: return ((const int32_t *)buffer)[i] == (int32_t)value;
    case BENCH_I8: return ((const int8_t *)buffer)[i] == (int8_t)value;
    case BENCH_U8: return ((const uint8_t *)buffer)[i] == (uint8_t)value;
    case BENCH_U16: return ((const uint16_t *)buffer)[i] == (uint16_t)value;
    case BENCH_U32: return ((const uint32_t *)buffer)[i] == (uint32_t)value;
    case BENCH_U64: return ((const uint64_t *)buffer)[i] == (uint64_t)value;
    case BENCH_I16: return ((const int16_t *)buffer)[i] == (int16_t)value;
    case BENCH_BOOL: return ((const uint8_t *)buffer)[i] == (value != 0);
    case BENCH_F64_I64:
        return bench_is(BENCH_F64, buffer, 2 * i, value) &&
               bench_is(BENCH_I64, buffer, 2 * i + 1, -value);
    case BENCH_F32_I32:
        return bench_is(BENCH_F32, buffer, 2 * i, value) &&
               bench_is(BENCH_I32, buffer, 2 * i + 1, -value);
    case BENCH_I64_I64:
        return bench_is(BENCH_I64, buffer, 2 * i, value) &&
               bench_is(BENCH_I64, buffer, 2 * i + 1, -value);
    case BENCH_I32_I32:
        return bench_is(BENCH_I32, buffer, 2 * i, value) &&
               bench_is(BENCH_I32, buffer, 2 * i + 1, -value);
    }
    return 0;
}

/* Fills a worker's input: in an all-gather only its own block, so that the rest must come from the
 * others. */
static inline void bench_fill(const bench_job *job) {
    size_t begin = 0, end = job->count;
    memset(job->in, 0, job->nbytes);
    if (job->op == BENCH_ALL_GATHER) {
        size_t block = job->count / (size_t)job->workers;
        begin = block * (size_t)job->rank;
        end = begin + block;
    }
    for (size_t i = begin; i < end; i++)
        bench_put(job->dtype, job->in, i, bench_value(job, job->rank, i));
}

/* What element i of this worker's result must be. */
static inline int bench_expected(const bench_job *job, size_t i) {
    size_t block = job->count / (size_t)job->workers;
    size_t first = block * (size_t)job->rank; /* of this worker's block */
    switch (job->op) {
    case BENCH_REDUCE_SCATTER:
        i += first; /* the result is this worker's block alone */
    /* fallthrough */
    case BENCH_ALL_REDUCE:
    case BENCH_REDUCE: return bench_reduced(job, job->workers, i);
    case BENCH_SCAN: return bench_reduced(job, job->rank + 1, i);
    case BENCH_EXSCAN: return bench_reduced(job, job->rank, i);
    case BENCH_ALL_GATHER: return bench_value(job, (int)(i / block), i);
    case BENCH_ALL_TO_ALL:
    case BENCH_ALL_TO_ALL_V: return bench_value(job, (int)(i / block), first + i % block);
    case BENCH_BROADCAST: return bench_value(job, 0, i);
    case BENCH_GATHER:
    case BENCH_GATHER_V: return bench_value(job, (int)(i / block), i % block);
    case BENCH_SCATTER:
    case BENCH_SCATTER_V: return bench_value(job, 0, first + i);
    case BENCH_EXCHANGE: return bench_value(job, 1 - job->rank, i);
    case BENCH_BARRIER: break;
    }
    return 0;
}

static inline size_t bench_wrong(const bench_job *job) {
    size_t count = job->count, wrong = 0;
    if (job->op == BENCH_REDUCE_SCATTER || job->op == BENCH_SCATTER || job->op == BENCH_SCATTER_V)
        count /= (size_t)job->workers;
    if ((job->op == BENCH_REDUCE || job->op == BENCH_GATHER || job->op == BENCH_GATHER_V) &&
        job->rank != 0)
        count = 0;
    if (job->op == BENCH_EXSCAN && job->rank == 0) count = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !bench_is(job->dtype, job->out, i, bench_expected(job, i));
    return wrong;
}

/* One round. Returns the seconds that an operation took the slowest worker. */
static inline double bench_round(bench_peer *peer, const bench_job *job, int batch) {
    peer->barrier(peer);
    double t0 = bench_now_s();
    for (int i = 0; i < batch; i++) peer->run(peer, job);
    double t1 = bench_now_s();
    return peer->max(peer, (t1 - t0) / batch);
}

/* Returns the operations in a batch. All workers see the same times, so they agree on it. */
static inline int bench_warm_up(bench_peer *peer, const bench_job *job) {
    double spent = 0, each = 0;
    for (int n = 2; spent < BENCH_WARM_UP_S; n *= 2) {
        each = bench_round(peer, job, n);
        spent += each * n;
        if (n > BENCH_MAX_BATCH) break;
    }
    if (job->nbytes >= BENCH_BATCHED_BELOW) return 1;
    double batch = each > 0 ? BENCH_BATCH_S / each : 1;
    return batch < 1 ? 1 : batch > BENCH_MAX_BATCH ? BENCH_MAX_BATCH : (int)batch;
}

static inline int bench_compare(const void *a, const void *b) {
    const double *x = (const double *)a, *y = (const double *)b;
    return (*x > *y) - (*x < *y);
}

/* Collective on the peer's workers. times [repeat] is scratch memory. */
static inline bench_result bench_measure(bench_peer *peer, const bench_job *job, int repeat,
                                         double *times) {
    bench_result result;
    bench_fill(job);
    peer->barrier(peer);
    peer->run(peer, job);
    result.wrong = peer->max(peer, (double)bench_wrong(job));
    memset(job->in, 0, job->nbytes);
    if (!bench_in_place(job)) memset(job->out, 0, job->nbytes);

    result.batch = bench_warm_up(peer, job);
    result.rounds = repeat;
    for (int i = 0; i < repeat; i++) times[i] = bench_round(peer, job, result.batch);
    qsort(times, (size_t)repeat, sizeof times[0], bench_compare);
    result.median_s = (times[(repeat - 1) / 2] + times[repeat / 2]) / 2;
    result.min_s = times[0];
    result.max_s = times[repeat - 1];
    return result;
}

static inline double bench_algbw(const bench_job *job, const bench_result *result) {
    return result->median_s > 0 ? (double)job->nbytes / result->median_s * 1e-9 : 0;
}

static inline double bench_busbw(const bench_job *job, const bench_result *result) {
    double n = job->workers, factor = 1;
    switch (job->op) {
    case BENCH_ALL_REDUCE: factor = 2 * (n - 1) / n; break;
    case BENCH_REDUCE_SCATTER:
    case BENCH_ALL_GATHER:
    case BENCH_GATHER:
    case BENCH_SCATTER:
    case BENCH_ALL_TO_ALL:
    case BENCH_GATHER_V:
    case BENCH_SCATTER_V:
    case BENCH_ALL_TO_ALL_V: factor = (n - 1) / n; break;
    case BENCH_BROADCAST:
    case BENCH_REDUCE:
    case BENCH_SCAN:
    case BENCH_EXSCAN:
    case BENCH_BARRIER:
    case BENCH_EXCHANGE: break;
    }
    return factor * bench_algbw(job, result);
}

/* "sum" and so on, or "none" if nothing is reduced. */
static inline const char *bench_redop_of(const bench_job *job) {
    return bench_reduces(job->op) || job->op == BENCH_EXCHANGE ? bench_redop_names[job->redop]
                                                               : "none";
}

/* Prints one JSON object on one line. Called by worker 0 alone. */
static inline void bench_print(const bench_peer *peer, const bench_job *job, const char *op,
                               const bench_result *result) {
    printf("{\"system\":\"%s\",\"version\":\"%s\",\"variant\":\"%s\",\"op\":\"%s\","
           "\"dtype\":\"%s\",\"redop\":\"%s\",\"workers\":%d,\"place\":\"%s\",\"asked\":%zu,"
           "\"nbytes\":%zu,\"rounds\":%d,\"batch\":%d,"
           "\"median_s\":%.9g,\"min_s\":%.9g,\"max_s\":%.9g,\"algbw\":%.6g,\"busbw\":%.6g,"
           "\"wrong\":%.0f}\n",
           peer->system, peer->version, peer->variant, op, bench_dtype_names[job->dtype],
           bench_redop_of(job), job->workers, bench_in_place(job) ? "in" : "out", job->asked,
           job->nbytes, result->rounds, result->batch, result->median_s, result->min_s,
           result->max_s, bench_algbw(job, result), bench_busbw(job, result), result->wrong);
    fflush(stdout);
}

/* Returns the index of `name` in names, -1 if it isn't there. */
static inline int bench_find(const char *const *names, size_t n_names, const char *name) {
    for (size_t i = 0; i < n_names; i++)
        if (strcmp(names[i], name) == 0) return (int)i;
    return -1;
}

/* "8,1K,64M": K, M, G are powers of 1024. Returns 0, or -1 if the text is something else. */
static inline int bench_parse_sizes(const char *text, bench_request *request_p) {
    static const char units[] = "KMG";
    int n = 0;
    for (;;) {
        char *end;
        if (*text < '0' || *text > '9' || n == BENCH_MAX_SIZES) return -1;
        errno = 0;
        unsigned long long size = strtoull(text, &end, 10);
        const char *unit = *end ? strchr(units, *end) : NULL;
        int shift = unit ? 10 * (int)(unit - units + 1) : 0;
        if (errno || size > (unsigned long long)PTRDIFF_MAX >> shift) return -1;
        request_p->sizes[n++] = (size_t)(size << shift);
        if (unit) end++;
        if (*end == '\0') break;
        if (*end != ',') return -1;
        text = end + 1;
    }
    request_p->n_sizes = n;
    return 0;
}

/* The number of rounds, 1 to a million. Returns 0, or -1 if the text is something else. */
static inline int bench_parse_repeat(const char *text, int *repeat_p) {
    char *end;
    long repeat = strtol(text, &end, 10);
    if (end == text || *end || repeat < 1 || repeat > 1000000) return -1;
    *repeat_p = (int)repeat;
    return 0;
}

/* OPERATION DTYPE REPEAT SIZE[,SIZE...] [REDOP]. Returns 0, or -1 with a line on stderr. */
static inline int bench_parse(int n_args, char **args, bench_request *request_p) {
    int enough = n_args == 4 || n_args == 5;
    int op = enough ? bench_find(bench_op_names, BENCH_N_OPS, args[0]) : -1;
    int dtype = enough ? bench_find(bench_dtype_names, BENCH_N_DTYPES, args[1]) : -1;
    int redop = n_args == 5 ? bench_find(bench_redop_names, BENCH_N_REDOPS, args[4]) : BENCH_SUM;
    if (op < 0 || dtype < 0 || redop < 0 || bench_parse_repeat(args[2], &request_p->repeat) ||
        bench_parse_sizes(args[3], request_p)) {
        fprintf(
            stderr,
            "arguments: OPERATION DTYPE REPEAT SIZE[,SIZE...] [REDOP]\n"
            "OPERATION  all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, "
            "scatter, all_to_all, gather_v, scatter_v, all_to_all_v, scan, exscan, barrier\n"
            "DTYPE      f32, f64, bf16, f16, i64, i32, i8, u8, u16, u32, u64, i16, bool, f64_i64, "
            "f32_i32, i64_i64, i32_i32\n"
            "REPEAT     rounds that are timed\n"
            "SIZE       bytes, with K, M, G for powers of 1024; at most %d sizes\n"
            "REDOP      sum (default), avg, prod, min, max, land, lor, lxor, band, bor, bxor, "
            "minloc, "
            "maxloc\n",
            BENCH_MAX_SIZES);
        return -1;
    }
    request_p->op = (bench_op)op;
    request_p->dtype = (bench_dtype)dtype;
    request_p->redop = (bench_redop)redop;
    if (request_p->op == BENCH_BARRIER) request_p->n_sizes = 1;
    return 0;
}

/* Reports on stderr that a peer lacks the operation; the program then exits with code 2. Returns
 * -1. */
static inline int bench_refuse(const char *system, const bench_request *request) {
    fprintf(stderr, "%s has no %s of %s %s\n", system, bench_op_names[request->op],
            bench_dtype_names[request->dtype], bench_redop_names[request->redop]);
    return -1;
}

#endif
