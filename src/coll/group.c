/* group.c - groups: opening, splitting, closing, memory; group.h has the contract. */
#define LS_NO_CALL_SITES
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cores.h"
#include "base/floats.h"
#include "base/forked.h"
#include "base/graves.h"
#include "base/locale.h"
#include "base/mem.h"
#include "base/round_up.h"
#include "base/wait_policy.h"
#include "coll/health.h"
#include "coll/request.h"
#include "coll/virtual.h"

/* ---- options ---- */

static int64_t limit_ns(double seconds, double usual) {
    if (seconds < 0) return -1;
    return ls_clock_ns_of(seconds > 0 ? seconds : usual);
}

static ls_status check_limits(const ls_group_options *o, const char *call, ls_error *e) {
    if (!o || !(isnan(o->timeout_s) || isnan(o->report_s))) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: %s is not a number", call,
                   isnan(o->timeout_s) ? "timeout_s" : "report_s");
}

/* A group of one accepts `shared` and `native`, too. */
static ls_status force(ls_group *g, const char *name, ls_error *e) {
    const ls_net *net = g->end->net;
    bool shared = strcmp(name, "shared") == 0, native = strcmp(name, "native") == 0;
    if (strcmp(name, "auto") == 0) return LS_OK;
    if (shared && (g->shared || g->size == 1)) return LS_OK; /* nothing is forced */
    if (shared)
        return ls_fail(e, LS_EINVAL,
                       "algorithm shared: not all workers share memory over transport %s; use shm",
                       net->ops->name);
    g->native = native && net && net->native;
    if (g->native || (native && g->size == 1)) return LS_OK;
    if (native)
        return ls_fail(e, LS_EINVAL,
                       "algorithm native: transport %s has no collectives of its own; mpi has "
                       "(mpirun, with LOCKSTEP_TRANSPORT=mpi)",
                       g->shared ? "shm" : net->ops->name);
    g->forced = ls_algorithm_named(name);
    if (g->forced) return LS_OK;
    ls_buf all = {0};
    for (int i = 0; ls_algorithms[i]; i++) ls_buf_printf(&all, " %s", ls_algorithms[i]->name);
    ls_fail(e, LS_EINVAL, "algorithm '%.40s' does not exist; there are%s native shared auto", name,
            all.data);
    ls_buf_free(&all);
    return LS_EINVAL;
}

static uint32_t *logged_new(void) { return LS_NEW_ARRAY(uint32_t, (size_t)LS_NCALLS * 64); }

static ls_status read_options(ls_group *g, const ls_group_options *o, ls_error *e) {
    const char *name = o && o->algorithm ? o->algorithm : getenv("LOCKSTEP_ALGORITHM");
    const char *explain = getenv("LOCKSTEP_EXPLAIN");
    LS_TRY(ls_wait_policy_check(e));
    LS_TRY(ls_cores_check(e));
    g->timeout_ns = limit_ns(o ? o->timeout_s : 0, 300);
    g->report_ns = limit_ns(o ? o->report_s : 0, 10);
    if (explain && *explain && strcmp(explain, "0") != 0 && strcmp(explain, "1") != 0)
        return ls_fail(e, LS_EINVAL, "LOCKSTEP_EXPLAIN: '%.40s' is neither 0 nor 1", explain);
    if (explain && strcmp(explain, "1") == 0) g->logged = logged_new();
    return name && *name ? force(g, name, e) : LS_OK;
}

/* ---- checks ---- */

/* Was the process forked from the worker whose group this is? A group of one shares nothing. */
static bool is_of_parent(const ls_group *g) {
    return g->end->size > 1 && g->end->forks != ls_forks();
}

ls_status ls_group_check(const ls_group *g, const char *name, ls_error *e) {
    if (!g) return ls_fail(e, LS_EINVAL, "%s: the group is NULL", name);
    if (!g->end) return ls_fail(e, LS_EINVAL, "%s: the group is closed", name);
    if (!is_of_parent(g)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: process %d was forked from worker %d, which alone can use the group", name,
                   (int)getpid(), g->rank);
}

/* ---- opening ---- */

static void link_group(ls_endpoint *p, ls_group *g) {
    pthread_mutex_lock(&p->groups_lock);
    g->sibling = p->groups;
    p->groups = g;
    pthread_mutex_unlock(&p->groups_lock);
}

static void unlink_group(ls_endpoint *p, ls_group *g) {
    pthread_mutex_lock(&p->groups_lock);
    ls_group **link = &p->groups;
    while (*link != g) link = &(*link)->sibling;
    *link = g->sibling;
    pthread_mutex_unlock(&p->groups_lock);
}

enum { REQUESTS = 16 }; /* in a segment of their slab */

/* m->ranks are ranks of the endpoint; m->id is free at all members. */
static ls_status open_group(ls_endpoint *p, const ls_shared_members *m, ls_group **g_p,
                            ls_error *e) {
    ls_group *g = LS_NEW(ls_group);
    int size = m->size;
    *g = (ls_group){.end = p, .id = m->id, .identity = m->identity, .rank = m->rank, .size = size};
    pthread_mutex_init(&g->lock, NULL);
    ls_slab_open(&g->requests, sizeof(ls_request), REQUESTS);
    g->suspect = -1;
    g->ranks = LS_NEW_ARRAY(int, (size_t)size);
    g->hosts = LS_NEW_ARRAY(int, (size_t)size);
    g->sent = LS_NEW_ARRAY(uint32_t, (size_t)size);
    g->received = LS_NEW_ARRAY(uint32_t, (size_t)size);
    int *local = LS_NEW_ARRAY(int, (size_t)size);
    bool all_local = p->commons && size > 1;
    for (int i = 0; i < size; i++) {
        g->ranks[i] = m->ranks[i];
        g->hosts[i] = p->hosts[m->ranks[i]];
        local[i] = p->local[m->ranks[i]];
        all_local = all_local && local[i] >= 0;
    }
    ls_status s = LS_OK;
    pthread_mutex_lock(&p->lock);
    p->users++;
    p->taken |= (uint64_t)1 << m->id;
    if (all_local) {
        g->shared = LS_NEW(ls_shared);
        ls_shared_members there = *m;
        there.ranks = local;
        s = ls_shared_open(g->shared, p->commons, p->k, &there, e);
    }
    pthread_mutex_unlock(&p->lock);
    if (!g->shared) {
        g->history = LS_NEW(ls_history);
        g->history->group = m->identity;
    }
    free(local);
    *g_p = g;
    if (s != LS_OK) {
        free(g->shared);
        g->shared = NULL;
    }
    link_group(p, g);
    return s;
}

/* Keeps what a call with a closed group, or with one of its requests, reads. */
static void bury(ls_group *g) {
    static ls_graves graves = {.lock = PTHREAD_MUTEX_INITIALIZER};
    g->end = NULL;
    g->shared = NULL;
    g->history = NULL;
    g->work = NULL;
    g->logged = NULL;
    g->ranks = g->hosts = NULL;
    g->sent = g->received = NULL;
    ls_group *oldest = ls_graves_bury(&graves, g);
    if (!oldest) return;
    ls_slab_close(&oldest->requests);
    free(oldest);
}

void ls_group_close(ls_group *g) {
    if (!g || !g->end || is_of_parent(g)) return;
    ls_endpoint *p = g->end;
    unlink_group(p, g);
    ls_health_leave(g);
    ls_request_close_all(g);
    pthread_mutex_lock(&p->lock);
    if (g->shared) {
        ls_shared_close(g->shared);
        free(g->shared);
    }
    p->taken &= ~((uint64_t)1 << g->id);
    bool last = --p->users == 0;
    pthread_mutex_unlock(&p->lock);
    free(g->history);
    free(g->work);
    free(g->logged);
    free(g->ranks);
    free(g->hosts);
    free(g->sent);
    free(g->received);
    pthread_mutex_destroy(&g->lock);
    bury(g);
    if (last) ls_endpoint_close(p);
}

ls_status ls_group_grow_work(ls_group *g, size_t nbytes, const char *name, ls_error *e) {
    enum { LINE = 64 };
    if (g->work_nbytes >= nbytes) return LS_OK;
    free(g->work);
    g->work = NULL;
    g->work_nbytes = 0;
    if (posix_memalign(&g->work, LINE, nbytes) != 0) {
        g->work = NULL;
        return ls_fail(e, LS_ENOMEM, "%s: no memory for %zu bytes", name, nbytes);
    }
    g->work_nbytes = nbytes;
    return LS_OK;
}

/* Opens the group of all workers of an endpoint; closes the endpoint on failure. */
static ls_status open_all(ls_endpoint *p, const ls_group_options *o, ls_group **g_p, ls_error *e) {
    int *ranks = LS_NEW_ARRAY(int, (size_t)p->size);
    for (int i = 0; i < p->size; i++) ranks[i] = i;
    ls_group *g = NULL;
    const ls_shared_members all = {
        .id = 0, .identity = 1, .rank = p->rank, .size = p->size, .ranks = ranks};
    ls_status s = open_group(p, &all, &g, e);
    if (s == LS_OK) s = read_options(g, o, e);
    free(ranks);
    if (s == LS_OK)
        *g_p = g;
    else
        ls_group_close(g);
    return s;
}

ls_status ls_group_open(const ls_group_options *o, ls_group **g_p, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_endpoint *p = NULL;
    ls_group *g = NULL;
    ls_error own;
    if (!e) e = &own;
    if (!g_p) return ls_fail(e, LS_EINVAL, "group_open: g_p is NULL");
    LS_TRY(check_limits(o, "group_open", e));
    LS_TRY(ls_endpoint_open(o, &p, e));
    LS_TRY(open_all(p, o, &g, e));
    *g_p = g;
    return LS_OK;
}

ls_status ls_group_open_threads(int n, const ls_group_options *o, ls_group **groups, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    ls_error own;
    if (!e) e = &own;
    if (!groups) return ls_fail(e, LS_EINVAL, "group_open_threads: groups is NULL");
    if (n < 1) return ls_fail(e, LS_EINVAL, "group_open_threads: %d threads; at least 1", n);
    LS_TRY(check_limits(o, "group_open_threads", e));
    ls_endpoint **ends = LS_NEW_ARRAY(ls_endpoint *, (size_t)n);
    ls_status s = ls_endpoint_open_threads(n, o, ends, e);
    for (int i = 0; s == LS_OK && i < n; i++) {
        s = open_all(ends[i], o, &groups[i], e);
        if (s == LS_OK) continue;
        for (int j = 0; j < i; j++) ls_group_close(groups[j]);
        for (int j = i + 1; j < n; j++) ls_endpoint_close(ends[j]);
    }
    free(ends);
    return s;
}

/* ---- splitting ---- */

typedef struct member {
    int64_t colour, key, rank;
    uint64_t taken;
} member;

static int by_key(const void *a, const void *b) {
    const member *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Moves the members of this worker's colour, by key, to the front of all [g->size]; returns their
 * number. */
static int my_members(const ls_group *g, member *all) {
    int64_t colour = all[g->rank].colour;
    int n = 0;
    for (int i = 0; i < g->size; i++)
        if (all[i].colour == colour) all[n++] = all[i];
    qsort(all, (size_t)n, sizeof *all, by_key);
    return n;
}

/* A group's identity: equal at all members, and different for groups that have had the same
 * number. */
static uint32_t identity_of(const ls_group *g, int64_t colour) {
    uint64_t x = ((uint64_t)g->identity << 32 | g->calls) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29 ^ (uint64_t)colour) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32) | 1;
}

static ls_status open_split(ls_group *g, const member *members, int n, int id, ls_group **g_p,
                            ls_error *e) {
    int *ranks = LS_NEW_ARRAY(int, (size_t)n);
    ls_shared_members m = {.id = id, .size = n, .ranks = ranks};
    for (int i = 0; i < n; i++) {
        ranks[i] = g->ranks[members[i].rank];
        if (members[i].rank == g->rank) m.rank = i;
    }
    m.identity = identity_of(g, members[0].colour);
    ls_status s = open_group(g->end, &m, g_p, e);
    free(ranks);
    return s;
}

static void release_number(ls_endpoint *p, int id) {
    pthread_mutex_lock(&p->lock);
    p->taken &= ~((uint64_t)1 << id);
    pthread_mutex_unlock(&p->lock);
}

/* Have all members opened their new groups? Then all pages of these are ready. */
static ls_status all_opened(ls_group *g, ls_status mine, ls_error *e) {
    int32_t ok = mine == LS_OK;
    ls_error other = {0};
    ls_status s = ls_all_reduce(g, &ok, &ok, 1, LS_I32, LS_MIN, &other);
    if (s != LS_OK) {
        *e = other;
        return s;
    }
    if (mine != LS_OK) return mine;
    if (ok) return LS_OK;
    return ls_fail(e, LS_ENOMEM, "group_split: another worker could not open its group");
}

/* Reserves a group number that is free at all members of g. Another thread may open a group of this
 * endpoint at the same time: then all try again. Groups begin their search at different numbers, so
 * that two don't collide again and again. all [g->size]: each member's colour and key. */
static ls_status reserve_number(ls_group *g, int colour, int key, member *all, int *id_p,
                                ls_error *e) {
    ls_endpoint *p = g->end;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        member mine = {colour, key, g->rank, p->taken};
        if (p->commons) mine.taken |= ls_shared_retained_areas(p->commons);
        pthread_mutex_unlock(&p->lock);
        uint64_t taken = 0;
        LS_TRY(ls_all_gather(g, &mine, all, sizeof mine, LS_U8, e));
        for (int i = 0; i < g->size; i++) taken |= all[i].taken;
        if (taken == UINT64_MAX)
            return ls_fail(e, LS_EINVAL,
                           "group_split: a worker is in %d groups already; close some",
                           LS_COMMONS_GROUPS);
        int id = g->id;
        while (taken >> id & 1) id = (id + 1) % LS_COMMONS_GROUPS;
        uint64_t bit = (uint64_t)1 << id;
        pthread_mutex_lock(&p->lock);
        int32_t ok = !(p->taken & bit), all_ok = 0;
        if (ok) p->taken |= bit;
        pthread_mutex_unlock(&p->lock);
        ls_status s = ls_all_reduce(g, &ok, &all_ok, 1, LS_I32, LS_MIN, e);
        if (s == LS_OK && all_ok) {
            *id_p = id;
            return LS_OK;
        }
        if (ok) release_number(p, id);
        LS_TRY(s);
    }
}

static ls_status split(ls_group *g, int colour, int key, ls_group **g_p, ls_error *e) {
    member *all = LS_NEW_ARRAY(member, (size_t)g->size);
    ls_group *new = NULL;
    int id = 0;
    ls_status s = reserve_number(g, colour, key, all, &id, e);
    if (s == LS_OK) {
        if (colour >= 0)
            s = open_split(g, all, my_members(g, all), id, &new, e);
        else
            release_number(g->end, id);
        s = all_opened(g, s, e);
    }
    free(all);
    if (s != LS_OK) {
        ls_group_close(new);
        return s;
    }
    if (new) {
        new->forced = g->forced;
        new->logged = g->logged ? logged_new() : NULL;
        new->timeout_ns = g->timeout_ns;
        new->report_ns = g->report_ns;
    }
    *g_p = new;
    return LS_OK;
}

/* Splits a group. The collectives in it are reported as the call that the user made. */
static ls_status split_as(ls_call_form form, ls_group *g, int colour, int key, ls_group **g_p,
                          ls_error *e) {
    LS_FLOATS();
    if (!g || !g_p)
        return ls_fail(e, LS_EINVAL, "%s: the group or g_p is NULL",
                       form == LS_FORM_SPLIT ? "group_split" : "group_dup");
    ls_error own;
    if (!e) e = &own;
    LS_TRY(ls_group_check(g, form == LS_FORM_SPLIT ? "group_split" : "group_dup", e));
    g->form = form;
    ls_status s = split(g, colour, key, g_p, e);
    g->form = LS_FORM_PLAIN;
    return s;
}

ls_status ls_group_split(ls_group *g, int colour, int key, ls_group **g_p, ls_error *e) {
    return split_as(LS_FORM_SPLIT, g, colour, key, g_p, e);
}

ls_status ls_group_dup(ls_group *g, ls_group **g_p, ls_error *e) {
    return split_as(LS_FORM_DUP, g, 0, 0, g_p, e);
}

/* ---- the rest ---- */

int ls_group_rank(const ls_group *g) { return g ? g->rank : 0; }
int ls_group_size(const ls_group *g) { return g ? g->size : 0; }

ls_group *ls_group_at(ls_group *g, const char *file, int line) {
    if (g) {
        g->site = (ls_call_site){file, line};
    }
    return g;
}

void ls_group_mark_next(ls_group *g, ls_call_mark mark) { g->mark = mark; }

/* Zeroed memory that free() accepts. Whole pages of a large block are given back to the system,
 * which zeroes them when they are touched. */
static void *alloc_own(size_t nbytes) {
    const uintptr_t page = 4096;
    void *p = NULL;
    if (posix_memalign(&p, 128, nbytes ? nbytes : 1) != 0) return NULL;
    uintptr_t a = ls_round_up((uintptr_t)p, page), end = (uintptr_t)p + nbytes;
    uintptr_t b = end / page * page;
    if (a >= b || madvise((void *)a, b - a, MADV_DONTNEED) != 0) {
        memset(p, 0, nbytes);
        return p;
    }
    memset(p, 0, a - (uintptr_t)p);
    memset((void *)b, 0, end - b);
    return p;
}

void *ls_group_alloc(ls_group *g, size_t nbytes) {
    void *p = NULL;
    if (!g || !g->end) return NULL;
    if (g->end->commons && !is_of_parent(g)) {
        pthread_mutex_lock(&g->end->lock);
        p = ls_commons_alloc(g->end->commons, nbytes);
        pthread_mutex_unlock(&g->end->lock);
    }
    return p ? p : alloc_own(nbytes);
}

void ls_group_free(ls_group *g, void *p) {
    bool mine = false;
    if (!g || !g->end) return; /* p was a part of the group's memory */
    if (is_of_parent(g))
        mine = ls_group_readable(g, p, 1);
    else if (g->end->commons && p) {
        pthread_mutex_lock(&g->end->lock);
        mine = ls_commons_free(g->end->commons, p);
        pthread_mutex_unlock(&g->end->lock);
    }
    if (!mine) free(p);
}

bool ls_group_readable(const ls_group *g, const void *p, size_t nbytes) {
    const ls_commons *c = g && g->end ? g->end->commons : NULL;
    return c && ls_commons_readable(c, p, nbytes);
}

void ls_group_attach(ls_group *g, void *p, size_t nbytes) {
    pthread_mutex_lock(&g->end->lock);
    if (g->end->commons) ls_commons_attach(g->end->commons, p, nbytes);
    pthread_mutex_unlock(&g->end->lock);
}

bool ls_group_is_one(const ls_group *g) { return g->size > 1 && ls_goes_shared(g); }

ls_status ls_group_alloc_one(ls_group *g, size_t nbytes, void **p_p, ls_error *e) {
    int64_t place = -1;
    *p_p = NULL;
    if (!ls_group_is_one(g)) return LS_OK;
    if (g->rank == 0) {
        pthread_mutex_lock(&g->end->lock);
        void *p = ls_commons_alloc(g->end->commons, nbytes);
        if (p) place = ls_commons_offset(g->end->commons, p);
        pthread_mutex_unlock(&g->end->lock);
    }
    LS_TRY(ls_broadcast(g, &place, 1, LS_I64, 0, e));
    if (place >= 0) *p_p = ls_commons_at(g->end->commons, place);
    return LS_OK;
}

int ls_group_near(const ls_group *g) {
    int n = 0;
    for (int i = 0; i < g->size; i++) n += g->hosts[i] == g->hosts[g->rank];
    return n;
}

ls_status ls_agree(ls_group *g, ls_status own, ls_error *e) {
    size_t n = (size_t)ls_group_size(g);
    int32_t code = (int32_t)own, *codes = LS_NEW_ARRAY(int32_t, n);
    ls_error lost = {0};
    ls_status s = ls_all_gather(g, &code, codes, 1, LS_I32, &lost);
    int first = 0;
    while (s == LS_OK && first < (int)n && codes[first] == LS_OK) first++;
    if (s != LS_OK && own == LS_OK) *e = lost;
    if (s == LS_OK && first < (int)n) {
        s = (ls_status)codes[first];
        if (first != ls_group_rank(g)) *e = (ls_error){.code = s}; /* that worker reports it */
    }
    free(codes);
    return own != LS_OK && s == LS_OK ? own : s;
}

void ls_group_set_patience(ls_group *g, double timeout_s, double report_s) {
    g->timeout_ns = limit_ns(timeout_s, 300);
    g->report_ns = limit_ns(report_s, 10);
}

ls_counters ls_group_counters(const ls_group *g) {
    ls_counters c = g ? g->counters : (ls_counters){0};
    if (!g || !g->end || is_of_parent(g)) return c;
    pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&g->lock);
    if (g->shared) c.bytes_read = g->shared->bytes_read;
    pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&g->lock);
    return c;
}
