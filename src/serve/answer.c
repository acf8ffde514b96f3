/* answer.c - see answer.h. */
#include "serve/answer.h"

#include <math.h>
#include <string.h>

#include "serve/call_answer.h"
#include "serve/response_answer.h"

static const char CONTENT[] = "content", THOUGHT[] = "reasoning_content";

static const ls_request_prompt *prompt_of(const ls_text_answer *a, size_t i) {
    return &a->request->prompts[i / (size_t)a->request->n];
}

bool ls_answer_is_complete(const ls_text_answer *a) {
    for (size_t i = 0; i < a->n; i++)
        if (a->replies[i].state != LS_REPLY_ENDED) return false;
    return true;
}

/* ---- parts ---- */

/* vLLM's "abort": the server ends, or its workers do. Calls that a stop has cut are not
 * "tool_calls", at which clients would carry them out. */
static ls_json *finish_of(const ls_reply *r, bool called) {
    if (r->state != LS_REPLY_ENDED) return ls_json_new_null();
    if (r->end == LS_END_ASKED) return ls_json_new_text("abort");
    return ls_json_new_text(r->end == LS_END_LENGTH ? "length" : called ? "tool_calls" : "stop");
}

/* vLLM's: the stop that came. */
static void set_stop(ls_json *choice, const ls_reply *r) {
    ls_json_set(choice, "stop_reason",
                r->stop ? ls_json_new_bytes(r->stop, strlen(r->stop)) : ls_json_new_null());
}

static ls_json *usage_of(const ls_text_answer *a) {
    int64_t prompt = 0, written = 0, found = 0, thought = 0;
    ls_json *o = ls_json_new_object(), *details = ls_json_new_object();
    ls_json *of_written = ls_json_new_object();
    for (size_t i = 0; i < a->n; i++) {
        const ls_reply *r = &a->replies[i];
        if (i % (size_t)a->request->n == 0) prompt += r->nprompt;
        if (i % (size_t)a->request->n == 0) found += r->nfound;
        written += r->n - r->nprompt;
        thought += ls_answer_thought_tokens(a, r);
    }
    ls_json_set_integer(o, "prompt_tokens", prompt);
    ls_json_set_integer(o, "completion_tokens", written);
    ls_json_set_integer(o, "total_tokens", prompt + written);
    ls_json_set_integer(details, "cached_tokens", found);
    ls_json_set(o, "prompt_tokens_details", details);
    ls_json_set_integer(of_written, "reasoning_tokens", thought);
    ls_json_set(o, "completion_tokens_details", of_written);
    return o;
}

static ls_json *head_of(const ls_text_answer *a, const char *object) {
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "id", a->id);
    ls_json_set_text(o, "object", object);
    ls_json_set_integer(o, "created", a->created);
    ls_json_set_text(o, "model", ls_request_model_name(a->model, a->request->adapter));
    if (a->system_fingerprint)
        ls_json_set_text(o, "system_fingerprint", a->system_fingerprint);
    else
        ls_json_set(o, "system_fingerprint", ls_json_new_null());
    ls_json_set_integer(o, "seed", (int64_t)a->request->seed);
    return o;
}

/* ---- logarithms of probabilities ---- */

static ls_json *token_text(const ls_text_answer *a, uint32_t token) {
    size_t n = 0;
    const uint8_t *bytes = ls_tokenizer_bytes(a->model->trained->tokenizer, token, &n);
    return ls_json_new_bytes((const char *)bytes, n);
}

static ls_json *token_bytes(const ls_text_answer *a, uint32_t token) {
    size_t n = 0;
    const uint8_t *bytes = ls_tokenizer_bytes(a->model->trained->tokenizer, token, &n);
    ls_json *list = ls_json_new_array();
    for (size_t i = 0; i < n; i++) ls_json_push(list, ls_json_new_integer(bytes[i]));
    return list;
}

static ls_json *chat_token(const ls_text_answer *a, uint32_t token, float logprob) {
    ls_json *o = ls_json_new_object();
    ls_json_set(o, "token", token_text(a, token));
    ls_json_set_number(o, "logprob", (double)logprob);
    ls_json_set(o, "bytes", token_bytes(a, token));
    return o;
}

static ls_json *chat_logprobs(const ls_text_answer *a, const ls_reply *r, size_t first) {
    ls_json *o = ls_json_new_object(), *content = ls_json_new_array();
    for (size_t i = first; i < r->nnotes; i++) {
        const ls_reply_note *x = &r->notes[i];
        ls_json *token = chat_token(a, x->token, x->logprob), *top = ls_json_new_array();
        for (int k = 0; k < x->ntop; k++)
            ls_json_push(top, chat_token(a, x->top[k], x->logprobs[k]));
        ls_json_set(token, "top_logprobs", top);
        ls_json_push(content, token);
    }
    ls_json_set(o, "content", content);
    return o;
}

/* The likeliest tokens by their texts; of two with one text the likelier one stays. The token
 * itself is always there. */
static ls_json *top_of(const ls_text_answer *a, const ls_reply_note *x) {
    if (isnan(x->logprob)) return ls_json_new_null();
    ls_json *o = ls_json_new_object();
    for (int k = -1; k < x->ntop; k++) {
        ls_json *text = token_text(a, k < 0 ? x->token : x->top[k]);
        if (!ls_json_get(o, ls_json_text(text)))
            ls_json_set_number(o, ls_json_text(text),
                               (double)(k < 0 ? x->logprob : x->logprobs[k]));
        ls_json_free(text);
    }
    return o;
}

/* Characters of the text that begin in a token; *begins_p: is its first byte the first of one? */
static int64_t count_begun(const ls_text_answer *a, uint32_t token, bool *begins_p) {
    const ls_tokenizer *t = a->model->trained->tokenizer;
    size_t n = 0;
    const uint8_t *bytes = ls_tokenizer_bytes(t, token, &n);
    int64_t begun = 0;
    if (!a->request->rule.special) n = ls_tokenizer_text_nbytes(t, token);
    for (size_t i = 0; i < n; i++) begun += (bytes[i] & 0xC0) != 0x80;
    *begins_p = n == 0 || (bytes[0] & 0xC0) != 0x80;
    return begun;
}

/* text_offset: the place in the text, in characters, of the one in which a token begins. */
static ls_json *text_logprobs(const ls_text_answer *a, const ls_reply *r, size_t first) {
    ls_json *o = ls_json_new_object(), *tokens = ls_json_new_array(),
            *logprobs = ls_json_new_array(), *top = ls_json_new_array(),
            *offsets = ls_json_new_array();
    int64_t offset = 0;
    for (size_t i = 0; i < r->nnotes; i++) {
        const ls_reply_note *x = &r->notes[i];
        bool begins = true;
        int64_t n = count_begun(a, x->token, &begins);
        if (i >= first) {
            ls_json_push(tokens, token_text(a, x->token));
            ls_json_push(logprobs, ls_json_new_number((double)x->logprob));
            ls_json_push(top, top_of(a, x));
            ls_json_push(offsets, ls_json_new_integer(begins || !offset ? offset : offset - 1));
        }
        offset += n;
    }
    ls_json_set(o, "tokens", tokens);
    ls_json_set(o, "token_logprobs", logprobs);
    ls_json_set(o, "top_logprobs", top);
    ls_json_set(o, "text_offset", offsets);
    return o;
}

static void set_logprobs(ls_json *choice, const ls_text_answer *a, const ls_reply *r,
                         size_t first) {
    if (a->request->rule.top < 0)
        ls_json_set(choice, "logprobs", ls_json_new_null());
    else
        ls_json_set(choice, "logprobs",
                    a->request->chat ? chat_logprobs(a, r, first) : text_logprobs(a, r, first));
}

/* ---- one object ---- */

/* The text of a prompt, for echo. */
static void put_prompt(const ls_text_answer *a, const ls_request_prompt *p, ls_buf *out) {
    ls_decoding d = {.tokenizer = a->model->trained->tokenizer, .begun = true};
    if (p->text) {
        ls_buf_append(out, p->text, strlen(p->text));
        return;
    }
    for (int64_t i = 0; i < p->n; i++) ls_decoding_add(&d, p->tokens[i], out);
    ls_decoding_end(&d, out);
}

static ls_json *text_of(const ls_text_answer *a, size_t i) {
    ls_buf all = {0};
    const ls_reply *r = &a->replies[i];
    if (a->request->echo) put_prompt(a, prompt_of(a, i), &all);
    ls_buf_append(&all, r->text.data, r->text.len);
    ls_json *text = ls_json_new_bytes(all.data ? all.data : "", all.len);
    ls_buf_free(&all);
    return text;
}

/* The content of calls alone is null. */
static ls_json *content_of(const ls_answer_parts *p) {
    ls_buf all = {0};
    if (p->calls.n && !p->calls.ncontent && !p->calls.after.len) return ls_json_new_null();
    ls_buf_append(&all, p->content, p->calls.ncontent);
    ls_buf_append(&all, p->calls.after.data, p->calls.after.len);
    ls_json *content = ls_json_new_bytes(all.data ? all.data : "", all.len);
    ls_buf_free(&all);
    return content;
}

static ls_json *message_of(const ls_text_answer *a, size_t i, bool *called_p) {
    ls_json *message = ls_json_new_object();
    ls_answer_parts p = ls_answer_parts_of(a, &a->replies[i]);
    *called_p = p.called;
    ls_json_set_text(message, "role", "assistant");
    ls_json_set(message, "content", content_of(&p));
    ls_json_set(message, "refusal", ls_json_new_null());
    if (p.nthought) ls_json_set(message, THOUGHT, ls_json_new_bytes(p.thought, p.nthought));
    if (p.calls.n) ls_json_set(message, "tool_calls", ls_calls_write(a, i, &p.calls));
    ls_tool_text_free(&p.calls);
    return message;
}

static ls_json *choice_of(const ls_text_answer *a, size_t i) {
    const ls_reply *r = &a->replies[i];
    ls_json *choice = ls_json_new_object();
    bool called = false;
    ls_json_set_integer(choice, "index", (int64_t)i);
    if (a->request->chat) {
        ls_json_set(choice, "message", message_of(a, i, &called));
    } else {
        ls_json_set(choice, "text", text_of(a, i));
    }
    set_logprobs(choice, a, r, 0);
    ls_json_set(choice, "finish_reason", finish_of(r, called));
    set_stop(choice, r);
    return choice;
}

void ls_answer_write(const ls_text_answer *a, ls_buf *out) {
    if (a->request->asked) {
        ls_response_write(a, out);
        return;
    }
    ls_json *o = head_of(a, a->request->chat ? "chat.completion" : "text_completion");
    ls_json *choices = ls_json_new_array();
    for (size_t i = 0; i < a->n; i++) ls_json_push(choices, choice_of(a, i));
    ls_json_set(o, "choices", choices);
    ls_json_set(o, "usage", usage_of(a));
    ls_json_write(o, 0, out);
    ls_json_free(o);
}

/* ---- a stream ---- */

static void put_event(ls_json *o, ls_buf *out) {
    ls_buf_printf(out, "data: ");
    ls_json_write(o, 0, out);
    ls_buf_printf(out, "\n\n");
    ls_json_free(o);
}

static ls_json *chunk_of(const ls_text_answer *a) {
    ls_json *o = head_of(a, a->request->chat ? "chat.completion.chunk" : "text_completion");
    if (a->request->usage)
        ls_json_set(o, "usage", a->request->usage_each ? usage_of(a) : ls_json_new_null());
    return o;
}

/* An event of reply i; text: a piece of its content, or of what else the message has, by `key`;
 * NULL: the reply ends. */
static void put_choice(const ls_text_answer *a, size_t i, const char *key, ls_json *text,
                       ls_answer_sent *sent, ls_buf *out) {
    const bool ends = !text;
    const ls_reply *r = &a->replies[i];
    ls_json *o = chunk_of(a), *choices = ls_json_new_array(), *choice = ls_json_new_object();
    ls_json_set_integer(choice, "index", (int64_t)i);
    if (a->request->chat) {
        ls_json *delta = ls_json_new_object();
        if (!sent->begun) ls_json_set_text(delta, "role", "assistant");
        if (text) ls_json_set(delta, key, text);
        ls_json_set(choice, "delta", delta);
    } else {
        ls_json_set(choice, "text", text ? text : ls_json_new_text(""));
    }
    bool notes = r->nnotes > sent->notes;
    if (notes)
        set_logprobs(choice, a, r, sent->notes);
    else
        ls_json_set(choice, "logprobs", ls_json_new_null());
    sent->notes = r->nnotes;
    ls_json_set(choice, "finish_reason", ends ? finish_of(r, sent->called) : ls_json_new_null());
    if (ends) set_stop(choice, r);
    ls_json_push(choices, choice);
    ls_json_set(o, "choices", choices);
    put_event(o, out);
    sent->begun = true;
}

/* What is new of a text [n]; NULL: nothing. */
static ls_json *new_piece(const char *text, size_t n, size_t *sent) {
    if (n <= *sent) return NULL;
    ls_json *piece = ls_json_new_bytes(text + *sent, n - *sent);
    *sent = n;
    return piece;
}

static void stream_reply(const ls_text_answer *a, size_t i, ls_answer_sent *sent, ls_buf *out) {
    const ls_reply *r = &a->replies[i];
    if (sent->ended) return;
    if (!sent->begun && a->request->chat)
        put_choice(a, i, CONTENT, ls_json_new_text(""), sent, out);
    if (!sent->begun && a->request->echo) {
        ls_buf prompt = {0};
        put_prompt(a, prompt_of(a, i), &prompt);
        put_choice(a, i, CONTENT, ls_json_new_bytes(prompt.data, prompt.len), sent, out);
        ls_buf_free(&prompt);
    }
    ls_answer_parts p = ls_answer_parts_of(a, r);
    ls_json *thought = new_piece(p.thought, p.nthought, &sent->thought);
    if (thought) put_choice(a, i, THOUGHT, thought, sent, out);
    ls_json *content = new_piece(p.content, p.calls.ncontent, &sent->text);
    if (content) put_choice(a, i, CONTENT, content, sent, out);
    for (ls_json *piece; (piece = ls_calls_next(a, i, &p.calls, sent));)
        put_choice(a, i, "tool_calls", piece, sent, out);
    ls_json *after = new_piece(p.calls.after.data, p.calls.after.len, &sent->after);
    if (after) put_choice(a, i, CONTENT, after, sent, out);
    sent->called = p.called;
    ls_tool_text_free(&p.calls);
    if (r->state != LS_REPLY_ENDED) return;
    put_choice(a, i, CONTENT, NULL, sent, out);
    sent->ended = true;
}

void ls_answer_stream(const ls_text_answer *a, ls_answer_sent *sent, ls_buf *out) {
    bool ended = true;
    if (a->request->asked) {
        ls_response_stream(a, sent, out);
        return;
    }
    for (size_t i = 0; i < a->n; i++) {
        stream_reply(a, i, &sent[i], out);
        ended = ended && sent[i].ended;
    }
    if (!ended) return;
    if (a->request->usage) {
        ls_json *o = chunk_of(a);
        ls_json_set(o, "choices", ls_json_new_array());
        ls_json_set(o, "usage", usage_of(a));
        put_event(o, out);
    }
    ls_buf_printf(out, "data: [DONE]\n\n");
}

/* ---- errors ---- */

void ls_answer_refuse(const ls_refusal *why, ls_buf *out) {
    ls_json *o = ls_json_new_object(), *error = ls_json_new_object();
    ls_json_set(error, "message", ls_json_new_bytes(why->error.msg, strlen(why->error.msg)));
    ls_json_set_text(error, "type", why->type);
    ls_json_set(error, "param", why->param ? ls_json_new_text(why->param) : ls_json_new_null());
    ls_json_set(error, "code", why->code ? ls_json_new_text(why->code) : ls_json_new_null());
    ls_json_set(o, "error", error);
    ls_json_write(o, 0, out);
    ls_json_free(o);
}
