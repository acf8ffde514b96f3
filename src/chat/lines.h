/* lines.h - a file's lines of conversations, or of pairs of answers, as samples of tokens. */
#ifndef LS_CHAT_LINES_H
#define LS_CHAT_LINES_H

#include "chat/encode.h"

/* A sample: a conversation, or with `apart` one of its answers with what is before it; or a pair:
 * its chosen text, and its rejected one. */
typedef struct ls_chat_sample {
    uint64_t line; /* from 1 */
    bool apart;
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
    ls_chat_loss loss;                               /* of conversations */
    void (*take)(void *arg, const ls_chat_sample *); /* is called for each sample, in order */
    void *arg;
} ls_chat_lines;

/* Empty lines are passed over. LS_EINVAL: a line is no conversation, or no pair, or nothing of it
 * would be trained on: "FILE:LINE: ..." */
ls_status ls_chat_lines_encode(const ls_chat_lines *, ls_error *);

#endif
