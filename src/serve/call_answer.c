/* call_answer.c - see call_answer.h. */
#include "serve/call_answer.h"

#include <stdlib.h>
#include <string.h>

bool ls_call_is_complete(const ls_tool_call *c) {
    ls_json *j = NULL;
    bool is = c->arguments.len &&
              ls_json_parse_value(c->arguments.data, c->arguments.len, "", &j, NULL) == LS_OK;
    ls_json_free(j);
    return is;
}

ls_answer_parts ls_answer_parts_of(const ls_text_answer *a, const ls_reply *r) {
    const ls_text_request *q = a->request;
    const char *text = r->text.data ? r->text.data : "";
    size_t n = r->text.len;
    bool ended = r->state == LS_REPLY_ENDED;
    ls_answer_parts p = {.thought = text, .content = text, .calls.ncontent = n};
    if (!q->chat) return p;
    const ls_thought_text t =
        ls_thought_read(&a->model->thought, q->rule.thinks,
                        q->tools.reads ? q->tools.names.form->open : "", text, n, ended);
    p.thought = text + t.from;
    p.content = text + t.rest;
    p.nthought = t.to - t.from;
    p.calls.ncontent = t.open ? 0 : n - t.rest;
    if (q->tools.reads && !t.open)
        ls_tool_text_read(&q->tools.names, p.content, n - t.rest, ended, &p.calls);
    p.called = ended && p.calls.n > 0;
    for (size_t i = 0; p.called && i < p.calls.n; i++)
        p.called = ls_call_is_complete(&p.calls.calls[i]);
    return p;
}

int64_t ls_answer_thought_tokens(const ls_text_answer *a, const ls_reply *r) {
    ls_answer_parts p = ls_answer_parts_of(a, r);
    int64_t i = r->nprompt;
    ls_tool_text_free(&p.calls);
    if (!p.nthought) return 0;
    while (i < r->n && r->tokens[i] != a->model->thought.tokens[1]) i++;
    return (i < r->n) + i - r->nprompt;
}

ls_call_name ls_call_name_of(const ls_text_answer *a, size_t i, size_t call) {
    static const char signs[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char *of = ls_format("%s-%zu-%zu", a->id, i, call);
    uint64_t number = ls_hash_bytes(of, strlen(of)).lo;
    ls_call_name name = {{0}};
    for (size_t k = 0; k + 1 < sizeof name.text; k++) {
        name.text[k] = signs[number % (sizeof signs - 1)];
        number /= sizeof signs - 1;
    }
    free(of);
    return name;
}

/* With its id and name; arguments [n]. */
static ls_json *call_of(const ls_text_answer *a, size_t i, size_t call, const ls_tool_call *c,
                        size_t n) {
    ls_json *o = ls_json_new_object(), *function = ls_json_new_object();
    ls_json_set_text(o, "id", ls_call_name_of(a, i, call).text);
    ls_json_set_text(o, "type", "function");
    ls_json_set_text(function, "name", c->name);
    ls_json_set(function, "arguments", ls_json_new_bytes(n ? c->arguments.data : "", n));
    ls_json_set(o, "function", function);
    return o;
}

ls_json *ls_calls_write(const ls_text_answer *a, size_t i, const ls_tool_text *t) {
    ls_json *list = ls_json_new_array();
    for (size_t k = 0; k < t->n; k++)
        ls_json_push(list, call_of(a, i, k, &t->calls[k], t->calls[k].arguments.len));
    return list;
}

static ls_json *piece_of(const ls_tool_call *c, size_t from) {
    ls_json *o = ls_json_new_object(), *function = ls_json_new_object();
    ls_json_set(function, "arguments",
                ls_json_new_bytes(c->arguments.data + from, c->arguments.len - from));
    ls_json_set(o, "function", function);
    return o;
}

ls_json *ls_calls_next(const ls_text_answer *a, size_t i, const ls_tool_text *t,
                       ls_answer_sent *sent) {
    ls_json *list = ls_json_new_array(), *one = NULL;
    size_t call = sent->calls;
    if (call && t->calls[call - 1].arguments.len > sent->arguments) {
        one = piece_of(&t->calls[--call], sent->arguments);
        sent->arguments = t->calls[call].arguments.len;
    } else if (call < t->n) {
        one = call_of(a, i, call, &t->calls[call], 0);
        sent->calls++;
        sent->arguments = 0;
    }
    if (one) {
        ls_json_set_integer(one, "index", (int64_t)call);
        ls_json_push(list, one);
        return list;
    }
    ls_json_free(list);
    return NULL;
}
