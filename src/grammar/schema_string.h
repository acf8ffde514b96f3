/* schema_string.h - the strings that the schemas of a set allow. */
#ifndef LS_GRAMMAR_SCHEMA_STRING_H
#define LS_GRAMMAR_SCHEMA_STRING_H

#include "grammar/schema_rules.h"

ls_status ls_schema_string(ls_schema_rules *, const ls_schema_set *, const ls_expression **x_p);
/* Without their quotes, and without calls. */
ls_status ls_schema_string_chars(ls_schema_rules *, const ls_schema_set *,
                                 const ls_expression **x_p);
/* Names by the schemas of propertyNames: also with enum, const; not with anyOf, oneOf. */
ls_status ls_schema_names(ls_schema_rules *, const ls_schema_set *, const ls_expression **x_p);
/* Strings, without quotes, in which the expression matches. text NULL: it is missing. */
ls_status ls_schema_pattern(ls_schema_rules *, const char *keyword, const char *text,
                            const ls_expression **x_p);

#endif
