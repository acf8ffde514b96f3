/* phases.h - train.batch as a list: from which step on a step has how many samples.
 *
 *     train:
 *       batch: [[0, 64], [2000, 128]]
 *
 * train.batch is then the largest of them; plans and buffers are made for it.
 */
#ifndef LS_CONFIG_PHASES_H
#define LS_CONFIG_PHASES_H

#include "config/config.h"

/* Reads the list (train.phased) into train.phases, nphases and batch. where: "path:line" or
 * "--set"; it begins messages. LS_EINVAL: it is no list of pairs, the first does not begin at step
 * 0, steps do not grow, or a number is out of range. */
ls_status ls_config_read_phases(ls_config *, const char *where, ls_error *);
/* One batch for all steps: the list is dropped. */
void ls_config_set_batch(ls_config *, int64_t batch);

#endif
