/* step_rows.c - see step_rows.h. */
#include "train/step_rows.h"

#include <stdlib.h>
#include <string.h>

#include "plan/memory.h"
#include "train/member.h"

enum { PAGE = 4096, NO_SLOT = -1 };

/* The rows of a window, in the order of their slots. */
typedef struct window {
    int param;
    int32_t *ids; /* [rows of the window] */
    int64_t n;
} window;

struct ls_step_rows {
    const ls_member *m;
    window *windows; /* [nwindows] */
    int nwindows;
    int32_t *slots; /* [table_rows] */
    ls_loader_config batch;
    char *sample;
    ls_layer_rows layers;
};

/* ---- memory ---- */

static size_t notes_nbytes(void) { return (sizeof(ls_run_notes) + PAGE - 1) / PAGE * PAGE; }

size_t ls_step_rows_nbytes(const ls_plan *p) {
    size_t nbytes = ls_plan_tables_nbytes(p);
    return nbytes ? notes_nbytes() - sizeof(ls_run_notes) + PAGE + nbytes : 0;
}

atomic_llong *ls_step_rows_steps(const ls_host *h) {
    char *carried = ls_store_carried(h->store);
    return (atomic_llong *)(void *)(carried + notes_nbytes());
}

float *ls_step_rows_tables(const ls_host *h) {
    char *carried = ls_store_carried(h->store);
    return (float *)(void *)(carried + notes_nbytes() + PAGE);
}

/* ---- set-up ---- */

static const ls_param *param_of(const ls_step_rows *r, const window *w) {
    return &r->m->layout->model.params[w->param];
}

ls_step_rows *ls_step_rows_new(const ls_member *m) {
    const ls_model *model = &m->layout->model;
    if (!model->table_floats) return NULL;
    ls_step_rows *r = LS_NEW(ls_step_rows);
    r->m = m;
    r->windows = LS_NEW_ARRAY(window, (size_t)model->nparams);
    for (int i = 0; i < model->nparams; i++) {
        if (!model->params[i].rows) continue;
        window *w = &r->windows[r->nwindows++];
        w->param = i;
        w->ids = LS_NEW_ARRAY(int32_t, (size_t)model->params[i].dims[0]);
    }
    r->slots = LS_NEW_ARRAY(int32_t, (size_t)model->table_rows);
    for (int64_t i = 0; i < model->table_rows; i++) r->slots[i] = NO_SLOT;
    r->batch = ls_dataset_loader(m->data, &m->run->config);
    r->sample = ls_alloc(model->sample_nbytes);
    r->layers = (ls_layer_rows){.values = ls_step_rows_tables(m->host), .slots = r->slots};
    return r;
}

void ls_step_rows_free(ls_step_rows *r) {
    if (!r) return;
    for (int i = 0; i < r->nwindows; i++) free(r->windows[i].ids);
    free(r->windows);
    free(r->slots);
    free(r->sample);
    free(r);
}

const ls_layer_rows *ls_step_rows_of_layers(const ls_step_rows *r) { return r ? &r->layers : NULL; }

void ls_step_rows_draw(ls_step_rows *r) {
    if (!r) return;
    const ls_member *m = r->m;
    const ls_model *model = &m->layout->model;
    uint64_t seed = (uint64_t)m->run->config.train.seed;
    for (int i = 0; i < r->nwindows; i++) {
        ls_param all = ls_param_whole(param_of(r, &r->windows[i]));
        size_t n = (size_t)m->nworkers, w = (size_t)m->worker;
        size_t first = all.count / n * w, end = w + 1 == n ? all.count : all.count / n * (w + 1);
        float *to = ls_step_rows_tables(m->host) + all.offset + first;
        ls_model_init_param(model, seed, r->windows[i].param, first, end - first, to);
    }
}

/* ---- the rows of a batch ---- */

static void forget_slots(ls_step_rows *r) {
    for (int i = 0; i < r->nwindows; i++) {
        window *w = &r->windows[i];
        int32_t *slots = r->slots + param_of(r, w)->first_row;
        for (int64_t k = 0; k < w->n; k++) slots[w->ids[k]] = NO_SLOT;
        w->n = 0;
    }
}

static void add_sample(ls_step_rows *r) {
    for (int i = 0; i < r->nwindows; i++) {
        window *w = &r->windows[i];
        const ls_param *p = param_of(r, w);
        const int32_t *ids = (const int32_t *)(const void *)(r->sample + p->ids_at);
        int32_t *slots = r->slots + p->first_row;
        for (int64_t k = 0; k < p->nids; k++) {
            if (ids[k] < 0 || slots[ids[k]] != NO_SLOT) continue;
            slots[ids[k]] = (int32_t)w->n;
            w->ids[w->n++] = ids[k];
        }
    }
}

/* Gives a slot to each row of the batch. */
static ls_status find_rows(ls_step_rows *r, int64_t step, ls_error *e) {
    const ls_loader_config *c = &r->batch;
    ls_batch b = ls_loader_batch(c, (uint64_t)step);
    ls_draw d = {.seed = c->order.seed, .epoch = b.epoch};
    forget_slots(r);
    for (uint64_t i = 0; i < b.count; i++) {
        d.sample = ls_order_at(&c->order, b.epoch, b.first + i);
        LS_TRY(c->read(c->data, &d, c->sample_nbytes, r->sample, e));
        add_sample(r);
    }
    return LS_OK;
}

/* ---- between windows and tables ---- */

typedef enum direction { TO_WINDOW, TO_TABLE } direction;

/* Copies elements of a window, in buffer k, in which a row has C floats. Slots without a row are
 * cleared. */
static void move(const ls_step_rows *r, const window *w, int k, size_t C, ls_bucket part,
                 direction to) {
    const ls_member *m = r->m;
    const ls_param *p = param_of(r, w);
    float *flat = m->worlds[0].flat.of[k] + p->offset;
    float *table = ls_step_rows_tables(m->host) +
                   ls_optim_table_at(&m->layout->plan.c.optim, &m->layout->model, p, k);
    for (size_t at = part.first; at < part.end;) {
        size_t slot = at / C, next = (slot + 1) * C < part.end ? (slot + 1) * C : part.end;
        size_t nbytes = (next - at) * sizeof *flat;
        if (slot < (size_t)w->n) {
            float *row = table + (size_t)w->ids[slot] * C + at % C;
            memcpy(to == TO_WINDOW ? flat + at : row, to == TO_WINDOW ? row : flat + at, nbytes);
        } else if (to == TO_WINDOW) {
            memset(flat + at, 0, nbytes);
        }
        at = next;
    }
}

/* The same in all buffers, for elements of the weights. A state with another number of floats a row
 * goes with the rows that begin in the part. */
static void move_part(const ls_step_rows *r, const window *w, ls_bucket part, direction to) {
    const ls_optim *o = &r->m->layout->plan.c.optim;
    const ls_param *p = param_of(r, w);
    size_t C = (size_t)p->dims[1];
    move(r, w, 0, C, part, to);
    for (int i = 0; i < ls_optim_nstates(o); i++) {
        if (!ls_optim_state_name(o, p, i)) continue;
        size_t each = (size_t)ls_optim_state_param(o, p, i).dims[1];
        ls_bucket own = part;
        if (each != C) {
            own.first = (part.first + C - 1) / C * each;
            own.end = (part.end + C - 1) / C * each;
        }
        move(r, w, 1 + i, each, own, to);
    }
}

/* The part of a bucket that this worker copies: what it owns, or where all have all of it, and the
 * tables are written, an equal part. */
static ls_bucket part_of(const ls_step_rows *r, int bucket, direction to) {
    const ls_member *m = r->m;
    const ls_plan *p = &m->layout->plan;
    ls_bucket b = ls_plan_owned(p, bucket, m->worker);
    if (ls_plan_shards_moments(p) || to == TO_WINDOW) return b;
    size_t n = b.end - b.first, w = (size_t)m->worker, all = (size_t)m->nworkers;
    return (ls_bucket){.first = b.first + n * w / all, .end = b.first + n * (w + 1) / all};
}

static void move_all(const ls_step_rows *r, direction to) {
    const ls_plan *plan = &r->m->layout->plan;
    for (int k = 0; k < plan->nbuckets; k++) {
        ls_bucket b = part_of(r, k, to);
        for (int i = 0; i < r->nwindows; i++) {
            const ls_param *p = param_of(r, &r->windows[i]);
            size_t first = b.first > p->offset ? b.first : p->offset;
            size_t end = b.end < p->offset + p->count ? b.end : p->offset + p->count;
            const ls_bucket part = {.first = first - p->offset, .end = end - p->offset};
            if (first < end) move_part(r, &r->windows[i], part, to);
        }
    }
}

/* ---- steps ---- */

/* Copies the rows of the step that makes `steps` complete to the tables. */
static ls_status write_back(ls_step_rows *r, int64_t steps, ls_error *e) {
    move_all(r, TO_TABLE);
    LS_TRY(ls_barrier(r->m->group, e));
    atomic_store(ls_step_rows_steps(r->m->host), steps);
    return LS_OK;
}

ls_status ls_step_rows_take_up(ls_step_rows *r, int64_t steps, bool found, ls_error *e) {
    if (!r) return LS_OK;
    int64_t had = atomic_load(ls_step_rows_steps(r->m->host));
    LS_TRY(ls_barrier(r->m->group, e)); /* all have read it */
    if (found && had != steps) {
        LS_TRY(find_rows(r, steps - 1, e));
        return write_back(r, steps, e);
    }
    atomic_store(ls_step_rows_steps(r->m->host), steps);
    return LS_OK;
}

ls_status ls_step_rows_begin(ls_step_rows *r, int64_t steps, ls_error *e) {
    if (!r) return LS_OK;
    LS_TRY(find_rows(r, steps, e));
    move_all(r, TO_WINDOW);
    return LS_OK;
}

ls_status ls_step_rows_end(ls_step_rows *r, int64_t steps, ls_error *e) {
    return r ? write_back(r, steps + 1, e) : LS_OK;
}
