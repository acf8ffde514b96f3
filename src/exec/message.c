/* message.c - messages between two workers (exec_state.h): values and gradients of layers, parts of
 * gradients, parameters. Some values are sent only in the rows that the receiver needs. */
#include <stdlib.h>

#include "coll/virtual.h"
#include "exec/exec_state.h"
#include "exec/packed.h"
#include "exec/replicas.h"
#include "layers/routing.h"
#include "tensor/dtype.h"

/* ---- some rows ---- */

static size_t rows_of(const ls_plan *p, const ls_action *a) {
    const ls_chosen_rows *c = ls_plan_chosen(p, a);
    return c ? (size_t)a->comm.nbytes / ls_plan_chosen_nbytes(p, c) : 0;
}

void ls_exec_open_messages(ls_exec *x) {
    const ls_plan *p = x->c.plan;
    size_t most = 0;
    for (int i = 0; i < p->nactions; i++) {
        size_t n = ls_action_concerns(&p->actions[i], x->c.worker) ? rows_of(p, &p->actions[i]) : 0;
        if (n > most) most = n;
    }
    if (most == 0) return;
    x->bits = ls_alloc(ls_packed_bits(most));
    x->lengths = LS_NEW_ARRAY(size_t, (size_t)ls_plan_nbuffers(p));
}

void ls_exec_close_messages(ls_exec *x) {
    free(x->bits);
    free(x->lengths);
}

static ls_packed_rows packed_of(const ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    return (ls_packed_rows){.rows = (unsigned char *)ls_exec_buffer(x, a->buffer),
                            .n = rows_of(p, a),
                            .nbytes = ls_plan_chosen_nbytes(p, ls_plan_chosen(p, a)),
                            .bits = x->bits};
}

typedef struct choice {
    const ls_exec *x;
    const ls_chosen_rows *of;
    const char *scores; /* [rows, experts] */
} choice;

static bool is_chosen(void *arg, size_t row) {
    const choice *c = arg;
    ls_dtype type = c->x->c.plan->share.compute;
    size_t n = (size_t)c->of->experts;
    const char *at = c->scores + row * n * ls_dtype_size(type);
    float wide[LS_EXPERTS_MOST];
    if (type == LS_F32) return ls_routing_has_chosen(c->of, (const float *)(const void *)at);
    c->x->compute.k->widen(type, n, at, wide);
    return ls_routing_has_chosen(c->of, wide);
}

static ls_status start_rows(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_plan *p = x->c.plan;
    const ls_packed_rows rows = packed_of(x, a);
    int scores = ls_plan_scores(p, a);
    const ls_some some = {
        .buf = rows.rows, .most = (size_t)a->comm.nbytes, .nbytes = &x->lengths[a->buffer]};
    if (x->c.worker != a->worker)
        return ls_recv_some_start(x->c.world->group, &some, a->worker, r_p, e);
    choice c = {.x = x, .of = ls_plan_chosen(p, a)};
    if (scores >= 0) c.scores = ls_exec_buffer(x, scores);
    *some.nbytes = ls_packed_make(&rows, scores >= 0 ? is_chosen : NULL, &c);
    return ls_send_some_start(x->c.world->group, &some, a->peer, r_p, e);
}

ls_status ls_exec_finish_message(ls_exec *x, const ls_action *a, ls_error *e) {
    if (!ls_plan_chosen(x->c.plan, a) || x->c.worker == a->worker) return LS_OK;
    const ls_packed_rows rows = packed_of(x, a);
    if (ls_packed_open(&rows, x->lengths[a->buffer])) return LS_OK;
    return ls_fail(e, LS_EDISAGREE,
                   "worker %d sent %zu bytes, which are not some of %zu rows of %zu", a->worker,
                   x->lengths[a->buffer], rows.n, rows.nbytes);
}

/* ---- all messages ---- */

/* What a message takes, or brings. */
static void *message_at(const ls_exec *x, const ls_action *a) {
    const ls_plan *p = x->c.plan;
    const ls_share *sh = &p->share;
    if (sh->task == LS_TASK_MIX) return ls_replicas_message(x, a);
    ls_buffer b = ls_plan_buffer_of(p, a->buffer);
    if (b.kind == LS_BUF_PARAM)
        return ls_flat_at_mut(sh->compute, x->c.world->params, sh->buckets[a->bucket].first);
    if (b.kind != LS_BUF_INBOX) return ls_exec_buffer(x, a->buffer);
    return x->c.worker == a->worker ? ls_exec_sum_at(x, a->slot, a->part.first)
                                    : ls_exec_inbox_at(x, a->buffer, a->part.first);
}

ls_status ls_exec_start_message(ls_exec *x, const ls_action *a, ls_request **r_p, ls_error *e) {
    const ls_plan *p = x->c.plan;
    const ls_share *sh = &p->share;
    if (ls_plan_chosen(p, a)) return start_rows(x, a, r_p, e);
    ls_group *g = x->c.world->group;
    void *at = message_at(x, a);
    bool params = sh->task == LS_TASK_TRAIN && ls_plan_buffer_of(p, a->buffer).kind == LS_BUF_PARAM;
    bool inside = params && sh->workers[a->worker].holder == sh->workers[a->peer].holder;
    size_t n = inside && x->c.world->shares_params ? 0 : (size_t)a->comm.nbytes;
    return x->c.worker == a->worker ? ls_send_start(g, at, n, LS_U8, a->peer, r_p, e)
                                    : ls_recv_start(g, at, n, LS_U8, a->worker, r_p, e);
}
