/* fake.h - a world of workers in one process and one thread, for tests.
 *
 * Messages arrive in an order that the seed decides. Time is virtual: it goes on when a poll finds
 * nothing to do. Faults can be sown: messages that are late, messages that are lost, links that are
 * cut, workers that die. Equal seeds give equal runs.
 *
 * A simulation with a clock of its own drives it instead: it sets the time, and sows the faults.
 */
#ifndef LS_NET_FAKE_H
#define LS_NET_FAKE_H

#include "net/net.h"

typedef struct ls_fake ls_fake;

typedef struct ls_fake_faults {
    uint64_t seed;
    int64_t delay_ns; /* a message takes up to this long; 0: any order, no time */
    double drop;      /* share of messages that never arrive */
    double cut;       /* share of messages with which their link is cut */
    double kill;      /* share of messages with which their sender dies */
} ls_fake_faults;

ls_fake *ls_fake_new(int size, const ls_fake_faults *);
void ls_fake_free(ls_fake *);
/* The end of worker `rank`. Freed with the world. */
ls_net *ls_fake_net(ls_fake *, int rank);

/* ---- for a simulation ---- */

/* It is `now`; all messages that are due are delivered, in any order. */
void ls_fake_advance(ls_fake *, int64_t now);
/* When the next message can be delivered, as things are; -1: none is on its way. */
int64_t ls_fake_next(const ls_fake *);
void ls_fake_kill(ls_fake *, int rank);
/* The connection of two workers is lost. */
void ls_fake_cut(ls_fake *, int a, int b);
/* Messages between two workers wait, until they are held no more. */
void ls_fake_hold(ls_fake *, int a, int b, bool held);

#endif
