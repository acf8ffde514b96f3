/* schema_number.h - the numbers that the schemas of a set allow. */
#ifndef LS_GRAMMAR_SCHEMA_NUMBER_H
#define LS_GRAMMAR_SCHEMA_NUMBER_H

#include "grammar/schema_rules.h"

/* whole: of type integer. Without calls. */
ls_status ls_schema_number(ls_schema_rules *, const ls_schema_set *, bool whole,
                           const ls_expression **x_p);

#endif
