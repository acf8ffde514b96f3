/* audit.c - see audit.h. */
#include "train/audit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "table/step_rows.h"
#include "tensor/dtype.h"

/* Hashes of all workers: [nworkers][nparams]. */
typedef struct hashes {
    ls_hash *all, *own;
    size_t n; /* parameters */
} hashes;

static hashes hashes_new(const ls_member *m) {
    size_t n = (size_t)m->layout->model.nparams;
    ls_hash *all = LS_NEW_ARRAY(ls_hash, n * (size_t)m->nworkers);
    return (hashes){all, all + n * (size_t)m->worker, n};
}

static void hash_flat(const ls_model *model, ls_dtype type, const void *flat, ls_hash *out) {
    for (int i = 0; i < model->nparams; i++) {
        const ls_param *p = &model->params[i];
        if (p->frozen) continue;
        out[i] = ls_hash_bytes(ls_flat_at(type, flat, p->offset), p->count * ls_dtype_size(type));
    }
}

/* Frozen parameters may be wrong in the memory of one host. */
static void hash_frozen(const ls_model *model, const ls_frozen_value *values, ls_hash *out) {
    for (int i = 0; i < model->nparams; i++)
        if (model->params[i].frozen)
            out[i] = ls_hash_bytes(
                values[i].data, ls_block_nbytes(values[i].type, (int64_t)model->params[i].count));
}

static ls_status share(const ls_member *m, hashes *h, ls_error *e) {
    return ls_all_gather(m->group, h->own, h->all, h->n * sizeof *h->own, LS_U8, e);
}

/* The first parameter in which two workers differ, or -1. */
static int first_difference(const hashes *h, int a, int b) {
    const ls_hash *x = h->all + h->n * (size_t)a, *y = h->all + h->n * (size_t)b;
    for (size_t i = 0; i < h->n; i++)
        if (memcmp(&x[i], &y[i], sizeof x[i]) != 0) return (int)i;
    return -1;
}

/* Finds the worker that differs from most of the workers `asked`, and the first parameter in which
 * it differs. False: all agree. If two differ and there is no third, *odd_p is -1. */
static bool find_odd(const hashes *h, const int *asked, int n, int *odd_p, int *param_p) {
    *odd_p = *param_p = -1;
    for (int i = 0; i < n; i++) {
        int others = 0, param = -1;
        for (int k = 0; k < n; k++) {
            int differs = first_difference(h, asked[i], asked[k]);
            others += differs >= 0;
            if (differs >= 0) param = differs;
        }
        if (param >= 0) *param_p = param;
        if (2 * others > n) {
            *odd_p = asked[i];
            return true;
        }
    }
    return *param_p >= 0;
}

static void judge(const ls_member *m, const hashes *h, const int *asked, int n, ls_verdict *v) {
    int param = -1;
    v->good = !find_odd(h, asked, n, &v->culprit, &param);
    if (v->good || param < 0) return;
    snprintf(v->tensor, sizeof v->tensor, "%s", m->layout->model.params[param].name);
}

/* ---- parameters ---- */

static ls_status compare_params(ls_member *m, ls_verdict *v, ls_error *e) {
    const ls_world *w = &m->worlds[0];
    int32_t one = w->shares_params; /* one copy, or one per host: there is nothing to compare */
    LS_TRY(ls_all_reduce(m->group, &one, &one, 1, LS_I32, LS_MIN, e));
    if (one || m->nworkers == 1) return LS_OK;
    hashes h = hashes_new(m);
    int *asked = LS_NEW_ARRAY(int, (size_t)m->nworkers);
    for (int i = 0; i < m->nworkers; i++) asked[i] = i;
    hash_flat(&m->layout->model, m->layout->plan.share.compute, w->params, h.own);
    hash_frozen(&m->layout->model, w->frozen, h.own);
    ls_status s = share(m, &h, e);
    if (s == LS_OK) judge(m, &h, asked, m->nworkers, v);
    v->parameters = !v->good;
    free(asked);
    free(h.all);
    return s;
}

/* ---- a gradient ---- */

/* The virtual worker `vw`, after `steps` complete steps. */
typedef struct question {
    int vw;
    int64_t steps;
} question;

static ls_status hash_gradient(ls_member *m, question q, ls_hash *out, ls_error *e) {
    ls_solo x = {0};
    ls_plan plan;
    ls_step_in in = ls_member_inputs(m, q.steps);
    LS_TRY(ls_plan_solo(&m->layout->plan, &plan, e));
    ls_solo_config how = ls_member_solo(m, &plan);
    ls_solo_task task = {.vw = q.vw, .steps = q.steps};
    ls_status s = ls_solo_open(&x, &how, &task, e);
    if (s == LS_OK) s = ls_exec_gradient(x.exec, &in, e);
    if (s == LS_OK) hash_flat(&m->layout->model, m->layout->plan.share.reduce, x.world.grads, out);
    ls_solo_close(&x);
    ls_plan_free(&plan);
    return s;
}

/* The worker that runs the virtual worker. */
static int worker_of(const ls_plan *p, int vw) {
    for (int w = 0; w < p->share.nworkers; w++) {
        int i = ls_share_vw_index(&p->share, w, vw);
        if (i >= 0 && i < p->share.workers[w].nvws && ls_share_vw(&p->share, w, i) == vw) return w;
    }
    return 0;
}

/* The workers in `asked` compute the gradient; all workers get the hashes. */
static ls_status ask(ls_member *m, question q, const int *asked, int n, hashes *h, ls_error *e) {
    ls_status s = LS_OK;
    for (int i = 0; i < n; i++)
        if (asked[i] == m->worker) s = hash_gradient(m, q, h->own, e);
    LS_TRY(ls_member_wait(m, s, e));
    return share(m, h, e);
}

static ls_status compare_gradient(ls_member *m, int64_t steps, ls_verdict *v, ls_error *e) {
    const ls_plan *p = &m->layout->plan;
    int n = m->nworkers;
    if (n == 1) return LS_OK;
    LS_TRY(ls_step_rows_begin(m->rows, steps, true, e));
    v->vw = (int)(steps / (m->run->config.survival.audit ? m->run->config.survival.audit : 1) %
                  p->share.V);
    int first = worker_of(p, v->vw);
    question q = {v->vw, steps};
    const int asked[3] = {first, (first + 1) % n, (first + 2) % n};
    hashes h = hashes_new(m);
    ls_status s = ask(m, q, asked, 2, &h, e);
    if (s == LS_OK) judge(m, &h, asked, 2, v);
    if (s == LS_OK && !v->good && n > 2) {
        s = ask(m, q, asked + 2, 1, &h, e);
        if (s == LS_OK) judge(m, &h, asked, 3, v);
    }
    free(h.all);
    return s;
}

ls_status ls_audit(ls_member *m, int64_t steps, ls_verdict *v_p, ls_error *e) {
    ls_verdict v = {.good = true, .culprit = -1, .vw = -1};
    const ls_plan *p = &m->layout->plan;
    LS_TRY(ls_world_gather_params(&m->worlds[0], &p->share, e));
    ls_status s = compare_params(m, &v, e);
    if (s == LS_OK && v.good) s = compare_gradient(m, steps, &v, e);
    ls_world_drop_params(&m->worlds[0], &p->share);
    *v_p = v;
    return s;
}
