/* metrics.c - the measures behind metrics: is the label among the first, the predicted class, a
 * score and its class, sums of errors (model/measure.h). */
#include <math.h>
#include <string.h>

#include "layers/layers.h"

enum { MOST_CONFUSED = 100 }; /* classes of a confusion matrix */

typedef enum metric_kind {
    IS_TOP,
    PREDICTION,
    SCORE,
    SQUARES,
    DISTANCES,
    EACH,
    ALL_SCORES
} metric_kind;

typedef struct options {
    metric_kind what;
    int64_t k;       /* IS_TOP */
    int32_t ignored; /* a class that does not count, as negative ones */
    bool is_field;   /* the targets; else they are the second input */
    ls_dtype type;   /* of the field */
    int nvalues;     /* of a sample */
} options;

typedef struct job {
    const ls_layer *l;
    const ls_layer_call *c;
} job;

/* ---- one sample ---- */

static double target_at(const job *j, int64_t sample, int64_t i) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    if (!o->is_field) return (double)((const float *)j->c->x[1])[sample * j->l->T * j->l->V + i];
    const void *field = ls_layer_field(j->l, j->c, 0, sample);
    if (o->type == LS_U8) return ((const unsigned char *)field)[i];
    if (o->type == LS_I32) return ((const int32_t *)field)[i];
    return (double)((const float *)field)[i];
}

/* Logits that come before the label's: larger ones, and equal ones of lower classes. */
static int64_t rank_of(const float *x, int64_t V, int64_t label) {
    int64_t rank = 0;
    if (isnan(x[label])) return V;
    for (int64_t i = 0; i < V; i++) rank += x[i] > x[label] || (x[i] == x[label] && i < label);
    return rank;
}

static void top_of(const job *j, int64_t sample, const float *x, double values[2]) {
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    for (int64_t r = 0; r < j->l->T; r++, x += j->l->V) {
        int32_t label = (int32_t)target_at(j, sample, r);
        if (!ls_label_counts(label, o->ignored)) continue;
        values[0] += rank_of(x, j->l->V, label) < o->k;
        values[1]++;
    }
}

/* The first of the largest logits, and the label. */
static void prediction_of(const job *j, int64_t sample, const float *x, double values[2]) {
    int64_t best = 0;
    int32_t label = (int32_t)target_at(j, sample, 0);
    for (int64_t i = 1; i < j->l->V; i++)
        if (x[i] > x[best] || (isnan(x[best]) && !isnan(x[i]))) best = i;
    values[0] = (double)best;
    values[1] = ls_label_counts(label, LS_LAYER_OWN_OF(options, j->l).ignored) ? label : -1;
}

static void score_of(const job *j, int64_t sample, const float *x, double values[2]) {
    double class = target_at(j, sample, 0);
    values[0] = j->l->V == 2 ? (double)x[1] - (double)x[0] : (double)x[0];
    values[1] = class < 0 ? -1 : class > 0.5;
}

static void errors_of(const job *j, int64_t sample, const float *x, double values[2]) {
    int64_t n = j->l->T * j->l->V;
    for (int64_t i = 0; i < n; i++) {
        double d = (double)x[i] - target_at(j, sample, i);
        values[0] += LS_LAYER_OWN_OF(options, j->l).what == SQUARES ? d * d : fabs(d);
    }
    values[1] = (double)n;
}

/* Sets values to the squared error and the target, for each target of the sample. */
static void each_of(const job *j, int64_t sample, const float *x, double *values) {
    for (int64_t i = 0; i < j->l->T * j->l->V; i++) {
        double t = target_at(j, sample, i), d = (double)x[i] - t;
        values[2 * i] = d * d;
        values[2 * i + 1] = t;
    }
}

static void scores_of(const job *j, int64_t sample, const float *x, double *values) {
    (void)sample;
    for (int i = 0; i < LS_LAYER_OWN_OF(options, j->l).nvalues; i++) values[i] = (double)x[i];
}

static void run(void *arg, int thread, int nthreads) {
    static void (*const functions[])(const job *, int64_t, const float *, double *) = {
        [IS_TOP] = top_of,       [PREDICTION] = prediction_of, [SCORE] = score_of,
        [SQUARES] = errors_of,   [DISTANCES] = errors_of,      [EACH] = each_of,
        [ALL_SCORES] = scores_of};
    const job *j = arg;
    const options *o = &LS_LAYER_OWN_OF(options, j->l);
    int64_t i = 0, end = 0, n = j->l->T * j->l->V;
    ls_pool_share(j->c->n, 1, thread, nthreads, &i, &end);
    for (; i < end; i++) {
        double *values = j->c->losses + i * o->nvalues;
        memset(values, 0, (size_t)o->nvalues * sizeof *values);
        functions[o->what](j, i, (const float *)j->c->x[0] + i * n, values);
    }
}

static void forward(const ls_layer *l, const ls_layer_call *c) {
    ls_pool_run(c->compute->pool, run, &(job){l, c});
}

static const ls_layer_ops ops = {.kind = "metric", .forward = forward};

/* ---- calls ---- */

/* The latest layer, of T rows of V numbers, becomes a measure. */
static ls_value *finish(ls_model *m, ls_layer *l, const ls_value *x, const options *o,
                        ls_measure_kind kind) {
    l->ops = &ops;
    l->traits.loss = true;
    l->C = l->V = ls_value_last(x);
    l->T = ls_value_count(x) / l->V;
    int count = (int)ls_value_count(x);
    int nvalues = o->what == EACH ? 2 * count : o->what == ALL_SCORES ? count : 2;
    LS_LAYER_OWN_AS(options, l) = *o;
    LS_LAYER_OWN_AS(options, l).nvalues = nvalues;
    return ls_build_measure(m, kind, (int)l->V, nvalues);
}

/* A measure between logits and labels, one for each row. */
static ls_value *add_classes(ls_model *m, const char *kind, ls_value *x, ls_value *label,
                             const options *o, ls_measure_kind measure) {
    ls_layer *l = ls_build_layer(m, kind, NULL, &x, 1);
    if (!l) return ls_build_failed(m);
    if (!label || label->field < 0 || label->layer >= 0 || label->type != LS_I32)
        return ls_build_fail(m, "the label is no i32 field");
    if (!x->ndims || ls_value_count(label) * ls_value_last(x) != ls_value_count(x))
        return ls_build_fail(m, "the logits are %s, and the labels %s; one row a label is needed",
                             ls_dims_write(x->dims).text, ls_dims_write(label->dims).text);
    if (o->what == PREDICTION && ls_value_count(label) != 1)
        return ls_build_fail(m, "a sample has %lld labels; one is possible",
                             (long long)ls_value_count(label));
    ls_build_field(m, l, label);
    ls_build_classes(m, label, ls_value_last(x), true);
    return finish(m, l, x, o, measure);
}

ls_value *ls_layers_is_top(ls_model *m, ls_value *logits, ls_value *label, int64_t k,
                           int32_t ignored) {
    options o = {.what = IS_TOP, .k = k, .ignored = ignored, .is_field = true, .type = LS_I32};
    return add_classes(m, "is_top", logits, label, &o, LS_MEASURE_MEAN);
}

ls_value *(ls_is_top)(ls_model *m, ls_value *logits, ls_value *label, int64_t k) {
    if (k < 1) return ls_build_fail(m, "ls_is_top(): k is %lld; it is at least 1", (long long)k);
    return ls_layers_is_top(m, logits, label, k, -1);
}

ls_value *ls_layers_confusion(ls_model *m, ls_value *logits, ls_value *label, int32_t ignored) {
    options o = {.what = PREDICTION, .ignored = ignored, .is_field = true, .type = LS_I32};
    return add_classes(m, "confusion", logits, label, &o, LS_MEASURE_CONFUSION);
}

ls_value *(ls_confusion)(ls_model *m, ls_value *logits, ls_value *label) {
    if (ls_build_is_good(m) && ls_value_last(logits) > MOST_CONFUSED)
        return ls_build_fail(m, "ls_confusion(): there are %lld classes; at most %d are possible",
                             (long long)ls_value_last(logits), MOST_CONFUSED);
    return ls_layers_confusion(m, logits, label, -1);
}

ls_value *(ls_auc)(ls_model *m, ls_value *score, ls_value *label) {
    ls_layer *l = ls_build_layer(m, "auc", NULL, &score, 1);
    if (!l) return ls_build_failed(m);
    if (!label || label->field < 0 || label->layer >= 0 || ls_value_count(label) != 1)
        return ls_build_fail(m, "the label is no field of one number");
    if (ls_value_count(score) > 2)
        return ls_build_fail(m,
                             "the score is %s; one number, or the logits of two classes, is needed",
                             ls_dims_write(score->dims).text);
    ls_build_field(m, l, label);
    options o = {.what = SCORE, .is_field = true, .type = label->type};
    return finish(m, l, score, &o, LS_MEASURE_AUC);
}

static ls_value *add_errors(ls_model *m, const char *kind, metric_kind what,
                            ls_measure_kind measure, ls_value *const x[2]) {
    bool is_field = x[1] && x[1]->field >= 0 && x[1]->layer < 0;
    ls_layer *l = ls_build_layer(m, kind, NULL, x, is_field ? 1 : 2);
    if (!l) return ls_build_failed(m);
    if (ls_value_count(x[0]) != ls_value_count(x[1]))
        return ls_build_fail(m, "the targets are %s; of %s as many numbers are needed",
                             ls_dims_write(x[1]->dims).text, ls_dims_write(x[0]->dims).text);
    if (what == EACH && ls_value_count(x[0]) > LS_MEASURE_TARGETS)
        return ls_build_fail(m, "a sample has %lld targets; at most %d are possible",
                             (long long)ls_value_count(x[0]), LS_MEASURE_TARGETS);
    if (is_field) ls_build_field(m, l, x[1]);
    options o = {.what = what, .is_field = is_field};
    if (is_field) o.type = x[1]->type;
    return finish(m, l, x[0], &o, measure);
}

ls_value *(ls_squared_error)(ls_model *m, ls_value *x, ls_value *targets) {
    return add_errors(m, "squared_error", SQUARES, LS_MEASURE_MEAN, (ls_value *[]){x, targets});
}
ls_value *(ls_root_squared_error)(ls_model *m, ls_value *x, ls_value *targets) {
    return add_errors(m, "root_squared_error", SQUARES, LS_MEASURE_ROOT,
                      (ls_value *[]){x, targets});
}
ls_value *(ls_absolute_error)(ls_model *m, ls_value *x, ls_value *targets) {
    return add_errors(m, "absolute_error", DISTANCES, LS_MEASURE_MEAN, (ls_value *[]){x, targets});
}

ls_value *(ls_r2)(ls_model *m, ls_value *x, ls_value *targets) {
    return add_errors(m, "r2", EACH, LS_MEASURE_R2, (ls_value *[]){x, targets});
}

ls_value *ls_layers_ranking(ls_model *m, ls_measure_kind kind, ls_value *scores, int64_t k,
                            int64_t candidates) {
    ls_layer *l = ls_build_layer(m, "scores", NULL, &scores, 1);
    if (!l) return ls_build_failed(m);
    ls_value *v = finish(m, l, scores, &(options){.what = ALL_SCORES}, kind);
    if (!ls_build_is_good(m)) return v;
    m->measures[v->measure - 1].k = k;
    m->measures[v->measure - 1].candidates = candidates;
    return v;
}

void(ls_metric)(ls_model *m, const char *name, ls_value *measure) {
    if (ls_build_is_good(m)) ls_build_metric(m, name, measure, false);
}

/* ---- metrics that no call asks for ---- */

void ls_layers_class_metrics(ls_model *m, ls_value *logits, ls_value *label, int32_t ignored) {
    int64_t V = ls_value_last(logits);
    if (m->nmeasures + 4 > LS_MEASURES) return;
    ls_build_metric(m, "accuracy", ls_layers_is_top(m, logits, label, 1, ignored), true);
    if (V >= 10) ls_build_metric(m, "top5", ls_layers_is_top(m, logits, label, 5, ignored), true);
    if (V == 2 && ignored < 0) ls_build_metric(m, "auc", (ls_auc)(m, logits, label), true);
    if (ls_value_count(label) == 1 && V > 1 && V <= MOST_CONFUSED)
        ls_build_metric(m, "confusion", ls_layers_confusion(m, logits, label, ignored), true);
}

void ls_layers_number_metrics(ls_model *m, bool binary, ls_value *x, ls_value *targets) {
    if (m->nmeasures + 1 > LS_MEASURES) return;
    if (!binary)
        ls_build_metric(m, "rmse", (ls_root_squared_error)(m, x, targets), true);
    else if (ls_value_count(x) == 1 && targets->layer < 0)
        ls_build_metric(m, "auc", (ls_auc)(m, x, targets), true);
}
