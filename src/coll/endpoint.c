/* endpoint.c - see endpoint.h. */
#include "coll/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/descriptors.h"
#include "base/forked.h"
#include "base/mem.h"
#include "coll/neighbours.h"
#include "net/launch/environment.h"
#include "net/launch/tether.h"
#include "net/local/shared_net.h"
#include "net/mpi/mpi.h"
#include "net/tcp/join.h"
#include "net/tcp/tcp.h"
#include "net/tcp/watch.h"

enum { PORTS = 8 }; /* after MASTER_PORT, of which worker 0 uses one */
static const size_t ARENA = (size_t)64 << 20;

static ls_endpoint *endpoint_new(int rank, int size, const ls_kernels *k) {
    ls_endpoint *p = LS_NEW(ls_endpoint);
    p->rank = rank;
    p->size = size;
    p->forks = ls_forks();
    p->k = k;
    p->link = ls_link_default;
    p->hosts = LS_NEW_ARRAY(int, (size_t)size);
    p->local = LS_NEW_ARRAY(int, (size_t)size);
    for (int i = 0; i < size; i++) p->local[i] = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_mutex_init(&p->groups_lock, NULL);
    return p;
}

void ls_endpoint_close(ls_endpoint *p) {
    if (!p) return;
    if (p->commons) atomic_store(&ls_commons_worker_of(p->commons, p->commons->rank)->left, 1);
    if (p->met_over && atomic_load(&p->net->broken_over))
        atomic_store(&p->met_over->broken_over, true);
    if (p->net) p->net->ops->close(p->net);
    ls_watch_stop(p->watch); /* it answers while MPI waits for the others' end */
    if (p->met_over) p->met_over->ops->close(p->met_over);
    if (p->commons) ls_commons_close(p->commons);
    free(p->commons);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->groups_lock);
    free(p->hosts);
    free(p->local);
    free(p);
}

/* All workers share memory. */
static void use_commons(ls_endpoint *p, ls_commons *c) {
    p->commons = c;
    p->patience = ls_patience_for(p->size, ls_cores_among(p->size));
    for (int i = 0; i < p->size; i++) p->local[i] = i;
    p->net = ls_shared_net_open(c, &p->patience);
}

static size_t arena_of(const ls_group_options *o) {
    return o && o->arena_nbytes ? o->arena_nbytes : ARENA;
}

/* ---- what is asked for ---- */

/* NULL: nothing. */
static const char *transport_of(const ls_group_options *o) {
    const char *name = o && o->transport ? o->transport : getenv("LOCKSTEP_TRANSPORT");
    return name && *name ? name : NULL;
}

static const char *links_of(const ls_group_options *o) {
    const char *path = o && o->links ? o->links : getenv("LOCKSTEP_LINKS");
    return path && *path ? path : NULL;
}

static ls_status check_transport(const ls_group_options *o, ls_error *e) {
    const char *name = transport_of(o);
    if (name && strcmp(name, "shm") != 0 && strcmp(name, "tcp") != 0 && strcmp(name, "mpi") != 0)
        return ls_fail(e, LS_EINVAL, "transport '%.40s' does not exist; there are shm, tcp and mpi",
                       name);
    return LS_OK;
}

/* Where all workers share memory the file of links has no use, and is read all the same. Elsewhere
 * worker 0's counts for all (ls_link_agree()). */
static ls_status check_links(const ls_group_options *o, ls_error *e) {
    const char *path = links_of(o);
    ls_link unused;
    return path ? ls_link_read(path, &unused, e) : LS_OK;
}

/* ---- threads ---- */

ls_status ls_endpoint_open_threads(int n, const ls_group_options *o, ls_endpoint **ends,
                                   ls_error *e) {
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e));
    LS_TRY(check_transport(o, e));
    LS_TRY(check_links(o, e));
    if (o && o->transport && *o->transport && strcmp(o->transport, "shm") != 0)
        return ls_fail(
            e, LS_EINVAL,
            "transport %s: threads of one process share memory; leave it out, or use shm",
            o->transport);
    ls_commons first;
    LS_TRY(ls_commons_create(n, arena_of(o), true, &first, e));
    for (int i = 0; i < n; i++) {
        ls_commons *view = LS_NEW(ls_commons);
        if (i)
            ls_commons_share(&first, i, view);
        else
            *view = first;
        ends[i] = endpoint_new(i, n, k);
        use_commons(ends[i], view);
    }
    return LS_OK;
}

/* ---- processes of this host ---- */

/* The memory that the launcher made is descriptor LOCKSTEP_SHM. */
static ls_status open_processes(const ls_environment *env, const char *fd, const ls_kernels *k,
                                ls_endpoint **p_p, ls_error *e) {
    char *end = NULL;
    long number = strtol(fd, &end, 10);
    if (!*fd || *end || number < 0 || number >= 1 << 20)
        return ls_fail(e, LS_EINVAL, "LOCKSTEP_SHM: '%.40s' is not a file descriptor", fd);
    int copy = fcntl((int)number, F_DUPFD_CLOEXEC, 3); /* the other one stays as it was inherited */
    if (copy < 0)
        return ls_fail(e, LS_EINVAL, "LOCKSTEP_SHM: descriptor %ld: %s", number, strerror(errno));
    ls_commons *c = LS_NEW(ls_commons);
    ls_status s = ls_commons_join(copy, env->rank, c, e);
    if (s != LS_OK) {
        free(c);
        close(copy);
        return s;
    }
    if (c->size != env->size) {
        s = ls_fail(e, LS_EINVAL, "LOCKSTEP_SHM is memory of %d workers, but LOCKSTEP_SIZE is %d",
                    c->size, env->size);
        ls_commons_close(c);
        free(c);
        return s;
    }
    ls_endpoint *p = endpoint_new(env->rank, env->size, k);
    use_commons(p, c);
    *p_p = p;
    return LS_OK;
}

/* ---- workers that meet over TCP ---- */

static int listening_fd(const ls_environment *env) {
    const char *text = getenv("LOCKSTEP_LISTEN_FD");
    return text && env->launcher == LS_LAUNCHER_LOCKSTEP ? atoi(text) : -1;
}

/* 0: no launcher of this host has made memory. */
static int shared_fd(const ls_environment *env) {
    const char *text = getenv("LOCKSTEP_SHM");
    return text && env->launcher == LS_LAUNCHER_LOCKSTEP ? atoi(text) : 0;
}

/* Gives each host the rank of its first worker as its number. */
static void number_hosts(ls_endpoint *p, const ls_roster *r) {
    for (int i = 0; i < p->size; i++) {
        p->hosts[i] = i;
        for (int k = i - 1; k >= 0; k--)
            if (r->members[k].host == r->members[i].host) p->hosts[i] = p->hosts[k];
    }
}

static double timeout_of(const ls_group_options *o) {
    return o && o->timeout_s != 0 ? o->timeout_s : 300;
}

static int64_t timeout_ns_of(const ls_group_options *o) { return ls_clock_ns_of(timeout_of(o)); }

static int workers_here(const ls_endpoint *p) {
    int n = 0;
    for (int i = 0; i < p->size; i++) n += p->hosts[i] == p->hosts[p->rank];
    return n;
}

/* Workers of one host share memory. If all workers do, their messages go through it, too. */
static ls_status share_memory(ls_endpoint *p, const ls_group_options *o, ls_error *e) {
    p->patience = ls_patience_for(workers_here(p), ls_cores_among(workers_here(p)));
    LS_TRY(ls_neighbours_share(p, arena_of(o), timeout_ns_of(o), e));
    if (!p->commons || p->commons->size < p->size) return LS_OK;
    p->met_over = p->net;
    p->net = ls_shared_net_open(p->commons, &p->patience);
    return LS_OK;
}

/* torchrun's agent has the port itself, and the ports after it may be in use: by connections of
 * other programs, if torchrun has chosen a port of those that the kernel gives to connections, or
 * by another torchrun. */
static ls_status choose_ports(const ls_environment *env, ls_join *j, ls_error *e) {
    int last = env->port + PORTS < 65535 ? env->port + PORTS : 65535;
    j->port = env->port + 1;
    j->nports = last - env->port;
    j->meeting = env->port;
    if (j->nports > 0) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "MASTER_PORT is 65535, which torchrun uses itself, and worker 0 needs one of the "
        "%d ports after it; use a lower one",
        PORTS);
}

static const ls_meeting *meeting_of(const ls_group_options *o) { return o ? o->meeting : NULL; }

static int copied_fd(const ls_meeting *m) {
    return m->listen_fd ? fcntl(m->listen_fd, F_DUPFD_CLOEXEC, 3) : -1;
}

static ls_status find_key(const ls_group_options *o, ls_key *key_p, bool *found_p, ls_error *e) {
    const ls_meeting *m = meeting_of(o);
    if (!m || !m->key) return ls_key_require(o && o->insecure, key_p, found_p, e);
    LS_TRY(ls_key_of(m->key, "meeting", key_p, e));
    *found_p = true;
    return LS_OK;
}

/* What the environment would say. */
static ls_status read_meeting(const ls_group_options *o, ls_environment *env_p, ls_error *e) {
    const ls_meeting *m = o->meeting;
    const char *name = transport_of(o);
    ls_address at;
    if (m->size < 1 || m->size > LS_MAX_WORKERS || m->rank < 0 || m->rank >= m->size)
        return ls_fail(e, LS_EINVAL, "meeting: rank %d of %d workers does not exist", m->rank,
                       m->size);
    if (name && strcmp(name, "mpi") == 0)
        return ls_fail(e, LS_EINVAL, "meeting: workers meet over TCP; transport mpi is for mpirun");
    if (!m->address) return ls_fail(e, LS_EINVAL, "meeting: address is NULL");
    LS_TRY(ls_address_parse(m->address, &at, e));
    *env_p = (ls_environment){.rank = m->rank, .size = m->size, .port = at.port};
    env_p->local_rank = env_p->local_size = -1;
    memcpy(env_p->host, at.host, sizeof at.host);
    return LS_OK;
}

/* Files and sockets of a worker, beside two connections with each other one. */
enum { OWN_FILES = 18 };

static ls_status open_tcp(const ls_group_options *o, const ls_environment *env, const ls_kernels *k,
                          ls_endpoint **p_p, ls_error *e) {
    ls_key key;
    bool keyed = false;
    if (!env->host[0])
        return ls_fail(e, LS_EINVAL,
                       "%s does not give worker 0's address: set LOCKSTEP_ADDR=HOST:PORT, or "
                       "MASTER_ADDR and MASTER_PORT, the same on all workers",
                       ls_launcher_title(env->launcher));
    LS_TRY(ls_descriptors_raise(OWN_FILES + 4, OWN_FILES + 2 * env->size, "workers over TCP", e));
    LS_TRY(find_key(o, &key, &keyed, e));
    ls_join j = {.rank = env->rank, .size = env->size, .host = env->host, .port = env->port};
    j.nports = 1;
    if (env->port_taken) LS_TRY(choose_ports(env, &j, e));
    j.inherited_fd = meeting_of(o) ? copied_fd(o->meeting) : listening_fd(env);
    j.shared_fd = shared_fd(env);
    j.key = keyed ? &key : NULL;
    j.timeout_s = timeout_of(o);
    j.listens = !meeting_of(o) && getenv("LOCKSTEP_LISTENS") != NULL;
    ls_roster r;
    ls_status s = ls_join_run(&j, &r, e);
    if (s == LS_OK) {
        ls_endpoint *p = endpoint_new(env->rank, env->size, k);
        number_hosts(p, &r);
        p->patience = ls_patience_for(workers_here(p), ls_cores_among(workers_here(p)));
        s = ls_tcp_open(&r, env->rank, j.key, &p->patience, &p->net, e);
        r.listen_fd = -1; /* the transport's now */
        ls_roster_free(&r);
        if (s == LS_OK)
            *p_p = p;
        else
            ls_endpoint_close(p);
    }
    if (keyed) ls_key_wipe(&key);
    return s;
}

/* ---- workers that MPI started ---- */

static ls_status open_mpi(const ls_group_options *o, const ls_environment *env, const ls_kernels *k,
                          ls_endpoint **p_p, ls_error *e) {
    ls_net *net = NULL;
    LS_TRY(ls_mpi_open(NULL, timeout_ns_of(o), &net, e));
    ls_endpoint *p = endpoint_new(env->rank, env->size, k);
    p->net = net;
    p->patience = ls_patience_for(env->size, ls_cores_among(env->size));
    ls_status s = ls_neighbours_find(p, ls_host_number(), timeout_ns_of(o), e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_endpoint_close(p);
    return s;
}

/* Measures or reads the links, if messages leave the shared memory. */
static ls_status agree_on_links(ls_endpoint *p, const ls_group_options *o, ls_error *e) {
    ls_link_plan plan = {.path = links_of(o),
                         .hosts = p->hosts,
                         .care = LS_LINK_CARE,
                         .timeout_ns = timeout_ns_of(o)};
    if (p->met_over) return check_links(o, e);
    return ls_link_agree(p->net, p->k, &plan, &p->link, &p->link_given, e);
}

/* ---- once ---- */

/* The environment by which this process, or one that it was forked from, opened its group. */
static struct {
    atomic_bool claimed, is_set;
    uint32_t forks; /* ls_forks() of that process */
    ls_environment env;
} opened;

static void note_opened(const ls_environment *env) {
    if (env->size == 1 || atomic_exchange(&opened.claimed, true)) return;
    opened.forks = ls_forks();
    opened.env = *env;
    atomic_store(&opened.is_set, true);
}

/* A child has its parent's variables: over TCP it would wait for workers that are not there, and
 * over MPI use the parent's connections. */
static ls_status refuse_child(const ls_environment *env, ls_error *e) {
    const ls_environment *o = &opened.env;
    if (!atomic_load(&opened.is_set) || opened.forks == ls_forks()) return LS_OK;
    if (env->launcher != o->launcher || env->rank != o->rank || env->size != o->size) return LS_OK;
    if (env->port != o->port || strcmp(env->host, o->host) != 0) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "group_open: process %d was forked from worker %d, which alone can open this "
                   "group; to be alone, it unsets the variables of rank and size of %s",
                   (int)getpid(), env->rank, ls_launcher_title(env->launcher));
}

static bool is_mpi(ls_launcher l) {
    return l == LS_LAUNCHER_OPENMPI || l == LS_LAUNCHER_PMI || l == LS_LAUNCHER_PMIX;
}

ls_status ls_endpoint_open(const ls_group_options *o, ls_endpoint **p_p, ls_error *e) {
    const ls_kernels *k = NULL;
    ls_environment env;
    LS_TRY(ls_kernels_pick(&k, e));
    if (meeting_of(o))
        LS_TRY(read_meeting(o, &env, e));
    else
        LS_TRY(ls_environment_read(&env, e));
    if (!meeting_of(o)) LS_TRY(refuse_child(&env, e));
    if (env.launcher == LS_LAUNCHER_LOCKSTEP) ls_tether_tie();
    const char *fd = env.launcher == LS_LAUNCHER_LOCKSTEP ? getenv("LOCKSTEP_SHM") : NULL;
    const char *name = transport_of(o);
    bool any = !name;
    bool shm = any || strcmp(name, "shm") == 0, one = env.size == 1 && !fd;
    LS_TRY(check_transport(o, e));
    if (one || (fd && shm)) LS_TRY(check_links(o, e));
    if (one) {
        *p_p = endpoint_new(0, 1, k);
        return LS_OK;
    }
    if (fd && shm) {
        LS_TRY(open_processes(&env, fd, k, p_p, e));
        note_opened(&env);
        return LS_OK;
    }
    bool mpi = strcmp(any ? "" : name, "mpi") == 0 || (shm && is_mpi(env.launcher) && !env.host[0]);
    ls_endpoint *p = NULL;
    if (mpi)
        LS_TRY(open_mpi(o, &env, k, &p, e));
    else
        LS_TRY(open_tcp(o, &env, k, &p, e));
    ls_status s = shm ? share_memory(p, o, e) : LS_OK;
    if (s == LS_OK && mpi && !p->met_over) s = ls_neighbours_watch(p, timeout_ns_of(o), e);
    if (s == LS_OK && !any && shm && !p->met_over)
        s = ls_fail(e, LS_EINVAL,
                    "transport shm: not all workers are on one host, or its kernel does not let "
                    "them share memory; use tcp");
    if (s == LS_OK) s = agree_on_links(p, o, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_endpoint_close(p);
    if (s == LS_OK && !meeting_of(o)) note_opened(&env);
    return s;
}
