/* prompt.c - see prompt.h. */
#include "chat/prompt.h"

#include <string.h>

#include "chat/rendering.h"

static ls_json *as_json(const ls_chat_prompt *p) {
    ls_json *messages = ls_json_new_array();
    for (size_t i = 0; i < p->n; i++) {
        const ls_chat_message *from = &p->messages[i];
        ls_json *m = ls_json_new_object();
        ls_json_set_text(m, "role", from->role);
        ls_json_set(m, "content", ls_json_new_bytes(from->text, strlen(from->text)));
        ls_json_push(messages, m);
    }
    return messages;
}

ls_status ls_chat_text_encode(const ls_chat_format *f, const ls_chat_text *t, ls_token_list *list_p,
                              ls_error *e) {
    ls_chat_rendering r = {0};
    ls_status s = ls_chat_render(f, t, &r, e);
    if (s == LS_OK) {
        ls_encoding how = {
            .what = "the conversation", .special = true, .plain = r.plain, .nplain = r.nplain};
        const uint8_t *text = (const uint8_t *)(r.text.data ? r.text.data : "");
        s = ls_tokenizer_encode_as(f->tokenizer, text, r.text.len, &how, list_p, e);
        if (s == LS_OK) ls_token_list_log_dropped(list_p, how.what);
    }
    ls_chat_rendering_free(&r);
    return s;
}

ls_status ls_chat_prompt_encode(const ls_chat_format *f, const ls_chat_prompt *p,
                                ls_token_list *list_p, ls_error *e) {
    ls_json *messages = as_json(p);
    ls_chat_text t = {.messages = messages, .n = p->n, .prompt = true, .now = p->now};
    ls_status s = ls_chat_text_encode(f, &t, list_p, e);
    ls_json_free(messages);
    return s;
}
