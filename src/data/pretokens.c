/* pretokens.c - the one file that knows PCRE2.
 *
 * The regular expression is GPT-2's (Radford et al., "Language models are unsupervised multitask
 * learners", 2019, encoder.py). Two things differ in spelling, not in meaning:
 *  - \s is written out as the 25 characters with Unicode's property White_Space. PCRE2's own \s
 *    also has U+180E, which lost the property in Unicode 6.3.
 *  - It is anchored. Some alternative matches each character, so nothing is skipped.
 *
 * Most words of most texts are ASCII letters, with or without a space before them: they are cut
 * without PCRE2, with the same result.
 *
 * The text is validated once as a whole; the matches then skip that check. What \p{L} and \p{N}
 * contain depends on the version of Unicode that PCRE2 was built with: a newer library differs only
 * for characters that were added to Unicode since then.
 */
#include "data/pretokens.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

#define SPACES                                                                                     \
    "\\x09-\\x0d\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}"   \
    "\\x{3000}"
static const char *const pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+"
                                   "| ?[^" SPACES "\\p{L}\\p{N}]+"
                                   "|[" SPACES "]+(?![^" SPACES "])|[" SPACES "]+";

struct ls_pretokens {
    const uint8_t *text;
    size_t nbytes, at; /* the next word begins at `at` */
    const char *what;
    pcre2_code *code;
    pcre2_match_data *match;
};

static ls_status text_validate(ls_pretokens *p, ls_error *e) {
    int n = pcre2_match(p->code, p->text, p->nbytes, 0, 0, p->match, NULL);
    if (n > PCRE2_ERROR_UTF8_ERR1 || n < PCRE2_ERROR_UTF8_ERR21) return LS_OK;
    size_t bad = pcre2_get_startchar(p->match), line = 1;
    for (size_t i = 0; i < bad; i++) line += p->text[i] == '\n';
    return ls_fail(e, LS_EINVAL,
                   "%s: is not UTF-8 at byte %zu (line %zu); convert it, e.g. with iconv", p->what,
                   bad, line);
}

ls_status ls_pretokens_create(const uint8_t *text, size_t nbytes, const char *what,
                              ls_pretokens **p_p, ls_error *e) {
    int why = 0;
    PCRE2_SIZE where = 0;
    ls_pretokens *p = LS_NEW(ls_pretokens);
    p->text = nbytes ? text : (const uint8_t *)"";
    p->nbytes = nbytes;
    p->what = what;
    p->code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                            PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &why, &where, NULL);
    if (!p->code) abort(); /* PCRE2 was built without Unicode, or has no memory */
    (void)pcre2_jit_compile(p->code, PCRE2_JIT_COMPLETE); /* if it fails, matching is only slower */
    p->match = pcre2_match_data_create_from_pattern(p->code, NULL);
    if (!p->match) abort();
    ls_status s = text_validate(p, e);
    if (s == LS_OK)
        *p_p = p;
    else
        ls_pretokens_free(p);
    return s;
}

static bool is_ascii_letter(uint8_t c) { return (uint8_t)((c | 0x20) - 'a') < 26; }

/* The end of " ?[A-Za-z]+" at p->at if " ?\p{L}+" would match no more; else p->at. */
static size_t ascii_word_end(const ls_pretokens *p) {
    size_t first = p->at + (p->text[p->at] == ' '), end = first;
    while (end < p->nbytes && is_ascii_letter(p->text[end])) end++;
    bool whole = end > first && (end == p->nbytes || p->text[end] < 0x80);
    return whole ? end : p->at;
}

ls_status ls_pretokens_next(ls_pretokens *p, const uint8_t **word_p, size_t *nbytes_p,
                            ls_error *e) {
    size_t end = p->at < p->nbytes ? ascii_word_end(p) : p->at;
    if (end == p->at && p->at < p->nbytes) {
        int n = pcre2_match(p->code, p->text, p->nbytes, p->at, PCRE2_NO_UTF_CHECK, p->match, NULL);
        if (n <= 0)
            return ls_fail(e, LS_EINVAL, "%s: can't be cut into words at byte %zu (PCRE2 error %d)",
                           p->what, p->at, n);
        end = pcre2_get_ovector_pointer(p->match)[1];
    }
    *word_p = p->text + p->at;
    *nbytes_p = end - p->at;
    p->at = end;
    return LS_OK;
}

void ls_pretokens_free(ls_pretokens *p) {
    if (!p) return;
    pcre2_match_data_free(p->match);
    pcre2_code_free(p->code);
    free(p);
}
