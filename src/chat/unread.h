/* unread.h - the keys of a file's lines and messages that nothing reads, each named once.
 *
 * A zero-initialised list is empty. */
#ifndef LS_CHAT_UNREAD_H
#define LS_CHAT_UNREAD_H

#include "chat/conversation.h"
#include "template/template.h"

typedef struct ls_unread {
    char **names; /* [n] as they are logged: "id", "name" of messages */
    size_t n;
} ls_unread;

/* Adds the line's keys that are not among `keys`. Null values and empty texts say nothing. */
void ls_unread_add_line(ls_unread *, const ls_json *line, const char *const *keys);
/* Adds what the template does not know: members of messages, and tools. */
void ls_unread_add_messages(ls_unread *, const ls_conversation *, const ls_template *);
/* Logs them, if there are any; `path` names the file. */
void ls_unread_log(const ls_unread *, const char *path);
void ls_unread_free(ls_unread *);

#endif
