/* corpus.h - a run's text, or conversations, as tokens: tokenizer, training part, validation part.
 *
 * A new run trains the tokenizer on the text and encodes the text; tokenizer and tokens are saved
 * in the run directory (tokenizer.json, tokens.bin), so that resuming needs neither the text nor
 * the time. Their hashes are saved beside them (corpus_record.h): a run resumes with the same
 * tokens, or not at all. The validation part is the end of the tokens: of data.val_path, if the
 * config names files for it; else the end of the text; in a text of documents, whole documents
 * (data/documents.h).
 */
#ifndef LS_DATASET_CORPUS_H
#define LS_DATASET_CORPUS_H

#include "config/config.h"
#include "data/tokenizer.h"
#include "data/tokens.h"
#include "dataset/chats.h"
#include "dataset/corpus_record.h"
#include "source/text.h"

typedef struct ls_corpus {
    ls_tokenizer *tokenizer;
    ls_buf tokenizer_json;
    ls_tokens tokens;  /* in the run directory; until they are saved, in `encoded` */
    uint32_t *encoded; /* NULL: they are in the file */
    ls_corpus_record record;
    size_t val_first;      /* the first token of the validation part; training begins at token 0 */
    uint64_t ntrain, nval; /* samples of T + 1 tokens; the last token is the next sample's first */
    uint32_t *nbytes;      /* [vocab] bytes of each token; NULL: conversations */
    bool has_chats;        /* conversations instead of a text: ntrain and nval are rows of them */
    ls_chats chats;
} ls_corpus;

/* Makes the corpus from the texts at config->data.path and val_path. Writes nothing. */
ls_status ls_corpus_make(ls_corpus *, const ls_config *, ls_error *);
/* As ls_corpus_make(), with the tokenizer in a file. */
ls_status ls_corpus_encode(ls_corpus *, const ls_config *, const char *tokenizer, ls_error *);
/* Makes a corpus of the conversations, or preference pairs, in the files that the config names;
 * without data.path all belong to the validation part. The corpus has no tokenizer of its own. */
ls_status ls_corpus_of_chats(ls_corpus *, const ls_config *, const ls_chat_format *, ls_error *);
/* The text of other files than the run's, for an evaluation; ls_text_close() frees it. */
ls_status ls_corpus_open_text(const char *paths, const ls_config *, ls_text *t_p, ls_error *);
/* The tokens of that text, in the order of its files; the caller frees the list's arrays. */
ls_status ls_corpus_encode_text(const ls_tokenizer *, const ls_config *, const ls_text *,
                                ls_token_list *list_p, ls_error *);
/* Writes tokenizer.json, tokens.bin, corpus.json and, once it is known, reference.json if `run`
 * lacks them, each completely or not at all. Replaces one but tokens.bin that differs, and logs
 * that. */
ls_status ls_corpus_save(const ls_corpus *, const char *run, ls_error *);
bool ls_corpus_is_saved(const char *run);
/* Opens the corpus of a run directory. LS_EINVAL: a file is damaged, or differs from the run's
 * record. */
ls_status ls_corpus_open(ls_corpus *, const char *run, const ls_config *, ls_error *);
void ls_corpus_free(ls_corpus *);

/* Copies sample i of a text's validation part: out [T + 1]. Errors: those of ls_tokens_read(). */
ls_status ls_corpus_val_sample(const ls_corpus *, int64_t T, uint64_t i, uint32_t *out, ls_error *);
/* The mean loss of a bigram model of the training part, and the bytes that its targets stand for,
 * over the first nval tokens of the validation part. Reads all tokens. */
ls_status ls_corpus_bigram(const ls_corpus *, size_t nval, double *loss_p, double *nbytes_p,
                           ls_error *);

/* Reads row i of conversations, of the training part (0) or of validation (1), for
 * ls_chats_row(). */
ls_status ls_corpus_chat_row(const ls_corpus *, int part, uint64_t i, void *sample, ls_error *);
/* A training row, for the loader (data/loader.h); corpus: an ls_corpus. */
ls_status ls_corpus_chat_train(const void *corpus, const ls_draw *, size_t nbytes, void *sample,
                               ls_error *);

/* The bytes that one sample's targets stand for. */
double ls_corpus_sample_bytes(const ls_corpus *, const uint32_t *sample, int64_t T);

#endif
