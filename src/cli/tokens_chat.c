/* tokens_chat.c - see tokens_chat.h. */
#include "cli/tokens_chat.h"

#include <unistd.h>

#include "base/plural.h"
#include "base/print.h"
#include "chat/chat_lines.h"
#include "chat/show.h"
#include "source/plain.h"
#include "source/text_files.h"
#include "weights/model_chat.h"
#include "weights/model_text.h"

typedef struct printer {
    const ls_tokenizer *tokenizer;
    bool json;
    ls_highlight highlight;
    uint64_t nsamples, ntokens, ntrained;
    ls_unread unread;
} printer;

static void put_text(ls_json *o, const ls_chat_spans *s, const ls_chat_tokens *t) {
    ls_json *ids = ls_json_new_array(), *trained = ls_json_new_array();
    for (size_t i = 0; i < t->n; i++) {
        ls_json_push(ids, ls_json_new_integer(t->ids[i]));
        ls_json_push(trained, ls_json_new_bool(t->trained[i]));
    }
    ls_json_set(o, "text", ls_json_new_bytes(s->text.data, s->text.len));
    ls_json_set(o, "ids", ids);
    ls_json_set(o, "trained", trained);
}

static void print_json(const ls_chat_sample *s) {
    ls_json *o = ls_json_new_object(), *rejected = ls_json_new_object();
    ls_json_set_integer(o, "line", (int64_t)s->line);
    put_text(o, s->spans, s->tokens);
    if (s->rejected) {
        put_text(rejected, s->rejected_spans, s->rejected);
        ls_json_set(o, "rejected", ls_json_share(rejected));
    }
    ls_print_json(o);
    ls_json_free(rejected);
}

/* what: of the line; "": all of it. */
static void show(printer *p, uint64_t line, const char *what, const ls_chat_tokens *t) {
    ls_buf text = {0};
    p->ntokens += t->n;
    p->ntrained += t->ntrained;
    if (p->json) return;
    ls_chat_show(p->tokenizer, t, SIZE_MAX, &text);
    ls_print("line %llu%s: %zu tokens, %zu trained on\n", (unsigned long long)line, what, t->n,
             t->ntrained);
    ls_print_highlighted(&p->highlight, text.data, text.len);
    ls_print("\n");
    ls_buf_free(&text);
}

static void print(void *arg, const ls_chat_sample *s) {
    printer *p = arg;
    p->nsamples++;
    if (p->json) print_json(s);
    show(p, s->line, s->rejected ? ", chosen" : "", s->tokens);
    if (s->rejected) show(p, s->line, ", rejected", s->rejected);
}

static ls_status print_file(const ls_tokens_chat *o, const char *path, const ls_chat_format *f,
                            printer *p, ls_error *e) {
    ls_plain file = {0};
    LS_TRY(ls_plain_open(path, NULL, LS_HOLES_REFUSED, &file, e));
    ls_chat_lines l = {.name = path,
                       .text = (const char *)file.data,
                       .nbytes = file.nbytes,
                       .format = f,
                       .wants = LS_WANTS_EITHER,
                       .loss = o->loss,
                       .unread = &p->unread,
                       .take = print,
                       .arg = p};
    ls_status s = ls_chat_lines_encode(&l, e);
    ls_plain_close(&file);
    return s;
}

static ls_status print_all(const ls_tokens_chat *o, const ls_chat_format *f, ls_error *e) {
    ls_text_files files = {0};
    printer p = {.tokenizer = f->tokenizer,
                 .json = o->json,
                 .highlight = ls_highlight_for(STDOUT_FILENO, LS_SHOWN_BEGIN, LS_SHOWN_END)};
    LS_TRY(ls_text_files_find_json(o->file, &files, e));
    ls_status s = LS_OK;
    for (size_t i = 0; s == LS_OK && i < files.files.n; i++)
        s = print_file(o, files.files.paths[i], f, &p, e);
    if (s == LS_OK) ls_text_files_log(&files, o->file, 0);
    ls_text_files_free(&files);
    if (s == LS_OK) ls_unread_log(&p.unread, o->file);
    ls_unread_free(&p.unread);
    if (s == LS_OK && !o->json)
        ls_print("%llu conversation%s, %llu tokens, of which %llu are trained on, %s\n",
                 (unsigned long long)p.nsamples, ls_plural((int64_t)p.nsamples),
                 (unsigned long long)p.ntokens, (unsigned long long)p.ntrained,
                 ls_shown_as(&p.highlight));
    return s;
}

ls_status ls_tokens_chat_print(const ls_tokens_chat *o, ls_error *e) {
    ls_weights w = {0};
    ls_tokenizer *t = NULL;
    ls_chat_format f = {0};
    LS_TRY(ls_weights_open(o->model, &w, e));
    ls_status s = ls_model_tokenizer(&w, &t, NULL, e);
    if (s == LS_OK) s = ls_model_chat_format(&w, t, o->template, &f, e);
    if (s == LS_OK) s = print_all(o, &f, e);
    ls_chat_format_free(&f);
    ls_tokenizer_free(t);
    ls_weights_close(&w);
    return s;
}
