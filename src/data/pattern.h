/* pattern.h - a regular expression that finds words in a text; the one file that knows PCRE2.
 *
 * The expressions are those of tokenizer.json, which Hugging Face's tokenizers gives to Oniguruma.
 * An expression is taken only if PCRE2 gives it the same meaning: literal characters, \r \n \t \f,
 * \s \S \d \D, \p{..} and \P{..} with a general category (L, Lu, N...), classes of these, groups,
 * alternatives, quantifiers, look-ahead and look-behind, and (?i:..) around ASCII. All else is
 * refused.
 *
 * What \p{L} and the others contain depends on the version of Unicode that PCRE2 was built with: a
 * newer library differs only for characters that were added to Unicode since then.
 */
#ifndef LS_DATA_PATTERN_H
#define LS_DATA_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef struct ls_pattern ls_pattern; /* doesn't change once it is made: any threads may use it */

/* `what` names the place of the expression in messages. LS_EINVAL: it is not a regular expression,
 * has something that is not in the list above, or can match an empty text. */
ls_status ls_pattern_create(const char *regex, const char *what, ls_pattern **p_p, ls_error *);
void ls_pattern_free(ls_pattern *); /* NULL is allowed */

typedef struct ls_matcher ls_matcher; /* one thread at a time; the pattern must outlive it */

ls_matcher *ls_matcher_create(const ls_pattern *);
void ls_matcher_free(ls_matcher *); /* NULL is allowed */

typedef struct ls_match {
    size_t from, to; /* bytes */
} ls_match;

/* Finds the first match in text [nbytes], valid UTF-8, that begins at `at` or later. If there is
 * none, both ends are nbytes. LS_EINVAL: the expression backtracks too often; the message has
 * PCRE2's reason alone. */
ls_status ls_matcher_find(ls_matcher *, const uint8_t *text, size_t nbytes, size_t at,
                          ls_match *m_p, ls_error *);

#endif
