/* show.c - see show.h. */
#include "chat/show.h"

const char *ls_shown_as(const ls_highlight *h) {
    return h->coloured ? "in colour" : "between " LS_SHOWN_BEGIN " and " LS_SHOWN_END;
}

void ls_chat_show(const ls_tokenizer *t, const ls_chat_tokens *l, size_t most, ls_buf *out) {
    ls_decoding d = {.tokenizer = t};
    size_t before = out->len;
    bool open = false;
    for (size_t i = 0; i < l->n && out->len - before < most; i++) {
        if (l->trained[i] != open) {
            ls_decoding_end(&d, out);
            ls_buf_printf(out, "%s", open ? LS_SHOWN_END : LS_SHOWN_BEGIN);
            open = !open;
        }
        ls_decoding_add(&d, l->ids[i], out);
        if (i + 1 < l->n && out->len - before >= most) ls_buf_printf(out, " ...");
    }
    ls_decoding_end(&d, out);
    if (open) ls_buf_printf(out, "%s", LS_SHOWN_END);
}
