/* prompt.c - see prompt.h. */
#include "chat/prompt.h"

#include <string.h>

#include "chat/rendering.h"

ls_json *ls_chat_messages_json(const ls_chat_message *messages, size_t n) {
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < n; i++) {
        const char *text = messages[i].text;
        ls_json *m = ls_json_new_object();
        ls_json_set_text(m, "role", messages[i].role);
        ls_json_set(m, "content", ls_json_new_bytes(text, strlen(text)));
        ls_json_push(list, m);
    }
    return list;
}

ls_status ls_chat_text_encode(const ls_chat_format *f, const ls_chat_text *t, ls_token_list *list_p,
                              ls_error *e) {
    ls_chat_rendering r = {0};
    ls_status s = ls_chat_render(f, t, &r, e);
    if (s == LS_OK) {
        ls_encoding how = {
            .what = "the conversation", .special = true, .plain = r.plain, .nplain = r.nplain};
        const uint8_t *text = (const uint8_t *)(r.text.data ? r.text.data : "");
        s = ls_tokenizer_encode(f->tokenizer, text, r.text.len, &how, list_p, e);
        if (s == LS_OK) ls_token_list_log_dropped(list_p, how.what);
    }
    ls_chat_rendering_free(&r);
    return s;
}

ls_status ls_chat_prompt_encode(const ls_chat_format *f, const ls_chat_prompt *p,
                                ls_token_list *list_p, ls_error *e) {
    ls_json *messages = ls_chat_messages_json(p->messages, p->n);
    ls_chat_text t = {.messages = messages, .n = p->n, .prompt = true, .now = p->now};
    ls_status s = ls_chat_text_encode(f, &t, list_p, e);
    ls_json_free(messages);
    return s;
}
