/* oracle_state.c - see oracle_state.h. */
#include "plan/oracle_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void oracle_wrong(oracle *o, const char *format, ...) {
    if (o->r->wrong[0]) return;
    ls_buf line = {0};
    va_list list;
    if (o->at < o->u.p->nactions) ls_plan_print_action(o->u.p, o->at, &line);
    va_start(list, format);
    int n = vsnprintf(o->r->wrong, ORACLE_MESSAGE, format, list);
    va_end(list);
    if (line.len && n < ORACLE_MESSAGE)
        snprintf(o->r->wrong + n, (size_t)(ORACLE_MESSAGE - n), ": %.*s", (int)line.len - 1,
                 line.data);
    ls_buf_free(&line);
}

void oracle_touch(oracle *o, cell *c) { c->touched = o->at; }

bool oracle_inside(const atom *a, ls_range range) {
    return range.first <= a->first && a->end <= range.end;
}

bool oracle_in_shard(const oracle *o, int w, const atom *a) {
    return oracle_inside(a, rules_shard_of(&o->u, a->bucket, w));
}

static void cut_atoms(oracle *o) {
    size_t blocks = o->u.m->nfloats / LS_BLOCK;
    o->atoms = LS_NEW_ARRAY(atom, (size_t)o->u.m->nparams + blocks);
    for (int i = 0; i < o->u.m->nparams; i++) {
        const ls_param *x = &o->u.m->params[i];
        if (x->frozen) continue;
        for (size_t at = x->offset, end = x->offset + x->count; at < end;) {
            size_t next = (at / LS_BLOCK + 1) * LS_BLOCK;
            atom a = {.first = at, .end = next < end ? next : end, .param = i};
            while (a.bucket < o->u.p->share.nbuckets - 1 &&
                   o->u.p->share.buckets[a.bucket].first > at)
                a.bucket++;
            o->atoms[o->natoms++] = a;
            at = next;
        }
    }
}

static void open_worker(oracle *o, int index) {
    worker *w = &o->workers[index];
    size_t layers = (size_t)o->u.m->nlayers, buckets = (size_t)o->u.p->share.nbuckets;
    size_t atoms = (size_t)o->natoms;
    w->act = LS_NEW_ARRAY(cell, 3 * layers);
    w->saved = w->act + layers;
    w->dact = w->saved + layers;
    w->gathered = LS_NEW_ARRAY(cell, buckets);
    w->grads = LS_NEW_ARRAY(cell, buckets * (size_t)o->u.p->share.nslots);
    w->grad = LS_NEW_ARRAY(int, atoms *(size_t)o->u.p->share.nslots);
    w->sum = LS_NEW_ARRAY(int, atoms *(size_t)o->u.p->share.nsums);
    w->got = LS_NEW_ARRAY(int, buckets);
    w->decoded = LS_NEW_ARRAY(bool, buckets);
    w->summed = LS_NEW_ARRAY(bool, atoms);
    w->version = LS_NEW_ARRAY(int, atoms);
    w->moment = LS_NEW_ARRAY(int, atoms);
    w->updated = LS_NEW_ARRAY(int, buckets);
    w->calls = LS_NEW_ARRAY(int, (size_t)o->u.p->nactions);
    for (int i = 0; i < o->natoms; i++)
        if (rules_params_sharded(&o->u, o->atoms[i].bucket) &&
            !oracle_in_shard(o, index, &o->atoms[i]))
            w->version[i] = GONE;
    for (int i = 0; i < o->u.p->nactions; i++) {
        const ls_action *a = &o->u.p->actions[i];
        bool call = a->kind == LS_FORWARD || a->kind == LS_RECOMPUTE || a->kind == LS_BACKWARD;
        if (call && a->worker == index) w->calls[w->ncalls++] = i;
    }
}

static void close_worker(worker *w) {
    free(w->act);
    free(w->gathered);
    free(w->grads);
    free(w->grad);
    free(w->sum);
    free(w->summed);
    free(w->got);
    free(w->decoded);
    free(w->version);
    free(w->moment);
    free(w->updated);
    free(w->calls);
}

void oracle_open(oracle *o) {
    size_t cells = (size_t)(o->u.c->V * o->u.M), times = cells * (size_t)o->u.m->nlayers;
    terms_open(&o->terms);
    cut_atoms(o);
    o->workers = LS_NEW_ARRAY(worker, (size_t)o->u.n);
    for (int w = 0; w < o->u.n; w++) open_worker(o, w);
    o->forwards = LS_NEW_ARRAY(int, times);
    o->again = LS_NEW_ARRAY(int, times);
    o->backs = LS_NEW_ARRAY(int, times);
    o->seen = LS_NEW_ARRAY(int, times);
    o->rounds = LS_NEW_ARRAY(int, 2 * (size_t)o->u.p->share.nbuckets);
    o->losses = LS_NEW_ARRAY(int, cells);
    o->measured = LS_NEW_ARRAY(int, (size_t)(o->u.c->V * o->u.p->share.nbuckets));
    o->codes = LS_NEW_ARRAY(int, (size_t)(o->u.c->V * o->natoms));
    o->seconds = LS_NEW_ARRAY(bool, (size_t)(o->u.c->V * o->u.p->share.nbuckets));
    o->expected = LS_NEW_ARRAY(int, (size_t)o->u.m->nparams);
    o->squared = LS_NEW_ARRAY(int, o->u.m->nfloats / LS_BLOCK);
}

void oracle_close(oracle *o) {
    for (int w = 0; w < o->u.n; w++) close_worker(&o->workers[w]);
    free(o->workers);
    free(o->forwards);
    free(o->again);
    free(o->backs);
    free(o->losses);
    free(o->seen);
    free(o->measured);
    free(o->rounds);
    free(o->expected);
    free(o->codes);
    free(o->seconds);
    free(o->squared);
    free(o->atoms);
    terms_close(&o->terms);
}
