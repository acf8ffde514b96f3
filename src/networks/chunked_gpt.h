/* chunked_gpt.h - GPT-2's architecture, whose samples are cut into chunks (chunked.h). It has the
 * parameters of ls_gpt_create(). */
#ifndef LS_NETWORKS_CHUNKED_GPT_H
#define LS_NETWORKS_CHUNKED_GPT_H

#include "config/config.h"
#include "model/model.h"

ls_status ls_chunked_gpt_create(const ls_config *, ls_model *m_p, ls_error *);

#endif
