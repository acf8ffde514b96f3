/* sliced_gpt.h - GPT-2 whose products are cut into slices (sliced.h). The model of one slice is
 * model/gpt.h, whose layers are larger; both begin with the same weights. */
#ifndef LS_NETWORKS_SLICED_GPT_H
#define LS_NETWORKS_SLICED_GPT_H

#include "config/config.h"
#include "model/model.h"

/* A sample is tokens [model.context + 1]. LS_EINVAL: it can't be cut. */
ls_status ls_sliced_gpt_create(const ls_config *, ls_model *m_p, ls_error *);

#endif
