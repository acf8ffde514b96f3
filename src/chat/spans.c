/* spans.c - see spans.h. */
#include "chat/spans.h"

#include <stdlib.h>
#include <string.h>

#include "chat/rendering.h"

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

/* Adds the answer of message i; `separate` is set if that needs a text of its own. */
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
        x->s->separate = true;
    ls_buf_free(&before);
    ls_buf_free(&after);
    return s;
}

static ls_status add_answers(const finder *x, bool only_last) {
    for (size_t i = only_last ? x->n - 1 : x->c->nprompt; i < x->n && !x->s->separate; i++)
        if (ls_message_is_learned(ls_json_at(x->c->messages, i))) LS_TRY(add_answer(x, i));
    return LS_OK;
}

/* An answer of which the template would write nothing: it calls tools, without a text. */
static bool is_lost(const finder *x, const ls_json *m) {
    const char *text = ls_json_text(ls_json_get(m, "content"));
    return ls_message_is_learned(m) && (!text || !*text) &&
           !ls_chat_writes(x->f->template, "tool_calls");
}

static ls_status check_messages(const finder *x, ls_chat_loss loss) {
    for (size_t i = 0; i < x->n; i++) {
        const ls_json *m = ls_json_at(x->c->messages, i);
        if (is_lost(x, m))
            return ls_fail(
                x->e, LS_EINVAL,
                "message %zu calls tools, and the template does not write \"tool_calls\"; "
                "use another data.template",
                i + 1);
        if (loss == LS_CHAT_ALL && ls_message_is_silent(m))
            return ls_fail(
                x->e, LS_EINVAL,
                "message %zu has weight 0, and with data.loss: all everything is trained "
                "on; use assistant or completion",
                i + 1);
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

static ls_status render_all(const finder *x) {
    ls_chat_text t = {.messages = x->c->messages, .n = x->n, .tools = x->c->tools};
    ls_chat_rendering r = {0};
    LS_TRY(ls_chat_render(x->f, &t, &r, x->e));
    x->s->text = r.text;
    x->s->plain = r.plain;
    x->s->nplain = r.nplain;
    return LS_OK;
}

static ls_status find(const finder *x, ls_chat_loss loss) {
    ls_chat_spans *s = x->s;
    if (!x->c->messages) return find_text(x, loss);
    LS_TRY(render_all(x));
    LS_TRY(check_messages(x, loss));
    if (loss == LS_CHAT_ALL)
        add_range(&s->trained, &s->ntrained, 0, s->text.len);
    else
        LS_TRY(add_answers(x, loss == LS_CHAT_COMPLETION));
    if (s->ntrained || s->separate) return LS_OK;
    return ls_fail(
        x->e, LS_EINVAL,
        loss == LS_CHAT_COMPLETION
            ? "trains no token: its last message is not the assistant's, or has weight 0"
            : "trains no token: it has no answer of the assistant whose weight is not 0");
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
    bool separate = s == LS_OK && spans.separate;
    if (s != LS_OK || separate) ls_chat_spans_free(&spans);
    spans.separate = separate;
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
