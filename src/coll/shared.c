/* shared.c - see shared.h. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/round_up.h"
#include "coll/shared_inside.h"

/* ---- opening and closing ---- */

/* A group that was closed while others could still read what this worker had shown. */
typedef struct retained {
    ls_commons_retained link; /* first */
    int area, size;
    uint32_t started;
    unsigned char *small, *stage;
    struct pairs *pairs;
    struct {
        const ls_commons_worker *worker;
        const page *page;
        unsigned opened;
    } members[];
} retained;

static bool reached(unsigned value, unsigned want) { return (int)(value - want) >= 0; }

/* Has every member finished reading? A member that uses its page for another group has left this
 * one. */
static bool all_have_read(const retained *r) {
    for (int i = 0; i < r->size; i++) {
        const page *p = r->members[i].page;
        if (atomic_load_explicit(&p->opened, memory_order_acquire) == r->members[i].opened &&
            !reached(atomic_load_explicit(&p->finished, memory_order_acquire), r->started) &&
            !atomic_load(&r->members[i].worker->left))
            return false;
    }
    return true;
}

static void release_retained(ls_commons *c) {
    for (ls_commons_retained **link = &c->retained; *link;) {
        retained *r = (retained *)*link;
        if (!all_have_read(r)) {
            link = &r->link.next;
            continue;
        }
        *link = r->link.next;
        ls_commons_free(c, r->small);
        ls_commons_free(c, r->stage);
        ls_commons_free(c, r->pairs);
        free(r);
    }
}

uint64_t ls_shared_retained_areas(ls_commons *c) {
    uint64_t areas = 0;
    release_retained(c);
    for (ls_commons_retained *r = c->retained; r; r = r->next)
        areas |= (uint64_t)1 << ((retained *)r)->area;
    return areas;
}

/* Retains what this worker's calls have shown, since the others may still read it. */
static void retain(ls_shared *s) {
    size_t n = (size_t)s->size;
    retained *r = ls_alloc(sizeof *r + n * sizeof r->members[0]);
    *r = (retained){
        {s->commons->retained}, s->area, s->size - 1, s->started, s->small, s->stage, s->pairs};
    for (int i = 0, m = 0; i < s->size; i++) {
        if (i == s->rank) continue;
        r->members[m].worker = ls_commons_worker_of(s->commons, s->ranks[i]);
        r->members[m].page = s->pages[i];
        r->members[m++].opened = s->opened[i] ? s->opened[i] : atomic_load(&s->pages[i]->opened);
    }
    s->commons->retained = &r->link;
}

static void free_room(ls_shared *s) {
    if (s->small) ls_commons_free(s->commons, s->small);
    if (s->stage) ls_commons_free(s->commons, s->stage);
    if (s->pairs) ls_commons_free(s->commons, s->pairs);
    s->small = s->stage = NULL;
    s->pairs = NULL;
}

/* Waits a while for others to read what closed groups have shown, where their room is needed. */
static bool find_room(ls_shared *s) {
    enum { PATIENCE_MS = 5000 };
    ls_commons *c = s->commons;
    for (int waited_ms = 0;; waited_ms++) {
        release_retained(c);
        s->small = ls_commons_alloc(c, (size_t)LS_SHARED_SLOTS * SMALL);
        s->stage = ls_commons_alloc(c, PARTS * s->part);
        s->pairs = ls_commons_alloc(c, LS_SHARED_SLOTS * s->pairs_nbytes);
        if (s->small && s->stage && s->pairs) return true;
        free_room(s);
        if (!c->retained || waited_ms == PATIENCE_MS) return false;
        usleep(1000);
    }
}

ls_status ls_shared_open(ls_shared *s, ls_commons *c, const ls_kernels *k,
                         const ls_shared_members *m, ls_error *e) {
    int size = m->size;
    *s = (ls_shared){.commons = c, .k = k, .area = m->id, .rank = m->rank, .size = size};
    s->part = c->head->arena_nbytes / PARTS_OF_ARENA;
    if (s->part < LS_SHARED_ELEMENTS) s->part = LS_SHARED_ELEMENTS;
    if (s->part > MOST_PART) s->part = MOST_PART;
    s->pairs_nbytes = ls_round_up(sizeof(pairs) + (size_t)size * sizeof(pair), 64);
    if (!find_room(s)) {
        ls_shared_close(s);
        return ls_fail(e, LS_ENOMEM,
                       "no room in the arena (%.1f MB a worker) for another group; make it larger "
                       "(arena_nbytes, or `lockstep run --arena`)",
                       (double)c->head->arena_nbytes / 1e6);
    }
    size_t n = (size_t)size;
    s->ranks = LS_NEW_ARRAY(int, n);
    s->opened = LS_NEW_ARRAY(unsigned, n);
    s->pages = LS_NEW_ARRAY(page *, n);
    for (int i = 0; i < size; i++) {
        s->ranks[i] = m->ranks[i];
        s->pages[i] = ls_commons_calls(c, m->id, m->ranks[i]);
    }
    s->scratch = ls_shared_scratch_new(s);
    page *mine = s->pages[m->rank];
    unsigned opened = atomic_load(&mine->opened) + 1;
    memset(mine, 0, sizeof *mine); /* the area may have served another group before */
    mine->history.group = m->identity;
    s->remote = ls_shared_remote_new(s);
    atomic_store_explicit(&mine->opened, opened ? opened : 1, memory_order_release);
    mine->small = ls_commons_offset(c, s->small);
    mine->stage = ls_commons_offset(c, s->stage);
    mine->pairs = ls_commons_offset(c, s->pairs);
    return LS_OK;
}

void ls_shared_close(ls_shared *s) {
    if (s->started) {
        retain(s);
        release_retained(s->commons);
    } else {
        free_room(s);
    }
    ls_shared_scratch_free(s->scratch);
    ls_shared_remote_free(s->remote);
    free(s->ranks);
    free(s->opened);
    free(s->pages);
    *s = (ls_shared){0};
}

/* ---- showing ---- */

static void ring_all(const ls_shared *s) {
    for (int i = 0; i < s->size; i++)
        if (i != s->rank) ls_bell_ring(&ls_commons_worker_of(s->commons, s->ranks[i])->bell);
}

static void post(const ls_shared *s, atomic_uint *what, unsigned value) {
    atomic_store_explicit(what, value, memory_order_release);
    ring_all(s);
}

/* The member that is farthest behind; *least_p: the number of calls that it has finished. */
static int find_last(const ls_shared *s, uint32_t *least_p) {
    int last = s->rank;
    uint32_t least = s->finished;
    for (int i = 0; i < s->size; i++) {
        unsigned f = atomic_load_explicit(&s->pages[i]->finished, memory_order_acquire);
        if (reached(f, least)) continue;
        least = f;
        last = i;
    }
    *least_p = least;
    return last;
}

bool ls_shared_room(ls_shared *s) {
    if (!reached(s->started, s->all_finished + LS_SHARED_SLOTS)) return true;
    find_last(s, &s->all_finished);
    return !reached(s->started, s->all_finished + LS_SHARED_SLOTS);
}

int ls_shared_behind(const ls_shared *s) {
    uint32_t least;
    return find_last(s, &least);
}

/* The thread sanitizer does not understand fences: its builds read the record without them. */
#if defined(__SANITIZE_THREAD__)
#define FENCE(order) (void)0
#else
#define FENCE(order) atomic_thread_fence(order)
#endif

static void begin_note(page *p) {
    unsigned version = atomic_load_explicit(&p->version, memory_order_relaxed);
    atomic_store_explicit(&p->version, version + 1, memory_order_relaxed);
    FENCE(memory_order_release);
}

static void end_note(page *p) {
    unsigned version = atomic_load_explicit(&p->version, memory_order_relaxed);
    atomic_store_explicit(&p->version, version + 1, memory_order_release);
}

static unsigned char *my_small(const ls_shared *s, const ls_shared_call *x) {
    return s->small + (x->number % LS_SHARED_SLOTS) * SMALL;
}

static void show_input(const ls_shared *s, const ls_shared_call *x) {
    bool fits = longest_nbytes(s, &x->call) <= INLINE;
    size_t n = source_nbytes(s, x);
    if (n) memcpy(fits ? slot_of(s, x, s->rank)->data : my_small(s, x), source(x), n);
}

/* In a pairwise call no worker writes to another's output, and a short input is shown as a copy. */
static void show_buffers(const ls_shared *s, const ls_shared_call *x) {
    slot *mine = slot_of(s, x, s->rank);
    const ls_commons *c = s->commons;
    const unsigned char *from = source(x);
    size_t n = source_nbytes(s, x);
    bool pairwise = ls_collective_is_pairwise(x->call.what);
    if (pairwise && n <= SMALL) {
        if (n) memcpy(my_small(s, x), from, n);
        from = my_small(s, x);
    }
    bool in = n == 0 || ls_commons_readable(c, from, n);
    bool out = pairwise || x->nout == 0 || ls_commons_readable(c, x->out, x->nout);
    /* In place, others would read what this worker has written: all go through the stages. */
    bool in_place = x->call.what == LS_CALL_ALL_TO_ALL && x->in == x->out;
    mine->ways = in_place ? 0
                          : (in ? (uint32_t)IN_SHARED : 0u) | (out ? (uint32_t)OUT_SHARED : 0u) |
                                (ls_shared_reaches(s) ? (uint32_t)REACHES : 0u);
    mine->in = ls_commons_offset(c, from);
    mine->out = ls_commons_offset(c, x->out);
    mine->in_at = (uintptr_t)from;
    /* A value left by a call 2^31 calls ago would seem to be ahead. */
    atomic_store_explicit(&mine->done, x->number, memory_order_relaxed);
    atomic_store_explicit(&mine->filled, 0, memory_order_relaxed);
    atomic_store_explicit(&mine->summed, 0, memory_order_relaxed);
}

void ls_shared_note(ls_shared *s, const ls_record *r) {
    page *mine = s->pages[s->rank];
    begin_note(mine);
    ls_history_add(&mine->history, r);
    end_note(mine);
}

void ls_shared_note_wait(ls_shared *s, ls_waiting waiting, const ls_single *single) {
    page *mine = s->pages[s->rank];
    begin_note(mine);
    mine->history.waiting = (uint32_t)waiting;
    mine->history.single = *single;
    end_note(mine);
}

const ls_history *ls_shared_own(const ls_shared *s) { return &s->pages[s->rank]->history; }

ls_shared_call *ls_shared_start(ls_shared *s, const ls_call *c, uint64_t print,
                                const ls_operands *o, const ls_record *r) {
    ls_shared_call *x = &s->calls[s->started % LS_SHARED_SLOTS];
    assert(x->state == LS_SHARED_FREE);
    *x = (ls_shared_call){.call = *c, .number = s->started++, .print = print};
    x->in = o->in;
    x->out = o->out;
    x->nin = o->nin;
    x->nout = o->nout;
    x->state = LS_SHARED_COMING;
    x->differs = -1;
    slot *mine = slot_of(s, x, s->rank);
    mine->print = print;
    if (is_small(s, x))
        show_input(s, x);
    else
        show_buffers(s, x);
    if (ls_collective_is_pairwise(c->what)) ls_shared_pairs_show(s, x);
    ls_shared_note(s, r);
    post(s, &mine->arrived, x->number + 1);
    return x;
}

/* ---- staged ---- */

static size_t rounds(const ls_shared *s, const ls_shared_call *x) {
    return ls_collective_reduces(x->call.what) ? ls_shared_reduce_rounds(s, &x->call)
                                               : ls_shared_copy_rounds(s, x);
}

/* Fills a part of the stage for a round, and shows it. The part was last used three rounds before.
 * By now all members have read it: this worker has seen that they have filled the part for the last
 * round, which they do only after reading that of the round three before this one. */
static void fill_stage(ls_shared *s, ls_shared_call *x, size_t round) {
    size_t now = x->round;
    x->round = round;
    if (ls_collective_reduces(x->call.what))
        ls_shared_reduce_fill(s, x);
    else
        ls_shared_copy_fill(s, x);
    x->round = now;
    post(s, &slot_of(s, x, s->rank)->filled, (unsigned)round + 1);
}

static void fill_next(ls_shared *s, ls_shared_call *x) {
    if (x->round + 1 < rounds(s, x)) fill_stage(s, x, x->round + 1);
}

/* ---- the states ---- */

static bool all_come(ls_shared *s, ls_shared_call *x) {
    for (; x->come < s->size; x->come++) {
        const slot *other = slot_of(s, x, x->come);
        unsigned arrived = atomic_load_explicit(&other->arrived, memory_order_acquire);
        if (!reached(arrived, x->number + 1)) return false;
        if (!s->opened[x->come])
            s->opened[x->come] =
                atomic_load_explicit(&s->pages[x->come]->opened, memory_order_relaxed);
        if (other->print != x->print) {
            x->differs = x->come;
            return false;
        }
    }
    if (!ls_collective_is_pairwise(x->call.what) || !ls_shared_pairs_differ(s, x)) return true;
    x->differs = x->miscount.from == s->rank ? x->miscount.to : x->miscount.from;
    return false;
}

static bool all_at(ls_shared *s, ls_shared_call *x, size_t offset, unsigned want) {
    for (; x->left < s->size; x->left++) {
        atomic_uint *at = (atomic_uint *)(void *)((unsigned char *)slot_of(s, x, x->left) + offset);
        if (!reached(atomic_load_explicit(at, memory_order_acquire), want)) return false;
    }
    x->left = 0;
    return true;
}

static bool all_direct(const ls_shared *s, const ls_shared_call *x) {
    for (int i = 0; i < s->size; i++)
        if ((slot_of(s, x, i)->ways & (IN_SHARED | OUT_SHARED)) != (IN_SHARED | OUT_SHARED))
            return false;
    return true;
}

/* Reduces this worker's part, unless that was done before the call was made again. */
static void reduce_marked(ls_shared *s, ls_shared_call *x) {
    const ls_call_mark *m = &x->call.mark;
    if (m->at && atomic_load(m->at) == m->value + 1) return;
    if (m->at) atomic_store(m->at, m->value);
    ls_shared_reduce_direct(s, x);
    if (m->at) atomic_store(m->at, m->value + 1);
}

static void work(ls_shared *s, ls_shared_call *x, bool small) {
    if (!ls_collective_reduces(x->call.what))
        (void)ls_shared_copy_parts(s, x); /* from memory of the commons, which can't be lost */
    else if (small)
        ls_shared_reduce_small(s, x);
    else
        reduce_marked(s, x);
}

/* Calls may finish in any order; `finished` is the number of the first that has not. */
static bool finish(ls_shared *s, ls_shared_call *x) {
    x->state = LS_SHARED_DONE;
    while (s->finished != s->started) {
        ls_shared_call *oldest = &s->calls[s->finished % LS_SHARED_SLOTS];
        if (oldest->state != LS_SHARED_DONE) break;
        oldest->state = LS_SHARED_FREE;
        s->finished++;
    }
    atomic_store_explicit(&s->pages[s->rank]->finished, s->finished, memory_order_release);
    return true;
}

/* Each of these functions makes the progress that its state allows; false: none is possible yet. */

static bool leave(ls_shared *s, ls_shared_call *x) {
    x->state = LS_SHARED_LEAVING;
    post(s, &slot_of(s, x, s->rank)->done, x->number + 1);
    return true;
}

static bool get_stuck(ls_shared_call *x) {
    x->state = LS_SHARED_STUCK;
    return false;
}

static bool step_coming(ls_shared *s, ls_shared_call *x) {
    if (!all_come(s, x)) return false;
    if (is_small(s, x)) {
        work(s, x, true);
        return finish(s, x);
    }
    if (all_direct(s, x)) {
        work(s, x, false);
        return leave(s, x);
    }
    ls_shared_reach(s);
    if (ls_shared_goes_remote(s, x)) return ls_shared_copy_parts(s, x) ? leave(s, x) : get_stuck(x);
    if (x->number != s->finished) return false; /* (3) */
    x->base = s->staged;
    s->staged += rounds(s, x);
    x->state = LS_SHARED_STAGING;
    fill_stage(s, x, 0);
    return true;
}

static bool next_round(ls_shared *s, ls_shared_call *x) {
    if (++x->round == rounds(s, x)) return finish(s, x);
    x->state = LS_SHARED_STAGING;
    return true;
}

static bool step_staging(ls_shared *s, ls_shared_call *x) {
    unsigned round = (unsigned)x->round + 1;
    if (!all_at(s, x, offsetof(slot, filled), round)) return false;
    if (!ls_collective_reduces(x->call.what)) {
        fill_next(s, x);
        ls_shared_copy_staged(s, x);
        return next_round(s, x);
    }
    ls_shared_reduce_staged(s, x);
    x->state = LS_SHARED_SUMMING;
    post(s, &slot_of(s, x, s->rank)->summed, round);
    fill_next(s, x);
    return true;
}

static bool step_summing(ls_shared *s, ls_shared_call *x) {
    if (!all_at(s, x, offsetof(slot, summed), (unsigned)x->round + 1)) return false;
    ls_shared_reduce_collect(s, x);
    return next_round(s, x);
}

bool ls_shared_step(ls_shared *s, ls_shared_call *x) {
    bool moved = true;
    while (moved) {
        switch (x->state) {
        case LS_SHARED_COMING: moved = step_coming(s, x); break;
        case LS_SHARED_STAGING: moved = step_staging(s, x); break;
        case LS_SHARED_SUMMING: moved = step_summing(s, x); break;
        case LS_SHARED_STUCK: moved = false; break;
        case LS_SHARED_LEAVING:
            moved = all_at(s, x, offsetof(slot, done), x->number + 1) && finish(s, x);
            break;
        case LS_SHARED_DONE:
        case LS_SHARED_FREE: return true;
        }
    }
    return x->differs >= 0;
}

/* ---- late members ---- */

int ls_shared_late(const ls_shared *s, const ls_shared_call *x) {
    if (x->state == LS_SHARED_COMING) return x->come < s->size ? x->come : -1;
    return x->state == LS_SHARED_DONE || x->state == LS_SHARED_FREE ? -1 : x->left;
}

/* Reads again if the history was being written: half of one call and half of the next would look
 * like a call that no worker made. */
__attribute__((no_sanitize("thread"))) void ls_shared_history(const ls_shared *s, int member,
                                                              ls_history *h_p) {
    const page *p = s->pages[member];
    for (int tries = 0; tries < 1000; tries++) {
        unsigned version = atomic_load_explicit(&p->version, memory_order_acquire);
        *h_p = p->history;
        FENCE(memory_order_acquire);
        unsigned after = atomic_load_explicit(&p->version, memory_order_relaxed);
        if (version == after && version % 2 == 0) return;
        sched_yield();
    }
    *h_p = (ls_history){0}; /* it was stopped while it wrote */
}

void ls_shared_note_miscount(ls_shared *s, const ls_miscount *m) {
    page *mine = s->pages[s->rank];
    if (atomic_load(&mine->miscounted)) return;
    mine->miscount = *m;
    atomic_store(&mine->miscounted, true);
}

ls_miscount ls_shared_miscount(const ls_shared *s, int member) {
    const page *p = s->pages[member];
    return atomic_load(&p->miscounted) ? p->miscount : (ls_miscount){0};
}

bool ls_shared_has_come(const ls_shared *s, const ls_shared_call *x, int member) {
    return reached(atomic_load(&slot_of(s, x, member)->arrived), x->number + 1);
}
