/* reply.h - one text that a request asks for: its prompt, the rules by which it is written, and
 * what has been written so far.
 *
 * The request's thread makes it, and reads it under the engine's lock (engine.h); the engine writes
 * it.
 */
#ifndef LS_SERVE_REPLY_H
#define LS_SERVE_REPLY_H

#include "grammar/constraint.h"
#include "infer/generate.h"
#include "infer/text_output.h"
#include "serve/pages.h"

enum {
    LS_REPLY_SHOWN = 8,
    LS_REPLY_STOPS = 16,
    LS_REPLY_TOP = 20,
    LS_REPLY_ENDS = LS_ALLOWED_ENDS
};

/* A token's logit gets `by` added. */
typedef struct ls_reply_bias {
    uint32_t token;
    float by;
} ls_reply_bias;

/* How a reply is written; the same for all replies to a request. */
typedef struct ls_reply_rule {
    ls_sampler_rule sampler;
    double frequency, presence; /* subtracted from the logit of a token that was written: times the
                                 * number of its places; once */
    ls_reply_bias *bias;        /* [nbias] */
    size_t nbias;
    const char *stops[LS_REPLY_STOPS]; /* [nstops] */
    int nstops;
    const uint32_t *ends; /* [nends] tokens that end the text; of a constraint's, at most
                           * LS_REPLY_ENDS */
    int nends;
    ls_constraint *constraint;      /* which texts are allowed; NULL: all */
    bool thinks;                    /* the text begins within a thought, and */
    uint32_t thought_end;           /* the constraint acts after this token */
    bool special;                   /* special tokens are written by their names */
    uint32_t shown[LS_REPLY_SHOWN]; /* [nshown] those that are written so anyway */
    int nshown;
    int64_t most, least; /* tokens to write: at most, and at least before one may end the text */
    int top;             /* likeliest tokens that are noted for each token; -1: nothing is noted */
    bool echo;           /* the prompt's tokens are noted, too */
    bool embeds;         /* nothing is written: the vector of the prompt is wanted */
} ls_reply_rule;

/* A token of the text, and its logarithms of probabilities. */
typedef struct ls_reply_note {
    uint32_t token;
    float logprob; /* NaN for a text's first token, which has none */
    uint32_t top[LS_REPLY_TOP];
    float logprobs[LS_REPLY_TOP]; /* [rule->top] in order */
    int ntop;
} ls_reply_note;

typedef enum ls_reply_state { LS_REPLY_WAITS, LS_REPLY_RUNS, LS_REPLY_ENDED } ls_reply_state;

typedef struct ls_reply {
    const ls_reply_rule *rule;
    uint64_t seed, number; /* random numbers: those of text `number` */
    int adapter;           /* from 1 on, of the engine's; 0: none */
    /* Set by the engine: */
    ls_reply_state state;
    uint32_t *tokens; /* [n] the prompt's [nprompt], then those that are written */
    int64_t n, nprompt;
    ls_text_output output;
    ls_buf text;          /* the text that has been released, without the prompt */
    ls_reply_note *notes; /* [nnotes] with rule->top >= 0 */
    size_t nnotes;
    double *sums;  /* [width] of the prompt's values, with rule->embeds; then NULL, and: */
    float *vector; /* [width] their mean, of length 1 */
    ls_written_end end;
    const char *stop;          /* the stop that was found; NULL: none */
    int64_t nfound;            /* tokens of the prompt whose keys and values were there */
    int64_t first_ns, last_ns; /* times of its first and its latest token; 0: not yet */
    int64_t begun_ns;          /* when it was added */
    ls_constrained at;         /* where its text stands in the rule's constraint */
    bool dropped;              /* it is no longer needed */
    /* The engine's own: */
    int64_t turn; /* when it begins, among those that wait */
    ls_page_view view;
    int64_t computed;  /* tokens whose keys and values are in the view */
    int64_t nnamed;    /* parts of the view's pages that have a name */
    ls_page_name name; /* of the last of them; with none, that before the first */
    int64_t noted;     /* prompt tokens that are noted, or summed */
    int wrong, rests;  /* guesses (lookup.h) in a row that were wrong; steps without one */
    void (*left)(void *arg,
                 struct ls_reply *); /* called with the lock: the engine no longer uses the reply */
    void *arg;
} ls_reply;

/* Copies the prompt [n], n >= 1. The rule must outlive the reply. */
void ls_reply_make(ls_reply *, const ls_reply_rule *, const ls_tokenizer *, const uint32_t *prompt,
                   int64_t n);
void ls_reply_free(ls_reply *);

/* The token after these logits [V] is written: drawn from those that the rule allows, noted, given
 * out. May end the reply. Probabilities that are noted are the model's own: of all tokens, without
 * the rule. */
void ls_reply_write(ls_reply *, ls_sampler *, const float *logits);
/* Appends a token that another process has drawn; it is not noted. May end the reply, but not at an
 * end that a constraint makes. */
void ls_reply_take(ls_reply *, uint32_t token);
/* Notes the token after the prompt's token i, if there is one, from the logits [V] at i. Calls come
 * in the order of i. */
void ls_reply_note_prompt(ls_reply *, size_t V, int64_t i, const float *logits);
/* For a reply that is a vector: adds the values [width] at the prompt's token i. Calls come in the
 * order of i. */
void ls_reply_sum(ls_reply *, int64_t width, int64_t i, const float *values);
void ls_reply_finish(ls_reply *, ls_written_end);

#endif
