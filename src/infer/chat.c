/* chat.c - see chat.h. */
#include "infer/chat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "infer/conversations.h"

ls_status ls_chat_open(const ls_trained *t, const char *file, ls_chat *c_p, ls_error *e) {
    ls_chat c = {0};
    LS_TRY(ls_trained_needs_text(t, "chat", e));
    LS_TRY(ls_writer_open(t, &c.writer, e));
    ls_status s = ls_trained_chat_format(t, file, &c.format, e);
    if (s == LS_OK && !c.format.template)
        s = ls_fail(e, LS_EINVAL, "%s: has no chat template; give one with --template", t->path);
    if (s == LS_OK)
        *c_p = c;
    else
        ls_chat_close(&c);
    return s;
}

static void drop_messages(ls_chat *c, size_t from) {
    for (size_t i = from; i < c->n; i++) free(c->messages[i].text);
    if (c->n > from) c->n = from;
}

void ls_chat_close(ls_chat *c) {
    drop_messages(c, 0);
    free(c->messages);
    ls_chat_format_free(&c->format);
    ls_writer_close(&c->writer);
    *c = (ls_chat){0};
}

static void add_message(ls_chat *c, const char *role, const char *text) {
    c->messages = ls_realloc(c->messages, (c->n + 1) * sizeof *c->messages);
    c->messages[c->n++] = (ls_chat_message){role, ls_strdup(text)};
}

void ls_chat_begin(ls_chat *c, const char *system) {
    drop_messages(c, 0);
    ls_writer_clear(&c->writer);
    if (system && *system) add_message(c, "system", system);
}

void ls_chat_restart(ls_chat *c) {
    drop_messages(c, 0);
    c->ndrawn = 0;
}

bool ls_chat_add(ls_chat *c, const char *role, const char *text) {
    static const char *const roles[] = {"system", "user", "assistant"};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(role, roles[i]) != 0) continue;
        add_message(c, roles[i], text);
        return true;
    }
    return false;
}

/* ---- a turn ---- */

static ls_status encode(const ls_chat *c, ls_token_list *list_p, ls_error *e) {
    time_t now = time(NULL);
    struct tm date;
    ls_chat_prompt p = {c->messages, c->n, localtime_r(&now, &date)};
    return ls_chat_prompt_encode(&c->format, &p, list_p, e);
}

/* The writer gets the tokens, and computes those that are new, at least the last one. */
static ls_status give(ls_chat *c, const ls_token_list *list, ls_error *e) {
    ls_writer *w = &c->writer;
    int64_t n = 0, context = w->trained->config.model.context;
    if ((int64_t)list->n >= context)
        return ls_fail(
            e, LS_EINVAL,
            "the conversation has %zu tokens, and the model's context %lld; begin a new one "
            "(/reset)",
            list->n, (long long)context);
    if (list->n == 0) return ls_fail(e, LS_EINVAL, "the chat template writes nothing");
    while (n < w->decode.npositions && n + 1 < (int64_t)list->n && w->text[n] == list->ids[n]) n++;
    w->n = w->decode.npositions = w->decode.ntext = n;
    return ls_writer_add(w, list->ids + n, list->n - (size_t)n, "the conversation", e);
}

/* The caller's function, and the answer as a whole. */
typedef struct tee {
    const ls_writing *o;
    ls_buf answer;
} tee;

static ls_status write_tee(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    tee *t = arg;
    ls_buf_append(&t->answer, bytes, nbytes);
    return t->o->fn(bytes, nbytes, t->o->arg, e);
}

static ls_status answer(ls_chat *c, const ls_writing *given, tee *t, ls_generated *g_p,
                        ls_error *e) {
    ls_writing o = *given;
    int64_t left = c->writer.trained->config.model.context - c->writer.n;
    o.ends = c->format.ends;
    o.nends = c->format.nends;
    o.first = c->ndrawn;
    o.special = false;
    o.fn = write_tee;
    o.arg = t;
    if (o.ntokens > left) o.ntokens = left;
    ls_status s = ls_writer_write(&c->writer, &o, g_p, e);
    if (s == LS_OK) c->ndrawn += (uint64_t)g_p->ntokens;
    return s;
}

ls_status ls_chat_say(ls_chat *c, const char *text, const ls_writing *o, ls_generated *g_p,
                      const char **answer_p, ls_error *e) {
    ls_token_list list = {0};
    tee t = {o, {0}};
    size_t before = c->n;
    add_message(c, "user", text);
    ls_status s = encode(c, &list, e);
    if (s == LS_OK) s = give(c, &list, e);
    if (s == LS_OK) s = answer(c, o, &t, g_p, e);
    ls_buf_append(&t.answer, "", 1);
    if (s == LS_OK) {
        add_message(c, "assistant", t.answer.data);
        *answer_p = c->messages[c->n - 1].text;
    } else {
        drop_messages(c, before);
    }
    free(list.ids);
    ls_buf_free(&t.answer);
    return s;
}
