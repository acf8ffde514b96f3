/* regex.h - reads a regular expression.
 *
 * Characters, . [...] [^...] (...) (?:...) (?<name>...) | * + ? {n} {n,} {n,m}, \d \w \s \D \W \S,
 * \n \t \r \f \v \xHH \uHHHH, and \ before a character that has a meaning. Classes and . are
 * ECMAScript's: \d and \w of ASCII, \s all white space of Unicode, . any character but \n, \r,
 * U+2028 and U+2029. ^ and $ may begin and end the expression, or one of its outermost
 * alternatives. All else (look-around, \b, references, flags, \p) is refused by name.
 */
#ifndef LS_GRAMMAR_REGEX_H
#define LS_GRAMMAR_REGEX_H

#include "base/error.h"
#include "grammar/expression.h"

typedef struct ls_regex_options {
    bool quoted;   /* its characters are written as JSON's strings have them */
    bool anywhere; /* a text that contains a match is one, as in JSON Schema; else all of it is the
                    * match */
} ls_regex_options;

/* text [n] is UTF-8. LS_EINVAL: it is no expression, or has something that is not in the list
 * above. */
ls_status ls_regex_read(ls_expressions *, const char *text, size_t n, const ls_regex_options *,
                        const ls_expression **x_p, ls_error *);

#endif
