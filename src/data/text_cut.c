/* text_cut.c - see text_cut.h. */
#include "data/text_cut.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"

static void append(ls_text_cut *c, uint32_t word) {
    if (c->n == c->cap) {
        c->cap = 2 * c->cap + 1024;
        c->order = ls_realloc(c->order, c->cap * sizeof *c->order);
    }
    c->order[c->n++] = word;
}

void ls_text_cut_append_token(ls_text_cut *c, uint32_t id) { append(c, id | LS_CUT_TOKEN); }

ls_status ls_text_cut_append(ls_text_cut *c, ls_pretokens *p, const char *what, ls_error *e) {
    enum { SHOWN = 1 << 14 }; /* words between two looks at the clock */
    for (;;) {
        const uint8_t *word = NULL;
        size_t nbytes = 0;
        bool fresh = false;
        LS_TRY(ls_pretokens_next(p, what, &word, &nbytes, e));
        if (nbytes == 0) return LS_OK;
        append(c, ls_words_add(&c->words, word, nbytes, &fresh));
        c->nread += nbytes;
        if (c->bar && c->n % SHOWN == 0) ls_bar_at(c->bar, c->nread);
        if (c->words.n == LS_CUT_TOKEN)
            return ls_fail(e, LS_EINVAL, "%s: has more than %u distinct words", what, LS_CUT_TOKEN);
    }
}

void ls_text_cut_end(ls_text_cut *c, uint32_t end) {
    ls_text_cut_append_token(c, end);
    c->marks = ls_grow(c->marks, c->nmarks, sizeof *c->marks);
    c->marks[c->nmarks++] = c->n;
}

static ls_status gpt2_words(const uint8_t *text, const ls_documents *d, const char *what,
                            ls_text_cut *c, ls_error *e) {
    ls_pretokenizer how = {0};
    LS_TRY(ls_pretokenizer_add(&how, LS_CUT_GPT2, NULL, what, e));
    ls_pretokens *p = ls_pretokens_create(&how);
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < d->n; i++) {
        ls_pretokens_begin(p, text + d->list[i].from, d->list[i].to - d->list[i].from);
        s = ls_text_cut_append(c, p, what, e);
        if (s == LS_OK && d->end != LS_NO_TOKEN) ls_text_cut_end(c, d->end);
    }
    ls_pretokens_free(p);
    ls_pretokenizer_free(&how);
    return s;
}

ls_status ls_text_cut_documents(const uint8_t *text, const ls_documents *d, const char *what,
                                ls_text_cut *c_p, ls_error *e) {
    size_t nbytes = d->n ? d->list[d->n - 1].to : 0;
    if (!nbytes) text = (const uint8_t *)""; /* an empty file is mapped nowhere */
    LS_TRY(ls_utf8_check((const char *)text, nbytes, what, e));
    ls_bar bar = ls_bar_begin("tokenizing: bytes", nbytes);
    *c_p = (ls_text_cut){.bar = &bar};
    ls_status s = gpt2_words(text, d, what, c_p, e);
    ls_bar_end(&bar);
    c_p->bar = NULL;
    if (s != LS_OK) ls_text_cut_free(c_p);
    return s;
}

ls_status ls_text_cut_make(const uint8_t *text, size_t nbytes, const char *what, ls_text_cut *c_p,
                           ls_error *e) {
    const ls_text_range all = {0, nbytes};
    return ls_text_cut_documents(text, &(ls_documents){&all, 1, LS_NO_TOKEN}, what, c_p, e);
}

void ls_text_cut_free(ls_text_cut *c) {
    ls_words_free(&c->words);
    free(c->order);
    free(c->marks);
    *c = (ls_text_cut){0};
}
