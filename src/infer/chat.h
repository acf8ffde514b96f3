/* chat.h - a conversation with a model, as its chat template writes it.
 *
 * The whole conversation is written and cut into tokens for each turn (chat/prompt.h). Keys and
 * values of the tokens that are the same as before are retained (text_writer.h), so a turn costs
 * what is new in it.
 */
#ifndef LS_INFER_CHAT_H
#define LS_INFER_CHAT_H

#include "infer/talk.h"
#include "infer/text_writer.h"

typedef struct ls_chat {
    ls_writer writer;
    ls_chat_format format;
    ls_talk talk; /* a new one may begin at any time: what both begin with is not computed again */
    uint64_t ndrawn; /* random numbers that are used up */
} ls_chat;

/* file: the template; NULL: that of the published model, or of the one that a run began with. The
 * trained model must outlive the chat. LS_EINVAL: there is none, or it is damaged. */
ls_status ls_chat_open(const ls_trained *, const char *file, ls_chat *c_p, ls_error *);
void ls_chat_close(ls_chat *);

/* Begins a new conversation, whose answers are drawn from the first random number on. */
void ls_chat_restart(ls_chat *);

/* Adds the user's message, and writes the model's answer as ls_writer_write() does, whose fields
 * `ends`, `first` and `special` are not read. LS_EINVAL: the template refuses the conversation, or
 * the context has no room for it; the message is dropped. *answer_p belongs to the conversation. */
ls_status ls_chat_say(ls_chat *, const char *text, const ls_writing *, ls_generated *g_p,
                      const char **answer_p, ls_error *);

#endif
