/* mpi_test.c - the transport "mpi" under real mpiruns, of Open MPI and of MPICH.
 *
 * The test starts itself under mpirun, as workers (`mpi_test worker MPI CASE`), and looks at their
 * exit code and at what they print: each says "ok" when all is well. Where an mpirun or a plugin is
 * missing, its part is skipped. */
#include "net/mpi.h"

#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/random.h"
#include "coll/algorithm.h"
#include "coll/flight.h"
#include "lockstep/group.h"
#include "net/native.h"
#include "test.h"

/* ---- workers ---- */

static ls_net *net;
static ls_error err;

_Noreturn static void die(const char *what) {
    fprintf(stderr, "worker %d: %s\n", net ? net->rank : -1, what);
    fflush(stderr);
    _exit(3);
}
static void need(bool good, const char *what) {
    if (!good) die(what);
}
static void succeed(ls_status s) {
    if (s != LS_OK) die(err.msg);
}

static uint64_t hash(uint64_t seed, uint64_t a, uint64_t b) {
    uint32_t w[4];
    ls_random_words(seed, LS_STREAM_FAKE, a, b, w);
    return (uint64_t)w[1] << 32 | w[0];
}

/* Waits for `n` messages; fails the worker after 60 s. */
static void wait_messages(int n) {
    int64_t end = ls_clock_ns() + 60000000000;
    while (n > 0) {
        ls_message *done = NULL;
        succeed(net->ops->poll(net, 20000000, &done, &err));
        for (; done; done = done->next) n--;
        if (ls_clock_ns() > end) die("messages did not come within 60 s");
    }
    need(n == 0, "more messages were done than posted");
}

static ls_message message(int peer, uint64_t tag, void *data, size_t nbytes) {
    return (ls_message){.peer = peer,
                        .tag = tag,
                        .data = data,
                        .nbytes = nbytes,
                        .print = tag * 3 + 1,
                        .owner = &net};
}

/* All have come: everyone tells worker 0, which tells everyone. */
static void meet_all(void) {
    static uint64_t round;
    int n = net->size;
    ls_message *m = LS_NEW_ARRAY(ls_message, 2 * (size_t)n);
    char byte[2] = {1, 0};
    round += 2;
    for (int phase = 0; phase < 2; phase++) {
        int posted = 0;
        bool tells = (phase == 0) == (net->rank != 0);
        for (int i = 1; i < n; i++) {
            if (net->rank != 0 && net->rank != i) continue;
            m[posted] =
                message(net->rank ? 0 : i, (uint64_t)0xffff << 48 | (round + (uint64_t)phase),
                        &byte[!tells], 1);
            succeed(tells ? net->ops->send(net, &m[posted], &err)
                          : net->ops->recv(net, &m[posted], &err));
            posted++;
        }
        wait_messages(posted);
    }
    free(m);
}

/* -- collectives -- */

/* One worker's part of a call. Elements are small integers, so that sums are exact in any type and
 * any order. */
typedef struct part {
    const ls_algorithm *algorithm;
    ls_call call;
    bool in_place;
    unsigned char *in, *out;
    size_t nin, nout;
    ls_schedule schedule;
    ls_flight flight;
} part;

static const ls_kernels *kernels(void) { return ls_kernels_named("portable"); }

static void put(ls_dtype t, void *p, size_t i, int x) {
    float f = (float)x;
    switch (t) {
    case LS_F64: ((double *)p)[i] = x; break;
    case LS_F32: ((float *)p)[i] = f; break;
    case LS_I64: ((int64_t *)p)[i] = x; break;
    case LS_I32: ((int32_t *)p)[i] = x; break;
    case LS_I8: ((int8_t *)p)[i] = (int8_t)x; break;
    case LS_U8: ((uint8_t *)p)[i] = (uint8_t)x; break;
    default: kernels()->narrow(t, 1, &f, (uint16_t *)p + i); break;
    }
}

static int value(int rank, size_t i) { return (int)((i * 7 + (size_t)rank * 5 + 3) % 11); }

static int expected(const ls_call *c, int rank, int n, size_t i) {
    size_t count = c->count;
    int sum = 0;
    switch (c->what) {
    case LS_CALL_BROADCAST: return value(c->root, i);
    case LS_CALL_SCATTER: return value(c->root, (size_t)rank * count + i);
    case LS_CALL_ALL_GATHER:
    case LS_CALL_GATHER: return value((int)(i / count), i % count);
    case LS_CALL_ALL_TO_ALL: return value((int)(i / count), (size_t)rank * count + i % count);
    case LS_CALL_REDUCE_SCATTER: i += (size_t)rank * count; break;
    default: break;
    }
    for (int r = 0; r < n; r++) sum += value(r, i);
    return sum;
}

static void counts_of(const ls_call *c, int rank, int n, size_t *in_p, size_t *out_p) {
    size_t all = (size_t)n * c->count, at_root = rank == c->root;
    *in_p = *out_p = c->count;
    switch (c->what) {
    case LS_CALL_REDUCE_SCATTER: *in_p = all; break;
    case LS_CALL_ALL_GATHER: *out_p = all; break;
    case LS_CALL_SCATTER: *in_p = at_root * all; break;
    case LS_CALL_GATHER: *out_p = at_root * all; break;
    case LS_CALL_REDUCE: *out_p = at_root * c->count; break;
    case LS_CALL_ALL_TO_ALL: *in_p = *out_p = all; break;
    case LS_CALL_BROADCAST: *in_p = 0; break;
    case LS_CALL_BARRIER: *in_p = *out_p = 0; break;
    default: break;
    }
}

static unsigned char *buffer(size_t nbytes) {
    unsigned char *p = ls_alloc(nbytes + 1);
    memset(p, 0x77, nbytes + 1);
    return p;
}

static void part_start(part *p, uint32_t number) {
    const ls_call *c = &p->call;
    size_t size = ls_dtype_size(c->dtype);
    counts_of(c, net->rank, net->size, &p->nin, &p->nout);
    p->in_place = p->in_place && c->what == LS_CALL_ALL_REDUCE && c->count;
    p->out = buffer(p->nout * size);
    p->in = p->in_place ? p->out : buffer(p->nin * size);
    for (size_t i = 0; i < p->nin; i++) put(c->dtype, p->in, i, value(net->rank, i));
    for (size_t i = 0; c->what == LS_CALL_BROADCAST && c->root == net->rank && i < p->nout; i++)
        put(c->dtype, p->out, i, value(net->rank, i));
    ls_algorithm_make(p->algorithm, c, net->rank, net->size, p->in_place ? LS_IN_IN_OUT : LS_APART,
                      0, &p->schedule);
    ls_flight_open(&p->flight, &p->schedule, net, kernels(), NULL);
    p->flight.owner = p;
    succeed(ls_flight_start(&p->flight, p->in, p->out, 1, number, 99, &err));
}

/* Until all of them are done. */
static void parts_run(part *parts, int n) {
    int64_t end = ls_clock_ns() + 60000000000;
    for (int left = n; left;) {
        bool worked = false;
        for (int i = 0; i < n; i++) {
            bool did = false;
            succeed(ls_flight_work(&parts[i].flight, &did, &err));
            worked = worked || did;
        }
        ls_message *done = NULL;
        succeed(net->ops->poll(net, worked ? 0 : 20000000, &done, &err));
        while (done) {
            ls_message *next = done->next;
            part *p = done->owner;
            succeed(ls_flight_done(&p->flight, done, &err));
            done = next;
        }
        left = 0;
        for (int i = 0; i < n; i++) left += !ls_flight_finished(&parts[i].flight);
        need(ls_clock_ns() < end, "a collective did not end within 60 s");
    }
}

static void part_check(part *p) {
    ls_dtype t = p->call.dtype;
    size_t size = ls_dtype_size(t);
    for (size_t i = 0; i < p->nout; i++) {
        uint64_t want = 0;
        put(t, &want, 0, expected(&p->call, net->rank, net->size, i));
        if (memcmp(&want, p->out + i * size, size) == 0) continue;
        fprintf(stderr, "%s %s %s, count %zu, piece %zu, element %zu: ", p->algorithm->name,
                ls_collective_name(p->call.what), ls_dtype_name(t), p->call.count, p->call.piece,
                i);
        die("a wrong result");
    }
    need(p->out[p->nout * size] == 0x77, "wrote behind out");
    if (!p->in_place) free(p->in);
    free(p->out);
    ls_flight_free(&p->flight);
    ls_schedule_free(&p->schedule);
}

static part part_of(int a, int what, size_t count, uint64_t seed) {
    return (part){.algorithm = ls_algorithms[a],
                  .in_place = seed & 1,
                  .call = {.what = (ls_collective)what,
                           .dtype = (ls_dtype)(hash(1, 0, seed) % LS_NDTYPES),
                           .root = (int)(seed % (uint64_t)net->size),
                           .count = count,
                           .piece = seed % 3 ? 0 : count / 3 + 1}};
}

static const size_t COUNTS[] = {0, 1, 5, 1000, 300000};
enum { NCOUNTS = sizeof COUNTS / sizeof *COUNTS };

static void case_collectives(void) {
    uint32_t number = 0;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int what = 0; what < LS_NCALLS; what++)
            for (int k = 0; k < NCOUNTS && ls_algorithm_has(ls_algorithms[a], (ls_collective)what);
                 k++) {
                part p = part_of(a, what, COUNTS[k], number);
                part_start(&p, number++);
                parts_run(&p, 1);
                part_check(&p);
            }
    need(net->size == 1 || (net->messages_sent && net->bytes_sent && net->messages_received &&
                            net->bytes_received),
         "nothing was counted");
}

/* Two calls in flight, begun in another order by every other worker. */
static void case_two_flights(void) {
    uint32_t number = 0;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int k = 0; k < NCOUNTS; k++) {
            if (!ls_algorithm_has(ls_algorithms[a], LS_CALL_ALL_REDUCE)) continue;
            part p[2] = {part_of(a, LS_CALL_ALL_REDUCE, COUNTS[k], number),
                         part_of(a, LS_CALL_ALL_REDUCE, COUNTS[NCOUNTS - 1 - k], number + 1)};
            int first = net->rank & 1;
            part_start(&p[first], number + (uint32_t)first);
            part_start(&p[1 - first], number + 1 - (uint32_t)first);
            parts_run(p, 2);
            part_check(&p[0]);
            part_check(&p[1]);
            number += 2;
        }
}

/* -- messages -- */

enum { MESSAGES = 30 }; /* from each to each, itself too */

static size_t random_size(int from, int to, int k) {
    static const size_t edges[] = {0, 1, 3959, 3960, 3961, 4096, 65536};
    uint64_t h = hash(7, (uint64_t)(from * 64 + to), (uint64_t)k);
    if (h % 3 == 0) return edges[h / 3 % 7];
    return h % 3 == 1 ? h / 3 % 9000 : h / 3 % (1 << 20);
}
static unsigned char random_byte(int from, int to, int k, size_t i) {
    return (unsigned char)((size_t)(from * 31 + to * 17 + k * 7) + i * 13 + (i >> 8));
}

static void case_messages(void) {
    int n = net->size, total = 2 * n * MESSAGES;
    ls_message *m = LS_NEW_ARRAY(ls_message, (size_t)total);
    int *order = LS_NEW_ARRAY(int, (size_t)total), open = 0;
    for (int i = 0; i < total; i++) {
        bool sends = i & 1;
        int peer = i / 2 / MESSAGES, k = i / 2 % MESSAGES;
        int from = sends ? net->rank : peer, to = sends ? peer : net->rank;
        size_t nbytes = random_size(from, to, k);
        unsigned char *data = buffer(nbytes);
        for (size_t j = 0; sends && j < nbytes; j++) data[j] = random_byte(from, to, k, j);
        m[i] = message(peer, (uint64_t)k << 40 | (uint64_t)k, data, nbytes);
        order[i] = i;
    }
    for (int i = total - 1; i > 0; i--) {
        int j = (int)(hash(8, (uint64_t)net->rank, (uint64_t)i) % (uint64_t)(i + 1)),
            was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
    for (int i = 0; i < total; i++) {
        ls_message *at = &m[order[i]], *done = NULL;
        succeed(order[i] & 1 ? net->ops->send(net, at, &err) : net->ops->recv(net, at, &err));
        open++;
        if (hash(9, (uint64_t)net->rank, (uint64_t)i) % 3) continue;
        succeed(net->ops->poll(net, 0, &done, &err));
        for (; done; done = done->next) open--;
    }
    wait_messages(open);
    for (int i = 0; i < total; i++) {
        unsigned char *data = m[i].data;
        int peer = i / 2 / MESSAGES, k = i / 2 % MESSAGES;
        for (size_t j = 0; !(i & 1) && j < m[i].nbytes; j++)
            need(data[j] == random_byte(peer, net->rank, k, j), "a message is not what was sent");
        need(i & 1 || (m[i].their_print == m[i].print && m[i].their_nbytes == m[i].nbytes),
             "a message's print or length is not what was sent");
        need(data[m[i].nbytes] == 0x77, "wrote behind a message");
        free(data);
    }
    free(m);
    free(order);
}

/* More than MPI gets at once. */
static void case_long(void) {
    size_t n = (size_t)41 << 20;
    int next = (net->rank + 1) % net->size, before = (net->rank + net->size - 1) % net->size;
    unsigned char *out = buffer(n), *in = buffer(n);
    for (size_t i = 0; i < n; i++) out[i] = random_byte(net->rank, next, 0, i);
    ls_message s = message(next, 1, out, n), r = message(before, 1, in, n);
    succeed(net->ops->recv(net, &r, &err));
    succeed(net->ops->send(net, &s, &err));
    wait_messages(2);
    for (size_t i = 0; i < n; i++)
        need(in[i] == random_byte(before, net->rank, 0, i), "a long message is wrong");
    need(in[n] == 0x77, "wrote behind a long message");
    free(out);
    free(in);
}

/* The lengths of both ends differ, each time with the sender or the receiver first. */
static void case_lengths(void) {
    static const size_t sent[] = {100, 100, 200000, 200000, 0, 5000, 3960, 3961};
    static const size_t asked[] = {99, 200000, 200001, 100, 7000, 0, 3961, 3960};
    int n = net->size, next = (net->rank + 1) % n, before = (net->rank + n - 1) % n;
    for (uint64_t i = 0; i < 16; i++) {
        unsigned char *out = buffer(sent[i / 2]), *in = buffer(asked[i / 2]);
        ls_message s = message(next, i, out, sent[i / 2]), r = message(before, i, in, asked[i / 2]);
        bool later = i & 1;
        int open = 1;
        succeed(later ? net->ops->send(net, &s, &err) : net->ops->recv(net, &r, &err));
        for (int64_t end = ls_clock_ns() + 2000000; ls_clock_ns() < end;) {
            ls_message *done = NULL;
            succeed(net->ops->poll(net, 100000, &done, &err));
            for (; done; done = done->next) open--;
        }
        succeed(later ? net->ops->recv(net, &r, &err) : net->ops->send(net, &s, &err));
        wait_messages(open + 1);
        need(r.their_nbytes == sent[i / 2] && r.their_print == r.print, "the length is not told");
        for (size_t j = 0; j <= asked[i / 2]; j++) need(in[j] == 0x77, "wrote a wrong message");
        free(out);
        free(in);
    }
}

/* Messages are given up at any time, at either end; the others arrive, and memory stays as it was.
 */
static void case_forget(void) {
    int n = net->size, next = (net->rank + 1) % n, before = (net->rank + n - 1) % n;
    static int dropped, kept;
    for (uint64_t i = 0; i < 60; i++) {
        size_t nbytes = i % 4 == 0 ? 100 : i % 4 == 1 ? 30000 : 3000000;
        unsigned char *out = buffer(nbytes), *in = buffer(nbytes), good[2][8] = {{0}};
        ls_message s = message(next, 2 * i, out, nbytes), r = message(before, 2 * i, in, nbytes);
        ls_message s2 = message(next, 2 * i + 1, good[0], 8);
        ls_message r2 = message(before, 2 * i + 1, good[1], 8);
        s.owner = r.owner = &dropped;
        s2.owner = r2.owner = &kept;
        if (i % 3 != 1) succeed(net->ops->send(net, &s, &err));
        if (i % 3 != 2) succeed(net->ops->recv(net, &r, &err));
        succeed(net->ops->send(net, &s2, &err));
        int64_t end = ls_clock_ns() + (int64_t)(hash(3, (uint64_t)net->rank, i) % 2000000);
        int open = 2;
        while (ls_clock_ns() < end) {
            ls_message *done = NULL;
            succeed(net->ops->poll(net, 10000, &done, &err));
            for (; done; done = done->next) open -= done->owner == &kept;
        }
        net->ops->forget(net, &dropped);
        memset(out, 0x11, nbytes);
        memset(in, 0x22, nbytes);
        succeed(net->ops->recv(net, &r2, &err));
        wait_messages(open);
        meet_all();
        for (size_t j = 0; j < nbytes; j++) need(in[j] == 0x22, "wrote after forget");
        free(out);
        free(in);
    }
}

static void *abort_soon(void *arg) {
    struct timespec t = {.tv_nsec = 50000000};
    nanosleep(&t, NULL);
    net->ops->abort(net);
    return arg;
}

static void case_abort(void) {
    static unsigned char byte;
    ls_message m = message(0, 12345, &byte, 1), *done = NULL;
    pthread_t thread;
    ls_status s = LS_OK;
    meet_all();
    succeed(net->ops->recv(net, &m, &err));
    pthread_create(&thread, NULL, abort_soon, NULL);
    int64_t start = ls_clock_ns();
    while (s == LS_OK && ls_clock_ns() < start + 10000000000)
        s = net->ops->poll(net, -1, &done, &err);
    need(s == LS_EABORT, "abort did not end a poll");
    need(net->ops->poll(net, 0, &done, &err) == LS_EABORT, "a poll after abort succeeded");
    pthread_join(thread, NULL);
    net->ops->forget(net, &net);
}

/* Worker 0 closes as soon as its messages are done; the others ask for them much later. */
static void case_late(void) {
    unsigned char *data = buffer(3900);
    ls_message m = message(0, 1, data, 3900);
    if (net->rank) {
        nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 300000000}, NULL); /* > its patience */
        memset(data, 0, 3900);
        succeed(net->ops->recv(net, &m, &err));
        wait_messages(1);
        for (int i = 0; i < 3900; i++) need(data[i] == 0x77, "a late message is wrong");
    }
    for (int i = 1; i < net->size && net->rank == 0; i++) {
        m = message(i, 1, data, 3900);
        succeed(net->ops->send(net, &m, &err));
        wait_messages(1);
    }
    free(data);
}

/* The last worker ends without a word; the launcher ends the others, who wait for it. */
static void case_exit(void) {
    static unsigned char byte;
    ls_message m = message(net->size - 1, 1, &byte, 1), *done = NULL;
    meet_all();
    if (net->rank == net->size - 1) _exit(0);
    succeed(net->ops->recv(net, &m, &err));
    while (net->ops->poll(net, -1, &done, &err) == LS_OK) continue;
}

/* -- MPI's own collectives -- */

typedef struct four {
    size_t count;
    ls_dtype t;
    unsigned char *all, *block; /* [size * count], [count] */
} four;

static void fill(const four *f, unsigned char *p, int rank, size_t n) {
    for (size_t i = 0; i < n; i++) put(f->t, p, i, value(rank, i));
}
static void check(const four *f, const unsigned char *p, ls_collective what, size_t n) {
    size_t size = ls_dtype_size(f->t);
    ls_call c = {.what = what, .count = f->count};
    for (size_t i = 0; i < n; i++) {
        uint64_t want = 0;
        put(f->t, &want, 0, expected(&c, net->rank, net->size, i));
        need(memcmp(&want, p + i * size, size) == 0, "a native collective is wrong");
    }
}

/* Posts it, and waits. */
static void native(const four *f, ls_native_what what, ls_op op, const void *in, void *out) {
    ls_native_call c = {
        .what = what, .dtype = f->t, .op = op, .root = net->size - 1, .count = f->count};
    ls_message m = {.owner = &net};
    c.in = in;
    c.out = out;
    need(net->native->can(net, &c), "can() is wrong");
    succeed(net->native->start(net, &c, &m, &err));
    wait_messages(1);
}

static void check_reductions(const four *f) {
    size_t n = f->count, all = n * (size_t)net->size, size = ls_dtype_size(f->t);
    unsigned char *mine = f->all + (size_t)net->rank * n * size;
    fill(f, f->all, net->rank, n);
    native(f, LS_NATIVE_ALL_REDUCE, LS_SUM, f->all, f->block);
    check(f, f->block, LS_CALL_ALL_REDUCE, n);
    memset(f->block, 0, n * size);
    native(f, LS_NATIVE_REDUCE, LS_SUM, f->all, f->block);
    if (net->rank == net->size - 1) check(f, f->block, LS_CALL_ALL_REDUCE, n);
    native(f, LS_NATIVE_ALL_REDUCE, LS_SUM, f->all, f->all);
    check(f, f->all, LS_CALL_ALL_REDUCE, n);
    fill(f, f->all, net->rank, n);
    native(f, LS_NATIVE_REDUCE, LS_SUM, f->all, f->all);
    if (net->rank == net->size - 1) check(f, f->all, LS_CALL_ALL_REDUCE, n);
    fill(f, f->all, net->rank, all);
    native(f, LS_NATIVE_REDUCE_SCATTER, LS_SUM, f->all, f->block);
    check(f, f->block, LS_CALL_REDUCE_SCATTER, n);
    native(f, LS_NATIVE_REDUCE_SCATTER, LS_SUM, f->all, mine);
    check(f, mine, LS_CALL_REDUCE_SCATTER, n);
}

static void check_moves(const four *f) {
    size_t n = f->count, all = n * (size_t)net->size, size = ls_dtype_size(f->t);
    unsigned char *mine = f->all + (size_t)net->rank * n * size, *other = buffer(all * size);
    int last = net->size - 1;
    fill(f, f->block, net->rank, n);
    native(f, LS_NATIVE_ALL_GATHER, LS_SUM, f->block, f->all);
    check(f, f->all, LS_CALL_ALL_GATHER, all);
    memset(f->all, 0, all * size);
    native(f, LS_NATIVE_GATHER, LS_SUM, f->block, net->rank == last ? f->all : NULL);
    if (net->rank == last) check(f, f->all, LS_CALL_GATHER, all);
    memset(f->all, 0, all * size);
    fill(f, mine, net->rank, n);
    native(f, LS_NATIVE_ALL_GATHER, LS_SUM, mine, f->all);
    check(f, f->all, LS_CALL_ALL_GATHER, all);
    fill(f, f->all, net->rank, all);
    native(f, LS_NATIVE_ALL_TO_ALL, LS_SUM, f->all, other);
    check(f, other, LS_CALL_ALL_TO_ALL, all);
    fill(f, f->block, net->rank, n);
    native(f, LS_NATIVE_BROADCAST, LS_SUM, NULL, f->block);
    for (size_t i = 0; i < n; i++) {
        uint64_t want = 0;
        put(f->t, &want, 0, value(last, i));
        need(memcmp(&want, f->block + i * size, size) == 0, "a native broadcast is wrong");
    }
    native(f, LS_NATIVE_SCATTER, LS_SUM, net->rank == last ? f->all : NULL, f->block);
    for (size_t i = 0; i < n; i++) {
        uint64_t want = 0;
        put(f->t, &want, 0, value(last, (size_t)net->rank * n + i));
        need(memcmp(&want, f->block + i * size, size) == 0, "a native scatter is wrong");
    }
    native(f, LS_NATIVE_BARRIER, LS_SUM, NULL, NULL);
    free(other);
}

static bool can(ls_native_what what, ls_dtype t, ls_op op, size_t count) {
    return net->native->can(net,
                            &(ls_native_call){.what = what, .dtype = t, .op = op, .count = count});
}

static void case_native(void) {
    float x = (float)net->rank, y = 0;
    need(net->native, "there are no native collectives");
    for (int t = 0; t < LS_NDTYPES; t++)
        for (int k = 0; k < NCOUNTS; k++) {
            size_t nbytes = COUNTS[k] * ls_dtype_size((ls_dtype)t);
            four f = {COUNTS[k], (ls_dtype)t, buffer(nbytes * (size_t)net->size), buffer(nbytes)};
            if (can(LS_NATIVE_ALL_REDUCE, f.t, LS_SUM, f.count))
                check_reductions(&f);
            else
                need(t == LS_BF16 || t == LS_F16, "only halves can't be reduced");
            check_moves(&f);
            need(f.block[nbytes] == 0x77, "wrote behind a block");
            free(f.all);
            free(f.block);
        }
    four one = {1, LS_F32, NULL, NULL};
    native(&one, LS_NATIVE_ALL_REDUCE, LS_AVG, &x, &y);
    need(y == (float)(net->size - 1) / 2, "a wrong average");
    need(!can(LS_NATIVE_ALL_REDUCE, LS_F32, LS_MAX, 1) &&
             can(LS_NATIVE_ALL_REDUCE, LS_I32, LS_MAX, 1) &&
             !can(LS_NATIVE_ALL_REDUCE, LS_F32, LS_SUM, (size_t)1 << 31) &&
             can(LS_NATIVE_BARRIER, LS_U8, LS_SUM, 0),
         "can() is wrong");
}

/* -- groups over MPI without shared memory, as workers of several hosts are -- */

static ls_group *open_over_mpi(double report_s) {
    ls_group *g = NULL;
    ls_group_options o = {.transport = "mpi", .timeout_s = 60, .report_s = report_s};
    succeed(ls_group_open(&o, &g, &err));
    return g;
}

/* Each takes the next worker for the root: no message shows it. */
static void case_group_disagrees(void) {
    float x[50] = {0};
    ls_group *g = open_over_mpi(0);
    int n = ls_group_size(g);
    ls_status s = ls_broadcast(g, x, 50, LS_F32, (ls_group_rank(g) + 1) % n, &err);
    if (n == 1) succeed(s);
    if (n > 1 && (s != LS_EINVAL || !strstr(err.msg, "workers disagree: worker ") ||
                  !strstr(err.msg, "called broadcast f32, 50 elements, root ")))
        die(err.msg);
    printf("ok %d\n", ls_group_rank(g));
    fflush(stdout);
    ls_group_close(g);
    _exit(0);
}

/* What is written to stderr while q is waited for, up to 20 s. */
static void wait_for_report(ls_request **q, char *text, size_t nbytes) {
    FILE *log = tmpfile();
    int saved = dup(STDERR_FILENO);
    size_t n = 0;
    dup2(fileno(log), STDERR_FILENO);
    for (int i = 0; i < 20 && n == 0 && *q; i++) {
        ls_wait(q, 1, &err);
        rewind(log);
        n = fread(text, 1, nbytes - 1, log);
    }
    dup2(saved, STDERR_FILENO);
    close(saved);
    fclose(log);
    text[n] = 0;
}

/* Worker 1 is outside of any call until worker 0 has its report. */
static void case_group_late(void) {
    sigset_t wake;
    sigemptyset(&wake);
    sigaddset(&wake, SIGUSR1);
    sigprocmask(SIG_BLOCK, &wake, NULL);
    ls_group *g = open_over_mpi(0.2);
    char text[4096] = "", want[128];
    int rank = ls_group_rank(g);
    int32_t other = rank == 1 ? getpid() : 0;
    ls_request *q = NULL;
    succeed(ls_all_reduce(g, &other, &other, 1, LS_I32, LS_MAX, &err));
    if (rank == 1) sigtimedwait(&wake, NULL, &(struct timespec){.tv_sec = 30});
    succeed(ls_barrier_start(g, &q, &err));
    if (rank == 0 && other) {
        snprintf(want, sizeof want, "worker 1 (pid %d) is ", other);
        wait_for_report(&q, text, sizeof text);
        kill(other, SIGUSR1);
        if (!strstr(text, " workers have waited 0 s in barrier as call 1 at mpi_test.c:") ||
            !strstr(text, want) ||
            !strstr(text, "; it has made all_reduce i32 max, 1 elements as call 0 at mpi_test.c:"))
            die(text);
    }
    succeed(q ? ls_wait(&q, -1, &err) : LS_OK);
    printf("ok %d\n", rank);
    fflush(stdout);
    ls_group_close(g);
    _exit(0);
}

/* Two of them, and messages, on their way at once; they end in any order. */
static void case_native_at_once(void) {
    enum { N = 300000 };
    int next = (net->rank + 1) % net->size, before = (net->rank + net->size - 1) % net->size;
    int32_t *a = LS_NEW_ARRAY(int32_t, N), *b = LS_NEW_ARRAY(int32_t, N), out = 5, in = 0;
    for (int i = 0; i < N; i++) a[i] = b[i] = net->rank;
    ls_message m[4] = {
        {.owner = a}, {.owner = b}, message(next, 7, &out, 4), message(before, 7, &in, 4)};
    ls_native_call sum = {LS_NATIVE_ALL_REDUCE, LS_I32, LS_SUM, 0, N, a, a};
    ls_native_call most = {LS_NATIVE_ALL_REDUCE, LS_I32, LS_MAX, 0, N, b, b};
    if (net->rank % 2) succeed(net->ops->send(net, &m[2], &err));
    succeed(net->native->start(net, &sum, &m[0], &err));
    if (net->rank % 2 == 0) succeed(net->ops->send(net, &m[2], &err));
    succeed(net->native->start(net, &most, &m[1], &err));
    succeed(net->ops->recv(net, &m[3], &err));
    wait_messages(4);
    int n = net->size;
    for (int i = 0; i < N; i++)
        need(a[i] == n * (n - 1) / 2 && b[i] == n - 1, "one of two native collectives is wrong");
    need(in == 5, "a message beside native collectives is wrong");
    free(a);
    free(b);
}

/* One that worker 0 never comes to: given up within its time, and the transport with it. MPI can't
 * end well after that: who has seen it says so, and waits for the launcher. */
static void case_native_forgotten(void) {
    int32_t x = 1;
    ls_message m = {.owner = &m}, other = message(0, 9, &x, 4);
    ls_native_call sum = {LS_NATIVE_ALL_REDUCE, LS_I32, LS_SUM, 0, 1, &x, &x};
    meet_all();
    if (net->rank) {
        succeed(net->native->start(net, &sum, &m, &err));
        net->ops->forget(net, &m);
        need(net->ops->send(net, &other, &err) == LS_EPEER, "the transport goes on");
    }
    printf("ok %d\n", net->rank);
    fflush(stdout);
    nanosleep(&(struct timespec){.tv_sec = net->rank ? 10 : 2}, NULL);
    _exit(0);
}

/* -- the same through the groups of group.h -- */

#define WHOLE(call)                                                                                \
    do {                                                                                           \
        if ((call) != LS_OK) die(err.msg);                                                         \
    } while (0)

/* Sums of small integers, so that their order doesn't show. */
static void group_calls(ls_group *g, int n, int rank) {
    enum { COUNT = 5000 };
    float *in = LS_NEW_ARRAY(float, COUNT *(size_t)n), *out = LS_NEW_ARRAY(float, COUNT *(size_t)n);
    ls_request *r[3] = {NULL};
    float sums[3][4];
    for (int i = 0; i < COUNT; i++) in[i] = (float)(i % 7 + rank);
    WHOLE(ls_all_reduce(g, in, out, COUNT, LS_F32, LS_SUM, &err));
    for (int i = 0; i < COUNT; i++)
        need(out[i] == (float)(n * (i % 7) + n * (n - 1) / 2), "a native all_reduce is wrong");
    WHOLE(ls_all_gather(g, in, out, COUNT, LS_F32, &err));
    for (int i = 0; i < COUNT * n; i++)
        need(out[i] == (float)(i % COUNT % 7 + i / COUNT), "a native all_gather is wrong");
    WHOLE(ls_barrier(g, &err));
    /* Started in one order, waited for in another; one of them MPI can't do well, and goes by
     * messages. */
    for (int k = 0; k < 3; k++)
        sums[k][0] = sums[k][1] = sums[k][2] = sums[k][3] = (float)(rank + k);
    WHOLE(ls_all_reduce_start(g, sums[0], sums[0], 4, LS_F32, LS_SUM, &r[0], &err));
    WHOLE(ls_all_reduce_start(g, sums[1], sums[1], 4, LS_F32, LS_MAX, &r[1], &err));
    WHOLE(ls_all_reduce_start(g, sums[2], sums[2], 4, LS_F32, LS_AVG, &r[2], &err));
    for (int k = 0; k < 3; k++) WHOLE(ls_wait(&r[(k + rank) % 3], -1, &err));
    need(sums[0][3] == (float)(n * (n - 1) / 2) && sums[1][3] == (float)n &&
             sums[2][3] == (float)(n - 1) / 2 + 2,
         "native calls in flight are wrong");
    free(in);
    free(out);
}

static void explains(ls_group *g, const char *what, const char *says) {
    char text[1024];
    WHOLE(ls_group_explain(g, what, 1000, LS_F32, text, sizeof text, &err));
    if (strstr(text, says)) return;
    fprintf(stderr, "%s\n", text);
    die("it is explained otherwise");
}

static void case_group(void) {
    ls_group *g = NULL, *half = NULL;
    setenv("LOCKSTEP_TRANSPORT", "mpi", 1);
    WHOLE(ls_group_open(&(ls_group_options){.algorithm = "native"}, &g, &err));
    int n = ls_group_size(g), rank = ls_group_rank(g);
    ls_counters before = ls_group_counters(g);
    group_calls(g, n, rank);
    ls_counters after = ls_group_counters(g);
    need(after.calls - before.calls == 6, "calls are not counted");
    if (n > 1) explains(g, "all_reduce", "native");
    WHOLE(ls_group_split(g, rank % 2, 0, &half, &err));
    if (ls_group_size(half) > 1) explains(half, "all_reduce", " by ");
    group_calls(half, ls_group_size(half), ls_group_rank(half));
    ls_group_close(half);
    printf("ok %d\n", rank);
    fflush(stdout);
    ls_group_close(g);
    _exit(0);
}

/* How a case begins and ends. */
enum { OPENS_ITSELF = 1, ENDS_BADLY = 2 };
static const struct {
    const char *name;
    void (*run)(void);
    int how;
} cases[] = {{"collectives", case_collectives, 0},
             {"two_flights", case_two_flights, 0},
             {"messages", case_messages, 0},
             {"long", case_long, 0},
             {"lengths", case_lengths, 0},
             {"forget", case_forget, 0},
             {"native", case_native, 0},
             {"native_at_once", case_native_at_once, 0},
             {"native_forgotten", case_native_forgotten, ENDS_BADLY},
             {"group", case_group, OPENS_ITSELF},
             {"group_disagrees", case_group_disagrees, OPENS_ITSELF},
             {"group_late", case_group_late, OPENS_ITSELF},
             {"abort", case_abort, 0},
             {"late", case_late, 0},
             {"exit", case_exit, ENDS_BADLY}};
enum { NCASES = sizeof cases / sizeof *cases, EXIT = NCASES - 1 };

_Noreturn static void worker(const char *which, const char *name) {
    int i = 0;
    while (i < NCASES && strcmp(cases[i].name, name) != 0) i++;
    need(i < NCASES, "there is no such case");
    if (!(cases[i].how & OPENS_ITSELF))
        succeed(ls_mpi_open(strcmp(which, "-") == 0 ? NULL : which, &net, &err));
    cases[i].run();
    printf("ok %d\n", net->rank);
    fflush(stdout);
    net->ops->close(net);
    _exit(0); /* MPI's libraries leave memory, which a leak sanitizer would tell */
}

/* ---- the test ---- */

typedef struct launcher {
    const char *which, *mpirun;
} launcher;
static launcher openmpi = {"openmpi", "mpirun.openmpi --allow-run-as-root --oversubscribe"};
static launcher mpich = {"mpich", "mpirun.mpich"};
static char self[4096];

static void skip_without(const launcher *l) {
    char *find = ls_format("command -v %.*s >/dev/null", (int)strcspn(l->mpirun, " "), l->mpirun);
    char *plugin = ls_format("%s/lockstep-mpi-%s.so", getenv("LOCKSTEP_PLUGINS"), l->which);
    bool launches = system(find) == 0, built = access(plugin, F_OK) == 0;
    if (!launches) print_message("skipped: there is no %.14s\n", l->mpirun);
    if (launches && !built) print_message("skipped: %s is not built\n", plugin);
    free(find);
    free(plugin);
    if (!launches || !built) skip();
}

/* Runs a case; what it printed is for the caller to free(). */
static int launch(const launcher *l, int n, const char *which, const char *name, ls_buf *said) {
    char *command =
        ls_format("timeout -k 5 %d %s -n %d '%s' worker %s %s 2>&1",
                  strcmp(name, "exit") == 0 ? 20 : 120, l->mpirun, n, self, which, name);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    char text[4096];
    for (size_t got; (got = fread(text, 1, sizeof text, f)) > 0;) ls_buf_append(said, text, got);
    int status = pclose(f);
    free(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int said_ok(const ls_buf *said) {
    int n = 0;
    for (const char *at = said->data; at && (at = strstr(at, "ok ")); at += 3) n++;
    return n;
}

static void run_case(const launcher *l, int n, int which_case) {
    ls_buf said = {0};
    int64_t start = ls_clock_ns();
    int code = launch(l, n, "-", cases[which_case].name, &said);
    double s = (double)(ls_clock_ns() - start) / 1e9;
    bool good = which_case == EXIT
                    ? s < 20 && (n == 1 || said_ok(&said) == 0)
                    : said_ok(&said) == n && (code == 0 || cases[which_case].how & ENDS_BADLY);
    print_message("%s, %d workers, %s: %.1f s\n", l->which, n, cases[which_case].name, s);
    if (!good) {
        print_error("exit code %d; it said:\n%s\n", code, said.data ? said.data : "");
        fail();
    }
    ls_buf_free(&said);
}

static void test_cases(void **state) {
    static const int sizes[] = {1, 2, 3, 5};
    const launcher *l = *state;
    skip_without(l);
    for (int i = 0; i < 4; i++)
        for (int c = 0; c < NCASES; c++) run_case(l, sizes[i], c);
}

/* Under another MPI's launcher every worker would be alone. */
static void test_wrong_launcher(void **state) {
    (void)state;
    skip_without(&openmpi);
    skip_without(&mpich);
    ls_buf said = {0};
    assert_int_not_equal(launch(&mpich, 2, "openmpi", "native", &said), 0);
    if (!strstr(said.data, "Open MPI sees 1 workers, but PMI has started 2"))
        print_error("it said: %s\n", said.data);
    assert_non_null(strstr(said.data, "Open MPI sees 1 workers, but PMI has started 2"));
    ls_buf_free(&said);
}

static void test_missing(void **state) {
    ls_error e;
    ls_net *n = NULL;
    (void)state;
    assert_ls_fails(ls_mpi_open("lam", &n, &e), LS_EINVAL, "'lam'", e);
    assert_ls_fails(ls_mpi_open(NULL, &n, &e), LS_EINVAL, "mpirun", e);
    char *was = ls_strdup(getenv("LOCKSTEP_PLUGINS"));
    setenv("LOCKSTEP_PLUGINS", "/nowhere", 1);
    assert_ls_fails(ls_mpi_open("mpich", &n, &e), LS_EINVAL, "libmpich-dev", e);
    setenv("LOCKSTEP_PLUGINS", was, 1);
    free(was);
}

int main(int argc, char **argv) {
    char program[] = LOCKSTEP_PROGRAM;
    char *plugins = ls_format("%s/plugins", dirname(program));
    setenv("LOCKSTEP_PLUGINS", plugins, 1);
    free(plugins);
    if (argc == 4 && strcmp(argv[1], "worker") == 0) worker(argv[2], argv[3]);
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),
        cmocka_unit_test_prestate(test_cases, &openmpi),
        cmocka_unit_test_prestate(test_cases, &mpich),
        cmocka_unit_test(test_wrong_launcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
