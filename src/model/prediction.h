/* prediction.h - what a model predicts: the values that its losses compare with targets.
 *
 * A prediction needs neither the targets nor the losses: only the layers on which it depends are
 * computed, and of a sample only the fields that these layers read.
 */
#ifndef LS_MODEL_PREDICTION_H
#define LS_MODEL_PREDICTION_H

#include "lockstep/infer.h"
#include "model/model.h"

enum { LS_PREDICTIONS = 32 };

typedef struct ls_prediction {
    char name
        [LS_FIELD_NAME]; /* the field that it predicts; if that is none, the loss, or the layer */
    ls_output_kind kind;
    int layer;     /* that computes it */
    bool is_fused; /* the layer is the loss itself, whose forward without losses writes logits */
    int64_t rows, width; /* numbers of a sample: rows times width; CLASSES: width classes a row */
    int64_t dims[LS_PARAM_DIMS]; /* shape, ended by 0 */
} ls_prediction;

/* The predictions of a model whose layers read fields: list_p [LS_PREDICTIONS]. Returns how many;
 * 0: its losses predict nothing. */
int ls_predictions_of(const ls_model *, ls_prediction *list_p);

/* What the predictions need: layers [nlayers] and fields [ninputs] of the model. */
void ls_predictions_need(const ls_model *, const ls_prediction *list, int n, bool *layers,
                         bool *fields);

static inline int64_t ls_prediction_count(const ls_prediction *p) { return p->rows * p->width; }

#endif
