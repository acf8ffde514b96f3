/* etcd.h - a small client of etcd's v3 API, for an election among supervisors.
 *
 * It speaks JSON over HTTP with the gateway that every etcd server (3.4 and later) has beside gRPC.
 * A leader creates a key under a lease that it keeps alive. If it dies, the lease expires, the key
 * is deleted, and the hosts that watch the key try to create it. Its create_revision grows from one
 * leader to the next.
 *
 * Each call goes to the endpoint that answered last. If that one is silent, refuses the connection
 * or has no leader, the others are tried in turn until one answers or options.timeout_s is over; a
 * silent endpoint takes only its share of that time. If etcd itself refuses a request, or a reply
 * is not one that etcd gives, the call fails at once.
 *
 * Errors. LS_EINVAL: etcd refuses the request (a wrong password, no permission), or a bad option.
 * LS_EIO: a reply that etcd would not give, or a server that can't be trusted. LS_EPEER: the lease
 * has expired. LS_ETIMEOUT: no endpoint answered; a change may or may not have been made. The
 * message names the endpoint, or all of them with their reasons. Revoke the lease after a failed
 * create: the key may still be created later.
 *
 * One thread at a time may use an ls_etcd; it raises no signal. Without TLS the password can be
 * read on the network.
 */
#ifndef LS_CLUSTER_ETCD_H
#define LS_CLUSTER_ETCD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_etcd ls_etcd;

typedef struct ls_etcd_options {
    const char *endpoints; /* "etcd://a:2379,b:2379,c"; "etcds://..." with TLS */
    const char *ca;        /* with TLS: a PEM file; NULL: the system's authorities */
    const char *cert;      /* with TLS: the client's, PEM files; both or none */
    const char *key;
    const char *user; /* both or none; etcd must have users enabled where they are given */
    const char *password;
    double timeout_s; /* for one call, over all endpoints that are tried */
} ls_etcd_options;

/* What etcd has under a key. create_revision 0: there is no such key. */
typedef struct ls_etcd_value {
    char *value;   /* [nbytes], and a 0; NULL: there is no such key. ls_etcd_value_free() */
    size_t nbytes; /* any byte may occur, since other programs write values, too */
    int64_t lease; /* 0: none */
    int64_t create_revision;
    int64_t revision; /* the store's, when the key was read or created */
} ls_etcd_value;

/* Checks the options; does not connect. Strings are copied, files are read when it connects. */
ls_status ls_etcd_open(const ls_etcd_options *, ls_etcd **, ls_error *);
void ls_etcd_close(ls_etcd *); /* NULL is fine. Leases stay until they expire */

ls_status ls_etcd_grant(ls_etcd *, int64_t ttl_s, int64_t *lease_p, ls_error *);
ls_status ls_etcd_keep_alive(ls_etcd *, int64_t lease, ls_error *);
/* Deletes the keys of the lease. Not an error if it has expired. */
ls_status ls_etcd_revoke(ls_etcd *, int64_t lease, ls_error *);

typedef struct ls_etcd_entry {
    const char *key, *value;
    int64_t lease;
} ls_etcd_entry;

/* Creates the key under the lease, unless the key exists. *v_p: what is there now. *created_p: the
 * key is ours, i.e. it has this lease and this value, from this call or from an earlier one whose
 * answer was lost. No one else may use the lease. */
ls_status ls_etcd_create(ls_etcd *, const ls_etcd_entry *, ls_etcd_value *v_p, bool *created_p,
                         ls_error *);

ls_status ls_etcd_get(ls_etcd *, const char *key, ls_etcd_value *v_p, ls_error *);
void ls_etcd_value_free(ls_etcd_value *);

/* Waits until the key is created, written or deleted at from_revision or later (*changed_p), which
 * may be in the past, or until timeout_s is over. Pass v.revision + 1 to see every change after an
 * ls_etcd_get() or ls_etcd_create(). If an endpoint loses its host or its leader, the watch goes on
 * at the next one, and misses nothing. An endpoint whose process hangs is not noticed, so limit
 * timeout_s to some seconds. If etcd has forgotten from_revision, the key counts as changed.
 * LS_ETIMEOUT: for options.timeout_s, or all the time, no endpoint has served the watch. */
ls_status ls_etcd_watch(ls_etcd *, const char *key, int64_t from_revision, double timeout_s,
                        bool *changed_p, ls_error *);

#endif
