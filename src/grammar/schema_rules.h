/* schema_rules.h - the rules of a schema's grammar while they are made: which there are, and where
 * in the schema they are from. */
#ifndef LS_GRAMMAR_SCHEMA_RULES_H
#define LS_GRAMMAR_SCHEMA_RULES_H

#include "base/json.h"
#include "grammar/regex.h"

enum { LS_SCHEMA_RULES = 5000, LS_SCHEMA_NESTED = 64, LS_SCHEMA_PARTS = 500000 };

/* What a rule allows. */
typedef enum ls_schema_rule_kind {
    LS_SCHEMA_OF, /* what a schema does */
    LS_SCHEMA_VALUE,
    LS_SCHEMA_OBJECT,
    LS_SCHEMA_STRING,
    LS_SCHEMA_TEXTS /* what its maker sets */
} ls_schema_rule_kind;

typedef struct ls_schema_rule {
    ls_schema_rule_kind kind;
    const ls_json *schema;  /* of LS_SCHEMA_OF */
    const ls_json *root;    /* the whole that the schema is in */
    char *path;             /* of the schema within the whole */
    const ls_expression *x; /* NULL: not yet made */
} ls_schema_rule;

typedef struct ls_schema_rules {
    ls_expressions pool;
    ls_schema_rule *list; /* [n] */
    uint32_t n;
    char *path;          /* of what is being read; not owned */
    const ls_json *root; /* the whole that it is in */
    ls_error *e;
} ls_schema_rules;

void ls_schema_rules_free(ls_schema_rules *);

/* A call of the rule, which is added if it is not there. */
const ls_expression *ls_schema_call(ls_schema_rules *, const ls_json *schema, const char *path);
const ls_expression *ls_schema_call_kind(ls_schema_rules *, ls_schema_rule_kind);

/* The expression of a rule that is of no schema. */
const ls_expression *ls_schema_any(ls_schema_rules *, ls_schema_rule_kind);
const ls_expression *ls_schema_text(ls_schema_rules *, const ls_json *value); /* this value */
/* A regular expression of ours. */
const ls_expression *ls_schema_regex(ls_schema_rules *, const char *regex);
/* A string's characters: from least to most. */
const ls_expression *ls_schema_chars(ls_schema_rules *, int64_t least, int64_t most);
/* What stands between a, b. */
const ls_expression *ls_schema_between(ls_schema_rules *, const char *a, const ls_expression *,
                                       const char *b);
/* The characters of a string that is none of these names [n], and its closing quote. */
const ls_expression *ls_schema_other_name(ls_schema_rules *, const char *const *names, size_t n);

#endif
