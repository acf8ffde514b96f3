/* tokens_chat.h - lockstep tokens --chat: what a model makes of conversations. */
#ifndef LS_CLI_TOKENS_CHAT_H
#define LS_CLI_TOKENS_CHAT_H

#include "chat/spans.h"

typedef struct ls_tokens_chat {
    const char *model;    /* a directory, or a GGUF file */
    const char *file;     /* conversations */
    const char *template; /* a file; NULL: the model's */
    ls_chat_loss loss;
    bool json; /* a line a sample */
} ls_tokens_chat;

ls_status ls_tokens_chat_print(const ls_tokens_chat *, ls_error *);

#endif
