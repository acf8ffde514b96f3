/* cut.c - see cut.h. */
#include "data/cut.h"

#include <stdlib.h>

#include "base/mem.h"
#include "data/pretokens.h"

static void append(ls_cut *c, uint32_t word) {
    if (c->n == c->cap) {
        c->cap = 2 * c->cap + 1024;
        c->order = ls_realloc(c->order, c->cap * sizeof *c->order);
    }
    c->order[c->n++] = word;
}

static ls_status words_read(ls_cut *c, ls_pretokens *p, ls_error *e) {
    for (;;) {
        const uint8_t *word = NULL;
        size_t nbytes = 0;
        bool fresh = false;
        LS_TRY(ls_pretokens_next(p, &word, &nbytes, e));
        if (nbytes == 0) return LS_OK;
        append(c, ls_words_add(&c->words, word, nbytes, &fresh));
    }
}

ls_status ls_cut_make(const uint8_t *text, size_t nbytes, const char *what, ls_cut *c_p,
                      ls_error *e) {
    ls_pretokens *p = NULL;
    LS_TRY(ls_pretokens_create(text, nbytes, what, &p, e));
    *c_p = (ls_cut){0};
    ls_status s = words_read(c_p, p, e);
    ls_pretokens_free(p);
    if (s != LS_OK) ls_cut_free(c_p);
    return s;
}

void ls_cut_free(ls_cut *c) {
    ls_words_free(&c->words);
    free(c->order);
    *c = (ls_cut){0};
}
