/* cut_gpt.h - GPT-2 whose products are cut into slices, or samples into chunks (cut.h). The model
 * that is not cut is gpt2.h, whose layers are larger; all begin with the same weights. */
#ifndef LS_NETWORKS_CUT_GPT_H
#define LS_NETWORKS_CUT_GPT_H

#include "config/config.h"
#include "model/model.h"

/* A sample is tokens [model.context + 1]. whole: its rows are not cut, and the parameters are those
 * of the model in which they are. LS_EINVAL: it can't be cut. */
ls_status ls_cut_gpt_create(const ls_config *, bool whole, ls_model *m_p, ls_error *);

#endif
