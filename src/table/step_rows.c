/* step_rows.c - see step_rows.h. */
#include "table/step_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "coll/virtual.h"
#include "table/row_inside.h"

/* ---- set-up ---- */

static void open_window(ls_step_rows *r, int param) {
    const ls_model *model = r->plan->share.model;
    const ls_optim *o = &r->plan->share.optim;
    const ls_param *p = &model->params[param];
    ls_row_window *w = &r->windows[r->nwindows++];
    *w = (ls_row_window){.param = param,
                         .ids = LS_NEW_ARRAY(int32_t, (size_t)p->dims[0]),
                         .wanted = LS_NEW_ARRAY(bool, (size_t)p->dims[0]),
                         .occurs = LS_NEW_ARRAY(int32_t, (size_t)p->dims[0]),
                         .seen = LS_NEW_ARRAY(float, (size_t)p->dims[0]),
                         .first_block = ls_table_blocks_before(model, param),
                         .block_rows = ls_table_block_rows(p)};
    for (int k = 0; k < r->nflats; k++) {
        w->floats[k] = ls_optim_row_floats(o, p, k);
        if (w->floats[k]) w->at[k] = ls_optim_table_at(o, model, p, k);
    }
    if (r->sees) w->seen_at = ls_optim_table_at(o, model, p, r->nflats);
}

static ls_status take_memory(ls_step_rows *r, void *memory, ls_error *e) {
    void *fetched = NULL;
    if (!memory) {
        r->own_nbytes = ls_row_tables_nbytes(r->plan);
        LS_TRY(ls_map_shared(r->own_nbytes, "tables", &r->own, e));
    }
    r->t = ls_row_tables_in(memory ? memory : r->own, r->plan);
    if (!r->distributed) return LS_OK;
    LS_TRY(ls_map(r->plan->share.floats * sizeof(float), "rows of a step", &fetched, e));
    r->fetched = fetched;
    return LS_OK;
}

/* Which workers have the same memory, and which blocks are in that of this one. */
static ls_status find_memories(ls_step_rows *r, int32_t first, ls_error *e) {
    if (r->distributed) LS_TRY(ls_all_gather(r->group, &first, r->memory_of, 1, LS_I32, e));
    for (int64_t b = 0; b < ls_table_blocks(r->plan->share.model); b++)
        r->mine[b] = ls_row_is_near(r, (int)(b % r->nworkers));
    return LS_OK;
}

static void open_posts(ls_step_rows *r) {
    size_t n = (size_t)r->nworkers;
    ls_row_post *posts[] = {&r->out, &r->in};
    for (int i = 0; i < 2; i++) {
        posts[i]->counts = LS_NEW_ARRAY(size_t, n);
        posts[i]->places = LS_NEW_ARRAY(size_t, n);
    }
    ls_exchange_init(&r->asked, r->group);
}

ls_status ls_step_rows_open(const ls_step_rows_config *c, ls_step_rows **r_p, ls_error *e) {
    const ls_model *model = c->plan->share.model;
    ls_step_rows *r = LS_NEW(ls_step_rows);
    *r = (ls_step_rows){.plan = c->plan,
                        .flat = c->flat,
                        .group = c->group,
                        .worker = ls_group_rank(c->group),
                        .nworkers = ls_group_size(c->group),
                        .seed = c->seed,
                        .batch = c->batch,
                        .distributed = c->distributed,
                        .nflats = ls_optim_nflats(&c->plan->share.optim),
                        .sees = ls_optim_sees(&c->plan->share.optim)};
    r->windows = LS_NEW_ARRAY(ls_row_window, (size_t)model->nparams);
    for (int i = 0; i < model->nparams; i++)
        if (model->params[i].window.rows) open_window(r, i);
    r->slots = LS_NEW_ARRAY(int32_t, (size_t)model->table_rows);
    for (int64_t i = 0; i < model->table_rows; i++) r->slots[i] = LS_NO_SLOT;
    r->sample = ls_alloc(model->sample_nbytes);
    r->memory_of = LS_NEW_ARRAY(int, (size_t)r->nworkers);
    r->mine = ls_alloc((size_t)ls_table_blocks(model));
    if (r->distributed) open_posts(r);
    ls_status s = take_memory(r, c->memory, e);
    if (r->distributed) s = ls_agree(r->group, s, e);
    if (s == LS_OK) s = find_memories(r, c->first, e);
    if (s != LS_OK) {
        ls_step_rows_free(r);
        return s;
    }
    r->layers = (ls_layer_rows){.values = r->t.values, .slots = r->slots, .fetched = r->fetched};
    *r_p = r;
    return LS_OK;
}

void ls_step_rows_free(ls_step_rows *r) {
    if (!r) return;
    for (int i = 0; i < r->nwindows; i++) {
        free(r->windows[i].ids);
        free(r->windows[i].wanted);
        free(r->windows[i].occurs);
        free(r->windows[i].seen);
    }
    ls_row_post *posts[] = {&r->out, &r->in};
    for (int i = 0; i < 2; i++) {
        ls_table_room_free(&posts[i]->floats);
        free(posts[i]->counts);
        free(posts[i]->places);
    }
    ls_exchange_free(&r->asked);
    ls_table_room_free(&r->ask);
    ls_table_room_free(&r->get);
    ls_unmap(r->fetched, r->plan->share.floats * sizeof(float));
    ls_unmap(r->own, r->own_nbytes);
    free(r->memory_of);
    free(r->mine);
    free(r->windows);
    free(r->slots);
    free(r->sample);
    free(r);
}

const ls_layer_rows *ls_step_rows_of_layers(const ls_step_rows *r) { return r ? &r->layers : NULL; }

/* ---- a new state ---- */

/* What the tables had is overwritten. */
static void forget(ls_step_rows *r) {
    atomic_store(&r->t.marks->steps, -1);
    atomic_store(&r->t.marks->begun, -1);
}

/* Takes up a block with clear states. */
static void take_block(ls_step_rows *r, const ls_table_block *b) {
    const ls_optim *o = &r->plan->share.optim;
    bool had = r->t.here[b->number];
    r->t.here[b->number] = 1;
    if (!had) return;
    for (int k = 1; k < ls_optim_table_buffers(o); k++) {
        ls_optim_range x = ls_optim_table_block(o, r->plan->share.model, b, k);
        memset(r->t.values + x.first, 0, (x.end - x.first) * sizeof(float));
    }
}

void ls_step_rows_draw(ls_step_rows *r) {
    if (!r) return;
    const ls_model *model = r->plan->share.model;
    uint64_t seed = r->seed;
    ls_table_block b = LS_TABLE_BLOCKS;
    forget(r);
    while (ls_table_block_next(model, &b)) {
        if (b.number % r->nworkers != r->worker) continue;
        ls_optim_range x = ls_optim_table_block(&r->plan->share.optim, model, &b, 0);
        size_t first = (size_t)(b.first * model->params[b.param].dims[1]);
        ls_model_init_param(model, seed, b.param, first, x.end - x.first, r->t.values + x.first);
        take_block(r, &b);
    }
}

ls_rows_part ls_step_rows_fill(ls_step_rows *r) {
    if (!r || r->memory_of[r->worker] != r->worker) return (ls_rows_part){0};
    ls_table_block b = LS_TABLE_BLOCKS;
    forget(r);
    while (ls_table_block_next(r->plan->share.model, &b))
        if (r->mine[b.number]) take_block(r, &b);
    return (ls_rows_part){r->t.values, r->distributed ? r->mine : NULL};
}

/* ---- the rows of a batch ---- */

static void forget_slots(ls_step_rows *r) {
    for (int i = 0; i < r->nwindows; i++) {
        ls_row_window *w = &r->windows[i];
        int32_t *slots = r->slots + ls_row_param(r, w)->window.first_row;
        for (int64_t k = 0; k < w->n; k++) slots[w->ids[k]] = LS_NO_SLOT;
        w->n = 0;
    }
}

/* wanted: the worker reads the sample's rows. */
static void add_sample(ls_step_rows *r, const char *sample, bool wanted) {
    for (int i = 0; i < r->nwindows; i++) {
        ls_row_window *w = &r->windows[i];
        const ls_param *p = ls_row_param(r, w);
        const int32_t *ids = (const int32_t *)(const void *)(sample + p->window.ids_at);
        int32_t *slots = r->slots + p->window.first_row;
        for (int64_t k = 0; k < p->window.nids; k++) {
            if (ids[k] < 0) continue;
            if (slots[ids[k]] == LS_NO_SLOT) {
                slots[ids[k]] = (int32_t)w->n;
                w->wanted[w->n] = false;
                w->occurs[w->n] = 0;
                w->ids[w->n++] = ids[k];
            }
            int32_t slot = slots[ids[k]];
            w->occurs[slot]++;
            if (wanted) w->wanted[slot] = true;
        }
    }
}

ls_status ls_rows_each_sample(ls_step_rows *r, int64_t step, ls_row_sample *f, void *arg,
                              ls_error *e) {
    const ls_loader_config *c = &r->batch;
    int V = r->plan->share.V;
    ls_batch b = ls_loader_batch(c, (uint64_t)step);
    ls_draw d = {.seed = c->order.seed, .epoch = b.epoch};
    for (int v = 0; v < V; v++) {
        uint64_t i = 0, end = 0;
        for (ls_batch_share(b.count, V, v, v + 1, &i, &end); i < end; i++) {
            d.sample = ls_order_at(&c->order, b.epoch, b.first + i);
            LS_TRY(c->read(c->data, &d, c->sample_nbytes, r->sample, e));
            f(r, r->sample, v, arg);
        }
    }
    return LS_OK;
}

static void add_sample_of(ls_step_rows *r, const char *sample, int vw, void *arg) {
    bool all = *(const bool *)arg;
    add_sample(r, sample, all || ls_share_runs_vw(&r->plan->share, r->worker, vw));
}

/* Gives a slot to each row of the batch. all: the worker reads all of them. */
static ls_status find_rows(ls_step_rows *r, int64_t step, bool all, ls_error *e) {
    forget_slots(r);
    r->written = step + 1;
    return ls_rows_each_sample(r, step, add_sample_of, &all, e);
}

/* ---- steps ---- */

/* Copies the rows of the step that makes `steps` complete to the tables. */
static ls_status write_back(ls_step_rows *r, int64_t steps, ls_error *e) {
    atomic_store(&r->t.marks->begun, steps);
    LS_TRY(ls_rows_to_tables(r, e));
    LS_TRY(ls_barrier(r->group, e));
    if (r->sees) {
        LS_TRY(ls_rows_note_seen(r, e));
        LS_TRY(ls_barrier(r->group, e));
    }
    atomic_store(&r->t.marks->steps, steps);
    return LS_OK;
}

/* The state is new: all have made their parts, and what an earlier view had elsewhere is
 * dropped. */
static ls_status begin_tables(ls_step_rows *r, int64_t steps, ls_error *e) {
    LS_TRY(ls_row_blocks_tidy(r, e));
    if (r->memory_of[r->worker] == r->worker) {
        atomic_store(&r->t.marks->begun, steps);
        atomic_store(&r->t.marks->steps, steps);
    }
    return ls_barrier(r->group, e);
}

ls_status ls_step_rows_take_up(ls_step_rows *r, const ls_step_rows_view *v, ls_error *e) {
    bool again = false;
    if (!r) return LS_OK;
    r->group = r->asked.group = v->group;
    if (v->found)
        LS_TRY(ls_row_blocks_settle(r, v, &again, e));
    else
        LS_TRY(begin_tables(r, v->steps, e));
    if (again) {
        LS_TRY(find_rows(r, v->steps - 1, false, e));
        LS_TRY(write_back(r, v->steps, e));
    }
    LS_TRY(ls_row_blocks_tidy(r, e));
    atomic_store(&r->t.marks->view, v->number);
    return LS_OK;
}

ls_status ls_step_rows_begin(ls_step_rows *r, int64_t steps, bool all, ls_error *e) {
    if (!r) return LS_OK;
    LS_TRY(find_rows(r, steps, all, e));
    if (r->distributed) LS_TRY(ls_rows_fetch(r, true, NULL, e));
    LS_TRY(ls_rows_to_windows(r, e));
    ls_rows_drop_gradients(r);
    return LS_OK;
}

ls_status ls_step_rows_end(ls_step_rows *r, int64_t steps, ls_error *e) {
    return r ? write_back(r, steps + 1, e) : LS_OK;
}

/* ---- other samples ---- */

bool ls_step_rows_are_distributed(const ls_step_rows *r) { return r && r->distributed; }

ls_status ls_step_rows_fetch(void *rows, int64_t n, const void *samples, ls_error *e) {
    ls_step_rows *r = rows;
    size_t nbytes = r->plan->share.model->sample_nbytes;
    forget_slots(r);
    for (int64_t i = 0; i < n; i++) add_sample(r, (const char *)samples + (size_t)i * nbytes, true);
    return ls_rows_fetch(r, true, NULL, e);
}

ls_status ls_step_rows_serve(ls_step_rows *r, ls_status own, ls_error *e) {
    bool others = r && r->distributed;
    ls_error lost;
    ls_status s = LS_OK;
    if (others) forget_slots(r);
    while (others && s == LS_OK) s = ls_rows_fetch(r, false, &others, own == LS_OK ? e : &lost);
    return own == LS_OK ? s : own;
}

/* ---- saving ---- */

ls_status ls_step_rows_collect(ls_step_rows *r, ls_error *e) {
    return r && r->distributed ? ls_row_blocks_collect(r, e) : LS_OK;
}

float *ls_step_rows_tables(const ls_step_rows *r) { return r ? r->t.values : NULL; }

ls_status ls_step_rows_drop_collected(ls_step_rows *r, ls_error *e) {
    return r && r->distributed ? ls_row_blocks_tidy(r, e) : LS_OK;
}
