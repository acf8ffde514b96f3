/* config_rope.h - the rotations of a config.json: rope_theta, rope_scaling, and rope_parameters of
 * transformers 5, which must say the same where a file has both.
 */
#ifndef LS_WEIGHTS_CONFIG_ROPE_H
#define LS_WEIGHTS_CONFIG_ROPE_H

#include "weights/architecture.h"
#include "weights/published_keys.h"

/* base: the family's, for a file that leaves it out. parameters: rope_parameters; NULL: the file
 * has none. */
ls_status ls_config_rope_read(ls_published_keys *, double base, const ls_json *parameters,
                              ls_rotation *);
/* *local_p: the base in layers with a window. */
ls_status ls_config_rope_read_gemma(ls_published_keys *, double base, ls_rotation *,
                                    double *local_p);
/* Sets rope, turned and divisors. */
ls_status ls_config_rope_read_phi(ls_published_keys *, double base, ls_architecture *);

#endif
