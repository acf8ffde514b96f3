/* mpi_test.c - the transport "mpi" under real mpiruns: our collectives, and messages that are long,
 * late, given up, or whose lengths differ. mpi_native_test.c has MPI's own collectives.
 */
/* ctest: slow busy seconds=60 */
#include <signal.h>

#include "coll/flight.h"
#include "net/mpi/mpirun.h"

/* ---- collectives ---- */

/* One worker's part of a call. */
typedef struct part {
    const ls_algorithm *algorithm;
    ls_call call;
    bool in_place;
    unsigned char *in, *out;
    size_t nin, nout;
    ls_coll_program program;
    ls_flight flight;
} part;

static void counts_of(const ls_call *c, int rank, int n, size_t *in_p, size_t *out_p) {
    size_t all = (size_t)n * c->count, at_root = rank == c->root;
    *in_p = *out_p = c->count;
    switch (c->what) {
    case LS_CALL_REDUCE_SCATTER: *in_p = all; break;
    case LS_CALL_ALL_GATHER: *out_p = all; break;
    case LS_CALL_SCATTER: *in_p = at_root * all; break;
    case LS_CALL_GATHER: *out_p = at_root * all; break;
    case LS_CALL_EXSCAN: *out_p = rank ? c->count : 0; break;
    case LS_CALL_REDUCE: *out_p = at_root * c->count; break;
    case LS_CALL_ALL_TO_ALL: *in_p = *out_p = all; break;
    case LS_CALL_BROADCAST: *in_p = 0; break;
    case LS_CALL_BARRIER: *in_p = *out_p = 0; break;
    default: break;
    }
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
    ls_algorithm_make(p->algorithm, c, net->rank, net->size,
                      (ls_in_place){p->in_place ? LS_IN_IN_OUT : LS_APART, 0}, &p->program);
    ls_flight_open(&p->flight, &p->program, net, kernels(), NULL);
    p->flight.owner = p;
    succeed(
        ls_flight_start(&p->flight, &(ls_flight_call){p->in, p->out, 1, number, 99, NULL}, &err));
}

/* Runs until all of them are done. */
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
        uint64_t want[2] = {0};
        put(t, want, 0, expected(&p->call, net->rank, net->size, i));
        if (memcmp(want, p->out + i * size, size) == 0) continue;
        fprintf(stderr, "%s %s %s, count %zu, piece %zu, element %zu: ", p->algorithm->name,
                ls_collective_name(p->call.what), ls_dtype_name(t), p->call.count, p->call.piece,
                i);
        die("a wrong result");
    }
    need(p->out[p->nout * size] == 0x77, "wrote behind out");
    if (!p->in_place) free(p->in);
    free(p->out);
    ls_flight_free(&p->flight);
    ls_coll_program_free(&p->program);
}

static part part_of(int a, int what, size_t count, uint64_t seed) {
    ls_dtype dtype = (ls_dtype)(hash(1, 0, seed) % LS_NDTYPES);
    if (ls_collective_reduces((ls_collective)what) && !ls_op_takes(LS_SUM, dtype)) dtype = LS_I32;
    return (part){.algorithm = ls_algorithms[a],
                  .in_place = seed & 1,
                  .call = {.what = (ls_collective)what,
                           .dtype = dtype,
                           .root = (int)(seed % (uint64_t)net->size),
                           .count = count,
                           .piece = seed % 3 ? 0 : count / 3 + 1}};
}

static void case_collectives(void) {
    uint32_t number = 0;
    for (int a = 0; ls_algorithms[a]; a++)
        for (int what = 0; what < LS_NCALLS; what++)
            for (int k = 0; k < NCOUNTS && ls_algorithm_has(ls_algorithms[a], (ls_collective)what);
                 k++) {
                if (ls_collective_is_pairwise((ls_collective)what)) break; /* mpi_calls_test.c */
                part p = part_of(a, what, COUNTS[k], number);
                part_start(&p, number++);
                parts_run(&p, 1);
                part_check(&p);
            }
    need(net->size == 1 || (net->messages_sent && net->bytes_sent && net->messages_received &&
                            net->bytes_received),
         "nothing was counted");
}

/* Two calls in flight, which every other worker begins in the opposite order. */
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

/* ---- messages ---- */

enum { MESSAGES = 30 }; /* from each worker to each, also to itself */

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

/* A message that is longer than what one MPI call moves. */
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
        need(r.their_nbytes == sent[i / 2] && r.their_print == r.print,
             "the sender's length is not reported");
        for (size_t j = 0; j <= asked[i / 2]; j++) need(in[j] == 0x77, "wrote a wrong message");
        free(out);
        free(in);
    }
}

/* The sender alone knows the length, up to one that both know. */
static void case_some(void) {
    static const size_t sent[] = {0, 100, 3961, 100, 200000, 200001};
    static const size_t most[] = {100, 100, 5000, 200000, 200001, 200001};
    int n = net->size, next = (net->rank + 1) % n, before = (net->rank + n - 1) % n;
    for (uint64_t i = 0; i < 6; i++) {
        unsigned char *out = buffer(most[i]), *in = buffer(most[i]);
        memset(out, 0x33, sent[i]);
        ls_message s = message(next, i, out, sent[i]), r = message(before, i, in, most[i]);
        s.most = r.most = most[i];
        succeed(net->ops->send(net, &s, &err));
        succeed(net->ops->recv(net, &r, &err));
        wait_messages(2);
        need(r.their_nbytes == sent[i], "the sender's length is not reported");
        for (size_t j = 0; j <= most[i]; j++)
            need(in[j] == (j < sent[i] ? 0x33 : 0x77), "wrote a wrong message");
        free(out);
        free(in);
    }
}

/* Messages are given up at any time, at either end; the others arrive, and memory stays as it was.
 */
static void case_forget(void) {
    int n = net->size, next = (net->rank + 1) % n, before = (net->rank + n - 1) % n;
    static int dropped, wanted;
    for (uint64_t i = 0; i < 60; i++) {
        size_t nbytes = i % 4 == 0 ? 100 : i % 4 == 1 ? 30000 : 3000000;
        unsigned char *out = buffer(nbytes), *in = buffer(nbytes), good[2][8] = {{0}};
        ls_message s = message(next, 2 * i, out, nbytes), r = message(before, 2 * i, in, nbytes);
        ls_message s2 = message(next, 2 * i + 1, good[0], 8);
        ls_message r2 = message(before, 2 * i + 1, good[1], 8);
        s.owner = r.owner = &dropped;
        s2.owner = r2.owner = &wanted;
        if (i % 3 != 1) succeed(net->ops->send(net, &s, &err));
        if (i % 3 != 2) succeed(net->ops->recv(net, &r, &err));
        succeed(net->ops->send(net, &s2, &err));
        int64_t end = ls_clock_ns() + (int64_t)(hash(3, (uint64_t)net->rank, i) % 2000000);
        int open = 2;
        while (ls_clock_ns() < end) {
            ls_message *done = NULL;
            succeed(net->ops->poll(net, 10000, &done, &err));
            for (; done; done = done->next) open -= done->owner == &wanted;
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

/* Worker 0 closes as soon as its messages are done; the others ask for them much later. */
static void case_late(void) {
    unsigned char *data = buffer(3900);
    ls_message m = message(0, 1, data, 3900);
    if (net->rank) {
        nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 300000000},
                  NULL); /* longer than a close waits */
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

/* The last worker exits without closing; the launcher ends the others, which wait for it. */
static void case_exit(void) {
    static unsigned char byte;
    ls_message m = message(net->size - 1, 1, &byte, 1), *done = NULL;
    meet_all();
    if (net->rank == net->size - 1) _exit(0);
    succeed(net->ops->recv(net, &m, &err));
    while (net->ops->poll(net, -1, &done, &err) == LS_OK) continue;
}

/* The last worker closes its transport; the others wait for it in a short and in a long receive and
 * in a long send. */
static void wait_for_lost(void) {
    ls_message *done = NULL;
    char want[64];
    ls_status s = LS_OK;
    for (int64_t end = ls_clock_ns() + 60000000000; s == LS_OK && ls_clock_ns() < end;)
        s = net->ops->poll(net, 20000000, &done, &err);
    snprintf(want, sizeof want, "worker %d lost worker %d: it has left", net->rank, net->size - 1);
    need(s == LS_EPEER, "the worker that left is not lost within 60 s");
    if (!strstr(err.msg, want)) die(err.msg);
}

static void case_left(void) {
    size_t n = (size_t)1 << 20;
    unsigned char *in = buffer(n), *out = buffer(n);
    int last = net->size - 1;
    ls_message all[] = {message(last, 1, in, 8), message(last, 2, in, n), message(last, 3, out, n)};
    meet_all();
    for (int i = 0; i < 3 && net->rank != last; i++) {
        succeed(i < 2 ? net->ops->recv(net, &all[i], &err) : net->ops->send(net, &all[i], &err));
        wait_for_lost();
        net->ops->forget(net, &net);
    }
    free(in);
    free(out);
}

/* The last worker is stopped, and the others have given up. */
static void case_stopped(void) {
    meet_all();
    if (net->size == 1) return;
    if (net->rank == net->size - 1) raise(SIGSTOP);
    atomic_store(&net->broken_over, true);
    net->ops->close(net);
    exit(3);
}

/* ---- the test ---- */

static const mpi_case cases[] = {
    {"collectives", case_collectives, SHARES},
    {"two_flights", case_two_flights, SHARES},
    {"messages", case_messages, SHARES},
    {"long", case_long, SHARES},
    {"lengths", case_lengths, SHARES},
    {"some", case_some, SHARES},
    {"forget", case_forget, SHARES},
    {"late", case_late, 0},
    {"left", case_left, 0},
    {"exit", case_exit, PRINTS_NOTHING},
    {"stopped", case_stopped, PRINTS_NOTHING},
    {0},
};

static void test_openmpi(void **state) {
    (void)state;
    launch_cases(&openmpi, cases);
}
static void test_mpich(void **state) {
    (void)state;
    launch_cases(&mpich, cases);
}

/* Worker 1 ends with exit code 0 before MPI_Init. The others end with an error; under an mpirun
 * that ends them first, with its own. */
static void absent(void) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    if (strcmp(rank, "1") == 0) _exit(0);
    if (ls_mpi_open(NULL, 7000000000, &net, &err) == LS_OK)
        printf("ok, though worker 1 is absent\n");
    exit(4);
}

static const mpi_case absences[] = {{"absent", absent, OPENS_ITSELF}, {NULL, NULL, 0}};

static void check_absent(const launcher *l) {
    skip_without(l);
    ls_buf output = {0};
    int code = launch(l, 3, "-", "absent", &output);
    bool told = strstr(output.data, " s in MPI_Init for the other workers: one may have ended") &&
                strstr(output.data, "not all workers have called MPI_Init within 7 s");
    /* Open MPI's launcher ends all at once if another worker has called MPI_Init by then. */
    told = told || strstr(output.data, "exiting improperly");
    /* MPICH 4.2.1's launcher exits with 0 now and then, though workers failed. */
    bool ended = code != TIMEOUT_CODE && (code != 0 || l == &mpich);
    if (!ended || !told) print_error("exit code %d; it printed: %s\n", code, output.data);
    assert_true(ended);
    assert_true(told);
    ls_buf_free(&output);
}

static void test_absent_openmpi(void **state) {
    (void)state;
    check_absent(&openmpi);
}

static void test_absent_mpich(void **state) {
    (void)state;
    check_absent(&mpich);
}

/* Under another MPI's launcher every worker would be alone. */
static void test_wrong_launcher(void **state) {
    (void)state;
    skip_without(&openmpi);
    skip_without(&mpich);
    ls_buf output = {0};
    assert_int_not_equal(launch(&mpich, 2, "openmpi", "messages", &output), 0);
    if (!strstr(output.data, "Open MPI sees 1 worker, but PMI gives 2"))
        print_error("it printed: %s\n", output.data);
    assert_non_null(strstr(output.data, "Open MPI sees 1 worker, but PMI gives 2"));
    ls_buf_free(&output);
}

static void test_missing(void **state) {
    ls_error e;
    ls_net *n = NULL;
    (void)state;
    assert_ls_fails(ls_mpi_open("lam", -1, &n, &e), LS_EINVAL, "'lam'", e);
    assert_ls_fails(ls_mpi_open(NULL, -1, &n, &e), LS_EINVAL, "mpirun", e);
    char *was = ls_strdup(getenv("LOCKSTEP_PLUGINS"));
    setenv("LOCKSTEP_PLUGINS", "/nowhere", 1);
    assert_ls_fails(ls_mpi_open("mpich", -1, &n, &e), LS_EINVAL, "mpich", e);
    setenv("LOCKSTEP_PLUGINS", was, 1);
    free(was);
}

int main(int argc, char **argv) {
    mpirun_begin(argc > 3 && strcmp(argv[3], "absent") == 0 ? absences : cases, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),        cmocka_unit_test(test_openmpi),
        cmocka_unit_test(test_mpich),          cmocka_unit_test(test_wrong_launcher),
        cmocka_unit_test(test_absent_openmpi), cmocka_unit_test(test_absent_mpich),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
