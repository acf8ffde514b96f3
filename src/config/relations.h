/* relations.h - what must hold between the keys of a config, and between two configs. */
#ifndef LS_CONFIG_RELATIONS_H
#define LS_CONFIG_RELATIONS_H

#include "config/config.h"

/* Checks the relations between keys: heads divide width, virtual workers divide the batch, ...
 * `where` names the config's source in messages. */
ls_status ls_config_check(const ls_config *, const char *where, ls_error *);

/* The part of that which depends on train.steps: again, once train.epochs has decided these. */
ls_status ls_config_check_steps(const ls_config *, const char *where, ls_error *);

/* The usual optim.min_lr may be more than a small optim.lr: where it is not written, it becomes a tenth
 * of that. */
void ls_config_lower_min_lr(ls_config *);

/* Reads the file `path`, sets the keys of sets [nsets], each "KEY=VALUE", and checks the result. Logs
 * which keys of the file don't act any more by a set one. */
ls_status ls_config_load(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                         ls_error *);

/* The same of a run's own config: its keys are not written anew (needs.h), those of `sets` are. */
ls_status ls_config_load_saved(const char *path, const char *const *sets, int nsets, ls_config *c_p,
                               ls_error *);

/* Does a tokenizer with so many tokens fit model.vocab? A model that has come with its tokenizer
 * may have more rows than tokens. */
bool ls_config_fits_tokens(const ls_config *, uint32_t ntokens);

/* Appends the settings that must match on hosts that train together: a line with name and value
 * for each key, except keys that concern one host alone. */
void ls_config_must_match(const ls_config *, ls_buf *);

/* May a resumed run change the key, although the next steps then have other bits (keys.h)? */
bool ls_config_is_steered(const char *key);

/* The first key that affects the bits and differs; NULL: there is none. */
const char *ls_config_find_fixed(const ls_config *was, const ls_config *now);

/* Checks that a run with config `was` can be resumed with config `now`. LS_EINVAL names the first key
 * that must not differ. Keys that can't affect the bits (parallel, checkpoint, log, micro_batch,
 * eval) may differ. So may those that steer the next steps (keys.h), train.steps, parallel.reduce and
 * data.path (the run has saved its tokens); for these *note_p is set to sentences to print, to be
 * free()d by the caller, else to NULL. */
ls_status ls_config_compatible(const ls_config *was, const ls_config *now, char **note_p,
                               ls_error *);

/* The run or published model with which a run begins; "": it begins with none. */
const char *ls_config_origin(const ls_config *);

#endif
