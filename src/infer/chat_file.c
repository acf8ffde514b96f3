/* chat_file.c - see chat_file.h. */
#include "infer/chat_file.h"

#include <string.h>

#include "base/file.h"
#include "base/lines.h"
#include "base/output.h"
#include "chat/message.h"

enum { MOST = 1 << 28 }; /* bytes of a file */

/* Does the conversation have a message other than those of the system? */
static bool has_turn(const ls_talk *t) {
    for (size_t i = 0; i < t->n; i++)
        if (strcmp(t->messages[i].role, "system") != 0) return true;
    return false;
}

static void put(ls_buf *b, const ls_talk *t) {
    if (!has_turn(t)) return;
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "messages", ls_chat_messages_json(t->messages, t->n));
    ls_json_write(o, 0, b);
    ls_buf_printf(b, "\n");
    ls_json_free(o);
}

void ls_chat_file_end(ls_chat_file *f, const ls_talk *t) { put(&f->before, t); }

ls_status ls_chat_file_write(const ls_chat_file *f, const ls_talk *t, const char *path,
                             ls_error *e) {
    ls_buf all = {0};
    ls_buf_append(&all, f->before.data ? f->before.data : "", f->before.len);
    put(&all, t);
    ls_status s = ls_output_write(path, all.data, all.len, e);
    ls_buf_free(&all);
    return s;
}

void ls_chat_file_free(ls_chat_file *f) { ls_buf_free(&f->before); }

/* ---- reading ---- */

static ls_status add_message(ls_talk *t, const ls_json *from, size_t number, ls_error *e) {
    ls_json *m = NULL;
    LS_TRY(ls_message_read(from, number, &m, e));
    const char *text = ls_json_text(ls_json_get(m, "content"));
    ls_status s = LS_OK;
    if (!text || ls_json_get(m, "tool_calls"))
        s = ls_fail(e, LS_EINVAL, "message %zu has no text, or calls of tools", number);
    else if (!ls_talk_add(t, ls_message_role(m), text))
        s = ls_fail(e, LS_EINVAL, "message %zu has the role '%.40s', which a chat does not have",
                    number, ls_message_role(m));
    ls_json_free(m);
    return s;
}

static ls_status add_messages(ls_talk *t, const ls_json *o, ls_error *e) {
    const ls_json *list = ls_json_get(o, "messages");
    if (!list || ls_json_count(list) == 0)
        return ls_fail(e, LS_EINVAL, "is no conversation: {\"messages\": [...]} is expected");
    ls_talk_begin(t, NULL);
    for (size_t i = 0; i < ls_json_count(list); i++)
        LS_TRY(add_message(t, ls_json_at(list, i), i + 1, e));
    if (strcmp(t->messages[t->n - 1].role, "user") == 0)
        return ls_fail(e, LS_EINVAL, "ends with a message of the user, which has no answer yet");
    return LS_OK;
}

static ls_status take_line(ls_talk *t, const char *path, int64_t number, const char *line,
                           ls_error *e) {
    ls_json *o = NULL;
    ls_error why = {0};
    ls_status s = ls_json_parse(line, strlen(line), "the line", &o, &why);
    if (s == LS_OK) s = add_messages(t, o, &why);
    ls_json_free(o);
    if (s == LS_OK) return s;
    return ls_fail(e, LS_EINVAL, "%s:%lld: %s", path, (long long)number, why.msg);
}

ls_status ls_chat_file_read(ls_chat_file *f, const char *path, ls_talk *t, ls_error *e) {
    ls_buf text = {0};
    int64_t number = 0, last = 0;
    ls_status s = ls_file_read_text(path, MOST, &text, e);
    char *rest = text.data, *line, *latest = NULL;
    while (s == LS_OK && rest && (line = ls_lines_split(&rest))) {
        number++;
        if (!line[strspn(line, " \t")]) continue;
        if (latest) ls_buf_printf(&f->before, "%s\n", latest);
        latest = line;
        last = number;
    }
    if (s == LS_OK && !latest) s = ls_fail(e, LS_EINVAL, "%s: has no conversation", path);
    if (s == LS_OK) s = take_line(t, path, last, latest, e);
    ls_buf_free(&text);
    return s;
}
