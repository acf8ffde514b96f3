/* text_writer.h - continues a text token by token: what `generate` and `chat` share.
 *
 * Keys and values of the tokens so far are retained, so a token costs one position
 * (decode.h). A text that outgrows the context loses its older half, unless the model is a
 * published one.
 */
#ifndef LS_INFER_TEXT_WRITER_H
#define LS_INFER_TEXT_WRITER_H

#include <signal.h>

#include "grammar/constraint.h"
#include "infer/decode.h"
#include "infer/generate.h"
#include "infer/sampler.h"

typedef struct ls_writer {
    const ls_trained *trained;
    ls_decode decode;
    ls_sampler sampler;
    uint32_t *text; /* [n] its tokens, in room for `room` */
    int64_t n, room;
} ls_writer;

/* The trained model must outlive it. */
ls_status ls_writer_open(const ls_trained *, ls_writer *w_p, ls_error *);
void ls_writer_close(ls_writer *);

/* Appends tokens to the text. LS_EINVAL: a published model's context has no room for them. `what`
 * names them in the message. */
ls_status ls_writer_add(ls_writer *, const uint32_t *tokens, size_t n, const char *what,
                        ls_error *);

typedef struct ls_writing {
    int64_t ntokens; /* at most */
    uint64_t seed, number,
        first; /* random numbers: those of text `number`, from place `first` on */
    ls_sampler_rule rule;
    const char *const *stops; /* [nstops] texts that end the writing, and are not written */
    int nstops;
    const uint32_t *ends; /* [nends] tokens that do, too */
    int nends;
    ls_constraint *constraint; /* which texts are allowed; NULL: all. With it the writing ends where
                                * the text can't go on, and an end token comes only where it may
                                * end */
    bool special;              /* special tokens are written by their names */
    const volatile sig_atomic_t *asked; /* if not 0, the writing ends; may be NULL */
    ls_write_fn *fn;
    void *arg;
} ls_writing;

/* Writes the continuation of the text, which gets its tokens. */
ls_status ls_writer_write(ls_writer *, const ls_writing *, ls_generated *g_p, ls_error *);

/* Calls the writing's fn with the prompt's bytes, then with each new token's. What ends a text is
 * set here. The text is the same for the same seed and number on any machine and any number of
 * threads. An empty prompt stands for a line end.
 *
 * With a run's model, only the last `context` tokens of a prompt count; when the context is full,
 * its older half is dropped, and the rest is computed again. LS_EINVAL: a published model's context
 * is too short for the prompt and ntokens more; its text also ends with the model's end token. */
ls_status ls_generate(const ls_trained *, const char *prompt, const ls_writing *, ls_generated *g_p,
                      ls_error *);

#endif
