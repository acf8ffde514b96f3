/* measure.h - measures of each sample beside its loss: the numbers behind metrics.
 *
 * A measure is a layer that no other layer reads. It runs in evaluation alone, after the model's
 * layers, and so do the layers that only measures depend on: plans and executors know neither. It
 * gives two numbers a sample; R2 gives two for each of the sample's targets, and measures of ranks
 * as many as there are scores.
 */
#ifndef LS_MODEL_MEASURE_H
#define LS_MODEL_MEASURE_H

#include "model/layer.h"

enum { LS_MEASURES = 16, LS_MEASURE_NAME = 32, LS_MEASURE_TARGETS = 64 };

typedef enum ls_measure_kind {
    LS_MEASURE_MEAN,      /* a sum, and of how many: the mean over all samples */
    LS_MEASURE_ROOT,      /* the same: the root of the mean */
    LS_MEASURE_R2,        /* of each target: the squared error, and the target; at most
                           * LS_MEASURE_TARGETS of them */
    LS_MEASURE_AUC,       /* a score, and the class: 1, 0, or negative: it does not count */
    LS_MEASURE_CONFUSION, /* the predicted class, and the right one; negative: it does not count */
    LS_MEASURE_HIT,       /* } all scores of the sample: the ranks of items (infer/ranking.h) */
    LS_MEASURE_NDCG       /* } */
} ls_measure_kind;

typedef struct ls_measure {
    char name[LS_MEASURE_NAME]; /* of the metric; "": it has none yet */
    ls_measure_kind kind;
    bool is_default;    /* no call of the model's builder has asked for it */
    int classes;        /* CONFUSION */
    int64_t k;          /* } HIT, NDCG: the first k items count, ranked among this number of */
    int64_t candidates; /* } drawn ones, or 0: all */
    int nvalues;        /* of a sample */
    size_t at;          /* of its values in a record */
    ls_layer layer;     /* it writes `losses` [n][nvalues] of its calls */
} ls_measure;

/* A loss may note further numbers of each sample, beside the loss itself: at most LS_NOTES of them.
 * Their means over the samples are metrics of each step, and of evaluations. */
enum { LS_NOTES = 140 };

/* The record of a sample after its evaluation. */
enum { LS_RECORD_LOSS, LS_RECORD_WEIGHT, LS_RECORD_VALUES };

struct ls_model;

/* Moves the layers that only measures depend on behind the others, which keep their order: layers
 * [nlayers, nlayers + nlate). Chooses the places of the measures' values. LS_EINVAL: such a layer
 * has parameters. */
ls_status ls_measures_place(struct ls_model *, ls_error *);

/* Numbers of a record: those above, what losses note, and the values of all measures. */
size_t ls_record_size(const struct ls_model *);

#endif
