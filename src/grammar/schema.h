/* schema.h - the JSON texts that a schema allows, as a grammar.
 *
 * What a grammar allows is valid by the schema; some valid texts are not written: there is no
 * white space, properties come in the schema's order, and those that it does not name are there
 * only if additionalProperties or patternProperties say so (only their names may repeat, which no
 * automaton can know); an array has all items of prefixItems, and items of an enum with more than
 * LS_DISTINCT_VALUES values that must differ come in its order; where keywords about one type
 * stand without `type`, values are of that type; strings have no more \ than they need, and where
 * their length has a limit at most LS_SCHEMA_LONGEST characters; numbers have at most 18 digits,
 * and multiples 15; values are nested at most LS_GRAMMAR_DEPTH deep.
 *
 * The keywords are those of schema_keywords.c. allOf, $ref, and keywords beside them make sets of
 * schemas (schema_set.h). The schemas of oneOf must be told apart (schema_values.h). Keywords that
 * JSON Schema does not know say nothing. Those that it knows and that are not supported are
 * refused by name. Source: JSON Schema 2020-12, and drafts 4 to 2019-09 where they differ.
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

/* What an object's members stand between, if their values are texts: strings as they are, without
 * quotes, others as JSON. No string has value_end in it. */
typedef struct ls_schema_marks {
    const char *key, *key_end, *value_end;
} ls_schema_marks;

#define LS_SCHEMA_NOT_IN_KEYS "<>\n" /* characters that members' names then can't have */

/* One to `most` of them, with a text between two, between `first` and `last`. */
typedef struct ls_schema_texts {
    const ls_schema_text_part *list; /* [n] */
    size_t n;
    const char *first, *between, *last;
    int most;
    const ls_schema_marks *marks; /* NULL: values are JSON */
} ls_schema_texts;

ls_status ls_grammar_of_texts(const ls_schema_texts *, const ls_byte_set *, ls_grammar **g_p,
                              ls_error *);
/* Any JSON object. */
ls_status ls_grammar_of_object(const ls_byte_set *, ls_grammar **g_p, ls_error *);

#endif
