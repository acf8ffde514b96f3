/* faults.c - draws the kind of cluster that a seed has, and its faults.
 *
 * A fault comes before an event: any later one, or one of the next few after a worker has decided a
 * step, when most is at stake. After the last fault everything recovers.
 */
#include "world.h"

enum kind {
    KILL_WORKER,
    STOP_WORKER,
    KILL_REPAIRER,
    KILL_HOST,
    STOP_HOST,
    CUT_LINKS,
    PART_WORKERS,
    LIE,
    CUT_STORE,
    ADD_HOST,
    LEAVE,
    SCALE,
    RENEW,
    NKINDS
};

static const int weights[NKINDS] = {
    [KILL_WORKER] = 6, [STOP_WORKER] = 2,  [KILL_REPAIRER] = 3, [KILL_HOST] = 2, [STOP_HOST] = 2,
    [CUT_LINKS] = 3,   [PART_WORKERS] = 3, [LIE] = 1,           [CUT_STORE] = 2, [ADD_HOST] = 2,
    [LEAVE] = 1,       [SCALE] = 1,        [RENEW] = 1};

static void next_fault(world *w) {
    w->fault_at = w->count + 1 + draw_to(w, w->plan.spacing);
    w->decides_at = 0;
    if (chance(w, 0.5)) return;
    w->decides_at = w->decides + 1 + (int)draw_to(w, 12);
    w->fault_at = w->count + 4000; /* if no step is decided */
}

void faults_plan(world *w) {
    plan *p = &w->plan;
    p->elected = chance(w, 0.6);
    p->sharded = chance(w, 0.5);
    p->closes_at_once = chance(w, 0.5);
    p->same_id = chance(w, 0.5);
    p->nhosts = (int)draw_in(w, 1, chance(w, 0.25) ? 5 : 3);
    p->V = (int)draw_in(w, 1, MOST_VIRTUAL);
    p->B = (int)draw_in(w, 1, MOST_BLOCKS);
    p->steps = draw_in(w, 5, chance(w, 0.3) ? MOST_STEPS : 14);
    p->save_every = draw_in(w, 2, 10);
    p->ttl = draw_in(w, 300, 600) * MS;
    p->silence = draw_in(w, 200, 400) * MS;
    p->gather = draw_in(w, 400, 800) * MS;
    p->hasty = p->elected && chance(w, 0.2);
    if (p->hasty) p->gather = draw_in(w, 0, 50) * MS;
    if (p->hasty) p->ttl = draw_in(w, 120, 300) * MS;
    p->heartbeat = draw_in(w, 50, 150) * MS;
    p->retry = draw_in(w, 20, 300) * MS;
    p->patience = draw_in(w, 300, 500) * MS;
    p->nfaults = (int)draw_in(w, 0, 20);
    p->spacing = (int64_t)20 << draw_to(w, 6);
    w->kinds = ~0u;
    if (chance(w, 0.3)) /* only faults of workers */
        w->kinds =
            1u << KILL_WORKER | 1u << STOP_WORKER | 1u << KILL_REPAIRER | 1u << SCALE | 1u << RENEW;
    if (p->hasty) {
        if (p->nhosts < 3) p->nhosts = 3;
        w->kinds = 1u << KILL_HOST | 1u << STOP_HOST | 1u << CUT_LINKS | 1u << CUT_STORE |
                   1u << KILL_WORKER | 1u << ADD_HOST | 1u << PART_WORKERS;
    }
    if (!p->elected) w->kinds &= ~(1u << CUT_STORE);
    w->faults_left = p->nfaults;
    w->crashes_left = 2; /* three in a row would end the run */
    w->keeper = p->elected ? (int)draw_to(w, p->nhosts) : 0;
    next_fault(w);
}

/* ---- the host ---- */

/* Any of the hosts that are wanted, or NULL. */
static host *any_host(world *w, bool (*is_wanted)(const host *)) {
    host *found[MOST_HOSTS];
    int n = 0;
    for (int i = 0; i < MOST_HOSTS; i++)
        if (w->hosts[i].alive && !w->hosts[i].over && is_wanted(&w->hosts[i]))
            found[n++] = &w->hosts[i];
    return n ? found[draw_to(w, n)] : NULL;
}

static bool is_any(const host *h) { return h != NULL; }
static bool has_workers(const host *h) { return h->crew.state == CREW_RUNS; }
static bool repairs(const host *h) { return h->crew.state == CREW_REPAIRS; }
static bool leads(const host *h) { return ls_views_leads(h->views); }
static bool may_leave(const host *h) {
    return h->slot != h->w->keeper && !h->leaves && h->crew.state == CREW_RUNS;
}

/* The host, or one of its links, is faulty for this long. */
static void mark_faulty(world *w, host *h, int64_t ns) {
    if (w->now + ns > h->faulty_until) h->faulty_until = w->now + ns;
    if (w->now + ns > w->calm_at) w->calm_at = w->now + ns;
}

/* ---- workers ---- */

static int any_rank(world *w, const host *h) {
    return h->crew.view.first + (int)draw_to(w, h->crew.view.n);
}

static void killed(world *w, host *h, const event *e) {
    (void)w;
    if (e->a == h->crew.generation) crew_fail(h, LS_VIEW_LOST, "a worker was killed");
}

static void kill_worker(world *w) {
    host *h = any_host(w, has_workers);
    if (!h) return;
    int rank = any_rank(w, h);
    trace(w, "FAULT: worker %d on host %d is killed", rank, h->slot);
    worker_kill(h->crew.team, rank);
    post_host(h, draw_to(w, 3 * MS), killed)->a = h->crew.generation;
}

static void silent(world *w, host *h, const event *e) {
    if (e->a != h->crew.generation || h->crew.state != CREW_RUNS) return;
    if (h->crew.team->workers[e->b].stopped_until > w->now)
        crew_fail(h, LS_VIEW_LOST, "a worker is silent");
}

static void stop_worker(world *w) {
    host *h = any_host(w, has_workers);
    if (!h) return;
    int rank = any_rank(w, h);
    int64_t ns = draw_in(w, 10 * MS, 300 * MS);
    trace(w, "FAULT: worker %d on host %d is stopped", rank, h->slot);
    if (w->now + ns > w->calm_at) w->calm_at = w->now + ns;
    worker_stop(h->crew.team, rank, ns);
    event *e = post_host(h, w->plan.heartbeat, silent);
    e->a = h->crew.generation;
    e->b = rank;
}

/* ---- hosts ---- */

static void come_back(world *w, host *h, const event *e) {
    (void)h;
    host_start(w, e->a);
}

static void end_doomed(world *w, host *h, const event *e) {
    (void)h;
    (void)e;
    w->done = true;
}

static void kill_host(world *w) {
    host *h = any_host(w, is_any);
    bool last = !w->plan.elected && h && h->slot == 0;
    if (!h || (last && !chance(w, 0.2))) return;
    int64_t ns = draw_in(w, 30 * MS, 800 * MS);
    trace(w, "FAULT");
    mark_faulty(w, h, ns);
    host_kill(h, chance(w, 0.4));
    if (!last) {
        post(w, ns, come_back)->a = h->slot;
        return;
    }
    w->doomed = true;
    post(w, (int64_t)3000 * MS, end_doomed);
}

static void stop_host(world *w) {
    host *h = any_host(w, is_any);
    if (!h) return;
    int64_t ns = draw_in(w, 10 * MS, 900 * MS);
    bool all = chance(w, 0.5);
    trace(w, "FAULT: host %d is stopped%s for %.1f ms", h->slot, all ? ", and its workers" : "",
          (double)ns / MS);
    mark_faulty(w, h, ns);
    if (w->now + ns > h->stopped_until) h->stopped_until = w->now + ns;
    for (int i = 0; all && has_workers(h) && i < h->crew.view.n; i++)
        worker_stop(h->crew.team, h->crew.view.first + i, ns);
}

static void add_host(world *w) {
    for (int i = w->plan.nhosts; i < MOST_HOSTS; i++)
        if (w->hosts[i].life == 0) {
            trace(w, "FAULT: a host joins");
            host_start(w, i);
            return;
        }
}

static void leave(world *w) {
    host *h = any_host(w, may_leave);
    if (!h) return;
    trace(w, "FAULT: host %d leaves", h->slot);
    h->leaves = true;
    for (int i = 0; i < h->crew.view.n; i++)
        h->crew.team->workers[h->crew.view.first + i].asked = LS_ASKED_RENEW;
}

/* ---- links ---- */

enum { SUPERVISORS = 1, WORKERS = 2, ONE_WAY = 4 /* of a's workers to b's */ };
/* A cut that does not heal. */
static const int64_t FOREVER_NS = (int64_t)1000000 * MS;

static void set_cut(world *w, int a, int b, int what, bool cut) {
    if (what & SUPERVISORS) w->cut[a][b] = w->cut[b][a] = cut;
    if (what & WORKERS) w->worker_cut[a][b] = w->worker_cut[b][a] = cut;
    if (what & ONE_WAY) w->worker_cut[a][b] = cut;
    teams_hold(w);
}

static void restore(world *w, host *h, const event *e) {
    (void)h;
    trace(w, "the link of hosts %d and %d works again", e->a, e->b);
    set_cut(w, e->a, e->b, (int)e->number, false);
}

static void cut_pair(world *w, int a, int b, int what, int64_t ns) {
    trace(w, "FAULT: the link of hosts %d and %d is cut for %.1f ms (%d)", a, b, (double)ns / MS,
          what);
    mark_faulty(w, &w->hosts[a], ns);
    mark_faulty(w, &w->hosts[b], ns);
    set_cut(w, a, b, what, true);
    if (what & SUPERVISORS && chance(w, 0.4)) link_break(w, a, b);
    if (what & WORKERS && chance(w, 0.5)) teams_cut(w, a, b);
    event *e = post(w, ns, restore);
    e->a = a;
    e->b = b;
    e->number = what;
}

/* Cuts the link of two hosts, or those of one host to all others. */
static void cut_links(world *w) {
    host *x = any_host(w, is_any), *y = any_host(w, is_any);
    int what = (int)draw_in(w, 1, 3);
    int64_t ns = draw_in(w, 10 * MS, 900 * MS);
    bool all = chance(w, 0.5);
    for (int i = 0; x && i < MOST_HOSTS; i++)
        if (i != x->slot && w->hosts[i].life && (all || i == y->slot))
            cut_pair(w, x->slot, i, what, ns);
}

/* Cuts the workers of a few pairs of hosts from each other, in one direction or both, for long or
 * for ever; their supervisors notice nothing. At times the leader dies meanwhile. */
static void part_workers(world *w) {
    int n = (int)draw_in(w, 1, chance(w, 0.3) ? 3 : 1);
    for (int i = 0; i < n; i++) {
        host *x = any_host(w, is_any), *y = any_host(w, is_any);
        if (!x || x == y) continue;
        int what = chance(w, 0.4) ? ONE_WAY : WORKERS, a = x->slot, b = y->slot;
        bool heals = chance(w, 0.8);
        int64_t ns = heals ? draw_in(w, 100 * MS, (int64_t)4000 * MS) : FOREVER_NS;
        trace(w, "FAULT: workers of host %d are cut from those of host %d for %.1f ms (%d)", a, b,
              (double)ns / MS, what);
        set_cut(w, a, b, what, true);
        if (chance(w, 0.3)) teams_cut(w, a, b);
        x->faulty_until = y->faulty_until = w->now + ns;
        if (!heals) continue;
        mark_faulty(w, x, ns);
        event *e = post(w, ns, restore);
        e->a = a;
        e->b = b;
        e->number = what;
    }
}

/* A worker blames one that it could reach, as after a loss that lasted just long enough. */
static void lie(world *w) {
    host *h = any_host(w, has_workers);
    if (!h) return;
    int rank = (int)draw_to(w, h->crew.view.size);
    const host *x = h->crew.team->hosts[rank];
    trace(w, "FAULT: host %d blames worker %d", h->slot, rank);
    mark_faulty(w, h, 0);
    if (x) mark_faulty(w, &w->hosts[x->slot], 0);
    crew_blame(h, 1 + rank);
}

static void restore_store(world *w, host *h, const event *e) {
    (void)h;
    w->store_cut[e->a] = false;
}

static void cut_store(world *w) {
    host *h = any_host(w, chance(w, 0.7) ? leads : is_any);
    if (!h) return;
    int64_t ns = draw_in(w, 100 * MS, 1500 * MS);
    trace(w, "FAULT: host %d does not reach the lease for %.1f ms", h->slot, (double)ns / MS);
    mark_faulty(w, h, ns);
    w->store_cut[h->slot] = true;
    post(w, ns, restore_store)->a = h->slot;
}

/* ---- kinds ---- */

static void ask_leader(world *w, bool scales) {
    host *h = any_host(w, leads);
    if (!h || h->stopped_until > w->now) return;
    int n = (int)draw_in(w, 1, 6);
    trace(w, "FAULT: host %d is asked for %d workers", h->slot, scales ? n : 0);
    if (scales)
        ls_views_scale(h->views, n);
    else
        ls_views_renew(h->views);
}

static void fault(world *w) {
    int sum = 0, kind = -1;
    for (int k = 0; k < NKINDS; k++) sum += w->kinds >> k & 1 ? weights[k] : 0;
    int64_t at = draw_to(w, sum);
    while (at >= 0)
        if (w->kinds >> ++kind & 1) at -= weights[kind];
    host *h = any_host(w, repairs);
    w->tally->faults++;
    w->idle_views = 0;
    switch ((enum kind)kind) {
    case KILL_REPAIRER:
        if (h)
            crew_repairer_killed(h);
        else
            kill_worker(w);
        break;
    case STOP_WORKER: stop_worker(w); break;
    case KILL_HOST: kill_host(w); break;
    case STOP_HOST: stop_host(w); break;
    case CUT_LINKS: cut_links(w); break;
    case PART_WORKERS: part_workers(w); break;
    case LIE: lie(w); break;
    case CUT_STORE: cut_store(w); break;
    case ADD_HOST: add_host(w); break;
    case LEAVE: leave(w); break;
    case SCALE: ask_leader(w, true); break;
    case RENEW: ask_leader(w, false); break;
    default: kill_worker(w); break;
    }
}

void faults_event(world *w) {
    w->count++;
    if (w->decides_at && w->decides >= w->decides_at) {
        w->decides_at = 0;
        w->fault_at = w->count + draw_to(w, 10);
    }
    if (w->faults_left > 0 && w->count >= w->fault_at) {
        w->faults_left--;
        fault(w);
        next_fault(w);
    }
    if (w->faults_left == 0 && w->calm_since < 0 && w->now >= w->calm_at) w->calm_since = w->now;
}
