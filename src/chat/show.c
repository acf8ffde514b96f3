/* show.c - see show.h. */
#include "chat/show.h"

#include <string.h>

const char *ls_shown_as(const ls_highlight *h) {
    return h->coloured ? "in colour" : "between " LS_SHOWN_BEGIN " and " LS_SHOWN_END;
}

/* Moves a part of the text to *out. Brackets in it are escaped: they are no marks. */
static void add_part(ls_decoding *d, ls_buf *part, ls_buf *out) {
    static const char *const marks[][2] = {{LS_SHOWN_BEGIN, "\\u27e6"}, {LS_SHOWN_END, "\\u27e7"}};
    enum { N = sizeof LS_SHOWN_BEGIN - 1 };
    ls_decoding_end(d, part);
    for (size_t i = 0; i < part->len;) {
        const char *mark = NULL;
        for (int k = 0; k < 2 && part->len - i >= N; k++)
            if (memcmp(part->data + i, marks[k][0], N) == 0) mark = marks[k][1];
        ls_buf_append(out, mark ? mark : part->data + i, mark ? strlen(mark) : 1);
        i += mark ? N : 1;
    }
    part->len = 0;
}

void ls_chat_show(const ls_tokenizer *t, const ls_chat_tokens *l, size_t most, ls_buf *out) {
    ls_decoding d = {.tokenizer = t};
    ls_buf part = {0};
    size_t before = out->len, i = 0;
    bool open = false;
    for (; i < l->n && out->len + part.len - before < most; i++) {
        if (l->trained[i] != open) {
            add_part(&d, &part, out);
            ls_buf_printf(out, "%s", open ? LS_SHOWN_END : LS_SHOWN_BEGIN);
            open = !open;
        }
        ls_decoding_add(&d, l->ids[i], &part);
    }
    add_part(&d, &part, out);
    if (i < l->n) ls_buf_printf(out, " ...");
    if (open) ls_buf_printf(out, "%s", LS_SHOWN_END);
    ls_buf_free(&part);
}
