/* schema_keywords.h - what the keywords of the schemas of a set are, and are about. */
#ifndef LS_GRAMMAR_SCHEMA_KEYWORDS_H
#define LS_GRAMMAR_SCHEMA_KEYWORDS_H

#include "grammar/schema_rules.h"

/* The set with what its schemas refer to by $ref, allOf and
 * conditions. LS_EINVAL: a keyword is not supported,
 * or a schema refers to itself. */
ls_status ls_schema_gather(ls_schema_rules *, const ls_schema_set *, ls_schema_set **all_p);
/* What a $ref leads to. */
ls_status ls_schema_follow(const ls_schema_rules *, const ls_schema_part *, ls_schema_part *to_p);
/* Does the schema say something that is still to be looked at? */
bool ls_schema_says(const ls_schema_part *);
bool ls_schema_is_ref(const ls_schema_part *); /* it says $ref alone */

bool ls_schema_is_keyword(const char *name);

/* The types that all schemas of a gathered set allow, 0: they have none in common; without `type`
 * those that their keywords are about, or all. *about_p: the types that there are keywords
 * about. */
ls_status ls_schema_types(const ls_schema_rules *, const ls_schema_set *, unsigned *types_p,
                          unsigned *about_p);
/* Raises *least, and lowers *most, to what the keywords (keys[0]: at least, keys[1]: at most) say.
 * They may contradict each other. */
ls_status ls_schema_counts(const ls_schema_rules *, const ls_schema_set *,
                           const char *const keys[2], int64_t *least, int64_t *most);

#endif
