/* shared_net.c - see shared_net.h.
 *
 * Every pair of workers has a ring each way. A note in it says "part of message (tag) lies there",
 * or "I have read your part". Notes are taken from the ring at once, so that none blocks those
 * behind it: one whose message has not been asked for is set aside. After writing, the writer sets
 * its bit in the reader's `in_rings` and rings its bell.
 *
 * A part is read where it lies, or from a copy in the sender's arena. If the arena has no room for
 * copies, and none becomes free for a while (perhaps no receiver has asked for those messages), the
 * data goes through the notes, a few bytes at a time, so that no message blocks another for ever.
 *
 * A send is done when all its parts have been read; a receive, when it has read them.
 */
#include "net/local/shared_net.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/copy.h"
#include "base/mem.h"
#include "base/slab.h"
#include "net/local/ring.h"

enum { PART = 256 * 1024, PART_MIN = 4096, PARTS = 4096 /* on the way at once */ };

/* FULL_NS: how long a message waits for room for a copy before it goes through the notes.
 * LAST_ANSWERS_NS: how long a close waits at most for room for the answers that this worker
 * owes. */
static const int64_t FULL_NS = 2 * 1000 * 1000, LAST_ANSWERS_NS = 1000 * 1000 * 1000;

/* What is allocated with messages, SEGMENT of a kind at a time. */
enum { PENDING, EARLY, ANSWER, NKINDS, SEGMENT = 64 };

/* A send or a receive that is not done. */
typedef struct pending {
    ls_message *m; /* NULL: forgotten, and freed when its parts have been read */
    size_t at;     /* bytes announced, or read */
    size_t unread; /* parts on the way */
    struct pending *next;
} pending;

/* A part on the way, until the receiver has read it. */
typedef struct sent_part {
    pending *of;
    unsigned char *copy; /* in my arena; NULL: it is read where it lies */
    uint32_t next_free;
} sent_part;

/* A note that nobody has asked for yet. */
typedef struct early {
    int from;
    ls_note note;
    struct early *next;
} early;

/* An answer for which the ring had no room. */
typedef struct answer {
    int to;
    uint32_t id;
    struct answer *next;
} answer;

typedef struct shared_net {
    ls_net net; /* first */
    ls_commons *c;
    ls_patience patience;
    pending *sends, **sends_end; /* not all announced */
    pending *recvs;
    early *early, **early_end;
    answer *answers;
    ls_message_queue done;
    sent_part *parts;   /* [PARTS] */
    uint32_t free_part; /* PARTS: none */
    int copies;         /* parts with a copy */
    int64_t full_since; /* since when no part has found room, and none was freed; or 0 */
    ls_slab memory[NKINDS];
} shared_net;

static ls_ring *ring_between(const ls_commons *c, int from, int to) {
    ls_ring *rings = (ls_ring *)(void *)(c->base + c->head->rings_at);
    return &rings[(size_t)from * (size_t)c->size + (size_t)to];
}

static void finish(shared_net *x, ls_message *m) { ls_message_queue_add(&x->done, m); }

static void announce(shared_net *x, int to) {
    ls_ring_push(ring_between(x->c, x->net.rank, to));
    ls_commons_worker *w = ls_commons_worker_of(x->c, to);
    atomic_fetch_or(&w->in_rings[x->net.rank / 64], 1ull << (x->net.rank % 64));
    ls_bell_ring(&w->bell);
}

/* ---- sending ---- */

/* A copy in my arena of the *n_p bytes at `from`, or of the first ones: *n_p then says how many.
 * NULL: no room. */
static unsigned char *copy_part(shared_net *x, const unsigned char *from, size_t *n_p) {
    size_t n = *n_p < PART ? *n_p : PART;
    unsigned char *copy = ls_commons_alloc(x->c, n);
    while (!copy && n > PART_MIN) copy = ls_commons_alloc(x->c, n /= 2);
    if (!copy) return NULL;
    ls_copy(copy, from, n);
    *n_p = n;
    return copy;
}

/* Fills in a note of at most n bytes of p that are to be read where they lie. False: no room. */
static bool place_part(shared_net *x, pending *p, size_t n, ls_note *note) {
    if (x->free_part == PARTS) return false;
    const ls_message *m = p->m;
    const unsigned char *from = (const unsigned char *)m->data + p->at;
    unsigned char *copy = NULL;
    if (!ls_commons_readable(x->c, m->data, m->nbytes)) {
        copy = copy_part(x, from, &n);
        if (!copy) return false;
        x->copies++;
    }
    sent_part *part = &x->parts[x->free_part];
    note->kind = LS_NOTE_THERE;
    note->id = x->free_part;
    note->count = n;
    note->place = ls_commons_offset(x->c, copy ? copy : from);
    x->free_part = part->next_free;
    part->of = p;
    part->copy = copy;
    p->unread++;
    return true;
}

/* Have we waited long enough for room? */
static bool stays_full(shared_net *x) {
    if (!x->copies && x->free_part != PARTS) return true; /* no room can become free */
    int64_t now = ls_clock_ns();
    if (!x->full_since) x->full_since = now;
    return now - x->full_since > FULL_NS;
}

/* Announces a part of p; false when there is no room now. */
static bool send_part(shared_net *x, pending *p) {
    const ls_message *m = p->m;
    ls_note *note = ls_ring_room(ring_between(x->c, x->net.rank, m->peer));
    if (!note) return false;
    size_t n = m->nbytes - p->at;
    bool is_short = m->nbytes <= LS_NOTE_INLINE;
    if (is_short || !place_part(x, p, n, note)) {
        if (!is_short && !stays_full(x)) return false;
        note->kind = LS_NOTE_INLINE_DATA;
        note->count = n < LS_NOTE_INLINE ? n : LS_NOTE_INLINE;
        if (n) memcpy(note->data, (const unsigned char *)m->data + p->at, note->count);
    }
    note->tag = m->tag;
    note->print = m->print;
    note->nbytes = m->nbytes;
    note->first = p->at;
    p->at += note->count;
    announce(x, m->peer);
    return true;
}

static void end_if_read(shared_net *x, pending *p) {
    if (p->unread || (p->m && p->at < p->m->nbytes)) return;
    if (p->m) finish(x, p->m);
    ls_slab_give(&x->memory[PENDING], p);
}

static void push_sends(shared_net *x) {
    pending **link = &x->sends;
    while (*link) {
        pending *p = *link;
        bool room = true;
        do room = send_part(x, p);
        while (room && p->at < p->m->nbytes);
        if (!room) {
            link = &p->next;
            continue;
        }
        *link = p->next;
        end_if_read(x, p);
    }
    x->sends_end = link;
}

/* ---- receiving ---- */

/* Writes "read" for a part; false when there is no room. */
static bool write_answer(shared_net *x, int to, uint32_t id) {
    ls_note *note = ls_ring_room(ring_between(x->c, x->net.rank, to));
    if (!note) return false;
    note->kind = LS_NOTE_READ;
    note->id = id;
    announce(x, to);
    return true;
}

static void push_answers(shared_net *x) {
    for (answer **link = &x->answers; *link;) {
        answer *a = *link;
        if (write_answer(x, a->to, a->id)) {
            *link = a->next;
            ls_slab_give(&x->memory[ANSWER], a);
        } else {
            link = &a->next;
        }
    }
    atomic_store_explicit(&x->net.owes, x->answers != NULL, memory_order_relaxed);
}

static void answer_part(shared_net *x, int to, uint32_t id) {
    if (write_answer(x, to, id)) return;
    answer *a = ls_slab_take(&x->memory[ANSWER]);
    *a = (answer){to, id, x->answers};
    x->answers = a;
    atomic_store_explicit(&x->net.owes, true, memory_order_relaxed);
}

/* Reads a part into its message, which is done with its last part. If the sender's message has
 * another length than was asked for, its parts are discarded: the caller sees that they differ. */
static void read_part(shared_net *x, pending **link, const ls_note *note) {
    pending *p = *link;
    ls_message *m = p->m;
    bool in_note = note->kind == LS_NOTE_INLINE_DATA;
    const void *from = in_note ? note->data : ls_commons_at(x->c, note->place);
    if (ls_message_fits(m, note->nbytes) && note->count)
        ls_copy((unsigned char *)m->data + note->first, from, note->count);
    if (!in_note) answer_part(x, m->peer, note->id);
    x->net.bytes_received += note->count;
    p->at += note->count;
    m->their_print = note->print;
    m->their_nbytes = note->nbytes;
    if (p->at < note->nbytes) return;
    x->net.messages_received++;
    *link = p->next;
    finish(x, m);
    ls_slab_give(&x->memory[PENDING], p);
}

static pending **wanted(shared_net *x, int from, uint64_t tag) {
    for (pending **p = &x->recvs; *p; p = &(*p)->next)
        if ((*p)->m->peer == from && (*p)->m->tag == tag) return p;
    return NULL;
}

static void part_was_read(shared_net *x, uint32_t id) {
    sent_part *part = &x->parts[id];
    if (part->copy) {
        ls_commons_free(x->c, part->copy);
        x->copies--;
    }
    x->full_since = 0;
    part->next_free = x->free_part;
    x->free_part = id;
    pending *p = part->of;
    part->of = NULL;
    p->unread--;
    end_if_read(x, p);
}

static void take_note(shared_net *x, int from, const ls_note *note) {
    if (note->kind == LS_NOTE_READ) {
        part_was_read(x, note->id);
        return;
    }
    pending **p = wanted(x, from, note->tag);
    if (p) {
        read_part(x, p, note);
        return;
    }
    early *a = ls_slab_take(&x->memory[EARLY]);
    *a = (early){.from = from, .note = *note};
    *x->early_end = a;
    x->early_end = &a->next;
}

static void take_notes(shared_net *x) {
    ls_commons_worker *me = ls_commons_worker_of(x->c, x->net.rank);
    for (int word = 0; word * 64 < x->net.size; word++) {
        if (!atomic_load_explicit(&me->in_rings[word], memory_order_acquire)) continue;
        unsigned long long bits = atomic_exchange(&me->in_rings[word], 0);
        for (; bits; bits &= bits - 1) {
            int from = word * 64 + __builtin_ctzll(bits);
            ls_ring *ring = ring_between(x->c, from, x->net.rank);
            for (const ls_note *note; (note = ls_ring_front(ring));) {
                take_note(x, from, note);
                ls_ring_pop(ring);
            }
        }
    }
}

/* ---- the transport ---- */

static ls_status shared_send(ls_net *net, ls_message *m, ls_error *e) {
    shared_net *x = (shared_net *)net;
    (void)e;
    pending *p = ls_slab_take(&x->memory[PENDING]);
    *p = (pending){.m = m};
    *x->sends_end = p;
    x->sends_end = &p->next;
    net->messages_sent++;
    net->bytes_sent += m->nbytes;
    push_sends(x);
    return LS_OK;
}

static ls_status shared_recv(ls_net *net, ls_message *m, ls_error *e) {
    shared_net *x = (shared_net *)net;
    (void)e;
    pending *p = ls_slab_take(&x->memory[PENDING]);
    *p = (pending){.m = m, .next = x->recvs};
    x->recvs = p;
    for (early **link = &x->early; *link;) {
        early *a = *link;
        if (a->from != m->peer || a->note.tag != m->tag) {
            link = &a->next;
            continue;
        }
        *link = a->next;
        pending **w = wanted(x, a->from, a->note.tag);
        if (w) read_part(x, w, &a->note);
        ls_slab_give(&x->memory[EARLY], a);
    }
    x->early_end = &x->early;
    while (*x->early_end) x->early_end = &(*x->early_end)->next;
    return LS_OK;
}

/* Does a poll have something to do? */
static bool has_work(void *arg) {
    shared_net *x = arg;
    if (x->done.first) return true;
    const ls_commons_worker *me = ls_commons_worker_of(x->c, x->net.rank);
    for (int word = 0; word * 64 < x->net.size; word++)
        if (atomic_load_explicit(&me->in_rings[word], memory_order_acquire)) return true;
    return atomic_load_explicit(&x->c->head->aborted, memory_order_relaxed) != 0;
}

static void move(shared_net *x) {
    take_notes(x);
    if (x->answers) push_answers(x);
    if (x->sends) push_sends(x);
}

static ls_status shared_poll(ls_net *net, int64_t timeout_ns, ls_message **done_p, ls_error *e) {
    shared_net *x = (shared_net *)net;
    move(x);
    if (!x->done.first && timeout_ns != 0) {
        /* What waits for room in a ring is tried again soon: taking a note rings no bell. */
        bool stuck = x->sends || x->answers;
        int64_t most = stuck && (timeout_ns < 0 || timeout_ns > 100000) ? 100000 : timeout_ns;
        ls_bell_wait(&ls_commons_worker_of(x->c, net->rank)->bell, has_work, x, &x->patience, most);
        move(x);
    }
    if (atomic_load(&x->c->head->aborted))
        return ls_fail(e, LS_EABORT, "worker %d: the group was ended", net->rank);
    *done_p = ls_message_queue_take_all(&x->done);
    return LS_OK;
}

static void forget_pending(shared_net *x, pending **link, const void *owner, bool sent) {
    while (*link) {
        pending *p = *link;
        if (p->m->owner != owner) {
            link = &p->next;
            continue;
        }
        *link = p->next;
        p->m = NULL;
        if (!sent || !p->unread) ls_slab_give(&x->memory[PENDING], p);
    }
}

static void shared_forget(ls_net *net, const void *owner) {
    shared_net *x = (shared_net *)net;
    for (uint32_t i = 0; i < PARTS; i++) { /* announced in full: only their parts point to them */
        pending *p = x->parts[i].of;
        if (p && p->m && p->m->owner == owner && p->at == p->m->nbytes) p->m = NULL;
    }
    forget_pending(x, &x->sends, owner, true);
    forget_pending(x, &x->recvs, owner, false);
    x->sends_end = &x->sends;
    while (*x->sends_end) x->sends_end = &(*x->sends_end)->next;
    ls_message_queue_drop(&x->done, owner);
}

/* Writes the answers that are owed: a peer that is still there waits for them. */
static void give_last_answers(shared_net *x) {
    int64_t end = x->answers ? ls_clock_ns() + LAST_ANSWERS_NS : 0;
    while (x->answers && !ls_commons_is_called_off(x->c)) {
        push_answers(x);
        if (!x->answers || ls_clock_ns() > end) return;
        if (atomic_load(&ls_commons_worker_of(x->c, x->answers->to)->left)) return;
        sched_yield();
    }
}

static void shared_close(ls_net *net) {
    shared_net *x = (shared_net *)net;
    give_last_answers(x);
    for (int i = 0; i < NKINDS; i++) ls_slab_close(&x->memory[i]);
    free(x->parts);
    free(x);
}

static const ls_net_ops shm_ops = {.name = "shm",
                                   .send = shared_send,
                                   .recv = shared_recv,
                                   .poll = shared_poll,
                                   .forget = shared_forget,
                                   .close = shared_close};
static const ls_net_ops thread_ops = {.name = "thread",
                                      .send = shared_send,
                                      .recv = shared_recv,
                                      .poll = shared_poll,
                                      .forget = shared_forget,
                                      .close = shared_close};

ls_net *ls_shared_net_open(ls_commons *c, const ls_patience *patience) {
    shared_net *x = LS_NEW(shared_net);
    x->net = (ls_net){.ops = c->threads ? &thread_ops : &shm_ops, .rank = c->rank, .size = c->size};
    x->c = c;
    x->patience = *patience;
    x->sends_end = &x->sends;
    x->early_end = &x->early;
    ls_slab_open(&x->memory[PENDING], sizeof(pending), SEGMENT);
    ls_slab_open(&x->memory[EARLY], sizeof(early), SEGMENT);
    ls_slab_open(&x->memory[ANSWER], sizeof(answer), SEGMENT);
    x->done.end = &x->done.first;
    x->parts = LS_NEW_ARRAY(sent_part, PARTS);
    for (uint32_t i = 0; i < PARTS; i++) x->parts[i].next_free = i + 1;
    return &x->net;
}
