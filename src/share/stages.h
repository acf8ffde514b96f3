/* stages.h - where a model can be cut into stages of a pipeline. */
#ifndef LS_SHARE_STAGES_H
#define LS_SHARE_STAGES_H

#include "model/model.h"

/* May a stage begin with this layer? The gradient of what it reads goes back one micro-batch at a
 * time. */
bool ls_stages_may_begin(const ls_model *, int layer);
/* The most stages that a model can be cut into. */
int ls_stages_most(const ls_model *);
/* Sets the stage of each layer [nlayers], so that the largest of n stages has the least work.
 * false: the model can't be cut into n. */
bool ls_stages_cut(const ls_model *, int n, int *stage_of);

#endif
