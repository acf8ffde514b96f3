/* texts.h - texts of which a language model predicts something: the lines of files, or the member
 * text, prompt or content (the first of these that a file has) of JSON lines (FILE.jsonl). Empty lines
 * are passed over. */
#ifndef LS_INFER_TEXTS_H
#define LS_INFER_TEXTS_H

#include "data/tokenizer.h"

typedef struct ls_texts {
    const ls_tokenizer *tokenizer;
    char **files; /* [nfiles] their paths */
    size_t nfiles;
    struct ls_texts_text *list; /* [n] */
    size_t n;
} ls_texts;

/* paths as data.path. The tokenizer outlives it. LS_EINVAL: a line is no text. LS_EIO: a file can't be
 * read. */
ls_status ls_texts_open(const char *paths, const ls_tokenizer *, ls_texts *t_p, ls_error *);
void ls_texts_close(ls_texts *);
const char *ls_texts_file(const ls_texts *, uint64_t i);
/* The last tokens of text i, at most `most`; the caller frees list_p->ids. */
ls_status ls_texts_tokens(const ls_texts *, uint64_t i, int64_t most, ls_token_list *list_p,
                          ls_error *);

#endif
