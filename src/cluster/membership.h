/* membership.h - which host leads, and since when.
 *
 *     embedded   the first host leads term 1 for ever; if it is lost, nobody does
 *     etcd       an election by a key under a lease: the host that has made the key leads, for as
 *                long as it keeps the lease alive. A term is the revision in which the key was made
 *
 * By its own clock a host stops to lead before its lease runs out for the others, so two never
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
    int64_t term; /* 0: nobody, as far as is known */
    bool self;
    char address[256]; /* of another: where it listens */
} ls_leads;

/* first NULL: this host is the first. */
ls_status ls_membership_embedded(const char *first, ls_membership **m_p, ls_error *);

typedef struct ls_membership_etcd_options {
    const char *endpoints; /* etcd://a:2379,b:2379 or etcds://... (cluster/etcd.h) */
    const char *ca, *cert, *key, *user, *password; /* NULL: none */
    const char *run;     /* the election's name: the same on all hosts, unlike other runs' */
    const char *address; /* of this host, for the others */
    double lease_s;      /* at least 2: what etcd grants */
} ls_membership_etcd_options;

/* A thread of its own talks to etcd. */
ls_status ls_membership_etcd(const ls_membership_etcd_options *, ls_membership **m_p, ls_error *);

/* Never waits. */
void ls_membership_look(ls_membership *, ls_leads *leads_p);
/* Why nobody leads, as far as is known; "" else. */
void ls_membership_trouble(ls_membership *, char *text, size_t nbytes);
/* A leader gives its term up. NULL is fine. */
void ls_membership_close(ls_membership *);

#endif
