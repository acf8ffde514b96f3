/* gguf_tokenizer_write.c - writes tokenizers as GGUF's keys; see gguf_tokenizer.h.
 *
 * A SentencePiece tokenizer has scores there and no merges. A token's score is minus the rank of
 * the first merge that makes it: sentencepiece.h makes the same merges of these again, which is
 * checked.
 */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/bpe.h"
#include "data/sentencepiece.h"
#include "data/tokenizer_parts.h"
#include "weights/gguf_tokenizer.h"

#define PREFIX "tokenizer.ggml."

/* ---- texts ---- */

typedef struct texts {
    ls_buf bytes;
    size_t *ends; /* [n] in bytes */
    size_t n;
} texts;

static void end_text(texts *t) { t->ends[t->n++] = t->bytes.len; }

static void put_texts(ls_gguf_writer *w, const char *key, texts *t) {
    ls_gguf_text *list = LS_NEW_ARRAY(ls_gguf_text, t->n);
    for (size_t i = 0; i < t->n; i++) {
        size_t from = i ? t->ends[i - 1] : 0;
        list[i] = (ls_gguf_text){t->bytes.data + from, t->ends[i] - from};
    }
    ls_gguf_put_texts(w, key, list, t->n);
    free(list);
    free(t->ends);
    ls_buf_free(&t->bytes);
}

static void put_tokens(ls_gguf_writer *w, const ls_tokenizer *t, uint32_t rows) {
    texts list = {.ends = LS_NEW_ARRAY(size_t, rows)};
    for (uint32_t id = 0; id < rows; id++) {
        if (id < t->tokens.n)
            ls_tokenizer_spell(t, id, &list.bytes);
        else
            ls_buf_printf(&list.bytes, "[PAD%u]", id); /* llama.cpp's name for them */
        end_text(&list);
    }
    put_texts(w, PREFIX "tokens", &list);
}

static void put_merges(ls_gguf_writer *w, const ls_tokenizer *t) {
    texts list = {.ends = LS_NEW_ARRAY(size_t, t->nmerges ? t->nmerges : 1)};
    for (uint32_t i = 0; i < t->nmerges; i++) {
        ls_tokenizer_spell(t, t->merges[i].a, &list.bytes);
        ls_buf_append(&list.bytes, " ", 1);
        ls_tokenizer_spell(t, t->merges[i].b, &list.bytes);
        end_text(&list);
    }
    put_texts(w, PREFIX "merges", &list);
}

static void put_types(ls_gguf_writer *w, const ls_tokenizer *t, uint32_t rows) {
    static const int32_t types[] = {[LS_TOKEN_NORMAL] = LS_PART_NORMAL,
                                    [LS_TOKEN_BYTE] = LS_PART_BYTE,
                                    [LS_TOKEN_ADDED] = LS_PART_USER_DEFINED,
                                    [LS_TOKEN_SPECIAL] = LS_PART_CONTROL,
                                    [LS_TOKEN_UNUSED] = LS_PART_UNUSED};
    int32_t *list = LS_NEW_ARRAY(int32_t, rows);
    for (uint32_t id = 0; id < rows; id++) {
        list[id] = id < t->tokens.n ? types[ls_bpe_kind(t, id)] : LS_PART_UNUSED;
        if (id == t->unknown) list[id] = LS_PART_UNKNOWN;
    }
    ls_gguf_put_i32s(w, PREFIX "token_type", list, rows);
    free(list);
}

/* Does it have a flag that changes how text beside it is encoded, and for which GGUF has no key? */
static bool has_flag(const ls_added_token *a) { return a->lstrip || a->rstrip || a->single_word; }

/* Are the flags those of Phi-3's tokens? A model's name says so (gguf_tokenizer.c). */
static bool has_phi3_flags(const ls_tokenizer *t) {
    bool same = t->added.n > 0;
    for (uint32_t i = 0; i < t->added.n; i++) {
        const ls_added_token *a = &t->added.tokens[i];
        same = same && !a->lstrip && !a->single_word &&
               a->rstrip == ls_part_takes_space(a->content, a->nbytes);
    }
    return same;
}

/* Programs that read the file, ours too, encode such texts in another way. */
static void put_flags(ls_gguf_writer *w, const ls_tokenizer *t, ls_family family) {
    const ls_added_token *first = NULL;
    int n = 0;
    if (family == LS_FAMILY_PHI3 && has_phi3_flags(t)) {
        ls_gguf_put_text(w, "general.name", "Phi-3");
        return;
    }
    for (uint32_t i = t->added.n; i-- > 0;)
        if (has_flag(&t->added.tokens[i])) first = &t->added.tokens[i], n++;
    if (first)
        ls_log(
            "GGUF has no keys for lstrip, rstrip and single_word, one of which %d token%s of this "
            "tokenizer ha%s ('%s'%s): text beside such a token is encoded in another way there",
            n, n == 1 ? "" : "s", n == 1 ? "s" : "ve", first->content, n == 1 ? "" : " ...");
}

/* ---- SentencePiece ---- */

static float *scores_of(const ls_tokenizer *t, uint32_t rows) {
    float *scores = LS_NEW_ARRAY(float, rows);
    for (uint32_t i = 0; i < rows; i++) scores[i] = -(float)t->nmerges - 1;
    for (uint32_t i = t->nmerges; i-- > 0;) scores[t->merges[i].id] = -(float)i;
    return scores;
}

static int by_left(const void *x, const void *y) {
    const ls_merge *p = x, *q = y;
    return p->a != q->a ? (p->a < q->a ? -1 : 1) : 0;
}

/* The merges [n] that make one token, after each other, in an order of their own: the caller frees
 * them. */
static ls_merge *sorted_by_left(const ls_merge *merges, uint32_t n) {
    ls_merge *list = LS_NEW_ARRAY(ls_merge, n);
    memcpy(list, merges, n * sizeof *list);
    for (uint32_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && list[end].id == list[i].id;) end++;
        qsort(list + i, end - i, sizeof *list, by_left);
    }
    return list;
}

/* Of merges (u, v) and (v, w) that make one token, SentencePiece prefers the left one in a text u v
 * w: of how many is the right one first here? */
static int count_right_first(const ls_merge *m, uint32_t n) {
    int count = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n && m[k].id == m[i].id; k++)
            count += m[i].a == m[k].b && m[i].b != m[k].a;
    return count;
}

/* Are these the same, but for the order of those that make one token? Where that matters it is
 * logged: other programs that read GGUF have SentencePiece's as well. */
static bool are_same(const ls_merge *a, const ls_merge *b, uint32_t n) {
    ls_merge *x = sorted_by_left(a, n), *y = sorted_by_left(b, n);
    bool same = memcmp(x, y, n * sizeof *x) == 0;
    int more = same ? count_right_first(a, n) - count_right_first(b, n) : 0;
    free(x);
    free(y);
    if (more > 0)
        ls_log("GGUF can't say the order of %d pairs of merges of this tokenizer: a few texts are "
               "encoded in another way there",
               more);
    return same;
}

/* Do these scores give the same merges? */
static ls_status check_scores(const ls_tokenizer *t, const float *scores, ls_error *e) {
    ls_tokenizer copy = *t;
    copy.merges = NULL;
    copy.nmerges = 0;
    copy.merges_cap = 0;
    copy.ranks = (ls_pairs){0};
    ls_error why = {0};
    bool same =
        ls_sentencepiece_add_merges(&copy, scores, "", &why) == LS_OK && copy.nmerges == t->nmerges;
    if (same && copy.nmerges) same = are_same(t->merges, copy.merges, copy.nmerges);
    free(copy.merges);
    ls_pairs_free(&copy.ranks);
    return same ? LS_OK
                : ls_fail(
                      e, LS_EINVAL,
                      "GGUF orders a SentencePiece tokenizer's merges by scores of tokens, which "
                      "can't say the order of this one's");
}

static ls_status put_sentencepiece(ls_gguf_writer *w, const ls_tokenizer *t, uint32_t rows,
                                   ls_error *e) {
    float *scores = scores_of(t, rows);
    ls_status s = check_scores(t, scores, e);
    if (s == LS_OK) {
        ls_gguf_put_text(w, PREFIX "model", "llama");
        ls_gguf_put_f32s(w, PREFIX "scores", scores, rows);
        ls_gguf_put_bool(w, PREFIX "add_space_prefix",
                         t->spaces != LS_SPACE_AS_IS && t->spaces != LS_SPACE_NEVER);
        if (t->unknown != LS_NO_TOKEN) ls_gguf_put_u32(w, PREFIX "unknown_token_id", t->unknown);
    }
    free(scores);
    return s;
}

/* ---- all ---- */

static ls_status put_byte_level(ls_gguf_writer *w, const ls_tokenizer *t, ls_error *e) {
    const char *pre = ls_tokenizer_pre(t);
    if (!pre)
        return ls_fail(e, LS_EINVAL,
                       "GGUF has no name for how this tokenizer cuts a text; gpt-2, smollm, "
                       "llama-bpe, qwen2, deepseek-r1-qwen, dbrx and tekken can be written");
    ls_gguf_put_text(w, PREFIX "model", "gpt2");
    ls_gguf_put_text(w, PREFIX "pre", pre);
    put_merges(w, t);
    return LS_OK;
}

/* At an end of a text GGUF can say: nothing, or the one token that the model has for it. */
static ls_status put_end(ls_gguf_writer *w, const char *key, const ls_end_tokens *end, int64_t id,
                         ls_error *e) {
    if (end->n > 1 || (end->n == 1 && end->ids[0] != id))
        return ls_fail(
            e, LS_EINVAL,
            "the tokenizer puts other tokens around a text than the model's BOS and EOS, "
            "for which GGUF has no key");
    ls_gguf_put_bool(w, key, end->n == 1);
    return LS_OK;
}

ls_status ls_gguf_put_tokenizer(ls_gguf_writer *w, const ls_tokenizer *t, const ls_architecture *a,
                                ls_error *e) {
    uint32_t rows = (uint32_t)a->vocab;
    if (t->tokens.n > rows)
        return ls_fail(e, LS_EINVAL, "the tokenizer has %u tokens, the model %u", t->tokens.n,
                       rows);
    LS_TRY(t->byte_level ? put_byte_level(w, t, e) : put_sentencepiece(w, t, rows, e));
    put_tokens(w, t, rows);
    put_types(w, t, rows);
    put_flags(w, t, a->family);
    LS_TRY(put_end(w, PREFIX "add_bos_token", &t->begin, a->bos, e));
    return put_end(w, PREFIX "add_eos_token", &t->end, a->neos ? a->eos[0] : LS_TOKEN_NONE, e);
}
