/* unread.c - see unread.h. */
#include "chat/unread.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "chat/chat_format.h"

enum { MOST = 20 };

/* Takes the name. */
static void add(ls_unread *u, char *name) {
    for (size_t i = 0; i < u->n; i++)
        if (strcmp(u->names[i], name) == 0) {
            free(name);
            return;
        }
    u->names = ls_grow(u->names, u->n, sizeof *u->names);
    u->names[u->n++] = name;
}

static bool says_nothing(const ls_json *value) {
    const char *text = ls_json_text(value);
    return ls_json_is_null(value) || (text && !*text);
}

void ls_unread_add_line(ls_unread *u, const ls_json *line, const char *const *keys) {
    const char *key;
    const ls_json *value;
    if (!u) return;
    for (void *it = ls_json_next(line, NULL, &key, &value); it && u->n < 2 * MOST;
         it = ls_json_next(line, it, &key, &value)) {
        const char *const *k = keys;
        while (*k && strcmp(*k, key) != 0) k++;
        if (!*k && !says_nothing(value)) add(u, ls_format("\"%.60s\"", key));
    }
}

static bool is_read(const char *key, const ls_json *message, const ls_template *t) {
    if (strcmp(key, "role") == 0 || strcmp(key, "content") == 0) return true;
    if (ls_message_is_weight(key)) /* others are not trained on in any case */
        return ls_message_is_answer(message) || ls_message_is_silent(message);
    return ls_chat_writes(t, key);
}

void ls_unread_add_messages(ls_unread *u, const ls_conversation *c, const ls_template *t) {
    const char *key;
    const ls_json *value;
    if (!u || !t || !c->messages) return;
    if (c->tools && !ls_chat_writes(t, "tools"))
        add(u, ls_format("\"tools\" (the template has none)"));
    for (size_t i = 0; i < ls_json_count(c->messages) && u->n < 2 * MOST; i++) {
        const ls_json *m = ls_json_at(c->messages, i);
        for (void *it = ls_json_next(m, NULL, &key, &value); it;
             it = ls_json_next(m, it, &key, &value))
            if (!is_read(key, m, t)) add(u, ls_format("\"%.60s\" of messages", key));
    }
}

void ls_unread_log(const ls_unread *u, const char *path) {
    ls_buf list = {0};
    for (size_t i = 0; i < u->n && i < MOST; i++)
        ls_buf_printf(&list, "%s%s", i ? ", " : "", u->names[i]);
    if (u->n > MOST) ls_buf_printf(&list, " and others");
    if (u->n)
        ls_log("%s: %s not read: %s", path, u->n == 1 ? "this key is" : "these keys are",
               list.data);
    ls_buf_free(&list);
}

void ls_unread_free(ls_unread *u) {
    for (size_t i = 0; i < u->n; i++) free(u->names[i]);
    free(u->names);
    *u = (ls_unread){0};
}
