/* schema_values.h - what the keywords of JSON schemas say of values: types, equal values, where
 * another schema is; and whether a value can be valid by two schemas.
 */
#ifndef LS_GRAMMAR_SCHEMA_VALUES_H
#define LS_GRAMMAR_SCHEMA_VALUES_H

#include "base/json.h"

/* Types of values; a set of them is a sum. */
enum {
    LS_TYPE_NULL = 1,
    LS_TYPE_BOOLEAN = 2,
    LS_TYPE_OBJECT = 4,
    LS_TYPE_ARRAY = 8,
    LS_TYPE_STRING = 16,
    LS_TYPE_INTEGER = 32,
    LS_TYPE_NUMBER = 64,
    LS_TYPE_ALL = 127
};

unsigned ls_schema_type_named(const char *name); /* 0: there is none; name may be NULL */
bool ls_schema_has_type(const ls_json *value, unsigned types);

/* The schema has an $id of its own, so that it is another document: pointers in it begin there. */
bool ls_schema_has_id(const ls_json *schema);
/* What a pointer (RFC 6901) leads to, within the document of this root; NULL: it is not there. */
const ls_json *ls_schema_find(const ls_json *root, const char *pointer);

enum { LS_SCHEMA_WORK = 300000, LS_SCHEMA_ALL_WORK = 10 * LS_SCHEMA_WORK };

/* Which schemas of one document have values in common. Initially {.root = ...}. */
typedef struct ls_schema_comparison {
    const ls_json *root; /* the whole document */
    unsigned types;      /* that values have which are written; 0: not known */
    bool objects; /* of schemas with keywords about objects, and no type, objects are written */
    int64_t work; /* that was done; beyond LS_SCHEMA_WORK all schemas are taken to overlap */
} ls_schema_comparison;

/* False: no value that is written is valid by both schemas. True: one may be. Told apart are
 * schemas of other types; lists of values without one in common; and objects, by a property that
 * one requires, and that the other excludes, or whose schemas are told apart. */
bool ls_schemas_overlap(ls_schema_comparison *, const ls_json *a, const ls_json *b);

/* Marks [n] schemas of a list of which no two overlap: those that list values, if these are
 * different; and those of objects alone, if they have different values of const or enum for one
 * property that all of them require. Takes a step for each value, where pairs take one for each two
 * schemas. */
void ls_schemas_tell_apart(ls_schema_comparison *, const ls_json *list, bool *apart);

/* What a schema's references lead to; itself, if that is not known. */
const ls_json *ls_schema_meant(const ls_schema_comparison *, const ls_json *schema);

/* The name of a property without which what is written by a is not valid by b: b requires it, and
 * a does not. NULL: there is none. */
const char *ls_schemas_part(ls_schema_comparison *, const ls_json *a, const ls_json *b);

#endif
