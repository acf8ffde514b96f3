/* label_rows.c - see label_rows.h. */
#include "layers/label_rows.h"

#include <assert.h>
#include <string.h>

#include "layers/label_rows_device.h"
#include "model/mixed.h"
#include "model/row_ops.h"

enum { TABLE };

size_t ls_label_rows_numbers(int64_t T) { return (size_t)(T + T % 2); }

size_t ls_label_rows_block(int64_t C, int64_t V) { return (size_t)(2 * C + V + 4); }

int32_t *ls_label_rows_list(const ls_layer_call *c) { return (int32_t *)(void *)c->work; }

int32_t ls_label_of(const ls_layer *l, const ls_layer_call *c, int64_t row) {
    int32_t label = 0;
    const char *labels = ls_layer_field(l, c, 0, row / l->T);
    memcpy(&label, labels + (size_t)(row % l->T) * sizeof label, sizeof label);
    return label;
}

/* all: rows of the sample, of which the layer has a chunk; 0: it has all of them. */
typedef struct options {
    int64_t all;
} options;

void ls_labels_weigh(ls_model *m, ls_layer *l, ls_value *all) {
    if (all) ls_build_field(m, l, all);
    int64_t n = all ? ls_value_count(all) : 0;
    LS_LAYER_OWN_AS(options, l) = (options){n};
    m->targets = 1;
    m->weighing.ntargets = n ? n : l->T;
    m->weighing.labels_at = l->field_at[n ? 1 : 0] % m->sample_nbytes; /* of any sample */
    m->weighing.ignored = -1;
}

int64_t ls_labels_all(const ls_layer *l, int *field_p) {
    int64_t all = LS_LAYER_OWN_OF(options, l).all;
    *field_p = all ? 1 : 0;
    return all ? all : l->T;
}

int64_t ls_labels_count(const ls_layer *l, const ls_layer_call *c, int64_t sample) {
    int field = 0;
    int64_t n = 0, all = ls_labels_all(l, &field);
    const char *labels = ls_layer_field(l, c, field, sample);
    for (int64_t t = 0; t < all; t++) {
        int32_t label = 0;
        memcpy(&label, labels + (size_t)t * sizeof label, sizeof label);
        n += label >= 0;
    }
    return n;
}

/* The rows with a label, which the call's device lists. */
static int64_t find_there(const ls_layer *l, const ls_layer_call *c) {
    ls_layer_call here = *c;
    int64_t n = 0;
    here.samples = c->host_samples;
    ls_label_rows_device_find(l, c);
    for (int64_t r = 0; r < c->n * c->T; r++) n += ls_label_of(l, &here, r) >= 0;
    return n;
}

/* ls_rows_block_end() of rows with a label, from number `first` of them on, where a device has
 * their list. */
static int64_t end_there(const ls_label_rows *b, int64_t first, int64_t most) {
    ls_layer_call here = *b->c;
    int64_t last = first + most < b->all ? first + most : b->all;
    int64_t unit = ls_rows_units(b->c).rows, k = 0, begin = 0, end = first, before = -1;
    here.samples = b->c->host_samples;
    if (!unit) return last;
    for (int64_t r = 0; k <= last; r++) {
        bool ends = k == b->all;
        if (!ends && ls_label_of(b->l, &here, r) < 0) continue;
        if (!ends && r / unit != before) begin = k;
        if (k > first && (ends || (k - begin) % LS_SUM_BLOCK == 0)) end = k;
        before = r / unit;
        k++;
    }
    return end;
}

int64_t ls_label_rows_find(ls_label_rows *b, bool all) {
    int32_t *row = ls_label_rows_list(b->c);
    assert(!all || !b->c->compute->device);
    if (b->c->compute->device) return b->all = find_there(b->l, b->c);
    b->all = 0;
    for (int64_t r = 0; r < b->c->n * b->c->T; r++)
        if (all || ls_label_of(b->l, b->c, r) >= 0) row[b->all++] = (int32_t)r;
    return b->all;
}

static ls_gemm_units units_of(const ls_layer_call *c, const int32_t *row) {
    ls_gemm_units u = ls_rows_units(c);
    u.row = row;
    return u;
}

int64_t ls_label_rows_count(const ls_label_rows *b, const int32_t *row) {
    const int32_t *list = ls_label_rows_list(b->c);
    ls_gemm_units u = units_of(b->c, list);
    int64_t most = ls_layer_block(b->l, b->c->n * b->l->T, ls_mixed_rounds(b->c));
    if (b->c->compute->device) return end_there(b, row - list, most) - (row - list);
    return ls_rows_block_end(&u, row - list, b->all, most) - (row - list);
}

static int64_t target_of(const void *arg, int64_t r) {
    const ls_label_rows *b = arg;
    return ls_label_of(b->l, b->c, b->row[r]);
}

static float scale_of(const void *arg, int64_t r) {
    const ls_label_rows *b = arg;
    return b->scale(b, b->row[r]);
}

static void gather(const ls_label_rows *b, float *h) {
    const ls_layer *l = b->l;
    const ls_layer_call *c = b->c;
    for (int64_t r = 0; r < b->v.rows; r++, h += l->C) {
        const float *x =
            ls_part_read(c->compute->k, ls_rows_x(l, c, 0, l->C), b->row[r], 0, l->C, h);
        if (x != h) memcpy(h, x, (size_t)l->C * sizeof *h);
    }
}

static ls_vocabulary_targets targets_of(const ls_label_rows *b) {
    const ls_layer_call *c = b->c;
    if (!c->compute->device) return (ls_vocabulary_targets){0};
    return (ls_vocabulary_targets){.p = ls_layer_field(b->l, c, 0, 0),
                                   .row = (int64_t)(c->sample_nbytes / sizeof(int32_t)),
                                   .T = c->T,
                                   .list = b->row,
                                   .scales = b->scales,
                                   .begins = b->begins};
}

/* The block without its logits. */
static void open_block(ls_label_rows *b, const int32_t *row, int64_t rows) {
    const ls_layer *l = b->l;
    const ls_layer_call *c = b->c;
    float *room = c->work + (size_t)c->n * ls_label_rows_numbers(l->T) + b->own;
    b->row = row;
    b->v = (ls_vocabulary){.l = l,
                           .c = c,
                           .table = TABLE,
                           .start = row == ls_label_rows_list(c),
                           .end = row + rows == ls_label_rows_list(c) + b->all,
                           .rows = rows,
                           .units = units_of(c, row),
                           .h = room + 2 * rows,
                           .dh = c->dx[0] ? room + (2 + l->C) * rows : NULL,
                           .stat = room + (2 + 2 * l->C) * rows,
                           .logits = room + (4 + 2 * l->C) * rows,
                           .losses = (double *)(void *)room,
                           .targets = targets_of(b),
                           .target = target_of,
                           .scale = scale_of,
                           .arg = b};
    if (c->compute->device)
        ls_label_rows_device_gather(b, room + 2 * rows);
    else
        gather(b, room + 2 * rows);
}

void ls_label_rows_open(ls_label_rows *b, const int32_t *row, int64_t rows) {
    open_block(b, row, rows);
    ls_vocabulary_logits(&b->v);
}

void ls_label_rows_back(const ls_label_rows *b) {
    const ls_layer *l = b->l;
    ls_numbers dx = ls_rows_dx(l, b->c, 0);
    ls_vocabulary_back(&b->v);
    if (b->c->compute->device) {
        if (dx.p) ls_label_rows_device_scatter(b);
        return;
    }
    for (int64_t r = 0; dx.p && r < b->v.rows; r++) {
        int64_t at = b->row[r] * l->C;
        const float *dh = b->v.dh + r * l->C;
        if (!dx.bf16) memcpy((float *)dx.p + at, dh, (size_t)l->C * sizeof *dh);
        ls_part_store(b->c->compute->k, dx, at, l->C, dh);
    }
}

void ls_label_rows_clear(const ls_layer *l, const ls_layer_call *c) {
    ls_numbers dx = ls_rows_dx(l, c, 0);
    size_t nbytes = (size_t)(c->n * l->T * l->C) * (dx.bf16 ? sizeof(uint16_t) : sizeof(float));
    if (dx.p && c->compute->device)
        ls_device_clear(c->compute->device, LS_DEVICE_COMPUTE, dx.p, nbytes);
    else if (dx.p)
        memset(dx.p, 0, nbytes);
}

void ls_label_rows_declare(ls_layer *l, int64_t C, int64_t V) {
    ls_conversions *b = &l->cost.backward_converts;
    ls_vocabulary_declare(l, C, V);
    l->half.as_stored = LS_OPERAND_X | LS_OPERAND_DX;
    ls_conversions_add(b, (ls_conversion){.operand = LS_OPERAND_X, .numbers = l->T * C});
    ls_conversions_add(
        b, (ls_conversion){
               .operand = LS_OPERAND_DX, .rounds = true, .for_dx = true, .numbers = l->T * C});
}

/* A device has no list of all rows: they lie one after the other. */
static void logits_there(ls_label_rows *b) {
    const ls_layer *l = b->l;
    const ls_layer_call *c = b->c;
    int64_t all = c->n * c->T, most = ls_layer_block(l, all, false);
    for (int64_t first = 0; first < all; first += most) {
        b->v = (ls_vocabulary){.l = l,
                               .c = c,
                               .table = TABLE,
                               .rows = all - first < most ? all - first : most,
                               .h = (const float *)c->x[0] + first * l->C,
                               .logits = (float *)c->y + first * l->V};
        ls_vocabulary_logits(&b->v);
    }
}

void ls_label_rows_logits(ls_label_rows *b) {
    const ls_layer *l = b->l;
    if (b->c->compute->device) {
        logits_there(b);
        return;
    }
    int32_t *row = ls_label_rows_list(b->c);
    int64_t all = ls_label_rows_find(b, true);
    for (int64_t first = 0, n; first < all; first += n) {
        n = ls_label_rows_count(b, row + first);
        open_block(b, row + first, n);
        b->v.logits = (float *)b->c->y + first * l->V;
        ls_vocabulary_logits(&b->v);
    }
}
