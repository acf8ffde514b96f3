/* encode.c - see encode.h. */
#include "chat/encode.h"

#include <stdlib.h>
#include <string.h>

typedef struct encoder {
    const ls_chat_format *f;
    const ls_chat_spans *s;
    ls_chat_tokens *t;
    size_t room;
    bool begin; /* the tokens begin with what the tokenizer puts before a text */
    ls_error *e;
} encoder;

static void add(encoder *x, uint32_t id, bool trained) {
    ls_chat_tokens *t = x->t;
    if (t->n == x->room) {
        x->room = x->room ? 2 * x->room : 256;
        t->ids = ls_realloc(t->ids, x->room * sizeof *t->ids);
        t->trained = ls_realloc(t->trained, x->room * sizeof *t->trained);
    }
    t->ids[t->n] = id;
    t->trained[t->n] = trained && t->n;
    t->ntrained += t->trained[t->n++];
}

/* The tokens of a part of the text. begin: with what the tokenizer puts before a text. */
static ls_status encode_part(const encoder *x, size_t from, size_t to, bool begin,
                             ls_token_list *l) {
    const ls_chat_spans *s = x->s;
    ls_text_range *plain = LS_NEW_ARRAY(ls_text_range, s->nplain + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->nplain; i++) {
        size_t a = s->plain[i].from < from ? from : s->plain[i].from;
        size_t b = s->plain[i].to > to ? to : s->plain[i].to;
        if (a < b) plain[n++] = (ls_text_range){a - from, b - from};
    }
    ls_encoding how = {
        .what = "the text", .special = true, .plain = plain, .nplain = n, .begin = begin};
    const uint8_t *text = (const uint8_t *)(s->text.data ? s->text.data : "");
    ls_status status = ls_tokenizer_encode(x->f->tokenizer, text + from, to - from, &how, l, x->e);
    free(plain);
    if (status == LS_OK && l->dropped) {
        free(l->ids);
        return ls_fail(x->e, LS_EINVAL, "the tokenizer has no tokens for a part of the text");
    }
    return status;
}

/* Does what the tokenizer puts before a text go there? Not if the text begins with it. */
static bool needs_begin(const encoder *x) {
    const ls_encoding how = {.what = "the text", .begin = true};
    const ls_buf *text = &x->s->text;
    ls_token_list l = {0};
    if (!x->s->ends ||
        ls_tokenizer_encode(x->f->tokenizer, (const uint8_t *)"", 0, &how, &l, NULL) != LS_OK)
        return false;
    size_t at = 0, n = 0, i = 0;
    for (; i < l.n; i++, at += n) {
        const uint8_t *name = ls_tokenizer_bytes(x->f->tokenizer, l.ids[i], &n);
        if (!n || text->len - at < n || memcmp(text->data + at, name, n) != 0) break;
    }
    bool has = i == l.n;
    free(l.ids);
    return !has;
}

static ls_status add_part(encoder *x, size_t from, size_t to, bool trained) {
    ls_token_list l = {0};
    if (from >= to) return LS_OK;
    LS_TRY(encode_part(x, from, to, x->begin && x->t->n == 0, &l));
    for (size_t i = 0; i < l.n; i++) add(x, l.ids[i], trained);
    free(l.ids);
    return LS_OK;
}

static ls_status encode_parts(encoder *x) {
    size_t at = 0;
    for (size_t i = 0; i < x->s->ntrained; i++) {
        LS_TRY(add_part(x, at, x->s->trained[i].from, false));
        LS_TRY(add_part(x, x->s->trained[i].from, x->s->trained[i].to, true));
        at = x->s->trained[i].to;
    }
    return add_part(x, at, x->s->text.len, false);
}

/* ---- SentencePiece ---- */

/* The number of tokens of the text's first `end` bytes, which must be those of the whole. */
static ls_status count_tokens(const encoder *x, const ls_token_list *all, size_t end, size_t *n_p) {
    ls_token_list l = {0};
    *n_p = 0;
    if (end == 0) return LS_OK;
    LS_TRY(encode_part(x, 0, end, x->begin, &l));
    bool same = l.n <= all->n && memcmp(l.ids, all->ids, l.n * sizeof *l.ids) == 0;
    *n_p = l.n;
    free(l.ids);
    return same ? LS_OK
                : ls_fail(x->e, LS_EINVAL,
                          "a token lies across the beginning or the end of an answer");
}

static ls_status encode_whole(encoder *x) {
    ls_token_list all = {0};
    LS_TRY(encode_part(x, 0, x->s->text.len, x->begin, &all));
    size_t at = 0, from = 0, to = 0;
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < x->s->ntrained; i++) {
        s = count_tokens(x, &all, x->s->trained[i].from, &from);
        if (s == LS_OK) s = count_tokens(x, &all, x->s->trained[i].to, &to);
        for (; s == LS_OK && at < to; at++) add(x, all.ids[at], at >= from);
    }
    for (; s == LS_OK && at < all.n; at++) add(x, all.ids[at], false);
    free(all.ids);
    return s;
}

static bool ends_with(const ls_chat_tokens *t, uint32_t id) {
    return t->n && t->ids[t->n - 1] == id;
}

ls_status ls_chat_encode(const ls_chat_format *f, const ls_chat_spans *s, ls_chat_tokens *t_p,
                         ls_error *e) {
    ls_chat_tokens t = {0};
    encoder x = {.f = f, .s = s, .t = &t, .e = e};
    x.begin = needs_begin(&x);
    bool whole = strncmp(ls_tokenizer_kind(f->tokenizer), "Sentence", 8) == 0;
    ls_status status = whole ? encode_whole(&x) : encode_parts(&x);
    if (status == LS_OK && s->ends && f->end != LS_NO_TOKEN && !ends_with(&t, f->end))
        add(&x, f->end, true);
    if (status == LS_OK && !t.ntrained) status = ls_fail(e, LS_EINVAL, "trains no token");
    if (status == LS_OK)
        *t_p = t;
    else
        ls_chat_tokens_free(&t);
    return status;
}

void ls_chat_tokens_free(ls_chat_tokens *t) {
    free(t->ids);
    free(t->trained);
    *t = (ls_chat_tokens){0};
}

bool ls_chat_tokens_same(const ls_chat_tokens *a, const ls_chat_tokens *b) {
    return a->n == b->n && memcmp(a->ids, b->ids, a->n * sizeof *a->ids) == 0;
}
