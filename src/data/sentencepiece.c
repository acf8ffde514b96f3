/* sentencepiece.c - see sentencepiece.h.
 *
 * SentencePiece merges, of all neighbours that form a token, those with the highest score, and of
 * several places with one score the leftmost. A list of merges (bpe.h) gives a rank to each pair,
 * where SentencePiece gives one to each result. The two agree as long as the pairs of one result
 * are ranked so that, where two of them overlap in a text, the left one comes first: of halves (u,
 * v) and (v, w) with the same result, (u, v). Both can be the left one only if u and v repeat one
 * string ("a" and "aaa"), and then a text in which it matters doesn't come about, since runs are
 * merged from the left. Mistral's runs of spaces all have one score. There the pair with the
 * longest left half has to come first, and of these the one with the longest right half: what
 * begins a run grows before anything after it. Hugging Face's converter orders them in this way,
 * too.
 *
 * Source: Kudo & Richardson, "SentencePiece", EMNLP 2018, and its bpe_model.cc.
 */
#include "data/sentencepiece.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/spelling.h"

enum { MOST_BYTES = 256 };

/* ---- spaces ---- */

static bool begins_with_space(const uint8_t *text, size_t n) {
    const size_t mark = sizeof LS_SPACE_MARK - 1;
    return n && (*text == ' ' || (n >= mark && memcmp(text, LS_SPACE_MARK, mark) == 0));
}

bool ls_sentencepiece_normalize(ls_space_rule rule, const uint8_t *text, size_t n, bool is_first,
                                ls_buf *out) {
    bool unless_there = rule == LS_SPACE_ALWAYS || (rule == LS_SPACE_FIRST && is_first);
    bool space = rule == LS_SPACE_PREPEND || (unless_there && !begins_with_space(text, n));
    if (!space && !memmem(text, n, LS_SPACE_MARK, sizeof LS_SPACE_MARK - 1)) return false;
    if (space) ls_buf_append(out, " ", 1);
    ls_spelling_read_spaces((const char *)text, n, out);
    return true;
}

bool ls_sentencepiece_may_cut(const ls_tokenizer *t) {
    uint32_t space = ls_words_find(&t->tokens, (const uint8_t *)" ", 1);
    bool known = space != LS_NO_TOKEN && ls_bpe_kind(t, space) == LS_TOKEN_NORMAL;
    if (!known && t->byte_token[0] == LS_NO_TOKEN) return false; /* it may join a run of unknowns */
    for (uint32_t i = 0; i < t->nmerges; i++) {
        size_t n = 0;
        const uint8_t *s = ls_words_at(&t->tokens, t->merges[i].id, &n);
        for (size_t k = 1; k < n; k++)
            if (s[k] == ' ' && s[k - 1] != ' ') return false;
    }
    return true;
}

/* ---- merges from scores ---- */

typedef struct candidate {
    float score;
    uint32_t id, a, b;
    uint16_t left, right; /* bytes of the halves */
    bool is_run;          /* of one character */
    bool later;           /* of the two splits into halves of these lengths, the second one */
} candidate;

typedef struct candidates {
    candidate *list; /* [n] */
    size_t n;
} candidates;

static int shorter_half(const candidate *c) { return c->left < c->right ? c->left : c->right; }

static int compare(const void *x, const void *y) {
    const candidate *p = x, *q = y;
    if (p->score != q->score) return p->score > q->score ? -1 : 1;
    if (p->is_run != q->is_run) return p->is_run ? -1 : 1;
    if (p->is_run && p->left != q->left) return q->left - p->left;
    if (p->is_run && p->right != q->right) return q->right - p->right;
    if (p->id != q->id) return p->id < q->id ? -1 : 1;
    if (shorter_half(p) != shorter_half(q)) return shorter_half(p) - shorter_half(q);
    return (int)p->later - (int)q->later;
}

/* Whether the order of two candidates with one score is known: they make the same token, or both
 * make runs of the same character. */
static bool is_known(const ls_tokenizer *t, const candidate *p, const candidate *q) {
    size_t n, m;
    const uint8_t *a = ls_words_at(&t->tokens, p->id, &n), *b = ls_words_at(&t->tokens, q->id, &m);
    if (p->id == q->id) return true;
    return p->is_run && q->is_run && memcmp(a, b, n < m ? n : m) == 0;
}

static uint32_t normal_token(const ls_tokenizer *t, const uint8_t *s, size_t n) {
    uint32_t id = ls_words_find(&t->tokens, s, n);
    return id != LS_NO_TOKEN && ls_bpe_kind(t, id) == LS_TOKEN_NORMAL ? id : LS_NO_TOKEN;
}

/* Whether s [n], valid UTF-8 with n > 0, repeats one character. */
static bool repeats_one(const uint8_t *s, size_t n) {
    uint32_t point;
    size_t length = ls_utf8_decode((const char *)s, n, &point);
    return memcmp(s, s + length, n - length) == 0;
}

/* Whether the split of s [n] into k and n - k bytes comes after the one into n - k and k bytes. The
 * split whose right half is the other one's left half is the left one where they overlap. */
static bool comes_later(const uint8_t *s, size_t n, size_t k) {
    size_t less = k < n - k ? k : n - k;
    bool shorter_first = memcmp(s + less, s, n - less) == 0 || memcmp(s, s + n - less, less) != 0;
    return shorter_first ? k != less : k == less;
}

/* Adds the splits of token `id` into two tokens. */
static ls_status splits_add(const ls_tokenizer *t, uint32_t id, float score, candidates *c,
                            const char *what, ls_error *e) {
    size_t n = 0;
    const uint8_t *s = ls_words_at(&t->tokens, id, &n);
    uint32_t point;
    if (n > MOST_BYTES || !ls_utf8_is_valid((const char *)s, n) || !isfinite(score))
        return ls_fail(e, LS_EINVAL, "%s: token %u %s", what, id,
                       !isfinite(score) ? "has a score that is not a number"
                       : n > MOST_BYTES ? "has more than 256 bytes"
                                        : "is not UTF-8");
    for (size_t k = 0; (k += ls_utf8_decode((const char *)s + k, n - k, &point)) < n;) {
        uint32_t a = normal_token(t, s, k), b = normal_token(t, s + k, n - k);
        if (a == LS_NO_TOKEN || b == LS_NO_TOKEN) continue;
        c->list = ls_grow(c->list, c->n, sizeof *c->list);
        c->list[c->n++] = (candidate){.score = score,
                                      .id = id,
                                      .a = a,
                                      .b = b,
                                      .left = (uint16_t)k,
                                      .right = (uint16_t)(n - k),
                                      .is_run = repeats_one(s, n),
                                      .later = comes_later(s, n, k)};
    }
    return LS_OK;
}

ls_status ls_sentencepiece_add_merges(ls_tokenizer *t, const float *scores, const char *what,
                                      ls_error *e) {
    candidates c = {0};
    ls_status s = LS_OK;
    for (uint32_t id = 0; s == LS_OK && id < t->tokens.n; id++)
        if (ls_bpe_kind(t, id) == LS_TOKEN_NORMAL) s = splits_add(t, id, scores[id], &c, what, e);
    if (s == LS_OK && c.n) qsort(c.list, c.n, sizeof *c.list, compare);
    for (size_t i = 0; s == LS_OK && i < c.n; i++) {
        const candidate *m = &c.list[i];
        if (i && m->score == m[-1].score && !is_known(t, m - 1, m))
            s = ls_fail(e, LS_EINVAL,
                        "%s: tokens %u and %u have the same score, %g: which of them is merged "
                        "first is not known",
                        what, m[-1].id, m->id, (double)m->score);
        else
            ls_bpe_add_merge(t, m->a, m->b, m->id);
    }
    free(c.list);
    return s;
}
