/* measure.h - what is measured of each sample beside its loss: the numbers behind metrics.
 *
 * A measure is a layer that no other layer reads. It runs in evaluation alone, after the model's
 * layers: plans and executors do not know it. It gives two numbers a sample.
 */
#ifndef LS_MODEL_MEASURE_H
#define LS_MODEL_MEASURE_H

#include "model/layer.h"

enum { LS_MEASURES = 16, LS_MEASURE_NAME = 32 };

typedef enum ls_measure_kind {
    LS_MEASURE_MEAN,     /* a sum, and of how many: the mean over all samples */
    LS_MEASURE_ROOT,     /* the same: the root of the mean */
    LS_MEASURE_AUC,      /* a score, and the class: 1, 0, or negative: it does not count */
    LS_MEASURE_CONFUSION /* the predicted class, and the right one; negative: it does not count */
} ls_measure_kind;

typedef struct ls_measure {
    char name[LS_MEASURE_NAME]; /* of the metric; "": it has none yet */
    ls_measure_kind kind;
    bool is_default; /* no call of the model's builder has asked for it */
    int classes;     /* CONFUSION */
    ls_layer layer;  /* it writes `losses` [n][2] of its calls */
} ls_measure;

/* What is known of a sample after its evaluation. */
enum { LS_RECORD_LOSS, LS_RECORD_WEIGHT, LS_RECORD_VALUES };

/* Numbers of a record: those above, and two for each measure. */
static inline size_t ls_record_size(int nmeasures) {
    return LS_RECORD_VALUES + 2 * (size_t)nmeasures;
}

#endif
