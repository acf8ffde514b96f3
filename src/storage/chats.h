/* chats.h - conversations as the tokens of a corpus (corpus.h), and as samples of the model.
 *
 * All conversations follow each other in one file of tokens. A number there is
 *
 *     id + model.vocab * (trained ? 1 : 0)      of a token that is not a conversation's first
 *     id + model.vocab * 2                      of the first one
 *     id + model.vocab * 3                      of the first one, if it is of data.val_path
 *
 * A sample (a row of model.context positions) has one conversation, or with data.packing as many as
 * fit (chat/pack.h); a conversation of n tokens takes n - 1 positions.
 */
#ifndef LS_STORAGE_CHATS_H
#define LS_STORAGE_CHATS_H

#include "chat/format.h"
#include "chat/pack.h"
#include "config/config.h"
#include "data/tokens.h"

enum { LS_CHATS_FLAGS = 4 }; /* numbers of the file are below model.vocab times this */

typedef struct ls_chats {
    uint32_t vocab;
    int64_t T;
    uint64_t *begins; /* [n + 1] of the conversations */
    uint64_t n;
    uint64_t *of[2];    /* the numbers of those of the training part, and of validation */
    ls_packing rows[2]; /* of those */
    bool packed;
} ls_chats;

/* What became of the lines of files. */
typedef struct ls_chats_read {
    uint64_t nsamples, ntokens, ntrained;
    uint64_t ncut, nlost; /* conversations longer than the context, and tokens that they lost */
    uint64_t nleft_out;   /* of them: those of which no answer was left */
    uint64_t
        napart; /* samples that are an answer each, of conversations with several (chat/lines.h) */
    uint64_t nbytes; /* of the files */
    ls_hash hash;
    ls_buf shown; /* the first sample, for people */
} ls_chats_read;

/* Appends the numbers of all conversations in data.path and data.val_path to *ids_p [*n_p]. LS_EINVAL:
 * a line is no conversation, or nothing of it would be trained on; the message names file and line.
 */
ls_status ls_chats_encode(const ls_config *, const ls_chat_format *, uint32_t **ids_p, size_t *n_p,
                          ls_chats_read *r_p, ls_error *);
/* Logs what was read, and the first sample. */
void ls_chats_log(const ls_chats_read *, const ls_config *);
void ls_chats_read_free(ls_chats_read *);

/* Finds the conversations in the tokens, divides them into training and
 * validation, and makes rows. `what` names the tokens in messages. */
ls_status ls_chats_open(const ls_tokens *, const ls_config *, const char *what, ls_chats *c_p,
                        ls_error *);
void ls_chats_close(ls_chats *);

/* Reads row i of the part (0 or 1) as a sample of model.kind llama (networks/llama.c): fields of T
 * numbers each. */
ls_status ls_chats_row(const ls_chats *, const ls_tokens *, int part, uint64_t i, void *sample,
                       ls_error *);
size_t ls_chats_sample_nbytes(const ls_config *);

#endif
