/* language.c - a language model that writes text, for the public header (lockstep/infer.h). */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/floats.h"
#include "base/graves.h"
#include "base/guard.h"
#include "base/locale.h"
#include "base/utf8.h"
#include "infer/chat.h"
#include "infer/text_writer.h"
#include "lockstep/infer.h"

enum { TEXT_TOKENS = 100, ANSWER_TOKENS = 512, MOST_TOKENS = 1000000 };

struct ls_language {
    ls_trained trained;
    char *template_file;    /* NULL: the model's template */
    ls_chat chat;           /* opened by the first conversation */
    bool has_chat;          /* it is open */
    ls_buf text;            /* what the last call wrote or decoded */
    ls_token_list encoding; /* the last call's tokens */
    bool closed;
};

/* ---- opening ---- */

static int count_texts(const char *const *texts) {
    int n = 0;
    while (texts && texts[n]) n++;
    return n;
}

ls_status ls_language_open(const char *path, const ls_language_options *options, ls_language **l_p,
                           ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    static const ls_language_options none;
    const ls_language_options *o = options ? options : &none;
    bool has_path = path && *path;
    if (!has_path || !l_p)
        return ls_fail(e, LS_EINVAL, "ls_language_open(): %s",
                       has_path ? "l_p is NULL" : "there is no path");
    const ls_trained_options how = {.ema = o->ema,
                                    .writes = true,
                                    .sets = o->sets,
                                    .nsets = count_texts(o->sets),
                                    .sets_from = "sets",
                                    .device = o->device};
    ls_language *l = LS_NEW(ls_language);
    ls_status s = ls_trained_open(path, &how, &l->trained, e);
    if (s == LS_OK) s = ls_trained_needs_text(&l->trained, "writing", e);
    if (s != LS_OK) {
        ls_language_close(l);
        return s;
    }
    if (o->template_file) l->template_file = ls_file_absolute(o->template_file);
    *l_p = l;
    return LS_OK;
}

void ls_language_close(ls_language *l) {
    static ls_graves graves = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (!l || l->closed) return;
    l->closed = true;
    if (l->has_chat) ls_chat_close(&l->chat);
    if (l->trained.path) ls_trained_close(&l->trained);
    free(l->template_file);
    free(l->encoding.ids);
    ls_buf_free(&l->text);
    free(ls_graves_bury(&graves, l));
}

static bool is_open(const ls_language *l) { return l && !l->closed; }

int64_t ls_language_vocab(const ls_language *l) {
    return is_open(l) ? l->trained.config.model.vocab : 0;
}
int64_t ls_language_context(const ls_language *l) {
    return is_open(l) ? l->trained.config.model.context : 0;
}

static ls_status check_there(const ls_language *l, const char *name, ls_error *e) {
    if (is_open(l)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s(): the model is %s", name, l ? "closed" : "NULL");
}

/* ---- tokens ---- */

ls_status ls_language_encode(ls_language *l, const char *text, size_t nbytes, int begin,
                             const uint32_t **ids_p, size_t *n_p, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    const ls_encoding how = {.what = "the text", .begin = begin};
    ls_token_list list;
    LS_TRY(check_there(l, "ls_language_encode", e));
    LS_TRY(
        ls_tokenizer_encode(l->trained.tokenizer, (const uint8_t *)text, nbytes, &how, &list, e));
    ls_token_list_log_dropped(&list, how.what);
    free(l->encoding.ids);
    l->encoding = list;
    *ids_p = list.ids;
    *n_p = list.n;
    return LS_OK;
}

static ls_status check_ids(const ls_language *l, const uint32_t *ids, size_t n, ls_error *e) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= ls_language_vocab(l))
            return ls_fail(e, LS_EINVAL, "token %zu is %u; the model has %lld", i, ids[i],
                           (long long)ls_language_vocab(l));
    return LS_OK;
}

ls_status ls_language_decode(ls_language *l, const uint32_t *ids, size_t n, const char **text_p,
                             size_t *nbytes_p, ls_error *e) {
    LS_TRY(check_there(l, "ls_language_decode", e));
    ls_decoding d = {.tokenizer = l->trained.tokenizer, .skip_special = true};
    LS_TRY(check_ids(l, ids, n, e));
    l->text.len = 0;
    for (size_t i = 0; i < n; i++) ls_decoding_add(&d, ids[i], &l->text);
    ls_decoding_end(&d, &l->text);
    ls_buf_append(&l->text, "", 1);
    *text_p = l->text.data;
    *nbytes_p = l->text.len - 1;
    return LS_OK;
}

ls_status ls_language_logits(ls_language *l, const uint32_t *ids, int64_t n, float *out,
                             ls_error *e) {
    LS_FLOATS();
    LS_TRY(check_there(l, "ls_language_logits", e));
    if (n < 1 || n > ls_language_context(l))
        return ls_fail(e, LS_EINVAL, "%lld tokens; the model reads 1 to %lld", (long long)n,
                       (long long)ls_language_context(l));
    LS_TRY(check_ids(l, ids, (size_t)n, e));
    ls_infer_logits(&l->trained.infer, ids, n, (size_t)ls_language_vocab(l), out);
    return ls_guard_check(e);
}

/* ---- writing ---- */

/* The text on its way to the caller. */
typedef struct output {
    const ls_writing_options *o;
    ls_buf *text;
    size_t skip; /* bytes of the prompt, which comes first */
    volatile sig_atomic_t asked;
} output;

static ls_status take(const uint8_t *bytes, size_t nbytes, void *arg, ls_error *e) {
    output *out = arg;
    size_t skip = nbytes < out->skip ? nbytes : out->skip;
    (void)e;
    out->skip -= skip;
    bytes += skip, nbytes -= skip;
    ls_buf_append(out->text, bytes, nbytes);
    if (nbytes && out->o->write && out->o->write(out->o->arg, (const char *)bytes, nbytes) != 0)
        out->asked = 1;
    return LS_OK;
}

/* A number that may be below 0, which is the model's own. */
static ls_status check_number(const char *name, double x, double low, double high, ls_error *e) {
    if (x <= 0 || (x >= low && x <= high)) return LS_OK;
    return ls_fail(e, LS_EINVAL, "%s is %g; possible are %g to %g", name, x, low, high);
}

static ls_status check_options(const ls_writing_options *o, ls_error *e) {
    if (o->tokens < 0 || o->tokens > MOST_TOKENS)
        return ls_fail(e, LS_EINVAL, "tokens is %lld; possible are 0 to %d", (long long)o->tokens,
                       MOST_TOKENS);
    LS_TRY(check_number("temperature", o->temperature, 0, 1000, e));
    LS_TRY(check_number("top_p", o->top_p, 0, 1, e));
    LS_TRY(check_number("min_p", o->min_p, 0, 1, e));
    LS_TRY(check_number("penalty", o->penalty, 0.01, 100, e));
    for (int i = 0; o->stops && o->stops[i]; i++)
        if (!*o->stops[i]) return ls_fail(e, LS_EINVAL, "stops: a text is empty");
    return LS_OK;
}

/* What the caller wants; `otherwise`: numbers where neither the caller nor the model has one. */
static ls_writing writing_of(const ls_language *l, const ls_sampler_rule *otherwise, output *out) {
    const ls_writing_options *o = out->o;
    ls_writing w = {.ntokens = o->tokens,
                    .seed = o->seed,
                    .rule = {.temperature = o->temperature,
                             .top_k = o->top_k,
                             .top_p = o->top_p,
                             .min_p = o->min_p,
                             .penalty = o->penalty},
                    .stops = o->stops,
                    .nstops = count_texts(o->stops),
                    .asked = &out->asked,
                    .fn = take,
                    .arg = out};
    ls_trained_complete_rule(&l->trained, otherwise, &w.rule);
    return w;
}

static void finish(ls_language *l, const ls_generated *done, ls_language_text *w_p) {
    ls_buf_append(&l->text, "", 1);
    *w_p = (ls_language_text){.text = l->text.data,
                              .nbytes = l->text.len - 1,
                              .ntokens = done->ntokens,
                              .end = ls_written_end_name(done->end)};
}

static const ls_writing_options nothing_asked;

ls_status ls_language_generate(ls_language *l, const char *prompt, const ls_writing_options *o,
                               ls_language_text *w_p, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    LS_TRY(check_there(l, "ls_language_generate", e));
    output out = {.o = o ? o : &nothing_asked, .text = &l->text};
    ls_generated done;
    if (!prompt) return ls_fail(e, LS_EINVAL, "ls_language_generate(): there is no prompt");
    LS_TRY(check_options(out.o, e));
    LS_TRY(ls_utf8_check(prompt, strlen(prompt), "the prompt", e));
    ls_writing w = writing_of(l, &(ls_sampler_rule){.temperature = 1}, &out);
    if (w.ntokens == 0) w.ntokens = TEXT_TOKENS;
    out.skip = *prompt ? strlen(prompt) : 1;
    l->text.len = 0;
    LS_TRY(ls_generate(&l->trained, prompt, &w, &done, e));
    LS_TRY(ls_guard_check(e));
    finish(l, &done, w_p);
    return LS_OK;
}

/* ---- conversations ---- */

static ls_status add_messages(ls_talk *t, const ls_language_message *messages, int n, ls_error *e) {
    for (int i = 0; i < n; i++) {
        const ls_language_message *m = &messages[i];
        bool is_last = i == n - 1;
        if (!m->role || !m->text)
            return ls_fail(e, LS_EINVAL, "message %d has no role or no text", i + 1);
        LS_TRY(ls_utf8_check(m->text, strlen(m->text), "a message", e));
        if (is_last && strcmp(m->role, "user") != 0)
            return ls_fail(e, LS_EINVAL, "the last message is of '%s'; the user's is answered",
                           m->role);
        if (!is_last && !ls_talk_add(t, m->role, m->text))
            return ls_fail(e, LS_EINVAL,
                           "message %d is of '%s'; there are system, user and assistant", i + 1,
                           m->role);
    }
    return LS_OK;
}

ls_status ls_language_chat(ls_language *l, const ls_language_message *messages, int n,
                           const ls_writing_options *o, ls_language_text *w_p, ls_error *e) {
    LS_LOCALE_C();
    LS_FLOATS();
    LS_TRY(check_there(l, "ls_language_chat", e));
    output out = {.o = o ? o : &nothing_asked, .text = &l->text};
    ls_generated done;
    const char *answer = NULL;
    if (!messages || n < 1) return ls_fail(e, LS_EINVAL, "there is no message");
    LS_TRY(check_options(out.o, e));
    if (!l->has_chat) LS_TRY(ls_chat_open(&l->trained, l->template_file, &l->chat, e));
    l->has_chat = true;
    ls_chat_restart(&l->chat);
    LS_TRY(add_messages(&l->chat.talk, messages, n, e));
    ls_writing w = writing_of(l, &(ls_sampler_rule){.temperature = 0.7, .top_p = 0.95}, &out);
    if (w.ntokens == 0) w.ntokens = ANSWER_TOKENS;
    l->text.len = 0;
    LS_TRY(ls_chat_say(&l->chat, messages[n - 1].text, &w, &done, &answer, e));
    LS_TRY(ls_guard_check(e));
    finish(l, &done, w_p);
    return LS_OK;
}
