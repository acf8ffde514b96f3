/* group.h - groups of workers, and the collectives that keep them in step.
 *
 *     ls_group *g;
 *     ls_error e;
 *     if (ls_group_open(NULL, &g, &e) != LS_OK) ...;      // rank and size: from the environment
 *     ls_all_reduce(g, grad, grad, n, LS_F32, LS_AVG, &e);
 *     ls_group_close(g);
 *
 * The same program runs under `lockstep run -n 4`, under mpirun or srun, with RANK, WORLD_SIZE,
 * MASTER_ADDR and MASTER_PORT as torchrun sets them, and alone, as a group of one.
 *
 * Every collective is called by all workers of the group, in the same order, with the same count,
 * dtype, operation and root. If they differ, each worker gets LS_EDISAGREE with a message that
 * names the workers, their calls, and the files and lines they called from. The call itself returns
 * the error; if it was done before the difference was found, the next call does
 * (docs/reference/collectives.md, "Disagreement"). One thread at a time may call a group; other
 * groups (split or duplicated) may be used by other threads. Calls of different groups may be
 * waited for in any order, since a wait makes progress in the calls of all groups. But a blocking
 * call waits until it is done, so all workers that are in two groups must make these groups'
 * blocking calls in the same order.
 *
 * Errors: above LS_EPEER (LS_EINVAL: a bad argument), this call failed, outputs are untouched, the
 * group lives. LS_EPEER and below (LS_ETIMEOUT, LS_EABORT, LS_EDISAGREE, LS_EBROKEN): outputs are
 * undefined, and the group can only be closed. The ls_error of a call may be NULL: the code is
 * returned alone.
 *
 * A process that is forked from a worker has no part in the worker's groups: their calls return
 * LS_EINVAL there, except in a group of one, and closing them does nothing.
 *
 * A call that fails at one worker may succeed at another. A worker that is late, for instance, may
 * get LS_OK from a call in which the others have timed out, since all that it needs from them is
 * there; its next call fails.
 */
#ifndef LOCKSTEP_GROUP_H
#define LOCKSTEP_GROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/lockstep.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Types of elements. */
typedef enum ls_dtype {
    LS_F64,
    LS_F32,
    LS_BF16, /* the upper half of an f32; sums are made in f32 and rounded once */
    LS_F16,  /* IEEE binary16; sums as for LS_BF16 */
    LS_I64,
    LS_I32,
    LS_I8,
    LS_U8,
    LS_U16,
    LS_U32,
    LS_U64,
    LS_I16,
    LS_BOOL,    /* one byte, as C's bool: 0 or 1 */
    LS_F64_I64, /* pairs: the structs below */
    LS_F32_I32,
    LS_I64_I64,
    LS_I32_I32,
    LS_NDTYPES
} ls_dtype;

/* A value and its place, for LS_MINLOC and LS_MAXLOC. */
typedef struct ls_f64_i64 {
    double value;
    int64_t index;
} ls_f64_i64;
typedef struct ls_f32_i32 {
    float value;
    int32_t index;
} ls_f32_i32;
typedef struct ls_i64_i64 {
    int64_t value, index;
} ls_i64_i64;
typedef struct ls_i32_i32 {
    int32_t value, index;
} ls_i32_i32;

/* What a reduction does with elements. Integers wrap around. LS_AVG is for floating point only: the
 * sum, divided by the number of workers. The minimum or maximum of a NaN and a number is a NaN, and
 * -0 is less than +0, so that the order of operands does not matter. Logical operations are for
 * integers and LS_BOOL, bitwise ones for integers; LS_BOOL takes no others. Logical ones take any
 * number but 0 for true, and give 0 or 1. LS_MINLOC and LS_MAXLOC are for pairs, which take no
 * others: the least or greatest value and its index; among equal values the lowest index. A NaN
 * counts before all numbers; among several, the one with the lowest index counts. (An element that
 * is combined with no other is copied, whatever the operation: so is the input of a group of one.)
 */
typedef enum ls_op {
    LS_SUM,
    LS_AVG,
    LS_PROD,
    LS_MIN,
    LS_MAX,
    LS_LAND, /* logical */
    LS_LOR,
    LS_LXOR,
    LS_BAND, /* bitwise */
    LS_BOR,
    LS_BXOR,
    LS_MINLOC, /* of pairs */
    LS_MAXLOC,
    LS_NOPS
} ls_op;

/* Bytes of one element: 1 to 16. */
size_t ls_dtype_size(ls_dtype dtype);
/* "f64", "f32", "bf16", "f16", "i64", "i32", "i8", "u8", "u16", "u32", "u64", "i16", "bool",
 * "f64_i64", "f32_i32", "i64_i64", "i32_i32"; "sum", "avg", "prod", "min", "max", "land", "lor",
 * "lxor", "band", "bor", "bxor", "minloc", "maxloc". */
const char *ls_dtype_name(ls_dtype dtype);
const char *ls_op_name(ls_op op);

/* ---- groups ---- */

/* The workers that act together. */
typedef struct ls_group ls_group;

/* The ranks and the meeting place of a group, for programs that agree on them by themselves, in
 * place of a launcher's variables. Workers meet over TCP, and workers on one host share memory. A
 * process may open any number of such groups, each with some of the other processes. */
typedef struct ls_meeting {
    int rank, size;
    const char *address; /* worker 0's: "host:port", "[ipv6]:port" */
    /* the join key, 16 characters at least; NULL: LOCKSTEP_KEY, or the file of LOCKSTEP_KEY_FILE */
    const char *key LS_UNSET;
    /* at worker 0: a socket that listens at the address, which the library duplicates; 0: worker 0
     * opens one */
    int listen_fd LS_UNSET;
} ls_meeting;

/* How a group is opened; {0} is the default everywhere. */
typedef struct ls_group_options {
    /* "shm", "tcp", "mpi"; NULL: LOCKSTEP_TRANSPORT, or shm between workers of one host and tcp
     * between hosts */
    const char *transport LS_UNSET;
    /* forces an algorithm by name, e.g. "ring"; NULL: LOCKSTEP_ALGORITHM, or the one that the cost
     * model finds fastest. The model also chooses for collectives that the forced algorithm lacks.
     * "native": the transport's own collectives, in any order of sums (mpi; the model chooses for
     * groups that are split off); "shared": shared memory, or an error */
    const char *algorithm LS_UNSET;
    double timeout_s LS_UNSET; /* of a wait; 0: 300 s; < 0: none */
    /* a worker that waits this long, in a collective or for a single message, reports the late
     * workers and where they are; 0: 10 s; < 0: never */
    double report_s LS_UNSET;
    size_t arena_nbytes LS_UNSET; /* of each worker, for ls_group_alloc() and messages; 0: 64 MiB */
    /* tcp without key and encryption: anyone who reaches the port can join, read and change what is
     * sent */
    bool insecure LS_UNSET;
    /* a file of the links' speeds (`lockstep bench comm --save` writes it); NULL: LOCKSTEP_LINKS,
     * else they are measured while the group opens. Worker 0's file counts for all */
    const char *links LS_UNSET;
    const ls_meeting *meeting LS_UNSET; /* NULL: as the environment says */
} ls_group_options;

/* Opens the group of all workers that were started together, according to the environment; a group
 * of one where it names none. Collective. options may be NULL.
 *
 * Errors   LS_EINVAL: an option, the meeting, or a variable of the environment (named).
 *          LS_ETIMEOUT: workers (named) did not come.
 *          LS_EPEER: a worker that came was lost, or has another join key. */
ls_status ls_group_open(const ls_group_options *options, ls_group **g_p, ls_error *e);

/* A group of n threads of this process: groups [n], one for each thread. Not collective: one thread
 * opens all. Each thread closes its own. */
ls_status ls_group_open_threads(int n, const ls_group_options *options, ls_group **groups,
                                ls_error *e);

/* Calls work(group, arg, error) on n workers, which are threads of this process; the calling thread
 * is worker 0. arg is the same for all. `work` returns LS_OK, or an error that it describes in
 * *error, and does not close the group. Returns when all have returned. A worker that returns an
 * error leaves the group, and calls of the others that need it fail.
 *
 * Errors   The first error that a worker returned. LS_EINVAL: n < 1, or no work.
 *          LS_ENOMEM: no memory, or a thread can't be started. */
ls_status ls_run_threads(int n, ls_status (*work)(ls_group *, void *, ls_error *), void *arg,
                         ls_error *e);

/* Leaves the group. NULL is allowed. Not a barrier; a worker that closes while others wait for it
 * is lost to them. Requests of the group end with it: they are freed, done or not, and their
 * buffers are the caller's again. A call with a closed group, or with one of its requests, returns
 * LS_EINVAL. A process remembers the last eight groups that it closed; older ones must not be
 * used. */
void ls_group_close(ls_group *g);

/* This worker's rank, 0 .. size - 1, and the number of workers. */
int ls_group_rank(const ls_group *g);
int ls_group_size(const ls_group *g);

/* Workers that give the same colour form a new group, ranked by key, then by rank in g; with a
 * negative colour, *g_p is NULL. Collective on g. The new group's calls are independent of g's. */
ls_status ls_group_split(ls_group *g, int colour, int key, ls_group **g_p, ls_error *e);
/* A group of the same workers. Collective on g. */
ls_status ls_group_dup(ls_group *g, ls_group **g_p, ls_error *e);

/* Memory that the other workers of this host can read: collectives on it need no copies. Zeroed,
 * 128-byte aligned; from the arena where it has room, else ordinary memory (which works as well,
 * slower). NULL if there is none at all. Not collective. */
void *ls_group_alloc(ls_group *g, size_t nbytes);
void ls_group_free(ls_group *g, void *p);
/* Can the other workers of this host read [p, p + nbytes) where it lies? False where the arena had
 * no room for ls_group_alloc(), and where workers share no memory. */
bool ls_group_readable(const ls_group *g, const void *p, size_t nbytes);

/* What this worker has sent since the group was opened. Reads of shared memory are not messages. */
typedef struct ls_counters {
    uint64_t calls;
    uint64_t messages_sent, bytes_sent;
    uint64_t bytes_read; /* from other workers' memory */
} ls_counters;
ls_counters ls_group_counters(const ls_group *g);

/* The algorithm of a collective of `count` elements, and the reason, as one line of text [nbytes],
 * terminated by 0 and cut to fit (1024 suffice): its predicted cost, and that of the others.
 * `collective` is "all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather",
 * "scatter", "all_to_all", "all_to_all_v", "gather_v", "scatter_v", "scan", "exscan" or "barrier";
 * reductions are sums. Every worker gets the same line. Not collective.
 * LOCKSTEP_EXPLAIN=1 logs these lines as calls are made, once for each kind of call. */
ls_status ls_group_explain(const ls_group *g, const char *collective, size_t count, ls_dtype dtype,
                           char *text, size_t nbytes, ls_error *e);

/* ---- collectives ----
 *
 * Blocking. Counts are elements; 0 is allowed. Buffers are aligned to their elements, pairs to
 * their values.
 *
 * In place: `in` and `out` of all-reduce, reduce, scans and all-to-all may be the same pointer. In
 * reduce-scatter, all-gather, gather and scatter the smaller buffer may lie anywhere in the larger
 * one, or overlap it: at the worker's own block nothing is copied; elsewhere (also if in == out on
 * all workers) one block is copied, and a reduce-scatter or scatter overwrites the own block of its
 * input. Other buffers must not overlap.
 *
 * Order of sums: a fixed tree over the workers (LS_SUM of f32 has the same bits for every transport
 * and every algorithm that keeps it; docs/design/collectives.md), unless an algorithm that keeps
 * another is forced by name.
 */

/* out [count] = the reduction of every worker's in [count], at all workers. */
ls_status ls_all_reduce(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_op op, ls_error *e);
/* out [count] = the reduction, at root alone; elsewhere out is not touched and may be NULL. */
ls_status ls_reduce(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, ls_op op,
                    int root, ls_error *e);
/* in [size * count]; worker r gets block r of the reduction: out [count]. */
ls_status ls_reduce_scatter(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                            ls_op op, ls_error *e);
/* The blocks have counts [size] elements, which are the same on all workers. */
ls_status ls_reduce_scatter_v(ls_group *g, const void *in, void *out, const size_t *counts,
                              ls_dtype dtype, ls_op op, ls_error *e);
/* out [size * count]: worker r's in [count] is block r, at all workers. */
ls_status ls_all_gather(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_error *e);
/* As ls_all_gather(), but worker r has in [counts[r]]; counts [size] are the same on all
 * workers. */
ls_status ls_all_gather_v(ls_group *g, const void *in, void *out, const size_t *counts,
                          ls_dtype dtype, ls_error *e);
/* Copies the root's buf [count] to all workers. */
ls_status ls_broadcast(ls_group *g, void *buf, size_t count, ls_dtype dtype, int root, ls_error *e);
/* out [size * count] at root: worker r's in [count] is block r. */
ls_status ls_gather(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, int root,
                    ls_error *e);
/* in [size * count] at root; worker r gets block r: out [count]. */
ls_status ls_scatter(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, int root,
                     ls_error *e);
/* in, out [size * count]: block s of worker r goes to block r of worker s. Any worker may call it
 * in place (in == out): a block that arrives then waits in memory of the group, as much as out,
 * until the block that it replaces has been sent; over shared memory the call goes through the
 * stages. */
ls_status ls_all_to_all(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_error *e);
/* An all-to-all with blocks of any lengths: in has one block for each worker, out one from each, in
 * the order of ranks. Not in place.
 *
 * in_counts   [size] elements for each worker; out_counts [size] elements from each. Each worker
 *             gives its own; no other needs to know them. Any may be 0. Worker r must send as many
 *             to s as s expects from r; else all workers get LS_EDISAGREE with the two numbers.
 * Cost        n - 1 messages, empty where nothing is sent, and the bytes sent to others. */
ls_status ls_all_to_all_v(ls_group *g, const void *in, const size_t *in_counts, void *out,
                          const size_t *out_counts, ls_dtype dtype, ls_error *e);
/* Gather and scatter with blocks of any lengths, which only the root needs to know.
 *
 * count    elements of this worker's block; counts [size], at the root: of each worker's block.
 *          Elsewhere counts, and the buffer of all blocks, are NULL. Any may be 0. The root's
 *          counts must be those of the workers; else all get LS_EDISAGREE with the two numbers.
 * Cost     n - 1 messages to the root, or from it, each answered by one of no bytes: no worker is
 *          done before the root has come. */
ls_status ls_gather_v(ls_group *g, const void *in, size_t count, void *out, const size_t *counts,
                      ls_dtype dtype, int root, ls_error *e);
ls_status ls_scatter_v(ls_group *g, const void *in, const size_t *counts, void *out, size_t count,
                       ls_dtype dtype, int root, ls_error *e);
/* Prefixes: out [count] = the reduction of in [count] over workers 0 .. this one (scan), or over
 * the workers before this one (exscan: worker 0's out is not touched, and may be NULL). In place is
 * allowed.
 *
 * Order    that of the fixed tree over just these workers: worker r has the same bits as an
 *          all-reduce among workers 0 .. r alone, by every algorithm and transport.
 * Errors   LS_EINVAL: also for LS_AVG.
 * Cost     at most log2 n messages of count elements, or n - 1 - r from worker r, if cheaper. */
ls_status ls_scan(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, ls_op op,
                  ls_error *e);
ls_status ls_exscan(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype, ls_op op,
                    ls_error *e);
/* Returns when all workers have called it. */
ls_status ls_barrier(ls_group *g, ls_error *e);

/* From one worker to another: the k-th send to a worker is received by its k-th receive from this
 * one. A send may return before the receive is called. Not collective. */
ls_status ls_send(ls_group *g, const void *buf, size_t count, ls_dtype dtype, int to, ls_error *e);
ls_status ls_recv(ls_group *g, void *buf, size_t count, ls_dtype dtype, int from, ls_error *e);

/* ---- the caller's own reductions ----
 *
 *     typedef struct moments { double n, mean, m2; } moments;
 *     static void merge(void *arg, size_t n, const void *a, const void *b, void *out) { ... }
 *     static const ls_reduction by = {.name = "moments", .element_nbytes = sizeof(moments),
 *                                     .combine = merge};
 *     ls_all_reduce_by(g, &mine, &all, 1, &by, &e);
 *
 * combine() sets out [n] to a [n] combined with b [n], element by element. out may be a or b; else
 * they don't overlap. It is called in the thread that makes, tests or waits for any call of this
 * worker's groups: with other threads in other groups, what arg points to needs a lock.
 *
 * Order    the fixed tree of the sums, with every algorithm and transport: a is always what workers
 *          of lower ranks gave. So combine() need not be commutative. It is expected to be
 *          associative: where it is so only up to rounding, as a sum of floats, the result has the
 *          same bits each time, at all workers, and may have others with another number of workers.
 *          An algorithm that is forced by name and keeps another order is not used for it.
 * Errors   LS_EINVAL: also for element_nbytes above LS_MOST_ELEMENT, or if the elements of
 *          all workers together have more than 256 KiB. LS_EDISAGREE: also if names or sizes
 *          differ; functions can't be compared.
 */
enum { LS_MOST_ELEMENT = 512 };
typedef struct ls_reduction {
    const char *name LS_UNSET;      /* for messages, up to 31 characters; NULL: "own" */
    size_t element_nbytes LS_UNSET; /* 1 to LS_MOST_ELEMENT; a multiple of their alignment */
    void (*combine)(void *arg, size_t n, const void *a, const void *b, void *out) LS_UNSET;
    void *arg LS_UNSET;
} ls_reduction;

/* As the functions without "by", with counts of such elements. *by is copied. */
ls_status ls_all_reduce_by(ls_group *g, const void *in, void *out, size_t count,
                           const ls_reduction *by, ls_error *e);
ls_status ls_reduce_by(ls_group *g, const void *in, void *out, size_t count, const ls_reduction *by,
                       int root, ls_error *e);
ls_status ls_reduce_scatter_by(ls_group *g, const void *in, void *out, size_t count,
                               const ls_reduction *by, ls_error *e);
ls_status ls_reduce_scatter_v_by(ls_group *g, const void *in, void *out, const size_t *counts,
                                 const ls_reduction *by, ls_error *e);
ls_status ls_scan_by(ls_group *g, const void *in, void *out, size_t count, const ls_reduction *by,
                     ls_error *e);
ls_status ls_exscan_by(ls_group *g, const void *in, void *out, size_t count, const ls_reduction *by,
                       ls_error *e);

/* ---- calls that are started now and waited for later ----
 *
 * Buffers and counts belong to the call until it is done. Any number may be in flight; all workers
 * start them in the same order, and may wait for them in any order. Work is done only inside the
 * group's calls: call ls_test() now and then in between, so that other workers can proceed.
 * With r_p NULL a call waits until it is done, like the one without _start.
 *
 * A request is freed by the ls_test(), ls_wait(), ls_wait_any() or ls_wait_all() that finds it
 * done, which sets the caller's pointer to NULL: a request that is NULL counts as done, so that a
 * call may be tested now and then, and waited for in the end. After an error a request stays, is
 * freed when its group is closed, and every further wait for it returns the error; there is no
 * other way to free it.
 */
typedef struct ls_request ls_request;

ls_status ls_all_reduce_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                              ls_op op, ls_request **r_p, ls_error *e);
ls_status ls_reduce_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                          ls_op op, int root, ls_request **r_p, ls_error *e);
ls_status ls_reduce_scatter_start(ls_group *g, const void *in, void *out, size_t count,
                                  ls_dtype dtype, ls_op op, ls_request **r_p, ls_error *e);
ls_status ls_all_gather_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                              ls_request **r_p, ls_error *e);
ls_status ls_reduce_scatter_v_start(ls_group *g, const void *in, void *out, const size_t *counts,
                                    ls_dtype dtype, ls_op op, ls_request **r_p, ls_error *e);
ls_status ls_all_gather_v_start(ls_group *g, const void *in, void *out, const size_t *counts,
                                ls_dtype dtype, ls_request **r_p, ls_error *e);
ls_status ls_broadcast_start(ls_group *g, void *buf, size_t count, ls_dtype dtype, int root,
                             ls_request **r_p, ls_error *e);
ls_status ls_gather_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                          int root, ls_request **r_p, ls_error *e);
ls_status ls_scatter_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                           int root, ls_request **r_p, ls_error *e);
ls_status ls_all_to_all_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                              ls_request **r_p, ls_error *e);
ls_status ls_all_to_all_v_start(ls_group *g, const void *in, const size_t *in_counts, void *out,
                                const size_t *out_counts, ls_dtype dtype, ls_request **r_p,
                                ls_error *e);
ls_status ls_gather_v_start(ls_group *g, const void *in, size_t count, void *out,
                            const size_t *counts, ls_dtype dtype, int root, ls_request **r_p,
                            ls_error *e);
ls_status ls_scatter_v_start(ls_group *g, const void *in, const size_t *counts, void *out,
                             size_t count, ls_dtype dtype, int root, ls_request **r_p, ls_error *e);
ls_status ls_scan_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                        ls_op op, ls_request **r_p, ls_error *e);
ls_status ls_exscan_start(ls_group *g, const void *in, void *out, size_t count, ls_dtype dtype,
                          ls_op op, ls_request **r_p, ls_error *e);
ls_status ls_all_reduce_by_start(ls_group *g, const void *in, void *out, size_t count,
                                 const ls_reduction *by, ls_request **r_p, ls_error *e);
ls_status ls_reduce_by_start(ls_group *g, const void *in, void *out, size_t count,
                             const ls_reduction *by, int root, ls_request **r_p, ls_error *e);
ls_status ls_reduce_scatter_by_start(ls_group *g, const void *in, void *out, size_t count,
                                     const ls_reduction *by, ls_request **r_p, ls_error *e);
ls_status ls_reduce_scatter_v_by_start(ls_group *g, const void *in, void *out, const size_t *counts,
                                       const ls_reduction *by, ls_request **r_p, ls_error *e);
ls_status ls_scan_by_start(ls_group *g, const void *in, void *out, size_t count,
                           const ls_reduction *by, ls_request **r_p, ls_error *e);
ls_status ls_exscan_by_start(ls_group *g, const void *in, void *out, size_t count,
                             const ls_reduction *by, ls_request **r_p, ls_error *e);
ls_status ls_barrier_start(ls_group *g, ls_request **r_p, ls_error *e);
ls_status ls_send_start(ls_group *g, const void *buf, size_t count, ls_dtype dtype, int to,
                        ls_request **r_p, ls_error *e);
ls_status ls_recv_start(ls_group *g, void *buf, size_t count, ls_dtype dtype, int from,
                        ls_request **r_p, ls_error *e);

/* Is the call done? Then *r_p is freed and set to NULL. A worker that tests again and again gets
 * the same errors as one that waits, and as early; there is no time limit. Now and then it checks
 * on other workers, which may take a fifth of a second if one is stopped. */
ls_status ls_test(ls_request **r_p, bool *done_p, ls_error *e);
/* Waits until the call is done (then *r_p is freed and set to NULL), for timeout_s at most (< 0:
 * the group's own limit; NaN is refused). LS_EPENDING: the limit given here ran out; the call is
 * still in flight, and can be waited for again. */
ls_status ls_wait(ls_request **r_p, double timeout_s, ls_error *e);
/* Waits until one of the requests [n] is done (the one with the lowest index, if several are),
 * frees it, sets its pointer to NULL and *i_p to its index. NULLs are skipped; *i_p is -1 if there
 * are only NULLs. The requests may be of any groups that this thread may call.
 *
 * timeout_s  as in ls_wait(); LS_EPENDING: none is done, and *i_p is -1.
 * Errors     those of ls_wait(); *i_p is the index of the request that failed. */
ls_status ls_wait_any(ls_request **requests, int n, double timeout_s, int *i_p, ls_error *e);
/* Waits until all requests [n] are done, or have failed. statuses [n], or NULL: what ls_wait()
 * would have returned for each; LS_OK for a NULL. Requests that are done are freed and set to NULL,
 * the others stay. timeout_s is for all of them together.
 *
 * Returns the first error among them, by index, that is not LS_EPENDING; else LS_EPENDING if the
 * time ran out; else LS_OK. */
ls_status ls_wait_all(ls_request **requests, int n, double timeout_s, ls_status *statuses,
                      ls_error *e);

/* Sets where a call stands in the caller's source, for messages. The macros below call it, in C and
 * C++. */
ls_group *ls_group_at(ls_group *g, const char *file, int line);

#ifndef LS_NO_CALL_SITES
#define LS_CALL_SITE(g)                    ls_group_at((g), __FILE__, __LINE__)
#define ls_group_split(g, ...)             ls_group_split(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_group_dup(g, ...)               ls_group_dup(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_reduce(g, ...)              ls_all_reduce(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce(g, ...)                  ls_reduce(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter(g, ...)          ls_reduce_scatter(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_v(g, ...)        ls_reduce_scatter_v(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_gather(g, ...)              ls_all_gather(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_gather_v(g, ...)            ls_all_gather_v(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_broadcast(g, ...)               ls_broadcast(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_gather(g, ...)                  ls_gather(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scatter(g, ...)                 ls_scatter(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_to_all(g, ...)              ls_all_to_all(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_to_all_v(g, ...)            ls_all_to_all_v(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_gather_v(g, ...)                ls_gather_v(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scatter_v(g, ...)               ls_scatter_v(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scan(g, ...)                    ls_scan(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_exscan(g, ...)                  ls_exscan(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_barrier(g, ...)                 ls_barrier(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_send(g, ...)                    ls_send(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_recv(g, ...)                    ls_recv(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_reduce_start(g, ...)        ls_all_reduce_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_start(g, ...)            ls_reduce_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_start(g, ...)    ls_reduce_scatter_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_gather_start(g, ...)        ls_all_gather_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_v_start(g, ...)  ls_reduce_scatter_v_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_gather_v_start(g, ...)      ls_all_gather_v_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_broadcast_start(g, ...)         ls_broadcast_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_gather_start(g, ...)            ls_gather_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scatter_start(g, ...)           ls_scatter_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_to_all_start(g, ...)        ls_all_to_all_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_to_all_v_start(g, ...)      ls_all_to_all_v_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_gather_v_start(g, ...)          ls_gather_v_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scatter_v_start(g, ...)         ls_scatter_v_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scan_start(g, ...)              ls_scan_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_exscan_start(g, ...)            ls_exscan_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_barrier_start(g, ...)           ls_barrier_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_send_start(g, ...)              ls_send_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_recv_start(g, ...)              ls_recv_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_reduce_by(g, ...)           ls_all_reduce_by(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_all_reduce_by_start(g, ...)     ls_all_reduce_by_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_by(g, ...)               ls_reduce_by(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_by_start(g, ...)         ls_reduce_by_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_by(g, ...)       ls_reduce_scatter_by(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_by_start(g, ...) ls_reduce_scatter_by_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_v_by(g, ...)     ls_reduce_scatter_v_by(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_reduce_scatter_v_by_start(g, ...)                                                       \
    ls_reduce_scatter_v_by_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scan_by(g, ...)         ls_scan_by(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_scan_by_start(g, ...)   ls_scan_by_start(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_exscan_by(g, ...)       ls_exscan_by(LS_CALL_SITE(g), __VA_ARGS__)
#define ls_exscan_by_start(g, ...) ls_exscan_by_start(LS_CALL_SITE(g), __VA_ARGS__)
#endif

#ifdef __cplusplus
}
#endif
#endif
