/* network.h - the model that a config describes (model.kind).
 *
 * A model of samples reads the fields that model.input names, and predicts those that model.loss
 * names. The data decide what a config leaves open (ls_network_resolve()): a run's own
 * config.yaml has all of it, so that its model needs no data.
 */
#ifndef LS_NETWORKS_NETWORK_H
#define LS_NETWORKS_NETWORK_H

#include "config/config.h"
#include "model/model.h"

/* LS_EINVAL: the config describes no model; the message names the file, the line and the layer. */
ls_status ls_network_create(const ls_config *, ls_model *m_p, ls_error *);
/* Creates the network for a plan: samples are cut into chunks (chunked.h), or the rows of samples
 * are divided (parallel.sequence). */
ls_status ls_network_create_cut(const ls_config *, ls_model *m_p, ls_error *);

/* Does the config leave open what the data decide? */
bool ls_network_is_open(const ls_config *);
/* Sets model.input and model.classes as the data have them, where the config leaves them open.
 * LS_EINVAL: they don't have what the loss needs. */
ls_status ls_network_resolve(ls_config *, const ls_source *, ls_error *);
/* Raises train.micro_batch to what the model needs: to whole units (ls_model_unit_samples()). Where
 * the config leaves it out, to what is computed together (parallel.expert_virtual), times a power
 * of two that makes 256 rows, so that products are fast, and notes that it was chosen
 * (config/needs.h); in a pipeline it stays small, and if a layer joins samples (model/layer.h) it
 * is all samples of a virtual worker. */
void ls_network_choose_micro(ls_config *);

#endif
