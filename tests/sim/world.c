/* world.c - see world.h: time, random numbers, and the queue of events. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "check.h"

/* A run takes at most this long after the last fault. */
static const int64_t BOUND_NS = (int64_t)20000 * MS;
enum { MOST_EVENTS = 3000000 };

/* ---- random numbers ---- */

/* Substream 1: the fake transport draws from substreams 0 and up, with seeds of its own. */
uint64_t draw(world *w) {
    if (w->has_spare) {
        w->has_spare = false;
        return w->spare;
    }
    uint32_t x[4];
    ls_random_words(w->seed, LS_STREAM_FAKE, 1, w->draws++, x);
    w->spare = (uint64_t)x[3] << 32 | x[2];
    w->has_spare = true;
    return (uint64_t)x[1] << 32 | x[0];
}

int64_t draw_to(world *w, int64_t end) { return (int64_t)(draw(w) % (uint64_t)end); }
int64_t draw_in(world *w, int64_t first, int64_t last) {
    return first + draw_to(w, last - first + 1);
}
bool chance(world *w, double share) { return (double)(draw(w) >> 11) * 0x1p-53 < share; }

/* ---- arithmetic of the toy workers ---- */

/* The finalizer of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014). */
static uint64_t scramble(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    return scramble(scramble(scramble(a + 0x9e3779b97f4a7c15u) + b) + c);
}

uint64_t gradient(int64_t step, int virtual_worker, int b) {
    return mix((uint64_t)step, (uint64_t)virtual_worker, (uint64_t)b);
}

uint64_t updated(uint64_t value, uint64_t sum, int64_t step) {
    return mix(value, sum, (uint64_t)step);
}

static void compute_reference(world *w) {
    const plan *p = &w->plan;
    for (int b = 0; b < p->B; b++) w->values[0][b] = mix(1000, (uint64_t)b, 0);
    for (int64_t s = 1; s <= p->steps; s++)
        for (int b = 0; b < p->B; b++) {
            uint64_t sum = 0;
            for (int v = 0; v < p->V; v++) sum = mix(sum, gradient(s, v, b), 0);
            w->sums[s][b] = sum;
            w->values[s][b] = updated(w->values[s - 1][b], sum, s);
        }
}

/* ---- output ---- */

void trace(world *w, const char *fmt, ...) {
    if (!w->opt.trace) return;
    va_list list;
    va_start(list, fmt);
    printf("%12.6f ms  ", (double)w->now / MS);
    vprintf(fmt, list);
    printf("\n");
    va_end(list);
}

void violate(world *w, const char *fmt, ...) {
    char text[256];
    va_list list;
    va_start(list, fmt);
    vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    trace(w, "VIOLATED: %s", text);
    if (!w->violated[0])
        snprintf(w->violated, sizeof w->violated, "at %.6f ms: %s", (double)w->now / MS, text);
}

int view_compare(ls_view_id a, ls_view_id b) {
    if (a.term != b.term) return a.term < b.term ? -1 : 1;
    return (a.number > b.number) - (a.number < b.number);
}

/* ---- the queue: a heap ---- */

static bool before(const event *a, const event *b) {
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static event *push(world *w, event e) {
    if (w->nevents == w->events_cap) {
        w->events_cap = w->events_cap ? 2 * w->events_cap : 256;
        w->events = ls_realloc(w->events, (size_t)w->events_cap * sizeof *w->events);
    }
    int i = w->nevents++;
    e.order = w->order++;
    for (; i > 0 && before(&e, &w->events[(i - 1) / 2]); i = (i - 1) / 2)
        w->events[i] = w->events[(i - 1) / 2];
    w->events[i] = e;
    return &w->events[i];
}

static event pop(world *w) {
    event first = w->events[0], last = w->events[--w->nevents];
    int i = 0;
    for (;;) {
        int child = 2 * i + 1;
        if (child >= w->nevents) break;
        if (child + 1 < w->nevents && before(&w->events[child + 1], &w->events[child])) child++;
        if (!before(&w->events[child], &last)) break;
        w->events[i] = w->events[child];
        i = child;
    }
    w->events[i] = last;
    return first;
}

event *post(world *w, int64_t after, void (*run)(world *, host *, const event *)) {
    return push(w, (event){.at = w->now + after, .run = run});
}

event *post_host(host *h, int64_t after, void (*run)(world *, host *, const event *)) {
    event e = {.at = h->w->now + after, .run = run};
    e.host = h;
    e.life = h->life;
    e.supervisor = true;
    return push(h->w, e);
}

/* ---- a run ---- */

/* Is the event still due? Events of a stopped supervisor wait until it continues. */
static bool is_due(world *w, const event *e) {
    host *h = e->host;
    if (!h) return true;
    if (!h->alive || h->life != e->life) return false;
    if (e->supervisor && h->stopped_until > w->now) {
        event later = *e;
        later.at = h->stopped_until;
        push(w, later);
        return false;
    }
    return true;
}

static bool is_over(world *w) {
    bool all = true;
    int over = 0;
    for (int i = 0; i < MOST_HOSTS; i++) {
        const host *h = &w->hosts[i];
        over += h->over && !h->has_left;
        all &= !h->alive || h->over;
    }
    return all && over > 0 && w->folder.saved == w->plan.steps;
}

static void step(world *w) {
    event e = pop(w);
    if (e.at > w->now) w->now = e.at;
    w->tally->events++;
    if (!is_due(w, &e)) return;
    e.run(w, e.host, &e);
}

static void reset(world *w, uint64_t seed, const options *o, tally *t) {
    event *events = w->events;
    int cap = w->events_cap;
    world_free(w);
    memset(w, 0, sizeof *w);
    w->events = events;
    w->events_cap = cap;
    w->seed = seed;
    w->opt = *o;
    w->tally = t;
    w->calm_since = -1;
    w->folder.saved = -1;
    w->lease.holder = -1;
    for (int i = 0; i < MOST_HOSTS; i++) w->holders[i] = -1;
}

void world_run(world *w, uint64_t seed, const options *o, tally *t) {
    reset(w, seed, o, t);
    faults_plan(w);
    compute_reference(w);
    const plan *p = &w->plan;
    trace(w, "seed %llu: %s, %s, %d hosts, %d virtual workers, %d blocks, %lld steps, %d faults",
          (unsigned long long)seed, p->elected ? "elected" : "embedded",
          p->sharded ? "sharded" : "replicated", p->nhosts, p->V, p->B, (long long)p->steps,
          p->nfaults);
    for (int i = 0; i < p->nhosts; i++) host_start(w, i);
    for (int n = 0; !w->done && !w->violated[0]; n++) {
        if (n == MOST_EVENTS || (w->calm_since >= 0 && w->now > w->calm_since + BOUND_NS)) {
            violate(w, "the run does not end");
            break;
        }
        faults_event(w);
        step(w);
        w->done |= is_over(w);
    }
    if (!w->violated[0]) check_final(w);
    t->seeds++;
}

void world_free(world *w) {
    for (int i = 0; i < MOST_HOSTS; i++)
        if (w->hosts[i].views) ls_views_free(w->hosts[i].views);
    for (int i = 0; i < MOST_VIEWS; i++)
        if (w->teams[i].crews) {
            ls_fake_free(w->teams[i].net);
            free(w->teams[i].workers);
        }
    link_free(w);
}
