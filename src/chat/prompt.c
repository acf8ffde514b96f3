/* prompt.c - see prompt.h. */
#include "chat/prompt.h"

#include <stdlib.h>
#include <string.h>

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

/* A message without the space around it, which templates trim. */
static size_t trimmed(const char *text, const char **at_p) {
    static const char space[] = " \t\r\n";
    size_t n;
    text += strspn(text, space);
    for (n = strlen(text); n && strchr(space, text[n - 1]); n--) {
    }
    *at_p = text;
    return n;
}

/* Where the messages are in the text; returns how many were found. */
static size_t find_messages(const ls_chat_prompt *p, const ls_buf *text, ls_text_range *plain) {
    size_t at = 0, found = 0;
    for (size_t i = 0; i < p->n; i++) {
        const char *m = NULL, *there = NULL;
        size_t n = trimmed(p->messages[i].text, &m);
        if (n && at < text->len) there = memmem(text->data + at, text->len - at, m, n);
        if (!there) continue;
        plain[found].from = (size_t)(there - text->data);
        at = plain[found].from + n;
        plain[found++].to = at;
    }
    return found;
}

ls_status ls_chat_prompt_encode(const ls_chat_format *f, const ls_chat_prompt *p,
                                ls_token_list *list_p, ls_error *e) {
    ls_buf text = {0};
    ls_json *messages = as_json(p);
    ls_chat_text t = {.messages = messages, .n = p->n, .prompt = true, .now = p->now};
    ls_text_range *plain = LS_NEW_ARRAY(ls_text_range, p->n + 1);
    ls_status s = ls_chat_write(f, &t, &text, e);
    if (s == LS_OK) {
        ls_encoding how = {.what = "the conversation", .special = true, .plain = plain};
        how.nplain = find_messages(p, &text, plain);
        s = ls_tokenizer_encode_as(f->tokenizer, (const uint8_t *)text.data, text.len, &how, list_p,
                                   e);
    }
    free(plain);
    ls_json_free(messages);
    ls_buf_free(&text);
    return s;
}
