/* differences.h - the keys in which configs differ. */
#ifndef LS_CONFIG_DIFFERENCES_H
#define LS_CONFIG_DIFFERENCES_H

#include "base/json.h"
#include "config/config.h"

/* An array with an object for each key that has not the same value in all configs [n]: "key",
 * "values" (a text for each config), and "bits": may the difference change the bits of a run? What
 * the files of data.path contain is not compared. The caller frees it. */
ls_json *ls_config_differences(const ls_config *const *, int n);

/* Of two configs, as an object: the keys that steer the next steps of a resumed run (keys.h) and
 * differ, each with both values as texts, [was, now]. The caller frees it. */
ls_json *ls_config_changes(const ls_config *was, const ls_config *now);

#endif
