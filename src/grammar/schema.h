/* schema.h - the JSON texts that a schema allows, as a grammar.
 *
 * What a grammar allows is valid by the schema; some valid texts are not written: there is no white
 * space, properties come in the schema's order, and those that it does not name are there only if
 * additionalProperties says so (only their names may repeat, which no automaton can know); an array
 * has all items of prefixItems; where keywords about one type stand without `type`, values are of
 * that type; strings have no more \ than they need; numbers have at most 18 digits; values are
 * nested at most LS_GRAMMAR_DEPTH deep.
 *
 * Keywords: type (also a list), properties, required, additionalProperties, items, prefixItems,
 * minItems, maxItems, minLength, maxLength, pattern, format, minimum, maximum, exclusiveMinimum,
 * exclusiveMaximum, enum, const, anyOf, oneOf of schemas that are told apart (schema_values.h),
 * allOf of one schema, $ref within the schema. Those that only describe are skipped. All others are
 * refused by name. Source: JSON Schema 2020-12.
 */
#ifndef LS_GRAMMAR_SCHEMA_H
#define LS_GRAMMAR_SCHEMA_H

#include "base/json.h"
#include "grammar/grammar.h"

/* LS_EINVAL: a keyword is not supported, or the grammar is too large; the message says where. */
ls_status ls_grammar_of_schema(const ls_json *schema, const ls_byte_set *, ls_grammar **g_p,
                               ls_error *);
/* Texts with a value between others. */
typedef struct ls_schema_text_part {
    char *before;
    const ls_json *schema; /* NULL: any object */
    const char *after;
} ls_schema_text_part;

/* One to `most` of them, with a text between two. */
typedef struct ls_schema_texts {
    const ls_schema_text_part *list; /* [n] */
    size_t n;
    const char *between;
    int most;
} ls_schema_texts;

ls_status ls_grammar_of_texts(const ls_schema_texts *, const ls_byte_set *, ls_grammar **g_p,
                              ls_error *);
/* Any JSON object. */
ls_status ls_grammar_of_object(const ls_byte_set *, ls_grammar **g_p, ls_error *);

#endif
