/* text_writer.c - see text_writer.h. */
#include "infer/text_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "infer/text_output.h"

ls_status ls_writer_open(const ls_trained *t, ls_writer *w_p, ls_error *e) {
    ls_writer w = {.trained = t};
    LS_TRY(ls_decode_open(&t->infer, &w.decode, e));
    w.sampler = ls_sampler_create(ls_trained_ntokens(t), t->compute.k);
    *w_p = w;
    return LS_OK;
}

void ls_writer_close(ls_writer *w) {
    ls_decode_close(&w->decode);
    ls_sampler_free(&w->sampler);
    free(w->text);
    *w = (ls_writer){0};
}

/* Makes room for n more tokens. */
static void reserve(ls_writer *w, int64_t n) {
    if (w->n + n <= w->room) return;
    w->room = (w->n + n) * 2;
    w->text = ls_realloc(w->text, (size_t)w->room * sizeof *w->text);
}

ls_status ls_writer_add(ls_writer *w, const uint32_t *tokens, size_t n, const char *what,
                        ls_error *e) {
    int64_t context = w->trained->config.model.context, all = w->n + (int64_t)n;
    if (w->trained->is_published && all >= context)
        return ls_fail(e, LS_EINVAL, "%s: needs %lld tokens of context; the model reads %lld", what,
                       (long long)all + 1, (long long)context);
    reserve(w, (int64_t)n);
    if (n) memcpy(w->text + w->n, tokens, n * sizeof *tokens);
    w->n += (int64_t)n;
    return LS_OK;
}

/* ---- output ---- */

/* Text on its way to the caller's function. */
typedef struct output {
    const ls_writing *o;
    ls_text_output text;
} output;

/* Writes the first n bytes that are held. */
static ls_status put(output *x, size_t n, ls_error *e) {
    if (n == 0) return LS_OK;
    ls_status s = x->o->fn((const uint8_t *)x->text.held.data, n, x->o->arg, e);
    ls_text_output_took(&x->text, n);
    return s;
}

/* *stopped_p: a stop has come, which is not written. */
static ls_status emit(output *x, uint32_t token, bool *stopped_p, ls_error *e) {
    return put(x, ls_text_output_add(&x->text, token, stopped_p), e);
}

/* What is held is written, unless it began a stop that came. */
static ls_status end_output(output *x, bool stopped, ls_status s, ls_error *e) {
    if (s == LS_OK && !stopped) s = put(x, ls_text_output_end(&x->text), e);
    ls_buf_free(&x->text.held);
    return s;
}

/* ---- tokens ---- */

static bool is_end(const ls_writing *o, uint32_t token) {
    for (int i = 0; i < o->nends; i++)
        if (o->ends[i] == token) return true;
    return false;
}

/* The text that is being written. */
typedef struct writing {
    ls_writer *w;
    const ls_writing *o;
    int64_t begin;     /* the text's first token of those that are written */
    ls_constrained at; /* where it stands in the writing's constraint */
    float *changed;    /* [V] logits without those of tokens that are not allowed; NULL: all are */
} writing;

/* Can the text not go on? Without a constraint it always can. */
static bool is_complete(writing *x, ls_allowed *a) {
    if (!x->o->constraint) return false;
    *a = ls_constraint_after(x->o->constraint, &x->at, x->w->text + x->begin, x->w->n - x->begin);
    return a->n == 0;
}

static ls_status draw(writing *x, const ls_allowed *a, int64_t i, uint32_t *token_p, ls_error *e) {
    ls_writer *w = x->w;
    const ls_writing *o = x->o;
    const float *logits = ls_decode_text(&w->decode, w->text, w->n);
    double u = ls_random_uniform(o->seed, LS_STREAM_SAMPLE, o->number, o->first + (uint64_t)i);
    LS_TRY(ls_infer_check(&w->trained->infer, e));
    if (x->changed) {
        memcpy(x->changed, logits, w->sampler.V * sizeof *logits);
        ls_allowed_forbid(a, o->ends, o->nends, x->changed, w->sampler.V);
        logits = x->changed;
    }
    *token_p = ls_sampler_draw(&w->sampler, logits, &o->rule, (ls_sampler_seen){w->text, w->n}, u);
    return LS_OK;
}

/* Writes one token, or finds that the text is complete. */
static ls_status write_token(writing *x, output *out, ls_generated *done, ls_error *e) {
    const ls_writing *o = x->o;
    ls_allowed a;
    uint32_t token = 0;
    bool stopped = false;
    if (is_complete(x, &a)) {
        done->end = LS_END_TOKEN;
        return LS_OK;
    }
    LS_TRY(draw(x, &a, done->ntokens++, &token, e));
    x->w->text[x->w->n++] = token;
    if (is_end(o, token)) {
        done->end = LS_END_TOKEN;
        return LS_OK;
    }
    LS_TRY(emit(out, token, &stopped, e));
    if (stopped)
        done->end = LS_END_STOP;
    else if (is_complete(x, &a))
        done->end = LS_END_TOKEN;
    else if (o->asked && *o->asked)
        done->end = LS_END_ASKED;
    return LS_OK;
}

ls_status ls_writer_write(ls_writer *w, const ls_writing *o, ls_generated *g_p, ls_error *e) {
    output out = {.o = o, .text = {.special = o->special, .stops = o->stops, .nstops = o->nstops}};
    ls_generated done = {0, LS_END_LENGTH};
    ls_status s = LS_OK;
    int64_t context = w->trained->config.model.context;
    bool grows = !w->trained->is_published;
    writing x = {.w = w, .o = o, .begin = w->n};
    if (o->constraint) x.changed = LS_NEW_ARRAY(float, w->sampler.V);
    out.text.decoding = (ls_decoding){.tokenizer = w->trained->tokenizer, .begun = true};
    reserve(w, o->ntokens);
    while (s == LS_OK && done.end == LS_END_LENGTH && done.ntokens < o->ntokens &&
           (grows || w->n < context))
        s = write_token(&x, &out, &done, e);
    s = end_output(&out, done.end == LS_END_STOP, s, e);
    free(x.changed);
    if (s == LS_OK) *g_p = done;
    return s;
}

/* ---- a prompt ---- */

/* A published model has learned positions up to its context. */
static ls_status check_room(const ls_trained *t, const ls_writing *s, size_t n, ls_error *e) {
    int64_t context = t->config.model.context;
    if (!t->is_published || (int64_t)n + s->ntokens <= context) return LS_OK;
    return ls_fail(
        e, LS_EINVAL,
        "the prompt has %zu tokens, and %lld more are to be written (tokens); the model's "
        "context has %lld",
        n, (long long)s->ntokens, (long long)context);
}

static ls_status write_after(const ls_trained *t, const ls_token_list *prompt, const ls_writing *o,
                             ls_generated *g_p, ls_error *e) {
    ls_writer w;
    LS_TRY(ls_writer_open(t, &w, e));
    ls_status status = ls_writer_add(&w, prompt->ids, prompt->n, "the prompt", e);
    if (status == LS_OK) status = ls_writer_write(&w, o, g_p, e);
    ls_writer_close(&w);
    return status;
}

ls_status ls_generate(const ls_trained *t, const char *text, const ls_writing *given,
                      ls_generated *g_p, ls_error *e) {
    LS_TRY(ls_trained_needs_text(t, "generate", e));
    const char *prompt = *text ? text : "\n";
    const ls_encoding how = {.what = "the prompt", .begin = true};
    ls_token_list encoded;
    LS_TRY(ls_tokenizer_encode(t->tokenizer, (const uint8_t *)prompt, strlen(prompt), &how,
                               &encoded, e));
    ls_token_list_log_dropped(&encoded, how.what);
    ls_writing o = *given;
    o.ends = t->ends;
    o.nends = t->nends;
    o.special = true;
    ls_status status = check_room(t, &o, encoded.n, e);
    if (encoded.n == 0)
        status = ls_fail(e, LS_EINVAL, "the prompt: the tokenizer has no tokens for it");
    if (status == LS_OK) status = o.fn((const uint8_t *)prompt, strlen(prompt), o.arg, e);
    *g_p = (ls_generated){0};
    if (status == LS_OK && o.ntokens) status = write_after(t, &encoded, &o, g_p, e);
    free(encoded.ids);
    return status;
}
