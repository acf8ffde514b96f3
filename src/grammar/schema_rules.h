/* schema_rules.h - the rules of a schema's grammar while they are made: which there are, and where
 * in the schema they are from.
 */
#ifndef LS_GRAMMAR_SCHEMA_RULES_H
#define LS_GRAMMAR_SCHEMA_RULES_H

#include "grammar/regex.h"
#include "grammar/schema_set.h"

enum {
    LS_SCHEMA_RULES = 5000,
    LS_SCHEMA_NESTED = 64,
    LS_SCHEMA_PARTS = 500000,
    LS_SCHEMA_SETS = 100000,
    LS_SCHEMA_LONGEST = 5000 /* characters of a string whose length has a limit */
};

/* Numbers without limits. */
#define LS_SCHEMA_NUMBER "-?(?:0|[1-9][0-9]{0,17})(?:\\.[0-9]{1,17})?(?:[eE][-+]?[0-9]{1,2})?"

/* What a rule allows. */
typedef enum ls_schema_rule_kind {
    LS_SCHEMA_OF, /* what all schemas of a set do */
    LS_SCHEMA_VALUE,
    LS_SCHEMA_OBJECT,
    LS_SCHEMA_MEMBER, /* what all schemas of a set do, as a text with its mark behind it */
    LS_SCHEMA_STRING, /* from `least` to `most` characters */
    LS_SCHEMA_TEXTS   /* what its maker sets */
} ls_schema_rule_kind;

typedef struct ls_schema_rule {
    ls_schema_rule_kind kind;
    const ls_schema_set *set; /* of LS_SCHEMA_OF, LS_SCHEMA_MEMBER */
    int64_t least, most;      /* of LS_SCHEMA_STRING */
    char *path;               /* of the first schema within the whole */
    const ls_expression *x;   /* NULL: not yet made */
} ls_schema_rule;

/* A oneOf that has been read, and what each of its schemas excludes. */
typedef struct ls_schema_choice {
    const ls_json *root;
    unsigned types;
    bool objects;            /* as in ls_schema_comparison */
    const ls_json **schemas; /* [n] what its references lead to */
    size_t n;
    ls_json *lists; /* [n] */
} ls_schema_choice;

typedef struct ls_schema_rules {
    ls_expressions pool;
    ls_schema_rule *list; /* [n] */
    uint32_t n;
    const char *path; /* of what is being read; not owned */
    ls_schema_sets sets;
    const struct ls_schema_marks *marks; /* of members that are texts; NULL: there are none */
    bool plain;     /* a member's value is read: strings are as they are, without quotes */
    ls_json **made; /* [nmade] schemas that are not in the document; each is there once */
    size_t nmade;
    ls_schema_choice *choices; /* [nchoices] */
    size_t nchoices;
    int64_t work; /* of comparisons */
    ls_error *e;
} ls_schema_rules;

void ls_schema_rules_free(ls_schema_rules *);

/* LS_EINVAL, with where in the schema it is. */
ls_status ls_schema_fail(const ls_schema_rules *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes a schema that is not in the document: it, or an equal one, lives as long as the rules. */
const ls_json *ls_schema_keep(ls_schema_rules *, ls_json *);

/* A call of the rule, which is added if it is not there. */
const ls_expression *ls_schema_call(ls_schema_rules *, const ls_schema_set *, const char *path);
/* That of a schema at path/word of what is being read. */
const ls_expression *ls_schema_call_child(ls_schema_rules *, const ls_schema_set *,
                                          const char *word);
const ls_expression *ls_schema_call_kind(ls_schema_rules *, ls_schema_rule_kind);
/* Of a member whose value is a text. */
const ls_expression *ls_schema_call_member(ls_schema_rules *, const ls_schema_set *,
                                           const char *name);
const ls_expression *ls_schema_call_string(ls_schema_rules *, int64_t least, int64_t most);

/* The expression of a rule that is of no schema. */
const ls_expression *ls_schema_any(ls_schema_rules *, const ls_schema_rule *);
const ls_expression *ls_schema_text(ls_schema_rules *, const ls_json *value); /* this value */
/* A regular expression of ours. */
const ls_expression *ls_schema_regex(ls_schema_rules *, const char *regex);
/* A string's characters: from least to most. */
const ls_expression *ls_schema_chars(ls_schema_rules *, int64_t least, int64_t most);
/* What stands between a, b. */
const ls_expression *ls_schema_between(ls_schema_rules *, const char *a, const ls_expression *,
                                       const char *b);
/* A string without its quotes, by the value. */
const ls_expression *ls_schema_unquoted(ls_schema_rules *, const char *text);
/* One of these strings [n], without quotes; NULL: there are none. */
const ls_expression *ls_schema_any_text(ls_schema_rules *, const char *const *texts, size_t n);

#endif
