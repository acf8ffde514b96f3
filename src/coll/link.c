/* link.c - see link.h.
 *
 * Four things are measured, one after the other:
 *
 *   alone   worker 0 sends a short and a long message to the first worker of another host (or of
 *           its own, where there is no other), which answers them; the others sleep
 *   step    every worker sends a short message to the next one, and waits for the one before
 *   fan     every worker sends a message to each of the next few, and waits for as many: short
 *           ones, then long ones
 *   adding  all workers add at once
 *
 * A round before them makes the connections. Times are means over a few rounds, since with more
 * workers than cores a round is either lucky or not. Each worker takes the least of `care` such
 * means, and the greatest over the workers counts.
 */
#include "coll/link.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/yaml.h"
#include "coll/algo/algorithm.h"
#include "coll/flight.h"
#include "coll/neighbours.h"

const ls_link ls_link_default = {.latency_s = 15e-6,
                                 .byte_s = 1 / 2e9,
                                 .busy_message_s = 5e-6,
                                 .busy_byte_s = 1 / 2e9,
                                 .reduce_s = 1 / 8e9};

enum { SHORT = 8, LONG = 256 << 10, FAN_LONG = 128 << 10, FAN = 7, LONG_FAN = 3 };
enum { ROUNDS = 4, LONG_ROUNDS = 2, ADDINGS = 3 };
enum { FIRST_CALL = 16 }; /* above the kinds of messages of neighbours.c */

/* ---- the numbers, as an array and in a file ---- */

enum { LATENCY, BYTE, BUSY_MESSAGE, BUSY_BYTE, REDUCE, NNUMBERS };

/* In a file a number is in units of 1 / `unit` seconds. */
static const struct {
    const char *key;
    double unit;
} names[NNUMBERS] = {[LATENCY] = {"latency_us", 1e6},
                     [BYTE] = {"byte_ns", 1e9},
                     [BUSY_MESSAGE] = {"busy_message_us", 1e6},
                     [BUSY_BYTE] = {"busy_byte_ns", 1e9},
                     [REDUCE] = {"reduce_ns", 1e9}};

static void to_numbers(const ls_link *l, double x[NNUMBERS]) {
    x[LATENCY] = l->latency_s;
    x[BYTE] = l->byte_s;
    x[BUSY_MESSAGE] = l->busy_message_s;
    x[BUSY_BYTE] = l->busy_byte_s;
    x[REDUCE] = l->reduce_s;
}

static ls_link from_numbers(const double x[NNUMBERS]) {
    return (ls_link){.latency_s = x[LATENCY],
                     .byte_s = x[BYTE],
                     .busy_message_s = x[BUSY_MESSAGE],
                     .busy_byte_s = x[BUSY_BYTE],
                     .reduce_s = x[REDUCE]};
}

static ls_status read_item(const char *path, const ls_yaml_item *item, double x[NNUMBERS],
                           ls_error *e) {
    ls_buf keys = {0};
    int i = 0;
    while (i < NNUMBERS &&
           (strncmp(item->key, "links.", 6) != 0 || strcmp(item->key + 6, names[i].key) != 0))
        i++;
    if (i == NNUMBERS) {
        for (int k = 0; k < NNUMBERS; k++) ls_buf_printf(&keys, " %s", names[k].key);
        ls_fail(e, LS_EINVAL,
                "%s:%d: '%.60s' is not a key of a file of links; the keys under 'links:' are%s",
                path, item->line, item->key, keys.data);
        ls_buf_free(&keys);
        return LS_EINVAL;
    }
    char *end = NULL;
    double value = strtod(item->value, &end);
    if (end == item->value || *end || !(value >= 0 && value <= 1e9))
        return ls_fail(e, LS_EINVAL, "%s:%d: %s is '%.40s'; a number from 0 to 1e9 is expected",
                       path, item->line, names[i].key, item->value);
    if (x[i] >= 0)
        return ls_fail(e, LS_EINVAL, "%s:%d: %s occurs twice", path, item->line, names[i].key);
    x[i] = value / names[i].unit;
    return LS_OK;
}

ls_status ls_link_read(const char *path, ls_link *link_p, ls_error *e) {
    ls_yaml y = {0};
    double x[NNUMBERS] = {-1, -1, -1, -1, -1};
    LS_TRY(ls_yaml_read(path, &y, e));
    ls_status s = LS_OK;
    for (size_t i = 0; i < y.nitems && s == LS_OK; i++) s = read_item(path, &y.items[i], x, e);
    ls_yaml_free(&y);
    for (int i = 0; i < NNUMBERS && s == LS_OK; i++)
        if (x[i] < 0)
            s = ls_fail(e, LS_EINVAL,
                        "%s: links.%s is missing; `lockstep bench comm --save` writes such a file",
                        path, names[i].key);
    if (s == LS_OK) *link_p = from_numbers(x);
    return s;
}

ls_status ls_link_write(const char *path, const ls_link *l, const char *of, ls_error *e) {
    double x[NNUMBERS];
    ls_buf text = {0};
    to_numbers(l, x);
    ls_buf_printf(&text, "# %s\nlinks:\n", of);
    for (int i = 0; i < NNUMBERS; i++)
        ls_buf_printf(&text, "  %s: %.6g\n", names[i].key, x[i] * names[i].unit);
    ls_status s = ls_file_replace(path, text.data, text.len, e);
    ls_buf_free(&text);
    return s;
}

/* ---- messages ---- */

typedef struct meter {
    ls_net *net;
    const ls_kernels *k;
    int64_t timeout_ns;
    uint32_t call; /* the same at all workers */
    ls_message messages[2 * FAN];
    unsigned char *data; /* [LONG]: all messages are sent from here ... */
    unsigned char *room; /* [FAN * FAN_LONG], ADDINGS * LONG at least: ... and received here */
} meter;

/* A message to or from a worker, whose rank is taken modulo the number of workers. */
typedef struct parcel {
    int peer;
    uint32_t number; /* of the message, in this call */
    size_t nbytes;
} parcel;

static ls_message *message_of(meter *m, int i, const parcel *x, unsigned char *data) {
    int n = m->net->size;
    m->messages[i] = (ls_message){.peer = (x->peer + n) % n,
                                  .tag = ls_net_tag(LS_SET_UP, m->call, x->number),
                                  .data = data,
                                  .nbytes = x->nbytes,
                                  .owner = m};
    return &m->messages[i];
}
static ls_status post_send(meter *m, int i, parcel x, ls_error *e) {
    return m->net->ops->send(m->net, message_of(m, i, &x, m->data), e);
}
static ls_status post_recv(meter *m, int i, parcel x, ls_error *e) {
    unsigned char *room = m->room + (size_t)x.number * FAN_LONG;
    return m->net->ops->recv(m->net, message_of(m, i, &x, room), e);
}

static ls_status wait_for(meter *m, int nmessages, ls_error *e) {
    int64_t start = ls_clock_ns();
    while (nmessages > 0) {
        ls_message *done = NULL;
        LS_TRY(m->net->ops->poll(m->net, 20000000, &done, e));
        for (; done; done = done->next) nmessages--;
        if (nmessages > 0 && m->timeout_ns >= 0 && ls_clock_ns() - start > m->timeout_ns)
            return ls_fail(e, LS_ETIMEOUT, "worker %d waited %.1f s for others to measure links",
                           m->net->rank, (double)m->timeout_ns / 1e9);
    }
    return LS_OK;
}

/* Every worker sends to each of the next `fan` workers. */
static ls_status send_round(meter *m, int fan, size_t nbytes, ls_error *e) {
    int rank = m->net->rank;
    m->call++;
    for (int i = 0; i < fan; i++)
        LS_TRY(post_recv(m, i, (parcel){rank - 1 - i, (uint32_t)i, nbytes}, e));
    for (int i = 0; i < fan; i++)
        LS_TRY(post_send(m, fan + i, (parcel){rank + 1 + i, (uint32_t)i, nbytes}, e));
    return wait_for(m, 2 * fan, e);
}

/* Seconds of a round. */
static ls_status time_rounds(meter *m, int fan, size_t nbytes, int rounds, double *s_p,
                             ls_error *e) {
    int64_t start = ls_clock_ns();
    for (int i = 0; i < rounds; i++) LS_TRY(send_round(m, fan, nbytes, e));
    *s_p = (double)(ls_clock_ns() - start) / 1e9 / rounds;
    return LS_OK;
}

/* Worker 0 sends to `far`, which answers with a short message. *s_p: seconds, at worker 0. */
static ls_status time_alone(meter *m, int far, size_t nbytes, double *s_p, ls_error *e) {
    int rank = m->net->rank;
    int64_t start = ls_clock_ns();
    m->call++;
    if (rank == 0) {
        LS_TRY(post_recv(m, 0, (parcel){far, 1, SHORT}, e));
        LS_TRY(post_send(m, 1, (parcel){far, 0, nbytes}, e));
        LS_TRY(wait_for(m, 2, e));
    } else if (rank == far) {
        LS_TRY(post_recv(m, 0, (parcel){0, 0, nbytes}, e));
        LS_TRY(wait_for(m, 1, e));
        LS_TRY(post_send(m, 0, (parcel){0, 1, SHORT}, e));
        LS_TRY(wait_for(m, 1, e));
    }
    *s_p = (double)(ls_clock_ns() - start) / 1e9;
    return LS_OK;
}

/* Adds memory that is in no near cache, like a message that has just arrived. */
static double time_adding(meter *m) {
    int64_t start = ls_clock_ns();
    for (int i = 0; i < ADDINGS; i++) {
        unsigned char *sum = m->room + (size_t)i * LONG;
        m->k->combine(LS_F32, LS_SUM, LONG / sizeof(float), m->data, sum, sum);
    }
    return (double)(ls_clock_ns() - start) / 1e9 / ADDINGS / LONG;
}

/* ---- measuring ---- */

static void keep_least(double *x, double value) {
    if (value < *x) *x = value;
}

/* One measurement of the times from which this worker's numbers follow. */
typedef struct times {
    double short_alone, long_alone, step, fan, long_fan, added;
} times; /* alone: to the other worker and back */

static ls_status measure_once(meter *m, int far, int fan, int long_fan, times *least, ls_error *e) {
    times t;
    LS_TRY(time_alone(m, far, SHORT, &t.short_alone, e));
    LS_TRY(time_alone(m, far, LONG, &t.long_alone, e));
    keep_least(&least->short_alone, t.short_alone);
    keep_least(&least->long_alone, t.long_alone);
    LS_TRY(time_rounds(m, 1, SHORT, ROUNDS, &t.step, e));
    LS_TRY(time_rounds(m, fan, SHORT, ROUNDS, &t.fan, e));
    LS_TRY(time_rounds(m, long_fan, FAN_LONG, LONG_ROUNDS, &t.long_fan, e));
    keep_least(&least->step, t.step);
    keep_least(&least->fan, t.fan);
    keep_least(&least->long_fan, t.long_fan);
    keep_least(&least->added, time_adding(m));
    return LS_OK;
}

static ls_status measure(meter *m, const ls_link_plan *p, ls_link *l_p, ls_error *e) {
    int n = m->net->size, far = 1;
    int fan = n - 1 < FAN ? n - 1 : FAN, long_fan = fan < LONG_FAN ? fan : LONG_FAN;
    times t = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    for (int i = n - 1; i > 0; i--)
        if (p->hosts[i] != p->hosts[0]) far = i;
    LS_TRY(send_round(m, fan, SHORT, e));
    LS_TRY(send_round(m, long_fan, FAN_LONG, e));
    for (int i = 0; i < p->care; i++) LS_TRY(measure_once(m, far, fan, long_fan, &t, e));
    double alone = m->net->rank ? 0 : (t.long_alone - t.short_alone) / (LONG - SHORT);
    double byte = (t.long_fan / long_fan - t.fan / fan) / (FAN_LONG - SHORT);
    /* While an algorithm's chain goes on, some workers wait and others send: the latency is between
     * that of a message alone and that when all send. */
    double latency = m->net->rank ? 0 : sqrt(t.step * t.short_alone / 2);
    *l_p = (ls_link){.latency_s = latency,
                     .byte_s = fmax(alone, 0),
                     .busy_message_s = t.fan / fan,
                     .busy_byte_s = fmax(byte, 0),
                     .reduce_s = t.added};
    return LS_OK;
}

/* ---- agreeing ---- */

/* x [count] becomes the maximum over all workers, or worker 0's. The algorithm is fixed, since the
 * numbers by which one is chosen are not known yet. */
static ls_status spread(meter *m, ls_collective what, ls_dtype dtype, void *x, size_t count,
                        ls_error *e) {
    ls_call c = {.what = what, .dtype = dtype, .op = LS_MAX, .count = count};
    ls_coll_program s;
    ls_flight f;
    m->call++;
    ls_algorithm_make(&ls_binomial, &c, m->net->rank, m->net->size,
                      (ls_in_place){what == LS_CALL_ALL_REDUCE ? LS_IN_IN_OUT : LS_APART, 0}, &s);
    ls_flight_open(&f, &s, m->net, m->k, NULL);
    f.owner = m;
    int64_t start = ls_clock_ns();
    ls_status status = ls_flight_start(&f, &(ls_flight_call){x, x, LS_SET_UP, m->call, 0, NULL}, e);
    while (status == LS_OK && !ls_flight_finished(&f)) {
        ls_message *done = NULL;
        bool did = false;
        status = ls_flight_work(&f, &did, e);
        if (status == LS_OK) status = m->net->ops->poll(m->net, did ? 0 : 20000000, &done, e);
        for (ls_message *next; status == LS_OK && done; done = next) {
            next = done->next;
            status = ls_flight_done(&f, done, e);
        }
        if (status == LS_OK && m->timeout_ns >= 0 && ls_clock_ns() - start > m->timeout_ns)
            status = ls_fail(e, LS_ETIMEOUT, "worker %d waited %.1f s for others to agree on links",
                             m->net->rank, (double)m->timeout_ns / 1e9);
    }
    if (status != LS_OK) m->net->ops->forget(m->net, m);
    ls_flight_free(&f);
    ls_coll_program_free(&s);
    return status;
}

/* What worker 0 sends to all. */
typedef struct decision {
    double numbers[NNUMBERS];
    uint32_t what;
    char why[400]; /* FAILED */
} decision;
enum { MEASURE, GIVEN, FAILED };

static decision decide(const char *path) {
    decision d = {.what = MEASURE};
    ls_link l = {0};
    ls_error e;
    if (!path || !*path) return d;
    d.what = ls_link_read(path, &l, &e) == LS_OK ? GIVEN : FAILED;
    if (d.what == FAILED) snprintf(d.why, sizeof d.why, "%.399s", e.msg);
    to_numbers(&l, d.numbers);
    return d;
}

static ls_status agree(meter *m, const ls_link_plan *p, ls_link *link_p, bool *given_p,
                       ls_error *e) {
    decision d = {.what = MEASURE};
    ls_link l;
    if (m->net->rank == 0) d = decide(p->path);
    LS_TRY(spread(m, LS_CALL_BROADCAST, LS_U8, &d, sizeof d, e));
    if (d.what == FAILED)
        return ls_fail(e, LS_EINVAL, "worker 0's file of links (LOCKSTEP_LINKS): %s", d.why);
    if (d.what == MEASURE) {
        LS_TRY(measure(m, p, &l, e));
        to_numbers(&l, d.numbers);
        LS_TRY(spread(m, LS_CALL_ALL_REDUCE, LS_F64, d.numbers, NNUMBERS, e));
    }
    *link_p = from_numbers(d.numbers);
    *given_p = d.what == GIVEN;
    return LS_OK;
}

ls_status ls_link_agree(ls_net *net, const ls_kernels *k, const ls_link_plan *p, ls_link *link_p,
                        bool *given_p, ls_error *e) {
    meter m = {.net = net, .k = k, .timeout_ns = p->timeout_ns, .call = FIRST_CALL};
    ls_error own;
    if (!e) e = &own;
    if (net->size == 1) {
        *link_p = ls_link_default;
        *given_p = false;
        return LS_OK;
    }
    m.data = ls_alloc(LONG);
    m.room = ls_alloc((size_t)FAN * FAN_LONG);
    ls_status s = agree(&m, p, link_p, given_p, e);
    if (s != LS_OK) net->ops->forget(net, &m);
    free(m.data);
    free(m.room);
    return s;
}
