/* relations.h - what must hold between the keys of a config, and between two configs. */
#ifndef LS_CONFIG_RELATIONS_H
#define LS_CONFIG_RELATIONS_H

#include "config/config.h"

/* Relations between keys: heads divide width, virtual workers divide the batch, ... `where` names
 * the source in messages. */
ls_status ls_config_check(const ls_config *, const char *where, ls_error *);

/* Appends what must match on hosts that train together: a line with name and value for each key,
 * but for those of one host alone. */
void ls_config_must_match(const ls_config *, ls_buf *);

/* Whether going on from a run with config `was` under config `now` gives the bits of a single run.
 * LS_EINVAL names the first key that must not differ. Keys that can't touch the bits (parallel,
 * checkpoint, log, micro_batch, eval) may differ; so may train.steps and data.path (the run keeps
 * its tokens), for which *note_p is set to a sentence to print (free() it) or NULL. */
ls_status ls_config_compatible(const ls_config *was, const ls_config *now, char **note_p,
                               ls_error *);

#endif
