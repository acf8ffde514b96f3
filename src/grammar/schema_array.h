/* schema_array.h - the arrays that the schemas of a set allow. */
#ifndef LS_GRAMMAR_SCHEMA_ARRAY_H
#define LS_GRAMMAR_SCHEMA_ARRAY_H

#include "grammar/schema_rules.h"

ls_status ls_schema_array(ls_schema_rules *, const ls_schema_set *, const ls_expression **x_p);

#endif
