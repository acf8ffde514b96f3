/* tokenizer_parts.c - see tokenizer_parts.h.
 *
 * The names and meanings are llama.cpp's (src/llama-vocab.cpp). The file of a SentencePiece model
 * has no merges, but scores: sentencepiece.h makes merges of them.
 */
#include "data/tokenizer_parts.h"

#include <string.h>

#include "data/bpe.h"
#include "data/sentencepiece.h"
#include "data/spelling.h"
#include "data/vocabulary.h"

enum { MOST_TOKENS = 1 << 24 };

/* How a text is cut, by the name in `pre`. Where names mean the same, the first one is written. */
static const struct {
    const char *pre;
    ls_cut_kind steps[2];
    int nsteps;
    const char *regex;
    bool compose, ignore_merges;
} cuts[] = {
    {.pre = "gpt-2", .steps = {LS_CUT_GPT2}, .nsteps = 1},
    {.pre = "smollm", .steps = {LS_CUT_DIGIT, LS_CUT_GPT2}, .nsteps = 2},
    {.pre = "llama-bpe",
     .steps = {LS_CUT_EXPRESSION},
     .nsteps = 1,
     .regex = LS_REGEX_LLAMA3,
     .ignore_merges = true},
    {.pre = "qwen2",
     .steps = {LS_CUT_EXPRESSION},
     .nsteps = 1,
     .regex = LS_REGEX_QWEN2,
     .compose = true},
    /* the same expressions with other settings */
    {.pre = "deepseek-r1-qwen", .steps = {LS_CUT_EXPRESSION}, .nsteps = 1, .regex = LS_REGEX_QWEN2},
    {.pre = "dbrx", .steps = {LS_CUT_EXPRESSION}, .nsteps = 1, .regex = LS_REGEX_LLAMA3},
    {.pre = "tekken",
     .steps = {LS_CUT_EXPRESSION},
     .nsteps = 1,
     .regex = LS_REGEX_TEKKEN,
     .ignore_merges = true},
    {.pre = "gpt-4o", .steps = {LS_CUT_EXPRESSION}, .nsteps = 1, .regex = LS_REGEX_GPT4O},
    {.pre = "smaug-bpe", /* SmolLM3's: llama-bpe that does not begin a text with a token */
     .steps = {LS_CUT_EXPRESSION},
     .nsteps = 1,
     .regex = LS_REGEX_LLAMA3,
     .ignore_merges = true},
    {.pre = "llama3",
     .steps = {LS_CUT_EXPRESSION},
     .nsteps = 1,
     .regex = LS_REGEX_LLAMA3,
     .ignore_merges = true},
};

static ls_status cut_set(const ls_tokenizer_parts *p, const char *what, ls_tokenizer *t,
                         ls_error *e) {
    size_t i = 0, n = sizeof cuts / sizeof *cuts;
    while (i < n && strcmp(cuts[i].pre, p->pre ? p->pre : "") != 0) i++;
    if (i == n)
        return ls_fail(e, LS_EINVAL,
                       "%s: the pre-tokenizer is '%s'; gpt-2, smollm, llama-bpe, "
                       "smaug-bpe, qwen2, deepseek-r1-qwen, dbrx, gpt-4o and tekken are supported",
                       what, p->pre ? p->pre : "");
    t->compose = cuts[i].compose;
    t->ignore_merges = cuts[i].ignore_merges;
    for (int k = 0; k < cuts[i].nsteps; k++)
        LS_TRY(ls_pretokenizer_add(&t->pretokenizer, cuts[i].steps[k],
                                   cuts[i].steps[k] == LS_CUT_EXPRESSION ? cuts[i].regex : NULL,
                                   what, e));
    return LS_OK;
}

const char *ls_tokenizer_pre(const ls_tokenizer *t) {
    const ls_pretokenizer *p = &t->pretokenizer;
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        bool same = t->compose == cuts[i].compose && t->ignore_merges == cuts[i].ignore_merges &&
                    p->nsteps == cuts[i].nsteps;
        for (int k = 0; same && k < p->nsteps; k++) {
            const ls_cut_step *step = &p->steps[k];
            same = step->kind == cuts[i].steps[k] &&
                   (!step->regex || strcmp(step->regex, cuts[i].regex) == 0);
        }
        if (same) return cuts[i].pre;
    }
    return NULL;
}

static ls_status kind_of(const ls_tokenizer_parts *p, size_t i, const char *what, uint8_t *kind_p,
                         ls_error *e) {
    static const uint8_t kinds[] = {
        [LS_PART_NORMAL] = LS_TOKEN_NORMAL,   [LS_PART_UNKNOWN] = LS_TOKEN_SPECIAL,
        [LS_PART_CONTROL] = LS_TOKEN_SPECIAL, [LS_PART_USER_DEFINED] = LS_TOKEN_ADDED,
        [LS_PART_UNUSED] = LS_TOKEN_UNUSED,   [LS_PART_BYTE] = LS_TOKEN_BYTE};
    int32_t type = p->types ? p->types[i] : LS_PART_NORMAL;
    bool byte_level = strcmp(p->model, "gpt2") == 0;
    if (type < LS_PART_NORMAL || type > LS_PART_BYTE || (byte_level && type == LS_PART_BYTE))
        return ls_fail(e, LS_EINVAL, "%s: token %zu has type %d, which is not supported", what, i,
                       type);
    *kind_p = kinds[type];
    return LS_OK;
}

bool ls_part_takes_space(const char *text, size_t n) {
    static const char *const never[] = {"<unk>", "<s>", "<|endoftext|>"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strlen(never[i]) == n && memcmp(never[i], text, n) == 0) return false;
    return true;
}

static ls_status tokens_add(const ls_tokenizer_parts *p, const char *what, ls_tokenizer *t,
                            ls_error *e) {
    if (p->n == 0 || p->n > MOST_TOKENS)
        return ls_fail(e, LS_EINVAL, "%s: has %zu tokens; 1 to %d are supported", what, p->n,
                       MOST_TOKENS);
    t->kinds = LS_NEW_ARRAY(uint8_t, p->n);
    for (size_t i = 0; i < p->n; i++) LS_TRY(kind_of(p, i, what, &t->kinds[i], e));
    for (size_t i = 0; i < p->n; i++) {
        const ls_part_text *token = &p->tokens[i];
        bool special = t->kinds[i] == LS_TOKEN_SPECIAL;
        LS_TRY(ls_vocabulary_add(t, token->text, token->n, what, e));
        if (!special && t->kinds[i] != LS_TOKEN_ADDED) continue;
        ls_buf content = {0};
        ls_buf_append(&content, token->text, token->n);
        const ls_added_token added = {.content = content.data,
                                      .nbytes = token->n,
                                      .id = (uint32_t)i,
                                      .special = special,
                                      .rstrip = p->take_space &&
                                                ls_part_takes_space(token->text, token->n)};
        ls_status s = ls_vocabulary_name(t, &added, what, e);
        ls_buf_free(&content);
        LS_TRY(s);
    }
    return LS_OK;
}

static ls_status id_check(const ls_tokenizer_parts *p, const char *name, int64_t id,
                          const char *what, ls_error *e) {
    if (id < (int64_t)p->n) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: the %s token is %lld; there are %zu tokens", what, name,
                   (long long)id, p->n);
}

static ls_status ends_set(const ls_tokenizer_parts *p, const char *what, ls_tokenizer *t,
                          ls_error *e) {
    LS_TRY(id_check(p, "BOS", p->bos, what, e));
    LS_TRY(id_check(p, "EOS", p->eos, what, e));
    LS_TRY(id_check(p, "unknown", p->unknown, what, e));
    if ((p->add_bos && p->bos < 0) || (p->add_eos && p->eos < 0))
        return ls_fail(e, LS_EINVAL, "%s: asks for %s around a text, but has no such token", what,
                       p->add_bos && p->bos < 0 ? "BOS" : "EOS");
    if (p->add_bos) t->begin.ids[t->begin.n++] = (uint32_t)p->bos;
    if (p->add_eos) t->end.ids[t->end.n++] = (uint32_t)p->eos;
    if (!t->byte_level && p->unknown >= 0) t->unknown = (uint32_t)p->unknown;
    t->fuse_unknown = !t->byte_level;
    return LS_OK;
}

/* ---- merges ---- */

/* The token with this spelling, or LS_NO_TOKEN. */
static uint32_t token_find(const ls_tokenizer *t, const char *text, size_t n, ls_buf *key) {
    size_t from = key->len;
    if (!ls_spelling_read(text, n, key) || key->len == from) return LS_NO_TOKEN;
    uint32_t id = ls_words_find(&t->tokens, (const uint8_t *)key->data + from, key->len - from);
    return id != LS_NO_TOKEN && ls_bpe_may_merge(t, id) ? id : LS_NO_TOKEN;
}

static ls_status merge_add(const ls_part_text *m, size_t i, const char *what, ls_tokenizer *t,
                           ls_error *e) {
    const char *space = m->n ? memchr(m->text, ' ', m->n) : NULL;
    size_t left = space ? (size_t)(space - m->text) : m->n;
    ls_buf key = {0};
    uint32_t id = LS_NO_TOKEN, a = token_find(t, m->text, left, &key), b = LS_NO_TOKEN;
    if (a != LS_NO_TOKEN && space) b = token_find(t, space + 1, m->n - left - 1, &key);
    if (b != LS_NO_TOKEN) id = ls_words_find(&t->tokens, (const uint8_t *)key.data, key.len);
    ls_buf_free(&key);
    bool known = id != LS_NO_TOKEN && ls_bpe_may_merge(t, id);
    if (known && ls_bpe_add_merge(t, a, b, id)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: merge %zu, \"%.*s\", %s", what, i, m->n < 48 ? (int)m->n : 48,
                   m->text,
                   known ? "is a duplicate" : "is not one of two tokens that make a third");
}

static ls_status merges_add(const ls_tokenizer_parts *p, const char *what, ls_tokenizer *t,
                            ls_error *e) {
    if (!t->byte_level && !p->scores)
        return ls_fail(e, LS_EINVAL, "%s: its tokens have no scores, which order the merges", what);
    if (!t->byte_level) return ls_sentencepiece_add_merges(t, p->scores, what, e);
    for (size_t i = 0; i < p->nmerges; i++) LS_TRY(merge_add(&p->merges[i], i, what, t, e));
    return LS_OK;
}

/* ---- all ---- */

static ls_status parts_add(const ls_tokenizer_parts *p, const char *what, ls_tokenizer *t,
                           ls_error *e) {
    if (t->byte_level) {
        LS_TRY(cut_set(p, what, t, e));
    } else {
        t->spaces = p->add_space_prefix ? LS_SPACE_PREPEND : LS_SPACE_AS_IS;
        t->strip = p->add_space_prefix;
    }
    LS_TRY(tokens_add(p, what, t, e));
    LS_TRY(merges_add(p, what, t, e));
    LS_TRY(ends_set(p, what, t, e));
    return ls_vocabulary_finish(t, what, e);
}

ls_status ls_tokenizer_create(const ls_tokenizer_parts *p, const char *what, ls_tokenizer **t_p,
                              ls_error *e) {
    const char *model = p->model ? p->model : "";
    if (strcmp(model, "gpt2") != 0 && strcmp(model, "llama") != 0)
        return ls_fail(e, LS_EINVAL,
                       "%s: the tokenizer's model is '%s'; gpt2 and llama are supported", what,
                       model);
    ls_tokenizer *t = ls_bpe_create(strcmp(model, "gpt2") == 0);
    ls_status s = parts_add(p, what, t, e);
    if (s == LS_OK)
        *t_p = t;
    else
        ls_tokenizer_free(t);
    return s;
}
