/* family.h - the family of published models that a config's model belongs to
 * (weights/architecture.h).
 */
#ifndef LS_NETWORKS_FAMILY_H
#define LS_NETWORKS_FAMILY_H

#include "config/config.h"
#include "weights/architecture.h"

/* The architecture of kind gpt2 or llama in the family that has all its parts, without ids of
 * tokens. Its context is model.context. LS_EINVAL: it is of another kind, or no family has these
 * parts together. */
ls_status ls_family_of(const ls_config *, ls_architecture *a_p, ls_error *);

/* Makes it that of a Phi-3, whose files differ from those of a Llama or a Mistral with the same
 * config. False: it can't be one, and stays. */
bool ls_family_as_phi3(ls_architecture *);

#endif
