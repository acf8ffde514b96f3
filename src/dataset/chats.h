/* chats.h - conversations as the tokens of a corpus (corpus.h), and as samples of the model.
 *
 * All conversations follow each other in one file of tokens. A number there is
 *
 *     id + model.vocab * (trained ? 1 : 0)      of a token that is not a conversation's first
 *     id + model.vocab * 2                      of the first one
 *     id + model.vocab * 3                      of the first one, if it is of data.val_path
 *
 * A sample (a row of model.context positions) has one conversation, or with data.packing as many as
 * fit (chat/pack.h); a conversation of n tokens takes n - 1 positions. A preference pair
 * (train.loss: dpo) has two texts there, the chosen one and then the rejected one, and a sample (a
 * row of twice as many positions) has one pair.
 */
#ifndef LS_DATASET_CHATS_H
#define LS_DATASET_CHATS_H

#include "chat/chat_format.h"
#include "chat/pack.h"
#include "chat/unread.h"
#include "config/config.h"
#include "data/tokens.h"
#include "source/damage.h"

enum { LS_CHATS_FLAGS = 4 }; /* numbers of the file are below model.vocab times this */

typedef struct ls_chats {
    uint32_t vocab;
    int64_t T;          /* positions of a row */
    int texts;          /* of a conversation: 1; of a pair: 2 */
    uint64_t *begins;   /* [n * texts + 1] */
    uint64_t n;         /* conversations, or pairs */
    uint64_t *of[2];    /* the numbers of those of the training part, and of validation */
    ls_packing rows[2]; /* of those */
    bool packed;
    float *reference;   /* [n][2] of pairs: the reference's log-probabilities of the answers
                         * (reference.h) */
    bool has_reference; /* false: they are not known yet, and 0 */
} ls_chats;

/* What became of the lines of files. */
typedef struct ls_chats_read {
    uint64_t nsamples, ntokens, ntrained;
    uint64_t ncut, nlost; /* samples longer than the context, and tokens that they lost */
    uint64_t nleft_out; /* of them: those of which no answer was left, or of a pair no difference */
    uint64_t nseparate; /* samples that are an answer each, of conversations with several
                         * (chat/chat_lines.h) */
    uint64_t ncr;       /* samples with CR in their texts */
    uint64_t nbytes;    /* of the files */
    ls_hash hash;
    ls_damage damage; /* lines that were left out (data.damaged: skip) */
    ls_unread unread; /* keys of the lines that were not read */
    ls_buf shown;     /* the first sample, for people */
} ls_chats_read;

/* Does the first line of the files have a pair of answers? False also if it can't be read. */
bool ls_chats_are_pairs(const char *paths);
/* The files that messages name: data.path, or data.val_path if that is empty. */
const char *ls_chats_path(const ls_config *);

/* Appends the numbers of all conversations, or pairs, in data.path (unless that is empty) and
 * data.val_path to *ids_p [*n_p]. LS_EINVAL: a line is no conversation, or nothing of it would be
 * trained on; the message names file and line.
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
/* Rows become no longer than the longest one of the part needs. Returns the context that they have
 * now, at most that of before. */
int64_t ls_chats_shorten(ls_chats *, int part);
/* The number of the pair in row i of the part. */
uint64_t ls_chats_pair(const ls_chats *, int part, uint64_t i);

#endif
