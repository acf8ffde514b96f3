/* response_answer.c - see response_answer.h.
 *
 * The output is what the model thought, a message, calls of tools, and a message with what
 * stands behind them, as far as there are any: an item each; a message, too, if there is nothing
 * else. In a stream an item is done when the next one is added, or when the reply has ended;
 * what stands behind calls comes at the end.
 */
#include "serve/response_answer.h"

#include <stdlib.h>
#include <string.h>

#include "serve/call_answer.h"

static const char IN_PROGRESS[] = "in_progress", COMPLETED[] = "completed",
                  INCOMPLETE[] = "incomplete", FAILED[] = "failed";

static const char *status_of(const ls_reply *r) {
    if (r->state != LS_REPLY_ENDED) return IN_PROGRESS;
    if (r->end == LS_END_ASKED) return FAILED;
    return r->end == LS_END_LENGTH ? INCOMPLETE : COMPLETED;
}

/* An item that is not the last one is complete. */
static const char *item_status(const ls_reply *r, bool is_last) {
    const char *status = is_last ? status_of(r) : COMPLETED;
    return status == FAILED ? INCOMPLETE : status;
}

/* ---- items ---- */

static bool has_thought(const ls_answer_parts *p) { return p->nthought > 0; }
static bool has_message(const ls_answer_parts *p) {
    return p->calls.ncontent || (!p->calls.n && !has_thought(p));
}

/* Places in the output. */
static size_t message_at(const ls_answer_parts *p) { return has_thought(p); }
static size_t call_at(const ls_answer_parts *p, size_t k) {
    return message_at(p) + has_message(p) + k;
}

static void set_id(ls_json *o, const char *key, char *id) {
    ls_json_set_text(o, key, id);
    free(id);
}

/* An item that is a text: what the model thought, or the message. */
typedef struct text_item {
    const char *id, *type, *part; /* id: what begins it */
    const char *delta, *done;     /* events */
    const char *text;             /* [n] */
    size_t n, at;                 /* its place in the output */
    ls_answer_item kind;
} text_item;

static text_item thought_of(const ls_answer_parts *p) {
    return (text_item){"rs",
                       "reasoning",
                       "reasoning_text",
                       "response.reasoning_text.delta",
                       "response.reasoning_text.done",
                       p->thought,
                       p->nthought,
                       0,
                       LS_ITEM_THOUGHT};
}

static text_item message_of(const ls_answer_parts *p) {
    return (text_item){"msg",
                       "message",
                       "output_text",
                       "response.output_text.delta",
                       "response.output_text.done",
                       p->content,
                       p->calls.ncontent,
                       message_at(p),
                       LS_ITEM_MESSAGE};
}

static text_item after_of(const ls_answer_parts *p) {
    text_item i = message_of(p);
    i.id = "msg_2";
    i.text = p->calls.after.data;
    i.n = p->calls.after.len;
    i.at = call_at(p, p->calls.n);
    i.kind = LS_ITEM_AFTER;
    return i;
}

static bool is_thought(const text_item *i) { return i->kind == LS_ITEM_THOUGHT; }

static char *id_of(const ls_text_answer *a, const text_item *i) {
    return ls_format("%s_%s", i->id, a->id);
}

/* The first n bytes. */
static ls_json *part_of(const text_item *i, size_t n) {
    ls_json *part = ls_json_new_object();
    ls_json_set_text(part, "type", i->part);
    ls_json_set(part, "text", ls_json_new_bytes(i->text, n));
    if (is_thought(i)) return part;
    ls_json_set(part, "annotations", ls_json_new_array());
    ls_json_set(part, "logprobs", ls_json_new_array());
    return part;
}

/* done: with its text. */
static ls_json *item_of(const ls_text_answer *a, const text_item *i, const char *status,
                        bool done) {
    ls_json *o = ls_json_new_object(), *content = ls_json_new_array();
    set_id(o, "id", id_of(a, i));
    ls_json_set_text(o, "type", i->type);
    ls_json_set_text(o, "status", status);
    if (is_thought(i))
        ls_json_set(o, "summary", ls_json_new_array());
    else
        ls_json_set_text(o, "role", "assistant");
    if (done) ls_json_push(content, part_of(i, i->n));
    ls_json_set(o, "content", content);
    return o;
}

/* With arguments [n]. */
static ls_json *call_of(const ls_text_answer *a, const ls_answer_parts *p, size_t k, size_t n,
                        const char *status) {
    const ls_tool_call *c = &p->calls.calls[k];
    ls_json *o = ls_json_new_object();
    set_id(o, "id", ls_format("fc_%s-%zu", a->id, k));
    ls_json_set_text(o, "type", "function_call");
    ls_json_set_text(o, "status", status);
    ls_json_set_text(o, "call_id", ls_call_name_of(a, 0, k).text);
    ls_json_set_text(o, "name", c->name);
    ls_json_set(o, "arguments", ls_json_new_bytes(n ? c->arguments.data : "", n));
    return o;
}

static ls_json *done_thought(const ls_text_answer *a, const ls_answer_parts *p) {
    const text_item i = thought_of(p);
    return item_of(a, &i, item_status(a->replies, !has_message(p) && !p->calls.n), true);
}

static ls_json *done_message(const ls_text_answer *a, const ls_answer_parts *p) {
    const text_item i = message_of(p);
    return item_of(a, &i, item_status(a->replies, !p->calls.n), true);
}

static ls_json *done_after(const ls_text_answer *a, const ls_answer_parts *p) {
    const text_item i = after_of(p);
    return item_of(a, &i, item_status(a->replies, true), true);
}

static ls_json *done_call(const ls_text_answer *a, const ls_answer_parts *p, size_t k) {
    const ls_tool_call *c = &p->calls.calls[k];
    bool is_last = k + 1 == p->calls.n && !p->calls.after.len;
    return call_of(a, p, k, c->arguments.len,
                   ls_call_is_complete(c) ? item_status(a->replies, is_last) : INCOMPLETE);
}

/* ---- a response ---- */

static ls_json *usage_of(const ls_text_answer *a) {
    const ls_reply *r = a->replies;
    ls_json *o = ls_json_new_object(), *in = ls_json_new_object(), *out = ls_json_new_object();
    ls_json_set_integer(o, "input_tokens", r->nprompt);
    ls_json_set_integer(in, "cached_tokens", r->nfound);
    ls_json_set_integer(in, "cache_write_tokens", 0);
    ls_json_set(o, "input_tokens_details", in);
    ls_json_set_integer(o, "output_tokens", r->n - r->nprompt);
    ls_json_set_integer(out, "reasoning_tokens", ls_answer_thought_tokens(a, r));
    ls_json_set(o, "output_tokens_details", out);
    ls_json_set_integer(o, "total_tokens", r->n);
    return o;
}

/* What was asked for; NULL: what is meant by its lack, which goes to the object. */
static void set_asked(ls_json *o, const ls_text_answer *a, const char *key, ls_json *otherwise) {
    const ls_json *given = ls_json_get(a->request->asked, key);
    bool is_given = given && !ls_json_is_null(given);
    ls_json_set(o, key, is_given ? ls_json_share(given) : otherwise);
    if (is_given) ls_json_free(otherwise);
}

static ls_json *plain_text(void) {
    ls_json *text = ls_json_new_object(), *format = ls_json_new_object();
    ls_json_set_text(format, "type", "text");
    ls_json_set(text, "format", format);
    return text;
}

static void set_end(ls_json *o, const ls_reply *r) {
    ls_json *error = ls_json_new_null(), *details = ls_json_new_null();
    const char *status = status_of(r);
    if (status == FAILED) {
        ls_json_free(error);
        error = ls_json_new_object();
        ls_json_set_text(error, "code", "server_error");
        ls_json_set_text(error, "message", "the server ended before the response was complete");
    } else if (status == INCOMPLETE) {
        ls_json_free(details);
        details = ls_json_new_object();
        ls_json_set_text(details, "reason", "max_output_tokens");
    }
    ls_json_set_text(o, "status", status);
    ls_json_set(o, "error", error);
    ls_json_set(o, "incomplete_details", details);
}

static ls_json *output_of(const ls_text_answer *a) {
    ls_json *output = ls_json_new_array();
    if (a->replies->state != LS_REPLY_ENDED) return output;
    ls_answer_parts p = ls_answer_parts_of(a, a->replies);
    if (has_thought(&p)) ls_json_push(output, done_thought(a, &p));
    if (has_message(&p)) ls_json_push(output, done_message(a, &p));
    for (size_t k = 0; k < p.calls.n; k++) ls_json_push(output, done_call(a, &p, k));
    if (p.calls.after.len) ls_json_push(output, done_after(a, &p));
    ls_tool_text_free(&p.calls);
    return output;
}

static ls_json *response_of(const ls_text_answer *a) {
    const ls_text_request *q = a->request;
    bool ended = a->replies->state == LS_REPLY_ENDED;
    ls_json *o = ls_json_new_object();
    ls_json_set_text(o, "id", a->id);
    ls_json_set_text(o, "object", "response");
    ls_json_set_integer(o, "created_at", a->created);
    set_end(o, a->replies);
    ls_json_set_text(o, "model", ls_request_model_name(a->model, q->adapter));
    ls_json_set(o, "output", output_of(a));
    ls_json_set(o, "usage", ended ? usage_of(a) : ls_json_new_null());
    set_asked(o, a, "instructions", ls_json_new_null());
    set_asked(o, a, "max_output_tokens", ls_json_new_null());
    set_asked(o, a, "metadata", ls_json_new_object());
    set_asked(o, a, "text", plain_text());
    set_asked(o, a, "tools", ls_json_new_array());
    set_asked(o, a, "tool_choice", ls_json_new_text("auto"));
    ls_json_set_bool(o, "parallel_tool_calls", q->tools.parallel);
    ls_json_set_number(o, "temperature", q->rule.sampler.temperature);
    double top_p = q->rule.sampler.top_p;
    ls_json_set_number(o, "top_p", top_p > 0 ? top_p : 1);
    ls_json_set_text(o, "truncation", "disabled");
    ls_json_set_bool(o, "background", false);
    ls_json_set_bool(o, "store", false);
    ls_json_set(o, "previous_response_id", ls_json_new_null());
    ls_json_set(o, "system_fingerprint",
                a->system_fingerprint ? ls_json_new_text(a->system_fingerprint)
                                      : ls_json_new_null());
    ls_json_set_integer(o, "seed", (int64_t)q->seed);
    return o;
}

void ls_response_write(const ls_text_answer *a, ls_buf *out) {
    ls_json *o = response_of(a);
    ls_json_write(o, 0, out);
    ls_json_free(o);
}

/* ---- a stream ---- */

/* An answer whose events are written. */
typedef struct event_writer {
    const ls_text_answer *a;
    ls_answer_sent *sent;
    const ls_answer_parts *p;
    ls_buf *out;
} event_writer;

static void put_event(const event_writer *w, const char *type, ls_json *o) {
    ls_json_set_text(o, "type", type);
    ls_json_set_integer(o, "sequence_number", (int64_t)w->sent->events++);
    ls_buf_printf(w->out, "event: %s\ndata: ", type);
    ls_json_write(o, 0, w->out);
    ls_buf_printf(w->out, "\n\n");
    ls_json_free(o);
}

/* With a member `key`, if it is not NULL. */
static ls_json *with(ls_json *o, const char *key, ls_json *value) {
    if (key) ls_json_set(o, key, value);
    return o;
}

static void put_response(const event_writer *w, const char *type) {
    put_event(w, type, with(ls_json_new_object(), "response", response_of(w->a)));
}

/* "added" or "done" of an item. */
static void put_item(const event_writer *w, const char *type, size_t at, ls_json *item) {
    ls_json *o = with(ls_json_new_object(), "item", item);
    ls_json_set_integer(o, "output_index", (int64_t)at);
    put_event(w, type, o);
}

/* Of an item's only part. */
static void put_part(const event_writer *w, const text_item *i, const char *type, const char *key,
                     ls_json *value) {
    ls_json *o = with(ls_json_new_object(), key, value);
    set_id(o, "item_id", id_of(w->a, i));
    ls_json_set_integer(o, "output_index", (int64_t)i->at);
    ls_json_set_integer(o, "content_index", 0);
    if (!is_thought(i) && strcmp(key, "part") != 0) ls_json_set(o, "logprobs", ls_json_new_array());
    put_event(w, type, o);
}

static void put_arguments(const event_writer *w, const char *type, const char *key, size_t from) {
    size_t k = w->sent->calls - 1;
    const ls_buf *text = &w->p->calls.calls[k].arguments;
    ls_json *piece = ls_json_new_bytes(text->len ? text->data + from : "", text->len - from);
    ls_json *o = with(ls_json_new_object(), key, piece);
    set_id(o, "item_id", ls_format("fc_%s-%zu", w->a->id, k));
    ls_json_set_integer(o, "output_index", (int64_t)call_at(w->p, k));
    put_event(w, type, o);
}

static void end_text(const event_writer *w, const text_item *i, ls_json *done) {
    put_part(w, i, i->done, "text", ls_json_new_bytes(i->text, i->n));
    put_part(w, i, "response.content_part.done", "part", part_of(i, i->n));
    put_item(w, "response.output_item.done", i->at, done);
}

/* The item that is open is done. */
static void end_item(const event_writer *w) {
    const text_item thought = thought_of(w->p), message = message_of(w->p), after = after_of(w->p);
    const size_t calls = w->sent->calls;
    switch (w->sent->open) {
    case LS_ITEM_NONE: break;
    case LS_ITEM_THOUGHT: end_text(w, &thought, done_thought(w->a, w->p)); break;
    case LS_ITEM_MESSAGE: end_text(w, &message, done_message(w->a, w->p)); break;
    case LS_ITEM_AFTER: end_text(w, &after, done_after(w->a, w->p)); break;
    case LS_ITEM_CALL:
        put_arguments(w, "response.function_call_arguments.done", "arguments", 0);
        put_item(w, "response.output_item.done", call_at(w->p, calls - 1),
                 done_call(w->a, w->p, calls - 1));
        break;
    }
    w->sent->open = LS_ITEM_NONE;
}

static void begin_text(const event_writer *w, const text_item *i) {
    if (w->sent->open == i->kind) return;
    end_item(w);
    put_item(w, "response.output_item.added", i->at, item_of(w->a, i, IN_PROGRESS, false));
    put_part(w, i, "response.content_part.added", "part", part_of(i, 0));
    w->sent->open = i->kind;
}

/* What is new of an item; sent: bytes. */
static void put_text(const event_writer *w, const text_item *i, size_t *sent) {
    if (i->n <= *sent) return;
    begin_text(w, i);
    put_part(w, i, i->delta, "delta", ls_json_new_bytes(i->text + *sent, i->n - *sent));
    *sent = i->n;
}

static void put_calls(const event_writer *w) {
    const ls_tool_text *t = &w->p->calls;
    ls_answer_sent *sent = w->sent;
    for (;;) {
        size_t n = sent->calls ? t->calls[sent->calls - 1].arguments.len : 0;
        if (n > sent->arguments)
            put_arguments(w, "response.function_call_arguments.delta", "delta", sent->arguments);
        sent->arguments = n;
        if (sent->calls == t->n) return;
        end_item(w);
        put_item(w, "response.output_item.added", call_at(w->p, sent->calls),
                 call_of(w->a, w->p, sent->calls, 0, IN_PROGRESS));
        sent->calls++;
        sent->arguments = 0;
        sent->open = LS_ITEM_CALL;
    }
}

static void put_end(const event_writer *w) {
    const char *status = status_of(w->a->replies);
    const text_item message = message_of(w->p), after = after_of(w->p);
    put_text(w, &after, &w->sent->after);
    if (has_message(w->p) && !w->p->calls.ncontent) begin_text(w, &message);
    end_item(w);
    put_response(w, status == FAILED       ? "response.failed"
                    : status == INCOMPLETE ? "response.incomplete"
                                           : "response.completed");
    w->sent->ended = true;
}

void ls_response_stream(const ls_text_answer *a, ls_answer_sent *sent, ls_buf *out) {
    ls_answer_parts p = ls_answer_parts_of(a, a->replies);
    const text_item thought = thought_of(&p), message = message_of(&p);
    event_writer w = {a, sent, &p, out};
    if (!sent->begun) {
        put_response(&w, "response.created");
        put_response(&w, "response.in_progress");
        sent->begun = true;
    }
    put_text(&w, &thought, &sent->thought);
    put_text(&w, &message, &sent->text);
    put_calls(&w);
    if (a->replies->state == LS_REPLY_ENDED && !sent->ended) put_end(&w);
    ls_tool_text_free(&p.calls);
}
