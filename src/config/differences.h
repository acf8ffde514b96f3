/* differences.h - the keys in which configs differ, and those in which they may. */
#ifndef LS_CONFIG_DIFFERENCES_H
#define LS_CONFIG_DIFFERENCES_H

#include "base/json.h"
#include "config/config.h"

/* An array with an object for each key that has not the same value in all configs [n]: "key",
 * "values" (a text for each config), and "bits": may the difference change the bits of a run? What
 * the files of data.path contain is not compared. The caller frees it. */
ls_json *ls_config_differences(const ls_config *const *, int n);

/* An object: the keys that differ and steer the next steps of a resumed run (key.h), each with both
 * values as texts, [was, now]. The caller frees it. */
ls_json *ls_config_changes(const ls_config *was, const ls_config *now);

/* Appends the settings that must match on hosts that train together: a line with name and value
 * for each key, except keys that concern one host alone. */
void ls_config_must_match(const ls_config *, ls_buf *);

/* May a resumed run change the key, although the next steps then have other bits (key.h)? */
bool ls_config_is_steered(const char *key);

/* The first key that affects the bits and differs; NULL: there is none. */
const char *ls_config_find_fixed(const ls_config *was, const ls_config *now);

/* Checks that a run with config `was` can be resumed with config `now`. LS_EINVAL names the first
 * key that must not differ. Keys that can't affect the bits (parallel, checkpoint, log,
 * micro_batch, eval) may differ. So may those that steer the next steps (key.h), train.steps,
 * parallel.reduce and data.path (the run has saved its tokens); for these *note_p is set to
 * sentences to print, to be free()d by the caller, else to NULL. */
ls_status ls_config_compatible(const ls_config *was, const ls_config *now, char **note_p,
                               ls_error *);

#endif
