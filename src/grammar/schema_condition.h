/* schema_condition.h - not, if and dependencies as choices. */
#ifndef LS_GRAMMAR_SCHEMA_CONDITION_H
#define LS_GRAMMAR_SCHEMA_CONDITION_H

#include "grammar/schema_rules.h"

/* A keyword of ours: strings that are not written. */
#define LS_SCHEMA_NOT_LISTED "!"

/* A schema for what these keywords say, by allOf, anyOf and others; NULL: they are not there. A
 * value that is valid by it satisfies them. LS_EINVAL: there is no such schema. */
ls_status ls_schema_conditions(ls_schema_rules *, const ls_schema_part *, const ls_json **schema_p);

#endif
