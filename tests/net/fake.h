/* fake.h - a world of workers in one process and one thread, for tests.
 *
 * Messages arrive in an order that the seed decides. Time is virtual: it advances when a poll finds
 * nothing to do. Faults can be injected: late messages, lost messages, cut links, dead workers.
 * Equal seeds give equal runs.
 *
 * A simulation with a clock of its own can drive this world instead: it sets the time and injects
 * the faults itself.
 */
#ifndef LS_TEST_NET_FAKE_H
#define LS_TEST_NET_FAKE_H

#include "net/net.h"

typedef struct ls_fake ls_fake;

typedef struct ls_fake_faults {
    uint64_t seed;
    int64_t delay_ns; /* a message takes up to this long; 0: no time, but in any order */
    /* Fractions of messages: */
    double drop; /* they never arrive */
    double cut;  /* sending one cuts its link */
    double kill; /* sending one kills its sender */
} ls_fake_faults;

ls_fake *ls_fake_new(int size, const ls_fake_faults *);
void ls_fake_free(ls_fake *);
/* The transport of worker `rank`; freed with the world. */
ls_net *ls_fake_net(ls_fake *, int rank);

/* ---- for a simulation ---- */

/* Sets the time, and delivers all messages that are due, in any order. */
void ls_fake_advance(ls_fake *, int64_t now);
/* When the next message with a posted receive can be delivered; -1: there is none. */
int64_t ls_fake_next(const ls_fake *);
void ls_fake_kill(ls_fake *, int rank);
/* Cuts the connection of two workers. */
void ls_fake_cut(ls_fake *, int a, int b);
/* While held, messages between the two workers wait. */
void ls_fake_hold(ls_fake *, int a, int b, bool held);

#endif
