/* network.h - the model that a config describes (model.kind). */
#ifndef LS_NETWORKS_NETWORK_H
#define LS_NETWORKS_NETWORK_H

#include "config/config.h"
#include "model/model.h"

/* LS_EINVAL: the config describes no model; the message names the layer. */
ls_status ls_network_create(const ls_config *, ls_model *m_p, ls_error *);

#endif
