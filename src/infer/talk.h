/* talk.h - the messages of a conversation, whether a local or a remote model answers. */
#ifndef LS_INFER_TALK_H
#define LS_INFER_TALK_H

#include <stdbool.h>

#include "chat/prompt.h"

/* Initially {0}. */
typedef struct ls_talk {
    ls_chat_message *messages; /* [n]; the first is the system's, if there is one */
    size_t n;
} ls_talk;

/* Begins a new conversation, with a message of the system if that is not NULL or empty. */
void ls_talk_begin(ls_talk *, const char *system);
/* Adds a message that has been said. False: the role is not system, user or assistant. */
bool ls_talk_add(ls_talk *, const char *role, const char *text);
/* Drops all messages but the first n. */
void ls_talk_cut(ls_talk *, size_t n);
void ls_talk_free(ls_talk *);

#endif
