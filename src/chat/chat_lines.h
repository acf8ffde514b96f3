/* chat_lines.h - a file's conversations, or pairs of answers, as samples of tokens.
 *
 * A file has a JSON object a line, or is a JSON array of objects, as data sets are published. */
#ifndef LS_CHAT_CHAT_LINES_H
#define LS_CHAT_CHAT_LINES_H

#include "chat/encode.h"
#include "chat/unread.h"

/* A sample: a conversation, or with `separate` one of its answers with what is before it; or a
 * pair: its chosen text, and its rejected one. */
typedef struct ls_chat_sample {
    uint64_t line; /* from 1; of an array: the element's number */
    bool separate;
    const ls_chat_spans *spans;
    ls_chat_tokens *tokens; /* may be changed */
    const ls_chat_spans *rejected_spans;
    ls_chat_tokens *rejected; /* NULL: it is no pair */
} ls_chat_sample;

typedef enum ls_chat_wants {
    LS_WANTS_CHATS,
    LS_WANTS_PAIRS,
    LS_WANTS_EITHER /* each line as it is */
} ls_chat_wants;

typedef struct ls_chat_lines {
    const char *name; /* of the file, for messages */
    const char *text; /* [nbytes] */
    size_t nbytes;
    const ls_chat_format *format;
    ls_chat_wants wants;
    ls_chat_loss loss; /* of conversations */
    ls_unread *unread; /* gets the keys that are not read; may be NULL */
    void (*take)(void *arg, const ls_chat_sample *); /* is called for each sample, in order */
    /* Is called for a line that is damaged, or no conversation, which is left out; NULL: it is an
     * error. */
    void (*damaged)(void *arg, const ls_error *why);
    void *arg;
} ls_chat_lines;

/* Empty lines are passed over. LS_EINVAL: a line is no conversation, or no pair, or nothing of it
 * would be trained on: "FILE:LINE: ..." */
ls_status ls_chat_lines_encode(const ls_chat_lines *, ls_error *);

/* The first line or element of a text [n]; the caller frees it. NULL: it is not JSON. */
ls_json *ls_chat_lines_first(const char *text, size_t n);
/* Is an object a conversation or a pair? The key by which it is one; NULL: it is not. */
const char *ls_chat_object_key(const ls_json *);
/* Is a text [n] a file of conversations or of pairs? The key by which its first line is one; NULL:
 * it is another text. */
const char *ls_chat_lines_key(const char *text, size_t n);

#endif
