/* lines.c - see lines.h. */
#include "chat/lines.h"

#include <string.h>

#include "chat/conversation.h"

typedef struct reader {
    const ls_chat_lines *l;
    const ls_conversation *c;
    uint64_t number;
} reader;

/* Encodes the text, and hands it over; frees it. */
static ls_status take(const reader *x, ls_chat_spans *spans, bool apart, ls_error *e) {
    ls_chat_tokens tokens = {0};
    ls_status s = ls_chat_encode(x->l->format, spans, &tokens, e);
    if (s == LS_OK) x->l->take(x->l->arg, &(ls_chat_sample){x->number, apart, spans, &tokens});
    ls_chat_tokens_free(&tokens);
    ls_chat_spans_free(spans);
    return s;
}

/* A sample for each answer. */
static ls_status take_answers(const reader *x, ls_error *e) {
    for (size_t i = 0; i < ls_json_count(x->c->messages); i++) {
        ls_chat_spans spans = {0};
        if (!ls_message_is_answer(ls_json_at(x->c->messages, i))) continue;
        LS_TRY(ls_chat_spans_answer(x->l->format, x->c, i, &spans, e));
        LS_TRY(take(x, &spans, true, e));
    }
    return LS_OK;
}

static ls_status encode_conversation(const reader *x, ls_error *e) {
    ls_chat_spans spans = {0};
    LS_TRY(ls_chat_spans_find(x->l->format, x->c, x->l->loss, &spans, e));
    return spans.apart ? take_answers(x, e) : take(x, &spans, false, e);
}

static ls_status encode_line(const ls_chat_lines *l, const char *text, size_t n, uint64_t number,
                             ls_error *e) {
    ls_json *line = NULL;
    ls_conversation c = {0};
    ls_error why = {0};
    if (ls_json_parse(text, n, "", &line, &why) != LS_OK)
        return ls_fail(e, LS_EINVAL, "is not valid JSON");
    ls_status s = ls_conversation_read(line, &c, e);
    if (s == LS_OK) s = encode_conversation(&(reader){l, &c, number}, e);
    ls_conversation_free(&c);
    ls_json_free(line);
    return s;
}

ls_status ls_chat_lines_encode(const ls_chat_lines *l, ls_error *e) {
    const char *at = l->text, *end = l->nbytes ? at + l->nbytes : at; /* at: NULL if empty */
    for (uint64_t number = 1; at < end; number++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *line = at;
        size_t n = (size_t)((stop ? stop : end) - at);
        at += n + (stop != NULL);
        while (n && strchr(" \t\r", line[n - 1])) n--;
        ls_error why = {0};
        if (!n || encode_line(l, line, n, number, &why) == LS_OK) continue;
        return ls_fail(e, LS_EINVAL, "%s:%llu: %s", l->name, (unsigned long long)number, why.msg);
    }
    return LS_OK;
}
