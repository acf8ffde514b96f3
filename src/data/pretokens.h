/* pretokens.h - cuts a text into words, before any merge.
 *
 * Merges never cross a cut. The words follow each other without gaps: joined, they are the text.
 * A pretokenizer is a list of steps; each cuts the pieces that the step before it made. Without a
 * step, a text is one word.
 */
#ifndef LS_DATA_PRETOKENS_H
#define LS_DATA_PRETOKENS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "data/pattern.h"

/* How Llama 3, Qwen 2, Mistral's Tekken and GPT-4o cut, from their tokenizer.json. */
#define LS_REGEX_LLAMA3                                                                            \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"                       \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LS_REGEX_QWEN2                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"                            \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LS_REGEX_TEKKEN                                                                            \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"    \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"   \
    "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define LS_REGEX_GPT4O                                                                             \
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"    \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"                                                                \
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"   \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"                                                                \
    "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

typedef enum ls_cut_kind {
    LS_CUT_GPT2,       /* as GPT-2 cuts */
    LS_CUT_EXPRESSION, /* each match of a regular expression, and each gap between two, is a word */
    LS_CUT_DIGIT,      /* each digit, or other number of one character, is a word */
    LS_CUT_DIGITS,     /* each run of digits is */
    LS_CUT_SPACES,     /* a word begins with each run of spaces */
    LS_CUT_SPACE       /* a word begins with each space */
} ls_cut_kind;

typedef struct ls_cut_step {
    ls_cut_kind kind;
    int grammar;         /* of pretokens.c */
    char *regex;         /* LS_CUT_EXPRESSION: as it was given */
    ls_pattern *pattern; /* NULL: none is needed */
} ls_cut_step;

enum { LS_MAX_CUT_STEPS = 6 };

/* Doesn't change once it is made: any threads may use it. A zero-initialised one has no step. */
typedef struct ls_pretokenizer {
    ls_cut_step steps[LS_MAX_CUT_STEPS];
    int nsteps;
} ls_pretokenizer;

/* Is it an expression that is known to leave no character of any text unmatched? */
bool ls_pretokenizer_covers(const char *regex);

/* Adds a step after the others. regex: of LS_CUT_EXPRESSION, else NULL. `what` names its place in
 * messages. LS_EINVAL: the expression is refused (pattern.h), or there are too many steps. */
ls_status ls_pretokenizer_add(ls_pretokenizer *, ls_cut_kind, const char *regex, const char *what,
                              ls_error *);
void ls_pretokenizer_free(ls_pretokenizer *);

typedef struct ls_pretokens ls_pretokens; /* one thread at a time */

/* The pretokenizer must outlive it. */
ls_pretokens *ls_pretokens_create(const ls_pretokenizer *);

/* Begins with a text, valid UTF-8, which is borrowed. */
void ls_pretokens_begin(ls_pretokens *, const uint8_t *text, size_t nbytes);

/* The next word, a part of the text; *nbytes_p is 0 at the end. LS_EINVAL: an expression backtracks
 * too often; `what` names the text. */
ls_status ls_pretokens_next(ls_pretokens *, const char *what, const uint8_t **word_p,
                            size_t *nbytes_p, ls_error *);

void ls_pretokens_free(ls_pretokens *); /* NULL is allowed */

#endif
