/* membership.c - see membership.h.
 *
 * With etcd, a thread repeats this: if there is a leader, it waits for the key to change. Otherwise
 * it asks for a lease and creates the key; if it was the first host to do so, it keeps the lease
 * alive.
 */
#include "cluster/membership.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cluster/etcd.h"

/* A lease is renewed KEEPS times in its time; a leader stops 1/MARGIN of that time before the lease
 * ends, since clocks differ and an answer takes time. */
enum { KEEPS = 4, MARGIN = 4 };
enum { PAUSE_US = 200000 };

struct ls_membership {
    pthread_mutex_t lock;
    ls_leads leads;
    int64_t until_ns; /* this host leads until then */
    char trouble[256];
    /* With etcd. */
    ls_etcd *etcd; /* only the thread uses it */
    pthread_t thread;
    bool has_thread, stops;
    char key[320], address[256];
    int64_t ttl_s, lease;
};

static ls_membership *new_membership(void) {
    ls_membership *m = LS_NEW(ls_membership);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

ls_status ls_membership_embedded(const char *first, ls_membership **m_p, ls_error *e) {
    ls_membership *m = new_membership();
    m->leads = (ls_leads){.term = 1, .self = first == NULL};
    m->until_ns = INT64_MAX;
    if (first && strlen(first) >= sizeof m->leads.address) {
        free(m);
        return ls_fail(e, LS_EINVAL, "the first host's address is too long");
    }
    if (first) snprintf(m->leads.address, sizeof m->leads.address, "%s", first);
    *m_p = m;
    return LS_OK;
}

/* ---- etcd ---- */

static bool is_to_stop(ls_membership *m) {
    pthread_mutex_lock(&m->lock);
    bool stops = m->stops;
    pthread_mutex_unlock(&m->lock);
    return stops;
}

static void publish(ls_membership *m, int64_t term, bool self, const char *address,
                    int64_t until_ns) {
    pthread_mutex_lock(&m->lock);
    m->leads = (ls_leads){.term = term, .self = self};
    snprintf(m->leads.address, sizeof m->leads.address, "%s", address ? address : "");
    m->until_ns = until_ns;
    m->trouble[0] = 0;
    pthread_mutex_unlock(&m->lock);
}

static void publish_trouble(ls_membership *m, const ls_error *e) {
    pthread_mutex_lock(&m->lock);
    if (!m->leads.self) m->leads = (ls_leads){0};
    snprintf(m->trouble, sizeof m->trouble, "%.250s", e->msg);
    pthread_mutex_unlock(&m->lock);
    usleep(PAUSE_US);
}

static int64_t lease_end(const ls_membership *m, int64_t asked_ns) {
    return asked_ns + m->ttl_s * 1000000000 / MARGIN * (MARGIN - 1);
}

/* Leads until the lease can't be kept, or this host is to stop. */
static void lead(ls_membership *m, int64_t term, int64_t asked_ns) {
    ls_error e = {0};
    publish(m, term, true, NULL, lease_end(m, asked_ns));
    while (!is_to_stop(m)) {
        int64_t next = asked_ns + m->ttl_s * 1000000000 / KEEPS, now = ls_clock_ns();
        if (now < next) {
            usleep(20000);
            continue;
        }
        asked_ns = now;
        ls_status s = ls_etcd_keep_alive(m->etcd, m->lease, &e);
        if (s == LS_OK) publish(m, term, true, NULL, lease_end(m, asked_ns));
        if (s == LS_EPEER) break; /* the lease has expired */
        if (s != LS_OK) publish_trouble(m, &e);
    }
    if (!is_to_stop(m)) publish(m, 0, false, NULL, 0);
}

static void follow(ls_membership *m, const ls_etcd_value *v) {
    ls_error e = {0};
    bool changed = false;
    publish(m, v->create_revision, false, v->value, 0);
    while (!changed && !is_to_stop(m))
        if (ls_etcd_watch(m->etcd, m->key, v->revision + 1, 1, &changed, &e) != LS_OK) {
            publish_trouble(m, &e);
            return;
        }
}

/* A key of this host under a lease that was thought lost disappears with that lease. */
static ls_status stand(ls_membership *m, ls_error *e) {
    ls_etcd_value v = {0};
    bool won = false;
    LS_TRY(ls_etcd_get(m->etcd, m->key, &v, e));
    if (v.create_revision == 0) {
        int64_t asked_ns = ls_clock_ns();
        LS_TRY(ls_etcd_grant(m->etcd, m->ttl_s, &m->lease, e));
        ls_etcd_entry own = {m->key, m->address, m->lease};
        LS_TRY(ls_etcd_create(m->etcd, &own, &v, &won, e));
        if (won) lead(m, v.create_revision, asked_ns);
        if (won || is_to_stop(m)) ls_etcd_revoke(m->etcd, m->lease, NULL);
    }
    if (!won) follow(m, &v);
    ls_etcd_value_free(&v);
    return LS_OK;
}

static void *run(void *arg) {
    ls_membership *m = arg;
    while (!is_to_stop(m)) {
        ls_error e = {0};
        if (stand(m, &e) != LS_OK) publish_trouble(m, &e);
    }
    return NULL;
}

static ls_status start_thread(ls_membership *m, ls_error *e) {
    int why = ls_thread_start(&m->thread, run, m);
    m->has_thread = why == 0;
    return why ? ls_fail(e, LS_ENOMEM, "no thread for etcd: %s", ls_thread_why(why)) : LS_OK;
}

ls_status ls_membership_etcd(const ls_membership_etcd_options *o, ls_membership **m_p,
                             ls_error *e) {
    ls_membership *m = new_membership();
    int64_t ttl = (int64_t)o->lease_s;
    m->ttl_s = ttl < 2 ? 2 : (double)ttl < o->lease_s ? ttl + 1 : ttl;
    ls_etcd_options x = {.endpoints = o->endpoints,
                         .ca = o->ca,
                         .cert = o->cert,
                         .key = o->key,
                         .user = o->user,
                         .password = o->password,
                         .timeout_s = (double)m->ttl_s / 2};
    ls_status s = LS_OK;
    if (strlen(o->address) >= sizeof m->address || strlen(o->run) > 256)
        s = ls_fail(e, LS_EINVAL, "etcd: the run's name or this host's address is too long");
    snprintf(m->key, sizeof m->key, "/lockstep/%.256s/leader", o->run);
    snprintf(m->address, sizeof m->address, "%s", o->address);
    if (s == LS_OK) s = ls_etcd_open(&x, &m->etcd, e);
    if (s == LS_OK) s = start_thread(m, e);
    if (s == LS_OK)
        *m_p = m;
    else
        ls_membership_close(m);
    return s;
}

/* ---- all ---- */

void ls_membership_look(ls_membership *m, ls_leads *leads_p) {
    pthread_mutex_lock(&m->lock);
    *leads_p = m->leads;
    if (m->leads.self && ls_clock_ns() > m->until_ns) *leads_p = (ls_leads){0};
    pthread_mutex_unlock(&m->lock);
}

void ls_membership_trouble(ls_membership *m, char *text, size_t nbytes) {
    pthread_mutex_lock(&m->lock);
    snprintf(text, nbytes, "%s", m->trouble);
    pthread_mutex_unlock(&m->lock);
}

void ls_membership_close(ls_membership *m) {
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->stops = true;
    pthread_mutex_unlock(&m->lock);
    if (m->has_thread) pthread_join(m->thread, NULL);
    ls_etcd_close(m->etcd);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
