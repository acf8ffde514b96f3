/* schema_set.h - schemas by all of which a value must be valid.
 *
 * A set takes the place of a schema: $ref and allOf put further schemas into it, a choice of anyOf
 * or oneOf one more. What the set says of a property, or of an item, is again a set. Since a
 * document has so many schemas, it has a limited number of sets, and a recursive schema has a
 * limited number of rules.
 */
#ifndef LS_GRAMMAR_SCHEMA_SET_H
#define LS_GRAMMAR_SCHEMA_SET_H

#include "base/json.h"

/* What of a schema is no longer to be looked at. */
enum {
    LS_DONE_ANY_OF = 1,
    LS_DONE_ONE_OF = 2,
    LS_DONE_OTHERS = 4 /* $ref, allOf, conditions: what they lead to is in the set */
};

typedef struct ls_schema_part {
    const ls_json *schema;
    const ls_json *root; /* the whole that the schema is in: where pointers begin */
    unsigned done;
} ls_schema_part;

typedef struct ls_schema_set ls_schema_set;
struct ls_schema_set {
    ls_schema_part *list; /* [n]; none: any value */
    size_t n;
    bool never;          /* no value */
    ls_schema_set *next; /* of the pool */
};

/* Owns them. Initially {0}. */
typedef struct ls_schema_sets {
    ls_schema_set *first;
    size_t n;
} ls_schema_sets;

void ls_schema_sets_free(ls_schema_sets *);
ls_schema_set *ls_schema_set_new(ls_schema_sets *);

/* Adds a schema, unless it is there. true says nothing; false allows no value. An $id begins a
 * whole of its own. */
void ls_schema_set_add(ls_schema_set *, ls_schema_part);
bool ls_schema_set_equal(const ls_schema_set *, const ls_schema_set *);

#endif
