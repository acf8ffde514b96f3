/* tokenizer.c - from a text to its tokens and back.
 *
 * A text goes through these steps, in the order of Hugging Face's tokenizers:
 *  1. Names of added tokens are found (added_tokens.h); the text between them is
 *  2. normalized: NFC, or SentencePiece's spaces; in the result
 *  3. names of further added tokens are found, and the text between these is
 *  4. cut into words (pretokens.h). Each distinct word is encoded once (bpe.h).
 *  5. Tokens such as BOS are put before and after.
 */
#include "data/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/plural.h"
#include "base/unicode.h"
#include "base/utf8.h"
#include "data/bpe.h"
#include "data/sentencepiece.h"

enum { MAX_FILE = 64 << 20 };

/* ---- words to tokens ---- */

typedef struct id_list {
    uint32_t *ids; /* [n] */
    size_t n, cap;
    size_t *ends; /* of documents */
} id_list;

static void list_append(id_list *l, const uint32_t *ids, size_t n) {
    if (l->n + n > l->cap) {
        l->cap = 2 * (l->n + n) + 256;
        l->ids = ls_realloc(l->ids, l->cap * sizeof *l->ids);
    }
    if (n) memcpy(l->ids + l->n, ids, n * sizeof *ids);
    l->n += n;
}

/* Where in `out` each document ends, if the cut has documents. */
static void mark_end(const ls_text_cut *cut, size_t word, size_t *k, id_list *out) {
    if (*k == cut->nmarks || word + 1 != cut->marks[*k]) return;
    if (!out->ends) out->ends = LS_NEW_ARRAY(size_t, cut->nmarks);
    out->ends[(*k)++] = out->n;
}

/* Appends the tokens of all words, in the order of the text. */
static ls_status words_encode(const ls_tokenizer *t, const ls_text_cut *cut, const char *what,
                              id_list *out, size_t *dropped, ls_error *e) {
    ls_encoded c;
    size_t k = 0;
    LS_TRY(ls_bpe_encode(t, &cut->words, what, &c, e));
    for (size_t i = 0; i < cut->n; i++) {
        uint32_t word = cut->order[i], id = word & ~LS_CUT_TOKEN;
        if (word & LS_CUT_TOKEN) {
            list_append(out, &id, 1);
            mark_end(cut, i, &k, out);
            continue;
        }
        size_t from = word ? c.ends[word - 1] : 0;
        list_append(out, c.ids + from, c.ends[word] - from);
        if (c.dropped) *dropped += c.dropped[word];
    }
    ls_encoded_free(&c);
    return LS_OK;
}

static ls_token_list list_finish(id_list *l, size_t dropped) {
    return (ls_token_list){ls_realloc(l->ids, l->n * sizeof *l->ids), l->n, dropped, l->ends};
}

ls_status ls_tokenizer_encode_cut(const ls_tokenizer *t, const ls_text_cut *cut, const char *what,
                                  ls_token_list *list_p, ls_error *e) {
    id_list out = {0};
    size_t dropped = 0;
    LS_TRY(words_encode(t, cut, what, &out, &dropped, e));
    *list_p = list_finish(&out, dropped);
    return LS_OK;
}

/* ---- text to words ---- */

typedef struct splitter {
    const ls_tokenizer *t;
    const ls_encoding *how;
    ls_pretokens *pretokens;
    ls_buf normalized, spaced; /* the current piece */
    ls_text_cut cut;
} splitter;

/* Appends the words of a text [n] without added tokens. is_first: it begins the whole text. */
static ls_status add_words(splitter *s, const uint8_t *text, size_t n, bool is_first, ls_error *e) {
    s->spaced.len = 0;
    if (!s->t->byte_level && s->t->spaces >= LS_SPACE_NEVER &&
        ls_sentencepiece_normalize(s->t->spaces, text, n, is_first, &s->spaced)) {
        text = (const uint8_t *)s->spaced.data;
        n = s->spaced.len;
    }
    ls_pretokens_begin(s->pretokens, text, n);
    return ls_text_cut_append(&s->cut, s->pretokens, s->how->what, e);
}

/* Normalizes a piece [n]. Returns the piece itself, or what is in s->normalized. */
static const uint8_t *normalize(splitter *s, const uint8_t *text, size_t *n) {
    const ls_tokenizer *t = s->t;
    bool changed = false;
    s->normalized.len = 0;
    if (t->compose)
        changed = ls_unicode_compose(text, *n, &s->normalized);
    else if (!t->byte_level && t->spaces < LS_SPACE_NEVER)
        changed = ls_sentencepiece_normalize(t->spaces, text, *n, false, &s->normalized);
    if (!changed) return text;
    *n = s->normalized.len;
    return (const uint8_t *)s->normalized.data;
}

/* The plain parts of a piece, as places in the normalized piece: a place is where the normalized
 * text before it ends. Returns their number. */
static size_t plain_parts(splitter *s, const uint8_t *text, const ls_added_span *piece,
                          ls_text_range *plain) {
    const ls_encoding *how = s->how;
    size_t n = 0;
    for (size_t i = 0; i < how->nplain; i++) {
        if (how->plain[i].from >= piece->to || piece->from >= how->plain[i].to) continue;
        size_t from = how->plain[i].from < piece->from ? 0 : how->plain[i].from - piece->from;
        size_t to = (how->plain[i].to < piece->to ? how->plain[i].to : piece->to) - piece->from;
        normalize(s, text + piece->from, &from);
        normalize(s, text + piece->from, &to);
        plain[n++] = (ls_text_range){from, to};
    }
    return n;
}

/* Appends the words of a piece of the text, and the added tokens that are found when it is
 * normalized. */
static ls_status add_piece(splitter *s, const uint8_t *text, const ls_added_span *piece,
                           ls_error *e) {
    ls_text_range *plain = LS_NEW_ARRAY(ls_text_range, s->how->nplain + 1);
    ls_added_query q = {.normalized = true, .special = s->how->special, .plain = plain};
    if (s->t->added.normalized.nodes) q.nplain = plain_parts(s, text, piece, plain);
    size_t n = piece->to - piece->from;
    const uint8_t *normalized = normalize(s, text + piece->from, &n);
    ls_added_spans parts = {0};
    ls_status status = LS_OK;
    ls_added_tokens_split(&s->t->added, normalized, n, &q, &parts);
    for (size_t i = 0; status == LS_OK && i < parts.n; i++) {
        const ls_added_span *part = &parts.spans[i];
        if (part->id != LS_NO_TOKEN)
            ls_text_cut_append_token(&s->cut, part->id);
        else
            status = add_words(s, normalized + part->from, part->to - part->from,
                               piece->from + part->from == 0, e);
    }
    free(parts.spans);
    free(plain);
    return status;
}

static ls_status split(splitter *s, const uint8_t *text, size_t nbytes, ls_error *e) {
    ls_added_spans pieces = {0};
    const ls_added_query q = {
        .special = s->how->special, .plain = s->how->plain, .nplain = s->how->nplain};
    ls_added_tokens_split(&s->t->added, text, nbytes, &q, &pieces);
    ls_status status = LS_OK;
    for (size_t i = 0; status == LS_OK && i < pieces.n; i++) {
        if (pieces.spans[i].id != LS_NO_TOKEN)
            ls_text_cut_append_token(&s->cut, pieces.spans[i].id);
        else
            status = add_piece(s, text, &pieces.spans[i], e);
    }
    free(pieces.spans);
    return status;
}

/* Splits each document as a text of its own. */
static ls_status split_documents(splitter *s, const uint8_t *text, ls_error *e) {
    const ls_documents *d = s->how->documents;
    for (size_t i = 0; i < d->n; i++) {
        LS_TRY(split(s, text + d->list[i].from, d->list[i].to - d->list[i].from, e));
        ls_text_cut_end(&s->cut, d->end);
    }
    return LS_OK;
}

ls_status ls_tokenizer_encode(const ls_tokenizer *t, const uint8_t *text, size_t nbytes,
                              const ls_encoding *how, ls_token_list *list_p, ls_error *e) {
    LS_TRY(ls_utf8_check((const char *)text, nbytes, how->what, e));
    splitter s = {.t = t,
                  .how = how,
                  .pretokens = ls_pretokens_create(&t->pretokenizer),
                  .cut.bar = how->bar};
    id_list out = {0};
    size_t dropped = 0;
    if (how->begin) list_append(&out, t->begin.ids, (size_t)t->begin.n);
    ls_status status = how->documents ? split_documents(&s, text, e) : split(&s, text, nbytes, e);
    if (status == LS_OK) status = words_encode(t, &s.cut, how->what, &out, &dropped, e);
    if (how->end) list_append(&out, t->end.ids, (size_t)t->end.n);
    ls_pretokens_free(s.pretokens);
    ls_buf_free(&s.normalized);
    ls_buf_free(&s.spaced);
    ls_text_cut_free(&s.cut);
    if (status == LS_OK)
        *list_p = list_finish(&out, dropped);
    else
        free(out.ids);
    if (status != LS_OK) free(out.ends);
    return status;
}

void ls_token_list_log_dropped(const ls_token_list *l, const char *what) {
    if (l->dropped)
        ls_log("%s: %zu byte%s left out, for which the tokenizer has no token", what, l->dropped,
               ls_plural((int64_t)l->dropped));
}

/* ---- tokens to text ---- */

const uint8_t *ls_tokenizer_bytes(const ls_tokenizer *t, uint32_t token, size_t *nbytes_p) {
    *nbytes_p = 0;
    if (token >= t->tokens.n) return NULL;
    const uint8_t *key = ls_words_at(&t->tokens, token, nbytes_p);
    if (ls_bpe_kind(t, token) != LS_TOKEN_BYTE) return key;
    *nbytes_p = 1;
    return key + 1;
}

/* Adds one byte: completes a character, or begins or continues one. */
static void byte_add(ls_decoding *d, uint8_t byte, ls_buf *out) {
    if (d->nheld && byte >> 6 != 2) ls_decoding_end(d, out);
    d->held[d->nheld++] = byte;
    if (ls_utf8_complete((const char *)d->held, d->nheld)) ls_decoding_end(d, out);
}

void ls_decoding_add(ls_decoding *d, uint32_t token, ls_buf *out) {
    size_t n = 0;
    if (token >= d->tokenizer->tokens.n) return;
    if (d->skip_special && ls_bpe_kind(d->tokenizer, token) == LS_TOKEN_SPECIAL) return;
    const uint8_t *bytes = ls_tokenizer_bytes(d->tokenizer, token, &n);
    if (!d->begun && d->tokenizer->strip && n && *bytes == ' ') bytes++, n--;
    d->begun = true;
    for (size_t i = 0; i < n; i++) byte_add(d, bytes[i], out);
}

void ls_decoding_end(ls_decoding *d, ls_buf *out) {
    ls_buf_append(out, d->held, d->nheld);
    d->nheld = 0;
}

/* ---- the tokenizer ---- */

ls_status ls_tokenizer_load(const char *path, ls_tokenizer **t_p, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, MAX_FILE, &text, e));
    ls_status s = ls_tokenizer_parse(text.data ? text.data : "", text.len, path, t_p, e);
    ls_buf_free(&text);
    return s;
}

const char *ls_tokenizer_kind(const ls_tokenizer *t) {
    return t->byte_level ? "byte-level BPE" : "SentencePiece BPE";
}

uint32_t ls_tokenizer_vocab(const ls_tokenizer *t) { return t->tokens.n; }

uint32_t ls_tokenizer_used(const ls_tokenizer *t) {
    uint32_t n = t->tokens.n;
    while (n && ls_bpe_kind(t, n - 1) == LS_TOKEN_UNUSED) n--;
    return n ? n : t->tokens.n;
}

uint32_t ls_tokenizer_merges(const ls_tokenizer *t) { return t->nmerges; }
const ls_added_tokens *ls_tokenizer_added(const ls_tokenizer *t) { return &t->added; }

size_t ls_tokenizer_text_nbytes(const ls_tokenizer *t, uint32_t token) {
    size_t n = 0;
    if (token >= t->tokens.n || ls_bpe_kind(t, token) == LS_TOKEN_SPECIAL) return 0;
    ls_tokenizer_bytes(t, token, &n);
    return n;
}

uint32_t ls_tokenizer_end_of_text(const ls_tokenizer *t) {
    static const char *const names[] = {LS_END_OF_TEXT, "<|end_of_text|>", "</s>", "<eos>"};
    uint32_t id = LS_NO_TOKEN;
    for (size_t i = 0; id == LS_NO_TOKEN && i < sizeof names / sizeof *names; i++)
        id = ls_tokenizer_find(t, names[i]);
    return id;
}

uint32_t ls_tokenizer_find(const ls_tokenizer *t, const char *content) {
    const ls_added_token *found = ls_added_tokens_find(&t->added, content, strlen(content));
    return found ? found->id : LS_NO_TOKEN;
}
