/* membership.h - which host leads, and since when.
 *
 *     embedded   the first host leads term 1 for ever; if it is lost, no host leads
 *     etcd       an election by a key under a lease: the host that created the key leads as long as
 *                it keeps the lease alive. A term is the revision that created the key
 *
 * By its own clock a host stops leading before its lease expires for the others, so two hosts never
 * lead at once.
 */
#ifndef LS_CLUSTER_MEMBERSHIP_H
#define LS_CLUSTER_MEMBERSHIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_membership ls_membership;

typedef struct ls_leads {
    int64_t term; /* 0: no host leads, as far as is known */
    bool self;
    char address[256]; /* where the leader listens, if it is another host */
} ls_leads;

/* first NULL: this host is the first. */
ls_status ls_membership_embedded(const char *first, ls_membership **m_p, ls_error *);

typedef struct ls_membership_etcd_options {
    const char *endpoints; /* etcd://a:2379,b:2379 or etcds://... (cluster/etcd.h) */
    const char *ca, *cert, *key, *user, *password; /* NULL: none */
    const char *run; /* the election's name: the same on all hosts of a run, and of no other run */
    const char *address; /* at which other hosts reach this one */
    double lease_s;      /* at least 2: etcd grants no shorter lease */
} ls_membership_etcd_options;

/* Starts a thread that talks to etcd. */
ls_status ls_membership_etcd(const ls_membership_etcd_options *, ls_membership **m_p, ls_error *);

/* Never waits. */
void ls_membership_look(ls_membership *, ls_leads *leads_p);
/* Why no host leads; "": not known, or a host leads. */
void ls_membership_trouble(ls_membership *, char *text, size_t nbytes);
/* A leader resigns. NULL is fine. */
void ls_membership_close(ls_membership *);

#endif
