/* chat.c - see chat.h. */
#include "infer/chat.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "weights/model_text.h"

/* Tokens that end a turn in the templates of published models. */
static const char *const ends[] = {"<|im_end|>", "<|eot_id|>",    "<|eom_id|>",   "<|end|>",
                                   "</s>",       "<end_of_turn>", "<|endoftext|>"};
enum { NENDS = sizeof ends / sizeof *ends };

/* ---- the template ---- */

static void add_end(ls_chat *c, uint32_t token) {
    for (int i = 0; i < c->nends; i++)
        if (c->ends[i] == token) return;
    c->ends[c->nends++] = token;
}

static char *name_of(const ls_tokenizer *t, int64_t token) {
    size_t n = 0;
    const uint8_t *bytes = NULL;
    if (token >= 0 && token < (int64_t)ls_tokenizer_vocab(t))
        bytes = ls_tokenizer_bytes(t, (uint32_t)token, &n);
    char *name = ls_alloc(n + 1);
    if (n) memcpy(name, bytes, n);
    return name;
}

static void find_ends(ls_chat *c, const ls_tokenizer *t, const ls_architecture *a) {
    c->ends = LS_NEW_ARRAY(uint32_t, NENDS + LS_MAX_EOS);
    for (int i = 0; a && i < a->neos; i++) add_end(c, (uint32_t)a->eos[i]);
    for (int i = 0; i < NENDS; i++) {
        uint32_t token = ls_tokenizer_find(t, ends[i]);
        if (token != LS_NO_TOKEN) add_end(c, token);
    }
}

/* What the published model has: the text of its template, and the names of its tokens. */
static ls_status read_published(ls_chat *c, const char *path, ls_buf *text, ls_error *e) {
    const ls_tokenizer *t = c->writer.trained->tokenizer;
    ls_weights w = {0};
    LS_TRY(ls_weights_open(path, &w, e));
    ls_status s = ls_model_template(&w, text, e);
    c->bos = name_of(t, w.arch.bos);
    c->eos = name_of(t, w.arch.neos ? w.arch.eos[0] : -1);
    find_ends(c, t, &w.arch);
    ls_weights_close(&w);
    return s;
}

static const char *published_path(const ls_trained *t) {
    if (t->is_published) return t->path;
    return *t->config.model.from ? t->config.model.from : NULL;
}

static ls_status read_template(ls_chat *c, const char *file, ls_error *e) {
    const ls_trained *t = c->writer.trained;
    const char *from = published_path(t);
    if (!file && !t->is_published && *t->config.data.template) file = t->config.data.template;
    ls_buf text = {0};
    ls_error own = {0};
    ls_status s = from ? read_published(c, from, &text, file ? &own : e) : LS_OK;
    if (file) { /* the files of the model may be gone */
        text.len = 0;
        s = ls_file_read(file, LS_TEMPLATE_BYTES, &text, e);
    }
    if (s == LS_OK && text.len == 0)
        s = ls_fail(e, LS_EINVAL, "%s: has no chat template; give one with --template",
                    from ? from : t->path);
    if (s == LS_OK)
        s = ls_template_parse(text.data, text.len, file ? file : "chat template", &c->template, e);
    ls_buf_free(&text);
    return s;
}

ls_status ls_chat_open(const ls_trained *t, const char *file, ls_chat *c_p, ls_error *e) {
    ls_chat c = {0};
    LS_TRY(ls_trained_needs_text(t, "chat", e));
    LS_TRY(ls_writer_open(t, &c.writer, e));
    ls_status s = read_template(&c, file, e);
    if (!c.ends) find_ends(&c, t->tokenizer, NULL);
    if (!c.bos) c.bos = name_of(t->tokenizer, -1);
    if (!c.eos) c.eos = name_of(t->tokenizer, -1);
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
    free(c->bos);
    free(c->eos);
    free(c->ends);
    ls_template_free(c->template);
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

/* ---- a turn ---- */

static ls_status render(const ls_chat *c, ls_buf *out, ls_error *e) {
    ls_json *globals = ls_json_new_object(), *messages = ls_json_new_array();
    for (size_t i = 0; i < c->n; i++) {
        ls_json *m = ls_json_new_object();
        ls_json_set_text(m, "role", c->messages[i].role);
        ls_json_set(m, "content", ls_json_new_bytes(c->messages[i].text, strlen(c->messages[i].text)));
        ls_json_push(messages, m);
    }
    ls_json_set(globals, "messages", messages);
    ls_json_set(globals, "add_generation_prompt", ls_json_new_bool(true));
    ls_json_set_text(globals, "bos_token", c->bos);
    ls_json_set_text(globals, "eos_token", c->eos);
    time_t now = time(NULL);
    struct tm date;
    ls_status s = ls_template_render(c->template, globals, localtime_r(&now, &date), out, e);
    ls_json_free(globals);
    return s;
}

/* A message without the space around it, which templates trim. */
static size_t trimmed(const char *text, const char **at_p) {
    static const char space[] = " \t\r\n";
    size_t n;
    text += strspn(text, space);
    for (n = strlen(text); n && strchr(space, text[n - 1]); n--) {}
    *at_p = text;
    return n;
}

/* Where the messages are in the text; returns how many were found. */
static size_t find_messages(const ls_chat *c, const ls_buf *text, ls_text_range *plain) {
    size_t at = 0, found = 0;
    for (size_t i = 0; i < c->n; i++) {
        const char *m = NULL, *there = NULL;
        size_t n = trimmed(c->messages[i].text, &m);
        if (n) there = memmem(text->data + at, text->len - at, m, n);
        if (!there) continue;
        plain[found].from = (size_t)(there - text->data);
        at = plain[found].from + n;
        plain[found++].to = at;
    }
    return found;
}

static ls_status encode(const ls_chat *c, ls_token_list *list_p, ls_error *e) {
    ls_buf text = {0};
    ls_text_range *plain = LS_NEW_ARRAY(ls_text_range, c->n);
    ls_status s = render(c, &text, e);
    if (s == LS_OK) {
        ls_encoding how = {.what = "the conversation", .special = true, .plain = plain};
        how.nplain = find_messages(c, &text, plain);
        s = ls_tokenizer_encode_as(c->writer.trained->tokenizer, (const uint8_t *)text.data,
                                   text.len, &how, list_p, e);
    }
    free(plain);
    ls_buf_free(&text);
    return s;
}

/* The writer gets the tokens, and computes those that are new, at least the last one. */
static ls_status give(ls_chat *c, const ls_token_list *list, ls_error *e) {
    ls_writer *w = &c->writer;
    int64_t n = 0, context = w->trained->config.model.context;
    if ((int64_t)list->n >= context)
        return ls_fail(e, LS_EINVAL,
                       "the conversation has %zu tokens, and the model's context %lld; begin a new one "
                       "(/reset)",
                       list->n, (long long)context);
    if (list->n == 0) return ls_fail(e, LS_EINVAL, "the chat template writes nothing");
    while (n < w->decode.npositions && n + 1 < (int64_t)list->n &&
           w->text[n] == list->ids[n])
        n++;
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
    o.ends = c->ends;
    o.nends = c->nends;
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
