/* chats_encode.c - files of conversations to numbers: see chats.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/plural.h"
#include "chat/chat_lines.h"
#include "chat/preference.h"
#include "chat/show.h"
#include "dataset/chats.h"
#include "source/note.h"
#include "source/plain.h"
#include "source/text_files.h"

enum { SHOWN = 1500 }; /* bytes */

typedef struct encoder {
    const ls_config *c;
    const ls_chat_format *f;
    uint32_t *ids; /* [n] */
    size_t n, room;
    bool val; /* of data.val_path */
    ls_chats_read *r;
    ls_error *e;
} encoder;

static void add(encoder *x, uint32_t id, uint32_t flag) {
    if (x->n == x->room) {
        x->room = x->room ? 2 * x->room : 4096;
        x->ids = ls_realloc(x->ids, x->room * sizeof *x->ids);
    }
    x->ids[x->n++] = id + (uint32_t)x->c->model.vocab * flag;
}

/* Cuts what is beyond the context. Returns whether there was any. */
static bool cut(encoder *x, ls_chat_tokens *t) {
    size_t most = (size_t)x->c->model.context + 1;
    if (t->n <= most) return false;
    x->r->nlost += t->n - most;
    for (size_t i = most; i < t->n; i++) t->ntrained -= t->trained[i];
    t->n = most;
    return true;
}

/* Cuts the texts of a sample. False: nothing is left to train on, or the texts of a pair no longer
 * differ. */
static bool cut_sample(encoder *x, const ls_chat_sample *s) {
    ls_chat_tokens *a = s->tokens, *b = s->rejected;
    bool is_cut = cut(x, a);
    if (b) is_cut = cut(x, b) || is_cut;
    bool left = a->ntrained > 0 && (!b || (b->ntrained > 0 && !ls_chat_tokens_same(a, b)));
    x->r->ncut += is_cut;
    x->r->nleft_out += !left;
    return left;
}

static void add_text(encoder *x, const ls_chat_tokens *t) {
    for (size_t i = 0; i < t->n; i++) add(x, t->ids[i], i == 0 ? (x->val ? 3 : 2) : t->trained[i]);
    x->r->ntokens += t->n;
    x->r->ntrained += t->ntrained;
}

static void show_pair(const encoder *x, const ls_chat_sample *s) {
    ls_buf *out = &x->r->shown;
    ls_buf_printf(out, "chosen:\n");
    ls_chat_show(x->f->tokenizer, s->tokens, SHOWN / 2, out);
    ls_buf_printf(out, "\nrejected:\n");
    ls_chat_show(x->f->tokenizer, s->rejected, SHOWN / 2, out);
}

static bool has_cr(const ls_chat_spans *s) {
    return s && s->text.len && memchr(s->text.data, '\r', s->text.len);
}

static void add_sample(void *arg, const ls_chat_sample *s) {
    encoder *x = arg;
    x->r->nseparate += s->separate;
    x->r->ncr += has_cr(s->spans) || has_cr(s->rejected_spans);
    if (!cut_sample(x, s)) return;
    if (!x->r->nsamples && s->rejected) show_pair(x, s);
    if (!x->r->nsamples && !s->rejected)
        ls_chat_show(x->f->tokenizer, s->tokens, SHOWN, &x->r->shown);
    add_text(x, s->tokens);
    if (s->rejected) add_text(x, s->rejected);
    x->r->nsamples++;
}

static void add_damaged(void *arg, const ls_error *why) {
    encoder *x = arg;
    ls_damage_add(&x->r->damage, why->msg);
}

static ls_status encode_file(encoder *x, const ls_plain *p) {
    ls_chat_lines l = {.name = p->path,
                       .text = (const char *)p->data,
                       .nbytes = p->nbytes,
                       .format = x->f,
                       .wants = ls_config_has_pairs(x->c) ? LS_WANTS_PAIRS : LS_WANTS_CHATS,
                       .loss = x->c->data.loss,
                       .unread = &x->r->unread,
                       .take = add_sample,
                       .damaged = x->c->data.damaged == LS_DAMAGED_SKIP ? add_damaged : NULL,
                       .arg = x};
    return ls_chat_lines_encode(&l, x->e);
}

static bool begins_with_pair(const ls_plain *p) {
    ls_json *first = ls_chat_lines_first((const char *)p->data, p->nbytes);
    bool is = ls_preference_is(first);
    ls_json_free(first);
    return is;
}

bool ls_chats_are_pairs(const char *paths) {
    ls_text_files f = {0};
    ls_plain first = {0};
    ls_error why = {0};
    if (ls_text_files_find_json(paths, &f, &why) != LS_OK) return false;
    bool opens =
        f.files.n && ls_plain_open(f.files.paths[0], NULL, LS_HOLES_REFUSED, &first, &why) == LS_OK;
    bool are = opens && begins_with_pair(&first);
    if (opens) ls_plain_close(&first);
    ls_text_files_free(&f);
    return are;
}

static ls_status encode_files(encoder *x, const char *paths) {
    ls_text_files f = {0};
    ls_plain *list = NULL;
    ls_source_options o = {.cache = *x->c->data.cache ? x->c->data.cache : NULL};
    LS_TRY(ls_text_files_find_json(paths, &f, x->e));
    ls_status s = ls_plain_open_all(&f.files, &o, LS_HOLES_REFUSED, &list, x->e);
    for (size_t i = 0; s == LS_OK && i < f.files.n; i++) {
        uint64_t words[4] = {x->r->hash.hi, x->r->hash.lo, list[i].hash.hi, list[i].hash.lo};
        x->r->hash = ls_hash_bytes(words, sizeof words);
        x->r->nbytes += list[i].nbytes;
        s = encode_file(x, &list[i]);
    }
    if (s == LS_OK) ls_text_files_log(&f, paths, 0);
    if (list) ls_plain_close_all(list, f.files.n);
    ls_text_files_free(&f);
    return s;
}

static const char *unit_of(const ls_config *c) {
    return ls_config_has_pairs(c) ? "pair" : "conversation";
}

const char *ls_chats_path(const ls_config *c) {
    return *c->data.path ? c->data.path : c->data.val_path;
}

/* All were left out, or there are none. before: what was left out of other files. */
static ls_status fail_none(const encoder *x, const char *paths, const char *use, uint64_t before) {
    const ls_chats_read *r = x->r;
    const char *unit = unit_of(x->c);
    uint64_t cut = r->nleft_out - before;
    if (cut)
        return ls_fail(x->e, LS_EINVAL,
                       "%s: has no %s%s: of %llu, nothing that is trained on is within "
                       "model.context %lld; set a larger one",
                       paths, unit, use, (unsigned long long)cut, (long long)x->c->model.context);
    if (r->damage.n)
        return ls_fail(x->e, LS_EINVAL, "%s: has no %s%s: all are damaged; the first: %s", paths,
                       unit, use, r->damage.named[0]);
    return ls_fail(x->e, LS_EINVAL, "%s: has no %s%s", paths, unit, use);
}

ls_status ls_chats_encode(const ls_config *c, const ls_chat_format *f, uint32_t **ids_p,
                          size_t *n_p, ls_chats_read *r_p, ls_error *e) {
    ls_chats_read r = {0};
    encoder x = {.c = c, .f = f, .r = &r, .e = e};
    bool trains = *c->data.path;
    ls_status s = trains ? encode_files(&x, c->data.path) : LS_OK;
    if (s == LS_OK && trains && !x.n) s = fail_none(&x, c->data.path, " to train on", 0);
    size_t before = x.n;
    uint64_t left_out = r.nleft_out;
    x.val = true;
    if (s == LS_OK && *c->data.val_path) s = encode_files(&x, c->data.val_path);
    if (s == LS_OK && *c->data.val_path && x.n == before)
        s = fail_none(&x, c->data.val_path, "", left_out);
    if (s != LS_OK) {
        free(x.ids);
        ls_chats_read_free(&r);
        return s;
    }
    *ids_p = x.ids;
    *n_p = x.n;
    *r_p = r;
    return LS_OK;
}

static void log_cut(const ls_chats_read *r, const ls_config *c) {
    const char *unit = unit_of(c);
    ls_log("warning: %llu %s%s longer than model.context %lld: %llu tokens were cut off, and %llu "
           "%s%s left out, of which no %s remained",
           (unsigned long long)r->ncut, unit, r->ncut == 1 ? " is" : "s are",
           (long long)c->model.context, (unsigned long long)r->nlost,
           (unsigned long long)r->nleft_out, unit, r->nleft_out == 1 ? " was" : "s were",
           ls_config_has_pairs(c) ? "two different answers" : "answer");
}

void ls_chats_log(const ls_chats_read *r, const ls_config *c) {
    ls_log("%s: %llu %s%s, %llu tokens, of which %llu are trained on and %llu are not",
           ls_chats_path(c), (unsigned long long)r->nsamples, unit_of(c),
           ls_plural((int64_t)r->nsamples), (unsigned long long)r->ntokens,
           (unsigned long long)r->ntrained, (unsigned long long)(r->ntokens - r->ntrained));
    if (r->ncut) log_cut(r, c);
    if (r->nseparate)
        ls_log(
            "the template writes an answer in another way when messages follow: %llu of them are "
            "answers with what is before them, each by itself",
            (unsigned long long)r->nseparate);
    ls_damage_note(&r->damage, ls_chats_path(c));
    ls_unread_log(&r->unread, ls_chats_path(c));
    if (r->ncr)
        ls_log(
            "%llu %s%s CR in their texts, as line ends (CR LF) or alone, which is taken as a part "
            "of the text",
            (unsigned long long)r->ncr, unit_of(c), r->ncr == 1 ? " has" : "s have");
    /* of models that are compared, those with the same template show the same */
    if (!r->shown.len || !ls_note_is_new(r->shown.data)) return;
    ls_highlight h = ls_highlight_for(STDERR_FILENO, LS_SHOWN_BEGIN, LS_SHOWN_END);
    ls_log("the first one; what is trained on is %s:", ls_shown_as(&h));
    for (const char *line = r->shown.data; *line;) {
        size_t n = strcspn(line, "\n");
        ls_log_highlighted(&h, "    %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void ls_chats_read_free(ls_chats_read *r) {
    ls_buf_free(&r->shown);
    ls_unread_free(&r->unread);
    *r = (ls_chats_read){0};
}
