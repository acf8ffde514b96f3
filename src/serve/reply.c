/* reply.c - see reply.h. */
#include "serve/reply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/math.h"
#include "base/random.h"

void ls_reply_make(ls_reply *r, const ls_reply_rule *rule, const ls_tokenizer *t,
                   const uint32_t *prompt, int64_t n) {
    *r = (ls_reply){.rule = rule, .n = n, .nprompt = n};
    r->tokens = LS_NEW_ARRAY(uint32_t, (size_t)(n + rule->most));
    memcpy(r->tokens, prompt, (size_t)n * sizeof *prompt);
    r->output = (ls_text_output){.special = rule->special,
                                 .shown = rule->shown,
                                 .nshown = rule->nshown,
                                 .stops = rule->stops,
                                 .nstops = rule->nstops};
    r->output.decoding = (ls_decoding){.tokenizer = t, .begun = true};
}

void ls_reply_free(ls_reply *r) {
    free(r->tokens);
    free(r->notes);
    free(r->sums);
    free(r->vector);
    ls_buf_free(&r->output.held);
    ls_buf_free(&r->text);
    *r = (ls_reply){0};
}

/* ---- probabilities ---- */

/* The logarithm of the sum of exponentials: of all terms in order, in double. */
static double log_sum(const float *logits, size_t V) {
    double most = (double)logits[0], sum = 0;
    for (size_t i = 1; i < V; i++)
        if ((double)logits[i] > most) most = (double)logits[i];
    for (size_t i = 0; i < V; i++) sum += ls_math_exp((double)logits[i] - most);
    return most + ls_math_log(sum);
}

/* Inserts token i among the likeliest, if it is one of them; equal ones stay in their order. */
static void rank(ls_reply_note *x, int room, uint32_t token, float logit) {
    int at = x->ntop;
    while (at > 0 && x->logprobs[at - 1] < logit) at--;
    if (at == room) return;
    if (x->ntop < room) x->ntop++;
    for (int i = x->ntop - 1; i > at; i--) {
        x->top[i] = x->top[i - 1];
        x->logprobs[i] = x->logprobs[i - 1];
    }
    x->top[at] = token;
    x->logprobs[at] = logit;
}

static ls_reply_note *new_note(ls_reply *r, uint32_t token) {
    r->notes = ls_grow(r->notes, r->nnotes, sizeof *r->notes);
    ls_reply_note *x = &r->notes[r->nnotes++];
    *x = (ls_reply_note){.token = token, .logprob = NAN};
    return x;
}

/* Of a token that follows these logits. */
static void note(ls_reply *r, uint32_t token, const float *logits, size_t V) {
    ls_reply_note *x = new_note(r, token);
    double sum = log_sum(logits, V);
    x->logprob = (float)((double)logits[token] - sum);
    for (size_t i = 0; i < V && r->rule->top > 0; i++)
        rank(x, r->rule->top, (uint32_t)i, logits[i]);
    for (int i = 0; i < x->ntop; i++) x->logprobs[i] = (float)((double)x->logprobs[i] - sum);
}

void ls_reply_note_prompt(ls_reply *r, size_t V, int64_t i, const float *logits) {
    if (i == 0) new_note(r, r->tokens[0]);
    if (i + 1 < r->nprompt) note(r, r->tokens[i + 1], logits, V);
    r->noted = i + 1;
}

/* ---- a vector ---- */

/* In double, and in the order of the tokens. A vector of zeros stays one. */
static float *make_vector(const ls_reply *r, int64_t width) {
    float *vector = LS_NEW_ARRAY(float, (size_t)width);
    double squares = 0, n = (double)r->nprompt;
    for (int64_t k = 0; k < width; k++) squares += r->sums[k] / n * (r->sums[k] / n);
    double length = sqrt(squares);
    for (int64_t k = 0; k < width; k++)
        vector[k] = (float)(length > 0 ? r->sums[k] / n / length : 0);
    return vector;
}

void ls_reply_sum(ls_reply *r, int64_t width, int64_t i, const float *values) {
    if (!r->sums) r->sums = LS_NEW_ARRAY(double, (size_t)width);
    for (int64_t k = 0; k < width; k++) r->sums[k] += (double)values[k];
    r->noted = i + 1;
    if (r->noted < r->nprompt) return;
    r->vector = make_vector(r, width);
    free(r->sums);
    r->sums = NULL;
}

/* ---- tokens ---- */

/* What may follow the text; NULL: no rule says so. */
static const ls_allowed *find_allowed(ls_reply *r, ls_allowed *a) {
    const ls_reply_rule *o = r->rule;
    int64_t from = r->nprompt;
    if (!o->constraint) return NULL;
    if (o->thinks) {
        while (from < r->n && r->tokens[from] != o->thought_end) from++;
        if (from++ == r->n) return NULL;
    }
    *a = ls_constraint_after(o->constraint, &r->at, r->tokens + from, r->n - from);
    return a;
}

static bool any_left(const float *logits, size_t V) {
    size_t i = 0;
    while (i < V && logits[i] == -INFINITY) i++;
    return i < V;
}

/* The logits with what the rule adds to them, in `changed` [V] if it adds anything. */
static const float *change(const ls_reply *r, const ls_allowed *allowed, const float *logits,
                           size_t V, float *changed) {
    const ls_reply_rule *o = r->rule;
    bool penalizes = (o->frequency != 0 || o->presence != 0) && r->n > r->nprompt;
    bool waits = r->n - r->nprompt < o->least || (o->constraint && !allowed);
    if (!penalizes && !o->nbias && !waits && !allowed) return logits;
    memcpy(changed, logits, V * sizeof *logits);
    for (size_t i = 0; i < o->nbias; i++)
        if (o->bias[i].token < V) changed[o->bias[i].token] += o->bias[i].by;
    bool *seen = penalizes ? LS_NEW_ARRAY(bool, V) : NULL;
    for (int64_t i = r->nprompt; penalizes && i < r->n; i++) {
        uint32_t token = r->tokens[i];
        double by = o->frequency + (seen[token] ? 0 : o->presence);
        changed[token] = (float)((double)changed[token] - by);
        seen[token] = true;
    }
    free(seen);
    for (int i = 0; i < o->nends && waits; i++)
        if (o->ends[i] < V) changed[o->ends[i]] = -INFINITY;
    if (allowed) ls_allowed_forbid(allowed, o->ends, o->nends, changed, V);
    return changed;
}

static bool is_end(const ls_reply_rule *o, uint32_t token) {
    for (int i = 0; i < o->nends; i++)
        if (o->ends[i] == token) return true;
    return false;
}

static void give_out(ls_reply *r, size_t nbytes) {
    ls_buf_append(&r->text, r->output.held.data, nbytes);
    ls_text_output_took(&r->output, nbytes);
}

/* The stop whose text begins what is held. */
static const char *stop_of(const ls_reply *r) {
    const ls_buf *held = &r->output.held;
    for (int i = 0; i < r->rule->nstops; i++) {
        size_t n = strlen(r->rule->stops[i]);
        if (held->len >= n && memcmp(held->data, r->rule->stops[i], n) == 0)
            return r->rule->stops[i];
    }
    return NULL;
}

void ls_reply_finish(ls_reply *r, ls_written_end end) {
    if (end != LS_END_STOP) give_out(r, ls_text_output_end(&r->output));
    r->end = end;
    r->state = LS_REPLY_ENDED;
}

void ls_reply_take(ls_reply *r, uint32_t token) {
    bool stopped = false;
    r->last_ns = ls_clock_ns();
    if (!r->first_ns) r->first_ns = r->last_ns;
    r->tokens[r->n++] = token;
    if (is_end(r->rule, token)) {
        ls_reply_finish(r, LS_END_TOKEN);
        return;
    }
    give_out(r, ls_text_output_add(&r->output, token, &stopped));
    if (stopped) {
        r->stop = stop_of(r);
        ls_reply_finish(r, LS_END_STOP);
    } else if (r->n - r->nprompt == r->rule->most) {
        ls_reply_finish(r, LS_END_LENGTH);
    }
}

/* Draws the next token; false: there is none. */
static bool draw(ls_reply *r, ls_sampler *s, const float *logits, uint32_t *token_p) {
    const ls_reply_rule *o = r->rule;
    ls_allowed a;
    const ls_allowed *allowed = find_allowed(r, &a);
    if (allowed && allowed->n == 0) return false; /* the empty text is allowed, and no other */
    bool changes = o->nbias || o->least || o->frequency != 0 || o->presence != 0 || o->constraint;
    float *changed = changes ? LS_NEW_ARRAY(float, s->V) : NULL;
    double u =
        ls_random_uniform(r->seed, LS_STREAM_SAMPLE, r->number, (uint64_t)(r->n - r->nprompt));
    const float *drawn_from = change(r, allowed, logits, s->V, changed);
    bool stuck = allowed && !any_left(drawn_from, s->V); /* min_tokens forbids the only one */
    *token_p = ls_sampler_draw(s, drawn_from, &o->sampler, (ls_sampler_seen){r->tokens, r->n}, u);
    free(changed);
    return !stuck;
}

void ls_reply_write(ls_reply *r, ls_sampler *s, const float *logits) {
    uint32_t token = 0;
    ls_allowed a;
    if (!draw(r, s, logits, &token)) {
        ls_reply_finish(r, LS_END_TOKEN);
        return;
    }
    if (r->rule->top >= 0 && !is_end(r->rule, token)) note(r, token, logits, s->V);
    ls_reply_take(r, token);
    bool may_go_on = r->state != LS_REPLY_ENDED || r->end == LS_END_LENGTH;
    const ls_allowed *allowed = may_go_on ? find_allowed(r, &a) : NULL;
    if (allowed && allowed->n == 0) ls_reply_finish(r, LS_END_TOKEN); /* the text is complete */
}
