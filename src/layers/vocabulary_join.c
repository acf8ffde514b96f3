/* vocabulary_join.c - what the slices of a vocabulary know of a row, together; and the loss: see
 * vocabulary_slices.h. Both save nothing: backward reads the inputs. */
#include "base/math.h"
#include "layers/fork.h"
#include "layers/label_rows_device.h"
#include "layers/vocabulary_slices.h"

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

static const float *sums_of(const job *j, int input, int64_t row) {
    return (const float *)j->c->x[input] + row * LS_ROW_SUMS;
}

/* ---- join ---- */

/* log(e^a + e^b) */
static double add_logs(double a, double b) {
    double most = a > b ? a : b;
    return most + ls_math_log(ls_math_exp(a - most) + ls_math_exp(b - most));
}

static void join_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++) {
        const float *a = sums_of(j, 0, r), *b = sums_of(j, 1, r);
        float *y = (float *)j->c->y + r * LS_ROW_SUMS;
        double sum = add_logs((double)ls_exact_get(a), (double)ls_exact_get(b));
        ls_exact_put((float)sum, y);
        ls_exact_put(ls_exact_get(a + LS_EXACT) + ls_exact_get(b + LS_EXACT), y + LS_EXACT);
    }
}

/* The gradient of input k. */
static void join_back(const job *j, int k, int64_t r) {
    const float *dy = (const float *)j->c->dy + r * LS_ROW_SUMS, *x = sums_of(j, k, r);
    float *dx = (float *)j->c->dx[k] + r * LS_ROW_SUMS;
    double mine = (double)ls_exact_get(x), other = (double)ls_exact_get(sums_of(j, 1 - k, r));
    double share = ls_math_exp(mine - add_logs(mine, other));
    ls_exact_put((float)((double)ls_exact_get(dy) * share), dx);
    ls_exact_put(ls_exact_get(dy + LS_EXACT), dx + LS_EXACT);
}

static void join_back_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t r = 0, end = 0;
    ls_pool_share(j->c->n * j->c->T, 1, thread, nthreads, &r, &end);
    for (; r < end; r++)
        for (int k = 0; k < 2; k++)
            if (j->c->dx[k]) join_back(j, k, r);
}

enum { ITEMS = 256 }; /* of a device's group */

static void launch_join(const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    LS_LAUNCH(c->compute, LS_KERNEL_vocabulary_join, ls_device_groups(rows, ITEMS), 1, {.l = rows},
              {.from = c->x[0]}, {.from = c->x[1]}, {.p = c->y});
}

static void launch_join_back(const ls_layer_call *c) {
    int64_t rows = c->n * c->T;
    for (int k = 0; k < 2; k++)
        if (c->dx[k])
            LS_LAUNCH(c->compute, LS_KERNEL_vocabulary_join_dx, ls_device_groups(rows, ITEMS), 1,
                      {.l = rows}, {.from = c->dy}, {.from = c->x[k]}, {.from = c->x[1 - k]},
                      {.p = c->dx[k]});
}

static void join_forward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_join(c);
        return;
    }
    ls_pool_run(c->compute->pool, join_run, &(job){l, c});
}

static void join_backward(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_join_back(c);
        return;
    }
    ls_pool_run(c->compute->pool, join_back_run, &(job){l, c});
}

static const ls_layer_ops join = {
    .kind = "vocabulary_join", .forward = join_forward, .backward = join_backward};

/* Both of two sums of slices. */
static ls_value *add_join(ls_model *m, ls_value *a, ls_value *b) {
    ls_value *x[] = {a, b};
    ls_layer *l = ls_build_layer(m, "vocabulary_join", NULL, x, 2);
    if (!l) return ls_build_failed(m);
    l->ops = &join;
    l->traits.on_device = true;
    l->T = a->dims.of[0];
    l->y_parts = LS_EXACT;
    ls_works_pass(&l->cost.forward, LS_WORK_LOSS, l->T * LS_ROW_SUMS);
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->T * LS_ROW_SUMS);
    return ls_build_value(m, a->dims);
}

/* ---- loss ---- */

/* The gradient of a sample's rows: scale, or 0 without a label. */
static void loss_back(const job *j, int64_t sample, int64_t count) {
    const ls_layer_call *c = j->c;
    double weight = c->weights ? c->weights[sample] : 1;
    float scale = count ? c->loss_scale * (float)(weight / (double)count) : 0;
    for (int64_t r = sample * j->l->T; r < (sample + 1) * j->l->T; r++) {
        float *dx = (float *)c->dx[0] + r * LS_ROW_SUMS;
        float d = ls_label_of(j->l, c, r) >= 0 ? scale : 0;
        ls_exact_put(d, dx);
        ls_exact_put(-d, dx + LS_EXACT);
    }
}

static void loss_run(void *arg, int thread, int nthreads) {
    const job *j = arg;
    int64_t i = 0, end = 0, T = j->l->T;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        int64_t count = ls_labels_count(j->l, j->c, i);
        double sum = 0;
        for (int64_t r = i * T; r < (i + 1) * T; r++) {
            const float *x = sums_of(j, 0, r);
            if (ls_label_of(j->l, j->c, r) < 0) continue;
            sum += (double)ls_exact_get(x) - (double)ls_exact_get(x + LS_EXACT);
        }
        j->c->losses[i] = count ? sum / (double)count : 0;
        if (j->c->dx[0]) loss_back(j, i, count);
    }
}

/* work: of each sample, as ls_label_rows_device_count() counts. */
static void launch_loss(const ls_layer *l, const ls_layer_call *c) {
    ls_label_rows_device_count(l, c, c->work);
    LS_LAUNCH(c->compute, LS_KERNEL_vocabulary_loss, c->n, 1, {.l = l->T}, {.from = c->x[0]},
              {.from = ls_layer_field(l, c, 0, 0)},
              {.l = (int64_t)(c->sample_nbytes / sizeof(int32_t))}, {.from = c->work},
              {.p = c->losses}, {.p = c->dx[0]});
}

static void loss_both(const ls_layer *l, const ls_layer_call *c) {
    if (c->compute->device) {
        launch_loss(l, c);
        return;
    }
    ls_pool_run(c->compute->pool, loss_run, &(job){l, c});
}

static const ls_layer_ops loss = {
    .kind = "vocabulary_loss", .forward = loss_both, .backward = loss_both};

static void add_loss(ls_model *m, ls_value *sums, ls_value *label, const ls_vocabulary_slices *o) {
    ls_layer *l = ls_build_layer(m, "vocabulary_loss", NULL, &sums, 1);
    if (!l) return;
    l->ops = &loss;
    l->traits.loss = l->traits.on_device = true;
    l->T = sums->dims.of[0];
    l->V = o->classes;
    l->memory.work = 2;
    ls_works_pass(&l->cost.backward, LS_WORK_LOSS, l->T * LS_ROW_SUMS);
    ls_build_field(m, l, label);
    ls_labels_weigh(m, l, o->all_labels);
}

/* ---- the whole ---- */

static ls_value *join_part(ls_model *m, ls_value **x, int all, int first, int n) {
    if (n == 1) return x[first];
    ls_value *low = join_part(m, x, all, first, n / 2);
    ls_value *high = join_part(m, x, all, first + n / 2, n - n / 2);
    ls_build_slice(m, first, all);
    return add_join(m, low, high);
}

void ls_layers_vocabulary(ls_model *m, ls_value *const *x, ls_value *label,
                          const ls_vocabulary_slices *o) {
    ls_value *of[LS_SLICES_MOST];
    for (int k = 0; k < o->n; k++) {
        ls_build_slice(m, k, o->n);
        of[k] = ls_vocabulary_part(m, x[k], label, o, k);
    }
    ls_value *sums = join_part(m, of, o->n, 0, o->n);
    ls_build_slice(m, 0, o->n);
    add_loss(m, sums, label, o);
}
