/* pretokens.c - see pretokens.h.
 *
 * The regular expression of GPT-2 is that of Radford et al., "Language models are unsupervised
 * multitask learners", 2019, encoder.py; those of Llama 3 and Qwen 2 are known, too. Most words of
 * most texts are ASCII: for these three, scan() finds the end of such a word without PCRE2, with
 * the same result. Where a character that is not ASCII could change the end, and at an apostrophe,
 * PCRE2 decides.
 */
#include "data/pretokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { GRAMMAR_NONE, GRAMMAR_GPT2, GRAMMAR_LLAMA3, GRAMMAR_QWEN2 };

static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

/* The pieces that a step has to cut, and how far it is. */
typedef struct level {
    ls_matcher *matcher; /* NULL: the step has no pattern */
    const uint8_t *text; /* the piece [n] */
    size_t n, at;        /* the next word begins at `at` */
    ls_match found;      /* to > at: a match that lies ahead */
} level;

struct ls_pretokens {
    const ls_pretokenizer *how;
    const uint8_t *text; /* the whole text [n] until it is handed out; then NULL */
    size_t n;
    level levels[LS_MAX_CUT_STEPS];
};

/* ---- pretokenizers ---- */

static int grammar_of(ls_cut_kind kind, const char *regex) {
    if (kind == LS_CUT_GPT2) return GRAMMAR_GPT2;
    if (kind != LS_CUT_EXPRESSION) return GRAMMAR_NONE;
    if (strcmp(regex, gpt2) == 0) return GRAMMAR_GPT2;
    if (strcmp(regex, LS_REGEX_LLAMA3) == 0) return GRAMMAR_LLAMA3;
    return strcmp(regex, LS_REGEX_QWEN2) == 0 ? GRAMMAR_QWEN2 : GRAMMAR_NONE;
}

bool ls_pretokenizer_covers(const char *regex) {
    return grammar_of(LS_CUT_EXPRESSION, regex) != GRAMMAR_NONE ||
           strcmp(regex, LS_REGEX_GPT4O) == 0;
}

ls_status ls_pretokenizer_add(ls_pretokenizer *p, ls_cut_kind kind, const char *regex,
                              const char *what, ls_error *e) {
    static const char *const patterns[] = {
        [LS_CUT_GPT2] = gpt2, [LS_CUT_DIGIT] = "\\p{N}", [LS_CUT_DIGITS] = "\\p{N}+"};
    if (p->nsteps == LS_MAX_CUT_STEPS)
        return ls_fail(e, LS_EINVAL, "%s: there are more than %d steps", what, LS_MAX_CUT_STEPS);
    ls_cut_step step = {.kind = kind, .grammar = grammar_of(kind, regex)};
    if (kind < LS_CUT_SPACES)
        LS_TRY(ls_pattern_create(regex ? regex : patterns[kind], what, &step.pattern, e));
    step.regex = regex ? ls_strdup(regex) : NULL;
    p->steps[p->nsteps++] = step;
    return LS_OK;
}

void ls_pretokenizer_free(ls_pretokenizer *p) {
    for (int i = 0; i < p->nsteps; i++) {
        ls_pattern_free(p->steps[i].pattern);
        free(p->steps[i].regex);
    }
    *p = (ls_pretokenizer){0};
}

/* ---- the known expressions, on ASCII ---- */

typedef enum ascii_class { LETTER, DIGIT, SPACE, OTHER, BEYOND } ascii_class;

static ascii_class class_of(uint8_t c) {
    if ((uint8_t)((c | 0x20) - 'a') < 26) return LETTER;
    if ((uint8_t)(c - '0') < 10) return DIGIT;
    if (c == ' ' || (uint8_t)(c - 9) < 5) return SPACE;
    return c < 0x80 ? OTHER : BEYOND;
}

/* The end of the run of a class that begins at `at`. */
static size_t run_end(const uint8_t *s, size_t n, size_t at, ascii_class c) {
    while (at < n && class_of(s[at]) == c) at++;
    return at;
}

/* `end`, or 0 if a character that is not ASCII follows, which may belong to the word. */
static size_t ascii_end(const uint8_t *s, size_t n, size_t end) {
    return end == n || s[end] < 0x80 ? end : 0;
}

/* A run of white space: \s+(?!\S)|\s+, after \s*[\r\n]+ if lines count. */
static size_t space_end(const uint8_t *s, size_t n, bool lines) {
    size_t end = run_end(s, n, 0, SPACE), last = end;
    if (!ascii_end(s, n, end)) return 0;
    while (lines && last > 0 && s[last - 1] != '\n' && s[last - 1] != '\r') last--;
    if (lines && last > 0) return last;
    return end == n || end == 1 ? end : end - 1;
}

static size_t gpt2_end(const uint8_t *s, size_t n) {
    size_t begin = s[0] == ' ' && n > 1;
    ascii_class c = class_of(s[begin]);
    if (s[0] == '\'' || c == BEYOND) return 0;
    if (c == SPACE) return space_end(s, n, false);
    return ascii_end(s, n, run_end(s, n, begin, c));
}

/* ndigits: the most digits of a word. */
static size_t llama3_end(const uint8_t *s, size_t n, size_t ndigits) {
    ascii_class first = class_of(s[0]), second = n > 1 ? class_of(s[1]) : SPACE;
    if (s[0] == '\'' || first == BEYOND) return 0;
    if (first == LETTER) return ascii_end(s, n, run_end(s, n, 1, LETTER));
    if (first == DIGIT) {
        size_t end = run_end(s, n < ndigits ? n : ndigits, 1, DIGIT);
        return end == ndigits ? end : ascii_end(s, n, end);
    }
    if (second == BEYOND) return 0;
    if (second == LETTER && s[0] != '\n' && s[0] != '\r')
        return ascii_end(s, n, run_end(s, n, 2, LETTER));
    if (first == OTHER || (s[0] == ' ' && second == OTHER)) {
        size_t end = ascii_end(s, n, run_end(s, n, 1, OTHER));
        while (end && end < n && (s[end] == '\n' || s[end] == '\r')) end++;
        return end;
    }
    return space_end(s, n, true);
}

/* The end of the word at the beginning of s [n], n > 0; 0: PCRE2 has to find it. */
static size_t scan(int grammar, const uint8_t *s, size_t n) {
    switch (grammar) {
    case GRAMMAR_GPT2: return gpt2_end(s, n);
    case GRAMMAR_LLAMA3: return llama3_end(s, n, 3);
    case GRAMMAR_QWEN2: return llama3_end(s, n, 1);
    default: return 0;
    }
}

/* ---- spaces ---- */

/* The end of the word at l->at: at the next space, if that is the first of a run, or every is. */
static size_t word_end(const level *l, bool every) {
    for (size_t i = l->at + 1; i < l->n; i++) {
        const uint8_t *space = memchr(l->text + i, ' ', l->n - i);
        if (!space) return l->n;
        i = (size_t)(space - l->text);
        if (every || space[-1] != ' ') return i;
    }
    return l->n;
}

/* ---- words ---- */

ls_pretokens *ls_pretokens_create(const ls_pretokenizer *how) {
    ls_pretokens *p = LS_NEW(ls_pretokens);
    p->how = how;
    for (int i = 0; i < how->nsteps; i++)
        if (how->steps[i].pattern) p->levels[i].matcher = ls_matcher_create(how->steps[i].pattern);
    return p;
}

void ls_pretokens_begin(ls_pretokens *p, const uint8_t *text, size_t nbytes) {
    p->text = text;
    p->n = nbytes;
    for (int i = 0; i < p->how->nsteps; i++) p->levels[i].n = p->levels[i].at = 0;
}

/* The end of the word at l->at. */
static ls_status step_end(level *l, const ls_cut_step *step, size_t *end_p, ls_error *e) {
    size_t end = scan(step->grammar, l->text + l->at, l->n - l->at);
    *end_p = l->at + end;
    if (end) return LS_OK;
    if (!step->pattern) {
        *end_p = word_end(l, step->kind == LS_CUT_SPACE);
        return LS_OK;
    }
    if (l->found.to <= l->at)
        LS_TRY(ls_matcher_find(l->matcher, l->text, l->n, l->at, &l->found, e));
    *end_p = l->found.from > l->at ? l->found.from : l->found.to;
    return LS_OK;
}

/* The next word of the first n steps. */
static ls_status step_next(ls_pretokens *p, int n, const uint8_t **word_p, size_t *nbytes_p,
                           ls_error *e) {
    if (n == 0) {
        *word_p = p->text;
        *nbytes_p = p->n;
        p->n = 0;
        return LS_OK;
    }
    level *l = &p->levels[n - 1];
    if (l->at == l->n) {
        LS_TRY(step_next(p, n - 1, &l->text, &l->n, e));
        l->at = l->found.to = 0;
    }
    size_t end = l->n;
    if (l->at < l->n) LS_TRY(step_end(l, &p->how->steps[n - 1], &end, e));
    *word_p = l->n ? l->text + l->at : l->text;
    *nbytes_p = end - l->at;
    l->at = end;
    return LS_OK;
}

ls_status ls_pretokens_next(ls_pretokens *p, const char *what, const uint8_t **word_p,
                            size_t *nbytes_p, ls_error *e) {
    ls_error why = {0};
    if (step_next(p, p->how->nsteps, word_p, nbytes_p, &why) == LS_OK) return LS_OK;
    return ls_fail(e, why.code, "%s: can't be cut into words: %s", what, why.msg);
}

void ls_pretokens_free(ls_pretokens *p) {
    if (!p) return;
    for (int i = 0; i < p->how->nsteps; i++) ls_matcher_free(p->levels[i].matcher);
    free(p);
}
