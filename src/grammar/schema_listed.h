/* schema_listed.h - values that enum and const list. */
#ifndef LS_GRAMMAR_SCHEMA_LISTED_H
#define LS_GRAMMAR_SCHEMA_LISTED_H

#include "grammar/schema_rules.h"

/* The values of a gathered set: alternatives, *n_p of them; *x_p NULL: there are none. false: no
 * schema lists any. */
ls_status ls_schema_listed(ls_schema_rules *, const ls_schema_set *, const ls_expression **x_p,
                           size_t *n_p, bool *listed_p);

#endif
