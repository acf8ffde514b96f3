/* remote.c - see remote.h. */
#include "serve/remote.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "http/client.h"

enum { MOST_KEY = 4096, MOST_EVENT = 4 << 20, MOST_ANSWER = 64 << 20 };

struct ls_remote {
    ls_http_client *client;
    char *base; /* its URL, as http://HOST:PORT/v1 */
    char *key;  /* NULL: none */
    char *model;
    ls_talk talk;
    const ls_text_form *form;
    ls_buf models; /* that it has, as a list for people; empty: not known */
};

/* ---- errors ---- */

/* What the server says of an error: {"error": {"message": ...}}, {"error": ...}, {"message": ...}
 * or {"detail": ...}. "": nothing. */
static char *message_of(const ls_buf *body) {
    ls_json *o = NULL;
    const char *text = NULL;
    if (ls_json_parse(body->data, body->len, "the answer", &o, NULL) == LS_OK) {
        const ls_json *error = ls_json_get(o, "error");
        text = ls_json_text(ls_json_get(error, "message"));
        if (!text) text = ls_json_text(error);
        if (!text) text = ls_json_text(ls_json_get(o, "message"));
        if (!text) text = ls_json_text(ls_json_get(o, "detail"));
    }
    size_t n = text ? strnlen(text, 600) : 0;
    if (n && text[n - 1] == '.') n--; /* ours goes on behind it */
    char *message = ls_format("%s%.*s", n ? ": " : "", (int)n, text ? text : "");
    ls_json_free(o);
    return message;
}

/* An answer that is not 200. */
static ls_status refused(const ls_remote *r, const ls_http_reply *a, ls_error *e) {
    char *why = message_of(&a->body), *wait = ls_strdup("");
    if (a->retry_after_s) {
        free(wait);
        wait = ls_format("; try again in %lld s", (long long)a->retry_after_s);
    }
    switch (a->status) {
    case 401:
    case 403:
        ls_fail(e, LS_EINVAL,
                r->key ? "%s: refuses the key (%d)%s"
                       : "%s: needs a key (%d)%s; --api-key-file FILE has one",
                r->base, a->status, why);
        break;
    case 404:
        if (!r->model)
            ls_fail(e, LS_EINVAL, "%s: has no list of models (404)%s; give --model, or another URL",
                    r->base, why);
        else
            ls_fail(e, LS_EINVAL, "%s: does not know the model '%s' (404)%s%s%s", r->base, r->model,
                    why, r->models.len ? "; it has " : "", r->models.len ? r->models.data : "");
        break;
    case 429:
        ls_fail(e, LS_EINVAL, "%s: has too many requests (429)%s%s", r->base, why, wait);
        break;
    default: ls_fail(e, LS_EINVAL, "%s: answers with status %d%s%s", r->base, a->status, why, wait);
    }
    free(why);
    free(wait);
    return LS_EINVAL;
}

/* ---- opening ---- */

/* A key is one line without white space, which a header can have. */
static ls_status read_key(const char *path, char **key_p, ls_error *e) {
    ls_buf text = {0};
    LS_TRY(ls_file_read(path, MOST_KEY, &text, e));
    ls_buf_append(&text, "", 1);
    size_t n = strcspn(text.data, "\r\n"), i = 0;
    while (i < n && isgraph((unsigned char)text.data[i])) i++;
    bool good = n > 0 && i == n;
    if (good) *key_p = ls_format("%.*s", (int)n, text.data);
    ls_buf_free(&text);
    if (good) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: its first line must be the key, without white space", path);
}

/* http://HOST:PORT is that of the API, too. */
static char *base_of(const char *url) {
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/') n--;
    const char *host = strstr(url, "://") + 3;
    bool bare = !memchr(host, '/', (size_t)(url + n - host));
    return ls_format("%.*s%s", (int)n, url, bare ? "/v1" : "");
}

static ls_status get(ls_remote *r, const char *path, ls_http_reply *a, ls_error *e) {
    char *url = ls_format("%s%s", r->base, path);
    ls_status s = ls_http_client_ask(r->client, &(ls_http_question){.url = url}, a, e);
    free(url);
    return s;
}

/* The first model that is listed, if none is given. */
static ls_status take_models(ls_remote *r, const ls_buf *body, ls_error *e) {
    ls_json *o = NULL;
    ls_error why = {0};
    ls_status s = ls_json_parse(body->data, body->len, "the list of models", &o, &why);
    const ls_json *list = ls_json_get(o, "data");
    for (size_t i = 0; i < ls_json_count(list); i++) {
        const char *name = ls_json_text(ls_json_get(ls_json_at(list, i), "id"));
        if (!name) continue;
        if (i < 20) ls_buf_printf(&r->models, "%s%.100s", r->models.len ? ", " : "", name);
        if (!r->model) r->model = ls_strdup(name);
    }
    ls_json_free(o);
    if (r->model) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: lists no model%s%s; give --model, or another URL", r->base,
                   s == LS_OK ? "" : ": ", s == LS_OK ? "" : why.msg);
}

static ls_status find_model(ls_remote *r, ls_error *e) {
    ls_http_reply a = {0};
    ls_status s = get(r, "/models", &a, e);
    if (s == LS_OK && a.status == 200)
        s = take_models(r, &a.body, e);
    else if (s == LS_OK && !(r->model && (a.status == 404 || a.status == 405)))
        s = refused(r, &a, e);
    ls_buf_free(&a.body);
    return s;
}

ls_status ls_remote_open(const ls_remote_options *o, ls_remote **r_p, ls_error *e) {
    LS_TRY(ls_http_client_check_url(o->url, e));
    ls_remote *r = LS_NEW(ls_remote);
    *r = (ls_remote){.base = base_of(o->url), .form = o->form};
    if (o->model) r->model = ls_strdup(o->model);
    ls_status s = o->key_file ? read_key(o->key_file, &r->key, e) : LS_OK;
    const ls_http_client_options c = {o->authorities, r->key};
    if (s == LS_OK) s = ls_http_client_open(&c, &r->client, e);
    if (s == LS_OK) s = find_model(r, e);
    if (s == LS_OK)
        *r_p = r;
    else
        ls_remote_close(r);
    return s;
}

void ls_remote_close(ls_remote *r) {
    if (!r) return;
    ls_http_client_close(r->client);
    ls_talk_free(&r->talk);
    ls_buf_free(&r->models);
    free(r->base), free(r->key), free(r->model);
    free(r);
}

const char *ls_remote_model(const ls_remote *r) { return r->model; }
ls_talk *ls_remote_talk(ls_remote *r) { return &r->talk; }

/* ---- what is asked ---- */

/* Fields that are not OpenAI's are sent only if the user has given them. */
static void set_rule(ls_json *o, const ls_writing *w) {
    const ls_sampler_rule *r = &w->rule;
    if (r->temperature >= 0) ls_json_set_number(o, "temperature", r->temperature);
    if (r->top_p >= 0) ls_json_set_number(o, "top_p", r->top_p);
    if (r->min_p >= 0) ls_json_set_number(o, "min_p", r->min_p);
    if (r->top_k >= 0) ls_json_set_integer(o, "top_k", r->top_k);
    if (r->penalty >= 0) ls_json_set_number(o, "repetition_penalty", r->penalty);
    if (w->nstops == 0) return;
    ls_json *stops = ls_json_new_array();
    for (int i = 0; i < w->nstops; i++)
        ls_json_push(stops, ls_json_new_bytes(w->stops[i], strlen(w->stops[i])));
    ls_json_set(o, "stop", stops);
}

/* JSON as OpenAI's API has it, expressions as vLLM's. */
static void set_form(ls_json *o, const ls_text_form *f) {
    ls_json *format = ls_json_new_object(), *of = ls_json_new_object();
    if (f->regex) {
        ls_json_set_text(of, "regex", f->regex);
        ls_json_set(o, "structured_outputs", of);
        ls_json_free(format);
        return;
    }
    ls_json_set_text(format, "type", f->schema ? "json_schema" : "json_object");
    ls_json_set_text(of, "name", "answer");
    if (f->schema) {
        ls_json_set(of, "schema", ls_json_share(f->schema));
        ls_json_set_bool(of, "strict", true);
        ls_json_set(format, "json_schema", of);
    } else {
        ls_json_free(of);
    }
    ls_json_set(o, "response_format", format);
}

static void write_body(const ls_remote *r, const ls_writing *w, ls_buf *body) {
    ls_json *o = ls_json_new_object(), *options = ls_json_new_object();
    ls_json_set(o, "model", ls_json_new_bytes(r->model, strlen(r->model)));
    ls_json_set(o, "messages", ls_chat_messages_json(r->talk.messages, r->talk.n));
    if (w->ntokens != LS_REMOTE_TOKENS) ls_json_set_integer(o, "max_tokens", w->ntokens);
    ls_json_set_integer(o, "seed", (int64_t)w->seed);
    set_rule(o, w);
    if (ls_text_form_is_given(r->form)) set_form(o, r->form);
    ls_json_set_bool(o, "stream", true);
    ls_json_set_bool(options, "include_usage", true);
    ls_json_set(o, "stream_options", options);
    ls_json_write(o, 0, body);
    ls_buf_append(body, "", 1);
    ls_json_free(o);
}

/* ---- the answer ---- */

typedef struct stream {
    const ls_remote *r;
    const ls_writing *w;
    ls_buf line;   /* that is not complete yet */
    ls_buf answer; /* the text so far */
    ls_generated done;
    bool thinks;   /* the latest piece was a thought */
    bool finished; /* the server has said why the text ends */
} stream;

static ls_status take_choice(stream *x, const ls_json *choice, ls_error *e) {
    const ls_json *delta = ls_json_get(choice, "delta");
    const char *text = ls_json_text(ls_json_get(delta, "content"));
    const char *thought = ls_json_text(ls_json_get(delta, "reasoning_content"));
    const char *end = ls_json_text(ls_json_get(choice, "finish_reason"));
    if (end) {
        x->finished = true;
        x->done.end = strcmp(end, "length") == 0                         ? LS_END_LENGTH
                      : ls_json_text(ls_json_get(choice, "stop_reason")) ? LS_END_STOP
                                                                         : LS_END_TOKEN;
    }
    if (thought && *thought) { /* is seen, and is no part of the conversation */
        x->thinks = true;
        LS_TRY(x->w->fn((const uint8_t *)thought, strlen(thought), x->w->arg, e));
    }
    if (!text || !*text) return LS_OK;
    if (x->thinks) LS_TRY(x->w->fn((const uint8_t *)"\n\n", 2, x->w->arg, e));
    x->thinks = false;
    size_t n = strlen(text);
    if (n > MOST_ANSWER - x->answer.len)
        return ls_fail(e, LS_EIO, "%s: the answer is longer than %d bytes", x->r->base,
                       MOST_ANSWER);
    ls_buf_append(&x->answer, text, n);
    return x->w->fn((const uint8_t *)text, n, x->w->arg, e);
}

static ls_status take_event(stream *x, const char *data, ls_error *e) {
    ls_json *o = NULL;
    ls_error why = {0};
    if (strcmp(data, "[DONE]") == 0) {
        x->finished = true;
        return LS_OK;
    }
    if (ls_json_parse(data, strlen(data), "an event", &o, &why) != LS_OK)
        return ls_fail(e, LS_EIO, "%s: the answer is not one of OpenAI's API: %s", x->r->base,
                       why.msg);
    const ls_json *error = ls_json_get(o, "error");
    ls_status s = LS_OK;
    if (error && !ls_json_is_null(error)) {
        const ls_buf body = {.data = (char *)(uintptr_t)data, .len = strlen(data)};
        char *message = message_of(&body);
        s = ls_fail(e, LS_EIO, "%s: the answer ends with an error%s", x->r->base, message);
        free(message);
    } else {
        s = take_choice(x, ls_json_at(ls_json_get(o, "choices"), 0), e);
        ls_json_integer(ls_json_get(ls_json_get(o, "usage"), "completion_tokens"),
                        &x->done.ntokens);
    }
    ls_json_free(o);
    return s;
}

/* A line of the stream; those that are no data are comments, names and empty. */
static ls_status take_line(stream *x, ls_error *e) {
    static const char mark[] = "data:";
    ls_buf *line = &x->line;
    if (line->len && line->data[line->len - 1] == '\r') line->len--;
    ls_buf_append(line, "", 1);
    const char *text = line->data;
    line->len = 0;
    if (strncmp(text, mark, sizeof mark - 1) != 0) return LS_OK;
    text += sizeof mark - 1;
    return take_event(x, text + (*text == ' '), e);
}

static ls_status take_bytes(void *arg, const char *bytes, size_t n, ls_error *e) {
    stream *x = arg;
    while (n) {
        const char *end = memchr(bytes, '\n', n);
        size_t k = end ? (size_t)(end - bytes) : n;
        if (k > MOST_EVENT - x->line.len)
            return ls_fail(e, LS_EIO, "%s: an event is longer than %d bytes", x->r->base,
                           MOST_EVENT);
        ls_buf_append(&x->line, bytes, k);
        if (!end) return LS_OK;
        LS_TRY(take_line(x, e));
        bytes += k + 1;
        n -= k + 1;
    }
    return LS_OK;
}

/* A server that does not know the form leaves it out. What is cut has none. */
static ls_status check_form(const stream *x, ls_error *e) {
    ls_error why = {0};
    if (!ls_text_form_is_given(x->r->form) || x->done.end != LS_END_TOKEN) return LS_OK;
    const char *text = x->answer.data ? x->answer.data : "";
    if (ls_text_form_check(x->r->form, text, x->answer.len, &why) == LS_OK) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s: the answer does not have the form that was asked for: %s",
                   x->r->base, why.msg);
}

/* What came of it, as a whole. */
static ls_status look_at_end(stream *x, const ls_http_reply *a, ls_error *e) {
    if (a->asked) {
        x->done.end = LS_END_ASKED;
        return LS_OK;
    }
    if (a->status != 200) return refused(x->r, a, e);
    if (x->finished) return check_form(x, e);
    if (!strstr(a->type, "text/event-stream"))
        return ls_fail(e, LS_EIO, "%s: does not answer by a stream of events, but with '%s'",
                       x->r->base, a->type);
    return ls_fail(e, LS_EIO, "%s: the answer ended before it was complete", x->r->base);
}

static ls_status ask(ls_remote *r, const char *body, stream *x, ls_error *e) {
    char *url = ls_format("%s/chat/completions", r->base);
    ls_http_reply a = {0};
    const ls_http_question q = {
        .url = url, .body = body, .asked = x->w->asked, .take = take_bytes, .arg = x};
    ls_status s = ls_http_client_ask(r->client, &q, &a, e);
    if (s == LS_OK) s = look_at_end(x, &a, e);
    ls_buf_free(&a.body);
    free(url);
    return s;
}

ls_status ls_remote_say(ls_remote *r, const char *text, const ls_writing *w, ls_generated *g_p,
                        const char **answer_p, ls_error *e) {
    ls_talk *t = &r->talk;
    stream x = {.r = r, .w = w, .done = {.ntokens = -1}};
    ls_buf body = {0};
    size_t before = t->n;
    ls_talk_add(t, "user", text);
    write_body(r, w, &body);
    ls_status s = ask(r, body.data, &x, e);
    bool given_up = s == LS_OK && x.done.end == LS_END_ASKED && x.answer.len == 0;
    ls_buf_append(&x.answer, "", 1);
    if (s == LS_OK) {
        *g_p = x.done;
        ls_talk_add(t, "assistant", x.answer.data);
        *answer_p = given_up ? "" : t->messages[t->n - 1].text;
    }
    if (s != LS_OK || given_up) ls_talk_cut(t, before);
    ls_buf_free(&x.line);
    ls_buf_free(&x.answer);
    ls_buf_free(&body);
    return s;
}
