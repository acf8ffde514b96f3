/* corpus.h - a run's text as tokens: tokenizer, training part, validation part.
 *
 * A new run trains the tokenizer on the text and encodes it; both are kept in the run's folder
 * (tokenizer.json, tokens.bin), so that going on needs neither the text nor the time. The
 * validation part is the end of the text.
 */
#ifndef LS_TRAIN_CORPUS_H
#define LS_TRAIN_CORPUS_H

#include "data/tokenizer.h"
#include "data/tokens.h"
#include "train/config.h"

typedef struct ls_corpus {
    ls_tokenizer *tokenizer;
    ls_buf tokenizer_json;
    ls_tokens tokens;  /* mapped from the run's folder */
    uint32_t *encoded; /* before that: [nencoded] */
    size_t nencoded, source_bytes;
    const uint32_t *ids; /* [n] one of the two */
    size_t n;
    const uint32_t *train, *val;
    uint64_t ntrain, nval; /* samples; each of them T + 1 tokens, the last shared with the next */
    uint32_t *nbytes;      /* [vocab] bytes of each token */
} ls_corpus;

/* From the text at config->data.path. Writes nothing. */
ls_status ls_corpus_make(ls_corpus *, const ls_config *, ls_error *);
/* Leaves tokenizer.json and tokens.bin in `run`, each whole or not at all. Those that are there
 * stay. */
ls_status ls_corpus_save(const ls_corpus *, const char *run, ls_error *);
bool ls_corpus_is_saved(const char *run);
/* From the run's folder. */
ls_status ls_corpus_open(ls_corpus *, const char *run, const ls_config *, ls_error *);
void ls_corpus_free(ls_corpus *);

/* Bytes that the targets of one sample stand for. */
double ls_corpus_sample_bytes(const ls_corpus *, const uint32_t *sample, int64_t T);

#endif
