/* step_rows.c - see step_rows.h. */
#include "train/step_rows.h"

#include <stdlib.h>
#include <string.h>

#include "plan/memory.h"
#include "train/row_inside.h"

/* ---- set-up ---- */

static void open_window(ls_step_rows *r, int param) {
    const ls_model *model = &r->m->layout->model;
    const ls_optim *o = &r->m->layout->plan.c.optim;
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

/* Workers of one host share its store; those of other runtimes share nothing. */
static bool are_apart(const ls_member *m) {
    return m->host->store ? m->host->survival.view.nhosts > 1 : m->nworkers > 1;
}

static ls_status take_memory(ls_step_rows *r, ls_error *e) {
    const ls_plan *p = &r->m->layout->plan;
    void *fetched = NULL;
    if (r->m->host->store) {
        r->t = ls_row_tables_of(r->m->host);
    } else {
        r->own_nbytes = ls_row_tables_nbytes(p);
        LS_TRY(ls_map_shared(r->own_nbytes, "tables", &r->own, e));
        r->t = ls_row_tables_in(r->own, p);
    }
    if (!r->apart) return LS_OK;
    LS_TRY(ls_map(ls_plan_floats(p) * sizeof(float), "rows of a step", &fetched, e));
    r->fetched = fetched;
    return LS_OK;
}

/* Which workers have the same memory, and which blocks are in that of this one. */
static ls_status find_memories(ls_step_rows *r, ls_error *e) {
    const ls_member *m = r->m;
    int32_t first = r->apart ? m->host->store ? m->host->survival.view.first : m->worker : 0;
    for (int i = 0; i < m->nworkers; i++) r->memory_of[i] = 0;
    if (r->apart) LS_TRY(ls_all_gather(m->group, &first, r->memory_of, 1, LS_I32, e));
    for (int64_t b = 0; b < ls_table_blocks(&m->layout->model); b++)
        r->mine[b] = ls_row_is_near(r, (int)(b % m->nworkers));
    return LS_OK;
}

static void open_posts(ls_step_rows *r) {
    size_t n = (size_t)r->m->nworkers;
    ls_row_post *posts[] = {&r->out, &r->in};
    ls_row_list *lists[] = {&r->ask, &r->get};
    for (int i = 0; i < 2; i++) {
        posts[i]->counts = LS_NEW_ARRAY(size_t, n);
        posts[i]->places = LS_NEW_ARRAY(size_t, n);
        lists[i]->counts = LS_NEW_ARRAY(size_t, n);
        lists[i]->places = LS_NEW_ARRAY(size_t, n);
    }
    r->words = LS_NEW_ARRAY(int64_t, 4 * n);
}

ls_status ls_step_rows_open(const ls_member *m, ls_step_rows **r_p, ls_error *e) {
    const ls_model *model = &m->layout->model;
    ls_step_rows *r = LS_NEW(ls_step_rows);
    r->m = m;
    r->apart = are_apart(m);
    r->nflats = ls_optim_nflats(&m->layout->plan.c.optim);
    r->sees = ls_optim_sees(&m->layout->plan.c.optim);
    r->windows = LS_NEW_ARRAY(ls_row_window, (size_t)model->nparams);
    for (int i = 0; i < model->nparams; i++)
        if (model->params[i].rows) open_window(r, i);
    r->slots = LS_NEW_ARRAY(int32_t, (size_t)model->table_rows);
    for (int64_t i = 0; i < model->table_rows; i++) r->slots[i] = LS_NO_SLOT;
    r->batch = ls_dataset_loader(m->data, &m->run->config);
    r->sample = ls_alloc(model->sample_nbytes);
    r->memory_of = LS_NEW_ARRAY(int, (size_t)m->nworkers);
    r->mine = ls_alloc((size_t)ls_table_blocks(model));
    if (r->apart) open_posts(r);
    ls_status s = take_memory(r, e);
    if (r->apart) s = ls_agree(m->group, s, e);
    if (s == LS_OK) s = find_memories(r, e);
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
    ls_row_list *lists[] = {&r->ask, &r->get};
    for (int i = 0; i < 2; i++) {
        free(posts[i]->data);
        free(posts[i]->counts);
        free(posts[i]->places);
        free(lists[i]->rows);
        free(lists[i]->counts);
        free(lists[i]->places);
    }
    ls_unmap(r->fetched, ls_plan_floats(&r->m->layout->plan) * sizeof(float));
    ls_unmap(r->own, r->own_nbytes);
    free(r->words);
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
    const ls_optim *o = &r->m->layout->plan.c.optim;
    bool had = r->t.here[b->number];
    r->t.here[b->number] = 1;
    if (!had) return;
    for (int k = 1; k < ls_optim_table_buffers(o); k++) {
        ls_optim_range x = ls_optim_table_block(o, &r->m->layout->model, b, k);
        memset(r->t.values + x.first, 0, (x.end - x.first) * sizeof(float));
    }
}

void ls_step_rows_draw(ls_step_rows *r) {
    if (!r) return;
    const ls_model *model = &r->m->layout->model;
    uint64_t seed = (uint64_t)r->m->run->config.train.seed;
    ls_table_block b = LS_TABLE_BLOCKS;
    forget(r);
    while (ls_table_block_next(model, &b)) {
        if (b.number % r->m->nworkers != r->m->worker) continue;
        ls_optim_range x = ls_optim_table_block(&r->m->layout->plan.c.optim, model, &b, 0);
        size_t first = (size_t)(b.first * model->params[b.param].dims[1]);
        ls_model_init_param(model, seed, b.param, first, x.end - x.first, r->t.values + x.first);
        take_block(r, &b);
    }
}

void ls_step_rows_fill(ls_step_rows *r, ls_train_state *s) {
    if (!r || r->memory_of[r->m->worker] != r->m->worker) return;
    ls_table_block b = LS_TABLE_BLOCKS;
    forget(r);
    while (ls_table_block_next(&r->m->layout->model, &b))
        if (r->mine[b.number]) take_block(r, &b);
    s->tables = r->t.values;
    if (r->apart) s->table_blocks = r->mine;
}

/* ---- the rows of a batch ---- */

static void forget_slots(ls_step_rows *r) {
    for (int i = 0; i < r->nwindows; i++) {
        ls_row_window *w = &r->windows[i];
        int32_t *slots = r->slots + ls_row_param(r, w)->first_row;
        for (int64_t k = 0; k < w->n; k++) slots[w->ids[k]] = LS_NO_SLOT;
        w->n = 0;
    }
}

/* wanted: the worker reads the sample's rows. */
static void add_sample(ls_step_rows *r, const char *sample, bool wanted) {
    for (int i = 0; i < r->nwindows; i++) {
        ls_row_window *w = &r->windows[i];
        const ls_param *p = ls_row_param(r, w);
        const int32_t *ids = (const int32_t *)(const void *)(sample + p->ids_at);
        int32_t *slots = r->slots + p->first_row;
        for (int64_t k = 0; k < p->nids; k++) {
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
    int V = r->m->layout->plan.c.V;
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
    add_sample(r, sample, all || ls_plan_runs_vw(&r->m->layout->plan, r->m->worker, vw));
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
    LS_TRY(ls_barrier(r->m->group, e));
    if (r->sees) {
        LS_TRY(ls_rows_note_seen(r, e));
        LS_TRY(ls_barrier(r->m->group, e));
    }
    atomic_store(&r->t.marks->steps, steps);
    return LS_OK;
}

/* The state is new: all have made their parts, and what an earlier view had elsewhere is dropped. */
static ls_status begin_tables(ls_step_rows *r, int64_t steps, ls_error *e) {
    LS_TRY(ls_row_blocks_tidy(r, e));
    if (r->memory_of[r->m->worker] == r->m->worker) {
        atomic_store(&r->t.marks->begun, steps);
        atomic_store(&r->t.marks->steps, steps);
    }
    return ls_barrier(r->m->group, e);
}

ls_status ls_step_rows_take_up(ls_step_rows *r, int64_t steps, bool found, ls_error *e) {
    bool again = false;
    if (!r) return LS_OK;
    if (found)
        LS_TRY(ls_row_blocks_settle(r, steps, &again, e));
    else
        LS_TRY(begin_tables(r, steps, e));
    if (again) {
        LS_TRY(find_rows(r, steps - 1, false, e));
        LS_TRY(write_back(r, steps, e));
    }
    LS_TRY(ls_row_blocks_tidy(r, e));
    atomic_store(&r->t.marks->view, r->m->host->survival.view.id.number);
    return LS_OK;
}

ls_status ls_step_rows_begin(ls_step_rows *r, int64_t steps, bool all, ls_error *e) {
    if (!r) return LS_OK;
    LS_TRY(find_rows(r, steps, all, e));
    if (r->apart) LS_TRY(ls_rows_fetch(r, true, NULL, e));
    LS_TRY(ls_rows_to_windows(r, e));
    ls_rows_drop_gradients(r);
    return LS_OK;
}

ls_status ls_step_rows_end(ls_step_rows *r, int64_t steps, ls_error *e) {
    return r ? write_back(r, steps + 1, e) : LS_OK;
}

/* ---- other samples ---- */

bool ls_step_rows_are_apart(const ls_step_rows *r) { return r && r->apart; }

ls_status ls_step_rows_fetch(void *rows, int64_t n, const void *samples, ls_error *e) {
    ls_step_rows *r = rows;
    size_t nbytes = r->m->layout->model.sample_nbytes;
    forget_slots(r);
    for (int64_t i = 0; i < n; i++) add_sample(r, (const char *)samples + (size_t)i * nbytes, true);
    return ls_rows_fetch(r, true, NULL, e);
}

ls_status ls_step_rows_serve(ls_step_rows *r, ls_status own, ls_error *e) {
    bool others = r && r->apart;
    ls_error lost;
    ls_status s = LS_OK;
    if (others) forget_slots(r);
    while (others && s == LS_OK) s = ls_rows_fetch(r, false, &others, own == LS_OK ? e : &lost);
    return own == LS_OK ? s : own;
}

/* ---- saving ---- */

ls_status ls_step_rows_collect(ls_step_rows *r, ls_error *e) {
    return r && r->apart ? ls_row_blocks_collect(r, e) : LS_OK;
}

void ls_step_rows_add(const ls_step_rows *r, ls_train_state *s) {
    if (r) s->tables = r->t.values;
}

ls_status ls_step_rows_drop_collected(ls_step_rows *r, ls_error *e) {
    return r && r->apart ? ls_row_blocks_tidy(r, e) : LS_OK;
}
