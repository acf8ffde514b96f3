/* cut.c - see cut.h. */
#include "data/cut.h"

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
    for (;;) {
        const uint8_t *word = NULL;
        size_t nbytes = 0;
        bool fresh = false;
        LS_TRY(ls_pretokens_next(p, what, &word, &nbytes, e));
        if (nbytes == 0) return LS_OK;
        append(c, ls_words_add(&c->words, word, nbytes, &fresh));
        if (c->words.n == LS_CUT_TOKEN)
            return ls_fail(e, LS_EINVAL, "%s: has more than %u distinct words", what, LS_CUT_TOKEN);
    }
}

static ls_status gpt2_words(const uint8_t *text, size_t nbytes, const char *what, ls_text_cut *c,
                            ls_error *e) {
    ls_pretokenizer how = {0};
    LS_TRY(ls_pretokenizer_add(&how, LS_CUT_GPT2, NULL, what, e));
    ls_pretokens *p = ls_pretokens_create(&how);
    ls_pretokens_begin(p, text, nbytes);
    ls_status s = ls_text_cut_append(c, p, what, e);
    ls_pretokens_free(p);
    ls_pretokenizer_free(&how);
    return s;
}

ls_status ls_text_cut_make(const uint8_t *text, size_t nbytes, const char *what, ls_text_cut *c_p,
                           ls_error *e) {
    LS_TRY(ls_utf8_check((const char *)text, nbytes, what, e));
    *c_p = (ls_text_cut){0};
    ls_status s = gpt2_words(text, nbytes, what, c_p, e);
    if (s != LS_OK) ls_text_cut_free(c_p);
    return s;
}

void ls_text_cut_free(ls_text_cut *c) {
    ls_words_free(&c->words);
    free(c->order);
    *c = (ls_text_cut){0};
}
