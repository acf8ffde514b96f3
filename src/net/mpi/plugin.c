/* plugin.c - the transport "mpi": messages over MPI's point-to-point calls.
 *
 * Our messages meet by (peer, 64-bit tag) and carry a fingerprint; MPI's tags are ints, and may
 * have as few as 15 bits. So everything but the data of long messages travels as control messages:
 * a header, and behind it the data of a short one, all with MPI's tag 0. NLISTEN receives from
 * anyone are always posted for them.
 *
 *     short    sender: SHORT with its data, copied: the message is done
 *     long     sender: LONG ------> receiver, once it has asked for this message:
 *              sender <------ READY with a fresh MPI tag, at which receives into the buffer wait
 *              sender: the data in parts, from buffer to buffer, with this tag
 *              or, where the lengths differ: sender <------ DROP, and both are done
 *
 *     close    LEFT to all others, with the number of control messages sent before it
 *
 * A SHORT or LONG without a posted receive stays in the slot in which it came. Nothing depends
 * on the order in which control messages arrive: a peer is gone when its LEFT and as many others as
 * that counts have come; whatever still waits for it then has lost it (leave.c). Data never come
 * unexpected, so that nothing is truncated, and MPI keeps no copies.
 *
 * All that MPI is doing for us is in one list of requests, which ls_mpi_move() tests; no call
 * blocks but MPI_Init_thread, MPI_Comm_dup and MPI_Finalize. MPI can't sleep, so a poll that is
 * given time spins, then yields, then naps; see ls_mpi_rest().
 *
 * MPI can't cancel a send, nor a matched receive, nor a collective. If one of these of a forgotten
 * owner doesn't end within a second, MPI is never called again: the owner's memory is safe, because
 * MPI makes progress only when it is called. The same holds after any error of MPI.
 *
 * Not here: a worker that dies without closing. The launcher ends the others.
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "net/mpi/inside.h"

/* Transports of this process, and whether MPI was initialised here. */
static int nopen;
static bool ours;

/* ---- errors, time, memory ---- */

ls_status ls_mpi_check(ls_mpi *x, int rc, const char *what) {
    if (rc == MPI_SUCCESS) return LS_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(rc, text, &n);
    for (char *c = text; *c; c++)
        if (*c == '\n') *c = ' ';
    if (x->broken.code == LS_OK)
        ls_fail(&x->broken, LS_EPEER, "worker %d: %s failed: %.400s", x->net.rank, what, text);
    return LS_EPEER;
}

static ls_status state(const mpi_net *x, ls_error *e) {
    if (is_broken(x) && e) *e = x->mpi.broken;
    return x->mpi.broken.code;
}

void *ls_mpi_grow(void *p, size_t nbytes) {
    void *q = realloc(p, nbytes);
    if (!q) {
        fprintf(stderr, "lockstep: out of memory: %zu bytes for MPI messages\n", nbytes);
        exit(1);
    }
    return q;
}

slot *ls_mpi_slot(mpi_net *x) {
    slot *s = x->free_slots;
    if (!s) return memset(ls_mpi_grow(NULL, sizeof *s), 0, sizeof *s);
    x->free_slots = s->next;
    return s;
}

static void slot_free(mpi_net *x, slot *s) {
    s->next = x->free_slots;
    x->free_slots = s;
}

static transfer *transfer_new(ls_message *m, bool receives) {
    transfer *t = ls_mpi_grow(NULL, sizeof *t);
    *t = (transfer){
        .m = m, .owner = m->owner, .peer = m->peer, .nbytes = m->nbytes, .receives = receives};
    return t;
}

static void finish(mpi_net *x, ls_message *m) { ls_message_queue_add(&x->done, m); }

/* ---- MPI's requests ---- */

/* Room for one more; the caller fills in requests[nactions] and actions[nactions]. */
static void make_room(mpi_net *x) {
    if (x->nactions < x->cap) return;
    x->cap = x->cap ? 2 * x->cap : 64;
    size_t n = (size_t)x->cap;
    x->requests = ls_mpi_grow(x->requests, n * sizeof *x->requests);
    x->actions = ls_mpi_grow(x->actions, n * sizeof *x->actions);
    x->ended = ls_mpi_grow(x->ended, n * sizeof *x->ended);
    x->statuses = ls_mpi_grow(x->statuses, n * sizeof *x->statuses);
}

static void listen_at(mpi_net *x, int i) {
    int rc = MPI_Irecv(&x->actions[i].s->h, SLOT, MPI_BYTE, MPI_ANY_SOURCE, CONTROL_TAG,
                       x->mpi.comm, &x->requests[i]);
    if (ls_mpi_check(&x->mpi, rc, "MPI_Irecv") != LS_OK) x->actions[i].what = ENDED;
}

void ls_mpi_send_control(mpi_net *x, int to, slot *s, size_t ndata) {
    make_room(x);
    int n = (int)(sizeof(header) + ndata);
    int rc = MPI_Isend(&s->h, n, MPI_BYTE, to, CONTROL_TAG, x->mpi.comm, &x->requests[x->nactions]);
    if (ls_mpi_check(&x->mpi, rc, "MPI_Isend") != LS_OK) return;
    x->actions[x->nactions++] = (action){.what = CONTROL, .s = s};
    x->peers[to].sent++;
}

static void answer(mpi_net *x, int to, kind k, uint64_t id, int data_tag) {
    slot *s = ls_mpi_slot(x);
    s->h = (header){.kind = k, .id = id, .data_tag = data_tag};
    ls_mpi_send_control(x, to, s, 0);
}

static void move_part(mpi_net *x, transfer *t, int i) {
    action *a = &x->actions[i];
    unsigned char *base = a->on_scratch ? t->scratch : t->m->data;
    int rc = t->receives ? MPI_Irecv(base + a->at, a->n, MPI_BYTE, t->peer, t->data_tag,
                                     x->mpi.comm, &x->requests[i])
                         : MPI_Isend(base + a->at, a->n, MPI_BYTE, t->peer, t->data_tag,
                                     x->mpi.comm, &x->requests[i]);
    if (ls_mpi_check(&x->mpi, rc, t->receives ? "MPI_Irecv" : "MPI_Isend") != LS_OK)
        a->what = ENDED;
}

/* Parts of a pair and tag meet in the order in which they are posted: MPI's promise. */
static void move_parts(mpi_net *x, transfer *t) {
    t->next = x->moving;
    x->moving = t;
    for (uint64_t at = 0; at < t->nbytes && !is_broken(x); at += PART) {
        uint64_t n = t->nbytes - at < PART ? t->nbytes - at : PART;
        make_room(x);
        x->actions[x->nactions] = (action){.what = DATA, .t = t, .at = at, .n = (int)n};
        t->left++;
        t->touching++;
        move_part(x, t, x->nactions++);
    }
}

static void unlink_transfer(transfer **link, const transfer *t) {
    while (*link != t) link = &(*link)->next;
    *link = t->next;
}

/* ---- what arrives ---- */

/* A receive and the header of its message have met. */
static void meet(mpi_net *x, transfer *t, const slot *s) {
    ls_message *m = t->m;
    const header *h = &s->h;
    bool fits = ls_message_fits(m, h->nbytes);
    m->their_print = h->print;
    m->their_nbytes = h->nbytes;
    x->mpi.net.messages_received++;
    if (fits) x->mpi.net.bytes_received += h->nbytes;
    if (h->kind == LONG && fits) {
        t->nbytes = h->nbytes;
        t->data_tag = x->next_tag;
        x->next_tag = x->next_tag < x->last_tag ? x->next_tag + 1 : FIRST_DATA_TAG;
        move_parts(x, t);
        answer(x, t->peer, READY, h->id, t->data_tag);
        return;
    }
    if (h->kind == LONG)
        answer(x, t->peer, DROP, h->id, 0);
    else if (fits && h->nbytes)
        memcpy(m->data, s->data, h->nbytes);
    finish(x, m);
    free(t);
}

/* The receiver of a long message has answered. */
static void answered(mpi_net *x, int from, const header *h) {
    transfer **link = &x->announced;
    while (*link && ((*link)->id != h->id || (*link)->peer != from)) link = &(*link)->next;
    transfer *t = *link;
    if (!t) return; /* forgotten */
    *link = t->next;
    if (h->kind == READY) {
        t->data_tag = h->data_tag;
        move_parts(x, t);
        return;
    }
    finish(x, t->m);
    free(t);
}

/* Handles a control message; true if its slot stays in use. */
static bool take_control(mpi_net *x, slot *s, int from) {
    if (s->h.kind == LEFT) {
        ls_mpi_record_left(x, from, &s->h);
        return false;
    }
    x->peers[from].received++;
    if (s->h.kind >= READY) {
        answered(x, from, &s->h);
        return false;
    }
    for (transfer **link = &x->wanted; *link; link = &(*link)->next) {
        transfer *t = *link;
        if (t->peer != from || t->m->tag != s->h.tag) continue;
        *link = t->next;
        if (!*link) x->wanted_end = link;
        meet(x, t, s);
        return false;
    }
    s->from = from;
    s->next = NULL;
    *x->early_end = s;
    x->early_end = &s->next;
    return true;
}

static void control_arrived(mpi_net *x, int i, const MPI_Status *status) {
    slot *s = x->actions[i].s;
    int n = 0, cancelled = 0;
    MPI_Test_cancelled(status, &cancelled);
    if (cancelled) { /* by close */
        slot_free(x, s);
        x->actions[i].what = ENDED;
        return;
    }
    MPI_Get_count(status, MPI_BYTE, &n);
    size_t ndata = s->h.kind == SHORT ? s->h.nbytes : 0;
    if (n < (int)sizeof(header) || ndata > SHORT_MOST || (size_t)n != sizeof(header) + ndata) {
        ls_fail(&x->mpi.broken, LS_EPEER,
                "worker %d sent %d bytes that are not a message: does it run another version?",
                status->MPI_SOURCE, n);
        return;
    }
    if (take_control(x, s, status->MPI_SOURCE)) x->actions[i].s = ls_mpi_slot(x);
    if (!is_broken(x)) listen_at(x, i);
}

static void part_ended(mpi_net *x, int i, const MPI_Status *status) {
    action *a = &x->actions[i];
    transfer *t = a->t;
    int cancelled = 0;
    if (!a->on_scratch) t->touching--;
    if (t->receives) MPI_Test_cancelled(status, &cancelled);
    if (cancelled && !a->on_scratch) { /* forgotten; the sender must complete all the same */
        a->on_scratch = true;
        move_part(x, t, i);
        return;
    }
    a->what = ENDED;
    if (--t->left > 0) return;
    unlink_transfer(&x->moving, t);
    if (t->m) finish(x, t->m);
    free(t->scratch);
    free(t);
}

void ls_mpi_watch(ls_mpi *mpi, const ls_mpi_native *native, MPI_Request request) {
    mpi_net *x = (mpi_net *)mpi;
    ls_mpi_native *own = ls_mpi_grow(NULL, sizeof *own);
    *own = *native;
    own->number = ++x->natives;
    make_room(x);
    x->requests[x->nactions] = request;
    x->actions[x->nactions++] = (action){.what = NATIVE, .own = own};
}

static void native_ended(mpi_net *x, action *a) {
    if (a->own->m) {
        ls_mpi_native_finish(a->own);
        finish(x, a->own->m);
    } else if (a->own->target != a->own->out)
        free(a->own->target);
    free(a->own);
    a->what = ENDED;
}

static void ended(mpi_net *x, int i, const MPI_Status *status) {
    action *a = &x->actions[i];
    if (a->what == LISTEN)
        control_arrived(x, i, status);
    else if (a->what == NATIVE)
        native_ended(x, a);
    else if (a->what == DATA)
        part_ended(x, i, status);
    else {
        slot_free(x, a->s);
        a->what = ENDED;
    }
}

/* Handling an action may append others; ended actions are removed last. */
static bool move_once(mpi_net *x) {
    int n = 0;
    int rc = MPI_Testsome(x->nactions, x->requests, &n, x->ended, x->statuses);
    if (rc == MPI_ERR_IN_STATUS)
        for (int i = 0; i < n; i++)
            if (x->statuses[i].MPI_ERROR != MPI_SUCCESS &&
                x->statuses[i].MPI_ERROR != MPI_ERR_PENDING)
                rc = x->statuses[i].MPI_ERROR;
    if (ls_mpi_check(&x->mpi, rc, "a message") != LS_OK) return true;
    if (n == MPI_UNDEFINED || n <= 0) return false;
    for (int i = 0; i < n && !is_broken(x); i++) {
        MPI_Status status = x->statuses[i];
        ended(x, x->ended[i], &status);
    }
    int n_left = 0;
    for (int i = 0; i < x->nactions; i++) {
        if (x->actions[i].what == ENDED) continue;
        x->requests[n_left] = x->requests[i];
        x->actions[n_left++] = x->actions[i];
    }
    x->nactions = n_left;
    return true;
}

bool ls_mpi_move(mpi_net *x) {
    bool moved = false;
    for (int i = 0; i < 64 && !is_broken(x) && move_once(x); i++) moved = true;
    return moved;
}

/* Returns at once in the first 20 us, a message's own time; then yields, since the sender may need
 * this core; from 2 ms on naps for a fortieth of the idle time, up to 1 ms, so that a message is
 * late by 2.5% at most. */
void ls_mpi_rest(int64_t idle_ns, int64_t most_ns) {
    if (idle_ns < 20000) return;
    if (idle_ns < 2000000) {
        sched_yield();
        return;
    }
    int64_t nap = idle_ns / 40 < 1000000 ? idle_ns / 40 : 1000000;
    if (most_ns >= 0 && nap > most_ns) nap = most_ns;
    struct timespec t = {.tv_nsec = (long)nap};
    nanosleep(&t, NULL);
}

/* ---- the transport ---- */

static ls_status mpi_send(ls_net *net, ls_message *m, ls_error *e) {
    mpi_net *x = (mpi_net *)net;
    LS_TRY(state(x, e));
    bool fits = m->nbytes <= SHORT_MOST;
    slot *s = ls_mpi_slot(x);
    s->h = (header){.tag = m->tag, .print = m->print, .nbytes = m->nbytes};
    s->h.kind = fits ? SHORT : LONG;
    if (fits) {
        if (m->nbytes) memcpy(s->data, m->data, m->nbytes);
    } else {
        transfer *t = transfer_new(m, false);
        s->h.id = t->id = x->next_id++;
        t->next = x->announced;
        x->announced = t;
    }
    ls_mpi_send_control(x, m->peer, s, fits ? m->nbytes : 0);
    LS_TRY(state(x, e));
    net->messages_sent++;
    net->bytes_sent += m->nbytes;
    if (fits) finish(x, m);
    return LS_OK;
}

static ls_status mpi_recv(ls_net *net, ls_message *m, ls_error *e) {
    mpi_net *x = (mpi_net *)net;
    LS_TRY(state(x, e));
    transfer *t = transfer_new(m, true);
    for (slot **link = &x->early; *link; link = &(*link)->next) {
        slot *s = *link;
        if (s->from != m->peer || s->h.tag != m->tag) continue;
        *link = s->next;
        if (!*link) x->early_end = link;
        meet(x, t, s);
        slot_free(x, s);
        return state(x, e);
    }
    *x->wanted_end = t;
    x->wanted_end = &t->next;
    return LS_OK;
}

static void wait_for_done(mpi_net *x, int64_t timeout_ns) {
    int64_t start = ls_mpi_now_ns(), last = start;
    while (!x->done.first && !is_broken(x) && ls_mpi_find_lost(x) < 0) {
        int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (last - start);
        if (timeout_ns >= 0 && left <= 0) return;
        ls_mpi_rest(x->idle_ns, left);
        bool moved = ls_mpi_move(x);
        int64_t now = ls_mpi_now_ns();
        x->idle_ns = moved ? 0 : x->idle_ns + (now - last);
        last = now;
    }
}

static ls_status mpi_poll(ls_net *net, int64_t timeout_ns, ls_message **done_p, ls_error *e) {
    mpi_net *x = (mpi_net *)net;
    if (!is_broken(x) && ls_mpi_move(x)) x->idle_ns = 0;
    if (!x->done.first && timeout_ns != 0) wait_for_done(x, timeout_ns);
    LS_TRY(state(x, e));
    if (!x->done.first) LS_TRY(ls_mpi_check_lost(x, e));
    *done_p = ls_message_queue_take_all(&x->done);
    return LS_OK;
}

static void forget_waiting(transfer **link, const void *owner) {
    while (*link) {
        transfer *t = *link;
        if (t->owner != owner) {
            link = &t->next;
            continue;
        }
        *link = t->next;
        free(t);
    }
}

/* Parts of a forgotten receive that MPI can still cancel continue in scratch memory. */
static void cancel_parts(mpi_net *x, transfer *t) {
    t->scratch = ls_mpi_grow(NULL, t->nbytes);
    for (int i = 0; i < x->nactions; i++)
        if (x->actions[i].what == DATA && x->actions[i].t == t) MPI_Cancel(&x->requests[i]);
}

static bool touches(const mpi_net *x, const void *owner) {
    for (const transfer *t = x->moving; t; t = t->next)
        if (t->owner == owner && t->touching) return true;
    for (int i = 0; i < x->nactions; i++)
        if (x->actions[i].what == NATIVE && x->actions[i].own->owner == owner) return true;
    return false;
}

static void mpi_forget(ls_net *net, const void *owner) {
    mpi_net *x = (mpi_net *)net;
    ls_message_queue_drop(&x->done, owner);
    forget_waiting(&x->announced, owner);
    forget_waiting(&x->wanted, owner);
    x->wanted_end = &x->wanted;
    while (*x->wanted_end) x->wanted_end = &(*x->wanted_end)->next;
    for (transfer *t = x->moving; t; t = t->next) {
        if (t->owner != owner || !t->m) continue;
        t->m = NULL;
        if (t->receives && !is_broken(x)) cancel_parts(x, t);
    }
    for (int i = 0; i < x->nactions; i++)
        if (x->actions[i].what == NATIVE && x->actions[i].own->owner == owner)
            x->actions[i].own->m = NULL;
    int64_t start = ls_mpi_now_ns(), waited = 0;
    for (; touches(x, owner) && !is_broken(x) && waited < PATIENCE_NS;
         waited = ls_mpi_now_ns() - start) {
        ls_mpi_rest(waited, -1);
        ls_mpi_move(x);
    }
    if (touches(x, owner) && !is_broken(x))
        ls_fail(&x->mpi.broken, LS_EPEER,
                "worker %d: a message that was given up did not end within %.0f s", net->rank,
                (double)PATIENCE_NS / 1e9);
}

static bool sends(const mpi_net *x) {
    for (int i = 0; i < x->nactions; i++) {
        const action *a = &x->actions[i];
        if (a->what == CONTROL || a->what == NATIVE || (a->what == DATA && !a->t->receives))
            return true;
    }
    return false;
}

/* Waits for sends and collectives, a second at most; then cancels the receives. True: MPI holds
 * nothing of ours any more. */
static bool quiesce(mpi_net *x) {
    int64_t start = ls_mpi_now_ns(), waited = 0;
    for (; sends(x) && !is_broken(x) && waited < PATIENCE_NS; waited = ls_mpi_now_ns() - start) {
        ls_mpi_rest(waited, -1);
        ls_mpi_move(x);
    }
    for (int i = 0; i < x->nactions && !is_broken(x); i++) {
        const action *a = &x->actions[i];
        if (a->what == LISTEN || (a->what == DATA && a->t->receives)) MPI_Cancel(&x->requests[i]);
    }
    for (int i = 0; i < 1000 && x->nactions && !is_broken(x); i++) {
        int n = 0;
        int rc = MPI_Testsome(x->nactions, x->requests, &n, x->ended, x->statuses);
        if (ls_mpi_check(&x->mpi, rc, "closing") == LS_OK && n == MPI_UNDEFINED) return true;
    }
    return x->nactions == 0;
}

static void free_slots(slot *s) {
    while (s) {
        slot *next = s->next;
        free(s);
        s = next;
    }
}

static void free_transfers(transfer *t) {
    while (t) {
        transfer *next = t->next;
        free(t->scratch);
        free(t);
        t = next;
    }
}

/* What MPI still holds stays allocated. If MPI_Finalize follows, which waits for all workers, this
 * waits for their LEFT first; if one has died, the launcher ends this process meanwhile. One that
 * is stopped would be waited for without end: once a group is broken, this process ends without
 * MPI_Finalize, and the launcher ends the others. */
static void mpi_close(ls_net *net) {
    mpi_net *x = (mpi_net *)net;
    bool last = --nopen == 0, broken = atomic_load(&net->broken_over);
    ls_mpi_send_left(x);
    ls_mpi_await_left(x, !last || !ours ? PATIENCE_NS : broken ? BROKEN_PATIENCE_NS : -1);
    bool stuck = broken && x->nleft < net->size - 1;
    bool quiet = !stuck && !is_broken(x) && quiesce(x);
    bool usable = !stuck && !is_broken(x);
    if (quiet) {
        for (int i = 0; i < x->nactions; i++)
            if (x->actions[i].what == LISTEN || x->actions[i].what == CONTROL)
                free(x->actions[i].s);
        free_transfers(x->moving);
        MPI_Comm_free(&x->mpi.comm);
    }
    if (usable && last && ours) MPI_Finalize();
    free_slots(x->free_slots);
    free_slots(x->early);
    free_transfers(x->announced);
    free_transfers(x->wanted);
    free(x->ended);
    free(x->statuses);
    free(x->requests);
    free(x->actions);
    free(x->peers);
    free(x);
}

static const ls_net_ops mpi_ops = {.name = "mpi",
                                   .send = mpi_send,
                                   .recv = mpi_recv,
                                   .poll = mpi_poll,
                                   .forget = mpi_forget,
                                   .close = mpi_close};

/* ---- opening ---- */

/* One thread at a time calls a transport, but not always the same one: that is
 * MPI_THREAD_SERIALIZED. MPI_THREAD_FUNNELED suffices if the program calls its groups only from the
 * thread that initialised MPI, which the program must see to. */
static ls_status initialise(ls_error *e) {
    int initialised = 0, finalised = 0, level = 0;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (finalised)
        return ls_fail(e, LS_EINVAL, "%s",
                       "MPI has been finalised: the transport 'mpi' can be opened, and all its "
                       "groups closed, once in a program");
    if (initialised) {
        MPI_Query_thread(&level);
    } else {
        int rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
        if (rc != MPI_SUCCESS)
            return ls_fail(e, LS_EPEER, "MPI_Init_thread failed with code %d", rc);
        ours = true;
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    if (level < MPI_THREAD_FUNNELED)
        return ls_fail(e, LS_EINVAL, "%s",
                       "MPI was initialised for programs without threads: call "
                       "MPI_Init_thread() with MPI_THREAD_SERIALIZED, or leave it to lockstep");
    return LS_OK;
}

ls_status ls_mpi_plugin_open(int interface, ls_net **net_p, ls_error *e) {
    if (interface != LS_NET_INTERFACE)
        return ls_fail(e, LS_EINVAL,
                       "the MPI plugin is of another version of Lockstep; install both again");
    LS_TRY(initialise(e));
    mpi_net *x = memset(ls_mpi_grow(NULL, sizeof *x), 0, sizeof *x);
    x->mpi.net = (ls_net){.ops = &mpi_ops, .native = &ls_mpi_native_ops};
    int rc = MPI_Comm_dup(MPI_COMM_WORLD, &x->mpi.comm);
    if (ls_mpi_check(&x->mpi, rc, "MPI_Comm_dup") != LS_OK) {
        if (e) *e = x->mpi.broken;
        free(x);
        return LS_EPEER;
    }
    nopen++;
    int found = 0, *last = NULL;
    MPI_Comm_set_errhandler(x->mpi.comm, MPI_ERRORS_RETURN);
    MPI_Comm_rank(x->mpi.comm, &x->mpi.net.rank);
    MPI_Comm_size(x->mpi.comm, &x->mpi.net.size);
    MPI_Comm_get_attr(x->mpi.comm, MPI_TAG_UB, &last, &found);
    size_t npeers = (size_t)x->mpi.net.size;
    x->peers = memset(ls_mpi_grow(NULL, npeers * sizeof *x->peers), 0, npeers * sizeof *x->peers);
    x->lost = -1;
    x->last_tag = found ? *last : 32767; /* the least that MPI allows */
    x->next_tag = FIRST_DATA_TAG;
    x->early_end = &x->early;
    x->wanted_end = &x->wanted;
    x->done.end = &x->done.first;
    for (int i = 0; i < NLISTEN && !is_broken(x); i++) {
        make_room(x);
        x->actions[x->nactions] = (action){.what = LISTEN, .s = ls_mpi_slot(x)};
        listen_at(x, x->nactions++);
    }
    ls_status s = state(x, e);
    if (s == LS_OK)
        *net_p = &x->mpi.net;
    else
        mpi_close(&x->mpi.net);
    return s;
}
