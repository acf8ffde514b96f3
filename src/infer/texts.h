/* texts.h - texts as the input of predictions by a language model: the lines of files, or the
 * values of JSON files (FILE.jsonl, .ndjson or .json: one a line, or an array), each a text, or an
 * object with the member text, prompt or content (the first of these that it has). Files may be
 * packed.
 *
 * Tokens may stand for a text, for a model without a tokenizer: a line of numbers with blanks or
 * commas between them; in JSON an array of numbers, or an object with the member tokens or
 * input_ids.
 *
 * Empty lines are no texts, but count as rows. */
#ifndef LS_INFER_TEXTS_H
#define LS_INFER_TEXTS_H

#include "data/tokenizer.h"
#include "infer/generate.h"

typedef struct ls_texts {
    const ls_trained *model;
    char **files; /* [nfiles] their paths */
    size_t nfiles;
    struct ls_texts_text *list; /* [n] */
    size_t n;
    uint64_t nempty; /* empty lines that other lines follow */
} ls_texts;

/* paths as data.path. The model must outlive it. LS_EINVAL: a line is no text, or no tokens.
 * LS_EIO: a file can't be read. */
ls_status ls_texts_open(const char *paths, const ls_trained *, ls_texts *t_p, ls_error *);
void ls_texts_close(ls_texts *);
const char *ls_texts_file(const ls_texts *, uint64_t i);
/* Where text i is among the lines, or the values, of all files. */
ls_record_at ls_texts_record(const ls_texts *, uint64_t i);
/* The last tokens of text i, at most as many as the model's context; the caller frees
 * list_p->ids. */
ls_status ls_texts_tokens(const ls_texts *, uint64_t i, ls_token_list *list_p, ls_error *);

#endif
