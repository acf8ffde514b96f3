/* model_step.h - of which step the model in a checkpoint is. */
#ifndef LS_STORAGE_MODEL_STEP_H
#define LS_STORAGE_MODEL_STEP_H

#include "config/config.h"

/* Logs it where that is not the checkpoint's step (ls_config_model_step()). what: names the
 * checkpoint. */
void ls_model_step_log(const ls_config *, int64_t steps, const char *what);

#endif
