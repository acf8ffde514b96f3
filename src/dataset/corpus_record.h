/* corpus_record.h - which text, tokenizer and tokens a run is trained on, by their hashes.
 *
 *     RUN/corpus.json   {"format": "lockstep corpus", "version": 1,
 *                        "text":      {"bytes": N, "xxh3_128": "..."},
 *                        "validation": {"bytes": N, "xxh3_128": "..."},
 *                        "tokenizer": {"xxh3_128": "..."},
 *                        "tokens":    {"count": N, "xxh3_128": "..."},
 *                        "documents": N}
 *
 * "documents" is there if the text has several, each with a token at its end; "validation", if the
 * text for validation is one of its own (data.val_path). The file is written when a run begins;
 * each checkpoint has a copy. A run resumes with these tokens or not at all. A run from before this
 * file existed gets it when it resumes, without the text.
 */
#ifndef LS_DATASET_CORPUS_RECORD_H
#define LS_DATASET_CORPUS_RECORD_H

#include "base/hash.h"
#include "base/mem.h"

typedef struct ls_corpus_record {
    bool has_text;       /* text and text_bytes are known */
    bool has_validation; /* validation and validation_bytes are: a text of its own */
    uint64_t text_bytes, validation_bytes, ntokens;
    uint64_t ndocuments;                         /* 0: it is one text */
    ls_hash text, validation, tokenizer, tokens; /* tokens: of tokens.bin's contents */
} ls_corpus_record;

#define LS_CORPUS_RECORD "corpus.json"

/* Appends the file's text. */
void ls_corpus_record_write(const ls_corpus_record *, ls_buf *);
/* Reads the file in a run's or checkpoint's directory. *there_p: it exists. LS_EINVAL: it is not a
 * valid record. */
ls_status ls_corpus_record_read(const char *dir, ls_corpus_record *r_p, bool *there_p, ls_error *);

#endif
