/* relations.h - what must hold between the keys of a config. */
#ifndef LS_CONFIG_RELATIONS_H
#define LS_CONFIG_RELATIONS_H

#include "config/config.h"

/* Checks the relations between keys: heads divide width, virtual workers divide the batch, ...
 * `where` names the config's source in messages. */
ls_status ls_config_check(const ls_config *, const char *where, ls_error *);

/* The part of that which depends on train.steps: again, once train.epochs has decided these. */
ls_status ls_config_check_steps(const ls_config *, const char *where, ls_error *);

/* Two keys depend on others where they are not written: optim.min_lr is a tenth of a small
 * optim.lr, and train.virtual_workers divides train.batch. */
void ls_config_fit_defaults(ls_config *);

/* Reads the file `path`, sets the keys of sets [nsets], each "KEY=VALUE", and checks the result.
 * Logs which keys of the file don't act any more by a set one. */
ls_status ls_config_load(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                         ls_error *);

/* Reads a run's own config, which ends with a whole line: the keys that a file which is cut short
 * lacks would have their defaults. */
ls_status ls_config_read_saved(const char *path, ls_config *c_p, ls_error *);

/* As ls_config_load(), for a run's own config: the keys of the file are not written anew (needs.h),
 * those of `sets` are. */
ls_status ls_config_load_saved(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                               ls_error *);

/* Does a tokenizer with ntokens tokens fit model.vocab? A model that has come with its tokenizer
 * may have more rows than tokens. */
bool ls_config_fits_tokens(const ls_config *, uint32_t ntokens);

/* The run or published model with which a run begins; "": it begins with none. */
const char *ls_config_origin(const ls_config *);

#endif
