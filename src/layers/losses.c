/* losses.c - cross-entropy, binary cross-entropy and squared error, between an input and targets
 * that are a field of the sample, or a second input that depends on no trained parameter.
 *
 * losses: factor times the mean over a sample's targets. dx: times loss_scale and the sample's
 * weight. Targets without a label to learn count neither in the mean nor in the weight.
 *
 * A sample has T rows of V numbers. A row's loss and gradient are computed alone; a sample's loss
 * is the sum of its rows in their order. The kernels: tensor/loss.h. */
#include <math.h>
#include <string.h>

#include "layers/layers.h"
#include "lockstep/infer.h"

typedef struct options {
    ls_loss kind;
    float factor, smoothing;
    int32_t ignored;
    bool is_field; /* the targets; else they are the second input */
    ls_dtype type; /* of the field */
} options;

/* The work memory of a call. */
typedef struct memory {
    double *losses;  /* [rows] */
    float *weights;  /* [rows] */
    int32_t *labels; /* [rows]          } cross-entropy */
    float *stat;     /* [rows, 2]       } */
    float *targets;  /* [rows, V]: of a field, in the other losses */
} memory;

/* Floats of work memory for each row. */
static size_t row_floats(const options *o, int64_t V) {
    if (o->kind == LS_LOSS_CROSS_ENTROPY) return 2 + 1 + 1 + 2;
    return 2 + 1 + (o->is_field ? (size_t)V : 0);
}

static memory memory_of(const ls_layer *l, const ls_layer_call *c) {
    int64_t rows = c->n * l->T;
    memory m = {.losses = (double *)(void *)c->work, .weights = c->work + 2 * rows};
    m.labels = (int32_t *)(void *)(m.weights + rows);
    m.stat = m.weights + 2 * rows;
    m.targets = m.weights + rows;
    return m;
}

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
    memory m;
} job;

/* ---- targets ---- */

/* The labels of a sample, and how many of its targets count. */
static int64_t read_labels(const job *j, int64_t sample, int32_t *labels) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int64_t n = 0;
    memcpy(labels, ls_layer_field(j->l, j->c, 0, sample), (size_t)j->l->T * sizeof *labels);
    for (int64_t r = 0; r < j->l->T; r++) {
        if (!ls_label_counts(labels[r], o->ignored)) labels[r] = -1;
        n += labels[r] >= 0;
    }
    return n;
}

static void read_targets(const job *j, int64_t sample, float *targets) {
    const void *field = ls_layer_field(j->l, j->c, 0, sample);
    ls_dtype type = LS_LAYER_OWN_OF(options, j->l).type;
    int64_t n = j->l->T * j->l->V;
    const unsigned char *bytes = field;
    const int32_t *integers = field;
    if (type == LS_F32)
        memcpy(targets, field, (size_t)n * sizeof *targets);
    else
        for (int64_t i = 0; i < n; i++)
            targets[i] = type == LS_U8 ? (float)bytes[i] : (float)integers[i];
}

/* Reads a sample's targets, and shares its weight out among them. */
static void begin_sample(const job *j, int64_t sample) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    const double *weights = j->c->weights;
    int64_t T = j->l->T, n = T * j->l->V, first = sample * T;
    double weight = (double)o->factor * (weights ? weights[sample] : 1);
    if (o->kind == LS_LOSS_CROSS_ENTROPY)
        n = read_labels(j, sample, j->m.labels + first);
    else if (o->is_field)
        read_targets(j, sample, j->m.targets + first * j->l->V);
    for (int64_t r = 0; r < T; r++) j->m.weights[first + r] = n ? (float)(weight / (double)n) : 0;
}

static int64_t count_targets(const job *j, int64_t sample) {
    const int32_t *labels = j->m.labels + sample * j->l->T;
    int64_t n = 0;
    if (LS_LAYER_OWN_OF(options, j->l).kind != LS_LOSS_CROSS_ENTROPY) return j->l->T * j->l->V;
    for (int64_t r = 0; r < j->l->T; r++) n += labels[r] >= 0;
    return n;
}

/* ---- losses and gradients ---- */

static void run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    const ls_layer_call *c = j->c;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int64_t r = 0, end = 0, V = j->l->V;
    ls_pool_share(c->n * j->l->T, 1, thread, nthreads, &r, &end);
    const float *targets = o->is_field ? j->m.targets : c->x[1];
    ls_loss_rows rows = {.rows = end - r,
                         .n = V,
                         .x = (const float *)c->x[0] + r * V,
                         .smoothing = o->smoothing,
                         .losses = j->m.losses + r,
                         .scale = c->loss_scale,
                         .weight = j->m.weights + r};
    if (o->kind == LS_LOSS_CROSS_ENTROPY) {
        rows.label = j->m.labels + r;
        rows.stat = j->m.stat + 2 * r;
    } else {
        rows.target = targets + r * V;
    }
    c->compute->k->loss[o->kind](&rows);
    if (!c->dx[0]) return;
    rows.dx = (float *)c->dx[0] + r * V;
    c->compute->k->loss_dx[o->kind](&rows);
}

/* ---- on the call's device ---- */

enum { ITEMS = 256, LOSS_ROWS = 16 }; /* of a group */

static void launch_weights(const job *j) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    bool labels = o->kind == LS_LOSS_CROSS_ENTROPY;
    const void *field = labels ? ls_layer_field(j->l, j->c, 0, 0) : NULL;
    LS_LAUNCH(j->c->compute, LS_KERNEL_loss_weights, j->c->n, 1, {.l = j->l->T}, {.from = field},
              {.l = ls_layer_tokens_row(j->c)}, {.l = o->ignored}, {.l = j->l->T * j->l->V},
              {.f = o->factor}, {.from = j->c->weights}, {.p = j->m.labels}, {.p = j->m.weights});
}

static void launch_cross_entropy(const job *j) {
    const ls_layer_call *c = j->c;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int64_t rows = c->n * j->l->T, V = j->l->V;
    LS_LAUNCH(c->compute, LS_KERNEL_smoothed_cross_entropy, ls_device_groups(rows, LOSS_ROWS), 1,
              {.l = rows}, {.l = V}, {.f = o->smoothing}, {.from = c->x[0]}, {.from = j->m.labels},
              {.p = j->m.stat}, {.p = j->m.losses});
    if (!c->dx[0]) return;
    LS_LAUNCH(c->compute, LS_KERNEL_smoothed_cross_entropy_dx, ls_device_groups(rows * V, ITEMS), 1,
              {.l = rows}, {.l = V}, {.f = o->smoothing}, {.f = c->loss_scale}, {.from = c->x[0]},
              {.from = j->m.labels}, {.from = j->m.stat}, {.from = j->m.weights}, {.p = c->dx[0]});
}

/* The losses between numbers: targets are a field's, or a value's as one. */
static void launch_numbers(const job *j) {
    const ls_layer_call *c = j->c;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int64_t T = j->l->T, V = j->l->V, rows = c->n * T;
    bool binary = o->kind == LS_LOSS_BINARY;
    const void *targets = o->is_field ? ls_layer_field(j->l, c, 0, 0) : c->x[1];
    int64_t type = o->is_field ? ls_layers_device_type(o->type) : ls_layers_device_type(LS_F32);
    int64_t nbytes = o->is_field ? (int64_t)c->sample_nbytes : T * V * (int64_t)sizeof(float);
    LS_LAUNCH(c->compute, binary ? LS_KERNEL_binary_cross_entropy : LS_KERNEL_squared_error, rows,
              1, {.l = V}, {.from = c->x[0]}, {.from = targets}, {.l = type}, {.l = T},
              {.l = nbytes}, {.p = j->m.losses});
    if (!c->dx[0]) return;
    LS_LAUNCH(c->compute, binary ? LS_KERNEL_binary_cross_entropy_dx : LS_KERNEL_squared_error_dx,
              ls_device_groups(rows * V, ITEMS), 1, {.l = rows}, {.l = V}, {.f = c->loss_scale},
              {.from = c->x[0]}, {.from = targets}, {.l = type}, {.l = T}, {.l = nbytes},
              {.from = j->m.weights}, {.p = c->dx[0]});
}

static void launch(const ls_layer *l, const ls_layer_call *c) {
    const options *o = &LS_LAYER_OWN_OF(options, l);
    const job j = {l, c, memory_of(l, c)};
    bool labels = o->kind == LS_LOSS_CROSS_ENTROPY;
    launch_weights(&j);
    if (labels)
        launch_cross_entropy(&j);
    else
        launch_numbers(&j);
    LS_LAUNCH(c->compute, LS_KERNEL_loss_samples, c->n, 1, {.l = l->T},
              {.from = labels ? j.m.labels : NULL}, {.l = l->T * l->V}, {.f = o->factor},
              {.from = j.m.losses}, {.p = c->losses});
}

static void compute(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch(l, c);
        return;
    }
    job j = {l, c, memory_of(l, c)};
    for (int64_t i = 0; i < c->n; i++) begin_sample(&j, i);
    ls_pool_run(c->compute->pool, run, &j);
    for (int64_t i = 0; i < c->n; i++) {
        int64_t n = count_targets(&j, i);
        double sum = 0;
        for (int64_t r = 0; r < l->T; r++) sum += j.m.losses[i * l->T + r];
        c->losses[i] = n ? (double)LS_LAYER_OWN_OF(options, l).factor * (sum / (double)n) : 0;
    }
}

static const ls_layer_ops cross_entropy = {
    .kind = "cross_entropy", .forward = compute, .backward = compute};
static const ls_layer_ops binary = {
    .kind = "binary_cross_entropy", .forward = compute, .backward = compute};
static const ls_layer_ops squares = {
    .kind = "mean_squared_error", .forward = compute, .backward = compute};

/* ---- calls ---- */

static bool check(ls_model *m, const ls_loss_options *o, bool has_labels) {
    if (!isfinite(o->factor) || o->factor < 0)
        ls_build_fail(m, "factor is %g; it is above 0, or 0 for 1", (double)o->factor);
    else if (!(o->smoothing >= 0 && o->smoothing < 1))
        ls_build_fail(m, "smoothing is %g; it is at least 0 and below 1", (double)o->smoothing);
    else if (!has_labels && (o->smoothing > 0 || o->ignore))
        ls_build_fail(m, "smoothing and ignore are options of cross_entropy alone");
    return ls_build_is_good(m);
}

static const int predicts[] = {[LS_LOSS_CROSS_ENTROPY] = LS_CLASSES,
                               [LS_LOSS_BINARY] = LS_CHANCES,
                               [LS_LOSS_SQUARES] = LS_NUMBERS};

/* Adds a loss over T rows of V numbers. NULL: the model has failed. */
static ls_layer *add(ls_model *m, const ls_layer_ops *ops, const options *given,
                     const ls_loss_options *o, ls_value *const *x) {
    ls_layer *l = ls_build_layer(m, ops->kind, o->name, x, given->is_field ? 1 : 2);
    if (!l || !check(m, o, given->kind == LS_LOSS_CROSS_ENTROPY)) return NULL;
    LS_LAYER_OWN_AS(options, l) = *given;
    LS_LAYER_OWN_AS(options, l).factor = o->factor > 0 ? o->factor : 1;
    l->ops = ops;
    l->C = l->V = ls_value_last(x[0]);
    l->T = ls_value_count(x[0]) / l->V;
    l->traits.loss = l->traits.on_device = true;
    l->end.predicts = predicts[given->kind];
    l->memory.work = (size_t)l->T * row_floats(given, l->V);
    l->memory.work += l->memory.work % 2; /* doubles */
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->T * l->V);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS_DX, l->T * l->V);
    m->targets = 1;
    return l;
}

void(ls_cross_entropy)(ls_model *m, ls_value *logits, ls_value *label, ls_loss_options o) {
    options own = {.kind = LS_LOSS_CROSS_ENTROPY,
                   .smoothing = o.smoothing,
                   .ignored = o.ignore ? o.ignore : -1,
                   .is_field = true};
    ls_layer *l = add(m, &cross_entropy, &own, &o, &logits);
    if (!l) return;
    if (!label || label->layer >= 0 || label->type != LS_I32) {
        ls_build_fail(m, "the label is no i32 field");
        return;
    }
    if (!logits->ndims || ls_value_count(label) != l->T) {
        ls_build_fail(m,
                      "the logits are %s, and the labels %s; one row of logits a label is needed",
                      ls_dims_write(logits->dims).text, ls_dims_write(label->dims).text);
        return;
    }
    if (o.ignore < 0) {
        ls_build_fail(m, "ignore is %d; negative labels are ignored anyway", (int)o.ignore);
        return;
    }
    ls_build_field(m, l, label);
    ls_build_classes(m, label, l->V, true);
    if (o.ignore >= l->V) m->ignored[label->field] = o.ignore;
    m->weighing.ntargets = l->T;
    m->weighing.labels_at = l->field_at[0];
    m->weighing.ignored = own.ignored;
    ls_layers_class_metrics(m, logits, label, own.ignored);
}

/* A loss between numbers. */
static void add_numbers(ls_model *m, const ls_layer_ops *ops, ls_loss kind, ls_value *const *x,
                        const ls_loss_options *o) {
    bool is_field = x[1] && x[1]->field >= 0 && x[1]->layer < 0;
    options own = {.kind = kind, .is_field = is_field};
    if (is_field) own.type = x[1]->type;
    ls_layer *l = add(m, ops, &own, o, x);
    if (!l) return;
    if (ls_value_count(x[0]) != ls_value_count(x[1]))
        ls_build_fail(m, "the targets are %s; of %s as many numbers are needed",
                      ls_dims_write(x[1]->dims).text, ls_dims_write(x[0]->dims).text);
    else if (is_field)
        ls_build_field(m, l, x[1]);
    else
        l->end.fixed_input = 1;
    if (ls_build_is_good(m)) ls_layers_number_metrics(m, kind == LS_LOSS_BINARY, x[0], x[1]);
}

void(ls_binary_cross_entropy)(ls_model *m, ls_value *logits, ls_value *targets, ls_loss_options o) {
    add_numbers(m, &binary, LS_LOSS_BINARY, (ls_value *[]){logits, targets}, &o);
}

void(ls_mean_squared_error)(ls_model *m, ls_value *x, ls_value *targets, ls_loss_options o) {
    add_numbers(m, &squares, LS_LOSS_SQUARES, (ls_value *[]){x, targets}, &o);
}

void(ls_sample_weight)(ls_model *m, ls_value *field) {
    if (!ls_build_is_good(m)) return;
    if (!field || field->layer >= 0 || field->type == LS_U8 || ls_value_count(field) != 1)
        ls_build_fail(m, "ls_sample_weight(): the weight is no field of one f32 or i32");
    else if (m->weighing.has_field)
        ls_build_fail(m, "ls_sample_weight(): samples have a weight already");
    if (!ls_build_is_good(m)) return;
    m->weighing.has_field = true;
    m->weighing.type = field->type;
    m->weighing.field_at = m->inputs[field->field].offset;
}
