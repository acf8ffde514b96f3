/* etcd.h - a small client of etcd's v3 API, for an election among supervisors.
 *
 * It speaks JSON over HTTP with the gateway that every etcd server (3.4 and later) has beside gRPC.
 * A leader creates a key under a lease that it keeps alive. If it dies, the lease expires, the key
 * is deleted, and the hosts that watch the key try to create it. Its create_revision grows from one
 * leader to the next.
 *
 * Each call goes to the endpoint that answered last. If that one is silent, refuses the connection
 * or has no leader, the next is tried, round and round, until one answers or options.timeout_s is
 * over; a silent one gets its share of that time only. If etcd itself refuses a request, or a reply
 * is not one that etcd gives, the call fails at once.
 *
 * Errors. LS_EINVAL: etcd refuses what is asked (a wrong password, no permission), or a bad option.
 * LS_EIO: a reply that etcd would not give, or a server that can't be trusted. LS_EPEER: the lease
 * has expired. LS_ETIMEOUT: no endpoint answered; a change may or may not have been made. The
 * message names the endpoint, or all with their reasons. After a failed create, the lease is best
 * revoked: the key may still come.
 *
 * One thread at a time for an ls_etcd; it raises no signal. Without TLS the password can be read on
 * the way.
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
    double timeout_s; /* of one call, over all endpoints that are tried */
} ls_etcd_options;

/* Under a key. create_revision 0: there is no such key. */
typedef struct ls_etcd_value {
    char *value;   /* [nbytes], and a 0; NULL: there is no such key. ls_etcd_value_free() */
    size_t nbytes; /* as those of others, it may hold any byte */
    int64_t lease; /* 0: none */
    int64_t create_revision;
    int64_t revision; /* of the whole store, when it was read or made */
} ls_etcd_value;

/* Checks the options; does not connect. Strings are copied, files are read when it connects. */
ls_status ls_etcd_open(const ls_etcd_options *, ls_etcd **, ls_error *);
void ls_etcd_close(ls_etcd *); /* NULL is fine. Leases stay until they expire */

ls_status ls_etcd_grant(ls_etcd *, int64_t ttl_s, int64_t *lease_p, ls_error *);
ls_status ls_etcd_keep_alive(ls_etcd *, int64_t lease, ls_error *);
/* Its keys are deleted. No error if it has expired. */
ls_status ls_etcd_revoke(ls_etcd *, int64_t lease, ls_error *);

typedef struct ls_etcd_entry {
    const char *key, *value;
    int64_t lease;
} ls_etcd_entry;

/* Makes the key under the lease, unless the key exists. *v_p: what is there now. *created_p: it is
 * ours, i.e. it has this lease and this value, made by this call or by an earlier one whose answer
 * was lost. The lease must be the caller's alone. */
ls_status ls_etcd_create(ls_etcd *, const ls_etcd_entry *, ls_etcd_value *v_p, bool *created_p,
                         ls_error *);

ls_status ls_etcd_get(ls_etcd *, const char *key, ls_etcd_value *v_p, ls_error *);
void ls_etcd_value_free(ls_etcd_value *);

/* Waits until the key is made, written or deleted at from_revision or later, be it in the past, or
 * the time is over: *changed_p. To see all that happens after an ls_etcd_get() or ls_etcd_create():
 * from v.revision + 1. An endpoint whose host or leader is lost is left for the next, and nothing
 * is missed; one whose process hangs is not noticed, so keep timeout_s to some seconds. Where etcd
 * has forgotten what was so long ago, the key counts as changed. LS_ETIMEOUT: no endpoint has
 * watched for options.timeout_s, or ever. */
ls_status ls_etcd_watch(ls_etcd *, const char *key, int64_t from_revision, double timeout_s,
                        bool *changed_p, ls_error *);

#endif
