/* messages.c - see messages.h. */
#include "serve/messages.h"

#include <string.h>
#include <time.h>

#include "chat/message.h"

/* "developer" is OpenAI's newer name of "system". */
static ls_status read(const ls_json *one, size_t number, ls_json **m_p, ls_error *e) {
    const char *role = ls_json_text(ls_json_get(one, "role"));
    if (!role || strcmp(role, "developer") != 0) return ls_message_read(one, number, m_p, e);
    ls_json *copy = ls_json_new_object();
    const char *key;
    const ls_json *value;
    for (void *it = ls_json_next(one, NULL, &key, &value); it;
         it = ls_json_next(one, it, &key, &value))
        ls_json_set(copy, key, ls_json_share(value));
    ls_json_set_text(copy, "role", "system");
    ls_status s = ls_message_read(copy, number, m_p, e);
    ls_json_free(copy);
    return s;
}

ls_status ls_messages_encode(const ls_chat_format *f, const ls_json *body, ls_token_list *list_p,
                             ls_error *e) {
    const ls_json *from = ls_json_get(body, "messages");
    ls_json *messages = ls_json_new_array();
    time_t now = time(NULL);
    struct tm date;
    size_t n = ls_json_is_array(from) ? ls_json_count(from) : 0;
    ls_status s =
        n ? LS_OK : ls_fail(e, LS_EINVAL, "messages: a list of at least one message is expected");
    for (size_t i = 0; s == LS_OK && i < n; i++) {
        ls_json *m = NULL;
        s = read(ls_json_at(from, i), i + 1, &m, e);
        if (s == LS_OK) ls_json_push(messages, m);
    }
    ls_chat_text t = {
        .messages = messages, .n = n, .prompt = true, .now = localtime_r(&now, &date)};
    if (s == LS_OK) s = ls_chat_text_encode(f, &t, list_p, e);
    ls_json_free(messages);
    return s;
}
