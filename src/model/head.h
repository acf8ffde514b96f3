/* head.h - the logits that the head's forward leaves in its saved memory. */
#ifndef LS_MODEL_HEAD_H
#define LS_MODEL_HEAD_H

#include "model/layer.h"

/* [rows, V], in the saved memory of a forward. */
const float *ls_head_logits(const void *saved);

#endif
