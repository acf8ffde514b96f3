/* network.c - see network.h. */
#include "networks/network.h"

#include "model/shape.h"

ls_status ls_network_create(const ls_config *c, ls_model *m_p, ls_error *e) {
    ls_gpt_config shape = ls_config_shape(c);
    return ls_gpt_create(&shape, m_p, e);
}
