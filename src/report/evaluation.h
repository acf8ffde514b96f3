/* evaluation.h - the loss on samples, in comparable units, and the model's metrics. */
#ifndef LS_REPORT_EVALUATION_H
#define LS_REPORT_EVALUATION_H

#include "base/mem.h"
#include "model/model.h"

typedef struct ls_metric_value {
    char name[LS_MEASURE_NAME];
    double value; /* NaN: no sample counts; AUC: or all are of one class */
} ls_metric_value;

typedef struct ls_evaluation {
    double loss;          /* mean, nats a target */
    double bits_per_byte; /* of the text that the targets stand for; 0: they are no text */
    uint64_t nsamples;
    int nmetrics;
    ls_metric_value metrics[LS_NOTES + LS_MEASURES];
} ls_evaluation;

/* Writes a loss as people read it: 2.3451, and 1.96943e+17 where it has diverged. Returns
 * `text`. */
enum { LS_LOSS_TEXT = 32 };
const char *ls_loss_text(double, char text[LS_LOSS_TEXT]);

/* From the sum of losses over samples [nsamples], each with this number of targets, which stand for
 * `nbytes` bytes of text; nbytes 0: for none. */
ls_evaluation ls_evaluation_of(double nats, double nbytes, uint64_t nsamples, int64_t targets);

/* From the records [n][ls_record_size()] of samples: the mean loss by weights, and metrics but
 * those of ranks (infer/ranking.h). */
ls_evaluation ls_evaluation_of_records(const ls_model *, const double *records, uint64_t n,
                                       double nbytes);

/* Appends ", accuracy 0.9312" for each metric, ", auc -" for one without a value. */
void ls_evaluation_print(const ls_evaluation *, ls_buf *);

/* The area under the receiver operating characteristic of pairs [n] of a score and a class (1, 0,
 * or negative: not counted), each `stride` doubles after the one before: exact, by ranks. NaN: one
 * of the classes has no sample, or a score is not a number. */
double ls_evaluation_auc(const double *pairs, uint64_t n, size_t stride);

#endif
