/* flight.c - see flight.h. */
#include "coll/flight.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ls_flight_open(ls_flight *f, const ls_coll_program *s, ls_net *net, const ls_kernels *k,
                    const int *ranks) {
    size_t n = (size_t)s->nsteps;
    *f = (ls_flight){.program = s, .net = net, .k = k, .ranks = ranks};
    f->waits = LS_NEW_ARRAY(int, n);
    f->ready = LS_NEW_ARRAY(int, n);
    f->messages = LS_NEW_ARRAY(ls_message, n);
    f->temp = ls_alloc(s->ntemp * ls_dtype_size(s->dtype) + 1);
    f->wide = ls_alloc(s->nwide * sizeof(float) + 1);
}

void ls_flight_free(ls_flight *f) {
    free(f->waits);
    free(f->ready);
    free(f->messages);
    free(f->temp);
    free(f->wide);
    *f = (ls_flight){0};
}

static size_t size_at(const ls_flight *f, ls_coll_program_buffer b) {
    return ls_dtype_size(ls_coll_program_dtype(f->program, b));
}

static unsigned char *address(const ls_flight *f, ls_place p) {
    return f->buffers[p.buffer] + p.first * size_at(f, p.buffer);
}

static ls_status post(ls_flight *f, int i, ls_error *e) {
    const ls_step *s = &f->program->steps[i];
    bool send = s->kind == LS_STEP_SEND;
    ls_place place = send ? s->a : s->out;
    ls_message *m = &f->messages[i];
    uint64_t print = s->counted ? ls_counted_print(f->call.print, s->back) : f->call.print;
    *m = (ls_message){.peer = f->ranks ? f->ranks[s->peer] : s->peer,
                      .tag = ls_net_tag(f->call.group, f->call.number, s->message),
                      .data = s->count ? address(f, place) : NULL,
                      .nbytes = s->count * size_at(f, place.buffer),
                      .print = print,
                      .owner = f->owner};
    return send ? f->net->ops->send(f->net, m, e) : f->net->ops->recv(f->net, m, e);
}

static ls_status make_ready(ls_flight *f, int i, ls_error *e) {
    ls_step_kind kind = f->program->steps[i].kind;
    if (kind == LS_STEP_SEND || kind == LS_STEP_RECV) return post(f, i, e);
    f->ready[f->ready_first + f->nready++] = i;
    return LS_OK;
}

bool ls_flight_waits(const ls_flight *f, int i) { return f->waits[i] == 0; }

static ls_status step_done(ls_flight *f, int i, ls_error *e) {
    f->left--;
    f->waits[i] = -1;
    for (const int *to = &f->program->edges[f->program->steps[i].unblocks]; *to >= 0; to++)
        if (--f->waits[*to] == 0) LS_TRY(make_ready(f, *to, e));
    return LS_OK;
}

ls_status ls_flight_start(ls_flight *f, const ls_flight_call *c, ls_error *e) {
    const ls_coll_program *s = f->program;
    /* IN is only read, unless OUT lies in it. */
    f->buffers[LS_IN] = (unsigned char *)(uintptr_t)c->in;
    f->buffers[LS_OUT] = c->out;
    f->buffers[LS_TEMP] = f->temp;
    f->buffers[LS_WIDE] = f->wide;
    f->call = *c;
    f->miscount = (ls_miscount){0};
    f->left = s->nsteps;
    f->ready_first = f->nready = 0;
    for (int i = 0; i < s->nsteps; i++) f->waits[i] = s->steps[i].nwaits;
    for (int i = 0; i < s->nsteps; i++)
        if (s->steps[i].nwaits == 0) LS_TRY(make_ready(f, i, e));
    return LS_OK;
}

static void copy(const ls_flight *f, const ls_step *s) {
    ls_dtype from = ls_coll_program_dtype(f->program, s->a.buffer);
    ls_dtype to = ls_coll_program_dtype(f->program, s->out.buffer);
    if (from == to)
        memcpy(address(f, s->out), address(f, s->a), s->count * size_at(f, s->a.buffer));
    else if (to == LS_F32)
        f->k->widen(from, s->count, address(f, s->a), (float *)(void *)address(f, s->out));
    else
        f->k->narrow(to, s->count, (const float *)(const void *)address(f, s->a),
                     address(f, s->out));
}

ls_status ls_flight_work(ls_flight *f, bool *did_p, ls_error *e) {
    *did_p = f->nready > 0;
    if (!*did_p) return LS_OK;
    int i = f->ready[f->ready_first];
    f->ready_first++;
    f->nready--;
    const ls_step *s = &f->program->steps[i];
    ls_dtype type = ls_coll_program_dtype(f->program, s->out.buffer);
    const ls_reduction *by = f->call.by;
    if (s->kind == LS_STEP_COMBINE && by)
        by->combine(by->arg, s->count, address(f, s->a), address(f, s->b), address(f, s->out));
    else if (s->kind == LS_STEP_COMBINE)
        f->k->combine(type, f->program->op, s->count, address(f, s->a), address(f, s->b),
                      address(f, s->out));
    else if (s->kind == LS_STEP_AVERAGE)
        f->k->average(type, s->count, s->by, address(f, s->out));
    else
        copy(f, s);
    return step_done(f, i, e);
}

/* A counted message of the same call: its sender's counts are known to both. Where the counts of
 * both directions differ, both workers report the direction to the higher rank. */
static bool counts_differ(ls_flight *f, const ls_step *s, const ls_message *m) {
    size_t size = size_at(f, s->out.buffer);
    uint64_t theirs = m->their_nbytes / size;
    int me = f->program->rank;
    if (!s->counted || (m->their_print ^ m->print) >> 32) return false;
    bool got = theirs != s->count;
    bool given = (uint32_t)m->their_print != (uint32_t)s->back;
    bool mine = given && (!got || me < s->peer);
    f->miscount = (ls_miscount){.found = true,
                                .dtype = (uint8_t)f->program->dtype,
                                .from = mine ? me : s->peer,
                                .to = mine ? s->peer : me,
                                .sent = mine ? s->back : theirs,
                                .expected = mine ? (uint32_t)m->their_print : s->count};
    return true;
}

ls_status ls_flight_done(ls_flight *f, const ls_message *m, ls_error *e) {
    int i = (int)(m - f->messages);
    const ls_step *s = &f->program->steps[i];
    bool good =
        s->kind != LS_STEP_RECV || (m->their_print == m->print && m->their_nbytes == m->nbytes);
    if (!good && counts_differ(f, s, m))
        return ls_fail(e, LS_EDISAGREE,
                       "workers disagree: worker %d sends %llu elements to worker %d, which "
                       "expects %llu",
                       f->miscount.from, (unsigned long long)f->miscount.sent, f->miscount.to,
                       (unsigned long long)f->miscount.expected);
    if (!good)
        return ls_fail(
            e, LS_EDISAGREE,
            "workers disagree: worker %d makes another call, or by another algorithm (its "
            "message has %zu bytes; %zu%s are expected)",
            m->peer, m->their_nbytes, m->nbytes,
            m->their_nbytes == m->nbytes ? " of another call" : "");
    return step_done(f, i, e);
}
