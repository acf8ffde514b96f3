/* member_state.c - see member_state.h. */
#include "train/member_state.h"

#include <stdlib.h>
#include <string.h>

#include "config/relations.h"
#include "model/frozen.h"
#include "share/mesh.h"
#include "state/errors.h"
#include "storage/adapter_file.h"
#include "storage/pretrained.h"
#include "table/step_rows.h"
#include "tensor/sum_order.h"

/* ---- a new state ---- */

/* Each worker draws what it needs: its shards if parameters are one copy or sharded, else all.
 * Afterwards it drops the masters that it does not own. */
static void draw_params(ls_member *m) {
    const ls_plan *p = &m->layout->plan;
    for (int i = 0; i < m->nexecs; i++) {
        const ls_world *w = &m->worlds[i];
        for (int k = 0; k < p->share.nbuckets; k++) {
            bool sharded = p->share.buckets[k].is_gathered || w->shares_params;
            ls_range b = sharded ? ls_share_shard(&p->share, k, ls_member_played(m, i))
                                 : ls_share_range(&p->share, k);
            size_t base = ls_share_base(&p->share, k);
            float *flat = w->flat.of[0] + base;
            if (!ls_share_has(&p->share, k, ls_member_played(m, i))) b.end = b.first;
            ls_model_init(&m->layout->model, (uint64_t)m->run->config.train.seed, b.first - base,
                          b.end - base, flat);
            ls_frozen_norms(&m->layout->model, ls_exec_compute(m->execs[i]), m->frozen.values,
                            b.first - base, b.end - base, flat);
            ls_world_round(w, &p->share, ls_exec_compute(m->execs[i]), b.first, b.end);
            if (p->share.compute != LS_F32) ls_world_drop_state(w, &p->share, k);
        }
    }
}

static void draw_state(ls_member *m) {
    draw_params(m);
    ls_step_rows_draw(m->rows);
}

/* The adapters of a new run: what it begins with may not have them. */
static void draw_adapters(const ls_member *m, int i, const ls_train_state *s) {
    const ls_plan *p = &m->layout->plan;
    bool all = !s->owned || s->all_params;
    if (!m->run->config.lora.rank) return;
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range b = all ? ls_share_range(&p->share, k) : s->owned[k];
        if (p->share.buckets[k].island) continue; /* copied from the common ones */
        ls_model_init(s->model, (uint64_t)m->run->config.train.seed, b.first, b.end, s->flat.of[0]);
        ls_frozen_norms(s->model, ls_exec_compute(m->execs[i]), m->frozen.values, b.first, b.end,
                        s->flat.of[0]);
    }
}

/* Replicas begin as the common parameters. held [nbuckets] NULL: all of them. */
static void copy_to_replicas(const ls_plan *p, const ls_world *w, const ls_range *held) {
    float *flat = w->flat.of[0];
    for (int k = 0; k < p->share.nbuckets; k++) {
        ls_range b = held ? held[k] : ls_share_range(&p->share, k);
        size_t base = ls_share_base(&p->share, k);
        if (base && b.end > b.first)
            memcpy(flat + b.first, flat + (b.first - base), (b.end - b.first) * sizeof *flat);
    }
}

/* ---- loading ---- */

/* What of each bucket a worker loads, and what of it its buffers then have. */
typedef struct loaded {
    ls_range *owned, *held; /* [nbuckets] */
    bool others;            /* another worker has the same copy, and reads it */
} loaded;

static loaded loaded_by(const ls_plan *p, const ls_world *w, int worker) {
    loaded x = {.owned = LS_NEW_ARRAY(ls_range, (size_t)p->share.nbuckets),
                .held = LS_NEW_ARRAY(ls_range, (size_t)p->share.nbuckets),
                .others = w->shares_params && w->shares_state &&
                          worker != ls_share_first_of_shards(&p->share, worker)};
    for (int k = 0; k < p->share.nbuckets; k++) {
        bool near = ls_share_holder_of(&p->share, k) == p->share.workers[worker].holder;
        bool has = w->shares_state ? near : ls_share_has(&p->share, k, worker);
        x.owned[k] =
            w->shares_state ? ls_share_range(&p->share, k) : ls_share_owned(&p->share, k, worker);
        if (x.others || !has) x.owned[k].end = x.owned[k].first;
        x.held[k] = x.owned[k];
    }
    return x;
}

/* Does the worker have parameters that are not sharded? With zero 3 those of small buckets are not,
 * nor in a mesh those that several of its cells compute with. */
static bool has_whole_bucket(const ls_share *sh, int worker) {
    for (int k = 0; k < sh->nbuckets; k++)
        if (!sh->buckets[k].is_gathered && ls_share_has(sh, k, worker)) return true;
    return false;
}

/* The state in the worker's buffers, which loading fills. A run's origin (train.from) provides only
 * the weights. */
static ls_train_state state_to_load(const ls_member *m, int i, const loaded *x) {
    const ls_plan *p = &m->layout->plan;
    const ls_world *w = &m->worlds[i];
    ls_rows_part rows = ls_step_rows_fill(m->rows);
    ls_train_state s = {.model = &m->layout->model,
                        .optim = &p->share.optim,
                        .flat = w->flat,
                        .begins = m->first_step == 0,
                        .replicas = m->first_step == 0 ? 0 : p->share.islands,
                        .tables = rows.tables,
                        .table_blocks = rows.blocks};
    if (s.begins) s.flat.n = 1;
    if (w->shares_state && !p->share.divides && !x->others) return s;
    s.owned = x->owned;
    s.nowned = p->share.nbuckets;
    s.held = x->held;
    s.all_params = !w->shares_params && has_whole_bucket(&p->share, ls_member_played(m, i));
    for (int k = 0; s.all_params && k < p->share.nbuckets; k++)
        if (ls_share_has(&p->share, k, ls_member_played(m, i)))
            x->held[k] = ls_share_range(&p->share, k);
    return s;
}

static ls_status read_state(const ls_member *m, const char *path, ls_train_state *s, ls_error *e) {
    const ls_config *c = &m->run->config;
    if (!s->begins) return ls_checkpoint_load(path, s, e);
    bool published = strcmp(path, c->model.from) == 0;
    LS_TRY(published ? ls_pretrained_load(path, s, e) : ls_checkpoint_load(path, s, e));
    return *c->model.adapter ? ls_adapter_file_load(c, s, e) : LS_OK;
}

/* If workers share one copy, the first of them reads all of it, and others only rows of tables;
 * else each reads what it retains. */
static ls_status load_state(ls_member *m, int i, const char *path, ls_error *e) {
    const ls_plan *p = &m->layout->plan;
    const ls_world *w = &m->worlds[i];
    loaded x = loaded_by(p, w, ls_member_played(m, i));
    ls_status status = LS_OK;
    if (!x.others || ls_step_rows_are_distributed(m->rows)) {
        ls_train_state s = state_to_load(m, i, &x);
        if (s.begins) draw_adapters(m, i, &s);
        status = read_state(m, path, &s, e);
        if (!s.begins && s.scaler.scale > 0) m->scaler = s.scaler;
        if (status == LS_OK && s.begins) copy_to_replicas(p, w, s.held);
        for (int k = 0; status == LS_OK && k < p->share.nbuckets; k++) {
            ls_range b = s.owned ? s.held[k] : ls_share_range(&p->share, k);
            ls_world_round(w, &p->share, ls_exec_compute(m->execs[i]), b.first, b.end);
            if (p->share.compute != LS_F32) ls_world_drop_state(w, &p->share, k);
        }
        ls_world_drop_params(w, &p->share);
    }
    free(x.owned);
    free(x.held);
    return status;
}

/* Each worker reads the errors of its own virtual workers. */
static ls_status load_errors(ls_member *m, const char *path, ls_error *e) {
    const ls_plan *p = &m->layout->plan;
    if (!p->share.has_errors) return LS_OK;
    bool *wants = LS_NEW_ARRAY(bool, (size_t)p->share.V);
    for (int i = 0; i < m->nexecs; i++)
        for (int k = 0; k < p->share.workers[ls_member_played(m, i)].nvws; k++)
            wants[ls_share_vw(&p->share, ls_member_played(m, i), k)] = true;
    const ls_checkpoint_errors x = {
        .plan = p,
        .wants = wants,
        .nerrors = p->share.V,
        .errors = ls_errors_of(m->worlds[0].errors, &p->share, m->first_step, 0)};
    ls_status s = ls_checkpoint_load_errors(path, &x, e);
    free(wants);
    return s;
}

ls_status ls_member_make_state(ls_member *m, const char *path, ls_error *e) {
    ls_scaler_config scaler = ls_run_scaler(m->run);
    ls_status s = LS_OK;
    m->scaler = ls_scaler_start(&scaler);
    if (m->first_step == 0) path = ls_config_origin(&m->run->config);
    if (m->first_step == 0 && !*path)
        draw_state(m);
    else
        for (int i = 0; s == LS_OK && i < m->nexecs; i++) s = load_state(m, i, path, e);
    if (s == LS_OK && m->first_step > 0) s = load_errors(m, path, e);
    return s;
}

/* ---- saving ---- */

ls_train_state ls_member_state(const ls_member *m, int64_t steps) {
    const ls_plan *p = &m->layout->plan;
    const ls_world *w = &m->worlds[0];
    ls_train_state s = {.model = &m->layout->model,
                        .optim = &p->share.optim,
                        .step = steps,
                        .replicas = p->share.islands,
                        .flat = w->flat,
                        .tables = ls_step_rows_tables(m->rows)};
    if (ls_run_has_scale(m->run)) s.scaler = m->scaler;
    if (!p->share.has_errors) return s;
    s.errors = ls_errors_of(w->errors, &p->share, steps, 0);
    s.nerrors = p->share.V;
    s.plan = p;
    return s;
}

ls_status ls_member_write(const ls_member *m, int64_t steps, const ls_best *best,
                          ls_checkpoint_known *known, ls_error *e) {
    const ls_run *r = m->run;
    ls_train_state s = ls_member_state(m, steps);
    ls_data_files data;
    ls_dataset_files(m->data, &data);
    ls_checkpoint_extra x = {.data = &data,
                             .config = &r->config_text,
                             .frozen = m->frozen.file.hash,
                             .sum = ls_sum_order(m->layout->plan.share.compute),
                             .known = known,
                             .keep = r->config.checkpoint.keep};
    ls_best_describe(best, &r->config, steps, &x);
    ls_status status = ls_data_files_add_published(&data, r->dir, e);
    if (status == LS_OK) status = ls_checkpoint_write(r->dir, &s, &x, e);
    ls_data_files_free(&data);
    return status;
}
