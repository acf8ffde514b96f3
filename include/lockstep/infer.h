/* infer.h - predictions of a trained model, in your own program.
 *
 *     ls_predictor *p;
 *     ls_predictor_open("runs/mine", NULL, &p, &e);
 *     float chances[10];
 *     ls_predict(p, 1, (const void *[]){pixels}, (float *[]){chances}, &e);
 *     ls_predictor_close(p);
 *
 * A predictor has the weights of a run (its newest checkpoint), of a checkpoint, or of a published
 * language model. It reads the fields that the predictions need, not the labels: `inputs`. Its
 * outputs are the values that the model's losses compare with labels:
 *
 *     LS_CLASSES   for each row the probabilities of its classes, which add up to 1
 *     LS_CHANCES   the probability of each target, alone
 *     LS_NUMBERS   numbers
 *     LS_SCORES    numbers whose order alone counts
 *
 * A language model has one input, "tokens" [context], LS_I32, in which the first negative number
 * ends the text, and one output, "next", LS_CLASSES: the token that follows.
 *
 * The numbers have the same bits for any number of samples a call, threads, and processors. Once a
 * predictor is open, any threads may call ls_predict() at the same time; each such call
 * has its own activations and threads, which are retained for later calls.
 */
#ifndef LOCKSTEP_INFER_H
#define LOCKSTEP_INFER_H

#include <stddef.h>
#include <stdint.h>

#include "lockstep/program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ls_predictor ls_predictor;

typedef struct ls_predictor_options {
    /* the program that builds the run's network; NULL: the config describes the network. All
     * programs of a process must be the same */
    const ls_program *program LS_UNSET;
    int ema LS_UNSET;     /* 1: the average of the weights (optim.ema) */
    int threads LS_UNSET; /* of a call; 0: one for each core */
    /* 1: CLASSES and CHANCES as the losses read them, not as probabilities */
    int logits LS_UNSET;
    /* 1: in place of predictions one output, "vector", LS_NUMBERS: what the last layer reads before
     * the first prediction; for a language model the mean over the tokens of the vectors behind its
     * last norm */
    int vectors LS_UNSET;
    /* a device that computes: "cuda", "cuda:1", "opencl", "c"; NULL: cores. Calls then take
     * turns. The text lives as long as the predictor */
    const char *device LS_UNSET;
} ls_predictor_options;

/* path: a run directory, a checkpoint, or a published language model. options may be NULL.
 *
 * Errors   LS_EINVAL: the model predicts nothing, or it is damaged; the device can't be used, or
 *          has no kernels for a layer. LS_EIO: a file. LS_ENOMEM: it does not fit. */
ls_status ls_predictor_open(const char *path, const ls_predictor_options *options,
                            ls_predictor **p_p, ls_error *e);
/* Not while a call runs. NULL is fine. A process remembers the last eight predictors that it
 * closed: calls with them return LS_EINVAL, or 0; older ones must not be used. The same holds for
 * ls_language_close(). */
void ls_predictor_close(ls_predictor *);

typedef enum ls_output_kind {
    LS_CLASSES = 1,
    LS_CHANCES,
    LS_NUMBERS,
    LS_SCORES,
} ls_output_kind;

/* Names live as long as the predictor. */
typedef struct ls_predictor_input {
    const char *name;
    ls_dtype type;  /* LS_U8, LS_I32 or LS_F32 */
    ls_dims dims;   /* of a sample */
    int64_t count;  /* numbers of a sample */
    int64_t nbytes; /* of a sample */
} ls_predictor_input;

typedef struct ls_predictor_output {
    const char *name; /* of the field that is predicted */
    ls_output_kind kind;
    ls_dims dims;  /* of a sample */
    int64_t count; /* numbers of a sample: rows times width */
    int64_t rows;  /* CLASSES: predictions of a sample, each of `width` classes */
    int64_t width;
    const char *const *classes; /* [nclasses] names of the first classes; NULL: they have none */
    int nclasses;
} ls_predictor_output;

int ls_predictor_ninputs(const ls_predictor *);
ls_predictor_input ls_predictor_get_input(const ls_predictor *, int i); /* i < ninputs */
int ls_predictor_noutputs(const ls_predictor *);
ls_predictor_output ls_predictor_get_output(const ls_predictor *, int i); /* i < noutputs */

/* Predicts n samples. fields [ninputs]: fields[i] has [n][count] numbers of input i, of its type.
 * out [noutputs]: out[i] gets [n][count] f32 of output i; NULL: it is not wanted.
 *
 * Errors   LS_EINVAL: an id is out of range (the message names field and sample), or a text has no
 *          token. LS_ENOMEM: no memory for another call at the same time. LS_EIO: a file of weights
 *          has changed. out is undefined after an error. */
ls_status ls_predict(ls_predictor *, int64_t n, const void *const *fields, float *const *out,
                     ls_error *e);

/* ---- language models that write text ---- */

/* A language model with its tokenizer: a run on texts or conversations, a checkpoint, or a
 * published model, loaded for writing. One thread at a time uses it. Text is UTF-8.
 *
 *     ls_language *l;
 *     ls_language_text w;
 *     ls_language_open("runs/tuned", NULL, &l, &e);
 *     ls_language_message m = {"user", "Who are you?"};
 *     ls_language_chat(l, &m, 1, NULL, &w, &e);
 *     fwrite(w.text, 1, w.nbytes, stdout);
 *     ls_language_close(l);
 *
 * What is written has the same bits on any machine, with any number of threads; `lockstep generate`
 * and `chat` write the same. */
typedef struct ls_language ls_language;

typedef struct ls_language_options {
    int ema LS_UNSET; /* 1: the average of the weights (optim.ema) */
    /* path of a chat template (Jinja) in place of the model's */
    const char *template_file LS_UNSET;
    /* "key=value": changes of the config, e.g. "infer.activations=int8", or "model.context=512" of
     * a published model; NULL ends them; NULL: none */
    const char *const *sets LS_UNSET;
    /* a device that computes: "cuda", "cuda:1", "opencl", "c"; NULL: cores. The text lives as long
     * as the model */
    const char *device LS_UNSET;
} ls_language_options;

/* options may be NULL.
 *
 * Errors   LS_EINVAL: the model is damaged, has no tokenizer, or can't have these options. LS_EIO:
 *          a file. LS_ENOMEM: it does not fit. */
ls_status ls_language_open(const char *path, const ls_language_options *options, ls_language **l_p,
                           ls_error *e);
void ls_language_close(ls_language *); /* NULL is fine */

int64_t ls_language_vocab(const ls_language *);   /* logits of a position */
int64_t ls_language_context(const ls_language *); /* tokens that it reads at most */

/* The tokens of a text. begin: 1: also what the tokenizer puts before a text (often one token),
 * as before a prompt. Names of special tokens are ordinary text. *ids_p [*n_p] is valid until the
 * next call. */
ls_status ls_language_encode(ls_language *, const char *text, size_t nbytes, int begin,
                             const uint32_t **ids_p, size_t *n_p, ls_error *e);
/* The text of tokens [n]; special tokens have none. Where a token is a part of a character whose
 * rest does not follow, its bytes are no UTF-8. *text_p [*nbytes_p] is valid until the next
 * call. */
ls_status ls_language_decode(ls_language *, const uint32_t *ids, size_t n, const char **text_p,
                             size_t *nbytes_p, ls_error *e);

/* The logits after each of the tokens [n], 1 <= n <= context: out [n][vocab]. */
ls_status ls_language_logits(ls_language *, const uint32_t *ids, int64_t n, float *out,
                             ls_error *e);

/* How a text is written. With all 0 it has 100 tokens (an answer 512), always the likeliest ones. A
 * number below 0 is the model's own, of its generation_config.json, else that of `lockstep
 * generate` (`chat`). */
typedef struct ls_writing_options {
    int64_t tokens LS_UNSET; /* at most; 0: 100, of an answer 512 */
    uint64_t seed LS_UNSET;
    double temperature LS_UNSET;       /* up to 1000; 0: always the likeliest */
    int64_t top_k LS_UNSET;            /* among the k likeliest; 0: all */
    double top_p LS_UNSET;             /* whose probabilities add up to p; 0, 1: all */
    double min_p LS_UNSET;             /* at least p times as likely as the likeliest; 0: all */
    double penalty LS_UNSET;           /* of repetition, 0.01 to 100; 0, 1: none */
    const char *const *stops LS_UNSET; /* texts that end it, and are not written; NULL ends */
    /* Called with the text as it is written; if it does not return 0, the writing ends. NULL:
     * none */
    int (*write)(void *arg, const char *text, size_t nbytes) LS_UNSET;
    void *arg LS_UNSET;
} ls_writing_options;

typedef struct ls_language_text {
    const char *text; /* [nbytes] without the prompt; valid until the next call */
    size_t nbytes;
    int64_t ntokens; /* a token that ended the text is one of them */
    /* Why it ended: "length" (it has `tokens`, or the context is full), "end" (the model ended it),
     * "stop", "asked" (write() did) */
    const char *end;
} ls_language_text;

/* Continues a prompt; an empty one stands for a line end. o may be NULL.
 *
 * Errors   LS_EINVAL: the prompt is no UTF-8, or the options or the context don't allow it. LS_EIO:
 *          a file of weights has changed. */
ls_status ls_language_generate(ls_language *, const char *prompt, const ls_writing_options *o,
                               ls_language_text *w_p, ls_error *e);

typedef struct ls_language_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *text;
} ls_language_message;

/* Answers the last of messages [n], which must be the user's, in the form of the model's chat
 * template. The answer depends on the messages and the options alone. The messages that the last
 * call had too are not computed again. o may be NULL.
 *
 * Errors   LS_EINVAL: there is no template, it refuses the messages, or the context has no room. */
ls_status ls_language_chat(ls_language *, const ls_language_message *messages, int n,
                           const ls_writing_options *o, ls_language_text *w_p, ls_error *e);

#ifdef __cplusplus
}
#endif
#endif
