/* reference.h - the log-probabilities that the reference model gives to the answers of pairs
 * (train.loss: dpo), computed once before the first step.
 *
 *     RUN/reference.json   {"format": "lockstep reference", "version": 1, "tokens": "...",
 *                           "chosen": [...], "rejected": [...], "xxh3_128": "..."}
 *
 * `tokens` is the hash of the tokens that have the pairs (corpus_record.h), and the last hash that
 * of the numbers. Each checkpoint has a copy. A run resumes with these numbers or not at all.
 */
#ifndef LS_DATASET_REFERENCE_H
#define LS_DATASET_REFERENCE_H

#include "base/hash.h"
#include "dataset/chats.h"

#define LS_REFERENCE_FILE "reference.json"

enum { LS_REFERENCE_NBYTES = 1 << 30 }; /* the most of such a file */

/* Appends the file's text. tokens: their hash. */
void ls_reference_write(const ls_chats *, ls_hash tokens, ls_buf *out);
/* Reads the file in a run's or checkpoint's directory into c->reference. *there_p: it exists.
 * LS_EINVAL: it is damaged, or of other pairs. */
ls_status ls_reference_read(const char *dir, ls_hash tokens, ls_chats *c, bool *there_p,
                            ls_error *);

#endif
