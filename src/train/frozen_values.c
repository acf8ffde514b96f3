/* frozen_values.c - see frozen_values.h. */
#include "train/frozen_values.h"

#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/guard.h"
#include "coll/virtual.h"
#include "model/frozen.h"
#include "train/member.h"

/* ---- the file ---- */

/* What the workers of earlier views had; each host notes it. */
static ls_status check_earlier(const ls_member *m, const ls_frozen_file *f, ls_error *e) {
    ls_hash was = ls_frozen_note_get(&m->host->notes->frozen);
    if ((was.hi | was.lo) && !ls_hash_same(was, f->hash))
        return ls_fail(
            e, LS_EINVAL,
            "%s: is not the file that this run began with; put that back and continue with "
            "--resume",
            f->path);
    ls_frozen_note_set(&m->host->notes->frozen, f->hash);
    return LS_OK;
}

/* Collective: has every worker the file of worker 0? */
static ls_status check_others(const ls_member *m, const ls_frozen_file *f, ls_error *e) {
    ls_hash first = f->hash;
    LS_TRY(ls_broadcast(m->group, &first, sizeof first, LS_U8, 0, e));
    if (ls_hash_same(first, f->hash)) return LS_OK;
    return ls_fail(e, LS_EINVAL,
                   "%s: differs between worker 0 and worker %d; is the run directory the same on "
                   "all hosts?",
                   f->path, m->worker);
}

static ls_status open_file(ls_member *m, ls_frozen_values *v, ls_error *e) {
    ls_status s = LS_OK;
    if (!v->file.path) s = ls_frozen_file_open(m->run->dir, &m->layout->model, &v->file, e);
    LS_TRY(ls_member_wait(m, s, e));
    s = check_others(m, &v->file, e);
    if (s == LS_OK) s = check_earlier(m, &v->file, e);
    return ls_agree(m->group, s, e);
}

/* ---- memory ---- */

/* Memory for all of them; *fills_p: this worker fills it. Collective. */
static ls_status take_memory(ls_member *m, ls_frozen_values *v, size_t nbytes, void **p_p,
                             bool *fills_p, ls_error *e) {
    const ls_host *h = m->host;
    *p_p = NULL;
    if (h->runtime->survives) {
        *p_p = ls_store_frozen(h->store);
        *fills_p = m->worker == h->survival.view.first && !atomic_load(&h->notes->has_frozen);
    } else {
        LS_TRY(ls_group_alloc_one(m->group, nbytes, p_p, e));
        *fills_p = !*p_p || m->worker == 0;
    }
    if (*p_p && *fills_p && ls_member_spans_nodes(m)) ls_cores_interleave(*p_p, nbytes);
    if (*p_p) return LS_OK;
    LS_TRY(ls_map(nbytes, "frozen parameters", &v->own, e));
    v->own_nbytes = nbytes;
    *p_p = v->own;
    return LS_OK;
}

/* Rounds the weights of another run's checkpoint, which are read in f32 as a whole. */
static ls_status round_loaded(const ls_member *m, const ls_frozen_rounding *r, ls_error *e) {
    size_t nbytes = r->model->frozen_floats * sizeof(float);
    void *loaded = NULL;
    LS_TRY(ls_map(nbytes, "frozen parameters", &loaded, e));
    ls_status s = ls_frozen_draw(r->model, &m->run->config, loaded, e);
    ls_frozen_value *values = LS_NEW_ARRAY(ls_frozen_value, (size_t)r->model->nparams);
    ls_frozen_place(r->model, LS_F32, loaded, values);
    if (s == LS_OK) ls_frozen_round(r, values);
    free(values);
    ls_unmap(loaded, nbytes);
    return s;
}

/* Rounds what the published model has in another type or order, a parameter at a time. */
static ls_status round_stored(const ls_frozen_rounding *r, ls_pretrained *stored, ls_error *e) {
    for (int i = 0; i < r->model->nparams; i++) {
        if (!r->model->params[i].frozen || stored->values[i].data) continue;
        LS_TRY(ls_pretrained_open_param(stored, r->model, i, e));
        ls_frozen_round_param(r, i, stored->values[i]);
        ls_pretrained_close_param(stored, i);
    }
    return ls_guard_check(e);
}

/* What is not used where it is stored. */
static ls_status fill(const ls_member *m, ls_frozen_values *v, void *to, ls_error *e) {
    const ls_model *model = &m->layout->model;
    const ls_config *c = &m->run->config;
    const ls_frozen_rounding r = {.model = model,
                                  .compute = ls_exec_compute(m->execs[0]),
                                  .type = m->layout->plan.share.compute,
                                  .buffer = to,
                                  .seed = (uint64_t)c->train.seed};
    if (r.type == LS_F32) return ls_frozen_draw(model, c, to, e);
    if (v->file.path) {
        ls_frozen_round(&r, v->file.values);
        return ls_guard_check(e);
    }
    if (v->stored.values) return round_stored(&r, &v->stored, e);
    if (*c->train.from) return round_loaded(m, &r, e);
    for (int i = 0; i < model->nparams; i++)
        if (model->params[i].frozen) ls_frozen_round_param(&r, i, (ls_frozen_value){0});
    return LS_OK;
}

/* In the compute type. */
static ls_status open_in_memory(ls_member *m, ls_frozen_values *v, ls_error *e) {
    const ls_model *model = &m->layout->model;
    ls_dtype type = m->layout->plan.share.compute;
    size_t nbytes = m->layout->plan.share.nbytes.frozen;
    void *p = NULL;
    bool fills = false;
    ls_status s = v->in_memory ? LS_OK : take_memory(m, v, nbytes, &p, &fills, e);
    if (s == LS_OK && fills) s = fill(m, v, p, e);
    LS_TRY(ls_member_wait(m, s, e)); /* until it is filled */
    if (m->host->runtime->survives) atomic_store(&m->host->notes->has_frozen, 1);
    if (v->in_memory) return LS_OK;
    const ls_frozen_value *stored = v->file.path ? v->file.values : v->stored.values;
    v->in_memory = LS_NEW_ARRAY(ls_frozen_value, (size_t)model->nparams);
    if (stored)
        ls_frozen_place_rounded(model, type, p, stored, v->in_memory);
    else
        ls_frozen_place(model, type, p, v->in_memory);
    v->values = v->in_memory;
    return LS_OK;
}

/* ---- the files of a published model ---- */

static ls_hash hash_of(const ls_model *m, const ls_frozen_value *values) {
    ls_hasher *h = ls_hasher_new();
    for (int i = 0; i < m->nparams; i++)
        if (m->params[i].frozen)
            ls_hasher_add(h, values[i].data,
                          ls_block_nbytes(values[i].type, (int64_t)m->params[i].count));
    return ls_hasher_finish(h);
}

/* Runs without a directory have one view. */
static ls_status open_stored(ls_member *m, ls_frozen_values *v, ls_error *e) {
    const ls_model *model = &m->layout->model;
    const char *from = m->run->config.model.from;
    ls_dtype type = m->layout->plan.share.compute;
    ls_status s = ls_pretrained_open_for(from, model, type, &v->stored, e);
    LS_TRY(ls_member_wait(m, s, e));
    v->values = v->stored.values;
    if (type != LS_F32) LS_TRY(open_in_memory(m, v, e));
    ls_hash own = hash_of(model, v->values), first = own;
    LS_TRY(ls_broadcast(m->group, &first, sizeof first, LS_U8, 0, e));
    if (!ls_hash_same(first, own))
        s = ls_fail(e, LS_EINVAL, "%s: differs between worker 0 and worker %d", from, m->worker);
    return ls_agree(m->group, s == LS_OK ? ls_guard_check(e) : s, e);
}

/* Some workers may have them open since an earlier view. */
ls_status ls_frozen_values_open(ls_member *m, ls_frozen_values *v, ls_error *e) {
    if (m->layout->model.frozen_count == 0) return LS_OK;
    if (m->run->dir) LS_TRY(open_file(m, v, e));
    if (!m->run->dir && ls_layout_begins_published(&m->run->config)) return open_stored(m, v, e);
    if (!m->run->dir || m->layout->plan.share.compute != LS_F32) return open_in_memory(m, v, e);
    v->values = v->file.values;
    return LS_OK;
}

void ls_frozen_values_close(ls_frozen_values *v) {
    ls_frozen_file_close(&v->file);
    ls_pretrained_close(&v->stored);
    free(v->in_memory);
    ls_unmap(v->own, v->own_nbytes);
    *v = (ls_frozen_values){0};
}
