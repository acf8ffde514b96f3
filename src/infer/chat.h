/* chat.h - a conversation with a model, as its chat template writes it.
 *
 * The whole conversation is written and cut into tokens for each turn (chat/prompt.h). Keys and
 * values of the tokens that are the same as before are retained (text_writer.h), so a turn costs what is
 * new in it.
 */
#ifndef LS_INFER_CHAT_H
#define LS_INFER_CHAT_H

#include "chat/prompt.h"
#include "infer/text_writer.h"

typedef struct ls_chat {
    ls_writer writer;
    ls_chat_format format;
    ls_chat_message *messages; /* [n]; the first is the system's, if there is one */
    size_t n;
    uint64_t ndrawn; /* random numbers that are used up */
} ls_chat;

/* file: the template; NULL: that of the published model, or of the one that a run began with. The
 * trained model must outlive the chat. LS_EINVAL: there is none, or it is damaged. */
ls_status ls_chat_open(const ls_trained *, const char *file, ls_chat *c_p, ls_error *);
void ls_chat_close(ls_chat *);

/* Begins a new conversation, with a message of the system if that is not NULL or empty. */
void ls_chat_begin(ls_chat *, const char *system);

/* Begins a new conversation without messages, whose answers are drawn from the first random number
 * on. Keys and values stay: tokens with which both conversations begin are not computed again. */
void ls_chat_restart(ls_chat *);

/* Adds a message that has been said already. False: the role is not system, user or assistant. */
bool ls_chat_add(ls_chat *, const char *role, const char *text);

/* Adds the user's message, and writes the model's answer as ls_writer_write() does, whose fields
 * `ends`, `first` and `special` are not read. LS_EINVAL: the template refuses the conversation, or
 * the context has no room for it; the message is dropped. *answer_p belongs to the conversation. */
ls_status ls_chat_say(ls_chat *, const char *text, const ls_writing *, ls_generated *g_p,
                      const char **answer_p, ls_error *);

#endif
