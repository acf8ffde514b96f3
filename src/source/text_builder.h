/* text_builder.h - a text while it is put together, document by document. */
#ifndef LS_SOURCE_TEXT_BUILDER_H
#define LS_SOURCE_TEXT_BUILDER_H

#include "source/plain.h"
#include "source/text.h"
#include "source/text_files.h"

typedef struct ls_text_builder {
    ls_text *t;
    const ls_text_options *o;
    ls_left_out *left_out;
    ls_buf separator;
    size_t nleft_out; /* files below directories, of left_out */
    uint64_t nempty;  /* documents */
    ls_words columns; /* whose texts were taken */
} ls_text_builder;

/* Adds a text [n] of valid UTF-8, divided where the separator stands. LS_ENOMEM. */
ls_status ls_text_builder_add(ls_text_builder *, const char *text, size_t n, ls_error *);
/* What is damaged, as *why says: left out, or the error. */
ls_status ls_text_builder_damaged(ls_text_builder *, const ls_error *why, ls_error *);

/* What becomes of a file that has conversations, which this key of its first object shows: the
 * message how to read them, or a line in the log. */
ls_status ls_text_builder_refuse_chats(const ls_text_builder *, const char *path, const char *key,
                                       ls_error *);

/* Adds the texts of a file of JSON: each object's, or each element that is one. *taken_p false:
 * nothing was added, since its objects have none and it may be left out, or since it is to be read
 * as it is, which is logged. below: the file was found below a directory. LS_EINVAL: it has no text
 * in each object; it has conversations. */
ls_status ls_text_json_add(ls_text_builder *, const ls_plain *, bool below, bool *taken_p,
                           ls_error *);

#endif
