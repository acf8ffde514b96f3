/* evaluation.c - see evaluation.h. */
#include "report/evaluation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LN2 = 0.69314718055994530942;

ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t targets) {
    return (ls_evaluation){.loss = nats / ((double)nsamples * (double)targets),
                           .bits_per_byte = nbytes > 0 ? nats / LN2 / nbytes : 0,
                           .nsamples = nsamples};
}

/* ---- area under the curve ---- */

typedef struct scored {
    double score;
    bool positive;
} scored;

static int compare_scores(const void *a, const void *b) {
    double x = ((const scored *)a)->score, y = ((const scored *)b)->score;
    return (x > y) - (x < y);
}

/* Twice the number of pairs in which the positive has the larger score; equal ones count once. The
 * sums are integers: exact up to 2^63. */
static uint64_t count_pairs(const scored *s, uint64_t n) {
    uint64_t twice = 0, below = 0;
    for (uint64_t i = 0; i < n;) {
        uint64_t end = i, positive = 0;
        while (end < n && s[end].score == s[i].score) positive += s[end++].positive;
        uint64_t negative = end - i - positive;
        twice += positive * (2 * below + negative);
        below += negative;
        i = end;
    }
    return twice;
}

double ls_evaluation_auc(const double *pairs, uint64_t n, size_t stride) {
    scored *s = LS_NEW_ARRAY(scored, n + 1);
    uint64_t count = 0, npositive = 0;
    bool bad = false;
    for (uint64_t i = 0; i < n; i++, pairs += stride) {
        if (pairs[1] < 0) continue;
        s[count] = (scored){pairs[0], pairs[1] > 0};
        npositive += s[count++].positive;
        bad = bad || isnan(pairs[0]);
    }
    uint64_t nnegative = count - npositive;
    double area = NAN;
    if (!bad && npositive && nnegative) {
        qsort(s, count, sizeof *s, compare_scores);
        area = (double)count_pairs(s, count) / 2 / ((double)npositive * (double)nnegative);
    }
    free(s);
    return area;
}

/* ---- metrics ---- */

/* The sum of (x - mean)^2 over one number x of each sample. */
static double spread_of(const double *x, uint64_t n, size_t stride) {
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < n; i++) sum += x[i * stride];
    for (uint64_t i = 0; i < n; i++) {
        double d = x[i * stride] - sum / (double)n;
        squares += d * d;
    }
    return squares;
}

/* The mean over the targets of a sample. NaN: the samples have all one value of a target. */
static double r2_of(const ls_measure *m, const double *values, uint64_t n, size_t stride) {
    double all = 0;
    int ntargets = m->nvalues / 2;
    for (int k = 0; k < ntargets; k++) {
        double errors = 0, spread = spread_of(values + 2 * k + 1, n, stride);
        for (uint64_t i = 0; i < n; i++) errors += values[i * stride + 2 * (size_t)k];
        all += spread > 0 ? 1 - errors / spread : (double)NAN;
    }
    return all / ntargets;
}

static double metric_of(const ls_measure *m, const double *values, uint64_t n, size_t stride) {
    double sum = 0, count = 0;
    if (m->kind == LS_MEASURE_R2) return r2_of(m, values, n, stride);
    if (m->kind == LS_MEASURE_AUC) return ls_evaluation_auc(values, n, stride);
    for (uint64_t i = 0; i < n; i++, values += stride) {
        sum += values[0];
        count += values[1];
    }
    double mean = count > 0 ? sum / count : (double)NAN;
    return m->kind == LS_MEASURE_ROOT ? sqrt(mean) : mean;
}

/* The mean over all samples of a number that the loss notes. */
static double note_of(const double *values, uint64_t n, size_t stride) {
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) sum += values[i * stride];
    return n ? sum / (double)n : (double)NAN;
}

ls_evaluation ls_evaluation_of_records(const ls_model *m, const double *records, uint64_t n,
                                       double nbytes) {
    double nats = 0, sum = 0, weight = 0;
    size_t size = ls_record_size(m);
    for (uint64_t i = 0; i < n; i++) {
        const double *r = records + i * size;
        nats += r[LS_RECORD_LOSS];
        sum += r[LS_RECORD_LOSS] * r[LS_RECORD_WEIGHT];
        weight += r[LS_RECORD_WEIGHT];
    }
    if (m->weighing.ntargets) nats = sum * (double)m->weighing.ntargets; /* losses are means */
    ls_evaluation v = ls_evaluation_of(nats, nbytes, n, m->targets);
    v.loss = weight > 0 ? sum / (weight * (double)m->targets) : 0;
    for (int k = 0; k < m->nnotes; k++) {
        ls_metric_value *to = &v.metrics[v.nmetrics++];
        memcpy(to->name, m->notes[k], sizeof to->name);
        to->value = note_of(records + LS_RECORD_VALUES + k, n, size);
    }
    for (int k = 0; k < m->nmeasures; k++) {
        const ls_measure *x = &m->measures[k];
        if (x->kind == LS_MEASURE_CONFUSION || x->kind == LS_MEASURE_HIT ||
            x->kind == LS_MEASURE_NDCG)
            continue;
        ls_metric_value *to = &v.metrics[v.nmetrics++];
        memcpy(to->name, x->name, sizeof to->name);
        to->value = metric_of(x, records + x->at, n, size);
    }
    return v;
}

/* The number of metrics from the i-th on that are parts of one: "router/load/0",
 * "router/load/1". */
static int count_parts(const ls_evaluation *v, int i, int stem) {
    const char *name = v->metrics[i].name;
    int n = 0;
    for (; i + n < v->nmetrics; n++) {
        const char *other = v->metrics[i + n].name;
        char *end = NULL;
        if (strncmp(name, other, (size_t)stem) != 0 || other[stem] != '/') break;
        if (strtol(other + stem + 1, &end, 10) != n || end == other + stem + 1 || *end) break;
    }
    return n;
}

const char *ls_loss_text(double x, char text[LS_LOSS_TEXT]) {
    snprintf(text, LS_LOSS_TEXT, fabs(x) < 1e5 ? "%.4f" : "%.6g", isnan(x) ? fabs(x) : x);
    return text;
}

/* The range of parts of one metric, instead of each; returns their number, 0: they are no parts. */
static int print_parts(const ls_evaluation *v, int i, ls_buf *out) {
    const char *slash = strrchr(v->metrics[i].name, '/');
    int stem = slash ? (int)(slash - v->metrics[i].name) : 0,
        n = slash ? count_parts(v, i, stem) : 0;
    double low = INFINITY, high = -INFINITY;
    if (n < 2) return 0;
    for (int k = i; k < i + n; k++) {
        low = fmin(low, v->metrics[k].value);
        high = fmax(high, v->metrics[k].value);
    }
    ls_buf_printf(out, ", %.*s of %d from %.4f to %.4f", stem, v->metrics[i].name, n, low, high);
    return n;
}

void ls_evaluation_print(const ls_evaluation *v, ls_buf *out) {
    for (int i = 0; i < v->nmetrics; i++) {
        const ls_metric_value *m = &v->metrics[i];
        int parts = print_parts(v, i, out);
        if (parts) {
            i += parts - 1;
            continue;
        }
        char text[LS_LOSS_TEXT];
        if (isnan(m->value))
            ls_buf_printf(out, ", %s -", m->name);
        else if (fabs(m->value) < 0.01 && m->value != 0)
            ls_buf_printf(out, ", %s %.3g", m->name, m->value);
        else
            ls_buf_printf(out, ", %s %s", m->name, ls_loss_text(m->value, text));
    }
}
