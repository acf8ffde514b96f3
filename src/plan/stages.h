/* stages.h - where a model can be cut into stages of a pipeline. */
#ifndef LS_PLAN_STAGES_H
#define LS_PLAN_STAGES_H

#include "model/model.h"

/* The most stages that a model can be cut into. */
int ls_stages_most(const ls_model *);
/* Of a model of chunks: is all that layers from `layer` on read of those before it one value of each
 * chunk, or one of each slice in each chunk, which may go to another worker one micro-batch at a
 * time? And do layers of all chunks with the same parameters lie on one side? */
bool ls_stages_cut_chunks(const ls_model *, int layer);
/* Sets the stage of each layer [nlayers], so that the largest of n stages has the least work.
 * false: the model can't be cut into so many. */
bool ls_stages_cut(const ls_model *, int n, int *stage_of);

#endif
