/* conversations.h - the conversations, or pairs of answers, of a file as samples of a trained
 * model. */
#ifndef LS_INFER_CONVERSATIONS_H
#define LS_INFER_CONVERSATIONS_H

#include "chat/chat_format.h"
#include "infer/generate.h"

/* How the model writes conversations. template: a file in place of its own; NULL: none. The model
 * must outlive the format. */
ls_status ls_trained_chat_format(const ls_trained *, const char *template, ls_chat_format *f_p,
                                 ls_error *);

/* The validation part of *d_p is the file's conversations; of a model opened with LS_READS_PAIRS,
 * its pairs, which have no reference yet. They are cut to the model's context; then that becomes as
 * short as the longest one needs (ls_trained_shorten()). LS_EINVAL: a line is damaged, or the model
 * has no conversations. */
ls_status ls_trained_chats(ls_trained *, const char *path, const char *template, ls_dataset *d_p,
                           ls_error *);

/* Sets the reference of preference pairs to the log-probabilities that this model gives to their
 * answers. */
ls_status ls_trained_refer(const ls_trained *, ls_dataset *, ls_error *);

#endif
