/* embedding.c - rows of a learned table, chosen by ids of the sample: each of them, or their sum.
 *
 * params: weight [rows, width]; positions [ids, width], which are added to the rows. Both are
 * tables (model/stored_table.h). The gradient of a row is one chain over the samples and ids in
 * order. A negative id stands for none. A slice of an embedding has the rows of some ids, and zeros
 * for others: the sum over the slices has all.
 *
 * The weight may be tied to a loss at the model's end, whose backward begins the gradient. Then the
 * embedding's backward runs once for all samples of a virtual worker (backward_whole), after all
 * micro-batches of the loss. */
#include <assert.h>
#include <string.h>

#include "layers/embedding_device.h"
#include "layers/layers.h"
#include "model/row_ops.h"
#include "model/stored_table.h"

enum { WEIGHT, POSITIONS };

typedef struct options {
    int64_t n;          /* ids of a sample */
    int64_t first, all; /* of a slice: its first id, and the ids of all slices; all 0: it is none */
    bool sums, mean, positions;
    bool tied;         /* another layer has begun the gradient of the weight */
    bool is_window;    /* the weight is one (ls_param.rows) */
    size_t rows_at;    /* } of its table */
    int64_t first_row; /* } */
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    const options *o;
    ls_table_grad weight, positions; /* backward */
} job;

static int32_t id_of(const job *j, int64_t sample, int64_t i) {
    int32_t id = 0;
    const char *ids = ls_layer_field(j->l, j->c, 0, sample);
    memcpy(&id, ids + (size_t)i * sizeof id, sizeof id);
    if (!j->o->all) return id;
    return id >= j->o->first && id - j->o->first < j->l->V ? (int32_t)(id - j->o->first) : -1;
}

/* The ids of a sample without those behind the last one, which stand for none: a list is often much
 * shorter than its field. The fields of samples are at multiples of 4 bytes. */
static int64_t count_ids(const job *j, int64_t sample) {
    const int32_t *ids = ls_layer_field(j->l, j->c, 0, sample);
    int64_t n = j->o->n;
    while (n > 0 && ids[n - 1] < 0) n--;
    return n;
}

/* A sum's factor: 1, or one over the number of ids among the first n. */
static float factor_of(const job *j, int64_t sample, int64_t n) {
    int64_t count = 0;
    if (!j->o->mean) return 1;
    for (int64_t i = 0; i < n; i++) count += id_of(j, sample, i) >= 0;
    return count ? 1.0f / (float)count : 0;
}

static const float *row_of(const job *j, int32_t id, float *room) {
    if (!j->o->is_window) return ls_table_row(j->l, j->c, WEIGHT, id, room);
    const ls_layer_rows *rows = j->c->rows;
    if (!rows->fetched) return rows->values + j->o->rows_at + (int64_t)id * j->l->C;
    int32_t slot = rows->slots[j->o->first_row + id];
    if (slot < -1) slot = ls_row_dropped(slot);
    assert(slot >= 0); /* the rows that a call needs are fetched before it */
    return rows->fetched + j->l->link.offsets[WEIGHT] + slot * j->l->C;
}

/* The row of the weight's gradient that an id has; negative: its gradient is dropped. */
static int64_t slot_of(const job *j, int32_t id) {
    if (!j->o->is_window || id < 0) return id;
    int64_t slot = j->c->rows->slots[j->o->first_row + id];
    assert(slot != -1); /* the rows in the window are those of the batch */
    return slot;
}

/* room [2 C]: a row of a table, and of y. */
static void embed_each(const job *j, int64_t sample, float *room) {
    const ls_kernels *k = j->c->compute->k;
    ls_numbers all = ls_rows_y(j->l, j->c);
    int64_t C = j->l->C;
    for (int64_t i = 0; i < j->c->T; i++) {
        int64_t at = (sample * j->c->T + i) * C;
        float *y = ls_part_result(all, at, room + C);
        int32_t id = id_of(j, sample, i);
        if (id < 0)
            memset(y, 0, (size_t)C * sizeof *y);
        else
            memcpy(y, row_of(j, id, room), (size_t)C * sizeof *y);
        if (j->o->positions) k->add(C, y, ls_table_row(j->l, j->c, POSITIONS, i, room), y);
        ls_part_store(k, all, at, C, y);
    }
}

static void embed_sum(const job *j, int64_t sample, float *room) {
    const ls_kernels *k = j->c->compute->k;
    int64_t C = j->l->C, n = count_ids(j, sample);
    ls_numbers all = ls_rows_y(j->l, j->c);
    float *y = ls_part_result(all, sample * C, room + C);
    memset(y, 0, (size_t)C * sizeof *y);
    for (int64_t i = 0; i < n; i++) {
        int32_t id = id_of(j, sample, i);
        if (id >= 0) k->add(C, y, row_of(j, id, room), y);
    }
    if (j->o->mean) k->affine(C, y, factor_of(j, sample, n), 0, y);
    ls_part_store(k, all, sample * C, C, y);
}

static void forward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0;
    float *room = ls_compute_scratch(j->c->compute, thread);
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        if (j->o->sums)
            embed_sum(j, i, room);
        else
            embed_each(j, i, room);
    }
}

/* A table as a device reads it; NULL: the layer has none. */
static const float *whole_table(const ls_layer *l, const ls_layer_call *c, int table) {
    if (table >= l->nparams) return NULL;
    ls_stored t = ls_table_stored(l, c, table, 0);
    assert(t.type == LS_BLOCK_F32);
    return t.data;
}

static ls_device_ids ids_of(const ls_layer *l, const ls_layer_call *c) {
    return (ls_device_ids){ls_layer_field(l, c, 0, 0), LS_LAYER_OWN_OF(options, l).first};
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        const ls_device_ids ids = ids_of(l, c);
        ls_embedding_device_forward(l, c, &ids, whole_table(l, c, WEIGHT),
                                    whole_table(l, c, POSITIONS));
        return;
    }
    ls_pool_run(c->compute->pool, forward_run,
                &(job){.l = l, .c = c, .o = &LS_LAYER_OWN_OF(options, l)});
}

/* Columns [c0, c1) of a table's gradient begin at 0. */
static void clear(const ls_table_grad *g, int64_t rows, int64_t C, int64_t c0, int64_t c1) {
    for (int64_t r = 0; g->p && g->start && r < rows; r++)
        memset(g->p + r * C + c0, 0, (size_t)(c1 - c0) * sizeof(float));
}

static void add_row(const ls_kernels *k, int64_t n, const float *x, float *sum) {
    k->add(n, sum, x, sum);
}

/* Adds columns [c0, c1) of a sample's gradients. room [c1 - c0] */
static void add_sample(const job *j, int64_t sample, int64_t c0, int64_t c1, float *room) {
    const ls_kernels *k = j->c->compute->k;
    int64_t C = j->l->C, n = j->o->sums ? count_ids(j, sample) : j->o->n;
    ls_matrix all = ls_rows_dy(j->l, j->c, C);
    const float *dy = NULL;
    for (int64_t i = 0; i < n; i++) {
        if (!j->o->sums || i == 0)
            dy = ls_part_read(k, all, j->o->sums ? sample : sample * n + i, c0, c1 - c0, room);
        if (j->o->mean && i == 0) {
            k->affine(c1 - c0, dy, factor_of(j, sample, n), 0, room);
            dy = room;
        }
        int32_t id = id_of(j, sample, i);
        int64_t slot = j->weight.p ? slot_of(j, id) : -1;
        if (slot >= 0) add_row(k, c1 - c0, dy, j->weight.p + slot * C + c0);
        if (j->positions.p) add_row(k, c1 - c0, dy, j->positions.p + i * C + c0);
    }
}

/* Threads split the columns, so that every chain runs over the ids in order. */
static void backward_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t C = j->l->C, c0 = 0, c1 = 0;
    float *room = ls_compute_scratch(j->c->compute, thread);
    ls_pool_share(C, 16, thread, nthreads, &c0, &c1);
    if (c0 == c1) return;
    clear(&j->weight, j->l->V, C, c0, c1);
    clear(&j->positions, j->o->n, C, c0, c1);
    for (int64_t i = 0; i < j->c->n; i++) add_sample(j, i, c0, c1, room);
}

/* On the call's device. */
static void add_there(const job *j) {
    const ls_layer *l = j->l;
    const ls_layer_call *c = j->c;
    if (j->weight.p && j->weight.start)
        ls_device_clear(c->compute->device, LS_DEVICE_COMPUTE, j->weight.p,
                        l->counts[WEIGHT] * sizeof *j->weight.p);
    const ls_device_ids ids = ids_of(l, c);
    ls_embedding_device_backward(l, c, &ids, c->dy, j->weight.p, j->positions.p);
}

/* room: the gradients of weight, then of positions, if they are stored in 16 bits. */
static void backward(const ls_layer *l, const ls_layer_call *c) {
    job j = {.l = l, .c = c, .o = &LS_LAYER_OWN_OF(options, l)};
    ls_layer_call begun = *c;
    begun.grads_start = c->grads_start && !j.o->tied;
    j.weight = ls_table_grad_begin(l, &begun, WEIGHT, 0, l->V, c->room);
    float *room = c->room ? c->room + l->V * l->C : NULL;
    if (j.o->positions) j.positions = ls_table_grad_begin(l, c, POSITIONS, 0, j.o->n, room);
    if (c->compute->device)
        add_there(&j);
    else
        ls_pool_run(c->compute->pool, backward_run, &j);
    ls_table_grad_end(l, c, WEIGHT, 0, l->V, &j.weight);
    if (j.o->positions) ls_table_grad_end(l, c, POSITIONS, 0, j.o->n, &j.positions);
}

static void describe(const ls_layer *l, ls_facts *f) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    *f = (ls_facts){.sums = o->sums, .mean = o->mean, .positions = o->positions, .nids = o->n};
}

static const ls_layer_ops ops = {
    .kind = "embedding", .forward = forward, .backward = backward, .describe = describe};

typedef struct wanted {
    const char *kind, *name;
    int64_t rows, width;
    float deviation;
    options own;
} wanted;

/* Rows that are not given are as many as the field has ids. */
static int64_t rows_of(const ls_model *m, const wanted *w, const ls_value *ids) {
    return w->rows || ids->field < 0 ? w->rows : m->inputs[ids->field].ids;
}

static bool check_sizes(ls_model *m, const wanted *w, const ls_value *ids) {
    if (!ids || ids->layer >= 0 || ids->type != LS_I32)
        ls_build_fail(m, "the ids are no field of i32");
    else if (rows_of(m, w, ids) < 1 || rows_of(m, w, ids) > INT32_MAX)
        ls_build_fail(m, "rows is %lld; 1 to %d are possible", (long long)rows_of(m, w, ids),
                      INT32_MAX);
    else if (w->width < 1 || w->width > INT32_MAX)
        ls_build_fail(m, "width is %lld; 1 to %d are possible", (long long)w->width, INT32_MAX);
    return ls_build_takes(m, "deviation", (double)w->deviation, 0);
}

/* The weight becomes a window of a table of all rows: for the different ids of a batch. */
static void make_window(ls_model *m, ls_layer *l, const ls_value *ids, int64_t rows) {
    ls_param *p = &m->params[l->params[WEIGHT]];
    options *o = &LS_LAYER_OWN_AS(options, l);
    p->window.rows = rows;
    p->window.at = m->table_floats;
    p->window.first_row = m->table_rows;
    p->window.ids_at = l->field_at[0];
    p->window.nids = ls_value_count(ids);
    o->is_window = true;
    o->rows_at = p->window.at;
    o->first_row = p->window.first_row;
    m->table_floats += (size_t)((rows * l->C + 15) / 16 * 16);
    m->table_rows += rows;
}

/* Rows of the parameter: all, or as many as a batch can have different ids. */
static int64_t rows_of_window(const ls_model *m, int64_t rows, int64_t nids) {
    int64_t most = m->sparse_batch * nids;
    return m->sparse_batch && most < rows ? most : rows;
}

static ls_value *add_layer(ls_model *m, ls_value *ids, const wanted *w) {
    ls_layer *l = ls_build_layer(m, w->kind, w->name, NULL, 0);
    if (!l || !check_sizes(m, w, ids)) return ls_build_failed(m);
    int64_t n = ls_value_count(ids), C = w->width, rows = rows_of(m, w, ids);
    l->ops = &ops;
    l->T = w->own.sums ? 1 : n;
    l->C = C;
    l->V = rows_of_window(m, rows, n);
    LS_LAYER_OWN_AS(options, l) = w->own;
    LS_LAYER_OWN_AS(options, l).n = n;
    ls_build_field(m, l, ids);
    ls_build_classes(m, ids, w->own.all ? w->own.all : rows, true);
    ls_param p = {.ndims = 2, .dims = {l->V, C}, .decay = true};
    p.init.std = w->deviation > 0 ? w->deviation : 0.02f;
    ls_build_param(m, l, "weight", &p);
    if (m->sparse_batch && ls_build_is_good(m)) make_window(m, l, ids, rows);
    p.dims[0] = n;
    if (w->own.positions) ls_build_param(m, l, "positions", &p);
    l->half.ntables = l->nparams;
    l->traits.backward_alone = true;
    l->traits.on_device = !w->own.sums;
    l->half.as_stored = LS_OPERAND_Y | LS_OPERAND_DY;
    l->memory.scratch = (size_t)(2 * C);
    l->half.room_floats = (size_t)((l->V + (w->own.positions ? n : 0)) * C);
    for (int i = 0; i < l->nparams; i++) ls_works_pass(&l->cost.forward, LS_WORK_ADD, n * C);
    for (int i = 0; i < l->nparams; i++) ls_works_pass(&l->cost.backward, LS_WORK_ADD, n * C);
    ls_conversion row = {.operand = LS_OPERAND_Y, .rounds = true, .numbers = l->T * C};
    ls_conversions_add(&l->cost.forward_converts, row);
    row = (ls_conversion){.operand = LS_OPERAND_DY, .numbers = l->T * C};
    ls_conversions_add(&l->cost.backward_converts, row);
    ls_dims dims = w->own.sums ? (ls_dims){{0}} : ids->dims;
    if (w->own.sums || !ids->ndims) return ls_build_value(m, LS_DIMS(C));
    if (ids->ndims == LS_MAX_DIMS)
        return ls_build_fail(m, "the ids have %d dimensions; the rows need one more", LS_MAX_DIMS);
    dims.of[ids->ndims] = C;
    return ls_build_value(m, dims);
}

ls_value *(ls_embedding)(ls_model *m, ls_value *ids, ls_embedding_options o) {
    return add_layer(
        m, ids,
        &(wanted){"embedding", o.name, o.rows, o.width, o.deviation, {.positions = o.positions}});
}

ls_value *ls_layers_embedding_slice(ls_model *m, ls_value *ids, ls_embedding_options o,
                                    int64_t first, int64_t all) {
    return add_layer(
        m, ids,
        &(wanted){"embedding", o.name, o.rows, o.width, o.deviation, {.first = first, .all = all}});
}

ls_value *(ls_embedding_sum)(ls_model *m, ls_value *ids, ls_embedding_sum_options o) {
    return add_layer(
        m, ids,
        &(wanted){
            "embedding_sum", o.name, o.rows, o.width, o.deviation, {.sums = true, .mean = o.mean}});
}

int ls_layers_tie_embedding(ls_model *m, const ls_value *embedding, int64_t width) {
    ls_layer *l = embedding->layer >= 0 ? &m->layers[embedding->layer] : NULL;
    if (!l || l->ops != &ops || LS_LAYER_OWN_OF(options, l).sums)
        ls_build_fail(m, "tied is no value of ls_embedding()");
    else if (LS_LAYER_OWN_OF(options, l).positions || l->C != width)
        ls_build_fail(
            m, "tied is an embedding with rows of %lld%s; rows of %lld are needed", (long long)l->C,
            LS_LAYER_OWN_OF(options, l).positions ? " and positions" : "", (long long)width);
    if (!ls_build_is_good(m)) return -1;
    LS_LAYER_OWN_AS(options, l).tied = true;
    l->traits.backward_whole = true;
    return l->params[WEIGHT];
}
