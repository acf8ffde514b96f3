/* schema_object.h - the objects that the schemas of a set allow. */
#ifndef LS_GRAMMAR_SCHEMA_OBJECT_H
#define LS_GRAMMAR_SCHEMA_OBJECT_H

#include "grammar/schema_rules.h"

ls_status ls_schema_object(ls_schema_rules *, const ls_schema_set *, const ls_expression **x_p);
/* Its named members alone, in their order, between the rules' marks. May be empty. */
ls_status ls_schema_members(ls_schema_rules *, const ls_schema_set *, const ls_expression **x_p);

#endif
