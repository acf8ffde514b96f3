/* endpoint.c - see endpoint.h. */
#include "coll/endpoint.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/environment.h"
#include "net/shared_net.h"
#include "net/spawn.h"

static const size_t ARENA = (size_t)64 << 20;

static ls_endpoint *endpoint_new(int rank, int size, const ls_kernels *k) {
    ls_endpoint *p = LS_NEW(ls_endpoint);
    p->rank = rank;
    p->size = size;
    p->k = k;
    p->hosts = LS_NEW_ARRAY(int, (size_t)size);
    p->local = LS_NEW_ARRAY(int, (size_t)size);
    for (int i = 0; i < size; i++) p->local[i] = -1;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void ls_endpoint_close(ls_endpoint *p) {
    if (!p) return;
    if (p->commons) atomic_store(&ls_commons_worker_of(p->commons, p->commons->rank)->left, 1);
    if (p->net) p->net->ops->close(p->net);
    if (p->commons) ls_commons_close(p->commons);
    free(p->commons);
    pthread_mutex_destroy(&p->lock);
    free(p->hosts);
    free(p->local);
    free(p);
}

/* All workers share memory. */
static void use_commons(ls_endpoint *p, ls_commons *c) {
    p->commons = c;
    p->patience = ls_patience_for(p->size, ls_cores());
    for (int i = 0; i < p->size; i++) p->local[i] = i;
    p->net = ls_shared_net_open(c, &p->patience);
}

static size_t arena_of(const ls_group_options *o) {
    return o && o->arena_nbytes ? o->arena_nbytes : ARENA;
}

/* ---- threads ---- */

ls_status ls_endpoint_open_threads(int n, const ls_group_options *o, ls_endpoint **ends,
                                   ls_error *e) {
    const ls_kernels *k = NULL;
    LS_TRY(ls_kernels_pick(&k, e));
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
    ls_commons *c = LS_NEW(ls_commons);
    char *end = NULL;
    long number = strtol(fd, &end, 10);
    ls_status s = *fd && !*end && number >= 0 && number < 1 << 20
                      ? ls_commons_join((int)number, env->rank, c, e)
                      : ls_fail(e, LS_EINVAL, "LOCKSTEP_SHM: '%.40s' is no descriptor", fd);
    if (s == LS_OK && c->size != env->size)
        s = ls_fail(e, LS_EINVAL, "LOCKSTEP_SHM is memory of %d workers, but LOCKSTEP_SIZE is %d",
                    c->size, env->size);
    if (s != LS_OK) {
        ls_commons_close(c);
        free(c);
        return s;
    }
    ls_endpoint *p = endpoint_new(env->rank, env->size, k);
    use_commons(p, c);
    *p_p = p;
    return LS_OK;
}

ls_status ls_endpoint_open(const ls_group_options *o, ls_endpoint **p_p, ls_error *e) {
    const ls_kernels *k = NULL;
    ls_environment env;
    (void)o;
    LS_TRY(ls_kernels_pick(&k, e));
    LS_TRY(ls_environment_read(&env, e));
    const char *fd = getenv("LOCKSTEP_SHM");
    if (fd) return open_processes(&env, fd, k, p_p, e);
    if (env.size > 1)
        return ls_fail(e, LS_EINVAL, "%d workers started by %s: only `lockstep run` works so far",
                       env.size, ls_launcher_name(env.launcher));
    *p_p = endpoint_new(0, 1, k);
    return LS_OK;
}
