/* chat_lines.c - see chat_lines.h. */
#include "chat/chat_lines.h"

#include <string.h>

#include "base/bar.h"
#include "base/json_records.h"
#include "chat/preference.h"

typedef struct reader {
    const ls_chat_lines *l;
    const ls_conversation *c;
    uint64_t number;
} reader;

/* Encodes the text, and hands it over; frees it. */
static ls_status take(const reader *x, ls_chat_spans *spans, bool separate, ls_error *e) {
    ls_chat_tokens tokens = {0};
    ls_status s = ls_chat_encode(x->l->format, spans, &tokens, e);
    ls_chat_sample sample = {
        .line = x->number, .separate = separate, .spans = spans, .tokens = &tokens};
    if (s == LS_OK) x->l->take(x->l->arg, &sample);
    ls_chat_tokens_free(&tokens);
    ls_chat_spans_free(spans);
    return s;
}

/* A sample for each answer. */
static ls_status take_answers(const reader *x, ls_error *e) {
    for (size_t i = 0; i < ls_json_count(x->c->messages); i++) {
        ls_chat_spans spans = {0};
        if (!ls_message_is_learned(ls_json_at(x->c->messages, i))) continue;
        LS_TRY(ls_chat_spans_answer(x->l->format, x->c, i, &spans, e));
        LS_TRY(take(x, &spans, true, e));
    }
    return LS_OK;
}

static ls_status encode_conversation(const reader *x, ls_error *e) {
    ls_chat_spans spans = {0};
    LS_TRY(ls_chat_spans_find(x->l->format, x->c, x->l->loss, &spans, e));
    return spans.separate ? take_answers(x, e) : take(x, &spans, false, e);
}

/* ---- pairs ---- */

static size_t count_answers(const ls_conversation *c) {
    size_t n = 0;
    for (size_t i = c->nprompt; i < ls_json_count(c->messages); i++)
        n += ls_message_is_answer(ls_json_at(c->messages, i));
    return n;
}

/* One text of a pair: what it adds to the prompt is trained on. */
static ls_status find_answer(const reader *x, ls_chat_spans *s_p, ls_error *e) {
    LS_TRY(ls_chat_spans_find(x->l->format, x->c, LS_CHAT_ASSISTANT, s_p, e));
    if (!s_p->separate) return LS_OK;
    if (count_answers(x->c) == 1)
        return ls_chat_spans_answer(x->l->format, x->c, ls_json_count(x->c->messages) - 1, s_p, e);
    return ls_fail(e, LS_EINVAL,
                   "has several answers after the prompt, and the template writes earlier ones in "
                   "another way; use one, or another data.template");
}

static ls_status take_pair(const ls_chat_lines *l, const ls_preference *p, uint64_t number,
                           ls_error *e) {
    ls_chat_spans spans[2] = {0};
    ls_chat_tokens tokens[2] = {0};
    ls_error why = {0};
    ls_status s = LS_OK;
    int i = 0;
    for (; s == LS_OK && i < 2; i++) {
        s = find_answer(&(reader){l, &p->answers[i], number}, &spans[i], &why);
        if (s == LS_OK) s = ls_chat_encode(l->format, &spans[i], &tokens[i], &why);
    }
    if (s != LS_OK) ls_fail(e, s, "\"%s\": %s", ls_preference_keys[i - 1], why.msg);
    if (s == LS_OK && ls_chat_tokens_same(&tokens[0], &tokens[1]))
        s = ls_fail(e, LS_EINVAL,
                    "\"chosen\" and \"rejected\" have the same tokens; remove the line");
    if (s == LS_OK)
        l->take(l->arg, &(ls_chat_sample){.line = number,
                                          .spans = &spans[LS_CHOSEN],
                                          .tokens = &tokens[LS_CHOSEN],
                                          .rejected_spans = &spans[LS_REJECTED],
                                          .rejected = &tokens[LS_REJECTED]});
    for (i = 0; i < 2; i++) {
        ls_chat_tokens_free(&tokens[i]);
        ls_chat_spans_free(&spans[i]);
    }
    return s;
}

static ls_status encode_pair(const ls_chat_lines *l, const ls_json *line, uint64_t number,
                             ls_error *e) {
    ls_preference p = {0};
    LS_TRY(ls_preference_read(line, &p, e));
    ls_unread_add_line(l->unread, line, p.keys);
    for (int i = 0; i < 2; i++)
        ls_unread_add_messages(l->unread, &p.answers[i], l->format->template);
    ls_status s = take_pair(l, &p, number, e);
    ls_preference_free(&p);
    return s;
}

/* ---- one object ---- */

static ls_status encode_chat(const ls_chat_lines *l, const ls_json *line, uint64_t number,
                             ls_error *e) {
    ls_conversation c = {0};
    LS_TRY(ls_conversation_read(line, &c, e));
    ls_unread_add_line(l->unread, line, c.keys);
    ls_unread_add_messages(l->unread, &c, l->format->template);
    ls_status s = encode_conversation(&(reader){l, &c, number}, e);
    ls_conversation_free(&c);
    return s;
}

static ls_status encode_object(const ls_chat_lines *l, const ls_json *line, uint64_t number,
                               ls_error *e) {
    bool pair =
        l->wants == LS_WANTS_PAIRS || (l->wants == LS_WANTS_EITHER && ls_preference_is(line));
    return pair ? encode_pair(l, line, number, e) : encode_chat(l, line, number, e);
}

/* ---- a file ---- */

static ls_status encode_next(const ls_chat_lines *l, const ls_json_records *c, ls_error *e) {
    ls_json *object = NULL;
    LS_TRY(ls_json_records_parse(c, &object, e));
    ls_status s = encode_object(l, object, c->number, e);
    ls_json_free(object);
    return s;
}

static ls_status leave_out(const ls_chat_lines *l, const ls_json_records *c, const char *why,
                           ls_error *e) {
    ls_error at = {0};
    if (!l->damaged) return ls_json_records_fail(c, l->name, why, e);
    ls_json_records_fail(c, l->name, why, &at);
    l->damaged(l->arg, &at);
    return LS_OK;
}

ls_status ls_chat_lines_encode(const ls_chat_lines *l, ls_error *e) {
    ls_json_records c = ls_json_records_of(l->text, l->nbytes);
    ls_bar bar = ls_bar_begin("tokenizing: bytes", l->nbytes);
    ls_status s = LS_OK;
    while (s == LS_OK && ls_json_records_next(&c)) {
        ls_error why = {0};
        if (encode_next(l, &c, &why) != LS_OK) s = leave_out(l, &c, why.msg, e);
        ls_bar_at(&bar, (uint64_t)(c.at - l->text));
    }
    ls_bar_end(&bar);
    LS_TRY(s);
    return c.wrong ? leave_out(l, &c, c.wrong, e) : LS_OK;
}

ls_json *ls_chat_lines_first(const char *text, size_t n) {
    ls_json_records c = ls_json_records_of(text, n);
    ls_json *first = NULL;
    bool there = ls_json_records_next(&c) && ls_json_records_parse(&c, &first, NULL) == LS_OK;
    return there ? first : NULL;
}

const char *ls_chat_object_key(const ls_json *object) {
    return ls_preference_is(object) ? ls_preference_keys[LS_CHOSEN] : ls_conversation_form(object);
}

const char *ls_chat_lines_key(const char *text, size_t n) {
    ls_json *first = ls_chat_lines_first(text, n);
    const char *key = ls_chat_object_key(first);
    ls_json_free(first);
    return key;
}
