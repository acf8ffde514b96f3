/* spans.c - see spans.h. */
#include "chat/spans.h"

#include <stdlib.h>
#include <string.h>

static void add_range(ls_text_range **list, size_t *n, size_t from, size_t to) {
    if (from >= to) return;
    *list = ls_grow(*list, *n, sizeof **list);
    (*list)[(*n)++] = (ls_text_range){from, to};
}

static bool begins_with(const ls_buf *text, const ls_buf *start) {
    return start->len <= text->len &&
           (!start->len || memcmp(text->data, start->data, start->len) == 0);
}

/* ---- answers ---- */

typedef struct finder {
    const ls_chat_format *f;
    const ls_conversation *c;
    size_t n; /* messages: the first ones */
    ls_chat_spans *s;
    ls_error *e;
} finder;

static ls_status write_first(const finder *x, size_t n, bool prompt, ls_buf *out) {
    ls_chat_text t = {.messages = x->c->messages, .n = n, .tools = x->c->tools, .prompt = prompt};
    return ls_chat_write(x->f, &t, out, x->e);
}

static ls_status fail_prefix(const finder *x, size_t i) {
    if (i == 0)
        return ls_fail(x->e, LS_EINVAL,
                       "begins with the assistant's answer, and the template writes it without a "
                       "prompt; begin with a message of the user");
    return ls_fail(
        x->e, LS_EINVAL,
        "the template does not write message %zu as an answer to the prompt before it; use "
        "data.loss: all, or another data.template",
        i + 1);
}

/* Adds the answer of message i; `apart` is set if that needs a text of its own. */
static ls_status add_answer(const finder *x, size_t i) {
    ls_buf before = {0}, after = {0};
    const ls_buf *all = &x->s->text;
    bool last = i + 1 == x->n;
    ls_status s = write_first(x, i, true, &before);
    if (s == LS_OK && !last) s = write_first(x, i + 1, false, &after);
    const ls_buf *end = last ? all : &after;
    bool follows = begins_with(end, &before), stays = begins_with(all, end);
    if (s == LS_OK && !follows && (last || i == 0)) s = fail_prefix(x, i);
    if (s == LS_OK && follows && stays)
        add_range(&x->s->trained, &x->s->ntrained, before.len, end->len);
    else
        x->s->apart = true;
    ls_buf_free(&before);
    ls_buf_free(&after);
    return s;
}

static ls_status add_answers(const finder *x, bool only_last) {
    for (size_t i = only_last ? x->n - 1 : x->c->nprompt; i < x->n && !x->s->apart; i++)
        if (ls_message_is_answer(ls_json_at(x->c->messages, i))) LS_TRY(add_answer(x, i));
    return LS_OK;
}

/* ---- contents that have names of special tokens ---- */

static bool has_special(const ls_tokenizer *t, const char *text) {
    const ls_added_tokens *a = ls_tokenizer_added(t);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->tokens[i].special && strstr(text, a->tokens[i].content)) return true;
    return false;
}

/* The messages with another content of message i. */
static ls_json *with_content(const ls_json *messages, size_t n, size_t i, const char *content) {
    ls_json *list = ls_json_new_array(), *other = ls_json_new_object();
    const char *key;
    const ls_json *value, *m = ls_json_at(messages, i);
    for (void *it = ls_json_next(m, NULL, &key, &value); it; it = ls_json_next(m, it, &key, &value))
        ls_json_set(other, key, ls_json_share(value));
    ls_json_set_text(other, "content", content);
    for (size_t k = 0; k < n; k++)
        ls_json_push(list, k == i ? other : ls_json_share(ls_json_at(messages, k)));
    return list;
}

/* Finds where the template writes a content, by writing another one there. */
static ls_status add_plain(const finder *x, size_t i, const char *content) {
    const ls_buf *all = &x->s->text;
    ls_buf changed = {0};
    ls_json *messages = with_content(x->c->messages, x->n, i, "\x01");
    ls_chat_text t = {.messages = messages, .n = x->n, .tools = x->c->tools};
    ls_status s = ls_chat_write(x->f, &t, &changed, x->e);
    size_t from = 0, n = strlen(content);
    while (from < all->len && from < changed.len && all->data[from] == changed.data[from]) from++;
    ls_buf_free(&changed);
    ls_json_free(messages);
    LS_TRY(s);
    while (n && strchr(" \t\r\n", content[n - 1])) n--;
    while (n && strchr(" \t\r\n", *content)) content++, n--;
    while (from < all->len && strchr(" \t\r\n", all->data[from])) from++;
    if (all->len - from < n || memcmp(all->data + from, content, n) != 0)
        return ls_fail(x->e, LS_EINVAL,
                       "message %zu has the name of a special token, and the template changes the "
                       "message; remove the name",
                       i + 1);
    add_range(&x->s->plain, &x->s->nplain, from, from + n);
    return LS_OK;
}

static ls_status add_plain_parts(const finder *x) {
    for (size_t i = 0; i < x->n; i++) {
        const char *content = ls_json_text(ls_json_get(ls_json_at(x->c->messages, i), "content"));
        if (content && has_special(x->f->tokenizer, content)) LS_TRY(add_plain(x, i, content));
    }
    return LS_OK;
}

/* ---- all ---- */

static ls_status find_text(const finder *x, ls_chat_loss loss) {
    ls_chat_spans *s = x->s;
    size_t prompt = strlen(x->c->prompt);
    ls_buf_append(&s->text, x->c->prompt, prompt);
    ls_buf_append(&s->text, x->c->text, strlen(x->c->text));
    s->ends = true;
    add_range(&s->trained, &s->ntrained, loss == LS_CHAT_ALL ? 0 : prompt, s->text.len);
    return LS_OK;
}

static ls_status find(const finder *x, ls_chat_loss loss) {
    ls_chat_spans *s = x->s;
    if (!x->c->messages) return find_text(x, loss);
    LS_TRY(write_first(x, x->n, false, &s->text));
    LS_TRY(add_plain_parts(x));
    if (loss == LS_CHAT_ALL)
        add_range(&s->trained, &s->ntrained, 0, s->text.len);
    else
        LS_TRY(add_answers(x, loss == LS_CHAT_COMPLETION));
    if (s->ntrained || s->apart) return LS_OK;
    return ls_fail(x->e, LS_EINVAL,
                   loss == LS_CHAT_COMPLETION
                       ? "trains no token: its last message is not the assistant's"
                       : "trains no token: it has no answer of the assistant");
}

static finder finder_of(const ls_chat_format *f, const ls_conversation *c, ls_chat_spans *s,
                        ls_error *e) {
    return (finder){
        .f = f, .c = c, .n = c->messages ? ls_json_count(c->messages) : 0, .s = s, .e = e};
}

ls_status ls_chat_spans_find(const ls_chat_format *f, const ls_conversation *c, ls_chat_loss loss,
                             ls_chat_spans *s_p, ls_error *e) {
    ls_chat_spans spans = {0};
    finder x = finder_of(f, c, &spans, e);
    ls_status s = find(&x, loss);
    bool apart = s == LS_OK && spans.apart;
    if (s != LS_OK || apart) ls_chat_spans_free(&spans);
    spans.apart = apart;
    if (s == LS_OK) *s_p = spans;
    return s;
}

ls_status ls_chat_spans_answer(const ls_chat_format *f, const ls_conversation *c, size_t i,
                               ls_chat_spans *s_p, ls_error *e) {
    ls_chat_spans spans = {0};
    finder x = finder_of(f, c, &spans, e);
    x.n = i + 1;
    ls_status s = find(&x, LS_CHAT_COMPLETION);
    if (s == LS_OK)
        *s_p = spans;
    else
        ls_chat_spans_free(&spans);
    return s;
}

void ls_chat_spans_free(ls_chat_spans *s) {
    ls_buf_free(&s->text);
    free(s->trained);
    free(s->plain);
    *s = (ls_chat_spans){0};
}
