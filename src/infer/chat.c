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
        s = ls_fail(
            e, LS_EINVAL,
            "%s: has no chat template; give one with --template (in C template_file, in Python "
            "template=)",
            t->path);
    if (s == LS_OK)
        *c_p = c;
    else
        ls_chat_close(&c);
    return s;
}

void ls_chat_close(ls_chat *c) {
    ls_talk_free(&c->talk);
    ls_chat_format_free(&c->format);
    ls_writer_close(&c->writer);
    *c = (ls_chat){0};
}

void ls_chat_restart(ls_chat *c) {
    ls_talk_begin(&c->talk, NULL);
    c->ndrawn = 0;
}

/* ---- a turn ---- */

static ls_status encode(const ls_chat *c, ls_token_list *list_p, ls_error *e) {
    time_t now = time(NULL);
    struct tm date;
    ls_chat_prompt p = {c->talk.messages, c->talk.n, localtime_r(&now, &date)};
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
    size_t before = c->talk.n;
    ls_talk_add(&c->talk, "user", text);
    ls_status s = encode(c, &list, e);
    if (s == LS_OK) s = give(c, &list, e);
    if (s == LS_OK) s = answer(c, o, &t, g_p, e);
    ls_buf_append(&t.answer, "", 1);
    if (s == LS_OK) {
        ls_talk_add(&c->talk, "assistant", t.answer.data);
        *answer_p = c->talk.messages[c->talk.n - 1].text;
    } else {
        ls_talk_cut(&c->talk, before);
    }
    free(list.ids);
    ls_buf_free(&t.answer);
    return s;
}
